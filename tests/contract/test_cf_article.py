"""CF-1 … CF-20: the properties that the founding article promises."""
import random
import threading

import pytest

import change_feed as cf
from harness import wire
from harness.waiting import wait_until
from harness.wire import KEY


def kept_server(server, tmp_path):
    return server("--data-dir", tmp_path / "data")


def test_cf_1_an_acknowledged_change_survives_a_crash(server, tmp_path):
    first = kept_server(server, tmp_path)
    client = first.client()
    container = client.create_database().create_container()
    lsns = [cf.put(container, str(n), n=n) for n in range(20)]
    items, etag = cf.drain(container)
    client.close()
    first.kill()
    with kept_server(server, tmp_path).client() as after:
        container.client = after
        again, etag_again = cf.drain(container)
        assert again == items and [item["_lsn"] for item in again] == lsns and etag_again == etag


def test_cf_2_a_reader_that_never_reads_its_answer_delays_no_writer(container):
    padding = "x" * 20_000
    for n in range(60):
        cf.put(container, str(n), padding=padding)
    slow = wire.Connection(container.client.endpoint)
    with slow:
        slow.send(container.client.build("GET", container.docs, None, cf.INCREMENTAL | {wire.MAX_ITEMS: "-1"}))
        _, seconds = cf.seconds_of(lambda: [cf.put(container, f"after-{n}") for n in range(50)])
        assert seconds < 10
    assert len(cf.drain(container)[0]) == 110


def test_cf_2_changes_written_without_any_reader_are_all_there(container):
    written = [cf.put(container, str(n)) for n in range(600)]
    assert [item["_lsn"] for item in cf.drain(container, size="-1")[0]] == written


def test_cf_3_a_write_is_in_the_feed_as_soon_as_it_is_acknowledged(client, endpoint, container):
    at = cf.position_now(container)
    with wire.Client(endpoint) as reader:  # another connection, so possibly another thread of the server
        for n in range(200):
            lsn = cf.put(container, f"{n % 7}", n=n)
            page = cf.read(container, at, client=reader).expect(200)
            assert [(item["n"], item["_lsn"]) for item in cf.items_of(page)] == [(n, lsn)]
            at = page["etag"]


@pytest.mark.parametrize("seed", range(3))
def test_cf_4_every_change_appears_exactly_once_per_pass(container, seed):
    """Random writes between page reads of random sizes; each reader sees every version that it could not miss."""
    chance = random.Random(seed)
    latest, readers = {}, [(None, {}) for _ in range(3)]
    for step in range(150):
        name = f"d{chance.randrange(12)}"
        if chance.random() < 0.2 and name in latest:
            container.delete(name).expect(204)
            del latest[name]
        else:
            latest[name] = cf.put(container, name, n=step)
        for number, (at, seen) in enumerate(readers):
            if chance.random() < 0.5:
                page = cf.read(container, at, chance.choice([1, 2, 3, 7, -1, None])).expect((200, 304))
                for item in cf.items_of(page):
                    assert (item["id"], item["_lsn"]) not in seen, "a change came twice"
                    assert latest[item["id"]] == item["_lsn"], "not the latest version"
                    seen[item["id"], item["_lsn"]] = True
                readers[number] = page["etag"], seen
    for at, seen in readers:
        rest, _ = cf.drain(container, at, size=2)
        assert not {(item["id"], item["_lsn"]) for item in rest} & seen.keys()
        seen |= {(item["id"], item["_lsn"]): True for item in rest}
        assert set(latest.items()) <= seen.keys(), "a live document was skipped"


def test_cf_5_the_same_etag_gives_the_same_answer_as_often_as_it_is_asked(container):
    container.fill(5)
    etags = [None] + [page["etag"] for page in cf.pages(container, size=1)]
    answers = {at: cf.read(container, at, size=2).body for at in etags}
    for _ in range(3):
        for at in reversed(etags):
            assert cf.read(container, at, size=2).body == answers[at]
    cf.put(container, "new")
    for at in etags:
        assert cf.ids(cf.drain(container, at)[0])[-1] == "new"


def test_cf_6_only_the_most_recent_version_of_a_document_is_shown(container):
    at = cf.position_now(container)
    for n in range(4):
        lsn = cf.put(container, "a", n=n)
    items, _ = cf.drain(container, at)
    assert [(item["n"], item["_lsn"]) for item in items] == [(3, lsn)]


