#!/usr/bin/env python3
"""Makes everything that is handed out: dist.py [--build-dir DIR] [--out DIR] [--without-debian].

    orrery-VERSION-linux-x86_64.tar.gz           the portable tree, in a folder of that name
    orrery-VERSION-linux-x86_64-symbols.tar.gz   its symbols; unpacked at the same place, debuggers find them
    orrery-VERSION-oci.tar                       the container image
    orrery-VERSION.tgz                           the npm package
    orrery-VERSION.spdx.json                     the bill of materials
    *.deb                                        the Debian packages, by debian/make.sh
    SHA256SUMS                                   of all of them

BUILD_DIR has the binaries orrery and orrery_portable already. The version is the program's own. Times in the files are
SOURCE_DATE_EPOCH, else that of the commit, so that one commit and one machine give the same bytes twice. What an
earlier run has left in the output directory is removed; nothing else may be there. Standard library only.
"""

import argparse
import gzip
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import portable
from contents import run

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
SUMS = "SHA256SUMS"


def version_of(program):
    """As `orrery --version` says it, which is what CMakeLists.txt says."""
    said = run(program, "--version").split()[1]
    declared = re.search(r"^project\(orrery VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    if said != declared:
        sys.exit(f"{program} is version {said}, and CMakeLists.txt says {declared}: build it first")
    return said


def time_of_commit():
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    return int(run("git", "-C", ROOT, "log", "-1", "--format=%ct"))


def pack(tree, top, file, epoch):
    """A tar archive, compressed, of the tree as a folder of that name. Its bytes depend on the files alone."""
    tree, packed = pathlib.Path(tree), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in [tree, *sorted(tree.rglob("*"))]:
            entry = tarfile.TarInfo((pathlib.PurePosixPath(top) / path.relative_to(tree).as_posix()).as_posix())
            entry.mtime = epoch
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
            else:
                data = path.read_bytes()
                entry.size, entry.mode = len(data), 0o755 if path.stat().st_mode & 0o100 else 0o644
                archive.addfile(entry, io.BytesIO(data))
    file.write_bytes(gzip.compress(packed.getvalue(), compresslevel=9, mtime=0))


def clear(out):
    """Removes what an earlier run has made, which is what its sums name."""
    out.mkdir(parents=True, exist_ok=True)
    if (out / SUMS).exists():
        for name in [*sums_of(out), SUMS]:
            (out / name).unlink(missing_ok=True)
    if strangers := sorted(path.name for path in out.iterdir()):
        sys.exit(f"{out} has {', '.join(strangers)}, of which {SUMS} knows nothing: give an empty directory")


def sums_of(out):
    """The digest of each file that SHA256SUMS names."""
    lines = (out / SUMS).read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def write_sums(out):
    files = sorted(path for path in out.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (out / SUMS).write_text("".join(lines), encoding="utf-8")


def call(*words, **variables):
    """A tool beside this one, with what it says on our standard error: the table comes last."""
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    done = subprocess.run([str(word) for word in words], stdout=sys.stderr, env=environment)
    if done.returncode != 0:
        sys.exit(f"{words[0]} {words[1]}: exit status {done.returncode}")


def make_portable(binary, out, name, epoch, work):
    """Both archives; where the tree is."""
    tree, symbols = work / "tree", work / "symbols"
    portable.make(binary, tree, symbols / "lib" / portable.SYMBOLS)
    pack(tree, name, out / f"{name}.tar.gz", epoch)
    pack(symbols, name, out / f"{name}-symbols.tar.gz", epoch)
    return tree


def make(build, out, with_debian=True):
    binary, python = build / "orrery_portable", sys.executable
    version, epoch = version_of(binary), time_of_commit()
    clear(out)
    with tempfile.TemporaryDirectory(prefix="orrery-dist-") as work:
        tree = make_portable(binary, out, f"orrery-{version}-linux-x86_64", epoch, pathlib.Path(work))
        call(python, HERE / "oci.py", tree, out, version, SOURCE_DATE_EPOCH=epoch)
        call("sh", HERE / "npm" / "pack.sh", tree, out, version)
        call(python, HERE / "sbom.py", tree, out / f"orrery-{version}.spdx.json", version, SOURCE_DATE_EPOCH=epoch)
    if with_debian:
        call("sh", HERE / "debian" / "make.sh", build, out, SOURCE_DATE_EPOCH=epoch)
    write_sums(out)


def table(out):
    rows = [(path.name, f"{path.stat().st_size / 1e6:.2f} MB") for path in sorted(out.iterdir())]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {size:>10}" for name, size in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":", maxsplit=1)[0])
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--without-debian", action="store_true", help="make no .deb")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    make(arguments.build_dir.resolve(), out, with_debian=not arguments.without_debian)
    print(table(out))


if __name__ == "__main__":
    main()
