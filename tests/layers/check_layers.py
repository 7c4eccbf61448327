#!/usr/bin/env python3
"""Checks that includes, and names, point one way: check_layers.py [project root].

An include is not the only way to reach another module: a header that comes along with an allowed one, or the
precompiled header, makes names known that the layers forbid. So names such as storage::Store and nlohmann::json are
checked by the same table, and the precompiled headers may hold nothing of ours and no library but the shared ones.

Prints each violation as file:line: what: which rule. Exit status 1 if there is any.
"""

import dataclasses
import pathlib
import re
import sys

GROUND = {"base", "json", "protocol"}

# Which of our modules a module may include besides its own. "orrery" is include/orrery.
MAY_INCLUDE = {
    "base": set(),
    "json": {"base"},
    "protocol": {"base", "json"},
    "geo": {"base", "json"},
    "http": {"base"},
    "storage": GROUND,
    "query": GROUND | {"geo"},
    "script": GROUND,
    "index": GROUND | {"geo", "storage"},
    "commitlog": GROUND | {"storage"},
    "partition": GROUND | {"storage", "index", "commitlog"},
    "feed": GROUND | {"storage", "partition"},
    "catalog": GROUND | {"storage", "partition"},
    "maintenance": GROUND | {"storage", "partition", "index", "catalog"},
    "cluster": GROUND | {"storage", "commitlog", "partition", "catalog"},
    "executor": GROUND | {"storage", "partition", "index", "catalog", "query"},
    "api": GROUND | {"http", "catalog", "maintenance", "partition", "index", "feed", "query",
                     "executor", "script"},
    "server": GROUND | {"http", "storage", "commitlog", "partition", "catalog", "maintenance",
                        "index", "feed", "query", "executor", "script", "cluster", "api"},
    "client": GROUND | {"orrery"},
    # Beyond the public SDK: it waits for many ranges at once without a thread for each.
    "processor": GROUND | {"orrery", "client"},
    # Beyond the public SDK: the copy reads lease areas and routing, the webhook uses the transport.
    "sinks": GROUND | {"orrery", "client", "processor"},
    # Beyond the public SDK: commands use what only this server has, such as push.
    "cli": GROUND | {"orrery", "client", "processor", "sinks"},
    "orrery": set(),  # The public headers.
}

# Folders that may include more.
EXCEPTIONS = {"src/cli/operate": {"server"}}


@dataclasses.dataclass(frozen=True)
class Home:
    """Where headers of a third-party library may be included."""
    library: str
    headers: re.Pattern
    modules: frozenset
    sources_only: bool = True
    names: str = ""  # The library's namespace.


HOMES = [
    Home("RocksDB", re.compile(r"rocksdb/"), frozenset({"storage"}), names="rocksdb"),
    Home("Beast", re.compile(r"boost/beast(/|\.hpp)"), frozenset({"http"})),
    Home("simdjson", re.compile(r"simdjson"), frozenset({"json"}), names="simdjson"),
    Home("OpenSSL", re.compile(r"openssl/|boost/asio/ssl(/|\.hpp)"),
         frozenset({"http", "protocol"})),
    Home("prometheus-cpp", re.compile(r"prometheus/"), frozenset({"server"}), names="prometheus"),
    Home("nlohmann-json", re.compile(r"nlohmann/"),
         frozenset({"protocol", "catalog", "executor", "api", "client", "processor", "cli", "orrery"}),
         sources_only=False, names="nlohmann"),
    Home("xxHash", re.compile(r"xxhash"), frozenset({"json"})),
    Home("RE2", re.compile(r"re2/"), frozenset({"query"}), names="re2"),
    Home("Snowball", re.compile(r"libstemmer"), frozenset({"query"})),
    Home("Boost.Geometry", re.compile(r"boost/geometry"), frozenset({"geo"})),
    Home("libpq", re.compile(r"(postgresql/)?(libpq-fe\.h|libpq/)"), frozenset({"commitlog"})),
    Home("libcurl", re.compile(r"curl/"), frozenset({"client"})),
    Home("SpiderMonkey", re.compile(r"(mozjs-\d+/)?(jsapi\.h|js/|mozilla/)"),
         frozenset({"script"})),
    Home("CLI11", re.compile(r"CLI/"), frozenset({"cli"}), sources_only=False, names="CLI"),
]
# Libraries that every module may be compiled with: precompiled, or shared ground.
PRECOMPILED = re.compile(r"boost/asio\.hpp|fmt/|nlohmann/|gtest/|gmock/|[a-z_]+$")
# A sink may bring the library of its destination.
BRINGS_ITS_OWN = {"sinks"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
TEST_FILE = re.compile(r"(_test\.cc|_fuzz\.cc)$|^test_[^/]*\.h$")
TEST_LIBRARY = re.compile(r"(gtest|gmock)/")


# Modules whose namespace is orrery::<module>; base and protocol speak directly in orrery.
NAMED_MODULES = set(MAY_INCLUDE) - {"base", "protocol", "orrery"}
NAME = re.compile(r"(?<![\w:])(?:orrery::|::orrery::)?(\w+)::")
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def is_test(path):
    return TEST_FILE.search(path.name) is not None


def below(module):
    """All modules that a module stands on, directly or not."""
    found = set()
    waiting = set(MAY_INCLUDE.get(module, ()))
    while waiting:
        each = waiting.pop()
        found.add(each)
        waiting |= MAY_INCLUDE.get(each, set()) - found
    return found


def includes(path):
    """(line number, included name, whether it is in quotes) of each include; none in comments."""
    text = path.read_text(encoding="utf-8", errors="replace")
    # Comments become as many empty lines as they had, so that line numbers stay.
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match.group().count("\n"), text,
                  flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), start=1):
        if match := INCLUDE.match(line):
            yield number, match.group(1) or match.group(2), match.group(1) is not None


