"""`orrery process` with commands: every outcome, two that share, signals, progress, wrong options."""

import collections
import functools
import json
import os
import pty
import signal
import subprocess
import threading
import unittest

import commands
from commands import MANY_RANGES, QUICK, wait_until
from harness import proc, wire
from harness.server import Server

# Notes each batch that it gets in a file, and answers as its second argument says.
NOTING = """
import json, os, sys
log, rule = sys.argv[1], sys.argv[2]
batch = [json.loads(line)["id"] for line in sys.stdin]
first = not os.path.exists(log)
with open(log, "a") as out:
    out.write(json.dumps(batch) + "\\n")
if rule == "one-by-one" and len(batch) > 1:
    print(json.dumps({"done_until": 1}))
elif rule == "reject-poison":
    print(json.dumps({"reject": [i for i, name in enumerate(batch) if name.startswith("poison")],
                      "reason": "it is poison"}))
elif rule == "later" and first:
    print(json.dumps({"retry_after_ms": 20, "reason": "not before tea"}))
elif rule == "stop" and first:
    print(json.dumps({"stop": True}))
elif rule == "75" and first:
    sys.exit(75)
elif rule == "fail-once" and first:
    sys.exit(9)
"""

# The same as a program that stays.
STREAM = """
import json, os, sys
log = sys.argv[1]
with open(log + ".starts", "a") as out:
    out.write(f"{os.getpid()} {os.environ['ORRERY_LEASE']}\\n")
for line in sys.stdin:
    batch = json.loads(line)
    assert set(batch) == {"lease", "range", "epoch", "from", "to", "documents"}, batch
    ids = [document["id"] for document in batch["documents"]]
    if "killer" in ids:
        os._exit(3)
    with open(log, "a") as out:
        out.write(json.dumps(ids) + "\\n")
    rejected = [i for i, name in enumerate(ids) if name == "poison"]
    print(json.dumps({"reject": rejected, "reason": "poison"} if rejected else {}), flush=True)
"""


