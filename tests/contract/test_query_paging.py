"""Pages of queries: their sizes, their continuations, and what becomes of those."""
import base64
import json
import random

import pytest

import change_feed as cf
import queries
from harness import wire
from harness.wire import CONTINUATION, MAX_ITEMS

TEXT = "SELECT VALUE c.id FROM c"
COMPOSITE = {"indexingPolicy": {"compositeIndexes": [[{"path": "/tie"}, {"path": "/n", "order": "descending"}]]}}

# Every shape of query; all of them are about the documents of `spread`.
SHAPES = [
    TEXT,
    "SELECT * FROM c",
    "SELECT c.id, c.n FROM c WHERE c.n > 3 AND c.tie < 3",
    "SELECT TOP 7 c.id FROM c",
    "SELECT c.id FROM c OFFSET 3 LIMIT 11",
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.tie",
    "SELECT VALUE c.id FROM c ORDER BY c.tie DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.none",
    "SELECT VALUE c.id FROM c ORDER BY c.mixed",
    "SELECT VALUE c.id FROM c ORDER BY c.tie ASC, c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.long",
    "SELECT TOP 9 c.id, c.tie FROM c ORDER BY c.tie",
    "SELECT VALUE c.id FROM c ORDER BY c.tie OFFSET 4 LIMIT 12",
    "SELECT DISTINCT VALUE c.tie FROM c",
    "SELECT DISTINCT c.tie, c.n % 2 AS odd FROM c",
    "SELECT DISTINCT VALUE c.tie FROM c ORDER BY c.tie DESC",
    "SELECT DISTINCT VALUE c.tie FROM c OFFSET 1 LIMIT 2",
    "SELECT c.tie, COUNT(1) AS n, AVG(c.n) AS mean FROM c GROUP BY c.tie",
    "SELECT COUNT(1) AS n FROM c GROUP BY c.long",
    "SELECT COUNT(1) AS n, MIN(c.n) AS low FROM c GROUP BY c.long, c.tie, c.id, c.long2 ORDER BY c.long DESC",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT MIN(c.n) AS low, MAX(c.n) AS high, SUM(c.n) AS sum FROM c",
    "SELECT c.id, e FROM c JOIN e IN c.list",
    "SELECT c.id, e, f FROM c JOIN e IN c.list JOIN f IN c.list",
    "SELECT VALUE {id: c.id, e: e} FROM c JOIN e IN c.list ORDER BY c.tie",
    "SELECT VALUE e FROM c JOIN e IN c.list OFFSET 5 LIMIT 20",
    "SELECT DISTINCT VALUE e FROM c JOIN e IN c.list",
    "SELECT DISTINCT VALUE e FROM c JOIN e IN c.echo",
    "SELECT DISTINCT VALUE e FROM c JOIN e IN c.echo ORDER BY c.tie",
    "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.tie FROM c)",
    "SELECT VALUE c.id FROM c WHERE EXISTS (SELECT VALUE e FROM e IN c.list WHERE e = 2)",
    "SELECT VALUE s.sum FROM (SELECT c.n + c.tie AS sum FROM c) AS s",
    "SELECT VALUE 1",
]


def documents_of_all_kinds(count, seed=11):
    chance = random.Random(seed)
    mixed = [None, True, False, 7, -1.5, "text", [1], {"a": 1}]
    for n in range(count):
        document = {"id": f"d{n}", "pk": chance.choice(list(cf.EPKS)), "n": n, "tie": n % 4, "list": list(range(n % 4)),
                    "long": "x" * 2000 + str(n % 3), "long2": "y" * 90, "echo": [n % 5, 9, n % 5, n % 3]}
        if n % 9 != 8:
            document["mixed"] = mixed[n % len(mixed)]
        yield document


@pytest.fixture(scope="module")
def spread(module_client):
    """Two ranges with 40 documents."""
    container = module_client.create_database().create_container(COMPOSITE, throughput=cf.TWO_RANGES)
    queries.fill(container, documents_of_all_kinds(40))
    return container


@pytest.fixture(scope="module")
def crowd(module_client):
    """One range with 1100 small documents."""
    container = module_client.create_database().create_container()
    for start in range(0, 1100, 100):
        cf.bulk(container, [cf.creating(f"{n:05}", n=n) | {"partitionKey": '["a"]'} for n in range(start, start + 100)]).expect((200, 207))
    return container


