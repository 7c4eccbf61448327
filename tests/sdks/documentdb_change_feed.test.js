// The change feed as the founding article reads it, with documentdb 1.15.3, the client of its time. It speaks only
// TLS 1.0: the server needs --legacy-tls, and Node the options that README.md names.

"use strict";

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { after, before, describe, it } = require("node:test");
const { DocumentClient } = require("documentdb");

const ENDPOINT = required("ORRERY_ENDPOINT_HTTPS");
const KEY = required("ORRERY_KEY");
const RANGE = "x-ms-documentdb-partitionkeyrangeid";
const READS_MAX = 10_000;

function required(name) {
  if (!process.env[name]) throw new Error(`${name} is not set: run this through with_server.py`);
  return process.env[name];
}

const client = new DocumentClient(ENDPOINT, { masterKey: KEY });

const call = (method, ...values) =>
  new Promise((resolve, reject) => {
    client[method](...values, (error, result, headers) =>
      error
        ? reject(Object.assign(new Error(`${method}: ${error.body ?? error.message}`), error))
        : resolve([result, headers]),
    );
  });

const toArray = (iterator) =>
  new Promise((resolve, reject) => {
    iterator.toArray((error, results) =>
      error ? reject(Object.assign(new Error(error.body), error)) : resolve(results),
    );
  });

/** One request: what it returned, and the headers. */
const next = (iterator) =>
  new Promise((resolve, reject) => {
    iterator.executeNext((error, results, headers) =>
      error
        ? reject(Object.assign(new Error(error.body), error))
        : resolve([results ?? [], headers]),
    );
  });

const feedOptions = (etag, range, more = {}) => ({
  a_im: "Incremental feed",
  ...(etag ? { accessCondition: { type: "IfNoneMatch", condition: etag } } : {}),
  ...(range ? { initialHeaders: { [RANGE]: range } } : {}),
  ...more,
});

/** GetChanges of the article: every range from its checkpoint on, page after page of one document. */
async function getChanges(link, checkpoints) {
  const changes = [];
  const ranges = await toArray(client.readPartitionKeyRanges(link));
  for (const { id } of ranges) {
    for (let reads = 0; ; ++reads) {
      assert.ok(reads < READS_MAX, "the feed does not end");
      const options = feedOptions(checkpoints[id], id, { maxItemCount: 1 });
      const [page, headers] = await next(client.readDocuments(link, options));
      assert.match(headers.etag, /^"\d+"$/);
      assert.equal(headers["x-ms-continuation"], undefined);
      checkpoints[id] = headers.etag;
      if (page.length === 0) break;
      changes.push(...page);
    }
  }
  return changes;
}

describe("the article of 2017, with documentdb", () => {
  let database;

  before(async () => {
    [database] = await call("createDatabase", { id: `feed ${randomUUID()}` });
  });

  after(async () => {
    if (database) await call("deleteDatabase", database._self);
  });

  const newCollection = async (offerThroughput, definition) => {
    const body = { id: randomUUID(), ...definition };
    return (await call("createCollection", database._self, body, { offerThroughput }))[0];
  };

  for (const [size, throughput, ranges] of [
    ["one range", 400, 1],
    ["five ranges", 30_000, 5],
  ]) {
    it(`two calls of GetChanges on ${size}: everything, then the two new documents`, async () => {
      const key = { partitionKey: { paths: ["/deviceId"], kind: "Hash" } };
      const link = (await newCollection(throughput, key))._self;
      const create = async (deviceId, metricType, unit) => {
        const reading = { id: randomUUID(), deviceId, metricType, unit, metricValue: 1000 };
        return (await call("createDocument", link, reading))[0].id;
      };
      const old = [];
      for (let n = 0; n < 25; ++n) old.push(await create(`xsensr-${n}`, "Temperature", "Celsius"));

      const checkpoints = {};
      const first = await getChanges(link, checkpoints);
      assert.equal(Object.keys(checkpoints).length, ranges);
      assert.deepEqual(first.map(({ id }) => id).sort(), old.sort());

      const created = [
        await create("xsensr-201", "Temperature", "Celsius"),
        await create("xsensr-212", "Pressure", "psi"),
      ];
      const second = await getChanges(link, checkpoints);
      assert.deepEqual(second.map(({ id }) => id).sort(), created.sort());
      assert.deepEqual(await getChanges(link, checkpoints), []);
    });
  }

  it("pages to the end by itself and stops, since there is no continuation", async () => {
    const link = (await newCollection(400))._self;
    for (let n = 0; n < 5; ++n) await call("createDocument", link, { id: `${n}` });
    const all = await toArray(client.readDocuments(link, feedOptions()));
    assert.deepEqual(
      all.map(({ id }) => id),
      ["0", "1", "2", "3", "4"],
    );
    const iterator = client.readDocuments(link, feedOptions(undefined, undefined, { maxItemCount: 2 }));
    const page = await toArray(iterator);
    assert.equal(page.length, 2, "one page: the client is told of no continuation");
  });

  it("the feed of one key", async () => {
    const key = { partitionKey: { paths: ["/pk"], kind: "Hash" } };
    const link = (await newCollection(30_000, key))._self;
    for (let n = 0; n < 12; ++n) await call("createDocument", link, { id: `${n}`, pk: `${n % 3}` });
    const options = feedOptions(undefined, undefined, { partitionKey: "1" });
    const [found, headers] = await next(client.readDocuments(link, options));
    assert.deepEqual(
      found.map(({ id }) => id),
      ["1", "4", "7", "10"],
    );
    const rest = feedOptions(headers.etag, undefined, { partitionKey: "1" });
    assert.deepEqual(await toArray(client.readDocuments(link, rest)), []);
  });
});
