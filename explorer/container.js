// The page of a container: its five tabs. Ranges and settings are here, the others in files of their own.

import { h, icon, plural, stamp, coloured } from "./dom.js";
import { TABS, routeTo } from "./route.js";
import { deleteContainer } from "./account.js";
import { DocumentsTab } from "./documents.js";
import { ChangesTab } from "./changes.js";
import { QueryTab } from "./query.js";

const TITLES = { documents: "Documents", query: "Query", changes: "Changes", ranges: "Ranges", settings: "Settings" };
const CLASSES = { documents: DocumentsTab, query: QueryTab, changes: ChangesTab };

export class ContainerPage {
  #app;
  #route;
  #place = h("div.tab");
  #links;

  constructor(app, route) {
    this.#app = app;
    this.#route = route;
    const { db, coll } = route;
    this.#links = TABS.map((tab) => h("a", { href: routeTo({ db, coll, tab }), "data-tab": tab }, TITLES[tab]));
    this.element = h("div.page.container-page", {},
      h("nav.crumbs", { "aria-label": "Where you are" }, h("a", { href: "#/" }, "Account"), h("a", { href: routeTo({ db }) }, db)),
      h("div.page-head", {}, h("h1", {}, coll)),
      h("nav.tabs", { "aria-label": "Parts of the container" }, this.#links),
      h("div.errors"), this.#place);
    this.#open();
  }
  /** True if the page only had to turn to another tab or place of the same container. */
  update(route) {
    if (route.db !== this.#route.db || route.coll !== this.#route.coll) return false;
    const sameTab = route.tab === this.#route.tab;
    this.#route = route;
    if (this.element.querySelector(".errors")) this.element.querySelector(".errors").replaceChildren();
    if (sameTab && this.#tab?.update?.(route)) return true;
    this.#open();
    return true;
  }
  leave() {
    this.#left = true;
    this.#tab?.leave?.();
  }
  mayLeave(route) {
    return this.#tab?.mayLeave?.(route) ?? true;
  }
  #tab;
  #left = false;
  #turn = 0;

  async #open() {
    const turn = ++this.#turn;
    this.#tab?.leave?.();
    this.#tab = undefined;
    this.#place.setAttribute("aria-busy", "true"); // What stands there is of before.
    for (const link of this.#links) {
      if (link.dataset.tab === this.#route.tab) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    try {
      const { db, coll } = this.#route;
      const [container, ranges] = await Promise.all([this.#app.client.container(db, coll), this.#app.client.ranges(db, coll)]);
      if (turn !== this.#turn || this.#left) return;
      const Tab = CLASSES[this.#route.tab] ?? (this.#route.tab === "ranges" ? RangesTab : SettingsTab);
      this.#tab = new Tab(this.#app, this.#route, container, ranges);
      this.#place.replaceChildren(this.#tab.element);
      this.#place.removeAttribute("aria-busy");
    } catch (error) {
      if (turn !== this.#turn) return;
      this.#place.replaceChildren();
      this.#place.removeAttribute("aria-busy");
      this.#app.report(error.status === 404 ? `There is no container ${this.#route.coll} in ${this.#route.db}.` : "The container could not be read.", error);
    }
  }

  // What the keys reach.
  refresh() {
    if (this.#tab?.refresh) this.#tab.refresh();
    else this.#open();
  }
  create() { this.#tab?.create?.(); }
  save() { return this.#tab?.save?.(); }
  escape() { return this.#tab?.escape?.(); }
  togglePause() { this.#tab?.togglePause?.(); }
  get changed() { return Boolean(this.#tab?.changed); }
  focusFilter() {
    if (this.#tab?.focusFilter) this.#tab.focusFilter();
    else this.#app.go({ db: this.#route.db, coll: this.#route.coll, tab: "changes" });
  }
}

/** Where an EPK lies in the key space, 0 to 1. */
function place(epk, version) {
  if (epk === "") return 0;
  if (epk === "FF") return 1;
  if (version === 1) return numberOf(epk) / 0xffffffff;
  return parseInt(epk.slice(0, 8).padEnd(8, "0"), 16) / 0x40000000;
}

/**
 * The 32-bit hash that an EPK of version 1 begins with: the tag 05 and a double whose sign bit is turned, as one byte and
 * then groups of seven bits, each in the high bits of a byte whose low bit says that more follow (src/protocol/epk.cc).
 */
function numberOf(epk) {
  const bytes = epk.match(/../g).slice(1).map((byte) => parseInt(byte, 16));
  let bits = BigInt(bytes[0]) << 56n;
  let shift = 49n;
  for (const byte of bytes.slice(1)) {
    bits |= BigInt(byte >> 1) << shift;
    shift -= 7n;
    if (!(byte & 1)) break;
  }
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits ^ (1n << 63n));
  return view.getFloat64(0);
}

class RangesTab {
  constructor(app, { db, coll }, container, ranges) {
    const version = container.partitionKey?.version ?? 1;
    const statistics = new Map((container.statistics ?? []).map((s) => [s.id, s]));
    const hex = (epk) => h("code", { title: epk || "the lowest" }, epk === "" ? "lowest" : epk === "FF" ? "highest" : epk.length > 14 ? `${epk.slice(0, 12)}…` : epk);
    const bar = h("div.keyspace", { role: "img", "aria-label": `${plural(ranges.length, "range")} share the key space` }, ranges.map((range) => {
      const share = place(range.maxExclusive, version) - place(range.minInclusive, version);
      const part = h("span", {}, range.id);
      part.style.flexGrow = String(Math.max(share, 0.004));
      return part;
    }));
    this.element = h("div.ranges", {},
      h("p", {}, `Documents are spread over ${plural(ranges.length, "range")} by the hash of their partition key. Each range has a change feed of its own.`),
      bar,
      h("div.table-wrap", { tabindex: "0", role: "region", "aria-label": "Ranges" }, h("table", {},
        h("thead", {}, h("tr", {}, ["Range", "From", "To", "Documents", "Size", "Came from", ""].map((title) => h("th", { scope: "col" }, title)))),
        h("tbody", {}, ranges.map((range) => {
          const figures = statistics.get(range.id);
          return h("tr", {}, h("th", { scope: "row" }, range.id), h("td", {}, hex(range.minInclusive)), h("td", {}, hex(range.maxExclusive)),
            h("td.number", {}, figures ? figures.documentCount.toLocaleString("en") : "–"),
            h("td.number", {}, figures ? `${figures.sizeInKB.toLocaleString("en")} KB` : "–"),
            h("td", {}, range.parents?.length ? range.parents.join(", ") : "–"),
            h("td.links", {}, h("a.entry", { href: routeTo({ db, coll, tab: "documents", range: range.id }), "aria-label": `Documents of range ${range.id}` }, "Documents"),
              h("a", { href: routeTo({ db, coll, tab: "changes", range: range.id }), "aria-label": `Watch range ${range.id}` }, "Watch")));
        })))));
  }
}

class SettingsTab {
  constructor(app, { db, coll }, container, ranges) {
    const policy = container.changeFeedPolicy ?? {};
    const count = (container.statistics ?? []).reduce((sum, s) => sum + s.documentCount, 0);
    const kept = (minutes) => (minutes === -1 ? "for ever" : minutes ? plural(minutes, "minute") : "not");
    const throughput = h("dd", {}, "…");
    const { statistics, ...definition } = container;
    this.element = h("div.settings", {},
      h("dl.facts", {},
        h("dt", {}, "Partition key"), h("dd", {}, container.partitionKey ? [h("code", {}, container.partitionKey.paths.join(", ")), ` ${container.partitionKey.kind ?? "Hash"}, version ${container.partitionKey.version ?? 1}`] : "none"),
        h("dt", {}, "Documents"), h("dd", {}, `${count.toLocaleString("en")} in ${plural(ranges.length, "range")}`),
        h("dt", {}, "Throughput"), throughput,
        h("dt", {}, "Time to live"), h("dd", {}, container.defaultTtl === undefined ? "off" : container.defaultTtl === -1 ? "as each document says" : plural(container.defaultTtl, "second")),
        h("dt", {}, "All versions"), h("dd", {}, policy.retentionDuration ? `kept ${kept(policy.retentionDuration)}` : "not kept"),
        h("dt", {}, "Deletes"), h("dd", {}, policy.tombstoneDuration || policy.retentionDuration ? `kept ${kept(policy.tombstoneDuration || policy.retentionDuration)}` : "not kept"),
        h("dt", {}, "Unique keys"), h("dd", {}, container.uniqueKeyPolicy?.uniqueKeys?.length ? container.uniqueKeyPolicy.uniqueKeys.map((key) => h("div", {}, h("code", {}, key.paths.join(", ")))) : "none"),
        h("dt", {}, "Changed"), h("dd", {}, stamp(container._ts)),
        h("dt", {}, "Resource id"), h("dd", {}, h("code", {}, container._rid))),
      h("details", { open: true }, h("summary", {}, "The whole definition"),
        h("pre.json", { tabindex: "0", "aria-label": "Definition as JSON" }, coloured(JSON.stringify(definition, null, 2)))),
      h("div.danger-zone", {}, h("p", {}, "Deleting the container deletes its documents and its change feed."),
        h("button.danger", { type: "button", onclick: () => deleteContainer(app, db, coll) }, icon("trash"), "Delete container")));
    app.client.offer(container._rid).then((offer) => {
      const content = offer?.content ?? {};
      throughput.textContent = !offer ? "shared with the database" : content.offerAutopilotSettings
        ? `autoscale to ${content.offerAutopilotSettings.maxThroughput.toLocaleString("en")} RU/s`
        : `${(content.offerThroughput ?? 0).toLocaleString("en")} RU/s`;
    }, () => { throughput.textContent = "unknown"; });
  }
}
