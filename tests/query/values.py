"""Values of the query language in Python: JSON as `json` makes it, and undefined.

Python holds True equal to 1, and has no order over different types; so nothing here compares values with == or <.
"""

import functools


class Undefined:
    """The missing value. There is one, UNDEFINED."""

    def __repr__(self):
        return "undefined"


UNDEFINED = Undefined()

# In the order in which values of different types are sorted.
TYPES = ["undefined", "null", "boolean", "number", "string", "array", "object"]


def type_of(value):
    if value is UNDEFINED:
        return "undefined"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_integer(value):
    """A number without a fraction, whether it is written 2 or 2.0."""
    return is_number(value) and value == value and value not in (float("inf"), float("-inf")) and value == int(value)


def canonical(value):
    """Something that can be a key of a dictionary, the same for equal values only: 1 and 1.0 are equal, 1 and true
    are not, and the order of an object's members does not matter."""
    kind = type_of(value)
    if kind == "array":
        return (kind, tuple(canonical(each) for each in value))
    if kind == "object":
        return (kind, tuple(sorted((name, canonical(each)) for name, each in value.items())))
    return (kind, value if kind not in ("undefined", "null") else None)


def equal(left, right):
    return canonical(left) == canonical(right)


def compare_for_sort(left, right):
    """-1, 0 or 1. Arrays are equal to arrays, and objects to objects: in which order they come among themselves is
    the server's business."""
    ranks = TYPES.index(type_of(left)), TYPES.index(type_of(right))
    if ranks[0] != ranks[1]:
        return -1 if ranks[0] < ranks[1] else 1
    if type_of(left) not in ("boolean", "number", "string"):
        return 0
    return (left > right) - (left < right)


sort_key = functools.cmp_to_key(compare_for_sort)


def distinct(values):
    """The first one of those that are equal."""
    found = {}
    for value in values:
        found.setdefault(canonical(value), value)
    return list(found.values())


def same_sequence(left, right):
    return [canonical(value) for value in left] == [canonical(value) for value in right]


def same_multiset(left, right):
    return len(left) == len(right) and multiset(left) == multiset(right)


def multiset(values):
    counts = {}
    for value in values:
        key = canonical(value)
        counts[key] = counts.get(key, 0) + 1
    return counts
