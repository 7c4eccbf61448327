#!/usr/bin/env python3
"""Holds reference.py against answers that are known, so that it is not the one who is wrong. Needs no server."""

import random
import unittest

import generate
import reference
from tree import (Aggregate, ArrayOf, Between, Binary, Call, Conditional, In, Like, Literal, Member, Name, ObjectOf, Query,
                  Source, Subquery, Unary, to_sql)
from values import UNDEFINED, canonical, same_sequence

PLANETS = [{"id": "1", "name": "Mars", "moons": 2, "rocky": True, "tags": ["red", "dusty"]},
           {"id": "2", "name": "Venus", "moons": 0, "rocky": True, "tags": []},
           {"id": "3", "name": "Jupiter", "moons": 95, "rocky": False},
           {"id": "4", "name": "Ceres", "moons": None}]
C = Name("c")


def of(name):
    return Member(C, name)


def ids_where(where):
    return reference.run(Query([(of("id"), None)], [Source("c")], where), PLANETS)


def value(expression):
    rows = reference.run(Query([(expression, None)], []), [])
    return rows[0] if rows else UNDEFINED


def binary(operator, left, right):
    return value(Binary(operator, Literal(left), Literal(right)))


class Reference(unittest.TestCase):
    def assertValues(self, found, expected):
        self.assertTrue(same_sequence(found, expected), f"{found} is not {expected}")

    def test_filters_pass_only_what_is_exactly_true(self):
        self.assertEqual(ids_where(of("moons")), [])
        self.assertEqual(ids_where(of("rocky")), ["1", "2"])
        self.assertEqual(ids_where(Unary("NOT", of("rocky"))), ["3"])
        self.assertEqual(ids_where(Unary("NOT", Binary("=", of("nope"), Literal(5)))), [])

    def test_comparison_is_within_a_type(self):
        self.assertEqual(ids_where(Binary("!=", of("moons"), Literal("2"))), ["1", "2", "3", "4"])
        self.assertEqual(ids_where(Binary("<", of("moons"), Literal(50))), ["1", "2"])
        self.assertEqual(ids_where(Binary("=", of("moons"), Literal(None))), ["4"])
        self.assertIs(binary("<", 1, "a"), UNDEFINED)
        self.assertIs(binary("=", 1, True), False)
        self.assertIs(binary("=", 1, 1.0), True)

    def test_lists_ranges_and_patterns(self):
        self.assertEqual(ids_where(In(of("name"), [Literal("Venus"), Literal("Ceres")], True)), ["1", "3"])
        self.assertEqual(ids_where(Between(of("moons"), Literal(1), Literal(10), True)), ["2", "3"])
        self.assertEqual(ids_where(Like(of("name"), Literal("[^MV]%"), False)), ["3", "4"])
        self.assertEqual(ids_where(Like(of("name"), Literal("_ars"), False)), ["1"])

    def test_numbers_are_int64_and_doubles(self):
        self.assertValues([binary("+", 2**53 + 1, 1)], [2**53 + 2])
        self.assertIsInstance(binary("+", 2**63 - 1, 1), float)
        self.assertValues([binary("%", -7, 3), binary("/", 5, 2), binary("|", 6, 3), binary(">>>", -1, 0)],
                          [-1, 2.5, 7, 2**32 - 1])
        self.assertEqual(value(Unary("~", Literal(130679749712577953))), -1022657953)

    def test_undefined_disappears(self):
        nothing = Literal(UNDEFINED)
        self.assertValues([value(ArrayOf([Literal(1), nothing, Literal(None)]))], [[1, None]])
        self.assertValues([value(ObjectOf([("a", nothing)]))], [{}])
        self.assertEqual(value(Conditional(nothing, Literal(1), Literal(2))), 2)
        self.assertIs(value(Binary("AND", Literal(False), nothing)), False)
        self.assertIs(value(Binary("OR", Literal(False), nothing)), UNDEFINED)

    def test_aggregates(self):
        def aggregate(name, argument):
            return reference.run(Query([(Aggregate(name, argument), None)], [Source("c")]), PLANETS)
        self.assertValues(aggregate("COUNT", of("tags")), [2])
        self.assertValues(aggregate("SUM", of("moons")), [])
        self.assertValues(aggregate("SUM", of("nope")), [0])
        self.assertValues(aggregate("AVG", of("nope")), [])
        self.assertValues(aggregate("MIN", of("moons")), [None])
        self.assertValues(aggregate("MAX", of("tags")), [])
        self.assertValues(aggregate("COUNTIF", of("rocky")), [2])

    def test_groups_order_distinct_and_slices(self):
        grouped = Query([(of("rocky"), "r"), (Aggregate("COUNT", Literal(1)), "n")], [Source("c")], group_by=[of("rocky")])
        self.assertValues(reference.run(grouped, PLANETS), [{"r": True, "n": 2}, {"r": False, "n": 1}, {"n": 1}])
        ordered = Query([(of("id"), None)], [Source("c")], order_by=[(of("moons"), True)], offset=1, limit=2)
        self.assertValues(reference.run(ordered, PLANETS), ["1", "2"])
        self.assertValues(reference.run(Query([(of("rocky"), "r")], [Source("c")], is_distinct=True), PLANETS),
                          [{"r": True}, {"r": False}, {}])

    def test_joins_and_subqueries(self):
        joined = Query([(Name("t"), None)], [Source("c"), Source("t", of("tags"), is_iteration=True)])
        self.assertValues(reference.run(joined, PLANETS), ["red", "dusty"])
        red = Query([(Name("t"), None)], [Source("t", of("tags"), is_iteration=True)], Binary("=", Name("t"), Literal("red")))
        self.assertEqual(ids_where(Subquery("EXISTS", red)), ["1"])
        counted = Query([(Aggregate("COUNT", Literal(1)), None)], [Source("t", of("tags"), is_iteration=True)])
        self.assertValues(reference.run(Query([(Subquery("", counted), None)], [Source("c")]), PLANETS), [2, 0, 0, 0])

    def test_functions(self):
        def call(name, *arguments):
            return value(Call(name, [Literal(each) for each in arguments]))
        self.assertValues([call("ARRAY_SLICE", [1, 2, 3, 4], -2, 1), call("SetUnion", [1, 2], [2, 3]), call("ROUND", 2.5),
                           call("SUBSTRING", "Orrery", 1, 3), call("ToString", {"k": [1, 0.25]}), call("IntMod", -12, 5)],
                          [[3], [1, 2, 3], 3, "rre", '{"k":[1,0.25]}', -2])
        self.assertIs(call("ABS", "1"), UNDEFINED)
        self.assertIs(call("IS_DEFINED", UNDEFINED), False)

    def test_only_necessary_parentheses_are_printed(self):
        def text(expression):
            return to_sql(Query([(expression, None)], []))
        one, two, three = Literal(1), Literal(2), Literal(3)
        self.assertEqual(text(Binary("*", Binary("+", one, two), three)), "SELECT VALUE (1 + 2) * 3")
        self.assertEqual(text(Binary("-", one, Binary("-", two, three))), "SELECT VALUE 1 - (2 - 3)")
        self.assertEqual(text(Binary("|", one, Binary("*", two, three))), "SELECT VALUE 1 | 2 * 3")
        self.assertEqual(text(Unary("NOT", Binary("=", one, two))), "SELECT VALUE NOT (1 = 2)")
        self.assertEqual(text(Unary("-", Literal(-1))), "SELECT VALUE - -1")
        self.assertEqual(text(Binary("??", one, Binary("??", two, three))), "SELECT VALUE 1 ?? 2 ?? 3")

    def test_generated_queries_are_made_again_from_their_seed(self):
        def texts():
            return [to_sql(generate.Queries(random.Random(seed), PLANETS, True).query()) for seed in range(200)]
        self.assertEqual(texts(), texts())

    def test_values_of_different_types_are_different(self):
        self.assertEqual(len({canonical(each) for each in [1, True, "1", None, UNDEFINED, [1], {"1": 1}]}), 7)
        self.assertEqual(canonical({"a": 1, "b": [2.0]}), canonical({"b": [2], "a": 1.0}))


if __name__ == "__main__":
    unittest.main()
