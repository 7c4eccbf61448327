#!/usr/bin/env python3
"""Many clients at once, with and without a key, against a server with little memory and few files.

    limits_test.py [--binary build/orrery] [--only NAME]

memory  Bodies that strangers begin, bodies that those with a key begin, and answers that nobody reads
        take no more memory than --request-memory-mb and what the server itself needs.
files   Idle connections beyond the limit of open files cost others nothing: every write succeeds.
"""

import argparse
import ctypes
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from orrery_process import Connection, Server, wait_until  # noqa: E402

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
MIB = 1 << 20
BUDGET_MIB = 16
STRANGERS = 100
SENDERS = 50
READERS = 50
BODY_BYTES = 2_000_000
UNSENT_BYTES = 10_000
# Beyond the budget: pages that are being read by the pools' threads, sockets, fragmentation.
SLACK_BYTES = 96 * MIB
FILES_MAX = 256
IDLE = 600
WRITES = 400
SECONDS_MAX = 30


class LimitedServer(Server):
    """A server that may have so many files open."""

    def __init__(self, *arguments, files_max, **options):
        super().__init__(*arguments, **options)
        self.files_max = files_max

    def spawn(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.files_max, self.files_max))
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it dies with the test
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--data-dir", self.data_dir,
                 "--listen", f"127.0.0.1:{self.port}", *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=limit)


def metric(server, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/_metrics") as answer:
        text = answer.read().decode()
    return float(re.search(rf"^{name} (\S+)$", text, re.M)[1])


def resident_bytes(server):
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX)


def set_up(server):
    """A container with documents whose feed fills a page of 4 MB."""
    connection = Connection(server.port)
    assert connection.post("dbs", "", b'{"id":"d"}').status == 201
    definition = b'{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}'
    assert connection.post("colls", "dbs/d", definition).status == 201
    for number in range(4):
        document = b'{"id":"%d","pk":"a","padding":"%s"}' % (number, b"p" * 1_000_000)
        answer = connection.post("docs", "dbs/d/colls/c", document,
                                 {"x-ms-documentdb-partitionkey": '["a"]'})
        assert answer.status == 201, answer
    return connection


def begin_bodies(server, count, resource_type):
    """So many requests, of which some bytes of the body are missing."""
    signer = Connection(server.port)
    request = signer.encode("POST", "/dbs", resource_type, "", body=b"x" * BODY_BYTES)
    begun = []
    for _ in range(count):
        client = connect(server)
        client.setblocking(False)
        begun.append((client, memoryview(request)[:-UNSENT_BYTES]))
    return begun


def send_some(begun):
    """Sends what fits everywhere; what is left to be sent. Those that were refused are left out."""
    left = []
    for client, data in begun:
        try:
            while data:
                data = data[client.send(data):]
        except BlockingIOError:
            left.append((client, data))
        except OSError:
            pass
    return left


def statuses(begun, seconds_max):
    """The status of each answer, None where there is none in time."""
    found = []
    for client, _ in begun:
        client.settimeout(seconds_max)
        try:
            found.append(int(client.recv(65536).split(b" ", 2)[1]))
        except (TimeoutError, OSError, IndexError):
            found.append(None)
    return found


def peak_while(server, condition, what):
    """Waits for the condition; the most memory that the server had meanwhile."""
    peak = 0

    def look():
        nonlocal peak
        peak = max(peak, resident_bytes(server))
        return condition()
    wait_until(look, SECONDS_MAX, what)
    return peak


