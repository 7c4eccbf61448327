"""The cost limits of one query: a short text, or a long one, harms nobody."""

import pytest

import queries
from harness import proc, wire
from harness.waiting import wait_until
from harness.wire import CONTINUATION

ELEMENTS = 100


@pytest.fixture
def container(db):
    made = db.create_container()
    queries.fill(made, [{"pk": "a", "n": n, "list": list(range(ELEMENTS)), "s": "x" * 200_000} for n in range(2)])
    return made


def refused(container, text, status):
    response = queries.send(container, text).expect(status)
    # Others are served as before.
    assert queries.rows(container, "SELECT VALUE COUNT(1) FROM c") == [2]
    return response.message


def test_lists_of_a_subquery_are_bounded(container):
    text = "SELECT VALUE ARRAY_LENGTH((SELECT VALUE MAKELIST(c.s) FROM a IN c.list JOIN b IN c.list)) FROM c"
    assert "more memory than a request may have" in refused(container, text, 413)


def test_groups_of_a_subquery_are_bounded(container):
    text = "SELECT VALUE ARRAY(SELECT a, b, COUNT(1) AS n FROM a IN c.list JOIN b IN c.list GROUP BY c.s, a, b) FROM c"
    assert "more memory than a request may have" in refused(container, text, 413)


def test_a_value_that_doubles_again_and_again_is_bounded(container):
    joins = "JOIN (SELECT VALUE [1,1,1,1,1,1,1,1,1,1]) v0 " + " ".join(
        f"JOIN (SELECT VALUE [{','.join([f'v{level}'] * 10)}]) v{level + 1}" for level in range(9))
    assert "more memory than a request may have" in refused(container, f"SELECT VALUE ARRAY_LENGTH(v9) FROM c {joins}", 413)


def test_a_row_is_bounded(container):
    assert "a row" in refused(container, f"SELECT VALUE [{','.join(['c'] * 1000)}] FROM c", 413)
    assert "a row" in refused(container, f"SELECT [{','.join(['c'] * 1000)}] AS l FROM c", 413)


@pytest.mark.parametrize("text, rows", [
    ("SELECT VALUE c.n FROM c WHERE " + " AND ".join(f"c.n != {n}" for n in range(1, 8000)), [0]),
    ("SELECT VALUE c.n FROM c WHERE NOT (" + " OR ".join(f"c.n = {n}" for n in range(1, 8000)) + ")", [0]),
    ("SELECT VALUE c.n FROM c WHERE c.n = 1 AND " + " AND ".join(f"NOT IS_DEFINED(c.p{n})" for n in range(5000)), [1]),
    ("SELECT VALUE c.n FROM c WHERE c.n = 1 OR " + " OR ".join(f"c.p{n} = 1" for n in range(5000)), [1]),
    ("SELECT VALUE c.n FROM c WHERE c.n IN (" + ",".join(map(str, range(1, 30_000))) + ")", [1]),
])
def test_thousands_of_conditions_are_answered(container, text, rows):
    assert queries.rows(container, text) == rows


def test_thousands_of_parameters_are_taken(container):
    parameters = {f"p{n}": n for n in range(20_000)}
    assert queries.rows(container, "SELECT VALUE c.n FROM c WHERE c.n = @p1", parameters) == [1]


def test_a_parameter_that_is_given_twice_among_thousands_is_refused(container):
    parameters = [{"name": f"@p{n}", "value": n} for n in range(5000)] + [{"name": "@p7", "value": 7}]
    response = queries.post(container, {"query": "SELECT VALUE 1", "parameters": parameters}).expect(400)
    assert "'@p7' is given more than once" in response.message


@pytest.mark.parametrize("change", ["delete", "replace"])
def test_long_sort_keys_lose_no_document_when_others_go(db, change):
    """Their beginnings are all that a token holds, and the row that was shown last has gone."""
    container = db.create_container()
    queries.fill(container, [{"pk": "a", "s": "x" * 400 + letter} for letter in "abcdefgh"])
    found, token = [], None
    while True:
        page = queries.send(container, "SELECT VALUE c.id FROM c ORDER BY c.s", size=1, token=token).expect(200)
        found += page.json["Documents"]
        for shown in page.json["Documents"]:
            if change == "delete":
                container.delete(shown, key=["a"]).expect(204)
            else:
                container.upsert({"id": shown, "pk": "a", "s": "w"}, key=["a"]).expect(200)
        token = page[CONTINUATION]
        if token is None:
            break
        assert len(found) <= 20, "it comes to an end"
    assert sorted(found) == list("01234567")


# ── Time ──

