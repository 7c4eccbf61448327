// A server whose data directory is put back from a copy or from a back-up, as @azure/cosmos sees it: a continuation and
// a session from before miss nothing that is new. The servers are this test's own: ORRERY_BINARY names the binary.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { ChangeFeedStartFrom, CosmosClient } from "@azure/cosmos";
import { KEY } from "./orrery_requests.mjs";

const NOT_MODIFIED = 304;

const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ORRERY_")));
const command = (...words) => promisify(execFile)(process.env.ORRERY_BINARY, words, { env: environment });

class Server {
  constructor(directory, backups) {
    this.directory = directory;
    this.backups = backups;
  }

  async start() {
    this.process = spawn(
      process.env.ORRERY_BINARY,
      ["serve", "--data-dir", this.directory, "--backup-dir", this.backups, "--listen", "127.0.0.1:0"],
      { stdio: ["ignore", "pipe", "ignore"], env: environment },
    );
    for await (const line of createInterface({ input: this.process.stdout })) {
      const endpoint = /http:\/\/127\.0\.0\.1:\d+\//.exec(line);
      if (!endpoint) continue;
      this.endpoint = endpoint[0];
      return this.connect();
    }
    throw new Error("the server has named no endpoint");
  }

  connect() {
    return new CosmosClient({ endpoint: this.endpoint, key: KEY, consistencyLevel: "Session" });
  }

  async stop() {
    const ended = once(this.process, "exit");
    this.process.kill("SIGTERM");
    assert.deepEqual((await ended)[0], 0);
  }
}

async function drain(iterator) {
  const found = { ids: [], continuation: undefined };
  for (;;) {
    const page = await iterator.readNext();
    found.continuation = page.continuationToken;
    if (page.statusCode === NOT_MODIFIED) return found;
    found.ids.push(...page.result.map((item) => item.id));
  }
}

const write = async (container, from, to) => {
  for (let n = from; n < to; ++n) await container.items.upsert({ id: `${n}`, pk: `key ${n % 7}` });
};

describe("@azure/cosmos over a data directory that is put back", () => {
  let home, server, client;
  const container = () => client.database("d").container("c");
  const feed = (start) => container().items.getChangeFeedIterator({ changeFeedStartFrom: start });
  const restart = async (change) => {
    client.dispose();
    await server.stop();
    await change();
    client = await server.start();
  };

  before(async () => {
    home = await mkdtemp(join(tmpdir(), "orrery-restore-"));
    server = new Server(join(home, "data"), join(home, "backups"));
    client = await server.start();
  });
  after(async () => {
    client.dispose();
    await server.stop();
    await rm(home, { recursive: true });
  });

  const ways = {
    "a copy": {
      keep: () =>
        restart(() => cp(server.directory, join(home, "copy"), { recursive: true, preserveTimestamps: true })),
      putBack: async () => {
        await cp(join(home, "copy"), server.directory, { recursive: true, preserveTimestamps: true });
        await rm(join(home, "copy"), { recursive: true });
      },
    },
    "a back-up": {
      keep: () => command("backup", "create", "--endpoint", server.endpoint),
      putBack: () => command("backup", "restore", "--backup-dir", server.backups, "--data-dir", server.directory),
    },
  };

  for (const [name, { keep, putBack }] of Object.entries(ways)) {
    for (const throughput of [400, 30_000]) {
      it(`from ${name} continues at ${throughput} RU/s`, async () => {
        // One that does not know the ranges of a container of the same name that is gone.
        client.dispose();
        client = server.connect();
        await client.databases.createIfNotExists({ id: "d" });
        await client.database("d").containers.create({ id: "c", partitionKey: "/pk" }, { offerThroughput: throughput });
        await write(container(), 0, 10);
        await keep();
        await write(container(), 10, 20);
        const { ids, continuation } = await drain(feed(ChangeFeedStartFrom.Beginning()));
        assert.equal(ids.length, 20);
        await restart(async () => {
          await rm(server.directory, { recursive: true });
          await putBack();
        });
        await write(container(), 100, 112);
        const later = await drain(feed(ChangeFeedStartFrom.Continuation(continuation)));
        assert.deepEqual(later.ids.map(Number).sort((a, b) => a - b), Array.from({ length: 12 }, (_, n) => 100 + n));
        await write(container(), 200, 203);
        const latest = await drain(feed(ChangeFeedStartFrom.Continuation(later.continuation)));
        assert.equal(latest.ids.length, 3);
        assert.equal((await container().item("100", "key 2").read()).statusCode, 200);
        await client.database("d").container("c").delete();
      });
    }
  }

  it("a continuation beyond the end of the feed is an error, and not an endless 304", async () => {
    await client.databases.createIfNotExists({ id: "d" });
    await client.database("d").containers.create({ id: "c", partitionKey: "/pk" }, { offerThroughput: 400 });
    await write(container(), 0, 5);
    const { continuation } = await drain(feed(ChangeFeedStartFrom.Beginning()));
    const beyond = continuation.replace(/\\"(\d+)\\"/, (_, lsn) => `\\"${Number(lsn) + 10}\\"`);
    assert.notEqual(beyond, continuation);
    await assert.rejects(feed(ChangeFeedStartFrom.Continuation(beyond)).readNext(), (error) => {
      assert.equal(error.code, 400);
      assert.match(error.message, /beyond the end of this change feed/);
      return true;
    });
  });
});
