"""Shared by the tests of the examples: the account, and a program that runs.

with_server.py starts the server and says where it is; ORRERY_EXAMPLES is the directory of the programs."""

import json
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from harness import program, wire  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

SECONDS_MAX = 60
ENDPOINT = os.environ["ORRERY_ENDPOINT_HTTP"]
KEY = os.environ["ORRERY_KEY"]
SYSTEM_PROPERTIES = ("_rid", "_self", "_etag", "_attachments", "_ts", "_lsn")
ENVIRONMENT = {**os.environ, "ORRERY_CONNECTION": f"AccountEndpoint={ENDPOINT};AccountKey={KEY};"}


def connect():
    """A client for one thread, by raw HTTP: what the examples do is checked without what they are made of."""
    return wire.Client(wire.Endpoint(ENDPOINT, KEY))


def make_container(database, name, path, ranges=1):
    key = {"paths": [path], "kind": "Hash", "version": 2}
    return database.create_container({"id": name, "partitionKey": key}, throughput=400 if ranges == 1 else ranges * 6000)


def documents_of(client, database, name):
    """Those of a container, without what the server adds to them, in the order of their ids."""
    pages = client.pages(f"/dbs/{database.id}/colls/{name}/docs")
    documents = [document for page in pages for document in page.json["Documents"]]
    return sorted((own_properties(document) for document in documents), key=lambda each: json.dumps(each))


def own_properties(document):
    return {name: value for name, value in document.items() if name not in SYSTEM_PROPERTIES}


class Program(program.Program):
    """A running example. Its end is insisted on."""

    def __init__(self, name, *words, stdin=subprocess.DEVNULL):
        path = pathlib.Path(os.environ.get("ORRERY_EXAMPLES", "")) / name
        super().__init__([path, *words], ENVIRONMENT, stdin)

    def wait_until(self, condition, what):
        def holds():
            assert self.alive(), f"it ended while the test waited for {what}: {self.report()}"
            return condition()
        return wait_until(holds, SECONDS_MAX, what)

    def end(self, number=signal.SIGTERM, code=0):
        """Asks it to end, and insists that it ends with this exit code."""
        self.process.send_signal(number)
        return self.ended(code)

    def ended(self, code=0):
        """The lines that it has printed until its end."""
        assert self.wait(SECONDS_MAX) == code, self.report()
        return self.lines


def run(name, *words, code=0):
    """An example from its start to its own end."""
    with Program(name, *words) as example:
        return example.ended(code)


def run_tests(module):
    """Every test_ function of a test program; each has a database of its own."""
    for name, test in sorted(vars(module).items()):
        if not name.startswith("test_"):
            continue
        with connect() as client:
            test(client, client.create_database(wire.unique("examples")))
            assert not client.breaches, client.breaches
        print(f"{name}: passed", flush=True)
