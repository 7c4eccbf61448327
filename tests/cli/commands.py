"""A server, containers on it, and commands of the binary, for the tests of the command line.

Standard library only.
"""

import datetime
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import program, server as launcher, waiting, wire  # noqa: E402
from harness.server import BINARY  # noqa: E402

PATIENCE = 30.0
# Hosts that notice soon when one of them is gone.
QUICK = ("--renew-interval", "300ms", "--acquire-interval", "200ms",
         "--expiration-interval", "1500ms", "--poll-delay", "100ms")
# More than one range.
MANY_RANGES = {"x-ms-offer-throughput": "31000"}


def wait_until(condition, what):
    return waiting.wait_until(condition, PATIENCE, what, pause=0.02)


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(
        "%Y-%m-%dT%H:%M:%SZ")


class Container:
    def __init__(self, connection, database, name, key_path="/pk", headers=(), **properties):
        self.connection, self.name = connection, f"{database}/{name}"
        self.link = f"dbs/{database}/colls/{name}"
        body = {"id": name, "partitionKey": {"paths": [key_path], "kind": "Hash"}, **properties}
        made = connection.post(f"/dbs/{database}/colls", body, headers)
        assert made.status == 201, made

    def write(self, document_id, **members):
        """Creates or replaces; the document as the server has it."""
        document = {"id": document_id, "pk": document_id, **members}
        written = self.connection.post(f"/{self.link}/docs", document,
                                       wire.key_header([document["pk"]]) | wire.UPSERT)
        assert written.status in (200, 201), written
        return written.json

    def fill(self, count, prefix="d", **members):
        return [self.write(f"{prefix}{number}", **members)["id"] for number in range(count)]

    def documents(self):
        found, pages = self.connection.all_of(f"/{self.link}/docs", "Documents")
        assert pages[-1].status == 200, pages[-1]
        return found

    def range_count(self):
        found, _ = self.connection.all_of(f"/{self.link}/pkranges", "PartitionKeyRanges")
        return len(found)


class Command(program.Program):
    """A command that goes on, and what it has said."""

    def __init__(self, environment, arguments):
        super().__init__([BINARY, *arguments], environment)


class CommandLineTest(unittest.TestCase):
    """One server for all tests of a class; each has a directory and a database of its own."""

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="orrery-cli-"))
        cls.server = launcher.Server("--durability", "relaxed", data_dir=cls.root / "data", log_path=cls.root / "log")
        cls.server.start()
        cls.databases = 0

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        shutil.rmtree(cls.root)

    def setUp(self):
        type(self).databases += 1
        self.database = f"db{self.databases}"
        self.directory = self.root / self.database
        self.directory.mkdir()
        self.connection = wire.connect(self.server.port)
        self.addCleanup(self.connection.close)
        self.assertEqual(self.connection.post("/dbs", {"id": self.database}).status, 201)
        self.environment = program.clean_environment({
            "ORRERY_ENDPOINT": f"http://127.0.0.1:{self.server.port}/",
            "XDG_STATE_HOME": str(self.directory / "state-home")})

    def container(self, name="c", headers=(), **properties):
        return Container(self.connection, self.database, name, headers=headers, **properties)

    def path(self, name):
        return self.directory / name

    def run_command(self, *arguments, stdin=None):
        return subprocess.run([BINARY, *map(str, arguments)], env=self.environment, text=True,
                              capture_output=True, timeout=PATIENCE,
                              **({"stdin": subprocess.DEVNULL} if stdin is None
                                 else {"input": stdin}))

    def start_command(self, *arguments):
        command = Command(self.environment, arguments)
        self.addCleanup(command.close)
        return command

    def place(self, arguments):
        """Leases are in files, unless somebody says otherwise."""
        return () if "--leases" in arguments or "--state" in arguments else ("--state", self.path("state"))

    def process(self, container, *arguments):
        """Processes what there is, from the beginning."""
        return self.run_command("process", container.name, "--from", "beginning",
                                "--until-caught-up", *self.place(arguments), *QUICK, *arguments)

    def start_process(self, container, *arguments):
        """Processes on and on."""
        return self.start_command("process", container.name, "--from", "beginning",
                                  *self.place(arguments), *QUICK, *arguments)

    def status(self, container, *arguments):
        shown = self.run_command("leases", "status", container.name, "--json", *(
            arguments or ("--state", self.path("state"))))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return json.loads(shown.stdout)

    def lines(self, name):
        """Of a file in the directory; none when it is not there."""
        try:
            return self.path(name).read_text().splitlines()
        except FileNotFoundError:
            return []

    def ids(self, name):
        return [json.loads(line)["id"] for line in self.lines(name)]

    def script(self, name, text):
        """A Python program as a command of the shell."""
        self.path(name).write_text(text)
        return f"{sys.executable} -S {shlex.quote(str(self.path(name)))}"

    def append_to(self, name):
        """A handler that adds what it gets to a file."""
        return f"cat >> {shlex.quote(str(self.path(name)))}"