class ExecTest(commands.CommandLineTest):
    def noting(self, rule):
        return f"{self.script('noting.py', NOTING)} {self.path('log')} {rule}"

    def batches(self):
        return [json.loads(line) for line in self.lines("log")]

    def delivered(self):
        return [name for batch in self.batches() for name in batch]

    def test_everything_arrives_once_and_in_order(self):
        container = self.container()
        written = container.fill(20)
        done = self.process(container, "--page-size", 7, "--exec", self.append_to("out"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.ids("out"), written)
        # Positions are kept: only what is new comes next.
        container.write("new")
        self.process(container, "--exec", self.append_to("out"))
        self.assertEqual(self.ids("out"), written + ["new"])

    def test_who_begins_elsewhere_than_asked_is_told(self):
        container = self.container()
        container.fill(3)
        command = ("--leases", f"{self.database}/leases", "--create-leases", "--group", "told.",
                   "--exec", self.append_to("out"))
        self.assertEqual(self.process(container, *command).stderr, "")
        container.write("new")
        again = self.process(container, *command)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(self.ids("out")), 4)
        self.assertRegex(again.stderr, r"--from beginning is not used: the group 'told\.' goes on at the "
                                       r"positions of its 1 lease, last written \d+ s ago")
        # The command that the message names works as it stands there.
        reset = again.stderr.split("'orrery ")[1].split("'")[0].split()
        self.assertEqual(reset[:3], ["leases", "reset", container.name])
        done = self.run_command(*reset)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.process(container, *command)
        self.assertEqual(len(self.ids("out")), 8)
        # Without --from there is nothing to warn of.
        quiet = self.run_command("process", container.name, "--until-caught-up", *QUICK, *command)
        self.assertEqual((quiet.returncode, quiet.stderr), (0, ""))

    def test_a_handler_knows_what_it_gets(self):
        container = self.container()
        container.fill(3)
        done = self.process(container, "--page-size", 2, "--exec",
                            "echo $ORRERY_LEASE $ORRERY_RANGE $ORRERY_EPOCH $ORRERY_COUNT "
                            "f=$ORRERY_FROM t=$ORRERY_TO")
        lines = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual([line[:4] for line in lines],
                         [["0", "0", lines[0][2], "2"], ["0", "0", lines[0][2], "1"]], done)
        self.assertGreater(int(lines[0][2]), 0)
        # Batches follow each other without a gap.
        self.assertEqual(lines[0][5].removeprefix("t="), lines[1][4].removeprefix("f="))

    def test_its_output_goes_through_and_large_batches_do_not_get_stuck(self):
        container = self.container()
        written = container.fill(60, text="x" * 10_000)
        done = self.process(container, "--exec", "cat; echo on stderr >&2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([json.loads(line)["id"] for line in done.stdout.splitlines()], written)
        self.assertIn("on stderr", done.stderr)

    def test_exit_code_75_is_later(self):
        container = self.container()
        written = container.fill(4)
        done = self.process(container, "--exec", self.noting("75"), "--dead-letters",
                            self.path("dead.jsonl"), "--max-attempts", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.batches(), [written, written])
        self.assertIn("another time (75)", done.stderr)
        self.assertEqual(self.lines("dead.jsonl"), [])

    def test_another_exit_code_is_a_failure_that_is_tried_again(self):
        container = self.container()
        written = container.fill(4)
        done = self.process(container, "--exec", self.noting("fail-once"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.batches(), [written, written])
        self.assertIn("exit code 9", done.stderr)

    def test_the_guilty_document_is_found_and_put_aside_in_a_file(self):
        container = self.container()
        names = container.fill(3, "a") + container.fill(1, "poison") + container.fill(3, "b")
        done = self.process(
            container, "--max-attempts", 1, "--dead-letters", self.path("dead.jsonl"), "--exec",
            f"t=$(mktemp); cat > $t; grep -q poison $t && exit 3; cat $t >> {self.path('out')}")
        self.assertEqual(done.returncode, 4, done.stderr)  # There were dead letters.
        self.assertEqual(self.ids("out"), [name for name in names if name != "poison0"])
        letters = [json.loads(line) for line in self.lines("dead.jsonl")]
        self.assertEqual([letter["document"]["id"] for letter in letters], ["poison0"])
        self.assertIn("exit code 3", letters[0]["error"])

    def test_rejected_documents_go_to_a_container(self):
        container = self.container()
        dead = commands.Container(self.connection, self.database, "dead", "/id")
        container.fill(2, "a"), container.fill(2, "poison"), container.fill(1, "b")
        done = self.process(container, "--dead-letters", dead.name, "--exec",
                            self.noting("reject-poison"))
        self.assertEqual(done.returncode, 4, done.stderr)
        letters = dead.documents()
        self.assertEqual(sorted(letter["document"]["id"] for letter in letters),
                         ["poison0", "poison1"])
        self.assertEqual({letter["error"] for letter in letters}, {"it is poison"})
        self.assertEqual(len(self.batches()), 1)

    def test_a_part_of_a_batch_can_be_done(self):
        container = self.container()
        written = container.fill(3)
        self.assertEqual(self.process(container, "--exec", self.noting("one-by-one")).returncode, 0)
        self.assertEqual(self.batches(), [written, written[1:], written[2:]])

    def test_a_handler_can_ask_for_time_or_give_the_lease_up(self):
        for rule in ("later", "stop"):
            with self.subTest(rule):
                container = self.container(rule)
                written = container.fill(2)
                done = self.process(container, "--exec", self.noting(rule))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.batches(), [written, written])
                self.path("log").unlink()
                self.assertEqual("not before tea" in done.stderr, rule == "later")

    def test_what_takes_too_long_is_killed_and_has_failed(self):
        container = self.container()
        container.write("slow")
        done = self.process(container, "--batch-timeout", "300ms", "--max-attempts", 1,
                            "--dead-letters", self.path("dead.jsonl"),
                            "--exec", f"echo $$ >> {self.path('pids')}; sleep 1000")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(len(self.lines("dead.jsonl")), 1)
        for pid in self.lines("pids"):
            self.assertFalse(proc.is_running(pid), pid)

    def test_a_stream_keeps_one_process_per_lease_and_restarts_it(self):
        container = self.container()
        names = container.fill(3, "a") + [container.write("poison")["id"]] + container.fill(2, "b")
        command = f"{self.script('stream.py', STREAM)} {self.path('log')}"
        done = self.process(container, "--page-size", 2, "--dead-letters",
                            self.path("dead.jsonl"), "--exec-stream", command)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(self.delivered(), names)
        self.assertEqual(len(self.lines("log.starts")), 1)
        self.assertEqual([json.loads(line)["document"]["id"] for line in self.lines("dead.jsonl")],
                         ["poison"])

        container.write("killer"), container.write("z")
        done = self.process(container, "--max-attempts", 2, "--dead-letters",
                            self.path("dead.jsonl"), "--exec-stream", command)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(self.delivered(), names + ["z"])
        self.assertIn("without an answer", done.stderr)

    def test_lanes_run_batches_of_different_keys_at_once(self):
        container = self.container()
        written = container.fill(40)
        for form in ("--exec", "--exec-stream"):
            with self.subTest(form):
                command = (self.noting("done") if form == "--exec" else
                           f"{self.script('stream.py', STREAM)} {self.path('log')}")
                done = self.process(container, "--lanes", 4, "--balance", "weighted", "--group",
                                    form, form, command)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(sorted(self.delivered()), sorted(written))
                self.assertGreater(len(self.batches()), 1)
                self.path("log").unlink()

    def test_rare_checkpoints_are_caught_up_with_all_the_same(self):
        container = self.container()
        written = container.fill(10)
        for every in ("1000", "1h"):
            done = self.process(container, "--group", every, "--page-size", 2,
                                "--checkpoint-every", every, "--exec", self.append_to(every))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.ids(every), written)
            self.assertEqual(self.status(container, "--state", self.path("state"), "--group",
                                         every)["leases"][0]["pendingDocuments"], 0)

    def test_all_versions(self):
        container = self.container(changeFeedPolicy={"retentionDuration": 10})
        running = self.start_command("process", container.name, "--state", self.path("state"),
                                     *QUICK, "--all-versions", "--exec", self.append_to("out"))
        wait_until(lambda: [lease for lease in self.status(container)["leases"] if lease["owner"]],
                   "the host has its lease")
        for n in range(3):
            container.write("a", n=n)
        wait_until(lambda: len(self.lines("out")) == 3, "three versions")
        versions = [json.loads(line)["current"]["n"] for line in self.lines("out")]
        self.assertEqual(versions, [0, 1, 2])
        self.assertEqual(running.stop(), 0)


