// The query box of the web explorer in a real browser against the real server; see README.md.

import assert from "node:assert/strict";
import { describe } from "node:test";
import { hash, overflow, press, shown, textOf } from "./browser.mjs";
import { PHONE, container, rest, story, visit } from "./stories.mjs";

const MOONS = [
  { id: "io", pk: "jupiter", radius: 1821.6 },
  { id: "europa", pk: "jupiter", radius: 1560.8 },
  { id: "titan", pk: "saturn", radius: 2574.73, sea: true },
  { id: "moon", pk: "earth", radius: 1737.4 },
];

/** A container of several ranges with moons in it. */
async function moons() {
  const place = await container({}, { "x-ms-offer-throughput": "31000" });
  for (const moon of MOONS) await rest.upsert(place.db, place.coll, moon);
  return place;
}
async function write(page, selector, text) {
  await page.$eval(selector, (field) => field.select());
  await page.type(selector, text);
}
const cells = (page) => page.$$eval(".rows tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
const ask = (text, more = {}) => `query?${new URLSearchParams({ q: text, ...more })}`;

describe("queries", () => {
  story("run with Ctrl Enter, and rows are a table with timing, charge and explanation", async () => {
    const { db, coll } = await moons();
    const page = await visit(`#/${db}/${coll}`);
    await press(page, ".tabs a", "Query");
    await shown(page, ".ask textarea");
    await write(page, "textarea[name=query]", "SELECT c.id, c.radius, c.sea FROM c ORDER BY c.radius DESC");
    await page.keyboard.down("Control");
    await page.keyboard.press("Enter");
    await page.keyboard.up("Control");
    await shown(page, ".query-status", "4 rows");
    assert.match(await textOf(page, ".query-status"), /^4 rows · \d+\.\d\d RU · \d+\.\d ms$/);
    assert.deepEqual(await cells(page), [["id", "radius", "sea"], ["titan", "2574.73", "true"], ["io", "1821.6"],
      ["moon", "1737.4"], ["europa", "1560.8"]].map((row, at) => (at > 1 ? [...row, ""] : row)));
    await shown(page, ".explanation", "ranges that were asked");
    await shown(page, ".explanation", "The server took");
    // A bookmark leads back to it.
    await hash(page, "q=SELECT");
    await page.reload();
    await shown(page, ".query-status", "4 rows");
    assert.match(await page.$eval("textarea[name=query]", (field) => field.value), /ORDER BY c\.radius DESC$/);
  });

  story("take parameters, and a partition key; numbers keep their digits", async () => {
    const { db, coll } = await moons();
    const page = await visit(`#/${db}/${coll}/query`);
    await press(page, ".ask summary", "Parameters");
    await write(page, "textarea[name=query]", "SELECT VALUE {a: c.id, b: @big} FROM c WHERE c.radius > @min");
    await write(page, "textarea[name=parameters]", '{"@big": 1234567890123456789, "min": 1600}');
    await write(page, ".ask input[name=key]", '"jupiter"');
    await press(page, ".ask button", "Run");
    await shown(page, ".query-status", "1 row");
    assert.deepEqual(await cells(page), [["a", "b"], ["io", "1234567890123456789"]]);
    await press(page, ".views button", "JSON");
    assert.equal(await textOf(page, ".results pre"), '{\n  "a": "io",\n  "b": 1234567890123456789\n}');
    await page.reload();
    await shown(page, ".results pre", "1234567890123456789");
    for (const [field, text, words] of [["parameters", "{", "The parameters are no JSON object."], ["parameters", "[1]", "no JSON object"],
      ["key", "jup", "The partition key is no JSON."]]) {
      const bad = await visit(`#/${db}/${coll}/${ask("SELECT * FROM c", { [field]: text })}`);
      await shown(bad, ".error", words);
    }
  });

  story("show values that are no objects, and nothing where there is nothing", async () => {
    const { db, coll } = await moons();
    const page = await visit(`#/${db}/${coll}/${ask("SELECT VALUE COUNT(1) FROM c")}`);
    await shown(page, ".query-status", "1 row");
    assert.deepEqual(await cells(page), [["value"], ["4"]]);
    const none = await visit(`#/${db}/${coll}/${ask("SELECT * FROM c WHERE c.radius < 0")}`);
    await shown(none, ".results", "No rows.");
  });

  story("point at the mistake", async () => {
    const { db, coll } = await moons();
    const page = await visit(`#/${db}/${coll}/${ask("SELECT *\nFROM c\nWHERE c.radius >< 1")}`);
    await shown(page, ".error", "Syntax error");
    assert.equal(await textOf(page, ".mistake"), "WHERE c.radius >< 1");
    const marked = await textOf(page, ".mistake mark");
    const selected = await page.$eval("textarea[name=query]", (field) =>
      (document.activeElement === field ? field.value.slice(field.selectionStart, field.selectionEnd) : undefined));
    assert.equal(selected, marked);
    assert.ok(["<", "><"].includes(marked), marked);
  });

  story("say how the rows were found without scrolling, however many rows there are", async () => {
    const { db, coll } = await container();
    for (let i = 0; i < 100; i++) await rest.upsert(db, coll, { id: `d${i}`, pk: "a" });
    for (const size of [{ width: 1280, height: 800 }, PHONE]) {
      const page = await visit(`#/${db}/${coll}/${ask("SELECT c.id FROM c ORDER BY c.id")}`, size);
      await shown(page, ".query-status", "100 rows");
      await shown(page, ".found summary", "How the rows were found");
      const [found, rows] = await page.evaluate(() => [".found", ".results"].map((selector) => {
        const { top, bottom } = document.querySelector(selector).getBoundingClientRect();
        return { top, bottom, height: innerHeight };
      }));
      assert.ok(found.bottom <= rows.top && rows.top < found.height - 100, `it ends at ${found.bottom} of ${found.height}, and rows follow`);
      if (size === PHONE) await press(page, ".found summary", "How"); // Folded, to leave room for rows.
      await shown(page, ".explanation", "The server took");
    }
  });

  story("go on page by page, and back", async () => {
    const { db, coll } = await container();
    const ids = Array.from({ length: 130 }, (_, at) => `d${String(at).padStart(3, "0")}`);
    for (const id of ids) await rest.upsert(db, coll, { id, pk: id });
    const page = await visit(`#/${db}/${coll}/${ask("SELECT VALUE c.id FROM c ORDER BY c.id")}`);
    await shown(page, ".query-status", "100 rows on this page");
    await press(page, ".paging button", "Next");
    await shown(page, ".query-status", "30 rows");
    assert.deepEqual((await cells(page)).slice(1).flat(), ids.slice(100));
    await press(page, ".paging button", "Previous");
    await shown(page, ".query-status", "100 rows");
    assert.deepEqual((await cells(page)).slice(1).flat(), ids.slice(0, 100));
  });

  story("lead from a document to its editor", async () => {
    const { db, coll } = await moons();
    const page = await visit(`#/${db}/${coll}/${ask("SELECT * FROM c WHERE c.id = 'titan'")}`);
    await shown(page, ".rows", "titan");
    assert.deepEqual((await cells(page))[0], ["id", "pk", "radius", "sea"], "without what the server adds");
    await press(page, ".rows a", "titan");
    await shown(page, ".editor h2", "titan");
  });

  story("fit a phone, whatever the rows", async () => {
    const { db, coll } = await moons();
    await rest.upsert(db, coll, { id: "wide", pk: "x", text: "w".repeat(300), list: Array.from({ length: 50 }, (_, at) => at) });
    for (const view of ["Table", "JSON"]) {
      const page = await visit(`#/${db}/${coll}/${ask("SELECT * FROM c")}`, PHONE);
      await shown(page, ".query-status", "5 rows");
      await press(page, ".views button", view);
      assert.ok((await overflow(page)) <= 0, `${view} is ${await overflow(page)} px too wide`);
    }
  });

  story("are explained in plain words", async () => {
    const page = await visit();
    const words = await page.evaluate(async () => {
      const { explain, parseExplanation, parseMetrics } = await import("./explain.js");
      const of = (value, metrics = "") => explain(parseExplanation(value && encodeURIComponent(JSON.stringify(value))), parseMetrics(metrics));
      const range = (id, way, indexes, documentsRead, entriesRead, rows) => ({ id, way, indexes, documentsRead, entriesRead, rows });
      return {
        index: of({ shape: "stream", ranges: [range("0", "index", ["/city"], 12, 40, 7)] }),
        scan: of({ shape: "ordered", ranges: [range("0", "scan", [], 1000, 0, 1), range("1", "scan", [], 234, 0, 0)],
          helpful: ["/b", "/a ASC,/b DESC"], potential: ["/d"], building: ["/b"] }),
        mixed: of({ shape: "stream", ranges: [range("1", "scan", [], 1, 0, 1), range("2", "nothing", [], 0, 0, 0)] }),
        other: of(undefined, "totalExecutionTimeInMs=2.5;queryCompileTimeInMs=0.5;VMExecutionTimeInMs=1;x"),
        many: of({ shape: "stream", rangesLeftOut: 998, ranges: [range("7", "index", ['/"a,b\\""', '/c ASC,/"d,e" DESC'], 2, 3, 1)] }),
        nonsense: [explain(parseExplanation("%zz"), {}), explain(parseExplanation("[]"), {})].flat(),
      };
    });
    assert.deepEqual(words.index, ["The index on /city found the documents in the only range that was asked: 40 entries and 12 documents were read, and 7 rows came of them."]);
    assert.deepEqual(words.scan, [
      "No index was used in all 2 ranges that were asked: 1,234 documents were read one after the other, and 1 row came of them.",
      "The rows are sorted: each page looks at all of these documents, so that larger pages read less in all.",
      "The index on /b is being built; until it is ready, queries do without.",
      "The composite index on (/a ASC, /b DESC) of the indexing policy would help; the server has yet to build it.",
      "An index on /d would help, if the indexing policy listed it."]);
    assert.deepEqual(words.mixed, [
      "No index was used in range 1: 1 document was read one after the other, and 1 row came of it.",
      "Nothing was read in range 2: no document can pass the filter.",
      "No index that the indexing policy allows would make this query faster."]);
    assert.deepEqual(words.other, ["This server does not tell how it found the rows.",
      "The server took 2.50 ms: 0.50 to understand the query, 0.00 in indexes, 1.00 with documents."]);
    assert.deepEqual(words.many, [
      'The indexes on /"a,b\\"" and (/c ASC, /"d,e" DESC) found the documents in range 7: 3 entries and 2 documents were read, and 1 row came of them.',
      "There was no room to tell of 998 more ranges."]);
    assert.deepEqual(words.nonsense, Array(2).fill("This server does not tell how it found the rows."));
  });
});
