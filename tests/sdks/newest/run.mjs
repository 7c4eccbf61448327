// node newest/run.mjs test-file…: runs tests of this directory with the newest @azure/cosmos, the one in newest/, in place of the pinned one.

import { spawnSync } from "node:child_process";

const NODE_MIN = 20;
const SKIPPED = 77; // ctest's SKIP_RETURN_CODE

if (Number.parseInt(process.versions.node, 10) < NODE_MIN) {
  console.log(`skipped: the newest @azure/cosmos needs Node ${NODE_MIN} or later, this is ${process.version}`);
  process.exit(SKIPPED);
}
const hook = new URL("./hook.mjs", import.meta.url).href;
const { status } = spawnSync(process.execPath, ["--import", hook, "--test", ...process.argv.slice(2)], { stdio: "inherit" });
process.exit(status ?? 1);
