#!/usr/bin/env python3
"""Fills and breaks the disk under a running server and checks that it says so and keeps its word.

While the disk refuses: every write answers 503 with a message that says why and with
x-ms-retry-after-ms, reads go on, /_ready is 503 and /_health 200. When the disk is well again writes
resume without a restart; nothing acknowledged is lost, and every write that was answered 503 is
either wholly there or not at all, for good: a later SIGKILL and restart must not change it.

    disk_fault_test.py [--binary build/orrery] [--seed N] [--only NAME]

The faults come from fault_shim.cc; `tmpfs` fills a real small file system, which needs the right to
mount one.
"""

import argparse
import errno
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import fault_disk  # noqa: E402
import workload  # noqa: E402
from fault_disk import FaultDisk  # noqa: E402
from harness import seeds, server as launcher, wire  # noqa: E402
from harness.waiting import wait_until  # noqa: E402
from promises import Promises  # noqa: E402

WRITERS = 8
WRITES_PER_PHASE = 400
REFUSALS_PER_PHASE = 60
FAULT_SECONDS_MIN = 1  # long enough for attempts to recover
FLICKERS = 30
ROUNDS = 3
PHASE_SECONDS_MAX = 60
RECOVERY_SECONDS_MAX = 20
REFUSAL_SECONDS_MAX = 10
TMPFS_BYTES = 400 << 20
VIOLATIONS_SHOWN = 20

# Words that a message must have, whatever its wording.
SAYS_DISK_FULL = re.compile(r"space|full", re.I)
SAYS_DISK_BROKEN = re.compile(r"disk|storage|I/O|input/output|write|fail", re.I)


