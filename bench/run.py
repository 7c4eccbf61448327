#!/usr/bin/env python3
"""Measures Orrery against its goals and prints one line per row: name, ratio, figures, goal, verdict.

    bench/run.py [--only NAME] [--quick]

Where a goal is a ratio, both sides run in this one run, in turns, and the ratio is the median over
the rounds: the machine may be shared, and rates move. What is compared with (nginx, PostgreSQL 15,
bare RocksDB) is started here, in a directory below --data-dir, and stopped and removed at the end.
The exit status says whether everything could be measured, not whether the goals were reached.
"""

import argparse
import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "fault"))

import orrery_process  # noqa: E402

DATABASE, CONTAINER = "bench", "docs"
POSTGRES_BIN = "/usr/lib/postgresql/15/bin"
DOC_BYTES = 1024
READ_IDS = 10_000


class Row:
    def __init__(self, name, goal, passed, figures, ratio=None):
        self.name, self.goal, self.passed = name, goal, passed
        self.figures, self.ratio = figures, ratio

    def __str__(self):
        ratio = "-" if self.ratio is None else f"{self.ratio:.2f}"
        return (f"{self.name:<18} ratio {ratio:<6} {self.figures}; goal {self.goal}  "
                f"{'PASS' if self.passed else 'MISS'}")


