#!/usr/bin/env python3
"""Checks that the maps of the code in docs/ are true.

    check_maps.py [root of the project]

Prints each lie as `file:line: message`, and exits with 1 if there is one. Checked are:

docs/architecture.md
  - files in code spans exist: src/…, tests/…, include/…, `module/file.h` below src/, `file.cc`;
  - "the way through the code" of each path names functions that are in the files beside them;
  - the table of modules has the folders of src/, and says what tests/layers/check_layers.py says;
    DEPS of CMakeLists.txt stay within it;
  - the drawing of layers (a block ```layers) has each module once, above all that it may include;
  - the table of libraries says what check_layers.py says;
  - the table of column families has those that src/storage defines.
docs/architecture.svg
  - the sizes of pools are those of docs/internals/threads.md, the column families are all there.
docs/internals/threads.md
  - files in code spans exist;
  - each member of src/ that holds threads has a row, with its file and, of a pool, its size.
docs/compatibility.md
  - the counts of documentdb's own tests are those of tests/sdks/documentdb_own_expected.json.
docs/**/*.md
  - relative links lead to files and headings that exist.
"""

import collections
import json
import pathlib
import re
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent),
                str(pathlib.Path(__file__).resolve().parents[1] / "layers")]
import check_layers  # noqa: E402
import cpp_text  # noqa: E402
import markdown  # noqa: E402

ARCHITECTURE = "docs/architecture.md"
PICTURE = "docs/architecture.svg"
THREADS = "docs/internals/threads.md"
COMPATIBILITY = "docs/compatibility.md"
OWN_TESTS = "tests/sdks/documentdb_own_expected.json"

# Sections of the architecture that have a way through the code.
PATHS = ["Every request", "A write", "A point read", "An ORDER BY query", "A change feed page",
         "A split", "A lease checkpoint"]
PATH_COLUMNS = {"file", "function"}
MODULE_COLUMNS = {"module", "may include, of ours"}
LIBRARY_COLUMNS = {"library", "may be included in"}
FAMILY_COLUMNS = {"family", "key", "value"}
THREAD_COLUMNS = {"threads", "member", "file", "how many"}
TOGETHER = "**together**"  # A row of sums.
NOT_OURS = "—"  # In the table of threads: a thread that no member of ours holds.

# Members that hold threads which another one has started, and why they need no row of their own.
HANDED_ON = {
    ("src/base/background_pool.h", "BackgroundPool::threads_"): "of each pool that has a row",
    ("src/base/background_pool.cc", "threads"): "the same, while they are joined",
    ("src/client/transport/async_transport.cc", "Entry::thread"): "of Loop::thread_, at exit",
    ("src/client/transport/async_transport.cc", "AsyncTransport::Loop::thread"):
        "of Loop::thread_, while it is joined",
}

FILE = re.compile(r"^[\w./-]+\.(?:h|cc|py|md|js|mjs|json|svg|cmake|sh)$")
PLACE = re.compile(r"^(?:src|tests|include|docs|bench|examples|cmake|scripts)/[\w./-]+$")
NAME = re.compile(r"^(?:\w+::)*~?\w+$")
QUALIFIED = re.compile(r"^(?:\w+::)+\w+$")
FAMILY_NAMES = re.compile(r"kFamilyNames\s*=\s*\{([^}]*)\}")
FAMILY_ENUM = re.compile(r"enum class Family\b[^{]*\{([^}]*)\}")
CMAKE_MODULE = re.compile(r"orrery_module\(\s*(\w+)([^)]*)\)")
POOL_IN_PICTURE = re.compile(r"([a-z][a-z ]+?): (\d+) threads?\b")


