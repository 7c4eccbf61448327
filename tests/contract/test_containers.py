"""Containers: definition, validation, replacement, deletion."""
import re

import pytest

from harness import wire
from harness.wire import ABSENT
from test_databases import FORBIDDEN_NAMES

SYSTEM = ["_rid", "_ts", "_self", "_etag", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts"]
HASH_1 = {"paths": ["/pk"], "kind": "Hash", "version": 1}
LAST_WRITER_WINS = {"mode": "LastWriterWins", "conflictResolutionPath": "/_ts", "conflictResolutionProcedure": ""}


def key(*paths, **members):
    return {"partitionKey": {"paths": list(paths)} | members}


def multi(*paths):
    return key(*paths, kind="MultiHash", version=2)


def put(container, change, headers=None, **options):
    """PUT of the whole resource with members changed, or left out."""
    body = {name: value for name, value in (container.body | change).items() if value is not ABSENT}
    return container.client.put(container.path, body, headers, **options)


# ── Create, read, list ──────────────────────────────────────────────────────────────────────────────

def test_created_container_has_all_defaults_and_links(db):
    body = db.create_container({"id": "c"}).body
    assert {name: value for name, value in body.items() if name not in SYSTEM} == {
        "id": "c",
        "indexingPolicy": {"indexingMode": "consistent", "automatic": True, "includedPaths": [{"path": "/*"}],
                           "excludedPaths": [{"path": '/"_etag"/?'}]},
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "conflictResolutionPolicy": LAST_WRITER_WINS,
        "geospatialConfig": {"type": "Geography"}}
    assert [body[name] for name in SYSTEM[4:]] == ["docs/", "sprocs/", "triggers/", "udfs/", "conflicts/"]
    assert isinstance(body["_ts"], int) and list(body)[-9:] == SYSTEM


def test_container_responses_name_the_database_not_the_container(client, container):
    for response in (container.response, client.get(container.path).expect(200), put(container, {}).expect(200)):
        assert response["etag"] == response.json["_etag"]
        assert response["x-ms-alt-content-path"] == f"dbs/{container.database.id}"
        assert response["x-ms-content-path"] == container.database.rid
        assert response[wire.SESSION] is None


def test_alt_content_path_is_percent_encoded(client):
    database = client.create_database(wire.unique("ä b"))
    container = database.create_container({"id": "ç d"})
    assert container.response["x-ms-alt-content-path"] == database.path[1:]
    created = container.create({"id": "x", "pk": "a"}).expect(201)
    assert created["x-ms-alt-content-path"] == container.path[1:]


def test_create_read_and_list_return_the_same_container(client, container):
    assert client.get(container.path).expect(200).body == container.response.body
    page = client.get(f"{container.database.path}/colls").expect(200)
    assert page.json == {"_rid": container.database.rid, "DocumentCollections": [container.body], "_count": 1}
    assert page["x-ms-item-count"] == "1"


def test_list_is_paged_without_loss_or_repetition(client, db):
    names = {db.create_container().id for _ in range(5)}
    pages = list(client.pages(f"{db.path}/colls", {wire.MAX_ITEMS: "2"}))
    assert [page.json["_count"] for page in pages] == [2, 2, 1]
    listed = [each["id"] for page in pages for each in page.json["DocumentCollections"]]
    assert len(listed) == 5 and set(listed) == names


def test_second_container_of_a_name_is_409(container):
    container.database.post_container({"id": container.id}).expect(409, 0, "Entity with the specified id already exists")


def test_same_name_in_two_databases_is_two_containers(client):
    rids = {client.create_database().create_container({"id": "c"}).rid for _ in range(2)}
    assert len(rids) == 2


@pytest.mark.parametrize("name", FORBIDDEN_NAMES + [1, None, ["x"], ABSENT])
def test_forbidden_name_is_400(db, name):
    db.post_container({"id": name}).expect(400)


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '"c"', b'{"id":"\xff"}'])
def test_bad_body_is_400(client, db, body):
    client.post(f"{db.path}/colls", body).expect(400)


