"""Account keys of a running server: shown and exchanged without a restart, and the certificate with them."""
import base64
import os
import signal
import socket
import ssl
import subprocess

import pytest

import change_feed as cf
from harness import wire
from harness.waiting import wait_until

PATIENCE = 20.0


def new_key():
    return base64.b64encode(os.urandom(64)).decode()


@pytest.fixture
def keys(tmp_path):
    """A key file, by slots."""
    return KeyFile(tmp_path / "keys")


class KeyFile(dict):
    def __init__(self, path):
        self.path = path
        super().__init__({slot: new_key() for slot in ("primary", "secondary", "primary-readonly")})
        self.write()

    def write(self):
        self.path.touch(mode=0o600)
        self.path.write_text("".join(f"{slot}: {key}\n" for slot, key in self.items()))


@pytest.fixture
def own(server, keys):
    return server("--key-file", keys.path, "--feed-heartbeat-seconds", 1, key=keys["primary"])


def status_with(own, key, path="/"):
    with own.client(key=key) as client:
        return client.get(path).status


# ── Administration ──────────────────────────────────────────────────────────────────────────────────

def test_keys_are_listed_without_the_keys(own, keys):
    with own.client() as client:
        answer = client.get("/_orrery/keys").expect(200)
        listed = answer.json["keys"]
    assert [(key["slot"], key["access"]) for key in listed] == [
        ("primary", "read-write"), ("secondary", "read-write"), ("primary-readonly", "read-only")]
    assert listed[0]["lastUsed"] > 1_700_000_000 and listed[1]["lastUsed"] is None
    assert not any(key.encode() in answer.body for key in keys.values())


def test_administration_is_for_keys_that_may_write(own, keys):
    with own.client(key=keys["primary-readonly"]) as client:
        client.get("/_orrery/keys").expect(403)
        client.post("/_orrery/keys/reload").expect(403)
    with own.client(key=new_key()) as client:
        client.get("/_orrery/keys").expect(401)
        client.post("/_orrery/keys/reload").expect(401)
        client.get("/_orrery/anything").expect(401)
    with own.client() as client:
        client.get("/_orrery/keys", signed=False).expect(401)
        client.get("/_orrery/anything").expect(404)
        client.post("/_orrery/keys").expect(405)
        client.get("/_orrery/keys/reload").expect(405)


def test_metrics_tell_when_a_key_was_used_last(own, keys):
    with own.client() as client:
        name = 'orrery_key_last_used_seconds{slot="secondary"}'
        assert wire.metric(client, name) == 0
        assert status_with(own, keys["secondary"]) == 200
        assert wire.metric(client, name) > 1_700_000_000


# ── Exchange ────────────────────────────────────────────────────────────────────────────────────────

def test_a_reload_exchanges_keys_at_once(own, keys):
    old = keys["secondary"]
    keys["secondary"] = new_key()
    keys.write()
    assert status_with(own, old) == 200, "not before it is told"
    with own.client() as client:
        client.post("/_orrery/keys/reload").expect(200)
    assert status_with(own, old) == 401
    assert status_with(own, keys["secondary"]) == 200
    assert status_with(own, keys["primary"]) == 200
    assert status_with(own, keys["primary-readonly"]) == 200


def test_a_reload_may_take_away_the_key_that_asks_for_it(own, keys):
    old = keys["primary"]
    keys["primary"] = new_key()
    keys.write()
    with own.client(key=old) as client:
        client.post("/_orrery/keys/reload").expect(200)
        client.get("/").expect(401)
    assert status_with(own, keys["primary"]) == 200


def test_a_hang_up_signal_does_the_same(own, keys):
    old = keys["secondary"]
    keys["secondary"] = new_key()
    keys.write()
    own.process.send_signal(signal.SIGHUP)
    wait_until(lambda: status_with(own, keys["secondary"]) == 200, PATIENCE, "the new key")
    assert status_with(own, old) == 401


@pytest.mark.parametrize("text", ["", "secret\n", "third: x\n"], ids=["empty", "no-key", "no-slot"])
def test_a_bad_file_changes_nothing(own, keys, text):
    keys.path.write_text(text)
    with own.client() as client:
        client.post("/_orrery/keys/reload").expect(400, text=str(keys.path))
    for key in keys.values():
        assert status_with(own, key) == 200
    own.process.send_signal(signal.SIGHUP)
    keys.path.unlink()
    with own.client() as client:
        client.post("/_orrery/keys/reload").expect(503, text=str(keys.path))
    assert status_with(own, keys["secondary"]) == 200


def test_a_file_with_the_well_known_key_is_for_this_machine_only(server, keys):
    own = server("--listen", "0.0.0.0:0", "--key-file", keys.path, key=keys["primary"])
    keys["secondary"] = wire.WELL_KNOWN_KEY
    keys.write()
    with own.client() as client:
        client.post("/_orrery/keys/reload").expect(400, text="well-known key")
    assert status_with(own, wire.WELL_KNOWN_KEY) == 401


def test_streams_of_a_key_that_is_gone_end(own, keys):
    with own.client(key=keys["secondary"]) as client:
        container = client.create_database().create_container()
        with cf.Stream(container, {"Accept": "text/event-stream"}) as stream:
            keys["secondary"] = new_key()
            keys.write()
            with own.client() as primary:
                primary.post("/_orrery/keys/reload").expect(200)
            while stream.event() is not None:
                pass
        client.get("/").expect(401)


# ── The certificate ─────────────────────────────────────────────────────────────────────────────────

def make_certificate(directory, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
                   check=True, capture_output=True)
    return ssl.PEM_cert_to_DER_cert((directory / "cert.pem").read_text())


def certificate_of(own):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", own.endpoint.port)) as plain, context.wrap_socket(plain) as secure:
        return secure.getpeercert(binary_form=True)


def test_the_certificate_is_read_again_too(server, tmp_path):
    first = make_certificate(tmp_path, "first")
    own = server("--tls-cert", tmp_path / "cert.pem", "--tls-key", tmp_path / "key.pem")
    assert certificate_of(own) == first
    second = make_certificate(tmp_path, "second")
    with own.client() as client:
        assert certificate_of(own) == first, "not before it is told"
        client.post("/_orrery/keys/reload").expect(200)
        assert certificate_of(own) == second
        pem = client.get("/_explorer/emulator.pem", signed=False).expect(200).body.decode()
        assert ssl.PEM_cert_to_DER_cert(pem) == second
        (tmp_path / "key.pem").write_text("nothing")
        client.post("/_orrery/keys/reload").expect(400)
        assert certificate_of(own) == second
