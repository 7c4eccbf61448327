// The program inside of this package, and what sees to it that it does not outlive its parent.
"use strict";

const { spawn } = require("node:child_process");
const path = require("node:path");

const program = path.join(__dirname, "portable", "orrery");

// Waits for the end of its standard input, which this process holds open and never writes to. The kernel closes it whatever
// ends this process, SIGKILL included, and then the server is asked to stop: it removes what it has kept for a while only.
const GUARDIAN = 'read -r _; kill -TERM "$0" 2>/dev/null';

/** Has `child` stopped when this process ends, however it ends. */
function guard(child) {
  const guardian = spawn("/bin/sh", ["-c", GUARDIAN, String(child.pid)], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true, // Ctrl-C is not for it.
  });
  // Without a shell there is no guardian, and a parent that is killed leaves its server behind.
  guardian.on("error", () => {});
  guardian.stdin?.on("error", () => {});
  guardian.unref();
  guardian.stdin?.unref();
  // Before the number of the child can belong to somebody else.
  child.once("exit", () => guardian.kill("SIGKILL"));
}

module.exports = { program, guard };
