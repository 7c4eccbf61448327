// The signed client of tests in Node: the REST API, independent of the explorer's own code and of all SDKs.
//
//   const rest = new Rest(endpoint, key);
//   await rest.split(database, container, "0");

import { createHmac } from "node:crypto";

/** A partition key as its header wants it: JSON in ASCII. */
const keyHeader = (key) => ({
  "x-ms-documentdb-partitionkey":
    JSON.stringify(key).replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`),
});

export class Rest {
  constructor(endpoint, key) {
    this.endpoint = endpoint;
    this.key = Buffer.from(key, "base64");
  }

  /** The text of the answer; an Error with its `status` from 400 on. */
  async send(verb, path, options) {
    const response = await this.request(verb, path, options);
    const text = await response.text();
    if (response.status >= 400) {
      throw Object.assign(new Error(`${verb} ${path}: ${response.status} ${text}`), { status: response.status });
    }
    return text;
  }

  /** The answer as it came. */
  request(verb, path, { headers = {}, body } = {}) {
    const segments = path.split("/").filter(Boolean);
    const signed = segments.at(-2) === "operations" ? segments.slice(0, -2) : segments;
    const isList = signed.length % 2 === 1;
    const type = signed.at(isList ? -1 : -2);
    const link = (isList ? signed.slice(0, -1) : signed).join("/");
    const date = new Date().toUTCString();
    const payload = `${verb.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
    const signature = createHmac("sha256", this.key).update(payload).digest("base64");
    return fetch(new URL(segments.map(encodeURIComponent).join("/"), this.endpoint), {
      method: verb,
      body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
      headers: {
        "x-ms-version": "2020-07-15", "x-ms-date": date,
        authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`), ...headers,
      },
    });
  }

  database(id) {
    return this.send("POST", "dbs", { body: { id } });
  }
  container(db, id, more = {}, headers = {}) {
    return this.send("POST", `dbs/${db}/colls`, {
      headers, body: { id, partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 }, ...more },
    });
  }
  upsert(db, coll, document, key = [document.pk]) {
    return this.send("POST", `dbs/${db}/colls/${coll}/docs`, {
      body: document,
      headers: { "x-ms-documentdb-is-upsert": "true", ...keyHeader(key) },
    });
  }
  raw(db, coll, text, key) {
    return this.send("POST", `dbs/${db}/colls/${coll}/docs`, {
      body: text, headers: { "x-ms-documentdb-is-upsert": "true", ...keyHeader(key) },
    });
  }
  read(db, coll, id, pk) {
    return this.send("GET", `dbs/${db}/colls/${coll}/docs/${id}`, {
      headers: keyHeader([pk]),
    });
  }
  remove(db, coll, id, pk) {
    return this.send("DELETE", `dbs/${db}/colls/${coll}/docs/${id}`, {
      headers: keyHeader([pk]),
    });
  }
  split(db, coll, range) {
    return this.send("POST", `dbs/${db}/colls/${coll}/operations/split`, { body: { range } });
  }
  merge(db, coll, ranges) {
    return this.send("POST", `dbs/${db}/colls/${coll}/operations/merge`, { body: { ranges } });
  }
  ranges(db, coll) {
    return this.send("GET", `dbs/${db}/colls/${coll}/pkranges`).then((text) => JSON.parse(text).PartitionKeyRanges);
  }
}
