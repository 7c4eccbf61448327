"""The parts of a chaos run: hosts as processes, writers, and changes of the ranges."""

import json
import os
import random
import signal
import subprocess
import threading
import time

from harness import program as programs, wire
from harness.server import log_tail

DATABASE = "chaos"
MONITORED = "monitored"
LEASES = "leases"
MONITORED_LINK = f"dbs/{DATABASE}/colls/{MONITORED}"
LEASES_LINK = f"dbs/{DATABASE}/colls/{LEASES}"
RANGES = 4  # to begin with
# Ranges are cut at eighths of the space of hashes only, just where the server cuts them when it
# makes a container. Leases never grow together again, so there are at most that many of them.
EDGES = [f"{eighth * (1 << 123) - 1:032X}" for eighth in range(1, 8)]
READY_SECONDS_MAX = 60
WRITE_PAUSE_SECONDS = 0.002
UPDATE_SHARE = 0.2


# ── Hosts ─────────────────────────────────────────────────────────────────────────────────────

class Host:
    """A chaos_host process. Its record stays when it is gone."""

    def __init__(self, program, name, port, work_dir, serial, timing):
        self.name = name
        self.record_path = os.path.join(work_dir, f"{serial:03}-{name}.record")
        self.log_path = os.path.join(work_dir, f"{serial:03}-{name}.log")
        self.output_path = os.path.join(work_dir, f"{serial:03}-{name}.out")
        self.stopped = False
        self.pauses = []  # (from, to), in seconds of the monotonic clock
        with open(self.log_path, "ab") as log, open(self.output_path, "wb") as output:
            self.process = subprocess.Popen(
                [program, "--endpoint", f"http://127.0.0.1:{port}", "--key", wire.WELL_KNOWN_KEY,
                 "--database", DATABASE, "--monitored", MONITORED, "--leases", LEASES,
                 "--name", name, "--record", self.record_path,
                 "--renew-ms", str(timing.renew_ms), "--acquire-ms", str(timing.acquire_ms),
                 "--expiration-ms", str(timing.expiration_ms),
                 "--page-size", str(timing.page_size), "--work-ms", str(timing.work_ms)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=log,
                preexec_fn=programs.before_exec())

    def is_ready(self):
        with open(self.output_path, "rb") as output:
            return output.read().startswith(b"ready")

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped = True
        self.pauses.append((time.monotonic(), None))

    def resume(self):
        self.pauses[-1] = (self.pauses[-1][0], time.monotonic())
        self.process.send_signal(signal.SIGCONT)
        self.stopped = False

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ask_to_leave(self):
        self.process.send_signal(signal.SIGTERM)

    def log_tail(self):
        return log_tail(self.log_path)


# ── Writers ───────────────────────────────────────────────────────────────────────────────────

class Writer(threading.Thread):
    """Writes to keys that nobody else writes to, each write with the next number of its key. Most
    make a new document, which then stays as it is; the others change an earlier one."""

    def __init__(self, number, port, seed):
        super().__init__(daemon=True, name=f"writer {number}")
        self.connection = wire.connect(port)
        self.random = random.Random(f"{seed}/{number}")
        self.keys = {f"w{number}-k{key}": 0 for key in range(4)}  # and the last number of each
        self.stopping = threading.Event()
        self.acknowledged = {}  # (key, number) → id
        self.made = {}  # key → ids that are there
        self.complaints = []
        self.open_ones = 0

    def run(self):
        try:
            while not self.stopping.wait(WRITE_PAUSE_SECONDS):
                self.write()
        finally:
            self.connection.close()

    def write(self):
        key = self.random.choice(list(self.keys))
        number = self.keys[key] = self.keys[key] + 1
        made = self.made.setdefault(key, [])
        update = made and self.random.random() < UPDATE_SHARE
        document_id = self.random.choice(made) if update else f"{key}-{number}"
        body = {"id": document_id, "pk": key, "seq": number, "text": "x" * 200}
        headers = {"x-ms-documentdb-partitionkey": json.dumps([key])}
        if update:
            headers["x-ms-documentdb-is-upsert"] = "true"
        try:
            response = self.connection.post(f"/{MONITORED_LINK}/docs", body, headers)
        except wire.NoAnswer as failure:
            if failure.sent:
                self.open_ones += 1
            self.stopping.wait(0.05)
            return
        if response.status in (200, 201):
            self.acknowledged[key, number] = document_id
            if not update:
                made.append(document_id)
        elif response.status in (408, 429, 449, 503):
            self.open_ones += 1
        else:
            self.complaints.append(f"a write was answered with {response}")


# ── Ranges ────────────────────────────────────────────────────────────────────────────────────

class TopologyChange(threading.Thread):
    """A split or merge, asked for in the background: the server may be killed meanwhile."""

    def __init__(self, port, kind, chance):
        super().__init__(daemon=True, name=kind)
        self.connection = wire.connect(port)
        self.kind, self.chance = kind, chance
        self.outcome = "without an answer"

    def run(self):
        try:
            body = self.split() if self.kind == "split" else self.merge()
            if body is None:
                self.outcome = "nothing to do"
                return
            response = self.connection.post(f"/{MONITORED_LINK}/operations/{self.kind}", body)
            self.outcome = f"{response.status} for {body}"
        except wire.NoAnswer:
            pass  # The map is the old one or the new one.
        finally:
            self.connection.close()

    def ranges(self):
        answer = self.connection.get(f"/{MONITORED_LINK}/pkranges")
        if answer.status != 200:
            return []
        return sorted(answer.json["PartitionKeyRanges"], key=lambda each: each["minInclusive"])

    def split(self):
        places = [(each["id"], edge) for each in self.ranges() for edge in EDGES
                  if each["minInclusive"] < edge < each["maxExclusive"]]
        if not places:
            return None
        range_id, edge = places[int(self.chance * len(places))]
        return {"range": range_id, "at": edge}

    def merge(self):
        ranges = self.ranges()
        if len(ranges) < 3:
            return None
        left = int(self.chance * (len(ranges) - 1))
        return {"ranges": [ranges[left]["id"], ranges[left + 1]["id"]]}


# ── Setting up, and looking ───────────────────────────────────────────────────────────────────

def make_containers(port):
    connection = wire.connect(port)
    expect(connection.post("/dbs", {"id": DATABASE}), 201)
    for name, path, throughput in ((MONITORED, "/pk", 6000 * RANGES), (LEASES, "/id", 400)):
        body = {"id": name, "partitionKey": {"paths": [path], "kind": "Hash", "version": 2},
                "defaultTtl": -1}
        made = expect(connection.post(f"/dbs/{DATABASE}/colls", body,
                                      {"x-ms-offer-throughput": throughput}), 201)
        lower_throughput(connection, made.json["_rid"])
    connection.close()


def lower_throughput(connection, rid):
    """So that nothing asks for more ranges than a merge leaves."""
    offers, _ = connection.all_of("/offers", "Offers")
    offer = next(each for each in offers if each["offerResourceId"] == rid)
    offer["content"]["offerThroughput"] = 400
    expect(connection.put(f"/offers/{offer['id']}", offer), 200)


def documents_of(port, link):
    connection = wire.connect(port)
    documents, pages = connection.all_of(f"/{link}/docs", "Documents",
                                         {"x-ms-documentdb-query-enablecrosspartition": "true"})
    connection.close()
    expect(pages[-1], 200)
    return documents


def leases_of(port):
    return [each for each in documents_of(port, LEASES_LINK) if ".." in each["id"]]


def expect(response, status):
    if response.status != status:
        raise RuntimeError(f"expected {status}, got {response}")
    return response
