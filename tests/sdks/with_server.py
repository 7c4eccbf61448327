#!/usr/bin/env python3
"""Runs a command against a fresh, empty Orrery server.

    with_server.py [serve options ...] -- command [arguments ...]

Starts `orrery serve --ephemeral --listen 127.0.0.1:0` with the given options, waits until it has
said where it listens, and runs the command with these variables:

    ORRERY_ENDPOINT_HTTP    http://127.0.0.1:<port>/
    ORRERY_ENDPOINT_HTTPS   https://127.0.0.1:<port>/    the same port, a self-signed certificate
    ORRERY_KEY              the account key

Then it asks the server to stop. The exit code is the command's; but a server that died meanwhile,
or did not stop cleanly, turns success into failure. The binary is ORRERY_BINARY, or build/orrery.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
DIAGNOSTIC_LINES_MAX = 200
WELL_KNOWN_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
ENDPOINT = re.compile(r"https?://127\.0\.0\.1:(\d+)/")
PR_SET_PDEATHSIG = 1


class Server:
    def __init__(self, binary, options):
        # Every option of the server can come from an ORRERY_ variable: what is set for the tests,
        # or by whoever runs them, is not meant for it.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}
        libc = ctypes.CDLL(None)
        self.process = subprocess.Popen(
            [binary, "serve", "--ephemeral", "--listen", "127.0.0.1:0", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment, text=True, errors="replace",
            # A runner that is killed for taking too long leaves no server behind.
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        self.lines = []
        self.port = None
        self.settled = threading.Event()  # The port is known, or the server's output has ended.
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            del self.lines[:-DIAGNOSTIC_LINES_MAX]
            if self.port is None and (match := ENDPOINT.search(line)):
                self.port = int(match.group(1))
                self.settled.set()
        self.settled.set()

    def await_port(self):
        self.settled.wait(START_SECONDS_MAX)
        if self.port is None:
            code = self.process.poll()
            self.process.kill()
            raise RuntimeError(f"the server named no endpoint within {START_SECONDS_MAX} s"
                               if code is None else f"the server ended at once, exit code {code}")
        return self.port

    def stop(self):
        """Returns what was wrong with the end of the server, or None."""
        if (code := self.process.poll()) is not None:
            return f"the server ended by itself, exit code {code}"
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return f"the server had not stopped {STOP_SECONDS_MAX} s after SIGTERM"
        return None if code == 0 else f"the server stopped with exit code {code}"

    def diagnostics(self):
        self.reader.join(5)
        return "".join("  orrery | " + line for line in self.lines)


def key_of(options):
    for i, option in enumerate(options):
        if option == "--key":
            return options[i + 1]
        if option.startswith("--key="):
            return option.removeprefix("--key=")
    return WELL_KNOWN_KEY


def main(arguments):
    if "--" not in arguments or arguments[-1] == "--":
        sys.exit(__doc__)
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1:]
    root = Path(__file__).resolve().parents[2]
    binary = os.environ.get("ORRERY_BINARY") or str(root / "build" / "orrery")
    try:
        server = Server(binary, options)
    except OSError as error:
        sys.exit(f"with_server: cannot run {binary}: {error.strerror}; build it, or set ORRERY_BINARY")
    code, trouble = 1, None
    try:
        port = server.await_port()
        code = subprocess.run(command, check=False, env={
            **os.environ,
            "ORRERY_ENDPOINT_HTTP": f"http://127.0.0.1:{port}/",
            "ORRERY_ENDPOINT_HTTPS": f"https://127.0.0.1:{port}/",
            "ORRERY_KEY": key_of(options),
        }).returncode
        if code < 0:  # Ended by a signal.
            code = 128 - code
    except (RuntimeError, OSError) as error:
        trouble = str(error)
    trouble = server.stop() if trouble is None else trouble
    if server.process.poll() is None:
        server.process.kill()
    if trouble or code:
        print(server.diagnostics(), end="", file=sys.stderr)
    if trouble:
        print(f"with_server: {trouble}", file=sys.stderr)
    return code or (1 if trouble else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
