"""The request of a query, the part of the container that it is about, and the contents of its answer."""
import json

import pytest

import change_feed as cf
import queries
from harness import wire
from harness.waiting import wait_until
from harness.wire import KEY, MAX_ITEMS, RANGE_ID, SESSION
from queries import CROSS, IS_QUERY, NO_CROSS

TEXT = "SELECT VALUE c.id FROM c"
DISABLED = ("Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, "
            "specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.")
NESTED = {"partitionKey": {"paths": ["/tenant", "/user", "/session"], "kind": "MultiHash", "version": 2}}


@pytest.fixture(scope="module")
def shared_db(module_client):
    return module_client.create_database()


@pytest.fixture(scope="module")
def spread(shared_db):
    """Two ranges; per key of EPKS two documents, and the keys null, {} (none) and 1."""
    container = shared_db.create_container(throughput=cf.TWO_RANGES)
    for number in range(2):
        for key in cf.EPKS:
            container.create({"id": f"{key} {number}", "pk": key, "n": number}).expect(201)
    container.create({"id": "null", "pk": None}).expect(201)
    container.create({"id": "one", "pk": 1}).expect(201)
    container.create({"id": "none"}, key=[{}]).expect(201)
    return container


@pytest.fixture(scope="module")
def nested(shared_db):
    container = shared_db.create_container(NESTED, throughput=cf.TWO_RANGES)
    for tenant, user, session in (("a", 1, "x"), ("a", 1, "y"), ("a", 2, "x"), ("b", 1, "x")):
        document = {"id": f"{tenant}{user}{session}", "tenant": tenant, "user": user, "session": session}
        container.create(document, key=[tenant, user, session]).expect(201)
    container.create({"id": "a1", "tenant": "a", "user": 1}, key=["a", 1, {}]).expect(201)
    return container


def everything(container):
    return sorted(queries.rows(container, TEXT))


# ── What is a query ─────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("flag", ["True", "true", "1", "TRUE", None])
@pytest.mark.parametrize("content_type", ["application/query+json", "application/query+json; charset=utf-8"])
def test_the_content_type_alone_makes_it_a_query(spread, content_type, flag):
    headers = {"content-type": content_type, "x-ms-documentdb-isquery": flag}
    assert queries.post(spread, {"query": TEXT}, headers).expect(200).json["_count"] == 13


@pytest.mark.parametrize("content_type", ["Application/Query+JSON", "APPLICATION/QUERY+JSON;charset=utf-8", "application/Query+json ; charset=utf-8"])
def test_content_types_are_read_in_any_case(spread, content_type):
    headers = {"content-type": content_type, "x-ms-documentdb-isquery": None}
    assert queries.post(spread, {"query": TEXT}, headers).expect(200).json["_count"] == 13


@pytest.mark.parametrize("flag", ["True", "true", "1"])
def test_the_flag_makes_json_a_query(spread, flag):
    headers = {"content-type": "application/json", "x-ms-documentdb-isquery": flag}
    assert queries.post(spread, {"query": TEXT}, headers).expect(200).json["_count"] == 13


@pytest.mark.parametrize("content_type", ["application/sql", "Application/SQL", "application/sql; charset=utf-8"])
@pytest.mark.parametrize("flag", ["True", None])
def test_sql_has_the_bare_text_as_its_body(spread, flag, content_type):
    headers = {"content-type": content_type, "x-ms-documentdb-isquery": flag}
    page = queries.post(spread, "SELECT VALUE 'ä' || c.id FROM c WHERE c.id = 'one'", headers).expect(200)
    assert page.json["Documents"] == ["äone"]
    queries.post(spread, '{"query":"SELECT 1"}', headers).expect(400)


def test_json_without_the_flag_creates(container):
    body = {"query": TEXT, "id": "x", "pk": "a"}
    for headers in ({}, {"x-ms-documentdb-isquery": "false"}):
        container.client.post(container.docs, body | {"id": f"x{len(headers)}"}, cf.of_key("a") | CROSS | headers).expect(201)
    assert everything(container) == ["x0", "x1"]


@pytest.mark.parametrize("body", [
    "", "{", "[]", '"SELECT 1"', "null", "{}", '{"query":1}', '{"query":null}', '{"Query":"SELECT 1"}', '{"query":"SELECT 1"} x',
    '{"query":"SELECT 1","parameters":{}}', '{"query":"SELECT 1","parameters":"x"}', '{"query":"SELECT 1","parameters":[1]}',
    '{"query":"SELECT 1","parameters":[null]}', '{"query":"SELECT 1","parameters":[{}]}', '{"query":"SELECT 1","parameters":[{"value":1}]}',
    '{"query":"SELECT 1","parameters":[{"name":1,"value":1}]}', b'{"query":"SELECT \xff"}'])
