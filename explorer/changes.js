// The change feed, live: what to watch, how it goes, and the last changes, newest first.

import { Feed } from "./feed.js";
import { announce, clock, coloured, difference, errorBox, h, icon, plural, stamp } from "./dom.js";
import { compact, partitionKeyOf, pathSegments, pretty, without } from "./json.js";
import { SYSTEM } from "./editor.js";
import { routeTo } from "./route.js";

const ROWS_MAX = 500;
const PENDING_MAX = 4 * ROWS_MAX; // while no frame is drawn
const BODY_MAX = 400;
const SAY_MS = 3000;
const ROW_WITHOUT = new Set([...SYSTEM, "id"]);
const WORDS = { create: "created", replace: "replaced", delete: "deleted", change: "changed" };
const TRANSPORTS = { stream: "stream", wait: "long poll", poll: "polling" };
const STATES = { live: "Live", reading: "Reading", paused: "Paused", retrying: "Trying again", failed: "Stopped" };

export class ChangesTab {
  #app;
  #route;
  #feed;
  #rows = []; // the newest that came, newest first
  #latest = new Map(); // the last item of each document, by #nameOf, of those in rows
  #pending = [];
  #unsaid = 0;
  #seen = 0;
  #arrivals = 0;
  #frame = 0;
  #said = 0;
  #sayTimer;
  #list = h("ol.changes", { "aria-label": "Changes, newest first" });
  #empty = h("p.hollow", {}, "Waiting for changes…");
  #status = h("p.feed-status", { role: "status" });
  #positions = h("ul.positions", { "aria-label": "Positions" });
  #problem = h("div");
  #pauseButton;
  #filter;
  #paths;
  #hidden = () => this.#feed?.setHidden(document.visibilityState === "hidden");

