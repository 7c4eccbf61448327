#!/usr/bin/env python3
"""A damaged write-ahead log under a whole server: refused with the LSNs that would go, and nothing is changed; a
torn tail is recovered without a word.

    damage_test.py [--binary build/orrery]
"""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import server as launcher, wire  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

LINK = "dbs/shop/colls/orders"
DOCUMENTS = 200


class DamageTest:
    def __init__(self, binary, work_dir):
        self.binary, self.work_dir = binary, work_dir
        self.failures = []
        self.data_dir = os.path.join(work_dir, "data")
        os.mkdir(self.data_dir, 0o700)
        with self.server(self.data_dir) as server:
            server.start()
            connection = wire.connect(server.port)
            assert connection.post("/dbs", b'{"id": "shop"}').status == 201
            body = {"id": "orders", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
            assert connection.post("/dbs/shop/colls", body).status == 201
            # All that is written from here on is not known to the watermark: the log alone has to tell.
            wait_until(lambda: os.path.exists(self.path("watermark")), 10, "there is a watermark")
            shutil.copy(self.path("watermark"), os.path.join(work_dir, "watermark"))
            for number in range(DOCUMENTS):
                body = {"id": str(number), "pk": "k", "padding": "x" * 300}
                response = connection.post(f"/{LINK}/docs", body, wire.of_key("k"))
                assert response.status == 201, response
            server.kill()
            connection.close()
        shutil.copy(os.path.join(work_dir, "watermark"), self.path("watermark"))

    def path(self, *names, data_dir=None):
        return os.path.join(data_dir or self.data_dir, *names)

    def server(self, data_dir, *arguments):
        return launcher.Server(*arguments, data_dir=data_dir, log_path=data_dir + ".log", binary=self.binary)

    def copy(self, name):
        """A copy of the data, and the path of its log."""
        data_dir = os.path.join(self.work_dir, name)
        shutil.copytree(self.data_dir, data_dir)
        store = self.path("store", data_dir=data_dir)
        (log,) = [each for each in os.listdir(store) if each.endswith(".log") and
                  os.path.getsize(os.path.join(store, each)) > 0]
        return data_dir, os.path.join(store, log)

    def check(self, name, holds, detail):
        print(f"  {name}: {'ok' if holds else 'FAILED: ' + detail}", flush=True)
        if not holds:
            self.failures.append(name)

    def expect_refusal(self, name, damage, lost=("shop/orders, range 0: LSNs ", f" to {DOCUMENTS + 1}")):
        data_dir, log = self.copy(name)
        damage(log)
        with open(log, "rb") as file:
            before = file.read()
        for attempt in ("first start", "second start"):
            with self.server(data_dir) as server:
                try:
                    server.start()
                    self.check(f"{name}, {attempt}", False, "it starts")
                    continue
                except launcher.Ended:
                    pass
            with open(data_dir + ".log", encoding="utf-8") as output:
                text = output.read()
            told = all(words in text for words in (
                os.path.basename(log), "is damaged at byte", "commits behind the damage", "--accept-loss",
                "Restore the newest back-up", *lost))
            with open(log, "rb") as file:
                unchanged = file.read() == before
            self.check(f"{name}, {attempt}", server.process.returncode == 1 and told and unchanged,
                       f"status {server.process.returncode}, log {'un' if unchanged else ''}changed: {text}")

    def expect_recovery(self, name, cut):
        data_dir, log = self.copy(name)
        os.truncate(log, os.path.getsize(log) - cut)
        with self.server(data_dir) as server:
            server.start()
            connection = wire.connect(server.port)
            documents, _ = connection.all_of(f"/{LINK}/docs", "Documents")
            connection.close()
            status = server.terminate()
        # The data was copied for this test, which is told.
        told = [line for line in self.trouble(data_dir) if "the data directory was copied" not in line]
        silent = not told
        self.check(name, len(documents) == DOCUMENTS - 1 and status == 0 and silent,
                   f"{len(documents)} documents, status {status}, {'silent' if silent else 'not silent'}")

    def trouble(self, data_dir):
        with open(data_dir + ".log", encoding="utf-8") as output:
            return [line for line in output if " warning " in line or " error " in line]

    def expect_accepted_loss(self, name, damage):
        """Lost LSNs are named; no LSN comes again, and readers of the former life see all that is new."""
        data_dir, log = self.copy(name)
        damage(log)
        with self.server(data_dir, "--accept-loss") as server:
            server.start()
            connection = wire.connect(server.port)
            left = len(connection.all_of(f"/{LINK}/docs", "Documents")[0])
            for number in range(3):
                body = {"id": f"new-{number}", "pk": "k"}
                response = connection.post(f"/{LINK}/docs", body, wire.of_key("k"))
                assert response.status == 201, response
            feed = connection.get(f"/{LINK}/docs", wire.INCREMENTAL | {
                "If-None-Match": f'"{DOCUMENTS + 1}"', wire.RANGE_ID: "0"}).json["Documents"]
            seen, lsns = [each["id"] for each in feed], [each["_lsn"] for each in feed]
            connection.close()
            server.stop()
        told = "".join(self.trouble(data_dir))
        named = f"lost: shop/orders, range 0: LSNs {left + 2} to {DOCUMENTS + 1}" in told and "a new life" in told
        self.check(f"{name}, accepted", named and 0 < left < DOCUMENTS and seen == ["new-0", "new-1", "new-2"] and
                   min(lsns) > DOCUMENTS + 1, f"{left} documents left, the feed shows {seen} {lsns}: {told}")
        with self.server(data_dir) as server:
            server.start()
            connection = wire.connect(server.port)
            after = len(connection.all_of(f"/{LINK}/docs", "Documents")[0])
            connection.close()
            server.stop()
        self.check(f"{name}, started again without a flag", after == left + 3, f"{after} documents")

    def run(self):
        self.expect_accepted_loss("a flipped bit", lambda log: overwrite(log, 0.5, 1, flip=True))
        self.expect_refusal("a flipped bit in the middle", lambda log: overwrite(log, 0.5, 1, flip=True))
        # Then the container itself is among what would go, and nobody knows its name.
        self.expect_refusal("a flipped bit at the beginning", lambda log: overwrite(log, 0, 1, flip=True),
                            lost=("made after the damage (partition 1): LSNs up to ", f" {DOCUMENTS + 1}"))
        self.expect_refusal("a zeroed block", lambda log: overwrite(log, 0.4, 4096, flip=False))
        for cut in (1, 9, 300):
            self.expect_recovery(f"a tail torn by {cut} bytes", cut)


def overwrite(path, part, length, flip):
    with open(path, "r+b") as file:
        offset = int(os.path.getsize(path) * part) // 512 * 512
        file.seek(offset)
        before = file.read(length)
        file.seek(offset)
        file.write(bytes([before[0] ^ 0x10]) if flip else bytes(length))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default=launcher.BINARY)
    arguments = parser.parse_args()
    work_dir = tempfile.mkdtemp(prefix="orrery-damage-")
    test = DamageTest(arguments.binary, work_dir)
    test.run()
    if test.failures:
        print(f"{len(test.failures)} failures. The data is kept in {work_dir}.")
        return 1
    shutil.rmtree(work_dir)
    print("PASS")
    return 0


if __name__ == "__main__":
    sys.exit(main())