def test_malformed_bodies_are_400(container, body):
    queries.post(container, body).expect(400)


@pytest.mark.parametrize("members", [
    {}, {"parameters": None}, {"parameters": []}, {"clientQLCompatibilityLevel": 2}, {"resumeFilter": None}, {"other": {"deep": [1]}}])
def test_members_that_need_not_be_there(container, members):
    assert queries.post(container, {"query": "SELECT VALUE 1"} | members).expect(200).json["Documents"] == [1]


@pytest.mark.parametrize("header", [
    "x-ms-documentdb-query-enable-scan", "x-ms-documentdb-query-emit-traces", "x-ms-documentdb-query-enable-low-precision-order-by",
    "x-ms-documentdb-query-iscontinuationexpected", "x-ms-documentdb-query-parallelizecrosspartitionquery", "x-ms-cosmos-populatequeryadvice",
    "x-ms-cosmos-query-optimisticdirectexecute", "x-ms-cosmos-allow-tentative-writes"])
def test_hints_change_nothing(spread, header):
    for value in ("True", "false"):
        assert len(queries.rows(spread, TEXT, headers={header: value})) == 13


def test_other_headers_of_clients_are_taken(spread):
    headers = {"x-ms-cosmos-correlated-activityid": cf.fresh_activity(), "x-ms-cosmos-sdk-supportedcapabilities": "1",
               "x-ms-cosmos-supported-serialization-formats": "JsonText, CosmosBinary", "x-ms-consistency-level": "Session",
               "x-ms-documentdb-responsecontinuationtokenlimitinkb": "1"}
    page = queries.send(spread, TEXT, headers=headers).expect(200)
    assert page["content-type"].startswith("application/json") and page.json["_count"] == 13


# ── Parameters ──────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("value", [None, True, 0, -1.5, 9007199254740993, "ä\u0000\U0001f600", [], [1, [2]], {}, {"a": {"b": None}}],
                         ids=repr)
def test_a_parameter_is_any_value(container, value):
    assert queries.rows(container, "SELECT VALUE @p", {"p": value}) == [value]
    assert queries.rows(container, "SELECT VALUE {x: [@p]}", {"p": value}) == [{"x": [value]}]


@pytest.mark.parametrize("name", ["p", "@", "@1", "@a b", "@a.b", "", "@@a", "@-", " @a"])
def test_a_parameter_name_is_at_and_an_identifier(container, name):
    queries.post(container, {"query": "SELECT 1", "parameters": [{"name": name, "value": 1}]}).expect(400)


@pytest.mark.parametrize("name", ["@a", "@_", "@A1_b"])
def test_names_that_are_good(container, name):
    body = {"query": f"SELECT VALUE {name}", "parameters": [{"name": name, "value": 1}]}
    assert queries.post(container, body).expect(200).json["Documents"] == [1]


def test_a_name_twice_is_400(container):
    twice = [{"name": "@p", "value": 1}, {"name": "@p", "value": 1}]
    queries.post(container, {"query": "SELECT VALUE @p", "parameters": twice}).expect(400)
    other_case = [{"name": "@p", "value": 1}, {"name": "@P", "value": 2}]
    page = queries.post(container, {"query": "SELECT VALUE [@p, @P]", "parameters": other_case}).expect(200)
    assert page.json["Documents"] == [[1, 2]]


def test_what_is_not_supplied_is_undefined(container):
    assert queries.rows(container, "SELECT VALUE IS_DEFINED(@p)") == [False]
    valueless = {"query": "SELECT VALUE IS_DEFINED(@p)", "parameters": [{"name": "@p"}]}
    assert queries.post(container, valueless).expect(200).json["Documents"] == [False]
    assert queries.rows(container, "SELECT VALUE 1", {"unused": 1}) == [1]


