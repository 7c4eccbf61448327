#!/usr/bin/env python3
"""Flips bits in the tables of a store and has `orrery check` find them: check_test.py [--flips 40] [--seed N].

Each flip is found, in a stopped store or, every tenth time, by the running server; or it is harmless: a server on a
copy of the directory then gives back every document as it was. What is sound is never said not to be.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import program, seeds, server as launcher, wire  # noqa: E402

PATIENCE = 120.0
DOCUMENTS = 1500
SOUND, UNSOUND, CANNOT = 0, 3, 1
CONTAINERS = {
    "plain": {},
    "busy": {"defaultTtl": -1, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/number"]}]},
             "changeFeedPolicy": {"retentionDuration": 60},
             "indexingPolicy": {"indexingMode": "consistent", "includedPaths": [{"path": "/number/?"}, {"path": "/words/[]/?"}],
                                "excludedPaths": [{"path": "/*"}]}},
}


class CheckTest:
    def __init__(self, seed, room):
        self.random, self.room = random.Random(seed), pathlib.Path(room)
        self.data = self.room / "data"
        self.server = launcher.Server(data_dir=self.data, log_path=self.room / "log")
        self.found = self.harmless = 0
        self.faults = []

    def fill(self):
        self.server.start()
        with self.server.client() as client:
            client.post("/dbs", {"id": "d"}).expect(201)
            for name, properties in CONTAINERS.items():
                client.post("/dbs/d/colls", {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash"}, **properties},
                            {"x-ms-offer-throughput": "12000"}).expect(201)
                for number in range(DOCUMENTS):
                    document = {"id": f"{number}", "pk": f"{number % 50}", "number": number, "words": [f"w{number % 7}", "all"],
                                "noise": self.random.randbytes(500).hex()}
                    client.post(f"/dbs/d/colls/{name}/docs", document, wire.key_header([document["pk"]])).expect(201)
                for number in range(0, DOCUMENTS, 9):
                    client.request("DELETE", f"/dbs/d/colls/{name}/docs/{number}", None,
                                   wire.key_header([f"{number % 50}"])).expect(204)
            self.reference = self.documents(client)
        self.server.stop()
        self.find_tables()
        if not self.tables:
            raise AssertionError("the store has no tables")

    def find_tables(self):
        self.tables = sorted((self.data / "store").glob("*.sst"))

    @staticmethod
    def documents(client):
        return {name: sorted(map(repr, client.all_of(f"/dbs/d/colls/{name}/docs", "Documents")[0])) for name in CONTAINERS}

    def check(self, *words):
        variables = {"ORRERY_ENDPOINT": self.server.endpoint.url}
        return subprocess.run([launcher.BINARY, "check", *map(str, words)], env=program.clean_environment(variables),
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)

    def flip(self, table, byte, bit):
        with open(table, "r+b") as file:
            file.seek(byte)
            changed = bytes([file.read(1)[0] ^ 1 << bit])
            file.seek(byte)
            file.write(changed)

    def choose(self):
        """A running server may have compacted some away."""
        tables = [table for table in self.tables if table.exists()]
        table = self.random.choices(tables, [table.stat().st_size for table in tables])[0]
        return table, self.random.randrange(table.stat().st_size), self.random.randrange(8)

    def judge(self, done, place):
        table, byte, bit = place
        if done.returncode == SOUND:
            self.prove_harmless(place)
            self.harmless += 1
        elif done.returncode not in (UNSOUND, CANNOT) or table.name not in done.stdout + done.stderr:
            self.faults.append(f"{table.name}, byte {byte}, bit {bit}: status {done.returncode}\n{done.stdout}{done.stderr}")
        else:
            self.found += 1

    def prove_harmless(self, place):
        copy = self.room / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.data, copy)
        with launcher.Server(data_dir=copy, log_path=self.room / "copy-log") as other:
            other.start()
            with other.client() as client:
                if self.documents(client) != self.reference:
                    self.faults.append(f"{place}: not found, and documents have changed")

    def flip_offline(self, flips):
        for _ in range(flips):
            place = self.choose()
            self.flip(*place)
            self.judge(self.check("--data-dir", self.data), place)
            self.flip(*place)
        self.expect_sound(self.check("--data-dir", self.data))

    def flip_online(self, flips):
        self.server.start()
        # Whatever a start compacts, it has done before it has checked everything once.
        self.expect_sound(self.check())
        self.find_tables()
        for _ in range(flips):
            place = self.choose()
            self.flip(*place)
            self.judge(self.check(), place)
            self.flip(*place)
        self.expect_sound(self.check())
        self.server.stop()

    def expect_sound(self, done):
        if done.returncode != SOUND:
            self.faults.append(f"a sound store: status {done.returncode}\n{done.stdout}{done.stderr}")

    def run(self, flips):
        self.fill()
        self.expect_sound(self.check("--data-dir", self.data))
        self.flip_offline(flips - flips // 10)
        self.flip_online(flips // 10)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--flips", type=int, default=40)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = seeds.seed(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="orrery-check-", ignore_cleanup_errors=True) as room:
        test = CheckTest(seed, room)
        try:
            test.run(arguments.flips)
        finally:
            test.server.kill()
    for fault in test.faults[:20]:
        print(fault)
    print(f"{arguments.flips} flips in {len(test.tables)} tables: {test.found} found, {test.harmless} harmless, "
          f"{len(test.faults)} faults")
    return 1 if test.faults else 0


if __name__ == "__main__":
    sys.exit(main())