# ── Sizes ───────────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("size, count", [(None, 1000), ("0", 1000), ("-1", 1100), ("1", 1), ("999", 999), ("1000", 1000), ("1100", 1100), ("5000", 1100)])
def test_page_sizes(crowd, size, count):
    ends = count == 1100 and size != "1100"  # a full page does not say that it is the last one
    page = queries.send(crowd, TEXT, size=size).expect(200)
    assert page.json["_count"] == count
    assert (page[CONTINUATION] is None) == ends
    sorted_page = queries.send(crowd, TEXT + " ORDER BY c.n", size=size).expect(200)
    assert sorted_page.json["_count"] == count and (sorted_page[CONTINUATION] is None) == ends


@pytest.mark.parametrize("size", ["abc", "1.5", "-2", "1x", "99999999999", "+1", "0x1"])
def test_a_size_that_is_none_is_400(crowd, size):
    response = crowd.client.post(crowd.docs, {"query": TEXT}, queries.IS_QUERY | queries.CROSS | {MAX_ITEMS: size}).expect(400)
    assert response.message.startswith(f"The input PageSize {size} is invalid")


def test_pages_end_by_bytes(db):
    container = db.create_container()
    for n in range(6):
        container.create({"id": str(n), "pk": "a", "text": "x" * 1_500_000}).expect(201)
    found = list(queries.pages(container, "SELECT * FROM c", size=-1))
    assert len(found) > 1 and all(len(page.body) < 6_000_000 for page in found)
    assert [row["id"] for page in found for row in page.json["Documents"]] == [str(n) for n in range(6)]
    sorted_pages = list(queries.pages(container, "SELECT * FROM c ORDER BY c.id DESC", size=-1))
    assert len(sorted_pages) > 1 and all(len(page.body) < 6_000_000 for page in sorted_pages)
    assert [row["id"] for page in sorted_pages for row in page.json["Documents"]] == [str(n) for n in reversed(range(6))]


# ── All pages together ──────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("text", SHAPES)
def test_pages_of_any_size_make_the_same_rows(spread, text):
    (whole,) = queries.pages(spread, text, size=-1)
    wanted = whole.json["Documents"]
    for size in (1, 2, 7, 40):
        assert queries.rows(spread, text, size=size) == wanted, size
    for each in spread.ranges():
        scope = cf.of_range(each["id"])
        assert queries.rows(spread, text, scope=scope, size=3) == queries.rows(spread, text, scope=scope)
    assert queries.rows(spread, text, scope=cf.of_key("aa"), size=2) == queries.rows(spread, text, scope=cf.of_key("aa"))


@pytest.mark.parametrize("text", SHAPES)
def test_sizes_may_change_from_page_to_page(spread, text):
    wanted, chance = queries.rows(spread, text), random.Random(5)
    found, token = [], None
    while True:
        page = queries.send(spread, text, size=chance.choice([1, 2, 5]), token=token).expect(200)
        found += page.json["Documents"]
        if (token := page[CONTINUATION]) is None:
            break
    assert found == wanted


@pytest.mark.parametrize("text", SHAPES)
def test_a_page_may_be_read_again(spread, text):
    for page in queries.pages(spread, text, size=3):
        if (token := page[CONTINUATION]) is not None:
            once, twice = (queries.send(spread, text, size=3, token=token).expect(200) for _ in range(2))
            assert once.json == twice.json and (once[CONTINUATION] is None) == (twice[CONTINUATION] is None)


def test_ties_of_a_sorted_query_come_by_range_then_by_rid(spread):
    place = {each["id"]: number for number, each in enumerate(spread.ranges())}
    of_range = {row: place[range_id] for range_id in place for row in queries.rows(spread, TEXT, scope=cf.of_range(range_id))}
    rows = queries.rows(spread, "SELECT c.id, c.tie, c._rid FROM c ORDER BY c.tie", size=3)
    keys = [(row["tie"], of_range[row["id"]], wire.rid_bytes(row["_rid"])) for row in rows]
    assert keys == sorted(keys) and len(keys) == 40


def test_what_is_written_between_pages_disturbs_nothing_else(container):
    container.fill(10)
    first = queries.send(container, "SELECT VALUE c.n FROM c ORDER BY c.n", size=5).expect(200)
    assert first.json["Documents"] == [0, 1, 2, 3, 4]
    container.delete("4").expect(204)  # the row that the token stands at
    container.delete("6").expect(204)
    container.create({"id": "new", "pk": "a", "n": 7.5}).expect(201)
    container.create({"id": "old", "pk": "a", "n": 0.5}).expect(201)
    rest = queries.rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n", size=5, token=first[CONTINUATION])
    assert rest == [5, 7, 7.5, 8, 9]


