// Runs the tests that documentdb 1.15.3 ships with itself, as they are, against a running Orrery,
// and compares the outcome with documentdb_own_expected.json:
//
//   pass    tests that must pass
//   waits   tests of what Orrery does not do yet, each with the feature it waits for
//   clock   tests of `pass` that are right only if a read comes soon enough, each with how soon; on
//           a busy machine it may not, and they are then run again
//
// It fails when a test of `pass` does not pass or when a test is in neither list, and it names the
// tests of `waits` that pass already: move those to `pass`.
//
//   node documentdb_own.js [file ...]    only these files of the package's test directory
//   node documentdb_own.js --record      write the outcome into the list; new failures get "?"
//   node documentdb_own.js --list        print all tests; needs no server
//   node documentdb_own.js --verbose     print also what the tests print
//
// Every test and its outcome are written into compatibility/documentdb_own.txt beside the binary, or
// in build/ where ORRERY_BINARY is not set; a run of some files leaves the lines of others alone.
//
// Tests that the package itself skips are counted and otherwise left alone. Every file runs in a
// process of its own, one after the other: most of them delete all databases first.

"use strict";

const { fork } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { report: reportRetry } = require("../harness/retries.js");

const PACKAGE_TESTS = path.join(path.dirname(require.resolve("documentdb/package.json")), "test");
const EXPECTED = path.join(__dirname, "documentdb_own_expected.json");
const BINARY = process.env.ORRERY_BINARY ?? path.join(__dirname, "../../build/orrery");
const OUTCOMES = path.join(path.dirname(path.resolve(BINARY)), "compatibility/documentdb_own.txt");
const TEST_MS_MAX = 20_000; // As in the package's Gruntfile; the slow tests set their own.
const FILE_MS_MAX = 400_000;
const CLOCK_RETRIES = 3;

function main(argv) {
  if (argv[0] === "--child") return runFile(argv[1], argv[2] === "--list");
  const options = new Set(argv.filter((word) => word.startsWith("--")));
  const files = argv.filter((word) => !word.startsWith("--"));
  return supervise(files.length ? files : filesOfPackage(), options);
}

function filesOfPackage() {
  return fs
    .readdirSync(PACKAGE_TESTS, { withFileTypes: true })
    .flatMap((entry) =>
      entry.isDirectory()
        ? fs
            .readdirSync(path.join(PACKAGE_TESTS, entry.name))
            .map((name) => `${entry.name}/${name}`)
        : [entry.name],
    )
    .filter((name) => name.endsWith(".js") && !name.startsWith("_"))
    .sort();
}

// ── In the child: one file of the package.

function runFile(file, onlyList) {
  const Mocha = require("mocha");
  const mocha = new Mocha({
    timeout: TEST_MS_MAX,
    reporter: class {},
  });
  mocha.addFile(path.join(PACKAGE_TESTS, file));
  mocha.loadFiles();
  const tests = new Map(); // Each test of the file, in order, with its outcome.
  const taken = new Map();
  const { clock } = JSON.parse(fs.readFileSync(EXPECTED, "utf8"));
  mocha.suite.eachTest((test) => {
    const title = `${file}: ${test.fullTitle()}`;
    taken.set(title, (taken.get(title) ?? 0) + 1); // Some titles occur twice.
    const key = taken.get(title) === 1 ? title : `${title} (${taken.get(title)})`;
    tests.set(test, { key, outcome: test.isPending() ? "skipped" : "did not run", retries: [] });
    if (key in clock) test.retries(CLOCK_RETRIES);
  });
  const report = () => process.send([...tests.values()], () => process.exit(0));
  if (onlyList) return report();
  const settle = (test, outcome, error) => {
    const entry = tests.get(test.retriedTest() ?? test);
    // A failed test stays failed, whatever it does after its end, for instance throw.
    if (entry && entry.outcome !== "failed")
      Object.assign(entry, { outcome, error: error?.message ?? error?.code });
  };
  const lost = (hook, error) => {
    const culprit = hook.ctx?.currentTest;
    if (culprit) settle(culprit, "failed", new Error(`${hook.title}: ${error.message}`));
  };
  return mocha
    .run(report)
    .on("retry", (test, error) =>
      tests.get(test.retriedTest() ?? test).retries.push(error?.message ?? error?.code),
    )
    .on("pass", (test) => settle(test, "passed"))
    .on("fail", (test, error) =>
      test.type === "hook" ? lost(test, error) : settle(test, "failed", error),
    );
}

// ── In the parent.

async function supervise(files, options) {
  const onlyList = options.has("--list");
  const results = [];
  for (const file of files)
    results.push(...(await outcomeOf(file, onlyList, options.has("--verbose"))));
  if (onlyList)
    return results.forEach(({ key, outcome }) =>
      console.log(outcome === "skipped" ? `${key} [skipped]` : key),
    );
  const expected = JSON.parse(fs.readFileSync(EXPECTED, "utf8"));
  if (options.has("--record")) record(results, expected, files);
  writeOutcomes(results, expected, files);
  process.exitCode = judge(results, expected, files) ? 0 : 1;
}

