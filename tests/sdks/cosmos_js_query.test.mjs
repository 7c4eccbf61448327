// Queries as @azure/cosmos makes them: each class of query_classes.json on one and on five ranges, served whole where
// our header asks for that, and put together by the client from the plan; continuations, single ranges, and splits in between. The endpoint comes
// from with_server.py; see README.md.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { ENDPOINT, KEY, operate, ownDatabase } from "./orrery_requests.mjs";
import { CLASSES, assertRows, named, spec } from "./query_classes.js";

const PAGES_MAX = 1000;
/** The server merges the ranges. The client changes these headers: each query has its own. */
const whole = () => ({ initialHeaders: { "x-orrery-cross-partition-queries": "serve" } });
const RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";
// Bugs of the client itself when it merges the ranges' answers: MIN forgets what it had when a range has
// no values, and COUNTIF, which it announces, is not among its aggregates.
const WRONG_IN_CLIENT = ["MIN", "COUNTIF"];

/** The rows of an iterator, page after page. */
async function drain(iterator) {
  const rows = [];
  for (let pages = 0; iterator.hasMoreResults(); ++pages) {
    assert.ok(pages < PAGES_MAX, "the query does not end");
    const page = await iterator.fetchNext();
    rows.push(...(page.resources ?? []));
  }
  return rows;
}

const policy = { indexingPolicy: { compositeIndexes: CLASSES.compositeIndexes } };

