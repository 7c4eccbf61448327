"""Request charges."""
import re

import pytest

from harness import wire

SYSTEM_BYTES_MAX = 512  # the formula does not say whether system properties weigh, so bounds allow for both


def create_charge(kilobytes, leaves, unique_keys=0):
    return 5 + (max(1, kilobytes) - 1) / 2.2 + 0.12 * leaves + unique_keys


def read_charge(kilobytes):
    return 1 + (max(1, kilobytes) - 1) / 11


def assert_charge(response, expected):
    assert response.charge == pytest.approx(expected, abs=0.006), response


def assert_charge_of_size(response, formula, size):
    """The charge is that of `size` bytes, with or without system properties."""
    low, high = formula(size / 1024), formula((size + SYSTEM_BYTES_MAX) / 1024)
    assert low - 0.006 <= response.charge <= high + 0.006, (low, response.charge, high)


@pytest.mark.parametrize("document, leaves", [
    ({"id": "x", "pk": "a"}, 2), ({"id": "x", "pk": "a", "n": 1, "t": True, "z": None}, 5),
    ({"id": "x", "pk": "a", "o": {"a": 1, "b": {"c": 2}}}, 4), ({"id": "x", "pk": "a", "l": [1, 2, 3]}, 5),
    ({"id": "x", "pk": "a", "l": [{"a": 1, "b": 2}, {"a": 3}]}, 5)], ids=str)
def test_small_item_costs_by_its_leaves(container, document, leaves):
    create = create_charge(1, leaves)
    assert_charge(container.create(document).expect(201), create)
    assert_charge(container.read("x").expect(200), 1)
    assert_charge(container.replace("x", document).expect(200), 2 * create - 1)
    assert_charge(container.upsert(document).expect(200), 2 * create - 1)
    assert_charge(container.delete("x").expect(204), create)
    assert_charge(container.upsert(document).expect(201), create)


@pytest.mark.parametrize("kilobytes", [2, 10, 100])
def test_large_item_costs_by_its_size(container, kilobytes):
    document = {"id": "x", "pk": "a", "padding": "p" * (kilobytes * 1024)}
    size = len(wire.to_bytes(document))
    assert_charge_of_size(container.create(document).expect(201), lambda kb: create_charge(kb, 3), size)
    assert_charge_of_size(container.read("x").expect(200), read_charge, size)
    assert_charge_of_size(container.replace("x", document).expect(200), lambda kb: 2 * create_charge(kb, 3) - 1, size)
    assert_charge_of_size(container.delete("x").expect(204), lambda kb: create_charge(kb, 3), size)


@pytest.mark.parametrize("policy, leaves", [
    ({"indexingMode": "consistent", "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/skipped/*"}]}, 3),
    ({"indexingMode": "consistent", "includedPaths": [{"path": "/n/?"}], "excludedPaths": [{"path": "/*"}]}, 2),
    ({"indexingMode": "consistent", "includedPaths": [], "excludedPaths": [{"path": "/*"}]}, 1),
    ({"indexingMode": "none", "automatic": False}, 0)], ids=["one excluded", "one included", "all excluded", "no index"])
def test_only_indexed_leaves_cost(db, policy, leaves):
    # `id` is always indexed, but for mode none.
    container = db.create_container({"indexingPolicy": policy})
    document = {"id": "x", "pk": "a", "n": 1, "skipped": {"a": 1, "b": 2}}
    assert_charge(container.create(document).expect(201), create_charge(1, leaves))


def test_each_unique_key_costs_one_more(db):
    container = db.create_container({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a"]}, {"paths": ["/b", "/c"]}]}})
    assert_charge(container.create({"id": "x", "pk": "a"}).expect(201), create_charge(1, 2, unique_keys=2))


def test_identical_requests_on_identical_data_cost_the_same(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    assert len({container.read("x").expect(200).charge for _ in range(5)}) == 1


def test_failed_writes_cost_1_24_and_misses_1(container):
    etag = container.create({"id": "x", "pk": "a"}).expect(201)["etag"]
    stale = {"If-Match": '"stale"'}
    assert_charge(container.create({"id": "x", "pk": "a"}).expect(409), 1.24)
    assert_charge(container.replace("x", {"id": "x", "pk": "a"}, headers=stale).expect(412), 1.24)
    assert_charge(container.delete("x", headers=stale).expect(412), 1.24)
    assert_charge(container.read("none").expect(404), 1)
    assert_charge(container.delete("none").expect(404), 1)
    assert_charge(container.replace("none", {"id": "none", "pk": "a"}).expect(404), 1)
    assert_charge(container.read("x", headers={"If-None-Match": etag}).expect(304), 1)


def test_minimal_return_costs_the_same(container):
    header = {"Prefer": "return=minimal"}
    assert_charge(container.create({"id": "x", "pk": "a"}, headers=header).expect(201), create_charge(1, 2))


@pytest.mark.parametrize("count", [0, 1, 50])
def test_feed_page_costs_by_its_size(container, count):
    for n in range(count):
        container.create({"id": str(n), "pk": "a", "padding": "p" * 1000}).expect(201)
    page = container.feed().expect(200)
    documents = sum(len(wire.to_bytes(document)) for document in page.json["Documents"])
    low, high = 1 + read_charge(documents / 1024) / 2, 1 + read_charge((len(page.body) + 64) / 1024) / 2
    assert low - 0.006 <= page.charge <= high + 0.006


def test_other_resources_cost_1_to_read_and_5_to_write(client, db):
    container = db.create_container()
    offer = client.offers_of(container)[0]
    for response in (client.get("/"), client.get("/dbs"), client.get(db.path), client.get(f"{db.path}/colls"), client.get(container.path),
                     client.get(f"{container.path}/pkranges"), client.get("/offers"), client.get(f"/offers/{offer['id']}")):
        assert_charge(response.expect(200), 1)
    for response in (db.response, container.response, client.put(container.path, container.body).expect(200),
                     client.put(f"/offers/{offer['id']}", offer).expect(200), client.delete(container.path).expect(204),
                     client.delete(db.path).expect(204)):
        assert_charge(response, 5)


def test_refused_requests_cost_1(client, container):
    for response in (client.get("/dbs", signed=False).expect(401), client.get("/nosuchroute").expect(404),
                     client.delete("/dbs").expect(405), container.create("{", ["a"]).expect(400),
                     container.create({"id": "x", "pk": "a"}, ["b"]).expect(400, 1001), client.get(container.path + "/sprocs").expect(501),
                     container.feed({wire.RANGE_ID: "77"}).expect(410), client.get("/dbs/no-such-database").expect(404)):
        assert_charge(response, 1)


def test_charge_is_a_decimal_with_at_most_two_places(container):
    for n in range(8):
        response = container.create({"id": str(n), "pk": "a", "padding": "p" * (n * 777)}).expect(201)
        assert re.match(r"^\d+(\.\d{1,2})?$", response["x-ms-request-charge"])
