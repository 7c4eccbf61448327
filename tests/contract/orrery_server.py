"""Starts and stops the real binary for tests that are given no endpoint, or need options of their own."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading

import wire

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("ORRERY_BINARY", str(REPOSITORY / "build" / "orrery"))
ENDPOINT_LINE = re.compile(r"https?://[^\s/]+:(\d+)/")
START_SECONDS = 30.0
STOP_SECONDS = 30.0


def launch(*args, cwd=None, files_max=None):
    """`orrery serve` with these options, in a directory and an environment of its own, with so many open files."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ORRERY_")}
    limit = ["prlimit", f"--nofile={files_max}"] if files_max else []
    return subprocess.Popen([*limit, BINARY, "serve", *args], cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class OrreryServer:
    """One running server. Ephemeral and on a free port of loopback, unless the options say otherwise."""

    def __init__(self, *args, key=wire.WELL_KNOWN_KEY, files_max=None):
        args = [str(arg) for arg in args]
        if "--data-dir" not in args:
            args.append("--ephemeral")
        if "--listen" not in args:
            args += ["--listen", "127.0.0.1:0"]
        self.directory = tempfile.TemporaryDirectory(prefix="orrery-contract-")
        self.process = launch(*args, cwd=self.directory.name, files_max=files_max)
        self.output, self.errors, self.is_stopped = [], [], False
        self.readers = [threading.Thread(target=collect, args=pair, daemon=True) for pair in
                        ((self.process.stdout, self.output), (self.process.stderr, self.errors))]
        for reader in self.readers:
            reader.start()
        try:
            port = wire.wait_until(self.find_port, START_SECONDS, f"the start of {BINARY}")
        except AssertionError:
            self.process.kill()
            raise
        self.endpoint = wire.Endpoint(f"http://127.0.0.1:{port}/", key)

    def find_port(self):
        assert self.process.poll() is None, f"the server ended while starting: {self.report()}"
        return next((match[1] for line in list(self.output) if (match := ENDPOINT_LINE.search(line))), None)

    def report(self):
        return f"exit code {self.process.poll()}, output:\n{''.join(self.output)}\nerrors:\n{''.join(self.errors)}"

    def client(self, key=None):
        endpoint = wire.Endpoint(self.endpoint.url, key) if key else self.endpoint
        return wire.Client(endpoint)

    def kill(self):
        """SIGKILL, as a crash. A stop afterwards does nothing."""
        self.is_stopped = True
        self.process.kill()
        self.process.wait()
        self.close()

    def stop(self):
        """Asks the server to end, as an operator would, and insists on a clean exit. Safe to call twice."""
        if self.is_stopped:
            return
        self.is_stopped = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"SIGTERM did not end the server in {STOP_SECONDS} s: {self.report()}")
        finally:
            self.close()
        assert self.process.returncode == 0, f"the server did not end well: {self.report()}"

    def close(self):
        for reader in self.readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        self.directory.cleanup()


def collect(stream, lines):
    for line in stream:
        lines.append(line)