def test_where_parameters_may_stand(spread):
    assert queries.rows(spread, "SELECT VALUE c[@name] FROM c WHERE c.pk = @pk AND c.n = @n", {"name": "id", "pk": "aa", "n": 1}) == ["aa 1"]
    assert len(queries.rows(spread, "SELECT TOP @n c.id FROM c", {"n": 3})) == 3
    assert queries.rows(spread, "SELECT VALUE c.id FROM c ORDER BY c.id OFFSET @o LIMIT @l", {"o": 1, "l": 2}) == ["Hello World 1", "a 0"]
    for value in (-1, 1.5, "1", None):
        queries.send(spread, "SELECT TOP @n c.id FROM c", {"n": value}).expect(400)


# ── Numbers ─────────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("expression, text", [
    ("1/3", "0.3333333333333333"), ("-2/3", "-0.6666666666666666"), ("0.1 + 0.2", "0.30000000000000004"), ("5019.9999999999909 * 1", "5019.999999999991"),
    ("10/4", "2.5"), ("6/3", "2"), ("1e15 * 1.0", "1e+15"), ("9223372036854775807 + 1", "9.223372036854776e+18"), ("1/10000000", "1e-07"), ("PI()", "3.141592653589793"),
    ("5e-324 * 1", "5e-324"), ("ToString(1/3)", '"0.3333333333333333"')])
def test_computed_numbers_have_no_more_digits_than_they_need(container, expression, text):
    page = queries.send(container, f"SELECT VALUE {expression}").expect(200)
    assert page.body.decode() == f'{{"_rid":"{container.rid}","Documents":[{text}],"_count":1}}'


# ── Where it runs ───────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("key", list(cf.EPKS))
@pytest.mark.parametrize("flag", [CROSS, NO_CROSS, {"x-ms-documentdb-query-enablecrosspartition": None}], ids=["on", "off", "absent"])
def test_the_key_header_is_that_logical_partition(spread, key, flag):
    assert queries.rows(spread, TEXT, scope=cf.of_key(key), headers=flag) == [f"{key} 0", f"{key} 1"]


@pytest.mark.parametrize("key, found", [("[null]", ["null"]), ("[{}]", ["none"]), ("[1]", ["one"]), ("[1.0]", ["one"]), ('["1"]', []), ("[true]", [])])
def test_keys_that_are_no_text(spread, key, found):
    assert queries.rows(spread, TEXT, scope={KEY: key}) == found
    assert queries.rows(spread, "SELECT VALUE COUNT(1) FROM c", scope={KEY: key}) == [len(found)]


def test_a_key_of_nothing_names_no_partition(spread):
    assert len(queries.rows(spread, TEXT, scope={KEY: "[]"})) == 13


@pytest.mark.parametrize("key", ["x", "{}", "[", '["a","b"]', "[[]]", '[{"a":1}]'])
def test_key_headers_that_fit_no_key_are_400(spread, key):
    queries.send(spread, TEXT, scope={KEY: key}).expect(400)


@pytest.mark.parametrize("key, found", [
    (["a"], ["a1", "a1x", "a1y", "a2x"]), (["a", 1], ["a1", "a1x", "a1y"]), (["a", 1, "x"], ["a1x"]), (["a", 1, {}], ["a1"]),
    (["b"], ["b1x"]), (["c"], []), (["a", "1"], [])])
def test_a_prefix_of_a_hierarchical_key(nested, key, found):
    scope = cf.of_key(*key) | NO_CROSS
    assert sorted(queries.rows(nested, TEXT, scope=scope)) == found
    assert queries.rows(nested, "SELECT VALUE c.id FROM c ORDER BY c.id", scope=scope, size=2) == found
    assert queries.rows(nested, "SELECT VALUE COUNT(1) FROM c", scope=scope) == [len(found)]


def test_more_components_than_the_key_has_are_400(nested):
    queries.send(nested, TEXT, scope=cf.of_key("a", 1, "x", 1)).expect(400)


@pytest.mark.parametrize("condition, found", [
    ("c.tenant = 'a' AND c.user = 1 AND c.session = 'x'", ["a1x"]), ("c.tenant = 'a' AND c.user = 1 AND c.session = 'x' AND c.id = 'no'", [])])
def test_a_filter_that_pins_a_whole_hierarchical_key_needs_no_permission(nested, condition, found):
    assert queries.rows(nested, f"{TEXT} WHERE {condition}", headers=NO_CROSS) == found


