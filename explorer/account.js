// The pages of the account and of a database, and the dialogs that make and delete things.

import { announce, confirmed, dialog, h, icon, plural, time } from "./dom.js";
import { routeTo } from "./route.js";

const nameField = (label, hint) => h("label.field", {}, h("span", {}, label),
  h("input", { name: "id", required: true, maxlength: "255", autocomplete: "off", autocapitalize: "off", spellcheck: "false", autofocus: true }),
  hint && h("small", {}, hint));

export async function createDatabase(app) {
  const made = await dialog({
    title: "New database", submit: "Create", body: nameField("Name"),
    onSubmit: (form) => app.client.createDatabase(form.elements.id.value),
  });
  if (!made) return;
  announce(`Database ${made.id} created.`);
  await app.tree.load();
  app.go({ db: made.id });
}

export async function createContainer(app, db) {
  const number = (name, label, hint, attributes) => h("label.field", {}, h("span", {}, label),
    h("input", { name, type: "number", inputmode: "numeric", ...attributes }), h("small", {}, hint));
  const made = await dialog({
    title: `New container in ${db}`, submit: "Create",
    body: [nameField("Name"),
      h("label.field", {}, h("span", {}, "Partition key path"),
        h("input", { name: "paths", required: true, value: "/pk", autocomplete: "off", autocapitalize: "off", spellcheck: "false" }),
        h("small", {}, "Like /customerId. Up to three, separated by commas, make a hierarchical key. It cannot be changed later.")),
      h("details", {}, h("summary", {}, "More settings"),
        number("throughput", "Throughput in RU/s", "400 if empty. Above 10,000 the container begins with several ranges.", { min: "400", step: "100" }),
        number("ttl", "Time to live in seconds", "Empty: documents stay. −1: each may have its own ttl.", { min: "-1" }),
        number("retention", "Keep all versions for, in minutes", "Lets the change feed show every version and deletes. Empty: the latest version only.", { min: "1" }))],
    onSubmit: (form) => {
      const field = (name) => form.elements[name].value.trim();
      const paths = field("paths").split(",").map((path) => path.trim()).filter(Boolean)
        .map((path) => (path.startsWith("/") ? path : `/${path}`));
      const definition = { id: form.elements.id.value,
        partitionKey: { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 } };
      if (field("ttl")) definition.defaultTtl = Number(field("ttl"));
      if (field("retention")) definition.changeFeedPolicy = { retentionDuration: Number(field("retention")) };
      return app.client.createContainer(db, definition, Number(field("throughput")));
    },
  });
  if (!made) return;
  announce(`Container ${made.id} created.`);
  await app.tree.load();
  app.go({ db, coll: made.id });
}

export async function deleteContainer(app, db, coll) {
  if (!(await confirmed(`Delete container ${coll}?`, "All its documents and its change feed are deleted with it. This cannot be undone.", "Delete container", coll))) return;
  try {
    await app.client.remove(["dbs", db, "colls", coll]);
    announce(`Container ${coll} deleted.`);
    await app.tree.load();
    app.go({ db });
  } catch (error) {
    app.report("The container could not be deleted.", error);
  }
}

async function deleteDatabase(app, db) {
  if (!(await confirmed(`Delete database ${db}?`, "All its containers and their documents are deleted with it. This cannot be undone.", "Delete database", db))) return;
  try {
    await app.client.remove(["dbs", db]);
    announce(`Database ${db} deleted.`);
    await app.tree.load();
    app.go({});
  } catch (error) {
    app.report("The database could not be deleted.", error);
  }
}

const cards = (entries, empty) => (entries.length
  ? h("ul.cards", {}, entries.map(({ route, kind, name, lines }) =>
    h("li", {}, h("a.entry", { href: routeTo(route) }, icon(kind), h("b", {}, name), lines.map((line) => h("span", {}, line))))))
  : h("p.hollow", {}, empty));

export class AccountPage {
  constructor(app) {
    this.app = app;
    this.list = h("div", {}, h("p.waiting", {}, "Reading…"));
    this.element = h("div.page", {},
      h("div.page-head", {}, h("h1", {}, "Account"),
        h("div.tools", {}, h("button.primary", { type: "button", onclick: () => this.create() }, icon("plus"), "New database"))),
      h("div.errors"), this.list,
      h("section.about", {}, h("h2", {}, "Connecting a program"),
        h("p", {}, "Give an SDK this endpoint and the account key, in gateway mode:"),
        h("pre", {}, new URL("..", document.baseURI).href),
        h("p", {}, "Over https the server shows its own certificate; ", h("a", { href: "emulator.pem", download: "orrery.pem" }, "download it"), " to let clients trust it.")));
    this.refresh();
  }
  create() {
    createDatabase(this.app);
  }
  async refresh() {
    try {
      const databases = await this.app.client.databases();
      this.list.replaceChildren(cards(databases.map((database) => ({
        route: { db: database.id }, kind: "database", name: database.id, lines: [["changed ", time(database._ts)]],
      })), "No databases yet. Create one here, or let a program do it."));
    } catch (error) {
      this.app.report("The databases could not be read.", error);
    }
  }
}

export class DatabasePage {
  constructor(app, { db }) {
    this.app = app;
    this.db = db;
    this.list = h("div", {}, h("p.waiting", {}, "Reading…"));
    this.element = h("div.page", {},
      h("nav.crumbs", { "aria-label": "Where you are" }, h("a", { href: "#/" }, "Account")),
      h("div.page-head", {}, h("h1", {}, db),
        h("div.tools", {},
          h("button", { type: "button", onclick: () => deleteDatabase(app, db) }, icon("trash"), "Delete database"),
          h("button.primary", { type: "button", onclick: () => this.create() }, icon("plus"), "New container"))),
      h("div.errors"), this.list);
    this.refresh();
  }
  create() {
    createContainer(this.app, this.db);
  }
  async refresh() {
    try {
      const containers = await this.app.client.containers(this.db);
      this.list.replaceChildren(cards(containers.map((container) => ({
        route: { db: this.db, coll: container.id, tab: "documents" }, kind: "container", name: container.id,
        lines: [container.partitionKey ? `by ${container.partitionKey.paths.join(", ")}` : "one partition",
          container.changeFeedPolicy?.retentionDuration ? `all versions kept ${plural(container.changeFeedPolicy.retentionDuration, "minute")}` : null].filter(Boolean),
      })), "No containers yet."));
    } catch (error) {
      this.list.replaceChildren();
      this.app.report(error.status === 404 ? `There is no database ${this.db}.` : "The containers could not be read.", error);
    }
  }
}