PAGE_MS = 200
# Seconds for a document: a million rows, each of which searches a text.
EXPENSIVE = ("EXISTS(SELECT VALUE 1 FROM a IN c.list JOIN b IN c.list JOIN d IN c.list "
             "WHERE CONTAINS(c.s, CONCAT('y', ToString(a), 'y', ToString(b))))")


MANY_PARTS = ",".join(f"'y{n}'" for n in range(30_000))


@pytest.fixture
def hurried(server):
    """A server whose pages have little time, and a container with two documents that would need more."""
    started = server("--page-timeout-ms", PAGE_MS)
    with started.client() as client:
        made = client.create_database().create_container()
        queries.fill(made, [{"pk": "a", "n": n, "list": list(range(ELEMENTS)), "s": "x" * 200_000} for n in range(2)])
        yield started, made


@pytest.mark.parametrize("text", [
    f"SELECT VALUE c.id FROM c WHERE {EXPENSIVE}",
    f"SELECT VALUE c.id FROM c WHERE c.pk = 'a' AND {EXPENSIVE}",
    f"SELECT VALUE {EXPENSIVE} FROM c",
    f"SELECT VALUE COUNT(1) FROM c WHERE {EXPENSIVE}",
    f"SELECT VALUE {EXPENSIVE} FROM c ORDER BY c.n",
    f"SELECT COUNT(1) FROM c WHERE {EXPENSIVE} GROUP BY c.n",
    f"SELECT VALUE c.id FROM c WHERE {EXPENSIVE} ORDER BY RANK FullTextScore(c.s, 'x')",
    f"SELECT VALUE c.id FROM c WHERE c.s LIKE '%_{'x' * 3000}y%'",
    f"SELECT VALUE c.id FROM c WHERE CONTAINS_ANY_CS(c.s, {MANY_PARTS})",
], ids=["where", "one key", "select", "count", "order", "group", "rank", "like", "contains"])
def test_one_document_may_take_as_long_as_a_page(hurried, text):
    pid = hurried[0].process.pid
    spent_before = proc.processor_seconds(pid)
    response = queries.send(hurried[1], text)
    while response.status == 200 and response[CONTINUATION]:  # Where the time was over before a thread was free.
        response = queries.send(hurried[1], text, token=response[CONTINUATION])
    response.expect(400)
    assert f"more than {PAGE_MS} ms of processor time for one document" in response.message
    assert proc.processor_seconds(pid) - spent_before < 20, "it would have taken minutes"
    assert queries.rows(hurried[1], "SELECT VALUE COUNT(1) FROM c") == [2]


def test_a_text_that_is_expensive_in_itself_is_refused_like_a_document(hurried):
    long = "CONCAT(" + ",".join(["REPLICATE('x',9999)"] * 400) + ")"
    response = queries.send(hurried[1], f"SELECT VALUE {long} LIKE '%_{'x' * 5000}y%'").expect(400)
    assert "of processor time" in response.message


def test_a_filter_of_the_feed_may_take_as_long_for_a_document(hurried):
    headers = wire.INCREMENTAL | {wire.RANGE_ID: "0", "x-orrery-feed-filter": wire.quote(EXPENSIVE)}
    response = hurried[1].client.get(hurried[1].docs, headers).expect(400)
    assert f"more than {PAGE_MS} ms of processor time" in response.message


def test_the_condition_of_a_patch_is_bounded(hurried):
    condition = f"from c where {EXPENSIVE}"
    body = {"condition": condition, "operations": [{"op": "set", "path": "/n", "value": 7}]}
    response = hurried[1].client.request("PATCH", f"{hurried[1].docs}/0", body, {wire.KEY: '["a"]'}).expect(400)
    assert "of processor time" in response.message


@pytest.mark.parametrize("verb", ["POST", "GET"])
def test_nobody_works_for_clients_that_have_left(server, verb):
    started = server("--page-timeout-ms", 60_000)
    with started.client() as client:
        made = client.create_database().create_container()
        queries.fill(made, [{"pk": "a", "list": list(range(ELEMENTS)), "s": "x" * 200_000} for _ in range(8)])
        headers = queries.IS_QUERY | queries.CROSS if verb == "POST" else wire.INCREMENTAL | {
            wire.RANGE_ID: "0", "x-orrery-feed-filter": wire.quote(EXPENSIVE)}
        body = {"query": f"SELECT VALUE c.id FROM c WHERE {EXPENSIVE}"} if verb == "POST" else None
        for _ in range(4):
            with wire.Connection(started.endpoint) as connection:
                connection.send(client.build(verb, made.docs, body, headers))
                wait_until(lambda: proc.processor_seconds(started.process.pid) > 0, 10)
        wait_until(proc.idle_check(started.process.pid), 20, "an idle server", pause=0.3)
