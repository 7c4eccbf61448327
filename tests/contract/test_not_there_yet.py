"""Routes of the service that a later step brings: refused by name, never silently wrong."""
import re

import pytest

from harness import wire
from harness.wire import KEY, QUERY

KEY_A = {KEY: '["a"]'}
SCRIPT = {"id": "s", "body": "function () {}"}
TRIGGER = SCRIPT | {"triggerType": "Pre", "triggerOperation": "All"}
MEDIA = wire.rid_text(bytes(range(1, 21)) + b"\x01")


def feature(word, feed, body, entity):
    """Feed and entity of one resource: create, upsert, query, list, read, replace, delete."""
    return [("POST", feed, body, {}, word), ("POST", feed, body, wire.UPSERT, word),
            ("POST", feed, {"query": "SELECT * FROM root r WHERE r.id = 's'"}, QUERY, word), ("GET", feed, None, {}, word),
            ("GET", entity, None, {}, word), ("PUT", entity, body, {}, word), ("DELETE", entity, None, {}, word)]


ROUTES = (
    feature("stored procedure|sproc", "{c}/sprocs", SCRIPT, "{c}/sprocs/s")
    + [("POST", "{c}/sprocs/s", [], KEY_A, "stored procedure|sproc")]
    + feature("trigger", "{c}/triggers", TRIGGER, "{c}/triggers/s")
    + feature("user.defined function|udf", "{c}/udfs", SCRIPT, "{c}/udfs/s")
    + feature("user", "{d}/users", {"id": "u"}, "{d}/users/u")
    + feature("permission", "{d}/users/u/permissions", {"id": "p", "permissionMode": "All", "resource": "x"}, "{d}/users/u/permissions/p")
    + feature("attachment", "{x}/attachments", {"id": "a", "contentType": "text/plain", "media": "m"}, "{x}/attachments/a")
    + [("GET", "//media/" + MEDIA, None, {}, "media|attachment"), ("PUT", "//media/" + MEDIA, "bytes", {}, "media|attachment")])


@pytest.fixture
def targets(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    return {"d": container.database.path, "c": container.path, "x": container.doc("x")}


def assert_nothing_happened(container):
    assert [(document["id"], "n" in document) for document in container.all_documents()] == [("x", False)]
    assert container.read("x").expect(200)["lsn"] == "2"


@pytest.mark.parametrize("verb, path, body, headers, word", ROUTES,
                         ids=[f"{verb} {path} {' '.join(headers)}"[:70] for verb, path, _, headers, _ in ROUTES])
def test_route_of_a_later_step_is_501_and_names_the_feature(client, container, targets, verb, path, body, headers, word):
    target = path.format(**targets)
    response = client.request(verb, target, body, headers).expect(501)
    assert response.json["code"] == "NotImplemented"
    assert re.search(word, response.message.split("ActivityId")[0], re.IGNORECASE), response.message
    client.request(verb, target, body, headers, signed=False).expect(401)
    assert_nothing_happened(container)


@pytest.mark.parametrize("header", ["x-ms-documentdb-pre-trigger-include", "x-ms-documentdb-post-trigger-include"])
def test_write_that_asks_for_a_trigger_is_refused_not_done_without_it(container, targets, header):
    asked = {header: "t"}
    for response in (container.create({"id": "y", "pk": "a"}, headers=asked), container.upsert({"id": "x", "pk": "a", "n": 1}, headers=asked),
                     container.replace("x", {"id": "x", "pk": "a", "n": 1}, headers=asked), container.delete("x", headers=asked)):
        response.expect((400, 404, 501), text="trigger")
    assert_nothing_happened(container)


@pytest.mark.parametrize("operation", ["split", "merge"])
def test_operations_on_ranges_are_refused_by_name_until_they_exist(client, container, targets, operation):
    client.post(f"{container.path}/operations/{operation}", {"range": "0"} if operation == "split" else {"ranges": ["0", "1"]}).expect(
        (200, 400, 404, 410, 501))
    assert_nothing_happened(container)


def test_lag_request_is_refused_without_a_body(client, container):
    assert client.request("HEAD", container.docs).status in (405, 501)
    client.get("/").expect(200)


def test_a_im_of_false_spelling_is_not_taken_for_a_read_feed_silently(container, targets):
    container.feed({"A-IM": "Nonsense Feed"}).expect((400, 501))


@pytest.mark.parametrize("value", ["false", "False"])
def test_flags_of_false_do_not_ask_for_the_feature(container, value):
    for flag in ("x-ms-cosmos-is-batch-request", "x-ms-cosmos-is-query-plan-request", "x-ms-documentdb-isquery"):
        container.upsert({"id": flag, "pk": "a"}, headers={flag: value}).expect(201)
