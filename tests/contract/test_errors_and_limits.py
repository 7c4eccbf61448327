"""Headers of every response, error bodies, and what the server refuses to store."""
import email.utils
import re

import pytest

from harness import wire

MIB = 1 << 20
DOCUMENT = {"id": "x", "pk": "a"}

EVERY_STATUS = {  # a request for each status, its sub-status and code
    "200": (lambda c: c.feed(), 0, None),
    "201": (lambda c: c.create({"id": "new", "pk": "a"}), 0, None),
    "204": (lambda c: c.delete("x"), 0, None),
    "304": (lambda c: c.read("x", headers={"If-None-Match": c.read("x")["etag"]}), 0, None),
    "400": (lambda c: c.create("{"), 0, "BadRequest"),
    "400/1001": (lambda c: c.create(DOCUMENT, ["b"]), 1001, "BadRequest"),
    "400/1024": (lambda c: c.read("x", headers={"x-ms-cosmos-intended-collection-rid": "AQIDBIECAwQ="}), 1024, "BadRequest"),
    "401": (lambda c: c.read("x", signed=False), 0, "Unauthorized"),
    "403": (lambda c: c.read("x", date=wire.http_date(-86400)), 0, "Forbidden"),
    "404": (lambda c: c.read("none"), 0, "NotFound"),
    "404/1002": (lambda c: c.read("x", headers={wire.SESSION: "0:-1#999"}), 1002, "NotFound"),
    "404/1003": (lambda c: c.client.get("/dbs/no-such-database/colls/c/docs"), 1003, "NotFound"),
    "405": (lambda c: c.client.delete("/dbs"), 0, "MethodNotAllowed"),
    "409": (lambda c: c.create(DOCUMENT), 0, "Conflict"),
    "410/1000": (lambda c: c.feed({wire.RANGE_ID: "AQIDBIECAwQ=,0"}), 1000, "Gone"),
    "410/1002": (lambda c: c.feed({wire.RANGE_ID: "77"}), 1002, "Gone"),
    "412": (lambda c: c.delete("x", headers={"If-Match": '"stale"'}), 0, "PreconditionFailed"),
    "501": (lambda c: c.client.get(c.path + "/sprocs"), 0, "NotImplemented"),
}
ERRORS = [name for name in EVERY_STATUS if int(name[:3]) >= 400]


def ask(container, name):
    container.create(DOCUMENT).expect(201)
    return EVERY_STATUS[name][0](container).expect(int(name[:3]))


# ── Every response ──────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("name", EVERY_STATUS)
def test_headers_of_every_response(container, name):
    response = ask(container, name)
    assert abs(email.utils.parsedate_to_datetime(response["date"]).timestamp()
               - email.utils.parsedate_to_datetime(wire.http_date()).timestamp()) < 120
    assert response["x-ms-serviceversion"].startswith("version=")
    assert response["x-ms-gatewayversion"].startswith("version=")
    assert response["cache-control"] == "no-store, no-cache" and response["pragma"] == "no-cache"
    assert wire.GUID.match(response["x-ms-activity-id"]) and response.charge > 0
    assert (response["content-type"] is None) == (response.status in (204, 304))
    assert all(key == key.lower() for key, _ in response.headers)
    assert len({key for key, _ in response.headers}) == len(response.headers), "a header twice"


@pytest.mark.parametrize("name", EVERY_STATUS)
def test_activity_id_of_the_request_is_echoed(container, name):
    mine = "5f0c6f0e-6b7e-4f0c-9f39-0d6f7a1d2c11"
    container.create(DOCUMENT).expect(201)
    build = container.client.build
    container.client.build = lambda verb, target, body=None, headers=None, **options: build(
        verb, target, body, {"x-ms-activity-id": mine} | (headers or {}), **options)
    response = EVERY_STATUS[name][0](container)
    assert response["x-ms-activity-id"] == mine
    if response.status >= 400:
        assert f"ActivityId: {mine}" in response.message