def test_memory(server):
    connection = set_up(server)
    idle = resident_bytes(server)
    bound = idle + BUDGET_MIB * MIB + SLACK_BYTES

    strangers = begin_bodies(server, STRANGERS, None)
    left = strangers

    def strangers_sent():
        nonlocal left
        left = send_some(left)
        return not left
    peak = peak_while(server, strangers_sent, "strangers are refused")
    answers = statuses(strangers, SECONDS_MAX)
    assert answers.count(401) == STRANGERS, answers
    held = metric(server, "orrery_request_memory_bytes")
    assert held == 0, f"strangers hold {held} bytes"
    assert peak < idle + SLACK_BYTES, f"strangers made {idle} bytes {peak}"
    print(f"strangers: {idle >> 20} MiB, then {peak >> 20}")
    for client, _ in strangers:
        client.close()

    senders = begin_bodies(server, SENDERS, "dbs")
    left = senders

    def senders_sent():
        nonlocal left
        left = send_some(left)
        return metric(server, "orrery_request_memory_refused_total") >= SENDERS - 8
    peak = peak_while(server, senders_sent, "most bodies are refused")
    assert metric(server, "orrery_request_memory_bytes") <= BUDGET_MIB * MIB
    answers = statuses(senders, 0.1)
    assert answers.count(429) >= SENDERS - 8, answers
    assert peak < bound, f"bodies made {idle} bytes {peak}"
    print(f"bodies: {idle >> 20} MiB, then {peak >> 20}")
    for client, _ in senders:
        client.close()
    wait_until(lambda: metric(server, "orrery_request_memory_bytes") == 0, SECONDS_MAX,
               "the memory of bodies is given back")

    page = connection.encode("GET", "/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c",
                             {"x-ms-max-item-count": "-1"})
    readers = []
    for _ in range(READERS):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(page * 3)
        readers.append((client, b""))
    peak = peak_while(server, lambda: metric(server, "orrery_slow_readers_dropped_total") >= 1 and
                      metric(server, "orrery_request_memory_refused_total") >= SENDERS,
                      "readers are refused and dropped")
    assert peak < bound, f"answers made {idle} bytes {peak}"
    print(f"answers: {idle >> 20} MiB, then {peak >> 20}")
    for client, _ in readers:
        client.close()
    wait_until(lambda: metric(server, "orrery_request_memory_bytes") == 0, SECONDS_MAX,
               "the memory of answers is given back")
    answer = connection.exchange(page)
    assert answer.status == 200 and len(answer.body) > 4_000_000, answer


def test_files(server):
    connection = set_up(server)
    idle = []
    for number in range(WRITES):
        while len(idle) * WRITES < IDLE * number:
            idle.append(connect(server))
        # Every fourth writer comes anew and has to find a place.
        if number % 4 == 0:
            connection.close()
        answer = connection.post("docs", "dbs/d/colls/c", b'{"id":"w%d","pk":"b"}' % number,
                                 {"x-ms-documentdb-partitionkey": '["b"]'})
        assert answer.status == 201, f"write {number}: {answer}"
    used = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    assert used < FILES_MAX - 32, f"{used} files open"
    closed = metric(server, "orrery_connections_closed_for_room_total")
    assert closed > 0, "nobody made room"
    print(f"files: {used} open of {FILES_MAX}, {closed:.0f} idle connections of {IDLE} closed")
    for client in idle:
        client.close()


TESTS = {"memory": test_memory, "files": test_files}


def run(name, binary):
    work_dir = tempfile.mkdtemp(prefix=f"orrery-limits-{name}-")
    server = LimitedServer(binary, os.path.join(work_dir, "data"),
                           os.path.join(work_dir, "server.log"),
                           arguments=["--request-memory-mb", str(BUDGET_MIB)],
                           files_max=FILES_MAX if name == "files" else 4096)
    try:
        with server:
            server.start()
            TESTS[name](server)
            assert server.stop() == 0
    except BaseException:
        print(f"FAILED {name}; what the server said:\n{server.log_tail()}")
        raise
    finally:
        shutil.rmtree(work_dir, ignore_errors=True)
    print(f"ok {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--binary", default=os.environ.get("ORRERY_BINARY", f"{BUILD}/orrery"))
    parser.add_argument("--only", choices=TESTS)
    arguments = parser.parse_args()
    own_max = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (own_max, own_max))
    for name in [arguments.only] if arguments.only else TESTS:
        run(name, arguments.binary)


if __name__ == "__main__":
    main()
