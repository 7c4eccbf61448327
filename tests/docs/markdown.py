"""Reads a Markdown file for the checker of maps: tables, code spans, links and headings, each
with the line that it stands on."""

import dataclasses
import re

CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^(#+)\s+(.*?)\s*#*$")
FENCE = re.compile(r"^\s*```\s*(\w*)")
SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:")


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table: its cells by the names of their columns."""
    line: int
    cells: dict


@dataclasses.dataclass(frozen=True)
class Table:
    line: int
    section: str  # The heading above it.
    columns: tuple
    rows: tuple


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: the lines between the fences."""
    line: int  # Of the first of them.
    language: str
    lines: tuple


def prose(text):
    """(line number, line) of each line outside of fenced blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def blocks(text):
    """All fenced blocks."""
    found, language, lines, begin = [], None, [], 0
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line)
        if fence and language is None:
            language, lines, begin = fence.group(1), [], number + 1
        elif fence:
            found.append(Block(begin, language, tuple(lines)))
            language = None
        elif language is not None:
            lines.append(line)
    return found


def cells_of(line):
    """The cells of a line of a table; a | inside a code span does not end a cell."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    hidden = CODE.sub(lambda span: span.group().replace("|", "\0"), inner)
    return [cell.replace("\0", "|").strip() for cell in hidden.split("|")]


def tables(text):
    """All tables, in order."""
    found, section, lines = [], "", []
    for number, line in [*prose(text), (0, "")]:
        if line.lstrip().startswith("|"):
            lines.append((number, line))
            continue
        if len(lines) >= 2:
            found.append(make_table(section, lines))
        lines = []
        if heading := HEADING.match(line):
            section = heading.group(2)
    return found


def make_table(section, lines):
    """A table from its lines: the first has the names of columns, the second rules them off."""
    columns = tuple(cells_of(lines[0][1]))
    rows = tuple(Row(number, dict(zip(columns, cells_of(line)))) for number, line in lines[2:])
    return Table(lines[0][0], section, columns, rows)


def code_spans(text):
    """(line number, content) of each code span in prose and tables."""
    for number, line in prose(text):
        for match in CODE.finditer(line):
            yield number, match.group(1)


def links(text):
    """(line number, path, anchor) of each link that leads to a file; the path may be empty."""
    for number, line in prose(text):
        for match in LINK.finditer(CODE.sub("", line)):
            target = match.group(1)
            if not SCHEME.match(target):
                path, _, anchor = target.partition("#")
                yield number, path, anchor


def anchors(text):
    """The anchors that headings have: in small letters, without punctuation, joined by dashes."""
    found = set()
    for _, line in prose(text):
        if heading := HEADING.match(line):
            words = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading.group(2)).lower())
            found.add(words.replace(" ", "-"))
    return found