def test_activity_ids_of_the_server_are_fresh(client):
    assert len({client.get("/")["x-ms-activity-id"] for _ in range(10)}) == 10


# ── Errors ──────────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("name", ERRORS)
def test_error_body_has_code_and_message_with_the_activity_id(container, name):
    response = ask(container, name)
    _, substatus, code = EVERY_STATUS[name]
    assert response.substatus == substatus
    assert response["content-type"] == "application/json" and int(response["content-length"]) == len(response.body)
    assert response.json["code"] == code
    match = re.match(r"^(.+)\r\nActivityId: (\S+), \S+", response.message, re.DOTALL)
    assert match and match[1] and match[2] == response["x-ms-activity-id"], response.message


@pytest.mark.parametrize("verb, path", [
    ("PUT", "/dbs"), ("DELETE", "/dbs"), ("PATCH", "/dbs"), ("PUT", "db"), ("POST", "db"), ("PATCH", "db"), ("PUT", "colls"),
    ("DELETE", "colls"), ("POST", "container"), ("PATCH", "container"), ("PUT", "docs"), ("DELETE", "docs"), ("PATCH", "docs"),
    ("POST", "doc"), ("DELETE", "/offers"), ("PATCH", "/offers"), ("BREW", "/dbs"), ("OPTIONS", "docs")])
def test_known_route_with_a_wrong_verb_is_405(client, container, verb, path):
    target = {"db": container.database.path, "colls": container.database.path + "/colls", "container": container.path,
              "docs": container.docs, "doc": container.doc("x")}.get(path, path)
    response = client.request(verb, target, None, {wire.KEY: '["a"]'}).expect(405)
    assert response.json["code"] == "MethodNotAllowed"


# ── Malformed documents ─────────────────────────────────────────────────────────────────────────────

