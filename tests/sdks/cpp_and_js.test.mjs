// One container, two languages: the C++ client writes and @azure/cosmos reads the change feed, and the reverse. Both
// must see the same changes in the same order, through splits and merges. Leases, too, are read here that a C++ host
// has written, and the reverse. FEED_PROBE is the C++ side, feed_probe.cc; the endpoint comes from with_server.py; see
// README.md.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { before, describe, it } from "node:test";
import { promisify } from "node:util";
import {
  ChangeFeedMode,
  ChangeFeedPolicy,
  ChangeFeedRetentionTimeSpan,
  ChangeFeedStartFrom,
} from "@azure/cosmos";
import { ENDPOINT, operate, ownDatabase, required } from "./orrery_requests.mjs";

const PROBE = required("FEED_PROBE");
const NOT_MODIFIED = 304;
const READS_MAX = 2000;
const OUTPUT_BYTES_MAX = 1 << 26;

const probe = async (...words) =>
  (await promisify(execFile)(PROBE, words.map(String), { maxBuffer: OUTPUT_BYTES_MAX })).stdout;

/** Reads until the iterator says that there is nothing new. */
async function drain(iterator) {
  const items = [];
  for (let reads = 0; ; ++reads) {
    assert.ok(reads < READS_MAX, "the feed does not end");
    const page = await iterator.readNext();
    if (page.statusCode === NOT_MODIFIED) return items;
    items.push(...page.result);
  }
}

const idsOf = (items) => items.map((item) => item.id);
const sorted = (names) => [...names].sort();

/** By key, in the order in which they came: across keys there is none. */
function byKey(items) {
  const keys = {};
  for (const { pk, ...item } of items) (keys[pk] ??= []).push(item);
  return keys;
}

