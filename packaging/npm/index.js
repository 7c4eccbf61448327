// A server for as long as this process wants one: see index.d.ts.
"use strict";

const { spawn } = require("node:child_process");
const { guard, program } = require("./program.js");

const START_MS_MAX = 30_000;
const STOP_MS_MAX = 30_000; // The server itself lets requests finish for ten seconds.
const LINES_KEPT = 50; // Of what it says, for the message of a failure.

const running = new Set();
process.on("exit", () => {
  for (const child of running) child.kill("SIGTERM");
});

/** The options of `orrery serve` for those of start(). */
function serveOptions({ ephemeral, dataDir, host = "127.0.0.1", port = 0, key, keyFile, args = [] }) {
  if (dataDir !== undefined && ephemeral) throw new TypeError("either ephemeral or dataDir, not both");
  if (dataDir === undefined && ephemeral === false) throw new TypeError("ephemeral: false needs a dataDir");
  if (keyFile !== undefined && key === undefined) throw new TypeError("keyFile needs the key, too, to connect with");
  const words = ["serve", "--listen", `${host.includes(":") ? `[${host}]` : host}:${port}`];
  words.push(...(dataDir === undefined ? ["--ephemeral"] : ["--data-dir", dataDir]));
  if (keyFile !== undefined) words.push("--key-file", keyFile);
  return [...words, ...args];
}

/** Variables that the caller has for itself, such as ORRERY_KEY, are no options of this server. */
function cleanEnvironment(more) {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("ORRERY_"));
  return { ...Object.fromEntries(own), ...more };
}

/** Calls `take` with each line of a stream. */
function eachLine(stream, take) {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    lines.forEach(take);
  });
}

/** What the server says of itself once it listens; rejects when it ends instead. */
function introduction(child, { timeoutMs = START_MS_MAX, onLog }) {
  return new Promise((resolve, reject) => {
    const said = [];
    const fail = (why) => reject(new Error([`orrery ${why}`, ...said].join("\n")));
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      fail(`was not ready within ${timeoutMs} ms`);
    }, timeoutMs);
    eachLine(child.stdout, (line) => {
      const found = /^ {2}connection {2}AccountEndpoint=([^;]+);AccountKey=([^;]+);/.exec(line);
      if (found === null) return;
      clearTimeout(timer);
      resolve({ endpoint: found[1], key: found[2] });
    });
    eachLine(child.stderr, (line) => {
      said.push(line);
      if (said.length > LINES_KEPT) said.shift();
      onLog?.(line);
    });
    child.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    // "close" and not "exit": by then all that it has said is here.
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      fail(`ended with ${signal ?? `exit status ${code}`} instead of listening`);
    });
  });
}

/** Asks for the end and waits for it. */
function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS_MAX);
    child.ref();
    child.once("exit", () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill("SIGTERM");
  });
}

async function start(options = {}) {
  const child = spawn(program, serveOptions(options), {
    env: cleanEnvironment({ ...(options.key !== undefined && { ORRERY_KEY: options.key }), ...options.env }),
    stdio: ["ignore", "pipe", "pipe"],
    // Ctrl-C is for this process: it may want its database until it has finished.
    detached: true,
  });
  if (child.pid !== undefined) {
    running.add(child);
    child.once("exit", () => running.delete(child));
    guard(child);
  }
  const { endpoint, key: announced } = await introduction(child, options);
  // A server that nobody has stopped keeps no program from ending.
  for (const handle of [child, child.stdout, child.stderr]) handle.unref();

  const key = options.key ?? announced;
  const server = {
    endpoint,
    key,
    connectionString: `AccountEndpoint=${endpoint};AccountKey=${key};`,
    pid: child.pid,
    stop: () => stop(child),
  };
  if (Symbol.asyncDispose) server[Symbol.asyncDispose] = server.stop;
  return server;
}

exports.start = start;
