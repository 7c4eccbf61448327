#!/usr/bin/env python3
"""Checks that packaging/recipes, docs/install.md and README.md name what there is: check_recipes.py <project root>.

With ORRERY_BINARY (default: build/orrery below the root) the program is asked for its help. Checked are

  - in the recipes, ports: numbers of four or five digits are those of `orrery emulator`;
  - in the recipes, variables: the program takes them, or they are somebody else's (NOT_OURS);
  - options of `orrery …` are options of that command;
  - the version in names of files and images is that of CMakeLists.txt;
  - YAML is YAML. Without python3-yaml this is skipped, and a line says so.
"""

import os
import pathlib
import re
import subprocess
import sys

# Of frameworks, of CI and of the programs under test.
NOT_OURS = {"ASPIRECOSMOSDB001", "CI_REGISTRY_IMAGE", "COSMOS_ENDPOINT", "COSMOS_IMAGE", "COSMOS_KEY", "VENDORS_IMAGE"}
KEY = re.compile(r"[A-Za-z0-9+/]{80,}==")
PORT = re.compile(r"(?<![\w.])(?!20\d\d)\d{4,5}(?![\w.]\d)")  # not a year
VARIABLE = re.compile(r"(?<![\w.])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?!\w)"  # SOME_NAME
                      r"|(?<=\")[A-Z]{4,}(?=\")|^ +[A-Z]{4,}(?=: )", re.MULTILINE)  # "PORT"; PORT: in YAML
OPTIONS = r"(?: +--?[a-z-]+(?:[ =][^\s`|&;#-][^\s`|&;#]*)?)+"
COMMAND = re.compile(rf"(?:^|[\s/`\"(])orrery ((?:[a-z]+ )*[a-z]+)({OPTIONS})", re.MULTILINE)
OPTION = re.compile(r"(?<=\s)--[a-z-]+")
VERSION = re.compile(r"orrery(?::|-|_|\", \")(\d+\.\d+\.\d+)")


class Program:
    """What its help says."""

    def __init__(self, binary):
        self.binary = binary
        self.helps = {}

    def help(self, *words):
        if words not in self.helps:
            shown = subprocess.run([self.binary, "help", *words], text=True, capture_output=True, timeout=60)
            self.helps[words] = shown.stdout if shown.returncode == 0 else ""
        return self.helps[words]

    def options(self, words):
        """Of the command that the first of these words name."""
        while words and f"Usage: orrery {' '.join(words)} " not in self.help(*words):
            words = words[:-1]
        return set(re.findall(r"--[a-z-]+", self.help(*words)))

    def ports(self):
        return set(re.findall(r"port NUMBER \[(\d+)\]", self.help("emulator")))

    def variables(self):
        return {name for command in ("emulator", "serve", "query")
                for name in re.findall(r"\(Env:(\w+)\)", self.help(command))}


def line_of(text, place):
    return text.count("\n", 0, place) + 1


def check_text(name, text, program, version, is_recipe):
    """Yields each fault."""
    text = KEY.sub(lambda found: "x" * len(found[0]), text)
    for found in VERSION.finditer(text):
        if found[1] != version:
            yield f"{name}:{line_of(text, found.start())}: the version is {version}, not {found[1]}"
    for found in COMMAND.finditer(text):
        known = program.options(tuple(found[1].split()))
        for option in OPTION.findall(found[2]):
            if option not in known:
                yield f"{name}:{line_of(text, found.start())}: orrery {found[1]} has no option {option}"
    if not is_recipe:
        return
    for found in VARIABLE.finditer(text):
        variable = found[0].strip()
        if variable not in program.variables() | NOT_OURS:
            yield f"{name}:{line_of(text, found.start())}: the program takes no variable {variable}"
    for found in PORT.finditer(text):
        if found[0] not in program.ports():
            yield f"{name}:{line_of(text, found.start())}: {found[0]} is no port of orrery emulator"


def check_yaml(files):
    try:
        import yaml
    except ImportError:
        print("skipped: whether the YAML files can be read, since python3-yaml is not on this machine")
        return
    for name, path in files:
        try:
            if not isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict):
                yield f"{name}:1: has no keys"
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            yield f"{name}:{mark.line + 1 if mark else 1}: {getattr(error, 'problem', error)}"


def main():
    root = pathlib.Path(sys.argv[1])
    program = Program(os.environ.get("ORRERY_BINARY") or str(root / "build" / "orrery"))
    version = re.search(r"project\(orrery VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())[1]
    recipes = sorted(path for path in (root / "packaging" / "recipes").rglob("*") if path.is_file())
    texts = [*recipes, root / "docs" / "install.md", root / "README.md"]
    files = [(path.relative_to(root).as_posix(), path) for path in texts]

    faults = [] if len(program.ports()) == 3 else ["orrery help emulator does not name three ports"]
    for name, path in files:
        faults += check_text(name, path.read_text(encoding="utf-8"), program, version, path in recipes)
    faults += check_yaml((name, path) for name, path in files if path.suffix in (".yaml", ".yml"))
    print("\n".join(faults) or f"{len(files)} files")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
