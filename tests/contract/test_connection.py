"""Transport: keep-alive, bodies, limits and the answers to requests the server gives up on."""
import json
import re
import ssl

import pytest

from harness import wire
from harness.waiting import wait_until

MIB = 1 << 20


@pytest.fixture
def connection(endpoint):
    with wire.Connection(endpoint) as connection:
        yield connection


def assert_still_serving(client):
    client.close()
    client.get("/").expect(200)


# ── Connections are kept and requests answered in order ─────────────────────────────────────────────

def test_connection_is_kept_alive_between_requests(client, connection):
    for _ in range(3):
        connection.send(client.build("GET", "/"))
        assert connection.receive().status == 200


def test_connection_close_is_honoured(client, connection):
    connection.send(client.build("GET", "/", headers={"Connection": "close"}))
    connection.receive().expect(200)
    assert connection.is_closed_by_server()


def test_connection_survives_a_refused_request(client, connection):
    connection.send(client.build("GET", "/dbs/no-such-database"))
    connection.receive().expect(404)
    connection.send(client.build("GET", "/"))
    connection.receive().expect(200)


def test_pipelined_requests_are_answered_in_order(client, connection):
    ids = [f"00000000-0000-4000-8000-00000000000{n}" for n in range(5)]
    connection.send(b"".join(client.build("GET", "/dbs", headers={"x-ms-activity-id": each}) for each in ids))
    assert [connection.receive()["x-ms-activity-id"] for _ in ids] == ids


def test_request_may_arrive_byte_by_byte(client, connection):
    for byte in client.build("GET", "/"):
        connection.send(bytes([byte]))
    connection.receive().expect(200)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_content_length_0_without_a_body_is_accepted(client, db, verb):
    client.request(verb, db.path, headers={"content-length": "0"}).expect((200, 204))


def test_responses_are_neither_chunked_nor_compressed(client):
    response = client.get("/", {"accept-encoding": "gzip, deflate", "te": "trailers"}).expect(200)
    assert response["content-encoding"] is None and response["transfer-encoding"] is None
    assert int(response["content-length"]) == len(response.body)
    assert response["content-type"] == "application/json"
    assert not response.body.startswith(b"\xef\xbb\xbf")


# ── Request bodies ──────────────────────────────────────────────────────────────────────────────────

def test_chunked_request_body_is_accepted(client, container, connection):
    head = client.build("POST", container.docs, headers={
        wire.KEY: '["a"]', "content-length": None, "transfer-encoding": "chunked", "content-type": "application/json"})
    connection.send(head + b'6\r\n{"id":\r\nB;x=y\r\n"x","pk":"a\r\n')
    connection.send(b'2\r\n"}\r\n0\r\n\r\n')
    connection.receive("POST").expect(201)
    assert container.read("x").expect(200).json["pk"] == "a"


def test_expect_100_continue_is_answered_before_the_body_is_sent(client, container, connection):
    body = b'{"id":"x","pk":"a"}'
    request = client.build("POST", container.docs, body, {wire.KEY: '["a"]', "Expect": "100-continue"})
    connection.send(request[:-len(body)])
    assert connection.receive("POST").status == 100
    connection.send(body)
    connection.receive("POST").expect(201)


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/octet-stream", "x"])
def test_odd_or_missing_content_type_is_never_refused(container, content_type):
    container.create({"id": "x", "pk": "a"}, headers={"content-type": content_type}).expect(201)


def test_client_that_leaves_in_mid_body_costs_nothing(client, container, endpoint):
    request = client.build("POST", container.docs, b'{"id":"x","pk":"a"}', {wire.KEY: '["a"]'})
    for _ in range(20):
        with wire.Connection(endpoint) as connection:
            connection.send(request[:-5])
    assert_still_serving(client)
    container.read("x").expect(404)


# ── What the server refuses ─────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("raw", [
    b"GARBAGE\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"POST /dbs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    b"GET / HTTP/1.1\r\nno colon here\r\n\r\n",
    b"POST /dbs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost:\r\n localhost\r\n\r\n",
], ids=["request line", "length", "negative length", "two lengths", "chunk size", "header line", "folded coding",
        "folded host"])
