#!/usr/bin/env python3
"""Builds the examples and the programs of the documentation with the installed package, by g++ 12, and runs the latter:
check_package.py <build directory>. with_server.py starts the server."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import check_snippets
from example_runs import ENVIRONMENT, ROOT, Program, connect

COMPILER = "g++-12"
EXAMPLES = ("print_changes", "copy_container", "call_webhook", "leaderboard", "archive_cold_data")


def run(*words, **options):
    words = [str(word) for word in words]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stdout}\nexit code {done.returncode}")
    return done.stdout


def build_programs(prefix, directory):
    """The first program of each page, as the page says: with pkg-config."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(next(prefix.rglob("pkgconfig")))}
    for page, package in (("sdk-cpp", "orrery-client"), ("processor", "orrery-processor")):
        (program,) = check_snippets.programs_of(f"docs/{page}.md")
        source = directory / f"{page}.cc"
        source.write_text(program)
        flags = run("pkg-config", "--cflags", "--libs", package, env=environment).split()
        run(COMPILER, "-std=c++20", source, "-o", directory / page, *flags)


def run_programs(directory):
    connection = ENVIRONMENT["ORRERY_CONNECTION"]
    said = run(directory / "sdk-cpp", connection)
    assert '{"id":"1","customer":"ann","total":12.5' in said and "RU" in said, said
    assert '"id":"2"' in said, said
    # It prints the changes until it is told to stop.
    with Program(directory / "processor", connection) as processor:
        processor.wait_until(lambda: all(f'"id":"{number}"' in "".join(processor.lines) for number in "12"), "both orders")
        processor.end(signal.SIGINT)
    with connect() as client:
        leases = client.get("/dbs/shop/colls/leases/docs").expect(200).json["Documents"]
        assert len(leases) == 2 and not any(lease.get("Owner") for lease in leases), leases


def main(build):
    with tempfile.TemporaryDirectory(prefix="orrery-examples-") as temporary:
        work = pathlib.Path(temporary)
        prefix = work / "installed"
        run("cmake", "--install", build, "--prefix", prefix)
        run("cmake", "-S", ROOT / "examples", "-B", work / "examples", f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wshadow -Werror")
        run("cmake", "--build", work / "examples")
        for example in EXAMPLES:
            done = subprocess.run([work / "examples" / example], capture_output=True, text=True, env=ENVIRONMENT)
            assert done.returncode == 2 and "usage:" in done.stderr, done
        build_programs(prefix, work)
        run_programs(work)
    print(f"{len(EXAMPLES)} examples and 2 programs of the documentation built with the package; the programs run")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
