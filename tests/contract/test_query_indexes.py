"""How a query was run: metrics, indexes, explanations; and what indexing policies permit."""
import base64
import json
import re
import urllib.parse

import pytest

import change_feed as cf
import queries
from harness import wire
from harness.waiting import wait_until
from queries import ACCESS, EXPLAIN, METRICS

TEXT = "SELECT VALUE c.id FROM c"
MEASURED = {"x-ms-documentdb-populatequerymetrics": "True"}
UTILIZATION = "x-ms-cosmos-index-utilization"
PROGRESS = "x-ms-documentdb-collection-index-transformation-progress"
LAZY_PROGRESS = "x-ms-documentdb-collection-lazy-indexing-progress"
NAMES = ["totalExecutionTimeInMs", "queryCompileTimeInMs", "queryLogicalPlanBuildTimeInMs", "queryPhysicalPlanBuildTimeInMs", "queryOptimizationTimeInMs",
         "VMExecutionTimeInMs", "indexLookupTimeInMs", "documentLoadTimeInMs", "systemFunctionExecuteTimeInMs", "userFunctionExecuteTimeInMs",
         "retrievedDocumentCount", "retrievedDocumentSize", "outputDocumentCount", "outputDocumentSize", "writeOutputTimeInMs", "indexUtilizationRatio"]
POLICY = {"compositeIndexes": [[{"path": "/kind"}, {"path": "/mag", "order": "descending"}]], "excludedPaths": [{"path": "/hidden/*"}, {"path": '/"_etag"/?'}],
          "includedPaths": [{"path": "/*"}]}


@pytest.fixture(scope="module")
def stars(module_client):
    """Two ranges with 300 documents, of which an index finds a few."""
    container = module_client.create_database().create_container({"indexingPolicy": POLICY}, throughput=cf.TWO_RANGES)
    for key in cf.EPKS:
        range_id = "0" if key in cf.LOW else "1"
        operations = [cf.creating(f"{key} {n}", key, n=n, kind="KGM"[n % 3], mag=n % 17, hidden=n, tags=[f"t{n % 30}"], place={"a b": n}) |
                      {"partitionKey": json.dumps([key])} for n in range(60)]
        cf.bulk(container, operations, range_id).expect((200, 207))
    return container


def explained(response):
    return json.loads(urllib.parse.unquote(response[EXPLAIN]))


def explain(container, text, access=None, parameters=None, **options):
    headers = {EXPLAIN: "true"} | ({ACCESS: access} if access else {}) | options.pop("headers", {})
    response = queries.send(container, text, parameters, size=-1, headers=headers, **options).expect(200)
    return response.json["Documents"], explained(response)


# ── Metrics ─────────────────────────────────────────────────────────────────────────────────────────

def metrics_of(response):
    line = response[METRICS]
    parts = [part.split("=") for part in line.split(";")]
    assert all(len(part) == 2 for part in parts) and " " not in line, line
    assert [name for name, _ in parts] == NAMES
    for name, value in parts:
        assert re.fullmatch(r"\d+\.\d\d" if "Time" in name or "Ratio" in name else r"\d+", value), f"{name}={value}"
    return {name: float(value) for name, value in parts}


@pytest.mark.parametrize("text", [TEXT, "SELECT * FROM c WHERE c.n < 10", "SELECT VALUE COUNT(1) FROM c", "SELECT VALUE c.id FROM c ORDER BY c.n", "SELECT 1",
                                  "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind", TEXT + " WHERE false"])
def test_metrics_have_all_names_in_order(stars, text):
    for scope in ({}, cf.of_range("0"), cf.of_key("aa")):
        page = queries.send(stars, text, scope=scope, headers=MEASURED).expect(200)
        found = metrics_of(page)
        assert found["outputDocumentCount"] == page.json["_count"] and 0 <= found["indexUtilizationRatio"] <= 1


def test_metrics_count_what_was_read(stars):
    scanned = metrics_of(queries.send(stars, TEXT + " WHERE c.n = 3", headers=MEASURED | {ACCESS: "scan"}).expect(200))
    assert scanned["retrievedDocumentCount"] == 300 and scanned["outputDocumentCount"] == 5 and scanned["retrievedDocumentSize"] > 300 * 100
    found = metrics_of(queries.send(stars, TEXT + " WHERE c.n = 3", headers=MEASURED | {ACCESS: "index"}).expect(200))
    assert found["retrievedDocumentCount"] == 5 and found["indexUtilizationRatio"] == 1


