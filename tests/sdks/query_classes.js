// The contents of query_classes.json, for the tests of both Node clients.

"use strict";

const assert = require("node:assert/strict");
const CLASSES = require("./query_classes.json");

/** The names of an object's members in one order, so that texts of equal values are equal. */
const canonical = (value) =>
  JSON.stringify(value, (_, each) =>
    each && typeof each === "object" && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );

function assertRows(actual, expected, isOrdered, message) {
  const arrange = (rows) => (isOrdered ? rows.map(canonical) : rows.map(canonical).sort());
  assert.deepEqual(arrange(actual), arrange(expected), message);
}

/** A query as clients take it. */
const spec = ({ query, parameters }) => ({ query, parameters: parameters ?? [] });
const named = (name) => CLASSES.queries.find((each) => each.name === name);

module.exports = { CLASSES, assertRows, named, spec };
