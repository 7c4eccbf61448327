"""Shared by the tests of `orrery copy`: a server, containers, and the command. Standard library only."""

import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import program, seeds, wire  # noqa: E402
from harness.server import BINARY, Server  # noqa: E402
from harness.waiting import wait_until  # noqa: E402
from harness.wire import KEY  # noqa: E402

SEED = seeds.seed()
SYSTEM = ("_rid", "_self", "_etag", "_ts", "_attachments", "_lsn")
TWO_RANGES = 11_000  # RU/s with which a container is made of so many
COMMAND_SECONDS_MAX = 120


def is_position(document):
    return "orreryPosition" in document


def plain(document):
    return {name: value for name, value in document.items() if name not in SYSTEM}


class Container:
    """One container, over REST. A thread needs one of its own: see again()."""

    def __init__(self, port, database, name):
        self.port, self.database, self.name = port, database, name
        self.link = f"dbs/{database}/colls/{name}"
        self.connection = wire.connect(port)
        self.path = ("id",)

    def again(self):
        other = Container(self.port, self.database, self.name)
        other.path = self.path
        return other

    def __str__(self):
        return f"{self.database}/{self.name}"

    def key_of(self, document):
        for step in self.path:
            document = document.get(step, {}) if isinstance(document, dict) else {}
        return json.dumps([document])

    def upsert(self, document, text=None):
        headers = {KEY: self.key_of(document)} | wire.UPSERT
        answer = self.connection.post(f"/{self.link}/docs", (text or json.dumps(document)).encode(), headers)
        assert answer.status in (200, 201), answer
        return answer

    def batch(self, documents):
        """Of one key, as one transaction."""
        body = json.dumps([{"operationType": "Upsert", "resourceBody": each} for each in documents])
        headers = {KEY: self.key_of(documents[0]), "x-ms-cosmos-is-batch-request": "True",
                   "x-ms-cosmos-batch-atomic": "True"}
        answer = self.connection.post(f"/{self.link}/docs", body.encode(), headers)
        assert answer.status == 200, answer

    def fill(self, documents):
        """Many at once: batches of those that share a key."""
        keys = {}
        for document in documents:
            keys.setdefault(self.key_of(document), []).append(document)
        for same in keys.values():
            for begin in range(0, len(same), 100):
                self.batch(same[begin:begin + 100])

    def ranges(self):
        return [each["id"] for each in
                self.connection.all_of(f"/{self.link}/pkranges", "PartitionKeyRanges")[0]]

    def documents(self):
        found = []
        for range_id in self.ranges():
            page, answers = self.connection.all_of(f"/{self.link}/docs", "Documents", {wire.RANGE_ID: range_id})
            assert answers[-1].status == 200, answers[-1]
            found += page
        return found

    def contents(self):
        """Without what the server or a copy added, in no order."""
        return sorted((plain(each) for each in self.documents() if not is_position(each)),
                      key=lambda each: json.dumps(each, sort_keys=True))

    def positions(self):
        return [each for each in self.documents() if is_position(each)]

    def feed(self, range_id, etag, headers):
        headers = {"x-ms-documentdb-partitionkeyrangeid": range_id, "if-none-match": etag,
                   "x-ms-max-item-count": "-1", **headers}
        return self.connection.get(f"/{self.link}/docs", headers)

    ALL_VERSIONS = {"a-im": "Full-Fidelity Feed",
                    "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15"}

    def remember_now(self):
        """From here on versions() counts."""
        self.began = {each: self.feed(each, "*", self.ALL_VERSIONS)["etag"]
                      for each in self.ranges()}
        return self

    def heads(self):
        """Change with everything that is written."""
        return [self.feed(each, "*", self.ALL_VERSIONS)["etag"] for each in self.began]

    def versions(self):
        """Every version of every document that was written since remember_now(), positions aside."""
        found = []
        for range_id, etag in self.began.items():
            while (answer := self.feed(range_id, etag, self.ALL_VERSIONS)).status == 200:
                etag = answer["etag"]
                # Of deletes `current` is empty.
                found += [plain(each["current"]) for each in answer.json["Documents"]
                          if each["current"] and not is_position(each["current"])]
            assert answer.status == 304, answer
        return found