def test_metrics_only_when_asked_for(stars):
    for value in (None, "false", "False"):
        assert queries.send(stars, TEXT, headers={"x-ms-documentdb-populatequerymetrics": value}).expect(200)[METRICS] is None
    assert queries.send(stars, TEXT, headers={"x-ms-documentdb-populatequerymetrics": "1"}).expect(200)[METRICS]


def test_index_metrics_in_base64(stars):
    text = "SELECT * FROM c WHERE c.n = 1 AND c.place['a b'] > 3 AND c.kind = 'K' ORDER BY c.kind, c.mag DESC"
    page = queries.send(stars, text, headers={"x-ms-cosmos-populateindexmetrics": "true"}).expect(200)
    told = json.loads(base64.b64decode(page[UTILIZATION], validate=True))
    assert set(told) == {"UtilizedSingleIndexes", "PotentialSingleIndexes", "UtilizedCompositeIndexes", "PotentialCompositeIndexes"}
    singles = {each["IndexSpec"]: each for each in told["UtilizedSingleIndexes"]}
    assert {"/n/?", '/place/"a b"/?'} <= set(singles)
    assert singles["/n/?"] == {"FilterExpression": "", "IndexSpec": "/n/?", "FilterPreciseSet": True, "IndexPreciseSet": True, "IndexImpactScore": "High"}
    (composite,) = told["UtilizedCompositeIndexes"]
    assert composite == {"IndexSpecs": ["/kind ASC", "/mag DESC"], "IndexPreciseSet": True, "IndexImpactScore": "High"}


def test_index_metrics_as_percent_encoded_json(stars):
    text = "SELECT * FROM c WHERE c.n = 1 ORDER BY c.kind, c.mag DESC"
    page = queries.send(stars, text, headers={"x-ms-cosmos-populateindexmetrics-V2": "true"}).expect(200)
    assert re.fullmatch(r"[!-~]+", page[UTILIZATION]), "visible ASCII only"
    told = json.loads(urllib.parse.unquote(page[UTILIZATION]))
    assert told == {"UtilizedIndexes": {"SingleIndexes": [{"IndexSpec": "/n/?"}], "CompositeIndexes": [{"IndexSpecs": ["/kind ASC", "/mag DESC"]}]},
                    "PotentialIndexes": {"SingleIndexes": [], "CompositeIndexes": []}}


def test_index_metrics_name_a_composite_index_that_would_help(stars):
    text = "SELECT * FROM c WHERE c.n = 1 ORDER BY c.mag DESC"
    page = queries.send(stars, text, headers={"x-ms-cosmos-populateindexmetrics-V2": "true"}).expect(200)
    told = json.loads(urllib.parse.unquote(page[UTILIZATION]))
    assert told["PotentialIndexes"] == {"SingleIndexes": [], "CompositeIndexes": [{"IndexSpecs": ["/n ASC", "/mag DESC"]}]}


def test_index_metrics_of_a_query_by_key_only_name_the_key(stars):
    asked = {"x-ms-cosmos-populateindexmetrics": "true"}
    expected = {"UtilizedSingleIndexes": [{"FilterExpression": "", "IndexSpec": "/pk/?", "FilterPreciseSet": True, "IndexPreciseSet": True,
                                           "IndexImpactScore": "High"}],
                "PotentialSingleIndexes": [], "UtilizedCompositeIndexes": [], "PotentialCompositeIndexes": []}
    for text, scope in (("SELECT * FROM c", cf.of_key("aa")), ("SELECT VALUE COUNT(1) FROM c", cf.of_key("aa")), ("SELECT * FROM c WHERE c.pk = 'aa'", {})):
        page = queries.send(stars, text, scope=scope, headers=asked).expect(200)
        assert json.loads(base64.b64decode(page[UTILIZATION])) == expected, text
    page = queries.send(stars, "SELECT * FROM c", scope=cf.of_key("aa"), headers={"x-ms-cosmos-populateindexmetrics-V2": "true"}).expect(200)
    assert json.loads(urllib.parse.unquote(page[UTILIZATION]))["UtilizedIndexes"]["SingleIndexes"] == [{"IndexSpec": "/pk/?"}]


