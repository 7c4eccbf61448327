"""Random documents, and random queries over them as trees.

What the language leaves open is not made: numbers that are not finite, sums that depend on the order of their parts,
scalar subqueries of several rows.
"""

from collections import defaultdict

from reference import evaluate
from tree import (Aggregate, ArrayOf, Between, Binary, Call, Conditional, Element, In, Like, Literal, Member, Name, ObjectOf,
                  Parameter, Query, Source, Subquery, Unary)
from values import UNDEFINED

STRINGS = ["", "a", "ab", "abc", "b", "ba", "Ab", "z", "Zoo", "é", "Ж 1", "a b", " a ", "12", "true", "[1]",
           "x%y", "_", "1.5", "bab"]
INTEGERS = [0, 1, 2, 3, 4, 5, -1, -2, 10, 100]
DOUBLES = [0.5, 1.0, 1.5, 2.25, -0.25, 3.75, -2.0, 1e10]
LARGE = [2**53, 2**53 + 1, 2**53 - 1, -2**53 - 1, 2**63 - 1, -2**62, 1e18, 1e300, -1e300, 2**62 + 1]
# Longer than what an index keeps of a string.
LONG = ["L" * 1023 + end for end in ("", "a", "ab", "ac", "é")]
GROUPS = ["x", "y", 1, 1.0, 2, None, True, [1], {"p": 1}]
ORDERED_PATHS = [("n",), ("i",), ("s",), ("t",), ("o", "p"), ("big",), ("g",), ("id",), ("odd name",), ("_ts",)]
NUMBER_PATHS = [("n",), ("i",), ("o", "p"), ("o", "r", "n")]
STRING_PATHS = [("s",), ("o", "q"), ("id",), ("odd name",)]
ANY_PATHS = [*NUMBER_PATHS, *STRING_PATHS, ("t",), ("b",), ("a",), ("k",), ("o",), ("big",), ("g",), ("o", "r"), ("nothing",)]
COMPARISONS = ["=", "=", "=", "!=", "<>", "<", "<=", ">", ">="]
# The two keys of the composite index that some containers have.
COMPOSITE = [("g",), ("n",)]


# ── Documents

class Documents:
    def __init__(self, chance):
        self.chance = chance

    def scalar(self):
        pick = self.chance.choice
        return pick([None, True, False, pick(INTEGERS), pick(DOUBLES), pick(STRINGS), pick(STRINGS)])

    def anything(self, depth=2):
        roll = self.chance.random()
        if depth == 0 or roll < 0.7:
            return self.scalar()
        if roll < 0.85:
            return [self.anything(depth - 1) for _ in range(self.chance.randrange(4))]
        return {name: self.anything(depth - 1) for name in self.chance.sample(["p", "q", "r", "n"], self.chance.randrange(4))}

    def members(self):
        chance, pick = self.chance, self.chance.choice
        made = {
            "n": pick([pick(INTEGERS), pick(DOUBLES)]),
            "i": pick(INTEGERS[:6]),
            "s": pick(STRINGS) if chance.random() < 0.95 else pick(LONG),
            "t": self.anything(),
            "b": pick([True, False]),
            "a": [pick([pick(INTEGERS), pick(DOUBLES), pick(STRINGS)]) for _ in range(chance.randrange(4))],
            "k": [self.element() for _ in range(chance.randrange(4))],
            "o": {"p": pick(INTEGERS), "q": pick(STRINGS), "r": {"n": pick(DOUBLES)}},
            "big": pick(LARGE),
            "g": pick(GROUPS),
            "odd name": pick(STRINGS),
        }
        # Each may be missing, and now and then it is of another type.
        return {name: self.anything() if chance.random() < 0.04 else value
                for name, value in made.items() if chance.random() < 0.85}

    def element(self):
        pick = self.chance.choice
        made = {"n": pick(INTEGERS), "s": pick(STRINGS), "a": [pick(INTEGERS) for _ in range(self.chance.randrange(3))]}
        return {name: value for name, value in made.items() if self.chance.random() < 0.85}


# ── Queries

