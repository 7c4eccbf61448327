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

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import server as launcher, wire  # noqa: E402

DIAGNOSTIC_LINES_MAX = 200


def key_of(options):
    for i, option in enumerate(options):
        if option == "--key":
            return options[i + 1]
        if option.startswith("--key="):
            return option.removeprefix("--key=")
    return wire.WELL_KNOWN_KEY


def main(arguments):
    if "--" not in arguments or arguments[-1] == "--":
        sys.exit(__doc__)
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1:]
    server = launcher.Server(*options)
    code, trouble = 1, None
    try:
        server.start()
        code = subprocess.run(command, check=False, env={
            **os.environ,
            "ORRERY_ENDPOINT_HTTP": f"http://127.0.0.1:{server.port}/",
            "ORRERY_ENDPOINT_HTTPS": f"https://127.0.0.1:{server.port}/",
            "ORRERY_KEY": key_of(options),
        }).returncode
        if code < 0:  # Ended by a signal.
            code = 128 - code
        server.stop()
    except OSError as error:
        trouble = f"{error}; is {server.binary} built, or ORRERY_BINARY set?"
    except AssertionError as error:
        trouble = str(error)
    finally:
        server.kill()
    if trouble or code:
        print(server.log_tail(DIAGNOSTIC_LINES_MAX), file=sys.stderr)
    if trouble:
        print(f"with_server: {trouble}", file=sys.stderr)
    return code or (1 if trouble else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
