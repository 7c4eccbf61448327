"""Shared by the rows of the benchmark: processes, servers, load, and how a row is printed."""

import contextlib
import json
import os
import pathlib
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

ROOT = str(pathlib.Path(__file__).resolve().parents[1])
sys.path.insert(0, os.path.join(ROOT, "tests"))
from harness import proc, wire  # noqa: E402
from harness.server import Server  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

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
        return (f"{self.name:<22} ratio {ratio:<6} {self.figures}; goal {self.goal}  "
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
    return proc.resident_bytes(pid) / (1 << 20)


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


class Harness:
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
        with Server(*arguments, data_dir=data_dir, log_path=self.log, binary=self.arguments.binary) as server:
            server.start()
            yield server
            server.stop()

    def make_container(self, server, name=CONTAINER):
        connection = wire.connect(server.port)
        made = connection.post("/dbs", {"id": DATABASE})
        if made.status not in (201, 409):
            raise RuntimeError(f"create database: {made}")
        made = connection.post(f"/dbs/{DATABASE}/colls", {
            "id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        }, {"x-ms-offer-throughput": "400"})
        if made.status != 201:
            raise RuntimeError(f"create container: {made}")
        connection.close()

    def load(self, mode, port, **options):
        options = {"doc-bytes": DOC_BYTES, "database": DATABASE, "container": CONTAINER, **options}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return run_json(self.tool("orrery_load"), mode, "--port", port, *words)

    def load_and_cpu(self, pid, mode, port, **options):
        """The load's result, and the CPU microseconds that process pid spent per request."""
        before = cpu_seconds(pid)
        result = self.load(mode, port, seconds=self.seconds, **options)
        return result, (cpu_seconds(pid) - before) * 1e6 / result["requests"]

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

    def feed_once(self, server):
        result = self.load("feed", server.port)
        if result["documents"] != self.million_count:
            raise RuntimeError(f"the read feed shows {result['documents']} documents")
        return result["per_second"]

    def postgres(self, *settings):
        """PostgreSQL with its default durability, running; see Postgres."""
        return Postgres(self.fresh_directory("postgres"), self.log, settings)


class Postgres:
    """PostgreSQL in a directory of its own, reached by a Unix socket. A context manager."""

    def __init__(self, directory, log, settings):
        self.directory, self.log, self.settings = directory, log, settings
        self.sockets = tempfile.mkdtemp(prefix="orrery-pg-")
        self.identity = {}
        self.process = None
        if os.geteuid() == 0:  # which PostgreSQL refuses to be
            account = pwd.getpwnam("postgres")
            self.identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            for path in (directory, self.sockets):
                os.chown(path, account.pw_uid, account.pw_gid)
            check_passage(directory)

    def run(self, program, *arguments):
        done = subprocess.run([f"{POSTGRES_BIN}/{program}", *arguments], cwd=self.directory,
                              capture_output=True, text=True, check=False, **self.identity)
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr}")
        return done.stdout

    def sql(self, text):
        return self.run("psql", "-h", self.sockets, "-U", "postgres", "-q", "-A", "-t", "-c",
                        text).strip()

    def __enter__(self):
        data_dir = os.path.join(self.directory, "data")
        self.run("initdb", "-D", data_dir, "-U", "postgres", "-A", "trust", "--no-sync")
        options = ["listen_addresses=", "fsync=on", "synchronous_commit=on",
                   "shared_buffers=256MB", "max_wal_size=4GB", *self.settings]
        words = [word for option in options for word in ("-c", option)]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [f"{POSTGRES_BIN}/postgres", "-D", data_dir, "-k", self.sockets, *words],
                cwd=self.directory, stdout=log, stderr=log, **self.identity)
        try:
            wait_until(self.answers, 30, "PostgreSQL answers", pause=0.1)
            self.sql("CREATE TABLE docs (id bigserial PRIMARY KEY, body jsonb NOT NULL)")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        end(self.process, signal.SIGINT)  # PostgreSQL's fast shutdown
        shutil.rmtree(self.sockets, ignore_errors=True)

    def answers(self):
        try:
            return self.sql("SELECT 1") == "1"
        except RuntimeError:
            return False

    def allow_output_plugin(self, library):
        """Newer ones decode with what their administrator has named only; older ones know no such
        setting."""
        shown = "SHOW output_plugin_libraries"
        try:
            self.sql(shown)
        except RuntimeError:
            return
        self.sql(f"ALTER SYSTEM SET output_plugin_libraries = '{library}'")
        self.sql("SELECT pg_reload_conf()")
        wait_until(lambda: library in self.sql(shown), 10, f"PostgreSQL allows {library}", pause=0.1)

    def insert(self, clients, seconds):
        """Single-row inserts of documents with so many clients; rows per second."""
        script = os.path.join(self.directory, "insert.sql")
        with open(script, "w", encoding="ascii") as file:
            file.write("INSERT INTO docs (body) VALUES (:body);\n")
        os.chmod(script, 0o644)
        out = self.run("pgbench", "-h", self.sockets, "-U", "postgres", "-n", "-M", "prepared",
                       "-c", str(clients), "-j", "2", "-T", str(seconds), "-f", script,
                       "-D", "body=" + postgres_document(), "postgres")
        if not re.search(r"number of failed transactions: 0\b", out):
            raise RuntimeError(out)
        return float(re.search(r"^tps = ([0-9.]+)", out, re.M).group(1))


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
