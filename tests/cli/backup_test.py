"""`orrery backup`: back-ups of a running server, restored in a new life that every consumer survives."""

import pathlib
import shutil
import subprocess
import unittest

import commands
from harness import program
from harness.server import BINARY, Ended, Server


class BackupTest(commands.CommandLineTest):
    def setUp(self):
        # A server of its own: it is stopped and restored.
        self.room = pathlib.Path(self.root) / self.id().rsplit(".", 1)[-1]
        self.room.mkdir()
        self.data, self.backups = self.room / "served", self.room / "backups"
        self.server = Server("--backup-dir", self.backups, data_dir=self.data, log_path=self.room / "log")
        self.server.start()
        self.addCleanup(self.server.kill)
        super().setUp()

    def backup(self, *arguments, expected=0):
        environment = program.clean_environment({"ORRERY_ENDPOINT": self.server.endpoint.url,
                                                 "ORRERY_BACKUP_DIR": str(self.backups)})
        done = subprocess.run([BINARY, "backup", *map(str, arguments)], env=environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=commands.PATIENCE)
        self.assertEqual(done.returncode, expected, done.stderr)
        return done.stdout if expected == 0 else done.stderr

    def restore(self, *number):
        """The newest back-up, or that one, takes the place of the data."""
        self.connection.close()
        self.server.stop()
        shutil.rmtree(self.data)
        self.backup("restore", *number, "--data-dir", self.data)
        self.server.start()

    def test_back_ups_are_taken_listed_verified_and_pruned(self):
        container = self.container("c")
        for number in (1, 2, 3):
            container.fill(20, f"p{number}-")
            self.assertRegex(self.backup("create"), rf"^back-up {number} in {self.backups}: [\d.]+ MB, of which [\d.]+ MB are new$")
        lines = self.backup("list").splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["1", "2", "3"])
        self.assertRegex(lines[0], r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ .* life 1-[0-9a-f]{32}$")
        self.assertEqual(self.backup("verify").count("is as it was written"), 3)
        self.assertEqual(self.backup("prune", "--keep", 1), "2 back-ups taken away\n")
        self.assertEqual(len(self.backup("list").splitlines()), 1)
        self.assertIn("no back-up 1, but 3", self.backup("verify", 1, expected=1))

    def test_a_restore_has_the_documents_of_its_moment(self):
        container = self.container("c", commands.MANY_RANGES)
        container.fill(30)
        self.backup("create")
        container.fill(10, "later")
        self.backup("create")
        container.fill(10, "lost")
        self.restore(1)
        self.assertEqual(len(container.documents()), 30)
        self.restore()
        self.assertEqual(len(container.documents()), 40)

    def test_positions_of_before_miss_nothing_that_is_new(self):
        """A raw consumer, a lease of the processor and a copy, each beyond what the back-up has."""
        container, target = self.container("c"), self.container("target")
        container.fill(10)
        self.backup("create")
        container.fill(10, "lost")
        log = ("--exec", self.append_to("log"), "--state", self.path("leases"))
        copy = ("copy", container.name, target.name, "--state", self.path("copy"))
        feed = f"/{container.link}/docs"
        page = self.connection.get(feed, {"a-im": "Incremental feed"}).expect(200)
        self.assertEqual(page.json["_count"], 20)
        self.assertEqual(self.process(container, *log).returncode, 0)
        self.assertEqual(self.run_command(*copy).returncode, 0)
        self.restore()
        new = container.fill(12, "new")
        page = self.connection.get(feed, {"a-im": "Incremental feed", "if-none-match": page["etag"]}).expect(200)
        self.assertEqual([document["id"] for document in page.json["Documents"]], new)
        self.assertEqual(self.process(container, *log).returncode, 0)
        self.assertEqual(sorted(self.ids("log")[20:]), sorted(new))
        self.assertEqual(self.run_command(*copy).returncode, 0)
        copied = {document["id"] for document in target.documents()}
        self.assertLessEqual(set(new), copied)

    def test_data_is_never_replaced(self):
        self.container("c").fill(3)
        self.backup("create")
        self.assertIn("in use by orrery", self.backup("restore", "--data-dir", self.data, expected=1))
        self.connection.close()
        self.server.stop()
        self.assertIn("holds data already", self.backup("restore", "--data-dir", self.data, expected=1))
        mine = self.room / "mine"
        mine.mkdir()
        (mine / "letter").write_text("dear")
        self.assertIn("letter", self.backup("restore", "--data-dir", mine, expected=1))
        self.server.start()

    def test_a_restore_that_did_not_end_is_not_served(self):
        self.container("c").fill(3)
        self.backup("create")
        self.connection.close()
        self.server.stop()
        shutil.rmtree(self.data)
        self.data.mkdir(mode=0o700)
        (self.data / "unfinished-restore").write_text("")
        with self.assertRaises(Ended) as refused:
            self.server.start()
        self.assertIn("orrery backup restore", str(refused.exception))
        self.backup("restore", "--data-dir", self.data)
        self.server.start()

    def test_what_makes_no_sense_is_refused(self):
        self.assertIn("no directory", self.backup("list", "--backup-dir", self.room / "nowhere", expected=1))
        self.backup("restore", expected=2)
        self.backup("prune", expected=2)
        self.backup("prune", "--keep", 0, expected=2)
        with Server("--backup-dir", self.room / "other/deep", data_dir=self.room / "other",
                    log_path=self.room / "other-log") as inside:
            with self.assertRaises(Ended) as refused:
                inside.start()
            self.assertIn("is in the data directory", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
