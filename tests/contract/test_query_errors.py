"""Queries that are refused: the code, the place and the words, as clients know them."""
import json

import pytest

import queries

LIMIT_TEXT = 524_288


@pytest.fixture(scope="module")
def shared(module_client):
    container = module_client.create_database().create_container()
    container.create({"id": "x", "pk": "a", "zero": 0, "list": [1, 2], "deep": {"a": 1}}).expect(201)
    return container


# ── Errors with a place ─────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("text, place, message", [
    ("SELECT * FROM c WHERE FROM", "FROM", "incorrect syntax near 'FROM'"), ("SELECT FROM c", "FROM", "incorrect syntax near 'FROM'"),
    ("SELECT * FROM c ORDER c.a", "c.a", "near"), ("DROP TABLE c", "DROP", "incorrect syntax near 'DROP'"),
    ("SELECT * FROM c WHERE c.a == 1", None, "near"), ("SELECT * FROM c /* no */", None, "near"),
    ("SELECT * FROM c WHERE c.order = 1", "order", "incorrect syntax near 'order'"), ("SELECT *, 1 FROM c", ",", "incorrect syntax near ','"),
    ("SELECT * FROM c)", ")", "incorrect syntax near ')'")])
def test_sc1001_unexpected_tokens(shared, text, place, message):
    start, end, code, said = queries.error_of(queries.send(shared, text))
    assert code == "SC1001" and message in said and said.startswith("Syntax error, ")
    assert 0 <= start < end <= len(text)
    if place:
        assert start == text.rindex(place), text[start:end]


def test_sc1001_is_placed_in_characters(shared):
    text = "SELECT 'äöü日本' FROM c WHERE FROM"
    start, end, code, _ = queries.error_of(queries.send(shared, text))
    assert (text[start:end], start, code) == ("FROM", text.rindex("FROM"), "SC1001")


@pytest.mark.parametrize("text", ["", " ", "\n", "SELECT", "SELECT * FROM", "SELECT * FROM c WHERE", "SELECT * FROM c WHERE c.a = ", "SELECT (1", "SELECT * FROM c ORDER BY", "-- only a comment"])
def test_sc1002_ends_too_early(shared, text):
    start, end, code, said = queries.error_of(queries.send(shared, text))
    assert (code, said) == ("SC1002", "Syntax error, unexpected end-of-file.")
    assert 0 <= start <= end <= len(text)
    if text == "":
        assert (start, end) == (0, 0)


@pytest.mark.parametrize("text, token", [("SELECT 1;", ";"), ("SELECT 1 ; ", ";"), ("SELECT # FROM c", "#"), ("SELECT `a` FROM c", "`"), ("SELECT $ FROM c", "$")])
def test_sc1010_illegal_characters(shared, text, token):
    start, end, code, said = queries.error_of(queries.send(shared, text))
    assert (code, text[start:end]) == ("SC1010", token) and said == f"Syntax error, invalid token '{token}'."