def test_index_metrics_do_not_name_a_key_that_is_not_indexed(db):
    container = db.create_container({"indexingPolicy": {"includedPaths": [{"path": "/n/?"}], "excludedPaths": [{"path": "/*"}]}})
    page = queries.send(container, "SELECT * FROM c", scope=cf.of_key("a"), headers={"x-ms-cosmos-populateindexmetrics": "true"}).expect(200)
    assert json.loads(base64.b64decode(page[UTILIZATION]))["UtilizedSingleIndexes"] == []


# ── Counting without reading ────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("text, rows", [("SELECT VALUE COUNT(1) FROM c", [60]), ("SELECT COUNT(1) AS n, COUNT('x') AS m FROM c", [{"n": 60, "m": 60}]),
                                        ("SELECT TOP 1 VALUE COUNT(1) FROM c", [60])])
def test_documents_of_a_key_are_counted_by_their_entries(stars, text, rows):
    for condition, scope in (("", cf.of_key("aa")), (" WHERE c.pk = 'aa'", {}), (" WHERE 'aa' = c.pk", {})):
        page = queries.send(stars, text + condition, scope=scope, headers=MEASURED | {EXPLAIN: "true"}).expect(200)
        assert page.json["Documents"] == rows
        found = metrics_of(page)
        assert found["retrievedDocumentCount"] == found["retrievedDocumentSize"] == 0 and found["indexUtilizationRatio"] == 1
        (part,) = explained(page)["ranges"]
        assert part["documentsRead"] == 0 and part["entriesRead"] == 60


@pytest.mark.parametrize("text, count", [
    ("SELECT VALUE COUNT(1) FROM c WHERE c.n < 10", 10), ("SELECT VALUE COUNT(c.n) FROM c", 60), ("SELECT VALUE COUNT(c.none) FROM c", 0),
    ("SELECT VALUE COUNT(undefined) FROM c", 0), ("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'a'", 0), ("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags", 60),
    ("SELECT VALUE COUNT(1) FROM t IN c.tags", 60), ("SELECT VALUE COUNT(1) FROM c.none", 0), ("SELECT VALUE COUNT(1) FROM c WHERE false", 0),
    ("SELECT VALUE COUNT(1) + 1 FROM c", 61)])
def test_other_counts_read_what_they_count(stars, text, count):
    assert queries.rows(stars, text, scope=cf.of_key("aa")) == [count]
    assert queries.rows(stars, "SELECT VALUE COUNT(1) FROM c", scope=cf.of_key("aa"), headers={ACCESS: "scan"}) == [60]


def test_what_has_expired_or_gone_is_not_counted(db):
    container = db.create_container({"defaultTtl": -1})
    for name, ttl in (("short", 1), ("long", 1000), ("ever", -1), ("gone", 1000)):
        container.create({"id": name, "pk": "a", "ttl": ttl}).expect(201)
    container.delete("gone").expect(204)
    wait_until(lambda: container.read("short").status == 404, 30, "the end of a document")
    assert queries.rows(container, "SELECT VALUE COUNT(1) FROM c", scope=cf.of_key("a")) == [2]
    assert queries.rows(container, "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'a'") == [2]


def test_keys_that_numbers_do_not_tell_exactly_are_counted_right(db):
    """9007199254740993 is another number than 9007199254740992, but the same key."""
    container = db.create_container()
    container.create('{"id":"even","pk":9007199254740992}', "[9007199254740992]").expect(201)
    container.create('{"id":"odd","pk":9007199254740993}', "[9007199254740993]").expect(201)
    for number in (9007199254740992, 9007199254740993):
        assert queries.rows(container, f"SELECT VALUE COUNT(1) FROM c WHERE c.pk = {number}") == [1]
    assert queries.rows(container, "SELECT VALUE COUNT(1) FROM c", scope={wire.KEY: "[9007199254740992]"}) == [2]