def test_cf_7_an_updated_document_moves_to_the_end(container):
    container.fill(4)
    first = cf.read(container, size=2).expect(200)
    assert cf.ids(cf.items_of(first)) == ["0", "1"]
    cf.put(container, "0", n="again")
    assert cf.ids(cf.drain(container, first["etag"])[0]) == ["2", "3", "0"]
    assert cf.ids(cf.drain(container)[0]) == ["1", "2", "3", "0"]


def test_cf_8_the_order_inside_one_key_is_the_order_of_modification(container):
    chance, order = random.Random(8), {}
    for n in range(60):
        key, name = f"k{n % 3}", f"d{chance.randrange(9)}"
        order.setdefault(key, []).append(name)
        cf.put(container, name, key)
    for key, names in order.items():
        last_first = list(dict.fromkeys(reversed(names)))  # each name at its last modification
        assert cf.ids(cf.drain(container, scope=cf.of_key(key))[0]) == last_first[::-1]
        assert [item["id"] for item in cf.drain(container)[0] if item["pk"] == key] == last_first[::-1]


def test_cf_9_each_range_has_its_own_order_and_none_waits_for_another(db):
    container = db.create_container(throughput=cf.TWO_RANGES)
    for n in range(5):
        cf.put(container, str(n), cf.LOW[0])
    for n in range(2):
        cf.put(container, str(n), cf.HIGH[0])
    low, high = (cf.read(container, scope=cf.of_range(each)).expect(200) for each in "01")
    assert cf.position(low) == 6 and cf.position(high) == 3, "LSNs belong to a range"


def test_cf_10_there_is_no_retention_period(container):
    cf.put(container, "oldest")
    for n in range(300):
        cf.put(container, "busy", n=n)
        if n % 10 == 0:
            cf.put(container, f"passing-{n}")
            container.delete(f"passing-{n}").expect(204)
    assert cf.ids(cf.drain(container)[0]) == ["oldest", "busy"]
    assert cf.ids(cf.drain(container, 1)[0]) == ["oldest", "busy"]


def test_cf_11_ranges_are_chunks_for_parallel_consumers(db):
    container = db.create_container(throughput=cf.FIVE_RANGES)
    names = {str(n) for n in range(60)}
    for name in names:
        cf.put(container, name, name)
    by_range = {each["id"]: cf.ids(cf.drain(container, scope=cf.of_range(each["id"]))[0]) for each in container.ranges()}
    assert len(by_range) == 5 and all(by_range.values())
    together = [name for found in by_range.values() for name in found]
    assert len(together) == len(names) and set(together) == names


