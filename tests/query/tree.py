"""Queries as trees: what generate.py makes, to_sql prints and reference.py evaluates."""

import dataclasses
import json

from values import UNDEFINED


@dataclasses.dataclass
class Literal:
    value: object


@dataclasses.dataclass
class Parameter:
    name: str
    value: object


@dataclasses.dataclass
class Name:
    """The alias of a source."""
    alias: str


@dataclasses.dataclass
class Member:
    base: object
    name: str


@dataclasses.dataclass
class Element:
    base: object
    index: object


@dataclasses.dataclass
class Unary:
    operator: str
    operand: object


@dataclasses.dataclass
class Binary:
    """Arithmetic, bits, ||, comparison, AND, OR, ??."""
    operator: str
    left: object
    right: object


@dataclasses.dataclass
class Conditional:
    condition: object
    then: object
    otherwise: object


@dataclasses.dataclass
class In:
    operand: object
    choices: list
    is_negated: bool


@dataclasses.dataclass
class Between:
    operand: object
    low: object
    high: object
    is_negated: bool


@dataclasses.dataclass
class Like:
    operand: object
    pattern: object
    is_negated: bool


@dataclasses.dataclass
class ArrayOf:
    elements: list


@dataclasses.dataclass
class ObjectOf:
    members: list  # of (name, expression)


@dataclasses.dataclass
class Call:
    function: str
    arguments: list


@dataclasses.dataclass
class Aggregate:
    function: str
    argument: object


@dataclasses.dataclass
class Subquery:
    kind: str  # "EXISTS", "ARRAY", or "" for its one row
    query: object


@dataclasses.dataclass
class Source:
    """One of FROM or JOIN. Of the first one without a path the documents themselves."""
    alias: str
    collection: object = None  # an expression, or a Query; None: the container
    is_iteration: bool = False


@dataclasses.dataclass
class Query:
    select: list  # of (expression, alias); the alias of VALUE is None, and it is alone; empty: *
    sources: list
    where: object = None
    group_by: list = dataclasses.field(default_factory=list)
    order_by: list = dataclasses.field(default_factory=list)  # of (expression, is_descending)
    is_distinct: bool = False
    top: int | None = None
    offset: int | None = None
    limit: int | None = None

    @property
    def is_value(self):
        return len(self.select) == 1 and self.select[0][1] is None

    @property
    def is_grouped(self):
        return bool(self.group_by) or any(has_aggregate(expression) for expression, _ in self.select)


def children(node):
    """The expressions right below one; not those of its subqueries."""
    match node:
        case Member(base, _):
            return [base]
        case Element(base, index):
            return [base, index]
        case Unary(_, operand):
            return [operand]
        case Binary(_, left, right):
            return [left, right]
        case Conditional(condition, then, otherwise):
            return [condition, then, otherwise]
        case In(operand, choices, _):
            return [operand, *choices]
        case Between(operand, low, high, _):
            return [operand, low, high]
        case Like(operand, pattern, _):
            return [operand, pattern]
        case ArrayOf(elements):
            return elements
        case ObjectOf(members):
            return [value for _, value in members]
        case Call(_, arguments):
            return arguments
        case Aggregate(_, argument):
            return [argument]
    return []


def has_aggregate(node):
    return isinstance(node, Aggregate) or any(has_aggregate(child) for child in children(node))


# ── Printing

# From tight to loose. A part that binds looser than its place admits stands in parentheses.
PRIMARY, POSTFIX, UNARY, PRODUCT, SUM, CONCAT, COMPARISON, PREDICATE, AND, OR, COALESCE, CONDITIONAL = range(12)
LEVELS = ({operator: PRODUCT for operator in "* / %".split()} | {operator: SUM for operator in "+ - & | ^".split()} |
          {operator: COMPARISON for operator in "= != <> < <= > >= << >> >>>".split()} |
          {"||": CONCAT, "AND": AND, "OR": OR, "??": COALESCE})
PLAIN_NAMES = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")


def to_sql(query, spare=True):
    """The text of a query; with `spare` no parentheses but the necessary ones, else around everything."""
    return Printer(spare).query(query)


