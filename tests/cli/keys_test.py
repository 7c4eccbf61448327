"""`orrery keys`: an operator shows and exchanges the account keys of a running server."""

import pathlib
import subprocess
import tempfile
import unittest

import commands
from harness import program, server as launcher, wire


class KeysTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="orrery-cli-")
        self.addCleanup(directory.cleanup)
        self.keys = pathlib.Path(directory.name) / "keys"
        self.run_command("keygen", "--file", self.keys)
        self.primary = self.keys.read_text().strip()
        self.server = launcher.started("--key-file", self.keys, key=self.primary)
        self.addCleanup(self.server.stop)

    def run_command(self, *arguments, expected=0, **variables):
        environment = program.clean_environment(variables)
        done = subprocess.run([commands.BINARY, *map(str, arguments)], env=environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=commands.PATIENCE)
        self.assertEqual(done.returncode, expected, done.stderr)
        return done.stdout if expected == 0 else done.stderr

    def keys_command(self, *arguments, key=None, expected=0):
        variables = {"ORRERY_ENDPOINT": self.server.endpoint.url}
        if key is not None:
            variables["ORRERY_ACCOUNT_KEY"] = key
        return self.run_command("keys", *arguments, expected=expected, **variables)

    def status_with(self, key):
        with self.server.client(key=key) as client:
            return client.get("/").status

    def test_keys_are_listed(self):
        lines = self.keys_command("list", key=self.primary).splitlines()
        self.assertRegex(lines[0], r"^primary +read-write +last used 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(len(lines), 1)

    def test_a_key_is_rotated_and_in_force_at_once(self):
        secondary = self.keys_command("rotate", "secondary", "--key-file", self.keys).strip()
        self.assertEqual(self.status_with(secondary), 200)
        self.assertEqual(self.status_with(self.primary), 200)
        # By the one that is to go.
        primary = self.keys_command("rotate", "primary", "--key-file", self.keys).strip()
        self.assertEqual(self.status_with(self.primary), 401)
        self.assertEqual(self.status_with(primary), 200)
        self.assertEqual(self.status_with(secondary), 200)
        self.assertEqual(self.keys.read_text(), f"primary: {primary}\nsecondary: {secondary}\n")
        self.assertEqual(self.keys.stat().st_mode & 0o777, 0o600)

    def test_a_read_only_key_has_a_slot_too(self):
        key = self.keys_command("rotate", "primary-readonly", "--key-file", self.keys).strip()
        self.assertEqual(self.status_with(key), 200)
        with self.server.client(key=key) as client:
            client.post("/dbs", {"id": "d"}).expect(403)

    def test_the_file_can_be_changed_without_the_server(self):
        key = self.keys_command("rotate", "secondary", "--key-file", self.keys, "--no-reload").strip()
        self.assertEqual(self.status_with(key), 401)
        self.keys_command("reload", key=self.primary)
        self.assertEqual(self.status_with(key), 200)

    def test_a_server_that_cannot_be_told_is_said(self):
        self.server.stop()
        said = self.keys_command("rotate", "secondary", "--key-file", self.keys, expected=1)
        self.assertIn("has the new secondary key", said)
        self.assertIn("SIGHUP", said)
        self.assertIn("secondary: ", self.keys.read_text())
        self.server = launcher.started("--key-file", self.keys, key=self.primary)
        self.addCleanup(self.server.stop)

    def test_what_makes_no_sense_is_refused(self):
        before = self.keys.read_text()
        self.assertIn("primary-readonly", self.keys_command("rotate", "third", "--key-file", self.keys, expected=2))
        self.keys_command("rotate", "primary", expected=2)
        self.assertIn("missing", self.keys_command("rotate", "primary", "--key-file", self.keys.with_name("missing"), expected=1))
        said = self.keys_command("reload", key=wire.WELL_KNOWN_KEY, expected=1)
        self.assertIn("401", said)
        self.assertEqual(self.keys.read_text(), before)


if __name__ == "__main__":
    unittest.main()
