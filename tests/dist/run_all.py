#!/usr/bin/env python3
"""Runs every *_test.py beside it on what `make dist` has made: run_all.py [DIST_DIR] [--only NAME].

Each file runs in a process of its own. Ends with the line `N passed, M failed`, or `N passed, M failed, K skipped`. A
test that is skipped is none that passed; the reasons stand above. Standard library only.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_MAX = 540  # for all files together
COUNTS = "ORRERY_DIST_COUNTS"


class CountingResult(unittest.TextTestResult):
    """Counts what passed, which unittest itself does not when whole classes are skipped."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def run_here(file):
    """All tests of the file, in this process. The counts go to the file that the variable names."""
    sys.path.insert(0, str(HERE))
    sys.argv = [str(file)]
    suite = unittest.defaultTestLoader.loadTestsFromName(file.stem)
    result = unittest.TextTestRunner(resultclass=CountingResult, verbosity=1).run(suite)
    counts = {"passed": result.passed, "skipped": len(result.skipped),
              "failed": len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)}
    pathlib.Path(os.environ[COUNTS]).write_text(json.dumps(counts))


def run_apart(file, dist, seconds_max):
    """The same in a process of its own; its counts."""
    with tempfile.TemporaryDirectory(prefix="orrery-dist-") as directory:
        counts = pathlib.Path(directory) / "counts"
        environment = os.environ | {"ORRERY_DIST": str(dist), COUNTS: str(counts)}
        process = subprocess.Popen([sys.executable, "-u", __file__, "--here", file], env=environment,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            # What it has started ends with it: servers of the tests die with their parent.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            print(f"{file.name} was ended: {SECONDS_MAX} s for all tests were over")
        if counts.exists():
            return json.loads(counts.read_text())
        return {"passed": 0, "failed": 1, "skipped": 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":", maxsplit=1)[0])
    parser.add_argument("dist", nargs="?", type=pathlib.Path, default=HERE.parents[1] / "dist")
    parser.add_argument("--only", default="", help="files whose name contains this")
    parser.add_argument("--here", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        run_here(arguments.here)
        return 0
    dist = arguments.dist.resolve()
    if not (dist / "SHA256SUMS").exists():
        sys.exit(f"{dist} has no SHA256SUMS: make dist first")
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    deadline = time.monotonic() + SECONDS_MAX
    for file in sorted(HERE.glob("*_test.py")):
        if arguments.only not in file.name:
            continue
        print(f"── {file.name}", flush=True)
        began = time.monotonic()
        for name, count in run_apart(file, dist, max(deadline - began, 1)).items():
            totals[name] += count
        print(f"   {time.monotonic() - began:.0f} s", flush=True)
    skipped = f", {totals['skipped']} skipped" if totals["skipped"] else ""
    print(f"{totals['passed']} passed, {totals['failed']} failed{skipped}")
    return 1 if totals["failed"] or not totals["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