def test_malformed_request_is_400_and_the_connection_closed(client, connection, raw):
    connection.send(raw)
    response = connection.receive().expect(400)
    assert not list(response.error_breaches())
    assert connection.is_closed_by_server()
    assert_still_serving(client)


def test_64_kib_of_headers_are_accepted(client):
    client.get("/", {f"x-padding-{n}": "p" * 16 * 1024 for n in range(4)}).expect(200)


def test_head_above_the_limit_is_431_and_the_connection_closed(client, connection):
    connection.send_until_answered(client.build("GET", "/", headers={f"x-padding-{n}": "p" * 8192 for n in range(512)}))
    response = connection.receive().expect(431)
    assert not list(response.breaches())
    assert connection.is_closed_by_server()
    assert_still_serving(client)


@pytest.mark.parametrize("authorization", [None, "nonsense", "type%3Dmaster%26ver%3D1.0%26sig%3DAAAA"])
def test_body_without_a_valid_key_is_refused_before_it_is_sent(client, connection, authorization):
    request = client.build("POST", "/dbs", b"x" * MIB, {"authorization": authorization, "Expect": "100-continue"},
                           signed=False)
    connection.send(request[:-MIB])
    response = connection.receive("POST").expect(401)
    assert response["connection"] == "close"
    assert not list(response.breaches())
    assert_still_serving(client)


def test_client_that_sends_all_of_its_body_still_reads_the_401(client, endpoint):
    request = client.build("POST", "/dbs", b"x" * (2 * MIB - 1), signed=False)
    for _ in range(5):
        with wire.Connection(endpoint) as connection:
            connection.send_until_answered(request)
            connection.receive("POST").expect(401)


def test_requests_beyond_the_memory_for_all_are_429_with_retry_after(server):
    own = server("--request-memory-mb", 8)
    client = own.client()
    request = client.build("POST", "/dbs", b"x" * 1_990_000)
    others = [wire.Connection(own.endpoint) for _ in range(4)]
    for each in others:
        each.send(request[:-1])

    def held():
        return wire.metric(client, "orrery_request_memory_bytes")
    wait_until(lambda: held() >= 4 * 1_990_000, what="four bodies on their way")
    with wire.Connection(own.endpoint) as fifth:
        fifth.send_until_answered(request)
        response = fifth.receive("POST").expect(429, 3092, "--request-memory-mb")
        assert int(response["x-ms-retry-after-ms"]) >= 100
        assert not list(response.breaches())
    client.get("/").expect(200)  # small requests go on
    for each in others:
        each.send(request[-1:])
        each.receive("POST").expect(400)
        each.close()
    wait_until(lambda: held() == 0, what="all memory given back")
    with wire.Connection(own.endpoint) as again:
        again.send(request)
        again.receive("POST").expect(400)


@pytest.mark.parametrize("path", ["docs", "dbs"])
def test_body_above_2_mb_is_413(client, container, connection, path):
    target = container.docs if path == "docs" else "/dbs"
    body = b'{"id":"x","pk":"a","padding":"' + b"p" * 3 * MIB + b'"}'
    connection.send_until_answered(client.build("POST", target, body, {wire.KEY: '["a"]'}))
    response = connection.receive("POST").expect(413, text="Request size is too large")
    assert response.json["code"] == "RequestEntityTooLarge"
    errors = json.loads(re.match(r"Message: (\{.*\})\r\nActivityId: ", response.message)[1])["Errors"]
    assert errors[0] == "Request size is too large" and "2097152" in errors[1]
    assert not list(response.breaches())
    assert_still_serving(client)


def test_chunked_body_above_2_mb_is_413(client, container, connection):
    head = client.build("POST", container.docs, headers={
        wire.KEY: '["a"]', "content-length": None, "transfer-encoding": "chunked"})
    connection.send_until_answered(head + (b"10000\r\n" + b"p" * 65536 + b"\r\n") * 64)
    connection.receive("POST").expect(413, text="Request size is too large")
    assert_still_serving(client)


