"""The command `orrery copy`: its effects and its error messages."""

import shutil
import subprocess
import unittest

from copies import TWO_RANGES, Container, CopyTest, Writer, is_position
from harness import wire
from harness.server import Server
from harness.waiting import wait_until


def some_documents(count, keys=20, regions=7):
    return [{"id": f"d{i}", "pk": f"k{i % keys}", "region": f"r{i % regions}", "n": i}
            for i in range(count)]


class CopyCommandTest(CopyTest):
    def test_copies_under_another_key_and_nothing_twice(self):
        source, destination = self.container("src", throughput=TWO_RANGES), self.destination("dst")
        source.fill(some_documents(500))
        run = self.copy(source, destination)
        self.assert_copied_once(source, destination)
        self.assertIn("500 documents copied", run.err)
        self.assertIn("up to date", run.err)
        self.assertEqual(run.out, "")

    def test_goes_on_where_it_ended(self):
        source, destination = self.container("src"), self.destination("dst")
        source.fill(some_documents(200))
        self.copy(source, destination)
        source.upsert({"id": "d7", "pk": "k7", "region": "r0", "n": "changed"})
        source.upsert({"id": "new", "pk": "k7", "region": "r1"})
        run = self.copy(source, destination)
        self.assertIn("2 documents copied", run.err)
        self.assertEqual(destination.contents(), source.contents())
        self.assertEqual(len(destination.versions()), 202)

    def test_positions_outlive_the_state(self):
        # The state says where to read on; that nothing is written twice does not depend on it.
        source, destination = self.container("src", throughput=TWO_RANGES), self.destination("dst")
        source.fill(some_documents(300))
        self.copy(source, destination)
        self.state = self.directory / "another-state"
        run = self.copy(source, destination)
        self.assertIn("0 documents copied", run.err)
        self.assertIn("300 were there already", run.err)
        self.assert_copied_once(source, destination)

    def test_bytes_stay_as_they_are(self):
        source, destination = self.container("src"), self.destination("dst", "/other")
        text = ('{ "id" : "x","pk":"k", "big":12345678901234567890,"long":9007199254740993, '
                '"tiny":1.50e-300,"zero":-0, "escape":"\\u00e9\\/", "_mine": [ 1 ,2 ],"ttl":-1 }')
        source.upsert({"id": "x", "pk": "k"}, text)
        self.copy(source, destination, "--verify")
        answer = destination.connection.get(f"/{destination.link}/docs/x", {"x-ms-documentdb-partitionkey": "[{}]"})
        self.assertEqual(answer.status, 200, answer)
        body = answer.body.decode()
        self.assertEqual(body[:body.index(',"_rid"')], text[:-2])

    def test_keys_of_all_kinds(self):
        source, destination = self.container("src", "/id"), self.destination("dst", "/a/b")
        values = [1, 1.0, 1e0, -0.0, 0, "1", "", "é\u0000\u2028", True, False, None]
        for i, value in enumerate(values):
            source.upsert({"id": f"v{i}", "a": {"b": value}})
        for i, odd in enumerate([{"b": {"c": 1}}, {"b": []}, {}, "text", None]):
            source.upsert({"id": f"o{i}", "a": odd})
        source.upsert({"id": "none"})
        self.copy(source, destination, "--verify")
        self.assert_copied_once(source, destination)

    def test_destination_keyed_by_id_is_compared(self):
        source, destination = self.container("src"), self.destination("dst", "/id")
        source.fill(some_documents(300))
        self.copy(source, destination)
        self.assert_copied_once(source, destination)
        self.assertEqual([each["id"] for each in destination.positions() if "areas" not in
                          each["orreryPosition"]], [])
        # Read again from the beginning, with some that have changed.
        source.upsert({"id": "d7", "pk": "k7", "region": "r0", "n": "changed"})
        self.state = self.directory / "state-again"
        run = self.copy(source, destination, "--verify")
        self.assertIn("1 documents copied", run.err)
        self.assertIn("299 were there already", run.err)
        self.assertEqual(len(destination.versions()), 301)

    def test_transactions_larger_than_a_batch_with_its_position(self):
        source, destination = self.container("src"), self.destination("dst", "/region")
        source.batch([{"id": f"d{i}", "pk": "k", "region": "r"} for i in range(100)])
        big = "x" * 20_000
        source.batch([{"id": f"b{i}", "pk": "k", "region": "r", "big": big} for i in range(100)])
        self.copy(source, destination)
        self.assert_copied_once(source, destination)

    def test_document_that_fills_a_batch_alone(self):
        source, destination = self.container("src"), self.destination("dst")
        size = (2 << 20) - 60
        source.upsert({"id": "huge", "pk": "k", "region": "r", "big": "x" * size})
        source.upsert({"id": "small", "pk": "k", "region": "r"})
        self.copy(source, destination)
        self.state = self.directory / "state-after-huge"
        self.copy(source, destination, "--verify")
        self.assert_copied_once(source, destination)

    def test_unique_keys_leave_room_for_positions(self):
        unique = {"uniqueKeys": [{"paths": ["/mail", "/deep/er"]}]}
        source = self.container("src", throughput=TWO_RANGES)
        destination = self.destination("dst", uniqueKeyPolicy=unique)
        source.fill([{"id": f"d{i}", "pk": f"k{i}", "region": "r", "mail": f"m{i}"}
                     for i in range(50)])
        self.copy(source, destination)
        self.assert_copied_once(source, destination)
        self.assertEqual(len(destination.positions()), 3)  # Of two ranges, and the ledger.

    def test_unique_key_violation_is_told_and_can_be_mended(self):
        unique = {"uniqueKeys": [{"paths": ["/mail"]}]}
        source = self.container("src")
        destination = self.destination("dst", uniqueKeyPolicy=unique)
        source.upsert({"id": "a", "pk": "1", "region": "r", "mail": "m"})
        source.upsert({"id": "b", "pk": "2", "region": "r", "mail": "m"})
        run = self.copy(source, destination, status=1)
        self.assertIn("document 'b'", run.err)
        self.assertIn("unique key", run.err)
        source.upsert({"id": "b", "pk": "2", "region": "r", "mail": "other"})
        self.copy(source, destination, "--verify")

    def test_split_and_merge_of_the_source(self):
        source, destination = self.container("src"), self.destination("dst")
        source.fill(some_documents(300))
        self.copy(source, destination)
        self.change_ranges("split", str(source), "--range", "0")
        source.fill([{**each, "round": 2} for each in some_documents(300)[::3]])
        self.copy(source, destination)
        left, right = source.ranges()
        self.change_ranges("merge", str(source), "--ranges", left, right)
        source.fill([{**each, "round": 3} for each in some_documents(300)[::5]])
        self.copy(source, destination)
        self.assertEqual(destination.contents(), source.contents())
        self.assertEqual(len(destination.versions()), 300 + 100 + 60)
        # All read again, by one lease for what three had before.
        self.state = self.directory / "state-after-merge"
        run = self.copy(source, destination, "--verify")
        self.assertIn("0 documents copied", run.err)
        self.assertEqual(len(destination.versions()), 460)

    def test_while_writes_and_splits_go_on(self):
        source, destination = self.container("src"), self.destination("dst")
        source.fill(some_documents(1500))
        documents = some_documents(1500)
        writer = Writer(source, lambda n: {**self.random.choice(documents), "version": n})
        try:
            run = self.start_copy(source, destination, "--follow", "--page-size", "20")
            for _ in range(3):
                before = writer.versions
                wait_until(lambda: writer.versions > before + 50 or writer.failure, 30, "writes")
                self.change_ranges("split", str(source), "--range", source.ranges()[0])
            left, right = source.ranges()[:2]
            self.change_ranges("merge", str(source), "--ranges", left, right)
        finally:
            versions = writer.stop()
        wait_until(lambda: destination.contents() == source.contents(), 30, "caught up", pause=0.2)
        self.assertEqual(run.interrupt(), 0, run.err)
        written = destination.versions()
        self.assertEqual(len(written), len({(each["id"], each.get("version")) for each in written}))
        self.assertLessEqual(len(written), 1500 + versions)

    def test_two_share_the_work(self):
        source = self.container("src", throughput=TWO_RANGES * 2)
        destination = self.destination("dst")
        source.fill(some_documents(3000, keys=200))
        shared = ["--leases", f"{self.database}/leases", "--create", "--page-size", "20"]
        runs = [self.start_copy(source, destination, *shared, state=False) for _ in range(2)]
        for run in runs:
            self.assertEqual(run.wait(), 0, run.err)
        self.assert_copied_once(source, destination)

    def test_one_takes_over_from_one_that_was_killed(self):
        source, destination = self.container("src", throughput=TWO_RANGES), self.destination("dst")
        source.fill(some_documents(1000, keys=200))
        shared = ["--leases", f"{self.database}/leases", "--create", "--page-size", "10",
                  "--host", "one"]
        run = self.start_copy(source, destination, *shared, state=False)
        wait_until(lambda: len(destination.documents()) > 50, 30, "documents")
        run.process.kill()
        run.wait()
        self.copy(source, destination, *shared, state=False)
        self.assert_copied_once(source, destination)

    def test_interrupted(self):
        source, destination = self.container("src"), self.destination("dst")
        source.fill(some_documents(3000))
        run = self.start_copy(source, destination, "--page-size", "5")
        wait_until(lambda: destination.documents(), 30, "documents")
        self.assertEqual(run.interrupt(), 130, run.err)
        self.assertNotIn("up to date", run.err)
        self.copy(source, destination, "--verify")
        self.assert_copied_once(source, destination)

    def test_final_leaves_nothing_behind(self):
        source, destination = self.container("src", throughput=TWO_RANGES), self.destination("dst")
        source.fill(some_documents(100))
        self.copy(source, destination)
        self.assertGreater(len(destination.positions()), 1)
        self.copy(source, destination, "--final", "--verify")
        self.assertEqual(destination.positions(), [])
        self.assert_copied_once(source, destination)
        # The leases still know where they are.
        source.upsert({"id": "later", "pk": "k", "region": "r"})
        run = self.copy(source, destination)
        self.assertIn("1 documents copied", run.err)

    def test_positions_do_not_expire_and_are_not_copied(self):
        source = self.container("src")
        first = self.destination("first", defaultTtl=1000)
        second = self.destination("second", "/pk")
        source.fill(some_documents(20))
        self.copy(source, first)
        self.assertEqual({each["ttl"] for each in first.positions()}, {-1})
        self.state = self.directory / "state-second"
        self.copy(first, second, "--verify")
        self.assertEqual(second.contents(), source.contents())

    def test_verify_finds_every_difference(self):
        source, destination = self.container("src"), self.destination("dst")
        source.fill(some_documents(30))
        # The same id under two keys of the source has one place in the destination.
        source.upsert({"id": "d1", "pk": "other", "region": "r1"})
        destination.upsert({"id": "stranger", "region": "r1"})
        self.copy(source, destination)
        destination.upsert({"id": "d3", "region": "r3", "spoilt": True})
        answer = destination.connection.delete(f"/{destination.link}/docs/d4", {"x-ms-documentdb-partitionkey": '["r4"]'})
        self.assertEqual(answer.status, 204, answer)
        run = self.copy(source, destination, "--verify", "--final", status=1)
        for line in ("missing in the destination: 'd4', partition key [\"r4\"]",
                     "different: 'd3'", "only in the destination: 'stranger'",
                     "several documents of the source are one in the destination: 'd1'"):
            self.assertIn(line, run.out)
        self.assertTrue(destination.positions(), "what differs is not final")

    def test_creates_what_is_not_there(self):
        source = self.container("src", defaultTtl=500)
        source.fill(some_documents(30))
        target = f"{self.database}-made/dst"
        self.copy(source, target, "--create", "--partition-key", "/region", "--partition-key",
                  "/n", "--verify")
        answer = self.admin.get(f"/dbs/{self.database}-made/colls/dst")
        self.assertEqual(answer.json["partitionKey"]["paths"], ["/region", "/n"])
        self.assertEqual(answer.json["defaultTtl"], 500)

    def test_destination_made_anew_is_filled_anew(self):
        source, destination = self.container("src"), self.destination("dst")
        source.fill(some_documents(30))
        self.copy(source, destination)
        self.assertEqual(self.admin.delete(f"/{destination.link}").status, 204)
        destination = self.destination("dst")
        self.copy(source, destination, "--verify")
        self.assert_copied_once(source, destination)

    def test_state_of_a_server_that_is_gone_does_not_count(self):
        """A new server gives its first container the same rid as the last one did."""
        source = self.container("src")
        source.fill(some_documents(30))
        for name in ("first", "second"):
            with Server(data_dir=self.directory / f"data-{name}", log_path=self.directory / f"log-{name}") as other:
                other.start()
                run = self.copy(source, "d/dst", "--create", "--group", "mine", "--to-connection",
                                f"AccountEndpoint=http://127.0.0.1:{other.port}/;"
                                f"AccountKey={wire.WELL_KNOWN_KEY};", "--verify", "--final")
                self.assertIn("30 documents copied", run.err)

    def test_source_made_anew_is_another_one(self):
        source, destination = self.container("src"), self.destination("dst")
        source.fill(some_documents(30))
        self.copy(source, destination, "--group", "mine")
        self.assertEqual(self.admin.delete(f"/{source.link}").status, 204)
        source = self.container("src")
        source.fill(some_documents(10))
        run = self.copy(source, destination, "--group", "mine", status=1)
        self.assertIn("Take another --group", run.err)
        self.copy(source, destination, "--group", "other")

    def test_a_source_that_is_put_back_from_a_copy_hides_nothing_new(self):
        data, copied = self.directory / "restored", self.directory / "restored-copy"
        with Server(data_dir=data, log_path=self.directory / "restored-log") as other:
            other.start()
            connection = wire.connect(other.port)
            self.addCleanup(connection.close)
            made = connection.post("/dbs", b'{"id": "d"}')
            self.assertEqual(made.status, 201, made)
            body = b'{"id": "src", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}'
            self.assertEqual(connection.post("/dbs/d/colls", body).status, 201)
            source, destination = Container(other.port, "d", "src"), self.destination("dst")
            source.path = ("pk",)
            self.addCleanup(source.connection.close)

            def restart(change):
                source.connection.close()
                other.stop()
                change()
                other.start()

            def copy(*arguments, status=0):
                there = f"AccountEndpoint=http://127.0.0.1:{self.server.port}/;AccountKey={wire.WELL_KNOWN_KEY};"
                return self.copy("d/src", destination, "--to-connection", there, *arguments,
                                 status=status, server=other)

            source.fill(some_documents(30))
            restart(lambda: subprocess.run(["cp", "-a", data, copied], check=True))
            for i in range(10):
                source.upsert({"id": f"lost{i}", "pk": "k1", "region": "r1"})
            self.assertIn("40 documents copied", copy().err)
            restart(lambda: (shutil.rmtree(data), subprocess.run(["cp", "-a", copied, data], check=True)))
            for i in range(12):
                source.upsert({"id": f"new{i}", "pk": "k1", "region": "r1"})
            run = copy()
            self.assertIn("12 documents copied", run.err)
            self.assertIn("was put back from a copy", run.err)
            self.assertIn("--verify", run.err)
            found = {each["id"] for each in destination.contents()}
            self.assertLessEqual({f"new{i}" for i in range(12)}, found)
            run = copy("--verify", status=1)
            self.assertIn("10 are only in the destination", run.err)
            self.assertNotIn("was put back from a copy", run.err)

    def test_to_another_server(self):
        source = self.container("src")
        source.fill(some_documents(50))
        with Server(data_dir=self.directory / "other", log_path=self.directory / "other-log") as other:
            other.start()
            self.copy(source, "d/dst", "--create", "--to-connection",
                      f"AccountEndpoint=http://127.0.0.1:{other.port}/;AccountKey={wire.WELL_KNOWN_KEY};",
                      "--verify", "--final")
            connection = wire.connect(other.port)
            self.addCleanup(connection.close)
            documents = connection.all_of("/dbs/d/colls/dst/docs", "Documents")[0]
            self.assertEqual(len(documents), 50)

    def test_waits_for_a_destination_that_is_away(self):
        source = self.container("src")
        source.fill(some_documents(500))
        with Server(data_dir=self.directory / "away", log_path=self.directory / "away-log") as other:
            other.start()
            endpoint = f"http://127.0.0.1:{other.port}/"
            target = ["d/dst", "--create", "--partition-key", "/region", "--to-endpoint", endpoint]
            run = self.start_copy(source, *target, "--page-size", "5", "--follow")
            connection = wire.connect(other.port)
            self.addCleanup(connection.close)
            wait_until(lambda: connection.get("/dbs/d/colls/dst/docs").status == 200, 30,
                       "the copy has begun")
            connection.close()
            other.kill()
            source.upsert({"id": "later", "pk": "k", "region": "r"})
            other.start()
            wait_until(lambda: len([each for each in connection.all_of("/dbs/d/colls/dst/docs", "Documents")[0]
                                    if not is_position(each)]) == 501, 60,
                "all is there", pause=0.1)
            self.assertEqual(run.interrupt(), 0, run.err)
            self.copy(source, *target, "--verify")

    def test_default_state_directory(self):
        source, destination = self.container("src"), self.destination("dst")
        source.fill(some_documents(10))
        self.copy(source, destination, state=False)
        groups = list((self.directory / "xdg" / "orrery" / "copy").iterdir())
        self.assertEqual(len(groups), 1)
        self.assertIn("0 documents copied", self.copy(source, destination, state=False).err)

    def test_one_process_per_state_directory(self):
        source, destination = self.container("src"), self.destination("dst")
        run = self.start_copy(source, destination, "--follow")
        wait_until((self.state / "running").exists, 30, "the first runs")
        wait_until(lambda: destination.documents(), 30, "the first has begun")
        second = self.copy(source, destination, status=1)
        self.assertIn("another 'orrery copy'", second.err)
        self.assertEqual(run.interrupt(), 0)

    def test_mistakes_are_told_in_words(self):
        source, destination = self.container("src"), self.destination("dst")
        nowhere = f"{self.database}/nowhere"
        for arguments, status, words in [
                ((nowhere, destination), 1, f"there is no container {nowhere}"),
                ((source, nowhere), 1, f"there is no container {nowhere}; --create makes it"),
                ((source, source), 1, "into itself"),
                ((source, "nonsense"), 2, "nonsense"),
                ((source, destination, "--leases", nowhere), 1, f"no container {nowhere}"),
                ((source, destination, "--leases", str(destination)), 1, "container of their own")]:
            state = "--leases" not in arguments
            run = self.copy(*arguments, status=status, state=state)
            self.assertIn(words, run.err)
            self.assertEqual(run.err.count("\n"), 1, run.err)


if __name__ == "__main__":
    unittest.main(verbosity=1)
