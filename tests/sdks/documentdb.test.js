// documentdb 1.15.3, the client of 2017, unmodified, against a running Orrery. It speaks only
// TLS 1.0: the server needs --legacy-tls, and Node the options that README.md names.

"use strict";

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { after, before, describe, it } = require("node:test");
const { Constants, DocumentBase, DocumentClient, UriFactory } = require("documentdb");

const ENDPOINT = required("ORRERY_ENDPOINT_HTTPS");
const KEY = required("ORRERY_KEY");
const CONNECTIONS_MAX = 32;

function required(name) {
  if (!process.env[name]) throw new Error(`${name} is not set: run this through with_server.py`);
  return process.env[name];
}

/** A client whose calls return promises of [result, headers]. */
function connect(consistency) {
  const client = new DocumentClient(ENDPOINT, { masterKey: KEY }, undefined, consistency);
  const call = (method, ...values) =>
    new Promise((resolve, reject) => {
      client[method](...values, (error, result, headers) =>
        error
          ? reject(Object.assign(new Error(`${method}: ${error.body ?? error.message}`), error))
          : resolve([result, headers]),
      );
    });
  return { client, call, one: async (...values) => (await call(...values))[0] };
}

/** The pages of a feed: executeNext until the client says that there is no more. */
async function pagesOf(iterator) {
  const pages = [];
  for (;;) {
    const [page] = await new Promise((resolve, reject) => {
      iterator.executeNext((error, resources, headers) =>
        error ? reject(Object.assign(new Error(error.body), error)) : resolve([resources, headers]),
      );
    });
    if (page === undefined) return pages;
    pages.push(page);
    assert.ok(pages.length < 10_000, "the feed does not end");
  }
}

const allOf = async (iterator) => (await pagesOf(iterator)).flat();
const idsOf = (resources) => resources.map((resource) => resource.id).sort();

async function forAll(inputs, task) {
  const queue = inputs.values();
  const worker = async () => {
    for (const input of queue) await task(input);
  };
  await Promise.all(Array.from({ length: CONNECTIONS_MAX }, worker));
}

const failsWith = (code, substatus) => (error) => {
  assert.equal(error.code, code, error.message);
  if (substatus !== undefined) assert.equal(error.substatus, substatus);
  return true;
};

const ifMatch = (etag, options = {}) => ({
  ...options,
  accessCondition: { type: "IfMatch", condition: etag },
});

const { client, call, one } = connect();