class SharingTest(commands.CommandLineTest):
    def test_two_share_and_one_is_killed(self):
        container = self.container(headers=MANY_RANGES)
        self.assertGreater(container.range_count(), 1)
        place = ("--leases", f"{self.database}/leases")
        both = [self.start_command("process", container.name, "--from", "beginning", *QUICK, *place,
                                   "--create-leases", "--host", name, "--exec",
                                   self.append_to(name)) for name in ("one", "two")]
        owners = lambda: collections.Counter(
            lease["owner"] for lease in self.status(container, *place)["leases"])
        wait_until(lambda: self.can_be_shown(container, place) and set(owners()) == {"one", "two"},
                   "both have leases")
        written = container.fill(60, "before")
        wait_until(lambda: self.lines("one") and self.lines("two"), "both work")
        both[0].kill()
        written += container.fill(60, "after")
        wait_until(lambda: set(written) <= set(self.ids("one") + self.ids("two")),
                   "everything arrives")
        self.assertEqual(set(owners()), {"two"})
        self.assertEqual(both[1].stop(), 0, both[1].errors)
        self.assertEqual(set(owners()), {None})

    def can_be_shown(self, container, place):
        """Whether one of them has made the lease container."""
        return self.run_command("leases", "status", container.name, *place).returncode == 0

    def test_leases_may_be_on_another_server(self):
        container = self.container()
        written = container.fill(3)
        with Server(data_dir=self.path("other-data"), log_path=self.path("other-log")) as other:
            other.start()
            place = ("--leases", "state/leases", "--leases-connection",
                     f"AccountEndpoint=http://127.0.0.1:{other.port}/;AccountKey={wire.WELL_KNOWN_KEY}")
            done = self.process(container, *place, "--create-leases", "--exec",
                                self.append_to("out"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.ids("out"), written)
            self.assertEqual(self.status(container, *place)["leases"][0]["pendingDocuments"], 0)
            there = wire.connect(other.port)
            made = there.get("/dbs/state/colls/leases").json
            there.close()
        self.assertEqual((made["partitionKey"]["paths"], made["defaultTtl"]), (["/id"], -1))

    def test_caught_up_means_what_was_there_at_the_start(self):
        container = self.container()
        before = container.fill(50)
        ended = threading.Event()

        def write_on():
            own = wire.connect(self.server.port)
            writer = object.__new__(commands.Container)
            writer.connection, writer.name, writer.link = own, container.name, container.link
            number = 0
            while not ended.is_set():
                writer.write(f"later{number}")
                number += 1
            own.close()

        thread = threading.Thread(target=write_on)
        thread.start()
        try:
            # About as fast as the writer: there is nearly always something left.
            done = self.process(container, "--page-size", 20, "--rate", 1000, "--exec",
                                self.append_to("out"))
        finally:
            ended.set()
            thread.join()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(set(before), set(self.ids("out")))


class SignalsTest(commands.CommandLineTest):
    def test_the_first_signal_lets_a_batch_end_and_gives_leases_back(self):
        container = self.container()
        container.fill(3)
        running = self.start_process(
            container, "--exec",
            f"cat > {self.path('begun')}; until [ -e {self.path('go')} ]; do sleep 0.02; done; "
            f"touch {self.path('ended')}")
        wait_until(lambda: self.lines("begun"), "the batch runs")
        running.process.send_signal(signal.SIGINT)
        self.path("go").touch()
        self.assertEqual(running.wait(), 0, running.errors)
        self.assertTrue(self.path("ended").exists())
        lease = self.status(container)["leases"][0]
        self.assertEqual((lease["owner"], lease["pendingDocuments"]), (None, 0))

    def test_after_the_grace_period_a_batch_is_killed_and_comes_again(self):
        container = self.container()
        container.fill(3)
        running = self.start_process(container, "--until-caught-up", "--grace", "200ms", "--exec",
                                     f"cat > {self.path('begun')}; sleep 1000")
        wait_until(lambda: self.lines("begun"), "the batch runs")
        self.assertEqual(running.stop(), 3, running.errors)  # It is not caught up.
        lease = self.status(container)["leases"][0]
        self.assertEqual((lease["owner"], lease["pendingDocuments"]), (None, 3))

    def test_the_second_signal_ends_at_once(self):
        container = self.container()
        container.fill(3)
        running = self.start_process(container, "--grace", "1h", "--exec",
                                     f"echo $$ > {self.path('begun')}; sleep 1000")
        wait_until(lambda: self.lines("begun"), "the batch runs")
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: running.process.send_signal(signal.SIGTERM) or not running.alive(),
                   "the end")
        self.assertEqual(running.wait(), 128 + signal.SIGTERM)
        # Nobody is left behind.
        wait_until(lambda: not proc.is_running(self.lines("begun")[0]), "the child's end")


