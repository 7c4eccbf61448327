// The signed REST API, as much of it as the explorer needs. Knows nothing of the page.

import { signer } from "./sign.js";
import { ascii } from "./json.js";

export const WELL_KNOWN_KEY =
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const VERSION = "2020-07-15";
const CLOCK_OFF_MS = 5 * 60_000;

/** What the server said, or why it could not be asked. */
export class ApiError extends Error {
  constructor({ status = 0, substatus = 0, code = "", message, activityId = "", retryAfterMs = 0, location }) {
    super(message);
    Object.assign(this, { name: "ApiError", status, substatus, code, activityId, retryAfterMs, location });
  }
  get unreachable() {
    return this.status === 0;
  }
}

/** What is wrong with a query or filter comes as JSON: Message: {"errors":[{"location":{"start":3},"message":"…"}]}. */
function inWords(text) {
  try {
    const { errors } = JSON.parse(/^(?:Message: )?(\{.*\})$/s.exec(text)[1]);
    const message = errors.map((error) => error.message
      + (error.location ? ` (at character ${error.location.start + 1})` : "")).join("\n") || text;
    return { message, location: errors.find((error) => error.location)?.location };
  } catch {
    return { message: text };
  }
}

async function errorOf(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // Not one of ours: a proxy's, perhaps. The status says enough.
  }
  // The activity id stands at the end of the message; we show it beside it.
  const { message, location } = inWords(String(body.message ?? `The server answered ${response.status}.`)
    .replace(/\s*ActivityId: [\w-]+.*$/s, ""));
  return new ApiError({
    status: response.status,
    substatus: Number(response.headers.get("x-ms-substatus") ?? 0),
    code: body.code,
    message,
    location,
    activityId: response.headers.get("x-ms-activity-id") ?? "",
    retryAfterMs: Number(response.headers.get("x-ms-retry-after-ms") ?? 0),
  });
}

/** `dbs/a b/colls/c` with each name encoded for a URL. */
const encodePath = (path) => path.split("/").map(encodeURIComponent).join("/");

export class Client {
  #sign;
  #clockOffset = 0;

  constructor(key, base = new URL("../", document.baseURI)) {
    this.base = base;
    this.#sign = signer(key);
  }