class DiskTest:
    """A server and its writers. With `disk` the server runs on fault_shim.cc, and every kill is a
    power failure as well."""

    def __init__(self, name, arguments, server, message, disk=None):
        self.name = name
        self.server = server
        self.disk = disk
        self.message = message
        self.promises = Promises(server.port)
        self.random = random.Random(f"{arguments.seed}/{name}")
        self.seed = f"{arguments.seed}/{name}"
        self.phase = 0
        self.refusals = 0
        self.may_refuse = False
        self.must_refuse_since = None

    # ── Writers ───────────────────────────────────────────────────────────────────────────────

    def start_writers(self, large=False, killed=None):
        self.phase += 1
        self.stop = threading.Event()
        common = (self.promises, self.server.port, f"{self.seed}/{self.phase}", self.stop, killed,
                  self.refused, self.accepted)
        padding = {"padding_max": 40_000} if large else {}
        self.writers = [workload.DocumentWriter(f"w{i}", *common, **padding)
                        for i in range(WRITERS)]
        self.writers.append(workload.Churner("churner", *common))
        for writer in self.writers:
            writer.start()

    def join_writers(self):
        self.stop.set()
        for writer in self.writers:
            writer.join(timeout=wire.ANSWER_SECONDS_MAX + 5)
            if writer.is_alive():
                self.promises.violate(f"{writer.name}: a write is not answered at all")

    def acknowledged(self):
        return sum(writer.successes for writer in self.writers)

    def write_a_while(self):
        """Writes that must all succeed."""
        self.start_writers()
        wait_until(
            lambda: self.acknowledged() >= WRITES_PER_PHASE or self.promises.violations,
            PHASE_SECONDS_MAX, "writes go on")
        self.join_writers()

    def refused(self, response, sent_at):
        """A 503: is it allowed, and does it say what it must?"""
        self.refusals += 1
        if not self.may_refuse:
            return self.promises.violate(f"{self.name}: refused on a healthy disk: {response}")
        retry_after = response["x-ms-retry-after-ms"] or ""
        if not retry_after.isdigit() or int(retry_after) < 1:
            self.promises.violate(f"{self.name}: a 503 with x-ms-retry-after-ms '{retry_after}'")
        try:
            text = response.json["message"]
        except (ValueError, KeyError, TypeError):
            return self.promises.violate(f"{self.name}: a 503 without a message: {response}")
        if not self.message.search(text):
            self.promises.violate(f"{self.name}: the message does not say what is wrong: {text}")
        if time.monotonic() - sent_at > REFUSAL_SECONDS_MAX:
            self.promises.violate(f"{self.name}: a refusal took more than {REFUSAL_SECONDS_MAX} s")

    def accepted(self, sent_at):
        since = self.must_refuse_since
        if since is not None and sent_at > since:
            self.promises.violate(f"{self.name}: a write was acknowledged that cannot be on the "
                                  f"disk")

    # ── What must hold while the disk refuses ─────────────────────────────────────────────────

    def break_disk(self, fault):
        self.may_refuse = True
        self.disk.set(fault)
        self.must_refuse_since = time.monotonic()

    def flicker_disk(self, fault):
        """The disk comes and goes, so that recovery itself is struck."""
        self.must_refuse_since = None
        for number in range(FLICKERS):
            self.disk.set(fault_disk.NONE if number % 2 == 0 else fault)
            time.sleep(self.random.uniform(0.002, 0.12))  # how long the disk stays as it is

    def mend_disk(self):
        self.must_refuse_since = None
        self.disk.set(fault_disk.NONE)

    def expect_refusals(self, meanwhile=lambda: None):
        """With the disk refusing and the writers running."""
        refusals, began = self.refusals, time.monotonic()

        def refused_enough():
            meanwhile()
            return (self.refusals >= refusals + REFUSALS_PER_PHASE
                    and time.monotonic() > began + FAULT_SECONDS_MIN) or self.promises.violations

        def not_ready():
            meanwhile()
            return self.server.probe("/_ready") == 503 or self.promises.violations

        wait_until(refused_enough, PHASE_SECONDS_MAX, "writes are refused")
        wait_until(not_ready, 5, "/_ready says 503")
        if self.server.probe("/_health") != 200:
            self.promises.violate(f"{self.name}: /_health is {self.server.probe('/_health')}")
        self.expect_reads()

    def expect_reads(self):
        connection = wire.connect(self.server.port)
        for where in self.promises.databases[workload.STABLE_DATABASE].containers.values():
            documents, pages = connection.all_of(f"/{where.link}/docs", "Documents")
            if pages[-1].status != 200:
                self.promises.violate(f"{where.link}: read feed while writes fail: {pages[-1]}")
            with self.promises.lock:
                promised = dict(where.container.promised)
            for (pk, document_id), outcome in self.random.sample(
                    sorted(promised.items()), min(40, len(promised))):
                response = connection.get(f"/{where.link}/docs/{document_id}", wire.of_key(pk))
                if response.status not in (200, 404):
                    self.promises.violate(f"{where.link} {document_id}: a read while writes fail "
                                          f"answers {response}")
                elif response.status == 404 and outcome.kind == "put":
                    self.judge_missing(where, (pk, document_id), outcome)
        for path in ("/dbs/stable", "/dbs/stable/colls/three"):
            response = connection.get(path)
            if response.status != 200:
                self.promises.violate(f"{path}: a read while writes fail answers {response}")
        connection.close()

    def judge_missing(self, where, key, outcome):
        """Not lost if a delete came between, acknowledged or in doubt."""
        with self.promises.lock:
            now = where.container.promised.get(key)
            doubted = any(doubt.kind == "delete" for doubt in where.doubts.get(key, []))
        if now is outcome and not doubted:
            self.promises.violate(f"{where.link} {key}: 404 while writes fail, but {outcome} was "
                                  f"acknowledged")

    # ── What must hold afterwards ─────────────────────────────────────────────────────────────

    def expect_recovery(self):
        """The disk is well again: the same process takes writes, without help."""
        acknowledged = self.acknowledged()
        wait_until(
            lambda: self.acknowledged() > acknowledged + len(self.writers)
            or self.promises.violations, RECOVERY_SECONDS_MAX, "writes resume")
        wait_until(lambda: self.server.probe("/_ready") == 200,
                   RECOVERY_SECONDS_MAX, "/_ready says 200")
        self.join_writers()
        self.may_refuse = False
        if not self.server.alive():
            self.promises.violate(f"{self.name}: the server ended")
        self.check()

    def check(self):
        self.promises.check()
        if not self.promises.violations:
            workload.probe_heads(self.promises, self.server.port, f"{self.seed}/{self.phase}/probe")

    def kill(self):
        self.server.kill()
        if self.disk is not None:
            self.disk.cut_power()

    def kill_and_check(self):
        self.kill()
        self.server.start()
        self.check()


# ── The tests ─────────────────────────────────────────────────────────────────────────────────

def run_with_shim(test, fault):
    test.server.start()
    workload.set_up(test.promises, test.server.port)
    for round_number in range(ROUNDS):
        test.write_a_while()
        test.start_writers()
        time.sleep(test.random.uniform(0, 0.1))  # some moment in the middle of writes
        test.break_disk(fault)
        test.expect_refusals()
        test.flicker_disk(fault)
        test.mend_disk()
        if test.promises.violations:
            return test.join_writers()
        test.expect_recovery()
        test.write_a_while()
        test.kill_and_check()
        print(f"  {test.name}: round {round_number + 1}: {test.refusals} refusals, "
              f"{test.disk.failures()} calls failed, {test.promises.acknowledged} writes kept",
              flush=True)
        if test.promises.violations:
            return
    kill_while_refusing(test, fault)


def kill_while_refusing(test, fault):
    killed = threading.Event()
    test.start_writers(killed=killed)
    test.break_disk(fault)
    test.expect_refusals()
    killed.set()
    test.kill()
    test.join_writers()
    test.mend_disk()
    test.may_refuse = False
    test.server.start()
    test.check()
    if not test.promises.violations:
        test.write_a_while()
        test.kill_and_check()