@pytest.mark.parametrize("prefix", ["", "rid"], ids=["number", "with rid"])
def test_a_range_id_is_that_range(spread, prefix):
    found = []
    for each in spread.ranges():
        scope = cf.of_range(f"{spread.rid},{each['id']}" if prefix else each["id"])
        page = queries.send(spread, TEXT, scope=scope | NO_CROSS).expect(200)
        assert page[RANGE_ID] == each["id"] and page.json["_count"] > 0
        found.append(page.json["Documents"])
        assert queries.rows(spread, "SELECT VALUE COUNT(1) FROM c", scope=scope) == [page.json["_count"]]
        assert queries.rows(spread, TEXT + " ORDER BY c.id DESC", scope=scope, size=2) == sorted(found[-1], reverse=True)
    assert len(found) == 2 and sorted(found[0] + found[1]) == everything(spread)
    assert found[0] + found[1] == queries.rows(spread, TEXT), "from left to right"


def test_epks_restrict_further(spread):
    aa, after = cf.EPKS["aa"], cf.after(cf.EPKS["aa"])
    for range_id in ("0", None):
        assert queries.rows(spread, TEXT, scope=cf.of_epks(aa, after, range_id)) == ["aa 0", "aa 1"]
        assert queries.rows(spread, "SELECT VALUE COUNT(1) FROM c", scope=cf.of_epks(aa, after, range_id)) == [2]
        assert queries.rows(spread, TEXT, scope=cf.of_epks(after, cf.after(after), range_id)) == []
    assert queries.rows(spread, TEXT, scope=cf.of_epks("", cf.MIDDLE, "0")) == queries.rows(spread, TEXT, scope=cf.of_range("0"))
    assert sorted(queries.rows(spread, TEXT, scope=cf.of_epks("", "FF"))) == everything(spread)


def test_epks_need_no_permission(spread):
    assert sorted(queries.rows(spread, TEXT, scope=cf.of_epks("", "FF"), headers=NO_CROSS)) == everything(spread)


@pytest.mark.parametrize("condition, found", [
    ("c.pk = 'aa'", ["aa 0", "aa 1"]), ("c.pk = 'aa' AND c.n = 1", ["aa 1"]), ("c['pk'] = @pk", ["aa 0", "aa 1"]), ("c.pk IN ('aa')", ["aa 0", "aa 1"]),
    ("c.pk = null", ["null"]), ("c.pk = 'aa' AND (c.n = 0 OR c.n = 7)", ["aa 0"]), ("c.pk = 1", ["one"])])
def test_a_filter_that_pins_the_key_needs_no_permission(spread, condition, found):
    assert queries.rows(spread, f"{TEXT} WHERE {condition}", {"pk": "aa"}, headers=NO_CROSS) == found


ZEROS = ("c.pk = 0", "c.pk = 0.0", "c.pk = @zero", "c.pk IN (0)", "c.pk = -0.0", "ABS(c.pk) = 0")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("throughput", [400, cf.TWO_RANGES, 60_000])
def test_a_filter_that_pins_zero_finds_both_zeros_and_needs_no_permission(shared_db, version, throughput):
    """The keys 0 and -0 are equal in a filter, but have different hashes, as the service's."""
    container = shared_db.create_container({"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": version}}, throughput=throughput)
    for number in range(3):
        container.create({"id": f"zero {number}", "pk": 0, "n": number}).expect(201)
        container.create(f'{{"id":"minus {number}","pk":-0.0,"n":{number + 10}}}', "[-0.0]").expect(201)
    container.create({"id": "one", "pk": 1}).expect(201)
    both = [f"{name} {number}" for name in ("minus", "zero") for number in range(3)]
    for condition in ZEROS:
        where = f"WHERE {condition}"
        for size in (None, 1, 2):
            options = {"parameters": {"zero": 0}, "headers": NO_CROSS, "size": size}
            assert sorted(queries.rows(container, f"{TEXT} {where}", **options)) == both, condition
            assert queries.rows(container, f"{TEXT} {where} ORDER BY c.n DESC", **options) == [
                f"{name} {number}" for name in ("minus", "zero") for number in (2, 1, 0)]
            assert sorted(queries.rows(container, f"SELECT DISTINCT VALUE c.id FROM c {where}", **options)) == both
        assert queries.rows(container, f"SELECT VALUE COUNT(1) FROM c {where}", {"zero": 0}, headers=NO_CROSS) == [6]
        assert queries.rows(container, f"{TEXT} {where} AND c.id = 'minus 1'", {"zero": 0}, headers=NO_CROSS) == ["minus 1"]
        assert len(queries.rows(container, f"SELECT TOP 4 c.id FROM c {where}", {"zero": 0}, headers=NO_CROSS)) == 4
    # A key that is named by its bytes is one of them.
    assert queries.rows(container, TEXT, scope={KEY: "[0]"}) == both[3:]
    assert queries.rows(container, TEXT, scope={KEY: "[-0.0]"}) == both[:3]
    assert sorted(queries.rows(container, f"{TEXT} WHERE c.pk >= 0 AND c.pk <= 0")) == both