describe("C++ and @azure/cosmos on one change feed", () => {
  const { database, newContainer } = ownDatabase("both");

  const cppWrites = (container, prefix, count) =>
    probe("write", database().id, container.id, prefix, count);

  const jsWrites = async (container, prefix, count) => {
    for (let n = 0; n < count; ++n)
      await container.items.upsert({ id: `${prefix}${n}`, pk: `key ${n % 7}`, n });
  };

  const cppReads = async (container, ...words) => {
    const lines = (await probe("read", database().id, container.id, ...words)).trimEnd().split("\n");
    const continuation = lines.pop();
    assert.ok(continuation.startsWith("continuation "));
    return {
      items: lines.map((line) => JSON.parse(line)),
      continuation: continuation.slice("continuation ".length),
    };
  };

  const jsReads = (container, start = ChangeFeedStartFrom.Beginning(), options = {}) =>
    container.items.getChangeFeedIterator({ changeFeedStartFrom: start, ...options });

  const names = (prefix, count) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

  for (const [size, throughput] of [
    ["one range", 400],
    ["five ranges", 30_000],
  ]) {
    describe(`on ${size}`, () => {
      it("C++ writes, JavaScript reads", async () => {
        const container = await newContainer(throughput);
        const now = jsReads(container, ChangeFeedStartFrom.Now());
        assert.deepEqual(await drain(now), []);
        await cppWrites(container, "c", 30);
        assert.deepEqual(sorted(idsOf(await drain(jsReads(container)))), sorted(names("c", 30)));
        assert.deepEqual(sorted(idsOf(await drain(now))), sorted(names("c", 30)));
        await cppWrites(container, "c", 3);
        assert.deepEqual(sorted(idsOf(await drain(now))), sorted(names("c", 3)));
      });

      it("JavaScript writes, C++ reads, from where it was", async () => {
        const container = await newContainer(throughput);
        await jsWrites(container, "j", 30);
        const all = await cppReads(container, "size", 4);
        assert.deepEqual(sorted(idsOf(all.items)), sorted(names("j", 30)));
        await jsWrites(container, "more", 5);
        const more = await cppReads(container, "from", all.continuation);
        assert.deepEqual(sorted(idsOf(more.items)), sorted(names("more", 5)));
        const none = await cppReads(container, "from", more.continuation);
        assert.deepEqual(none.items, []);
        const one = await cppReads(container, "key", "key 3", "from", "beginning");
        assert.deepEqual(idsOf(one.items), ["j3", "j10", "j17", "j24", "more3"]);
      });

      it("both see the same, in the order of each key", async () => {
        const container = await newContainer(throughput);
        await cppWrites(container, "c", 20);
        await jsWrites(container, "j", 20);
        await cppWrites(container, "c", 4);
        await jsWrites(container, "j", 9);
        const { items } = await cppReads(container, "size", 3);
        assert.deepEqual(
          byKey(items),
          byKey(await drain(jsReads(container, undefined, { maxItemCount: 3 }))),
        );
        assert.equal(items.length, 40);
      });

      it("all versions and deletes, written by both", async () => {
        const container = await newContainer(throughput, {
          changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(5)),
        });
        const changeFeedMode = ChangeFeedMode.AllVersionsAndDeletes;
        const js = jsReads(container, ChangeFeedStartFrom.Now(), { changeFeedMode });
        assert.deepEqual(await drain(js), []);
        const { continuation } = await cppReads(container, "all", "from", "now");
        await cppWrites(container, "x", 8);
        await jsWrites(container, "x", 8);
        await probe("delete", database().id, container.id, "x1", "key 1");
        await container.item("x2", "key 2").delete();
        const flat = (items) =>
          byKey(
            items.map(({ current, metadata }) => ({
              pk: current.pk ?? metadata.partitionKey.pk,
              id: current.id ?? metadata.id,
              n: current.n,
              operation: metadata.operationType,
              lsn: metadata.lsn,
            })),
          );
        const cpp = flat((await cppReads(container, "from", continuation)).items);
        assert.deepEqual(cpp, flat(await drain(js)));
        assert.deepEqual(
          cpp["key 1"].map(({ operation }) => operation),
          ["create", "replace", "delete"],
        );
      });
    });
  }

  describe("leases", () => {
    const PREFIX = "shared.";
    let leases;

    before(async () => {
      ({ container: leases } = await database().containers.create({
        id: "leases",
        partitionKey: { paths: ["/id"], version: 2 },
        defaultTtl: -1,
      }));
    });

    const cppProcesses = async (container) => {
      const lines = await probe("process", database().id, container.id, leases.id, PREFIX);
      return lines.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    };

    /** The prefix of the ids of a container's leases, as .NET makes them. */
    const groupOf = async (container) => {
      const [{ resource: inDatabase }, { resource: itself }] = await Promise.all([
        database().read(),
        container.read(),
      ]);
      return `${PREFIX}${new URL(ENDPOINT).hostname}_${inDatabase._rid}_${itself._rid}`;
    };

    it("C++ makes them, JavaScript reads them", async () => {
      const container = await newContainer(30_000);
      await jsWrites(container, "j", 30);
      assert.deepEqual(sorted(idsOf(await cppProcesses(container))), sorted(names("j", 30)));
      const group = await groupOf(container);
      const { resources } = await leases.items.readAll().fetchAll();
      const ours = resources.filter(({ id }) => id.startsWith(`${group}.`));
      const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
      assert.deepEqual(
        sorted(idsOf(ours)),
        sorted([`${group}.info`, ...ranges.map(({ id }) => `${group}..${id}`)]),
      );
      for (const lease of ours.filter(({ id }) => id !== `${group}.info`)) {
        const range = ranges.find(({ id }) => id === lease.LeaseToken);
        assert.equal(lease.Owner, null);
        assert.match(lease.ContinuationToken, /^"\d+"$/);
        assert.deepEqual(lease.FeedRange.Range, { min: range.minInclusive, max: range.maxExclusive });
        assert.equal(lease.version, 0);
        assert.equal(lease.Mode, "Incremental Feed");
      }
    });

    it("JavaScript writes one, C++ goes on from there and keeps what it does not know", async () => {
      const container = await newContainer(400);
      await cppWrites(container, "before", 10);
      const seen = await drain(jsReads(container));
      await jsWrites(container, "after", 10);
      const group = await groupOf(container);
      const lease = {
        id: `${group}..0`,
        version: 0,
        LeaseToken: "0",
        FeedRange: { Range: { min: "", max: "FF" } },
        Owner: null,
        ContinuationToken: `"${Math.max(...seen.map(({ _lsn }) => _lsn))}"`,
        properties: { colour: "green" },
        timestamp: null,
        Mode: "Incremental Feed",
        madeBy: ["JavaScript", { of: 2026 }],
      };
      await leases.items.create(lease);
      await leases.items.create({ id: `${group}.info` });
      assert.deepEqual(sorted(idsOf(await cppProcesses(container))), sorted(names("after", 10)));
      const { resource: kept } = await leases.item(lease.id, lease.id).read();
      assert.deepEqual(kept.madeBy, lease.madeBy);
      assert.equal(kept.properties.colour, "green");
      assert.equal(kept.Owner, null);
      const latest = Math.max(...(await drain(jsReads(container))).map(({ _lsn }) => _lsn));
      assert.equal(kept.ContinuationToken, `"${latest}"`);
    });
  });

  it("a split and a merge in the middle, for both", async () => {
    const container = await newContainer(400);
    const js = jsReads(container, ChangeFeedStartFrom.Beginning(), { maxItemCount: 4 });
    await cppWrites(container, "a", 14);
    await jsWrites(container, "b", 14);
    const seen = { js: await drain(js) };
    const first = await cppReads(container, "size", 4);
    const [left, right] = (await operate(container, "split", { range: "0" })).filter(({ parents }) =>
      parents?.includes("0"),
    );
    await jsWrites(container, "c", 14);
    await cppWrites(container, "d", 14);
    seen.js.push(...(await drain(js)));
    const second = await cppReads(container, "from", first.continuation, "size", 4);
    await cppWrites(container, "e", 14);
    await operate(container, "merge", { ranges: [left.id, right.id] });
    await jsWrites(container, "f", 14);
    seen.js.push(...(await drain(js)));
    const third = await cppReads(container, "from", second.continuation, "size", 4);
    seen.cpp = [...first.items, ...second.items, ...third.items];
    const expected = sorted(["a", "b", "c", "d", "e", "f"].flatMap((prefix) => names(prefix, 14)));
    assert.deepEqual(sorted(idsOf(seen.cpp)), expected);
    assert.deepEqual(sorted(idsOf(seen.js)), expected);
    assert.deepEqual(byKey(seen.cpp), byKey(seen.js));
  });

  it("neither takes the other's continuation for its own", async () => {
    const container = await newContainer(400);
    await jsWrites(container, "j", 3);
    const { continuation } = await cppReads(container);
    const iterator = jsReads(container);
    const { continuationToken } = await iterator.readNext();
    await assert.rejects(cppReads(container, "from", continuationToken), /no continuation/);
    await assert.rejects(async () =>
      drain(jsReads(container, ChangeFeedStartFrom.Continuation(continuation))),
    );
  });
});
