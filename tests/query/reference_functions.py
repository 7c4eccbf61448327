"""The built-in functions that reference.py knows. Arguments of the wrong type make a function undefined."""

import json
import math

from values import UNDEFINED, canonical, distinct, equal, is_integer, is_number, sort_key, type_of

INT64_MIN, INT64_MAX = -2**63, 2**63 - 1


def double_or_integer(number):
    """The result as a number: an integer beyond int64 becomes a double."""
    if isinstance(number, int) and not INT64_MIN <= number <= INT64_MAX:
        return float(number)
    return number


def to_int32(number):
    """As JavaScript does it, whose numbers are doubles."""
    wrapped = int(float(number)) & 0xFFFFFFFF
    return wrapped - (1 << 32) if wrapped >> 31 else wrapped


def number_text(number):
    if isinstance(number, int):
        return str(number)
    if number == int(number) and abs(number) < 1e15:
        return str(int(number))
    short = f"{number:.15g}"
    return short if float(short) == number else f"{number:.17g}"


def json_text(value):
    """Compact JSON, as the server writes it."""
    kind = type_of(value)
    if kind == "number":
        return number_text(value)
    if kind == "array":
        return "[" + ",".join(map(json_text, value)) + "]"
    if kind == "object":
        return "{" + ",".join(f"{json_text(name)}:{json_text(each)}" for name, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def typed(*types):
    """A decorator: the function is undefined unless its arguments are of these types ("integer": a number without a
    fraction; "any"); those that a call leaves out are not checked."""
    def fits(kind, value):
        return kind == "any" or (is_integer(value) if kind == "integer" else type_of(value) == kind)

    def decorate(function):
        def checked(*arguments):
            kinds = types + (types[-1],) * (len(arguments) - len(types))
            return function(*arguments) if all(map(fits, kinds, arguments)) else UNDEFINED
        return checked
    return decorate


def folded(function):
    """Of two strings and, perhaps, a flag to ignore case."""
    @typed("string", "string", "boolean")
    def apply(text, part, ignore_case=False):
        return function(text.lower(), part.lower()) if ignore_case else function(text, part)
    return apply


# ── Types

TYPE_CHECKS = {
    "IS_ARRAY": lambda value: type_of(value) == "array",
    "IS_BOOL": lambda value: type_of(value) == "boolean",
    "IS_DEFINED": lambda value: value is not UNDEFINED,
    "IS_FINITE_NUMBER": lambda value: is_number(value) and math.isfinite(value),
    "IS_INTEGER": lambda value: is_integer(value) and INT64_MIN <= value <= INT64_MAX,
    "IS_NULL": lambda value: value is None,
    "IS_NUMBER": is_number,
    "IS_OBJECT": lambda value: type_of(value) == "object",
    "IS_PRIMITIVE": lambda value: type_of(value) in ("null", "boolean", "number", "string"),
    "IS_STRING": lambda value: type_of(value) == "string",
}


# ── Strings

@typed("string", "string", "integer")
def index_of(text, part, start=0):
    return text.find(part, int(start)) if start >= 0 else UNDEFINED


@typed("string", "integer")
def left(text, count):
    return text[:max(int(count), 0)]


@typed("string", "integer")
def right(text, count):
    return text[max(len(text) - int(count), 0):] if count > 0 else ""


@typed("string", "integer", "integer")
def substring(text, start, length):
    return text[int(start):int(start) + int(length)] if start >= 0 and length > 0 else ""


@typed("string", "string", "string")
def replace(text, find, replacement):
    return text.replace(find, replacement) if find else text


def cut(find, take):
    @typed("string", "string")
    def apply(text, mark):
        at = find(text, mark)
        return UNDEFINED if at < 0 else take(text, at, len(mark))
    return apply


@typed("array", "string")
def string_join(parts, separator):
    return separator.join(parts) if all(isinstance(part, str) for part in parts) else UNDEFINED


def to_string(value):
    return value if isinstance(value, str) else json_text(value)


def parsed(kind):
    @typed("string")
    def apply(text):
        try:
            value = json.loads(text.strip(" \t\r\n"), parse_constant=lambda name: UNDEFINED)
        except ValueError:
            return UNDEFINED
        return value if type_of(value) == kind else UNDEFINED
    return apply


# ── Arrays

@typed("array", "any", "boolean")
def array_contains(array, value, is_partial=False):
    def matches(element):
        if is_partial and isinstance(value, dict) and isinstance(element, dict):
            return all(name in element and equal(element[name], each) for name, each in value.items())
        return equal(element, value)
    return any(matches(element) for element in array)


@typed("array", "integer", "integer")
def array_slice(array, start, length=None):
    first = int(start) if start >= 0 else max(len(array) + int(start), 0)
    count = len(array) if length is None else max(int(length), 0)
    return array[first:first + count]


def over_numbers(function):
    @typed("array")
    def apply(array):
        return double_or_integer(function(array)) if array and all(map(is_number, array)) else UNDEFINED
    return apply


def median(numbers):
    ordered, middle = sorted(numbers), len(numbers) // 2
    return ordered[middle] if len(numbers) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def over_scalars(choose):
    @typed("array")
    def apply(array):
        if not array or any(type_of(element) in ("array", "object") for element in array):
            return UNDEFINED
        return choose(array, key=sort_key)
    return apply


def as_set(values):
    return {canonical(value) for value in values}


@typed("array", "array")
def set_intersect(one, other):
    return [value for value in distinct(other) if canonical(value) in as_set(one)]


@typed("array", "array")
def set_union(one, other):
    return distinct(one + other)


@typed("array", "array")
def set_difference(one, other):
    return [value for value in distinct(one) if canonical(value) not in as_set(other)]


@typed("object", "string", "string")
def object_to_array(value, key_name="k", value_name="v"):
    return [{key_name: name, value_name: each} for name, each in value.items()]


def choose(index, *choices):
    return choices[int(index) - 1] if is_integer(index) and 1 <= index <= len(choices) else UNDEFINED


# ── Numbers

def rounded(number):
    """Half away from zero."""
    if isinstance(number, int):
        return number
    return math.copysign(math.floor(abs(number) + 0.5), number)


def wrapped(compute):
    """Of int64, with wrap-around."""
    @typed("integer", "integer")
    def apply(one, other):
        if not (INT64_MIN <= one <= INT64_MAX and INT64_MIN <= other <= INT64_MAX):
            return UNDEFINED
        result = compute(int(one), int(other))
        return result if result is UNDEFINED else (result - INT64_MIN) % 2**64 + INT64_MIN
    return apply


FUNCTIONS = TYPE_CHECKS | {
    "IIF": lambda condition, then, otherwise: then if condition is True else otherwise,
    "CONCAT": typed("string")(lambda *texts: "".join(texts)),
    "CONTAINS": folded(lambda text, part: part in text),
    "STARTSWITH": folded(lambda text, part: text.startswith(part)),
    "ENDSWITH": folded(lambda text, part: text.endswith(part)),
    "STRINGEQUALS": folded(lambda text, part: text == part),
    "INDEX_OF": index_of,
    "LEFT": left,
    "RIGHT": right,
    "LENGTH": typed("string")(len),
    "LOWER": typed("string")(str.lower),
    "UPPER": typed("string")(str.upper),
    "REVERSE": typed("string")(lambda text: text[::-1]),
    "TRIM": typed("string")(lambda text: text.strip(" ")),
    "LTRIM": typed("string")(lambda text: text.lstrip(" ")),
    "RTRIM": typed("string")(lambda text: text.rstrip(" ")),
    "SUBSTRING": substring,
    "REPLACE": replace,
    "SUBSTRINGBEFORE": cut(str.find, lambda text, at, _: text[:at]),
    "SUBSTRINGAFTER": cut(str.find, lambda text, at, length: text[at + length:]),
    "LASTSUBSTRINGBEFORE": cut(str.rfind, lambda text, at, _: text[:at]),
    "LASTSUBSTRINGAFTER": cut(str.rfind, lambda text, at, length: text[at + length:]),
    "StringJoin": string_join,
    "StringSplit": typed("string", "string")(lambda text, mark: text.split(mark) if mark else [text]),
    "StringToNumber": parsed("number"),
    "StringToBoolean": parsed("boolean"),
    "StringToArray": parsed("array"),
    "ToString": to_string,
    "ARRAY_CONCAT": typed("array")(lambda *arrays: [element for array in arrays for element in array]),
    "ARRAY_CONTAINS": array_contains,
    "ARRAY_LENGTH": typed("array")(len),
    "ARRAY_SLICE": array_slice,
    "ARRAY_SUM": over_numbers(sum),
    "ARRAY_AVG": over_numbers(lambda array: sum(array) / len(array)),
    "ARRAY_MEDIAN": over_numbers(median),
    "ARRAY_MIN": over_scalars(min),
    "ARRAY_MAX": over_scalars(max),
    "SetIntersect": set_intersect,
    "SetUnion": set_union,
    "SetDifference": set_difference,
    "SetEqual": typed("array", "array")(lambda one, other: as_set(one) == as_set(other)),
    "ObjectToArray": object_to_array,
    "CHOOSE": choose,
    "ABS": typed("number")(lambda number: double_or_integer(abs(number))),
    "CEILING": typed("number")(lambda number: number if isinstance(number, int) else float(math.ceil(number))),
    "FLOOR": typed("number")(lambda number: number if isinstance(number, int) else float(math.floor(number))),
    "TRUNC": typed("number")(lambda number: number if isinstance(number, int) else float(math.trunc(number))),
    "ROUND": typed("number")(rounded),
    "SIGN": typed("number")(lambda number: (number > 0) - (number < 0)),
    "IntAdd": wrapped(lambda one, other: one + other),
    "IntSub": wrapped(lambda one, other: one - other),
    "IntMul": wrapped(lambda one, other: one * other),
    "IntDiv": wrapped(lambda one, other: int(math.copysign(1, one * other)) * (abs(one) // abs(other)) if other else UNDEFINED),
    "IntMod": wrapped(lambda one, other: int(math.copysign(1, one)) * (abs(one) % abs(other)) if other else UNDEFINED),
    "IntBitAnd": wrapped(lambda one, other: one & other),
    "IntBitOr": wrapped(lambda one, other: one | other),
    "IntBitXor": wrapped(lambda one, other: one ^ other),
}

# The others are undefined as soon as an argument is.
TAKES_UNDEFINED = set(TYPE_CHECKS) | {"IIF", "CHOOSE"}
