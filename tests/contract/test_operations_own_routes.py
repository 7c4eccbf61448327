"""Orrery's own routes, and how the program starts and stops."""
import base64
import json
import os
import re
import signal
import socket
import ssl

import pytest

from harness import server as launcher, wire
from harness.waiting import wait_until

OWN_KEY = base64.b64encode(b"k" * 64).decode()


# ── Own routes ──────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("path", ["/_health", "/_ready", "/_health/", "//_ready"])
def test_health_and_readiness_need_no_key(client, path):
    client.get(path, signed=False).expect(200)


@pytest.mark.parametrize("path", ["/_health", "/_ready", "/_metrics"])
def test_own_routes_are_only_read(client, path):
    client.post(path, {}, signed=False).expect((401, 405))
    client.request("DELETE", path, signed=False).expect((401, 405))


@pytest.mark.parametrize("path", ["/_health", "/_ready", "/_explorer/"])
def test_head_answers_like_get_without_a_body(client, path):
    length = len(client.get(path, signed=False).expect(200).body)
    response = client.request("HEAD", path, signed=False).expect(200)
    assert int(response["content-length"]) == length
    client.get("/_health", signed=False).expect(200)  # a body would have been taken for this one's response


def test_own_routes_do_not_wait_for_a_body(endpoint):
    for verb, status in (("GET", 400), ("POST", 405)):
        with wire.Connection(endpoint) as connection:
            connection.send(f"{verb} /_health HTTP/1.1\r\nHost: localhost\r\n"
                            "content-length: 2000000\r\n\r\n".encode())
            connection.receive(verb).expect(status)
            assert connection.is_closed_by_server()


def test_metrics_are_prometheus_text(client):
    response = client.get("/_metrics", signed=False).expect(200)
    assert response["content-type"].startswith("text/plain")
    samples = [line for line in response.body.decode().splitlines() if line and not line.startswith("#")]
    assert samples
    for line in samples:
        assert re.match(r'^[a-zA-Z_:][a-zA-Z0-9_:]*(\{[^}]*\})? [-+]?([0-9.eE+-]+|Inf|NaN)( \d+)?$', line), line
    assert any(line.startswith("orrery_") for line in samples)


def test_metrics_count_requests(server):
    client = server().client()

    def total():
        text = client.get("/_metrics", signed=False).expect(200).body.decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(r"orrery_\w*requests", line))
    before = total()
    for _ in range(10):
        client.get("/").expect(200)
    assert total() >= before + 10


