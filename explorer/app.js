// The page: who is signed in, where one is (the hash), and the keys that work everywhere.

import { Client, WELL_KNOWN_KEY } from "./client.js";
import { $, announce, dialog, errorBox, h, icon } from "./dom.js";
import { TABS, parseRoute, routeTo } from "./route.js";
import { Tree } from "./tree.js";
import { AccountPage, DatabasePage } from "./account.js";
import { ContainerPage } from "./container.js";

const KEY = "orrery.key";
const SHORTCUTS = "orrery.shortcuts";
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

let shown; // The hash of the page that stands there.

const app = {
  client: undefined,
  tree: undefined,
  page: undefined,
  route: {},

  go(route, { replace = false } = {}) {
    const hash = routeTo(route);
    if (replace) {
      history.replaceState(null, "", hash);
      app.route = parseRoute(hash);
      shown = hash;
    } else if (location.hash === hash) {
      arrive();
    } else {
      location.hash = hash;
    }
  },
  /** Shows what went wrong at the top of the page; a key that no longer holds leads to the door. */
  report(what, error) {
    if (error.name === "AbortError") return;
    if (error.status === 401) {
      signOut();
      $("#sign-in-error").replaceChildren(errorBox("You have been signed out.", error));
      return;
    }
    const place = $("#main .errors") ?? $("#main");
    place.prepend(errorBox(what, error, () => $("#main").focus()));
  },
};

// ── Signing in ──────────────────────────────────────────────────────────────────────────────────

function showSignIn() {
  document.title = "Sign in · Orrery";
  $("#workbench").hidden = true;
  $("#sign-in").hidden = false;
  $("#sign-in-host").textContent = location.host;
  $("#use-emulator-key").hidden = !LOOPBACK.test(location.hostname);
  $("#key").value = "";
  $("#key").focus();
}

async function signIn(given, keep) {
  const errors = $("#sign-in-error");
  errors.replaceChildren();
  const key = /AccountKey=([^;]+)/.exec(given)?.[1] ?? given.trim();
  let client;
  try {
    client = new Client(key);
  } catch {
    errors.replaceChildren(errorBox("That is not an account key.",
      new Error("A key is base64: letters, digits, + and /, mostly ending in =. Paste it whole.")));
    $("#key").focus();
    return;
  }
  try {
    await client.account();
  } catch (error) {
    errors.replaceChildren(errorBox(
      error.status === 401 ? "This key does not open the account." : "Signing in did not work.", error));
    $("#key").focus();
    return;
  }
  if (keep) sessionStorage.setItem(KEY, key);
  await enter(client);
}

async function enter(client) {
  app.client = client;
  $("#sign-in").hidden = true;
  $("#workbench").hidden = false;
  $("#main").focus({ preventScroll: true });
  $("#host").textContent = location.host;
  app.tree = new Tree(app, $("#side"));
  await app.tree.load();
  arrive();
}

function signOut() {
  sessionStorage.removeItem(KEY);
  app.page?.leave?.();
  app.page = undefined;
  app.client = undefined;
  $("#main").replaceChildren();
  $("#side").replaceChildren();
  showSignIn();
}

// ── Where one is ────────────────────────────────────────────────────────────────────────────────

async function arrive() {
  if (!app.client || location.hash === "#main") return;
  if (app.page?.mayLeave && location.hash !== shown && !(await app.page.mayLeave(parseRoute(location.hash)))) {
    history.replaceState(null, "", shown);
    return;
  }
  const route = parseRoute(location.hash);
  app.route = route;
  shown = location.hash;
  $("#workbench").dataset.place = route.coll !== undefined ? "container" : route.db !== undefined ? "database" : "account";
  app.tree.show(route);
  if (app.page?.update?.(route)) return;
  app.page?.leave?.();
  const Page = route.coll !== undefined ? ContainerPage : route.db !== undefined ? DatabasePage : AccountPage;
  app.page = new Page(app, route);
  document.title = `${[route.coll, route.db].filter(Boolean).join(" · ") || location.host} · Orrery`;
  $("#main").replaceChildren(app.page.element);
  $("#main").scrollTop = 0;
}

