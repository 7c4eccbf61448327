#!/usr/bin/env python3
"""Makes the portable tree: portable.py BINARY OUT [SYMBOLS].

BINARY is build/orrery_portable, with its symbols, and beside it BINARY.archives, which the linker wrote. OUT is made
anew:

    orrery              what a user starts: a launcher of 4 KB without any library; see portable/launcher.c
    lib/orrery          the program, without symbols
    lib/ld-linux-…      the dynamic loader and the C library that it belongs to
    lib/lib*.so.*       the shared libraries, its own and theirs, and nothing else
    lib/locale/         the letters of Unicode, for UPPER(), LOWER() and full text
    lib/MANIFEST        each file, and what is inside of the program: Debian package, version, source package, licence
    licenses/           the copyright file of each source package, and the licences that they refer to
    LICENSE             Orrery's own

The tree needs the kernel of an x86-64 Linux and nothing else: no loader or library of the machine, no shell, no /proc,
no /etc. It may be moved and read by everybody. SYMBOLS is the file for the program's symbols; debuggers look for
orrery.debug beside lib/orrery. Standard library only, and binutils, clang and dpkg.
"""

import collections
import gzip
import os
import pathlib
import re
import shutil
import sys
import tempfile

import contents
from contents import run

HERE = pathlib.Path(__file__).resolve().parent
LOADER = "ld-linux-x86-64.so.2"
LOADER_PATH = f"/lib64/{LOADER}"
LETTERS = "/usr/lib/locale/C.utf8/LC_CTYPE"
LETTERS_PATH = "lib/locale/C.UTF-8/LC_CTYPE"  # the spelling that the C library looks for first, the machine's included
SYMBOLS = "orrery.debug"
SIZE_MAX = 40_000_000
LICENCE_PLAIN_MAX = 200_000  # bytes; Boost's names each of its files
RESOLVED = re.compile(r"^\s*(\S+) => (.+) \(0x[0-9a-f]+\)$", re.MULTILINE)

Row = collections.namedtuple("Row", "path kind package version source source_version licence")


def say_no(text):
    sys.exit(f"portable.py: {text}")


# ── Libraries ──────────────────────────────────────────────────────────────────────────────────────

def resolve(loader, program, *options):
    """The libraries of a program and where that loader finds them, the loader itself included."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    answer = run(loader, *options, "--list", program, environment=clean)
    if "not found" in answer:
        say_no(f"{program} lacks libraries:\n{answer}")
    return {os.path.basename(name): path for name, path in RESOLVED.findall(answer)}


def resolve_in_tree(tree):
    """The same for the program of a tree, as its launcher has it."""
    library = pathlib.Path(tree).resolve() / "lib"
    return resolve(library / LOADER, library / "orrery", "--inhibit-cache")


def check_closure(tree):
    """What the program needs is in the tree, and nothing is there that it does not need."""
    library = pathlib.Path(tree).resolve() / "lib"
    found = resolve_in_tree(tree)
    if outside := [path for path in found.values() if pathlib.Path(path).parent != library]:
        say_no(f"{library / 'orrery'} takes {', '.join(outside)} from outside of its tree")
    carried = {path.name for path in library.iterdir() if ".so" in path.name}
    if unused := carried - set(found) - {LOADER}:
        say_no(f"nothing needs {', '.join(sorted(unused))}")


# ── The tree ───────────────────────────────────────────────────────────────────────────────────────

def put(source, target, mode=0o644):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def put_program(binary, target, symbols):
    """Without symbols, which go to a file of their own, and with the name of that file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        kept = pathlib.Path(directory) / SYMBOLS
        run("objcopy", "--only-keep-debug", "--compress-debug-sections=zlib", binary, kept)
        run("objcopy", "--strip-all", f"--add-gnu-debuglink={kept}", binary, target)
        if symbols is not None:
            put(kept, symbols)
    target.chmod(0o755)


def compile_launcher(target):
    run("clang-19", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-stack-protector",
        "-fno-asynchronous-unwind-tables", "-static", "-nostdlib", "-fuse-ld=lld-19", "-Wl,--strip-all,-z,noexecstack",
        "-o", target, HERE / "portable" / "launcher.c")
    target.chmod(0o755)


