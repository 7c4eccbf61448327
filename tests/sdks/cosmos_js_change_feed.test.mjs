// The change feed as @azure/cosmos reads it: every start, every part of a container, both modes, on one and on
// several ranges, and through splits and merges. The endpoint comes from with_server.py; see README.md.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  ChangeFeedMode,
  ChangeFeedPolicy,
  ChangeFeedRetentionTimeSpan,
  ChangeFeedStartFrom,
  CosmosClient,
  PartitionKeyBuilder,
} from "@azure/cosmos";
import { ENDPOINT, KEY, operate, ownDatabase } from "./orrery_requests.mjs";

const NOT_MODIFIED = 304;
const READS_MAX = 2000;

/** Reads until the iterator says that there is nothing new. */
async function drain(iterator) {
  const found = { items: [], pages: 0, continuation: undefined };
  for (let reads = 0; ; ++reads) {
    assert.ok(reads < READS_MAX, "the feed does not end");
    const page = await iterator.readNext();
    found.continuation = page.continuationToken;
    if (page.statusCode === NOT_MODIFIED) return found;
    assert.equal(page.statusCode, 200);
    assert.equal(page.count, page.result.length);
    assert.ok(page.requestCharge > 0);
    if (page.count) ++found.pages;
    found.items.push(...page.result);
  }
}

const idsOf = (items) => items.map((item) => item.id);
const sorted = (names) => [...names].sort();