describe("queries of @azure/cosmos", () => {
  const { newContainer } = ownDatabase("query");

  const fill = async (throughput) => {
    const container = await newContainer(throughput, policy);
    for (const document of CLASSES.documents) await container.items.create(document);
    return container;
  };

  for (const [size, throughput, ranges] of [
    ["one range", 400, 1],
    ["five ranges", 30_000, 5],
  ]) {
    describe(`on ${size}`, () => {
      let container;
      before(async () => {
        container = await fill(throughput);
        const found = await container.readPartitionKeyRanges().fetchAll();
        assert.equal(found.resources.length, ranges);
      });

      for (const each of CLASSES.queries) {
        it(`${each.name}: whole and in pages`, async () => {
          const found = await container.items.query(spec(each), whole()).fetchAll();
          assertRows(found.resources, each.rows, each.isOrdered);
          assert.ok(found.requestCharge > 0);
          for (const maxItemCount of [1, 3]) {
            const rows = await drain(container.items.query(spec(each), { maxItemCount, ...whole() }));
            assertRows(rows, each.rows, each.isOrdered, `pages of ${maxItemCount}`);
          }
        });

        if (ranges > 1 && WRONG_IN_CLIENT.includes(each.name)) continue;
        it(`${each.name}: by the plan`, async () => {
          const planned = { forceQueryPlan: true };
          // Without it the client is refused first, where the query is more than a filter.
          for (const options of [{}, planned, { ...planned, maxItemCount: 2, maxDegreeOfParallelism: -1 }]) {
            const iterator = container.items.query(spec(each), options);
            assertRows(await drain(iterator), each.rows, each.isOrdered);
          }
        });
      }

      it("a continuation goes on in another iterator", async () => {
        for (const name of ["everything", "ORDER BY one key", "OFFSET LIMIT", "JOIN"]) {
          const each = named(name);
          const rows = [];
          let continuationToken;
          for (let pages = 0; ; ++pages) {
            assert.ok(pages < PAGES_MAX, "the query does not end");
            const options = { maxItemCount: 2, continuationToken, ...whole() };
            const page = await container.items.query(spec(each), options).fetchNext();
            rows.push(...(page.resources ?? []));
            continuationToken = page.continuationToken;
            if (!continuationToken) break;
          }
          assertRows(rows, each.rows, each.isOrdered, name);
        }
      });

      it("in one partition key", async () => {
        const here = CLASSES.documents.filter((document) => document.pk === "Sol");
        const query = "SELECT VALUE c.id FROM c ORDER BY c.n DESC";
        const found = await container.items.query(query, { partitionKey: "Sol" }).fetchAll();
        assert.deepEqual(found.resources, here.map(({ id }) => id).reverse());
        const counted = container.items.query("SELECT VALUE COUNT(1) FROM c", { partitionKey: "Sol" });
        assert.deepEqual((await counted.fetchAll()).resources, [here.length]);
      });

      it("range by range they make up the whole", async () => {
        const found = await container.readPartitionKeyRanges().fetchAll();
        const rows = [];
        for (const { id } of found.resources) {
          const options = { initialHeaders: { [RANGE_ID]: id }, maxItemCount: 2 };
          rows.push(...(await drain(container.items.query("SELECT VALUE c.id FROM c", options))));
        }
        assertRows(rows, CLASSES.documents.map(({ id }) => id), false);
      });

      it("feed range by feed range they make up the whole", async () => {
        const rows = [];
        for (const { minInclusive, maxExclusive } of await container.getFeedRanges()) {
          const initialHeaders = {
            "x-ms-start-epk": minInclusive,
            "x-ms-end-epk": maxExclusive,
            "x-ms-read-key-type": "EffectivePartitionKeyRange",
          };
          const query = "SELECT VALUE c.id FROM c ORDER BY c.n";
          rows.push(...(await drain(container.items.query(query, { initialHeaders, maxItemCount: 3 }))));
        }
        assertRows(rows, CLASSES.documents.map(({ id }) => id), false);
      });

      it("metrics of the query and of its indexes can be read", async () => {
        const options = { populateQueryMetrics: true, populateIndexMetrics: true };
        const query = "SELECT * FROM c WHERE c.kind = 'gas'";
        const page = await container.items.query(query, options).fetchAll();
        assert.equal(page.resources.length, 2);
        const metrics = Object.values(page.queryMetrics);
        assert.equal(metrics.reduce((sum, each) => sum + each.outputDocumentCount, 0), 2);
        const { UtilizedIndexes, PotentialIndexes } = JSON.parse(page.indexMetrics);
        const known = [...UtilizedIndexes.SingleIndexes, ...PotentialIndexes.SingleIndexes];
        assert.deepEqual(known.map((each) => each.IndexSpec), ["/kind/?"]);
      });

      it("what is wrong is refused with what is wrong about it", async () => {
        const fails = (query, pattern) =>
          assert.rejects(container.items.query(query).fetchAll(), (error) => {
            assert.equal(error.code, 400, error.message);
            assert.match(error.message, pattern);
            return true;
          });
        await fails("SELECT * FROM", /SC1002/);
        await fails("SELECT * FROM c WHERE d.x = 1", /SC2001/);
        await fails("SELECT VALUE NOSUCH(1)", /SC2005/);
        await fails("SELECT * FROM c ORDER BY c.radius, c.n", /composite index/);
      });
    });
  }

  // Only where the server puts the answers together: the client keeps asking a range that has split, for ever.
  it("a query goes on while ranges split", async () => {
    for (const name of ["everything", "ORDER BY one key", "ORDER BY two keys", "JOIN", "DISTINCT"]) {
      const container = await fill(400);
      const each = named(name);
      const iterator = container.items.query(spec(each), { maxItemCount: 2 });
      const rows = [...((await iterator.fetchNext()).resources ?? [])];
      const children = await operate(container, "split", { range: "0" });
      rows.push(...((await iterator.fetchNext()).resources ?? []));
      await operate(container, "split", { range: children[0].id });
      rows.push(...(await drain(iterator)));
      assertRows(rows, each.rows, each.isOrdered, name);
    }
  });

  it("a plan is right again for whoever asks after a split", async () => {
    const container = await fill(400);
    for (const each of [named("ORDER BY one key"), named("GROUP BY")]) {
      const [{ id }] = (await container.readPartitionKeyRanges().fetchAll()).resources;
      await operate(container, "split", { range: id });
      const client = new CosmosClient({ endpoint: ENDPOINT, key: KEY });
      const again = client.database(container.database.id).container(container.id);
      const rows = await drain(again.items.query(spec(each), { forceQueryPlan: true }));
      assertRows(rows, each.rows, each.isOrdered, each.name);
      client.dispose();
    }
  });
});