MALFORMED = {
    "empty": "", "white space": "  ", "open": "{", "no value": '{"id":}', "trailing comma": '{"id":"x","pk":"a",}',
    "single quotes": "{'id':'x','pk':'a'}", "no quotes": '{id:"x",pk:"a"}', "garbage after": '{"id":"x","pk":"a"} x',
    "two documents": '{"id":"x","pk":"a"}{"id":"y","pk":"a"}', "NaN": '{"id":"x","pk":"a","n":NaN}',
    "Infinity": '{"id":"x","pk":"a","n":Infinity}', "leading zero": '{"id":"x","pk":"a","n":01}', "plus": '{"id":"x","pk":"a","n":+1}',
    "bare point": '{"id":"x","pk":"a","n":1.}', "comment": '{"id":"x",/* */"pk":"a"}', "raw newline in text": '{"id":"x","pk":"a","t":"\n"}',
    "bad escape": '{"id":"x","pk":"a","t":"\\x"}', "half an escape": '{"id":"x","pk":"a","t":"\\u12"}',
    "open text": '{"id":"x","pk":"a","t":"', "array": '[{"id":"x","pk":"a"}]', "empty array": "[]", "text": '"x"', "number": "1",
    "null": "null", "true": "true", "broken UTF-8": b'{"id":"x","pk":"a","t":"\xff"}', "cut UTF-8": b'{"id":"x","pk":"a","t":"\xc3"}',
    "overlong UTF-8": b'{"id":"x","pk":"a","t":"\xc0\xaf"}', "surrogate in UTF-8": b'{"id":"x","pk":"a","t":"\xed\xa0\x80"}',
    "latin-1 id": b'{"id":"\xe4","pk":"a"}', "UTF-16": '{"id":"x","pk":"a"}'.encode("utf-16"),
    "member twice": '{"id":"x","pk":"a","n":1,"n":2}', "id twice": '{"id":"x","pk":"a","id":"y"}',
    "member twice, escaped": '{"id":"x","pk":"a","n":1,"\\u006e":2}', "1e400": '{"id":"x","pk":"a","n":1e400}',
    "-1e400": '{"id":"x","pk":"a","n":[-1e400]}', "zero byte": b'{"id":"x","pk":"a","t":"\x00"}',
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_document_is_400_on_every_write(container, name):
    container.create(DOCUMENT | {"n": "untouched"}).expect(201)
    body = MALFORMED[name]
    assert container.create(body, ["a"]).expect(400).json["code"] == "BadRequest"
    container.upsert(body, ["a"]).expect(400)
    container.replace("x", body).expect(400)
    assert [document["n"] for document in container.all_documents()] == ["untouched"]


@pytest.mark.parametrize("member", [
    '"n":18446744073709551616', '"n":-9223372036854775809', '"n":123456789012345678901234567890', '"n":9223372036854775807',
    '"n":1.0', '"n":1E+2', '"n":0.1000', '"n":-0', '"n":-0.0', '"n":5e-324', '"n":1.7976931348623157e308', '"n":1e-400',
    '"t":"\\u00e9\\/\\ud83d\\ude00"', '"t":"é😀\u2028"', '"o":{"a":1,"a":2}', '"":1', '"\\u0000":"\\u0000"', '"a b":[ ]',
    '"l":[[],{},[{}],null,true,false]', '"id ":2', '"ID":3'])
def test_text_is_kept_exactly_as_it_was_sent(container, member):
    text = f'{{"id":"x","pk":"a",{member}}}'
    for response in (container.create(text, ["a"]).expect(201), container.read("x").expect(200),
                     container.replace("x", text).expect(200), container.feed().expect(200)):
        assert text[:-1].encode() in response.body


# ── Limits ──────────────────────────────────────────────────────────────────────────────────────────

def nested(depth, opening="[", closing="]"):
    """A document whose deepest value lies in `depth` arrays or objects, itself included."""
    inner = '{"a":' * (depth - 1) + "1" + "}" * (depth - 1) if opening == "{" else opening * (depth - 1) + closing * (depth - 1)
    return f'{{"id":"x","pk":"a","deep":{inner}}}'


@pytest.mark.parametrize("opening, closing", ["[]", "{}"])
def test_nesting_of_128_is_accepted_and_of_129_refused(container, opening, closing):
    container.create(nested(129, opening, closing), ["a"]).expect(400)
    container.create(nested(128, opening, closing), ["a"]).expect(201)
    container.read("x").expect(200)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_hostile_nesting_costs_nothing(client, container, opening):
    container.create('{"id":"x","pk":"a","deep":' + opening * 200_000, ["a"]).expect(400)
    client.post("/dbs", '{"id":' + opening * 200_000).expect(400)
    client.get("/").expect(200)


def sized(size):
    text = '{"id":"x","pk":"a","padding":"'
    return text + "p" * (size - len(text) - 2) + '"}'


def test_item_of_almost_2_mb_is_stored(container):
    container.create(sized(2 * MIB - 2048), ["a"]).expect(201)
    assert len(container.read("x").expect(200).json["padding"]) > 2 * MIB - 4096
    container.replace("x", sized(2 * MIB - 2048)).expect(200)


@pytest.mark.parametrize("size", [2 * MIB + 1, 2 * MIB + 1000])
def test_item_above_2_mb_is_413_on_every_write(client, container, size):
    container.create(DOCUMENT).expect(201)
    for call in (lambda: container.create(sized(size), ["a"]), lambda: container.upsert(sized(size), ["a"]),
                 lambda: container.replace("x", sized(size))):
        response = call().expect(413, 0, "Request size is too large")
        assert response.json["code"] == "RequestEntityTooLarge"
    assert "padding" not in container.read("x").expect(200).json


def test_size_counts_bytes_not_characters(container):
    document = '{"id":"x","pk":"a","padding":"' + "é" * (MIB + 1000) + '"}'
    container.create(document, ["a"]).expect(413)


def test_many_members_and_long_names_are_fine(container):
    document = DOCUMENT | {f"member{n}": n for n in range(5000)} | {"x" * 10000: 1}
    created = container.create(document).expect(201).json
    assert document.items() <= created.items()
