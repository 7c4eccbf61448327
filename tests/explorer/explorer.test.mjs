// The web explorer in a real browser against the real server, as a person uses it. The endpoint comes
// from tests/harness/with_server.py; see README.md.

import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { describe } from "node:test";
import { editorText, fillEditor, gone, hash, open, overflow, press, shown, signIn, textOf } from "./browser.mjs";
import { ENDPOINT, EXPLORER, KEY, PHONE, browser, container, pages, rest, story, visit } from "./stories.mjs";

describe("signing in", () => {
  story("the right key opens the account, and a reload keeps it open", async () => {
    const { db } = await container();
    const page = await visit();
    await shown(page, ".tree", db);
    await page.reload();
    await shown(page, ".tree", db);
    assert.ok(!page.url().includes(encodeURIComponent(KEY)));
    assert.equal(await page.evaluate(() => JSON.stringify(localStorage)), "{}");
  });

  story("a wrong key is refused in words, with the activity id", async () => {
    const page = await open(browser, EXPLORER);
    pages.push(page);
    await page.type("#key", randomBytes(64).toString("base64"));
    await press(page, "#sign-in button", "Sign in");
    await shown(page, "#sign-in .error", "This key does not open the account.");
    assert.match(await textOf(page, "#sign-in .error .detail"), /Status 401 · activity [0-9a-f-]{36}/);
    assert.ok(await page.$("#workbench[hidden]"));
  });

  story("what is no key at all is not even sent", async () => {
    const page = await open(browser, EXPLORER);
    pages.push(page);
    await page.type("#key", "hello, world");
    await page.keyboard.press("Enter");
    await shown(page, "#sign-in .error", "not an account key");
  });

  story("on this machine the emulator's key is one click away, and a connection string will do", async () => {
    const page = await open(browser, EXPLORER);
    pages.push(page);
    await press(page, "#use-emulator-key");
    await shown(page, "#workbench");
    await page.click("#sign-out");
    await shown(page, "#sign-in");
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    await page.type("#key", `AccountEndpoint=${ENDPOINT};AccountKey=${KEY};`);
    await page.keyboard.press("Enter");
    await shown(page, "#workbench");
  });

  story("a key that is not to be kept is gone with a reload", async () => {
    const page = await open(browser, EXPLORER);
    pages.push(page);
    await page.click("#keep");
    await signIn(page, KEY);
    await page.reload();
    await shown(page, "#sign-in");
  });

  story("beyond this machine, over http, our own HMAC signs", async () => {
    const { db } = await container();
    const far = new URL(EXPLORER);
    far.hostname = "host.docker.internal";  // a name that the server takes and that no browser trusts
    const page = await open(browser, far.href);
    pages.push(page);
    assert.equal(await page.evaluate(() => Boolean(globalThis.crypto?.subtle)), false, "this should be no secure context");
    assert.equal(await page.$eval("#use-emulator-key", (button) => button.hidden), true);
    await signIn(page, KEY);
    await shown(page, ".tree", db);
  });

  story("both ways to sign agree with Node's, whatever the lengths", async () => {
    const page = await open(browser, EXPLORER);
    pages.push(page);
    const cases = [0, 1, 55, 56, 63, 64, 65, 119, 120, 200].map((size) =>
      ({ key: randomBytes(size % 90 + 1).toString("base64"), text: "ä".repeat(size) }));
    const signed = await page.evaluate(async (cases_) => {
      const { signer } = await import("./sign.js");
      return Promise.all(cases_.map(async ({ key, text }) => [await signer(key)(text), await signer(key, null)(text)]));
    }, cases);
    signed.forEach(([theirs, ours], at) => {
      const expected = createHmac("sha256", Buffer.from(cases[at].key, "base64")).update(cases[at].text).digest("base64");
      assert.equal(theirs, expected);
      assert.equal(ours, expected, `of ${cases[at].text.length} characters`);
    });
  });

  story("without a key only the files are there", async () => {
    for (const path of ["dbs", "_explorer/nothing.js"]) {
      assert.equal((await fetch(new URL(path, ENDPOINT))).status, 401, path);
    }
    const response = await fetch(EXPLORER);
    assert.match(response.headers.get("content-security-policy"), /default-src 'none'/);
    const bare = await fetch(EXPLORER.slice(0, -1), { redirect: "manual" });
    assert.equal(bare.status, 307);
    const certificate = await fetch(new URL("_explorer/emulator.pem", ENDPOINT));
    assert.match(await certificate.text(), /BEGIN CERTIFICATE/);
  });
});