class Queries:
    """Makes one query over these documents. `parameters` are those that it names."""

    def __init__(self, chance, documents, is_composite):
        self.chance, self.documents, self.is_composite = chance, documents, is_composite
        self.parameters = []
        self.aliases = 0

    # Sources

    def fresh(self):
        self.aliases += 1
        return f"x{self.aliases}"

    def query(self):
        chance = self.chance
        shape = chance.choices(["rows", "ordered", "aggregate", "group", "distinct"], [40, 25, 12, 12, 11])[0]
        sources, paths = self.sources(is_root_needed=shape == "ordered")
        query = Query([], sources)
        if chance.random() < 0.75:
            query.where = self.condition(paths, chance.choice([0, 0, 1, 1, 2, 3]))
        if shape == "aggregate":
            self.aggregates(query, paths)
        elif shape == "group":
            self.groups(query, paths)
        else:
            self.rows(query, paths, allows_star=shape != "distinct")
            query.is_distinct = shape == "distinct"
        if shape == "ordered":
            self.order(query)
        if shape in ("rows", "ordered", "distinct") and chance.random() < 0.35:
            self.slice(query)
        return query

    def sources(self, is_root_needed):
        """FROM and its JOINs, and the paths that can be read of them."""
        chance = self.chance
        roll = chance.random()
        if not is_root_needed and roll < 0.06:
            return [Source("k", Member(Name("c"), "k"), is_iteration=True)], element_paths(Name("k"))
        if not is_root_needed and roll < 0.1:
            return [Source("o", Member(Name("c"), "o"))], [Member(Name("o"), "p"), Member(Name("o"), "q")]
        sources, paths = [Source("c")], [path_of(Name("c"), steps) for steps in ANY_PATHS]
        while chance.random() < 0.18 and len(sources) < 4:
            alias = self.fresh()
            sources.append(self.joined(alias))
            paths = paths + element_paths(Name(alias)) * 2
        return sources, paths

    def joined(self, alias):
        chance = self.chance
        if chance.random() < 0.75:
            return Source(alias, Member(Name("c"), chance.choice(["k", "k", "a"])), is_iteration=True)
        inner = self.fresh()
        query = Query([(Name(inner), None)], [Source(inner, Member(Name("c"), "k"), is_iteration=True)])
        query.where = self.condition(element_paths(Name(inner)), 1)
        query.is_distinct = chance.random() < 0.2
        return Source(alias, query)

    # Clauses

    def rows(self, query, paths, allows_star):
        chance = self.chance
        roll = chance.random()
        if allows_star and roll < 0.2 and len(query.sources) == 1:
            return
        if roll < 0.5:
            query.select = [(self.anything(paths, 2), None)]
        else:
            query.select = [(self.anything(paths, 2), f"m{n}") for n in range(chance.randrange(1, 4))]

    def order(self, query):
        root = Name("c")
        if self.is_composite and self.chance.random() < 0.5:
            turned = self.chance.random() < 0.5  # The index goes g ascending, n descending; all directions may be turned.
            query.order_by = [(path_of(root, COMPOSITE[0]), turned), (path_of(root, COMPOSITE[1]), not turned)]
        else:
            path = self.chance.choice(ORDERED_PATHS)
            query.order_by = [(path_of(root, path), self.chance.random() < 0.5)]

    def slice(self, query):
        if self.chance.random() < 0.5:
            query.top = self.chance.choice([0, 1, 2, 3, 7, 50])
        else:
            query.offset, query.limit = self.chance.choice([0, 0, 1, 2, 5, 30]), self.chance.choice([0, 1, 2, 4, 50])

    def aggregate(self, paths):
        chance = self.chance
        function = chance.choice(["COUNT", "COUNT", "COUNTIF", "SUM", "SUM", "AVG", "MIN", "MAX"])
        if function == "COUNT":
            return Aggregate(function, Literal(1) if chance.random() < 0.5 else self.path(paths))
        if function == "COUNTIF":
            return Aggregate(function, self.condition(paths, 1))
        if function in ("MIN", "MAX"):
            return Aggregate(function, self.path(paths))
        return Aggregate(function, self.summand(paths))

    def summand(self, paths):
        """Numbers whose sum is exact in any order."""
        path = self.chance.choice([path for path in paths if step_name(path) in ("n", "i", "p")] or [Literal(1)])
        roll = self.chance.random()
        if roll < 0.25:
            return Conditional(Call("IS_NUMBER", [path]), path, Literal(UNDEFINED))
        return Binary("*", path, Literal(2)) if roll < 0.35 else path

    def aggregates(self, query, paths):
        if self.chance.random() < 0.6:
            query.select = [(self.aggregate(paths), None)]
        else:
            query.select = [(self.aggregate(paths), f"m{n}") for n in range(self.chance.randrange(1, 4))]

    def groups(self, query, paths):
        chance = self.chance
        keyed = [path for path in paths if step_name(path) in ("g", "i", "b", "s", "n")]
        keys = chance.sample(keyed, min(len(keyed), chance.choice([1, 1, 2]))) if keyed else [self.path(paths)]
        keys = [Call("UPPER", [key]) if chance.random() < 0.1 else key for key in keys]
        query.group_by = list({repr(key): key for key in keys}.values())
        if chance.random() < 0.25:
            query.select = [(chance.choice([*query.group_by, self.aggregate(paths)]), None)]
            return
        items = [key for key in query.group_by if chance.random() < 0.8]
        items += [self.aggregate(paths) for _ in range(chance.randrange(0 if items else 1, 3))]
        query.select = [(item, f"m{n}") for n, item in enumerate(items)]

    # Expressions

    def path(self, paths):
        path = self.chance.choice(paths)
        if step_name(path) == "a" and self.chance.random() < 0.4:
            return Element(path, Literal(self.chance.choice([0, 1, 2, 9])))
        return path

    def constant(self, value):
        """A literal, or a parameter."""
        if self.chance.random() < 0.12 and value is not UNDEFINED:
            name = f"@p{len(self.parameters)}"
            self.parameters.append((name, value))
            return Parameter(name, value)
        return Literal(value)

    def value_for(self, path):
        """A constant that the path may well have."""
        pick, name = self.chance.choice, step_name(path)
        if self.documents and name and self.chance.random() < 0.5:
            value = evaluate(path, defaultdict(lambda: pick(self.documents)))
            if value is not UNDEFINED:
                return value
        pools = {"n": INTEGERS + DOUBLES, "i": INTEGERS[:6], "p": INTEGERS, "s": STRINGS, "q": STRINGS, "big": LARGE,
                 "odd name": STRINGS, "b": [True, False], "g": GROUPS, "id": [f"d{n}" for n in range(30)]}
        if name not in pools or self.chance.random() < 0.08:
            return pick([None, True, False, pick(INTEGERS), pick(DOUBLES), pick(STRINGS), [pick(INTEGERS)],
                         {"p": pick(INTEGERS)}])
        return pick(pools[name])

    def condition(self, paths, depth):
        chance = self.chance
        if depth > 0 and chance.random() < 0.5:
            roll = chance.random()
            if roll < 0.45:
                return Binary("AND", self.condition(paths, depth - 1), self.condition(paths, depth - 1))
            if roll < 0.75:
                return Binary("OR", self.condition(paths, depth - 1), self.condition(paths, depth - 1))
            if roll < 0.9:
                return Unary("NOT", self.condition(paths, depth - 1))
            return Conditional(*(self.condition(paths, depth - 1) for _ in range(3)))
        kinds = [self.comparison, self.comparison, self.comparison, self.in_list, self.between, self.type_check, self.text_test,
                 self.in_array, self.exists, self.bare, self.computed, self.large]
        return chance.choice(kinds)(paths)

    def comparison(self, paths):
        path = self.path(paths)
        sides = [path, self.constant(self.value_for(path))]
        if self.chance.random() < 0.15:
            sides.reverse()
        return Binary(self.chance.choice(COMPARISONS), *sides)

    def in_list(self, paths):
        path = self.path(paths)
        choices = [self.constant(self.value_for(path)) for _ in range(self.chance.randrange(1, 5))]
        return In(path, choices, self.chance.random() < 0.25)

    def between(self, paths):
        path = self.path(paths)
        return Between(path, self.constant(self.value_for(path)), self.constant(self.value_for(path)), self.chance.random() < 0.2)

    def type_check(self, paths):
        function = self.chance.choice(["IS_ARRAY", "IS_BOOL", "IS_DEFINED", "IS_DEFINED", "IS_INTEGER", "IS_NULL", "IS_NUMBER",
                                       "IS_OBJECT", "IS_PRIMITIVE", "IS_STRING", "IS_FINITE_NUMBER"])
        return Call(function, [self.path(paths)])

    def text_test(self, paths):
        chance = self.chance
        path = chance.choice([path for path in paths if step_name(path) in ("s", "q", "id", "odd name")] or paths)
        if chance.random() < 0.4:
            pattern = chance.choice(["a%", "%a", "%b%", "a_", "_", "%", "[ab]%", "[^ab]%", "ab", "", "d1%", "Z%o"])
            return Like(path, self.constant(pattern), chance.random() < 0.2)
        arguments = [path, self.constant(chance.choice(["", "a", "ab", "A", "d1", "é", "z"]))]
        if chance.random() < 0.3:
            arguments.append(Literal(chance.random() < 0.7))
        return Call(chance.choice(["CONTAINS", "STARTSWITH", "STARTSWITH", "ENDSWITH", "STRINGEQUALS"]), arguments)

    def in_array(self, paths):
        chance = self.chance
        arrays = [path for path in paths if step_name(path) in ("a", "k", "t")]
        if not arrays or chance.random() < 0.2:
            return Call("ARRAY_CONTAINS", [Literal([chance.choice(INTEGERS), "a", None]), self.path(paths)])
        path = chance.choice(arrays)
        if step_name(path) == "k":
            wanted = {chance.choice(["n", "s"]): chance.choice([*INTEGERS, *STRINGS])}
            return Call("ARRAY_CONTAINS", [path, self.constant(wanted), Literal(chance.random() < 0.8)])
        return Call("ARRAY_CONTAINS", [path, self.constant(chance.choice([*INTEGERS, *STRINGS, *DOUBLES]))])

    def exists(self, paths):
        alias = self.fresh()
        collection = self.collection(paths)
        query = Query([(Name(alias), None)], [Source(alias, collection, is_iteration=True)])
        if self.chance.random() < 0.8:
            query.where = self.condition([Name(alias), *element_paths(Name(alias)), *paths[:2]], 1)
        return Subquery("EXISTS", query)

    def bare(self, paths):
        return self.path([path for path in paths if step_name(path) in ("b", "t")] or paths)

    def computed(self, paths):
        return Binary(self.chance.choice(COMPARISONS), self.number(paths, 2), self.number(paths, 1))

    def large(self, paths):
        """Sums at the ends of int64. Their products would not be finite."""
        operand = self.chance.choice([path for path in paths if step_name(path) == "big"] or [Literal(self.chance.choice(LARGE))])
        moved = Binary(self.chance.choice("+-"), operand, Literal(self.chance.choice(INTEGERS)))
        return Binary(self.chance.choice(COMPARISONS), moved, self.constant(self.chance.choice(LARGE)))

    def collection(self, paths):
        arrays = [path for path in paths if step_name(path) in ("a", "k")]
        return self.chance.choice(arrays) if arrays else paths[0]

    def anything(self, paths, depth):
        chance = self.chance
        roll = chance.random()
        if depth == 0 or roll < 0.4:
            return self.path(paths)
        if roll < 0.48:
            return self.number(paths, depth)
        if roll < 0.56:
            return self.string(paths, depth)
        if roll < 0.62:
            return self.condition(paths, 1)
        if roll < 0.68:
            return ArrayOf([self.anything(paths, depth - 1) for _ in range(chance.randrange(3))])
        if roll < 0.74:
            return ObjectOf([(name, self.anything(paths, depth - 1)) for name in chance.sample("uvw", chance.randrange(3))])
        if roll < 0.8:
            return Binary("??", self.path(paths), self.anything(paths, depth - 1))
        if roll < 0.85:
            return Conditional(self.condition(paths, 1), self.anything(paths, depth - 1), self.anything(paths, depth - 1))
        if roll < 0.92:
            return self.of_array(paths)
        if roll < 0.97:
            return self.subquery(paths)
        return self.constant(chance.choice([UNDEFINED, None, *STRINGS, *LARGE]) if chance.random() < 0.7 else [1, {"a": None}])

    def subquery(self, paths):
        chance, alias = self.chance, self.fresh()
        query = Query([], [Source(alias, self.collection(paths), is_iteration=True)])
        inner = [Name(alias), *element_paths(Name(alias))]
        if chance.random() < 0.6:
            query.where = self.condition(inner, 1)
        roll = chance.random()
        if roll < 0.4:
            query.select = [(self.aggregate(inner), None)]
            return Subquery("", query)
        if roll < 0.5:
            query.select, query.top = [(chance.choice(inner), None)], 1
            return Subquery("", query)
        query.is_distinct = chance.random() < 0.3
        query.select = [(self.anything(inner, 1), None if chance.random() < 0.7 else "m")]
        if chance.random() < 0.2:
            self.slice(query)
        return Subquery("ARRAY", query)

    def number(self, paths, depth):
        chance = self.chance
        numeric = [path for path in paths if step_name(path) in ("n", "i", "p")] or paths
        if depth == 0 or chance.random() < 0.25:
            path = chance.choice([*numeric, *numeric, *(path for path in paths if step_name(path) != "big")])
            return path if chance.random() < 0.7 else Literal(chance.choice([*INTEGERS, *DOUBLES]))
        roll = chance.random()
        if roll < 0.45:
            return Binary(chance.choice("+-*"), self.number(paths, depth - 1), self.number(paths, depth - 1))
        if roll < 0.55:
            return Binary(chance.choice("/%"), self.number(paths, depth - 1), Literal(chance.choice([2, 4, 0.5, 3, -2])))
        if roll < 0.68:
            operator = chance.choice(["&", "|", "^", "<<", ">>", ">>>"])
            return Binary(operator, self.whole(paths, depth - 1), self.whole(paths, depth - 1))
        if roll < 0.75:
            return Unary(chance.choice("-+"), self.number(paths, depth - 1))
        if roll < 0.85:
            return Call(chance.choice(["ABS", "CEILING", "FLOOR", "TRUNC", "ROUND", "SIGN"]), [self.number(paths, depth - 1)])
        if roll < 0.93:
            function = chance.choice(["IntAdd", "IntSub", "IntMul", "IntDiv", "IntMod", "IntBitAnd", "IntBitOr", "IntBitXor"])
            return Call(function, [self.number(paths, depth - 1), self.number(paths, depth - 1)])
        return Call(chance.choice(["LENGTH", "ARRAY_LENGTH"]), [self.path(paths)])

    def whole(self, paths, depth):
        """A number for bit operators. What they do with numbers of 1e300 nobody has said."""
        number = self.number(paths, depth)
        return Unary("~", number) if self.chance.random() < 0.1 and depth else number

    def string(self, paths, depth):
        chance = self.chance
        if depth == 0 or chance.random() < 0.3:
            path = chance.choice([path for path in paths if step_name(path) in ("s", "q", "id")] or paths)
            return path if chance.random() < 0.75 else Literal(chance.choice(STRINGS))
        inner = self.string(paths, depth - 1)
        roll = chance.random()
        if roll < 0.15:
            return Binary("||", inner, self.string(paths, depth - 1))
        if roll < 0.45:
            return Call(chance.choice(["LOWER", "UPPER", "REVERSE", "TRIM", "LTRIM", "RTRIM", "StringToNumber", "StringToBoolean",
                                       "StringToArray", "LENGTH"]), [inner])
        count = Literal(chance.choice([0, 1, 2, 3, 50]))
        if roll < 0.55:
            return Call(chance.choice(["LEFT", "RIGHT"]), [inner, count])
        if roll < 0.65:
            return Call("SUBSTRING", [inner, Literal(chance.choice([0, 1, 2])), count])
        if roll < 0.75:
            return Call("CONCAT", [inner, self.string(paths, depth - 1), Literal("-")])
        mark = Literal(chance.choice(["a", "b", "ab", " "]))
        if roll < 0.85:
            return Call(chance.choice(["SUBSTRINGBEFORE", "SUBSTRINGAFTER", "LASTSUBSTRINGBEFORE", "LASTSUBSTRINGAFTER",
                                       "StringSplit", "INDEX_OF"]), [inner, mark])
        if roll < 0.92:
            return Call("REPLACE", [inner, mark, Literal(chance.choice(["", "X", "ab"]))])
        return Call("ToString", [self.path(paths)])

    def of_array(self, paths):
        chance = self.chance
        array = chance.choice([path for path in paths if step_name(path) in ("a", "k", "t")] or [self.path(paths)])
        other = Literal([chance.choice(INTEGERS), chance.choice(STRINGS), chance.choice(INTEGERS)])
        roll = chance.random()
        if roll < 0.3:
            return Call(chance.choice(["SetIntersect", "SetUnion", "SetDifference", "SetEqual", "ARRAY_CONCAT"]), [array, other])
        if roll < 0.5:
            # Never of an empty array, of which nobody has said what its sum is.
            filled = Call("ARRAY_CONCAT", [array, Literal([chance.choice(INTEGERS)])])
            return Call(chance.choice(["ARRAY_SUM", "ARRAY_AVG", "ARRAY_MEDIAN", "ARRAY_MIN", "ARRAY_MAX"]), [filled])
        if roll < 0.65:
            arguments = [array, Literal(chance.choice([0, 1, 2, -1, -5]))]
            return Call("ARRAY_SLICE", arguments + [Literal(chance.choice([0, 1, 9]))] * (chance.random() < 0.5))
        if roll < 0.75:
            return Call("CHOOSE", [Literal(chance.choice([0, 1, 2, 3])), self.path(paths), self.path(paths)])
        if roll < 0.85:
            return Call("IIF", [self.condition(paths, 0), self.path(paths), self.path(paths)])
        if roll < 0.93:
            return Call("ObjectToArray", [path_of(Name("c"), ("o",)) if paths[0] == path_of(Name("c"), ("n",)) else array])
        return Call("ARRAY_LENGTH", [array])


def path_of(base, steps):
    for step in steps:
        base = Member(base, step)
    return base


def element_paths(element):
    return [path_of(element, (name,)) for name in ("n", "s", "a")]


def step_name(node):
    """The last name of a path; nothing of another expression."""
    return node.name if isinstance(node, Member) else None