def test_missing_container_is_404_and_missing_database_1003(client, db):
    for verb in ("GET", "DELETE"):
        client.request(verb, f"{db.path}/colls/none").expect(404, 0, "Resource Not Found")
        client.request(verb, "/dbs/no-such-database/colls/none").expect(404, 1003)
    client.put(f"{db.path}/colls/none", {"id": "none"}).expect(404, 0)
    client.post("/dbs/no-such-database/colls", {"id": "c"}).expect(404, 1003)


# ── Partition key definitions ───────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("definition", [
    {"paths": ["/pk"], "kind": "Hash", "version": 1}, {"paths": ["/pk"], "kind": "Hash", "version": 2},
    {"paths": ["/pk"], "kind": "Hash"}, {"paths": ["/a/b/c"], "kind": "Hash"}, {"paths": ['/"a b"/c'], "kind": "Hash"},
    {"paths": ["/'a b'"], "kind": "Hash"}, {"paths": ["/id"], "kind": "Hash", "version": 2},
    {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}, {"paths": ["/a", "/b/c", "/id"], "kind": "MultiHash", "version": 2}],
    ids=str)
def test_partition_key_definition_is_returned_as_it_was_sent(client, db, definition):
    container = db.create_container({"partitionKey": definition})
    assert container.body["partitionKey"] == definition
    assert client.get(container.path).expect(200).json["partitionKey"] == definition


def test_missing_kind_is_filled_in_and_missing_version_is_not(db):
    assert db.create_container(key("/pk")).body["partitionKey"] == {"paths": ["/pk"], "kind": "Hash"}


VALID_CHARACTERS = "Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character"


@pytest.mark.parametrize("definition, text", [
    (key("/id ds"), VALID_CHARACTERS), (key("/a/"), VALID_CHARACTERS), (key("/*"), VALID_CHARACTERS),
    (key("/a/*"), VALID_CHARACTERS), (key("/"), None), (key(""), None), (key("pk"), None),
    (key("/a//b"), None), (key('/"open'), None), (key(1), None), (key(None), None), (key(), None),
    ({"partitionKey": {"paths": "/pk", "kind": "Hash"}}, None), ({"partitionKey": {"kind": "Hash"}}, None),
    ({"partitionKey": "/pk"}, None), ({"partitionKey": ["/pk"]}, None),
    (key("/a", "/b", kind="Hash", version=2), "Too many partition key paths"),
    (multi("/a", "/b", "/c", "/d"), "Too many partition key paths"),
    (multi("id", "/b"), "The partition key component definition path 'id' could not be accepted"),
    (key("/a", "/b", kind="MultiHash", version=1), None), (key("/pk", kind="Banana"), None), (key("/pk", kind=1), None),
    (key("/pk", version=0), None), (key("/pk", version=3), None), (key("/pk", version="2"), None),
], ids=str)
def test_bad_partition_key_definition_is_400(db, definition, text):
    db.post_container(definition).expect(400, text=text)


# ── The other members ─────────────────────────────────────────────────────────────────────────

