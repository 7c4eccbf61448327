"""Plans for clients that go from range to range by themselves, what they send to the ranges, and the refusal that carries a plan."""
import json

import pytest

import change_feed as cf
import queries
from harness.wire import CONTINUATION, MAX_ITEMS, OLDEST
from queries import ALL_FEATURES, AS_THE_SERVICE, ORDER_FILTER, PLAN

TEXT = "SELECT VALUE c.id FROM c"
INFO_MEMBERS = ["distinctType", "top", "offset", "limit", "orderBy", "orderByExpressions", "groupByExpressions", "groupByAliases", "aggregates",
                "groupByAliasToAggregateType", "rewrittenQuery", "hasSelectValue", "dCountInfo", "hasNonStreamingOrderBy"]
PLAIN = {"distinctType": "None", "top": None, "offset": None, "limit": None, "orderBy": [], "orderByExpressions": [], "groupByExpressions": [],
         "groupByAliases": [], "aggregates": [], "groupByAliasToAggregateType": {}, "rewrittenQuery": "", "hasSelectValue": False,
         "dCountInfo": None, "hasNonStreamingOrderBy": False}
EVERYTHING = {"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}
NOTHING = {"min": "", "max": "", "isMinInclusive": True, "isMaxInclusive": True}


def point(key):
    epk = cf.EPKS[key]
    return {"min": epk, "max": epk, "isMinInclusive": True, "isMaxInclusive": True}


@pytest.fixture(scope="module")
def shared_db(module_client):
    return module_client.create_database()


@pytest.fixture(scope="module")
def spread(shared_db):
    """Two ranges; 20 documents with ties and values of several types."""
    composite = {"indexingPolicy": {"compositeIndexes": [[{"path": "/tie"}, {"path": "/n", "order": "descending"}]]}}
    container = shared_db.create_container(composite, throughput=cf.TWO_RANGES)
    mixed = [None, True, 2, "x", 1.5, False]
    for n in range(20):
        document = {"id": f"d{n}", "pk": list(cf.EPKS)[n % 5], "n": n, "tie": n // 5, "list": list(range(n % 3))}
        if n % 7:
            document["mixed"] = mixed[n % 6]
        container.create(document).expect(201)
    return container


# ── The shape ───────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("text, changed", [
    ("SELECT * FROM c", {}), ("SELECT c.id FROM c WHERE c.n > 1", {}), (TEXT, {"hasSelectValue": True}),
    ("SELECT TOP 3 * FROM c", {"top": 3}),
    ("SELECT * FROM c OFFSET 2 LIMIT 3", {"offset": 2, "limit": 3, "rewrittenQuery": "SELECT *\nFROM c\nOFFSET 0 LIMIT 5"}),
    ("SELECT DISTINCT c.tie FROM c", {"distinctType": "Unordered"}),
    ("SELECT DISTINCT TOP 2 c.tie FROM c", {"distinctType": "Unordered", "top": 2, "rewrittenQuery": "SELECT DISTINCT c.tie\nFROM c"}),
    ("SELECT VALUE COUNT(1) FROM c", {"aggregates": ["Count"], "hasSelectValue": True, "rewrittenQuery": 'SELECT VALUE [{"item": COUNT(1)}]\nFROM c'}),
    ("SELECT VALUE AVG(c.n) FROM c WHERE c.pk != 'x'",
     {"aggregates": ["Average"], "hasSelectValue": True,
      "rewrittenQuery": 'SELECT VALUE [{"item": {"sum": SUM(c.n), "count": COUNT(c.n)}}]\nFROM c\nWHERE (c.pk != "x")'}),
    ("SELECT VALUE MAX(c.n) FROM c",
     {"aggregates": ["Max"], "hasSelectValue": True,
      "rewrittenQuery": 'SELECT VALUE [{"item": MAX(c.n), "item2": {"max": MAX(c.n), "count": COUNT(c.n)}}]\nFROM c'}),
    ("SELECT COUNT(1), SUM(c.n) AS s FROM c",
     {"groupByAliases": ["$1", "s"], "groupByAliasToAggregateType": {"$1": "Count", "s": "Sum"},
      "rewrittenQuery": 'SELECT {"$1": {"item": COUNT(1)}, "s": {"item": SUM(c.n)}} AS payload\nFROM c'}),
    ("SELECT c.tie, COUNT(1) AS n FROM c GROUP BY c.tie",
     {"groupByExpressions": ["c.tie"], "groupByAliases": ["tie", "n"], "groupByAliasToAggregateType": {"tie": None, "n": "Count"},
      "rewrittenQuery": 'SELECT [{"item": c.tie}] AS groupByItems, {"tie": c.tie, "n": {"item": COUNT(1)}} AS payload\nFROM c\nGROUP BY c.tie'}),
    ("SELECT c.id, c.n + 1 FROM c WHERE c.n > 1 ORDER BY c.tie, c.n DESC",
     {"orderBy": ["Ascending", "Descending"], "orderByExpressions": ["c.tie", "c.n"],
      "rewrittenQuery": 'SELECT c._rid, [{"item": c.tie}, {"item": c.n}] AS orderByItems, {"id": c.id, "$1": (c.n + 1)} AS payload\nFROM c\n'
                        f'WHERE ((c.n > 1) AND ({ORDER_FILTER}))\nORDER BY c.tie, c.n DESC'}),
    ("SELECT TOP 4 VALUE c.n FROM c ORDER BY c.n",
     {"top": 4, "orderBy": ["Ascending"], "orderByExpressions": ["c.n"], "hasSelectValue": True,
      "rewrittenQuery": f'SELECT TOP 4 c._rid, [{{"item": c.n}}] AS orderByItems, c.n AS payload\nFROM c\nWHERE (({ORDER_FILTER}) AND IS_DEFINED(c.n))\n'
                        'ORDER BY c.n'}),
    ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.tie FROM c)",
     {"dCountInfo": {"dCountAlias": ""}, "distinctType": "Unordered", "rewrittenQuery": "SELECT DISTINCT VALUE c.tie\nFROM c", "hasSelectValue": True}),
    ("SELECT 1", {})])
