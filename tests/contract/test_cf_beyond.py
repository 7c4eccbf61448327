"""CF-400 … CF-406: what goes beyond the service. All of it is opt-in."""
import re
import threading
import time
import urllib.parse

import pytest

import change_feed as cf
import queries
from harness import wire
from harness.waiting import wait_until

SCOPE = {"x-orrery-feed-scope": "container"}
TOMBSTONES = {"x-orrery-feed-deletes": "tombstones"}
EVENTS = {"Accept": "text/event-stream"}
LINES = {"Accept": "application/x-ndjson"}


def waiting(seconds):
    return {"Prefer": f"wait={seconds}"}


def filtered(predicate=None, select=None):
    named = {"x-orrery-feed-filter": predicate, "x-orrery-feed-select": select}
    return {name: urllib.parse.quote(text) for name, text in named.items() if text}


def wait_for_a_reader(client):
    wait_until(lambda: wire.metric(client, "orrery_feed_readers_waiting") > 0, 10, "a reader waits")


class Later(threading.Thread):
    """Does something in another thread, on a connection of its own, once a reader waits; joined at the end."""

    def __init__(self, endpoint, action):
        super().__init__()
        self.endpoint, self.action, self.done_at, self.failure = endpoint, action, None, None

    def run(self):
        try:
            with wire.Client(self.endpoint) as client:
                wait_for_a_reader(client)
                self.action(client)
                self.done_at = time.monotonic()
        except Exception as error:
            self.failure = error

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.join()
        assert self.failure is None, self.failure


def upserting(container, name, key="a", **members):
    return lambda client: client.post(container.docs, {"id": name, "pk": key, **members}, cf.of_key(key) | wire.UPSERT).expect((200, 201))


# ── Long poll ───────────────────────────────────────────────────────────────────────────────────────

def test_cf_400_a_waiting_reader_is_answered_when_something_is_written(endpoint, container):
    container.fill(1)
    with Later(endpoint, upserting(container, "new")) as later:
        page = cf.read(container, 2, headers=waiting(10)).expect(200)
        answered = time.monotonic()
    assert cf.ids(cf.items_of(page)) == ["new"] and page["preference-applied"] == "wait"
    assert answered - later.done_at < 0.5


def test_cf_400_nothing_in_time_is_a_304(container):
    container.fill(1)
    idle, seconds = cf.seconds_of(lambda: cf.read(container, 2, headers=waiting(1)).expect(304))
    assert idle["etag"] == '"2"' and 0.9 <= seconds < 3 and idle["preference-applied"] == "wait"
    assert idle.charge == 1


def test_cf_400_what_is_there_already_is_answered_at_once_and_confirmed(container):
    container.fill(1)
    page, seconds = cf.seconds_of(lambda: cf.read(container, headers=waiting(20)).expect(200))
    assert seconds < 5 and page["preference-applied"] == "wait"
    assert cf.read(container).expect(200)["preference-applied"] is None


def test_cf_400_only_a_matching_change_wakes_the_reader_but_its_etag_advances(endpoint, container):
    cf.put(container, "1", "a")
    with Later(endpoint, upserting(container, "2", "redmond")):
        idle, seconds = cf.seconds_of(lambda: cf.read(container, 2, scope=cf.of_key("a"), headers=waiting(2)).expect(304))
    assert seconds >= 1.8 and idle["etag"] == '"3"'
    with Later(endpoint, upserting(container, "3", "a")):
        page, seconds = cf.seconds_of(lambda: cf.read(container, 3, scope=cf.of_key("a"), headers=waiting(10)).expect(200))
    assert cf.ids(cf.items_of(page)) == ["3"] and seconds < 5


@pytest.mark.parametrize("prefer", ["return=minimal, wait=5", "wait=5; foo=bar", "respond-async, wait=5", 'wait="5"'])
def test_cf_400_prefer_is_a_list(endpoint, container, prefer):
    container.fill(1)
    with Later(endpoint, upserting(container, "new")):
        assert cf.ids(cf.items_of(cf.read(container, 2, headers={"Prefer": prefer}).expect(200))) == ["new"]


