"""`orrery serve` as a child process.

    server.started("--page-timeout-ms", 60_000)       ephemeral, on a port that the kernel chooses, running
    with server.Server(data_dir=path) as own:         on a directory of the test's, on a port that stays its own
        own.start()
        own.kill()
        own.start()

The binary is ORRERY_BINARY, else build/orrery. The server gets none of the test's ORRERY_ variables, writes what it says
to a log file, and dies with the test.
"""

import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import weakref

from . import proc, wire
from .program import before_exec, clean_environment
from .waiting import wait_until

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build"
BINARY = os.environ.get("ORRERY_BINARY") or str(BUILD / "orrery")
READY_SECONDS_MAX = 20  # from exec to /_ready, also after a crash
ANNOUNCED_SECONDS_MAX = 30
STOP_SECONDS_MAX = 30
LOG_LINES_SHOWN = 30
ENDPOINT_LINE = re.compile(r"^  endpoint +https?://\S+:(\d+)/", re.MULTILINE)


class Ended(AssertionError):
    """The server ended instead of becoming ready."""


def started(*options, **settings):
    """A running server: see Server."""
    server = Server(*options, **settings)
    server.start()
    return server


def free_port():
    """A port below those that the kernel gives to outgoing connections: it stays free while the server is down, and a
    client that knocks meanwhile is not connected to itself."""
    while True:
        # Not from the seed of the test: a replay beside the run that it replays needs another port.
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def log_tail(path, lines=LOG_LINES_SHOWN):
    """The last lines of a log, to be shown with a failure."""
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join("    | " + line for line in text[-lines:])


class Server:
    """One server, started as often as needed.

    options      of `orrery serve`. Without --listen it listens on loopback.
    data_dir     with it the server keeps one port for all its lives, known before it is first started, and start()
                 waits for /_ready. Without it (and without --data-dir) the server is ephemeral, the kernel chooses
                 the port, and start() waits until the server has named its endpoint.
    port         another one than that.
    log_path     for what it says; else in a directory of its own, which goes with it.
    environment  variables on top of the clean environment, for instance LD_PRELOAD.
    files_max    that it may have open.
    key          of its clients: the primary key, if it is not the well-known one.
    binary       another one than BINARY.

    A context manager: at its end the server is killed if it still runs.
    """

    def __init__(self, *options, data_dir=None, port=None, log_path=None, environment=None, files_max=None,
                 key=wire.WELL_KNOWN_KEY, binary=None):
        self.options = [str(option) for option in options]
        self.binary = os.path.abspath(binary or BINARY)
        self.data_dir = data_dir and os.path.abspath(data_dir)
        self.port = port or (free_port() if data_dir else 0)
        self.environment = clean_environment(environment)
        self.files_max, self.key = files_max, key
        if log_path is None:
            directory = tempfile.mkdtemp(prefix="orrery-server-")
            weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
            log_path = os.path.join(directory, "log")
        self.log_path = os.path.abspath(log_path)
        self.log_begin = 0  # of what this life of the server has said
        self.process, self.was_killed = None, False
        self.slowest_start = 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    # ── Start ─────────────────────────────────────────────────────────────────────────────────

    def words(self):
        place = ["--data-dir", self.data_dir] if self.data_dir else []
        if not self.data_dir and "--data-dir" not in self.options and "--ephemeral" not in self.options:
            place = ["--ephemeral"]
        listen = [] if "--listen" in self.options else ["--listen", f"127.0.0.1:{self.port}"]
        return [self.binary, "serve", *place, *listen, *self.options]

    def spawn(self):
        """Starts the process and returns at once."""
        self.was_killed = False
        with open(self.log_path, "ab") as log:
            self.log_begin = log.tell()
            self.process = subprocess.Popen(self.words(), cwd=os.path.dirname(self.log_path), env=self.environment,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=before_exec(self.files_max))

    def start(self):
        """Starts the process and waits until it is ready; returns the seconds it took. Ended if it ends instead."""
        began = time.monotonic()
        self.spawn()
        try:
            if self.data_dir:
                wait_until(self.is_ready, READY_SECONDS_MAX, "the server is ready")
            else:
                wait_until(self.is_announced, ANNOUNCED_SECONDS_MAX, f"{self.binary} names its endpoint")
        except AssertionError:
            self.kill()
            raise
        seconds = time.monotonic() - began
        self.slowest_start = max(self.slowest_start, seconds)
        return seconds

    def is_ready(self):
        self.insist_on_life()
        return self.probe("/_ready") == 200

    def is_announced(self):
        """Takes the port from the server's introduction, where the kernel chose it."""
        self.insist_on_life()
        if match := ENDPOINT_LINE.search(self.log()):
            self.port = int(match[1])
        return match is not None

    def insist_on_life(self):
        if not self.alive():
            raise Ended(f"the server ended instead of becoming ready: {self.report()}")

    # ── While it runs ─────────────────────────────────────────────────────────────────────────

    def alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def endpoint(self):
        return wire.Endpoint(f"http://127.0.0.1:{self.port}/", self.key)

    def client(self, key=None):
        """A client that notes breaches of the rules for all responses."""
        return wire.Client(wire.Endpoint(self.endpoint.url, key or self.key))

    def connect(self, **settings):
        """A client for judges of outcomes: see wire.connect."""
        return wire.connect(self.port, key=self.key, **settings)

    def probe(self, path):
        """The status of an unsigned GET, or None when nobody answers."""
        client = self.connect()
        try:
            return client.get(path, signed=False).status
        except wire.NoAnswer:
            return None
        finally:
            client.close()

    def metric(self, name):
        """One number of /_metrics."""
        client = self.connect()
        try:
            return wire.metric(client, name)
        finally:
            client.close()

    def resident_bytes(self):
        return proc.resident_bytes(self.process.pid)

    # ── The end ───────────────────────────────────────────────────────────────────────────────

    def kill(self):
        """SIGKILL, as a crash. Returns when the process is gone; a stop() afterwards does nothing."""
        if self.process is not None:
            if self.alive():
                self.was_killed = True
                self.process.kill()
            self.process.wait()

    def terminate(self):
        """Asks the server to end, as an operator would. Its exit code."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"SIGTERM did not end the server in {STOP_SECONDS_MAX} s: {self.report()}") from None

    def stop(self):
        """The same, and insists on the exit code 0. Safe to call twice, and after a kill."""
        if self.was_killed or self.process is None:
            return
        assert self.terminate() == 0, f"the server did not end well: {self.report()}"

    # ── Its log ────────────────────────────────────────────────────────────────────────────────

    def log(self):
        """All that it has said since it was started last."""
        with open(self.log_path, "rb") as log:
            log.seek(self.log_begin)
            return log.read().decode("utf-8", "replace")

    def log_lines(self, text=""):
        """Those lines of it that contain the text."""
        return [line for line in self.log().splitlines() if text in line]

    def log_tail(self, lines=LOG_LINES_SHOWN):
        return log_tail(self.log_path, lines)

    def report(self):
        return f"exit code {self.process.poll()}; it said:\n{self.log_tail()}"
