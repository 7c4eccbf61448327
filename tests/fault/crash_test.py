#!/usr/bin/env python3
"""Kills the server at random moments and checks that it keeps what it has promised.

Many connections create, replace, upsert and delete documents in containers of one and of several
ranges while others create and delete containers and databases, follow change feeds, split and merge, change
indexes, and have documents expire. The server is killed with SIGKILL, started again on the same data
directory and port, and everything is read back: see promises.py, feeds.py and upkeep.py for what must
hold.

    crash_test.py [--binary build/orrery] [--seed N] [--kills 20 | --duration SECONDS]

The seed is printed; with the same seed the same requests are made and the same moments chosen, as
far as threads allow. With --power-loss the server runs on fault_shim.cc, and each kill also takes
away what was not synchronised to the disk.
"""

import argparse
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import workload  # noqa: E402
from fault_disk import FaultDisk  # noqa: E402
from feeds import Feeds  # noqa: E402
from harness import seeds, server as launcher, wire  # noqa: E402
from promises import Promises  # noqa: E402
from upkeep import Upkeep  # noqa: E402

WRITERS = 14
CHURNERS = 2
VIOLATIONS_SHOWN = 20


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default=launcher.BINARY)
    parser.add_argument("--shim", default=os.environ.get("ORRERY_FAULT_SHIM",
                                                         f"{launcher.BUILD}/bin/orrery_fault_shim.so"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--duration", type=float, default=None,
                        help="kill for so many seconds instead of counting")
    parser.add_argument("--power-loss", action="store_true")
    parser.add_argument("--work-dir", default=None, help="kept when the test fails")
    arguments = parser.parse_args()
    arguments.seed = seeds.seed(arguments.seed)
    return arguments


class CrashTest:
    def __init__(self, arguments, work_dir):
        self.arguments = arguments
        self.random = random.Random(arguments.seed)
        data_dir = os.path.join(work_dir, "data")
        os.mkdir(data_dir)
        self.disk = None
        if arguments.power_loss:
            self.disk = FaultDisk(arguments.shim, data_dir, os.path.join(work_dir, "control"))
        self.server = launcher.Server(
            data_dir=data_dir, log_path=os.path.join(work_dir, "server.log"), binary=arguments.binary,
            environment=self.disk.environment if self.disk else None)
        self.promises = Promises(self.server.port)
        self.feeds = Feeds(self.promises, self.server.port)
        self.upkeep = Upkeep(self.promises, self.server.port)
        self.kills = 0
        self.stops = 0
        self.lost_bytes = 0

    def run(self):
        self.server.start()
        workload.set_up(self.promises, self.server.port)
        self.feeds.set_up()
        self.upkeep.set_up()
        began = time.monotonic()
        cycle = 0
        while not self.finished(began) and not self.promises.violations:
            cycle += 1
            self.one_cycle(cycle)
        if not self.promises.violations and self.server.terminate() != 0:
            self.promises.violate(f"SIGTERM: exit status {self.server.process.returncode}")

    def finished(self, began):
        if self.arguments.duration is not None:
            return time.monotonic() - began >= self.arguments.duration
        return self.kills >= self.arguments.kills

    def one_cycle(self, cycle):
        orderly = cycle > 1 and self.random.random() < 0.1  # SIGTERM must keep promises, too
        killed, catalog_changes = threading.Event(), threading.Event()
        workers = self.start_workers(cycle, killed, catalog_changes, orderly)
        self.wait_for_the_moment(catalog_changes)
        killed.set()
        if orderly:
            self.stops += 1
            status = self.server.terminate()
            if status != 0:
                self.promises.violate(f"SIGTERM: exit status {status}")
        else:
            self.kills += 1
            self.server.kill()
        for worker in workers:
            worker.join(timeout=wire.ANSWER_SECONDS_MAX)
            if worker.is_alive():
                self.promises.violate(f"{worker.name} still waits for a server that is gone")
        writes = sum(worker.successes for worker in workers)
        self.cut_power(orderly)
        interrupted = self.interrupt_starts()
        seconds = self.server.start()
        self.promises.check()
        self.feeds.check(f"{self.arguments.seed}/{cycle}")
        self.upkeep.check()
        if self.promises.violations:
            return
        workload.probe_heads(self.promises, self.server.port, f"{self.arguments.seed}/{cycle}")
        print(f"  {'stop' if orderly else 'kill'} {cycle}: {writes} acknowledged, "
              f"{'started ' + str(interrupted) + ' times in vain, ' if interrupted else ''}"
              f"ready in {seconds * 1000:.0f} ms", flush=True)

    def start_workers(self, cycle, killed, catalog_changes, orderly):
        never = threading.Event()  # the server's death stops them, nothing else
        seed = f"{self.arguments.seed}/{cycle}"

        def refused(response, _):
            # Only a server that is going down may say no.
            if not killed.is_set():
                self.promises.violate(f"a healthy server answers {response}")

        common = (self.promises, self.server.port, seed, never, killed,
                  refused if orderly else None)
        workers = [workload.DocumentWriter(f"w{i}", *common) for i in range(WRITERS)]
        workers += [workload.Churner(f"churner{i}", *common, began=catalog_changes)
                    for i in range(CHURNERS)]
        workers += self.feeds.workers(seed, killed)
        workers += self.upkeep.workers(seed, killed)
        for worker in workers:
            worker.start()
        return workers

    def wait_for_the_moment(self, catalog_changes):
        """Some time in the first second; for every third kill a moment after a container or
        database began to be created or deleted."""
        delay = self.random.uniform(0.02, 0.9)
        after_change = self.random.uniform(0, 0.004) if self.random.random() < 0.34 else None
        time.sleep(delay)
        if after_change is not None:
            catalog_changes.clear()
            if catalog_changes.wait(timeout=1):
                time.sleep(after_change)

    def cut_power(self, orderly):
        if self.disk is not None and not orderly:
            self.lost_bytes += self.disk.cut_power()

    def interrupt_starts(self):
        """Recovery may be killed, too."""
        interrupted = 0
        while self.random.random() < 0.25:
            self.server.spawn()
            time.sleep(self.random.uniform(0, 0.06))  # some moment of the recovery
            self.server.kill()
            self.cut_power(False)
            interrupted += 1
        return interrupted


def main():
    arguments = parse_arguments()
    work_dir = tempfile.mkdtemp(prefix="orrery-crash-", dir=arguments.work_dir)
    test = CrashTest(arguments, work_dir)
    violations = test.promises.violations
    try:
        test.run()
    except Exception:  # the seed must be shown whatever happens
        violations.append(traceback.format_exc())
    finally:
        test.server.kill()
    promises = test.promises
    print(f"{test.kills} kills, {test.stops} orderly stops, {promises.acknowledged} writes and "
          f"{promises.catalog_acknowledged} catalog changes acknowledged; of those left open "
          f"{promises.doubts_kept} had happened, {promises.doubts_dropped} not; slowest start "
          f"{test.server.slowest_start * 1000:.0f} ms; {test.feeds.etags} feed etags and "
          f"{test.feeds.changes} splits and merges, {test.feeds.resumed} feeds resumed; "
          f"{test.upkeep.policies} changes of indexes, {test.upkeep.expired} documents expired"
          + (f"; {test.lost_bytes} bytes were not synchronised" if test.disk else ""))
    if not violations:
        shutil.rmtree(work_dir)
        print("PASS")
        return 0
    for text in violations[:VIOLATIONS_SHOWN]:
        print(f"VIOLATION {text}")
    print(f"{len(violations)} violations. The data is kept in {work_dir}. The server said last:\n"
          f"{test.server.log_tail()}")
    print(f"Replay: {os.path.relpath(__file__)} --binary {arguments.binary} "
          f"--seed {arguments.seed} --kills {test.kills}"
          + (" --power-loss" if arguments.power_loss else ""))
    return 1


if __name__ == "__main__":
    sys.exit(main())