@pytest.mark.parametrize("prefer", ["wait=0", "wait=-1", "wait=soon", "wait", "x-wait=5", "return=minimal"])
def test_cf_400_a_preference_that_asks_for_no_wait_waits_for_nothing(container, prefer):
    container.fill(1)
    _, seconds = cf.seconds_of(lambda: cf.read(container, 2, headers={"Prefer": prefer}).expect((304, 400)))
    assert seconds < 2


def test_cf_400_all_versions_wait_too(endpoint, db):
    container = db.create_container(cf.HISTORY)
    cf.put(container, "1")
    with Later(endpoint, lambda client: client.delete(container.doc("1"), cf.of_key("a")).expect(204)):
        page = cf.read(container, 2, headers=cf.ALL_VERSIONS | waiting(10)).expect(200)
    assert cf.items_of(page)[0]["metadata"]["operationType"] == "delete"


def test_cf_400_a_waiter_is_told_when_the_server_stops(server):
    running = server()
    client = running.client()
    container = client.create_database().create_container()
    container.fill(1)
    with wire.Connection(running.endpoint) as connection:
        connection.send(client.build("GET", container.docs, None, cf.INCREMENTAL | {"If-None-Match": '"2"'} | waiting(50)))
        wait_for_a_reader(client)
        client.close()
        stopper = threading.Thread(target=running.stop)
        stopper.start()
        response, seconds = cf.seconds_of(lambda: connection.receive())
        connection.close()
        stopper.join()
    assert response.status == 304 and response["etag"] == '"2"' and seconds < 15


def test_cf_400_a_split_ends_the_wait_of_the_parents_readers(endpoint, container):
    container.fill(1)
    with Later(endpoint, lambda client: client.post(f"{container.path}/operations/split", {"range": "0"}).expect(200)):
        response, seconds = cf.seconds_of(lambda: cf.read(container, 2, scope=cf.of_range("0"), headers=waiting(20)))
    assert response.status in (304, 410) and seconds < 10, "and the next request learns of it"
    cf.read(container, 2, scope=cf.of_range("0")).expect(410, 1002)


# ── Streams ─────────────────────────────────────────────────────────────────────────────────────────

def test_cf_401_events_have_an_etag_a_name_and_a_page(container):
    container.fill(2)
    lsn = cf.batch(container, [cf.creating("x"), cf.creating("y")])
    with cf.Stream(container, EVENTS) as stream:
        assert stream.status == 200 and stream.headers["content-type"].startswith("text/event-stream")
        found, last = [], None
        while len(found) < 4:
            name, last, page = stream.event()
            assert name == "changes" and page["_count"] == len(page["Documents"]) and re.fullmatch(r"\d+", last)
            assert int(last) == page["Documents"][-1]["_lsn"]
            found += cf.ids(page["Documents"])
        assert found == ["0", "1", "x", "y"] and int(last) == lsn
        cf.put(container, "live")
        name, last, page = stream.event()
        while name == "position":
            name, last, page = stream.event()
        assert name == "changes" and cf.ids(page["Documents"]) == ["live"] and int(last) == lsn + 1


def test_cf_401_a_transaction_is_never_cut_by_an_event(container):
    for number in range(5):
        cf.batch(container, [cf.creating(f"{number}.{n}") for n in range(4)])
    with cf.Stream(container, EVENTS | {wire.MAX_ITEMS: "3"}) as stream:
        total = 0
        while total < 20:
            _, _, page = stream.event()
            assert page["_count"] % 4 == 0
            total += page["_count"]


def test_cf_401_last_event_id_is_the_position(container):
    container.fill(4)
    with cf.Stream(container, EVENTS | {"Last-Event-ID": "3"}) as stream:
        _, last, page = stream.event()
        assert cf.ids(page["Documents"])[0] == "2"
    with cf.Stream(container, EVENTS | {"If-None-Match": '"4"'}) as stream:
        _, last, page = stream.event()
        assert cf.ids(page["Documents"]) == ["3"] and last == "5"


def test_cf_401_a_stream_that_is_caught_up_is_200_at_once(container):
    container.fill(1)
    with cf.Stream(container, EVENTS | {"If-None-Match": "*"}) as stream:
        assert stream.status == 200 and stream.headers["transfer-encoding"] == "chunked"
        lsn = cf.put(container, "new")
        while (event := stream.event())[0] == "position":
            assert int(event[1]) <= lsn
        assert event[0] == "changes" and cf.ids(event[2]["Documents"]) == ["new"]


