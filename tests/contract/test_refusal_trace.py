"""The trace of requests that were not let in, in the server's diagnostics."""
import pytest

from harness import wire
from harness.waiting import wait_until


@pytest.fixture
def own(server):
    return server()


def line_with(own, text):
    return wait_until(lambda: own.log_lines(text), what=f"a line with {text!r}")[0]


ACTIVITY = "01234567-89ab-4cde-8f01-23456789abcd"


def test_requests_without_a_valid_key_leave_a_line(own):
    client = own.client()
    response = client.get("/dbs/secret-db?x=1", {"x-ms-activity-id": ACTIVITY}, key="QUJD").expect(401)
    line = line_with(own, ACTIVITY)
    assert "warning refused 127.0.0.1:" in line and " GET /dbs/secret-db: 401 " in line
    assert "sig" not in line.replace("to sign", "").replace("signature", "") and "x=1" not in line
    assert wire.WELL_KNOWN_KEY not in line and response.status == 401


def test_refused_hosts_leave_a_line(own):
    own.client().get("/", {"Host": "evil.example", "x-ms-activity-id": ACTIVITY}).expect(400)
    assert "GET /: 400 " in line_with(own, ACTIVITY)


def test_broken_requests_leave_a_line(own):
    with wire.Connection(own.endpoint) as connection:
        connection.send(b"GARBAGE\r\n\r\n")
        activity = connection.receive().expect(400)["x-ms-activity-id"]
    assert ": 400 The request is not valid HTTP" in line_with(own, activity)


def test_connections_beyond_the_limit_leave_a_line(server):
    own = server("--connections-max", 1)
    client = own.client()
    client.get("/").expect(200)
    with wire.Connection(own.endpoint) as second:
        second.send_until_answered(client.build("GET", "/"))
        activity = second.receive().expect(503)["x-ms-activity-id"]
    assert ": 503 The server has its limit of 1 connections" in line_with(own, activity)


def test_mistakes_of_those_who_have_a_key_leave_none(own):
    client = own.client()
    client.get("/dbs/none", {"x-ms-activity-id": ACTIVITY}).expect(404)
    client.get("/", {"Host": "evil.example", "x-ms-activity-id": ACTIVITY[::-1]}).expect(400)
    line_with(own, ACTIVITY[::-1])
    assert not own.log_lines(ACTIVITY)


def test_flood_is_counted_instead_of_written(own):
    client = own.client()
    for _ in range(500):
        client.get("/dbs", signed=False).expect(401)
    own.stop()
    written = len(own.log_lines(" GET /dbs: 401 "))
    counted = sum(int(line.split(" refused ")[1].split()[0]) for line in own.log_lines(" more requests "))
    assert written + counted == 500 and counted > 0
