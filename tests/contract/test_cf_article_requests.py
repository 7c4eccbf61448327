"""CF-21 … CF-44: the requests of the founding article."""
import re
import threading

import pytest

import change_feed as cf
from harness import wire
from harness.waiting import wait_until
from harness.wire import KEY, MAX_ITEMS, RANGE_ID


@pytest.fixture(scope="module")
def spread(module_client):
    """40 documents of as many keys over five ranges; only read from."""
    container = module_client.create_database().create_container(throughput=cf.FIVE_RANGES)
    for n in range(40):
        cf.put(container, str(n), str(n), n=n)
    return container


# ── The plain feed ──────────────────────────────────────────────────────────────────────────────────

def test_cf_21_without_a_im_it_is_the_ordinary_feed(container):
    container.fill(3)
    container.delete("1").expect(204)
    plain = container.feed().expect(200)
    assert cf.ids(plain.json["Documents"]) == ["0", "2"]
    assert all("_lsn" not in document for document in plain.json["Documents"])
    for headers in ({"If-None-Match": '"1"'}, {"If-None-Match": "*"}, {"If-None-Match": '"99"'},
                    {"If-Modified-Since": wire.http_date()}, cf.WIRE_FORMAT):
        assert container.feed(headers).expect(200).body == plain.body


def test_cf_22_the_plain_feed_is_paged_with_continuations_across_ranges(client, spread):
    found = list(client.pages(spread.docs, {MAX_ITEMS: "7"}))
    assert all(page.json["_count"] <= 7 for page in found)
    names = [document["id"] for page in found for document in page.json["Documents"]]
    assert len(names) == 40 and len(set(names)) == 40
    in_order = [name for each in spread.ranges() for name in cf.ids(spread.all_documents({RANGE_ID: each["id"]}))]
    assert names == in_order, "one range after the other"
    assert sum(page.json["_count"] for page in client.pages(spread.docs, {MAX_ITEMS: "-1"})) == 40


def test_cf_23_the_change_feed_is_the_same_operation_with_more_headers(client, container):
    container.fill(1)
    for path in (container.docs, container.docs + "/", f"/dbs/{container.database.rid}/colls/{container.rid}/docs",
                 f"/dbs/{container.database.rid}/colls/{container.rid}/docs/"):
        plain = client.get(path).expect(200)
        feed = client.get(path, cf.INCREMENTAL).expect(200)
        assert cf.ids(plain.json["Documents"]) == cf.ids(feed.json["Documents"]) == ["0"]


def test_cf_24_a_range_id_restricts_either_kind_of_feed(spread):
    for each in spread.ranges():
        plain = spread.all_documents({RANGE_ID: each["id"]})
        feed, _ = cf.drain(spread, scope=cf.of_range(each["id"]))
        assert 0 < len(plain) < 40 and sorted(cf.ids(plain)) == sorted(cf.ids(feed))


# ── Ranges ──────────────────────────────────────────────────────────────────────────────────────────

def test_cf_25_pkranges_lists_the_current_ranges(client, spread):
    response = client.get(spread.path + "/pkranges").expect(200)
    body = response.json
    assert body["_rid"] == spread.rid and body["_count"] == len(body["PartitionKeyRanges"]) == 5
    assert response["x-ms-item-count"] == "5" and response["x-ms-schemaversion"] == "1.1"


def test_cf_26_a_range_has_the_members_of_the_article(spread):
    for each in spread.ranges():
        assert {"_rid", "id", "_etag", "minInclusive", "maxExclusive", "_self", "_ts"} <= each.keys()
        assert re.fullmatch(r'"[^"]+"', each["_etag"]) and each["_self"].endswith(f"pkranges/{each['_rid']}/")


def test_cf_27_range_ids_are_unique_stable_and_never_reused(container):
    used = {each["id"] for each in container.ranges()}
    for _ in range(3):
        before = container.ranges()
        cf.split(container, before[-1]["id"]).expect(200)
        after = container.ranges()
        fresh = {each["id"] for each in after} - {each["id"] for each in before}
        assert len(fresh) == 2 and not fresh & used, f"{fresh} was used before: {used}"
        assert [each["_rid"] for each in before[:-1]] == [each["_rid"] for each in after[:-2]], "the others are as they were"
        used |= fresh
    last = [each["id"] for each in container.ranges()][-2:]
    (merged,) = {each["id"] for each in cf.merge(container, *last).expect(200).json["PartitionKeyRanges"]} - used
    assert merged not in used


