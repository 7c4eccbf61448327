"""A client that goes from range to range by itself, as .NET's and Java's do: it asks for the plan, sends the rewritten
text to each range that the plan names, and puts the answers together.

In this order: rows of all ranges (merged where they are sorted) → aggregates → DISTINCT → groups → OFFSET → LIMIT, TOP
→ count of distinct rows. ORDER BY RANK has a way of its own.
"""

import heapq
import json

from harness import wire
from query_client import Refused, body_of, query_all
from values import UNDEFINED, canonical, compare_for_sort, distinct, sort_key, type_of

FEATURES = ("Aggregate,CompositeAggregate,Distinct,GroupBy,MultipleAggregates,MultipleOrderBy,OffsetAndLimit,OrderBy,Top,"
            "NonValueAggregate,DCount,NonStreamingOrderBy,ListAndSetAggregate,CountIf,HybridSearch,WeightedRankFusion")
ORDER_FILTER = "{documentdb-formattableorderbyquery-filter}"
HYBRID = "{documentdb-formattablehybridsearchquery-"
RANK_CONSTANT = 60


def request_plan(container, body, features=FEATURES):
    headers = dict(wire.QUERY) | {"x-ms-cosmos-is-query-plan-request": "True", "x-ms-cosmos-query-version": "1.0",
                                  "x-ms-cosmos-supported-query-features": features}
    response = container.client.post(container.docs, body, headers)
    if response.status != 200:
        raise Refused(response)
    return response.json


def run_planned(container, text, parameters=(), **chosen):
    """All rows of the query, each range read with the chosen options."""
    plan = request_plan(container, body_of(text, parameters))
    ranges = target_ranges(container, plan["queryRanges"])

    def rows_of(range_id, rewritten):
        return query_all(container, body_of(rewritten, parameters), range_id=range_id, **chosen)

    if plan.get("hybridSearchQueryInfo"):
        return hybrid_rows(plan["hybridSearchQueryInfo"], ranges, rows_of)
    info = plan["queryInfo"]
    rewritten = (info["rewrittenQuery"] or text).replace(ORDER_FILTER, "true")
    return combine(info, [rows_of(each, rewritten) for each in ranges])


def target_ranges(container, wanted):
    """Ids of the container's ranges that overlap one of the plan's, from left to right."""
    ids = []
    for each in sorted(container.ranges(), key=lambda each: each["minInclusive"]):
        low, high = each["minInclusive"], each["maxExclusive"]
        if any(range_["min"] < high and (range_["max"] > low or (range_["isMaxInclusive"] and range_["max"] == low))
               for range_ in wanted):
            ids.append(each["id"])
    return ids


def combine(info, rows_of_ranges):
    """Combines the rows of all ranges, according to the plan."""
    if info["orderBy"]:
        rows = merge_sorted(info["orderBy"], rows_of_ranges)
    else:
        rows = [row for rows in rows_of_ranges for row in rows]
    is_grouped = bool(info["groupByExpressions"] or info["groupByAliasToAggregateType"])
    if info["aggregates"] and not is_grouped:
        assert len(info["aggregates"]) == 1 and info["hasSelectValue"], info
        value = aggregate(info["aggregates"][0], [row[0] for row in rows])
        rows = [] if value is UNDEFINED else [value]
    if info["distinctType"] != "None":
        rows = distinct(rows)
    if is_grouped:
        rows = groups(info, rows)
    if info["offset"] is not None:
        rows = rows[info["offset"]:]
    for most in (info["limit"], info["top"]):
        if most is not None:
            rows = rows[:most]
    if info["dCountInfo"]:
        alias = info["dCountInfo"]["dCountAlias"]
        rows = [{alias: len(rows)} if alias else len(rows)]
    return rows


# ── Sorted rows

class Descending:
    """Turns an order around."""

    def __init__(self, key):
        self.key = key

    def __lt__(self, other):
        return other.key < self.key

    def __eq__(self, other):
        return other.key == self.key


def row_key(directions, row):
    """Values of different arrays, or objects, are in an order that only the server knows: they are not compared."""
    keys = [sort_key(item.get("item", UNDEFINED)) for item in row["orderByItems"]]
    assert len(keys) == len(directions), row
    return [key if direction == "Ascending" else Descending(key) for key, direction in zip(keys, directions)]


def merge_sorted(directions, rows_of_ranges):
    """The payloads. Of equal keys the left-most range's come first; heapq.merge does so."""
    for rows in rows_of_ranges:
        assert all("_rid" in row for row in rows), "a row without _rid cannot be resumed at"
        keys = [row_key(directions, row) for row in rows]
        assert all(not later < earlier for earlier, later in zip(keys, keys[1:])), f"a range's rows are not sorted: {rows}"
    merged = heapq.merge(*rows_of_ranges, key=lambda row: row_key(directions, row))
    return [row["payload"] for row in merged if "payload" in row]