# ── Continuations ───────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("text", [TEXT, TEXT + " ORDER BY c.n", "SELECT c.tie FROM c GROUP BY c.tie", "SELECT DISTINCT VALUE c.n FROM c"])
def test_a_continuation_belongs_to_its_text_and_parameters(spread, text):
    token = queries.send(spread, text, {"p": 1}, size=1).expect(200)[CONTINUATION]
    assert token
    for other in (text + " ", TEXT.replace("id", "pk"), "SELECT * FROM c"):
        queries.send(spread, other, {"p": 1}, size=1, token=token).expect(400, text="Invalid Continuation Token")
    for parameters in ({}, {"p": 2}, {"p": "1"}, {"q": 1}, {"p": 1, "q": 1}):
        queries.send(spread, text, parameters, size=1, token=token).expect(400, text="Invalid Continuation Token")
    queries.send(spread, text, {"p": 1}, size=1, token=token).expect(200)


def test_parameters_may_come_in_another_order(spread):
    text = TEXT + " WHERE c.n >= @low AND c.n < @high AND c.n != @none"
    given = [{"name": "@low", "value": 2}, {"name": "@high", "value": 9}, {"name": "@none", "value": None}]

    def page(parameters, token=None):
        return queries.post(spread, {"query": text, "parameters": parameters}, {MAX_ITEMS: "2", CONTINUATION: token})

    token = page(given).expect(200)[CONTINUATION]
    expected = page(given, token).expect(200).json["Documents"]
    for parameters in (given[::-1], given[1:] + given[:1]):
        assert page(parameters, token).expect(200).json["Documents"] == expected
    # A parameter without a value is undefined, and not null.
    page(given[:2] + [{"name": "@none"}], token).expect(400, text="Invalid Continuation Token")


@pytest.mark.parametrize("token", [
    "x", "0", "-RID:~abc#RT:1#TRC:1000#ISV:2#IEO:65599#QCF:8", '{"token":null}', '{"token":"x","range":{"min":"","max":"FF"}}', "{", "[]", "null",
    '{"token":null,"range":{"min":"FF","max":""}}', '[{"token":null,"range":{"min":"","max":"XX"}}]', "=" * 20, "A" * 900,
    "ä".encode().decode("latin-1"), "%00", "MQ", "MQAAAAAAAAAAAA"])
@pytest.mark.parametrize("text", [TEXT, TEXT + " ORDER BY c.n"])
def test_malformed_continuations_are_400(spread, token, text):
    queries.send(spread, text, token=token).expect(400, text="Invalid Continuation Token")


@pytest.mark.parametrize("text", [TEXT + " ORDER BY c.long", "SELECT VALUE e FROM c JOIN e IN c.list OFFSET 2 LIMIT 9"])
def test_changed_continuations_are_400(spread, text):
    token = queries.send(spread, text, size=1).expect(200)[CONTINUATION]
    chance = random.Random(3)
    for at in chance.sample(range(1, len(token) - 1), 20):
        changed = token[:at] + chance.choice([letter for letter in "ABxyz019" if letter != token[at]]) + token[at + 1:]
        queries.send(spread, text, size=1, token=changed).expect(400)
        queries.send(spread, text, size=1, token=token[:at]).expect(400)
    bare = json.loads(token)["token"]
    decoded = base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    flipped = bytearray(decoded)
    flipped[9] ^= 1
    queries.send(spread, text, size=1, token=base64.urlsafe_b64encode(bytes(flipped)).decode().rstrip("=")).expect(400)


def test_tokens_of_read_feeds_and_queries_are_not_mixed_up(spread):
    feed = spread.feed({MAX_ITEMS: "1"}).expect(200)[CONTINUATION]
    query = queries.send(spread, "SELECT * FROM c", size=1).expect(200)[CONTINUATION]
    queries.send(spread, "SELECT * FROM c", size=1, token=feed).expect(400)
    spread.feed({MAX_ITEMS: "1", CONTINUATION: query}).expect(400)