ECHOED = [
    {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a", "/b/c"]}, {"paths": ["/d"]}]}},
    {"conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": "/n", "conflictResolutionProcedure": ""}},
    {"conflictResolutionPolicy": {"mode": "Custom", "conflictResolutionPath": "",
                                  "conflictResolutionProcedure": "dbs/d/colls/c/sprocs/s"}},
    {"defaultTtl": -1}, {"defaultTtl": 1}, {"defaultTtl": 2147483647}, {"defaultTtl": 60, "ttlPropertyPath": "/made"},
    {"analyticalStorageTtl": -1}, {"analyticalStorageTtl": 1000},
    {"computedProperties": [{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}]},
    {"changeFeedPolicy": {"retentionDuration": 10}}, {"changeFeedPolicy": {"retentionDuration": 0}},
    {"vectorEmbeddingPolicy": {"vectorEmbeddings": [
        {"path": "/v", "dataType": "float32", "distanceFunction": "cosine", "dimensions": 8}]}},
    {"fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]}},
    {"geospatialConfig": {"type": "Geometry"}}, {"geospatialConfig": {"type": "Geography"}},
    {"fullTextPolicy": {"defaultLanguage": "1033", "fullTextPaths": [{"path": "/text", "language": "1033"}]}},
    {"somethingOfTheFuture": {"a": [1, None, "x"]}, "another": 1.5},
]


@pytest.mark.parametrize("members", ECHOED, ids=str)
def test_member_is_stored_and_returned(client, db, members):
    container = db.create_container(members)
    read = client.get(container.path).expect(200).json
    for name, value in members.items():
        assert container.body[name] == value and read[name] == value


@pytest.mark.parametrize("name", ["uniqueKeyPolicy", "defaultTtl", "analyticalStorageTtl", "computedProperties",
                                  "changeFeedPolicy", "vectorEmbeddingPolicy", "fullTextPolicy", "clientEncryptionPolicy"])
def test_optional_member_is_returned_only_if_it_was_given(container, name):
    assert name not in container.body


REFUSED = [
    {"defaultTtl": 0}, {"defaultTtl": None}, {"defaultTtl": -2}, {"defaultTtl": -10}, {"defaultTtl": 1.5},
    {"defaultTtl": "60"}, {"defaultTtl": 2147483648}, {"defaultTtl": True}, {"ttlPropertyPath": "/made"},
    {"geospatialConfig": {"type": "Flat"}}, {"conflictResolutionPolicy": {"mode": "Banana"}},
    {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["a"]}]}}, {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": []}]}},
    {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": "/a"}]}}, {"uniqueKeyPolicy": {"uniqueKeys": "x"}},
    {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": [f"/k{n}"]} for n in range(11)]}},
    {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": [f"/p{n}" for n in range(17)]}]}},
    {"vectorEmbeddingPolicy": {"vectorEmbeddings": [
        {"path": "/v", "dataType": "float99", "distanceFunction": "cosine", "dimensions": 8}]}},
    {"vectorEmbeddingPolicy": {"vectorEmbeddings": [
        {"path": "/v", "dataType": "float32", "distanceFunction": "taxi", "dimensions": 8}]}},
]


@pytest.mark.parametrize("members", REFUSED, ids=lambda members: str(members)[:60])
def test_bad_member_is_400_on_create_and_on_replace(container, members):
    container.database.post_container(members).expect(400)
    put(container, members).expect(400)


@pytest.mark.parametrize("properties", ["text", {"name": "n", "query": "SELECT VALUE c.a FROM c"}, 1, ["text"], [{"name": 1, "query": "q"}],
                                        [{"name": "n"}]], ids=str)
def test_computed_properties_of_the_wrong_type_are_refused_in_the_words_that_clients_look_for(container, properties):
    for response in (container.database.post_container({"computedProperties": properties}), put(container, {"computedProperties": properties})):
        response.expect(400, text="One of the specified inputs is invalid")


def test_10_unique_keys_of_16_paths_are_accepted(db):
    db.create_container({"uniqueKeyPolicy": {
        "uniqueKeys": [{"paths": [f"/k{k}/p{p}" for p in range(16)]} for k in range(10)]}})


def test_full_text_language_may_be_given_by_its_number(client, db):
    container = db.create_container({"fullTextPolicy": {"defaultLanguage": "de-DE", "fullTextPaths": [{"path": "/t", "language": "1033"}]}})
    container.create({"id": "x", "pk": "a", "t": "He was running"}).expect(201)
    query = {"query": "SELECT VALUE c.id FROM c WHERE FullTextContains(c.t, 'runs')", "parameters": []}
    assert client.post(container.docs, query, wire.QUERY | wire.key_header(["a"])).expect(200).json["Documents"] == ["x"]


# ── Replace ─────────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("change", [
    {"defaultTtl": 60}, {"analyticalStorageTtl": -1}, {"changeFeedPolicy": {"retentionDuration": 5}},
    {"computedProperties": [{"name": "p", "query": "SELECT VALUE c.a FROM c"}]}, {"geospatialConfig": {"type": "Geometry"}},
    {"vectorEmbeddingPolicy": ECHOED[12]["vectorEmbeddingPolicy"]}, {"fullTextPolicy": ECHOED[13]["fullTextPolicy"]},
    {"indexingPolicy": {"indexingMode": "none", "automatic": False}}, {"unknownMember": [1, 2]}], ids=str)
def test_replace_changes_what_may_change_and_keeps_the_rid(client, container, change):
    replaced = put(container, change).expect(200)
    assert replaced.json["_rid"] == container.rid and replaced.json["_self"] == container.body["_self"]
    assert replaced.json["_etag"] != container.body["_etag"] and replaced["etag"] == replaced.json["_etag"]
    for name, value in change.items():
        if name == "indexingPolicy":
            assert replaced.json[name]["indexingMode"] == "none"
        else:
            assert replaced.json[name] == value
    assert client.get(container.path).expect(200).body == replaced.body


def test_replace_without_default_ttl_switches_ttl_off(client, db):
    container = db.create_container({"defaultTtl": 60})
    assert "defaultTtl" not in put(container, {"defaultTtl": ABSENT}).expect(200).json
    assert "defaultTtl" not in client.get(container.path).expect(200).json


@pytest.mark.parametrize("change", [
    {"id": "other"}, key("/other", kind="Hash", version=2), key("/pk", kind="Hash", version=1),
    multi("/pk", "/b"), {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/other"]}]}},
    {"conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": "/n", "conflictResolutionProcedure": ""}},
], ids=str)
def test_replace_of_what_cannot_change_is_400(client, db, change):
    container = db.create_container({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a"]}]}})
    put(container, change).expect(400)
    assert client.get(container.path).expect(200).body == container.response.body


def test_replace_that_adds_a_unique_key_policy_is_400(container):
    put(container, {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a"]}]}}).expect(400)


@pytest.mark.parametrize("name", ["partitionKey", "uniqueKeyPolicy", "conflictResolutionPolicy"])
def test_replace_without_an_immutable_member_keeps_it(db, name):
    container = db.create_container({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a"]}]}})
    assert put(container, {name: ABSENT}).expect(200).json[name] == container.body[name]


@pytest.mark.parametrize("verb", ["PUT", "DELETE"])
def test_if_match_guards_container_writes(client, container, verb):
    body = container.body if verb == "PUT" else None
    client.request(verb, container.path, body, {"If-Match": '"other"'}).expect(
        412, text="One of the specified pre-condition is not met")
    client.request(verb, container.path, body, {"If-Match": container.body["_etag"]}).expect((200, 204))


def test_if_none_match_on_a_read_is_304(client, container):
    assert client.get(container.path, {"If-None-Match": container.body["_etag"]}).expect(304)["etag"] == container.body["_etag"]
    client.get(container.path, {"If-None-Match": '"other"'}).expect(200)


# ── Read options ──────────────────────────────────────────────────────────────────────────────

def test_index_progress_is_100_and_lazy_progress_absent(client, container):
    response = client.get(container.path).expect(200)
    assert response["x-ms-documentdb-collection-index-transformation-progress"] == "100"
    assert response["x-ms-documentdb-collection-lazy-indexing-progress"] is None


def test_lazy_container_reports_lazy_progress(client, db):
    container = db.create_container({"indexingPolicy": {"indexingMode": "lazy", "automatic": True}})
    assert client.get(container.path).expect(200)["x-ms-documentdb-collection-lazy-indexing-progress"] == "100"


@pytest.mark.parametrize("true", ["true", "True", "TRUE"])
def test_quota_info_lists_limits_and_usage(client, container, true):
    response = client.get(container.path, {"x-ms-documentdb-populatequotainfo": true}).expect(200)
    for name in ("x-ms-resource-quota", "x-ms-resource-usage"):
        assert re.match(r"^(\w+=-?\d+;)+$", response[name]), response[name]
        assert {"functions", "storedProcedures", "triggers", "documentSize", "documentsSize", "documentsCount",
                "collectionSize"} <= set(re.findall(r"(\w+)=", response[name]))
    quota = dict(re.findall(r"(\w+)=(-?\d+);", response["x-ms-resource-quota"]))
    assert quota["collectionSize"] == "10485760" and quota["functions"] == "50"
    assert quota["storedProcedures"] == "100" and quota["triggers"] == "25"


@pytest.mark.parametrize("throughput, ranges", [(400, 1), (15000, 3)])
def test_partition_statistics_list_every_range(client, db, throughput, ranges):
    container = db.create_container(throughput=throughput)
    container.create({"id": "x", "pk": "a"}).expect(201)
    header = {"x-ms-documentdb-populatepartitionstatistics": "True"}
    statistics = client.get(container.path, header).expect(200).json["statistics"]
    assert sorted(each["id"] for each in statistics) == [str(n) for n in range(ranges)]
    assert sum(each["documentCount"] for each in statistics) == 1
    for each in statistics:
        assert each.keys() == {"id", "sizeInKB", "documentCount", "sampledDistinctPartitionKeyCount", "partitionKeys"}
    assert "statistics" not in client.get(container.path).expect(200).json


# ── Deleted and made anew ─────────────────────────────────────────────────────

def operations_below(container, base):
    """One request of each kind to what lies in a container that is addressed by `base`."""
    key_header, document = {wire.KEY: '["a"]'}, {"id": "x", "pk": "a"}
    return [("GET", f"{base}/docs", None, {}), ("POST", f"{base}/docs", document, key_header),
            ("POST", f"{base}/docs", document, key_header | wire.UPSERT), ("GET", f"{base}/pkranges", None, {}),
            ("POST", f"{base}/operations/partitionkeydelete", None, key_header)]


def test_everything_below_a_deleted_container_is_404_1003(client, container):
    document = container.create({"id": "x", "pk": "a"}).expect(201).json
    client.delete(container.path).expect(204)
    client.get(container.path).expect(404, 0)
    client.delete(container.path).expect(404, 0)
    client.get(container.self_path).expect(404)
    key_header = {wire.KEY: '["a"]'}
    for base in (container.path, container.self_path[:-1]):
        for verb, path, body, headers in operations_below(container, base):
            client.request(verb, path, body, headers).expect(404, 1003)
    for path in (container.doc("x"), "/" + document["_self"]):
        for verb, body in (("GET", None), ("PUT", document), ("DELETE", None)):
            client.request(verb, path, body, key_header).expect(404, 1003)


def test_recreated_container_is_empty_under_a_new_rid(client, container):
    document = container.create({"id": "x", "pk": "a"}).expect(201).json
    client.delete(container.path).expect(204)
    again = container.database.create_container({"id": container.id})
    assert again.rid != container.rid
    again.read("x").expect(404, 0)
    assert again.all_documents() == []
    client.get("/" + document["_self"], {wire.KEY: '["a"]'}).expect(404, 1003)


def test_intended_rid_of_another_container_is_400_1024(client, container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    client.delete(container.path).expect(204)
    again = container.database.create_container({"id": container.id})
    for rid, wanted in ((container.rid, (400, 1024)), (again.rid, None)):
        intended = {"x-ms-cosmos-intended-collection-rid": rid}
        responses = [client.request(verb, path, body, headers | intended)
                     for verb, path, body, headers in operations_below(again, again.path)]
        responses += [again.read("x", headers=intended), client.get(again.path, intended)]
        for response in responses:
            if wanted:
                response.expect(*wanted)
            else:
                response.expect((200, 201, 204, 404))


def test_intended_rid_mismatch_wins_over_a_missing_item(container):
    other = container.database.create_container()
    container.read("none", headers={"x-ms-cosmos-intended-collection-rid": other.rid}).expect(400, 1024)
    container.read("none", headers={"x-ms-cosmos-intended-collection-rid": container.rid}).expect(404, 0)


def test_lsns_of_a_recreated_container_continue_above_the_old_head(client, container):
    container.fill(5)
    head = int(container.read("0").expect(200)["lsn"])
    assert head == 6
    client.delete(container.path).expect(204)
    again = container.database.create_container({"id": container.id})
    assert wire.unversioned(again.read("none").expect(404)[wire.SESSION]) == f"0:-1#{head + 1}"
    assert wire.unversioned(again.create({"id": "x", "pk": "a"}).expect(201)[wire.SESSION]) == f"0:-1#{head + 2}"