def test_cf_401_lines_have_etags_and_documents(container):
    container.fill(2)
    with cf.Stream(container, LINES) as stream:
        assert stream.status == 200 and stream.headers["content-type"].startswith("application/x-ndjson")
        found = []
        while len(found) < 2:
            record = stream.record()
            assert record["_count"] == len(record["Documents"]) and re.fullmatch(r'"\d+"', record["etag"])
            found += cf.ids(record["Documents"])
        assert found == ["0", "1"] and record["etag"] == '"3"'
        cf.put(container, "live")
        while not (record := stream.record())["Documents"]:
            pass
        assert cf.ids(record["Documents"]) == ["live"] and record["etag"] == '"4"'


@pytest.mark.parametrize("accept", [EVENTS, LINES], ids=["events", "lines"])
def test_cf_401_a_wrong_request_gets_its_error_before_the_stream(container, accept):
    for headers, status in (({"If-None-Match": '"abc"'}, 400), ({wire.RANGE_ID: "99"}, 410), (cf.ALL_VERSIONS | {"If-None-Match": "*"}, 400)):
        response = container.client.get(container.docs, cf.INCREMENTAL | accept | headers).expect(status)
        assert response.json["message"]


@pytest.mark.parametrize("accept", [EVENTS, LINES], ids=["events", "lines"])
def test_cf_401_a_split_closes_the_stream_and_names_the_children(container, accept):
    container.fill(1)
    with cf.Stream(container, accept | {"If-None-Match": "*"}) as stream:
        children = {each["id"] for each in cf.children_of(cf.split(container))}
        last, record = None, {}
        if accept is EVENTS:
            while (event := stream.event()) is not None:
                last = event
            assert last[0] == "gone" and all(f'"{child}"' in str(last[2]).replace("'", '"') for child in children)
        else:
            while (found := stream.record()) is not None:
                record = found
            assert record["event"] == "gone" and all(f"'{child}'" in str(record) for child in children)


def test_cf_401_a_stream_in_all_versions(db):
    container = db.create_container(cf.HISTORY)
    with cf.Stream(container, cf.ALL_VERSIONS | LINES | {"If-None-Match": "*"}) as stream:
        cf.put(container, "a")
        container.delete("a").expect(204)
        kinds = []
        while len(kinds) < 2:
            kinds += [item["metadata"]["operationType"] for item in stream.record()["Documents"]]
        assert kinds == ["create", "delete"]


# ── Filter and projection ───────────────────────────────────────────────────────────────────────────

def test_cf_402_a_predicate_selects_documents(container):
    for n in range(10):
        cf.put(container, str(n), n=n, kind="even" if n % 2 == 0 else "odd")
    assert cf.ids(cf.drain(container, headers=filtered("c.kind = 'even' AND c.n > 3"))[0]) == ["4", "6", "8"]
    assert cf.ids(cf.drain(container, size=1, headers=filtered("c.n IN (1, 5) OR c.id = '9'"))[0]) == ["1", "5", "9"]
    page = cf.read(container, 11, headers=filtered("c.n < 0")).expect(304)
    assert page["etag"] == '"11"'
    assert cf.read(container, headers=filtered("c.missing = 1")).expect(304)["etag"] == '"11"'


def test_cf_402_a_projection_keeps_the_lsn(container):
    cf.put(container, "1", price=4, label="é")
    (item,), _ = cf.drain(container, headers=filtered(select="c.id, c.price * 2 AS twice"))
    assert item == {"id": "1", "twice": 8, "_lsn": 2}
    (item,), _ = cf.drain(container, headers=filtered("c.price = 4", "c.label"))
    assert item == {"label": "é", "_lsn": 2}
    (item,) = cf.items_of(cf.read(container, headers=cf.WIRE_FORMAT | filtered(select="c.id")).expect(200))
    assert item["current"] == {"id": "1"} and item["metadata"]["lsn"] == 2


def test_cf_402_the_previous_version_can_be_compared(db):
    container = db.create_container({"changeFeedPolicy": {"retentionDuration": 10, "previousImage": "all"}})
    for price in (1, 1, 2, 2, 3):
        cf.put(container, "a", price=price)
    found, _ = cf.drain(container, 1, headers=cf.ALL_VERSIONS | filtered("c.price != p.price"))
    assert [item["current"]["price"] for item in found] == [2, 3]