@pytest.mark.parametrize("limit", ["1", "2", "0", None])
def test_continuations_are_short_even_for_long_sort_keys(db, limit):
    """The keys are equal in their first 4000 bytes; `check` holds every token against one KB."""
    container = db.create_container(COMPOSITE)
    for n in range(7):
        container.create({"id": str(n), "pk": "a", "tie": "é" * 2000 + str(n % 3), "n": "y" * 3000 + str(n % 2)}).expect(201)
    headers = {"x-ms-documentdb-responsecontinuationtokenlimitinkb": limit}
    by_tie = queries.rows(container, TEXT + " ORDER BY c.tie", size=1, headers=headers)
    assert by_tie == ["0", "3", "6", "1", "4", "2", "5"]
    assert queries.rows(container, TEXT + " ORDER BY c.tie DESC", size=2, headers=headers) == ["2", "5", "1", "4", "0", "3", "6"]
    by_both = queries.rows(container, TEXT + " ORDER BY c.tie, c.n DESC", size=1, headers=headers)
    assert by_both == ["3", "0", "6", "1", "4", "5", "2"]
    assert queries.rows(container, "SELECT DISTINCT VALUE RIGHT(c.tie, 1) FROM c ORDER BY c.tie", size=1, headers=headers) == ["0", "1", "2"]


@pytest.mark.parametrize("text", SHAPES)
def test_the_last_page_says_so(spread, text):
    (whole,) = queries.pages(spread, text, size=-1)
    if (count := whole.json["_count"]) > 1:
        assert queries.send(spread, text, size=count + 1).expect(200)[CONTINUATION] is None
        assert queries.send(spread, text, size=count - 1).expect(200)[CONTINUATION]


@pytest.mark.parametrize("text", [
    TEXT, "SELECT * FROM c", TEXT + " WHERE c.n > 3", TEXT + " ORDER BY c.n", TEXT + " ORDER BY c.tie DESC", "SELECT c.id, e FROM c JOIN e IN c.list",
    "SELECT DISTINCT VALUE c.n FROM c"])
def test_an_empty_page_follows_a_last_page_that_is_full(spread, text):
    """As the service's: clients of its early years count pages."""
    for scope in ({}, cf.of_range("0"), cf.of_key("aa")):
        count = len(queries.rows(spread, text, scope=scope))
        full = queries.send(spread, text, scope=scope, size=count).expect(200)
        assert full.json["_count"] == count and full[CONTINUATION]
        empty = queries.send(spread, text, scope=scope, size=count, token=full[CONTINUATION]).expect(200)
        assert empty.json["Documents"] == [] and empty[CONTINUATION] is None


def test_top_ends_without_a_continuation(spread):
    assert queries.send(spread, "SELECT TOP 3 c.id FROM c", size=3).expect(200)[CONTINUATION] is None
    assert queries.send(spread, "SELECT TOP 0 c.id FROM c", size=3).expect(200)[CONTINUATION] is None
    assert queries.send(spread, "SELECT c.id FROM c OFFSET 2 LIMIT 3", size=3).expect(200)[CONTINUATION] is None
    assert queries.rows(spread, "SELECT c.id FROM c OFFSET 100 LIMIT 3", size=3) == []


def test_continuations_survive_a_restart(server, tmp_path):
    running = server("--data-dir", tmp_path)
    with running.client() as client:
        container = client.create_database().create_container(COMPOSITE, throughput=cf.TWO_RANGES)
        client.databases.clear()
        queries.fill(container, documents_of_all_kinds(15))
        halfway, wanted = {}, {}
        for text in SHAPES:
            wanted[text] = queries.rows(container, text)
            first = queries.send(container, text, size=2).expect(200)
            halfway[text] = first.json["Documents"], first[CONTINUATION]
    running.stop()
    with server("--data-dir", tmp_path).client() as client:
        container.client = client
        for text, (found, token) in halfway.items():
            if token is not None:
                found = found + queries.rows(container, text, token=token, size=2)
            assert found == wanted[text], text


# ── As the service's gateway writes them ────────────────────────────────────────────────────────────

def of_ranges(container):
    """The id of the range that a document is in."""
    return {row: each["id"] for each in container.ranges() for row in queries.rows(container, TEXT, scope=cf.of_range(each["id"]))}


@pytest.mark.parametrize("size", [None, "-1", "3", "40"])
@pytest.mark.parametrize("text", ["SELECT * FROM c", "SELECT c.id FROM c WHERE c.n % 2 = 0", "SELECT c.id, e FROM c JOIN e IN c.list"])
def test_a_page_never_spans_ranges(spread, text, size):
    place, found = of_ranges(spread), []
    for page in queries.pages(spread, text, size=size, headers=queries.AS_THE_SERVICE):
        assert len({place[row["id"]] for row in page.json["Documents"]}) == 1 or page[CONTINUATION] is None
        found += page.json["Documents"]
    assert found == queries.rows(spread, text), "the same rows as in pages that do"