def test_what_a_plan_says(spread, text, changed):
    response = queries.plan(spread, text).expect(200)
    plan = response.json
    assert list(plan) == ["partitionedQueryExecutionInfoVersion", "queryInfo", "queryRanges", "hybridSearchQueryInfo"]
    assert plan["partitionedQueryExecutionInfoVersion"] == 2 and plan["hybridSearchQueryInfo"] is None
    assert list(plan["queryInfo"]) == INFO_MEMBERS
    assert plan["queryInfo"] == PLAIN | changed
    assert plan["queryRanges"] == [NOTHING if text == "SELECT 1" else EVERYTHING]
    assert response["content-type"].startswith("application/json") and response[CONTINUATION] is None


@pytest.mark.parametrize("condition, ranges", [
    ("c.pk = 'aa'", [point("aa")]), ("c.pk = @p", [point("aa")]), ("c.pk IN ('a', 'aa', 'a')", [point("aa"), point("a")]),
    ("c.pk = 'a' OR c.pk = 'aa'", [point("aa"), point("a")]), ("c.pk = 'a' AND c.n = 1", [point("a")]), ("c.pk IN ('a', 'aa') AND c.pk = 'a'", [point("a")]),
    ("c.pk = 'a' AND c.pk = 'aa'", [NOTHING]), ("false", [NOTHING]), ("c.pk > 'a'", [EVERYTHING]), ("STARTSWITH(c.pk, 'a')", [EVERYTHING]),
    ("c.pk = 'a' OR c.n = 1", [EVERYTHING]), ("c.pk[0] = 'a'", [EVERYTHING]), ("c.pk != 'a'", [EVERYTHING]), ("c.pk LIKE 'aa'", [point("aa")]),
    ("ARRAY_CONTAINS(['aa'], c.pk)", [point("aa")])])
