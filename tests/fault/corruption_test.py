#!/usr/bin/env python3
"""Damages the files of a store at random places and checks that nothing goes wrong without a word.

One store is prepared: tables, splits, deletes, a write-ahead log, as a crash leaves it. In each round a copy
of it gets one flipped bit, one zeroed block, or is cut off, in its write-ahead log, a table, the MANIFEST or
CURRENT. Then the server is started on the copy, and one of these must be so:

    refused      it does not start, with a message that says what to do
    harmless     it starts, and every document, every head and every change is there
    told         it starts, and what it cannot read it answers with 500 or 503 and a line in its log

Never a wrong answer, a document that is missing, a head that went back, or a crash.

    corruption_test.py [--binary build/orrery] [--seed N] [--rounds 300]

The damage of each round follows from the seed, which is printed.
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import seeds, server as launcher, wire  # noqa: E402
from harness.waiting import wait_until  # noqa: E402
from promises import parse_session_token  # noqa: E402

KEYS = 40
DOCUMENTS = 600
REWRITTEN = 200
DELETED = 60
PADDING = 3000  # so that memtables are worth a flush at an orderly stop
REFUSED_WORDS = ("Restore the newest back-up", "--accept-loss")
LINK = "dbs/d/colls/c"


class Prepared:
    """The acknowledged content of the store."""

    def __init__(self, binary, work_dir):
        self.data_dir = os.path.join(work_dir, "prepared")
        os.mkdir(self.data_dir)
        self.documents = {}  # (pk, id) -> document
        self.deleted = set()
        self.heads = {}
        server = launcher.Server(data_dir=self.data_dir, log_path=os.path.join(work_dir, "prepared.log"),
                                 binary=binary)
        with server:
            server.start()
            self.connection = wire.connect(server.port)
            self.set_up()
            for number in range(DOCUMENTS):
                self.put(number)
            self.split()
            server.stop()  # with a flush
            server.start()
            self.connection = wire.connect(server.port)
            for number in range(REWRITTEN):
                self.put(number * 2)
            for number in range(DELETED):
                self.delete(number * 7 + 1)
            self.wait_for_watermark()
            self.heads = heads_of(self.connection)
            server.kill()
            self.connection.close()

    def set_up(self):
        assert self.connection.post("/dbs", {"id": "d"}).status == 201
        body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        response = self.connection.post("/dbs/d/colls", body)
        assert response.status == 201, response

    def put(self, number):
        key = (f"k{number % KEYS}", f"d{number}")
        body = {"id": key[1], "pk": key[0], "number": number, "padding": f"{number} " * (PADDING // 5)}
        headers = wire.of_key(key[0]) | {"x-ms-documentdb-is-upsert": "True"}
        response = self.connection.post(f"/{LINK}/docs", body, headers)
        assert response.status in (200, 201), response
        self.documents[key] = response.json

    def delete(self, number):
        key = (f"k{number % KEYS}", f"d{number}")
        link = f"{LINK}/docs/{key[1]}"
        response = self.connection.delete(f"/{link}", wire.of_key(key[0]))
        assert response.status == 204, response
        del self.documents[key]
        self.deleted.add(key)

    def split(self):
        response = self.connection.post(f"/{LINK}/operations/split", {"range": "0"})
        assert response.status == 200, response

    def wait_for_watermark(self):
        """It is written about once a second: what it does not know of yet nobody can miss."""
        path = os.path.join(self.data_dir, "watermark")

        def content():
            with open(path, "rb") as file:
                return file.read()

        # Two more commits, each followed by a mark: the second one covers all that was before.
        for _ in range(2):
            before = content()
            self.put(0)
            wait_until(lambda: content() != before, 10, "the watermark is written")


def heads_of(connection):
    """{range id: head} of the container, or the response that was not a 200."""
    ranges = connection.get(f"/{LINK}/pkranges")
    if ranges.status != 200:
        return ranges
    heads = {}
    for each in ranges.json["PartitionKeyRanges"]:
        response = connection.get(f"/{LINK}/docs", {
            "x-ms-documentdb-partitionkeyrangeid": each["id"], "a-im": "Incremental feed", "if-none-match": "*"})
        if response.status not in (200, 304):
            return response
        heads[each["id"]] = int(response["etag"].strip('"'))
    return heads


class Damage:
    """One, in one file."""

    KINDS = ("flip", "zero", "cut")

    def __init__(self, chance, data_dir):
        store = os.path.join(data_dir, "store")
        files = collections.defaultdict(list)
        for name in sorted(os.listdir(store)):
            kind = ("WAL" if name.endswith(".log") else "SST" if name.endswith(".sst") else
                    "MANIFEST" if name.startswith("MANIFEST") else "CURRENT" if name == "CURRENT" else None)
            if kind and os.path.getsize(os.path.join(store, name)) > 0:
                files[kind].append(name)
        self.file_kind = chance.choices(["WAL", "SST", "MANIFEST", "CURRENT"], [45, 30, 20, 5])[0]
        if self.file_kind not in files:
            self.file_kind = "MANIFEST"
        self.name = chance.choice(files[self.file_kind])
        self.kind = chance.choice(self.KINDS)
        self.path = os.path.join(store, self.name)
        size = os.path.getsize(self.path)
        self.offset = chance.randrange(size)
        self.bit = chance.randrange(8)
        self.length = min(size - self.offset, chance.choice([16, 512, 4096]))

    def apply(self):
        """False when the bytes are what they were."""
        with open(self.path, "r+b") as file:
            file.seek(self.offset)
            before = file.read(self.length)
            file.seek(self.offset)
            if self.kind == "flip":
                file.write(bytes([before[0] ^ (1 << self.bit)]))
            elif self.kind == "zero":
                file.write(bytes(len(before)))
                return any(before)
            else:
                file.truncate(self.offset)
        return True

    def __str__(self):
        what = {"flip": f"bit {self.bit} of byte {self.offset} flipped",
                "zero": f"{self.length} bytes at {self.offset} zeroed", "cut": f"cut at {self.offset}"}[self.kind]
        return f"{self.name}: {what}"


class CorruptionTest:
    def __init__(self, arguments, work_dir):
        self.arguments, self.work_dir = arguments, work_dir
        self.prepared = Prepared(arguments.binary, work_dir)
        self.outcomes = collections.Counter()
        self.failures = []

    def run(self):
        for number in range(self.arguments.rounds):
            data_dir = os.path.join(self.work_dir, f"round-{number}")
            shutil.copytree(self.prepared.data_dir, data_dir)
            chance = random.Random(f"{self.arguments.seed}/{number}")
            damage = Damage(chance, data_dir)
            changed = damage.apply()
            try:
                outcome = self.one_round(data_dir)
            except Exception as error:  # the round must be named whatever happens
                outcome = f"FAILED: {type(error).__name__}: {error}"
            if outcome.startswith("FAILED"):
                self.failures.append(f"round {number}, {damage}: {outcome}")
                print(f"  {self.failures[-1]}", flush=True)
            else:
                shutil.rmtree(data_dir)
            self.outcomes[damage.file_kind, damage.kind if changed else "none", outcome.split(":")[0]] += 1

    def one_round(self, data_dir):
        log_path = data_dir + ".log"
        server = launcher.Server(data_dir=data_dir, log_path=log_path, binary=self.arguments.binary)
        with server:
            try:
                server.start()
            except launcher.Ended:
                return self.judge_refusal(server, log_path)
            outcome = self.judge_answers(server, log_path)
            if outcome.startswith("FAILED"):
                return outcome
            if not server.alive():
                return f"FAILED: the server ended with status {server.process.returncode}"
            if server.terminate() != 0:
                return f"FAILED: SIGTERM ends with status {server.process.returncode}"
        return outcome

    def judge_refusal(self, server, log_path):
        with open(log_path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        if server.process.returncode != 1:
            return f"FAILED: status {server.process.returncode}: {text[-600:]}"
        if not any(words in text for words in REFUSED_WORDS):
            return f"FAILED: refused without saying what to do: {text[-600:]}"
        return "refused"

    def judge_answers(self, server, log_path):
        connection = wire.connect(server.port)
        try:
            told = self.judge_documents(connection) or self.judge_feed(connection) or self.judge_heads(connection)
        finally:
            connection.close()
        if not told:
            return "harmless"
        if told.startswith("FAILED"):
            return told
        with open(log_path, encoding="utf-8", errors="replace") as log:
            text = log.read().lower()
        return "told" if "corrupt" in text or "checksum" in text else f"FAILED: no line in the log about {told}"

    def judge_documents(self, connection):
        """None when all are right; what was answered with an error; or the failure."""
        told = None
        for key, document in self.prepared.documents.items():
            response = connection.get(f"/{LINK}/docs/{key[1]}", wire.of_key(key[0]))
            if response.status in (500, 503):
                told = str(response)
            elif response.status != 200 or response.json != document:
                return f"FAILED: {key}: acknowledged and now {str(response)[:200]}"
        for key in self.prepared.deleted:
            response = connection.get(f"/{LINK}/docs/{key[1]}", wire.of_key(key[0]))
            if response.status in (500, 503):
                told = str(response)
            elif response.status != 404:
                return f"FAILED: {key}: deleted and now {str(response)[:200]}"
        return told

    def judge_feed(self, connection):
        """From the beginning: each document once, and nothing else."""
        found = {}
        ranges = connection.get(f"/{LINK}/pkranges")
        if ranges.status != 200:
            return self.told_or_failed(ranges)
        for each in ranges.json["PartitionKeyRanges"]:
            after = None
            while True:
                headers = {"x-ms-documentdb-partitionkeyrangeid": each["id"], "a-im": "Incremental feed",
                           "x-ms-max-item-count": "-1"} | ({"if-none-match": after} if after else {})
                response = connection.get(f"/{LINK}/docs", headers)
                if response.status == 304:
                    break
                if response.status != 200:
                    return self.told_or_failed(response)
                after = response["etag"]
                for item in response.json["Documents"]:
                    key = item["pk"], item["id"]
                    if key in found:
                        return f"FAILED: {key} is in the feed twice"
                    found[key] = item
        if found.keys() != self.prepared.documents.keys():
            return f"FAILED: the feed has {len(found)} documents, not {len(self.prepared.documents)}"
        for key, item in found.items():
            if item["number"] != self.prepared.documents[key]["number"] or \
                    item["_etag"] != self.prepared.documents[key]["_etag"]:
                return f"FAILED: {key} is another version in the feed"
        return None

    def judge_heads(self, connection):
        """They are above where they were, since a copy begins a new life, and the next write is above."""
        heads = heads_of(connection)
        if not isinstance(heads, dict):
            return self.told_or_failed(heads)
        if heads.keys() != self.prepared.heads.keys() or \
                any(heads[each] <= self.prepared.heads[each] for each in heads):
            return f"FAILED: heads {heads}, acknowledged were {self.prepared.heads}"
        for number in range(KEYS):
            key = f"k{number}"
            body = {"id": "probe", "pk": key, "number": -1}
            response = connection.post(f"/{LINK}/docs", body, wire.of_key(key))
            if response.status != 201:
                return self.told_or_failed(response)
            ((range_id, lsn),) = parse_session_token(response["x-ms-session-token"]).items()
            if lsn <= heads[range_id]:
                return f"FAILED: LSN {lsn} of range {range_id} is given out again"
        return None

    @staticmethod
    def told_or_failed(response):
        return str(response) if response.status in (500, 503) else f"FAILED: {response}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default=launcher.BINARY)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--work-dir", default=None, help="kept when the test fails")
    arguments = parser.parse_args()
    arguments.seed = seeds.seed(arguments.seed)
    return arguments


def main():
    arguments = parse_arguments()
    work_dir = tempfile.mkdtemp(prefix="orrery-corruption-", dir=arguments.work_dir)
    try:
        test = CorruptionTest(arguments, work_dir)
    except (AssertionError, wire.NoAnswer):
        traceback.print_exc()
        print("0 passed, 1 failed")
        return 1
    test.run()
    for (file_kind, kind, outcome), count in sorted(test.outcomes.items()):
        print(f"  {file_kind:9} {kind:5} {outcome:9} {count}")
    failed = len(test.failures)
    if failed:
        print(f"The data is kept in {work_dir}. Replay: {os.path.relpath(__file__)} --binary {arguments.binary} "
              f"--seed {arguments.seed} --rounds {arguments.rounds}")
    else:
        shutil.rmtree(work_dir)
    print(f"{arguments.rounds - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