@pytest.mark.parametrize("text", ["c.n =", "SELECT * FROM c", "c.n = 1; DROP", "(c.n", "COUNT(c.n) > 1", "udf.f(c)", "d.n = 1"])
def test_cf_402_what_is_no_predicate_is_400(container, text):
    container.fill(1)
    cf.read(container, headers=filtered(text)).expect(400)


def test_cf_402_a_predicate_over_p_needs_all_versions(container):
    container.fill(1)
    cf.read(container, headers=filtered("c.n != p.n")).expect(400)


BY_DEFINITION = {
    "computedProperties": [{"name": "low", "query": "SELECT VALUE LOWER(c.label) FROM c"}],
    "geospatialConfig": {"type": "Geometry"},
    "vectorEmbeddingPolicy": {"vectorEmbeddings": [
        {"path": "/v", "dataType": "float32", "distanceFunction": "euclidean", "dimensions": 2}]},
    "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/t", "language": "de-DE"}]},
}
ORIGIN = {"type": "Point", "coordinates": [0, 0]}


@pytest.mark.parametrize("text", [
    "c.low = 'sun'", "ST_DISTANCE(c.p, {'type': 'Point', 'coordinates': [1, 0]}) < 1.5",
    "VectorDistance(c.v, [0, 0]) > 1 AND VectorDistance(c.v, [0, 0]) < 2", "FullTextContains(c.t, 'Haus')", "DOCUMENTID(c) > 0"])
def test_cf_402_a_predicate_means_what_it_means_in_a_query(db, text):
    container = db.create_container(BY_DEFINITION)
    cf.put(container, "1", label="SUN", p=ORIGIN, v=[1, 1], t="Die Häuser")
    asked = queries.send(container, f"SELECT VALUE c.id FROM c WHERE {text}", scope=cf.of_key("a")).expect(200)
    assert asked.json["Documents"] == ["1"]
    assert cf.ids(cf.drain(container, headers=filtered(text))[0]) == ["1"]


def test_cf_402_a_projection_shows_computed_properties(db):
    container = db.create_container(BY_DEFINITION)
    cf.put(container, "1", label="SUN")
    (item,), _ = cf.drain(container, headers=filtered(select="c.id, c.low"))
    assert item == {"id": "1", "low": "sun", "_lsn": 2}


def test_cf_402_a_predicate_that_needs_too_many_rows_is_400_and_drops_nothing(container):
    text = "(SELECT VALUE COUNT(1) FROM x IN c.l JOIN y IN c.l JOIN z IN c.l) > 0"
    cf.put(container, "1", l=[0] * 101)
    cf.read(container, headers=filtered(text)).expect(400)
    cf.read(container, headers=filtered(f"NOT ({text})")).expect(400)
    cf.read(container, headers=filtered(text) | SCOPE).expect(400)
    cf.put(container, "1", l=[0])
    assert cf.ids(cf.drain(container, headers=filtered(text))[0]) == ["1"]


def test_cf_402_a_number_that_json_has_not_is_400_4001(container):
    cf.put(container, "1", z=1)
    (item,), _ = cf.drain(container, headers=filtered(select="1 / c.z AS x"))
    assert item == {"x": 1, "_lsn": 2}
    cf.put(container, "2", z=0)
    cf.read(container, headers=filtered(select="1 / c.z AS x")).expect(400, 4001)
    cf.read(container, headers=filtered("c.z != 0", "1 / c.z AS x")).expect(200)


# ── Resolved positions ──────────────────────────────────────────────────────────────────────────────

def test_cf_403_the_resolved_time_holds_what_it_says(container):
    for n in range(5):
        last = container.create({"id": str(n), "pk": "a"}).expect(201).json["_ts"]
    cf.later_than(container, last)
    floor, at = 0, None
    for page in cf.pages(container, size=2):
        resolved = int(page["x-orrery-resolved-ts"])
        assert resolved >= floor, "never falling"
        rest = cf.drain(container, page["etag"])[0]
        assert all(item["_ts"] > resolved for item in rest), "all up to it are in this or earlier pages"
        floor, at = resolved, page
    assert at.status == 304 and floor >= last


# ── The whole container ─────────────────────────────────────────────────────────────────────────────