def run_on_tmpfs(test, directory):
    test.server.start()
    workload.set_up(test.promises, test.server.port)
    ballast = os.path.join(directory, "ballast")
    for _ in range(2):
        test.write_a_while()
        # Room that the store has reserved for itself is used up by large documents.
        test.may_refuse = True
        fill_up(ballast)
        test.start_writers(large=True)
        # A small write may still find room where a large one does not. Space that the server
        # frees while it tries to recover is taken away again.
        test.expect_refusals(meanwhile=lambda: fill_up(ballast))
        os.remove(ballast)
        if test.promises.violations:
            return test.join_writers()
        test.expect_recovery()
        test.write_a_while()
        test.kill_and_check()
        if test.promises.violations:
            return
    print(f"  {test.name}: {test.refusals} refusals, {test.promises.acknowledged} writes kept",
          flush=True)


def fill_up(ballast):
    status = os.statvfs(os.path.dirname(ballast))
    free = status.f_bavail * status.f_frsize
    with open(ballast, "ab") as file:
        try:
            if free > 0:
                os.posix_fallocate(file.fileno(), file.tell(), free)
        except OSError as error:  # the server was quicker
            if error.errno != errno.ENOSPC:
                raise


SHIM_TESTS = {
    "enospc-on-write": (fault_disk.NO_SPACE, SAYS_DISK_FULL),
    "eio-on-write": (fault_disk.WRITE_ERROR, SAYS_DISK_BROKEN),
    "eio-on-fsync": (fault_disk.SYNC_ERROR, SAYS_DISK_BROKEN),
}


def report(test, arguments, work_dir):
    violations = test.promises.violations
    if not violations:
        print(f"PASS {test.name}: {test.refusals} refusals; of the writes left open "
              f"{test.promises.doubts_kept} had happened, {test.promises.doubts_dropped} not",
              flush=True)
        return True
    for text in violations[:VIOLATIONS_SHOWN]:
        print(f"VIOLATION {test.name}: {text}")
    print(f"FAIL {test.name}: {len(violations)} violations. The server said last:\n"
          f"{test.server.log_tail()}\nReplay: {os.path.relpath(__file__)} --binary "
          f"{arguments.binary} --seed {arguments.seed} --only {test.name}", flush=True)
    if work_dir:
        print(f"The data is kept in {work_dir}")
    return False


def guarded(test, run, *arguments):
    try:
        run(test, *arguments)
    except Exception:  # the seed must be shown whatever happens
        test.promises.violate(traceback.format_exc())
        if hasattr(test, "stop"):
            test.stop.set()
    finally:
        test.server.kill()


def shim_test(name, arguments):
    fault, message = SHIM_TESTS[name]
    work_dir = tempfile.mkdtemp(prefix="orrery-disk-", dir=arguments.work_dir)
    data_dir = os.path.join(work_dir, "data")
    os.mkdir(data_dir)
    disk = FaultDisk(arguments.shim, data_dir, os.path.join(work_dir, "control"))
    server = launcher.Server(data_dir=data_dir, log_path=os.path.join(work_dir, "server.log"),
                             environment=disk.environment, binary=arguments.binary)
    test = DiskTest(name, arguments, server, message, disk)
    guarded(test, run_with_shim, fault)
    passed = report(test, arguments, work_dir)
    if passed:
        shutil.rmtree(work_dir)
    return passed


def tmpfs_test(arguments):
    work_dir = tempfile.mkdtemp(prefix="orrery-disk-", dir=arguments.work_dir)
    directory = os.path.join(work_dir, "small")
    os.mkdir(directory)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "orrery-small",
                              directory], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        print(f"SKIP tmpfs: cannot mount a small file system: {mounted.stderr.strip()}")
        shutil.rmtree(work_dir)
        return True
    try:
        server = launcher.Server(data_dir=os.path.join(directory, "data"),
                                 log_path=os.path.join(work_dir, "server.log"), binary=arguments.binary)
        test = DiskTest("tmpfs", arguments, server, SAYS_DISK_FULL)
        guarded(test, run_on_tmpfs, directory)
        return report(test, arguments, None)
    finally:
        subprocess.run(["umount", "-l", directory], check=False)
        shutil.rmtree(work_dir, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default=launcher.BINARY)
    parser.add_argument("--shim", default=os.environ.get("ORRERY_FAULT_SHIM",
                                                         f"{launcher.BUILD}/bin/orrery_fault_shim.so"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", choices=[*SHIM_TESTS, "tmpfs"])
    parser.add_argument("--work-dir", default=None, help="kept when the test fails")
    arguments = parser.parse_args()
    arguments.seed = seeds.seed(arguments.seed)
    passed = True
    for name in [arguments.only] if arguments.only else [*SHIM_TESTS, "tmpfs"]:
        passed = (tmpfs_test(arguments) if name == "tmpfs" else shim_test(name, arguments)) \
            and passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
