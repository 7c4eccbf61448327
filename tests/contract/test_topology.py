"""Ranges that are split and merged while clients are at work: what change feed readers see of it is in test_cf_topology.py."""
import threading
import time

import pytest

import change_feed as cf
from harness import wire
from harness.waiting import wait_until
from harness.wire import CONTINUATION, MAX_ITEMS, RANGE_ID

PADDING = "x" * 2000


def fill(container, count, key=lambda n: f"key {n}", **members):
    names = []
    for n in range(count):
        names.append(f"document {n}")
        container.create({"id": names[-1], "pk": key(n)} | members).expect(201)
    return names


def names_of(response):
    return [each["id"] for each in response.expect(200).json["Documents"]]


def next_page(container, page, size):
    return container.feed({MAX_ITEMS: size, CONTINUATION: page[CONTINUATION]})


# ── Reading on ──────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("size", ["1", "7", "40"])
def test_a_read_feed_goes_on_over_splits_and_merges_without_gap_or_repetition(db, size):
    container = cf.two_ranges(db)
    names = fill(container, 60)
    changes = [lambda: cf.split(container, container.ranges()[0]["id"]).expect(200),
               lambda: cf.merge(container, container.ranges()[1]["id"], container.ranges()[2]["id"]).expect(200),
               lambda: cf.merge(container, container.ranges()[0]["id"], container.ranges()[1]["id"]).expect(200)]
    page = container.feed({MAX_ITEMS: size})
    found = names_of(page)
    while page[CONTINUATION]:
        if changes:
            changes.pop(0)()
        page = next_page(container, page, size)
        found += names_of(page)
    assert sorted(found) == sorted(names)


def test_a_read_feed_of_a_key_goes_on_too(container):
    names = fill(container, 20, key=lambda n: "one")
    key = wire.key_header(["one"])
    page = container.feed({MAX_ITEMS: "6"} | key)
    found = names_of(page)
    cf.split(container).expect(200)
    while page[CONTINUATION]:
        page = container.feed({MAX_ITEMS: "6", CONTINUATION: page[CONTINUATION]} | key)
        found += names_of(page)
    assert found == names


def test_a_document_is_the_same_by_name_and_rid_after_split_and_merge(client, container):
    made = container.create({"id": "d", "pk": "a"}).expect(201)
    self_link = "/" + made.json["_self"].rstrip("/")
    cf.split(container).expect(200)
    for _ in range(2):
        by_name = container.read("d").expect(200)
        assert by_name.body == made.body and by_name["etag"] == made["etag"]
        assert client.get(self_link, wire.key_header(["a"])).expect(200).body == made.body
        assert by_name[RANGE_ID] in [each["id"] for each in container.ranges()]
        if len(container.ranges()) == 2:
            cf.merge(container, "1", "2").expect(200)
    changed = container.replace("d", {"id": "d", "pk": "a", "x": 1}, headers={"If-Match": made["etag"]}).expect(200)
    assert changed.json["_rid"] == made.json["_rid"] and changed.json["_self"] == made.json["_self"]


# ── Writing on ──────────────────────────────────────────────────────────────────────────────────────

class Workers:
    """Threads that write and read by key until they are stopped; nothing but what they expect may happen."""

    def __init__(self, endpoint, container, count):
        self.stopping, self.failures, self.acknowledged = threading.Event(), [], {}
        self.longest = 0.0
        self.threads = [threading.Thread(target=self.run, args=(endpoint, container.path, n)) for n in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, endpoint, path, worker):
        try:
            with wire.Client(endpoint) as client:
                number = 0
                while not self.stopping.is_set():
                    number += 1
                    name, key = f"{worker} {number % 40}", f"key {worker} {number % 20}"
                    body = {"id": name, "pk": key, "n": number}
                    begin = time.monotonic()
                    written = client.post(path + "/docs", body, {"x-ms-documentdb-is-upsert": "true"} | wire.key_header([key]))
                    self.longest = max(self.longest, time.monotonic() - begin)
                    assert written.status in (200, 201), written
                    self.acknowledged[(key, name)] = number
                    read = client.get(f"{path}/docs/{wire.quote(name)}", wire.key_header([key]))
                    assert read.status == 200 and read.json["n"] == number, read
        except Exception as failure:
            self.failures.append(failure)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures


def test_clients_that_address_by_key_never_notice(endpoint, container):
    fill(container, 300, p=PADDING)
    workers = Workers(endpoint, container, 3)
    try:
        for _ in range(3):
            cf.split(container, container.ranges()[0]["id"]).expect(200)
            cf.merge(container, *[each["id"] for each in container.ranges()]).expect(200)
    finally:
        workers.stop()
    found = {(each["pk"], each["id"]): each["n"] for each in container.all_documents() if "n" in each}
    assert found == workers.acknowledged


# ── On command ──────────────────────────────────────────────────────────────────────────────────────

def send_split(endpoint, client, container):
    connection = wire.Connection(endpoint)
    connection.send(client.build("POST", container.path + "/operations/split", {"range": "0"}))
    return connection


def test_of_two_who_split_one_range_one_is_refused(endpoint, client, container):
    fill(container, 200, p=PADDING * 4)
    both = [send_split(endpoint, client, container) for _ in range(2)]
    answers = [connection.receive("POST") for connection in both]
    for connection in both:
        connection.close()
    assert sorted(answer.status for answer in answers) == [200, 409], answers
    assert len(container.ranges()) == 2 and len(container.all_documents()) == 200


def test_the_work_goes_on_when_the_caller_leaves(endpoint, client, container):
    fill(container, 200, p=PADDING * 4)
    send_split(endpoint, client, container).close()
    wait_until(lambda: len(container.ranges()) == 2, 30, "the split to end")
    assert len(container.all_documents()) == 200


def test_the_answer_is_the_new_list_of_ranges(client, container):
    answer = cf.split(container).expect(200)
    assert answer.json == client.get(container.path + "/pkranges").expect(200).json
    assert answer["etag"] == client.get(container.path + "/pkranges").expect(200)["etag"]


# ── Without being asked ─────────────────────────────────────────────────────────────────────────────

def test_a_raised_offer_is_pending_until_its_ranges_have_been_split(client, container):
    names = fill(container, 30)
    offer = client.offers_of(container)[0]
    path = "/offers/" + offer["id"]
    offer["content"]["offerThroughput"] = 25000
    replaced = client.put(path, offer).expect(200)
    assert replaced["x-ms-offer-replace-pending"] == "true"
    wait_until(lambda: client.get(path).expect(200)["x-ms-offer-replace-pending"] == "false", 20, "the splits")
    ranges = container.ranges()
    assert len(ranges) == 3 and all("0" in each["parents"] for each in ranges)
    assert sorted(each["id"] for each in container.all_documents()) == sorted(names)


def test_a_range_that_has_grown_too_large_is_split(server):
    with server("--partition-size-mb", "1").client() as client:
        container = client.create_database().create_container()
        names = fill(container, 150, p=PADDING * 4)
        wait_until(lambda: len(container.ranges()) > 1, 20, "a split")
        assert sorted(each["id"] for each in container.all_documents()) == sorted(names)


def test_a_merge_that_leaves_too_few_ranges_for_the_throughput_is_refused(db):
    container = db.create_container(throughput=11_000)
    before = [each["id"] for each in container.ranges()]
    cf.merge(container, *before).expect(400, text="lower its throughput first")
    assert [each["id"] for each in container.ranges()] == before


def test_a_cut_that_is_no_key_is_named(container):
    cf.split(container, "0", at="ZZ").expect(400, text="'at'")
