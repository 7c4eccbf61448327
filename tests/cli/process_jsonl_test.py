"""`orrery process --jsonl`: files at rest have each change exactly once, whatever happens."""

import collections
import json
import random
import signal
import unittest

import commands
from commands import MANY_RANGES, wait_until
from harness import seeds

KILLS = 12


class JsonlTest(commands.CommandLineTest):
    def files(self):
        return sorted(path for path in self.path("files").glob("*.jsonl"))

    def rows(self):
        """(id, etag) of all documents at rest. Whole lines only, at any time."""
        found = []
        for path in self.files():
            try:
                text = path.read_text()
            except FileNotFoundError:
                # The new owner of a lease removes a file that its checkpoint does not count.
                continue
            self.assertTrue(text.endswith("\n"), path)
            for line in text.splitlines():
                document = json.loads(line)
                found.append((document["id"], document["_etag"]))
        return found

    def test_files_are_ended_by_count_and_when_nothing_is_left(self):
        container = self.container()
        written = container.fill(25)
        done = self.process(container, "--jsonl", self.path("files"), "--page-size", 5,
                            "--file-documents", 10)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([len(path.read_text().splitlines()) for path in self.files()], [10, 10, 5])
        self.assertEqual([name for name, _ in self.rows()], written)
        self.assertTrue(all(path.name.startswith("0-0000") for path in self.files()))
        self.assertEqual(self.status(container)["leases"][0]["pendingDocuments"], 0)

    def test_killed_again_and_again_each_change_is_there_once(self):
        seed = seeds.seed()
        chance = random.Random(seed)
        container = self.container(headers=MANY_RANGES)
        # Not in files: one who sleeps in the middle of writing there holds up all others.
        commands.Container(self.connection, self.database, "leases", "/id", defaultTtl=-1)
        place = ("--leases", f"{self.database}/leases")
        written = set()
        asleep = None
        for kill in range(KILLS):
            # Two at once, so that leases change hands; and one who has slept through the loss of
            # his, and wakes up when others are at work.
            running = [self.start_process(container, *place, "--jsonl", self.path("files"),
                                          "--page-size", 3, "--file-documents",
                                          chance.choice([4, 10, 1000])) for _ in range(2)]
            names = [f"d{kill}-{number}" for number in range(30)]
            for name in names:
                written.add((name, container.write(name)["_etag"]))
            goal = len(self.rows()) + chance.randrange(1, 20)
            wait_until(lambda: len(self.rows()) >= goal, f"some progress, seed {seed}")
            running[1].kill()
            if asleep:
                asleep.process.send_signal(signal.SIGCONT)
                asleep.kill() if chance.random() < 0.5 else asleep.stop()
            asleep = running[0]
            asleep.process.send_signal(signal.SIGSTOP)
        asleep.kill()
        done = self.process(container, *place, "--jsonl", self.path("files"))
        self.assertEqual(done.returncode, 0, done.stderr)
        counts = collections.Counter(self.rows())
        self.assertEqual({row for row, count in counts.items() if count > 1}, set(), seed)
        self.assertEqual(set(counts), written, seed)

    def test_a_stop_leaves_only_whole_files(self):
        container = self.container()
        written = container.fill(10)
        running = self.start_process(container, "--jsonl", self.path("files"), "--page-size", 2)
        wait_until(lambda: len(self.rows()) == 10, "all at rest")
        self.assertEqual(running.stop(), 0, running.errors)
        self.assertEqual([name for name, _ in self.rows()], written)
        self.assertEqual(list((self.path("files") / ".orrery").glob("*/*/part")), [])


if __name__ == "__main__":
    unittest.main()