@pytest.mark.parametrize("condition", [
    "false", "c.pk = 'a' AND c.pk = 'aa'", "c.pk = undefined", "c.pk = @missing", "c.pk IN (undefined)", "c.n = 1 AND false", "1"])
def test_a_filter_that_nothing_passes_needs_no_permission(spread, condition):
    for text, found in ((TEXT, []), ("SELECT VALUE COUNT(1) FROM c", [0]), ("SELECT COUNT(1) AS n, MAX(c.n) AS m FROM c", [{"n": 0}]),
                        ("SELECT TOP 2 c.id FROM c", []), ("SELECT DISTINCT c.n FROM c", [])):
        for flag in (NO_CROSS, CROSS):
            assert queries.rows(spread, f"{text} WHERE {condition}", headers=flag) == found, text
    assert queries.rows(spread, f"{TEXT} WHERE {condition} ORDER BY c.n", headers=NO_CROSS) == []
    assert queries.rows(spread, f"SELECT c.n, COUNT(1) AS m FROM c WHERE {condition} GROUP BY c.n", headers=NO_CROSS) == []
    assert queries.send(spread, f"{TEXT} WHERE {condition}", headers=NO_CROSS).expect(200)[RANGE_ID] == "0", "the first range"


@pytest.mark.parametrize("flag", [NO_CROSS, {"x-ms-documentdb-query-enablecrosspartition": None}], ids=["off", "absent"])
@pytest.mark.parametrize("text", [
    TEXT, TEXT + " WHERE c.pk IN ('aa', 'a')", TEXT + " WHERE c.pk != 'aa'", TEXT + " WHERE c.pk = 'aa' OR c.n = 1", TEXT + " WHERE c.pk > 'a'",
    "SELECT VALUE COUNT(1) FROM c", TEXT + " ORDER BY c.id", TEXT + " WHERE c.n = 1 AND c.n = 2", TEXT + " WHERE c.n = @missing"])
def test_crossing_partitions_has_to_be_permitted(spread, text, flag):
    queries.send(spread, text, headers=flag).expect(400, 0, DISABLED)


def test_what_reads_no_documents_needs_no_permission(spread):
    assert queries.rows(spread, "SELECT VALUE 1 + 1", headers=NO_CROSS) == [2]


def test_ranges_that_are_not_there_are_410_1002(spread):
    for range_id in ("2", "77", f"{spread.rid},9"):
        queries.send(spread, TEXT, scope=cf.of_range(range_id)).expect(410, 1002)
        queries.plan(spread, TEXT, scope=cf.of_range(range_id)).expect((200, 410))
    queries.send(spread, TEXT, scope=cf.of_epks("", "FF", "77")).expect(410, 1002)


def test_a_range_id_that_is_none_is_400(spread):
    for range_id in ("x", "-1", "1.5"):
        queries.send(spread, TEXT, scope=cf.of_range(range_id)).expect((400, 410))


def test_containers_that_are_not_there_are_404_1003(client, db, container):
    for headers in (IS_QUERY | CROSS, IS_QUERY | CROSS | queries.PLAN):
        client.post(f"{db.path}/colls/none/docs", {"query": TEXT}, headers).expect(404, 1003)
        client.post("/dbs/none/colls/none/docs", {"query": TEXT}, headers).expect(404, 1003)
    client.delete(container.path).expect(204)
    client.post(container.docs, {"query": TEXT}, IS_QUERY | CROSS).expect(404, 1003)


def test_a_query_has_to_be_signed(container):
    container.client.post(container.docs, {"query": TEXT}, IS_QUERY | CROSS, signed=False).expect(401)


# ── The answer ──────────────────────────────────────────────────────────────────────────────────────

