#!/usr/bin/env python3
"""Compiles every public header by itself and the options by their names (designated.cc), as strictly as a program may be
that uses them: check_headers.py [compiler ...]. Only syntax and types are checked; examples.package does the same to the
examples."""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMPILERS = ["clang++-19", "g++-12"]
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}"]


def work(directory, first, *others):
    """(what to compile, by which compiler): each header alone, and twice, by the first compiler; by the others all
    headers in one; the options by all."""
    headers = sorted(path.name for path in (ROOT / "include" / "orrery").glob("*.h"))
    for header in headers:
        path = directory / f"{header}.cc"
        path.write_text(f"#include <orrery/{header}>\n#include <orrery/{header}>\n")
        yield path, first
    everything = directory / "everything.cc"
    everything.write_text("".join(f"#include <orrery/{header}>\n" for header in reversed(headers)))
    for compiler in others:
        yield everything, compiler
    for compiler in (first, *others):
        yield HERE / "designated.cc", compiler


def main(compilers):
    failed = count = 0
    with tempfile.TemporaryDirectory() as directory:
        for unit, compiler in work(pathlib.Path(directory), *compilers):
            count += 1
            done = subprocess.run([compiler, *FLAGS, str(unit)], capture_output=True, text=True)
            if done.returncode != 0:
                failed += 1
                print(f"{unit.name} with {compiler}\n{done.stderr}")
    print(f"{count} compiled, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or COMPILERS))
