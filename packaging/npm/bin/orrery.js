#!/usr/bin/env node
// npx orrery: the program with the arguments given; without any, a server that forgets everything at its end.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { guard, program } = require("../program.js");

const words = process.argv.length > 2 ? process.argv.slice(2) : ["serve", "--ephemeral"];
const child = spawn(program, words, { stdio: "inherit" });

child.on("error", (error) => {
  console.error(`orrery: ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exit(signal ? 128 + constants.signals[signal] : code);
});

// Ctrl-C reaches the program from the terminal already. For some commands a second one means "at once", so that it must not
// come from here, too.
const hasTerminal = [0, 1, 2].some((descriptor) => require("node:tty").isatty(descriptor));
process.on("SIGINT", () => hasTerminal || child.kill("SIGINT"));
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));

// npx passes SIGTERM on to the shell between itself and this process, and that shell ends without a word.
const PARENT_LOOKS_MS = 500;
if (process.env.npm_command === "exec") {
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || child.kill("SIGTERM"), PARENT_LOOKS_MS);
}

if (child.pid !== undefined) guard(child);