class Printer:
    def __init__(self, spare):
        self.spare = spare

    def query(self, query):
        text = "SELECT " + ("DISTINCT " if query.is_distinct else "")
        text += f"TOP {query.top} " if query.top is not None else ""
        text += self.selection(query)
        for index, source in enumerate(query.sources):
            text += (" JOIN " if index else " FROM ") + self.source(source)
        if query.where is not None:
            text += " WHERE " + self.expression(query.where)
        if query.group_by:
            text += " GROUP BY " + ", ".join(self.expression(each) for each in query.group_by)
        if query.order_by:
            items = (self.expression(each) + (" DESC" if is_descending else "") for each, is_descending in query.order_by)
            text += " ORDER BY " + ", ".join(items)
        if query.offset is not None:
            text += f" OFFSET {query.offset} LIMIT {query.limit}"
        return text

    def selection(self, query):
        if not query.select:
            return "*"
        if query.is_value:
            return "VALUE " + self.expression(query.select[0][0])
        return ", ".join(f"{self.expression(expression)} AS {alias}" for expression, alias in query.select)

    def source(self, source):
        if source.collection is None:
            return source.alias
        if isinstance(source.collection, Query):
            return f"({self.query(source.collection)}) AS {source.alias}"
        collection = self.expression(source.collection)
        return f"{source.alias} IN {collection}" if source.is_iteration else f"{collection} AS {source.alias}"

    def expression(self, node, loosest=CONDITIONAL):
        level, text = self.unwrapped(node)
        if level > loosest or (not self.spare and level >= UNARY and loosest < CONDITIONAL):
            return f"({text})"
        return text

    def unwrapped(self, node):
        """How tight an expression binds, and its text."""
        part = self.expression
        match node:
            case Literal(value):
                text = literal_text(value)
                return (UNARY if text.startswith("-") else PRIMARY), text
            case Parameter(name, _):
                return PRIMARY, name
            case Name(alias):
                return PRIMARY, alias
            case Member(base, name):
                step = f".{name}" if set(name) <= PLAIN_NAMES else f"[{json.dumps(name, ensure_ascii=False)}]"
                return POSTFIX, part(base, POSTFIX) + step
            case Element(base, index):
                return POSTFIX, f"{part(base, POSTFIX)}[{part(index)}]"
            case Unary(operator, operand):
                text = part(operand, UNARY)
                # Two minus signs in a row would begin a comment.
                space = " " if operator == "NOT" or text[0] in "-+" else ""
                return UNARY, operator + space + text
            case Binary(operator, left, right):
                level = LEVELS[operator]
                sides = (level - 1, level) if operator == "??" else (level, level - 1)
                return level, f"{part(left, sides[0])} {operator} {part(right, sides[1])}"
            case Conditional(condition, then, otherwise):
                return CONDITIONAL, f"{part(condition, COALESCE)} ? {part(then)} : {part(otherwise)}"
            case In(operand, choices, is_negated):
                listed = ", ".join(part(each) for each in choices)
                return PREDICATE, f"{part(operand, COMPARISON)}{' NOT' * is_negated} IN ({listed})"
            case Between(operand, low, high, is_negated):
                bounds = f"{part(low, COMPARISON)} AND {part(high, COMPARISON)}"
                return PREDICATE, f"{part(operand, COMPARISON)}{' NOT' * is_negated} BETWEEN {bounds}"
            case Like(operand, pattern, is_negated):
                return PREDICATE, f"{part(operand, COMPARISON)}{' NOT' * is_negated} LIKE {part(pattern, COMPARISON)}"
            case ArrayOf(elements):
                return PRIMARY, "[" + ", ".join(part(each) for each in elements) + "]"
            case ObjectOf(members):
                return PRIMARY, "{" + ", ".join(f"{json.dumps(name)}: {part(value)}" for name, value in members) + "}"
            case Call(function, arguments):
                return PRIMARY, f"{function}({', '.join(part(each) for each in arguments)})"
            case Aggregate(function, argument):
                return PRIMARY, f"{function}({part(argument)})"
            case Subquery(kind, query):
                return PRIMARY, f"{kind}({self.query(query)})"
        raise TypeError(node)


def literal_text(value):
    if value is UNDEFINED:
        return "undefined"
    if isinstance(value, str) and "'" not in value and "\\" not in value and len(value) % 2:
        return f"'{value}'"  # Both kinds of quotes occur.
    return json.dumps(value, ensure_ascii=False)
