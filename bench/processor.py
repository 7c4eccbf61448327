"""The rows of the C++ client and the change feed processor."""

import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import time

from benchmark import CONTAINER, DATABASE, READ_IDS, Harness, Row, end, run_json, say, spread
from harness import wire
from harness.waiting import wait_until

LINK = f"dbs/{DATABASE}/colls/{CONTAINER}"
RU_PER_RANGE = 6000  # with which a container gets so many ranges,
RANGES_MADE_MAX = 160  # up to as many as this; more come of splits
TAKE_OVER_MS = {"renew-ms": 500, "acquire-ms": 500, "expiration-ms": 2000}
IDLE_LEASES = 1000
SDK_THREADS = 16


class ProcessorRows(Harness):
    # ── What the rows share ───────────────────────────────────────────────────────────────────

    def make_ranges(self, server, ranges, leases=("leases",)):
        """A container of so many ranges, and lease containers."""
        made_at_once = min(ranges, RANGES_MADE_MAX)
        connection = wire.connect(server.port, seconds_max=300)
        made = connection.post("/dbs", {"id": DATABASE})
        if made.status not in (201, 409):
            raise RuntimeError(f"create database: {made}")
        for name, path, throughput in ((CONTAINER, "/pk", 400 if ranges == 1
                                        else made_at_once * RU_PER_RANGE),
                                       *((each, "/id", 400) for each in leases)):
            made = connection.post(f"/dbs/{DATABASE}/colls", {
                "id": name, "defaultTtl": -1,
                "partitionKey": {"paths": [path], "kind": "Hash", "version": 2},
            }, {"x-ms-offer-throughput": str(throughput)})
            if made.status != 201:
                raise RuntimeError(f"create container: {made}")
        whole = connection.all_of(f"/{LINK}/pkranges", "PartitionKeyRanges")[0]
        for number in range(ranges - len(whole)):
            made = connection.post(f"/{LINK}/operations/split", {"range": whole[number]["id"]})
            if made.status != 200:
                raise RuntimeError(f"split: {made}")
            known = {each["id"] for each in whole}
            whole += [each for each in made.json["PartitionKeyRanges"] if each["id"] not in known]
        connection.close()

    def processor(self, mode, server, **options):
        return run_json(*self.processor_command(mode, server, **options))

    def processor_command(self, mode, server, **options):
        options = {"database": DATABASE, "container": CONTAINER, **options}
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        return [self.tool("processor_load"), mode, "--port", str(server.port), *words]

    @contextlib.contextmanager
    def host(self, server, name, **options):
        """A host that takes part until it is killed; the name of the file with what it says."""
        said = os.path.join(self.directory, f"{name}.out")
        with open(said, "wb") as output, open(self.log, "ab") as log:
            process = subprocess.Popen(self.processor_command("serve", server, name=name, **options),
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=log)
        try:
            yield process, said
        finally:
            end(process, signal.SIGKILL)

    # ── Catching up ───────────────────────────────────────────────────────────────────────────

    def processor_catch_up(self):
        """One host with an observer that does nothing ÷ bare readers, one for each range."""
        ranges = 4
        ours, theirs = [], []
        leases = [f"leases{number}" for number in range(self.rounds + 1)]
        with self.server(self.fresh_directory("catch-up")) as server:
            self.make_ranges(server, ranges, leases)
            say(f"filling in {self.million_count:,} documents")
            self.load("fill", server.port, count=self.million_count, connections=64)

            def read():
                result = self.load("changes", server.port,
                                   range=",".join(str(each) for each in range(ranges)))
                if result["documents"] != self.million_count:
                    raise RuntimeError(f"the change feed shows {result['documents']} documents")
                return result["per_second"]

            def process(lease_container):
                return self.processor("catch-up", server, leases=lease_container,
                                      count=self.million_count)["per_second"]

            read()  # brings the files into the page cache
            process(leases.pop())
            for lease_container in leases:
                ours.append(process(lease_container))
                theirs.append(read())
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        return Row("processor-catch-up", "≥ 0.6", ratio >= 0.6,
                   f"{spread(ours)} documents/s by one host, {spread(theirs)} by bare readers, "
                   f"{ranges} ranges, {self.million_count:,} documents", ratio)

    # ── How soon ──────────────────────────────────────────────────────────────────────────────

    def processor_latency(self):
        """From the acknowledgement of a write to the call of the observer."""
        halves, tails = [], []
        leases = [f"leases{number}" for number in range(self.rounds)]
        with self.server(self.fresh_directory("latency")) as server:
            self.make_ranges(server, 1, leases)
            for lease_container in leases:
                result = self.processor("latency", server, leases=lease_container, rate=20,
                                        seconds=2 * self.seconds)
                halves.append(result["p50_ms"])
                tails.append(result["p99_ms"])
        half, tail = statistics.median(halves), statistics.median(tails)
        return Row("processor-latency", "p50 ≤ 1 ms, p99 ≤ 10 ms", half <= 1 and tail <= 10,
                   f"p50 {spread(halves, 2)} ms, p99 {spread(tails, 2)} ms, 20 writes/s, 1 host")

    def processor_take_over(self):
        """From SIGKILL of a host to the moment when another one has all its leases."""
        ranges, times = 4, []
        goal = (TAKE_OVER_MS["expiration-ms"] + TAKE_OVER_MS["acquire-ms"] + 500) / 1000
        with self.server(self.fresh_directory("take-over")) as server:
            self.make_ranges(server, ranges)
            with self.host(server, "survivor", leases="leases", **TAKE_OVER_MS) as (_, survivor):
                for number in range(self.rounds):
                    with self.host(server, f"victim{number}", leases="leases",
                                   **TAKE_OVER_MS) as (process, victim):
                        wait_until(lambda: len(opened(victim)) == ranges // 2, 60,
                                   "the victim has its share")
                        before = len(opened(survivor))
                        # Another moment of its interval in every round.
                        time.sleep(TAKE_OVER_MS["renew-ms"] / 1000 * (number + 0.5) / self.rounds)
                        process.kill()
                        killed = time.monotonic()
                        wait_until(
                            lambda: len(opened(survivor)) >= before + ranges // 2, 60,
                            "the survivor has them all")
                        times.append(max(opened(survivor)[before:]) - killed)
        return Row("processor-take-over", f"≤ {goal:.1f} s", max(times) <= goal,
                   f"{spread(times, 2)} s from SIGKILL to the last lease at another host, "
                   f"expiration {TAKE_OVER_MS['expiration-ms']} ms, acquire interval "
                   f"{TAKE_OVER_MS['acquire-ms']} ms")

    # ── An idle host ──────────────────────────────────────────────────────────────────────────

    def processor_lease_writes(self):
        """How often the leases of an idle host are written, second by second."""
        renew_seconds = 5 if self.quick else 17
        leases = 100 if self.quick else IDLE_LEASES
        intervals = 3
        with self.server(self.fresh_directory("idle-host")) as server:
            say(f"a container of {leases:,} ranges")
            self.make_ranges(server, leases)
            with self.host(server, "idle", leases="leases",
                           **{"renew-ms": renew_seconds * 1000}) as (_, said):
                wait_until(lambda: len(opened(said)) == leases, 300,
                           "the host has all leases", pause=0.1)
                time.sleep(renew_seconds)  # of which some were made, others renewed
                counts = self.writes_by_second(server, "leases", intervals * renew_seconds)
        allowed = leases / renew_seconds
        mean, most = statistics.mean(counts), max(counts)
        return Row("processor-lease-writes", "≤ 1 per lease and renew interval, ≤ 2 × the mean",
                   mean <= allowed * 1.02 and most <= 2 * mean,
                   f"{mean:.1f} writes/s for {leases:,} leases renewed every {renew_seconds} s "
                   f"(one each is {allowed:.1f}), {most} in the busiest second", most / mean)

    def writes_by_second(self, server, container, seconds):
        """Every write moves the head of its range by one."""
        connection = wire.connect(server.port)
        link = f"dbs/{DATABASE}/colls/{container}"

        def head():
            answer = connection.get(f"/{link}/docs", {
                "a-im": "Incremental feed", "if-none-match": "*",
                "x-ms-documentdb-partitionkeyrangeid": "0"})
            return int(answer["etag"].strip('"'))

        began = time.monotonic()
        heads = [head()]
        for number in range(1, seconds + 1):
            time.sleep(max(0.0, began + number - time.monotonic()))
            heads.append(head())
        connection.close()
        return [after - before for before, after in zip(heads, heads[1:])]

    # ── The client ────────────────────────────────────────────────────────────────────────────

    def sdk_point_reads(self):
        """Point reads with the SDK in turn with wrk, which sends requests that were signed before."""
        ours, theirs = [], []
        with self.server(self.fresh_directory("sdk")) as server:
            self.make_container(server)
            self.load("fill", server.port, count=READ_IDS)
            script = self.wrk_script(server.port)
            for _ in range(self.rounds):
                ours.append(run_json(self.tool("sdk_reads"), "--port", server.port, "--threads",
                                     SDK_THREADS, "--seconds", self.seconds, "--ids", READ_IDS,
                                     "--database", DATABASE, "--container",
                                     CONTAINER)["per_second"])
                theirs.append(self.wrk(server.port, script))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        return Row("sdk-point-reads", "≥ 0.4", ratio >= 0.4,
                   f"{spread(ours)} reads/s with {SDK_THREADS} threads of the SDK, {spread(theirs)} "
                   f"by wrk with {SDK_THREADS} connections", ratio)

    def wrk(self, port, script):
        done = subprocess.run(["wrk", "-t", "2", "-c", str(SDK_THREADS), "-d",
                               f"{self.seconds}s", "-s", script, f"http://127.0.0.1:{port}"],
                              capture_output=True, text=True, check=True)
        if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
            raise RuntimeError(done.stdout)
        return float(re.search(r"Requests/sec:\s+([0-9.]+)", done.stdout).group(1))

    def wrk_script(self, port):
        """Requests as orrery_load sends them, for wrk to choose from."""
        connection = wire.connect(port)
        requests = []
        for number in range(READ_IDS):
            link = f"{LINK}/docs/doc-{number:010}"
            request = connection.build("GET", f"/{link}", None, {
                "x-ms-documentdb-partitionkey": f'["k{number % 1000:06}"]',
                "accept": "application/json", "user-agent": "wrk"})
            requests.append(json.dumps(request.decode("ascii")))  # escapes as Lua has them, too
        path = os.path.join(self.directory, "reads.lua")
        with open(path, "w", encoding="ascii") as file:
            file.write(WRK_SCRIPT.format(requests=",\n".join(requests)))
        return path


WRK_SCRIPT = """
local requests = {{
{requests}
}}
function request() return requests[math.random(#requests)] end
"""


def opened(path):
    """When a host got each of its leases, as far as it has said so."""
    with open(path, encoding="ascii") as file:
        return [float(line.split()[2]) for line in file if line.startswith("open ")
                and line.endswith("\n")]


ROWS = {
    "processor-catch-up": ProcessorRows.processor_catch_up,
    "processor-latency": ProcessorRows.processor_latency,
    "processor-take-over": ProcessorRows.processor_take_over,
    "processor-lease-writes": ProcessorRows.processor_lease_writes,
    "sdk-point-reads": ProcessorRows.sdk_point_reads,
}