class Licences:
    """The copyright files of packages, one for each source package unless they differ."""

    def __init__(self, tree):
        self.tree, self.written = tree, {}

    def add(self, package):
        """Where in the tree the package's is."""
        text = package.copyright.read_text(encoding="utf-8", errors="replace")
        name = package.source if self.written.get(package.source, text) == text else package.name
        path = f"licenses/{name}" if len(text) <= LICENCE_PLAIN_MAX else f"licenses/{name}.gz"
        if name not in self.written:
            self.written[name] = text
            put(package.copyright, self.tree / path)
            if path.endswith(".gz"):
                (self.tree / path).write_bytes(gzip.compress(package.copyright.read_bytes(), mtime=0))
            for common in contents.common_licenses(text):
                put(contents.COMMON_LICENSES + common, self.tree / "licenses" / "common" / common)
        return path


def put_libraries(binary, tree):
    """Copies what the program needs; the source of each file by its path in the tree."""
    library = tree / "lib"
    sources = {f"lib/{name}": path for name, path in resolve(LOADER_PATH, binary).items()}
    sources[f"lib/{LOADER}"] = LOADER_PATH
    sources[LETTERS_PATH] = LETTERS
    for path, source in sources.items():
        put(source, tree / path, 0o755 if path == f"lib/{LOADER}" else 0o644)
    if not (library / "libc.so.6").exists():
        say_no(f"{binary} needs no C library")
    return sources


def rows_of(binary, tree, sources):
    """The list of contents."""
    licences = Licences(tree)
    archives, headers = contents.archives(f"{binary}.archives"), contents.headers(binary)
    packages = contents.packages_of([*sources.values(), *archives, *headers])

    def row(path, kind, source):
        package = packages[source]
        return Row(path, kind, *package[:4], licences.add(package))

    rows = {Row(path, "file", "orrery", "-", "orrery", "-", "LICENSE") for path in ("orrery", "lib/orrery")}
    rows |= {row(path, "file", source) for path, source in sources.items()}
    rows |= {row("lib/orrery", f"linked in: {os.path.basename(archive)}", archive) for archive in archives}
    linked = {(each.package, each.path) for each in rows}
    rows |= {each for each in (row("lib/orrery", "compiled in: headers", header) for header in headers)
             if (each.package, each.path) not in linked}
    return sorted(rows)


def write_manifest(rows, file):
    lines = ["# " + "\t".join(name.replace("_", " ") for name in Row._fields), *("\t".join(row) for row in rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_manifest(tree):
    lines = (pathlib.Path(tree) / "lib" / "MANIFEST").read_text(encoding="utf-8").splitlines()
    return [Row(*line.split("\t")) for line in lines if not line.startswith("#")]


def size_of(tree):
    """Bytes of all its files, as if each took no more than it has."""
    return sum(path.stat().st_size for path in pathlib.Path(tree).rglob("*") if path.is_file())


def make(binary, tree, symbols=None):
    """Makes the tree where there is none or another one, and returns its size."""
    binary, tree = pathlib.Path(binary), pathlib.Path(tree)
    if tree.exists() and any(tree.iterdir()) and not (tree / "lib" / "MANIFEST").exists():
        say_no(f"{tree} is there and no portable tree")
    shutil.rmtree(tree, ignore_errors=True)
    put_program(binary, tree / "lib" / "orrery", symbols)
    sources = put_libraries(binary, tree)
    compile_launcher(tree / "orrery")
    put(HERE.parent / "LICENSE", tree / "LICENSE")
    write_manifest(rows_of(binary, tree, sources), tree / "lib" / "MANIFEST")
    for directory in [tree, *(path for path in tree.rglob("*") if path.is_dir())]:
        directory.chmod(0o755)
    check_closure(tree)
    size = size_of(tree)
    if size > SIZE_MAX:
        say_no(f"{tree} has {size:,} bytes, more than {SIZE_MAX:,}")
    return size


def main(arguments):
    if len(arguments) not in (2, 3):
        sys.exit("usage: portable.py BINARY OUT [SYMBOLS]")
    size = make(arguments[0], arguments[1], pathlib.Path(arguments[2]) if len(arguments) == 3 else None)
    print(f"{arguments[1]}  {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
