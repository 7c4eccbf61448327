#!/usr/bin/env python3
"""Kills the server while it takes back-ups, and the command that restores them: backup_test.py [--kills 20] [--seed N].

One writer counts: each number goes into one container, and once that is acknowledged into another. Of every back-up
that is listed all files are as they were written; restored, it is one moment of both containers, not before what was
acknowledged when it was asked for. What was restored half is refused by the server, and can be restored again.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import program, seeds, server as launcher, wire  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

PATIENCE = 60.0
SLOTS = 200  # of a container; each number has one, so that a check reads little
RATE_MB = 8  # so that a back-up takes long enough to be killed in the middle
KILL_AFTER_MAX = 0.5
RESTORE_KILL_AFTER_MAX = 0.15
KEPT = 3  # back-ups
CONTAINERS = ("first", "second")


class Writer(threading.Thread):
    """Counts, through restarts of the server."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.connection = wire.connect(port)
        self.acknowledged = 0  # by both containers
        self.done = threading.Event()

    def put(self, container, number):
        slot = str(number % SLOTS)
        document = {"id": slot, "pk": slot, "n": number, "noise": random.randbytes(1500).hex()}
        while not self.done.is_set():
            try:
                answer = self.connection.post(f"/dbs/d/colls/{container}/docs", document,
                                              wire.key_header([slot]) | wire.UPSERT)
                if answer.status in (200, 201):
                    return
            except wire.NoAnswer:
                pass

    def run(self):
        number = 0
        while not self.done.is_set():
            number += 1
            for container in CONTAINERS:
                self.put(container, number)
            if not self.done.is_set():
                self.acknowledged = number


class BackupTest:
    def __init__(self, seed, room):
        self.random, self.room = random.Random(seed), pathlib.Path(room)
        self.backups, self.target = self.room / "backups", self.room / "target"
        self.server = launcher.Server("--backup-dir", self.backups, "--backup-rate-mb", RATE_MB,
                                      data_dir=self.room / "data", log_path=self.room / "log")
        self.moments = {}  # of a back-up: what was acknowledged when it was asked for
        self.newest, self.kills, self.cut_off, self.half_restored, self.faults = 0, 0, 0, 0, []

    def command(self, *words):
        return [launcher.BINARY, "backup", *map(str, words), "--backup-dir", str(self.backups)]

    def run_command(self, *words):
        return subprocess.run(self.command(*words), env=program.clean_environment(), text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE)

    def set_up(self):
        self.server.start()
        with self.server.client() as client:
            client.post("/dbs", {"id": "d"}).expect(201)
            for name, throughput in zip(CONTAINERS, ("400", "30000")):
                client.post("/dbs/d/colls", {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash"}},
                            {"x-ms-offer-throughput": throughput}).expect(201)
        self.writer = Writer(self.server.port)
        self.writer.start()
        wait_until(lambda: self.writer.acknowledged > SLOTS, PATIENCE, "the first numbers")

    def state(self, client):
        return client.get("/_orrery/backups").json["state"]

    def take_one(self):
        """Asks for a back-up; kills the server while it is taken, or lets it come to its end."""
        kills = self.random.random() < 0.75
        before = self.writer.acknowledged
        with self.server.connect() as client:
            client.post("/_orrery/backups").expect(202)
            if kills:
                time.sleep(self.random.uniform(0, KILL_AFTER_MAX))
            else:
                wait_until(lambda: self.state(client) != "running", PATIENCE, "the end of a back-up")
        if kills:
            self.server.kill()
            self.kills += 1
        listed = self.run_command("list")
        numbers = [int(line.split()[0]) for line in listed.stdout.splitlines()]
        if listed.returncode != 0 and numbers:
            self.faults.append(f"not whole: {listed.stdout}{listed.stderr}")
        made = [number for number in numbers if number > self.newest]
        if not made:
            self.cut_off += 1
            if not kills:
                self.faults.append("a back-up that came to its end is not listed")
        for number in made:
            self.moments[number] = before
        self.newest = max([self.newest, *numbers])
        if kills:
            self.server.start()

    def restore(self):
        """Into a new directory, killed in the middle or not; then to its end."""
        shutil.rmtree(self.target, ignore_errors=True)
        words = ("restore", self.newest, "--data-dir", self.target)
        if self.random.random() < 0.75:
            process = subprocess.Popen(self.command(*words), env=program.clean_environment(),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(self.random.uniform(0, RESTORE_KILL_AFTER_MAX))
            process.kill()
            process.wait()
            self.kills += 1
            if (self.target / "unfinished-restore").exists():
                self.half_restored += 1
                self.refuse_half()
            elif (self.target / "format").exists():
                return
        done = self.run_command(*words)
        if done.returncode != 0:
            self.faults.append(f"back-up {self.newest} cannot be restored: {done.stderr}")

    def refuse_half(self):
        with launcher.Server(data_dir=self.target, log_path=self.room / "target-log") as restored:
            try:
                restored.start()
                self.faults.append("what was restored half is served")
            except launcher.Ended as refusal:
                if "backup restore" not in str(refusal):
                    self.faults.append(f"refused without a word about the restore: {refusal}")

    def check(self):
        """The restored directory is one moment of the writer."""
        with launcher.Server(data_dir=self.target, log_path=self.room / "target-log") as restored:
            restored.start()
            with restored.connect() as client:
                last = []
                for name in CONTAINERS:
                    found, _ = client.all_of(f"/dbs/d/colls/{name}/docs", "Documents")
                    numbers = {int(each["id"]): each["n"] for each in found}
                    last.append(max(numbers.values(), default=0))
                    for slot, number in numbers.items():
                        expected = last[-1] - (last[-1] - slot) % SLOTS
                        if number != expected:
                            self.faults.append(f"{name}: slot {slot} has {number}, not {expected} of {last[-1]}")
                if not last[1] <= last[0] <= last[1] + 1:
                    self.faults.append(f"not one moment: {last[0]} here and {last[1]} there")
                if last[1] < self.moments[self.newest]:
                    self.faults.append(f"{self.moments[self.newest]} was acknowledged, {last[1]} is there")
            restored.stop()

    def run(self, kills):
        self.set_up()
        while self.kills < kills and not self.faults:
            self.take_one()
            if self.newest == 0:
                continue
            verified = self.run_command("verify", self.newest)
            if verified.returncode != 0:
                self.faults.append(f"listed and damaged: {verified.stderr}")
            self.restore()
            if not self.faults:
                self.check()
            if self.newest % 5 == 0:
                pruned = self.run_command("prune", "--keep", KEPT)
                if pruned.returncode != 0:
                    self.faults.append(f"not pruned: {pruned.stderr}")
        self.writer.done.set()
        self.writer.join()
        self.server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = seeds.seed(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="orrery-backup-", ignore_cleanup_errors=True) as room:
        test = BackupTest(seed, room)
        test.run(arguments.kills)
    for fault in test.faults[:20]:
        print(fault)
    print(f"{test.kills} kills, {len(test.moments)} back-ups taken and restored, {test.cut_off} cut off, "
          f"{test.half_restored} restored half at first; {test.writer.acknowledged} numbers acknowledged; "
          f"{len(test.faults)} faults")
    return 1 if test.faults or not test.moments else 0


if __name__ == "__main__":
    sys.exit(main())
