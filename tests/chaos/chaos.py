#!/usr/bin/env python3
"""Hosts of the processor as processes, a server, writers, and signals; then looks what came of it.

Hosts share the leases of a container under write load. They are killed and started again, stopped
for longer than their leases last, asked to leave; others come. Ranges are split and merged, the
server is killed and restarted. Then there is calm, and all that checks.py knows must be true.

    chaos.py [--binary build/orrery] [--host build/bin/chaos_host] [--seed N] [--duration SECONDS]

The seed is printed. With the same seed the same things are done at the same times; what they meet
depends on threads and processes.
"""

import argparse
import collections
import heapq
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks  # noqa: E402
import processes  # noqa: E402
from harness import seeds, server as launcher, wire  # noqa: E402
from harness.waiting import TimedOut, wait_until  # noqa: E402

Timing = collections.namedtuple("Timing", "renew_ms acquire_ms expiration_ms page_size work_ms")
TIMING = Timing(renew_ms=300, acquire_ms=250, expiration_ms=1500, page_size=20, work_ms=25)
ACQUIRE_SECONDS = TIMING.acquire_ms / 1000
EXPIRATION_SECONDS = TIMING.expiration_ms / 1000

HOSTS = 4  # at the end; two leases each at the most
HOSTS_MIN, HOSTS_MAX = 2, 6
WRITERS = 6
# The events, in packs that are shuffled, so that a short run has a bit of everything.
PACK = (["kill host"] * 3 + ["pause host"] * 2 + ["host leaves"] + ["host joins"] + ["split"] * 2
        + ["merge"] * 2 + ["kill server"] + ["stop server"])