def test_index_metrics_only_when_asked_for(stars):
    assert queries.send(stars, TEXT, headers={"x-ms-cosmos-populateindexmetrics": "false"}).expect(200)[UTILIZATION] is None
    page = queries.send(stars, TEXT, headers={"x-ms-cosmos-populateindexmetrics": "true"}).expect(200)
    assert json.loads(base64.b64decode(page[UTILIZATION]))["UtilizedSingleIndexes"] == []


def test_index_metrics_fit_into_a_header_whatever_is_asked(stars):
    names = [f"property{n:03}{'x' * 100}" for n in range(100)]
    text = "SELECT * FROM c WHERE " + " OR ".join(f"c.{name} = 1" for name in names)
    for asked, decoded in (({"x-ms-cosmos-populateindexmetrics": "true"}, base64.b64decode), ({"x-ms-cosmos-populateindexmetrics-V2": "true"}, urllib.parse.unquote)):
        page = queries.send(stars, text, headers=asked | {EXPLAIN: "true"}).expect(200)
        assert 1000 < len(page[UTILIZATION]) < 8192 and 1000 < len(page[EXPLAIN]) < 8192
        told = json.loads(decoded(page[UTILIZATION]))
        singles = told["UtilizedSingleIndexes"] if "UtilizedSingleIndexes" in told else told["UtilizedIndexes"]["SingleIndexes"]
        assert [each["IndexSpec"] for each in singles] == [f"/{name}/?" for name in names[:len(singles)]] and len(singles) > 10
        assert len(explained(page)["ranges"]) == 2 and len(explained(page)["helpful"]) > 10


# ── Ways to the documents ───────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("condition", [
    "c.n = 7", "c.n IN (1, 2)", "c.n > 57", "c.n BETWEEN 3 AND 5", "c.kind = 'K' AND c.mag = 3", "c.place['a b'] = 4", "ARRAY_CONTAINS(c.tags, 't7')",
    "STARTSWITH(c.id, 'aa 1')", "c.n = 1 OR c.n = 2", "IS_DEFINED(c.none)", "c.n = 7 AND c.pk = 'aa'", "c.n = 'text'", "c.id LIKE 'redmond 5%'",
    "EXISTS (SELECT VALUE t FROM t IN c.tags WHERE t = 't3')", "c.n != 5", "NOT (c.n < 58)"])
def test_every_way_finds_the_same(stars, condition):
    text = f"{TEXT} WHERE {condition}"
    scanned, by_scan = explain(stars, text, "scan")
    found, _ = explain(stars, text, "index")
    assert found == scanned == queries.rows(stars, text, size=7)
    assert queries.rows(stars, text, headers={ACCESS: "index"}, size=3) == scanned
    assert {each["way"] for each in by_scan["ranges"]} <= {"scan", "nothing"}


@pytest.mark.parametrize("condition, index", [("c.n = 7", "/n"), ("c.n > 57", "/n"), ("ARRAY_CONTAINS(c.tags, 't7')", "/tags/[]"), ("c.place['a b'] = 4", '/place/"a b"')])
def test_indexes_are_used_when_they_are_demanded(stars, condition, index):
    rows, told = explain(stars, f"{TEXT} WHERE {condition}", "index")
    assert rows and told["shape"] == "stream"
    for each in told["ranges"]:
        assert each["way"] == "index" and each["documentsRead"] == each["rows"] and each["indexes"] == [index]
    assert told["helpful"] == [] and told["building"] == []


def test_an_index_may_yield_the_order(stars):
    for text in ("SELECT TOP 4 VALUE c.n FROM c ORDER BY c.n DESC", "SELECT TOP 4 VALUE [c.kind, c.mag] FROM c ORDER BY c.kind, c.mag DESC",
                 "SELECT TOP 4 VALUE [c.kind, c.mag] FROM c ORDER BY c.kind DESC, c.mag"):
        rows, told = explain(stars, text, "index")
        assert told["shape"] == "ordered" and {each["way"] for each in told["ranges"]} == {"ordered index"}
        assert all(each["documentsRead"] < 60 for each in told["ranges"]) and rows == explain(stars, text, "scan")[0]


def test_excluded_paths_are_scanned(stars):
    rows, told = explain(stars, TEXT + " WHERE c.hidden = 7", "index")
    assert len(rows) == 5 and {each["way"] for each in told["ranges"]} == {"scan"} and told["helpful"] == []
    assert queries.rows(stars, TEXT + " WHERE c.hidden = 7", headers={"x-ms-documentdb-query-enable-scan": "True"}) == rows
    rows, told = explain(stars, TEXT + " WHERE c.hidden = -1")
    assert rows == [] and told["potential"] == ["/hidden"]


