// @azure/cosmos, unmodified, against a running Orrery, over http and over https.
// The endpoint comes from with_server.py; see README.md.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import https from "node:https";
import { CosmosClient, PartitionKeyBuilder } from "@azure/cosmos";

const KEY = required("ORRERY_KEY");
const ENDPOINTS = {
  http: required("ORRERY_ENDPOINT_HTTP"),
  https: required("ORRERY_ENDPOINT_HTTPS"),
};
const CONNECTIONS_MAX = 32;

function required(name) {
  if (!process.env[name]) throw new Error(`${name} is not set: run this through with_server.py`);
  return process.env[name];
}

/** Runs `task` for every element of `inputs`, a bounded number of them at a time. */
async function forAll(inputs, task) {
  const queue = inputs.entries();
  const worker = async () => {
    for (const [index, input] of queue) await task(input, index);
  };
  await Promise.all(Array.from({ length: CONNECTIONS_MAX }, worker));
}

/** The pages of an iterator, one by one, as an application with its own loop reads them. */
async function pagesOf(iterator) {
  const pages = [];
  while (iterator.hasMoreResults()) {
    const page = await iterator.fetchNext();
    pages.push(page.resources ?? []);
    assert.ok(pages.length < 10_000, "the feed does not end");
  }
  return pages;
}

const failsWith = (code) => (error) => {
  assert.equal(error.code, code, `${error.code}: ${error.message}`);
  return true;
};

const ifMatch = (etag) => ({ accessCondition: { type: "IfMatch", condition: etag } });
const ifNoneMatch = (etag) => ({ accessCondition: { type: "IfNoneMatch", condition: etag } });
const idsOf = (resources) => resources.map((resource) => resource.id).sort();

/** Both have the same ids, each once. Of thousands, a failure names only the first that differs. */
function assertSameIds(actual, expected) {
  const [seen, wanted] = [idsOf(actual), idsOf(expected)];
  const at = wanted.findIndex((id, i) => id !== seen[i]);
  assert.equal(at === -1 ? undefined : seen[at], at === -1 ? undefined : wanted[at], "ids differ");
  assert.equal(seen.length, wanted.length);
}

