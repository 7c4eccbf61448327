"""CF-340 … CF-351: sessions, charges, errors."""
import re

import pytest

import change_feed as cf
from harness import wire
from harness.wire import KEY, RANGE_ID, SESSION


@pytest.mark.parametrize("version, form", [("2016-07-11", r"0:4"), ("2017-11-15", r"0:4"), ("2018-06-18", r"0:-1#4"), ("2020-07-15", r"0:-1#4")])
def test_cf_340_the_session_token_has_the_head_in_the_form_of_the_version(container, version, form):
    container.fill(2)
    container.delete("1").expect(204)
    for response in (cf.read(container, version=version).expect(200), cf.read(container, 2, version=version).expect(304),
                     cf.read(container, "*", version=version).expect(304), cf.read(container, scope=cf.of_key("a"), version=version).expect(200)):
        assert re.fullmatch(form, wire.unversioned(response[SESSION])), response[SESSION]


def test_cf_340_every_range_tells_its_own_head(db):
    container = db.create_container(throughput=cf.TWO_RANGES)
    for n in range(4):
        cf.put(container, str(n), cf.HIGH[0])
    assert wire.unversioned(cf.read(container, scope=cf.of_range("0")).expect(304)[SESSION]) == "0:-1#1"
    assert wire.unversioned(cf.read(container, scope=cf.of_range("1")).expect(200)[SESSION]) == "1:-1#5"
    assert cf.read(container, scope=cf.of_key(cf.HIGH[0])).expect(200)[RANGE_ID] == "1"


@pytest.mark.parametrize("token", ["0:-1#1000", "0:1000"])
def test_cf_341_a_session_ahead_of_the_log_is_404_1002(container, token):
    container.fill(1)
    for at in (None, "*", 2, 5000):
        cf.read(container, at, headers={SESSION: token}).expect(404, 1002)
    cf.read(container, headers={SESSION: "0:-1#2"}).expect(200)


def test_cf_342_a_feed_answer_updates_a_session_like_any_read(container):
    cf.put(container, "1")
    token = cf.read(container).expect(200)[SESSION]
    assert container.read("1", headers={SESSION: token}).expect(200)[SESSION] == token
    idle = cf.read(container, 2).expect(304)
    assert idle[SESSION] == token


@pytest.mark.parametrize("level", ["Session", "ConsistentPrefix", "Eventual"])
def test_cf_343_etags_work_at_every_level_of_consistency(container, level):
    container.fill(3)
    headers = {"x-ms-consistency-level": level}
    found, at = cf.drain(container, 2, size=1, headers=headers)
    assert cf.ids(found) == ["1", "2"] and at == '"4"'


def test_cf_344_an_idle_answer_costs_1_and_a_page_as_much_as_a_plain_feed(container):
    assert cf.read(container).expect(304).charge == 1
    container.fill(2)
    assert cf.read(container).expect(200).charge == 1.5, "1 + read(1 KB) / 2"
    for n in range(20):
        cf.put(container, f"big {n}", padding="x" * 10_000)
    feed, plain = cf.read(container).expect(200), container.feed().expect(200)
    assert feed.charge == pytest.approx(plain.charge, rel=0.02) and feed.charge > 5
    assert cf.read(container, "*").expect(304).charge == 1


def test_cf_344_reading_never_creates_lsns(container):
    container.fill(1)
    for headers in (cf.INCREMENTAL, cf.INCREMENTAL | cf.WIRE_FORMAT, {"A-IM": "x"}, cf.ALL_VERSIONS):
        for at in (None, "*", 1):
            cf.read(container, at, headers=headers)
    assert cf.put(container, "next") == 3


