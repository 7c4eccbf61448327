"""Queries over ranges that are split and merged: whose continuation goes where."""
import pytest

import change_feed as cf
import queries
from harness.wire import CONTINUATION
from test_query_paging import COMPOSITE, SHAPES, TEXT, documents_of_all_kinds

STREAMS = [TEXT, "SELECT c.id, c.n FROM c WHERE c.n > 3 AND c.tie < 3", "SELECT c.id, e, f FROM c JOIN e IN c.list JOIN f IN c.list"]
SORTED = ["SELECT c.id, c.n AS key FROM c ORDER BY c.n DESC", "SELECT c.id, c.tie AS key FROM c ORDER BY c.tie",
          "SELECT c.id, c.tie AS key FROM c ORDER BY c.tie DESC", "SELECT c.id, c.tie AS key FROM c ORDER BY c.tie, c.n DESC",
          "SELECT c.id, e, c.tie AS key FROM c JOIN e IN c.list ORDER BY c.tie", "SELECT c.id, c.long AS key FROM c ORDER BY c.long"]
SETS = ["SELECT DISTINCT VALUE c.tie FROM c", "SELECT c.tie, COUNT(1) AS n FROM c GROUP BY c.tie"]


def filled(container):
    queries.fill(container, documents_of_all_kinds(30))
    return container


@pytest.fixture
def one_range(db):
    return filled(db.create_container(COMPOSITE))


@pytest.fixture
def mergeable(db):
    """Two ranges that may be merged: no throughput asks for two of them any more."""
    container = db.create_container(COMPOSITE, throughput=cf.TWO_RANGES)
    (offer,) = db.client.offers_of(container)
    offer["content"]["offerThroughput"] = 1000
    db.client.put("/" + offer["_self"], offer).expect(200)
    return filled(container)


def in_any_order(rows):
    return sorted(map(repr, rows))


def begin(container, text, size, scope=None):
    """The rows of the first page, and its continuation, which there must be."""
    page = queries.send(container, text, scope=scope, size=size).expect(200)
    assert page[CONTINUATION], f"{text} ends with its first page: {page!r}"
    return page.json["Documents"], page[CONTINUATION]


def keys_are_sorted(text, rows):
    keys = [row["key"] for row in rows]
    return keys == sorted(keys, reverse="DESC" in text and "," not in text.split("ORDER BY")[1])


# ── Split ───────────────────────────────────────────────────────────────────────────────────────────

def test_the_id_of_a_range_that_was_split_is_410_1002(one_range):
    token = begin(one_range, TEXT, 3, cf.of_range("0"))[1]
    cf.split(one_range).expect(200)
    for scope in (cf.of_range("0"), cf.of_range(f"{one_range.rid},0"), cf.of_epks("", "FF", "0")):
        for given in (None, token):
            queries.send(one_range, TEXT, scope=scope, token=given).expect(410, 1002)
    assert len(queries.rows(one_range, TEXT)) == 30


@pytest.mark.parametrize("text", STREAMS + SORTED)
def test_each_child_goes_on_with_the_parents_continuation(one_range, text):
    wanted = queries.rows(one_range, text)
    halfway = {size: begin(one_range, text, size, cf.of_range("0")) for size in (1, 4, 11)}
    left, right = cf.children_of(cf.split(one_range))
    for size, (found, token) in halfway.items():
        rests = [queries.rows(one_range, text, scope=cf.of_range(each["id"]), token=token, size=3) for each in (left, right)]
        assert all(rests), "both children have something left"
        assert in_any_order(found + rests[0] + rests[1]) == in_any_order(wanted), size
        if text in SORTED:
            assert all(keys_are_sorted(text, found + rest) for rest in rests)


@pytest.mark.parametrize("text", STREAMS + SORTED)
def test_a_childs_continuation_survives_its_own_split(one_range, text):
    wanted = queries.rows(one_range, text)
    found, token = begin(one_range, text, 2, cf.of_range("0"))
    left, right = cf.children_of(cf.split(one_range))
    more, second = begin(one_range, text, 1, cf.of_range(right["id"]) | {CONTINUATION: token})
    found += more + queries.rows(one_range, text, scope=cf.of_range(left["id"]), token=token)
    for each in cf.children_of(cf.split(one_range, right["id"])):
        if right["id"] in each["parents"]:
            found += queries.rows(one_range, text, scope=cf.of_range(each["id"]), token=second, size=2)
    assert in_any_order(found) == in_any_order(wanted)


@pytest.mark.parametrize("text", SHAPES)
def test_a_query_over_everything_goes_on_after_a_split(one_range, text):
    wanted = queries.rows(one_range, text)
    page = queries.send(one_range, text, size=2).expect(200)
    if page[CONTINUATION] is None:
        return
    cf.split(one_range).expect(200)
    cf.split(one_range, "1").expect(200)
    found = page.json["Documents"] + queries.rows(one_range, text, token=page[CONTINUATION], size=3)
    assert in_any_order(found) == in_any_order(wanted) or "LIMIT" in text or "TOP" in text
    assert len(found) == len(wanted)


# ── Merge ───────────────────────────────────────────────────────────────────────────────────────────

def test_the_ids_of_ranges_that_were_merged_are_410_1002(mergeable):
    cf.merge(mergeable, "0", "1").expect(200)
    for range_id in ("0", "1"):
        queries.send(mergeable, TEXT, scope=cf.of_range(range_id)).expect(410, 1002)
    assert len(queries.rows(mergeable, TEXT)) == 30


@pytest.mark.parametrize("text", STREAMS + SORTED + SETS)
def test_the_merged_range_goes_on_for_each_parent_within_its_epks(mergeable, text):
    """As clients do it: the old range's borders as EPK headers, with the old range's continuation."""
    places = {each["id"]: (each["minInclusive"], each["maxExclusive"]) for each in mergeable.ranges()}
    wanted = {each: queries.rows(mergeable, text, scope=cf.of_range(each)) for each in places}
    halfway = {each: begin(mergeable, text, 2, cf.of_range(each)) for each in places}
    (merged,) = cf.children_of(cf.merge(mergeable, *places))
    for each, (low, high) in places.items():
        found, token = halfway[each]
        found = found + queries.rows(mergeable, text, scope=cf.of_epks(low, high, merged["id"]), token=token, size=3)
        assert in_any_order(found) == in_any_order(wanted[each])
        if text in SORTED:
            assert keys_are_sorted(text, found)


@pytest.mark.parametrize("text", SHAPES)
def test_a_query_over_everything_goes_on_after_a_merge(mergeable, text):
    wanted = queries.rows(mergeable, text)
    pages = []
    for page in queries.pages(mergeable, text, size=4):
        pages.append(page)
    cf.merge(mergeable, "0", "1").expect(200)
    found = []
    for page in pages[:-1]:
        found += page.json["Documents"]
        rest = queries.rows(mergeable, text, token=page[CONTINUATION], size=5)
        assert in_any_order(found + rest) == in_any_order(wanted)


def test_documents_written_after_the_split_are_found(one_range):
    found, token = begin(one_range, TEXT, 5)
    cf.split(one_range).expect(200)
    for key in cf.EPKS:
        one_range.create({"id": f"new {key}", "pk": key}).expect(201)
    rest = queries.rows(one_range, TEXT, token=token, size=4)
    assert set(found + rest) >= {f"new {key}" for key in cf.EPKS} and len(found + rest) == 35
