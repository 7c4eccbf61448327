"""Reads C++ sources as text, for the checker of maps: which functions a file defines or
declares, and which members hold threads."""

import dataclasses
import re

# Words that stand before a call, but never before the name of a function that is declared.
NO_TYPE = r"(?:return|co_return|co_await|co_yield|throw|else|case|delete|new|goto|not)\b"
# A return type: words, template arguments, references; nothing that assigns or calls.
TYPE = rf"(?!{NO_TYPE})[\w\[][\w:<>,&*\[\]. ]*[\s&*>]"
CLASS = re.compile(r"^([ \t]*)(?:class|struct)\s+((?:\w+::)*\w+)[^;{()]*\{", re.MULTILINE)
NAMESPACE = re.compile(r"^namespace\s+([\w:]+)\s*\{", re.MULTILINE)

THREAD_TYPE = r"(?:(?:boost::)?asio::thread_pool|BackgroundPool|std::j?thread)"
THREAD_HOLDER = re.compile(
    rf"^[ \t]*(?:mutable |static |const )*(?:std::(?:optional|vector|unique_ptr|deque)<)?"
    rf"{THREAD_TYPE}>?[ \t]+(\w+)[ \t]*(?:[;={{]|\((?!\s*\w+\s*&))", re.MULTILINE)
FREE_THREAD = re.compile(r"^[ \t]*std::j?thread\s*[({]", re.MULTILINE)
FUNCTION_AT_MARGIN = re.compile(r"^\w[^\n;=]*?\b((?:\w+::)+\w+)\s*\(", re.MULTILINE)


def without_comments(text):
    """The text with comments blanked out: lines and columns stay where they are."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())  # noqa: E731
    return re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.DOTALL)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def classes(text):
    """(name, begin, end) of each class. It ends on its own line, or with the next brace that stands
    where the class does: sources are formatted."""
    for match in CLASS.finditer(text):
        line_end = text.find("\n", match.end())
        closing = re.compile(rf"^{match.group(1)}\}}", re.MULTILINE).search(text, line_end)
        end = closing.start() if closing else len(text)
        is_one_line = text[match.end():line_end].rstrip().endswith("};")
        yield match.group(2), match.end(), line_end if is_one_line else end


def class_bodies(text, name):
    """The bodies of all classes of that name, which may be qualified where they are defined."""
    for full_name, begin, end in classes(text):
        if full_name.split("::")[-1] == name:
            yield text[begin:end]


def namespaces(text):
    """The innermost names of the namespaces that a file opens."""
    return {match.group(1).split("::")[-1] for match in NAMESPACE.finditer(text)}


def declares(text, function, indent):
    """Whether a function is declared or defined at the margin, or inside of something."""
    margin = r"[ \t]+" if indent else ""
    return re.search(rf"^{margin}{TYPE}{re.escape(function)}\s*\(", text, re.MULTILINE) is not None


def defines(text, name):
    """Whether a file (without its comments) defines or declares `function` or `Type::function`.

    A Type is a class that is in the file, with the function in its body; one whose function is
    defined out of line; or a namespace that the file opens.
    """
    *scope, function = name.split("::")
    if not scope:
        return declares(text, function, indent=False) or declares(text, function, indent=True)
    out_of_line = rf"^(?:{TYPE})?(?:\w+::)*{re.escape(scope[-1])}::{re.escape(function)}\s*\("
    if re.search(out_of_line, text, re.MULTILINE):
        return True
    if any(declares(body, function, indent=True) for body in class_bodies(text, scope[-1])):
        return True
    return scope[-1] in namespaces(text) and declares(text, function, indent=False)


@dataclasses.dataclass(frozen=True)
class ThreadHolder:
    """A member, or a function, that has threads."""
    line: int
    name: str  # With the class that it is in.
    size: int | None  # Of a pool whose size is a constant of the file.


def enclosing_class(text, offset):
    """The innermost class that the place is in; empty: none."""
    around = [name for name, begin, end in classes(text) if begin <= offset < end]
    return around[-1] if around else ""


def enclosing_function(text, offset):
    """The last function that was begun at the margin before the place."""
    names = [match.group(1) for match in FUNCTION_AT_MARGIN.finditer(text, 0, offset)]
    return names[-1] if names else ""


def pool_size(text, offset):
    """N of `pool_{kThreads, …}` with `kThreads = N` in the file; None where it is otherwise."""
    constant = re.match(r"[{(]\s*(k\w+)", text[offset:])
    if not constant:
        return None
    value = re.search(rf"\b{constant.group(1)}\s*=\s*(\d+)\s*;", text)
    return int(value.group(1)) if value else None


def thread_holders(text):
    """Everything in a file (without its comments) that holds or starts threads."""
    found = []
    for match in THREAD_HOLDER.finditer(text):
        scope = enclosing_class(text, match.start(1))
        name = f"{scope}::{match.group(1)}" if scope else match.group(1)
        found.append(ThreadHolder(line_of(text, match.start(1)), name,
                                  pool_size(text, match.end() - 1)))
    for match in FREE_THREAD.finditer(text):
        found.append(ThreadHolder(line_of(text, match.start()),
                                  enclosing_function(text, match.start()), None))
    return found