describe("the change feed of @azure/cosmos", () => {
  const { database, newContainer } = ownDatabase("feed");

  const fill = async (container, count, prefix = "", keys = 7) => {
    const names = Array.from({ length: count }, (_, n) => `${prefix}${n}`);
    for (const [n, id] of names.entries())
      await container.items.create({ id, pk: `key ${n % keys}`, n });
    return names;
  };

  const feed = (container, changeFeedStartFrom, options = {}) =>
    container.items.getChangeFeedIterator({ changeFeedStartFrom, ...options });

  for (const [size, throughput] of [
    ["one range", 400],
    ["five ranges", 30_000],
  ]) {
    describe(`on ${size}`, () => {
      it("from the beginning, of the entire container", async () => {
        const container = await newContainer(throughput);
        const names = await fill(container, 20);
        for (const maxItemCount of [undefined, 1, 3]) {
          const found = await drain(
            feed(container, ChangeFeedStartFrom.Beginning(), { maxItemCount }),
          );
          assert.deepEqual(sorted(idsOf(found.items)), sorted(names));
          assert.ok(found.items.every((item) => Number.isInteger(item._lsn)));
          if (maxItemCount === 1) assert.equal(found.pages, 20);
        }
      });

      it("the default page holds all of twenty", async () => {
        const container = await newContainer(400);
        await fill(container, 20);
        const page = await feed(container, ChangeFeedStartFrom.Beginning()).readNext();
        assert.equal(page.count, 20);
      });

      it("from now: only what comes later, and updates once", async () => {
        const container = await newContainer(throughput);
        await fill(container, 8, "old ");
        const iterator = feed(container, ChangeFeedStartFrom.Now());
        assert.deepEqual((await drain(iterator)).items, []);
        const names = await fill(container, 8, "new ");
        assert.deepEqual(sorted(idsOf((await drain(iterator)).items)), sorted(names));
        for (let n = 0; n < 3; ++n) await container.items.upsert({ id: "old 0", pk: "key 0", n });
        const { items } = await drain(iterator);
        assert.deepEqual(
          items.map(({ id, n }) => [id, n]),
          [["old 0", 2]],
        );
        assert.deepEqual((await drain(iterator)).items, []);
      });

      it("now is the default", async () => {
        const container = await newContainer(throughput);
        await fill(container, 3);
        const iterator = container.items.getChangeFeedIterator();
        assert.deepEqual((await drain(iterator)).items, []);
        await container.items.create({ id: "new", pk: "key 0" });
        assert.deepEqual(idsOf((await drain(iterator)).items), ["new"]);
      });

      it("from a time", async () => {
        const container = await newContainer(throughput);
        await fill(container, 6, "old ");
        const seconds = (await container.items.readAll().fetchAll()).resources.map(({ _ts }) => _ts);
        const start = new Date(Math.max(...seconds) * 1000);
        const scratch = await newContainer(400);
        for (let passed = false; !passed; ) {
          const { resource } = await scratch.items.upsert({ id: "clock", pk: "a" });
          passed = resource._ts * 1000 > start.getTime();
        }
        const names = await fill(container, 6, "new ");
        assert.deepEqual(
          sorted(idsOf((await drainTimed(feed(container, ChangeFeedStartFrom.Time(start)))).items)),
          sorted(names),
        );
        const before = new Date(Math.min(...seconds) * 1000 - 5000);
        const all = await drainTimed(feed(container, ChangeFeedStartFrom.Time(before)));
        assert.equal(all.items.length, 12);
        const future = feed(container, ChangeFeedStartFrom.Time(new Date(Date.now() + 100_000)));
        assert.deepEqual((await drain(future)).items, []);
      });

      it("from a continuation, by another client", async () => {
        const container = await newContainer(throughput);
        await fill(container, 12);
        const iterator = feed(container, ChangeFeedStartFrom.Beginning(), { maxItemCount: 2 });
        const first = await iterator.readNext();
        assert.equal(first.statusCode, 200);
        const other = new CosmosClient({ endpoint: ENDPOINT, key: KEY });
        const same = other.database(database().id).container(container.id);
        const rest = await drain(
          feed(same, ChangeFeedStartFrom.Continuation(first.continuationToken)),
        );
        assert.equal(first.count + rest.items.length, 12);
        assert.equal(new Set(idsOf([...first.result, ...rest.items])).size, 12);
        await container.items.create({ id: "later", pk: "key 3" });
        const later = await drain(
          feed(same, ChangeFeedStartFrom.Continuation(rest.continuation)),
        );
        assert.deepEqual(idsOf(later.items), ["later"]);
        other.dispose();
      });

      it("of one partition key, in the order of modification", async () => {
        const container = await newContainer(throughput);
        await fill(container, 21);
        await container.items.upsert({ id: "3", pk: "key 3", n: "again" });
        const iterator = feed(container, ChangeFeedStartFrom.Beginning("key 3"), {
          maxItemCount: 1,
        });
        const found = await drain(iterator);
        assert.deepEqual(idsOf(found.items), ["10", "17", "3"]);
        await container.items.create({ id: "x", pk: "key 4" });
        assert.deepEqual((await drain(iterator)).items, []);
        await container.items.create({ id: "y", pk: "key 3" });
        const resumed = feed(container, ChangeFeedStartFrom.Continuation(found.continuation));
        assert.deepEqual(idsOf((await drain(resumed)).items), ["y"]);
      });

      it("of feed ranges, which are disjoint and together all", async () => {
        const container = await newContainer(throughput);
        const names = await fill(container, 40, "", 40);
        const ranges = await container.getFeedRanges();
        assert.equal(ranges.length, throughput === 400 ? 1 : 5);
        const parts = [];
        for (const range of ranges)
          parts.push((await drain(feed(container, ChangeFeedStartFrom.Beginning(range)))).items);
        assert.ok(parts.every((part) => part.length > 0));
        assert.deepEqual(sorted(idsOf(parts.flat())), sorted(names));
      });

      it("all versions and deletes", async () => {
        const container = await newContainer(throughput, {
          changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(5)),
        });
        const changeFeedMode = ChangeFeedMode.AllVersionsAndDeletes;
        const iterator = feed(container, ChangeFeedStartFrom.Now(), { changeFeedMode });
        assert.deepEqual((await drain(iterator)).items, []);
        for (const pk of ["a", "b"]) {
          await container.items.create({ id: "1", pk, n: 1 });
          await container.items.upsert({ id: "1", pk, n: 2 });
          await container.item("1", pk).delete();
        }
        const { items } = await drain(iterator);
        for (const pk of ["a", "b"]) {
          const mine = items.filter(
            ({ current, metadata }) => (current.pk ?? metadata.partitionKey.pk) === pk,
          );
          assert.deepEqual(
            mine.map(({ metadata }) => metadata.operationType),
            ["create", "replace", "delete"],
          );
          const [created, replaced, deleted] = mine;
          assert.equal(created.current.n, 1);
          assert.equal(replaced.metadata.previousImageLSN, created.metadata.lsn);
          assert.deepEqual(deleted.current, {});
          assert.equal(deleted.metadata.id, "1");
        }
        assert.equal(items.length, 6);
        await assert.rejects(
          drain(feed(container, ChangeFeedStartFrom.Beginning(), { changeFeedMode })),
        );
      });

      it("survives splits and merges with the tokens it has", async () => {
        const container = await newContainer(throughput);
        await fill(container, 30, "old ", 30);
        const iterator = feed(container, ChangeFeedStartFrom.Beginning(), { maxItemCount: 4 });
        const seen = [];
        for (let n = 0; n < 3; ++n) seen.push(...(await iterator.readNext()).result);
        const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources;
        await operate(container, "split", { range: ranges[0].id });
        await fill(container, 10, "new ", 10);
        seen.push(...(await drain(iterator)).items);
        assert.deepEqual(
          sorted(idsOf(seen)),
          sorted((await container.items.readAll().fetchAll()).resources.map(({ id }) => id)),
        );
        const { continuation } = await drain(iterator);
        const after = (await container.readPartitionKeyRanges().fetchAll()).resources.sort((a, b) =>
          a.minInclusive < b.minInclusive ? -1 : 1,
        );
        await operate(container, "merge", { ranges: [after[0].id, after[1].id] });
        const late = await fill(container, 10, "late ", 10);
        const fresh = new CosmosClient({ endpoint: ENDPOINT, key: KEY });
        const same = fresh.database(database().id).container(container.id);
        const resumed = feed(same, ChangeFeedStartFrom.Continuation(continuation));
        assert.deepEqual(sorted(idsOf((await drain(resumed)).items)), sorted(late));
        fresh.dispose();
      });
    });
  }

  it("of a prefix of a hierarchical key", async () => {
    const container = await newContainer(400, {
      partitionKey: { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 },
    });
    for (const tenant of ["t1", "t2"])
      for (const user of ["u1", "u2", "u3"])
        await container.items.create({ id: `${tenant} ${user}`, tenant, user });
    const prefix = new PartitionKeyBuilder().addValue("t1").build();
    const found = await drain(feed(container, ChangeFeedStartFrom.Beginning(prefix)));
    assert.deepEqual(idsOf(found.items), ["t1 u1", "t1 u2", "t1 u3"]);
    const whole = new PartitionKeyBuilder().addValue("t2").addValue("u2").build();
    assert.deepEqual(idsOf((await drain(feed(container, ChangeFeedStartFrom.Beginning(whole)))).items), [
      "t2 u2",
    ]);
  });

  it("all versions are refused where the container keeps none", async () => {
    const container = await newContainer(400);
    const iterator = feed(container, ChangeFeedStartFrom.Now(), {
      changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes,
    });
    await assert.rejects(iterator.readNext(), (error) => error.code === 400);
  });

  it("a token of another container is refused by the client", async () => {
    const [one, other] = [await newContainer(400), await newContainer(400)];
    await fill(one, 2);
    const { continuation } = await drain(feed(one, ChangeFeedStartFrom.Beginning()));
    await assert.rejects(
      feed(other, ChangeFeedStartFrom.Continuation(continuation)).readNext(),
      /not for the current container/,
    );
  });

  it("the older interface, readChangeFeed, reads a key to its 304", async () => {
    const container = await newContainer(30_000);
    await fill(container, 14);
    const iterator = container.items.readChangeFeed("key 2", {
      startFromBeginning: true,
      maxItemCount: 1,
    });
    const seen = [];
    while (iterator.hasMoreResults) seen.push(...(await iterator.fetchNext()).result);
    assert.deepEqual(idsOf(seen), ["2", "9"]);
  });
});

/** After a start by time the first page of a range is empty; it is not the end. */
async function drainTimed(iterator) {
  const found = await drain(iterator);
  const rest = await drain(iterator);
  found.items.push(...rest.items);
  return found;
}
