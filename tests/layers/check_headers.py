#!/usr/bin/env python3
"""Checks that every header compiles alone: check_headers.py <project root> <build directory> [--all].

Each header under src/ and include/ is compiled in a translation unit that holds
nothing but its include, with the flags of its module from compile_commands.json but without the precompiled
header. What passed is remembered in the build directory together with all the files that went into it, and is not
compiled again until one of them changes. The public headers are compiled by g++ 12 as well, in C++20, as those do it who use them. Headers of tests
(test_*.h) are left out: nobody but tests includes them, and they take as long as all the others of their module.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

# Options of a compile command that have nothing to do with what a header means.
DROPPED = {"-c", "-MD", "-Winvalid-pch"}
DROPPED_WITH_VALUE = {"-o", "-MT", "-MF"}
# Several files of a module that are compiled as one.
UNITY = re.compile(r"/orrery_(\w+)\.dir/Unity/")
# What users of the public headers may have instead of our compiler.
OTHER_COMPILER = ["g++-12", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]


def flags_of(command):
    """The compiler and its options, without launcher, source, output, dependencies and PCH."""
    words = command.get("arguments") or shlex.split(command["command"])
    if pathlib.Path(words[0]).name in ("ccache", "sccache", "distcc"):
        words = words[1:]
    source = command["file"]
    kept = []
    at = 0
    while at < len(words):
        word = words[at]
        if word in DROPPED_WITH_VALUE:
            at += 2
        elif word == "-Xclang" and words[at + 1] in ("-include-pch", "-include"):
            at += 4  # -Xclang -include-pch -Xclang <file>
        elif word in DROPPED or word == source or word.endswith((".cc", ".cxx")):
            at += 1
        else:
            kept.append(word)
            at += 1
    return kept


class Project:
    def __init__(self, root, build):
        self.root = root
        commands = json.loads((build / "compile_commands.json").read_text())
        self.flags = {}  # module -> flags
        for command in commands:
            path = pathlib.Path(command["directory"], command["file"])
            if path.is_relative_to(root / "src"):
                module = path.relative_to(root / "src").parts[0]
            elif unity := UNITY.search(path.as_posix()):
                module = unity.group(1)
            else:
                continue
            test = path.name.endswith(("_test.cc", "_fuzz.cc"))
            # Libraries rather than their tests: those are built with more than a header can count on.
            if module not in self.flags or not test:
                self.flags[module] = flags_of(command)
        if not self.flags:
            sys.exit(f"{build}/compile_commands.json knows no file below {root}/src")
        self.any_flags = self.flags.get("server") or next(iter(self.flags.values()))

    def headers(self, tops):
        for top in tops:
            for header in sorted((self.root / top).rglob("*.h")):
                if not header.name.startswith("test_"):
                    yield header

    def commands(self, header):
        """Flags, name as it is included, and what to call it: one for each compiler."""
        if header.is_relative_to(self.root / "include"):
            # The public headers stay C++20.
            public = ["-std=c++20", f"-I{self.root / 'include'}"]
            name = header.relative_to(self.root / "include")
            flags = [flag for flag in self.any_flags if not flag.startswith(("-std=", "-I"))]
            yield flags + public, name, str(name)
            yield OTHER_COMPILER + public, name, f"{name} ({OTHER_COMPILER[0]})"
        else:
            name = header.relative_to(self.root / "src")
            yield self.flags.get(name.parts[0], self.any_flags), name, str(name)


def compile_alone(flags, name):
    """(whether it passed, messages, all files that went into it, seconds)"""
    begun = time.monotonic()
    # -MD with -MF - would mix with messages of the compiler; a pipe of its own does not.
    reading, writing = os.pipe()
    process = subprocess.Popen(
        flags + ["-fsyntax-only", "-MD", "-MF", f"/dev/fd/{writing}", "-MT", "x", "-x", "c++", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        pass_fds=[writing])
    os.close(writing)
    with concurrent.futures.ThreadPoolExecutor(1) as reader:
        def read_all():
            with os.fdopen(reading) as pipe:
                return pipe.read()
        dependencies = reader.submit(read_all)
        messages, _ = process.communicate(f'#include "{name.as_posix()}"\n')
        text = dependencies.result()
    files = [word for word in text.replace("\\\n", " ").split()[1:] if word != "-"]
    return process.returncode == 0, messages, files, time.monotonic() - begun


def fingerprint(flags, files):
    """Of everything that decides whether a header compiles. None when a file is missing."""
    summary = hashlib.sha256("\0".join(flags).encode())
    for file in sorted(files):
        try:
            status = os.stat(file)
        except OSError:
            return None
        summary.update(f"{file} {status.st_size} {status.st_mtime_ns}\n".encode())
    return summary.hexdigest()


def main():
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(arguments) != 2:
        sys.exit(__doc__)
    root, build = (pathlib.Path(word).resolve() for word in arguments)
    project = Project(root, build)
    memory_path = build / "layers-headers.json"
    memory = {}
    if memory_path.exists() and "--all" not in sys.argv:
        memory = json.loads(memory_path.read_text())

    todo = []
    passed = {}
    for header in project.headers(["src", "include"]):
        for flags, name, title in project.commands(header):
            known = memory.get(title)
            if known and fingerprint(flags, known["files"]) == known["fingerprint"]:
                passed[title] = known
            else:
                todo.append((flags, name, title))

    failures = 0
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {pool.submit(compile_alone, flags, name): (flags, title)
                   for flags, name, title in todo}
        for done in concurrent.futures.as_completed(started):
            flags, title = started[done]
            good, messages, files, seconds = done.result()
            if good:
                passed[title] = {"files": files, "fingerprint": fingerprint(flags, files)}
            else:
                failures += 1
                print(f"{title} does not compile alone:\n{messages}")
            if "--times" in sys.argv:
                print(f"{seconds:6.1f} s  {title}")
    memory_path.write_text(json.dumps(memory | passed))
    print(f"{len(passed)} headers stand on their own, {failures} do not; {len(todo)} compiled in "
          f"{time.monotonic() - begun:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
