"""CF-136 … CF-142: pages, snapshots and transactions. Stored procedures are to come; transactional batches stand for them."""
import random
import threading

import pytest

import change_feed as cf
from harness import wire


def sizes(container, size, **options):
    return [len(cf.items_of(page)) for page in cf.pages(container, size=size, **options)][:-1]


def transactions(container, *counts):
    for number, count in enumerate(counts):
        cf.batch(container, [cf.creating(f"{number}.{n}") for n in range(count)])


class Writers:
    """Threads that write as fast as they can until left."""

    def __init__(self, endpoint, container, count, keys=("a", "redmond", "aa")):
        self.endpoint, self.container, self.keys = endpoint, container, keys
        self.stop, self.failures, self.final = threading.Event(), [], {}
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in range(count)]

    def run(self, number):
        chance, count = random.Random(number), 0
        try:
            with wire.Client(self.endpoint) as client:
                while not self.stop.is_set():
                    count += 1
                    name, key = f"{number}-{chance.randrange(20)}", self.keys[number % len(self.keys)]
                    if chance.random() < 0.15:
                        if client.delete(self.container.doc(name), cf.of_key(key)).expect((204, 404)).status == 204:
                            self.final[name, key] = None
                    elif chance.random() < 0.15:
                        names = [f"{name}-{n}" for n in range(3)]
                        operations = [{"operationType": "Upsert", "resourceBody": {"id": each, "pk": key, "n": count}} for each in names]
                        lsn = cf.head(cf.post_batch(self.container, operations, key, client).expect(200))
                        self.final.update({(each, key): (lsn, count) for each in names})
                    else:
                        written = client.post(self.container.docs, {"id": name, "pk": key, "n": count}, cf.of_key(key) | wire.UPSERT)
                        self.final[name, key] = cf.lsn_written(written), count
        except Exception as error:  # the test's own thread fails for it
            self.failures.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures

    def live(self):
        return {key: version for key, version in self.final.items() if version is not None}


@pytest.mark.parametrize("size", [1, 5, None])
def test_cf_136_a_head_that_was_shown_hides_nothing(endpoint, container, size):
    """Readers that follow at full speed: whatever an etag has passed never appears below it afterwards."""
    with Writers(endpoint, container, 4) as writers, wire.Client(endpoint) as reader:
        at, seen, rounds = None, {}, 0
        while rounds < 250:
            rounds += 1
            page = cf.read(container, at, size, client=reader).expect((200, 304))
            for item in cf.items_of(page):
                assert seen.get((item["id"], item["pk"]), (0, 0))[0] < item["_lsn"]
                seen[item["id"], item["pk"]] = item["_lsn"], item["n"]
            at = page["etag"]
    for item in cf.drain(container, at, size="-1")[0]:
        seen[item["id"], item["pk"]] = item["_lsn"], item["n"]
    missing = {key: (version, seen.get(key)) for key, version in writers.live().items() if seen.get(key) != version}
    assert not missing, "acknowledged versions that the reader was never shown"


def test_cf_137_no_gap_fills_later(endpoint, container):
    """A read from the beginning never lacks an LSN that a later read shows, except by replacement."""
    with Writers(endpoint, container, 4), wire.Client(endpoint) as reader:
        for _ in range(25):
            first = cf.read(container, size="-1", client=reader).expect((200, 304))
            known = {item["_lsn"] for item in cf.items_of(first)}
            again = cf.read(container, size="-1", client=reader).expect((200, 304))
            late = {item["_lsn"] for item in cf.items_of(again)} - known
            assert all(lsn > cf.position(first) for lsn in late), "a change appeared below the etag"


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 100, "-1"])
def test_cf_139_a_page_never_ends_inside_a_transaction(container, size):
    transactions(container, 1, 3, 5, 2, 1, 4)
    lsns = [cf.lsn_of(item) for item in cf.drain(container)[0]]
    for page in cf.pages(container, size=size)[:-1]:
        found = [cf.lsn_of(item) for item in cf.items_of(page)]
        assert all(found.count(lsn) == lsns.count(lsn) for lsn in set(found))


