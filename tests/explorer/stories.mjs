// Setup and teardown of all tests of the explorer: a browser, pages that are signed in, containers.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, it } from "node:test";
import { Rest } from "../harness/rest.mjs";
import { launch, open, signIn } from "./browser.mjs";

export const KEY = process.env.ORRERY_KEY;
export const ENDPOINT = process.env.ORRERY_ENDPOINT_HTTP;
if (!KEY || !ENDPOINT) throw new Error("ORRERY_KEY or ORRERY_ENDPOINT_HTTP is not set: run this through with_server.py");
export const EXPLORER = new URL("_explorer/", ENDPOINT).href;
export const PHONE = { width: 360, height: 740 };

export const rest = new Rest(ENDPOINT, KEY);
export let browser;
/** Open pages; a test that opens one by itself adds it. */
export const pages = [];

before(async () => {
  browser = await launch(["--host-resolver-rules=MAP host.docker.internal 127.0.0.1"]);
});
after(() => browser?.close());

/** A page signed in, at that hash. Errors in the console fail the test at its end. */
export async function visit(place = "", options = {}) {
  const page = await open(browser, EXPLORER + place, options);
  pages.push(page);
  await signIn(page, KEY);
  return page;
}
async function leave() {
  const closed = pages.splice(0);
  const complaints = closed.flatMap((page) => page.complaints);
  await Promise.all(closed.map((page) => page.browserContext().close()));
  assert.deepEqual(complaints, [], "the console complained");
}
/** A test, after which all its pages are closed and were content. */
export const story = (name, act) => it(name, async () => {
  try {
    await act();
  } finally {
    await leave();
  }
});

let number = 0;
/** A container of its own for a test. */
export async function container(more = {}, headers = {}) {
  const place = { db: `d${++number}-${randomBytes(3).toString("hex")}`, coll: "things" };
  await rest.database(place.db);
  await rest.container(place.db, place.coll, more, headers);
  return place;
}