class MapChecker:
    """All checks, over one tree of the project."""

    def __init__(self, root):
        self.root = root
        self.lies = []
        self._texts = {}
        self._sources = {}

    def check(self):
        """The lies, in the order of the list above."""
        for check in (self.check_files, self.check_ways, self.check_modules, self.check_deps,
                      self.check_layers, self.check_libraries, self.check_families,
                      self.check_threads, self.check_picture, self.check_own_tests,
                      self.check_links):
            check()
        return self.lies

    # ── reading ──

    def lie(self, name, line, message):
        self.lies.append(f"{name}:{line}: {message}")

    def text(self, name):
        """A file's text; empty when it is not there, which is a lie once."""
        if name not in self._texts:
            path = self.root / name
            if not path.is_file():
                self.lie(name, 1, "there is no such file")
            self._texts[name] = path.read_text(encoding="utf-8") if path.is_file() else ""
        return self._texts[name]

    def source(self, name):
        """A C++ file without its comments."""
        if name not in self._sources:
            self._sources[name] = cpp_text.without_comments(self.text(name))
        return self._sources[name]

    def tables_with(self, name, columns):
        return [table for table in markdown.tables(self.text(name))
                if columns <= set(table.columns)]

    def one_table(self, name, columns):
        """The only table with these columns; None, which is a lie, when there is another number."""
        found = self.tables_with(name, columns)
        if len(found) == 1:
            return found[0]
        self.lie(name, 1, f"{len(found)} tables have the columns {', '.join(sorted(columns))}; "
                          "one should")
        return None

    def modules(self):
        return {path.name for path in (self.root / "src").iterdir() if path.is_dir()}

    def may_include(self, module):
        """The modules that the layers admit, of those that are there."""
        return check_layers.MAY_INCLUDE.get(module, set()) & (self.modules() | {"orrery"})

    # ── files and functions ──

    def find_file(self, name):
        """Whether a code span that looks like a file is one."""
        if PLACE.match(name):
            return (self.root / name).exists()
        if "/" in name:
            return (self.root / "src" / name).exists() or (self.root / name).exists()
        return any(True for _ in (self.root / "src").rglob(name))

    def check_files(self):
        for name in (ARCHITECTURE, THREADS):
            for line, span in markdown.code_spans(self.text(name)):
                if (FILE.match(span) or PLACE.match(span)) and not self.find_file(span):
                    self.lie(name, line, f"there is no file '{span}'")

    def check_ways(self):
        tables = self.tables_with(ARCHITECTURE, PATH_COLUMNS)
        for section in PATHS:
            if not any(table.section == section and table.rows for table in tables):
                self.lie(ARCHITECTURE, 1, f"'{section}' has no way through the code")
        for table in tables:
            for expected, row in enumerate(table.rows, start=1):
                self.check_step(row, expected)

    def check_step(self, row, expected):
        """One row of a way: its number, its file, and each function in that."""
        if row.cells.get("#") != str(expected):
            self.lie(ARCHITECTURE, row.line, f"step {expected} has the number "
                                             f"'{row.cells.get('#')}'")
        files = markdown.CODE.findall(row.cells["file"])
        functions = markdown.CODE.findall(row.cells["function"])
        functions += [span for span in markdown.CODE.findall(row.cells.get("step", ""))
                      if QUALIFIED.match(span)]
        if len(files) != 1 or not functions:
            self.lie(ARCHITECTURE, row.line, "a step names one file and at least one function")
        elif (self.root / files[0]).is_file():
            for function in functions:
                if not NAME.match(function) or not cpp_text.defines(self.source(files[0]), function):
                    self.lie(ARCHITECTURE, row.line, f"{files[0]} has no function '{function}'")

    # ── modules ──

    def check_modules(self):
        table = self.one_table(ARCHITECTURE, MODULE_COLUMNS)
        if table is None:
            return
        listed = collections.Counter()
        for row in table.rows:
            module = re.sub(r"\[(\w+)\]\(.*\)", r"\1", row.cells["module"])
            listed[module] += 1
            if module not in self.modules():
                self.lie(ARCHITECTURE, row.line, f"src/ has no module '{module}'")
            else:
                self.check_module(row, module)
        for module in sorted(self.modules() - set(listed)):
            self.lie(ARCHITECTURE, table.line, f"the table of modules lacks '{module}'")
        for module in sorted(module for module, count in listed.items() if count > 1):
            self.lie(ARCHITECTURE, table.line, f"the table of modules has '{module}' twice")

    def check_module(self, row, module):
        general, _, exceptional = row.cells["may include, of ours"].partition(";")
        said, admitted = self.included_modules(general), self.may_include(module)
        if said != admitted:
            self.lie(ARCHITECTURE, row.line,
                     f"'{module}' may include {name_list(admitted)}, not {name_list(said)}")
        exceptions = {file: allowed for file, allowed in check_layers.EXCEPTIONS.items()
                      if file.split("/")[1] == module}
        if self.said_exceptions(exceptional) != exceptions:
            self.lie(ARCHITECTURE, row.line, f"the exceptions of '{module}' are "
                     f"{exceptions or 'none'}, not '{exceptional.strip() or 'none'}'")

    @staticmethod
    def included_modules(cell):
        """`nothing`, `base, json`, or `+ …`, which is the ground and these."""
        cell = cell.replace("`include/orrery`", "orrery").strip()
        if cell == "nothing":
            return set()
        ground = check_layers.GROUND if cell.startswith("+") else set()
        return ground | {name.strip() for name in cell.removeprefix("+").split(",")}

    @staticmethod
    def said_exceptions(text):
        """`in `src/a/b.cc` also c`, as EXCEPTIONS of the layers has it."""
        match = re.fullmatch(r"\s*in `([^`]+)` also ([\w, ]+?)\s*", text)
        return {match.group(1): set(re.split(r",\s*", match.group(2)))} if match else {}

    def check_deps(self):
        """DEPS in CMakeLists.txt are within what the layers admit."""
        text = self.text("CMakeLists.txt")
        for match in CMAKE_MODULE.finditer(text):
            module, arguments = match.groups()
            deps = set(arguments.partition("DEPS")[2].partition("LIBS")[0].split())
            exceptional = set().union(*(allowed for file, allowed in check_layers.EXCEPTIONS.items()
                                        if file.split("/")[1] == module))
            for surplus in sorted(deps - check_layers.MAY_INCLUDE.get(module, set()) - exceptional):
                self.lie("CMakeLists.txt", cpp_text.line_of(text, match.start()),
                         f"'{module}' has '{surplus}' in DEPS, which the layers do not admit")

    def check_layers(self):
        """The drawing: a module stands on the line that has its name, above all that it includes."""
        drawings = [block for block in markdown.blocks(self.text(ARCHITECTURE))
                    if block.language == "layers"]
        if len(drawings) != 1:
            self.lie(ARCHITECTURE, 1, f"{len(drawings)} drawings of layers; one should be there")
            return
        places = collections.defaultdict(list)
        for line, content in enumerate(drawings[0].lines, start=drawings[0].line):
            for name in re.findall(r"\w+", content):
                places[name].append(line)
        self.check_bricks(places, drawings[0].line)
        for module in sorted(places.keys() & self.modules()):
            for below in sorted(self.may_include(module) & places.keys()):
                if places[below][0] <= places[module][0]:
                    self.lie(ARCHITECTURE, places[module][0],
                             f"'{module}' may include '{below}', which is not below it")

    def check_bricks(self, places, line):
        for name in sorted(places.keys() - self.modules()):
            self.lie(ARCHITECTURE, places[name][0], f"the drawing has '{name}', which is no module")
        for name in sorted(self.modules() - places.keys()):
            self.lie(ARCHITECTURE, line, f"the drawing lacks the module '{name}'")
        for name, lines in sorted(places.items()):
            if len(lines) > 1:
                self.lie(ARCHITECTURE, lines[1], f"the drawing has '{name}' twice")

    def check_libraries(self):
        table = self.one_table(ARCHITECTURE, LIBRARY_COLUMNS)
        if table is None:
            return
        used = self.used_libraries()
        said = {row.cells["library"]: row for row in table.rows}
        for library in sorted(used.keys() - said.keys()):
            self.lie(ARCHITECTURE, table.line, f"the table of libraries lacks '{library}'")
        for library, row in said.items():
            homes = self.included_modules(row.cells["may be included in"])
            if library not in used:
                self.lie(ARCHITECTURE, row.line, f"nobody includes '{library}'")
            elif homes != used[library]:
                self.lie(ARCHITECTURE, row.line, f"'{library}' may be included in "
                         f"{name_list(used[library])}, not {name_list(homes)}")

    def used_libraries(self):
        """The homes of those libraries that a module at home includes."""
        used = {}
        for home in check_layers.HOMES:
            homes = set(home.modules) & (self.modules() | {"orrery"})
            headers = (name for module in sorted(homes) for path in self.sources_of(module)
                       for _, name, quoted in check_layers.includes(path) if not quoted)
            if any(home.headers.match(name) for name in headers):
                used[home.library] = homes
        return used

    def sources_of(self, module):
        folder = self.root / ("include" if module == "orrery" else "src") / module
        return sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cc"))

    # ── storage ──

    def families(self):
        """The names of column families, as the store opens them."""
        names = FAMILY_NAMES.search(self.source("src/storage/store_open.cc"))
        members = FAMILY_ENUM.search(self.source("src/storage/batch.h"))
        if not names or not members:
            self.lie("src/storage/store_open.cc", 1, "kFamilyNames or enum Family is not found")
            return []
        found = re.findall(r'"(\w+)"', names.group(1))
        if found != re.findall(r"\w+", members.group(1).lower()):
            self.lie("src/storage/store_open.cc", 1, "kFamilyNames and enum Family do not agree")
        return found

    def check_families(self):
        table = self.one_table(ARCHITECTURE, FAMILY_COLUMNS)
        if table is None:
            return
        said = [row.cells["family"].strip("`") for row in table.rows]
        if said != (there := self.families()):
            self.lie(ARCHITECTURE, table.line,
                     f"the column families are {', '.join(there)}; the table has {', '.join(said)}")

    # ── threads ──

    def thread_holders(self):
        """(file, holder) of all threads in src/; tests have their own."""
        for path in sorted((self.root / "src").rglob("*")):
            if path.suffix in (".h", ".cc") and not check_layers.is_test(path):
                name = path.relative_to(self.root).as_posix()
                for holder in cpp_text.thread_holders(self.source(name)):
                    yield name, holder

    def thread_rows(self):
        for table in self.tables_with(THREADS, THREAD_COLUMNS):
            for row in table.rows:
                if row.cells["member"] != NOT_OURS:
                    yield row, row.cells["file"].strip("`"), row.cells["member"].strip("`")

    def check_threads(self):
        there = {(file, holder.name): holder for file, holder in self.thread_holders()}
        said = {}
        for row, file, member in self.thread_rows():
            said[file, member] = row
            if (file, member) not in there:
                self.lie(THREADS, row.line, f"{file} has no member '{member}' that holds threads")
            else:
                self.check_pool_size(row, there[file, member])
        for (file, name), holder in there.items():
            if (file, name) not in said and (file, name) not in HANDED_ON:
                self.lie(THREADS, 1, f"{file}:{holder.line}: '{name}' holds threads and has no row")
        for file, name in sorted(HANDED_ON.keys() - there.keys()):
            if (self.root / file).is_file():
                self.lie("tests/docs/check_maps.py", 1, f"HANDED_ON: {file} has no '{name}'")

    def check_pool_size(self, row, holder):
        said = re.match(r"\d+", row.cells["how many"])
        if holder.size is not None and (not said or int(said.group()) != holder.size):
            self.lie(THREADS, row.line, f"'{holder.name}' has {holder.size} threads, not "
                                        f"'{row.cells['how many']}'")

    def check_picture(self):
        picture = self.text(PICTURE)
        sizes = {row.cells["threads"]: row.cells["how many"]
                 for table in self.tables_with(THREADS, THREAD_COLUMNS) for row in table.rows}
        for match in POOL_IN_PICTURE.finditer(picture):
            pool, count = match.group(1).strip(), match.group(2)
            said = re.match(r"\d+", sizes.get(pool, ""))
            if not said or said.group() != count:
                self.lie(PICTURE, cpp_text.line_of(picture, match.start()),
                         f"'{pool}' has {sizes.get(pool, 'no row')} in {THREADS}, here {count}")
        for family in self.families():
            if not re.search(rf"\b{family}\b", picture):
                self.lie(PICTURE, 1, f"the column family '{family}' is missing")

    # ── documentdb's own tests ──

    def check_own_tests(self):
        """The counts of tests that pass and wait, file by file and together."""
        expected = json.loads(self.text(OWN_TESTS) or "{}")
        passing = count_by_file(expected.get("pass", []))
        waiting = count_by_file(expected.get("waits", {}))
        table = self.one_table(COMPATIBILITY, {"file", "pass", "wait"})
        if table is None:
            return
        left = set(passing) | set(waiting)
        for row in table.rows:
            files = set(markdown.CODE.findall(row.cells["file"])) or set(left)
            if row.cells["file"] == TOGETHER:
                files = set(passing) | set(waiting)
            left -= files
            self.check_count(row, "pass", sum(passing[file] for file in files))
            self.check_count(row, "wait", sum(waiting[file] for file in files))
        for file in sorted(left):
            self.lie(COMPATIBILITY, table.line, f"the table of documentdb's tests lacks '{file}'")
        self.check_reasons(collections.Counter(expected.get("waits", {}).values()))

    def check_reasons(self, reasons):
        """The table of what tests wait for: the reasons, with as many tests as there are."""
        table = self.one_table(COMPATIBILITY, {"waits for", "tests"})
        said = {} if table is None else {row.cells["waits for"]: row for row in table.rows}
        for reason, count in sorted(reasons.items()):
            key = next((key for key in said if key.partition(":")[0] == reason.partition(":")[0]),
                       None)
            if key is None:
                self.lie(COMPATIBILITY, 1, f"no row says that tests wait for '{reason}'")
            else:
                self.check_count(said[key], "tests", count)
        if TOGETHER in said:
            self.check_count(said[TOGETHER], "tests", reasons.total())

    def check_count(self, row, column, count):
        if row.cells[column].strip("*") != str(count):
            self.lie(COMPATIBILITY, row.line,
                     f"{column}: {OWN_TESTS} has {count} tests, not {row.cells[column]}")

    # ── links ──

    def check_links(self):
        for path in sorted((self.root / "docs").rglob("*.md")):
            name = path.relative_to(self.root).as_posix()
            for line, target, anchor in markdown.links(self.text(name)):
                self.check_link(path, name, line, target, anchor)

    def check_link(self, path, name, line, target, anchor):
        file = (path.parent / target).resolve() if target else path
        if not file.exists():
            self.lie(name, line, f"the link leads to '{target}', which is not there")
        elif anchor and file.suffix == ".md":
            if anchor not in markdown.anchors(file.read_text(encoding="utf-8")):
                self.lie(name, line, f"'{target or path.name}' has no heading '#{anchor}'")


def name_list(names):
    return ", ".join(sorted(names)) or "nothing"


def count_by_file(titles):
    """How many titles, `file: title`, each file has."""
    return collections.Counter(title.partition(": ")[0] for title in titles)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    lies = MapChecker(root.resolve()).check()
    for lie in lies:
        print(lie)
    if lies:
        print(f"{len(lies)} lie(s)")
    return 1 if lies else 0


if __name__ == "__main__":
    sys.exit(main())
