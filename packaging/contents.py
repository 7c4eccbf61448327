"""What a program was made of, and which Debian packages it came from.

    archives(file)      the archives that the linker took something from
    headers(program)    the headers whose code is in the program
    packages_of(paths)  the package of each file, with its version and its source package

Nothing is taken from a list that somebody keeps: the linker and the line table of the program say it, and dpkg.
Standard library only.
"""

import collections
import os
import pathlib
import re
import struct
import subprocess
import sys

Package = collections.namedtuple("Package", "name version source source_version copyright")

DW_LNCT_PATH, DW_LNCT_DIRECTORY_INDEX = 1, 2
DW_FORM_DATA2, DW_FORM_STRING, DW_FORM_DATA1, DW_FORM_STRP = 0x05, 0x08, 0x0b, 0x0e
DW_FORM_UDATA, DW_FORM_DATA16, DW_FORM_LINE_STRP = 0x0f, 0x1e, 0x1f
COMMON_LICENSES = "/usr/share/common-licenses/"


def run(*words, environment=None):
    """The standard output of a command; the end of this one when that one fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


# ── The linker ─────────────────────────────────────────────────────────────────────────────────────

def archives(file):
    """Paths of the archives of others that members were taken from; `file` is what lld's --print-archive-stats writes."""
    rows = [line.split("\t") for line in pathlib.Path(file).read_text(encoding="utf-8").splitlines()[1:]]
    return sorted({path for _, extracted, path in rows if int(extracted) > 0 and os.path.isabs(path)})


# ── The line table ─────────────────────────────────────────────────────────────────────────────────

def sections(program, wanted):
    """Those sections of a 64-bit little-endian ELF file, by name."""
    data = memoryview(pathlib.Path(program).read_bytes())
    if bytes(data[:6]) != b"\x7fELF\x02\x01":
        sys.exit(f"{program} is no 64-bit ELF file")
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", data, offset + index * size) for index in range(count)]
    names = rows[names_index][4]
    found = {}
    for name_offset, _, _, _, at, length in rows:
        name = text_at(data, names + name_offset)
        if name in wanted:
            found[name] = data[at:at + length]
    return found


def text_at(data, offset):
    end = offset
    while data[end] != 0:
        end += 1
    return bytes(data[offset:end]).decode()


class Reader:
    """Reads a line table from the front."""

    def __init__(self, data, at, strings):
        self.data, self.at, self.strings = data, at, strings

    def number(self, code):
        value, = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize(code)
        return value

    def leb(self):
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def form(self, form):
        if form == DW_FORM_LINE_STRP:
            return text_at(self.strings[".debug_line_str"], self.number("I"))
        if form == DW_FORM_STRP:
            return text_at(self.strings[".debug_str"], self.number("I"))
        if form == DW_FORM_STRING:
            text = text_at(self.data, self.at)
            self.at += len(text.encode()) + 1
            return text
        if form == DW_FORM_UDATA:
            return self.leb()
        if form == DW_FORM_DATA1:
            return self.number("B")
        if form == DW_FORM_DATA2:
            return self.number("H")
        if form == DW_FORM_DATA16:
            self.at += 16
            return None
        sys.exit(f"the line table has the unknown form {form:#x}")

    def table(self):
        """Directories or files, each as a dictionary by kind of content."""
        formats = [(self.leb(), self.leb()) for _ in range(self.number("B"))]
        return [{kind: self.form(form) for kind, form in formats} for _ in range(self.leb())]


def source_files(program):
    """All source files and headers that the lines of the program are in."""
    found = sections(program, (".debug_line", ".debug_line_str", ".debug_str"))
    if ".debug_line" not in found:
        sys.exit(f"{program} has no line table: it has been stripped, or was compiled without -g1")
    lines = found[".debug_line"]
    files, unit = set(), 0
    while unit < len(lines):
        reader = Reader(lines, unit, found)
        length = reader.number("I")
        version = reader.number("H")
        if version != 5:
            sys.exit(f"{program}: a line table of DWARF {version}; 5 is known")
        unit += 4 + length
        # Sizes of addresses, length of this header, then what belongs to the encoding of lines.
        for code in "BBIBBBbB":
            reader.number(code)
        opcodes = reader.number("B") - 1
        reader.at += opcodes
        directories = [entry[DW_LNCT_PATH] for entry in reader.table()]
        for entry in reader.table():
            directory = os.path.join(directories[0], directories[entry.get(DW_LNCT_DIRECTORY_INDEX, 0)])
            files.add(os.path.normpath(os.path.join(directory, entry[DW_LNCT_PATH])))
    return files


def headers(program):
    """Those of packages. The headers of the compiler's own standard library are among them."""
    return sorted(file for file in source_files(program) if file.startswith("/usr/"))


# ── dpkg ───────────────────────────────────────────────────────────────────────────────────────────

def spellings(path):
    """The path as it is and without links; each also as packages spell it for which /lib is no link to /usr/lib."""
    found = []
    for each in (str(path), os.path.realpath(path)):
        found += [each, each[4:] if each.startswith("/usr/lib") else "/usr" + each]
    return found


def packages_of(paths):
    """The package of each file, by path."""
    wanted = {spelling: path for path in map(str, paths) for spelling in reversed(spellings(path))}
    # Its exit status says that some spelling is unknown, which is certain.
    answer = subprocess.run(["dpkg-query", "-S", *wanted], capture_output=True, text=True).stdout
    owners = {}
    for line in answer.splitlines():
        names, _, spelling = line.partition(": ")
        if spelling in wanted and not names.startswith("diversion "):
            owners.setdefault(wanted[spelling], names.split(", ")[0])
    if unknown := sorted(set(map(str, paths)) - set(owners)):
        sys.exit(f"no Debian package has {', '.join(unknown[:5])}")
    known = {name: describe(name) for name in sorted(set(owners.values()))}
    return {path: known[name] for path, name in owners.items()}


def describe(name):
    form = "${Package}\t${Version}\t${source:Package}\t${source:Version}"
    package, version, source, source_version = run("dpkg-query", "-W", "-f", form, name).split("\t")
    copyright_file = pathlib.Path("/usr/share/doc") / package / "copyright"
    if not copyright_file.exists():
        sys.exit(f"{copyright_file} is not there. Some images of Debian are made without such files: "
                 f"apt-get install --reinstall {package}")
    return Package(package, version, source, source_version, copyright_file.resolve())


def common_licenses(text):
    """The licences that a copyright file refers to instead of having them inside."""
    names = re.findall(re.escape(COMMON_LICENSES) + r"([A-Za-z0-9.+-]*[A-Za-z0-9])", text)
    return sorted({name for name in names if os.path.exists(COMMON_LICENSES + name)})