def test_query_ranges_come_of_the_filter(spread, condition, ranges):
    assert queries.plan(spread, f"SELECT * FROM c WHERE {condition}", {"p": "aa"}).expect(200).json["queryRanges"] == ranges


def test_zero_is_two_points(spread):
    """The keys 0 and -0 are equal, but have different hashes."""
    epks = ["155B95BEDAC4B1E9EC1CDC9BB0DDDE58", "3D018BB1DF3DB27235766E81FD10406E"]
    for condition in ("c.pk = 0", "c.pk = -0.0", "c.pk IN (0, -0.0)"):
        plan = queries.plan(spread, f"SELECT TOP 2 c.id FROM c WHERE {condition}").expect(200).json
        assert plan["queryRanges"] == [{"min": epk, "max": epk, "isMinInclusive": True, "isMaxInclusive": True} for epk in epks]
        assert plan["queryInfo"]["top"] == 2


def test_query_ranges_of_a_hierarchical_key(shared_db):
    container = shared_db.create_container({"partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}})

    def ranges(condition):
        return queries.plan(container, f"SELECT * FROM c WHERE {condition}").expect(200).json["queryRanges"]

    (whole,) = ranges("c.a = 'x' AND c.b = 'y'")
    (prefix,) = ranges("c.a = 'x'")
    assert whole["min"] == whole["max"] and whole["isMaxInclusive"]
    assert prefix["min"] <= whole["min"] < prefix["max"] and len(whole["min"]) == 64
    assert ranges("c.b = 'y'") == [EVERYTHING]


def test_flags_of_a_plan_request_are_read_in_any_spelling(spread):
    for value in ("True", "true", "1"):
        assert queries.post(spread, {"query": TEXT}, PLAN | {"x-ms-cosmos-is-query-plan-request": value}).expect(200).json["queryInfo"]
    assert "Documents" in queries.post(spread, {"query": TEXT}, PLAN | {"x-ms-cosmos-is-query-plan-request": "false"}).expect(200).json


@pytest.mark.parametrize("text, missing", [
    ("SELECT VALUE COUNT(1) FROM c", ["Aggregate"]), ("SELECT TOP 1 * FROM c", ["Top"]), ("SELECT * FROM c ORDER BY c.n", ["OrderBy"]),
    ("SELECT DISTINCT c.n FROM c", ["Distinct"]), ("SELECT * FROM c OFFSET 0 LIMIT 1", ["OffsetAndLimit"]), ("SELECT c.n FROM c GROUP BY c.n", ["GroupBy"]),
    ("SELECT * FROM c ORDER BY c.tie, c.n DESC", ["OrderBy", "MultipleOrderBy"]), ("SELECT COUNT(1) AS n FROM c", ["NonValueAggregate"])])
def test_features_that_the_client_did_not_announce(spread, text, missing):
    for features in ("None", ", ".join(name for name in ALL_FEATURES.split(",") if name not in missing)):
        response = queries.plan(spread, text, features=features).expect(400)
        assert response.message.startswith("Query contains the following features, which the calling client does not support: ")
        assert all(name in response.message for name in missing[:1])
    queries.plan(spread, text, features=ALL_FEATURES.replace(",", ", ")).expect(200)


def test_optimisations_are_not_demanded(spread):
    python = ",".join(name for name in ALL_FEATURES.split(",") if name not in ("DCount", "CompositeAggregate"))
    queries.plan(spread, "SELECT VALUE AVG(c.n) FROM c", features=python).expect(200)
    queries.plan(spread, "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.tie FROM c)", features=python).expect((200, 400))


@pytest.mark.parametrize("text", ["SELECT", "SELECT * FROM c WHERE", "SELECT x.y FROM c", "SELECT VALUE COUNT(1) + 1 FROM c"])
def test_texts_that_cannot_be_planned_are_400(spread, text):
    queries.plan(spread, text).expect(400)


def test_plans_of_other_lists_are_refused(client, db):
    client.post("/dbs", {"query": "SELECT * FROM c"}, queries.IS_QUERY | PLAN).expect((400, 405, 501))


# ── What ranges answer ──────────────────────────────────────────────────────────────────────────────

def per_range(container, text, size=None, **members):
    """The rows of each range, from left to right."""
    return [queries.rows(container, text, scope=cf.of_range(each["id"]), size=size, **members) for each in container.ranges()]


def rewritten(container, text, condition="true"):
    return queries.plan(container, text).expect(200).json["queryInfo"]["rewrittenQuery"].replace(ORDER_FILTER, condition)


def test_parts_of_aggregates_add_up(spread):
    parts = [rows[0][0]["item"] for rows in per_range(spread, rewritten(spread, "SELECT VALUE AVG(c.n) FROM c"))]
    assert len(parts) == 2 and sum(part["sum"] for part in parts) == 190 and sum(part["count"] for part in parts) == 20
    assert per_range(spread, rewritten(spread, "SELECT VALUE MIN(c.none) FROM c")) == [[[{"item2": {"count": 0}}]]] * 2
    assert per_range(spread, rewritten(spread, "SELECT VALUE SUM(c.none) FROM c")) == [[[{"item": 0}]]] * 2
    assert per_range(spread, rewritten(spread, "SELECT VALUE SUM(c.id) FROM c")) == [[[{}]]] * 2
    assert per_range(spread, rewritten(spread, "SELECT VALUE AVG(c.id) FROM c"))[0][0][0]["item"].keys() == {"count"}


def test_parts_of_groups(spread):
    rows = [row for rows in per_range(spread, rewritten(spread, "SELECT c.none, c.tie, COUNT(1) AS n FROM c GROUP BY c.none, c.tie"), size=1) for row in rows]
    assert all(list(row) == ["groupByItems", "payload"] and row["groupByItems"][0] == {} for row in rows)
    assert sum(row["payload"]["n"]["item"] for row in rows) == 20 and all("none" not in row["payload"] for row in rows)


@pytest.mark.parametrize("text", ["SELECT c.id FROM c ORDER BY c.tie", "SELECT c.id FROM c ORDER BY c.mixed DESC", "SELECT * FROM c ORDER BY c.tie, c.n DESC",
                                  "SELECT c.id, e FROM c JOIN e IN c.list ORDER BY c.tie"])
def test_sorted_rows_have_their_keys_and_rids(spread, text):
    direct = queries.rows(spread, text)
    payloads = []
    for rows in per_range(spread, rewritten(spread, text), size=3):
        assert all(list(row) == ["_rid", "orderByItems", "payload"] for row in rows)
        payloads += [row["payload"] for row in rows]
        assert all(item == {} or list(item) == ["item"] for row in rows for item in row["orderByItems"])
    assert sorted(map(repr, payloads)) == sorted(map(repr, direct))


def test_conditions_that_clients_put_in_place_of_the_filter(spread):
    text = "SELECT VALUE c.mixed FROM c ORDER BY c.mixed"

    def found(condition):
        return [row["payload"] for rows in per_range(spread, rewritten(spread, text, condition)) for row in rows]

    everything = found("true")
    numbers_on = found("( c.mixed >= 1.5 OR IS_STRING(c.mixed) OR IS_ARRAY(c.mixed) OR IS_OBJECT(c.mixed) )")
    assert sorted(map(repr, numbers_on)) == sorted(repr(value) for value in everything if isinstance(value, str) or (type(value) in (int, float)))
    assert set(map(repr, found("( c.mixed <= true OR NOT IS_DEFINED(c.mixed) OR IS_NULL(c.mixed) )"))) == {"None", "True", "False"}
    assert all(isinstance(value, bool) for value in found("IS_BOOLEAN(c.mixed)")) and found("IS_BOOLEAN(c.mixed)")
    assert found("(c.mixed > 'v')") == ["x"] * everything.count("x") and found("false") == []


# ── Going on by resumeFilter ────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("text", ["SELECT c.id FROM c ORDER BY c.tie", "SELECT c.id FROM c ORDER BY c.tie DESC", "SELECT c.id FROM c ORDER BY c.mixed",
                                  "SELECT c.id FROM c ORDER BY c.mixed DESC", "SELECT c.id FROM c ORDER BY c.tie, c.n DESC",
                                  "SELECT c.id, e FROM c JOIN e IN c.list ORDER BY c.tie"])
