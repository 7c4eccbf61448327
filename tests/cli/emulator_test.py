"""`orrery emulator`: what test frameworks wait for, with the options and variables of the vendor's emulator."""

import contextlib
import http.client
import json
import pathlib
import re
import ssl
import subprocess
import tempfile
import unittest

import commands
from harness import program, wire
from harness.server import BINARY, free_port

ENDPOINT = re.compile(r"^  endpoint +http://([\d.]+):(\d+)/", re.MULTILINE)


def address_of(started):
    """Where it says that it listens; None before it does."""
    found = ENDPOINT.search("\n".join(started.lines))
    return found and found[1]


class EmulatorTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="orrery-emulator-")
        self.addCleanup(directory.cleanup)
        self.room = pathlib.Path(directory.name)

    @contextlib.contextmanager
    def emulator(self, *options, **variables):
        """Ports are this test's own; all else is as the vendor has it."""
        self.port, self.explorer_port, self.health_port = free_port(), free_port(), free_port()
        environment = program.clean_environment({"PORT": str(self.port), "EXPLORER_PORT": str(self.explorer_port),
                                                 "HEALTH_PORT": str(self.health_port), **variables})
        started = program.Program([BINARY, "emulator", *map(str, options)], environment)
        try:
            commands.wait_until(lambda: address_of(started) or not started.alive(), "the emulator has named its endpoint")
            self.assertTrue(started.alive(), started.errors)
            yield started
        finally:
            started.close()

    def get(self, path, port=None, scheme="http", headers=()):
        """Unsigned, as a framework asks."""
        port = port or self.port
        if scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=commands.PATIENCE, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=commands.PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read()

    def client(self, key=wire.WELL_KNOWN_KEY):
        return wire.Client(wire.Endpoint(f"http://127.0.0.1:{self.port}/", key))

    # ── What frameworks wait for ──────────────────────────────────────────────────────────────

    def test_testcontainers_for_net_asks_for_the_account_without_a_signature(self):
        with self.emulator(ENABLE_EXPLORER="false"):
            for scheme in ("http", "https"):
                status, body = self.get("/", scheme=scheme)
                self.assertEqual(status, 200)
                self.assertIn("writableLocations", json.loads(body))
            self.assertEqual(self.get("/dbs")[0], 401)

    def test_aspire_asks_the_health_port(self):
        with self.emulator():
            self.assertEqual(self.get("/ready", self.health_port)[0], 200)
            self.assertEqual(self.get("/alive", self.health_port)[0], 200)
            status, body = self.get("/status", self.health_port)
            self.assertEqual(status, 200)
            self.assertIs(json.loads(body)["ready"], True)
            self.assertEqual(self.get("/dbs", self.health_port)[0], 404)

    def test_testcontainers_for_python_asks_for_the_explorer_and_the_certificate(self):
        with self.emulator():
            self.assertEqual(self.get("/_explorer/index.html", scheme="https")[0], 200)
            self.assertIn(b"BEGIN CERTIFICATE", self.get("/_explorer/emulator.pem", scheme="https")[1])

    def test_testcontainers_for_node_and_java_wait_for_words_in_the_log(self):
        with self.emulator() as started:
            commands.wait_until(lambda: "Started" in started.lines, "the emulator has said that it is started")
            self.assertTrue(any(line.startswith(f"Now listening on: http://127.0.0.1:{self.port}") for line in started.lines))
        raw = subprocess.Popen([BINARY, "emulator", "--enable-data-persistence", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=program.clean_environment({"PORT": str(free_port()), "HEALTH_PORT": "0", "ENABLE_EXPLORER": "false"}))
        try:
            self.assertTrue(any(line == b"Started\r\n" for line in iter(raw.stdout.readline, b"")), "as Java's module wants it")
        finally:
            raw.kill()
            raw.communicate()

    def test_the_explorer_has_its_port(self):
        with self.emulator():
            self.assertEqual(self.get("/_explorer/", self.explorer_port)[0], 200)
        with self.emulator(ENABLE_EXPLORER="false"):
            with self.assertRaises(OSError):
                self.get("/", self.explorer_port)

    # ── Options and variables ─────────────────────────────────────────────────────────────────

    def test_a_key_of_ones_own_closes_the_account(self):
        key = subprocess.run([BINARY, "keygen"], capture_output=True, text=True, check=True).stdout.strip()
        (self.room / "key").write_text(key)
        (self.room / "key").chmod(0o600)
        with self.emulator(KEY_FILE=str(self.room / "key")):
            self.assertEqual(self.get("/")[0], 401)
            with self.client(key) as client:
                client.get("/").expect(200)

    def test_data_is_kept_where_it_is_asked_for(self):
        path = self.room / "data"
        for expected in (201, 409):
            with self.emulator("--data-path", path) as started, self.client() as client:
                self.assertEqual(client.post("/dbs", {"id": "kept"}).status, expected)
                started.stop()
        self.assertTrue((path / "format").exists())

    def test_without_persistence_nothing_is_kept(self):
        for _ in range(2):
            with self.emulator("--data-path", self.room / "data",
                               AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE="false") as started, self.client() as client:
                client.post("/dbs", {"id": "gone"}).expect(201)
                started.stop()
        self.assertFalse((self.room / "data").exists())

    def test_clients_are_told_the_address_that_was_given(self):
        for variables, expected in (({"GATEWAY_PUBLIC_ENDPOINT": "https://cosmos.example:443/"}, "https://cosmos.example:443/"),
                                    ({"AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE": "10.1.2.3"}, "https://10.1.2.3:{port}/")):
            with self.emulator(**variables), self.client() as client:
                account = client.get("/").expect(200).json
                self.assertEqual(account["writableLocations"][0]["databaseAccountEndpoint"], expected.format(port=self.port))

    def test_a_certificate_with_its_key_in_one_file(self):
        pem, pfx = self.room / "cert.pem", self.room / "cert.pfx"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=mine",
                        "-keyout", self.room / "key.pem", "-out", pem], check=True, capture_output=True)
        subprocess.run(["openssl", "pkcs12", "-export", "-inkey", self.room / "key.pem", "-in", pem, "-out", pfx,
                        "-passout", "pass:secret"], check=True, capture_output=True)
        with self.emulator(CERT_PATH=str(pfx), CERT_SECRET="secret"):
            served = ssl.get_server_certificate(("127.0.0.1", self.port))
            self.assertEqual(ssl.PEM_cert_to_DER_cert(served), ssl.PEM_cert_to_DER_cert(pem.read_text()))
        refused = subprocess.run([BINARY, "emulator", "--port", str(free_port())], capture_output=True, text=True,
                                 timeout=commands.PATIENCE,
                                 env=program.clean_environment({"CERT_PATH": str(pfx), "CERT_SECRET": "wrong"}))
        self.assertEqual(refused.returncode, 2)
        self.assertIn("another password", refused.stderr)

    def test_what_the_vendor_has_and_we_do_not_need_is_taken(self):
        with self.emulator("--protocol", "https-insecure", "--enable-telemetry", "false", "--log-level", "quiet",
                           AZURE_COSMOS_EMULATOR_PARTITION_COUNT="5", ENABLE_TELEMETRY="false"):
            self.assertEqual(self.get("/", scheme="https")[0], 200)

    def test_it_listens_on_this_machine_unless_it_is_told_otherwise(self):
        with self.emulator() as started:
            self.assertEqual(address_of(started), "127.0.0.1")
        with self.emulator(ORRERY_EMULATOR_ADDRESS="0.0.0.0") as started:
            self.assertEqual(address_of(started), "0.0.0.0")


if __name__ == "__main__":
    unittest.main()
