"""Items: the operations and their answers."""
import re

import pytest

from harness import wire


# ── Create, read, replace, upsert, delete ───────────────────────────────────────────────────────────

def test_life_of_an_item(container):
    document = {"id": "x", "pk": "a", "n": 1}
    created = container.create(document).expect(201)
    assert document.items() <= created.json.items()
    assert container.read("x").expect(200).body == created.body
    replaced = container.replace("x", document | {"n": 2}).expect(200)
    assert replaced.json["n"] == 2 and replaced.json["_rid"] == created.json["_rid"]
    assert container.read("x").expect(200).body == replaced.body
    deleted = container.delete("x").expect(204)
    assert deleted.body == b"" and deleted["content-type"] is None and deleted["content-length"] is None
    container.read("x").expect(404, 0, "Resource Not Found")


@pytest.mark.parametrize("true", ["true", "True", "TRUE"])
def test_upsert_creates_with_201_and_replaces_with_200(container, true):
    header = {"x-ms-documentdb-is-upsert": true}
    assert container.create({"id": "x", "pk": "a", "n": 1}, headers=header).expect(201).json["n"] == 1
    assert container.create({"id": "x", "pk": "a", "n": 2}, headers=header).expect(200).json["n"] == 2
    assert container.read("x").expect(200).json["n"] == 2


@pytest.mark.parametrize("false", ["false", "False", "FALSE"])
def test_upsert_header_of_false_is_a_create(container, false):
    header = {"x-ms-documentdb-is-upsert": false}
    container.create({"id": "x", "pk": "a"}, headers=header).expect(201)
    container.create({"id": "x", "pk": "a"}, headers=header).expect(409)