for (const [scheme, endpoint] of Object.entries(ENDPOINTS)) {
  describe(`@azure/cosmos over ${scheme}`, () => {
    let client;
    let database;

    const connect = (options = {}) =>
      new CosmosClient({
        endpoint,
        key: KEY,
        ...(scheme === "https"
          ? { agent: new https.Agent({ keepAlive: true, rejectUnauthorized: false }) }
          : {}),
        ...options,
      });

    const newContainer = async (definition = {}, options = {}) => {
      const { container } = await database.containers.create(
        { id: randomUUID(), partitionKey: { paths: ["/pk"], version: 2 }, ...definition },
        options,
      );
      return container;
    };

    before(async () => {
      client = connect();
      ({ database } = await client.databases.create({ id: `js-${scheme}-${randomUUID()}` }));
    });

    after(async () => {
      await database?.delete();
      client?.dispose();
    });

    describe("the account", () => {
      it("tells its consistency and its one region", async () => {
        const { resource } = await client.getDatabaseAccount();
        assert.equal(resource.consistencyPolicy, "Session");
        assert.equal(resource.writableLocations.length, 1);
        assert.equal(resource.writableLocations[0].databaseAccountEndpoint.split(":")[0], scheme);
        assert.ok(!resource.enableMultipleWritableLocations);
      });

      it("refuses a wrong key with 401", async () => {
        const stranger = connect({ key: Buffer.alloc(64, 7).toString("base64") });
        await assert.rejects(stranger.databases.readAll().fetchAll(), failsWith(401));
        stranger.dispose();
      });
    });

    describe("databases", () => {
      it("are created, read, listed and deleted", async () => {
        const id = randomUUID();
        const created = await client.databases.create({ id });
        assert.equal(created.statusCode, 201);
        assert.equal(created.resource.id, id);
        assert.match(created.resource._self, /^dbs\/.{8}\/$/);
        assert.equal(created.headers.etag, created.resource._etag);

        const read = await client.database(id).read();
        assert.deepEqual(read.resource, created.resource);

        const { resources } = await client.databases.readAll().fetchAll();
        assert.ok(resources.some((resource) => resource.id === id));

        assert.equal((await client.database(id).delete()).statusCode, 204);
        await assert.rejects(client.database(id).read(), failsWith(404));
        await assert.rejects(client.database(id).delete(), failsWith(404));
      });

      it("exist once under one name", async () => {
        await assert.rejects(client.databases.create({ id: database.id }), failsWith(409));
      });

      it("createIfNotExists creates once, then reads", async () => {
        const id = randomUUID();
        const first = await client.databases.createIfNotExists({ id });
        const second = await client.databases.createIfNotExists({ id });
        assert.equal(first.statusCode, 201);
        assert.equal(second.statusCode, 200);
        assert.equal(second.resource._rid, first.resource._rid);
        await first.database.delete();
      });

      it("take every letter, space and sign that a name may hold", async () => {
        for (const id of ["数据库 Ünï ñ", "a b+c&d=e'f\"g%h;i@j", "डेटाबेस پایگاه داده"]) {
          const { database: named } = await client.databases.create({ id });
          assert.equal((await named.read()).resource.id, id);
          const { container } = await named.containers.create({ id, partitionKey: "/pk" });
          assert.equal((await container.read()).resource.id, id);
          await container.items.create({ id: "1", pk: "a" });
          assert.equal((await container.item("1", "a").read()).resource.id, "1");
          await named.delete();
        }
      });

      it("are listed in pages", async () => {
        const ids = Array.from({ length: 5 }, () => randomUUID());
        await forAll(ids, (id) => client.databases.create({ id }));
        const pages = await pagesOf(client.databases.readAll({ maxItemCount: 2 }));
        assert.ok(pages.every((page) => page.length <= 2));
        const seen = pages.flat().map((resource) => resource.id);
        assert.equal(new Set(seen).size, seen.length, "a database is listed twice");
        assert.ok(ids.every((id) => seen.includes(id)));
        await forAll(ids, (id) => client.database(id).delete());
      });
    });

    describe("containers", () => {
      it("return what they were created with, and the defaults", async () => {
        const id = randomUUID();
        const { resource, statusCode } = await database.containers.create({
          id,
          partitionKey: { paths: ["/a/b"], version: 2 },
          defaultTtl: -1,
          uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/mail"] }] },
        });
        assert.equal(statusCode, 201);
        assert.equal(resource.id, id);
        assert.deepEqual(resource.partitionKey, { paths: ["/a/b"], kind: "Hash", version: 2 });
        assert.equal(resource.defaultTtl, -1);
        assert.deepEqual(resource.uniqueKeyPolicy.uniqueKeys, [{ paths: ["/mail"] }]);
        assert.equal(resource.indexingPolicy.indexingMode, "consistent");
        assert.equal(resource.indexingPolicy.automatic, true);
        assert.deepEqual(
          resource.indexingPolicy.includedPaths.map((p) => p.path),
          ["/*"],
        );
        assert.deepEqual(
          resource.indexingPolicy.excludedPaths.map((p) => p.path),
          ['/"_etag"/?'],
        );
        assert.equal(resource.conflictResolutionPolicy.mode, "LastWriterWins");
        assert.equal(resource.geospatialConfig.type, "Geography");
        const read = await database.container(id).read();
        assert.deepEqual(read.resource, resource);
      });

      it("are listed, deleted, and new under an old name", async () => {
        const container = await newContainer();
        const { resource: old } = await container.read();
        await container.items.create({ id: "1", pk: "a" });
        const { resources } = await database.containers.readAll().fetchAll();
        assert.ok(resources.some((resource) => resource.id === container.id));

        assert.equal((await container.delete()).statusCode, 204);
        await assert.rejects(container.read(), failsWith(404));
        await assert.rejects(container.delete(), failsWith(404));

        const again = await newContainer({ id: container.id });
        const { resource: fresh } = await again.read();
        assert.notEqual(fresh._rid, old._rid);
        assert.equal((await again.item("1", "a").read()).statusCode, 404);
      });

      it("exist once under one name", async () => {
        const { id } = await newContainer();
        await assert.rejects(newContainer({ id }), failsWith(409));
        const { container } = await database.containers.createIfNotExists({
          id,
          partitionKey: "/pk",
        });
        assert.equal(container.id, id);
      });

      it("replace what may change and keep the rest", async () => {
        const container = await newContainer();
        const { resource } = await container.read();
        assert.equal(resource.defaultTtl, undefined);

        resource.defaultTtl = 3600;
        resource.indexingPolicy = {
          indexingMode: "Consistent",
          automatic: true,
          includedPaths: [{ path: "/*" }],
          excludedPaths: [{ path: "/secret/*" }],
        };
        const replaced = await container.replace(resource);
        assert.equal(replaced.statusCode, 200);
        assert.equal(replaced.resource.defaultTtl, 3600);
        assert.equal(replaced.resource._rid, resource._rid);
        assert.notEqual(replaced.resource._etag, resource._etag);
        assert.equal(replaced.resource.indexingPolicy.indexingMode, "consistent");
        assert.deepEqual(
          replaced.resource.indexingPolicy.excludedPaths.map((p) => p.path),
          ["/secret/*", '/"_etag"/?'],
        );
        assert.deepEqual((await container.read()).resource, replaced.resource);

        const { defaultTtl, ...withoutTtl } = replaced.resource;
        assert.equal(defaultTtl, 3600);
        assert.equal((await container.replace(withoutTtl)).resource.defaultTtl, undefined);
        await assert.rejects(container.replace({ ...withoutTtl, defaultTtl: 0 }), failsWith(400));
        await assert.rejects(
          container.replace({ ...withoutTtl, partitionKey: { paths: ["/other"], version: 2 } }),
          failsWith(400),
        );
      });

      it("refuse a definition that makes no sense", async () => {
        await assert.rejects(newContainer({ partitionKey: { paths: ["/id ds"] } }), failsWith(400));
        await assert.rejects(newContainer({ defaultTtl: -10 }), failsWith(400));
        await assert.rejects(
          client.database(randomUUID()).containers.create({ id: "c", partitionKey: "/pk" }),
          failsWith(404),
        );
      });

      it("have as many ranges as their throughput needs, without gap or overlap", async () => {
        for (const [throughput, count] of [
          [400, 1],
          [10_000, 1],
          [11_000, 2],
          [30_000, 5],
        ]) {
          const container = await newContainer({}, { offerThroughput: throughput });
          const { resources } = await container.readPartitionKeyRanges().fetchAll();
          assert.equal(resources.length, count, `${throughput} RU/s`);
          const ranges = resources.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
          assert.equal(ranges[0].minInclusive, "");
          assert.equal(ranges.at(-1).maxExclusive, "FF");
          ranges.slice(1).forEach((range, i) => {
            assert.equal(range.minInclusive, ranges[i].maxExclusive);
          });
          assert.equal((await container.getFeedRanges()).length, count);
        }
      });
    });

    describe("documents", () => {
      let single;
      let several;

      before(async () => {
        single = await newContainer({}, { offerThroughput: 400 });
        several = await newContainer({}, { offerThroughput: 30_000 });
      });

      it("live from create to delete", async () => {
        for (const container of [single, several]) {
          const id = randomUUID();
          const body = {
            id,
            pk: "a",
            nested: { list: [1, 2.5, "三", null, true] },
            text: "\u20ac\u{1F600}",
          };
          const created = await container.items.create(body);
          assert.equal(created.statusCode, 201);
          assert.ok(created.requestCharge > 0);
          assert.ok(created.activityId);
          assert.equal(created.etag, created.resource._etag);
          const { _rid, _self, _etag, _attachments, _ts, ...own } = created.resource;
          assert.deepEqual(own, body);
          assert.equal(_attachments, "attachments/");
          assert.ok(_self.includes(_rid) && _self.endsWith("/"));
          assert.ok(Math.abs(_ts - Date.now() / 1000) < 60);

          const item = container.item(id, "a");
          const read = await item.read();
          assert.equal(read.statusCode, 200);
          assert.equal(JSON.stringify(read.resource), JSON.stringify(created.resource));

          const replaced = await item.replace({ ...body, text: "new" });
          assert.equal(replaced.statusCode, 200);
          assert.equal(replaced.resource.text, "new");
          assert.equal(replaced.resource._rid, _rid);
          assert.notEqual(replaced.resource._etag, _etag);

          assert.equal((await item.delete()).statusCode, 204);
          const gone = await item.read();
          assert.equal(gone.statusCode, 404);
          assert.equal(gone.resource, undefined);
          await assert.rejects(item.delete(), failsWith(404));
          await assert.rejects(item.replace(body), failsWith(404));
        }
      });

      it("have one id per partition key value", async () => {
        const id = randomUUID();
        await several.items.create({ id, pk: "a" });
        await assert.rejects(several.items.create({ id, pk: "a" }), failsWith(409));
        await several.items.create({ id, pk: "b" });
        assert.equal((await several.item(id, "a").read()).resource.pk, "a");
        assert.equal((await several.item(id, "b").read()).resource.pk, "b");
        assert.equal((await several.item(id, "c").read()).statusCode, 404);
      });

      it("get an id from the client when they have none", async () => {
        const { resource } = await single.items.create({ pk: "a" });
        assert.match(resource.id, /^[0-9a-f-]{36}$/);
      });

      it("are inserted, then replaced by upsert", async () => {
        const id = randomUUID();
        const inserted = await single.items.upsert({ id, pk: "a", n: 1 });
        assert.equal(inserted.statusCode, 201);
        const updated = await single.items.upsert({ id, pk: "a", n: 2 });
        assert.equal(updated.statusCode, 200);
        assert.equal(updated.resource.n, 2);
        assert.equal(updated.resource._rid, inserted.resource._rid);
        assert.equal((await single.item(id, "a").read()).resource.n, 2);
      });

      it("are replaced, upserted and deleted only under a matching etag", async () => {
        const { resource: first, item } = await single.items.create({
          id: randomUUID(),
          pk: "a",
          n: 1,
        });
        const { resource: second } = await item.replace({ ...first, n: 2 }, ifMatch(first._etag));
        assert.equal(second.n, 2);
        await assert.rejects(
          item.replace({ ...first, n: 3 }, ifMatch(first._etag)),
          failsWith(412),
        );
        await assert.rejects(
          single.items.upsert({ ...first, n: 3 }, ifMatch(first._etag)),
          failsWith(412),
        );
        await assert.rejects(item.delete(ifMatch(first._etag)), failsWith(412));
        assert.equal((await item.read()).resource.n, 2);
        assert.equal((await item.replace({ ...first, n: 4 }, ifMatch("*"))).statusCode, 200);
        const { resource: last } = await single.items.upsert(
          { ...first, n: 5 },
          ifMatch((await item.read()).etag),
        );
        assert.equal((await item.delete(ifMatch(last._etag))).statusCode, 204);
      });

      it("are not sent again to who has them already", async () => {
        const { resource, item } = await single.items.create({ id: randomUUID(), pk: "a" });
        const unchanged = await item.read(ifNoneMatch(resource._etag));
        assert.equal(unchanged.statusCode, 304);
        assert.equal(unchanged.resource ?? null, null);
        await item.replace({ ...resource, n: 1 });
        assert.equal((await item.read(ifNoneMatch(resource._etag))).statusCode, 200);
      });

      it("are found under any partition key: string, number, boolean, null, none", async () => {
        const values = [
          "",
          "a",
          "päng 鱀 😀",
          "x".repeat(1000),
          'with "quotes" \\ and \u2028',
          0,
          1,
          -1,
          3.75,
          -123456.789,
          1e300,
          5e-324,
          9007199254740991,
          true,
          false,
          null,
        ];
        for (const container of [single, several]) {
          for (const [n, pk] of values.entries()) {
            const id = randomUUID();
            const { resource } = await container.items.create({ id, pk, n });
            assert.equal(resource.pk, pk);
            const item = container.item(id, pk);
            assert.equal((await item.read()).resource?.n, n, `read under ${JSON.stringify(pk)}`);
            assert.equal((await item.replace({ id, pk, n: n + 100 })).resource.n, n + 100);
            assert.equal((await item.delete()).statusCode, 204);
          }
          const id = randomUUID();
          await container.items.create({ id, n: 1 });
          const none = container.item(id, new PartitionKeyBuilder().addNoneValue().build());
          assert.equal((await none.read()).resource?.n, 1);
          assert.equal((await container.item(id, undefined).read()).resource?.n, 1);
          assert.equal((await container.item(id, null).read()).statusCode, 404);
          assert.equal((await none.replace({ id, n: 2 })).resource.n, 2);
          assert.equal((await none.delete()).statusCode, 204);
        }
      });

      it("are refused when their key is not the one in the request", async () => {
        const { resource, item } = await several.items.create({ id: randomUUID(), pk: "a" });
        await assert.rejects(item.replace({ ...resource, pk: "b" }), (error) => {
          assert.equal(error.code, 400);
          assert.equal(error.substatus, 1001);
          return true;
        });
      });

      it("are found by a nested and by a quoted path", async () => {
        const nested = await newContainer({ partitionKey: { paths: ["/a/b/c"], version: 2 } });
        await nested.items.create({ id: "1", a: { b: { c: "deep" } } });
        await nested.items.create({ id: "2", a: { b: "shallow" } });
        assert.equal((await nested.item("1", "deep").read()).resource?.id, "1");
        assert.equal((await nested.item("2", undefined).read()).resource?.id, "2");
        const quoted = await newContainer({ partitionKey: { paths: ['/"a b"'], version: 2 } });
        await quoted.items.create({ id: "1", "a b": "x" });
        assert.equal((await quoted.item("1", "x").read()).resource?.id, "1");
      });

      it("are found by a key of version 1", async () => {
        const old = await newContainer(
          { partitionKey: { paths: ["/pk"], kind: "Hash", version: 1 } },
          { offerThroughput: 30_000 },
        );
        for (const pk of ["a", "", 7, -0.5, true, null]) {
          await old.items.create({ id: "1", pk });
          assert.equal((await old.item("1", pk).read()).resource?.pk, pk);
        }
      });

      it("are found by all levels of a hierarchical key", async () => {
        const container = await newContainer(
          {
            partitionKey: {
              paths: ["/tenant", "/user", "/session"],
              kind: "MultiHash",
              version: 2,
            },
          },
          { offerThroughput: 30_000 },
        );
        const { resource: definition } = await container.read();
        assert.equal(definition.partitionKey.kind, "MultiHash");
        const keys = [
          ["t", "u", "s"],
          ["t", "u", 1],
          ["t", null, true],
          [0, "u", "s"],
        ];
        for (const [tenant, user, session] of keys) {
          await container.items.create({ id: "1", tenant, user, session });
          const item = container.item("1", [tenant, user, session]);
          assert.equal((await item.read()).resource?.session, session);
          assert.equal(
            (await item.replace({ id: "1", tenant, user, session, n: 1 })).resource.n,
            1,
          );
        }
        await assert.rejects(container.item("1", ["t", "u"]).read(), failsWith(400));
        await container.items.create({ id: "2", tenant: "t", user: "u" });
        const partly = new PartitionKeyBuilder().addValue("t").addValue("u").addNoneValue().build();
        assert.equal((await container.item("2", partly).read()).resource?.id, "2");
        const { resources } = await container.items.readAll().fetchAll();
        assert.equal(resources.length, keys.length + 1);
        assert.equal((await container.item("1", ["t", "u", "s"]).delete()).statusCode, 204);
      });

      it("have any id that can be addressed", async () => {
        for (const id of [
          "ä ö ü",
          "日本語",
          "a?b=c&d",
          "100%",
          "a+b",
          "with space",
          "x".repeat(255),
          "😀",
          "'\"<>",
        ]) {
          await single.items.create({ id, pk: "ids" });
          const item = single.item(id, "ids");
          assert.equal((await item.read()).resource?.id, id, id);
          assert.equal((await item.replace({ id, pk: "ids", n: 1 })).resource.id, id);
          assert.equal((await item.delete()).statusCode, 204);
        }
      });

      it("are refused beyond two megabytes", async () => {
        const id = randomUUID();
        const fits = "x".repeat(2_000_000);
        assert.equal((await single.items.create({ id, pk: "big", fits })).statusCode, 201);
        assert.equal((await single.item(id, "big").read()).resource.fits.length, fits.length);
        await single.item(id, "big").delete();
        await assert.rejects(
          single.items.create({ id, pk: "big", more: "x".repeat(2_200_000) }),
          failsWith(413),
        );
      });

      it("are answered with 404 where the container or the database is missing", async () => {
        const lost = database.container(randomUUID());
        await assert.rejects(lost.items.create({ id: "1", pk: "a" }), failsWith(404));
        assert.equal((await lost.item("1", "a").read()).statusCode, 404);
        await assert.rejects(lost.items.readAll().fetchAll(), failsWith(404));
      });
    });

    describe("feeds", () => {
      for (const [name, throughput, count] of [
        ["one range", 400, 3000],
        ["five ranges", 30_000, 3000],
      ]) {
        it(`page through ${count} documents of ${name}`, async () => {
          const container = await newContainer({}, { offerThroughput: throughput });
          const documents = Array.from({ length: count }, (_, n) => ({
            id: `${n}`,
            pk: `key ${n % 97}`,
            n,
          }));
          await forAll(documents, (document) => container.items.create(document));

          const pages = await pagesOf(container.items.readAll({ maxItemCount: 100 }));
          assert.ok(
            pages.every((page) => page.length <= 100),
            "a page is larger than asked for",
          );
          const seen = pages.flat();
          assertSameIds(seen, documents);
          assert.ok(
            seen.every((document) => document.pk === `key ${document.n % 97}` && document._etag),
          );

          const { resources } = await container.items.readAll().fetchAll();
          assertSameIds(resources, documents);

          const { resources: ofOneKey } = await container.items
            .readAll({ partitionKey: "key 5", maxItemCount: 10 })
            .fetchAll();
          assertSameIds(
            ofOneKey,
            documents.filter((document) => document.n % 97 === 5),
          );
        });
      }

      it("go on from a continuation token in another client", async () => {
        const container = await newContainer({}, { offerThroughput: 11_000 });
        const ids = Array.from({ length: 25 }, (_, n) => `${n}`);
        await forAll(ids, (id) => container.items.create({ id, pk: id }));
        const other = connect();
        const seen = [];
        let continuationToken;
        do {
          const page = await other
            .database(database.id)
            .container(container.id)
            .items.readAll({ maxItemCount: 4, continuationToken })
            .fetchNext();
          seen.push(...page.resources);
          continuationToken = page.continuationToken;
          assert.ok(seen.length <= ids.length, "the feed repeats itself");
        } while (continuationToken);
        assert.deepEqual(idsOf(seen), [...ids].sort());
        other.dispose();
      });

      it("of an empty container are empty", async () => {
        const container = await newContainer({}, { offerThroughput: 30_000 });
        assert.deepEqual((await container.items.readAll().fetchAll()).resources, []);
      });
    });

    describe("sessions", () => {
      it("let a client read its own writes, and another one with its token", async () => {
        const writer = connect({ consistencyLevel: "Session" });
        const reader = connect({ consistencyLevel: "Session" });
        const { id } = await newContainer({}, { offerThroughput: 30_000 });
        const mine = writer.database(database.id).container(id);
        const theirs = reader.database(database.id).container(id);
        for (let n = 0; n < 20; n++) {
          const { headers } = await mine.items.create({ id: `${n}`, pk: n });
          const token = headers["x-ms-session-token"];
          assert.match(token, /^\d+:\d+#\d+$/);
          assert.equal((await mine.item(`${n}`, n).read()).resource?.pk, n);
          const { resource } = await theirs.item(`${n}`, n).read({ sessionToken: token });
          assert.equal(resource?.pk, n);
        }
        assert.equal((await mine.items.readAll().fetchAll()).resources.length, 20);
        await mine.delete();
        writer.dispose();
        reader.dispose();
      });

      it("count every write of a range by one", async () => {
        const container = await newContainer({}, { offerThroughput: 400 });
        const lsn = ({ headers }) => Number(headers["x-ms-session-token"].split("#")[1]);
        const created = await container.items.create({ id: "1", pk: "a" });
        const replaced = await created.item.replace({ id: "1", pk: "a", n: 1 });
        const read = await container.item("1", "a").read();
        const deleted = await container.item("1", "a").delete();
        assert.equal(lsn(replaced), lsn(created) + 1);
        assert.equal(lsn(read), lsn(replaced));
        assert.equal(lsn(deleted), lsn(replaced) + 1);
      });

      it("survive a container that is made anew under its name", async () => {
        const session = connect({ consistencyLevel: "Session" });
        const id = randomUUID();
        const containers = session.database(database.id).containers;
        const { container: old } = await containers.create({ id, partitionKey: "/pk" });
        for (let n = 0; n < 5; n++) await old.items.create({ id: `${n}`, pk: "a" });
        await old.delete();
        const { container: fresh } = await containers.create({ id, partitionKey: "/pk" });
        await fresh.items.create({ id: "new", pk: "a" });
        assert.equal((await fresh.item("new", "a").read()).resource?.id, "new");
        session.dispose();
      });
    });

    describe("offers", () => {
      it("of a container are read and replaced", async () => {
        const container = await newContainer({}, { offerThroughput: 400 });
        const { resource: definition } = await container.read();
        const { resource: offer } = await container.readOffer();
        assert.equal(offer.content.offerThroughput, 400);
        assert.equal(offer.offerVersion, "V2");
        assert.equal(offer.offerResourceId, definition._rid);
        assert.equal(offer.resource, definition._self);

        const { resource: raised, statusCode } = await client
          .offer(offer.id)
          .replace({ ...offer, content: { ...offer.content, offerThroughput: 1200 } });
        assert.equal(statusCode, 200);
        assert.equal(raised.content.offerThroughput, 1200);
        assert.equal((await client.offer(offer.id).read()).resource.content.offerThroughput, 1200);
        assert.equal((await container.readOffer()).resource.content.offerThroughput, 1200);

        const { resources } = await client.offers.readAll().fetchAll();
        assert.ok(resources.some((each) => each.id === offer.id));

        await container.delete();
        await assert.rejects(client.offer(offer.id).read(), failsWith(404));
      });

      it("of autoscale keep their maximum", async () => {
        const container = await newContainer({ maxThroughput: 4000 });
        const { resource: offer } = await container.readOffer();
        assert.equal(offer.content.offerAutopilotSettings.maxThroughput, 4000);
        const content = {
          ...offer.content,
          offerAutopilotSettings: { ...offer.content.offerAutopilotSettings, maxThroughput: 8000 },
        };
        const { resource: raised } = await client.offer(offer.id).replace({ ...offer, content });
        assert.equal(raised.content.offerAutopilotSettings.maxThroughput, 8000);
        const { resource: read } = await container.readOffer();
        assert.equal(read.content.offerAutopilotSettings.maxThroughput, 8000);
      });

      it("of a database are shared by its containers", async () => {
        const { database: shared } = await client.databases.create({
          id: randomUUID(),
          throughput: 600,
        });
        const { resource: offer } = await shared.readOffer();
        assert.equal(offer.content.offerThroughput, 600);
        const { container } = await shared.containers.create({ id: "c", partitionKey: "/pk" });
        assert.equal((await container.readOffer()).resource ?? undefined, undefined);
        await shared.delete();
        await assert.rejects(client.offer(offer.id).read(), failsWith(404));
      });

      it("refuse throughput that cannot be had", async () => {
        await assert.rejects(newContainer({}, { offerThroughput: 150 }), failsWith(400));
        await assert.rejects(newContainer({}, { offerThroughput: 450 }), failsWith(400));
      });
    });
  });
}