def test_of_one_key_a_name_is_looked_up(stars):
    rows, told = explain(stars, TEXT + " WHERE c.pk = 'aa' AND c.id = 'aa 5'")
    assert rows == ["aa 5"] and told["ranges"][0]["documentsRead"] == 1 and len(told["ranges"]) == 1
    assert told["ranges"][0]["indexes"] == ["/id"] and told["potential"] == []


def test_what_has_served_is_not_proposed(container):
    container.fill(3)
    rows, told = explain(container, TEXT + " WHERE c.pk = 'a' AND c.id = '1'")
    assert rows == ["1"] and told["ranges"][0]["indexes"] == ["/id"]
    assert told["helpful"] == [] and told["potential"] == []


def test_an_explanation_tells_what_would_help(container):
    container.fill(3)
    rows, told = explain(container, TEXT + " WHERE c.n = 1", "scan")
    assert rows == ["1"] and told["helpful"] == ["/n"]
    assert set(told) == {"shape", "ranges", "helpful", "potential", "building"}
    assert set(told["ranges"][0]) == {"id", "way", "indexes", "documentsRead", "entriesRead", "rows"}
    assert queries.send(container, TEXT, headers={EXPLAIN: "false"}).expect(200)[EXPLAIN] is None
    for text, shape in (("SELECT VALUE COUNT(1) FROM c", "grouped"), (TEXT + " ORDER BY c.n", "ordered"), (TEXT, "stream")):
        assert explain(container, text)[1]["shape"] == shape


@pytest.mark.parametrize("access", ["auto", None])
def test_the_server_chooses_when_not_told(stars, access):
    assert len(explain(stars, TEXT + " WHERE c.n = 3", access)[0]) == 5


@pytest.mark.parametrize("access", ["Index", "none", "x" * 100, "1"])
def test_a_way_that_is_none_is_400(stars, access):
    queries.send(stars, TEXT, headers={ACCESS: access}).expect(400, text=ACCESS)


def test_indexes_follow_writes(container):
    container.fill(20)
    at_seven = {ACCESS: "index"}
    assert queries.rows(container, TEXT + " WHERE c.n = 7", headers=at_seven) == ["7"]
    container.replace("7", {"id": "7", "pk": "a", "n": 8}).expect(200)
    container.delete("8").expect(204)
    container.create({"id": "new", "pk": "a", "n": 7}).expect(201)
    cf.patch(container, "1", [{"op": "set", "path": "/n", "value": 7}]).expect(200)
    assert queries.rows(container, TEXT + " WHERE c.n = 7", headers=at_seven) == ["1", "new"]
    assert queries.rows(container, TEXT + " WHERE c.n = 8", headers=at_seven) == ["7"]
    cf.split(container).expect(200)
    assert sorted(queries.rows(container, TEXT + " WHERE c.n = 7", headers=at_seven)) == ["1", "new"]


# ── What policies permit ────────────────────────────────────────────────────────────────────────────

NO_COMPOSITE = "The order by query does not have a corresponding composite index that it can be served from."


@pytest.mark.parametrize("order, is_served", [
    ("c.kind, c.mag DESC", True), ("c.kind ASC, c.mag DESC", True), ("c.kind DESC, c.mag ASC", True), ("c.kind DESC, c.mag", True),
    ("c.kind, c.mag", False), ("c.kind DESC, c.mag DESC", False), ("c.mag DESC, c.kind", False), ("c.kind, c.n", False), ("c.kind, c.mag DESC, c.n", False)])
def test_orders_of_several_paths_need_a_composite_index(stars, order, is_served):
    for scope in ({}, cf.of_range("0"), cf.of_key("aa")):
        response = queries.send(stars, f"{TEXT} ORDER BY {order}", scope=scope)
        response.expect(200) if is_served else response.expect(400, 0, NO_COMPOSITE)