// ── Keys ────────────────────────────────────────────────────────────────────────────────────────

const EVERYWHERE = [
  ["?", "This list"],
  ["t", "Go to the tree: arrows move and open, Enter chooses"],
  ["m", "Go to the content"],
  ["1 2 3 4 5", "Documents, query, changes, ranges, settings of the container"],
  ["r", "Read again"],
  ["n", "New: a document, container or database, by where you are"],
  ["j k", "Next and previous entry of a list (arrows too)"],
  ["/", "Text of the query, or filter of the change feed"],
  ["p", "Pause the change feed, or go on"],
  ["Ctrl S", "Save the document (⌘S on a Mac)"],
  ["Ctrl Enter", "Run the query (⌘Enter on a Mac)"],
  ["Esc", "Close a dialog or the document"],
];
const singleKeys = () => localStorage.getItem(SHORTCUTS) !== "off";

function showHelp() {
  const toggle = h("input", { type: "checkbox", checked: singleKeys(), onchange: () => {
    localStorage.setItem(SHORTCUTS, toggle.checked ? "on" : "off");
  } });
  dialog({
    title: "Keyboard",
    body: [h("dl.keys", {}, EVERYWHERE.map(([keys, what]) =>
      [h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, what)])),
    h("label.check", {}, toggle, h("span", {}, "Single keys work (off: only Ctrl S, Ctrl Enter, Esc and this list’s button)"))],
    cancel: "Close",
  });
}

function focusStep(step) {
  const entries = [...document.querySelectorAll("#main .entry")];
  if (!entries.length) return false;
  const at = entries.indexOf(document.activeElement);
  entries[at < 0 ? 0 : Math.min(entries.length - 1, Math.max(0, at + step))].focus();
  return true;
}

const KEYS = {
  "?": showHelp,
  t: () => app.tree.focus(),
  m: () => $("#main").focus(),
  r: () => app.page?.refresh?.(),
  n: () => app.page?.create?.(),
  j: () => focusStep(1),
  k: () => focusStep(-1),
  "/": () => app.page?.focusFilter?.(),
  p: () => app.page?.togglePause?.(),
};
TABS.forEach((tab, at) => {
  KEYS[at + 1] = () => {
    const { db, coll } = app.route;
    if (coll !== undefined) app.go({ db, coll, tab });
  };
});

document.addEventListener("keydown", (event) => {
  if (!app.client || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "s") {
    if (app.page?.save?.()) event.preventDefault();
    return;
  }
  if (event.key === "Escape" && app.page?.escape?.()) {
    event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !singleKeys()) return;
  const target = event.target;
  if (target.matches("input:not([type=checkbox]), textarea, select")) return;
  if (target.matches(".entry") && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    if (focusStep(event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
    return;
  }
  const act = KEYS[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});

// ── Start ───────────────────────────────────────────────────────────────────────────────────────

$("#help").append(icon("help"));
$("#help").addEventListener("click", showHelp);
$("#sign-out").addEventListener("click", async () => {
  if (!(await (app.page?.mayLeave?.({}) ?? true))) return;
  signOut();
  announce("Signed out.");
});
$("#sign-in form").addEventListener("submit", (event) => {
  event.preventDefault();
  signIn($("#key").value, $("#keep").checked);
});
$("#use-emulator-key").addEventListener("click", () => signIn(WELL_KNOWN_KEY, $("#keep").checked));
window.addEventListener("hashchange", arrive);
window.addEventListener("beforeunload", (event) => {
  if (app.page?.changed) event.preventDefault();
});

const kept = sessionStorage.getItem(KEY);
if (kept) {
  const client = new Client(kept);
  client.account().then(() => enter(client), (error) => {
    showSignIn();
    $("#sign-in-error").replaceChildren(errorBox("Signing in again did not work.", error));
  });
} else {
  showSignIn();
}
