// Follows the change feed of a container, all its ranges at once or one. Knows nothing of the page.
//
// Each range has a follower with a position, the etag of what it has handed on. Whatever interrupts
// it, a pause, a lost connection, a split, it goes on from there: nothing is missed, nothing comes
// twice. A follower holds a stream (application/x-ndjson) where the server has them, else waits in
// long polls (Prefer: wait), else asks every second.

import { ApiError } from "./client.js";
import { member, parse, toValue } from "./json.js";

// A browser opens six connections to a server, for all its tabs together.
const STREAMS_MAX = 3;
const POLLS_MAX = 2;
const PAGE_ITEMS = 100;
const WAIT_SECONDS = 30;
const POLL_MS = 1000;
const HIDDEN_POLL_MS = 5000;
const RETRY_MS_MAX = 10_000;
const SILENCE_MS_MAX = 60_000; // the server's heartbeat comes far more often
const SPLIT_MS = 200;
const SHORT_STREAM_MS = 1000;

const aborted = (error) => error?.name === "AbortError";
/** Trying again would give the same answer. */
const isFinal = (error) =>
  !(error instanceof ApiError)
  || (error.status >= 400 && error.status < 500 && ![408, 410, 429, 449].includes(error.status));

/** One change, of either mode, wrapped or bare. */
function toItem(node, range) {
  const metadata = toValue(member(node, "metadata"));
  const current = metadata ? member(node, "current") : node;
  const isDelete = metadata ? metadata.operationType === "delete" : Boolean(toValue(member(node, "_deleted")));
  return {
    range,
    lsn: metadata?.lsn ?? toValue(member(node, "_lsn")),
    time: metadata?.crts ?? toValue(member(node, "_ts")),
    operation: isDelete ? "delete" : (metadata?.operationType ?? "change"),
    expired: Boolean(metadata?.timeToLiveExpired),
    id: metadata?.id ?? toValue(member(current, "id")) ?? "",
    rid: toValue(member(current, "_rid")),
    key: metadata?.partitionKey,
    current: current?.members?.length ? current : undefined,
    previous: member(node, "previous"),
  };
}

export class Feed {
  #client;
  #where;
  #options;
  #tell;
  #followers = [];
  #stopped = false;
  #paused = false;
  #hidden = false;
  #polls = 0;
  #pollQueue = [];
  #wake = [];
  #error;

  /**
   * options: mode "latest" | "all", start {from: "now" | "beginning" | "time", time?: Date}, filter, rangeId
   * (undefined: all), deletes (ask for tombstones). tell: items(list), state(description).
   */
  constructor(client, where, options, tell) {
    this.#client = client;
    this.#where = where;
    this.#options = options;
    this.#tell = tell;
  }