class Copy:
    """One run of the command."""

    def __init__(self, arguments, environment):
        self.process = subprocess.Popen(
            [BINARY, "copy", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment, preexec_fn=program.before_exec(), text=True)

    def wait(self, seconds_max=COMMAND_SECONDS_MAX):
        """The exit status; what it said is in `out` and `err`."""
        self.out, self.err = self.process.communicate(timeout=seconds_max)
        return self.process.returncode

    def kill_after(self, seconds, has_begun=None):
        """Whether it was killed, so long after its start or after has_begun(); else it had ended by
        itself, and well."""
        if has_begun:
            wait_until(lambda: has_begun() or self.process.poll() is not None, 60, "it has begun",
                       pause=0.001)
        try:
            status = self.wait(seconds)
            assert status == 0, self.err
            return False
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait()
            return True

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.wait()


class CopyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="orrery-copy-"))
        cls.server = Server("--durability", "relaxed", data_dir=cls.directory / "data", log_path=cls.directory / "log")
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        shutil.rmtree(cls.directory, ignore_errors=True)

    def setUp(self):
        self.random = random.Random(f"{SEED} {self.id()}")
        self.database = self.id().split(".")[-1]
        self.admin = wire.connect(self.server.port)
        self.addCleanup(self.admin.close)
        answer = self.admin.post("/dbs", {"id": self.database})
        self.assertEqual(answer.status, 201, answer)
        self.state = self.directory / f"state-{self.database}"

    def container(self, name, path="/pk", throughput=400, **properties):
        definition = {"id": name, "partitionKey": {"paths": [path], "kind": "Hash", "version": 2},
                      **properties}
        answer = self.admin.post(f"/dbs/{self.database}/colls", definition, {"x-ms-offer-throughput": str(throughput)})
        self.assertEqual(answer.status, 201, answer)
        made = Container(self.server.port, self.database, name)
        made.path = tuple(path[1:].split("/"))
        self.addCleanup(made.connection.close)
        return made

    def destination(self, name, path="/region", **properties):
        """Keeps every version, so that they can be counted."""
        return self.container(name, path, changeFeedPolicy={"retentionDuration": 60},
                              **properties).remember_now()

    def start_copy(self, source, destination, *arguments, state=True, server=None):
        """`server`: of the source, where it is another one."""
        where = ["--state", str(self.state)] if state else []
        environment = program.clean_environment({"XDG_STATE_HOME": str(self.directory / "xdg")})
        return Copy([str(source), str(destination), "--endpoint",
                     f"http://127.0.0.1:{(server or self.server).port}/", *where, *arguments],
                    environment)

    def copy(self, source, destination, *arguments, status=0, state=True, server=None):
        run = self.start_copy(source, destination, *arguments, state=state, server=server)
        self.assertEqual(run.wait(), status, run.err + run.out)
        return run

    def change_ranges(self, operation, *arguments):
        subprocess.run([BINARY, operation, *arguments, "--endpoint",
                        f"http://127.0.0.1:{self.server.port}/"], check=True, capture_output=True)

    def assert_copied_once(self, source, destination):
        """Of a source that stood still: each document is there, and was written once."""
        self.assertEqual(destination.contents(), source.contents())
        written = [each["id"] for each in destination.versions()]
        self.assertEqual(len(written), len(set(written)), "documents were written twice")


class Writer:
    """Changes documents of a source while something else goes on."""

    def __init__(self, source, make):
        self.source, self.make = source.again(), make
        self.ended = threading.Event()
        self.versions = 0
        self.failure = None
        self.thread = threading.Thread(target=self._write)
        self.thread.start()

    def _write(self):
        try:
            while not self.ended.is_set():
                self.source.upsert(self.make(self.versions))
                self.versions += 1
        except Exception as failure:  # Raised again by stop().
            self.failure = failure

    def stop(self):
        self.ended.set()
        self.thread.join()
        self.source.connection.close()
        if self.failure:
            raise self.failure
        return self.versions