def test_cf_28_ranges_are_paged_without_a_im_and_come_whole_with_it(client, spread):
    path = spread.path + "/pkranges"
    assert [page.json["_count"] for page in client.pages(path, {MAX_ITEMS: "2"})] == [2, 2, 1]
    whole = client.get(path, cf.INCREMENTAL | {MAX_ITEMS: "2"}).expect(200)
    assert whole.json["_count"] == 5 and whole[wire.CONTINUATION] is None


# ── The incremental request ─────────────────────────────────────────────────────────────────────────

def test_cf_29_a_im_selects_the_change_feed(container):
    container.fill(1)
    assert "_lsn" in cf.read(container).expect(200).json["Documents"][0]
    assert "_lsn" not in container.feed().expect(200).json["Documents"][0]


def test_cf_30_no_etag_is_everything_from_the_creation(container):
    container.fill(3)
    assert cf.ids(cf.items_of(cf.read(container).expect(200))) == ["0", "1", "2"]


def test_cf_31_a_star_is_only_what_is_written_after_the_request(container):
    container.fill(3)
    now = cf.read(container, "*").expect(304)
    cf.put(container, "new")
    assert cf.ids(cf.drain(container, now["etag"])[0]) == ["new"]
    cf.read(container, "*").expect(304)


def test_cf_32_an_etag_is_everything_after_that_position(container):
    container.fill(4)
    lsns = [item["_lsn"] for item in cf.drain(container)[0]]
    for n, lsn in enumerate(lsns):
        assert cf.ids(cf.drain(container, lsn)[0]) == [str(m) for m in range(n + 1, 4)]


def test_cf_33_if_modified_since_is_ignored_beside_if_none_match(container):
    first, _ = container.fill(2)
    future = {"If-Modified-Since": wire.http_date(100)}
    assert cf.ids(cf.drain(container, 1, headers=future)[0]) == ["0", "1"]
    cf.read(container, "*", headers=cf.since(first["_ts"] - 100)).expect(304)


def test_cf_34_a_time_gives_a_position_and_the_position_the_documents(container):
    first, *_ = container.fill(3)
    headers = cf.since(first["_ts"] - 1)
    page = cf.read(container, headers=headers).expect(200)
    assert page.json["Documents"] == [] and page.json["_count"] == 0 and page["x-ms-item-count"] == "0"
    assert cf.ids(cf.drain(container, page["etag"])[0]) == ["0", "1", "2"]
    assert cf.ids(cf.drain(container, page["etag"], headers=headers)[0]) == ["0", "1", "2"]


