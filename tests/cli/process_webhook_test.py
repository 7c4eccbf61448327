"""`orrery process --webhook` against a small HTTP server: every status, replies, headers."""

import http.server
import json
import threading
import time
import unittest

import commands
from commands import wait_until


class Hook:
    """Answers as `answer(request)` says: (status, headers, body). Remembers all requests."""

    def __init__(self, answer=lambda request: (200, {}, b""), port=0):
        hook = self
        self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                request = {"path": self.path, "headers": dict(self.headers.items()),
                           "time": time.monotonic(), **json.loads(body)}
                request["ids"] = [each["id"] for each in request["documents"]]
                hook.requests.append(request)
                status, headers, answer_body = answer(request)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(answer_body)))
                self.end_headers()
                self.wfile.write(answer_body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # The client has gone away meanwhile; some tests want that.

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}/changes?kind=star"
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def batches(self):
        return [request["ids"] for request in self.requests]


class WebhookTest(commands.CommandLineTest):
    def hook(self, *arguments, **options):
        hook = Hook(*arguments, **options)
        self.addCleanup(hook.close)
        return hook

    def once(self, first, then=(200, {}, b"")):
        """A hook that answers the first request in another way than the rest."""
        answers = iter([first])
        return self.hook(lambda request: next(answers, then))

    def dead_ids(self):
        return [json.loads(line)["document"]["id"] for line in self.lines("dead.jsonl")]

    def test_batches_are_posted_with_what_is_known_of_them(self):
        container = self.container()
        written = container.fill(5)
        hook = self.hook()
        done = self.process(container, "--page-size", 3, "--webhook", hook.url,
                            "--header", "Authorization: Bearer abc", "--header", "X-Two: 2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(hook.batches(), [written[:3], written[3:]])
        first, second = hook.requests
        self.assertEqual(first["path"], "/changes?kind=star")
        self.assertEqual(first["to"], second["from"])
        headers = {name.lower(): value for name, value in first["headers"].items()}
        self.assertEqual(headers["content-type"], "application/json")
        self.assertEqual((headers["authorization"], headers["x-two"]), ("Bearer abc", "2"))
        for name in ("lease", "range", "from", "to"):
            self.assertEqual(headers[f"x-orrery-{name}"], first[name])
        self.assertEqual(headers["x-orrery-epoch"], str(first["epoch"]))
        self.assertEqual(headers["x-orrery-count"], "3")

    def test_too_busy_is_waited_for_as_long_as_it_asks(self):
        for status in (429, 503):
            with self.subTest(status):
                container = self.container(f"c{status}")
                written = container.fill(3)
                hook = self.once((status, {"Retry-After": "2"}, b"busy"))
                done = self.process(container, "--webhook", hook.url, "--max-attempts", 1,
                                    "--dead-letters", self.path("dead.jsonl"))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(hook.batches(), [written, written])
                self.assertGreaterEqual(hook.requests[1]["time"] - hook.requests[0]["time"], 2)
                self.assertIn(f"the webhook answered {status}: busy", done.stderr)
                # The retry of a batch has the same idempotency key.
                keys = {each["headers"]["x-orrery-idempotency-key"] for each in hook.requests}
                self.assertEqual(len(keys), 1)

    def test_a_server_error_is_a_failure(self):
        container = self.container()
        written = container.fill(3)
        hook = self.once((500, {}, b"oops"))
        done = self.process(container, "--webhook", hook.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(hook.batches(), [written, written])
        self.assertIn("500: oops", done.stderr)

    def test_a_refusal_is_cut_down_to_the_guilty_document_at_once(self):
        container = self.container()
        container.fill(3, "a"), container.write("poison"), container.fill(2, "b")
        hook = self.hook(lambda request: (422, {}, b"no") if "poison" in request["ids"]
                         else (200, {}, b""))
        done = self.process(container, "--webhook", hook.url, "--max-attempts", 50,
                            "--dead-letters", self.path("dead.jsonl"))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(self.dead_ids(), ["poison"])
        # Alone it was sent once, whatever the number of attempts.
        self.assertEqual(hook.batches().count(["poison"]), 1)
        accepted = [name for batch in hook.batches() if "poison" not in batch for name in batch]
        self.assertEqual(accepted, ["a0", "a1", "a2", "b0", "b1"])
        # Parts of a batch are not taken for each other.
        keys = [each["headers"]["x-orrery-idempotency-key"] for each in hook.requests]
        self.assertEqual(len(set(keys)), len(keys))

    def test_replies_are_outcomes(self):
        container = self.container()
        written = container.fill(4)
        replies = iter([{"done_until": 1}, {"retry_after_ms": 10}, {"reject": [0], "reason": "r"}])
        hook = self.hook(lambda request: (200, {}, json.dumps(next(replies, {})).encode()))
        done = self.process(container, "--webhook", hook.url, "--dead-letters",
                            self.path("dead.jsonl"))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(hook.batches(), [written, written[1:], written[1:]])
        self.assertEqual(self.dead_ids(), [written[1]])

    def test_one_that_is_not_there_yet_is_waited_for(self):
        container = self.container()
        written = container.fill(3)
        closed = Hook()
        closed.close()
        running = self.start_process(container, "--webhook", closed.url, "--max-attempts", 1,
                                     "--dead-letters", self.path("dead.jsonl"))
        wait_until(lambda: any("trying again" in line for line in running.errors),
                   "a complaint")
        hook = self.hook(port=closed.port)
        wait_until(lambda: hook.batches() == [written], "the batch")
        self.assertEqual(running.stop(), 0)
        self.assertEqual(self.dead_ids(), [])

    def test_one_by_one(self):
        container = self.container()
        written = container.fill(3) + [container.write("poison")["id"]] + container.fill(1, "z")
        failures = iter([500])
        hook = self.hook(lambda request: (400, {}, b"") if request["ids"] == ["poison"] else
                         (next(failures, 200), {}, b""))
        done = self.process(container, "--webhook", hook.url, "--per-document", "--dead-letters",
                            self.path("dead.jsonl"))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(hook.batches(), [[name] for name in [written[0], *written]])
        self.assertEqual(self.dead_ids(), ["poison"])

    def test_one_that_does_not_answer_has_failed(self):
        container = self.container()
        container.write("slow")
        answer = threading.Event()
        hook = self.hook(lambda request: answer.wait(commands.PATIENCE) and (200, {}, b""))
        done = self.process(container, "--webhook", hook.url, "--batch-timeout", "300ms",
                            "--max-attempts", 1, "--dead-letters", self.path("dead.jsonl"))
        answer.set()
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(self.dead_ids(), ["slow"])
        self.assertIn("within 300 ms", done.stderr)

    def test_an_end_does_not_wait_for_one_that_does_not_answer(self):
        container = self.container()
        container.write("slow")
        answer = threading.Event()
        hook = self.hook(lambda request: answer.wait(commands.PATIENCE) and (200, {}, b""))
        self.addCleanup(answer.set)
        running = self.start_process(container, "--webhook", hook.url, "--grace", "0")
        wait_until(lambda: hook.requests, "the batch")
        self.assertEqual(running.stop(), 0)
        self.assertIn("left behind", "".join(running.errors))
        self.assertEqual(self.status(container)["leases"][0]["pendingDocuments"], 1)


if __name__ == "__main__":
    unittest.main()
