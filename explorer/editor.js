// One document as text. It is saved only over the version that was opened (If-Match): when somebody
// else has changed it meanwhile both are shown, and the person decides.

import { coloured, confirmed, difference, errorBox, h, icon, plural, stamp, time } from "./dom.js";
import { JsonError, compact, keyText, member, parse, partitionKeyOf, pretty, toValue, without } from "./json.js";

/** What the server sets; shown beside the text, not in it. */
export const SYSTEM = new Set(["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"]);
const BYTES_MAX = 2 * 1024 * 1024;
const utf8 = new TextEncoder();

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** `{"id": …, "a": {"b": ""}}` for the key paths /a/b. */
function template(paths) {
  const document = { id: newId() };
  for (const path of paths) {
    let at = document;
    const segments = path.split("/").slice(1).map((s) => s.replace(/^["']|["']$/g, ""));
    segments.forEach((segment, i) => {
      at[segment] ??= i === segments.length - 1 ? "" : {};
      at = at[segment];
    });
  }
  return JSON.stringify(document, null, 2);
}

export class Editor {
  #app;
  #where;
  #tell;
  #version; // {id, key, self, rid, etag, ts, text} as the server has it; undefined: not created yet
  #original;
  #text;
  #paint = h("pre.paint", { "aria-hidden": "true" });
  #gutter = h("pre.gutter", { "aria-hidden": "true" });
  #verdict = h("p.verdict", { id: "verdict", role: "status" });
  #errors = h("div.editor-errors");
  #head = h("div.editor-head");
  #facts = h("details.system");
  #save;

  constructor(app, where, text, tell) {
    this.#app = app;
    this.#where = where;
    this.#tell = tell;
    this.#text = h("textarea", { "aria-label": "Document as JSON", "aria-describedby": "verdict", spellcheck: "false", autocomplete: "off",
      autocapitalize: "off", wrap: "off", oninput: () => this.#changed(), onscroll: () => this.#scroll() });
    this.#save = h("button.primary", { type: "button", onclick: () => this.save(), title: "Ctrl S" }, "Save");
    this.element = h("section.editor", { "aria-label": "Document" }, this.#head, this.#errors,
      h("div.code", {}, this.#gutter, h("div.sheet", {}, this.#paint, this.#text)), this.#verdict, this.#facts);
    if (text === undefined) {
      this.#original = template(where.paths);
      this.#text.value = this.#original;
    } else {
      this.#take(text);
    }
    this.#draw();
    this.#changed();
  }
  focus() {
    this.#text.focus({ preventScroll: true });
    const empty = this.#version ? -1 : this.#text.value.indexOf('""');
    this.#text.setSelectionRange(Math.max(0, empty + 1), Math.max(0, empty + 1));
  }
  isAt(route) {
    return Boolean(this.#version) && route.rid === this.#version.rid && route.id === this.#version.id;
  }
  get rid() {
    return this.#version?.rid;
  }
  get changed() {
    return this.#text.value !== this.#original;
  }
  async mayClose() {
    if (!this.changed || this.#discarded) return true;
    this.#discarded = await confirmed("Leave without saving?", "What you have changed in this document would be lost.", "Leave it");
    return this.#discarded;
  }
  #discarded = false;

  /** Shows this version of the document, as the server sent it. */
  #take(text) {
    const node = parse(text);
    const value = (key) => toValue(member(node, key));
    this.#version = { id: value("id"), rid: value("_rid"), self: value("_self"), etag: value("_etag"), ts: value("_ts"),
      key: this.#where.paths.length ? partitionKeyOf(node, this.#where.paths) : undefined, text: pretty(without(node, SYSTEM)) };
    this.#original = this.#version.text;
    this.#text.value = this.#version.text;
  }
  #at() {
    return { ...this.#where, ...this.#version };
  }

  #draw() {
    const version = this.#version;
    this.#head.replaceChildren(
      h("button.plain.square.leave", { type: "button", "aria-label": "Close the document", title: "Close (Esc)", onclick: () => this.#tell.close() }, icon("back")),
      h("div.what", {}, h("h2", {}, version ? version.id : "New document"),
        version && h("p", {}, version.key && h("span.key", { title: "Partition key" }, keyText(version.key)), h("span", {}, "changed ", time(version.ts)))),
      h("div.tools", {},
        version && h("button.plain.square", { type: "button", title: "Delete the document", "aria-label": "Delete the document", onclick: () => this.#delete() }, icon("trash")),
        h("button", { type: "button", onclick: () => this.#format() }, "Format"), this.#save));
    this.#save.textContent = version ? "Save" : "Create";
    this.#facts.hidden = !version;
    this.#facts.replaceChildren(h("summary", {}, "System properties"), version && h("dl.facts", {},
      h("dt", {}, "_etag"), h("dd", {}, h("code", {}, version.etag)), h("dt", {}, "_ts"), h("dd", {}, `${version.ts} · ${stamp(version.ts)}`),
      h("dt", {}, "_rid"), h("dd", {}, h("code", {}, version.rid)), h("dt", {}, "_self"), h("dd", {}, h("code", {}, version.self))));
  }

  // ── The text ──────────────────────────────────────────────────────────────────────────────────

  #changed() {
    const text = this.#text.value;
    this.#discarded = false;
    this.#paint.replaceChildren(...coloured(text), "\n");
    const lines = text.split("\n").length;
    this.#gutter.textContent = Array.from({ length: lines }, (_, i) => i + 1).join("\n");
    const problem = this.#check();
    this.#text.setAttribute("aria-invalid", String(Boolean(problem)));
    this.#verdict.classList.toggle("wrong", Boolean(problem));
    this.#verdict.textContent = problem ? problem.message
      : `Valid JSON · ${plural(utf8.encode(text).length, "byte")}${this.#version && this.changed ? " · not saved" : ""}`;
    this.#save.disabled = Boolean(problem) || (Boolean(this.#version) && !this.changed);
    this.#scroll();
  }
  /** What is wrong with the text, or nothing. */
  #check() {
    let node;
    try {
      node = parse(this.#text.value);
    } catch (error) {
      if (error instanceof JsonError) return error;
      throw error;
    }
    if (node.type !== "object") return new Error("A document is a JSON object: { … }.");
    const id = member(node, "id");
    if (id?.type !== "string" || id.raw === '""') return new Error("A document needs an “id” that is a string with something in it.");
    if (utf8.encode(compact(node)).length > BYTES_MAX) return new Error("A document may have 2 MB at most.");
    if (this.#version?.key !== undefined && partitionKeyOf(node, this.#where.paths) !== this.#version.key) {
      return new Error(`The partition key of a document cannot change: ${this.#where.paths.join(", ")} must stay ${keyText(this.#version.key)}.`);
    }
    return undefined;
  }
  #scroll() {
    this.#paint.style.transform = `translate(${-this.#text.scrollLeft}px, ${-this.#text.scrollTop}px)`;
    this.#gutter.style.transform = `translateY(${-this.#text.scrollTop}px)`;
  }
  #format() {
    try {
      this.#text.value = pretty(parse(this.#text.value));
      this.#changed();
    } catch (error) {
      this.#text.focus();
      this.#text.setSelectionRange(error.offset ?? 0, (error.offset ?? 0) + 1);
    }
  }

  // ── Saving ────────────────────────────────────────────────────────────────────────────────────

  async save() {
    if (this.#save.disabled) {
      if (this.#check()) this.#text.focus();
      return;
    }
    this.#errors.replaceChildren();
    this.#save.disabled = true;
    const node = parse(this.#text.value);
    const isNew = !this.#version;
    try {
      const { db, coll, paths } = this.#where;
      this.#take(isNew
        ? await this.#app.client.createDocument(db, coll, paths.length ? partitionKeyOf(node, paths) : undefined, compact(node))
        : await this.#app.client.replaceDocument(this.#at(), this.#version.etag, compact(node)));
      this.#draw();
      this.#changed();
      this.#tell.saved({ id: this.#version.id, key: this.#version.key, rid: this.#version.rid }, isNew);
    } catch (error) {
      this.#changed();
      if (error.status === 412) await this.#conflict();
      else if (error.status === 404 && !isNew) this.#gone(error);
      else this.#fail(error.status === 409 ? "A document with this id is there already." : "The document could not be saved.", error);
    }
  }
  #fail(what, error) {
    if (error.status === 401) this.#app.report(what, error);
    else this.#errors.replaceChildren(errorBox(what, error, () => this.#text.focus()));
  }
  #gone(error) {
    this.#errors.replaceChildren(errorBox("The document was deleted meanwhile.", error, () => {}),
      h("div.actions", {}, h("button", { type: "button", onclick: () => {
        this.#version = undefined;
        this.#original = "";
        this.#errors.replaceChildren();
        this.#draw();
        this.#changed();
        this.#save.focus();
      } }, "Keep my text as a new document")));
  }

  /** Somebody was faster. Nothing has been written; show what they made of it. */
  async #conflict() {
    const mine = this.#text.value;
    let theirs;
    try {
      theirs = await this.#app.client.readDocument(this.#at());
    } catch (error) {
      if (error.status === 404) this.#gone(error);
      else this.#fail("Somebody else changed the document, and their version could not be read.", error);
      return;
    }
    const theirText = pretty(without(parse(theirs), SYSTEM));
    const settle = (act) => () => {
      act();
      this.#errors.replaceChildren();
      this.#draw();
      this.#changed();
      this.#text.focus();
    };
    const box = h("div.conflict", { role: "alertdialog", "aria-label": "Conflict", tabindex: "-1" },
      h("strong", {}, "Somebody else changed this document while you did."),
      h("p", {}, "Nothing was saved yet. This is how your text (+) differs from theirs (−):"),
      difference(theirText, mine),
      h("div.actions", {},
        h("button", { type: "button", onclick: settle(() => this.#take(theirs)) }, "Take theirs"),
        h("button.primary", { type: "button", onclick: settle(() => {
          // From here on saving replaces their version, the one that has just been shown; a third one would conflict again.
          this.#take(theirs);
          this.#text.value = mine;
        }) }, "Go on with mine")));
    this.#errors.replaceChildren(box);
    box.focus();
  }

  async #delete() {
    const { id } = this.#version;
    if (!(await confirmed(`Delete document ${id}?`, "This cannot be undone.", "Delete document"))) return;
    try {
      await this.#app.client.deleteDocument(this.#at(), this.#version.etag);
      this.#discarded = true;
      this.#tell.deleted(id);
    } catch (error) {
      if (error.status === 412) {
        this.#fail("Not deleted: somebody else has changed the document.", Object.assign(new Error("Open it again to see what it is now."), { status: 412, activityId: error.activityId }));
      } else {
        this.#fail("The document could not be deleted.", error);
      }
    }
  }
}