def test_a_resume_filter_starts_at_its_value_and_rid(spread, text):
    sent = rewritten(spread, text)
    for each in spread.ranges():
        scope = cf.of_range(each["id"])
        rows = queries.rows(spread, sent, scope=scope)
        for at, row in enumerate(rows):
            value = [item.get("item", []) for item in row["orderByItems"]]
            at_value = next(n for n, other in enumerate(rows) if other["orderByItems"] == row["orderByItems"])
            behind = next((n for n, other in enumerate(rows) if n > at and other["orderByItems"] != row["orderByItems"]), len(rows))
            first_of_rid = next(n for n, other in enumerate(rows) if other["_rid"] == row["_rid"])
            for resume, start in (({"value": value}, at_value), ({"value": value, "exclude": False}, at_value), ({"value": value, "exclude": True}, behind),
                                  ({"value": value, "rid": row["_rid"], "exclude": False}, first_of_rid)):
                assert queries.rows(spread, sent, scope=scope, size=4, resumeFilter=resume) == rows[start:], resume


def test_of_continuation_and_resume_filter_the_one_further_on_counts(spread):
    sent = rewritten(spread, "SELECT c.id FROM c ORDER BY c.n")
    scope = cf.of_range("1")
    rows = queries.rows(spread, sent, scope=scope)
    late = {"value": [rows[6]["orderByItems"][0]["item"]], "exclude": False}
    early = {"value": [rows[1]["orderByItems"][0]["item"]], "exclude": False}
    token = queries.send(spread, sent, scope=scope, size=4).expect(200)[CONTINUATION]
    assert queries.rows(spread, sent, scope=scope, token=token, resumeFilter=late) == rows[6:]
    assert queries.rows(spread, sent, scope=scope, token=token, resumeFilter=early) == rows[4:]


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_pages_from_a_resume_filter_with_a_long_value_end(container, direction):
    for n in range(9):
        container.create({"id": str(n), "pk": "a", "long": "x" * 3000 + str(n % 3)}).expect(201)
    sent = rewritten(container, f"SELECT VALUE c.id FROM c ORDER BY c.long {direction}")
    rows = queries.rows(container, sent, scope=cf.of_range("0"))
    resume = {"value": ["x" * 3000 + "1"], "exclude": False}
    assert queries.rows(container, sent, scope=cf.of_range("0"), size=1, resumeFilter=resume, pages_max=20) == rows[3:]
    later = {"value": ["x" * 3000 + "1"], "exclude": True}
    assert queries.rows(container, sent, scope=cf.of_range("0"), size=1, resumeFilter=later, pages_max=20) == rows[6:]