def test_cf_12_any_number_of_readers_in_any_position_and_mode(endpoint, db):
    container = db.create_container(cf.HISTORY)
    start = cf.position_now(container)
    container.fill(30)
    failures = []

    def consume(size, headers, expected):
        try:
            with wire.Client(endpoint) as client:
                found, _ = cf.drain(container, start, size, headers=headers, client=client)
                assert cf.ids(found) == expected
        except Exception as error:  # shown below, by the thread that can fail the test
            failures.append(error)

    names = [str(n) for n in range(30)]
    readers = [threading.Thread(target=consume, args=(size, headers, names))
               for size in (1, 3, 30) for headers in (cf.INCREMENTAL, cf.ALL_VERSIONS, cf.INCREMENTAL | cf.WIRE_FORMAT)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert not failures, failures


@pytest.mark.parametrize("definition", [
    {}, {"partitionKey": wire.ABSENT}, {"partitionKey": {"paths": ["/pk"], "kind": "Hash"}},
    {"partitionKey": {"paths": ["/pk", "/sub"], "kind": "MultiHash", "version": 2}}, {"defaultTtl": 1000},
    {"indexingPolicy": {"indexingMode": "none", "automatic": False}}],
    ids=["version 2", "no key", "version 1", "hierarchical", "TTL", "not indexed"])
def test_cf_13_the_feed_is_there_by_default_for_every_container(client, db, definition):
    container = db.create_container(definition)
    key = {KEY: '["a","b"]'} if "MultiHash" in str(definition) else {} if definition.get("partitionKey") is wire.ABSENT else {KEY: '["a"]'}
    client.post(container.docs, {"id": "1", "pk": "a", "sub": "b"}, key).expect(201)
    assert cf.ids(cf.drain(container)[0]) == ["1"]


def test_cf_13_the_feed_is_there_for_containers_that_share_throughput(client):
    container = client.create_database(headers={"x-ms-offer-throughput": "400"}).create_container()
    cf.put(container, "1")
    assert cf.ids(cf.drain(container)[0]) == ["1"]


def test_cf_14_reading_costs_request_units(container):
    assert cf.read(container).expect(304).charge > 0
    container.fill(3)
    assert cf.read(container).expect(200).charge > cf.read(container, cf.NOW).expect(304).charge > 0


def test_cf_15_the_feed_is_read_in_every_readable_region(client, container):
    container.fill(2)
    regions = client.get("/").expect(200).json["readableLocations"]
    assert regions
    for region in regions:
        there = wire.Endpoint(region["databaseAccountEndpoint"], client.endpoint.key)
        with wire.Client(there) as reader:
            assert cf.ids(cf.drain(container, client=reader)[0]) == ["0", "1"]


def test_cf_16_inserts_and_updates_are_in_the_feed(container):
    created = cf.lsn_written(container.create({"id": "a", "pk": "a"}))
    assert [item["_lsn"] for item in cf.drain(container)[0]] == [created]
    replaced = cf.lsn_written(container.replace("a", {"id": "a", "pk": "a", "n": 1}))
    assert [(item["_lsn"], item["n"]) for item in cf.drain(container)[0]] == [(replaced, 1)]


def test_cf_17_deletes_are_not_in_the_incremental_feed(container):
    container.fill(3)
    at = cf.drain(container)[1]
    container.delete("1").expect(204)
    assert cf.drain(container, at)[0] == []
    assert cf.ids(cf.drain(container)[0]) == ["0", "2"]


def test_cf_17a_a_soft_delete_is_an_ordinary_change(container):
    container.fill(2)
    at = cf.drain(container)[1]
    cf.put(container, "0", deleted=True)
    (item,), _ = cf.drain(container, at)
    assert item["id"] == "0" and item["deleted"] is True


def test_cf_17b_the_update_that_sets_a_ttl_appears_before_the_document_expires(db):
    container = db.create_container({"defaultTtl": -1})
    container.fill(2)
    at = cf.drain(container)[1]
    cf.put(container, "0", ttl=100)
    (item,), _ = cf.drain(container, at)
    assert item["id"] == "0" and item["ttl"] == 100


def test_cf_18_once_expired_a_document_is_no_longer_in_the_feed(db):
    container = db.create_container({"defaultTtl": -1})
    at = cf.position_now(container)
    cf.put(container, "stays")
    cf.put(container, "goes", ttl=1)
    wait_until(lambda: container.read("goes").status == 404, 5, "the end of a TTL of 1 s")
    assert cf.ids(cf.drain(container, at)[0]) == ["stays"]
    assert cf.ids(cf.drain(container)[0]) == ["stays"]


@pytest.mark.parametrize("path, member", [("/dbs", "Databases"), ("{d}/colls", "DocumentCollections"), ("/offers", "Offers")])
def test_cf_19_other_feeds_are_no_change_feeds(client, container, path, member):
    path = path.format(d=container.database.path)
    response = client.get(path, cf.INCREMENTAL).expect((200, 400))
    if response.status == 200:
        assert response.json[member] and response["etag"] is None


def test_cf_20_every_kind_of_write_feeds_it(container):
    at = cf.position_now(container)
    container.create({"id": "created", "pk": "a"}).expect(201)
    container.create({"id": "replaced", "pk": "a", "n": 0}).expect(201)
    container.replace("replaced", {"id": "replaced", "pk": "a", "n": 1}).expect(200)
    container.upsert({"id": "inserted", "pk": "a"}).expect(201)
    container.upsert({"id": "upserted", "pk": "a", "n": 0}).expect(201)
    container.upsert({"id": "upserted", "pk": "a", "n": 1}).expect(200)
    container.create({"id": "patched", "pk": "a", "n": 0}).expect(201)
    cf.patch(container, "patched", [{"op": "incr", "path": "/n", "value": 1}]).expect(200)
    cf.batch(container, [cf.creating("batched")])
    cf.bulk(container, [cf.creating("bulked") | {"partitionKey": '["a"]'}]).expect(200)
    items, _ = cf.drain(container, at)
    assert cf.ids(items) == ["created", "replaced", "inserted", "upserted", "patched", "batched", "bulked"]
    assert all(item["n"] == 1 for item in items if "n" in item)
