"""The rows of the change feed: catching up, pages of it, push, and what it costs writers."""

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import threading
import time

from benchmark import (CONTAINER, DATABASE, DOC_BYTES, Harness, Row, can_connect, end, postgres_document,
                       run_json, say, spread)
from harness import wire
from harness.server import free_port
from harness.waiting import wait_until

LINK = f"dbs/{DATABASE}/colls/{CONTAINER}"


class FeedRows(Harness):
    # ── Catching up ───────────────────────────────────────────────────────────────────────────

    def changes_once(self, server):
        """Documents per second of one reader that reads the whole feed."""
        result = self.load("changes", server.port)
        if result["documents"] != self.million_count:
            raise RuntimeError(f"the change feed shows {result['documents']} documents")
        return result["per_second"]

    def alternate_changes(self, name, goal, other, other_name):
        """Catch-up over HTTP in turn with other(), which returns documents/s."""
        ours, theirs = [], []
        with self.server(self.with_million()["dir"]) as server:
            self.changes_once(server)  # brings the files into the page cache
            for _ in range(self.rounds):
                ours.append(self.changes_once(server))
                theirs.append(other())
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        return Row(name, f"≥ {goal}", ratio >= goal,
                   f"{spread(ours)} documents/s over HTTP, {other_name} {spread(theirs)}, "
                   f"{self.million_count:,} documents", ratio)

    def feed_vs_scan(self):
        store = os.path.join(self.with_million()["dir"], self.arguments.store)
        return self.alternate_changes(
            "feed-vs-scan", 0.5,
            lambda: run_json(self.tool("rocksdb_baseline"), "scan", "--dir", store, "--passes",
                             1)["per_second"],
            "bare RocksDB scan of the log")

    def feed_vs_redis(self):
        with self.redis() as port:
            say("filling a Redis stream")
            run_json(self.tool("redis_stream"), "fill", "--port", port, "--count",
                     self.million_count, "--doc-bytes", DOC_BYTES)
            return self.alternate_changes(
                "feed-vs-redis", 0.5,
                lambda: run_json(self.tool("redis_stream"), "read", "--port", port, "--count",
                                 self.million_count)["per_second"],
                "Redis 7 XREAD")

    @contextlib.contextmanager
    def redis(self):
        """Redis in memory alone: its best case for reading."""
        port = free_port()
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                 "--appendonly", "no", "--dir", self.fresh_directory("redis")],
                stdout=log, stderr=log)
        try:
            wait_until(lambda: can_connect(port), 10, "Redis listens")
            yield port
        finally:
            end(process, signal.SIGTERM)

    def feed_vs_postgres(self):
        """Logical decoding streams the log again for every reading from a fresh copy of the slot."""
        rows = self.million_count // 5
        with self.postgres("wal_level=logical", "max_wal_senders=4",
                           "synchronous_commit=off") as postgres:
            postgres.allow_output_plugin("wal2json")
            postgres.sql("SELECT pg_create_logical_replication_slot('start', 'wal2json')")
            say("filling PostgreSQL")
            body = postgres_document().replace("'", "''")
            # Rows of a transaction each, as the documents were.
            postgres.sql("CREATE PROCEDURE fill(n int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n "
                         f"LOOP INSERT INTO docs (body) VALUES ('{body}'); COMMIT; END LOOP; END $$")
            postgres.sql(f"CALL fill({rows})")
            postgres.sql("CHECKPOINT")
            head = postgres.sql("SELECT pg_current_wal_flush_lsn()")
            number = 0

            def decode():
                nonlocal number
                number += 1
                postgres.sql("SELECT pg_copy_logical_replication_slot('start', "
                             f"'copy_{number}')")
                began = time.perf_counter()
                postgres.run("pg_recvlogical", "-h", postgres.sockets, "-U", "postgres", "-d",
                             "postgres", "--slot", f"copy_{number}", "--start", "--endpos", head,
                             "--no-loop", "-f", "/dev/null", "-o", "format-version=2")
                taken = time.perf_counter() - began
                postgres.sql(f"SELECT pg_drop_replication_slot('copy_{number}')")
                return rows / taken

            return self.alternate_changes("feed-vs-postgres", 5, decode,
                                          "PostgreSQL 15 logical decoding (wal2json)")

    # ── Pages ─────────────────────────────────────────────────────────────────────────────────

    def alternate_pages(self, name, goal, ours, theirs, what):
        """CPU of the server per page: ours() in turn with theirs(), each of (server, options)."""
        costs, baselines = [], []
        for _ in range(self.rounds):
            for (server, options), figures in ((ours, costs), (theirs, baselines)):
                figures.append(self.load_and_cpu(server.process.pid, "pages", server.port,
                                                 connections=4, **options)[1])
        ratio = statistics.median(a / b for a, b in zip(costs, baselines))
        return Row(name, f"≤ {goal}", ratio <= goal,
                   f"{spread(costs, 1)} µs CPU per page {what}, {spread(baselines, 1)} without",
                   ratio)

    def feed_page_updated(self):
        """A page of 100 from a random position where 19 of 20 versions have been superseded."""
        documents = self.million_count // 20
        with self.server(self.with_million()["dir"]) as dense, \
                self.server(self.fresh_directory("updated")) as updated:
            self.make_container(updated)
            say("filling in documents that are then updated")
            self.load("fill", updated.port, count=documents)
            self.load("upsert", updated.port, count=self.million_count - documents, ids=documents)
            # Both as a server finds them that has been up for a while: what it builds is built.
            for server in (dense, updated):
                self.load("pages", server.port, seconds=2, ids=self.million_count,
                          connections=4, **{"page-size": 100})
            options = {"ids": self.million_count * 9 // 10, "page-size": 100}
            return self.alternate_pages("feed-page-updated", 4, (updated, options),
                                        (dense, options), "after 95 % updates")

    def feed_of_key(self):
        """The feed of a key with 100 documents, from the beginning."""
        data_dir = self.fresh_directory("key")
        shutil.copytree(self.with_million()["dir"], data_dir, dirs_exist_ok=True)
        with self.server(data_dir) as crowd, self.server(self.fresh_directory("alone")) as alone:
            self.make_container(alone)
            for server in (crowd, alone):
                connection = wire.connect(server.port)
                for number in range(100):
                    body = json.loads(postgres_document()) | {"id": f"solo-{number}", "pk": "solo"}
                    made = connection.post(f"/{LINK}/docs", body, {"x-ms-documentdb-partitionkey": '["solo"]'})
                    if made.status != 201:
                        raise RuntimeError(f"create: {made}")
                connection.close()
            options = {"ids": 1, "partition-key": '["solo"]'}
            return self.alternate_pages("feed-of-key", 3, (crowd, options), (alone, options),
                                        f"in a range of {self.million_count:,} documents")

    # ── Push ──────────────────────────────────────────────────────────────────────────────────

    def push(self, server, readers, rate):
        """The report of orrery_push for so many streams."""
        return run_json(self.tool("orrery_push"), "stream", "--port", server.port, "--readers",
                        readers, "--rate", rate, "--seconds", self.seconds, "--pid",
                        server.process.pid, "--database", DATABASE, "--container", CONTAINER)

    def push_latency(self):
        """From the acknowledgement of a write to the event at a reader that waits."""
        halves, tails = [], []
        with self.server(self.fresh_directory("push")) as server:
            self.make_container(server)
            for _ in range(self.rounds):
                result = self.push(server, 1, 100)
                halves.append(result["p50_ms"])
                tails.append(result["p99_ms"])
        half, tail = statistics.median(halves), statistics.median(tails)
        return Row("push-latency", "p50 ≤ 0.5 ms, p99 ≤ 5 ms", half <= 0.5 and tail <= 5,
                   f"p50 {spread(halves, 2)} ms, p99 {spread(tails, 2)} ms, 1 writer, 1 stream")

    def push_thousand(self):
        """The cost of an event to the server with a thousand readers, and with one."""
        many, one, memory = [], [], []
        with self.server(self.fresh_directory("push")) as server:
            self.make_container(server)
            for _ in range(self.rounds):
                crowd = self.push(server, 1000, 100)
                many.append(crowd["cpu_us_per_delivery"])
                memory.append(crowd["kb_per_reader"])
                one.append(self.push(server, 1, 100)["cpu_us_per_delivery"])
        ratio = statistics.median(a / b for a, b in zip(many, one))
        return Row("push-thousand", "≤ 1.2", ratio <= 1.2,
                   f"{spread(many, 1)} µs CPU per event delivered to 1,000 streams "
                   f"({max(memory):.0f} KB each), {spread(one, 1)} to one, "
                   f"100 writes/s", ratio)

    # ── Beside writers ────────────────────────────────────────────────────────────────────────

    def write_beside_readers(self):
        """Creates while eight readers read the whole feed over and over."""
        data_dir = self.fresh_directory("readers")
        shutil.copytree(self.with_million()["dir"], data_dir, dirs_exist_ok=True)
        beside, alone, read = [], [], []
        with self.server(data_dir) as server:
            def create(prefix):
                return self.load("create", server.port, connections=64, seconds=self.seconds,
                                 **{"id-prefix": prefix})["per_second"]

            for number in range(self.rounds):
                alone.append(create(f"alone{number}"))
                with self.readers(server, 8) as counts:
                    began = time.perf_counter()
                    beside.append(create(f"beside{number}"))
                    read.append(sum(counts) / (time.perf_counter() - began))
        ratio = statistics.median(a / b for a, b in zip(beside, alone))
        return Row("write-beside-readers", "≥ 0.7", ratio >= 0.7,
                   f"{spread(beside)} creates/s beside 8 readers ({statistics.median(read):.0f} documents/s read), "
                   f"{spread(alone)} alone, 64 connections", ratio)

    @contextlib.contextmanager
    def readers(self, server, count):
        """Readers that begin anew at the end. The list yielded holds how much each has read."""
        stopping = threading.Event()
        counts = [0] * count

        def read(index):
            while not stopping.is_set():
                counts[index] += self.load("changes", server.port, seconds=1)["documents"]

        threads = [threading.Thread(target=read, args=(index,)) for index in range(count)]
        for thread in threads:
            thread.start()
        try:
            yield counts
        finally:
            stopping.set()
            for thread in threads:
                thread.join()

    def split_pause(self):
        """The longest that any write takes while its range of a million documents is split."""
        data_dir = self.fresh_directory("split")
        shutil.copytree(self.with_million()["dir"], data_dir, dirs_exist_ok=True)
        with self.server(data_dir) as server:
            quiet = self.load("create", server.port, connections=4, seconds=self.seconds,
                              **{"id-prefix": "quiet"})
            stopping = threading.Event()
            worst, written = [], []

            def write():
                number = 0
                while not stopping.is_set():
                    result = self.load("create", server.port, connections=4, seconds=1,
                                       **{"id-prefix": f"during{number}"})
                    worst.append(result["max_us"] / 1000)
                    written.append(result["documents"])
                    number += 1

            writer = threading.Thread(target=write)
            writer.start()
            connection = wire.connect(server.port, seconds_max=600)
            began = time.perf_counter()
            split = connection.post(f"/{LINK}/operations/split", b'{"range":"0"}')
            taken = time.perf_counter() - began
            stopping.set()
            writer.join()
            connection.close()
            if split.status != 200:
                raise RuntimeError(f"split: {split}")
        return Row("split-pause", "≤ 250 ms", max(worst) <= 250,
                   f"{max(worst):.0f} ms at the most for a write during a split of "
                   f"{taken:.1f} s ({sum(written):,} writes), {quiet['max_us'] / 1000:.0f} ms before it")


ROWS = {
    "feed-vs-scan": FeedRows.feed_vs_scan,
    "feed-vs-redis": FeedRows.feed_vs_redis,
    "feed-vs-postgres": FeedRows.feed_vs_postgres,
    "feed-page-updated": FeedRows.feed_page_updated,
    "feed-of-key": FeedRows.feed_of_key,
    "push-latency": FeedRows.push_latency,
    "push-thousand": FeedRows.push_thousand,
    "write-beside-readers": FeedRows.write_beside_readers,
    "split-pause": FeedRows.split_pause,
}
