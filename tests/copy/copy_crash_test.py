"""`orrery copy` killed again and again: in the end the destination is the source, and no version of
a document was written twice."""

import unittest

from copies import TWO_RANGES, CopyTest, Writer

KILLS = 50


class CopyCrashTest(CopyTest):
    def run_and_kill(self, source, destination, *arguments):
        """Kills it somewhere between its first steps and its work: every other time not before it
        has written something. Whether it came to that."""
        run = self.start_copy(source, destination, "--page-size", "25", *arguments)
        if self.random.random() < 0.5:
            return run.kill_after(self.random.uniform(0.005, 0.150))
        heads = destination.heads()
        return run.kill_after(self.random.uniform(0, 0.050), lambda: destination.heads() != heads)

    def kill_until_through(self, source, destination, kills):
        """Starts it until it ends by itself, and kills it before as long as `kills` are left.
        How many there were."""
        killed = 0
        while killed < kills:
            if not self.run_and_kill(source, destination):
                return killed
            killed += 1
        self.copy(source, destination, "--page-size", "25")
        return killed

    def killed_rounds(self, path, wanted):
        source = self.container("src", throughput=TWO_RANGES)
        source.fill([{"id": f"d{i}", "pk": f"k{i % 97}", "region": f"r{i % 41}", "n": i}
                     for i in range(4000)])
        kills = 0
        for number in range(wanted):
            destination = self.destination(f"dst{number}", path)
            self.state = self.directory / f"state-{self.database}-{number}"
            kills += self.kill_until_through(source, destination, wanted - kills)
            self.assert_copied_once(source, destination)
            if kills >= wanted:
                break
        print(f"{self.database}: {kills} kills in {number + 1} copies", flush=True)
        self.assertEqual(kills, wanted)

    def test_killed_with_a_source_that_stands_still(self):
        self.killed_rounds("/region", KILLS)

    def test_killed_with_a_destination_keyed_by_id(self):
        self.killed_rounds("/id", KILLS // 2)

    def test_killed_while_writes_splits_and_merges_go_on(self):
        source, destination = self.container("src"), self.destination("dst")
        documents = [{"id": f"d{i}", "pk": f"k{i % 97}", "region": f"r{i % 41}"}
                     for i in range(1000)]
        source.fill(documents)
        writer = Writer(source, lambda n: {**self.random.choice(documents), "version": n})
        try:
            kills = 0
            for step in range(5):
                for _ in range(KILLS // 5):
                    kills += self.run_and_kill(source, destination, "--follow")
                ranges = source.ranges()
                if step % 2 == 0:
                    self.change_ranges("split", str(source), "--range", ranges[0])
                else:
                    self.change_ranges("merge", str(source), "--ranges", *ranges[:2])
        finally:
            versions = writer.stop()
        self.copy(source, destination, "--verify")
        self.assertEqual(destination.contents(), source.contents())
        written = destination.versions()
        print(f"{self.database}: {kills} kills, {versions} changes, {len(written)} written",
              flush=True)
        self.assertEqual(len(written), len({(each["id"], each.get("version")) for each in written}))
        self.assertEqual(kills, KILLS)


if __name__ == "__main__":
    unittest.main(verbosity=1)