describe("databases and containers", () => {
  story("are created, shown and deleted", async () => {
    const page = await visit();
    await press(page, "button", "New database");
    await page.type("dialog input[name=id]", "library");
    await page.keyboard.press("Enter");
    await shown(page, "h1", "library");
    await press(page, "button", "New container");
    await page.type("dialog input[name=id]", "books");
    await page.$eval("dialog input[name=paths]", (input) => { input.value = "/author, /year"; });
    await press(page, "dialog summary", "More");
    await page.type("dialog input[name=retention]", "60");
    await press(page, "dialog button", "Create");
    await shown(page, "h1", "books");
    const made = JSON.parse(await rest.send("GET", "dbs/library/colls/books"));
    assert.deepEqual(made.partitionKey, { paths: ["/author", "/year"], kind: "MultiHash", version: 2 });
    assert.equal(made.changeFeedPolicy.retentionDuration, 60);

    await press(page, ".tabs a", "Settings");
    await shown(page, ".facts", "/author, /year");
    await shown(page, ".facts", "400 RU/s");
    await press(page, "button", "Delete container");
    await page.type("dialog input[name=typed]", "book");
    await press(page, "dialog button", "Delete container");
    await shown(page, "dialog .error", "Type books exactly");
    await page.type("dialog input[name=typed]", "s");
    await page.keyboard.press("Enter");
    await shown(page, "h1", "library");
    await shown(page, "main", "No containers yet.");

    await press(page, "button", "Delete database");
    await page.type("dialog input[name=typed]", "library");
    await page.keyboard.press("Enter");
    await shown(page, "h1", "Account");
    await assert.rejects(rest.send("GET", "dbs/library"), { status: 404 });
  });

  story("a name that is taken is told in the server's words", async () => {
    const { db } = await container();
    const page = await visit();
    await press(page, "button", "New database");
    await page.type("dialog input[name=id]", db);
    await page.keyboard.press("Enter");
    await shown(page, "dialog .error", "already exists");
    assert.match(await textOf(page, "dialog .error .detail"), /Status 409 · activity/);
  });

  story("what is wrong with a new container is in sight, however small the window", async () => {
    const { db } = await container();
    for (const size of [{ width: 1280, height: 800 }, { width: 1000, height: 480 }, PHONE]) {
      const page = await visit(`#/${db}`, size);
      await press(page, "button", "New container");
      await page.type("dialog input[name=id]", "wrong");
      await page.$eval("dialog input[name=paths]", (input) => { input.value = "/a, /b, /c, /d"; });
      await press(page, "dialog summary", "More");
      await press(page, "dialog button", "Create");
      const box = await shown(page, "dialog .error", "Status 400");
      const { top, bottom, height } = await box.evaluate((element) => {
        const inside = element.getBoundingClientRect();
        const dialog = element.closest("dialog").getBoundingClientRect();
        return { top: Math.min(inside.top, inside.top - dialog.top), bottom: Math.max(inside.bottom, inside.bottom - dialog.bottom + innerHeight), height: innerHeight };
      });
      assert.ok(top >= 0 && bottom <= height, `from ${top} to ${bottom} of ${height}`);
      await shown(page, "dialog button", "Create");
    }
  });

  story("a partition key path is completed with its slash", async () => {
    const { db } = await container();
    const page = await visit(`#/${db}`);
    await press(page, "button", "New container");
    await page.type("dialog input[name=id]", "orders");
    await page.$eval("dialog input[name=paths]", (input) => { input.value = "customer, address/city , /year"; });
    await press(page, "dialog button", "Create");
    await shown(page, "h1", "orders");
    const made = JSON.parse(await rest.send("GET", `dbs/${db}/colls/orders`));
    assert.deepEqual(made.partitionKey.paths, ["/customer", "/address/city", "/year"]);
  });

  story("the key space is drawn as it is shared, with either version of the hash", async () => {
    for (const version of [1, 2]) {
      const partitionKey = { paths: ["/pk"], kind: "Hash", version };
      const { db, coll } = await container({ partitionKey }, { "x-ms-offer-throughput": "13000" });
      const page = await visit(`#/${db}/${coll}/ranges`);
      await shown(page, "main", "3 ranges");
      const shares = async () => {
        const widths = await page.$$eval(".keyspace span", (parts) => parts.map((part) => part.getBoundingClientRect().width));
        const all = widths.reduce((sum, width) => sum + width, 0);
        return widths.map((width) => Math.round(100 * width / all));
      };
      assert.deepEqual(await shares(), [33, 33, 33], `version ${version}`);
      await rest.split(db, coll, "1");
      await page.keyboard.press("r");
      await shown(page, "main", "4 ranges");
      assert.deepEqual(await shares(), [33, 17, 17, 33], `version ${version}`);
    }
  });

  story("ranges are listed and lead to their documents", async () => {
    const { db, coll } = await container({}, { "x-ms-offer-throughput": "11000" });
    const documents = Array.from({ length: 8 }, (_, i) => ({ id: `i${i}`, pk: `k${i}` }));
    for (const document of documents) await rest.upsert(db, coll, document);
    const page = await visit(`#/${db}/${coll}/ranges`);
    await shown(page, "main", "2 ranges");
    const seen = [];
    for (const range of ["0", "1"]) {
      await page.evaluate((to) => { location.hash = to; }, `#/${db}/${coll}/ranges`);
      await (await page.waitForSelector(`a[aria-label="Documents of range ${range}"]`)).click();
      await hash(page, `range=${range}`);
      await shown(page, ".document");
      seen.push(...await page.$$eval(".document b", (ids) => ids.map((id) => id.textContent)));
    }
    assert.deepEqual(seen.sort(), documents.map(({ id }) => id));
  });

  story("a place that is gone says so", async () => {
    const page = await visit("#/nowhere/nothing");
    await shown(page, ".error", "There is no container nothing in nowhere.");
  });
});

