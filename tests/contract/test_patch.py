"""PATCH of documents: the six operations, paths, conditions, and what comes before what."""
import json

import pytest

from harness import wire
from harness.wire import KEY, key_header

FAILED = "One of the specified pre-condition is not met"


def patch(container, operations, name="x", key=("a",), headers=None, condition=None, **options):
    """`operations` is a list (sent in an object beside the condition), or a whole body."""
    body = operations
    if isinstance(operations, list):
        body = {"operations": operations} | ({"condition": condition} if condition is not None else {})
    return container.client.request("PATCH", container.doc(name), body, key_header(key) | (headers or {}), **options)


def op(kind, path, *value, **members):
    return {"op": kind, "path": path} | ({"value": value[0]} if value else {}) | members


def members_of(document):
    return {name: value for name, value in document.items() if name not in ("_rid", "_self", "_etag", "_attachments", "_ts")}


@pytest.fixture
def x(container):
    """{"id":"x","pk":"a","n":1,"o":{"s":"t"},"l":[1,2]}"""
    return container.create('{"id":"x","pk":"a","n":1,"o":{"s":"t"},"l":[1,2]}').expect(201)


# ── The answer ──────────────────────────────────────────────────────────────────────────────────────

def test_answer_is_the_whole_document_with_a_new_etag(container, x):
    response = patch(container, [op("incr", "/n", 2)]).expect(200)
    assert members_of(response.json) == {"id": "x", "pk": "a", "n": 3, "o": {"s": "t"}, "l": [1, 2]}
    assert response["etag"] == response.json["_etag"] != x["etag"]
    assert response.json["_rid"] == x.json["_rid"] and response.json["_self"] == x.json["_self"]
    assert int(response["lsn"]) == int(x["lsn"]) + 1 == int(response["x-ms-item-lsn"])
    for name in ("x-ms-session-token", "x-ms-alt-content-path", "x-ms-content-path", "x-ms-resource-usage"):
        assert response[name]
    assert container.read("x").expect(200).body == response.body


def test_minimal_answer_has_headers_and_no_body(container, x):
    response = patch(container, [op("set", "/n", 5)], headers={"Prefer": "return=minimal"}).expect(200)
    assert response.body == b"" and response["etag"]
    assert container.read("x").json["n"] == 5


def test_charge_is_that_of_a_replace(container, x):
    patched = patch(container, [op("set", "/n", 2)]).expect(200)
    assert patched.charge == container.replace("x", members_of(patched.json)).expect(200).charge


@pytest.mark.parametrize("headers", [{"content-type": None}, {"content-type": "application/json_patch+json"},
                                     {"content-type": "application/json-patch+json"}, {"content-type": "text/plain"}], ids=str)
def test_any_or_no_content_type_will_do(container, x, headers):
    assert patch(container, [op("incr", "/n", 1)], headers=headers).expect(200).json["n"] == 2


def test_body_may_be_a_bare_array(container, x):
    assert patch(container, json.dumps([op("incr", "/n", 1)])).expect(200).json["n"] == 2


def test_document_may_be_addressed_by_rid(client, container, x):
    response = client.request("PATCH", "/" + x.json["_self"].rstrip("/"), {"operations": [op("incr", "/n", 1)]}, {KEY: '["a"]'})
    assert response.expect(200).json["n"] == 2