def test_second_create_of_an_id_is_409(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    response = container.create({"id": "x", "pk": "a"}).expect(409, 0, "Entity with the specified id already exists")
    assert response.json["code"] == "Conflict"


def test_id_is_unique_within_a_logical_partition_only(container):
    rids = {container.create({"id": "x", "pk": key}).expect(201).json["_rid"] for key in ("a", "b", 1, True, None)}
    assert len(rids) == 5
    assert container.read("x", ["b"]).expect(200).json["pk"] == "b"
    container.delete("x", ["b"]).expect(204)
    container.read("x", ["a"]).expect(200)


@pytest.mark.parametrize("call", [lambda c: c.read("x"), lambda c: c.replace("x", {"id": "x", "pk": "a"}),
                                  lambda c: c.delete("x")], ids=["read", "replace", "delete"])
def test_missing_item_is_404_without_a_substatus(container, call):
    response = call(container).expect(404, 0, "Resource Not Found")
    assert response.json["code"] == "NotFound"


@pytest.mark.parametrize("missing", ["container", "database"])
def test_item_of_a_missing_owner_is_404_1003(client, db, missing):
    docs = f"{db.path}/colls/none/docs" if missing == "container" else "/dbs/no-such-database/colls/none/docs"
    key, document = {wire.KEY: '["a"]'}, {"id": "x", "pk": "a"}
    for verb, path, body in [("GET", docs, None), ("POST", docs, document), ("GET", docs + "/x", None),
                             ("PUT", docs + "/x", document), ("DELETE", docs + "/x", None)]:
        client.request(verb, path, body, key).expect(404, 1003)


# ── Response headers ────────────────────────────────────────────────────────────────────────────────

def all_successes(container):
    document = {"id": "x", "pk": "a"}
    yield container.create(document).expect(201)
    yield container.read("x").expect(200)
    yield container.replace("x", document).expect(200)
    yield container.upsert(document).expect(200)
    yield container.delete("x").expect(204)
    yield container.upsert(document).expect(201)


def test_item_responses_carry_their_headers(container):
    for response in all_successes(container):
        assert response["x-ms-alt-content-path"] == container.path[1:]
        assert response["x-ms-content-path"] == container.rid
        assert response[wire.RANGE_ID] == "0"
        assert wire.unversioned(response[wire.SESSION]) == f"0:-1#{response['lsn']}"
        assert re.match(r"^(\w+=-?\d+;)+$", response["x-ms-resource-quota"])
        assert re.match(r"^(\w+=-?\d+;)+$", response["x-ms-resource-usage"])
        if response.status != 204:
            assert response["etag"] == response.json["_etag"]
            assert response["content-type"] == "application/json"


def test_item_responses_carry_the_lsn_group(container):
    container.create({"id": "other", "pk": "a"}).expect(201)
    container.create({"id": "x", "pk": "a"}).expect(201)
    container.create({"id": "another", "pk": "a"}).expect(201)
    response = container.read("x").expect(200)
    for name in ("lsn", "x-ms-cosmos-llsn", "x-ms-quorum-acked-lsn", "x-ms-cosmos-quorum-acked-llsn", "x-ms-global-committed-lsn"):
        assert response[name] == "4", name
    for name in ("x-ms-item-lsn", "x-ms-cosmos-item-llsn"):
        assert response[name] == "3", name
    for name, value in {"x-ms-number-of-read-regions": "0", "x-ms-current-write-quorum": "1",
                        "x-ms-current-replica-set-size": "1", "x-ms-transport-request-id": "1", "x-ms-xp-role": "1"}.items():
        assert response[name] == value, name


def test_item_that_is_not_found_has_a_session_token_and_no_content_path(container):
    response = container.read("none").expect(404)
    assert response["x-ms-content-path"] is None
    assert wire.unversioned(response[wire.SESSION]) == "0:-1#1"


def test_refused_writes_carry_session_token_and_charge(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    stale = {"If-Match": '"stale"'}
    for response in (container.create({"id": "x", "pk": "a"}).expect(409),
                     container.replace("x", {"id": "x", "pk": "a"}, headers=stale).expect(412),
                     container.delete("x", headers=stale).expect(412), container.delete("none").expect(404)):
        assert wire.unversioned(response[wire.SESSION]) == "0:-1#2" and response.charge > 0


# ── Prefer: return=minimal ──────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("prefer", ["return=minimal", "Return=Minimal", "wait=1, return=minimal", "return=minimal;x=y"])
def test_minimal_return_leaves_out_the_body_and_nothing_else(container, prefer):
    document, header = {"id": "x", "pk": "a"}, {"Prefer": prefer}
    for call, status in [(lambda: container.create(document, headers=header), 201),
                         (lambda: container.replace("x", document, headers=header), 200),
                         (lambda: container.upsert(document, headers=header), 200),
                         (lambda: container.upsert({"id": "y", "pk": "a"}, headers=header), 201)]:
        response = call().expect(status)
        assert response.body == b""
        assert response["etag"] and response[wire.SESSION] and response.charge > 5
    container.delete("y", headers=header).expect(204)
    assert container.read("x", headers=header).expect(200).json["id"] == "x"


def test_minimal_return_does_not_hide_errors(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    container.create({"id": "x", "pk": "a"}, headers={"Prefer": "return=minimal"}).expect(409, text="already exists")


@pytest.mark.parametrize("prefer", ["return=representation", "respond-async", "", "return"])
def test_other_preferences_are_ignored(container, prefer):
    assert container.create({"id": "x", "pk": "a"}, headers={"Prefer": prefer}).expect(201).json["id"] == "x"


# ── Ids ───────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("name", ["x", "x" * 1023, "é" * 511, "a/b", "a?b", "a#b", "trailing ", " ", "%20", "a\tb", '"', "😀",
                                  "a" * 255 + "b", "[]", "null", "../x"], ids=lambda name: name[:12])
def test_id_is_accepted_and_reached_by_rid(client, container, name):
    created = container.create({"id": name, "pk": "a"}).expect(201).json
    assert created["id"] == name
    assert client.get("/" + created["_self"], {wire.KEY: '["a"]'}).expect(200).json["id"] == name


@pytest.mark.parametrize("name", ["", "a\\b", "\\", "x" * 1024, "é" * 512, 1, 1.5, None, True, ["x"], {"a": "x"}, wire.ABSENT],
                         ids=lambda name: str(name)[:12])
def test_bad_id_is_400_on_every_write(container, name):
    container.create({"id": "x", "pk": "a"}).expect(201)
    body = {"pk": "a"} if name is wire.ABSENT else {"id": name, "pk": "a"}
    container.create(body).expect(400)
    container.upsert(body).expect(400)
    container.replace("x", body).expect(400)
    assert len(container.all_documents()) == 1


# ── Rename by PUT ───────────────────────────────────────────────────────────────────────────────────

def test_replace_with_another_id_renames_the_item(container):
    created = container.create({"id": "old", "pk": "a"}).expect(201).json
    renamed = container.replace("old", {"id": "new", "pk": "a"}).expect(200).json
    assert (renamed["id"], renamed["_rid"], renamed["_self"]) == ("new", created["_rid"], created["_self"])
    container.read("old").expect(404, 0)
    assert container.read("new").expect(200).json == renamed
    assert [document["id"] for document in container.all_documents()] == ["new"]
    container.create({"id": "old", "pk": "a"}).expect(201)


def test_rename_to_a_taken_id_is_409(container):
    for name in ("x", "y"):
        container.create({"id": name, "pk": "a"}).expect(201)
    container.replace("x", {"id": "y", "pk": "a", "n": 1}).expect(409)
    assert "n" not in container.read("y").expect(200).json
    container.read("x").expect(200)


def test_rename_to_an_id_of_another_partition_is_fine(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    container.create({"id": "y", "pk": "b"}).expect(201)
    container.replace("x", {"id": "y", "pk": "a"}).expect(200)


def test_rename_by_rid_and_with_if_match(client, container):
    created = container.create({"id": "old", "pk": "a"}).expect(201).json
    key = {wire.KEY: '["a"]'}
    client.put("/" + created["_self"], {"id": "new", "pk": "a"}, key | {"If-Match": '"stale"'}).expect(412)
    client.put("/" + created["_self"], {"id": "new", "pk": "a"}, key | {"If-Match": created["_etag"]}).expect(200)
    container.read("new").expect(200)


# ── Request headers ─────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("directive, status", [("Default", 201), ("Include", 201), ("Exclude", 201), ("exclude", 201),
                                               ("INCLUDE", 201), ("Sometimes", 400), ("1", 400)])
