"""Sorted queries as .NET's client reads them when it starts anew on each page: all it keeps is the plan's sort keys of the
last row, that row's _rid and its range.

Two ways to tell the server where to go on: as a condition in the text, in place of the plan's placeholder; or, with the
text as it is, in the member `resumeFilter` of the request's body.
"""

import json

from harness import wire
from plan_client import ORDER_FILTER, request_plan, row_key, target_ranges
from query_client import body_of, options, query_page
from values import TYPES, UNDEFINED, canonical, type_of

ROWS_MAX = 10_000
TYPE_TESTS = {"undefined": "NOT IS_DEFINED", "null": "IS_NULL", "boolean": "IS_BOOLEAN", "number": "IS_NUMBER",
              "string": "IS_STRING", "array": "IS_ARRAY", "object": "IS_OBJECT"}


class Position:
    def __init__(self, row, range_index, emitted_of_rid):
        self.values = [item.get("item", UNDEFINED) for item in row["orderByItems"]]
        self.rid, self.range_index, self.emitted_of_rid = row["_rid"], range_index, emitted_of_rid


def can_resume(plan):
    """A plan of rows that are sorted, and nothing else that a client would have to remember. Arrays and objects in the
    sort keys are told by a hash, which is not done here."""
    info = plan["queryInfo"]
    return bool(info and info["orderBy"] and not info["hasNonStreamingOrderBy"] and info["distinctType"] == "None" and
                info["top"] is None and info["offset"] is None)


def run_resumed(container, text, parameters, is_by_text):
    """All rows, one at a time. None when the plan is not of such a query."""
    plan = request_plan(container, body_of(text, parameters))
    if not can_resume(plan):
        return None
    info = plan["queryInfo"]
    ranges = target_ranges(container, plan["queryRanges"])
    payloads, position = [], None
    while (found := next_row(container, info, ranges, parameters, position, is_by_text)) is not None:
        position, row = found
        payloads.append(row["payload"])
        if any(type_of(value) in ("array", "object") for value in position.values):
            return None
        assert len(payloads) < ROWS_MAX, "the query does not end"
    return payloads


def next_row(container, info, ranges, parameters, position, is_by_text):
    """The smallest of the rows that the ranges have after the position, and the position of that row."""
    best = None
    for index, range_id in enumerate(ranges):
        row = first_after(container, info, parameters, range_id, index, position, is_by_text)
        if row is not None and (best is None or row_key(info["orderBy"], row) < row_key(info["orderBy"], best[1])):
            best = (index, row)
    if best is None:
        return None
    index, row = best
    is_same = position is not None and position.rid == row["_rid"] and position.range_index == index
    return Position(row, index, position.emitted_of_rid + 1 if is_same else 1), row


def first_after(container, info, parameters, range_id, index, position, is_by_text):
    body = body_of(info["rewrittenQuery"].replace(ORDER_FILTER, "true"), parameters)
    is_target = position is not None and index == position.range_index
    if position is not None:
        # Rows with the same keys come from left to right: those of ranges on the left have all been seen.
        is_left = index < position.range_index
        if is_by_text:
            condition = after(info, position.values, is_left)
            body["query"] = info["rewrittenQuery"].replace(ORDER_FILTER, condition)
        else:
            value = [[] if each is UNDEFINED else each for each in position.values]
            body["resumeFilter"] = {"value": value, "exclude": is_left} | ({"rid": position.rid} if is_target else {})
    rows = rows_of(container, body, range_id)
    return skip_seen(rows, position) if is_target else next(rows, None)


def rows_of(container, body, range_id):
    headers = options(page_size=2, range_id=range_id)
    while True:
        page = query_page(container, body, headers)
        yield from page.json["Documents"]
        if page[wire.CONTINUATION] is None:
            return
        headers[wire.CONTINUATION] = page[wire.CONTINUATION]


def skip_seen(rows, position):
    """The first row that is behind the position. The position's own rows must come again, if it is not past them."""
    wanted = [canonical(value) for value in position.values]
    seen_of_rid, is_past = 0, False
    for row in rows:
        keys = [canonical(item.get("item", UNDEFINED)) for item in row["orderByItems"]]
        if keys != wanted:
            return row
        if row["_rid"] == position.rid:
            seen_of_rid, is_past = seen_of_rid + 1, True
            if seen_of_rid > position.emitted_of_rid:
                return row
        elif is_past:
            return row
    return None


def after(info, values, is_strict):
    """The condition that a row is behind these keys: a later first key, or the same one and a later second key, …"""
    alternatives = []
    for count, value in enumerate(values):
        parts = [same(expression, each) for expression, each in zip(info["orderByExpressions"], values[:count])]
        is_last = count == len(values) - 1
        is_descending = info["orderBy"][count] == "Descending"
        parts.append(beyond(info["orderByExpressions"][count], value, is_descending, is_strict or not is_last))
        alternatives.append("(" + " AND ".join(parts) + ")")
    return " OR ".join(alternatives)


def same(expression, value):
    return f"NOT IS_DEFINED({expression})" if value is UNDEFINED else f"({expression} = {json.dumps(value)})"


def beyond(expression, value, is_descending, is_strict):
    """Later values of the same type, and all values of the types that come later."""
    rank = TYPES.index(type_of(value))
    later = TYPES[:rank] if is_descending else TYPES[rank + 1:]
    tests = [f"{TYPE_TESTS[kind]}({expression})" for kind in later]
    if value is UNDEFINED:
        tests += [] if is_strict else [f"NOT IS_DEFINED({expression})"]
    else:
        operator = ("<" if is_descending else ">") + ("" if is_strict else "=")
        tests.insert(0, f"{expression} {operator} {json.dumps(value)}")
    return f"({' OR '.join(tests) or 'false'})"