def spread(values, digits=0):
    """The median and the range it comes from."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return (f"{statistics.median(values):.{digits}f} "
            f"[{min(values):.{digits}f}…{max(values):.{digits}f}]")


def say(text):
    print(f"  … {text}", file=sys.stderr, flush=True)


# ── Processes ─────────────────────────────────────────────────────────────────────────────────

def cpu_seconds(pid):
    """The time that a process has spent on processors, to the nanosecond."""
    return time.clock_gettime(~pid << 3 | 2)  # the kernel's number for the clock of another process


def thread_count(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def resident_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) / 1024


def run_json(*command):
    """Runs a tool of ours and returns the JSON object that it prints."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(word) for word in command)}: status "
                           f"{done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def end(process, sig):
    if process.poll() is None:
        process.send_signal(sig)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Bench:
    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.directory = directory
        self.quick = arguments.quick
        self.rounds = 2 if self.quick else 5
        self.seconds = 2 if self.quick else 5
        self.million_count = 100_000 if self.quick else 1_000_000
        self.million = None
        self.log = os.path.join(directory, "server.log")

    def tool(self, name):
        return os.path.join(self.arguments.build_dir, "bin", name)

    def fresh_directory(self, name):
        return tempfile.mkdtemp(prefix=name + "-", dir=self.directory)

    @contextlib.contextmanager
    def server(self, data_dir, *arguments):
        """A ready server on data_dir, stopped in good order at the end."""
        server = orrery_process.Server(self.arguments.binary, data_dir, self.log,
                                       arguments=arguments)
        with server:
            server.start()
            yield server
            status = server.stop()
            if status != 0:
                raise RuntimeError(f"the server ended with status {status}\n{server.log_tail()}")

    def make_container(self, server, name=CONTAINER):
        connection = orrery_process.Connection(server.port)
        made = connection.post("dbs", "", json.dumps({"id": DATABASE}).encode())
        if made.status not in (201, 409):
            raise RuntimeError(f"create database: {made}")
        made = connection.post("colls", f"dbs/{DATABASE}", json.dumps({
            "id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        }).encode(), {"x-ms-offer-throughput": "400"})
        if made.status != 201:
            raise RuntimeError(f"create container: {made}")
        connection.close()

    def load(self, mode, port, **options):
        options = {"doc-bytes": DOC_BYTES, "database": DATABASE, "container": CONTAINER, **options}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return run_json(self.tool("orrery_load"), mode, "--port", port, *words)

    # ── Start and size ────────────────────────────────────────────────────────────────────────

    def time_start(self, data_dir, path, resource_type, link, headers=()):
        """Milliseconds from exec to the first 200. The process is then stopped in good order."""
        port = orrery_process.free_port()
        request = orrery_process.Connection(port).encode("GET", path, resource_type, link, headers)
        with open(self.log, "ab") as log:
            began = time.perf_counter()
            process = subprocess.Popen(
                [self.arguments.binary, "serve", "--data-dir", data_dir, "--listen",
                 f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            deadline = began + orrery_process.READY_SECONDS_MAX
            while not (answer := first_answer(port, request)).startswith(b"HTTP/1.1 200"):
                if process.poll() is not None or time.perf_counter() > deadline:
                    raise RuntimeError(f"the server does not start: status {process.returncode}, "
                                       f"answer {answer}\n{orrery_process.log_tail(self.log)}")
                time.sleep(0.0002)
            return (time.perf_counter() - began) * 1000
        finally:
            end(process, signal.SIGTERM)

    def start_empty(self):
        times = []
        for _ in range(self.rounds + 3):
            data_dir = self.fresh_directory("empty")
            times.append(self.time_start(data_dir, "/dbs", "dbs", ""))
            shutil.rmtree(data_dir)
        times = times[1:]  # the first brings the program into memory
        return Row("start-empty", "≤ 50 ms", statistics.median(times) <= 50,
                   f"{spread(times, 1)} ms from exec to the first signed answer")

    def start_million(self):
        data_dir = self.with_million()["dir"]
        link = f"dbs/{DATABASE}/colls/{CONTAINER}/docs/doc-{0:010}"
        times = [self.time_start(data_dir, "/" + link, "docs", link,
                                 {"x-ms-documentdb-partitionkey": '["k000000"]'})
                 for _ in range(self.rounds)]
        return Row("start-million", "≤ 150 ms", statistics.median(times) <= 150,
                   f"{spread(times, 1)} ms from exec to the first point read among "
                   f"{self.million_count:,} documents")

    def idle_memory(self):
        with self.server(self.fresh_directory("idle")) as server:
            connection = orrery_process.Connection(server.port)
            connection.feed("dbs", "")
            connection.close()
            sizes = [resident_mb(server.process.pid)]

            def settled():
                sizes.append(resident_mb(server.process.pid))
                return sizes[-1] == sizes[-2]

            orrery_process.wait_until(settled, 20, "memory stays the same", pause=0.5)
        return Row("idle-memory", "≤ 40 MB", sizes[-1] <= 40, f"{sizes[-1]:.1f} MB resident")

    def idle_containers(self):
        """What each of 10,000 containers costs while nobody uses it."""
        count = 10_000
        with self.server(self.fresh_directory("containers")) as server:
            self.make_container(server)
            connection = orrery_process.Connection(server.port)
            before = resident_mb(server.process.pid)
            threads = thread_count(server.process.pid)
            for number in range(count):
                made = connection.post("colls", f"dbs/{DATABASE}", json.dumps({
                    "id": f"idle-{number}",
                    "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}).encode())
                if made.status != 201:
                    raise RuntimeError(f"create container {number}: {made}")
            connection.close()
            kilobytes = (resident_mb(server.process.pid) - before) * 1024 / count
            more_threads = thread_count(server.process.pid) - threads
        return Row("idle-containers", "≤ 10 KB", kilobytes <= 10 and more_threads <= 0,
                   f"{kilobytes:.1f} KB resident for each of {count:,} idle containers, "
                   f"{more_threads} more threads")

    def with_million(self):
        """The directory of a server that took a million documents, gave them all back in a read
        feed, and was stopped; and how large it had become."""
        if self.million is None:
            data_dir = self.fresh_directory("million")
            with self.server(data_dir) as server:
                self.make_container(server)
                say(f"filling in {self.million_count:,} documents")
                filled = self.load("fill", server.port, count=self.million_count, connections=64)
                after_fill = resident_mb(server.process.pid)
                self.feed_once(server)
                after_feed = resident_mb(server.process.pid)
            say(f"{filled['per_second']:.0f} documents/s")
            self.million = {"dir": data_dir, "after_fill": after_fill, "after_feed": after_feed}
        return self.million

    def million_memory(self):
        sizes = self.with_million()
        largest = max(sizes["after_fill"], sizes["after_feed"])
        return Row("million-memory", "≤ 400 MB", largest <= 400,
                   f"{sizes['after_fill']:.0f} MB after {self.million_count:,} creates, "
                   f"{sizes['after_feed']:.0f} MB after their read feed")

    # ── Reads ─────────────────────────────────────────────────────────────────────────────────

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

    def load_and_cpu(self, pid, mode, port, **options):
        """The load's result, and the CPU microseconds that process pid spent per request."""
        before = cpu_seconds(pid)
        result = self.load(mode, port, seconds=self.seconds, **options)
        return result, (cpu_seconds(pid) - before) * 1e6 / result["requests"]

    @contextlib.contextmanager
    def nginx(self, settings):
        """nginx with one worker, serving one file of 1 KB."""
        directory = self.fresh_directory("nginx")
        port = orrery_process.free_port()
        with open(os.path.join(directory, "1k.json"), "w", encoding="ascii") as file:
            file.write('{"text":"' + "x" * (DOC_BYTES - 11) + '"}')
        with open(os.path.join(directory, "nginx.conf"), "w", encoding="ascii") as file:
            file.write(NGINX_CONFIGURATION.format(dir=directory, port=port,
                                                  settings=settings))
        os.chmod(directory, 0o755)
        process = subprocess.Popen(["nginx", "-p", directory, "-c", f"{directory}/nginx.conf"],
                                   stderr=subprocess.DEVNULL)
        try:
            orrery_process.wait_until(lambda: can_connect(port), 10, "nginx listens")
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
                worker = int(file.read().split()[0])
            yield {"port": port, "worker": worker}
        finally:
            end(process, signal.SIGTERM)

    def feed_once(self, server):
        result = self.load("feed", server.port)
        if result["documents"] != self.million_count:
            raise RuntimeError(f"the read feed shows {result['documents']} documents")
        return result["per_second"]

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

    # ── Writes ────────────────────────────────────────────────────────────────────────────────

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
        with self.postgres() as insert:
            return self.alternate_creates("create-vs-postgres", 1.0, 16,
                                          lambda: insert(16, self.seconds), "PostgreSQL 15")

    @contextlib.contextmanager
    def postgres(self):
        """PostgreSQL with its default durability, reached by a Unix socket. Yields a function that
        inserts with so many clients for so many seconds and returns rows per second."""
        directory = self.fresh_directory("postgres")
        sockets = tempfile.mkdtemp(prefix="orrery-pg-")
        identity = {}
        if os.geteuid() == 0:  # which PostgreSQL refuses to be
            account = pwd.getpwnam("postgres")
            identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            for path in (directory, sockets):
                os.chown(path, account.pw_uid, account.pw_gid)
            check_passage(directory)

        def run(*command):
            done = subprocess.run(command, cwd=directory, capture_output=True, text=True,
                                  check=False, **identity)
            if done.returncode != 0:
                raise RuntimeError(f"{command[0]}: {done.stdout}{done.stderr}")
            return done.stdout

        data_dir = os.path.join(directory, "data")
        run(f"{POSTGRES_BIN}/initdb", "-D", data_dir, "-U", "postgres", "-A", "trust", "--no-sync")
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                [f"{POSTGRES_BIN}/postgres", "-D", data_dir, "-k", sockets,
                 "-c", "listen_addresses=", "-c", "fsync=on", "-c", "synchronous_commit=on",
                 "-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"],
                cwd=directory, stdout=log, stderr=log, **identity)
        try:
            ask = (f"{POSTGRES_BIN}/psql", "-h", sockets, "-U", "postgres", "-q", "-c")
            orrery_process.wait_until(
                lambda: subprocess.run([*ask, "SELECT 1"], cwd=directory, capture_output=True,
                                       check=False, **identity).returncode == 0,
                30, "PostgreSQL answers", pause=0.1)
            run(*ask, "CREATE TABLE docs (id bigserial PRIMARY KEY, body jsonb NOT NULL)")
            script = os.path.join(directory, "insert.sql")
            with open(script, "w", encoding="ascii") as file:
                file.write("INSERT INTO docs (body) VALUES (:body);\n")
            os.chmod(script, 0o644)

            def insert(clients, seconds):
                out = run(f"{POSTGRES_BIN}/pgbench", "-h", sockets, "-U", "postgres", "-n",
                          "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(seconds),
                          "-f", script, "-D", "body=" + postgres_document(), "postgres")
                if not re.search(r"number of failed transactions: 0\b", out):
                    raise RuntimeError(out)
                return float(re.search(r"^tps = ([0-9.]+)", out, re.M).group(1))

            yield insert
        finally:
            end(process, signal.SIGINT)  # PostgreSQL's fast shutdown
            shutil.rmtree(sockets, ignore_errors=True)


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


def postgres_document():
    """As long as the documents that orrery_load creates."""
    document = {"id": "doc-0000000001", "pk": "k000001", "kind": "order", "quantity": 3,
                "price": 12.5, "paid": True,
                "customer": {"name": "Tycho Brahe", "city": "Uraniborg"}, "tags": ["a", "b"],
                "text": ""}
    rest = DOC_BYTES - len(json.dumps(document, separators=(",", ":")))
    document["text"] = ("the stars move on " * 60)[:rest]
    return json.dumps(document, separators=(",", ":"))


def check_passage(path):
    """The user postgres must be able to reach a directory below ours."""
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & 0o001:
            raise RuntimeError(f"the user postgres cannot enter {path}: give another --data-dir")


def can_connect(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def first_answer(port, request):
    """The beginning of the answer, empty where nobody listens yet."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(request)
            return connection.recv(4096)
    except OSError:
        return b""


ROWS = {
    "start-empty": Bench.start_empty,
    "start-million": Bench.start_million,
    "idle-memory": Bench.idle_memory,
    "idle-containers": Bench.idle_containers,
    "point-read-cpu": Bench.point_read_cpu,
    "create-vs-rocksdb": Bench.create_vs_rocksdb,
    "create-vs-postgres": Bench.create_vs_postgres,
    "read-feed": Bench.read_feed,
    "million-memory": Bench.million_memory,
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", choices=ROWS, action="append", help="may be given several times")
    parser.add_argument("--quick", action="store_true",
                        help="shorter, with 100,000 documents for a million: no verdict to rely on")
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--binary", default=None, help="default: BUILD_DIR/orrery")
    parser.add_argument("--data-dir", default=None,
                        help="default: BUILD_DIR/bench-data; for all data, on one file system")
    parser.add_argument("--store", default="store",
                        help="where in its data directory the server keeps RocksDB")
    arguments = parser.parse_args()
    arguments.build_dir = os.path.abspath(arguments.build_dir)
    arguments.binary = os.path.abspath(arguments.binary or f"{arguments.build_dir}/orrery")
    arguments.data_dir = os.path.abspath(arguments.data_dir or f"{arguments.build_dir}/bench-data")
    return arguments


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is cleaned up
    os.makedirs(arguments.data_dir, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="run-", dir=arguments.data_dir)
    os.chmod(directory, 0o755)
    failed = False
    try:
        bench = Bench(arguments, directory)
        for name in arguments.only or ROWS:
            say(name)
            try:
                print(ROWS[name](bench), flush=True)
            except Exception:
                failed = True
                print(f"{name:<18} could not be measured\n{traceback.format_exc()}", flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(arguments.data_dir)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
