// The query box of a container: text and parameters, rows as a table or as JSON, and how they were found.

import { announce, coloured, errorBox, h, icon, plural } from "./dom.js";
import { compact, member, parse, partitionKeyOf, pretty, toValue } from "./json.js";
import { explain, parseExplanation, parseMetrics } from "./explain.js";
import { routeTo } from "./route.js";
import { SYSTEM } from "./editor.js";

const PAGE = 100;
const FIRST_TEXT = "SELECT * FROM c";
const VIEW = "orrery.query.view";

export class QueryTab {
  #app;
  #route;
  #paths;
  #text;
  #parameters;
  #key;
  #run;
  #problem = h("div");
  #status = h("p.query-status", { role: "status" });
  #views;
  #results = h("div.results");
  #paging = h("nav.paging", { "aria-label": "Pages", hidden: true });
  #words = h("ul.explanation");
  // Folded where it would leave no room for the rows.
  #found = h("details.found", { hidden: true, open: window.matchMedia("(min-width: 761px)").matches }, h("summary", {}, "How the rows were found"), this.#words);
  #starts = [undefined]; // continuation of each page up to this one
  #rows;
  #running;

  constructor(app, route, container) {
    this.#app = app;
    this.#paths = container.partitionKey?.systemKey ? [] : container.partitionKey?.paths ?? [];
    const field = (name, value, extra) => h("textarea", { name, value, autocomplete: "off", autocapitalize: "off", spellcheck: "false", ...extra });
    this.#text = field("query", route.q ?? FIRST_TEXT, { rows: "5", "aria-label": "Query", placeholder: FIRST_TEXT });
    this.#parameters = field("parameters", route.parameters ?? "", { rows: "3", placeholder: "{ \"@kind\": \"moon\", \"@min\": 10 }" });
    this.#key = h("input", { name: "key", value: route.key ?? "", autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder: "\"jupiter\"" });
    this.#run = h("button.primary", { type: "submit", title: "Run the query (Ctrl Enter)" });
    this.#views = ["Table", "JSON"].map((view) => h("button.plain", { type: "button", "data-view": view, onclick: () => {
      sessionStorage.setItem(VIEW, view);
      this.#draw();
    } }, view));
    this.element = h("div.query-tab", {},
      h("form.ask", { onsubmit: (event) => {
        event.preventDefault();
        if (this.#running) this.#stop();
        else this.#go();
      }, onkeydown: (event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        this.#go();
      } },
      this.#text,
      h("details", { open: Boolean(route.parameters || route.key) }, h("summary", {}, "Parameters and partition key"),
        h("label.field", {}, h("span", {}, "Parameters, as a JSON object"), this.#parameters),
        h("label.field", {}, h("span", {}, "Only one partition key, as JSON"), this.#key)),
      h("div.toolbar", {}, this.#run, h("span.hint.wide", {}, h("kbd", {}, "Ctrl"), h("kbd", {}, "Enter")), h("span.grow"),
        h("div.views", { role: "group", "aria-label": "Show rows as" }, this.#views))),
      this.#problem, this.#status, this.#found, this.#results, this.#paging);
    this.#drawRun();
    this.#begin(route);
  }

  /** Another query on the same page: from the address, or from the button. */
  update(route) {
    this.#text.value = route.q ?? FIRST_TEXT;
    this.#parameters.value = route.parameters ?? "";
    this.#key.value = route.key ?? "";
    this.#begin(route);
    return true;
  }
  leave() {
    this.#stop();
  }
  refresh() {
    if (this.#route.q) this.#read();
  }
  focusFilter() {
    this.#text.focus();
    this.#text.select();
  }
  #begin(route) {
    this.#route = route;
    this.#starts = [undefined];
    if (route.q) this.#read();
  }
  /** The address names the query, so that a bookmark or the way back leads to it. */
  #go() {
    const { db, coll } = this.#route;
    this.#app.go({ db, coll, tab: "query", q: this.#text.value, parameters: this.#parameters.value.trim(), key: this.#key.value.trim() });
  }
  #stop() {
    this.#running?.abort();
    this.#running = undefined;
    this.#drawRun();
  }
  #drawRun() {
    this.#run.replaceChildren(icon(this.#running ? "pause" : "play"), this.#running ? "Stop" : "Run");
    this.#results.toggleAttribute("aria-busy", Boolean(this.#running));
  }

  // ── Asking ────────────────────────────────────────────────────────────────────────────────────

  async #read() {
    this.#stop();
    const running = this.#running = new AbortController();
    this.#drawRun();
    this.#problem.replaceChildren();
    this.#status.textContent = "Running…";
    const { db, coll, q: text, parameters, key } = this.#route;
    const begun = performance.now();
    let charge = 0;
    try {
      const query = {
        text, parameters: parseParameters(parameters), key: parseKey(key), count: PAGE,
        continuation: this.#starts.at(-1), signal: running.signal,
      };
      let page;
      do {
        // A page may be empty although rows follow.
        page = await this.#app.client.query(db, coll, { ...query, continuation: page?.continuation ?? query.continuation });
        charge += page.charge;
        this.#rows = member(parse(page.text), "Documents").items;
      } while (!this.#rows.length && page.continuation);
      if (this.#running !== running) return;
      const took = performance.now() - begun;
      this.#status.textContent = `${plural(this.#rows.length, "row")}${page.continuation ? " on this page" : ""} · ${charge.toFixed(2)} RU · ${took.toFixed(1)} ms`;
      announce(`${plural(this.#rows.length, "row")}.`, { visible: false });
      this.#draw();
      this.#drawPaging(page.continuation);
      this.#words.replaceChildren(...explain(parseExplanation(page.explanation), parseMetrics(page.metrics)).map((words) => h("li", {}, words)));
      this.#found.hidden = false;
    } catch (error) {
      if (error.name === "AbortError" && this.#running !== running && this.#running) return;
      this.#fail(error);
    } finally {
      if (this.#running === running) this.#running = undefined;
      this.#drawRun();
    }
  }
  #fail(error) {
    this.#rows = undefined;
    this.#results.replaceChildren();
    this.#paging.hidden = true;
    this.#found.hidden = true;
    if (error.name === "AbortError") {
      this.#status.textContent = "Stopped.";
      return;
    }
    this.#status.textContent = "";
    if (error.status === 401) return this.#app.report("The query was not run.", error);
    const box = errorBox(error.title ?? (error.status === 400 ? "The server does not take this query." : "The query was not run."), error);
    if (error.location) {
      box.firstElementChild.append(mistake(this.#route.q, error.location));
      this.#text.focus();
      this.#text.setSelectionRange(error.location.start, Math.max(error.location.end, error.location.start + 1));
    }
    this.#problem.replaceChildren(box);
    return undefined;
  }

  // ── Showing ───────────────────────────────────────────────────────────────────────────────────

  #draw() {
    const view = sessionStorage.getItem(VIEW) ?? "Table";
    for (const button of this.#views) button.setAttribute("aria-pressed", String(button.dataset.view === view));
    if (!this.#rows) return;
    if (!this.#rows.length) this.#results.replaceChildren(h("p.hollow", {}, "No rows."));
    else if (view === "JSON") {
      this.#results.replaceChildren(h("pre.json", { tabindex: "0", "aria-label": "Rows as JSON" },
        coloured(this.#rows.map((row) => pretty(row)).join("\n"))));
    } else this.#results.replaceChildren(this.#table());
  }
  #drawPaging(continuation) {
    const page = this.#starts.length;
    const step = (label, act) => h("button", { type: "button", disabled: !act, onclick: act && (() => { act(); this.#read(); }) }, label);
    this.#paging.hidden = page === 1 && !continuation;
    this.#paging.replaceChildren(
      step("Previous", page > 1 && (() => this.#starts.pop())),
      h("span", {}, `Page ${page}`),
      step("Next", continuation && (() => this.#starts.push(continuation))));
  }
  #table() {
    const rows = this.#rows.map((row) => new Map(row.type !== "object" ? [[undefined, row]]
      : row.members.filter(({ key }) => !isDocument(row) || !SYSTEM.has(key)).map(({ key, value }) => [key, value])));
    // In the order of appearance; rows that are no objects have one column, which is no member's.
    const columns = [...new Set(rows.flatMap((row) => [...row.keys()]))];
    const cell = (node, column, at) => {
      if (!node) return h("td");
      const text = node.type === "string" ? JSON.parse(node.raw) : node.raw ?? compact(node);
      const link = column === "id" && isDocument(this.#rows[at]) && h("a", { href: this.#placeOf(this.#rows[at]) }, text);
      return h(`td.${node.type}`, { title: text }, link || text);
    };
    return h("div.table-wrap", { tabindex: "0", role: "region", "aria-label": "Rows" }, h("table.rows", {},
      h("thead", {}, h("tr", {}, columns.map((name) =>
        h(rows.every((row) => (row.get(name) ?? { type: "number" }).type === "number") ? "th.number" : "th", { scope: "col" }, name ?? "value")))),
      h("tbody", {}, rows.map((row, at) => h("tr", {}, columns.map((column) => cell(row.get(column), column, at)))))));
  }
  #placeOf(document) {
    const { db, coll } = this.#route;
    return routeTo({ db, coll, tab: "documents", id: toValue(member(document, "id")),
      key: this.#paths.length ? partitionKeyOf(document, this.#paths) : undefined, rid: toValue(member(document, "_rid")) });
  }
}

/** Whether a row is a document as it is stored. */
const isDocument = (row) => ["id", "_rid", "_self", "_etag"].every((name) => member(row, name)?.type === "string");

/** What the fields say, or an error that says what is wrong with them. */
function parseField(title, text) {
  try {
    return parse(text);
  } catch (error) {
    throw Object.assign(new Error(error.message), { title });
  }
}
function parseParameters(text) {
  if (!text) return [];
  const title = "The parameters are no JSON object.";
  const node = parseField(title, text);
  if (node.type !== "object") throw Object.assign(new Error("They look like this: { \"@kind\": \"moon\", \"@min\": 10 }"), { title });
  return node.members.map(({ key, value }) => ({ name: key.startsWith("@") ? key : `@${key}`, value: compact(value) }));
}
function parseKey(text) {
  if (!text) return undefined;
  const node = parseField("The partition key is no JSON.", text);
  return node.type === "array" ? compact(node) : `[${compact(node)}]`;
}

/** The line of the text that the mistake is in, with the mistake marked. */
function mistake(text, { start, end }) {
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  const lineEnd = text.indexOf("\n", start) < 0 ? text.length : text.indexOf("\n", start);
  const to = Math.min(Math.max(end, start), lineEnd);
  return h("pre.mistake", {}, text.slice(lineStart, start), h("mark", {}, text.slice(start, to) || " "), text.slice(to, lineEnd));
}
