#!/usr/bin/env python3
"""The ground of the other tests: a client that tells an unknown outcome from an answer, seeds, and retries that are told."""

import contextlib
import io
import os
import pathlib
import socket
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import retries, seeds, server, waiting, wire  # noqa: E402

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


class Listener:
    """Answers each connection with one piece of a script: how many requests it answers, and whether it reads another
    one before it closes the connection."""

    def __init__(self, *script):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.closed = [threading.Event() for _ in script]
        self.thread = threading.Thread(target=self.run, args=(script,), daemon=True)
        self.thread.start()

    def run(self, script):
        for (answers, reads_another), closed in zip(script, self.closed):
            connection, _ = self.socket.accept()
            with connection:
                for _ in range(answers):
                    connection.recv(65536)
                    connection.sendall(ANSWER)
                if reads_another:
                    connection.recv(65536)
            closed.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thread.join(10)
        self.socket.close()


def told(action):
    """The output of an action, and its value."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        value = action()
    return output.getvalue(), value


class ClientTest(unittest.TestCase):
    def setUp(self):
        # These retries are meant: they are none of the run's.
        environment = mock.patch.dict(os.environ, {retries.VARIABLE: ""})
        environment.start()
        self.addCleanup(environment.stop)

    def client(self, port):
        return wire.Client(wire.Endpoint(f"http://127.0.0.1:{port}/"), notes_breaches=False)

    def test_a_connection_that_was_closed_while_idle_is_replaced_without_a_retry(self):
        for make in (self.client, wire.connect):
            with Listener((1, False), (1, False)) as listener:
                client = make(listener.port)
                client.get("/").expect(200)
                self.assertTrue(listener.closed[0].wait(10))
                output, response = told(lambda: client.get("/"))
                self.assertEqual((response.status, output), (200, ""))
                client.close()

    def test_a_request_that_met_a_closing_connection_is_sent_again_and_that_is_told(self):
        with Listener((1, True), (1, False)) as listener:
            client = self.client(listener.port)
            client.get("/").expect(200)
            output, response = told(lambda: client.get("/"))
            self.assertEqual(response.status, 200)
            self.assertRegex(output, r"^RETRIED GET over a kept-alive connection: ")
            client.close()

    def test_a_judge_is_told_that_the_outcome_is_unknown(self):
        with Listener((1, True)) as listener:
            client = wire.connect(listener.port)
            client.get("/").expect(200)
            with self.assertRaises(wire.NoAnswer) as failure:
                client.post("/dbs", {"id": "d"})
            self.assertTrue(failure.exception.sent)

    def test_a_judge_is_told_that_nothing_was_sent(self):
        with self.assertRaises(wire.NoAnswer) as failure:
            wire.connect(server.free_port()).get("/")
        self.assertFalse(failure.exception.sent)


class SeedTest(unittest.TestCase):
    def test_the_option_wins_over_the_variable_and_that_over_chance(self):
        with mock.patch.dict(os.environ, {"ORRERY_SEED": "42"}):
            self.assertEqual(told(seeds.seed), ("ORRERY_SEED=42\n", 42))
            self.assertEqual(told(lambda: seeds.seed(7)), ("ORRERY_SEED=7\n", 7))
        with mock.patch.dict(os.environ):
            os.environ.pop("ORRERY_SEED", None)
            output, drawn = told(seeds.seed)
            self.assertEqual(output, f"ORRERY_SEED={drawn}\n")


class RetryTest(unittest.TestCase):
    def test_a_retry_is_one_line_on_standard_output_and_in_the_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "retries"
            with mock.patch.dict(os.environ, {"ORRERY_RETRIES": str(path)}):
                output, _ = told(lambda: retries.report("this", "that\n  broke"))
            self.assertEqual((output, path.read_text()), ("RETRIED this: that broke\n",) * 2)


class WaitTest(unittest.TestCase):
    def test_the_value_of_the_condition_is_returned_and_a_deadline_names_it(self):
        values = iter([0, None, "there"])
        self.assertEqual(waiting.wait_until(lambda: next(values), 10), "there")
        with self.assertRaisesRegex(waiting.TimedOut, "the moon: not within 0 s"):
            waiting.wait_until(lambda: False, 0, "the moon")


if __name__ == "__main__":
    unittest.main()
