"""The semantics of queries, written to be read: one document after the other, nothing remembered, nothing clever.

Numbers are int64 (Python's int) or double (float). A scope is a dictionary from aliases to values.
"""

import math
import re

from reference_functions import FUNCTIONS, TAKES_UNDEFINED, double_or_integer, to_int32
from tree import (Aggregate, ArrayOf, Between, Binary, Call, Conditional, Element, In, Like, Literal, Member, Name, ObjectOf,
                  Parameter, Query, Subquery, Unary)
from values import UNDEFINED, canonical, compare_for_sort, distinct, equal, is_integer, is_number, sort_key, type_of


def run(query, documents):
    """The rows of a query over the documents of a container, in the order in which a scan meets them."""
    return rows_of(query, {}, documents)


def rows_of(query, outer, documents=None):
    scopes = [scope for scope in scopes_of(query.sources, outer, documents) if passes(query.where, scope)]
    if query.is_grouped:
        results = [project(query, group[0] if group else {}, group) for group in groups_of(query, scopes)]
    else:
        for expression, is_descending in reversed(query.order_by):
            scopes.sort(key=lambda scope: sort_key(evaluate(expression, scope)), reverse=is_descending)
        results = [project(query, scope) for scope in scopes]
    results = [result for result in results if result is not UNDEFINED]
    if query.is_distinct:
        results = distinct(results)
    if query.offset is not None:
        results = results[query.offset:query.offset + query.limit]
    return results if query.top is None else results[:query.top]


def scopes_of(sources, outer, documents):
    """One scope for each row of FROM and its JOINs."""
    if not sources:
        return [outer]
    scopes = [outer]
    for index, source in enumerate(sources):
        scopes = [scope | {source.alias: value} for scope in scopes
                  for value in values_of(source, scope, documents if index == 0 else None)]
    return scopes


def values_of(source, scope, documents):
    if source.collection is None:
        return documents
    if isinstance(source.collection, Query):
        return rows_of(source.collection, scope, documents)
    if documents is None:
        found = [evaluate(source.collection, scope)]
    else:
        root = root_alias(source.collection)
        found = [evaluate(source.collection, {root: document}) for document in documents]
    if source.is_iteration:
        return [element for value in found if isinstance(value, list) for element in value]
    return [value for value in found if value is not UNDEFINED]


def root_alias(path):
    while not isinstance(path, Name):
        path = path.base
    return path.alias


def passes(where, scope):
    return where is None or evaluate(where, scope) is True


def groups_of(query, scopes):
    """Lists of scopes; without GROUP BY all are one group, even if there are none."""
    if not query.group_by:
        return [scopes]
    groups = {}
    for scope in scopes:
        key = tuple(canonical(evaluate(each, scope)) for each in query.group_by)
        groups.setdefault(key, []).append(scope)
    return list(groups.values())


def project(query, scope, group=None):
    if not query.select:
        return scope[query.sources[0].alias]
    if query.is_value:
        return evaluate(query.select[0][0], scope, group)
    return object_of((alias, evaluate(expression, scope, group)) for expression, alias in query.select)


def object_of(members):
    return {name: value for name, value in members if value is not UNDEFINED}


# ── Expressions

def evaluate(node, scope, group=None):
    """`group` are the scopes that aggregates go over."""
    def value_of(child):
        return evaluate(child, scope, group)

    match node:
        case Literal(value) | Parameter(_, value):
            return value
        case Name(alias):
            return scope[alias]
        case Member(base, name):
            return member(value_of(base), name)
        case Element(base, index):
            return member(value_of(base), value_of(index))
        case Unary(operator, operand):
            return unary(operator, value_of(operand))
        case Binary("AND", left, right):
            return logical_and(value_of(left), value_of(right))
        case Binary("OR", left, right):
            return logical_or(value_of(left), value_of(right))
        case Binary("??", left, right):
            value = value_of(left)
            return value_of(right) if value is UNDEFINED else value
        case Binary(operator, left, right):
            return BINARY[operator](value_of(left), value_of(right))
        case Conditional(condition, then, otherwise):
            return value_of(then) if value_of(condition) is True else value_of(otherwise)
        case In(operand, choices, is_negated):
            value = value_of(operand)
            found = UNDEFINED if value is UNDEFINED else any(equal(value, value_of(each)) for each in choices)
            return logical_not(found) if is_negated else found
        case Between(operand, low, high, is_negated):
            value = value_of(operand)
            found = logical_and(ordered(value, value_of(low), {0, 1}), ordered(value, value_of(high), {-1, 0}))
            return logical_not(found) if is_negated else found
        case Like(operand, pattern, is_negated):
            found = like(value_of(operand), value_of(pattern))
            return logical_not(found) if is_negated else found
        case ArrayOf(elements):
            return [value for value in map(value_of, elements) if value is not UNDEFINED]
        case ObjectOf(members):
            return object_of((name, value_of(value)) for name, value in members)
        case Call(function, arguments):
            return call(function, [value_of(each) for each in arguments])
        case Aggregate(function, argument):
            return AGGREGATES[function]([value for row in group if (value := evaluate(argument, row)) is not UNDEFINED])
        case Subquery("EXISTS", query):
            return bool(rows_of(query, scope))
        case Subquery("ARRAY", query):
            return rows_of(query, scope)
        case Subquery("", query):
            return next(iter(rows_of(query, scope)), UNDEFINED)
    raise TypeError(node)