def test_untouched_parts_keep_their_bytes(container):
    container.create(b'{"id":"x","pk":"a","big":12345678901234567890,"e":1.0e+2,"u":"\\u00e4","o":{ "k" : [ 1 ] },"n":1}').expect(201)
    text = patch(container, [op("incr", "/n", 1)]).expect(200).body
    assert b'"big":12345678901234567890,"e":1.0e+2,"u":"\\u00e4","o":{ "k" : [ 1 ] },"n":2' in text


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("operations, changed", [
    ([op("add", "/new", {"deep": [None]})], {"new": {"deep": [None]}}),
    ([op("add", "/n", "over")], {"n": "over"}),
    ([op("add", "/o/s2", None)], {"o": {"s": "t", "s2": None}}),
    ([op("add", "/l/0", 0)], {"l": [0, 1, 2]}),
    ([op("add", "/l/2", 0)], {"l": [1, 2, 0]}),
    ([op("add", "/l/-", 0)], {"l": [1, 2, 0]}),
    ([op("set", "/l/0", 0)], {"l": [0, 2]}),
    ([op("set", "/l/2", 0)], {"l": [1, 2, 0]}),
    ([op("set", "/l/-", 0)], {"l": [1, 2, 0]}),
    ([op("set", "/o", 1)], {"o": 1}),
    ([op("replace", "/l/1", {"a": 1})], {"l": [1, {"a": 1}]}),
    ([op("replace", "/n", 7)], {"n": 7}),
    ([op("remove", "/l/0")], {"l": [2]}),
    ([op("incr", "/n", -1.5)], {"n": -0.5}),
    ([op("incr", "/m", 4)], {"m": 4}),
    ([op("incr", "/l/0", 4)], {"l": [5, 2]}),
    ([op("move", "/o/n", **{"from": "/l"})], {"o": {"s": "t", "n": [1, 2]}, "l": wire.ABSENT}),
    ([op("move", "/n", **{"from": "/o"})], {"n": {"s": "t"}, "o": wire.ABSENT}),
    ([op("move", "/l/1", **{"from": "/l/0"})], {"l": [2, 1]}),
    ([op("set", "/a~1b~0c", 1)], {"a/b~c": 1}),
    ([op("set", "/N", 1)], {"N": 1}),
    ([op("set", "/o/0", 1)], {"o": {"s": "t", "0": 1}}),
    ([op("set", "/ttl", 3600)], {"ttl": 3600}),
    ([op("set", "/q", {}), op("set", "/q/r", []), op("add", "/q/r/-", 1), op("incr", "/q/r/0", 1), op("move", "/r", **{"from": "/q/r"}),
      op("remove", "/q")], {"r": [2]}),
], ids=lambda value: json.dumps(value, default=lambda _: "absent")[:60])
def test_operation(container, x, operations, changed):
    expected = {"id": "x", "pk": "a", "n": 1, "o": {"s": "t"}, "l": [1, 2]} | changed
    expected = {name: value for name, value in expected.items() if value is not wire.ABSENT}
    assert members_of(patch(container, operations).expect(200).json) == expected
    assert members_of(container.read("x").expect(200).json) == expected


@pytest.mark.parametrize("operations, text", [
    ([op("add", "/p/q", 1)], "For Operation(1): Add Operation can only create a child object of an existing node(array or object) "
                             "and cannot create path recursively, no path found beyond: 'p'."),
    ([op("set", "/n/q", 1)], "no path found beyond: 'n'."),
    ([op("incr", "/p/q", 1)], "no path found beyond: 'p'."),
    ([op("add", "/l/3", 1)], "out of array bounds"), ([op("set", "/l/3", 1)], "out of array bounds"),
    ([op("remove", "/l/2")], "out of array bounds"), ([op("replace", "/l/2", 1)], "out of array bounds"),
    ([op("add", "/l/x", 1)], "index"), ([op("add", "/l/01", 1)], "index"),
    ([op("replace", "/p", 1)], "node to be replaced is absent"), ([op("remove", "/p")], "node to be removed is absent"),
    ([op("move", "/p", **{"from": "/q"})], "absent"), ([op("move", "/o/p", **{"from": "/o"})], "below"),
    ([op("incr", "/o", 1)], "is not a number"), ([op("incr", "/n", "1")], "number"), ([op("incr", "/n", None)], "number"),
    ([op("set", "/n", 2), op("remove", "/p")], "For Operation(2): "),
    ([op("add", "/p")], "value"), ([op("set", "/p")], "value"), ([op("replace", "/n")], "value"), ([op("incr", "/n")], "value"),
    ([op("set", "", 1)], "For Operation(1): "), ([op("set", "n", 1)], "begin with '/'"), ([op("set", "/a~2", 1)], "~"),
    ([op("move", "/p")], "from"), ([op("copy", "/p", 1)], "'op' must be"), ([{"path": "/p", "value": 1}], "'op' must be"), ([7], "object"),
    ([], "operation"), ([op("incr", "/n", 1)] * 11, "The number of patch operations can't exceed 10"),
], ids=lambda value: json.dumps(value)[:60])
def test_operation_that_cannot_be_done_is_400_and_changes_nothing(container, x, operations, text):
    patch(container, operations).expect(400, 0, text)
    assert container.read("x").expect(200).body == x.body


