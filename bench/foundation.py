"""The rows of the foundation: start, size, point reads, creates, and the read feed."""

import contextlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

from benchmark import (CONTAINER, DATABASE, DOC_BYTES, READ_IDS, ROOT, Harness, Row, can_connect, end, resident_mb,
                       run_json, spread, thread_count)
from harness import wire
from harness.server import READY_SECONDS_MAX, free_port, log_tail
from harness.waiting import wait_until


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


class FoundationRows(Harness):
    def time_start(self, data_dir, path, headers=None, binary=None):
        """Milliseconds from exec to the first 200. The process is then stopped in good order."""
        port = free_port()
        request = wire.connect(port).build("GET", path, None, headers)
        # Not by the launcher, whose work between fork and exec would be part of the time.
        with open(self.log, "ab") as log:
            began = time.perf_counter()
            process = subprocess.Popen(
                [binary or self.arguments.binary, "serve", "--data-dir", data_dir, "--listen",
                 f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            deadline = began + READY_SECONDS_MAX
            while not (answer := first_answer(port, request)).startswith(b"HTTP/1.1 200"):
                if process.poll() is not None or time.perf_counter() > deadline:
                    raise RuntimeError(f"the server does not start: status {process.returncode}, "
                                       f"answer {answer}\n{log_tail(self.log)}")
                time.sleep(0.0002)
            return (time.perf_counter() - began) * 1000
        finally:
            end(process, signal.SIGTERM)

    def start_empty(self):
        times = []
        for _ in range(self.rounds + 3):
            data_dir = self.fresh_directory("empty")
            times.append(self.time_start(data_dir, "/dbs"))
            shutil.rmtree(data_dir)
        times = times[1:]  # the first brings the program into memory
        return Row("start-empty", "≤ 50 ms", statistics.median(times) <= 50,
                   f"{spread(times, 1)} ms from exec to the first signed answer")

    def start_portable(self):
        """Where the launcher and the loader of its own, and libraries that nobody else has in memory, would show."""
        tree = self.fresh_directory("portable")
        made = subprocess.run([sys.executable, os.path.join(ROOT, "packaging", "portable.py"),
                               os.path.join(self.arguments.build_dir, "orrery_portable"), tree],
                              capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise RuntimeError(f"portable.py: status {made.returncode}\n{made.stderr}")
        times = {binary: [] for binary in (os.path.join(tree, "orrery"), self.arguments.binary)}
        for _ in range(2 * self.rounds + 1):
            for binary, taken in times.items():
                data_dir = self.fresh_directory("empty")
                taken.append(self.time_start(data_dir, "/dbs", binary=binary))
                shutil.rmtree(data_dir)
        ours, theirs = (taken[1:] for taken in times.values())  # the first brings the program into memory
        more = statistics.median(a - b for a, b in zip(ours, theirs))
        return Row("start-portable", "≤ 5 ms", more <= 5,
                   f"{more:+.1f} ms: {spread(ours, 1)} ms from exec to the first signed answer, the program that uses "
                   f"the system's libraries {spread(theirs, 1)} ms")

    def start_million(self):
        data_dir = self.with_million()["dir"]
        path = f"/dbs/{DATABASE}/colls/{CONTAINER}/docs/doc-{0:010}"
        times = [self.time_start(data_dir, path, {wire.KEY: '["k000000"]'})
                 for _ in range(self.rounds)]
        return Row("start-million", "≤ 150 ms", statistics.median(times) <= 150,
                   f"{spread(times, 1)} ms from exec to the first point read among "
                   f"{self.million_count:,} documents")

    def idle_memory(self):
        with self.server(self.fresh_directory("idle")) as server:
            connection = wire.connect(server.port)
            connection.get("/dbs")
            connection.close()
            sizes = [resident_mb(server.process.pid)]

            def settled():
                sizes.append(resident_mb(server.process.pid))
                return sizes[-1] == sizes[-2]

            wait_until(settled, 20, "memory stays the same", pause=0.5)
        return Row("idle-memory", "≤ 40 MB", sizes[-1] <= 40, f"{sizes[-1]:.1f} MB resident")

    def idle_containers(self):
        """The cost of each of 10,000 containers that are idle."""
        count = 10_000
        with self.server(self.fresh_directory("containers")) as server:
            self.make_container(server)
            connection = wire.connect(server.port)
            before = resident_mb(server.process.pid)
            threads = thread_count(server.process.pid)
            for number in range(count):
                made = connection.post(f"/dbs/{DATABASE}/colls", {
                    "id": f"idle-{number}",
                    "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}})
                if made.status != 201:
                    raise RuntimeError(f"create container {number}: {made}")
            connection.close()
            kilobytes = (resident_mb(server.process.pid) - before) * 1024 / count
            more_threads = thread_count(server.process.pid) - threads
        return Row("idle-containers", "≤ 10 KB", kilobytes <= 10 and more_threads <= 0,
                   f"{kilobytes:.1f} KB resident for each of {count:,} idle containers, "
                   f"{more_threads} more threads")

    def million_memory(self):
        sizes = self.with_million()
        largest = max(sizes["after_fill"], sizes["after_feed"])
        return Row("million-memory", "≤ 400 MB", largest <= 400,
                   f"{sizes['after_fill']:.0f} MB after {self.million_count:,} creates, "
                   f"{sizes['after_feed']:.0f} MB after their read feed")

    def point_read_cpu(self):
        """nginx as Debian sets it up decides; what it can be tuned to for this one file is shown."""
        ours, theirs, tuned, rates = [], [], [], []
        with self.server(self.fresh_directory("read")) as server, \
                self.nginx("sendfile on; tcp_nopush on;") as nginx, \
                self.nginx("sendfile off; open_file_cache max=100;") as tuned_nginx:
            self.make_container(server)
            self.load("fill", server.port, count=READ_IDS)
            for _ in range(self.rounds):
                result, cpu = self.load_and_cpu(server.process.pid, "read", server.port,
                                                ids=READ_IDS)
                ours.append(cpu)
                rates.append(result["per_second"])
                for each, figures in ((nginx, theirs), (tuned_nginx, tuned)):
                    figures.append(self.load_and_cpu(each["worker"], "get", each["port"],
                                                     path="/1k.json")[1])
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        return Row("point-read-cpu", "≤ 2.0", ratio <= 2.0,
                   f"{spread(ours, 1)} µs CPU per request ({statistics.median(rates):.0f}/s), nginx "
                   f"{spread(theirs, 1)} µs (with open_file_cache {spread(tuned, 1)}), 64 "
                   f"connections", ratio)

    @contextlib.contextmanager
    def nginx(self, settings):
        """nginx with one worker, serving one file of 1 KB."""
        directory = self.fresh_directory("nginx")
        port = free_port()
        with open(os.path.join(directory, "1k.json"), "w", encoding="ascii") as file:
            file.write('{"text":"' + "x" * (DOC_BYTES - 11) + '"}')
        with open(os.path.join(directory, "nginx.conf"), "w", encoding="ascii") as file:
            file.write(NGINX_CONFIGURATION.format(dir=directory, port=port,
                                                  settings=settings))
        os.chmod(directory, 0o755)
        process = subprocess.Popen(["nginx", "-p", directory, "-c", f"{directory}/nginx.conf"],
                                   stderr=subprocess.DEVNULL)
        try:
            # It listens before it has a worker.
            wait_until(lambda: can_connect(port) and children_of(process.pid), 10,
                       "nginx listens and has a worker")
            yield {"port": port, "worker": children_of(process.pid)[0]}
        finally:
            end(process, signal.SIGTERM)

    def read_feed(self):
        data_dir = self.with_million()["dir"]
        ours, theirs = [], []
        with self.server(data_dir) as server:
            self.feed_once(server)  # brings the files into the page cache
            for _ in range(self.rounds):
                ours.append(self.feed_once(server))
                scan = run_json(self.tool("rocksdb_baseline"), "scan", "--dir",
                                os.path.join(data_dir, self.arguments.store), "--passes", 1)
                if scan["documents"] != self.million_count:
                    raise RuntimeError(f"the log holds {scan['documents']} documents")
                theirs.append(scan["per_second"])
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        return Row("read-feed", "≥ 0.4", ratio >= 0.4,
                   f"{spread(ours)} documents/s over HTTP, bare RocksDB scan {spread(theirs)}, "
                   f"{self.million_count:,} documents", ratio)

    def alternate_creates(self, name, goal, connections, other, other_name):
        """Creates over HTTP in turn with other(), which returns documents/s."""
        ours, theirs, latencies = [], [], []
        with self.server(self.fresh_directory("create")) as server:
            self.make_container(server)
            for number in range(self.rounds):
                result = self.load("create", server.port, connections=connections,
                                   seconds=self.seconds, **{"id-prefix": f"r{number}"})
                ours.append(result["per_second"])
                latencies.append(result["p99_us"] / 1000)
                theirs.append(other())
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        return Row(name, f"≥ {goal}", ratio >= goal,
                   f"{spread(ours)} documents/s (p99 {statistics.median(latencies):.1f} ms), "
                   f"{other_name} {spread(theirs)}, {connections} connections", ratio)

    def create_vs_rocksdb(self):
        directory = self.fresh_directory("rocksdb")
        return self.alternate_creates(
            "create-vs-rocksdb", 0.5, 64,
            lambda: run_json(self.tool("rocksdb_baseline"), "commit", "--dir", directory,
                             "--clients", 64, "--seconds", self.seconds,
                             "--doc-bytes", DOC_BYTES)["per_second"],
            "bare RocksDB committer")

    def create_vs_postgres(self):
        with self.postgres() as postgres:
            return self.alternate_creates("create-vs-postgres", 1.0, 16,
                                          lambda: postgres.insert(16, self.seconds), "PostgreSQL 15")



NGINX_CONFIGURATION = """
daemon off;
worker_processes 1;
pid {dir}/pid;
error_log {dir}/error.log;
events {{ worker_connections 768; }}
http {{
  access_log off;
  {settings}
  keepalive_requests 1000000000;
  types {{ application/json json; }}
  client_body_temp_path {dir}/body;
  proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  server {{ listen 127.0.0.1:{port}; root {dir}; }}
}}
"""


def first_answer(port, request):
    """The beginning of the answer, empty where nobody listens yet."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(request)
            return connection.recv(4096)
    except OSError:
        return b""


ROWS = {
    "start-empty": FoundationRows.start_empty,
    "start-portable": FoundationRows.start_portable,
    "start-million": FoundationRows.start_million,
    "idle-memory": FoundationRows.idle_memory,
    "idle-containers": FoundationRows.idle_containers,
    "point-read-cpu": FoundationRows.point_read_cpu,
    "create-vs-rocksdb": FoundationRows.create_vs_rocksdb,
    "create-vs-postgres": FoundationRows.create_vs_postgres,
    "read-feed": FoundationRows.read_feed,
    "million-memory": FoundationRows.million_memory,
}
