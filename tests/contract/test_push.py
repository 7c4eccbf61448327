"""CF-400 and CF-401 under load and in bad weather: many waiters, clients that leave or do not read, limits,
ranges that go, and servers that stop. What the two are in fair weather is in test_cf_beyond.py."""
import os
import socket
import ssl
import struct
import threading
import time

import pytest

import change_feed as cf
from harness import server as launcher, wire
from harness.waiting import wait_until

EVENTS = {"Accept": "text/event-stream"}
LINES = {"Accept": "application/x-ndjson"}
CONTAINER = {"x-orrery-feed-scope": "container"}
BOTH_FORMS = pytest.mark.parametrize("form", [EVENTS, LINES], ids=["events", "lines"])
PROMPT = 5.0  # seconds in which what happens at once has happened, on a machine that is busy

# Sanitizers keep freed memory, so that it says nothing there.
SANITIZED = "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ


def waiting(seconds=50):
    return {"Prefer": f"wait={seconds}"}


@pytest.fixture(scope="module")
def quick(request):
    """A server of our own, whose figures only we change and whose silent streams say so every second."""
    if request.config.getoption("--endpoint"):
        pytest.skip("needs a server with options of its own")
    started = launcher.started("--feed-heartbeat-seconds", "1")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def endpoint(quick):
    """The fixtures of all tests speak to that server."""
    return quick.endpoint


def readers(client):
    return wire.metric(client, "orrery_feed_readers_waiting")


def wait_for_readers(client, count):
    wait_until(lambda: readers(client) == count, 20, f"that {count} readers wait")


class Poll:
    """A long poll on a connection of its own."""

    def __init__(self, container, after, headers=None, seconds=50):
        self.connection = wire.Connection(container.client.endpoint)
        self.connection.send(container.client.build(
            "GET", container.docs, None, cf.INCREMENTAL | {"If-None-Match": f'"{after}"'} | waiting(seconds) | (headers or {})))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def answer(self):
        return self.connection.receive()


def changes(stream, form):
    """The next (etag, documents) of a stream that has any; heartbeats and positions are skipped."""
    while True:
        if form is EVENTS:
            name, at, page = stream.event()
            assert name in ("changes", "position")
            if name == "changes":
                return at, page["Documents"]
        else:
            record = stream.record()
            assert "event" not in record, record
            if record["Documents"]:
                return record["etag"].strip('"'), record["Documents"]


def last_word(stream, form):
    """(name, what it says) of the last thing that a stream says before it ends properly."""
    last = None
    while (said := stream.event() if form is EVENTS else stream.record()) is not None:
        last = said
    return (last[0], last[2]) if form is EVENTS else (last["event"], last)


# ── Waiting ─────────────────────────────────────────────────────────────────────────────────────────

