"""Which hosts and origins a server takes that listens on its own machine only."""
import socket

import pytest

from harness import wire

OURS = ["localhost", "localhost:8081", "LOCALHOST", "127.0.0.1:1", "127.8.8.8", "[::1]:8081", "a.b.localhost",
        "host.docker.internal:8081", socket.gethostname()]
OTHERS = ["evil.example", "evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1:8081"]


@pytest.fixture
def own(server):
    return server()


@pytest.mark.parametrize("host", OURS)
def test_names_of_this_machine_are_taken(own, host):
    own.client().get("/", {"Host": host}).expect(200)


@pytest.mark.parametrize("host", OTHERS)
def test_other_names_are_400_and_hear_what_to_do(own, host):
    client = own.client()
    for path in ("/", "/dbs", "/_health", "/_metrics", "/_explorer/"):
        response = client.get(path, {"Host": host}).expect(400, text="--advertise")
        assert host in response.message
    assert not client.breaches


def test_advertised_name_is_taken(server):
    client = server("--advertise", "https://orrery.example:444/").client()
    client.get("/", {"Host": "orrery.example:444"}).expect(200)
    client.get("/", {"Host": "localhost"}).expect(200)
    client.get("/", {"Host": "other.example:444"}).expect(400)


def test_other_name_is_refused_before_the_body(own):
    client = own.client()
    request = client.build("POST", "/dbs", b"x" * 100_000, {"Host": "evil.example", "Expect": "100-continue"})
    with wire.Connection(own.endpoint) as connection:
        connection.send(request[:-100_000])
        connection.receive("POST").expect(400, text="--advertise")


@pytest.mark.parametrize("origin", ["http://evil.example", "https://evil.example:8081", "null"])
def test_pages_of_other_sites_are_403(own, origin):
    own.client().get("/", {"Origin": origin}).expect(403, text="page")


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1:8081", "vscode-webview://a"])
def test_pages_of_this_machine_are_taken(own, origin):
    own.client().get("/", {"Origin": origin}).expect(200)


def test_no_page_is_told_that_it_may_read_answers(own):
    client = own.client()
    assert client.get("/", {"Origin": "http://localhost:3000"})["access-control-allow-origin"] is None
    client.request("OPTIONS", "/dbs", headers={"Origin": "http://localhost:3000"}, signed=False).expect(401)