def names(path):
    """(line number, first part) of each qualified name; none in comments and literals."""
    text = path.read_text(encoding="utf-8", errors="replace")
    text = NOT_CODE.sub(lambda match: "\n" * match.group().count("\n"), text)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.lstrip().startswith("#"):
            for match in NAME.finditer(line):
                yield number, match.group(1)


class Checker:
    def __init__(self, root):
        self.root = root
        self.violations = []

    def check(self):
        for top in ("src", "include"):
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in (".h", ".cc"):
                    self.check_file(path)
        for header in ("pch.h", "test_pch.h"):
            self.check_precompiled(self.root / "cmake" / header)
        return self.violations

    def check_precompiled(self, path):
        if not path.exists():
            return
        for line, name, quoted in includes(path):
            if name != "pch.h" and (quoted or not PRECOMPILED.match(name)):
                self.violations.append(
                    f"{path.relative_to(self.root)}:{line}: {name}: what is precompiled is known to every "
                    "module, so it holds only the standard library, Asio, fmt and nlohmann-json")

    def check_file(self, path):
        relative = path.relative_to(self.root)
        module = relative.parts[1] if len(relative.parts) > 2 else None
        if module not in MAY_INCLUDE:
            self.violations.append(
                f"{relative}:1: module '{module}': it is not in the table of layers "
                "(house style, 3)")
            return
        for line, name, quoted in includes(path):
            for rule in self.broken_rules(path, relative, module, name, quoted):
                self.violations.append(f"{relative}:{line}: {name}: {rule}")
        for line, name in names(path):
            for rule in self.broken_names(path, relative, module, name):
                self.violations.append(f"{relative}:{line}: {name}::: {rule}")

    def broken_names(self, path, relative, module, name):
        if name in NAMED_MODULES and name != module:
            allowed = self.allowed(path, relative, module)
            if name not in allowed:
                listed = ", ".join(sorted(allowed)) or "no other module"
                yield f"'{module}' may name {listed}, but not '{name}'"
        for home in HOMES:
            if home.names == name and module not in home.modules | BRINGS_ITS_OWN and not is_test(path):
                at_home = ", ".join(f"src/{each}" for each in sorted(home.modules))
                yield f"{home.library} lives in {at_home} and nowhere else"

    def allowed(self, path, relative, module):
        allowed = MAY_INCLUDE[module] | EXCEPTIONS.get(relative.parent.as_posix(), set())
        if module == "orrery":
            allowed = allowed | {"client", "processor"}  # The namespaces of what it declares.
        return allowed | below(module) if is_test(path) else allowed

    def broken_rules(self, path, relative, module, name, quoted):
        first = name.split("/")[0]
        ours = quoted or first == "orrery"
        if not ours:
            yield from self.broken_homes(path, module, name)
            return
        if first not in MAY_INCLUDE or "/" not in name:
            yield ("headers of ours are named by their module, as in \"base/error.h\"; of others in "
                   "angle brackets")
            return
        file = self.root / ("include" if first == "orrery" else "src") / name
        if not file.exists():
            yield f"there is no such file as {file.relative_to(self.root)}"
            return
        if TEST_FILE.search(file.name) and not is_test(path):
            yield "only tests may include what is made for tests"
        if first == module:
            return
        allowed = self.allowed(path, relative, module)
        if first not in allowed:
            listed = ", ".join(sorted(allowed)) or "no other module"
            yield f"'{module}' may include {listed}, but not '{first}'"

    def broken_homes(self, path, module, name):
        if TEST_LIBRARY.match(name):
            if not is_test(path):
                yield "GoogleTest is for tests only"
            return
        for home in HOMES:
            if not home.headers.match(name) or module in BRINGS_ITS_OWN:
                continue
            at_home = ", ".join(f"src/{each}" for each in sorted(home.modules))
            if module not in home.modules:
                yield f"{home.library} lives in {at_home} and nowhere else"
            elif home.sources_only and path.suffix != ".cc" and not is_test(path):
                yield f"{home.library} lives in the .cc files of {at_home}, not in headers"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    checker = Checker(root.resolve())
    violations = checker.check()
    for violation in violations:
        print(violation)
    if violations:
        print(f"{len(violations)} violation(s)")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
