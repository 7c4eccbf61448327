// Making elements. Text only ever becomes text: there is no way from data to markup here.

import { tokens } from "./json.js";
import { diffLines, nearChanges } from "./diff.js";

/** h("button.primary", {onclick, title}, "Save"). Children: nodes, texts, lists; null is nothing. */
export function h(kind, properties, ...children) {
  if (properties instanceof Node || typeof properties !== "object" || Array.isArray(properties)) {
    children.unshift(properties);
    properties = undefined;
  }
  const [tag, ...classes] = kind.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "disabled" || name === "checked" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const $ = (selector, root = document) => root.querySelector(selector);

const ICONS = {
  database: "M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3v12c0 1.7-3.6 3-8 3s-8-1.3-8-3zM4 6c0 1.7 3.6 3 8 3s8-1.3 8-3M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
  container: "M3.5 8 12 3.5 20.5 8v8L12 20.5 3.5 16zM3.5 8l8.5 4.5L20.5 8M12 12.5v8",
  range: "M4 12h16M4 8v8M20 8v8M10 10v4M15 10v4",
  plus: "M12 5v14M5 12h14",
  refresh: "M19.5 12a7.5 7.5 0 1 1-2.2-5.3L20 9.3M20 4v5.3h-5.3",
  trash: "M4.5 7h15M9.5 7V4.5h5V7M6.5 7l.8 12.5h9.4L17.5 7M10 11v5M14 11v5",
  back: "M14.5 5.5 8 12l6.5 6.5",
  close: "M6 6l12 12M18 6 6 18",
  chevron: "M9 5.5 15.5 12 9 18.5",
  pause: "M8.5 5.5v13M15.5 5.5v13",
  play: "M8 5.5 18.5 12 8 18.5z",
  copy: "M8.5 8.5h11v11h-11zM15.5 8.5v-4h-11v11h4",
  document: "M6 3.5h8l4.5 4.5v12.5H6zM14 3.5V8h4.5",
  exit: "M14 4.5H5.5v15H14M10.5 12H20M16.5 8.5 20 12l-3.5 3.5",
  help: "M9.2 9.3a2.9 2.9 0 1 1 4.2 2.6c-.9.5-1.4 1.1-1.4 2.1M12 17v.6",
};
const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

// ── Text for people ─────────────────────────────────────────────────────────────────────────────

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const STEPS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30], ["month", 12], ["year", Infinity]];

export function ago(seconds) {
  let amount = seconds - Date.now() / 1000;
  for (const [unit, size] of STEPS) {
    if (Math.abs(amount) < size) return relative.format(Math.round(amount), unit);
    amount /= size;
  }
  return "";
}
const pad = (n) => String(n).padStart(2, "0");
/** 2025-04-01 12:00:00 in local time. */
export function stamp(seconds) {
  const d = new Date(seconds * 1000);
  return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${clock(seconds)}`;
}
export function clock(seconds) {
  const d = new Date(seconds * 1000);
  return `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
}
export const time = (seconds, text = ago(seconds)) =>
  h("time", { datetime: new Date(seconds * 1000).toISOString(), title: stamp(seconds) }, text);
export const plural = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// ── JSON and differences ────────────────────────────────────────────────────────────────────────

const COLOURED_MAX = 200_000;

/** The text with its parts coloured, unless it is so long that this would take too long. */
export function coloured(text) {
  if (text.length > COLOURED_MAX) return [text];
  return [...tokens(text)].map(([kind, piece]) => (kind ? h(`span.j-${kind}`, {}, piece) : piece));
}

export function difference(before, after) {
  if (before === after) return h("p.same", {}, "The content is the same.");
  const lines = nearChanges(diffLines(before, after));
  const words = { "-": "removed: ", "+": "added: " };
  return h("pre.diff", { tabindex: "0", "aria-label": "Difference" }, lines.map(([mark, line]) =>
    mark === "…"
      ? h("span.skipped", {}, `⋯ ${plural(line, "equal line")}\n`)
      : h(mark === "-" ? "del" : mark === "+" ? "ins" : "span", {},
        words[mark] && h("span.quiet-word", {}, words[mark]), `${mark} ${line}\n`)));
}

// ── Telling ─────────────────────────────────────────────────────────────────────────────────────

/** Says something short, to the eye and to a screen reader, without taking the focus. */
export function announce(text, { visible = true } = {}) {
  if (!visible) {
    $("#quietly").textContent = text;
    return;
  }
  const toast = h("p.toast", {}, text);
  $("#toasts").append(toast);
  setTimeout(() => toast.remove(), 5000);
}

/** An error in words, with what helps to find it in the server's diagnostics. */
export function errorBox(what, error, onClose) {
  const detail = [error.status ? `Status ${error.status}${error.substatus ? `/${error.substatus}` : ""}` : "",
    error.activityId ? `activity ${error.activityId}` : ""].filter(Boolean).join(" · ");
  const box = h("div.error", { role: "alert" },
    h("div", {}, h("strong", {}, what), h("p", {}, error.message), detail && h("p.detail", {}, detail)),
    onClose && h("button.plain.square", { type: "button", "aria-label": "Dismiss", onclick: () => { box.remove(); onClose(); } },
      icon("close")));
  return box;
}

/**
 * A modal dialog; promises what `onSubmit` returned, or undefined when it was left. While onSubmit runs
 * the dialog waits; what it throws is shown and the dialog stays open.
 */
export function dialog({ title, body, submit, danger, onSubmit, cancel = "Cancel" }) {
  return new Promise((resolve) => {
    const errors = h("div.dialog-errors");
    let result;
    const button = submit && h(danger ? "button.danger" : "button.primary", { type: "submit" }, submit);
    // The body scrolls; an error and the buttons stay in sight.
    const form = h("form", {}, h("div.dialog-body", {}, h("h2", { id: "dialog-title", tabindex: "-1" }, title), body), errors,
      h("div.actions", {}, h("button", { type: "button", onclick: () => element.close() }, cancel), button));
    const element = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      errors.replaceChildren();
      button.disabled = true;
      try {
        result = await onSubmit(form);
        element.close();
      } catch (error) {
        errors.replaceChildren(errorBox(error.title ?? "That did not work.", error));
      } finally {
        button.disabled = false;
      }
    });
    element.addEventListener("close", () => {
      element.remove();
      resolve(result);
    });
    document.body.append(element);
    element.showModal();
    // A dialog that only tells is read from its top.
    (submit ? element.querySelector("[autofocus]") ?? element.querySelector("input, textarea, button") : element.querySelector("h2")).focus();
  });
}

export async function confirmed(title, text, submit, typed) {
  const answer = await dialog({
    title, danger: true, submit,
    body: [h("p", {}, text),
      typed !== undefined && h("label.field", {}, h("span", {}, "Type ", h("b", {}, typed), " to confirm"),
        h("input", { name: "typed", autocomplete: "off", autocapitalize: "off", spellcheck: "false", autofocus: true }))],
    onSubmit: (form) => {
      if (typed !== undefined && form.elements.typed.value !== typed) {
        throw Object.assign(new Error(`Type ${typed} exactly as it stands there.`), { title: "Not the same name." });
      }
      return true;
    },
  });
  return answer === true;
}