@pytest.mark.parametrize("resume", [1, "x", [], {}, {"value": 1}, {"value": [1, 2, 3]}, {"value": [1], "rid": "nonsense"}])
def test_resume_filters_that_do_not_fit_are_400(spread, resume):
    queries.send(spread, rewritten(spread, "SELECT c.id FROM c ORDER BY c.n"), scope=cf.of_range("0"), resumeFilter=resume).expect(400)


@pytest.mark.parametrize("resume", [{"value": [5], "rid": "abc", "exclude": False}, {"value": [1]}, {"value": []}, {}, 1])
def test_a_resume_filter_of_a_query_without_an_order_is_ignored(spread, resume):
    for text in (TEXT, "SELECT VALUE COUNT(1) FROM c", "SELECT DISTINCT VALUE c.tie FROM c", "SELECT VALUE 1"):
        assert queries.rows(spread, text, resumeFilter=resume) == queries.rows(spread, text), text
        assert queries.rows(spread, text, scope=cf.of_range("0"), resumeFilter=resume) == queries.rows(spread, text, scope=cf.of_range("0")), text


def test_hashes_of_arrays_start_at_their_type(container):
    for n, value in enumerate([1, "x", [1], [2], {"a": 1}]):
        container.create({"id": str(n), "pk": "a", "v": value}).expect(201)
    text = rewritten(container, "SELECT VALUE c.id FROM c ORDER BY c.v")
    for kind, found in (("array", {"2", "3", "4"}), ("object", {"4"})):
        resume = {"value": [{"type": kind, "low": -12, "high": 77}], "exclude": False}
        assert {row["payload"] for row in queries.rows(container, text, scope=cf.of_range("0"), resumeFilter=resume)} == found


