// The change feed in the web explorer, in a real browser against the real server; see README.md.

import assert from "node:assert/strict";
import { describe } from "node:test";
import { gone, hash, open, press, shown, signIn, textOf } from "./browser.mjs";
import { Cable } from "./cable.mjs";
import { ENDPOINT, EXPLORER, KEY, browser, container, pages, rest, story, visit } from "./stories.mjs";

describe("the change feed, live", () => {
  /** Lets the page ask for less than it would: as if the server could not do it. */
  const withoutHeader = (page, name) => page.evaluateOnNewDocument((name_) => {
    const real = window.fetch;
    window.fetch = (url, options) => {
      if (options?.headers) delete options.headers[name_];
      return real(url, options);
    };
  }, name);

  const rows = (page) => page.$$eval(".change", (found) => found.map((row) => row.querySelector("b").textContent));
  const waitForRows = (page, count) => page.waitForFunction((count_) =>
    document.querySelectorAll(".change").length >= count_, {}, count)
    .catch(async () => assert.fail(`expected ${count} rows, there are ${(await rows(page)).length}`));

  story("shows what another client writes, as it happens", async () => {
    const { db, coll } = await container();
    await rest.upsert(db, coll, { id: "old", pk: "a" });
    const page = await visit(`#/${db}/${coll}/changes`);
    await shown(page, ".feed-status", "Live");
    await rest.upsert(db, coll, { id: "new", pk: "a", v: 1 });
    await shown(page, ".change", "new");
    await shown(page, ".change .operation", "created");
    await rest.upsert(db, coll, { id: "new", pk: "a", v: 2 });
    await shown(page, ".change .operation", "replaced");
    assert.deepEqual(await rows(page), ["new", "new"], "newest first, and nothing from before");

    await (await page.$(".change")).click();
    await shown(page, ".detail del", '"v": 1');
    await shown(page, ".detail ins", '"v": 2');
    await press(page, ".detail button", "Document");
    await shown(page, ".detail pre.json", '"v": 2');
    await press(page, ".detail a", "Open");
    await shown(page, ".editor h2", "new");
  });

  story("starts at the beginning or at a time, and survives a reload", async () => {
    const { db, coll } = await container();
    for (let i = 0; i < 5; i++) await rest.upsert(db, coll, { id: `i${i}`, pk: `k${i}` });
    const page = await visit(`#/${db}/${coll}/changes`);
    await shown(page, ".feed-status", "Live");
    assert.deepEqual(await rows(page), []);
    await page.select("select[name=from]", "beginning");
    await waitForRows(page, 5);
    assert.deepEqual((await rows(page)).sort(), ["i0", "i1", "i2", "i3", "i4"]);
    await hash(page, "from=beginning");
    await page.reload();
    await waitForRows(page, 5);
    await page.select("select[name=from]", "time"); // An hour ago.
    await hash(page, "from=time");
    await waitForRows(page, 5);
    await rest.upsert(db, coll, { id: "later", pk: "z" });
    await shown(page, ".change", "later");
    assert.equal((await rows(page)).length, 6);
  });

  story("of all ranges at once, or of one", async () => {
    const { db, coll } = await container({}, { "x-ms-offer-throughput": "11000" });
    const page = await visit(`#/${db}/${coll}/changes`);
    await shown(page, ".feed-status", "Live");
    assert.equal((await page.$$(".positions li")).length, 2);
    for (let i = 0; i < 10; i++) await rest.upsert(db, coll, { id: `i${i}`, pk: `k${i}` });
    await waitForRows(page, 10);
    const places = await page.$$eval(".change .where", (cells) => cells.map((cell) => /(\d+)@/.exec(cell.textContent)[1]));
    assert.deepEqual([...new Set(places)].sort(), ["0", "1"]);
    await page.select("select[name=range]", "1");
    await page.waitForFunction(() => document.querySelectorAll(".positions li").length === 1);
    await page.select("select[name=from]", "beginning");
    await waitForRows(page, places.filter((place) => place === "1").length);
    assert.deepEqual([...new Set(await page.$$eval(".change .where", (cells) =>
      cells.map((cell) => /(\d+)@/.exec(cell.textContent)[1])))], ["1"]);
  });

  story("pauses without losing anything", async () => {
    const { db, coll } = await container();
    const page = await visit(`#/${db}/${coll}/changes`);
    await shown(page, ".feed-status", "Live");
    await page.keyboard.press("p");
    await shown(page, ".feed-status", "Paused");
    for (let i = 0; i < 3; i++) await rest.upsert(db, coll, { id: `i${i}`, pk: "a" });
    assert.deepEqual(await rows(page), []);
    await page.keyboard.press("p");
    await waitForRows(page, 3);
    assert.deepEqual(await rows(page), ["i2", "i1", "i0"]);
  });

  story("keeps a bounded number of rows and misses none of many", async () => {
    const { db, coll } = await container();
    const page = await visit(`#/${db}/${coll}/changes`);
    await shown(page, ".feed-status", "Live");
    await Promise.all(Array.from({ length: 8 }, async (_, worker) => {
      for (let i = 0; i < 75; i++) await rest.upsert(db, coll, { id: `w${worker}-${i}`, pk: `k${i % 7}` });
    }));
    await shown(page, ".feed-status", "600 changes, the last 500 shown");
    assert.equal((await page.$$(".change")).length, 500);
  });

  story("shows the newest of all ranges, also when an older one is read later", async () => {
    const { db, coll } = await container({}, { "x-ms-offer-throughput": "11000" });
    const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
    for (const pk of keys) await rest.upsert(db, coll, { id: "probe", pk });
    const keysOf = async (range) => JSON.parse(await rest.send("GET", `dbs/${db}/colls/${coll}/docs`, {
      headers: { "x-ms-documentdb-partitionkeyrangeid": range },
    })).Documents.map(({ pk }) => pk);
    const [[early], [late]] = [await keysOf("0"), await keysOf("1")];
    const write = (word, count, pk) => Promise.all(Array.from({ length: 8 }, async (_, worker) => {
      for (let i = worker; i < count; i += 8) await rest.upsert(db, coll, { id: `${word}-${i}`, pk });
    }));
    await write("old", 600, late);
    // Times are whole seconds: the new ones are of a later one.
    const tick = async () => JSON.parse(await rest.upsert(db, coll, { id: "tick", pk: early }))._ts;
    for (const first = await tick(); await tick() === first;);
    await write("new", 100, early);

    const page = await open(browser, "about:blank");
    pages.push(page);
    await page.evaluateOnNewDocument(() => {
      const real = window.fetch;
      const held = new Promise((resolve) => { window.release = resolve; });
      window.fetch = async (url, options) => {
        if (options?.headers?.["x-ms-documentdb-partitionkeyrangeid"] === "1") await held;
        return real(url, options);
      };
    });
    await page.goto(`${EXPLORER}#/${db}/${coll}/changes?from=beginning`);
    await signIn(page, KEY);
    await shown(page, ".change", "new-99");
    await page.evaluate(() => window.release());
    await shown(page, ".feed-status", `${keys.length + 600 + 1 + 100} changes, the last 500 shown`);
    const seen = await rows(page);
    assert.equal(seen.length, 500);
    assert.deepEqual(seen.slice(0, 100).filter((id) => !id.startsWith("new-")), []);
    assert.deepEqual(seen.slice(100, 101), ["tick"]);
    const places = await page.$$eval(".change", (found) => found.map((row) =>
      [row.querySelector("time").dateTime, Number(/@(\d+)/.exec(row.querySelector(".where").textContent)[1])]));
    const sorted = places.toSorted(([a, i], [b, j]) => (a < b ? 1 : a > b ? -1 : j - i));
    assert.deepEqual(places, sorted, "newest first");
  });

  story("filters on the server", async () => {
    const { db, coll } = await container();
    const page = await visit(`#/${db}/${coll}/changes`);
    await shown(page, ".watch");
    await page.keyboard.press("/");
    await page.keyboard.type('c.price > 10 AND c.name = "ä&b"');
    await page.keyboard.press("Enter");
    const remove = await page.waitForSelector('[aria-label="Remove the filter"]'); // Now it is applied.
    await shown(page, ".feed-status", "Live");
    await rest.upsert(db, coll, { id: "cheap", pk: "a", price: 5, name: "ä&b" });
    await rest.upsert(db, coll, { id: "other", pk: "a", price: 50, name: "b" });
    await rest.upsert(db, coll, { id: "right", pk: "a", price: 20, name: "ä&b" });
    await shown(page, ".change", "right");
    assert.deepEqual(await rows(page), ["right"]);
    await remove.click();
    await gone(page, '[aria-label="Remove the filter"]');
    await page.select("select[name=from]", "beginning");
    await waitForRows(page, 3);
  });

  story("tells what is wrong with a filter", async () => {
    const { db, coll } = await container();
    const page = await visit(`#/${db}/${coll}/changes?filter=c.price+%3E%3E`);
    await shown(page, ".error", "The server does not take this filter.");
    assert.match(await textOf(page, ".error p"), /^Syntax error.*\(at character \d+\)$/);
    assert.match(await textOf(page, ".error .detail"), /Status 400 · activity/);
    await shown(page, ".feed-status", "Stopped");
  });

  story("shows every version and deletes where they are kept", async () => {
    const { db, coll } = await container({ changeFeedPolicy: { retentionDuration: 60, previousImage: "all" } });
    const page = await visit(`#/${db}/${coll}/changes`);
    await page.waitForSelector("select[name=mode]");
    await page.select("select[name=mode]", "all");
    await page.waitForSelector("select[name=from]:disabled"); // This mode knows no beginning.
    await shown(page, ".feed-status", "Live");
    await page.keyboard.press("p"); // Between two reads a latest-version feed would see nothing of this.
    await shown(page, ".feed-status", "Paused");
    await rest.upsert(db, coll, { id: "x", pk: "a", v: 1 });
    await rest.upsert(db, coll, { id: "x", pk: "a", v: 2 });
    await rest.remove(db, coll, "x", "a");
    await page.keyboard.press("p");
    await waitForRows(page, 3);
    assert.deepEqual(await page.$$eval(".change .operation", (cells) => cells.map((cell) => cell.textContent)), ["deleted", "replaced", "created"]);
    await (await page.$(".change")).click();
    await shown(page, ".detail del", '"v": 2');
  });

  story("goes on through a split and a merge, each change once", async () => {
    const { db, coll } = await container();
    const page = await visit(`#/${db}/${coll}/changes`);
    await shown(page, ".feed-status", "Live");
    const write = async (word) => {
      for (let i = 0; i < 10; i++) await rest.upsert(db, coll, { id: `${word}-${i}`, pk: `k${i}` });
    };
    await write("whole");
    await waitForRows(page, 10);
    await rest.split(db, coll, "0");
    await write("split");
    await waitForRows(page, 20);
    await page.waitForFunction(() => document.querySelectorAll(".positions li").length === 2);
    const children = (await rest.ranges(db, coll)).map(({ id }) => id);
    assert.equal(children.length, 2);
    await rest.merge(db, coll, children);
    await write("merged");
    await waitForRows(page, 30);
    await shown(page, ".positions", "(part)");
    const seen = await rows(page);
    assert.equal(new Set(seen).size, 30);
    assert.equal(seen.length, 30);
    await shown(page, ".feed-status", "Live");
  });

  story("falls back to long polls, and then to polls, where the server has nothing better", async () => {
    const { db, coll } = await container();
    const expected = { stream: [], "long poll": ["accept"], polling: ["accept", "prefer"] };
    for (const [transport, missing] of Object.entries(expected)) {
      const page = await open(browser, "about:blank");
      pages.push(page);
      for (const name of missing) await withoutHeader(page, name);
      await page.goto(`${EXPLORER}#/${db}/${coll}/changes`);
      await signIn(page, KEY);
      await shown(page, ".feed-status", `Live · by ${transport}`);
      for (const id of ["one", "two"]) {
        await rest.upsert(db, coll, { id, pk: transport });
        await shown(page, ".change", id);
      }
      assert.deepEqual(await rows(page), ["two", "one"], transport);
    }
  });

  story("goes on after the connection was lost", async () => {
    const { db, coll } = await container();
    const cable = await Cable.to(ENDPOINT);
    try {
      const page = await open(browser, `${cable.endpoint}_explorer/#/${db}/${coll}/changes`);
      pages.push(page);
      await signIn(page, KEY);
      await shown(page, ".feed-status", "Live");
      for (const turn of [1, 2, 3]) {
        await rest.upsert(db, coll, { id: `before-${turn}`, pk: "a" });
        await shown(page, ".change", `before-${turn}`);
        cable.cut();
        await shown(page, ".feed-status", "Trying again");
        await rest.upsert(db, coll, { id: `meanwhile-${turn}`, pk: "a" });
        cable.mend();
        await shown(page, ".change", `meanwhile-${turn}`);
        await shown(page, ".feed-status", "Live");
      }
      assert.deepEqual(await rows(page), [3, 2, 1].flatMap((turn) => [`meanwhile-${turn}`, `before-${turn}`]));
      page.complaints = page.complaints.filter((text) => !/ERR_(CONNECTION|EMPTY|INCOMPLETE)/.test(text));
    } finally {
      await cable.close();
    }
  });
});