GAP_SECONDS = 0.75
PROCESSED_SECONDS_MAX = 60
LEAVE_SECONDS_MAX = 30
# The delay that a busy machine may add to a time that the processor promises.
MACHINE_SECONDS = 2.0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default=launcher.BINARY)
    parser.add_argument("--host", default=os.environ.get("ORRERY_CHAOS_HOST",
                                                         f"{launcher.BUILD}/bin/chaos_host"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--duration", type=float, default=100, help="of the disorder, in seconds")
    parser.add_argument("--work-dir", default=None, help="kept when something fails")
    parser.add_argument("--keep", action="store_true", help="keep records and logs in any case")
    arguments = parser.parse_args()
    arguments.seed = seeds.seed(arguments.seed)
    return arguments


def make_plan(seed, duration):
    """(seconds from the start, what, two random numbers that say whom and how long)"""
    chance = random.Random(seed)
    plan, pack, at = [], [], 1.0
    while at < duration:
        if not pack:
            pack = chance.sample(PACK, len(PACK))
        plan.append((at, pack.pop(), chance.random(), chance.random()))
        at += chance.uniform(0.2, 1.8) * GAP_SECONDS
    return plan


class Chaos:
    def __init__(self, arguments, work_dir):
        self.arguments, self.work_dir = arguments, work_dir
        data_dir = os.path.join(work_dir, "data")
        os.mkdir(data_dir)
        self.server = launcher.Server(data_dir=data_dir, log_path=os.path.join(work_dir, "server.log"),
                                      binary=arguments.binary)
        self.hosts, self.gone = [], []  # that run, or are stopped; that were
        self.leaving = []
        self.writers, self.topology = [], []
        self.agenda = []  # (when, order, what to do, in words)
        self.names = 0
        self.records = checks.Records()
        self.ending_early = []  # processes that ended by themselves, and other surprises
        self.counts = collections.Counter()
        self.results = []
        self.began = 0.0
        self.last_death = 0.0

    # ── What is done ──────────────────────────────────────────────────────────────────────────

    def run(self):
        self.server.start()
        processes.make_containers(self.server.port)
        self.began = time.monotonic()
        for _ in range(HOSTS):
            self.start_host()
        for number in range(WRITERS):
            writer = processes.Writer(number, self.server.port, self.arguments.seed)
            self.writers.append(writer)
            writer.start()
        for at, what, whom, how_long in make_plan(self.arguments.seed, self.arguments.duration):
            self.later(self.began + at, lambda w=what, a=whom, b=how_long: self.do(w, a, b))
        while self.agenda and self.agenda[0][0] < self.began + self.arguments.duration:
            when, _, action = heapq.heappop(self.agenda)
            self.wait_for(when)
            action()
        self.calm_down()
        self.look()

    def wait_for(self, when):
        """The moment of the plan: until then nobody may end by himself."""
        def is_due():
            self.look_for_the_dead()
            return time.monotonic() >= when
        wait_until(is_due, max(0.0, when - time.monotonic()) + 1, "the next moment of the plan", pause=0.01)

    def later(self, when, action):
        heapq.heappush(self.agenda, (when, len(self.agenda) + self.counts.total(), action))

    def say(self, text):
        print(f"  {time.monotonic() - self.began:7.2f} s  {text}", flush=True)

    def do(self, what, whom, how_long):
        self.counts[what] += 1
        running = [host for host in self.hosts if not host.stopped]
        target = running[int(whom * len(running))] if running else None
        if what == "kill host" and target is not None:
            self.kill_host(target, how_long)
        elif what == "pause host" and target is not None:
            self.pause_host(target, how_long)
        elif what == "host leaves" and len(self.hosts) > HOSTS_MIN and target is not None:
            self.say(f"{target.name} is asked to leave")
            self.ask_to_leave(target)
        elif what == "host joins" and len(self.hosts) < HOSTS_MAX:
            self.say(f"{self.start_host().name} joins")
        elif what in ("split", "merge"):
            self.say(what)
            change = processes.TopologyChange(self.server.port, what, whom)
            self.topology.append(change)
            change.start()
        elif what == "kill server" and self.server.alive():
            self.say("the server is killed")
            self.server.kill()
            self.later(time.monotonic() + 0.1 + 1.4 * how_long, self.start_server)
        elif what == "stop server" and self.server.alive():
            self.say("the server is stopped")
            status = self.server.terminate()
            if status != 0:
                self.ending_early.append(f"the server stopped with status {status}")
            self.later(time.monotonic() + 0.1 + 0.4 * how_long, self.start_server)
        else:
            self.counts[what] -= 1

    def start_host(self, name=None):
        if name is None:
            self.names += 1
            name = f"host-{self.names}"
        serial = len(self.hosts) + len(self.gone) + len(self.leaving)
        host = processes.Host(self.arguments.host, name, self.server.port, self.work_dir, serial,
                              TIMING)
        self.hosts.append(host)
        return host

    def kill_host(self, host, how_long):
        """It comes back soon or late, under its own name or another."""
        name = host.name if how_long < 0.5 else None
        self.say(f"{host.name} is killed")
        host.kill()
        self.hosts.remove(host)
        self.gone.append(host)
        self.last_death = time.monotonic()
        wait = (how_long * 2 % 1) * 1.5 * EXPIRATION_SECONDS

        def come_back():
            self.say(f"{self.start_host(name).name} starts")

        self.later(time.monotonic() + wait, come_back)

    def pause_host(self, host, how_long):
        """Longer than its leases last."""
        self.say(f"{host.name} is stopped")
        host.pause()

        def go_on():
            self.say(f"{host.name} goes on")
            host.resume()
            self.last_death = time.monotonic()

        self.later(time.monotonic() + (1.1 + how_long) * EXPIRATION_SECONDS, go_on)

    def ask_to_leave(self, host):
        host.ask_to_leave()
        self.hosts.remove(host)
        self.leaving.append(host)

    def start_server(self):
        seconds = self.server.start()
        self.say(f"the server is there again after {seconds * 1000:.0f} ms")

    def look_for_the_dead(self):
        for host in list(self.hosts):
            if host.process.poll() is not None:
                self.ending_early.append(f"{host.name} ended by itself with status "
                                         f"{host.process.returncode}\n{host.log_tail()}")
                self.hosts.remove(host)
                self.gone.append(host)
        for host in list(self.leaving):
            status = host.process.poll()
            if status is not None:
                self.leaving.remove(host)
                self.gone.append(host)
                self.say(f"{host.name} has left")
                if status != 0:
                    self.ending_early.append(f"{host.name} was asked to leave and ended with "
                                             f"status {status}\n{host.log_tail()}")

    def calm_down(self):
        """Actions that are due run now: stopped processes go on, killed ones come back."""
        for _, _, action in sorted(self.agenda, key=lambda each: each[:2]):
            action()
        self.agenda = []
        for writer in self.writers:
            writer.stopping.set()
        for thread in [*self.writers, *self.topology]:
            thread.join(timeout=wire.ANSWER_SECONDS_MAX + 5)
        self.say("nobody writes any more")
        while len(self.hosts) > HOSTS:
            self.ask_to_leave(self.hosts[0])
        while len(self.hosts) < HOSTS:
            self.start_host()
        wait_until(self.all_have_left, LEAVE_SECONDS_MAX, "hosts leave")
        wait_until(lambda: all(host.is_ready() for host in self.hosts),
                   processes.READY_SECONDS_MAX, "hosts take part")
        self.say(f"calm: {len(self.hosts)} hosts")

    def all_have_left(self):
        self.look_for_the_dead()
        return not self.leaving

    # ── What is looked at ─────────────────────────────────────────────────────────────────────

    def look(self):
        port, everybody = self.server.port, lambda: [*self.gone, *self.leaving, *self.hosts]
        self.look_at_spread()
        final = {each["id"]: (each["pk"], each["seq"])
                 for each in processes.documents_of(port, processes.MONITORED_LINK)}

        def all_processed():
            self.look_for_the_dead()
            self.records.read(everybody())
            return self.records.processed.issuperset(final.values())

        try:
            wait_until(all_processed, PROCESSED_SECONDS_MAX, "all is processed", 0.1)
        except TimedOut:
            pass  # The check says what is missing.
        acknowledged = {}
        for writer in self.writers:
            acknowledged |= writer.acknowledged
        self.judge("every acknowledged write was processed",
                   *checks.check_processed(final, acknowledged, self.records.processed))
        leases = processes.leases_of(port)
        self.judge("the leases are the whole container, once", *checks.check_tiling(leases))
        self.judge("each lease is open on its owner only",
                   *checks.check_open_observers(self.records, leases, self.hosts))
        self.end_all()
        self.records.read(everybody())
        self.judge("in order per key within a run", *checks.check_order(self.records))
        self.judge("no change before an earlier one of its key",
                   *checks.check_nothing_skipped(self.records, final))
        self.judge("nothing confirmed comes again",
                   *checks.check_duplicates(self.records, TIMING.page_size))
        self.judge("epochs rise", *checks.check_epochs(self.records, everybody()))
        self.judge("observers are opened once, called in turn, and closed once",
                   self.records.oddities, f"{len(self.records.batches())} batches")
        self.ending_early += [each for writer in self.writers for each in writer.complaints]
        self.judge("nobody ended by himself or was refused", self.ending_early,
                   f"{len(everybody())} processes")

    def look_at_spread(self):
        """max − min ≤ 1 within two acquire intervals, and an expiration where somebody died."""
        began = time.monotonic()
        allowed = 2 * ACQUIRE_SECONDS + MACHINE_SECONDS
        if began - self.last_death < 2 * EXPIRATION_SECONDS:
            allowed += EXPIRATION_SECONDS
        shares = {}

        def is_even():
            shares.clear()
            shares.update({host.name: 0 for host in self.hosts})
            for lease in processes.leases_of(self.server.port):
                shares[lease["Owner"]] = shares.get(lease["Owner"], 0) + 1
            return (len(shares) == len(self.hosts)
                    and max(shares.values()) - min(shares.values()) <= 1)

        wrong = []
        try:
            wait_until(is_even, allowed, "even", 0.02)
        except TimedOut:
            wrong = [f"after {allowed:.1f} s the hosts have {dict(shares)}"]
        self.judge("leases are spread evenly", wrong,
                   f"after {time.monotonic() - began:.2f} s of calm, of {allowed:.2f} allowed")

    def end_all(self):
        for host in list(self.hosts):
            self.ask_to_leave(host)
        wait_until(self.all_have_left, LEAVE_SECONDS_MAX, "hosts leave")
        owned = [each["LeaseToken"] for each in processes.leases_of(self.server.port)
                 if each["Owner"]]
        self.judge("who leaves gives its leases back", [f"leases {owned} still have an owner"]
                   if owned else [], "no owners")

    def judge(self, promise, wrong, looked_at):
        self.results.append(not wrong)
        print(f"{'failed' if wrong else 'passed'}: {promise} ({looked_at})", flush=True)
        for finding in wrong[:checks.FINDINGS_SHOWN]:
            print(f"    {finding}")
        if wrong:
            print(f"    {len(wrong)} findings, seed {self.arguments.seed}", flush=True)

    def end(self):
        for host in [*self.hosts, *self.leaving]:
            if host.process.poll() is None:
                host.kill()
        self.server.kill()


def main():
    arguments = parse_arguments()
    work_dir = tempfile.mkdtemp(prefix="orrery-chaos-", dir=arguments.work_dir)
    chaos = Chaos(arguments, work_dir)
    try:
        chaos.run()
    except Exception:  # the seed must be shown whatever happens
        chaos.judge("the run comes to its end", [traceback.format_exc()], "an exception")
    finally:
        chaos.end()
    print(", ".join(f"{count} × {what}" for what, count in sorted(chaos.counts.items())))
    failed = chaos.results.count(False)
    if failed or arguments.keep:
        print(f"Records and logs are kept in {work_dir}.")
    else:
        shutil.rmtree(work_dir)
    if failed:
        print(f"The server said last:\n{chaos.server.log_tail()}\n"
              f"Replay: {os.path.relpath(__file__)} --seed {arguments.seed} "
              f"--duration {arguments.duration:g}")
    print(f"{chaos.results.count(True)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