  constructor(app, route, container, ranges) {
    this.#app = app;
    this.#route = route;
    this.#paths = container.partitionKey?.systemKey ? [] : container.partitionKey?.paths ?? [];
    const policy = container.changeFeedPolicy ?? {};
    const keepsAll = policy.retentionDuration > 0;
    this.keepsDeletes = keepsAll || Boolean(policy.tombstoneDuration);
    const mode = keepsAll && route.mode === "all" ? "all" : "latest";
    const from = mode === "all" ? "now" : ["beginning", "time"].includes(route.from) ? route.from : "now";
    const choose = (change) => app.go({ ...this.#place(), ...change });
    const select = (label, name, options, chosen, extra = {}) => {
      const element = h("select", { name, "aria-label": label, onchange: () => choose({ [name]: element.value || undefined,
        ...(name === "from" && { time: element.value === "time" ? localNow(-3600) : undefined }) }), ...extra },
        options.map(([value, text]) => h("option", { value, selected: value === (chosen ?? "") }, text)));
      return h("label.inline", {}, h("span", {}, label), element);
    };

    this.#filter = h("input.filter", { name: "filter", value: route.filter ?? "", placeholder: "c.status = \"open\" AND c.total > 100",
      "aria-label": "Filter", "aria-describedby": "filter-hint", autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "go" });
    const time = h("input", { type: "datetime-local", step: "1", "aria-label": "Time to start from", value: route.time ?? localNow(-3600),
      onchange: () => choose({ from: "time", time: time.value }) });
    this.#pauseButton = h("button", { type: "button", title: "Pause or go on (p)", onclick: () => this.togglePause() });
    this.element = h("div.changes-tab", {},
      h("form.watch", { onsubmit: (event) => {
        event.preventDefault();
        choose({ filter: this.#filter.value.trim() || undefined });
      } },
      h("div.filter-row", {}, h("span.prefix", { "aria-hidden": "true" }, "WHERE"), this.#filter,
        route.filter && h("button.plain.square", { type: "button", "aria-label": "Remove the filter", onclick: () => choose({ filter: undefined }) }, icon("close")),
        h("button", { type: "submit" }, "Apply")),
      h("p.hint", { id: "filter-hint" }, "A condition over the document ", h("code", {}, "c"), mode === "all" && [", or the one before, ", h("code", {}, "p")], ". The server applies it."),
      h("div.toolbar", {},
        select("From", "from", mode === "all" ? [["", "now on"]] : [["", "now on"], ["beginning", "the beginning"], ["time", "a time"]], from === "now" ? "" : from,
          { disabled: mode === "all" }),
        from === "time" && time,
        select("Of", "range", [["", "all ranges"], ...ranges.map((r) => [r.id, `range ${r.id}`])], route.range),
        keepsAll && select("Show", "mode", [["", "latest versions"], ["all", "all versions and deletes"]], mode === "all" ? "all" : ""),
        h("span.grow"),
        h("button", { type: "button", onclick: () => this.#clear() }, "Clear"), this.#pauseButton)),
      this.#problem,
      h("div.feed-bar", {}, orbit(), this.#status, this.#positions),
      this.#empty, this.#list);

    this.#feed = new Feed(app.client, { db: route.db, coll: route.coll }, {
      mode, filter: route.filter, rangeId: route.range, deletes: this.keepsDeletes,
      start: from === "time" ? { from, time: new Date(route.time ?? localNow(-3600)) } : { from },
    }, { items: (items) => this.#take(items), state: (state) => this.#state(state) });
    document.addEventListener("visibilitychange", this.#hidden);
    this.#drawState();
    this.#feed.start();
    this.#hidden();
  }
  #place() {
    const { db, coll, tab, range, from, time, filter, mode } = this.#route;
    return { db, coll, tab, range, from, time, filter, mode };
  }
  leave() {
    this.#feed.stop();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#sayTimer);
    document.removeEventListener("visibilitychange", this.#hidden);
  }
  refresh() {
    this.#app.go(this.#place());
  }
  focusFilter() {
    this.#filter.focus();
    this.#filter.select();
  }
  togglePause() {
    this.#feed.paused ? this.#feed.resume() : this.#feed.pause();
  }
  #clear() {
    this.#rows = [];
    this.#pending = [];
    this.#latest.clear();
    this.#list.replaceChildren();
    this.#seen = 0;
    this.#count();
  }

  // ── How it goes ───────────────────────────────────────────────────────────────────────────────

  #last = { state: "reading", ranges: [] };
  #state(description) {
    this.#last = description;
    this.#soon();
  }
  /** A frame at a time: a feed can be faster than a screen. While the page is hidden frames wait, and the bounds hold. */
  #soon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#pending.length) this.#flush();
      this.#drawState();
    });
  }
  #drawState() {
    const { state, error, ranges } = this.#last;
    this.element.dataset.state = state;
    const paused = this.#feed?.paused;
    this.#pauseButton.replaceChildren(icon(paused ? "play" : "pause"), paused ? "Go on" : "Pause");
    this.#pauseButton.disabled = state === "failed";
    if (state === "failed" && error.status === 401) this.#app.report("The change feed has stopped.", error);
    this.#problem.replaceChildren(...(error && (state === "failed" || state === "retrying")
      ? [errorBox(state === "failed" ? (error.status === 400 && this.#route.filter ? "The server does not take this filter." : "The change feed has stopped.") : "The feed is interrupted; it goes on by itself.", error)]
      : []));
    this.#positions.replaceChildren(...ranges.map((range) => h("li", { title: range.transport ? `by ${TRANSPORTS[range.transport]}` : "" },
      `${range.id}${range.whole ? "" : " (part)"}`, h("b", {}, `@${range.position ?? "0"}`))));
    this.#count();
  }
  #count() {
    const { state, ranges } = this.#last;
    const transports = [...new Set(ranges.map((range) => TRANSPORTS[range.transport]).filter(Boolean))];
    const note = this.keepsDeletes && this.#last.deletes === false ? "deletes are not kept that far back" : "";
    const text = [STATES[state], state === "live" && transports.length ? `by ${transports.join(" and ")}` : "",
      this.#seen ? plural(this.#seen, "change") + (this.#seen > ROWS_MAX ? `, the last ${ROWS_MAX} shown` : "") : "", note].filter(Boolean).join(" · ");
    if (this.#status.textContent !== text) this.#status.textContent = text;
    this.#empty.hidden = this.#rows.length > 0 || state === "failed";
    this.#empty.textContent = state === "paused" ? "Paused." : "Waiting for changes…";
  }

  // ── The rows ──────────────────────────────────────────────────────────────────────────────────

  #take(items) {
    for (const item of items) this.#pending.push({ ...item, arrival: this.#arrivals++ });
    this.#seen += items.length;
    if (this.#pending.length > PENDING_MAX) this.#pending = newestFirst(this.#pending).slice(0, ROWS_MAX);
    this.#unsaid += items.length;
    this.#soon();
  }
  /**
   * Puts those that wait among the rows. Ranges are read independently, so a range that is still far behind brings older
   * changes than those that stand there: they go below them, or are left out when there is no room.
   */
  #flush() {
    const shown = newestFirst([...this.#rows.map(({ item }) => item), ...this.#pending.splice(0)]).slice(0, ROWS_MAX);
    const rows = new Map(this.#rows.map((row) => [row.item, row]));
    let below = null;
    // From the oldest on: a version finds the one before it in #latest.
    this.#rows = shown.reverse().map((item) => {
      const row = rows.get(item) ?? this.#row(item);
      if (!rows.delete(item)) this.#list.insertBefore(row.element, below);
      below = row.element;
      return row;
    }).reverse();
    for (const [item, row] of rows) {
      row.element.remove();
      const name = this.#nameOf(item);
      if (this.#latest.get(name) === item) this.#latest.delete(name);
    }
    this.#say();
  }
  /** For ears: how many, now and then, not each. */
  #say() {
    if (this.#sayTimer) return;
    this.#sayTimer = setTimeout(() => {
      this.#sayTimer = undefined;
      announce(`${plural(this.#unsaid, "new change")}.`, { visible: false });
      this.#unsaid = 0;
    }, Math.max(0, this.#said + SAY_MS - performance.now()));
    this.#said = performance.now();
  }
  #row(item) {
    const name = this.#nameOf(item);
    const before = item.previous ?? this.#latest.get(name)?.current;
    this.#latest.set(name, item);
    const body = item.current ? compact(without(item.current, ROW_WITHOUT)).slice(0, BODY_MAX)
      : item.key ? compactKey(item.key) : "";
    const button = h("button.entry.change", { type: "button", "aria-expanded": "false", onclick: () => {
      const open = button.getAttribute("aria-expanded") === "false";
      button.setAttribute("aria-expanded", String(open));
      element.querySelector(".detail")?.remove();
      if (open) element.append(this.#detail(item, before));
    } },
    h("time", { datetime: new Date(item.time * 1000).toISOString(), title: stamp(item.time) }, clock(item.time)),
    h("span.where", { title: `Range ${item.range}, LSN ${item.lsn}` }, h("span.quiet-word", {}, "range "), item.range, h("i", {}, "@"), item.lsn),
    h(`span.operation.${item.operation}`, {}, item.expired ? "expired" : WORDS[item.operation]),
    h("b", {}, item.id), h("code", {}, body));
    const element = h("li", {}, button);
    return { item, element };
  }
  #detail(item, before) {
    const text = (node) => pretty(without(node, SYSTEM));
    const { db, coll } = this.#route;
    const rid = item.rid;
    const place = h("div.shown");
    const showDocument = () => place.replaceChildren(h("pre.json", { tabindex: "0", "aria-label": "Document" }, coloured(text(item.current))));
    const showDifference = () => place.replaceChildren(difference(before ? text(before) : "", item.current ? text(item.current) : ""));
    const both = before && item.current;
    const views = both && [["What changed", showDifference], ["Document", showDocument]].map(([label, act], at, all) =>
      h("button.plain", { type: "button", "aria-pressed": String(at === 0), onclick: (event) => {
        for (const other of event.target.parentElement.querySelectorAll("[aria-pressed]")) other.setAttribute("aria-pressed", String(other === event.target));
        act(all);
      } }, label));
    if (both) showDifference();
    else if (item.current) showDocument();
    else if (before) showDifference();
    else place.replaceChildren(h("p", {}, "The document is gone; its last content was not kept."));
    return h("div.detail", {},
      h("div.detail-head", {}, views,
        h("span", {}, `${stamp(item.time)} · range ${item.range} · LSN ${item.lsn}`),
        item.current && rid && h("a", { href: routeTo({ db, coll, tab: "documents", id: item.id, key: this.#keyOf(item), rid }) }, "Open")),
      place);
  }
  /** Id and partition key: a delete has no more than these. */
  #nameOf(item) {
    const key = item.current ? this.#keyOf(item)
      : JSON.stringify(this.#paths.map((path) => item.key?.[pathSegments(path).join("/")] ?? {}));
    return `${item.id}\n${key}`;
  }
  #keyOf(item) {
    return this.#paths.length ? partitionKeyOf(item.current, this.#paths) : undefined;
  }
}

/** By time, then LSN; those of one transaction as they came. Of a range that is the order of its feed. */
function newestFirst(items) {
  return items.sort((a, b) => b.time - a.time || b.lsn - a.lsn || b.arrival - a.arrival);
}

const compactKey = (key) => Object.entries(key).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ");

/** The local time, some seconds off, as a datetime-local field has it. */
function localNow(offset) {
  return stamp(Date.now() / 1000 + offset).replace(" ", "T");
}

/** A planet that circles while the feed is live. */
function orbit() {
  return h("span.orbit", { "aria-hidden": "true" }, h("i"));
}