# ── The refusal that carries the plan ───────────────────────────────────────────────────────────────

FIRST_CHANCE = "The provided cross partition query can not be directly served by the gateway. This is a first chance (internal) exception"


@pytest.fixture(scope="module")
def refusing(module_client):
    """Two ranges, asked as the service's clients do: without our header."""
    container = module_client.create_database().create_container(throughput=cf.TWO_RANGES)
    for key in cf.EPKS:
        container.create({"id": key, "pk": key, "n": len(key)}).expect(201)
    return container


def ask(container, text, headers=None):
    return queries.send(container, text, headers=AS_THE_SERVICE | (headers or {}))


def rows_of(container, text, **options):
    return queries.rows(container, text, headers=AS_THE_SERVICE, **options)


def test_the_server_refuses_with_the_plan_as_the_service_does(refusing):
    for text, member, value in (("SELECT VALUE COUNT(1) FROM c", "aggregates", ["Count"]), ("SELECT TOP 1 * FROM c", "top", 1),
                                ("SELECT * FROM c ORDER BY c.n", "orderBy", ["Ascending"]), ("SELECT * FROM c OFFSET 1 LIMIT 1", "offset", 1),
                                ("SELECT DISTINCT c.n FROM c", "distinctType", "Unordered"),
                                ("SELECT * FROM c ORDER BY VectorDistance(c.v, [1, 2])", "hasNonStreamingOrderBy", True),
                                ("SELECT c.n FROM c GROUP BY c.n", "groupByExpressions", ["c.n"])):
        response = ask(refusing, text).expect(400, 1004, FIRST_CHANCE)
        assert list(response.json) == ["code", "message", "additionalErrorInfo"] and response.json["code"] == "BadRequest"
        plan = json.loads(response.json["additionalErrorInfo"])
        assert plan["queryInfo"][member] == value and plan["queryRanges"] == [EVERYTHING], text
        assert plan["partitionedQueryExecutionInfoVersion"] == 2


def test_old_clients_find_the_item_first_and_alone(refusing):
    response = ask(refusing, "SELECT VALUE MAX(c.n) FROM c").expect(400, 1004)
    sent = json.loads(response.json["additionalErrorInfo"])["queryInfo"]["rewrittenQuery"]
    assert sent == 'SELECT VALUE [{"item": MAX(c.n)}]\nFROM c'
    assert max(rows[0][0]["item"] for rows in per_range(refusing, sent)) == len("partitionKey")


@pytest.mark.parametrize("text", [
    "SELECT COUNT(1) AS n FROM c", "SELECT c.n, COUNT(1) AS m FROM c GROUP BY c.n", "SELECT COUNT(1) FROM c", "SELECT AVG(c.n) FROM c",
    "SELECT COUNT(1) FROM c WHERE c.pk = 'aa'", "SELECT AVG(c.n) AS mean FROM c WHERE c.pk = 'aa'"])