@pytest.mark.parametrize("body", ["", "{", "null", "7", "{}", '{"operations":7}', '{"operations":[],"condition":7}', b'{"operations":["\xff"]}'], ids=str)
def test_body_that_is_no_patch_is_400(container, x, body):
    patch(container, body).expect(400)
    assert container.read("x").expect(200).body == x.body


def test_ten_operations_are_done_in_order(container, x):
    assert patch(container, [op("add", "/l/-", n) for n in range(10)]).expect(200).json["l"] == [1, 2, *range(10)]


@pytest.mark.parametrize("number, value, result", [("9007199254740993", "1", b"9007199254740994"), ("9223372036854775806", "1", b"9223372036854775807"),
                                                   ("-9223372036854775807", "-1", b"-9223372036854775808"), ("0.5", "0.5", b"1"), ("1e2", "1", b"101")])
def test_increment_is_exact_where_64_bits_hold_it(container, number, value, result):
    container.create(f'{{"id":"x","pk":"a","n":{number}}}').expect(201)
    text = patch(container, f'[{{"op":"incr","path":"/n","value":{value}}}]').expect(200).body
    assert b'"n":' + result + b"," in text


# ── What may not be patched ─────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("path", ["/id", "/id/x", "/_rid", "/_self", "/_etag", "/_ts", "/_attachments", "/_ts/x", "/pk", "/pk/x"])
@pytest.mark.parametrize("kind", ["add", "set", "replace", "remove", "incr", "move to", "move from"])
def test_id_system_properties_and_the_key_are_not_patchable(container, x, path, kind):
    operations = {"remove": op("remove", path), "move to": op("move", path, **{"from": "/n"}), "move from": op("move", "/z", **{"from": path})}
    response = patch(container, [operations.get(kind) or op(kind, path, 1)]).expect(400, 0, "For Operation(1)")
    assert path.split("/")[1] in response.message
    assert container.read("x").expect(200).body == x.body


@pytest.mark.parametrize("path, allowed", [("/a", False), ("/a/b", False), ("/a/b/c", False), ("/a/c", True), ("/b", True), ("/t", False)])
def test_neither_ancestors_nor_descendants_of_a_key_path_are_patchable(db, path, allowed):
    container = db.create_container({"partitionKey": {"paths": ["/a/b", "/t"], "kind": "MultiHash", "version": 2}})
    container.create({"id": "x", "a": {"b": "1"}, "t": "2"}, ["1", "2"]).expect(201)
    patch(container, [op("set", path, "1")], key=["1", "2"]).expect(200 if allowed else 400)


# ── Conditions and their order ──────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("condition, status", [
    ("from c where c.n = 1", 200), ("FROM root WHERE root.n = 1", 200), ("from c where c.n < 1", 412), ("from c where c.missing = 1", 412),
    ("from c where c.o.s = 't' and ARRAY_LENGTH(c.l) = 2", 200), ("from c where IS_DEFINED(c.n)", 200), ("from c where c.n", 412),
    ("from c where", 400), ("where c.n = 1", 400), ("select * from c where c.n = 1", 400), ("from c where c.n = = 1", 400), ("", 400)])
def test_condition(container, x, condition, status):
    response = patch(container, [op("set", "/done", True)], condition=condition).expect(status)
    if status == 412:
        assert FAILED in response.message and response.charge == 1.24
    assert ("done" in container.read("x").json) == (status == 200)


@pytest.mark.parametrize("value, status", [("{etag}", 200), ("*", 200), ('"stale"', 412)])
def test_if_match(container, x, value, status):
    patch(container, [op("set", "/n", 2)], headers={"If-Match": value.format(etag=x["etag"])}).expect(status)


def test_if_none_match_is_ignored(container, x):
    patch(container, [op("set", "/n", 2)], headers={"If-None-Match": x["etag"]}).expect(200)


