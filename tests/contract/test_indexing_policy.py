"""Indexing policies: defaults, completion and the old shapes."""
import pytest

import queries
from harness import wire

ETAG = {"path": '/"_etag"/?'}
DEFAULT = {"indexingMode": "consistent", "automatic": True, "includedPaths": [{"path": "/*"}], "excludedPaths": [ETAG]}
OLD_INDEXES = [{"kind": "Range", "dataType": "Number", "precision": -1}, {"kind": "Hash", "dataType": "String", "precision": 3}]
OLD_DEFAULT = {"indexingMode": "consistent", "automatic": True, "includedPaths": [{"path": "/*", "indexes": OLD_INDEXES}],
               "excludedPaths": []}


def created(db, policy, **options):
    return db.create_container({"indexingPolicy": policy}, **options).body["indexingPolicy"]


@pytest.mark.parametrize("policy", [wire.ABSENT, {}, DEFAULT], ids=["absent", "empty", "default"])
def test_missing_policy_is_the_default(db, policy):
    assert created(db, policy) == DEFAULT


@pytest.mark.parametrize("policy", [wire.ABSENT, {}], ids=["absent", "empty"])
def test_clients_of_2017_get_the_old_default(db, policy):
    assert created(db, policy, version=wire.OLDEST) == OLD_DEFAULT


@pytest.mark.parametrize("mode", ["consistent", "Consistent", "CONSISTENT", "none", "None", "lazy", "Lazy"])
def test_indexing_mode_is_returned_in_lower_case(client, db, mode):
    container = db.create_container({"indexingPolicy": {"indexingMode": mode, "automatic": mode.lower() != "none"}})
    assert container.body["indexingPolicy"]["indexingMode"] == mode.lower()
    assert client.get(container.path).expect(200).json["indexingPolicy"]["indexingMode"] == mode.lower()


@pytest.mark.parametrize("excluded, expected", [
    ([{"path": "/a/*"}], [{"path": "/a/*"}, ETAG]), ([ETAG], [ETAG]), ([], [ETAG]),
    ([ETAG, {"path": "/a/?"}], [ETAG, {"path": "/a/?"}])])
def test_etag_is_appended_to_excluded_paths_once(db, excluded, expected):
    policy = created(db, {"indexingMode": "consistent", "automatic": True, "includedPaths": [{"path": "/*"}],
                          "excludedPaths": excluded})
    assert policy["excludedPaths"] == expected


def test_nothing_is_appended_for_clients_of_2017(db):
    policy = {"indexingMode": "consistent", "automatic": True, "includedPaths": [{"path": "/*", "indexes": OLD_INDEXES}],
              "excludedPaths": [{"path": "/a/*"}]}
    assert created(db, policy, version=wire.OLDEST) == policy


@pytest.mark.parametrize("index", [{"kind": "Hash", "dataType": "Number", "precision": 2}, {"kind": "Hash", "dataType": "String"},
                                   {"kind": "Range", "dataType": "Number"}])
def test_clients_of_2017_get_a_second_index_where_a_path_lists_one(db, index):
    policy = created(db, {"indexingMode": "consistent", "includedPaths": [{"path": "/*", "indexes": [index]}],
                          "excludedPaths": []}, version=wire.OLDEST)
    indexes = policy["includedPaths"][0]["indexes"]
    assert sorted(each["dataType"] for each in indexes) == ["Number", "String"]
    assert index.items() <= next(each for each in indexes if each["dataType"] == index["dataType"]).items()


@pytest.mark.parametrize("members", [
    {"automatic": False},
    {"includedPaths": [{"path": "/a/?"}, {"path": "/b/*"}, {"path": '/"c d"/[]/e/?'}], "excludedPaths": [{"path": "/*"}, ETAG]},
    {"compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]]},
    {"spatialIndexes": [{"path": "/where/*", "types": ["Point", "Polygon"]}]},
    {"fullTextIndexes": [{"path": "/text"}]}, {"vectorIndexes": [{"path": "/v", "type": "flat"}]}], ids=str)
def test_members_are_stored_and_returned(client, db, members):
    container = db.create_container({"indexingPolicy": DEFAULT | members} | ({} if "vectorIndexes" not in members else {
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "distanceFunction": "cosine", "dimensions": 4}]}}))
    for policy in (container.body["indexingPolicy"], client.get(container.path).expect(200).json["indexingPolicy"]):
        assert {name: policy[name] for name in members} == members