@pytest.mark.parametrize("text, place, code, message", [
    ("SELECT x.a FROM c", "x", "SC2001", "Identifier 'x' could not be resolved."),
    ("SELECT * FROM c WHERE c.a = 1 AND d.b = 2", "d", "SC2001", "Identifier 'd' could not be resolved."),
    ("SELECT * FROM c JOIN e IN f.list", "f", "SC2001", "Identifier 'f' could not be resolved."),
    ("SELECT NOPE(c.a) FROM c", "NOPE", "SC2005", "'NOPE' is not a recognized built-in function name."),
    ("SELECT {a: 1, a: 2} FROM c", None, "SC2022", "Object creation error, property name 'a' specified more than once."),
    ("SELECT {'a': 1, \"a\": 2} FROM c", None, "SC2022", "Object creation error, property name 'a' specified more than once."),
    ("SELECT c.id, c.zero AS id FROM c", None, "SC2022", "property name 'id' specified more than once."),
    ("SELECT * FROM c GROUP BY c.a", None, "SC2041", "'SELECT *' is not allowed with GROUP BY."),
    ("SELECT ABS() FROM c", None, "SC2050", "The ABS function requires 1 argument(s)."),
    ("SELECT ABS(1, 2) FROM c", None, "SC2050", "The ABS function requires 1 argument(s)."),
    ("SELECT CONTAINS(c.a) FROM c", None, "SC2050", "The CONTAINS function requires 2 to 3 argument(s)."),
    ("SELECT TOP 1.5 * FROM c", None, "SC2060", ""), ("SELECT TOP 4294967296 * FROM c", None, "SC2060", ""),
    ("SELECT * FROM c OFFSET 0 LIMIT 4294967296", None, "SC2061", "The LIMIT count value exceeds the maximum allowed value."),
    ("SELECT * FROM c OFFSET 4294967296 LIMIT 1", None, "SC2062", "The OFFSET count value exceeds the maximum allowed value."),
    ("SELECT VALUE SUM(COUNT(c.a)) FROM c", None, "SC2101", ""), ("SELECT * FROM c WHERE COUNT(1) > 1", None, "SC2101", ""),
    ("SELECT c.x, COUNT(1) FROM c", "c.x", "SC2102", "Property reference 'c.x' is invalid in the select list because it is not contained in either "
                                                   "an aggregate function or the GROUP BY clause."),
    ("SELECT c.x FROM c GROUP BY c.y", "c.x", "SC2102", "Property reference 'c.x' is invalid in the select list")])
def test_errors_after_parsing(shared, text, place, code, message):
    start, end, found, said = queries.error_of(queries.send(shared, text))
    assert found == code and message in said
    assert 0 <= start < end <= len(text)
    if place:
        assert text[start:end].startswith(place)


@pytest.mark.parametrize("expression", ["c.a + 1", "LOWER(c.a)", "1", "{a: c.a}", "c.a > 1"])
def test_2206_order_by_an_expression(shared, expression):
    response = queries.send(shared, f"SELECT * FROM c ORDER BY {expression}").expect(400)
    _, _, code, said = queries.error_of(response)
    assert str(code) == "2206"
    assert said == "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path."


# ── Errors without one ──────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("text, message", [
    ("SELECT * FROM c ORDER BY c.a, c.b", "The order by query does not have a corresponding composite index that it can be served from."),
    ("SELECT c.id FROM c JOIN e IN c.list ORDER BY e", "Order-by over correlated collections is not supported.")])
def test_orders_that_no_index_serves(shared, text, message):
    queries.send(shared, text).expect(400, 0, message)
    queries.send(shared, text, headers={"x-ms-documentdb-partitionkey": '["a"]'}).expect(400, 0, message)


def test_text_of_the_longest_size_and_one_character_more(shared):
    def text_of(length):
        start = "SELECT VALUE '"
        return start + "x" * (length - len(start) - 1) + "'"

    assert len(queries.rows(shared, text_of(LIMIT_TEXT))[0]) > 500_000
    message = "The SQL query text exceeded the maximum limit of 524288 characters."
    queries.send(shared, text_of(LIMIT_TEXT + 1)).expect(400, 0, message)
    queries.plan(shared, text_of(LIMIT_TEXT + 1)).expect(400, 0, message)
    assert len(queries.rows(shared, text_of(LIMIT_TEXT - 10).replace("x", "ä"))[0]) > 500_000, "characters, not bytes"


@pytest.mark.parametrize("text", [
    "SELECT VALUE 1e308 * 10", "SELECT VALUE -1e308 * 10 FROM c", "SELECT VALUE NaN", "SELECT VALUE Infinity", "SELECT {a: [Infinity]} FROM c",
    "SELECT VALUE POWER(10, 400) FROM c", "SELECT VALUE SUM(x) FROM x IN (SELECT VALUE [1e308, 1e308])", "SELECT VALUE SQRT(-1)"])
def test_numbers_that_json_cannot_hold_are_4001(shared, text):
    response = queries.send(shared, text).expect(400, 4001)
    assert response.json["code"] == 4001 and response["x-ms-substatus"] == "4001"
    assert response.message.startswith("The response content contains a numeric value that cannot be represented in JSON (e.g. Infinity and NaN).")


def test_such_numbers_may_be_used_on_the_way(shared):
    assert queries.rows(shared, "SELECT VALUE 1e308 * 10 > 1 FROM c") == [True]