def test_order_of_checks(container, x):
    broken, stale, false = [op("remove", "/p")], {"If-Match": '"stale"'}, "from c where false"
    patch(container, broken, "y", headers=stale, condition=false).expect(404, 0)
    assert "pre-condition" in patch(container, broken, headers=stale, condition=false).expect(412).message
    patch(container, broken, condition=false).expect(412)
    patch(container, [op("set", "/id", "y")], condition=false).expect(412)
    patch(container, broken).expect(400)
    assert container.read("x").expect(200).body == x.body


def test_patch_never_creates(container):
    patch(container, [op("set", "/n", 1)]).expect(404, 0)
    assert container.all_documents() == []


@pytest.mark.parametrize("key, substatus", [(None, 0), ([], 1001), (["a", "b"], 1001)], ids=str)
def test_key_must_be_given_in_full(container, x, key, substatus):
    patch(container, [op("set", "/n", 2)], key=key).expect(400, substatus)


def test_other_key_is_404(container, x):
    patch(container, [op("set", "/n", 2)], key=["b"]).expect(404)


# ── Limits and rules of the container hold after the patch ──────────────────────────────────────────

def test_document_may_not_grow_beyond_the_limit(container):
    container.create({"id": "x", "pk": "a", "s": "y" * 1_500_000}).expect(201)
    before = container.read("x").body
    patch(container, [op("set", "/t", "y" * 600_000)]).expect(413, 0, "Request size is too large")
    assert container.read("x").body == before
    patch(container, [op("set", "/t", "y" * 500_000)]).expect(200)


def test_document_may_not_become_nested_too_deep(container):
    container.create('{"id":"x","pk":"a","o":' + '{"o":' * 100 + "{}" + "}" * 100 + "}").expect(201)
    path = "/o" * 101 + "/p"
    patch(container, f'[{{"op":"set","path":"{path}","value":{"[" * 27 + "]" * 27}}}]').expect(400, 0, "nested")
    patch(container, f'[{{"op":"set","path":"{path}","value":{"[" * 26 + "]" * 26}}}]').expect(200)


def test_unique_keys_hold_and_come_last(db):
    container = db.create_container({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})
    container.create({"id": "x", "pk": "a", "u": 1}).expect(201)
    container.create({"id": "y", "pk": "a", "u": 2}).expect(201)
    patch(container, [op("set", "/u", 2)]).expect(409, 0, "Unique index constraint violation")
    patch(container, [op("set", "/u", 2), op("remove", "/p")]).expect(400)
    patch(container, [op("set", "/u", 3)]).expect(200)
    container.create({"id": "z", "pk": "a", "u": 1}).expect(201)


@pytest.mark.parametrize("ttl", [0, None, -2, "1", 1.5])
def test_ttl_must_stay_valid_where_ttl_is_on(db, ttl):
    container = db.create_container({"defaultTtl": -1})
    container.create({"id": "x", "pk": "a"}).expect(201)
    patch(container, [op("set", "/ttl", ttl)]).expect(400, 0, "ttl")
    patch(container, [op("set", "/ttl", 100)]).expect(200)


# ── The change feed ─────────────────────────────────────────────────────────────────────────────────

def test_patch_is_one_change_with_the_whole_document(container, x):
    patched = patch(container, [op("incr", "/n", 1), op("incr", "/n", 1)]).expect(200)
    changes = container.feed({"A-IM": "Incremental feed", "If-None-Match": f'"{x["lsn"]}"'}).expect(200).json["Documents"]
    assert len(changes) == 1
    assert changes[0]["_lsn"] == int(patched["lsn"])
    assert {name: value for name, value in changes[0].items() if name != "_lsn"} == patched.json


def test_concurrent_increments_are_all_counted(endpoint, container, x):
    clients = [wire.Client(endpoint) for _ in range(8)]
    try:
        body = wire.to_bytes([op("incr", "/n", 1)])
        for _ in range(25):
            for client in clients:
                client.connection = client.connection or wire.Connection(endpoint)
                client.connection.send(client.build("PATCH", container.doc("x"), body, {KEY: '["a"]'}))
            for client in clients:
                client.connection.receive("PATCH").expect(200)
    finally:
        for client in clients:
            client.close()
    assert container.read("x").json["n"] == 1 + 8 * 25