function outcomeOf(file, onlyList, verbose) {
  return new Promise((resolve, reject) => {
    const child = fork(__filename, ["--child", file, ...(onlyList ? ["--list"] : [])], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: {
        ...process.env,
        ACCOUNT_HOST: onlyList
          ? "https://localhost"
          : required("ORRERY_ENDPOINT_HTTPS").replace(/\/$/, ""),
        ACCOUNT_KEY: onlyList ? "" : required("ORRERY_KEY"),
        // The package speaks TLS 1.0, which today's OpenSSL leaves off.
        NODE_OPTIONS: "--tls-cipher-list=DEFAULT@SECLEVEL=0",
        NODE_TLS_REJECT_UNAUTHORIZED: "0",
        NODE_NO_WARNINGS: "1",
      },
    });
    let output = "";
    let tests;
    child.stdout.on("data", (text) => (output += text));
    child.stderr.on("data", (text) => (output += text));
    child.on("message", (message) => (tests = message));
    const deadline = setTimeout(() => child.kill("SIGKILL"), FILE_MS_MAX);
    child.on("error", reject);
    child.on("close", () => {
      clearTimeout(deadline);
      if (!tests) return reject(new Error(`${file} did not come to an end:\n${output}`));
      if (verbose) console.log(output);
      for (const { key, retries } of tests)
        for (const reason of retries) reportRetry(`documentdb's own ${key}`, reason);
      if (!onlyList)
        console.log(
          `${file}: ${tests.filter((test) => test.outcome === "passed").length} of ${tests.length} passed`,
        );
      resolve(tests);
    });
  });
}

function required(name) {
  if (!process.env[name]) throw new Error(`${name} is not set: run this through with_server.py`);
  return process.env[name];
}

/** Says what is not as expected. True when nothing is wrong. */
function judge(results, expected, files) {
  const mustPass = new Set(expected.pass);
  const ran = new Map(results.map((result) => [result.key, result]));
  const ofThisRun = (key) => files.includes(key.slice(0, key.indexOf(": ")));
  const active = results.filter(({ outcome }) => outcome !== "skipped");
  const broken = active.filter(({ key, outcome }) => mustPass.has(key) && outcome !== "passed");
  const unknown = active.filter(({ key }) => !mustPass.has(key) && !(key in expected.waits));
  const unexplained = Object.keys(expected.waits).filter((key) =>
    expected.waits[key].startsWith("?"),
  );
  const stale = [...mustPass, ...Object.keys(expected.waits)].filter(
    (key) => ofThisRun(key) && !ran.has(key),
  );
  const early = active.filter(({ key, outcome }) => key in expected.waits && outcome === "passed");
  const say = (heading, lines) =>
    lines.length && console.log(`\n${heading}\n${lines.map((line) => `  ${line}`).join("\n")}`);
  say(
    "Should pass, but do not:",
    broken.map(({ key, outcome, error }) => `${key}\n      ${outcome}: ${error ?? ""}`),
  );
  say(
    "Neither in `pass` nor in `waits`:",
    unknown.map(({ key, outcome }) => `${key} (${outcome})`),
  );
  say("In `waits` without a reason:", unexplained);
  say("Listed, but not in the package:", stale);
  say(
    "Pass although they are in `waits`:",
    early.map(({ key }) => `${key} (${expected.waits[key]})`),
  );
  const waiting = active.filter(
    ({ key, outcome }) => key in expected.waits && outcome !== "passed",
  ).length;
  const passed = active.filter(({ outcome }) => outcome === "passed").length;
  console.log(
    `\n${passed} passed, ${broken.length + unknown.length} wrong, ${waiting} wait for a feature, ` +
      `${results.length - active.length} are skipped by the package`,
  );
  return !broken.length && !unknown.length && !unexplained.length && !stale.length;
}

/** Writes `outcome  file: title  (what it waits for)` of each test into OUTCOMES. */
function writeOutcomes(results, expected, files) {
  const WIDTH = "did not run".length + 2;
  const ofOthers = (line) => {
    const key = line.slice(WIDTH);
    return key && !files.includes(key.slice(0, key.indexOf(": ")));
  };
  const before = fs.existsSync(OUTCOMES) ? fs.readFileSync(OUTCOMES, "utf8").split("\n") : [];
  const lines = results.map(({ key, outcome }) => {
    const waits = outcome !== "passed" && expected.waits[key];
    return outcome.padEnd(WIDTH) + key + (waits ? `  (waits for ${waits})` : "");
  });
  const all = [...before.filter(ofOthers), ...lines];
  // By file; within one they stay in the order in which they are in it.
  const fileOf = (line) => line.slice(WIDTH, line.indexOf(": ", WIDTH));
  all.sort((a, b) => (fileOf(a) < fileOf(b) ? -1 : fileOf(a) > fileOf(b) ? 1 : 0));
  fs.mkdirSync(path.dirname(OUTCOMES), { recursive: true });
  fs.writeFileSync(OUTCOMES, `${all.join("\n")}\n`);
  console.log(`\nEvery test and its outcome: ${OUTCOMES}`);
}

function record(results, expected, files) {
  const active = results.filter(({ outcome }) => outcome !== "skipped");
  const elsewhere = (key) => !files.includes(key.slice(0, key.indexOf(": ")));
  const failed = active.filter(({ outcome }) => outcome !== "passed");
  const waits = {
    ...Object.fromEntries(Object.entries(expected.waits).filter(([key]) => elsewhere(key))),
    ...Object.fromEntries(
      failed.map(({ key, error }) => [key, expected.waits[key] ?? `? ${error}`]),
    ),
  };
  expected.pass = [
    ...expected.pass.filter(elsewhere),
    ...active.filter(({ outcome }) => outcome === "passed").map(({ key }) => key),
  ];
  expected.waits = waits;
  fs.writeFileSync(EXPECTED, `${JSON.stringify(expected, undefined, 2)}\n`);
}

Promise.resolve(main(process.argv.slice(2))).catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
