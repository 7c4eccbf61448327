#!/usr/bin/env python3
"""Compiles every public header by itself, the options by their names (designated.cc) and the examples, as strictly as a
program may be that uses them: check_headers.py [compiler ...]. Only syntax and types are checked."""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMPILERS = ["g++-12", "clang++-19"]
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}"]


def units(directory):
    """Each header alone, and twice; then the options."""
    headers = sorted(path.name for path in (ROOT / "include" / "orrery").glob("*.h"))
    for header in headers:
        path = directory / f"{header}.cc"
        path.write_text(f"#include <orrery/{header}>\n#include <orrery/{header}>\n")
        yield path
    yield HERE / "designated.cc"


def programs():
    """The examples, which the build compiles with clang."""
    yield from sorted((ROOT / "examples").glob("*.cc"))


def main(compilers):
    failed = count = 0
    with tempfile.TemporaryDirectory() as directory:
        work = [(unit, compiler) for unit in units(pathlib.Path(directory)) for compiler in compilers]
        work += [(unit, compilers[0]) for unit in programs()]
        for unit, compiler in work:
            count += 1
            done = subprocess.run([compiler, *FLAGS, str(unit)], capture_output=True, text=True)
            if done.returncode != 0:
                failed += 1
                print(f"{unit.name} with {compiler}\n{done.stderr}")
    print(f"{count} compiled, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or COMPILERS))