def test_row_47_a_write_answers_who_waits_for_it_within_100_ms(client, container):
    lsn = cf.put(container, "first")
    times = []
    for n in range(10):
        with Poll(container, lsn, seconds=20) as poll:
            wait_for_readers(client, 1)
            lsn = cf.put(container, f"doc {n}")
            written = time.monotonic()
            page = poll.answer().expect(200)
            times.append(time.monotonic() - written)
        assert cf.ids(page.json["Documents"]) == [f"doc {n}"] and page["etag"] == f'"{lsn}"'
        assert page["preference-applied"] == "wait" and page["x-ms-item-count"] == "1"
    assert sorted(times)[len(times) // 2] < 0.1, times


def test_row_48_a_thousand_waiters_are_answered_by_one_write(client, container):
    lsn = cf.put(container, "first")
    before = wire.metric(client, "orrery_resident_bytes")
    reads = wire.metric(client, "orrery_feed_tail_reads_total")
    polls = [Poll(container, lsn) for _ in range(1000)]
    try:
        wait_for_readers(client, 1000)
        if not SANITIZED:
            assert wire.metric(client, "orrery_resident_bytes") - before < 100e6, "less than 100 KB each, buffers included"
        lsn = cf.put(container, "awaited")
        answers = [poll.answer().expect(200) for poll in polls]
    finally:
        for poll in polls:
            poll.connection.close()
    assert {answer["etag"] for answer in answers} == {f'"{lsn}"'} and len({answer.body for answer in answers}) == 1
    assert wire.metric(client, "orrery_feed_tail_reads_total") - reads < 50, "they share what was read"
    wait_for_readers(client, 0)


def test_waiters_of_different_questions_get_different_answers(client, container):
    lsn = cf.put(container, "first", "redmond")
    asked = [cf.of_range("0"), cf.of_key("a"), cf.WIRE_FORMAT, {"x-orrery-feed-select": "c.id"}, {"x-orrery-feed-filter": "c.n%3D1"}]
    polls = [Poll(container, lsn, headers) for headers in asked]
    wait_for_readers(client, len(polls))
    cf.put(container, "awaited", "a", n=1)
    items = [poll.answer().expect(200).json["Documents"][0] for poll in polls]
    for poll in polls:
        poll.connection.close()
    assert [cf.ids([item]) for item in items] == [["awaited"]] * len(polls)
    assert items[2].keys() == {"current", "metadata"} and items[3].keys() == {"id", "_lsn"}


def test_who_leaves_is_not_waited_for(client, container):
    lsn = cf.put(container, "first")
    polite, rude = Poll(container, lsn), Poll(container, lsn)
    streams = [cf.Stream(container, form | {"If-None-Match": "*"}) for form in (EVENTS, LINES)]
    wait_for_readers(client, 4)
    polite.connection.close()
    wait_for_readers(client, 3)
    rude.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    rude.connection.close()
    wait_for_readers(client, 2)
    for stream in streams:
        stream.connection.close()
    wait_for_readers(client, 0)
    assert wire.metric(client, "orrery_feed_streams") == 0


def test_who_leaves_over_tls_is_not_waited_for(quick, client, container):
    secure = wire.Client(quick.endpoint.over("https"))
    lsn = cf.put(container, "first")
    with wire.Connection(secure.endpoint) as connection:
        connection.send(secure.build("GET", container.docs, None, cf.INCREMENTAL | {"If-None-Match": f'"{lsn}"'} | waiting()))
        wait_for_readers(client, 1)
        connection.socket.settimeout(0)
        with pytest.raises(ssl.SSLWantReadError):
            connection.socket.unwrap()  # says goodbye, and does not wait for an answer
    wait_for_readers(client, 0)


def test_a_connection_serves_on_after_a_long_poll(client, container):
    lsn = cf.put(container, "first")
    with Poll(container, lsn, seconds=1) as poll:
        # The next request is sent while the first one waits, as HTTP allows.
        poll.connection.send(client.build("GET", container.doc("first"), None, cf.of_key("a")))
        assert poll.answer().expect(304)["preference-applied"] == "wait"
        assert poll.answer().expect(200).json["id"] == "first"


def test_a_reader_beyond_the_head_is_refused_at_once(container):
    lsn = cf.put(container, "first")
    with Poll(container, lsn + 1) as poll:
        poll.answer().expect(400, text="beyond the end of this change feed")


def test_nothing_matches_so_the_etag_advances_in_the_end(client, container):
    lsn = cf.put(container, "first")
    with Poll(container, lsn, cf.of_key("somebody else"), seconds=2) as poll:
        wait_for_readers(client, 1)
        lsn = cf.put(container, "second")
        assert poll.answer().expect(304)["etag"] == f'"{lsn}"'


def test_a_whole_container_can_be_waited_for(client, db):
    container = db.create_container(throughput=cf.TWO_RANGES)
    assert len(container.ranges()) == 2
    for key in ("aa", "redmond", "aa"):
        at = container.client.get(container.docs, cf.INCREMENTAL | CONTAINER | {"If-None-Match": "*"}).expect(304)["etag"]
        with Poll(container, 0, CONTAINER | {"If-None-Match": at}) as poll:
            wait_for_readers(client, 1)
            cf.put(container, "doc", key)
            assert cf.ids(poll.answer().expect(200).json["Documents"]) == ["doc"]


def test_more_waiters_than_may_wait_hear_so(server):
    with server("--feed-readers-max", "1").client() as client:
        container = client.create_database().create_container()
        lsn = cf.put(container, "first")
        with Poll(container, lsn) as poll:
            wait_for_readers(client, 1)
            idle, seconds = cf.seconds_of(lambda: cf.read(container, lsn, headers=waiting(20)).expect(304))
            assert seconds < PROMPT and idle["preference-applied"] is None and idle["etag"] == f'"{lsn}"'
            assert cf.read(container, lsn - 1, headers=waiting(20)).expect(200)["preference-applied"] == "wait", "no need to wait"
            refused = client.get(container.docs, cf.INCREMENTAL | EVENTS).expect(429, 3092)
            assert int(refused["x-ms-retry-after-ms"]) > 0
            cf.put(container, "second")
            poll.answer().expect(200)
        with cf.Stream(container, EVENTS) as stream:
            assert stream.status == 200
        client.close()


# ── Streams ─────────────────────────────────────────────────────────────────────────────────────────

@BOTH_FORMS
def test_each_transaction_is_an_event(container, form):
    container.fill(3)
    lsn = cf.batch(container, [cf.creating("x"), cf.creating("y")])
    with cf.Stream(container, form) as stream:
        assert stream.headers["etag"] == '"0"', "where it begins"
        assert [changes(stream, form)[0] for _ in range(4)] == [str(n) for n in range(lsn - 3, lsn + 1)]
        assert changes_after(container, stream, form, 3) == [str(n) for n in range(lsn + 1, lsn + 4)]


def changes_after(container, stream, form, count):
    found = []
    for n in range(count):
        cf.put(container, f"live {n}")
        found.append(changes(stream, form)[0])
    return found


@BOTH_FORMS
def test_a_document_with_line_ends_in_it_is_one_line(container, form):
    pretty = '{\r\n  "id": "1",\n  "pk": "a",\n\n  "text": "two\\nlines"\n}'
    container.create(pretty, ["a"]).expect(201)
    with cf.Stream(container, form) as stream:
        _, documents = changes(stream, form)
        assert documents[0]["text"] == "two\nlines"


@BOTH_FORMS
def test_a_silent_stream_gives_signs_of_life(container, form):
    cf.put(container, "first")
    with cf.Stream(container, form | {"If-None-Match": "*"}) as stream:
        began = time.monotonic()
        for _ in range(2):
            line = stream.line()
            assert line.startswith(":") if form is EVENTS else line == ""
            if form is EVENTS:
                assert stream.line() == ""
        assert 1.5 < time.monotonic() - began < 2 + PROMPT


@BOTH_FORMS
def test_a_stream_says_where_it_is_when_nothing_matches(container, form):
    began = int(time.time())
    cf.put(container, "first")
    with cf.Stream(container, form | cf.of_key("somebody else") | {"If-None-Match": "*"}) as stream:
        lsn = cf.put(container, "second")
        if form is EVENTS:
            name, at, said = stream.event()
            assert name == "position" and at == str(lsn)
        else:
            said = stream.record()
            assert said["Documents"] == [] and said["_count"] == 0
        assert said["etag"] == f'"{lsn}"' and began - 2 <= said["resolvedTs"] <= time.time()
        line = stream.line()
        assert line.startswith(":") or line == "", "and after that nothing but signs of life"


@BOTH_FORMS
def test_a_filter_holds_for_a_stream(container, form):
    with cf.Stream(container, form | {"x-orrery-feed-filter": "c.n%20%3E%201", "x-orrery-feed-select": "c.id"}) as stream:
        for n in range(4):
            cf.put(container, str(n), n=n)
        found = [document for _ in range(2) for document in changes(stream, form)[1]]
        assert [document["id"] for document in found] == ["2", "3"] and found[0].keys() == {"id", "_lsn"}


def test_last_event_id_wins_over_if_none_match(container):
    container.fill(4)
    with cf.Stream(container, EVENTS | {"Last-Event-ID": "4", "If-None-Match": '"2"'}) as stream:
        assert changes(stream, EVENTS)[0] == "5"
    plain = cf.read(container, 2, headers={"Last-Event-ID": "4"}).expect(200)
    assert len(plain.json["Documents"]) == 3, "and means nothing to a page"


@BOTH_FORMS
def test_the_first_of_several_accepted_types_is_taken(container, form):
    other = (LINES if form is EVENTS else EVENTS)["Accept"]
    with cf.Stream(container, {"Accept": f"image/png, {form['Accept']};q=0.9, {other}"}) as stream:
        assert stream.headers["content-type"] == form["Accept"]


@BOTH_FORMS
def test_streams_see_every_change_once_and_in_order_while_writers_write(quick, client, container, form):
    count, writers, lsns = 150, 3, []
    streams = [cf.Stream(container, form) for _ in range(3)]

    def write(number):
        with quick.client() as own:
            for n in range(count):
                own.post(container.docs, {"id": f"{number}.{n}", "pk": str(number)}, cf.of_key(str(number))).expect(201)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for stream in streams:
        seen, last = [], 0
        while len(seen) < count * writers:
            at, documents = changes(stream, form)
            assert int(at) > last and [d["_lsn"] for d in documents] == sorted(d["_lsn"] for d in documents)
            assert documents[0]["_lsn"] > last and documents[-1]["_lsn"] == int(at)
            last = int(at)
            seen += cf.ids(documents)
        assert len(set(seen)) == count * writers
        for number in range(writers):
            assert [name for name in seen if name.startswith(f"{number}.")] == [f"{number}.{n}" for n in range(count)]
        lsns.append(last)
    for thread in threads:
        thread.join()
    for stream in streams:
        stream.connection.close()
    assert len(set(lsns)) == 1


def test_a_slow_reader_gets_larger_pieces_and_misses_nothing(client, container):
    count = 1000  # 20 MB: more than the kernel's buffers between us
    with cf.Stream(container, LINES | {"If-None-Match": "*"}) as stream:
        before = wire.metric(client, "orrery_resident_bytes")
        for n in range(count):
            container.create({"id": str(n), "pk": "a", "text": "x" * 20_000}).expect(201)
        if not SANITIZED:
            assert wire.metric(client, "orrery_resident_bytes") - before < 200e6
        sizes, seen = [], []
        while len(seen) < count:
            _, documents = changes(stream, LINES)
            sizes.append(len(documents))
            seen += cf.ids(documents)
        assert seen == [str(n) for n in range(count)] and sizes[0] == 1 and max(sizes) > 1


def test_a_reader_far_behind_gets_many_transactions_at_once(container):
    for n in range(30):
        container.create({"id": str(n), "pk": "a", "text": "x" * 10_000}).expect(201)
    with cf.Stream(container, LINES) as stream:
        sizes = []
        while sum(sizes) < 30:
            sizes.append(len(changes(stream, LINES)[1]))
        assert sizes[0] > 1 and sizes[-1] == 1


@BOTH_FORMS
def test_deleting_the_container_ends_its_streams(client, db, form):
    container = db.create_container()
    lsn = cf.put(container, "first")
    with cf.Stream(container, form | {"If-None-Match": "*"}) as stream, Poll(container, lsn) as poll:
        wait_for_readers(client, 2)
        client.delete(container.path).expect(204)
        name, said = last_word(stream, form)
        assert name == "gone" and said["ranges"] == [] and said["etag"] == f'"{lsn}"'
        poll.answer().expect(404)
        # The connection is as good as before.
        stream.connection.send(client.build("GET", db.path))
        assert stream.connection.receive().expect(200)


@BOTH_FORMS
def test_switching_history_off_ends_the_streams_that_read_it(client, db, form):
    container = db.create_container(cf.HISTORY)
    with cf.Stream(container, form | cf.ALL_VERSIONS | {"If-None-Match": "*"}) as stream:
        lsn = cf.put(container, "a")
        assert changes(stream, form)[0] == str(lsn)
        plain = {name: value for name, value in container.body.items() if name != "changeFeedPolicy"}
        client.put(container.path, plain).expect(200)
        cf.put(container, "b")
        name, said = last_word(stream, form)
        assert name == "lagging" and said["etag"] == f'"{lsn}"' and said["message"]


# ── Ranges that go ──────────────────────────────────────────────────────────────────────────────────

@BOTH_FORMS
def test_a_split_names_the_children_and_the_reader_goes_on_there(client, container, form):
    lsn = cf.put(container, "before", "aa")
    with cf.Stream(container, form | cf.of_range("0") | {"If-None-Match": "*"}) as stream:
        wait_for_readers(client, 1)
        children = cf.children_of(cf.split(container))
        name, said = last_word(stream, form)
    assert name == "gone" and said["etag"] == f'"{lsn}"'
    assert [(each["id"], each["minInclusive"], each["maxExclusive"]) for each in said["ranges"]] == [
        (each["id"], each["minInclusive"], each["maxExclusive"]) for each in children]
    with cf.Stream(container, form | cf.of_range(children[0]["id"]) | {"If-None-Match": said["etag"]}) as stream:
        cf.put(container, "after", "aa")
        assert cf.ids(changes(stream, form)[1]) == ["after"]


@BOTH_FORMS
def test_a_stream_of_one_key_does_not_notice_a_split_or_a_merge(client, container, form):
    with cf.Stream(container, form | cf.of_key("a") | {"If-None-Match": "*"}) as stream:
        wait_for_readers(client, 1)
        seen = [cf.put(container, "1")]
        children = cf.children_of(cf.split(container))
        cf.put(container, "other", "aa")
        seen.append(cf.put(container, "2"))
        cf.merge(container, *(each["id"] for each in children)).expect(200)
        seen.append(cf.put(container, "3"))
        assert [changes(stream, form)[0] for _ in range(3)] == [str(lsn) for lsn in seen]


@BOTH_FORMS
def test_a_stream_of_a_container_survives_splits_and_merges(client, container, form):
    with cf.Stream(container, form | CONTAINER | {"If-None-Match": "*"}) as stream:
        wait_for_readers(client, 1)
        found = []
        cf.put(container, "1", "aa")
        children = cf.children_of(cf.split(container))
        for name, key in (("2", "aa"), ("3", "redmond")):
            cf.put(container, name, key)
        cf.merge(container, *(each["id"] for each in children)).expect(200)
        cf.put(container, "4", "a")
        while len(found) < 4:
            at, documents = changes(stream, form)
            assert at.startswith("c:")
            found += cf.ids(documents)
        assert found[0] == "1" and sorted(found) == ["1", "2", "3", "4"] and found[-1] == "4"


def test_a_waiter_for_one_key_does_not_notice_a_split(client, container):
    lsn = cf.put(container, "1")
    with Poll(container, lsn, cf.of_key("a")) as poll:
        wait_for_readers(client, 1)
        cf.split(container).expect(200)
        wait_for_readers(client, 1)
        cf.put(container, "2")
        assert cf.ids(poll.answer().expect(200).json["Documents"]) == ["2"]


# ── Stopping ────────────────────────────────────────────────────────────────────────────────────────

def test_a_server_that_stops_ends_what_waits_properly_and_soon(server):
    running = server()
    with running.client() as client:
        container = client.create_database().create_container()
        lsn = cf.put(container, "first")
        polls = [Poll(container, lsn) for _ in range(20)]
        streams = [(form, cf.Stream(container, form | {"If-None-Match": "*"})) for form in (EVENTS, LINES)]
        wait_for_readers(client, 22)
        client.databases.clear()  # there will be nobody to delete them
        _, seconds = cf.seconds_of(running.stop)
        assert seconds < PROMPT
        for poll in polls:
            answer = poll.answer().expect(304)
            assert answer["etag"] == f'"{lsn}"' and answer["preference-applied"] == "wait" and answer["connection"] == "close"
            poll.connection.close()
        for form, stream in streams:
            assert stream.line() is None and stream.is_ended
            stream.connection.close()


def test_a_stream_can_be_taken_up_again_at_the_next_start(server, tmp_path):
    running = server("--data-dir", tmp_path)
    with running.client() as client:
        container = client.create_database("kept").create_container({"id": "c"})
        with cf.Stream(container, EVENTS) as stream:
            lsn = cf.put(container, "first")
            at, _ = changes(stream, EVENTS)
            client.databases.clear()
            client.close()
            running.stop()
            assert stream.event() is None
    running = server("--data-dir", tmp_path)
    with running.client() as client:
        container.client = client
        with cf.Stream(container, EVENTS | {"Last-Event-ID": at}) as stream:
            assert cf.put(container, "second") == lsn + 1
            assert cf.ids(changes(stream, EVENTS)[1]) == ["second"]
