"""Reads *.test: README.md says what is in them."""

import dataclasses
import json
import pathlib


@dataclasses.dataclass
class DocumentSet:
    name: str
    place: str
    documents: list = dataclasses.field(default_factory=list)
    definition: dict = dataclasses.field(default_factory=dict)  # laid over that of the container


@dataclasses.dataclass
class Case:
    name: str
    place: str
    set_name: str
    query: str = ""
    parameters: list = dataclasses.field(default_factory=list)  # of (name, value)
    rows: list | None = None  # None: it is refused
    is_ordered: bool = False
    error: str = ""  # the code that the refusal has; empty: any
    is_planned: bool = True


class Malformed(Exception):
    pass


def read_directory(directory):
    """({name: DocumentSet}, [Case]) of all files."""
    sets, cases = {}, {}
    for path in sorted(pathlib.Path(directory).glob("*.test")):
        for entry in read_file(path):
            into = sets if isinstance(entry, DocumentSet) else cases
            if entry.name in into:
                raise Malformed(f"{entry.place}: {entry.name} is also at {into[entry.name].place}")
            into[entry.name] = entry
    for case in cases.values():
        if case.set_name not in sets:
            raise Malformed(f"{case.place}: there are no documents {case.set_name}")
        if case.rows is None and case.error == "missing":
            raise Malformed(f"{case.place}: {case.name} says neither rows nor error")
    return sets, list(cases.values())


def read_file(path):
    entries = []
    for place, head, lines in blocks_of(path):
        words = head.split()
        try:
            read_block(entries, words, lines, place)
        except (ValueError, IndexError, AttributeError) as error:
            raise Malformed(f"{place}: {head}: {error}") from error
    return entries


def read_block(entries, words, lines, place):
    match words:
        case ["documents", name]:
            entries.append(DocumentSet(name, place, [json.loads(line) for line in lines]))
        case ["container"]:
            entries[-1].definition = json.loads("".join(lines))
        case ["case", name, "on", set_name]:
            entries.append(Case(name, place, set_name, "\n".join(lines), error="missing"))
        case ["parameters"]:
            pairs = [line.split(" ", 1) for line in lines]
            entries[-1].parameters = [(name, json.loads(value)) for name, value in pairs]
        case ["rows"] | ["ordered", "rows"]:
            entries[-1].rows = [json.loads(line) for line in lines]
            entries[-1].is_ordered = words[0] == "ordered"
            entries[-1].error = ""
        case ["error", *code]:
            entries[-1].error = "".join(code)
        case ["not", "planned"]:
            entries[-1].is_planned = False
        case _:
            raise ValueError("not a line of a test file")


def blocks_of(path):
    """(place, head, lines) of each line at the margin with those indented below it."""
    block = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith("  "):
            if block:
                yield block
            block = (f"{path.name}:{number}", line.strip(), [])
        elif block is None:
            raise Malformed(f"{path.name}:{number}: an indented line before all others")
        elif line.startswith("    ") and block[2]:
            block[2][-1] += " " + line.strip()
        else:
            block[2].append(line[2:])
    if block:
        yield block