def test_an_order_by_an_excluded_path_is_400(stars):
    for scope in ({}, cf.of_key("aa")):
        queries.send(stars, f"{TEXT} ORDER BY c.hidden", scope=scope).expect(400, 0, "excluded")
        queries.send(stars, f"{TEXT} ORDER BY c.hidden DESC", scope=scope).expect(400, 0, "index")
    for path in ("c.id", "c._ts", "c.none", "c.place['a b']"):
        queries.send(stars, f"{TEXT} ORDER BY {path}").expect(200)


def test_nothing_is_indexed_in_mode_none(db):
    container = db.create_container({"indexingPolicy": {"indexingMode": "none", "automatic": False}})
    container.fill(3)
    assert queries.rows(container, TEXT + " WHERE c.n > 0") == ["1", "2"]
    queries.send(container, TEXT + " ORDER BY c.n").expect(400)


def progress(container):
    return container.client.get(container.path, {"x-ms-documentdb-populatequotainfo": "True"}).expect(200)


def wait_for_indexes(container):
    wait_until(lambda: progress(container)[PROGRESS] == "100", 20, "the new policy's indexes")


def test_progress_is_told_with_the_quota(container):
    container.fill(3)
    assert progress(container)[PROGRESS] == "100" and progress(container)[LAZY_PROGRESS] is None


def test_policies_change_while_queries_run(client, container):
    container.fill(200)
    order, filtered = TEXT + " ORDER BY c.n DESC, c.id", TEXT + " WHERE c.n < 5"
    queries.send(container, order).expect(400, 0, NO_COMPOSITE)
    read = client.get(container.path).expect(200).json
    composite = {"compositeIndexes": [[{"path": "/n", "order": "descending"}, {"path": "/id"}]]}
    replaced = client.put(container.path, read | {"indexingPolicy": read["indexingPolicy"] | composite}).expect(200)
    assert queries.rows(container, order, size=50) == [str(n) for n in reversed(range(200))], "at once, built or not"
    told = progress(container)
    assert 0 <= int(told[PROGRESS]) <= 100 and told[LAZY_PROGRESS] is None
    wait_for_indexes(container)
    rows, explanation = explain(container, order.replace("VALUE", "TOP 3 VALUE"), "index")
    assert rows == ["199", "198", "197"] and explanation["ranges"][0]["way"] == "ordered index"
    hidden = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/n/?"}, {"path": '/"_etag"/?'}]}
    client.put(container.path, replaced.json | {"indexingPolicy": hidden}).expect(200)
    queries.send(container, order).expect(400, 0, NO_COMPOSITE)
    queries.send(container, TEXT + " ORDER BY c.n").expect(400, 0, "excluded")
    wait_for_indexes(container)
    rows, explanation = explain(container, filtered, "index")
    assert len(rows) == 5 and explanation["ranges"][0]["way"] == "scan"
    client.put(container.path, read).expect(200)
    assert len(queries.rows(container, TEXT + " ORDER BY c.n")) == 200
    wait_for_indexes(container)
    assert queries.rows(container, filtered, headers={ACCESS: "index"}) == ["0", "1", "2", "3", "4"]


def test_writes_while_a_policy_changes_are_all_found(client, container):
    container.fill(50)
    read = client.get(container.path).expect(200).json
    for n in range(10):
        policy = read["indexingPolicy"] | ({"compositeIndexes": [[{"path": "/n"}, {"path": f"/m{n}"}]]} if n % 2 else {})
        client.put(container.path, read | {"indexingPolicy": policy}).expect(200)
        container.create({"id": f"new {n}", "pk": "a", "n": 1000 + n}).expect(201)
        assert queries.rows(container, TEXT + " WHERE c.n >= 1000", headers={ACCESS: "index"}) == [f"new {m}" for m in range(n + 1)]
    wait_for_indexes(container)


def test_a_container_that_has_all_the_indexes_it_may_have_says_so(db):
    container = db.create_container()
    queries.fill(container, [{"pk": "a", "p64": 1}])
    text = "SELECT VALUE c.p{0} FROM c WHERE c.p{0} = 1"
    for n in range(64):
        queries.send(container, text.format(n), headers={ACCESS: "index"}).expect(200)
    refused = queries.send(container, text.format(64), headers={ACCESS: "index"}).expect(400)
    assert "an index on /p64, but the container has 64 indexes" in refused.message
    assert queries.rows(container, text.format(64)) == [1]