  /**
   * Sends a request and promises the response; an answer of 400 or more is thrown as an ApiError.
   * `segments` are the words and names of the path, unencoded; the signed link follows from them.
   */
  async send(verb, segments, { headers = {}, body, signal } = {}) {
    const isList = segments.length % 2 === 1;
    const type = segments.length ? segments[isList ? segments.length - 1 : segments.length - 2] : "";
    const parent = isList ? segments.slice(0, -1) : segments;
    const response = await this.#fetch(verb, {
      url: segments.map(encodeURIComponent).join("/"), type, link: parent.join("/"),
      headers, body, signal,
    });
    return response;
  }

  /** The same for a resource named by its _self, which holds whatever its id looks like. */
  async sendTo(verb, self, { headers = {}, body, signal } = {}) {
    const segments = self.replace(/\/+$/, "").split("/");
    return this.#fetch(verb, {
      url: encodePath(segments.join("/")), type: segments.at(-2),
      link: segments.at(-1).toLowerCase(), headers, body, signal,
    });
  }

  async #fetch(verb, { url, type, link, headers, body, signal }) {
    const once = async () => {
      const date = new Date(Date.now() + this.#clockOffset).toUTCString();
      const payload = [verb.toLowerCase(), type, link, date.toLowerCase(), "", ""].join("\n");
      const signature = await this.#sign(payload);
      try {
        return await fetch(new URL(url, this.base), {
          method: verb, body, signal, cache: "no-store", credentials: "omit", redirect: "error",
          headers: {
            ...headers,
            authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`),
            "x-ms-date": date,
            "x-ms-version": VERSION,
          },
        });
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new ApiError({ message: `The server at ${this.base.host} does not answer. Is it running?` });
      }
    };
    let response = await once();
    if (response.status === 403) {
      // A request is signed with the time. If this computer's clock is wrong, go by the server's.
      const server = Date.parse(response.headers.get("date") ?? "");
      if (Math.abs(server - Date.now() - this.#clockOffset) > CLOCK_OFF_MS) {
        this.#clockOffset = server - Date.now();
        response = await once();
      }
    }
    if (response.status >= 400) throw await errorOf(response);
    return response;
  }

  async json(verb, segments, options) {
    return (await this.send(verb, segments, options)).json();
  }

  account() {
    return this.json("GET", []);
  }

  /** Follows x-ms-continuation to the end. */
  async #all(segments, array) {
    const found = [];
    let continuation;
    do {
      const response = await this.send("GET", segments, {
        headers: continuation ? { "x-ms-continuation": continuation } : {},
      });
      found.push(...(await response.json())[array]);
      continuation = response.headers.get("x-ms-continuation");
    } while (continuation);
    return found;
  }
  async databases() {
    return sorted(await this.#all(["dbs"], "Databases"));
  }
  async containers(db) {
    return sorted(await this.#all(["dbs", db, "colls"], "DocumentCollections"));
  }
  async ranges(db, coll) {
    const ranges = (await this.json("GET", ["dbs", db, "colls", coll, "pkranges"])).PartitionKeyRanges;
    return ranges.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
  }

  /** A container with its `statistics` per range. */
  container(db, coll) {
    return this.json("GET", ["dbs", db, "colls", coll], {
      headers: { "x-ms-documentdb-populatepartitionstatistics": "true" },
    });
  }
  /** Its throughput offer, or undefined where it shares its database's. */
  async offer(rid) {
    const body = JSON.stringify({
      query: "SELECT * FROM root r WHERE r.offerResourceId = @rid",
      parameters: [{ name: "@rid", value: rid }],
    });
    const found = await this.json("POST", ["offers"], {
      body, headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true" },
    });
    return found.Offers[0];
  }

  createDatabase(id) {
    return this.json("POST", ["dbs"], jsonBody({ id }));
  }
  createContainer(db, definition, throughput) {
    const options = jsonBody(definition);
    if (throughput) options.headers["x-ms-offer-throughput"] = String(throughput);
    return this.json("POST", ["dbs", db, "colls"], options);
  }
  async remove(segments) {
    await this.send("DELETE", segments);
  }

  /** A page of documents as text, and where the next begins. */
  async documents(db, coll, { rangeId, continuation, count }) {
    const headers = { "x-ms-max-item-count": String(count) };
    if (rangeId !== undefined) headers["x-ms-documentdb-partitionkeyrangeid"] = rangeId;
    if (continuation) headers["x-ms-continuation"] = continuation;
    const response = await this.send("GET", ["dbs", db, "colls", coll, "docs"], { headers });
    return { text: await response.text(), continuation: response.headers.get("x-ms-continuation") };
  }

  /**
   * A page of the rows of a query as text, and what the server says of it. Values of `parameters` are JSON
   * texts; `key` is the partition key as its header has it, or undefined for all.
   */
  async query(db, coll, { text, parameters, key, continuation, count, signal }) {
    const values = parameters.map(({ name, value }) => `{"name":${JSON.stringify(name)},"value":${value}}`);
    const headers = {
      ...keyHeader(key),
      "content-type": "application/query+json",
      "x-ms-documentdb-isquery": "true",
      "x-ms-documentdb-query-enablecrosspartition": "true",
      "x-orrery-cross-partition-queries": "serve",
      "x-ms-documentdb-populatequerymetrics": "true",
      "x-orrery-explain": "true",
      "x-ms-max-item-count": String(count),
    };
    if (continuation) headers["x-ms-continuation"] = continuation;
    const response = await this.send("POST", ["dbs", db, "colls", coll, "docs"], {
      body: `{"query":${JSON.stringify(text)},"parameters":[${values.join(",")}]}`, headers, signal,
    });
    return {
      text: await response.text(),
      continuation: response.headers.get("x-ms-continuation"),
      charge: Number(response.headers.get("x-ms-request-charge") ?? 0),
      metrics: response.headers.get("x-ms-documentdb-query-metrics"),
      explanation: response.headers.get("x-orrery-explain"),
    };
  }

  /** Names a document by its _self where known (ids may have characters that no URL can), else by id. */
  #document(verb, where, options) {
    return where.self
      ? this.sendTo(verb, where.self, options)
      : this.send(verb, ["dbs", where.db, "colls", where.coll, "docs", where.id], options);
  }
  async readDocument(where) {
    return (await this.#document("GET", where, { headers: keyHeader(where.key) })).text();
  }
  async createDocument(db, coll, key, text) {
    const response = await this.send("POST", ["dbs", db, "colls", coll, "docs"], {
      body: text, headers: { ...keyHeader(key), "content-type": "application/json" },
    });
    return response.text();
  }
  async replaceDocument(where, etag, text) {
    const response = await this.#document("PUT", where, {
      body: text,
      headers: { ...keyHeader(where.key), "content-type": "application/json", "if-match": etag },
    });
    return response.text();
  }
  async deleteDocument(where, etag) {
    await this.#document("DELETE", where, { headers: { ...keyHeader(where.key), "if-match": etag } });
  }

  /** One request of the change feed; the caller reads the response. */
  changes(db, coll, headers, signal) {
    return this.send("GET", ["dbs", db, "colls", coll, "docs"], { headers, signal });
  }
}

const sorted = (resources) => resources.sort((a, b) => a.id.localeCompare(b.id));
const keyHeader = (key) => (key === undefined ? {} : { "x-ms-documentdb-partitionkey": ascii(key) });
const jsonBody = (value) => ({
  body: JSON.stringify(value), headers: { "content-type": "application/json" },
});
