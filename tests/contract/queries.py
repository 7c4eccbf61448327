"""Queries over the wire. `send` makes one request and holds every page against the rules for all pages (`check`);
`pages` follows continuations to the end, as every client does."""
import json
import re

from harness import wire
from harness.wire import CONTINUATION, MAX_ITEMS

IS_QUERY = {"content-type": "application/query+json", "x-ms-documentdb-isquery": "True"}
SERVED = "x-orrery-cross-partition-queries"
# Over several ranges, merged by the server; without SERVED it does as the service's gateway does.
CROSS = {"x-ms-documentdb-query-enablecrosspartition": "True", SERVED: "serve"}
AS_THE_SERVICE = {SERVED: None}
NO_CROSS = {"x-ms-documentdb-query-enablecrosspartition": "False"}
PLAN = {"x-ms-cosmos-is-query-plan-request": "True", "x-ms-cosmos-query-version": "1.4"}
FEATURES = "x-ms-cosmos-supported-query-features"
ALL_FEATURES = ("Aggregate,CompositeAggregate,Distinct,GroupBy,MultipleAggregates,MultipleOrderBy,OffsetAndLimit,OrderBy,Top,"
                "NonValueAggregate,DCount,NonStreamingOrderBy,ListAndSetAggregate,CountIf,HybridSearch,WeightedRankFusion")
ACCESS = "x-orrery-query-access"
EXPLAIN = "x-orrery-explain"
METRICS = "x-ms-documentdb-query-metrics"
EXECUTION_INFO = "x-ms-cosmos-query-execution-info"
ORDER_FILTER = "{documentdb-formattableorderbyquery-filter}"
TOKEN_BYTES_MAX = 1024


def body_of(text, parameters=None, **members):
    """Parameters by name, without @."""
    body = {"query": text} | members
    if parameters is not None:
        body["parameters"] = [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
    return body


def post(container, body, headers=None, client=None):
    """Not checked; `body` as it goes over the wire. Other headers replace those of a query across partitions, which the server is to merge."""
    return (client or container.client).post(container.docs, body, IS_QUERY | CROSS | (headers or {}))


def send(container, text, parameters=None, scope=None, size=None, token=None, headers=None, client=None, **members):
    """One page; errors are returned."""
    fields = (scope or {}) | (headers or {})
    if size is not None:
        fields[MAX_ITEMS] = size
    if token is not None:
        fields[CONTINUATION] = token
    response = post(container, body_of(text, parameters, **members), fields, client)
    if response.status == 200:
        check(response, container.rid, size)
    return response


def check(response, rid, size=None):
    """The invariants of every page."""
    body = response.json
    assert list(body) == ["_rid", "Documents", "_count"] and body["_rid"] == rid, f"{response!r}"
    assert body["_count"] == len(body["Documents"]) == int(response["x-ms-item-count"]), f"{response!r}"
    assert size is None or int(size) < 1 or body["_count"] <= int(size), f"more than {size} rows: {response!r}"
    assert json.loads(response[EXECUTION_INFO]) == {"reverseRidEnabled": False, "reverseIndexScan": False}
    assert response.charge > 0 and response[wire.SESSION], f"{response!r}"
    token = response[CONTINUATION]
    assert token is None or 0 < len(token) < TOKEN_BYTES_MAX, f"a token of {len(token)} bytes"


def pages(container, text, parameters=None, token=None, pages_max=2000, **options):
    """Each page, to the one without a continuation."""
    for _ in range(pages_max):
        page = send(container, text, parameters, token=token, **options).expect(200)
        yield page
        if (token := page[CONTINUATION]) is None:
            return
    raise AssertionError(f"{text}: still not at the end after {pages_max} pages")


def rows(container, text, parameters=None, **options):
    return [row for page in pages(container, text, parameters, **options) for row in page.json["Documents"]]


def plan(container, text, parameters=None, features=ALL_FEATURES, scope=None, client=None):
    headers = PLAN | (scope or {}) | ({FEATURES: features} if features is not None else {})
    return post(container, body_of(text, parameters), headers, client)


def error_of(response):
    """Start, end, code and message of the one error that a refused text has."""
    response.expect(400)
    match = re.match(r"Message: (\{.*\})\r\nActivityId: ", response.message, re.DOTALL)
    assert match, f"not in the form of errors in texts: {response.message!r}"
    (error,) = json.loads(match[1])["errors"]
    assert error["severity"] == "Error"
    return error["location"]["start"], error["location"]["end"], error.get("code"), error["message"]


def fill(container, documents, key="pk"):
    """Creates documents in this order; those without an id are named by their number."""
    return [container.create({"id": str(number)} | document, key=[document[key]] if key in document else [{}]).expect(201).json
            for number, document in enumerate(documents)]