BAD = {  # headers that are wrong, the status, the sub-status, a word of the message
    "etag": ({"If-None-Match": '"abc"'}, 400, None, "Change feed token format is invalid"),
    "etag of a document": ({"If-None-Match": '"0000d986-0000-0000-0000-580ac4ea0000"'}, 400, None, "Change feed token format is invalid"),
    "date": ({"If-Modified-Since": "soon"}, 400, None, "If-Modified-Since"),
    "A-IM": ({"A-IM": "Delta"}, 400, None, "A-IM"),
    "size": ({wire.MAX_ITEMS: "-2"}, 400, None, None),
    "size text": ({wire.MAX_ITEMS: "many"}, 400, None, None),
    "start without end": ({"x-ms-start-epk": "05", "x-ms-read-key-type": "EffectivePartitionKeyRange"}, 400, None, "epk"),
    "not hex": (cf.of_epks("", "no"), 400, None, "epk"),
    "start above end": (cf.of_epks("20", "10"), 400, None, "epk"),
    "kind of key": ({"x-ms-read-key-type": "Other", "x-ms-start-epk": "", "x-ms-end-epk": "FF"}, 400, None, "x-ms-read-key-type"),
    "range": ({RANGE_ID: "99"}, 410, 1002, None),
    "range of another": ({RANGE_ID: "AQIDBIECAwQ=,0"}, 410, 1000, None),
    "key": ({KEY: "oops"}, 400, None, None),
    "key of two": ({KEY: '["a","b"]'}, 400, None, None),
    "key of none": ({KEY: "[]"}, 400, None, None),
    "not enabled": (cf.ALL_VERSIONS | {"If-None-Match": "*"}, 400, None, "must be enabled"),
    "intended": ({"x-ms-cosmos-intended-collection-rid": "AQIDBIECAwQ="}, 400, 1024, None),
    "session": ({SESSION: "0:-1#999"}, 404, 1002, None),
    "session text": ({SESSION: "nonsense"}, 400, None, None),
    "consistency": ({"x-ms-consistency-level": "Strong"}, 400, None, None),
}


@pytest.fixture(scope="module")
def filled(module_client):
    """Three documents of key a; only read from."""
    container = module_client.create_database().create_container()
    container.fill(3)
    return container


@pytest.mark.parametrize("case", BAD)
def test_cf_350_an_error_is_never_a_304_or_an_empty_200(filled, case):
    headers, status, substatus, text = BAD[case]
    response = cf.read(filled, headers=headers).expect(status, substatus, text)
    assert response["etag"] is None, "a consumer would advance"


@pytest.mark.parametrize("case", [case for case, (_, _, substatus, _) in BAD.items() if substatus])
def test_cf_351_errors_carry_their_sub_status(filled, case):
    headers, status, substatus, _ = BAD[case]
    response = cf.read(filled, headers=headers).expect(status)
    assert response["x-ms-substatus"] == str(substatus) and response.json["code"] and response.json["message"]


def test_cf_350_what_is_missing_is_404_1003(client, db):
    for path in (f"{db.path}/colls/none/docs", "/dbs/none/colls/none/docs", f"/dbs/{db.rid}/colls/AQIDBIECAwQ=/docs"):
        for headers in ({}, {"If-None-Match": "*"}, {RANGE_ID: "0"}):
            response = client.get(path, cf.INCREMENTAL | headers).expect(404)
            assert response.substatus in (0, 1003)


def test_cf_350_an_unsigned_reader_learns_nothing(client, filled):
    for headers in ({}, {"If-None-Match": "*"}, {"If-None-Match": '"abc"'}, {RANGE_ID: "99"}):
        client.get(filled.docs, cf.INCREMENTAL | headers, signed=False).expect(401)
    client.get(filled.docs + "x", cf.INCREMENTAL, signed=False).expect(401)


def test_cf_350_a_read_only_key_may_read_the_feed(server):
    read_only = wire.base64.b64encode(b"r" * 64).decode()
    running = server("--read-only-key", read_only)
    with running.client() as owner:
        container = owner.create_database().create_container()
        container.fill(2)
        with running.client(read_only) as reader:
            assert cf.ids(cf.drain(container, client=reader)[0]) == ["0", "1"]
