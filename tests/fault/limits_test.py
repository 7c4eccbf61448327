#!/usr/bin/env python3
"""Many clients at once, with and without a key, against a server with little memory and few files.

    limits_test.py [--binary build/orrery] [--only NAME]

memory  Bodies that strangers begin, bodies that those with a key begin, and answers that nobody reads
        take no more memory than --request-memory-mb and what the server itself needs.
files   Idle connections beyond the limit of open files cost others nothing: every write succeeds.
"""

import argparse
import os
import pathlib
import resource
import shutil
import socket
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import proc, server as launcher, wire  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

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


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX)


def set_up(server):
    """A container with documents whose feed fills a page of 4 MB."""
    connection = wire.connect(server.port)
    assert connection.post("/dbs", b'{"id":"d"}').status == 201
    definition = b'{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}'
    assert connection.post("/dbs/d/colls", definition).status == 201
    for number in range(4):
        document = b'{"id":"%d","pk":"a","padding":"%s"}' % (number, b"p" * 1_000_000)
        answer = connection.post("/dbs/d/colls/c/docs", document, {wire.KEY: '["a"]'})
        assert answer.status == 201, answer
    return connection


def begin_bodies(server, count, signed):
    """So many requests, of which some bytes of the body are missing."""
    request = server.connect().build("POST", "/dbs", b"x" * BODY_BYTES, signed=signed)
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
        peak = max(peak, server.resident_bytes())
        return condition()
    wait_until(look, SECONDS_MAX, what)
    return peak


def test_memory(server):
    connection = set_up(server)
    idle = server.resident_bytes()
    bound = idle + BUDGET_MIB * MIB + SLACK_BYTES

    strangers = begin_bodies(server, STRANGERS, signed=False)
    left = strangers

    def strangers_sent():
        nonlocal left
        left = send_some(left)
        return not left
    peak = peak_while(server, strangers_sent, "strangers are refused")
    answers = statuses(strangers, SECONDS_MAX)
    assert answers.count(401) == STRANGERS, answers
    held = server.metric("orrery_request_memory_bytes")
    assert held == 0, f"strangers hold {held} bytes"
    assert peak < idle + SLACK_BYTES, f"strangers made {idle} bytes {peak}"
    print(f"strangers: {idle >> 20} MiB, then {peak >> 20}")
    for client, _ in strangers:
        client.close()

    senders = begin_bodies(server, SENDERS, signed=True)
    left = senders

    def senders_sent():
        nonlocal left
        left = send_some(left)
        return server.metric("orrery_request_memory_refused_total") >= SENDERS - 8
    peak = peak_while(server, senders_sent, "most bodies are refused")
    assert server.metric("orrery_request_memory_bytes") <= BUDGET_MIB * MIB
    answers = statuses(senders, 0.1)
    assert answers.count(429) >= SENDERS - 8, answers
    assert peak < bound, f"bodies made {idle} bytes {peak}"
    print(f"bodies: {idle >> 20} MiB, then {peak >> 20}")
    for client, _ in senders:
        client.close()
    wait_until(lambda: server.metric("orrery_request_memory_bytes") == 0, SECONDS_MAX,
               "the memory of bodies is given back")

    page = connection.build("GET", "/dbs/d/colls/c/docs", None, {wire.MAX_ITEMS: -1})
    readers = []
    for _ in range(READERS):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(page * 3)
        readers.append((client, b""))
    peak = peak_while(server, lambda: server.metric("orrery_slow_readers_dropped_total") >= 1 and
                      server.metric("orrery_request_memory_refused_total") >= SENDERS,
                      "readers are refused and dropped")
    assert peak < bound, f"answers made {idle} bytes {peak}"
    print(f"answers: {idle >> 20} MiB, then {peak >> 20}")
    for client, _ in readers:
        client.close()
    wait_until(lambda: server.metric("orrery_request_memory_bytes") == 0, SECONDS_MAX,
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
        answer = connection.post("/dbs/d/colls/c/docs", {"id": f"w{number}", "pk": "b"}, {wire.KEY: '["b"]'})
        assert answer.status == 201, f"write {number}: {answer}"
    used = proc.open_files(server.process.pid)
    assert used < FILES_MAX - 32, f"{used} files open"
    closed = server.metric("orrery_connections_closed_for_room_total")
    assert closed > 0, "nobody made room"
    print(f"files: {used} open of {FILES_MAX}, {closed:.0f} idle connections of {IDLE} closed")
    for client in idle:
        client.close()


TESTS = {"memory": test_memory, "files": test_files}


def run(name, binary):
    work_dir = tempfile.mkdtemp(prefix=f"orrery-limits-{name}-")
    server = launcher.Server("--request-memory-mb", BUDGET_MIB, data_dir=os.path.join(work_dir, "data"),
                             log_path=os.path.join(work_dir, "server.log"), binary=binary,
                             files_max=FILES_MAX if name == "files" else 4096)
    try:
        with server:
            server.start()
            TESTS[name](server)
            server.stop()
    except BaseException:
        print(f"FAILED {name}; what the server said:\n{server.log_tail()}")
        raise
    finally:
        shutil.rmtree(work_dir, ignore_errors=True)
    print(f"ok {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--binary", default=launcher.BINARY)
    parser.add_argument("--only", choices=TESTS)
    arguments = parser.parse_args()
    own_max = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (own_max, own_max))
    for name in [arguments.only] if arguments.only else TESTS:
        run(name, arguments.binary)


if __name__ == "__main__":
    main()
