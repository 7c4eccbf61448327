// The encryption of @azure/cosmos itself against a running Orrery: keys that it wraps are kept by the server, and so is what it encrypts.
// The keys that wrap others are local ones: a vault is not needed.

import assert from "node:assert/strict";
import { constants, generateKeyPairSync, privateDecrypt, publicEncrypt, randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import {
  CosmosClient,
  CosmosEncryptedNumberType,
  EncryptionAlgorithm,
  EncryptionQueryBuilder,
  EncryptionType,
  KeyEncryptionAlgorithm,
} from "@azure/cosmos";
import { ENDPOINT, KEY, ownDatabase } from "./orrery_requests.mjs";

const ALGORITHM = EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256;

/** Wraps with RSA keys of its own, by the name that a key's metadata has. */
class LocalKeyResolver {
  encryptionKeyResolverName = "LOCAL";
  #keys = new Map();

  #key(id) {
    if (!this.#keys.has(id)) this.#keys.set(id, generateKeyPairSync("rsa", { modulusLength: 2048 }));
    return this.#keys.get(id);
  }
  async wrapKey(id, _algorithm, key) {
    return publicEncrypt({ key: this.#key(id).publicKey, padding: constants.RSA_PKCS1_OAEP_PADDING }, key);
  }
  async unwrapKey(id, _algorithm, wrapped) {
    return privateDecrypt({ key: this.#key(id).privateKey, padding: constants.RSA_PKCS1_OAEP_PADDING }, wrapped);
  }
}

const wrappedBy = (name) => ({ type: "LOCAL", name, value: name, algorithm: KeyEncryptionAlgorithm.RSA_OAEP });

describe("@azure/cosmos that encrypts", () => {
  const plain = ownDatabase("encryption");
  const resolver = new LocalKeyResolver();
  let client;
  let database;

  const encryptingClient = () =>
    new CosmosClient({ endpoint: ENDPOINT, key: KEY, clientEncryptionOptions: { keyEncryptionKeyResolver: resolver } });

  before(async () => {
    client = encryptingClient();
    database = client.database(plain.database().id);
    for (const id of ["first", "second"]) await database.createClientEncryptionKey(id, ALGORITHM, wrappedBy(`${id} master`));
  });
  after(() => client?.dispose());

  const path = (name, encryptionType, clientEncryptionKeyId = "first") => ({
    path: `/${name}`,
    clientEncryptionKeyId,
    encryptionType,
    encryptionAlgorithm: ALGORITHM,
  });

  /** A container of the client that encrypts, and the same of one that knows nothing of it. */
  async function containers(includedPaths, policyFormatVersion = 1) {
    const definition = {
      id: randomUUID(),
      partitionKey: { paths: ["/pk"], version: 2 },
      clientEncryptionPolicy: { includedPaths, policyFormatVersion },
    };
    const { resource } = await database.containers.create(definition);
    assert.deepEqual(resource.clientEncryptionPolicy, definition.clientEncryptionPolicy);
    return [database.container(definition.id), plain.database().container(definition.id)];
  }

  it("makes, reads and wraps keys anew", async () => {
    const id = randomUUID();
    const created = await database.createClientEncryptionKey(id, ALGORITHM, wrappedBy("old master"));
    assert.equal(created.statusCode, 201);
    const read = await database.readClientEncryptionKey(id);
    assert.deepEqual(read.clientEncryptionKeyProperties, created.clientEncryptionKeyProperties);
    assert.deepEqual(read.clientEncryptionKeyProperties.encryptionKeyWrapMetadata, wrappedBy("old master"));
    const rewrapped = await database.rewrapClientEncryptionKey(id, wrappedBy("new master"));
    assert.equal(rewrapped.statusCode, 200);
    const now = (await database.readClientEncryptionKey(id)).clientEncryptionKeyProperties;
    assert.equal(now.encryptionKeyWrapMetadata.name, "new master");
    assert.notDeepEqual(now.wrappedDataEncryptionKey, created.clientEncryptionKeyProperties.wrappedDataEncryptionKey);
    await assert.rejects(database.createClientEncryptionKey(id, ALGORITHM, wrappedBy("other")), (error) => error.code === 409);
    await assert.rejects(database.readClientEncryptionKey("none"), (error) => error.code === 404);
  });

  it("writes what only it can read", async () => {
    const [encrypting, raw] = await containers([
      path("ssn", EncryptionType.DETERMINISTIC),
      path("notes", EncryptionType.RANDOMIZED, "second"),
      path("nested", EncryptionType.RANDOMIZED),
    ]);
    const document = { id: "x", pk: "a", open: "for all", ssn: "123-45", notes: "secret", nested: { deep: ["secret too", true] } };
    const created = await encrypting.items.create(document);
    assert.equal(created.statusCode, 201);
    const members = ({ id, pk, open, ssn, notes, nested }) => ({ id, pk, open, ssn, notes, nested });
    assert.deepEqual(members(created.resource), document);
    assert.deepEqual(members((await encrypting.item("x", "a").read()).resource), document);

    const stored = (await raw.item("x", "a").read()).resource;
    assert.equal(stored.open, "for all");
    for (const secret of ["123-45", "secret"]) assert.ok(!JSON.stringify(stored).includes(secret), JSON.stringify(stored));
    assert.notEqual(stored.ssn, document.ssn);

    const replaced = await encrypting.item("x", "a").replace({ ...document, notes: "another" });
    assert.equal(replaced.resource.notes, "another");
    await encrypting.items.upsert({ ...document, id: "y", ssn: "999" });
    await encrypting.item("y", "a").patch([{ op: "set", path: "/ssn", value: "1000" }]);
    assert.equal((await encrypting.item("y", "a").read()).resource.ssn, "1000");
    // Deterministic: the same value is the same text, which is what makes it comparable.
    await encrypting.items.create({ ...document, id: "z", pk: "b" });
    const same = (await raw.item("z", "b").read()).resource;
    assert.equal(same.ssn, stored.ssn);
    assert.notEqual(same.notes, stored.notes);
  });

  it("queries by an encrypted property", async () => {
    const [encrypting, raw] = await containers([path("ssn", EncryptionType.DETERMINISTIC), path("age", EncryptionType.DETERMINISTIC)]);
    for (let n = 0; n < 10; ++n) await encrypting.items.create({ id: `${n}`, pk: `${n % 3}`, ssn: `s${n % 2}`, age: n });
    const builder = new EncryptionQueryBuilder("SELECT * FROM c WHERE c.ssn = @ssn");
    builder.addParameter("@ssn", "s1", "/ssn");
    const found = await (await encrypting.items.getEncryptionQueryIterator(builder)).fetchAll();
    assert.deepEqual(found.resources.map(({ id, ssn }) => [id, ssn]).sort(), ["1", "3", "5", "7", "9"].map((id) => [id, "s1"]));
    const byNumber = new EncryptionQueryBuilder("SELECT * FROM c WHERE c.age = @age");
    byNumber.addParameter("@age", { value: 7, numberType: CosmosEncryptedNumberType.Integer }, "/age");
    const one = await (await encrypting.items.getEncryptionQueryIterator(byNumber)).fetchAll();
    assert.deepEqual(one.resources.map(({ id, age }) => [id, age]), [["7", 7]]);
    const blind = await raw.items.query({ query: "SELECT * FROM c WHERE c.ssn = @s", parameters: [{ name: "@s", value: "s1" }] }).fetchAll();
    assert.deepEqual(blind.resources, []);
  });

  it("encrypts the id and the partition key in format 2", async () => {
    const [encrypting, raw] = await containers([path("id", EncryptionType.DETERMINISTIC), path("pk", EncryptionType.DETERMINISTIC)], 2);
    await encrypting.items.create({ id: "secret id", pk: "secret key", open: 1 });
    const read = (await encrypting.item("secret id", "secret key").read()).resource;
    assert.deepEqual([read.id, read.pk, read.open], ["secret id", "secret key", 1]);
    const [stored] = (await raw.items.readAll().fetchAll()).resources;
    assert.ok(!JSON.stringify(stored).includes("secret"), JSON.stringify(stored));
    assert.equal((await raw.item("secret id", "secret key").read()).statusCode, 404);
    await encrypting.item("secret id", "secret key").delete();
    assert.equal((await raw.items.readAll().fetchAll()).resources.length, 0);
  });

  it("reads with another client that has the keys, and in batches", async () => {
    const [encrypting, raw] = await containers([path("ssn", EncryptionType.DETERMINISTIC)]);
    const result = await encrypting.items.batch(
      [
        { operationType: "Create", resourceBody: { id: "x", pk: "a", ssn: "one" } },
        { operationType: "Upsert", resourceBody: { id: "y", pk: "a", ssn: "two" } },
      ],
      "a",
    );
    assert.equal(result.code, 200);
    assert.notEqual((await raw.item("x", "a").read()).resource.ssn, "one");
    const other = encryptingClient();
    const container = other.database(plain.database().id).container(encrypting.id);
    const { resources } = await container.items.readAll().fetchAll();
    assert.deepEqual(resources.map(({ id, ssn }) => [id, ssn]).sort(), [["x", "one"], ["y", "two"]]);
    other.dispose();
  });

  it("hears that a container was made anew with another policy", async () => {
    const [encrypting, raw] = await containers([path("ssn", EncryptionType.DETERMINISTIC)]);
    await encrypting.items.create({ id: "x", pk: "a", ssn: "one", other: "open" });
    await raw.delete();
    await plain.database().containers.create({
      id: raw.id,
      partitionKey: { paths: ["/pk"], version: 2 },
      clientEncryptionPolicy: { includedPaths: [path("other", EncryptionType.DETERMINISTIC)], policyFormatVersion: 1 },
    });
    const create = () => encrypting.items.create({ id: "x", pk: "a", ssn: "one", other: "closed" });
    await assert.rejects(create(), /mismatch in Client Encryption Policy/);
    await create();
    const stored = (await raw.item("x", "a").read()).resource;
    assert.equal(stored.ssn, "one");
    assert.notEqual(stored.other, "closed");
    assert.equal((await encrypting.item("x", "a").read()).resource.other, "closed");
  });
});