def member(base, key):
    if isinstance(base, dict) and isinstance(key, str):
        return base.get(key, UNDEFINED)
    if isinstance(base, list) and is_integer(key) and 0 <= key < len(base):
        return base[int(key)]
    return UNDEFINED


def call(function, arguments):
    if UNDEFINED in arguments and function not in TAKES_UNDEFINED:
        return UNDEFINED
    return FUNCTIONS[function](*arguments)


def unary(operator, value):
    if operator == "NOT":
        return logical_not(value)
    if not is_number(value):
        return UNDEFINED
    if operator == "~":
        return ~to_int32(value)
    return double_or_integer(-value) if operator == "-" else value


# Values other than booleans count as undefined.

def logical_and(left, right):
    if left is False or right is False:
        return False
    return True if left is True and right is True else UNDEFINED


def logical_or(left, right):
    if left is True or right is True:
        return True
    return False if left is False and right is False else UNDEFINED


def logical_not(value):
    return not value if isinstance(value, bool) else UNDEFINED


def equals(left, right):
    return UNDEFINED if left is UNDEFINED or right is UNDEFINED else equal(left, right)


def ordered(left, right, outcomes):
    """Whether the comparison of two scalars of one type has one of the outcomes."""
    if type_of(left) != type_of(right) or type_of(left) in ("undefined", "array", "object"):
        return UNDEFINED
    return compare_for_sort(left, right) in outcomes


def arithmetic(compute):
    def apply(left, right):
        return double_or_integer(compute(left, right)) if is_number(left) and is_number(right) else UNDEFINED
    return apply


def remainder(left, right):
    """With the sign of the dividend."""
    if isinstance(left, int) and isinstance(right, int):
        return int(math.copysign(1, left)) * (abs(left) % abs(right))
    return math.fmod(left, right)


def concatenate(left, right):
    return left + right if isinstance(left, str) and isinstance(right, str) else UNDEFINED


BINARY = {
    "+": arithmetic(lambda left, right: left + right),
    "-": arithmetic(lambda left, right: left - right),
    "*": arithmetic(lambda left, right: left * right),
    "/": arithmetic(lambda left, right: float(left) / float(right)),
    "%": arithmetic(remainder),
    "&": arithmetic(lambda left, right: to_int32(left) & to_int32(right)),
    "|": arithmetic(lambda left, right: to_int32(left) | to_int32(right)),
    "^": arithmetic(lambda left, right: to_int32(left) ^ to_int32(right)),
    "<<": arithmetic(lambda left, right: to_int32(to_int32(left) << (to_int32(right) & 31))),
    ">>": arithmetic(lambda left, right: to_int32(left) >> (to_int32(right) & 31)),
    ">>>": arithmetic(lambda left, right: (to_int32(left) & 0xFFFFFFFF) >> (to_int32(right) & 31)),
    "||": concatenate,
    "=": equals,
    "!=": lambda left, right: logical_not(equals(left, right)),
    "<>": lambda left, right: logical_not(equals(left, right)),
    "<": lambda left, right: ordered(left, right, {-1}),
    "<=": lambda left, right: ordered(left, right, {-1, 0}),
    ">": lambda left, right: ordered(left, right, {1}),
    ">=": lambda left, right: ordered(left, right, {0, 1}),
}


def like(value, pattern):
    if not isinstance(value, str) or not isinstance(pattern, str):
        return UNDEFINED
    wild = {"%": ".*", "_": "."}
    parts = re.split(r"(%|_|\[[^\]]*\])", pattern)
    expression = "".join(wild.get(part) or (part if part.startswith("[") else re.escape(part)) for part in parts)
    return re.fullmatch(expression, value, re.DOTALL) is not None


# ── Aggregates, over the values that are defined

def sum_of(values):
    return double_or_integer(sum(values)) if all(map(is_number, values)) else UNDEFINED


def average_of(values):
    total = sum_of(values)
    return UNDEFINED if total is UNDEFINED or not values else total / len(values)


def extreme_of(values, is_max):
    if not values or any(type_of(value) in ("array", "object") for value in values):
        return UNDEFINED
    return (max if is_max else min)(values, key=sort_key)


AGGREGATES = {
    "COUNT": len,
    "COUNTIF": lambda values: sum(value is True for value in values),
    "SUM": sum_of,
    "AVG": average_of,
    "MIN": lambda values: extreme_of(values, False),
    "MAX": lambda values: extreme_of(values, True),
    "MAKELIST": list,
    "MAKESET": distinct,
}