# ── Limits ──────────────────────────────────────────────────────────────────────────────────────────

def joins(count):
    return "SELECT VALUE COUNT(1) FROM c" + "".join(f" JOIN e{n} IN c.one" for n in range(count))


def test_ten_joins_are_the_most(shared):
    assert queries.rows(shared, joins(10)) == [0]
    queries.send(shared, joins(11)).expect(400)
    queries.plan(shared, joins(11)).expect(400)


@pytest.mark.parametrize("text", [
    "SELECT VALUE " + "(" * 200_000, "SELECT VALUE " + "[" * 5000 + "]" * 5000,
    "SELECT VALUE " + "{a:" * 5000 + "1" + "}" * 5000, "SELECT VALUE " + "NOT " * 5000 + "true", "SELECT VALUE " + "- " * 5000 + "1",
    "SELECT VALUE " + "ABS(" * 5000 + "1" + ")" * 5000, "SELECT VALUE " + "(SELECT VALUE " * 2000 + "1" + ")" * 2000,
    "SELECT VALUE " + "1 ?? " * 50_000, "SELECT * FROM " + "(SELECT * FROM " * 2000 + "c",
    "SELECT VALUE c" + "[c" * 5000 + "]" * 5000 + " FROM c"],
    ids=["open", "arrays", "objects", "not", "minus", "calls", "subqueries", "coalesce", "from", "index"])
def test_deep_nesting_is_refused_not_followed(shared, text):
    queries.send(shared, text).expect(400)
    queries.plan(shared, text).expect(400)
    assert queries.rows(shared, "SELECT VALUE 1") == [1]


@pytest.mark.parametrize("text", ["SELECT VALUE " + " + ".join(["1"] * 20_000), "SELECT VALUE c.id FROM c WHERE " + " OR ".join(f"c.zero = {n}" for n in range(20_000)),
                                  "SELECT VALUE c.id FROM c WHERE c.zero IN (" + ",".join(map(str, range(20_000))) + ")",
                                  "SELECT VALUE c" + ".deep" * 20_000 + " FROM c", "SELECT VALUE " + "(" * 5000 + "20000" + ")" * 5000,
                                  "SELECT VALUE " + "false ? 1 : " * 5000 + "20000"], ids=["sum", "or", "in", "path", "parentheses", "ternary"])
def test_wide_texts_are_served_or_refused(shared, text):
    response = queries.send(shared, text).expect((200, 400))
    if response.status == 200:
        assert response.json["Documents"] in ([20_000], ["x"], [])
    queries.plan(shared, text).expect((200, 400))


def test_a_deep_parameter_is_no_danger(shared):
    body = '{"query":"SELECT VALUE @p","parameters":[{"name":"@p","value":' + "[" * 50_000 + "]" * 50_000 + "}]}"
    queries.post(shared, body).expect((200, 400))
    assert queries.rows(shared, "SELECT VALUE 1") == [1]


def test_functions_of_users_are_refused_by_name(shared):
    response = queries.send(shared, "SELECT VALUE udf.mine(c.id) FROM c").expect((400, 501))
    assert "udf" in response.message.lower() or "mine" in response.message


@pytest.mark.parametrize("header", [queries.METRICS.replace("query-metrics", "populatequerymetrics"), "x-ms-documentdb-query-enablecrosspartition",
                                    "x-ms-documentdb-query-enable-scan"])
def test_flags_that_are_neither_are_400(shared, header):
    queries.send(shared, "SELECT * FROM c", headers={header: "perhaps"}).expect(400, text=header)


def test_a_text_that_still_has_a_placeholder_is_refused(shared):
    queries.send(shared, f"SELECT * FROM c WHERE ({queries.ORDER_FILTER})").expect(400)


def test_the_message_has_the_form_of_the_service(shared):
    response = queries.send(shared, "SELECT * FROM c WHERE")
    assert response.json["code"] == "BadRequest" and list(response.json) == ["code", "message"]
    told = response.message.removeprefix("Message: ").split("\r\n")
    assert list(json.loads(told[0])["errors"][0]) == ["severity", "location", "code", "message"]
    assert told[1].startswith(f"ActivityId: {response['x-ms-activity-id']}, ")
