"""Partition keys: the header, the document and how they meet."""
import json

import pytest

from harness import wire

MISMATCH = ("Partition key provided either doesn't correspond to definition in the collection or doesn't match "
            "partition key field values specified in the document.")


@pytest.fixture
def tenants(db):
    return db.create_container({"partitionKey": {"paths": ["/t", "/u", "/s"], "kind": "MultiHash", "version": 2}})


@pytest.fixture
def keyless(db):
    return db.create_container({"partitionKey": wire.ABSENT}, version=wire.OLDEST)


# ── One path ────────────────────────────────────────────────────────────────────────────────────────

VALUES = ['"a"', '""', "1", "1.0", "-2.5", "0", "1e3", "true", "false", "null", '"\\u00e4\\u65e5\\ud83d\\ude00"', '"quote\\"s"',
          '"[]"', "12345678901234567890", "9007199254740993"]


@pytest.mark.parametrize("value", VALUES)
def test_value_is_a_key_in_every_operation(container, value):
    text, key = f'{{"id":"x","pk":{value}}}', f"[{value}]"
    container.create(text, key).expect(201)
    container.read("x", key).expect(200)
    container.replace("x", text, key).expect(200)
    container.upsert(text, key).expect(200)
    assert len(container.feed({wire.KEY: key}).expect(200).json["Documents"]) == 1
    container.delete("x", key).expect(204)


@pytest.mark.parametrize("header, member", [("[1]", "1.0"), ("[1.0]", "1"), ("[1e0]", "1"), ("[1000]", "1E3"), ("[0.5]", "5e-1"),
                                            ('["\\u0061"]', '"a"'), ('["a"]', '"\\u0061"'), (' [ "a" ] ', '"a"')])
def test_one_value_may_be_written_in_different_ways(container, header, member):
    container.create(f'{{"id":"x","pk":{member}}}', header).expect(201)
    container.read("x", header).expect(200)
    container.read("x", f"[{member}]").expect(200)


@pytest.mark.parametrize("document", [{"id": "x"}, {"id": "x", "pk": {}}, {"id": "x", "pk": {"a": 1}}, {"id": "x", "pk": []},
                                      {"id": "x", "pk": ["a"]}, {"id": "x", "PK": "a"}], ids=str)
def test_missing_object_or_array_is_the_undefined_key(container, document):
    container.create(document, [{}]).expect(201)
    container.read("x", [{}]).expect(200)
    container.replace("x", document, [{}]).expect(200)
    container.read("x", [None]).expect(404)
    container.delete("x", [{}]).expect(204)


def test_types_are_told_apart(container):
    keys = ["1", 1, True, "true", None, "null", {}, "", False, 0]
    for key in keys:
        container.create({"id": "x"} | ({} if key == {} else {"pk": key}), [key]).expect(201)
    assert len(container.all_documents()) == len(keys)
    for key in keys:
        assert container.read("x", [key]).expect(200).json.get("pk", {}) == key


@pytest.mark.parametrize("header", [["b"], [1], [None], [{}], [True], [""]], ids=str)
def test_header_that_differs_from_the_document_is_400_1001(container, header):
    container.create({"id": "x", "pk": "a"}).expect(201)
    for call in (container.create, container.upsert):
        call({"id": "y", "pk": "a"}, header).expect(400, 1001, MISMATCH)
    container.replace("x", {"id": "x", "pk": "b"}, ["a"]).expect(400, 1001, MISMATCH)


@pytest.mark.parametrize("header", [[], ["a", "b"], ["a", None]], ids=str)
def test_header_with_a_wrong_number_of_components_is_400_1001(container, header):
    container.create({"id": "x", "pk": "a"}).expect(201)
    for response in (container.create({"id": "y", "pk": "a"}, header), container.read("x", header),
                     container.replace("x", {"id": "x", "pk": "a"}, header), container.delete("x", header)):
        response.expect(400, 1001)


@pytest.mark.parametrize("header", ["a", '"a"', "1", "null", "{}", "[", '["a"', "[a]", '["a",]', "[[]]", '[["a"]]', '[{"a":1}]',
                                    '["a"] x', "[1e400]", "[NaN]"])
def test_malformed_header_is_400(container, header):
    container.create({"id": "x", "pk": "a"}).expect(201)
    for response in (container.create({"id": "y", "pk": "a"}, header), container.read("x", header),
                     container.delete("x", header), container.feed({wire.KEY: header})):
        response.expect(400)


