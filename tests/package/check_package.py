#!/usr/bin/env python3
"""Installs the package, moves it, and builds and runs programs outside of the tree with it:
check_package.py <build directory> [--keep DIR]."""

import argparse
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WITH_SERVER = ROOT / "tests" / "harness" / "with_server.py"
COMPILER = "g++-12"
PROGRAMS = {"sky": "orrery-client", "follow": "orrery-processor"}

# What is in the namespace orrery, as compilers spell it.
OURS = re.compile(r"_Z(GV|T[VIST]|T[hv]\w+_)?N[KRO]*6orrery")

# All that the package is made of.
CONTENTS = [
    "bin/orrery",
    "include/orrery/*.h",
    "lib*/liborrery-client.a",
    "lib*/liborrery-processor.a",
    "lib*/liborrery.so",
    "lib*/liborrery.so.?",
    "lib*/liborrery.so.?.*.*",
    "lib*/cmake/orrery/orreryConfig.cmake",
    "lib*/cmake/orrery/orreryConfigVersion.cmake",
    "lib*/cmake/orrery/orreryTargets.cmake",
    "lib*/cmake/orrery/orreryTargets-*.cmake",
    "lib*/pkgconfig/orrery.pc",
    "lib*/pkgconfig/orrery-client.pc",
    "lib*/pkgconfig/orrery-processor.pc",
]


def run(*words, **options):
    """Runs a command, and ends with what it said if it fails."""
    words = [str(word) for word in words]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stdout}\nexit code {done.returncode}")
    return done.stdout


def check_contents(prefix, build):
    files = [path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if not path.is_dir()]
    strange = [file for file in files if not any(fnmatch.fnmatch(file, each) for each in CONTENTS)]
    missing = [each for each in CONTENTS if not fnmatch.filter(files, each)]
    headers = {path.name for path in (ROOT / "include" / "orrery").glob("*.h")}
    installed = {path.name for path in (prefix / "include" / "orrery").glob("*.h")}
    if strange or missing or headers != installed:
        sys.exit(f"in the package but not meant for it: {strange}\nmissing: {missing}, {headers ^ installed}")
    # The package's own metadata must not name the place where it was made or put.
    for path in prefix.rglob("*"):
        if path.suffix in (".cmake", ".pc"):
            text = path.read_text()
            for place in (str(prefix), str(build), str(ROOT)):
                if place in text:
                    sys.exit(f"{path.relative_to(prefix)} names {place}")


def build_with_cmake(prefix, directory):
    run("cmake", "-S", HERE / "consumer", "-B", directory, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DCMAKE_CXX_STANDARD=20", "-DCMAKE_CXX_EXTENSIONS=OFF",
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wshadow -Werror")
    run("cmake", "--build", directory)


def build_with_pkg_config(prefix, directory, programs):
    directory.mkdir()
    found = next(prefix.rglob("pkgconfig"))
    environment = {**os.environ, "PKG_CONFIG_PATH": str(found)}
    for program, package in programs.items():
        flags = run("pkg-config", "--cflags", "--libs", package, env=environment).split()
        run(COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror",
            HERE / "consumer" / f"{program}.cc", "-o", directory / program, *flags)


def check_shared_library(prefix, program):
    """Shows names of ours only, and is what the program uses."""
    library = next(prefix.rglob("liborrery.so"))
    shown = [line.split()[-1] for line in run("nm", "--dynamic", "--defined-only", library).splitlines()]
    strange = [name for name in shown if not OURS.match(name)]
    if strange:
        sys.exit(f"{library.name} shows names of others: {strange[:10]}")
    if "liborrery.so.0" not in run("objdump", "--private-headers", program):
        sys.exit(f"{program} does not use the shared library")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    with tempfile.TemporaryDirectory(prefix="orrery-package-") as temporary:
        work = pathlib.Path(temporary)
        installed = work / "installed"
        run("cmake", "--install", build, "--prefix", installed)
        check_contents(installed, build)
        prefix = work / "moved"
        installed.rename(prefix)

        build_with_cmake(prefix, work / "with-cmake")
        build_with_pkg_config(prefix, work / "with-pkg-config", PROGRAMS)
        build_with_pkg_config(prefix, work / "shared", dict.fromkeys(PROGRAMS, "orrery"))
        check_shared_library(prefix, work / "shared" / "follow")
        for way in ("with-cmake", "with-pkg-config", "shared"):
            for program in PROGRAMS:
                said = run(
                    sys.executable, WITH_SERVER, "--", "sh", "-c",
                    f'for program in {"sky" if program == "sky" else "sky follow"}; do '
                    f'"{work}/{way}/$program" "$ORRERY_ENDPOINT_HTTP" "$ORRERY_KEY" sky || exit 1; done',
                    env={**os.environ, "ORRERY_BINARY": str(prefix / "bin" / "orrery"),
                         "LD_LIBRARY_PATH": str(next(prefix.rglob("liborrery.so")).parent)})
                print(f"{way}, {program}: {said.strip().splitlines()[-1]}")
        if arguments.keep:
            shutil.copytree(prefix, arguments.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