def whole(container, etag=None, size=None, headers=None):
    fields = cf.INCREMENTAL | SCOPE | (headers or {}) | ({"If-None-Match": etag} if etag else {}) | ({wire.MAX_ITEMS: size} if size else {})
    return container.client.get(container.docs, fields)


def drain_whole(container, etag=None, size=None):
    items = []
    for _ in range(500):
        page = whole(container, etag, size).expect((200, 304))
        etag = page["etag"]
        if page.status == 304:
            return items, etag
        assert page.json["_count"] == len(page.json["Documents"]) == int(page["x-ms-item-count"]) > 0
        items += page.json["Documents"]
    raise AssertionError("the feed does not end")


@pytest.mark.parametrize("size", [1, 3, None])
def test_cf_404_all_ranges_in_one_feed(db, size):
    container = db.create_container(throughput=cf.FIVE_RANGES)
    for n in range(20):
        cf.put(container, str(n), f"key {n % 7}")
    items, at = drain_whole(container, size=size)
    assert sorted(cf.ids(items), key=int) == [str(n) for n in range(20)]
    assert [item["_ts"] for item in items] == sorted(item["_ts"] for item in items)
    for key in {item["pk"] for item in items}:
        of_key = [int(item["id"]) for item in items if item["pk"] == key]
        assert of_key == sorted(of_key), "each range's own order is kept"
    assert re.fullmatch(r'"c:([0-9A-F]*=\d+;)*[0-9A-F]*=\d+;?"', at) and at.count("=") == 5
    cf.put(container, "new", "key 3")
    assert cf.ids(drain_whole(container, at)[0]) == ["new"]


def test_cf_404_the_composite_etag_survives_split_and_merge(db):
    container = cf.two_ranges(db)
    for n in range(12):
        cf.put(container, str(n), list(cf.EPKS)[n % 5])
    first = whole(container, size=5).expect(200)
    rest = cf.ids(drain_whole(container, first["etag"])[0])
    cf.split(container, "0").expect(200)
    assert sorted(cf.ids(drain_whole(container, first["etag"], 2)[0])) == sorted(rest)
    ranges = [each["id"] for each in container.ranges()]
    cf.merge(container, ranges[1], ranges[2]).expect(200)
    cf.merge(container, *[each["id"] for each in container.ranges()]).expect(200)
    assert sorted(cf.ids(drain_whole(container, first["etag"], 2)[0])) == sorted(rest)


def test_cf_404_the_forms_of_etags_do_not_mix(db):
    container = db.create_container(throughput=cf.TWO_RANGES)
    cf.put(container, "1")
    composite = whole(container).expect(200)["etag"]
    whole(container, '"2"').expect(400)
    cf.read(container, composite, scope=cf.of_range("0")).expect(400)
    whole(container, '"c:nonsense"').expect(400)
    cf.read(container).expect(400)
    assert whole(container, "*").expect(304)["etag"].startswith('"c:')


# ── Lag ─────────────────────────────────────────────────────────────────────────────────────────────

def lag(container, etag=None, headers=None):
    fields = cf.INCREMENTAL | (headers or {}) | ({"If-None-Match": etag} if etag else {})
    response = container.client.request("HEAD", container.docs, None, fields)
    assert response.body == b""
    return response


def test_cf_405_lag_is_told_without_reading(container):
    documents = container.fill(5)
    container.delete("0").expect(204)
    response = lag(container).expect(200)
    assert response["x-orrery-pending-items"] == "4" and response["x-orrery-pending-lsn"] == "7"
    assert int(response["x-orrery-pending-bytes"]) > 4 * 100 and response["etag"] == '"7"'
    assert int(response["x-orrery-oldest-pending-ts"]) == documents[1]["_ts"]
    behind = lag(container, '"4"').expect(200)
    assert behind["x-orrery-pending-items"] == "2" and behind["x-orrery-pending-lsn"] == "3"
    for etag in ("*", '"7"'):
        idle = lag(container, etag).expect(200)
        assert idle["x-orrery-pending-items"] == idle["x-orrery-pending-bytes"] == idle["x-orrery-pending-lsn"] == "0"
        assert idle["x-orrery-oldest-pending-ts"] is None and idle["etag"] == '"7"'
    lag(container, '"abc"').expect(400)


def test_cf_405_lag_of_a_key(container):
    for n in range(4):
        cf.put(container, str(n), "a" if n % 2 else "redmond")
    assert lag(container, headers=cf.of_key("a")).expect(200)["x-orrery-pending-items"] == "2"