  async start() {
    try {
      const ranges = await this.#ranges();
      const chosen = this.#options.rangeId === undefined
        ? ranges : ranges.filter((range) => range.id === this.#options.rangeId);
      if (!chosen.length) {
        throw new ApiError({ message: `There is no range ${this.#options.rangeId} any more: it has been split or merged.` });
      }
      if (this.#stopped) return;
      for (const range of chosen) {
        this.#add({ id: range.id, min: range.minInclusive, max: range.maxExclusive, whole: true, etag: undefined,
          placed: this.#options.start.from === "beginning" });
      }
    } catch (error) {
      this.#fail(error);
    }
  }
  stop() {
    this.#stopped = true;
    this.#interrupt();
  }
  pause() {
    this.#paused = true;
    this.#interrupt();
    this.#report();
  }
  resume() {
    this.#paused = false;
    for (const wake of this.#wake.splice(0)) wake();
    this.#report();
  }
  get paused() {
    return this.#paused;
  }
  /** A page that nobody sees gives its connections to those that are looked at, and polls now and then. */
  setHidden(hidden) {
    if (this.#hidden === hidden) return;
    this.#hidden = hidden;
    if (!this.#paused) this.#interrupt();
  }

  // ── Followers ─────────────────────────────────────────────────────────────────────────────────

  #ranges() {
    return this.#client.ranges(this.#where.db, this.#where.coll);
  }
  #add(follower) {
    this.#followers.push({ transport: "stream", state: "reading", failures: 0, ...follower });
    this.#report();
    this.#follow(this.#followers.at(-1));
  }
  #interrupt() {
    for (const follower of this.#followers) follower.abort?.abort();
    if (this.#stopped) for (const wake of this.#wake.splice(0)) wake();
  }

  async #follow(follower) {
    while (!this.#stopped) {
      if (this.#paused) {
        await new Promise((resolve) => this.#wake.push(resolve));
        continue;
      }
      follower.abort = new AbortController();
      try {
        if (!follower.placed) await this.#place(follower);
        const streams = !this.#hidden && this.#followers.length <= STREAMS_MAX;
        if (streams && follower.transport === "stream") await this.#stream(follower);
        else await this.#page(follower, streams);
        follower.failures = 0;
      } catch (error) {
        if (aborted(error)) continue;
        if (error.status === 410) {
          if (await this.#replace(follower)) return;
          continue;
        }
        if (error.status === 400 && this.#options.deletes && this.#options.mode !== "all" && /retention period/.test(error.message)) {
          // Tombstones do not reach back that far. The documents do.
          this.#options = { ...this.#options, deletes: false };
          continue;
        }
        if (isFinal(error)) {
          this.#fail(error);
          return;
        }
        if (error.status === 429 && follower.transport === "stream") follower.transport = "wait";
        follower.failures++;
        this.#state(follower, "retrying", error);
        await this.#delay(follower, error.retryAfterMs
          || Math.min(RETRY_MS_MAX, 250 * 2 ** Math.min(follower.failures, 10)));
      }
    }
  }

  /** The range is gone: its children go on from here. False if there are none yet. */
  async #replace(follower) {
    let ranges;
    try {
      ranges = await this.#ranges();
    } catch (error) {
      if (isFinal(error)) this.#fail(error);
      ranges = [];
    }
    const heirs = ranges.filter((r) => r.minInclusive < follower.max && r.maxExclusive > follower.min);
    if (!heirs.length || heirs.some((r) => r.id === follower.id)) {
      await this.#delay(follower, SPLIT_MS);
      return this.#stopped;
    }
    this.#followers.splice(this.#followers.indexOf(follower), 1);
    for (const heir of heirs) {
      // Of a merged range only the part that was ours: the other has a follower of its own.
      const min = heir.minInclusive > follower.min ? heir.minInclusive : follower.min;
      const max = heir.maxExclusive < follower.max ? heir.maxExclusive : follower.max;
      this.#add({ id: heir.id, min, max, whole: min === heir.minInclusive && max === heir.maxExclusive,
        etag: follower.etag, placed: follower.placed });
    }
    return true;
  }

  // ── Requests ──────────────────────────────────────────────────────────────────────────────────

  #headers(follower) {
    const { mode, start, filter, deletes } = this.#options;
    const headers = {
      "a-im": mode === "all" ? "Full-Fidelity Feed" : "Incremental feed",
      "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15",
      "x-ms-documentdb-partitionkeyrangeid": follower.id,
      "x-ms-max-item-count": String(PAGE_ITEMS),
      // Merge-aware, and the start time counts on every page: after a merge older versions may follow.
      "x-ms-cosmos-sdk-supportedcapabilities": "3",
    };
    if (!follower.whole) {
      headers["x-ms-start-epk"] = follower.min;
      headers["x-ms-end-epk"] = follower.max;
      headers["x-ms-read-key-type"] = "EffectivePartitionKeyRange";
    }
    if (filter) headers["x-orrery-feed-filter"] = encodeURIComponent(filter);
    if (deletes && mode !== "all") headers["x-orrery-feed-deletes"] = "tombstones";
    if (follower.etag) headers["if-none-match"] = follower.etag;
    if (start.from === "time") headers["if-modified-since"] = start.time.toUTCString();
    return headers;
  }
  #request(follower, extra = {}) {
    return this.#client.changes(this.#where.db, this.#where.coll,
      { ...this.#headers(follower), ...extra }, follower.abort.signal);
  }

