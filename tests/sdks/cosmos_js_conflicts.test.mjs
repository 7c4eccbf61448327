// The conflict feed as @azure/cosmos asks for it: an account of one region has none, and the client finds that out without an error.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { ownDatabase } from "./orrery_requests.mjs";

describe("@azure/cosmos looks for conflicts", () => {
  const { newContainer } = ownDatabase("conflicts");
  const containers = [];

  before(async () => {
    for (const throughput of [400, 30_000]) containers.push(await newContainer(throughput));
    for (const container of containers) await container.items.create({ id: "x", pk: "a" });
  });

  it("and lists none", async () => {
    for (const container of containers) {
      assert.deepEqual((await container.conflicts.readAll().fetchAll()).resources, []);
    }
  });

  it("and finds none by a query", async () => {
    for (const container of containers) {
      for (const query of ["SELECT * FROM c", { query: "SELECT * FROM root r WHERE r.resourceId = @id", parameters: [{ name: "@id", value: "x" }] }]) {
        assert.deepEqual((await container.conflicts.query(query).fetchAll()).resources, []);
        assert.deepEqual((await container.conflicts.query(query, { partitionKey: "a" }).fetchAll()).resources, []);
      }
    }
  });

  it("and hears 404 of one that is missing", async () => {
    for (const container of containers) {
      await assert.rejects(container.conflict("none", "a").read(), (error) => error.code === 404);
      await assert.rejects(container.conflict("none", "a").delete(), (error) => error.code === 404);
    }
  });
});