# ── Aggregates and groups

def aggregate(operator, parts):
    """Puts the ranges' parts of one aggregate together; each is an object whose `item` is missing where undefined."""
    items = [part.get("item", UNDEFINED) for part in parts]
    if operator in ("Count", "CountIf", "Sum"):
        return UNDEFINED if UNDEFINED in items else sum(items)
    if operator == "Average":
        counted = sum(item["count"] for item in items)
        sums = [item.get("sum", UNDEFINED) for item in items]
        return UNDEFINED if UNDEFINED in sums or counted == 0 else sum(sums) / counted
    if operator in ("Min", "Max"):
        return extreme(operator.lower(), [part["item2"] for part in parts])
    if operator == "MakeList":
        return [value for item in items for value in item]
    assert operator == "MakeSet", operator
    return distinct([value for item in items for value in item])


def extreme(member, parts):
    """A range that has seen no value says nothing; one whose values have no smallest one makes it undefined."""
    values = [part.get(member, UNDEFINED) for part in parts if part["count"] > 0]
    if not values or UNDEFINED in values or any(type_of(value) in ("array", "object") for value in values):
        return UNDEFINED
    best = values[0]
    for value in values[1:]:
        if compare_for_sort(value, best) == (-1 if member == "min" else 1):
            best = value
    return best


def groups(info, rows):
    """One row per group. Ranges may tell of a group several times."""
    found = {}
    for row in rows:
        key = tuple(canonical(item.get("item", UNDEFINED)) for item in row.get("groupByItems", []))
        found.setdefault(key, []).append(row["payload"] if "payload" in row else UNDEFINED)
    results = [group_row(info, payloads) for payloads in found.values()]
    return [result for result in results if result is not UNDEFINED]


def group_row(info, payloads):
    if info["hasSelectValue"]:
        if info["aggregates"]:
            return aggregate(info["aggregates"][0], [payload[0] for payload in payloads])
        return payloads[0]
    result = {}
    for alias in info["groupByAliases"]:
        operator = info["groupByAliasToAggregateType"][alias]
        if operator is None:
            value = payloads[0].get(alias, UNDEFINED)
        else:
            value = aggregate(operator, [payload[alias] for payload in payloads])
        if value is not UNDEFINED:
            result[alias] = value
    return result


# ── ORDER BY RANK

def hybrid_rows(info, ranges, rows_of):
    statistics = total_statistics(info, ranges, rows_of) if info["requiresGlobalStatistics"] else None
    documents, scores = {}, {}
    components = info["componentQueryInfos"]
    for component in components:
        text = with_statistics(component["rewrittenQuery"].replace(ORDER_FILTER, "true"), statistics)
        for row in (row for each in ranges for row in rows_of(each, text)):
            documents[row["_rid"]] = row["payload"].get("payload", UNDEFINED)
            # A single component need not be told twice.
            scores[row["_rid"]] = row["payload"]["componentScores"] or [row["orderByItems"][0]["item"]]
    fused = dict.fromkeys(documents, 0.0)
    weights = info["componentWeights"] or [1] * len(components)
    for index, component in enumerate(components):
        is_descending = component["orderBy"] == ["Descending"]
        different = sorted({each[index] for each in scores.values()}, reverse=is_descending)
        rank = {score: place for place, score in enumerate(different, 1)}
        for rid, each in scores.items():
            fused[rid] += weights[index] / (RANK_CONSTANT + rank[each[index]])
    order = sorted(fused, key=lambda rid: -fused[rid])
    skipped = info["skip"] or 0
    kept = order[skipped:] if info["take"] is None else order[skipped:skipped + info["take"]]
    return [documents[rid] for rid in kept if documents[rid] is not UNDEFINED]


def total_statistics(info, ranges, rows_of):
    parts = [row for each in ranges for row in rows_of(each, info["globalStatisticsQuery"])]
    total = {"documentCount": sum(part["documentCount"] for part in parts), "fullText": []}
    for components in zip(*(part["fullTextStatistics"] for part in parts)):
        total["fullText"].append({
            "words": sum(component["totalWordCount"] for component in components),
            "hits": [sum(counts) for counts in zip(*(component["hitCounts"] for component in components))]})
    return total


def with_statistics(text, statistics):
    if statistics is None:
        return text
    text = text.replace(HYBRID + "totaldocumentcount}", str(statistics["documentCount"]))
    for index, component in enumerate(statistics["fullText"]):
        text = text.replace(f"{HYBRID}totalwordcount-{index}}}", str(component["words"]))
        text = text.replace(f"{HYBRID}hitcountsarray-{index}}}", json.dumps(component["hits"]))
    return text
