// The documents of a container, page by page, and beside them the one that is open.

import { announce, errorBox, h, icon, plural, time } from "./dom.js";
import { routeTo } from "./route.js";
import { compact, keyText, member, parse, partitionKeyOf, toValue, without } from "./json.js";
import { Editor, SYSTEM } from "./editor.js";

const PAGE = 50;
const SNIPPET_MAX = 240;

/** How many documents the ranges have, or the one that is named. */
const countOf = (statistics = [], range) => statistics.filter(({ id }) => range === undefined || id === range)
  .reduce((sum, { documentCount }) => sum + documentCount, 0);

export class DocumentsTab {
  #app;
  #route;
  #paths;
  #list = h("ul.documents", { "aria-label": "Documents" });
  #count = h("span.count");
  #paging = h("nav.paging", { "aria-label": "Pages" });
  #beside = h("div.beside", { hidden: true });
  #editor;
  #container;
  #starts = [undefined]; // continuation of each page up to this one
  #turn = 0;

  constructor(app, route, container, ranges) {
    this.#app = app;
    this.#route = route;
    this.#container = container;
    this.#paths = container.partitionKey?.systemKey ? [] : container.partitionKey?.paths ?? [];
    const range = h("select", { "aria-label": "Range", onchange: () => app.go({ ...this.#base(), range: range.value }) },
      h("option", { value: "" }, "All ranges"),
      ranges.map((r) => h("option", { value: r.id, selected: r.id === route.range }, `Range ${r.id}`)));
    this.element = h("div.documents-tab", {},
      h("div.listing", {},
        h("div.toolbar", {}, range, this.#count, h("span.grow"),
          h("button", { type: "button", onclick: () => this.refresh(), title: "Read again (r)" }, icon("refresh"), h("span.wide", {}, "Refresh")),
          h("button.primary", { type: "button", onclick: () => this.create(), title: "New document (n)" }, icon("plus"), "New", h("span.wide", {}, " document"))),
        this.#list, this.#paging),
      this.#beside);
    this.#read();
    this.#follow(route);
  }
  #base() {
    const { db, coll } = this.#route;
    return { db, coll, tab: "documents", range: this.#route.range };
  }

  /** Another document of the same list. */
  update(route) {
    if (route.range !== this.#route.range) return false;
    this.#route = route;
    this.#follow(route);
    return true;
  }
  mayLeave(route) {
    if (!this.#editor) return true;
    if (route.coll === this.#route.coll && route.db === this.#route.db && route.tab === "documents"
      && this.#editor.isAt(route)) return true;
    return this.#editor.mayClose();
  }
  refresh() {
    this.#read();
  }
  create() {
    this.#app.go({ ...this.#base(), new: "1" });
  }
  save() {
    this.#editor?.save();
    return Boolean(this.#editor);
  }
  escape() {
    if (!this.#editor) return false;
    this.#app.go(this.#base());
    return true;
  }
  get changed() {
    return Boolean(this.#editor?.changed);
  }

  // ── The list ──────────────────────────────────────────────────────────────────────────────────

  async #read() {
    const turn = ++this.#turn;
    this.#list.setAttribute("aria-busy", "true");
    try {
      const { db, coll, range } = this.#route;
      const [page, container] = await Promise.all([
        this.#app.client.documents(db, coll, { rangeId: range, continuation: this.#starts.at(-1), count: PAGE }),
        this.#app.client.container(db, coll)]);
      if (turn !== this.#turn) return;
      const documents = member(parse(page.text), "Documents").items;
      // A list of one page is counted itself: the server's figure is of another moment.
      this.#count.textContent = plural(this.#starts.length === 1 && !page.continuation ? documents.length
        : countOf(container.statistics, range), "document");
      this.#show(documents, page.continuation);
    } catch (error) {
      this.#app.report("The documents could not be read.", error);
    } finally {
      this.#list.removeAttribute("aria-busy");
    }
  }
  #show(documents, continuation) {
    this.#list.replaceChildren(...documents.map((document) => {
      const key = this.#paths.length ? partitionKeyOf(document, this.#paths) : undefined;
      const at = { id: toValue(member(document, "id")), key, rid: toValue(member(document, "_rid")) };
      const snippet = compact(without(document, new Set([...SYSTEM, "id", ...this.#paths.map((path) => path.slice(1))]))).slice(0, SNIPPET_MAX);
      return h("li", {}, h("a.entry.document", { href: routeTo({ ...this.#base(), ...at }), "data-rid": at.rid },
        h("b", {}, at.id), key && h("span.key", { title: "Partition key" }, keyText(key)),
        h("code", {}, snippet), time(toValue(member(document, "_ts")))));
    }));
    if (!documents.length) {
      this.#list.append(h("li.hollow", {}, this.#starts.length > 1 ? "This page is empty." : "No documents here yet."));
    }
    const page = this.#starts.length;
    const step = (label, act) => h("button", { type: "button", disabled: !act, onclick: act && (() => { act(); this.#read(); }) }, label);
    this.#paging.hidden = page === 1 && !continuation;
    this.#paging.replaceChildren(
      step("Previous", page > 1 && (() => this.#starts.pop())),
      h("span", {}, `Page ${page}`),
      step("Next", continuation && (() => this.#starts.push(continuation))));
    this.#mark();
  }
  #mark() {
    for (const entry of this.#list.querySelectorAll(".entry")) {
      if (this.#route.rid && entry.dataset.rid === this.#route.rid) entry.setAttribute("aria-current", "true");
      else entry.removeAttribute("aria-current");
    }
  }

  // ── The open document ─────────────────────────────────────────────────────────────────────────

  async #follow(route) {
    this.#mark();
    if (route.new) {
      this.#edit(new Editor(this.#app, this.#place(), undefined, this.#tell()), route);
    } else if (route.id !== undefined) {
      if (this.#editor?.isAt(route)) return;
      await this.#openDocument(route);
    } else if (this.#editor) {
      const rid = this.#editor.rid;
      this.#edit(undefined);
      this.#list.querySelector(`[data-rid="${CSS.escape(rid ?? "")}"]`)?.focus();
    }
  }
  async #openDocument(route) {
    const by = (self) => this.#app.client.readDocument({ ...this.#place(), id: route.id, key: route.key, self });
    try {
      let text;
      try {
        text = await by(route.rid && `${this.#container._self}docs/${route.rid}/`);
      } catch (error) {
        // Deleted and made again since the bookmark: the same name, another resource.
        if (error.status !== 404 || !route.rid) throw error;
        text = await by(undefined);
      }
      if (this.#route.id !== route.id || this.#route.key !== route.key) return;
      this.#edit(new Editor(this.#app, this.#place(), text, this.#tell()), route);
    } catch (error) {
      this.#edit(undefined);
      this.#beside.hidden = false;
      this.#beside.replaceChildren(
        errorBox(error.status === 404 ? `There is no document ${route.id} any more.` : "The document could not be read.", error),
        h("p", {}, h("a", { href: routeTo(this.#base()) }, "Back to the list")));
    }
  }
  #place() {
    const { db, coll } = this.#route;
    return { db, coll, paths: this.#paths };
  }
  #tell() {
    return {
      close: () => this.#app.go(this.#base()),
      saved: (at, isNew) => {
        announce(isNew ? `Document ${at.id} created.` : `Document ${at.id} saved.`);
        this.#route = { ...this.#base(), ...at };
        this.#app.go(this.#route, { replace: true });
        this.#read();
      },
      deleted: (id) => {
        announce(`Document ${id} deleted.`);
        this.#app.go(this.#base());
        this.#read();
      },
    };
  }
  #edit(editor) {
    this.#editor = editor;
    this.#beside.hidden = !editor;
    this.element.classList.toggle("open", Boolean(editor));
    this.#beside.replaceChildren(...(editor ? [editor.element] : []));
    editor?.focus();
  }
}
