"""An Orrery server as a child process, and a signed connection to it. Standard library only.

Used by the fault tests and by bench/run.py.
"""

import base64
import ctypes
import email.utils
import hmac
import json
import os
import random
import signal
import socket
import subprocess
import time
import urllib.parse

# The key of the emulator, known to everybody.
WELL_KNOWN_KEY = base64.b64decode(
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==")

READY_SECONDS_MAX = 20  # from exec to /_ready, also after a crash
STOP_SECONDS_MAX = 30
ANSWER_SECONDS_MAX = 30


def wait_until(condition, seconds_max, what, pause=0.005):
    """Polls until condition() is true and returns its value; TimeoutError after seconds_max.

    The only place in these tests that sleeps.
    """
    deadline = time.monotonic() + seconds_max
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not within {seconds_max} s")
        time.sleep(pause)


_libc = ctypes.CDLL(None)


def _die_with_parent():
    """In the child: a test that is killed leaves no server behind."""
    pr_set_pdeathsig = 1
    _libc.prctl(pr_set_pdeathsig, signal.SIGKILL)


def free_port():
    """A port below those that the kernel gives to outgoing connections: it stays free while the
    server is down, and nobody who knocks meanwhile is connected to himself."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class NoAnswer(Exception):
    """The connection ended before the answer was there. Nobody knows whether the request was
    executed, unless `sent` is false: then it was not."""

    def __init__(self, reason, sent):
        super().__init__(f"{reason} ({'sent' if sent else 'not sent'})")
        self.sent = sent


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def __str__(self):
        return f"{self.status} {self.body[:300].decode('utf-8', 'replace')}"


class Connection:
    """One keep-alive connection. Not thread-safe. Opens itself, again after a NoAnswer."""

    def __init__(self, port, key=WELL_KNOWN_KEY, seconds_max=ANSWER_SECONDS_MAX):
        self.port = port
        self.seconds_max = seconds_max
        self.key = key
        self.socket = None
        self.date = ""
        self.date_made = 0.0

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def authorization(self, verb, resource_type, link):
        if time.monotonic() - self.date_made > 60 or not self.date:
            self.date = email.utils.formatdate(usegmt=True)
            self.date_made = time.monotonic()
        text = f"{verb.lower()}\n{resource_type}\n{link}\n{self.date.lower()}\n\n"
        digest = hmac.digest(self.key, text.encode(), "sha256")
        return urllib.parse.quote(
            "type=master&ver=1.0&sig=" + base64.b64encode(digest).decode(), safe="")

    def encode(self, verb, path, resource_type, link, headers=(), body=b""):
        """The bytes of a signed request; resource_type None leaves it unsigned."""
        lines = [f"{verb} {path} HTTP/1.1", f"host: 127.0.0.1:{self.port}"]
        if resource_type is not None:
            token = self.authorization(verb, resource_type, link)
            lines += [f"x-ms-date: {self.date}", f"authorization: {token}",
                      "x-ms-version: 2020-07-15"]
        lines += [f"{name}: {value}" for name, value in dict(headers).items()]
        if body or verb in ("POST", "PUT"):
            lines += ["content-type: application/json", f"content-length: {len(body)}"]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def request(self, verb, path, resource_type, link, headers=(), body=b""):
        return self.exchange(self.encode(verb, path, resource_type, link, headers, body))

    def exchange(self, request):
        sent = False
        try:
            if self.socket is None:
                self.socket = socket.create_connection(("127.0.0.1", self.port),
                                                       timeout=self.seconds_max)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sent = True
            self.socket.sendall(request)
            return self._receive()
        except (OSError, ValueError) as error:
            self.close()
            raise NoAnswer(f"{type(error).__name__}: {error}", sent) from error

    def _receive(self):
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._some()
        lines = data[:end].decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ", 2)[1])
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", 0))
        parts, have = [data[end + 4:]], len(data) - end - 4
        while have < length:
            parts.append(self._some())
            have += len(parts[-1])
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Response(status, headers, b"".join(parts))

    def _some(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionResetError("closed by the server")
        return data

    # Links are names, `dbs/d/colls/c`, and contain nothing that needs escaping.

    def get(self, resource_type, link, headers=()):
        """Reads the resource at link."""
        return self.request("GET", "/" + link, resource_type, link, headers)

    def feed(self, resource_type, parent, headers=()):
        """One page of the feed of resource_type below parent ('' for the account)."""
        path = f"/{parent}/{resource_type}" if parent else f"/{resource_type}"
        return self.request("GET", path, resource_type, parent, headers)

    def post(self, resource_type, parent, body, headers=()):
        path = f"/{parent}/{resource_type}" if parent else f"/{resource_type}"
        return self.request("POST", path, resource_type, parent, headers, body)

    def delete(self, resource_type, link, headers=()):
        return self.request("DELETE", "/" + link, resource_type, link, headers)

    def all_of(self, resource_type, parent, member, headers=()):
        """Every resource of a feed, page after page, and the pages' responses. A page that is not
        a 200 ends it; it is then the last of the responses."""
        resources, pages, headers = [], [], {"x-ms-max-item-count": "-1", **dict(headers)}
        while True:
            pages.append(self.feed(resource_type, parent, headers))
            if pages[-1].status != 200:
                return resources, pages
            resources += pages[-1].json()[member]
            token = pages[-1].headers.get("x-ms-continuation")
            if token is None:
                return resources, pages
            headers["x-ms-continuation"] = token


class Server:
    """`orrery serve` on one data directory and one port, started as often as needed. Its output
    goes to log_path."""

    def __init__(self, binary, data_dir, log_path, port=None, arguments=(), environment=None):
        self.binary = binary
        self.data_dir = data_dir
        self.log_path = log_path
        self.port = port or free_port()
        self.arguments = list(arguments)
        self.environment = {**os.environ, **(environment or {})}
        self.process = None
        self.slowest_start = 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def spawn(self):
        """Starts the process and returns at once."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--data-dir", self.data_dir,
                 "--listen", f"127.0.0.1:{self.port}", *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                preexec_fn=_die_with_parent)

    def start(self):
        """Starts the process and waits until it is ready; returns the seconds it took."""
        began = time.monotonic()
        self.spawn()
        wait_until(self.ready_or_dead, READY_SECONDS_MAX, "the server is ready")
        seconds = time.monotonic() - began
        self.slowest_start = max(self.slowest_start, seconds)
        return seconds

    def ready_or_dead(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the server ended with status {self.process.returncode} "
                               f"instead of becoming ready\n{self.log_tail()}")
        return self.probe("/_ready") == 200

    def probe(self, path):
        """The status of an unsigned GET, or None when nobody answers."""
        connection = Connection(self.port)
        try:
            return connection.request("GET", path, None, None).status
        except NoAnswer:
            return None
        finally:
            connection.close()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """SIGKILL. Returns when the process is gone."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self):
        """SIGTERM. Returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=STOP_SECONDS_MAX)

    def log_tail(self):
        return log_tail(self.log_path)


def log_tail(path, lines=30):
    """The last lines of what a server has said, to be shown with a failure."""
    try:
        with open(path, "rb") as log:
            text = log.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return "\n".join("    | " + line for line in text[-lines:])
