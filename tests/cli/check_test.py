"""`orrery check`: whether a store is sound, in a running server or in a data directory. Bit flips: tests/fault."""

import pathlib
import unittest

import commands
from harness.server import Server


class CheckTest(commands.CommandLineTest):
    def test_a_running_server_is_checked(self):
        container = self.container("c", commands.MANY_RANGES)
        container.fill(25)
        done = self.run_command("check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^sound: \d+ documents, \d+ ranges\n$")

    def test_a_directory_is_checked_when_no_server_has_it(self):
        data = pathlib.Path(self.directory) / "checked"
        with Server(data_dir=data, log_path=f"{data}-log") as own:
            own.start()
            with own.client() as client:
                client.post("/dbs", {"id": "d"}).expect(201)
                client.post("/dbs/d/colls", {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}}).expect(201)
            refused = self.run_command("check", "--data-dir", data)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("in use by orrery", refused.stderr)
            own.stop()
            before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file() and path.name != "LOG"}
            done = self.run_command("check", "--data-dir", data)
            self.assertEqual((done.returncode, done.stdout), (0, "sound: 0 documents, 1 range\n"), done.stderr)
            after = {path: path.read_bytes() for path in data.rglob("*") if path.is_file() and path.name != "LOG"}
            self.assertEqual({path for path in before if before[path] != after.get(path)}, set())

    def test_what_is_no_data_directory_is_said(self):
        nowhere = pathlib.Path(self.directory) / "nowhere"
        refused = self.run_command("check", "--data-dir", nowhere)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("holds no data of Orrery", refused.stderr)
        self.assertFalse(nowhere.exists())


if __name__ == "__main__":
    unittest.main()