describe("documents", () => {
  story("come in pages", async () => {
    const { db, coll } = await container();
    for (let i = 0; i < 60; i++) await rest.upsert(db, coll, { id: `i${i}`, pk: "a" });
    const page = await visit(`#/${db}/${coll}`);
    await shown(page, ".paging", "Page 1");
    assert.equal((await page.$$(".document")).length, 50);
    await press(page, ".paging button", "Next");
    await shown(page, ".paging", "Page 2");
    assert.equal((await page.$$(".document")).length, 10);
    await press(page, ".paging button", "Previous");
    await shown(page, ".paging", "Page 1");
    assert.equal((await page.$$(".document")).length, 50);
  });

  story("are counted anew with every reading, of all ranges or of one", async () => {
    const { db, coll } = await container({}, { "x-ms-offer-throughput": "11000" });
    const page = await visit(`#/${db}/${coll}`);
    await shown(page, ".toolbar .count", "0 documents");
    for (const id of ["x", "y"]) await rest.upsert(db, coll, { id, pk: id });
    await press(page, ".toolbar button", "Refresh");
    await shown(page, ".document", "y");
    assert.equal(await textOf(page, ".toolbar .count"), "2 documents");
    for (let i = 0; i < 58; i++) await rest.upsert(db, coll, { id: `i${i}`, pk: `k${i}` });
    await press(page, ".toolbar button", "Refresh");
    await shown(page, ".paging", "Page 1");
    assert.equal(await textOf(page, ".toolbar .count"), "60 documents");
    let sum = 0;
    for (const range of ["0", "1"]) {
      const one = await visit(`#/${db}/${coll}?range=${range}`);
      await shown(one, ".document");
      sum += Number(/^\d+/.exec(await textOf(one, ".toolbar .count"))[0]);
    }
    assert.equal(sum, 60);
  });

  story("are created, changed and deleted", async () => {
    const { db, coll } = await container();
    const page = await visit(`#/${db}/${coll}`);
    await press(page, "button", "New document");
    await shown(page, ".editor", "New document");
    assert.match(await editorText(page), /"id": "[0-9a-f-]{36}",\n {2}"pk": ""/);
    await fillEditor(page, '{"id": "first", "pk": "a", "big": 12345678901234567890, "one": 1.0}');
    await press(page, ".editor button", "Create");
    await shown(page, ".document", "first");
    await hash(page, "id=first");
    const stored = await rest.read(db, coll, "first", "a");
    assert.match(stored, /"big":12345678901234567890,"one":1\.0/, "numbers are kept as they were written");

    await page.reload();
    await shown(page, ".editor h2", "first");
    const text = await editorText(page);
    assert.match(text, /"one": 1\.0\n/);
    assert.doesNotMatch(text, /_etag/);
    await fillEditor(page, text.replace("1.0", "2.50"));
    await page.keyboard.down("Control");
    await page.keyboard.press("s");
    await page.keyboard.up("Control");
    await shown(page, "#toasts", "saved");
    assert.match(await rest.read(db, coll, "first", "a"), /"big":12345678901234567890,"one":2\.50/);

    await (await page.waitForSelector('[aria-label="Delete the document"]')).click();
    await press(page, "dialog button", "Cancel");
    await gone(page, "dialog");
    await (await page.waitForSelector('[aria-label="Delete the document"]')).click();
    await press(page, "dialog button", "Delete document");
    await shown(page, "main", "No documents here yet.");
    await assert.rejects(rest.read(db, coll, "first", "a"), { status: 404 });
  });

  story("with odd ids and keys open all the same", async () => {
    const { db, coll } = await container();
    const odd = [["ä b/ü?#%20+&=", "ключ 😀"], ["dots..", null], ["seven", 7], ["half", 0.5], ["yes", true]];
    for (const [id, pk] of odd) await rest.upsert(db, coll, { id, pk });
    await rest.raw(db, coll, '{"id":"none"}', [{}]);
    const page = await visit(`#/${db}/${coll}`);
    for (const id of [...odd.map(([id_]) => id_), "none"]) {
      await press(page, ".document", id);
      await shown(page, ".editor h2", id);
      await page.keyboard.press("Escape");
      await gone(page, ".editor");
    }
  });

  story("that are not JSON are not sent, and it is told where they break", async () => {
    const { db, coll } = await container();
    const page = await visit(`#/${db}/${coll}?new=1`);
    await shown(page, ".editor");
    await fillEditor(page, '{\n  "id": "x",\n  "pk": tru\n}');
    await shown(page, ".verdict.wrong", "Line 3, column 9");
    assert.equal(await page.$eval(".editor .primary", (button) => button.disabled), true);
    await fillEditor(page, '{"id": "x", "pk": "a",}');
    await shown(page, ".verdict.wrong", "comma");
    await fillEditor(page, '{"pk": "a"}');
    await shown(page, ".verdict.wrong", "“id”");
    await fillEditor(page, "[1]");
    await shown(page, ".verdict.wrong", "object");
  });

  story("a mistake in the text is not covered by what was told before", async () => {
    for (const size of [{ width: 1280, height: 800 }, { width: 1000, height: 600 }, PHONE]) {
      const { db, coll } = await container();
      const page = await visit(`#/${db}/${coll}?new=1`, size);
      await shown(page, ".editor");
      await fillEditor(page, '{"id": "x", "pk": "a"}');
      await press(page, ".editor button", "Create");
      await shown(page, ".toast", "created");
      await fillEditor(page, '{"id": "x", "pk": }');
      await shown(page, ".verdict.wrong");
      const [toast, verdict] = await page.evaluate(() => [".toast", ".verdict"].map((selector) => {
        const { top, bottom, left, right } = document.querySelector(selector).getBoundingClientRect();
        return { top, bottom, left, right };
      }));
      const apart = toast.bottom <= verdict.top || toast.top >= verdict.bottom || toast.right <= verdict.left || toast.left >= verdict.right;
      assert.ok(apart, `${JSON.stringify(toast)} lies over ${JSON.stringify(verdict)}`);
      await fillEditor(page, '{"id": "x", "pk": "a"}'); // Nothing unsaved keeps the page open.
    }
  });

  story("changed by somebody else meanwhile are not overwritten", async () => {
    const { db, coll } = await container();
    await rest.upsert(db, coll, { id: "x", pk: "a", v: 1 });
    const page = await visit(`#/${db}/${coll}`);
    await press(page, ".document", "x");
    await shown(page, ".editor");
    await rest.upsert(db, coll, { id: "x", pk: "a", v: 2 });
    await fillEditor(page, '{"id": "x", "pk": "a", "mine": true}');
    await press(page, ".editor button", "Save");
    await shown(page, ".conflict", '"v": 2');
    assert.equal(JSON.parse(await rest.read(db, coll, "x", "a")).v, 2, "theirs stands");

    // A third change between seeing theirs and saving mine is not lost either.
    await press(page, ".conflict button", "Go on with mine");
    await rest.upsert(db, coll, { id: "x", pk: "a", v: 3 });
    await press(page, ".editor button", "Save");
    await shown(page, ".conflict", '"v": 3');
    await press(page, ".conflict button", "Go on with mine");
    await press(page, ".editor button", "Save");
    await shown(page, "#toasts", "saved");
    assert.equal(JSON.parse(await rest.read(db, coll, "x", "a")).mine, true);

    await rest.upsert(db, coll, { id: "x", pk: "a", v: 4 });
    await fillEditor(page, '{"id": "x", "pk": "a"}');
    await press(page, ".editor button", "Save");
    await shown(page, ".conflict", '"v": 4');
    await press(page, ".conflict button", "Take theirs");
    assert.match(await editorText(page), /"v": 4/);
  });

  story("deleted meanwhile can be kept as new", async () => {
    const { db, coll } = await container();
    await rest.upsert(db, coll, { id: "x", pk: "a" });
    const page = await visit(`#/${db}/${coll}`);
    await press(page, ".document", "x");
    await shown(page, ".editor");
    await rest.remove(db, coll, "x", "a");
    await fillEditor(page, '{"id": "x", "pk": "a", "again": true}');
    await press(page, ".editor button", "Save");
    await press(page, "button", "Keep my text as a new document");
    await press(page, ".editor button", "Create");
    await shown(page, "#toasts", "created");
    assert.equal(JSON.parse(await rest.read(db, coll, "x", "a")).again, true);
  });

  story("are not left unsaved without a word", async () => {
    const { db, coll } = await container();
    await rest.upsert(db, coll, { id: "x", pk: "a" });
    const page = await visit(`#/${db}/${coll}`);
    await press(page, ".document", "x");
    await shown(page, ".editor");
    await fillEditor(page, '{"id": "x", "pk": "a", "new": 1}');
    await press(page, ".tabs a", "Settings");
    await press(page, "dialog button", "Cancel");
    await gone(page, "dialog");
    assert.match(await editorText(page), /new/);
    await hash(page, "id=x");
    await press(page, ".tabs a", "Settings");
    await press(page, "dialog button", "Leave it");
    await shown(page, ".facts");
  });
});