def test_ranges_without_a_row_make_no_page(spread):
    place = of_ranges(spread)
    last = next(row for row in place if place[row] == "1")
    (page,) = queries.pages(spread, "SELECT VALUE c.id FROM c WHERE c.id = @id", {"id": last}, headers=queries.AS_THE_SERVICE)
    assert page.json["Documents"] == [last]


@pytest.mark.parametrize("text", [TEXT, TEXT + " ORDER BY c.n", "SELECT c.tie FROM c GROUP BY c.tie"])
def test_continuations_over_all_ranges_are_json(spread, text):
    token = json.loads(queries.send(spread, text, size=1).expect(200)[CONTINUATION])
    assert list(token) == ["token", "range"] and list(token["range"]) == ["min", "max"] and isinstance(token["token"], str)
    bounds = {"min": spread.ranges()[0]["minInclusive"], "max": spread.ranges()[0]["maxExclusive"]}
    assert token["range"] == (bounds if text == TEXT else {"min": "", "max": "FF"})


def test_continuations_of_a_target_are_bare(spread):
    for scope in (cf.of_range("0"), cf.of_key("aa")):
        assert not queries.send(spread, TEXT, scope=scope, size=1).expect(200)[CONTINUATION].startswith("{")


def test_the_range_of_a_continuation_goes_from_left_to_right(spread):
    ranges = [{"min": each["minInclusive"], "max": each["maxExclusive"]} for each in spread.ranges()]
    told = [json.loads(page[CONTINUATION])["range"] for page in queries.pages(spread, TEXT, size=3, headers=queries.AS_THE_SERVICE)
            if page[CONTINUATION]]
    assert [each for at, each in enumerate(told) if each not in told[:at]] == ranges


def test_the_service_s_own_continuations_are_read(spread):
    for each in spread.ranges():
        scope = cf.of_range(each["id"])
        rids = queries.rows(spread, "SELECT VALUE c._rid FROM c", scope=scope)
        ids = queries.rows(spread, TEXT, scope=scope)
        range_ = {"min": each["minInclusive"], "max": each["maxExclusive"]}
        later = [row for other in spread.ranges() if other["id"] > each["id"] for row in queries.rows(spread, TEXT, scope=cf.of_range(other["id"]))]
        for sign, rest in (("-", ids[3:]), ("+", ids[2:])):
            token = f"{sign}RID:~{rids[2]}#RT:1#TRC:3#ISV:2#IEO:65567#QCF:8"
            assert queries.rows(spread, TEXT, scope=scope, token=token) == rest
            for wrapped in ({"token": token, "range": range_}, [{"token": token, "range": range_}]):
                assert queries.rows(spread, TEXT, token=json.dumps(wrapped)) == rest + later
        assert len(queries.rows(spread, "SELECT TOP 5 c.id FROM c", scope=scope, token=f"-RID:~{rids[2]}#RT:1#TRC:3")) == 2
        unbegun = json.dumps({"token": None, "range": range_})
        assert queries.rows(spread, TEXT, token=unbegun) == ids + later


def test_tokens_of_several_ranges_are_read_together(spread):
    tokens, rest = [], []
    for each in spread.ranges():
        rids = queries.rows(spread, "SELECT VALUE c._rid FROM c", scope=cf.of_range(each["id"]))
        tokens.append({"token": f"-RID:~{rids[1]}#RT:1#TRC:2", "range": {"min": each["minInclusive"], "max": each["maxExclusive"]}})
        rest += queries.rows(spread, TEXT, scope=cf.of_range(each["id"]))[2:]
    assert queries.rows(spread, TEXT, token=json.dumps(tokens)) == rest
    assert queries.rows(spread, TEXT, token=json.dumps(tokens), size=3) == rest


def test_a_continuation_of_another_container_says_nothing(spread):
    token = "-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:1#TRC:2#ISV:2#IEO:65567#QCF:8"
    for scope in ({}, cf.of_range("0"), cf.of_epks("", cf.MIDDLE)):
        assert queries.rows(spread, TEXT, scope=scope, token=token, size=1) == queries.rows(spread, TEXT, scope=scope)


def test_the_service_s_continuations_of_sorted_rows_are_400(spread):
    rid = queries.rows(spread, "SELECT VALUE c._rid FROM c", scope=cf.of_range("0"))[0]
    for token in (f"-RID:~{rid}#RT:1#TRC:3#RTD:vjAyMDE4LTAyLTE4VDE0OjMwOjAwWg==", f"-RID:~{rid}#RT:1#TRC:3"):
        queries.send(spread, TEXT + " ORDER BY c.n", scope=cf.of_range("0"), token=token).expect(400, text="Invalid Continuation Token")
