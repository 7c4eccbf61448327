// Queries as documentdb 1.15.3 makes them: each class of query_classes.json on one and on five ranges. It speaks only
// TLS 1.0: the server needs --legacy-tls, and Node the options that README.md names.

"use strict";

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { after, before, describe, it } = require("node:test");
const { DocumentClient } = require("documentdb");
const { CLASSES, assertRows, named, spec } = require("./query_classes.js");

const ENDPOINT = required("ORRERY_ENDPOINT_HTTPS");
const KEY = required("ORRERY_KEY");
const PAGES_MAX = 1000;
const RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";

function required(name) {
  if (!process.env[name]) throw new Error(`${name} is not set: run this through with_server.py`);
  return process.env[name];
}

const client = new DocumentClient(ENDPOINT, { masterKey: KEY });

/** Calls a method that takes a callback; a promise of what it gives. */
const call = (object, method, ...values) =>
  new Promise((resolve, reject) => {
    object[method](...values, (error, result, headers) =>
      error
        ? reject(Object.assign(new Error(`${method}: ${error.body ?? error.message}`), error))
        : resolve([result, headers]),
    );
  });

describe("queries of documentdb", () => {
  let database;

  before(async () => {
    [database] = await call(client, "createDatabase", { id: `query ${randomUUID()}` });
  });

  after(() => call(client, "deleteDatabase", database._self));

  async function fill(throughput) {
    const definition = {
      id: randomUUID(),
      partitionKey: { paths: ["/pk"], kind: "Hash" },
      indexingPolicy: { compositeIndexes: CLASSES.compositeIndexes },
    };
    const options = { offerThroughput: throughput };
    const [made] = await call(client, "createCollection", database._self, definition, options);
    for (const document of CLASSES.documents)
      await call(client, "createDocument", made._self, document);
    return made._self;
  }

  /** All rows, one executeNext after the other. */
  async function pagesOf(iterator) {
    const rows = [];
    for (let pages = 0; ; ++pages) {
      assert.ok(pages < PAGES_MAX, "the query does not end");
      const [page] = await call(iterator, "executeNext");
      if (page === undefined) return rows;
      rows.push(...page);
    }
  }

  const ask = (link, each, options = {}) =>
    client.queryDocuments(link, spec(each), { enableCrossPartitionQuery: true, ...options });

  for (const [size, throughput] of [
    ["one range", 400],
    ["five ranges", 30_000],
  ]) {
    describe(`on ${size}`, () => {
      let link;
      before(async () => {
        link = await fill(throughput);
      });

      for (const each of CLASSES.queries) {
        it(each.name, async () => {
          const [whole] = await call(ask(link, each), "toArray");
          assertRows(whole, each.rows, each.isOrdered);
          for (const options of [{ maxItemCount: 1 }, { maxItemCount: 3, maxDegreeOfParallelism: -1 }])
            assertRows(await pagesOf(ask(link, each, options)), each.rows, each.isOrdered);
        });
      }

      it("a continuation goes on in another iterator", async () => {
        for (const name of ["everything", "ORDER BY one key", "JOIN"]) {
          const each = named(name);
          const rows = [];
          for (let continuation, pages = 0; ; ++pages) {
            assert.ok(pages < PAGES_MAX, "the query does not end");
            const options = { maxItemCount: 2, continuation };
            const [page, headers] = await call(ask(link, each, options), "executeNext");
            rows.push(...(page ?? []));
            continuation = headers["x-ms-continuation"];
            if (!continuation) break;
          }
          assertRows(rows, each.rows, each.isOrdered, name);
        }
      });

      it("in one partition key, and range by range", async () => {
        const here = CLASSES.documents.filter((document) => document.pk === "Sol");
        const query = { query: "SELECT VALUE c.id FROM c ORDER BY c.n DESC" };
        const [found] = await call(client.queryDocuments(link, query, { partitionKey: "Sol" }), "toArray");
        assert.deepEqual(found, here.map(({ id }) => id).reverse());
        const [ranges] = await call(client.readPartitionKeyRanges(link), "toArray");
        const rows = [];
        for (const { id } of ranges) {
          const options = { initialHeaders: { [RANGE_ID]: id } };
          const iterator = client.queryDocuments(link, "SELECT VALUE c.id FROM c", options);
          rows.push(...(await call(iterator, "toArray"))[0]);
        }
        assertRows(rows, CLASSES.documents.map(({ id }) => id), false);
      });

      it("over several partitions only if that is asked for", async () => {
        const iterator = client.queryDocuments(link, "SELECT * FROM c WHERE c.n > 3");
        await assert.rejects(call(iterator, "toArray"), (error) => {
          assert.equal(error.code, 400);
          assert.match(error.body, /Cross partition query is required but disabled/);
          return true;
        });
      });
    });
  }
});