class TerminalTest(commands.CommandLineTest):
    def test_progress_is_for_terminals(self):
        container = self.container()
        container.fill(5)
        arguments = ("process", container.name, "--from", "beginning", "--until-caught-up", *QUICK,
                     "--exec", "cat > /dev/null")
        main, terminal = pty.openpty()
        shown = bytearray()
        with subprocess.Popen([commands.BINARY, *arguments, "--group", "t"], env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=terminal) as process:
            os.close(terminal)
            try:
                while piece := os.read(main, 4096):
                    shown += piece
            except OSError:
                pass  # The last one has closed it.
            process.wait(commands.PATIENCE)
        os.close(main)
        self.assertEqual(process.returncode, 0)
        self.assertIn(f"process {container.name}: ".encode(), bytes(shown))
        self.assertIn(b" documents, ", bytes(shown))

        piped = self.run_command(*arguments, "--group", "p")
        self.assertEqual((piped.returncode, piped.stderr), (0, ""))


class WrongOptionsTest(commands.CommandLineTest):
    def assert_refused(self, *arguments, words, code=1, lines=1):
        done = self.run_command("process", *arguments)
        self.assertEqual(done.returncode, code, done)
        self.assertIn(words, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), lines, done.stderr)

    def test_one_line_says_what_to_do(self):
        name = self.container().name
        refused = functools.partial(self.assert_refused, code=2)
        refused(name, words="one of --exec, --exec-stream, --webhook, --jsonl")
        refused(name, "--exec", "cat", "--jsonl", "x", words="one of --exec")
        refused(name, "--exec", "cat", "--max-attempts", "3", words="needs --dead-letters")
        refused(name, "--exec", "cat", "--from", "yesterday", words="no place to begin")
        refused(name, "--exec", "cat", "--renew-interval", "often", words="--renew-interval")
        refused(name, "--exec", "cat", "--renew-interval", "50s", words="half of")
        refused(name, "--exec", "cat", "--batch-timeout", "x", words="--batch-timeout")
        refused(name, "--exec", "cat", "--checkpoint-every", "x", words="--checkpoint-every")
        refused(name, "--exec", "cat", "--all-versions", "--from", "beginning",
                words="not in the past")
        refused(name, "--webhook", "localhost/x", words="no URL")
        refused(name, "--webhook", "http://h", "--header", "x", words="Name: value")
        refused(name, "--jsonl", "/proc/nowhere", words="cannot write in /proc/nowhere",
                code=1)
        refused(name, "--jsonl", "x", "--lanes", "2", words="--lanes must be 1")
        refused(name, "--exec", "cat", "--dead-letters", "/no/where.jsonl",
                words="cannot write /no/where.jsonl", code=1)
        # Wrong usage comes with a hint.
        refused(name, "--exec", "cat", "--header", "a: b", words="--webhook", lines=2)
        refused(name, "--exec", "cat", "--balance", "fair", lines=2,
                words='--balance must be equal or weighted, not "fair"')

    def test_containers_that_are_not_there(self):
        name = self.container().name
        self.assert_refused("no/where", "--exec", "cat", words="there is no container no/where")
        self.assert_refused("nowhere", "--exec", "cat", words="write DATABASE/CONTAINER", code=2)
        self.assert_refused(name, "--exec", "cat", "--leases", f"{self.database}/none",
                            words="--create-leases")
        self.assert_refused(name, "--exec", "cat", "--dead-letters", f"{self.database}/none",
                            words="hold the dead letters")

    def test_a_server_that_is_not_there(self):
        self.assert_refused("a/b", "--exec", "cat", "--endpoint", "http://127.0.0.1:1/",
                            words="127.0.0.1:1")


if __name__ == "__main__":
    unittest.main()