def test_cf_139_a_page_never_ends_inside_a_transaction_by_bytes(container):
    padding = "x" * 150_000
    for number in range(4):
        cf.batch(container, [cf.creating(f"{number}.{n}", padding=padding) for n in range(10)])
    assert sizes(container, "-1") == [20, 20]


@pytest.mark.parametrize("counts, size, expected", [
    ((7, 7, 3), 10, [7, 10]), ((5,), 2, [5]), ((1, 5, 1), 2, [1, 5, 1]), ((3, 3, 3), 9, [9]), ((3, 3, 3), 8, [6, 3]),
    ((2, 2, 2), 1, [2, 2, 2]), ((1, 1, 1, 5), 3, [3, 5]), ((1, 1, 5), 3, [2, 5]), ((10, 1, 1, 1), 3, [10, 3])], ids=str)
def test_cf_140_a_page_overflows_only_when_it_would_be_empty(container, counts, size, expected):
    transactions(container, *counts)
    assert sizes(container, size) == expected


def test_cf_141_a_document_written_twice_by_a_transaction_appears_once(container):
    lsn = cf.batch(container, [cf.creating("a", n=1), cf.creating("b"), cf.replacing("a", n=2)])
    items, _ = cf.drain(container)
    assert sorted((item["id"], item.get("n"), item["_lsn"]) for item in items) == [("a", 2, lsn), ("b", None, lsn)]


def test_cf_141_a_document_created_and_deleted_by_a_transaction_does_not_appear(container):
    cf.batch(container, [cf.creating("a"), cf.creating("b"), cf.deleting("a")])
    assert cf.ids(cf.drain(container)[0]) == ["b"]
    lsn = cf.batch(container, [cf.creating("x"), cf.deleting("x")])
    idle = cf.read(container, 2).expect(304)
    assert idle["etag"] == f'"{lsn}"', "it took an LSN all the same"


def test_cf_142_a_document_updated_later_leaves_its_transaction(container):
    lsn = cf.batch(container, [cf.creating(str(n)) for n in range(4)])
    later = cf.put(container, "1", n="later")
    assert [(item["id"], item["_lsn"]) for item in cf.drain(container, size=1)[0]] == [("0", lsn), ("2", lsn), ("3", lsn), ("1", later)]
    assert sizes(container, 1) == [3, 1]
    for n in (0, 2, 3):
        container.delete(str(n)).expect(204)
    assert sizes(container, 1) == [1]


def test_cf_142_the_order_inside_a_transaction_is_that_of_its_operations(container):
    names = ["m", "a", "z", "b", "0"]
    cf.batch(container, [cf.creating(name) for name in names])
    assert cf.ids(cf.drain(container)[0]) == names
    cf.batch(container, [cf.replacing(name, n=1) for name in reversed(names)])
    assert cf.ids(cf.drain(container)[0]) == names[::-1]


def test_cf_139_a_filter_keeps_the_rest_of_a_transaction_together(container):
    cf.batch(container, [cf.creating(str(n)) for n in range(3)])
    cf.put(container, "x", "redmond")
    for scope in (cf.of_key("a"), cf.of_epks(cf.EPKS["a"], cf.after(cf.EPKS["a"]))):
        assert sizes(container, 1, scope=scope) == [3]


def test_cf_137_a_304_is_cheap_however_long_the_log(container):
    """Not a measurement: 1000 idle polls of a log of 500 entries must not take the time of as many scans."""
    for n in range(500):
        cf.put(container, str(n), padding="x" * 500)
    at = cf.drain(container, size="-1")[1]
    _, seconds = cf.seconds_of(lambda: [cf.read(container, at).expect(304) for _ in range(300)])
    assert seconds < 10