  /** "Now" and a time become a number at once, so that a lost connection cannot move them. */
  async #place(follower) {
    const now = this.#options.start.from === "now";
    const response = await this.#request(follower, now ? { "if-none-match": "*" } : {});
    await this.#take(follower, response);
    follower.placed = true;
  }

  async #page(follower, mayWait) {
    const wait = mayWait && follower.transport !== "poll";
    if (!wait) await this.#pollTurn();
    let response;
    try {
      // The first wait is short: its answer tells whether the server waits at all.
      response = await this.#request(follower, wait ? { prefer: `wait=${follower.waits ? WAIT_SECONDS : 1}` } : {});
      await this.#take(follower, response);
    } finally {
      if (!wait) this.#pollDone();
    }
    const held = wait && /\bwait\b/.test(response.headers.get("preference-applied") ?? "");
    follower.waits = held;
    this.#state(follower, response.status === 304 ? "live" : "reading", undefined, held ? "wait" : "poll");
    if (response.status === 304 && !held) {
      await this.#delay(follower, this.#hidden ? HIDDEN_POLL_MS : POLL_MS);
    }
  }

  async #stream(follower) {
    const opened = performance.now();
    const response = await this.#request(follower, { accept: "application/x-ndjson" });
    if (!response.headers.get("content-type")?.startsWith("application/x-ndjson")) {
      // An ordinary page: this server does not stream. What it sent counts all the same.
      follower.transport = "wait";
      await this.#take(follower, response);
      return;
    }
    this.#state(follower, "live", undefined, "stream");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let watchdog;
    let rest = "";
    try {
      for (;;) {
        watchdog = setTimeout(() => follower.abort.abort(), SILENCE_MS_MAX);
        let piece;
        try {
          piece = await reader.read();
        } catch (error) {
          if (aborted(error)) throw error;
          throw new ApiError({ message: "The connection was lost." });
        }
        clearTimeout(watchdog);
        if (piece.done) break;
        const lines = (rest + piece.value).split("\n");
        rest = lines.pop();
        for (const line of lines) if (line.trim()) this.#line(follower, line);
        if (follower.abort.signal.aborted) return;
      }
    } finally {
      clearTimeout(watchdog);
      reader.cancel().catch(() => {});
    }
    if (performance.now() - opened < SHORT_STREAM_MS) {
      throw new ApiError({ message: "The server closes the connection at once." });
    }
  }
  #line(follower, line) {
    const node = parse(line);
    this.#accept(follower, member(node, "Documents")?.items ?? [], toValue(member(node, "etag")));
    const event = toValue(member(node, "event"));
    if (event === "gone") throw new ApiError({ status: 410, substatus: 1002, message: "The range is gone." });
  }

  async #take(follower, response) {
    const etag = response.headers.get("etag");
    if (response.status === 304) {
      this.#accept(follower, [], etag);
      return;
    }
    const text = await response.text();
    this.#accept(follower, member(parse(text), "Documents")?.items ?? [], etag);
  }

  #accept(follower, nodes, etag) {
    if (this.#stopped) return;
    const items = nodes.map((node) => toItem(node, follower.id));
    if (etag) follower.etag = etag;
    if (items.length) this.#tell.items(items);
    this.#report();
  }

  // ── Waiting and telling ───────────────────────────────────────────────────────────────────────

  async #pollTurn() {
    while (this.#polls >= POLLS_MAX) await new Promise((resolve) => this.#pollQueue.push(resolve));
    this.#polls++;
  }
  #pollDone() {
    this.#polls--;
    this.#pollQueue.shift()?.();
  }
  #delay(follower, ms) {
    return new Promise((resolve) => {
      const signal = follower.abort.signal;
      if (signal.aborted) return resolve();
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      }, { once: true });
    });
  }
  #state(follower, state, error, transport) {
    follower.state = state;
    follower.error = error;
    follower.shown = transport ?? follower.shown;
    this.#report();
  }
  #fail(error) {
    if (this.#stopped) return;
    this.#error = error;
    this.#report();
    this.stop();
  }
  #report() {
    if (this.#stopped) return;
    const states = this.#followers.map((follower) => follower.state);
    const state = this.#error ? "failed" : this.#paused ? "paused"
      : states.includes("retrying") ? "retrying" : !states.length || states.includes("reading") ? "reading" : "live";
    this.#tell.state({
      state, deletes: this.#options.deletes,
      error: this.#error ?? this.#followers.find((follower) => follower.error)?.error,
      ranges: this.#followers.map(({ id, etag, whole, shown }) =>
        ({ id, whole, position: etag?.replace(/"/g, ""), transport: shown })),
    });
  }
}
