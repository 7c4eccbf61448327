// retries.py for tests in Node: an attempt that is repeated is told, on standard output and in the file that
// ORRERY_RETRIES names.

"use strict";

const fs = require("node:fs");

function report(what, why) {
  const line = `RETRIED ${what}: ${String(why).split(/\s+/).join(" ")}`;
  console.log(line);
  if (process.env.ORRERY_RETRIES) fs.appendFileSync(process.env.ORRERY_RETRIES, `${line}\n`);
}

module.exports = { report };
