#!/usr/bin/env python3
"""Measures Orrery against its goals and prints one line per row: name, ratio, figures, goal, verdict.

    bench/run.py [--only NAME] [--quick]

Where a goal is a ratio, both sides run in this one run, in turns, and the ratio is the median over
the rounds: the machine may be shared, and rates move. What is compared with (nginx, PostgreSQL 15,
bare RocksDB) is started here, in a directory below --data-dir, and stopped and removed at the end.
The exit status says whether everything could be measured, not whether the goals were reached.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import traceback

import feed
import foundation
import processor
import query
import upkeep
from benchmark import ROOT, say

ROWS = foundation.ROWS | feed.ROWS | processor.ROWS | query.ROWS | upkeep.ROWS


class Bench(foundation.FoundationRows, feed.FeedRows, processor.ProcessorRows, query.QueryRows, upkeep.UpkeepRows):
    """All rows over one set of servers and data."""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", choices=ROWS, action="append", help="may be given several times")
    parser.add_argument("--quick", action="store_true",
                        help="shorter, with 100,000 documents (of queries 50,000) for a million: no verdict to rely on")
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--binary", default=None, help="default: BUILD_DIR/orrery")
    parser.add_argument("--data-dir", default=None,
                        help="default: BUILD_DIR/bench-data; for all data, on one file system")
    parser.add_argument("--store", default="store",
                        help="where in its data directory the server keeps RocksDB")
    arguments = parser.parse_args()
    arguments.build_dir = os.path.abspath(arguments.build_dir)
    arguments.binary = os.path.abspath(arguments.binary or f"{arguments.build_dir}/orrery")
    arguments.data_dir = os.path.abspath(arguments.data_dir or f"{arguments.build_dir}/bench-data")
    return arguments


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is cleaned up
    os.makedirs(arguments.data_dir, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="run-", dir=arguments.data_dir)
    os.chmod(directory, 0o755)
    failed = False
    try:
        bench = Bench(arguments, directory)
        for name in arguments.only or ROWS:
            say(name)
            try:
                print(ROWS[name](bench), flush=True)
            except Exception:
                failed = True
                print(f"{name:<22} could not be measured\n{traceback.format_exc()}", flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(arguments.data_dir)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