def test_headers_of_an_answer_from_one_range(container):
    container.fill(3)
    page = queries.send(container, TEXT).expect(200)
    assert page.json == {"_rid": container.rid, "Documents": ["0", "1", "2"], "_count": 3}
    read = container.read("0").expect(200)
    for name in ("x-ms-alt-content-path", "x-ms-schemaversion", "lsn", "x-ms-documentdb-partitionkeyrangeid"):
        assert page[name] == read[name] is not None, name
    assert page["x-ms-content-path"] == container.rid
    assert page[SESSION] == read[SESSION] and page["x-ms-item-count"] == "3"
    assert page[queries.EXECUTION_INFO] == '{"reverseRidEnabled":false,"reverseIndexScan":false}'
    assert wire.GUID.match(page["x-ms-activity-id"]) and page["x-ms-continuation"] is None
    for name in (queries.METRICS, "x-ms-cosmos-index-utilization", queries.EXPLAIN, "etag", "_streaming"):
        assert page[name] is None, name


def test_an_answer_from_all_ranges_has_a_session_token_of_each(spread):
    page = queries.send(spread, TEXT).expect(200)
    assert [part.split(":")[0] for part in page[SESSION].split(",")] == ["0", "1"]
    assert page["x-ms-alt-content-path"] and page["x-ms-content-path"] == spread.rid
    assert page["x-ms-schemaversion"] == "1.1"
    assert page["lsn"] is None and page[RANGE_ID] is None, "what is of one range only"


def test_rows_are_any_values(container):
    container.fill(1)
    for text, found in (("SELECT VALUE null", [None]), ("SELECT VALUE [1, {a: 'b'}]", [[1, {"a": "b"}]]), ("SELECT 1", [{"$1": 1}]),
                        ("SELECT VALUE c.n FROM c", [0]), ("SELECT VALUE c.none FROM c", []), ("SELECT c.none FROM c", [{}])):
        assert queries.rows(container, text) == found


def test_nothing_found_is_200_with_an_empty_array(container):
    for text in (TEXT, "SELECT * FROM c", TEXT + " WHERE false", TEXT + " ORDER BY c.id"):
        page = queries.send(container, text).expect(200)
        assert page.json["Documents"] == [] and page["x-ms-item-count"] == "0" and page["x-ms-continuation"] is None


def test_whole_documents_are_the_same_as_read(container):
    written = container.create({"id": "x", "pk": "a", "f": 1.0, "big": 9007199254740993, "deep": {"l": [1, None]}, "ä": "\u0007"}).expect(201)
    read = container.read("x").expect(200)
    page = queries.send(container, "SELECT * FROM c").expect(200)
    assert page.body == b'{"_rid":"' + container.rid.encode() + b'","Documents":[' + read.body + b'],"_count":1}'
    assert written.body == read.body


def test_a_query_reads_what_its_session_wrote(container):
    token = container.create({"id": "x", "pk": "a"}).expect(201)[SESSION]
    assert queries.rows(container, TEXT, headers={SESSION: token}) == ["x"]
    later = token[:-1] + str(int(token[-1]) + 5)
    queries.send(container, TEXT, headers={SESSION: later}).expect(404, 1002)


def test_consistency_that_is_none_is_400(container):
    queries.send(container, TEXT, headers={"x-ms-consistency-level": "Nonsense"}).expect(400)


def test_a_query_of_the_change_feed_is_refused_by_name(container):
    queries.send(container, TEXT, headers=cf.INCREMENTAL).expect(501, text="change feed")


def test_charges_grow_with_what_is_read(container):
    container.fill(30)
    one = queries.send(container, TEXT, size=1, headers={queries.ACCESS: "scan"}).expect(200)
    all_of_them = queries.send(container, "SELECT * FROM c", headers={queries.ACCESS: "scan"}).expect(200)
    assert 0 < one.charge < all_of_them.charge


def test_items_past_their_time_to_live_are_not_found(db):
    container = db.create_container({"defaultTtl": -1})
    container.create({"id": "short", "pk": "a", "ttl": 1}).expect(201)
    container.create({"id": "long", "pk": "a"}).expect(201)
    wait_until(lambda: queries.rows(container, TEXT) == ["long"], 10, "the end of a document's time")
    assert queries.rows(container, "SELECT VALUE COUNT(1) FROM c") == [1]
    assert queries.rows(container, TEXT + " WHERE c.pk = 'a'", headers={queries.ACCESS: "index"}) == ["long"]


def test_addressed_by_rids(client, container):
    container.fill(2)
    target = f"{container.self_path}docs"
    page = client.post(target, {"query": TEXT}, IS_QUERY | CROSS | {MAX_ITEMS: "1"}).expect(200)
    assert page.json["Documents"] == ["0"] and json.loads(page.body)["_rid"] == container.rid
