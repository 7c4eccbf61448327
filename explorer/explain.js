// How the rows of a query were found, in words; from what the server says in x-orrery-explain and
// x-ms-documentdb-query-metrics. Knows nothing of the page. `orrery query --explain` says the same.

import { plural } from "./dom.js";

const listed = (words) => (words.length < 2 ? words.join("")
  : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);
/** What is between the commas, but for those in quoted names: one part, or those of a composite index. */
const partsOf = (index) => index.match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+/g) ?? [index];
const isComposite = (index) => partsOf(index).length > 1;
const indexText = (index) => (isComposite(index) ? `(${partsOf(index).join(", ")})` : index);
const indexWords = (indexes) => (indexes.length
  ? `The ${indexes.length === 1 ? "index" : "indexes"} on ${listed(indexes.map(indexText))}` : "An index");

/** `name=1.5;…` as numbers; what is none is passed over. */
export function parseMetrics(header) {
  const pairs = (header ?? "").split(";").map((pair) => pair.split("="));
  return Object.fromEntries(pairs.filter(([name, value]) => name && value && Number.isFinite(Number(value)))
    .map(([name, value]) => [name, Number(value)]));
}

/** The header's JSON; undefined where the server says nothing, or nonsense. */
export function parseExplanation(header) {
  try {
    const value = JSON.parse(decodeURIComponent(header ?? ""));
    return Array.isArray(value?.ranges) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Ranges that were read alike, with what was read there. */
function groupsOf(ranges) {
  const groups = new Map();
  for (const { id, way, indexes = [], documentsRead = 0, entriesRead = 0, rows = 0 } of ranges) {
    const name = JSON.stringify([way, indexes]);
    const group = groups.get(name) ?? { way, indexes, ids: [], documents: 0, entries: 0, rows: 0 };
    groups.set(name, group);
    group.ids.push(id);
    group.documents += documentsRead;
    group.entries += entriesRead;
    group.rows += rows;
  }
  return [...groups.values()];
}

function wordsOf(group, rangeCount) {
  const where = group.ids.length < rangeCount ? `${group.ids.length === 1 ? "range" : "ranges"} ${listed(group.ids)}`
    : rangeCount === 1 ? "the only range that was asked" : `all ${rangeCount} ranges that were asked`;
  const documents = plural(group.documents, "document");
  const rows = `${plural(group.rows, "row")} came of ${group.documents === 1 ? "it" : "them"}`;
  const what = `${plural(group.entries, "entry", "entries")} and ${documents} were read, and ${rows}`;
  switch (group.way) {
    case "nothing": return `Nothing was read in ${where}: no document can pass the filter.`;
    case "scan": return `No index was used in ${where}: ${documents} ${group.documents === 1 ? "was" : "were"} read one after the other, and ${rows}.`;
    case "index": return `${indexWords(group.indexes)} found the documents in ${where}: ${what}.`;
    case "ordered index": return `${indexWords(group.indexes)} gave the documents in order in ${where}: ${what}.`;
    case "vector index": return `${indexWords(group.indexes)} found the most similar documents, or nearly so, in ${where}: ${what}.`;
    default: return `In ${where} the way was “${group.way}”: ${what}.`;
  }
}

function wordsOfOrder(shape, groups) {
  if (shape === "ordered") {
    return groups.every(({ way }) => way === "ordered index" || way === "nothing")
      ? "The order comes from the index: a page reads little more than its rows."
      : "The rows are sorted: each page looks at all of these documents, so that larger pages read less in all.";
  }
  if (shape === "grouped") return "All documents were looked at before the first row.";
  if (shape === "ranked") return "All documents were ranked before the first row.";
  return undefined;
}

function advice(helpful, potential, building, groups) {
  const missing = helpful.filter((index) => !building.includes(index));
  const words = [
    ...building.map((index) => `The index on ${indexText(index)} is being built; until it is ready, queries do without.`),
    ...missing.map((index) => (isComposite(index)
      ? `The composite index on ${indexText(index)} of the indexing policy would help; the server has yet to build it.`
      : `An index on ${index} would help; the server builds it by itself once such queries have read enough to make it worthwhile.`)),
    ...potential.map((index) => `${isComposite(index) ? "A composite" : "An"} index on ${indexText(index)} would help, if the indexing policy listed it.`),
  ];
  if (!words.length && groups.some(({ way }) => way === "scan")) {
    words.push("No index that the indexing policy allows would make this query faster.");
  }
  return words;
}

function wordsOfTime(metrics) {
  if (metrics.totalExecutionTimeInMs === undefined) return undefined;
  const sum = (...names) => names.reduce((total, name) => total + (metrics[name] ?? 0), 0).toFixed(2);
  return `The server took ${sum("totalExecutionTimeInMs")} ms: ${sum("queryCompileTimeInMs", "queryLogicalPlanBuildTimeInMs",
    "queryPhysicalPlanBuildTimeInMs", "queryOptimizationTimeInMs")} to understand the query, ${sum("indexLookupTimeInMs")} in indexes, ${sum(
    "documentLoadTimeInMs", "VMExecutionTimeInMs")} with documents.`;
}

/** Sentences about a page. */
export function explain(explanation, metrics) {
  if (!explanation) {
    return ["This server does not tell how it found the rows.",
      metrics.retrievedDocumentCount !== undefined && `It read ${plural(metrics.retrievedDocumentCount, "document")}.`,
      wordsOfTime(metrics)].filter(Boolean);
  }
  const { shape, ranges, helpful = [], potential = [], building = [], rangesLeftOut = 0 } = explanation;
  const groups = groupsOf(ranges);
  const leftOut = rangesLeftOut > 0 && `There was no room to tell of ${plural(rangesLeftOut, "more range")}.`;
  return [...groups.map((group) => wordsOf(group, ranges.length + rangesLeftOut)), leftOut, wordsOfOrder(shape, groups),
    ...advice(helpful, potential, building, groups), wordsOfTime(metrics)].filter(Boolean);
}
