// The tree at the side: databases, their containers, their ranges. ARIA's tree pattern: one tab stop,
// arrows move, right and left open and close, Enter chooses.

import { h, icon } from "./dom.js";
import { routeTo } from "./route.js";
import { createDatabase } from "./account.js";

export class Tree {
  #app;
  #list;
  #databases = [];
  #containers = new Map(); // db → containers
  #ranges = new Map(); // db/coll → ranges
  #open = new Set(); // paths
  #current = ""; // path of the tab stop
  #route = {};

  constructor(app, place) {
    this.#app = app;
    this.#list = h("ul.tree", { role: "tree", "aria-label": "Databases and containers", onkeydown: (e) => this.#key(e),
      onclick: (e) => this.#click(e) });
    place.replaceChildren(
      h("div.side-head", {}, h("h2", {}, "Databases"),
        h("button.plain.square", { type: "button", title: "Read again", "aria-label": "Read the tree again", onclick: () => this.load() }, icon("refresh")),
        h("button.plain.square", { type: "button", title: "New database", "aria-label": "New database", onclick: () => createDatabase(app) }, icon("plus"))),
      this.#list);
  }

  /** Reads everything that is open anew. */
  async load() {
    try {
      this.#databases = await this.#app.client.databases();
      for (const path of [...this.#open]) await this.#read(path).catch(() => this.#open.delete(path));
    } catch (error) {
      this.#app.report("The databases could not be read.", error);
    }
    this.#render();
  }
  containersOf(db) {
    return this.#containers.get(db);
  }
  get databases() {
    return this.#databases;
  }

  /** Opens the way to a place and marks it. */
  async show(route) {
    this.#route = route;
    const wanted = path(route.db, route.coll, route.coll === undefined ? undefined : route.range);
    this.#current = wanted;
    this.#render();
    if (route.coll !== undefined && !this.#open.has(path(route.db))) await this.#expand(path(route.db));
  }
  focus() {
    this.#list.querySelector('[tabindex="0"]')?.focus();
  }

  async #read(at) {
    const [db, coll] = split(at);
    if (coll === undefined) this.#containers.set(db, await this.#app.client.containers(db));
    else this.#ranges.set(at, await this.#app.client.ranges(db, coll));
  }
  async #expand(at) {
    try {
      await this.#read(at);
      this.#open.add(at);
      this.#render();
    } catch (error) {
      if (error.status !== 404) this.#app.report(`${split(at).join(" / ")} could not be opened.`, error);
    }
  }
  #collapse(at) {
    this.#open.delete(at);
    this.#render();
  }

  // ── Drawing ───────────────────────────────────────────────────────────────────────────────────

  #render() {
    const focused = this.#list.contains(document.activeElement);
    const items = this.#databases.map((database) => {
      const dbPath = path(database.id);
      return this.#item(dbPath, 1, "database", database.id, () => (this.#containers.get(database.id) ?? []).map((container) => {
        const collPath = path(database.id, container.id);
        return this.#item(collPath, 2, "container", container.id, () => (this.#ranges.get(collPath) ?? []).map((range) =>
          this.#item(path(database.id, container.id, range.id), 3, "range", `Range ${range.id}`)));
      }));
    });
    this.#list.replaceChildren(...items);
    if (!items.length) this.#list.append(h("li.empty", { role: "none" }, "No databases yet."));
    const stops = [...this.#list.querySelectorAll("[role=treeitem]")];
    const stop = stops.find((item) => item.dataset.path === this.#current) ?? stops[0];
    if (stop) {
      stop.tabIndex = 0;
      if (focused) stop.focus();
    }
  }
  #item(at, level, kind, label, children) {
    const isOpen = this.#open.has(at);
    const route = this.#route;
    const wanted = path(route.db, route.coll, route.coll === undefined ? undefined : route.range);
    const selected = at === wanted || (level === 2 && !isOpen && wanted.startsWith(`${at}/`));
    const inside = children && isOpen ? children() : [];
    return h("li", { role: "treeitem", tabindex: "-1", "aria-level": String(level), "aria-selected": String(selected),
      "aria-expanded": children ? String(isOpen) : undefined, "aria-label": label, "data-path": at },
    h("div.row", { style: undefined, title: label },
      h("span.twist", { "data-twist": children ? "" : undefined }, children && icon("chevron")),
      icon(kind), h("span.name", {}, label)),
    isOpen && children && h("ul", { role: "group" }, inside.length ? inside
      : h("li.empty", { role: "none" }, level === 1 ? "No containers yet." : "")));
  }

  // ── Moving ────────────────────────────────────────────────────────────────────────────────────

  #click(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    const at = item.dataset.path;
    if (event.target.closest("[data-twist]")) {
      this.#current = at;
      this.#open.has(at) ? this.#collapse(at) : this.#expand(at);
    } else {
      this.#choose(at);
    }
  }
  #choose(at) {
    const [db, coll, range] = split(at);
    if (coll === undefined && !this.#open.has(at)) this.#expand(at);
    const tab = this.#route.tab === "changes" ? "changes" : "documents";
    location.hash = routeTo({ db, coll, tab: coll === undefined ? undefined : tab, range });
  }
  #move(item) {
    if (!item) return;
    this.#list.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    item.tabIndex = 0;
    this.#current = item.dataset.path;
    item.focus();
  }
  #key(event) {
    const items = [...this.#list.querySelectorAll("[role=treeitem]")];
    const item = event.target.closest("[role=treeitem]");
    const at = items.indexOf(item);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const here = item.dataset.path;
    const isOpen = item.getAttribute("aria-expanded");
    const parent = item.parentElement.closest("[role=treeitem]");
    const actions = {
      ArrowDown: () => this.#move(items[at + 1]),
      ArrowUp: () => this.#move(items[at - 1]),
      Home: () => this.#move(items[0]),
      End: () => this.#move(items.at(-1)),
      ArrowRight: () => (isOpen === "false" ? this.#stay(here, () => this.#expand(here))
        : isOpen === "true" && this.#move(item.querySelector("[role=treeitem]"))),
      ArrowLeft: () => (isOpen === "true" ? this.#stay(here, () => this.#collapse(here)) : this.#move(parent)),
      Enter: () => this.#choose(here),
      " ": () => this.#choose(here),
    };
    const act = actions[event.key];
    if (act) {
      act();
      event.preventDefault();
    }
  }
  #stay(here, act) {
    this.#current = here;
    act();
  }
}

const path = (...names) => names.filter((name) => name !== undefined).map(encodeURIComponent).join("/");
const split = (at) => at.split("/").map(decodeURIComponent);