describe("keyboard and screen", () => {
  story("everything is reached by keys alone", async () => {
    const { db, coll } = await container();
    await rest.upsert(db, coll, { id: "x", pk: "a" });
    const page = await open(browser, EXPLORER);
    pages.push(page);
    await shown(page, "#sign-in");
    await page.keyboard.type(KEY); // The field has the focus already.
    await page.keyboard.press("Enter");
    await shown(page, ".tree", db);
    await page.keyboard.press("?");
    await shown(page, "dialog", "Keyboard");
    await page.keyboard.press("Escape");
    await gone(page, "dialog");

    await page.keyboard.press("t");
    const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
    for (let steps = 0; (await focused()) !== db; steps++) {
      assert.ok(steps < 100, `the tree never came to ${db}`);
      await page.keyboard.press("ArrowDown");
    }
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction((label) => document.activeElement.getAttribute("aria-label") === label
      && document.activeElement.getAttribute("aria-expanded") === "true", {}, db);
    await page.keyboard.press("ArrowRight");
    assert.equal(await focused(), coll);
    await page.keyboard.press("Enter");
    await shown(page, ".document", "x");
    await page.keyboard.press("m");
    await page.keyboard.press("j");
    await page.waitForFunction(() => document.activeElement.matches(".document"));
    await page.keyboard.press("Enter");
    await shown(page, ".editor");
    await page.waitForFunction(() => document.activeElement.matches("textarea"));
    await page.keyboard.press("Tab"); // Not a trap.
    assert.notEqual(await page.evaluate(() => document.activeElement.tagName), "TEXTAREA");
    await page.keyboard.press("Escape");
    await gone(page, ".editor");
    await page.waitForFunction(() => document.activeElement.matches(".document"));
    await page.keyboard.press("3");
    await shown(page, ".changes-tab");
    await page.keyboard.press("5");
    await shown(page, ".facts");
  });

  story("nothing is wider than a phone", async () => {
    const { db, coll } = await container();
    const wide = "a-rather-long-id-without-any-break-".repeat(4);
    await rest.upsert(db, coll, { id: wide, pk: "a", text: "x".repeat(500) });
    for (const place of ["", `#/${db}`, `#/${db}/${coll}`, `#/${db}/${coll}?new=1`, `#/${db}/${coll}/changes?from=beginning`,
      `#/${db}/${coll}/ranges`, `#/${db}/${coll}/settings`]) {
      const page = await visit(place, PHONE);
      await shown(page, place.includes("changes") ? ".change" : place.includes("ranges") ? "table" : place.includes("settings") ? ".facts"
        : place.includes("new") ? ".editor" : place.split("/").length > 2 ? ".document" : ".cards");
      assert.ok((await overflow(page)) <= 0, `${place} is ${await overflow(page)} px too wide`);
      if (place === `#/${db}/${coll}`) {
        await (await page.$(".document")).click();
        await shown(page, ".editor h2", wide);
        assert.ok((await overflow(page)) <= 0, "the editor is too wide");
      }
    }
  });
});