@pytest.mark.parametrize("cut", ["head", "body"])
def test_slow_sender_is_408_and_the_connection_closed(server, cut):
    own = server("--request-timeout-ms", 300)
    client = own.client()
    request = client.build("POST", "/dbs", b'{"id":"never"}')
    with wire.Connection(own.endpoint) as connection:
        connection.send(request[:40] if cut == "head" else request[:-3])
        response = connection.receive("POST").expect(408)
        assert response.json["code"] == "RequestTimeout"
        assert not list(response.breaches())
        assert connection.is_closed_by_server()
    client.get("/dbs/never").expect(404)


def test_kept_alive_connection_may_idle_longer_than_a_request_may_take(server):
    own = server("--request-timeout-ms", 200)
    client = own.client()
    with wire.Connection(own.endpoint) as idle, wire.Connection(own.endpoint) as slow:
        idle.send(client.build("GET", "/"))
        idle.receive().expect(200)
        slow.send(b"GET / HT")  # its 408 marks that the time for one request has passed
        slow.receive().expect(408)
        idle.send(client.build("GET", "/"))
        idle.receive().expect(200)


def test_too_many_connections_are_503_with_retry_after(server):
    own = server("--connections-max", 2)
    client = own.client()
    request = client.build("GET", "/")
    first, second = wire.Connection(own.endpoint), wire.Connection(own.endpoint)
    for connection in (first, second):
        connection.send(request)
        connection.receive().expect(200)
    with wire.Connection(own.endpoint) as third:
        third.send_until_answered(request)
        response = third.receive().expect(503)
        assert int(response["x-ms-retry-after-ms"]) >= 1
        assert response.json["code"] == "ServiceUnavailable"
        assert not list(response.breaches())
        assert third.is_closed_by_server()
    first.close()

    def is_served():
        with wire.Connection(own.endpoint) as again:
            again.send_until_answered(request)
            return again.receive().status == 200
    wait_until(is_served, what="a free place after a connection was closed")
    second.close()


# ── Verbs that no SDK sends ─────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("route", ["/", "/dbs", "db", "container", "pkranges", "/offers"])
def test_head_is_405_without_a_body(client, container, route):
    target = {"db": container.database.path, "container": container.path,
              "pkranges": container.path + "/pkranges"}.get(route, route)
    assert client.request("HEAD", target).status == 405
    client.get("/").expect(200)  # a body would have been taken for this one's response


def test_options_is_405(client):
    client.request("OPTIONS", "/dbs").expect(405)


# ── TLS ─────────────────────────────────────────────────────────────────────────────────────────────

def handshake(endpoint, **options):
    with wire.Connection(endpoint.over("https"), wire.any_certificate(**options)) as connection:
        connection.send(wire.Client(endpoint).build("GET", "/"))
        connection.receive().expect(200)
        return connection.socket.version()


def test_one_port_speaks_http_and_https(server):
    own = server()
    for scheme in ("http", "https", "http"):
        with wire.Client(own.endpoint.over(scheme)) as client:
            locations = client.get("/").expect(200).json["writableLocations"]
            assert locations[0]["databaseAccountEndpoint"].startswith(scheme + "://")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_modern_tls_is_offered(server, version):
    which = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}[version]
    assert handshake(server().endpoint, minimum=which, maximum=which) == version


TLS_1_0 = {"minimum": ssl.TLSVersion.TLSv1, "maximum": ssl.TLSVersion.TLSv1, "ciphers": "DEFAULT@SECLEVEL=0"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_1_0_is_refused_by_default(server):
    own = server()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(own.endpoint, **TLS_1_0)
    own.client().get("/").expect(200)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_legacy_tls_admits_tls_1_0_and_still_the_modern_ones(server):
    own = server("--legacy-tls")
    assert handshake(own.endpoint, **TLS_1_0) == "TLSv1"
    assert handshake(own.endpoint) == "TLSv1.3"


def test_garbage_instead_of_a_tls_handshake_costs_nothing(server):
    own = server()
    with wire.Connection(own.endpoint) as connection:
        connection.send(b"\x16\x03\x01\xff\xff" + b"\x00" * 64)
        connection.socket.close()
    own.client().get("/").expect(200)
