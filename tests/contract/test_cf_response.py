"""CF-112 … CF-119: what an answer says."""
import json
import re

import pytest

import change_feed as cf
from harness import wire
from harness.wire import RANGE_ID, SESSION


def exact(text):
    """JSON with the order of members and the spelling of numbers kept."""
    return json.loads(text, object_pairs_hook=list, parse_int=lambda digits: ("number", digits),
                      parse_float=lambda digits: ("number", digits))


def test_cf_112_up_to_date_is_always_304(container):
    for at in (None, "*", 1):
        cf.read(container, at).expect(304)
    container.fill(3)
    for at in ("*", 4):
        cf.read(container, at).expect(304)
    for at in (5, 100):
        cf.read(container, at).expect(400)
    for scope in (cf.of_key("nobody"), cf.of_epks("00", "01"), cf.of_key("a")):
        cf.read(container, 4, scope=scope).expect(304)
    cf.read(container, scope=cf.of_key("nobody")).expect(304)
    for n in range(3):
        container.delete(str(n)).expect(204)
    for at in (None, 1, 4, 7):
        cf.read(container, at).expect(304)


def test_cf_113_a_304_has_no_body_and_all_headers(client, container):
    container.fill(2)
    activity = cf.fresh_activity()
    full = cf.read(container, headers={"x-ms-activity-id": activity}).expect(200)
    idle = cf.read(container, full["etag"], headers={"x-ms-activity-id": activity}).expect(304)
    assert idle.body == b"" and idle["content-type"] is None and idle["content-length"] is None
    for name in ("etag", "x-ms-item-count", "x-ms-request-charge", SESSION, "x-ms-activity-id", RANGE_ID,
                 "x-ms-alt-content-path", "x-ms-content-path"):
        assert full[name], f"{name} is missing on 200"
        assert idle[name], f"{name} is missing on 304"
    for name in (SESSION, "x-ms-activity-id", RANGE_ID, "x-ms-alt-content-path", "x-ms-content-path"):
        assert full[name] == idle[name]
    assert idle["x-ms-activity-id"] == activity and idle["x-ms-content-path"] == container.rid
    client.get("/").expect(200)  # and the connection is still in step


def test_cf_114_the_etag_is_there_on_every_answer(container):
    for at in (None, "*", 1):
        assert re.fullmatch(r'"\d+"', cf.read(container, at).expect(304)["etag"])
    container.fill(1)
    assert re.fullmatch(r'"\d+"', cf.read(container).expect(200)["etag"])
    assert re.fullmatch(r'"\d+"', cf.read(container, headers={"If-Modified-Since": wire.http_date(100)}).expect(304)["etag"])


def test_cf_115_the_item_count_is_there_on_every_answer(container):
    assert cf.read(container).expect(304)["x-ms-item-count"] == "0"
    documents = container.fill(3)
    assert cf.read(container, size=2).expect(200)["x-ms-item-count"] == "2"
    assert cf.read(container, 3).expect(200)["x-ms-item-count"] == "1"
    assert cf.read(container, headers=cf.since(documents[0]["_ts"] - 1)).expect(200)["x-ms-item-count"] == "0"


def test_cf_116_there_is_never_a_continuation(container):
    container.fill(5)
    for response in (cf.read(container, size=1), cf.read(container, size=5), cf.read(container, 6), cf.read(container, "*"),
                     cf.read(container, headers={wire.CONTINUATION: "x"}, size=1), cf.read(container, headers=cf.WIRE_FORMAT, size=1)):
        assert response.expect((200, 304))[wire.CONTINUATION] is None


DOCUMENTS = [
    '{"id":"plain","pk":"a"}',
    '{ "id" : "spaced" ,\t"pk":"a" , "list" : [ 1 , 2 , { } ] }',
    '{"z":1,"id":"ordered","a":2,"pk":"a","m":{"y":1,"b":2}}',
    '{"id":"numbers","pk":"a","n":[1,1.0,1e3,1E+3,-0,0.1,12345678901234567890,1e-7]}',
    '{"id":"text","pk":"a","t":"\\u00e9\\u0000\\"\\\\\\/\\n\\ud83d\\ude00 é 😀","":"empty name"}',
    '{"id":"deep","pk":"a","_ts":5,"_etag":"x","sub":{"_lsn":7,"_rid":"y"},"metadata":{"lsn":1},"current":{}}',
]


@pytest.mark.parametrize("text", DOCUMENTS, ids=lambda text: json.loads(text)["id"])
def test_cf_117_a_document_is_as_a_point_read_shows_it_and_has_an_lsn(container, text):
    name = json.loads(text)["id"]
    lsn = cf.lsn_written(container.create(text, ["a"]))
    point = exact(container.read(name).expect(200).body)
    page = cf.read(container).expect(200)
    (shown,) = dict(exact(page.body))["Documents"]
    assert ("_lsn", ("number", str(lsn))) in shown
    shown.remove(("_lsn", ("number", str(lsn))))
    assert shown == point


def test_cf_118_documents_of_one_transaction_have_one_lsn(container):
    lsn = cf.batch(container, [cf.creating(str(n)) for n in range(4)])
    after = cf.batch(container, [cf.creating("x"), cf.creating("y")])
    assert [item["_lsn"] for item in cf.drain(container)[0]] == [lsn] * 4 + [after] * 2 and after == lsn + 1


@pytest.mark.parametrize("value", ['"x"', "7", "null", '{"a":[1]}', "-1.5"])
def test_cf_119_a_documents_own_lsn_gives_way(container, value):
    lsn = cf.lsn_written(container.create(f'{{"id":"1","_lsn":{value},"pk":"a","_metadata":{{"mine":true}}}}', ["a"]))
    assert "_lsn" not in container.read("1").expect(200).json
    assert b"_lsn" not in container.feed().expect(200).body
    page = cf.read(container).expect(200)
    assert page.body.count(b'"_lsn"') == 1
    (item,) = cf.items_of(page)
    assert item["_lsn"] == lsn and item["_metadata"] == {"mine": True}


def test_cf_119_a_document_taken_from_the_feed_can_be_written_back(container):
    cf.put(container, "1")
    (item,) = cf.items_of(cf.read(container).expect(200))
    replaced = container.replace("1", item | {"n": 1}).expect(200)
    upserted = container.upsert(item | {"n": 2}).expect(200)
    assert "_lsn" not in replaced.json and "_lsn" not in upserted.json
    page = cf.read(container).expect(200)
    assert page.body.count(b'"_lsn"') == 1 and cf.items_of(page)[0]["_lsn"] == item["_lsn"] + 2


def test_cf_119_a_nested_lsn_is_the_users_own(container):
    cf.put(container, "1", sub={"_lsn": "mine"})
    (item,) = cf.items_of(cf.read(container).expect(200))
    assert item["sub"] == {"_lsn": "mine"} and item["_lsn"] == 2


def test_cf_117_the_envelope(container):
    container.fill(3)
    body = cf.read(container).expect(200).json
    assert list(body) == ["_rid", "Documents", "_count"] and body["_rid"] == container.rid and body["_count"] == 3


def test_cf_119_the_etag_of_a_document_is_no_position(container):
    document = container.fill(1)[0]
    cf.read(container, document["_etag"]).expect(400, text="Change feed token format is invalid")