for (const naming of ["name", "_self"]) {
  describe(`documentdb, addressed by ${naming}`, () => {
    let database;

    const linkOfDatabase = (db) =>
      naming === "name" ? UriFactory.createDatabaseUri(db.id) : db._self;
    const linkOf = (collection, db = database) =>
      naming === "name"
        ? UriFactory.createDocumentCollectionUri(db.id, collection.id)
        : collection._self;
    const linkOfDocument = (collection, document) =>
      naming === "name" ? `${linkOf(collection)}/docs/${document.id}` : document._self;

    const newCollection = (definition = {}, options = {}) =>
      one(
        "createCollection",
        linkOfDatabase(database),
        { id: randomUUID(), partitionKey: { paths: ["/pk"], kind: "Hash" }, ...definition },
        options,
      );

    before(async () => {
      database = await one("createDatabase", { id: `dd ${naming} ${randomUUID()}` });
    });

    after(async () => {
      if (database) await call("deleteDatabase", linkOfDatabase(database));
    });

    it("the account is described", async () => {
      const [account, headers] = await call("getDatabaseAccount");
      assert.equal(account.ConsistencyPolicy.defaultConsistencyLevel, "Session");
      assert.ok(headers["x-ms-max-media-storage-usage-mb"]);
    });

    it("a database is created, read, listed and deleted", async () => {
      const created = await one("createDatabase", { id: `${randomUUID()} 中文` });
      assert.deepEqual(await one("readDatabase", linkOfDatabase(created)), created);
      await assert.rejects(call("createDatabase", { id: created.id }), failsWith(409));
      assert.ok(idsOf(await allOf(client.readDatabases())).includes(created.id));
      const pages = await pagesOf(client.readDatabases({ maxItemCount: 1 }));
      assert.ok(pages.every((page) => page.length <= 1));
      await call("deleteDatabase", linkOfDatabase(created));
      await assert.rejects(call("readDatabase", linkOfDatabase(created)), failsWith(404));
    });

    it("a collection keeps its definition and may change part of it", async () => {
      const collection = await newCollection({ defaultTtl: 100 });
      assert.deepEqual(collection.partitionKey, { paths: ["/pk"], kind: "Hash" });
      assert.equal(collection.defaultTtl, 100);
      const [read, headers] = await call("readCollection", linkOf(collection));
      assert.deepEqual(read, collection);
      assert.equal(headers[Constants.HttpHeaders.IndexTransformationProgress], "100");
      assert.ok(
        idsOf(await allOf(client.readCollections(linkOfDatabase(database)))).includes(
          collection.id,
        ),
      );

      collection.indexingPolicy.indexingMode = "Lazy";
      collection.defaultTtl = -1;
      const replaced = await one("replaceCollection", linkOf(collection), collection);
      assert.equal(replaced.indexingPolicy.indexingMode, "lazy");
      assert.equal(replaced.defaultTtl, -1);
      assert.equal(replaced._rid, collection._rid);
      await assert.rejects(
        call("replaceCollection", linkOf(collection), {
          ...collection,
          partitionKey: { paths: ["/x"], kind: "Hash" },
        }),
        failsWith(400),
      );
      await assert.rejects(newCollection({ id: collection.id }), failsWith(409));

      await call("deleteCollection", linkOf(collection));
      await assert.rejects(call("readCollection", linkOf(collection)), failsWith(404));
    });

    it("a collection has the ranges that its throughput needs", async () => {
      for (const [offerThroughput, count] of [
        [400, 1],
        [30_000, 5],
      ]) {
        const collection = await newCollection({}, { offerThroughput });
        const ranges = await allOf(client.readPartitionKeyRanges(linkOf(collection)));
        assert.equal(ranges.length, count);
        ranges.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
        assert.equal(ranges[0].minInclusive, "");
        assert.equal(ranges.at(-1).maxExclusive, "FF");
        ranges
          .slice(1)
          .forEach((range, i) => assert.equal(range.minInclusive, ranges[i].maxExclusive));
      }
    });

    for (const [size, offerThroughput] of [
      ["one range", 400],
      ["five ranges", 30_000],
    ]) {
      it(`documents of ${size} are found under any kind of partition key`, async () => {
        const collection = await newCollection({}, { offerThroughput });
        const documents = ["", "a", "鱀 😀", 0, 1, -2.5, 1e300, true, false, null, undefined].map(
          (pk, n) => ({
            id: `document ${n}`,
            ...(pk === undefined ? {} : { pk }),
            n,
          }),
        );
        for (const document of documents) {
          const options = () => ({ partitionKey: "pk" in document ? document.pk : {} });
          const created = await one("createDocument", linkOf(collection), document);
          const link = linkOfDocument(collection, created);
          const read = await one("readDocument", link, options());
          assert.equal(JSON.stringify(read), JSON.stringify(created));
          const replaced = await one("replaceDocument", link, { ...created, n: -1 }, options());
          assert.equal(replaced.n, -1);
          assert.equal(replaced._rid, created._rid);
        }
        const all = await allOf(client.readDocuments(linkOf(collection)));
        assert.deepEqual(idsOf(all), idsOf(documents));
        const ofOneKey = await allOf(
          client.readDocuments(linkOf(collection), { partitionKey: "a" }),
        );
        assert.deepEqual(idsOf(ofOneKey), ["document 1"]);
        await assert.rejects(
          call("readDocument", linkOfDocument(collection, all[0])),
          failsWith(400),
          "a read names its partition key",
        );
        for (const document of all) {
          const options = { partitionKey: "pk" in document ? document.pk : {} };
          await call("deleteDocument", linkOfDocument(collection, document), options);
          await assert.rejects(
            call("readDocument", linkOfDocument(collection, document), options),
            failsWith(404),
          );
        }
      });
    }

    it("documents are found by a nested path", async () => {
      const collection = await newCollection({ partitionKey: { paths: ["/a/b"], kind: "Hash" } });
      const document = await one("createDocument", linkOf(collection), {
        id: "1",
        a: { b: "deep" },
      });
      const read = await one("readDocument", linkOfDocument(collection, document), {
        partitionKey: "deep",
      });
      assert.equal(read.id, "1");
    });

    it("documents live without a partition key in a collection without one", async () => {
      const collection = await newCollection({ partitionKey: undefined });
      assert.equal(collection.partitionKey, undefined);
      const document = await one("createDocument", linkOf(collection), { id: "1", n: 1 });
      const link = linkOfDocument(collection, document);
      assert.equal((await one("readDocument", link)).n, 1);
      assert.equal((await one("replaceDocument", link, { id: "1", n: 2 })).n, 2);
      assert.equal((await one("upsertDocument", linkOf(collection), { id: "1", n: 3 })).n, 3);
      assert.deepEqual(idsOf(await allOf(client.readDocuments(linkOf(collection)))), ["1"]);
      await assert.rejects(call("createDocument", linkOf(collection), { id: "1" }), failsWith(409));
      await call("deleteDocument", link);
      await assert.rejects(call("readDocument", link), failsWith(404));
    });

    it("documents are replaced and deleted only under a matching etag", async () => {
      const collection = await newCollection();
      const key = { partitionKey: "a" };
      const first = await one("createDocument", linkOf(collection), { id: "1", pk: "a", n: 1 });
      const link = linkOfDocument(collection, first);
      const second = await one(
        "replaceDocument",
        link,
        { ...first, n: 2 },
        ifMatch(first._etag, key),
      );
      assert.notEqual(second._etag, first._etag);
      await assert.rejects(
        call("replaceDocument", link, { ...first, n: 3 }, ifMatch(first._etag, key)),
        failsWith(412),
      );
      await assert.rejects(call("deleteDocument", link, ifMatch(first._etag, key)), failsWith(412));
      assert.equal((await one("readDocument", link, key)).n, 2);
      const unchanged = await one("readDocument", link, {
        ...key,
        accessCondition: { type: "IfNoneMatch", condition: second._etag },
      });
      assert.equal(unchanged, undefined);
      await call("deleteDocument", link, ifMatch(second._etag, key));
    });

    it("documents are inserted, then replaced by upsert", async () => {
      const collection = await newCollection();
      const inserted = await one("upsertDocument", linkOf(collection), { id: "1", pk: "a", n: 1 });
      const updated = await one("upsertDocument", linkOf(collection), { id: "1", pk: "a", n: 2 });
      assert.equal(updated._rid, inserted._rid);
      assert.equal(updated.n, 2);
      await assert.rejects(
        call("createDocument", linkOf(collection), { id: "1", pk: "a" }),
        failsWith(409),
      );
      await call("createDocument", linkOf(collection), { id: "1", pk: "b" });
    });

    it("names and ids of any alphabet are addressed", async () => {
      const collection = await newCollection({ id: "डेटाबेस پایگاه داده 数据库" });
      for (const id of ["ä ö ü", "日本語", "a+b", "100%", "😀"]) {
        const document = await one("createDocument", linkOf(collection), { id, pk: "a" });
        assert.equal(
          (await one("readDocument", linkOfDocument(collection, document), { partitionKey: "a" }))
            .id,
          id,
        );
      }
    });

    for (const [size, offerThroughput] of [
      ["one range", 400],
      ["five ranges", 30_000],
    ]) {
      it(`2000 documents of ${size} are read page by page`, async () => {
        const collection = await newCollection({}, { offerThroughput });
        const documents = Array.from({ length: 2000 }, (_, n) => ({
          id: `${n}`,
          pk: `key ${n % 53}`,
          n,
        }));
        await forAll(documents, (document) => call("createDocument", linkOf(collection), document));
        const pages = await pagesOf(
          client.readDocuments(linkOf(collection), { maxItemCount: 100 }),
        );
        assert.ok(pages.every((page) => page.length <= 100));
        const seen = new Set(pages.flat().map((document) => document.id));
        assert.equal(pages.flat().length, documents.length);
        assert.ok(documents.every((document) => seen.has(document.id)));
        assert.equal(
          (await allOf(client.readDocuments(linkOf(collection), { maxItemCount: -1 }))).length,
          2000,
        );
      });
    }

    it("an offer is read, replaced, and goes with its collection", async () => {
      const collection = await newCollection({}, { offerThroughput: 500 });
      const offers = (await allOf(client.readOffers())).filter(
        (offer) => offer.resource === collection._self,
      );
      assert.equal(offers.length, 1);
      const [offer] = offers;
      assert.equal(offer.content.offerThroughput, 500);
      assert.equal(offer.offerResourceId, collection._rid);
      const changed = { ...offer, content: { ...offer.content, offerThroughput: 700 } };
      assert.equal((await one("replaceOffer", offer._self, changed)).content.offerThroughput, 700);
      assert.equal((await one("readOffer", offer._self)).content.offerThroughput, 700);
      await assert.rejects(
        call("replaceOffer", offer._self, { ...changed, _rid: "NotAllowed" }),
        failsWith(400),
      );
      await assert.rejects(call("readOffer", `${offer._self.slice(0, -1)}x/`), failsWith(400));
      await call("deleteCollection", linkOf(collection));
      await assert.rejects(call("readOffer", offer._self), failsWith(404));
    });

    it("a client of session consistency reads its writes and counts them", async () => {
      const collection = await newCollection({}, { offerThroughput: 30_000 });
      const session = connect(DocumentBase.ConsistencyLevel.Session);
      const key = { partitionKey: "a" };
      const lsn = (headers) => {
        assert.match(headers["x-ms-session-token"], /^\d+:\d+$/);
        return Number(headers["x-ms-session-token"].split(":")[1]);
      };
      const [document, created] = await session.call("createDocument", linkOf(collection), {
        id: "1",
        pk: "a",
      });
      const link = linkOfDocument(collection, document);
      const [, read] = await session.call("readDocument", link, { ...key });
      assert.equal(lsn(read), lsn(created));
      const [, replaced] = await session.call(
        "replaceDocument",
        link,
        { ...document, n: 1 },
        { ...key },
      );
      assert.equal(lsn(replaced), lsn(created) + 1);
      // The client keeps tokens by the encoded path, as it sends it.
      const kept = session.client.getSessionToken(encodeURI(linkOf(collection)));
      assert.ok(kept.includes(`:${lsn(replaced)}`));

      const range = replaced["x-ms-session-token"].split(":")[0];
      await assert.rejects(
        session.call("readDocument", link, {
          ...key,
          sessionToken: `${range}:${lsn(replaced) + 1000}`,
        }),
        failsWith(404, 1002),
      );
      assert.equal((await session.one("readDocument", link, { ...key })).n, 1);
    });

    it("what is missing is answered with 404", async () => {
      const collection = await newCollection();
      const missing = `${UriFactory.createDocumentCollectionUri(database.id, collection.id)}/docs/none`;
      await assert.rejects(call("readDocument", missing, { partitionKey: "a" }), failsWith(404));
      await assert.rejects(
        call("createDocument", `dbs/${database.id}/colls/none`, { id: "1" }),
        failsWith(404),
      );
    });
  });
}

it("a client without a key is refused", async () => {
  const stranger = new DocumentClient(ENDPOINT, {});
  const error = await new Promise((resolve) => {
    stranger.readDatabases().toArray((refused) => resolve(refused));
  });
  assert.equal(error?.code, 401);
});