# ── Tombstones ──────────────────────────────────────────────────────────────────────────────────────

@pytest.fixture
def entombed(db):
    return db.create_container({"changeFeedPolicy": {"tombstoneDuration": 60}, "defaultTtl": -1})


def test_cf_406_deletes_are_shown_to_readers_that_ask(entombed):
    rid = entombed.create({"id": "a", "pk": "x", "n": 1}).expect(201).json["_rid"]
    cf.put(entombed, "b")
    lsn = cf.lsn_written(entombed.delete("a", ["x"]))
    assert cf.ids(cf.drain(entombed)[0]) == ["b"], "others do not see it"
    for at in (None, 1, 2):
        items, etag = cf.drain(entombed, at, headers=TOMBSTONES)
        assert cf.ids(items) == ["b", "a"] and etag == f'"{lsn}"'
        tombstone = items[-1]
        assert tombstone["_deleted"] is True and tombstone["_lsn"] == lsn and tombstone["_rid"] == rid
        assert set(tombstone) == {"id", "pk", "_rid", "_ts", "_deleted", "_lsn"} and tombstone["pk"] == "x"
    wrapped = cf.items_of(cf.read(entombed, 3, headers=TOMBSTONES | cf.WIRE_FORMAT).expect(200))[-1]
    assert wrapped["current"] == {} and wrapped["metadata"]["operationType"] == "delete" and wrapped["metadata"]["id"] == "a"
    cf.read(entombed, 3, headers=cf.ALL_VERSIONS).expect(400, text="must be enabled")


def test_cf_406_an_expired_document_leaves_a_tombstone(entombed):
    cf.put(entombed, "x", ttl=1)
    items = wait_until(lambda: [item for item in cf.drain(entombed, 2, headers=TOMBSTONES)[0] if item.get("_deleted")], 20, "a tombstone")
    assert cf.ids(items) == ["x"] and items[0]["_lsn"] == 3


def test_cf_406_an_etag_below_the_oldest_tombstone_is_refused_but_not_the_beginning(container):
    container.fill(3)
    container.delete("0").expect(204)
    cf.replace_container(container, changeFeedPolicy={"tombstoneDuration": -1}).expect(200)
    container.delete("1").expect(204)
    cf.read(container, 2, headers=TOMBSTONES).expect(400, text="You must read the change feed from within the retention period.")
    assert cf.ids(cf.drain(container, headers=TOMBSTONES)[0]) == ["2", "1"]
    assert cf.ids(cf.drain(container, 5, headers=TOMBSTONES)[0]) == ["1"]
    assert cf.ids(cf.drain(container, 2)[0]) == ["2"], "others are served as ever"


def test_cf_406_a_whole_container_is_read_page_by_page_from_before_its_tombstones(container):
    names = [cf.put(container, f"old {n}") and f"old {n}" for n in range(5)]
    cf.replace_container(container, changeFeedPolicy={"tombstoneDuration": -1}).expect(200)
    container.delete("old 1").expect(204)
    headers = cf.INCREMENTAL | TOMBSTONES | {"x-orrery-feed-scope": "container", "x-ms-max-item-count": 1}
    seen = []
    for _ in range(20):
        page = container.client.get(container.docs, headers).expect((200, 304))
        if page.status == 304:
            break
        headers["If-None-Match"] = page["etag"]
        seen += [(item["id"], item.get("_deleted", False)) for item in cf.items_of(page)]
    assert seen == [(name, False) for name in names if name != "old 1"] + [("old 1", True)]


def test_cf_406_a_container_of_all_versions_serves_tombstones_from_its_history(db):
    container = db.create_container(cf.HISTORY)
    container.fill(2)
    container.delete("0").expect(204)
    assert cf.ids(cf.drain(container, 1, headers=TOMBSTONES)[0]) == ["1", "0"]


def test_cf_406_a_container_that_keeps_none_says_so(container):
    container.fill(1)
    cf.read(container, 1, headers=TOMBSTONES).expect(400)


@pytest.mark.parametrize("value", [-2, 1.5, "1"])
def test_cf_406_a_false_duration_is_400(db, value):
    db.post_container({"changeFeedPolicy": {"tombstoneDuration": value}}).expect(400)