def test_indexing_directive(container, directive, status):
    container.create({"id": "x", "pk": "a"}, headers={"x-ms-indexing-directive": directive}).expect(status)


@pytest.mark.parametrize("headers", [
    {"x-ms-cosmos-allow-tentative-writes": "true"}, {"x-ms-cosmos-sdk-supportedcapabilities": "1"},
    {"x-ms-documentdb-responsecontinuationtokenlimitinkb": "1"}, {"x-ms-cosmos-priority-level": "Low"},
    {"x-ms-documentdb-content-serialization-format": "CosmosBinary"}, {"x-ms-cosmos-supported-serialization-formats": "JsonText,CosmosBinary"},
    {"x-ms-client-id": "x"}, {"x-ms-cosmos-correlated-activityid": "x"}, {"x-ms-thinclient-proxy-operation-type": "Create"},
    {"x-ms-dedicatedgateway-max-age": "5"}, {"x-ms-noretry-449": "True"}, {"x-ms-documentdb-disable-ru-per-minute-usage": "true"},
    {"Cache-Control": "no-cache"}, {"x-ms-cosmos-is-client-encrypted": "True"}, {"Accept": "*/*"},
    {"x-ms-documentdb-query-iscontinuationexpected": "False"}, {"x-ms-session-token": ""}], ids=lambda h: next(iter(h)))
def test_headers_of_the_clients_that_change_nothing(container, headers):
    container.create({"id": "x", "pk": "a"}, headers=headers).expect(201)
    assert container.read("x", headers=headers).expect(200)["content-type"] == "application/json"
    container.feed(headers).expect(200)


# ── Time to live: validation ─────────────────────────────────────────

BAD_TTLS = [0, None, -2, -10, 1.5, "60", 2147483648, True, [], {}]


@pytest.mark.parametrize("default", [{}, {"defaultTtl": -1}, {"defaultTtl": 3600}], ids=str)
@pytest.mark.parametrize("ttl", [-1, 1000, 2147483647])
def test_ttl_is_accepted(db, default, ttl):
    container = db.create_container(default)
    assert container.create({"id": "x", "pk": "a", "ttl": ttl}).expect(201).json["ttl"] == ttl
    container.read("x").expect(200)


@pytest.mark.parametrize("default", [{}, {"defaultTtl": -1}], ids=str)
@pytest.mark.parametrize("ttl", BAD_TTLS + ["x"], ids=str)
def test_bad_ttl_is_400_on_every_write_also_while_ttl_is_off(db, default, ttl):
    container = db.create_container(default)
    container.create({"id": "x", "pk": "a"}).expect(201)
    body = {"id": "x", "pk": "a", "ttl": ttl}
    container.create(body | {"id": "y"}).expect(400, text="ttl")
    container.upsert(body).expect(400, text="ttl")
    container.replace("x", body).expect(400, text="ttl")
    container.client.request("PATCH", container.doc("x"), [{"op": "set", "path": "/ttl", "value": ttl}],
                             wire.key_header(["a"])).expect(400, text="ttl")


def test_nested_ttl_means_nothing(db):
    container = db.create_container({"defaultTtl": -1})
    container.create({"id": "x", "pk": "a", "nested": {"ttl": 0}}).expect(201)