def test_aggregates_that_old_clients_cannot_put_together(refusing, text):
    response = ask(refusing, text).expect(400, 0)
    assert "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates." in response.message


def test_aggregates_of_a_pinned_key_are_served_to_who_does_not_cross(refusing):
    page = ask(refusing, "SELECT COUNT(1) AS n FROM c WHERE c.pk = 'aa'", queries.NO_CROSS).expect(200)
    assert page.json["Documents"] == [{"n": 1}]


def test_clients_of_2017_are_served_what_is_of_one_key(refusing):
    def asked(text):
        return refusing.client.post(refusing.docs, {"query": text}, queries.IS_QUERY | queries.CROSS | AS_THE_SERVICE, version=OLDEST)

    assert asked("SELECT COUNT(1) AS n FROM c WHERE c.pk = 'aa'").expect(200).json["Documents"] == [{"n": 1}]
    asked("SELECT COUNT(1) AS n FROM c").expect(400, 0)


def test_what_the_service_serves_itself_is_served(refusing):
    refusing.create({"id": "zero", "pk": 0}).expect(201)
    for text, count in ((TEXT, 6), (TEXT + " WHERE c.n > 3", 3), ("SELECT VALUE c.id FROM c WHERE c.pk IN ('a', 'aa')", 2),
                        ("SELECT VALUE c.id FROM c WHERE c.id LIKE '%a%'", 3), ("SELECT TOP 2 c.id FROM c WHERE c.pk = 0", 1),
                        ("SELECT TOP 2 c.id FROM c WHERE false", 0), ("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 1 AND c.pk = 2", 1)):
        assert len(rows_of(refusing, text)) == count, text
    refusing.delete("zero", [0]).expect(204)


def test_with_a_target_everything_is_served(refusing):
    assert rows_of(refusing, "SELECT VALUE COUNT(1) FROM c", scope=cf.of_key("aa")) == [1]
    assert rows_of(refusing, "SELECT COUNT(1) AS n FROM c", scope=cf.of_key("aa")) == [{"n": 1}]
    assert rows_of(refusing, "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'aa'") == [1]
    assert sum(rows[0] for rows in per_range(refusing, "SELECT VALUE COUNT(1) FROM c")) == 5
    assert queries.plan(refusing, "SELECT VALUE COUNT(1) FROM c").expect(200).json["queryInfo"]["aggregates"] == ["Count"]


def test_who_was_served_before_a_split_is_served_to_the_end(container):
    container.fill(6)
    text = "SELECT VALUE c.n FROM c ORDER BY c.n"
    first = ask(container, text, {MAX_ITEMS: "2"}).expect(200)
    cf.split(container)
    ask(container, text).expect(400, 1004)
    assert first.json["Documents"] + rows_of(container, text, token=first[CONTINUATION]) == list(range(6))


def test_one_range_is_served_whole(container):
    container.create({"id": "x", "pk": "a", "n": 7}).expect(201)
    assert rows_of(container, "SELECT COUNT(1) AS n FROM c") == [{"n": 1}]


def test_the_header_asks_for_the_whole(spread):
    body = {"query": "SELECT VALUE COUNT(1) FROM c"}
    for version in (OLDEST, None):
        response = spread.client.post(spread.docs, body, queries.IS_QUERY | queries.CROSS, version=version).expect(200)
        assert response.json["Documents"] == [20]
    queries.send(spread, body["query"], headers={queries.SERVED: "plan"}).expect(400, 1004)
    queries.send(spread, body["query"], headers={queries.SERVED: "both"}).expect(400, text="must be serve or plan")


def test_the_option_serves_the_whole_to_every_client(server):
    with server("--cross-partition-queries", "serve").client() as client:
        container = client.create_database().create_container(throughput=cf.TWO_RANGES)
        assert rows_of(container, "SELECT COUNT(1) AS n FROM c") == [{"n": 0}]
        queries.send(container, "SELECT VALUE COUNT(1) FROM c", headers={queries.SERVED: "plan"}).expect(400, 1004)