def test_cf_35_the_etag_is_the_lsn_of_the_last_document_of_the_page(container):
    container.fill(5)
    for page in cf.pages(container, size=2)[:-1]:
        assert page["etag"] == f'"{page.json["Documents"][-1]["_lsn"]}"'


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 100])
def test_cf_36_the_next_page_is_the_same_request_with_the_etag(container, size):
    container.fill(6)
    found = cf.pages(container, size=size)
    assert [len(cf.items_of(page)) for page in found] == [size] * (6 // size) + ([6 % size] if 6 % size else []) + [0]
    assert cf.ids(item for page in found for item in cf.items_of(page)) == [str(n) for n in range(6)]
    assert all(page[wire.CONTINUATION] is None for page in found)


def test_cf_37_documents_of_one_transaction_arrive_in_one_page(container):
    """By a transactional batch; stored procedures are to come."""
    cf.put(container, "before")
    cf.batch(container, [cf.creating(f"t{n}") for n in range(6)])
    cf.put(container, "after")
    sizes = [cf.ids(cf.items_of(page)) for page in cf.pages(container, size=1)]
    assert sizes == [["before"], [f"t{n}" for n in range(6)], ["after"], []]


def test_cf_38_a_page_may_hold_more_than_was_asked_for(container):
    cf.batch(container, [cf.creating(f"t{n}") for n in range(6)])
    page = cf.read(container, size=2).expect(200)
    assert page["x-ms-item-count"] == "6" and len(cf.items_of(page)) == 6


def test_cf_39_the_sample_request_works_as_printed(client, db):
    container = db.create_container(throughput=102_000)  # 17 ranges
    assert "16" in {each["id"] for each in container.ranges()}
    printed = {MAX_ITEMS: "1", "If-None-Match": '"28535"', "A-IM": "Incremental feed", RANGE_ID: "16", "Accept": "application/json"}
    # Its position is one of another container.
    client.get(container.docs, printed, version="2016-07-11").expect(400, text="beyond the end of this change feed")
    response = client.get(container.docs, printed | {"If-None-Match": '"1"'}, version="2016-07-11").expect(304)
    assert response["etag"] == '"1"'
    n = 0
    while len(mine := [d for d in container.all_documents() if "r" in d]) < 2:
        created = container.create({"id": str(n), "pk": f"key {n}"}).expect(201)
        if created[RANGE_ID] == "16":
            container.upsert({"id": str(n), "pk": f"key {n}", "r": 16}).expect(200)
        n += 1
        assert n < 500
    first = client.get(container.docs, printed | {"If-None-Match": '"1"'}, version="2016-07-11").expect(200)
    second = client.get(container.docs, printed | {"If-None-Match": first["etag"]}, version="2016-07-11").expect(200)
    assert first["x-ms-item-count"] == second["x-ms-item-count"] == "1"
    assert cf.ids(first.json["Documents"] + second.json["Documents"]) == sorted(cf.ids(mine), key=int)


@pytest.mark.parametrize("throughput", [400, cf.FIVE_RANGES], ids=["1 range", "5 ranges"])
def test_cf_40_the_loop_of_the_article(db, throughput):
    container = db.create_container({"partitionKey": {"paths": ["/deviceId"], "kind": "Hash"}}, throughput=throughput)

    def reading(device, metric):
        document = {"id": wire.unique(), "deviceId": device, "metricType": metric, "metricValue": 1000}
        container.create(document, [device]).expect(201)
        return document["id"]

    old = {reading(f"xsensr-{n}", "Temperature") for n in range(30)}
    items, checkpoints = cf.drain_ranges(container, size=1)
    assert len(items) == 30 and {item["id"] for item in items} == old
    new = {reading("xsensr-201", "Temperature"), reading("xsensr-212", "Pressure")}
    items, checkpoints = cf.drain_ranges(container, checkpoints, size=1)
    assert len(items) == 2 and {item["id"] for item in items} == new
    assert cf.drain_ranges(container, checkpoints, size=1)[0] == []


def test_cf_41_a_checkpoint_is_only_the_text_of_the_etag(endpoint, container):
    container.fill(3)
    text = cf.read(container, size=2).expect(200)["etag"]
    assert re.fullmatch(r'"\d+"', text)
    for version in ("2016-07-11", "2017-11-15", "2018-06-18", "2018-09-17", "2018-12-31", "2020-07-15"):
        with wire.Client(endpoint, version) as other:
            assert cf.ids(cf.drain(container, text, client=other)[0]) == ["2"]


# ── What consumers need ─────────────────────────────────────────────────────────────────────────────

def test_cf_42_conditions_on_leases_are_exact(endpoint, container):
    lease = container.create({"id": "lease", "pk": "a", "owner": None}).expect(201).json
    for round_number in range(5):
        statuses = []

        def acquire(owner, condition=lease["_etag"]):
            with wire.Client(endpoint) as client:
                statuses.append(client.put(container.doc("lease"), {"id": "lease", "pk": "a", "owner": owner},
                                           {KEY: '["a"]', "If-Match": condition}).status)

        hosts = [threading.Thread(target=acquire, args=(f"{round_number}/{n}",)) for n in range(8)]
        for host in hosts:
            host.start()
        for host in hosts:
            host.join()
        assert sorted(statuses) == [200] + [412] * 7, statuses
        lease = container.read("lease").expect(200).json


def test_cf_43_leases_may_live_on_another_server(server, container):
    with server().client() as other:
        leases = other.create_database().create_container()
        container.fill(3)
        page = cf.read(container, size=1).expect(200)
        leases.create({"id": "lease", "pk": "a", "continuation": page["etag"]}).expect(201)
        kept = leases.read("lease").expect(200).json["continuation"]
        assert cf.ids(cf.drain(container, kept)[0]) == ["1", "2"]


def test_cf_44_a_lock_in_the_lease_container_ends_with_its_ttl(db):
    leases = db.create_container({"defaultTtl": -1})
    lock = {"id": "initialisation.lock", "pk": "a", "ttl": 2}
    leases.create(lock).expect(201)
    leases.create(lock).expect(409)
    wait_until(lambda: leases.create(lock).status == 201, 5, "the end of the lock")
