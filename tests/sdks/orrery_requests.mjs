// Shared by the tests of @azure/cosmos: the server that with_server.py has started, and requests of Orrery's own.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Rest } from "../harness/rest.mjs";

/** A variable of the environment that has to be there. */
export function required(name) {
  if (!process.env[name]) throw new Error(`${name} is not set: ctest sets it, see README.md`);
  return process.env[name];
}

export const KEY = required("ORRERY_KEY");
export const ENDPOINT = required("ORRERY_ENDPOINT_HTTP");

/** Splits or merges ranges, which no client has a method for. */
export async function operate(container, operation, body) {
  const link = `dbs/${container.database.id}/colls/${container.id}`;
  const response = await new Rest(ENDPOINT, KEY).request("POST", `${link}/operations/${operation}`, {
    body, headers: { "content-type": "application/json" },
  });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()).PartitionKeyRanges;
}

/** A database for the tests of a `describe`: `database()` is there in tests, newContainer makes one with the key /pk. */
export function ownDatabase(prefix) {
  let client;
  let database;

  before(async () => {
    client = new CosmosClient({ endpoint: ENDPOINT, key: KEY });
    ({ database } = await client.databases.create({ id: `${prefix}-${randomUUID()}` }));
  });

  after(async () => {
    await database?.delete();
    client?.dispose();
  });

  const newContainer = async (throughput, definition = {}) => {
    const { container } = await database.containers.create(
      { id: randomUUID(), partitionKey: { paths: ["/pk"], version: 2 }, ...definition },
      { offerThroughput: throughput },
    );
    return container;
  };

  return { database: () => database, newContainer };
}
