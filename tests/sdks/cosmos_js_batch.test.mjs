// Batch, bulk and patch of @azure/cosmos, unmodified, against a running Orrery.
// The endpoint comes from with_server.py; see README.md.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import { CosmosClient } from "@azure/cosmos";

function required(name) {
  if (!process.env[name]) throw new Error(`${name} is not set: run this through with_server.py`);
  return process.env[name];
}

const failsWith = (code) => (error) => {
  assert.equal(error.code, code, `${error.code}: ${error.message}`);
  return true;
};
const statusesOf = (results) => results.map((result) => result.statusCode);

describe("@azure/cosmos", () => {
  let client;
  let database;
  let container;

  before(async () => {
    client = new CosmosClient({
      endpoint: required("ORRERY_ENDPOINT_HTTP"),
      key: required("ORRERY_KEY"),
      consistencyLevel: "Session",
    });
    ({ database } = await client.databases.create({ id: `js-batch-${randomUUID()}` }));
  });
  after(async () => {
    await database?.delete();
    client?.dispose();
  });
  beforeEach(async () => {
    ({ container } = await database.containers.create({
      id: randomUUID(),
      partitionKey: { paths: ["/pk"], version: 2 },
    }));
  });

  describe("items.batch", () => {
    it("does all kinds of operations at once", async () => {
      await container.items.create({ id: "old", pk: "a", n: 1 });
      const response = await container.items.batch(
        [
          { operationType: "Create", resourceBody: { id: "new", pk: "a" } },
          { operationType: "Upsert", resourceBody: { id: "up", pk: "a" } },
          { operationType: "Read", id: "old" },
          { operationType: "Replace", id: "old", resourceBody: { id: "old", pk: "a", n: 5 } },
          {
            operationType: "Patch",
            id: "old",
            resourceBody: { operations: [{ op: "incr", path: "/n", value: 2 }], condition: "from c where c.n = 5" },
          },
          { operationType: "Delete", id: "up" },
        ],
        "a",
      );
      assert.equal(response.code, 200);
      assert.deepEqual(statusesOf(response.result), [201, 201, 200, 200, 200, 204]);
      assert.equal(response.result[2].resourceBody.n, 1);
      assert.equal(response.result[4].resourceBody.n, 7);
      assert.equal((await container.item("old", "a").read()).resource.n, 7);
      assert.equal((await container.item("up", "a").read()).statusCode, 404);
      const charges = response.result.reduce((sum, result) => sum + result.requestCharge, 0);
      assert.ok(Math.abs(charges - Number(response.headers["x-ms-request-charge"])) < 0.1);
    });

    it("does nothing when one fails, and says which", async () => {
      await container.items.create({ id: "taken", pk: "a" });
      const response = await container.items.batch(
        [
          { operationType: "Create", resourceBody: { id: "first", pk: "a" } },
          { operationType: "Create", resourceBody: { id: "taken", pk: "a" } },
          { operationType: "Create", resourceBody: { id: "last", pk: "a" } },
        ],
        "a",
      );
      assert.equal(response.code, 207);
      assert.deepEqual(statusesOf(response.result), [424, 409, 424]);
      assert.equal((await container.item("first", "a").read()).statusCode, 404);
    });

    it("refuses what cannot be a batch", async () => {
      await assert.rejects(container.items.batch([], "a"), /Batch request has no operations/);
    });
  });

  describe("items.bulk", () => {
    it("does operations of many keys in several ranges, each for itself", async () => {
      const { container: wide } = await database.containers.create(
        { id: randomUUID(), partitionKey: { paths: ["/pk"], version: 2 } },
        { offerThroughput: 15_000 },
      );
      const documents = Array.from({ length: 90 }, (_, n) => ({ id: `${n}`, pk: `key-${n % 30}`, n }));
      const created = await wide.items.bulk(
        documents.map((resourceBody) => ({ operationType: "Create", resourceBody })),
      );
      assert.deepEqual(new Set(statusesOf(created)), new Set([201]));
      const mixed = await wide.items.bulk([
        { operationType: "Create", resourceBody: documents[0] },
        { operationType: "Read", id: "1", partitionKey: "key-1" },
        { operationType: "Delete", id: "2", partitionKey: "key-2" },
        { operationType: "Patch", id: "3", partitionKey: "key-3", resourceBody: { operations: [{ op: "incr", path: "/n", value: 100 }] } },
        { operationType: "Upsert", resourceBody: { id: "4", pk: "key-4", n: -4 } },
        { operationType: "Replace", id: "nowhere", partitionKey: "key-5", resourceBody: { id: "nowhere", pk: "key-5" } },
      ]);
      assert.deepEqual(statusesOf(mixed), [409, 200, 204, 200, 200, 404]);
      assert.equal(mixed[1].resourceBody.n, 1);
      assert.equal(mixed[3].resourceBody.n, 103);
    });

    it("stops at the first failure when asked to", async () => {
      const create = (id) => ({ operationType: "Create", resourceBody: { id, pk: "a" } });
      const response = await container.items.bulk([create("x"), create("x"), create("y")], { continueOnError: false });
      assert.deepEqual(statusesOf(response), [201, 409, 424]);
    });
  });

  describe("item.patch", () => {
    beforeEach(() => container.items.create({ id: "x", pk: "a", n: 1, tags: ["t"], old: true }));

    it("takes a list of operations", async () => {
      const response = await container.item("x", "a").patch([
        { op: "add", path: "/tags/-", value: "u" },
        { op: "incr", path: "/n", value: 1.5 },
        { op: "remove", path: "/old" },
        { op: "set", path: "/deep", value: { a: null } },
        { op: "replace", path: "/tags/0", value: "s" },
      ]);
      assert.equal(response.statusCode, 200);
      const { id, n, tags, deep, old } = response.resource;
      assert.deepEqual({ id, n, tags, deep, old }, { id: "x", n: 2.5, tags: ["s", "u"], deep: { a: null }, old: undefined });
      assert.deepEqual((await container.item("x", "a").read()).resource, response.resource);
    });

    it("takes a condition", async () => {
      const operations = [{ op: "incr", path: "/n", value: 1 }];
      const { resource } = await container.item("x", "a").patch({ operations, condition: "from c where c.n = 1" });
      assert.equal(resource.n, 2);
      await assert.rejects(container.item("x", "a").patch({ operations, condition: "from c where c.n = 1" }), failsWith(412));
    });

    it("fails as the service does", async () => {
      const set = [{ op: "set", path: "/n", value: 1 }];
      const stale = { accessCondition: { type: "IfMatch", condition: '"stale"' } };
      await assert.rejects(container.item("nowhere", "a").patch(set), failsWith(404));
      await assert.rejects(container.item("x", "a").patch(set, stale), failsWith(412));
      await assert.rejects(container.item("x", "a").patch([{ op: "set", path: "/id", value: "y" }]), failsWith(400));
      await assert.rejects(container.item("x", "a").patch([{ op: "remove", path: "/nothing" }]), failsWith(400));
    });
  });
});