@pytest.mark.parametrize("policy", [
    "consistent", [], {"indexingMode": "banana"}, {"indexingMode": 1}, {"automatic": "yes"}, {"includedPaths": "/*"},
    {"includedPaths": [{"path": 1}]}, {"includedPaths": [{}]}, {"includedPaths": [{"path": "a/?"}]},
    {"excludedPaths": [{"path": "no slash"}]}, {"compositeIndexes": [[{"path": "/a", "order": "sideways"}, {"path": "/b"}]]},
    {"compositeIndexes": [[{"path": f"/p{n}", "order": "ascending"} for n in range(9)]]},
    {"includedPaths": [{"path": f"/p{n}/?"} for n in range(1501)]}, {"includedPaths": [], "excludedPaths": [{"path": "/a/?"}]},
    {"spatialIndexes": [{"path": "/at/*", "boundingBox": {"xmin": 2, "ymin": 0}}]}], ids=lambda policy: str(policy)[:60])
def test_bad_policy_is_400(db, policy):
    db.post_container({"indexingPolicy": policy}).expect(400)


BOX = {"boundingBox": {"xmin": 0, "ymin": 0, "xmax": 10, "ymax": 10}}


@pytest.mark.parametrize("kind, box, is_right", [("Geography", {}, True), ("Geometry", BOX, True), ("Geometry", {}, False), ("Geography", BOX, False)])
def test_spatial_index_has_a_bounding_box_in_a_plane_only(client, db, kind, box, is_right):
    members = {"geospatialConfig": {"type": kind}, "indexingPolicy": DEFAULT | {"spatialIndexes": [{"path": "/at/*", "types": ["Point"]} | box]}}
    created = db.post_container(members).expect(201 if is_right else 400)
    plain = db.create_container()
    replaced = client.put(plain.path, plain.body | members).expect(200 if is_right else 400)
    if not is_right:
        for response in (created, replaced):
            assert "boundingBox" in response.message and kind in response.message
    # Without a kind it is the earth.
    if kind == "Geography":
        del members["geospatialConfig"]
        db.post_container(members).expect(201 if is_right else 400)


def test_8_properties_of_a_composite_index_are_accepted(db):
    db.create_container({"indexingPolicy": DEFAULT | {
        "compositeIndexes": [[{"path": f"/p{n}", "order": "ascending"} for n in range(8)]]}})


def test_replace_without_a_policy_brings_the_default_back(client, db):
    container = db.create_container({"indexingPolicy": {"indexingMode": "none", "automatic": False}})
    body = {name: value for name, value in container.body.items() if name != "indexingPolicy"}
    assert client.put(container.path, body).expect(200).json["indexingPolicy"] == DEFAULT


def test_orders_of_a_composite_index_may_be_written_in_any_case(client, db):
    container = db.create_container({"indexingPolicy": DEFAULT | {
        "compositeIndexes": [[{"path": "/a", "order": "Ascending"}, {"path": "/b", "order": "Descending"}]]}})
    shown = client.get(container.path).expect(200).json["indexingPolicy"]["compositeIndexes"]
    assert shown == [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]]
    queries.send(container, "SELECT * FROM c ORDER BY c.a ASC, c.b DESC").expect(200)
    queries.send(container, "SELECT * FROM c ORDER BY c.a ASC, c.b ASC").expect(400)


@pytest.mark.parametrize("index, status", [({"indexingSearchListSize": 10}, 201), ({"indexingSearchListSize": 9}, 400),
                                           ({"quantizationByteSize": 512}, 201), ({"quantizationByteSize": 513}, 400)])
def test_numbers_of_vector_indexes(db, index, status):
    embedding = {"path": "/v", "dataType": "float32", "distanceFunction": "cosine", "dimensions": 4}
    db.post_container({"indexingPolicy": DEFAULT | {"vectorIndexes": [{"path": "/v", "type": "diskANN"} | index]},
                       "vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding]}}).expect(status)
