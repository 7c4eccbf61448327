#!/usr/bin/env python3
"""Rotates account keys while clients sign with them: rotation_test.py [--rotations 100].

A key that was in force during all of a request never meets a 401; one that was gone before a request began is never
let in. Rotates by the command, by the signal and by the request in turn. Ends with what was tried.
"""

import argparse
import base64
import collections
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import program, server as launcher, wire  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

WORKERS = 4
PATIENCE = 30.0
FOREVER = float("inf")


class Key:
    """A key and when it was in force, for certain and perhaps: the file changes before the server knows."""

    def __init__(self, text):
        self.text = text
        self.surely_from = self.perhaps_until = self.surely_until = FOREVER


class Rotation:
    def __init__(self, directory):
        self.path = pathlib.Path(directory) / "keys"
        self.primary, self.secondary = self.new_key(), self.new_key()
        self.write()
        self.primary.surely_from = self.secondary.surely_from = 0.0
        self.server = launcher.started("--key-file", self.path, key=self.primary.text)
        self.retired = collections.deque(maxlen=4)
        self.faults, self.counts = [], collections.Counter()
        self.done = threading.Event()

    @staticmethod
    def new_key():
        return Key(base64.b64encode(os.urandom(64)).decode())

    def write(self):
        fresh = self.path.with_suffix(".fresh")
        fresh.touch(mode=0o600)
        fresh.write_text(f"primary: {self.primary.text}\nsecondary: {self.secondary.text}\n")
        fresh.rename(self.path)

    def reload(self, way):
        if way == 0:
            environment = program.clean_environment({"ORRERY_ENDPOINT": self.server.endpoint.url,
                                                     "ORRERY_ACCOUNT_KEY": self.primary.text})
            subprocess.run([launcher.BINARY, "keys", "reload"], env=environment, check=True, capture_output=True,
                           timeout=PATIENCE)
        elif way == 1:
            with self.server.client(key=self.primary.text) as client:
                client.post("/_orrery/keys/reload").expect(200)
        else:
            self.server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: self.status_with(self.secondary) == 200, PATIENCE, "the reload")

    def status_with(self, key):
        with self.server.client(key=key.text) as client:
            return client.get("/").status

    def rotate(self, way):
        old, new = self.secondary, self.new_key()
        old.perhaps_until = time.monotonic()  # From here on nobody can be sure of it.
        self.secondary = new
        self.write()
        self.reload(way)
        new.surely_from = old.surely_until = time.monotonic()
        self.retired.append(old)

    def work(self):
        with wire.Client(self.server.endpoint) as client:
            while not self.done.is_set():
                for key in (self.primary, self.secondary, *self.retired):
                    begun = time.monotonic()
                    status = client.get("/", key=key.text).status
                    ended = time.monotonic()
                    self.counts[status] += 1
                    if status == 401 and key.surely_from <= begun and ended < key.perhaps_until:
                        self.faults.append(f"401 with a key in force for {begun - key.surely_from:.4f} s")
                    if status == 200 and begun > key.surely_until:
                        self.faults.append(f"200 with a key that was gone for {begun - key.surely_until:.4f} s")
                    if status not in (200, 401):
                        self.faults.append(f"status {status}")

    def run(self, rotations):
        workers = [threading.Thread(target=self.work) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        try:
            for round_number in range(rotations):
                self.rotate(round_number % 3)
        finally:
            self.done.set()
            for worker in workers:
                worker.join()
            self.server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rotations", type=int, default=100)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="orrery-rotation-") as directory:
        rotation = Rotation(directory)
        rotation.run(arguments.rotations)
    for fault in rotation.faults[:20]:
        print(fault)
    print(f"{arguments.rotations} rotations, {rotation.counts[200]} requests let in, {rotation.counts[401]} refused, "
          f"{len(rotation.faults)} faults")
    tried = rotation.counts[200] > arguments.rotations and rotation.counts[401] > arguments.rotations
    return 0 if tried and not rotation.faults else 1


if __name__ == "__main__":
    sys.exit(main())