def test_metrics_beyond_loopback_need_a_key(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; tells which address we would use
            address = probe.getsockname()[0]
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        pytest.skip("this machine has no address beyond loopback")
    own = server("--listen", "0.0.0.0:0", "--key", OWN_KEY, key=OWN_KEY)
    beyond = wire.Client(wire.Endpoint(f"http://{address}:{own.endpoint.port}/", OWN_KEY))
    beyond.get("/_metrics", signed=False).expect(401)
    beyond.get("/_health", signed=False).expect(200)
    own.client().get("/_metrics", signed=False).expect(200)


def test_certificate_is_served_and_is_the_one_in_use(server, tmp_path):
    own = server()
    response = own.client().get("/_explorer/emulator.pem", signed=False).expect(200)
    pem = response.body.decode()
    assert "BEGIN CERTIFICATE" in pem and "PRIVATE KEY" not in pem
    context = ssl.create_default_context(cadata=pem)
    for name in ("localhost", "127.0.0.1"):
        with socket.create_connection(("127.0.0.1", own.endpoint.port), wire.ANSWER_SECONDS_MAX) as plain:
            with context.wrap_socket(plain, server_hostname=name) as secure:
                assert secure.getpeercert(binary_form=True) == ssl.PEM_cert_to_DER_cert(pem)


def test_certificate_is_kept_over_a_restart_and_valid_for_the_advertised_host(server, tmp_path):
    pems = []
    for _ in range(2):
        own = server("--data-dir", tmp_path / "data", "--advertise", "https://orrery.example:8081/")
        client = own.client()
        pems.append(client.get("/_explorer/emulator.pem", signed=False).expect(200).body.decode())
        context = ssl.create_default_context(cadata=pems[-1])
        with socket.create_connection(("127.0.0.1", own.endpoint.port), wire.ANSWER_SECONDS_MAX) as plain:
            context.wrap_socket(plain, server_hostname="orrery.example").close()
        client.close()
        own.stop()
    assert pems[0] == pems[1]


def test_unknown_own_route_is_refused(client):
    client.get("/_nosuchroute").expect((401, 404))


# ── Start ───────────────────────────────────────────────────────────────────────────────────────────

def test_start_prints_where_the_data_is_the_endpoint_and_a_connection_string(server, tmp_path):
    own = server("--data-dir", tmp_path / "data")
    own.client().get("/").expect(200)
    wait_until(lambda: own.log_lines("AccountEndpoint="), what="the connection string")
    text = own.log()
    assert str(tmp_path / "data") in text
    match = re.search(r"AccountEndpoint=(https?://\S+:(\d+)/);AccountKey=([^;]+);", text)
    assert match and int(match[2]) == own.endpoint.port and match[3] == wire.WELL_KNOWN_KEY


def failed_start(*args):
    """Output of a server that ends by itself with an error."""
    with launcher.Server(*args) as own:
        own.spawn()
        wait_until(lambda: not own.alive(), launcher.ANNOUNCED_SECONDS_MAX, f"the end of a server with {args}")
        assert own.process.returncode != 0
        return own.log()


def test_second_server_on_the_same_data_is_refused_and_told_who_holds_it(server, tmp_path):
    own = server("--data-dir", tmp_path / "data")
    text = failed_start("--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0")
    assert str(own.process.pid) in text and str(tmp_path / "data") in text
    own.client().get("/").expect(200)


def test_well_known_key_beyond_loopback_is_refused_with_an_explanation(server):
    assert "--allow-well-known-key" in failed_start("--ephemeral", "--listen", "0.0.0.0:0")
    server("--listen", "0.0.0.0:0", "--allow-well-known-key").client().get("/").expect(200)


@pytest.mark.parametrize("args", [["--no-such-option"], ["--listen", "nonsense"], ["--key", "not base64!"], ["--durability", "maybe"],
                                  ["--tls-cert", "/no/such/file", "--tls-key", "/no/such/file"], ["--threads", "many"]], ids=str)
def test_bad_option_is_named(server, args):
    text = failed_start("--ephemeral", *args)
    assert any(arg.lstrip("-") in text for arg in args), text


@pytest.mark.parametrize("text", [f'ephemeral = true\nkey = ["{OWN_KEY}"]\n', json.dumps({"ephemeral": True, "key": [OWN_KEY]})],
                         ids=["toml", "json"])
def test_config_file_sets_options(server, tmp_path, text):
    (tmp_path / "config").write_text(text)
    own = server("--config", tmp_path / "config", key=OWN_KEY)
    own.client().get("/").expect(200)
    own.client(key=wire.WELL_KNOWN_KEY).get("/").expect(401)


def test_command_line_wins_over_the_config_file(server, tmp_path):
    (tmp_path / "config").write_text(json.dumps({"key": base64.b64encode(b"x" * 64).decode()}))
    server("--config", tmp_path / "config", "--key", OWN_KEY, key=OWN_KEY).client().get("/").expect(200)


def test_config_file_that_is_missing_or_has_an_unknown_option_is_named(tmp_path):
    assert "no-such-file" in failed_start("--ephemeral", "--config", tmp_path / "no-such-file")
    (tmp_path / "config").write_text("no-such-option = 1")
    assert "no-such-option" in failed_start("--ephemeral", "--config", tmp_path / "config")


def test_key_file_without_a_key_is_refused(server, tmp_path):
    (tmp_path / "keys").write_text("# none yet\n")
    assert "keys" in failed_start("--ephemeral", "--key-file", tmp_path / "keys")
    (tmp_path / "keys").write_text(f"# mine\n\n{OWN_KEY}\n")
    server("--key-file", tmp_path / "keys", key=OWN_KEY).client().get("/").expect(200)


def test_port_in_use_is_named(server):
    port = server().endpoint.port
    assert str(port) in failed_start("--ephemeral", "--listen", f"127.0.0.1:{port}")


# ── Stop ────────────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_server_with_exit_code_0_despite_open_connections(server, number):
    own = server()
    with wire.Connection(own.endpoint) as idle, wire.Connection(own.endpoint) as half:
        idle.send(own.client().build("GET", "/"))
        idle.receive().expect(200)
        half.send(b"GET / HT")
        own.process.send_signal(number)
        assert own.process.wait(launcher.STOP_SECONDS_MAX) == 0
        assert idle.is_closed_by_server()


def test_acknowledged_writes_are_there_after_a_restart(server, tmp_path):
    first = server("--data-dir", tmp_path / "data")
    client = first.client()
    container = client.create_database("d").create_container({"id": "c", "defaultTtl": -1}, throughput=11000)
    documents = container.fill(20)
    offers, ranges = client.offers_of(container), container.ranges()
    client.close()
    first.stop()
    client.endpoint = server("--data-dir", tmp_path / "data").endpoint
    assert client.get(container.path).expect(200).body == container.response.body
    assert sorted(container.all_documents(), key=lambda document: document["n"]) == documents
    assert (client.offers_of(container), container.ranges()) == (offers, ranges)


def test_ephemeral_server_leaves_nothing_behind(server):
    own = server()
    directory = re.search(r"^  data +(/\S+)", own.log(), re.MULTILINE)[1]
    own.client().get("/").expect(200)
    assert os.path.exists(directory)
    own.stop()
    assert not os.path.exists(directory)
