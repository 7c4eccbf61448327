// The hash names the place: #/db/container/tab?parameters. A bookmark leads back to it.

export const TABS = ["documents", "query", "changes", "ranges", "settings"];

export function parseRoute(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  let names;
  try {
    names = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    names = [];
  }
  const [db, coll, tab] = names;
  const route = { db, coll };
  if (coll !== undefined) route.tab = TABS.includes(tab) ? tab : TABS[0];
  for (const [name, value] of new URLSearchParams(query)) {
    if (!(name in route)) route[name] = value;
  }
  return route;
}

export function routeTo({ db, coll, tab, ...parameters }) {
  const names = [db, coll, coll === undefined ? undefined : tab].filter((name) => name !== undefined);
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  return `#/${names.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}
