"""Changes are posted to a receiver that fails now and then, refuses some for good, and is away for a while."""

import collections
import http.server
import json
import socket
import sys
import threading

from example_runs import Program, documents_of, make_container, run, run_tests


class Receiver:
    """An HTTP server of the test. `verdict` says how a document is answered, by how often it was seen."""

    def __init__(self, verdict, port=0):
        self.accepted, self.tries = [], collections.Counter()
        self.keys = {}  # of accepted changes, by Idempotency-Key
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                document = json.loads(self.rfile.read(int(self.headers["content-length"])))
                receiver.tries[document["id"]] += 1
                status = verdict(document, receiver.tries[document["id"]])
                if status == 200:
                    receiver.accepted.append(document["id"])
                    receiver.keys[self.headers["idempotency-key"]] = document["id"]
                if status is None:  # As a receiver that dies.
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}/changes"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_every_change_arrives_in_spite_of_failures(client, database):
    container = make_container(database, "orders", "/pk", ranges=2)
    for n in range(60):
        container.create({"id": f"o{n}", "pk": f"k{n % 3}"}).expect(201)

    def fails_now_and_then(document, tries):
        number = int(document["id"][1:])
        if tries == 1 and number % 11 == 0:
            return 503
        if tries <= 2 and number % 17 == 0:
            return None
        return 429 if tries == 1 and number % 13 == 0 else 200

    with Receiver(fails_now_and_then) as receiver:
        run("call_webhook", database.id, "orders", receiver.url, "--once")
        assert sorted(receiver.accepted) == sorted(f"o{n}" for n in range(60))
        assert len(receiver.keys) == 60  # each change has a key of its own
        for key in ("k0", "k1", "k2"):
            of_key = [id_ for id_ in receiver.accepted if f"k{int(id_[1:]) % 3}" == key]
            assert of_key == sorted(of_key, key=lambda id_: int(id_[1:])), "not in the order of the writes"
    assert documents_of(client, database, "dead-letters") == []


def test_what_is_refused_for_good_is_put_aside(client, database):
    container = make_container(database, "orders", "/pk")
    for n in range(30):
        container.create({"id": f"o{n}", "pk": "a"}).expect(201)
    bad = {"o0", "o7", "o8", "o29"}
    with Receiver(lambda document, tries: 422 if document["id"] in bad else 200) as receiver:
        run("call_webhook", database.id, "orders", receiver.url, "--once")
        assert sorted(receiver.accepted) == sorted({f"o{n}" for n in range(30)} - bad)
    letters = documents_of(client, database, "dead-letters")
    assert {letter["document"]["id"] for letter in letters} == bad and len(letters) == 4
    assert all(letter["error"] == "the receiver answered 422" for letter in letters), letters


def test_what_fails_too_often_is_put_aside(client, database):
    container = make_container(database, "orders", "/pk")
    for n in range(5):
        container.create({"id": f"o{n}", "pk": "a"}).expect(201)
    with Receiver(lambda document, tries: 500 if document["id"] == "o2" else 200) as receiver:
        run("call_webhook", database.id, "orders", receiver.url, "--attempts=3", "--once")
        assert sorted(receiver.accepted) == ["o0", "o1", "o3", "o4"]
    (letter,) = documents_of(client, database, "dead-letters")
    assert letter["document"]["id"] == "o2" and letter["attempts"] == 3, letter


def test_waits_for_a_receiver_that_is_away(client, database):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    container = make_container(database, "orders", "/pk")
    container.create({"id": "o0", "pk": "a"}).expect(201)
    with Program("call_webhook", database.id, "orders", f"http://127.0.0.1:{port}/changes") as program:
        def is_at_work():
            leases = client.get(f"/dbs/{database.id}/colls/leases/docs")
            return leases.status == 200 and any(each.get("Owner") for each in leases.json["Documents"])
        program.wait_until(is_at_work, "its lease")
        with Receiver(lambda document, tries: 200, port) as receiver:
            program.wait_until(lambda: receiver.accepted, "the change")
            program.end()
            assert receiver.accepted == ["o0"]


if __name__ == "__main__":
    run_tests(sys.modules[__name__])