def test_null_is_not_undefined_on_a_plain_key(container):
    container.create({"id": "x"}, [None]).expect(400, 1001)
    container.create({"id": "x", "pk": None}, [{}]).expect(400, 1001)


def test_without_the_header_writes_take_the_key_from_the_document(container):
    container.create({"id": "x", "pk": "a"}, None).expect(201)
    container.upsert({"id": "x", "pk": "a", "n": 1}, None).expect(200)
    container.create({"id": "y"}, None).expect(201)
    assert container.read("x", ["a"]).expect(200).json["n"] == 1
    container.read("y", [{}]).expect(200)


def test_without_the_header_point_operations_are_400(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    container.read("x", None).expect(400)
    container.replace("x", {"id": "x", "pk": "a"}, None).expect(400)
    container.delete("x", None).expect(400)
    container.read("x").expect(200)


@pytest.mark.parametrize("path, document", [
    ("/a/b", {"id": "x", "a": {"b": "k"}}), ('/"a b"/c', {"id": "x", "a b": {"c": "k"}}), ("/'a/b'", {"id": "x", "a/b": "k"}),
    ("/id", {"id": "k"})])
def test_nested_and_quoted_paths_are_walked(db, path, document):
    container = db.create_container({"partitionKey": {"paths": [path], "kind": "Hash", "version": 2}})
    container.create(document, ["k"]).expect(201)
    container.read(document["id"], ["k"]).expect(200)
    container.upsert(document, None).expect(200)
    container.upsert(document, ["other"]).expect(400, 1001)


def test_key_in_the_id_path_changes_with_a_rename_and_is_refused(db):
    container = db.create_container({"partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}})
    container.create({"id": "x"}, ["x"]).expect(201)
    container.replace("x", {"id": "y"}, ["x"]).expect(400, 1001)


@pytest.mark.parametrize("version", [1, 2])
def test_key_value_has_a_longest_length(db, version):
    container = db.create_container({"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": version}})
    longest = "p" * 2048
    container.create({"id": "x", "pk": longest}).expect(201)
    container.read("x", [longest]).expect(200)
    container.create({"id": "x", "pk": longest + "p"}).expect(400)
    container.create({"id": "x", "pk": longest[1:] + "é"}, None).expect(400)


@pytest.mark.parametrize("throughput", [400, 30000])
def test_long_keys_of_version_1_that_begin_alike_are_different_keys(client, db, throughput):
    """Only their beginning is hashed, so they share an EPK; nothing else."""
    container = db.create_container({"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 1},
                                     "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}}, throughput=throughput)
    keys = ["k" * length + end for length in (100, 101, 150, 1000) for end in ("", "x", "y")]
    for key in keys:
        container.create({"id": "x", "pk": key, "u": 1}).expect(201)
        container.create({"id": "x", "pk": key}).expect(409)
        container.create({"id": "z", "pk": key, "u": 1}).expect(409)
    assert len({container.read("x", [key]).expect(200).json["_rid"] for key in keys}) == len(keys)
    for key in keys:
        scope = wire.key_header([key])
        assert [each["pk"] for each in container.feed(scope).expect(200).json["Documents"]] == [key]
        query = {"query": "SELECT VALUE c.pk FROM c", "parameters": []}
        as_query = {"x-ms-documentdb-isquery": "True", "Content-Type": "application/query+json"}
        assert client.post(container.docs, query, scope | as_query).expect(200).json["Documents"] == [key]
        pinned = {"query": "SELECT VALUE c.pk FROM c WHERE c.pk = @k", "parameters": [{"name": "@k", "value": key}]}
        assert client.post(container.docs, pinned, as_query | {
            "x-ms-documentdb-query-enablecrosspartition": "True"}).expect(200).json["Documents"] == [key]
        changes = container.feed(scope | {"A-IM": "Incremental feed"}).expect(200).json["Documents"]
        assert [each["pk"] for each in changes] == [key]
    container.delete_key([keys[1]]).expect(200)
    assert {each["pk"] for each in container.all_documents()} == set(keys) - {keys[1]}
    container.delete("x", [keys[2]]).expect(204)
    assert {each["pk"] for each in container.all_documents()} == set(keys) - set(keys[1:3])


def test_zero_and_minus_zero_are_two_keys(container):
    container.create('{"id":"x","pk":0}', "[0]").expect(201)
    container.create('{"id":"x","pk":-0.0}', "[-0.0]").expect(201)
    container.create('{"id":"x","pk":-0}', "[-0]").expect(409)
    assert len(container.all_documents()) == 2


# ── No path ─────────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("header", [None, [], [{}]], ids=["absent", "[]", "[{}]"])
@pytest.mark.parametrize("version", [wire.OLDEST, wire.NEWEST])
def test_container_without_a_key_accepts_no_key_in_three_spellings(keyless, header, version):
    keyless.create({"id": "x", "n": 0}, header, version=version).expect(201)
    keyless.create({"id": "x", "n": 0}, None, version=version).expect(409)
    keyless.replace("x", {"id": "x", "n": 1}, header, version=version).expect(200)
    keyless.upsert({"id": "x", "n": 2}, header, version=version).expect(200)
    for other in (None, [], [{}]):
        assert keyless.read("x", other, version=version).expect(200).json["n"] == 2
    keyless.delete("x", header, version=version).expect(204)


# ── Several paths ───────────────────────────────────────────────────────────────────────────────────

def test_full_key_serves_every_operation(tenants):
    document, key = {"id": "x", "t": "T", "u": 42, "s": True}, ["T", 42, True]
    tenants.create(document, key).expect(201)
    tenants.read("x", key).expect(200)
    tenants.replace("x", document | {"n": 1}, key).expect(200)
    tenants.upsert(document, None).expect(200)
    tenants.read("x", ["T", 42, False]).expect(404)
    tenants.delete("x", key).expect(204)


@pytest.mark.parametrize("key", [["T"], ["T", "U"], ["T", "U", "S", "more"]], ids=str)
def test_prefix_or_too_long_key_is_400_1001_for_point_operations(tenants, key):
    document = {"id": "x", "t": "T", "u": "U", "s": "S"}
    tenants.create(document, ["T", "U", "S"]).expect(201)
    for response in (tenants.create(document | {"id": "y"}, key), tenants.upsert(document, key), tenants.read("x", key),
                     tenants.replace("x", document, key), tenants.delete("x", key)):
        response.expect(400, 1001)


def test_empty_key_is_400_for_point_operations(tenants):
    document = {"id": "x", "t": "T", "u": "U", "s": "S"}
    for response in (tenants.create(document, []), tenants.read("x", []), tenants.delete("x", [])):
        response.expect(400)


def test_hierarchical_header_must_equal_the_document(tenants):
    document = {"id": "x", "t": "T", "u": "U", "s": "S"}
    for key in (["T", "U", "other"], ["U", "T", "S"], ["T", "U", None], ["T", "U", {}]):
        tenants.create(document, key).expect(400, 1001)


def test_missing_level_is_undefined_and_not_null(tenants):
    document = {"id": "x", "t": "T", "u": "U"}
    for write in (tenants.create, tenants.upsert):
        write(document, ["T", "U", None]).expect(400, 1001, "missing")
    tenants.create(document, ["T", "U", {}]).expect(201)
    tenants.read("x", ["T", "U", {}]).expect(200)
    tenants.read("x", ["T", "U", None]).expect(404)
    tenants.replace("x", document, ["T", "U", None]).expect((400, 404))


def test_null_and_undefined_levels_are_distinct_keys(tenants):
    tenants.create({"id": "x", "t": "T", "u": "U", "s": None}, ["T", "U", None]).expect(201)
    tenants.create({"id": "x", "t": "T", "u": "U"}, ["T", "U", {}]).expect(201)
    assert tenants.read("x", ["T", "U", None]).expect(200).json["s"] is None
    assert "s" not in tenants.read("x", ["T", "U", {}]).expect(200).json


@pytest.mark.parametrize("throughput", [400, 30000])
def test_prefix_selects_all_items_under_it_in_a_read_feed(db, throughput):
    container = db.create_container({"partitionKey": {"paths": ["/t", "/u"], "kind": "MultiHash", "version": 2}},
                                    throughput=throughput)
    for t in "ABCD":
        for u in range(5):
            container.create({"id": f"{t}{u}", "t": t, "u": u}, [t, u]).expect(201)
    for t in "ABCD":
        found = sorted(document["id"] for document in container.all_documents({wire.KEY: json.dumps([t])}))
        assert found == [f"{t}{u}" for u in range(5)]
    assert [document["id"] for document in container.all_documents({wire.KEY: '["B",3]'})] == ["B3"]
    assert container.all_documents({wire.KEY: '["none"]'}) == []
    assert len(container.all_documents()) == 20


def test_key_selects_its_logical_partition_in_a_read_feed(container):
    container.fill(3, "a")
    container.fill(2, "b")
    assert [document["pk"] for document in container.all_documents({wire.KEY: '["b"]'})] == ["b", "b"]
    assert container.all_documents({wire.KEY: '["none"]'}) == []
