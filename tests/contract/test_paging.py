"""Feeds and paging; `SELECT * from c` as a read feed."""
import pytest

from harness import wire
from harness.wire import CONTINUATION, MAX_ITEMS

PAGE_BYTES_MAX = 4 * 1024 * 1024


@pytest.fixture(scope="module")
def crowd(module_client):
    """150 documents in one range; only read from."""
    container = module_client.create_database().create_container()
    container.fill(150)
    return container


@pytest.fixture(scope="module")
def spread(module_client):
    """60 documents over five ranges; only read from."""
    container = module_client.create_database().create_container(throughput=30000)
    for n in range(60):
        container.create({"id": str(n), "pk": n}).expect(201)
    return container


def ids(documents):
    return [document["id"] for document in documents]


def place(document):
    """Where a document stands in a read feed: its range, then the counter in its rid."""
    return int.from_bytes(wire.rid_bytes(document["_rid"])[8:], "little")


# ── Pages ───────────────────────────────────────────────────────────────────────────────────────────

def test_feed_is_an_envelope_with_the_count(container):
    documents = container.fill(3)
    page = container.feed().expect(200)
    assert page.json == {"_rid": container.rid, "Documents": documents, "_count": 3}
    assert page["x-ms-item-count"] == "3" and page[CONTINUATION] is None
    assert page["x-ms-alt-content-path"] == container.path[1:] and page["x-ms-content-path"] == container.rid
    assert page[wire.RANGE_ID] == "0"


def test_feed_of_an_empty_container_is_an_empty_page(container):
    page = container.feed().expect(200)
    assert page.json == {"_rid": container.rid, "Documents": [], "_count": 0}
    assert page["x-ms-item-count"] == "0" and page[CONTINUATION] is None


@pytest.mark.parametrize("size, pages", [(None, [100, 50]), ("0", [100, 50]), ("-1", [150]), ("150", [150]), ("149", [149, 1]),
                                         ("1000", [150]), ("2147483647", [150]), ("60", [60, 60, 30]), ("1", [1] * 150)])
def test_page_size(crowd, size, pages):
    found = list(crowd.client.pages(crowd.docs, {MAX_ITEMS: size} if size else None))
    counts = [page.json["_count"] for page in found]
    assert [count for count in counts if count] == pages and len(counts) <= len(pages) + 1
    assert [int(page["x-ms-item-count"]) for page in found] == counts
    assert ids(document for page in found for document in page.json["Documents"]) == [str(n) for n in range(150)]


@pytest.mark.parametrize("size", ["abc", "-2", "-100", "1.5", "2147483648", "99999999999999999999", "1e2", "0x10", "10 items"])
def test_bad_page_size_is_400_in_every_feed(client, container, size):
    for path in (container.docs, f"{container.database.path}/colls", "/dbs", "/offers"):
        client.get(path, {MAX_ITEMS: size}).expect(400, text=f"The input PageSize {size} is invalid")


@pytest.mark.parametrize("size", ["7", "25", "-1", "100"])
def test_feed_over_several_ranges_is_in_order_of_range_then_rid(spread, size):
    documents = spread.all_documents({MAX_ITEMS: size})
    places = [place(document) for document in documents]
    assert len(documents) == 60 and places == sorted(set(places))


def test_feed_by_range_and_by_key_is_paged(spread):
    per_range = [spread.all_documents({wire.RANGE_ID: each["id"], MAX_ITEMS: "3"}) for each in spread.ranges()]
    assert sorted(ids(sum(per_range, [])), key=int) == [str(n) for n in range(60)]


def test_feed_by_key_is_paged(container):
    container.fill(5, "a")
    container.fill(5, "b")
    pages = list(container.client.pages(container.docs, {wire.KEY: '["b"]', MAX_ITEMS: "2"}))
    documents = [document for page in pages for document in page.json["Documents"]]
    assert ids(documents) == list("01234") and {document["pk"] for document in documents} == {"b"}


def test_page_ends_before_it_exceeds_4_mb(container):
    for n in range(6):
        container.create({"id": str(n), "pk": "a", "padding": "p" * 1_500_000}).expect(201)
    for size in ("-1", "100"):
        pages = list(container.client.pages(container.docs, {MAX_ITEMS: size}))
        assert all(len(page.body) <= PAGE_BYTES_MAX for page in pages)
        assert len(pages) <= 4  # two documents fit into a page
        assert ids(document for page in pages for document in page.json["Documents"]) == list("012345")


def test_page_shows_what_was_written_after_the_page_before_it(container):
    """Also when the server has read it ahead."""
    for n in range(6):
        container.create({"id": str(n), "pk": "a", "padding": "p" * 1_500_000}).expect(201)
    first = container.feed({MAX_ITEMS: "-1"}).expect(200)
    assert ids(first.json["Documents"]) == ["0", "1"]
    rest = {MAX_ITEMS: "-1", CONTINUATION: first[CONTINUATION]}
    container.replace("2", {"id": "2", "pk": "a", "changed": True}).expect(200)
    container.delete("3").expect(204)
    page = container.feed(rest).expect(200).json["Documents"]
    assert page[0]["changed"] and ids(page) == ["2", "4", "5"]
    again = container.feed(rest).expect(200)
    assert again.json["Documents"] == page and again[CONTINUATION] is None


# ── Continuation ────────────────────────────────────────────────────────────────────────────────────

def test_continuation_is_short_printable_ascii(spread, crowd):
    for container in (spread, crowd):
        for page in container.client.pages(container.docs, {MAX_ITEMS: "9"}):
            token = page[CONTINUATION]
            assert token is None or (0 < len(token) < 1024 and token.isascii() and token.isprintable())


def test_continuation_may_be_used_again(crowd):
    token = crowd.feed({MAX_ITEMS: "10"}).expect(200)[CONTINUATION]
    first, second = (crowd.feed({MAX_ITEMS: "10", CONTINUATION: token}).expect(200) for _ in range(2))
    assert first.body == second.body and ids(first.json["Documents"])[0] == "10"


def test_page_size_may_change_on_the_way(crowd):
    token = crowd.feed({MAX_ITEMS: "10"}).expect(200)[CONTINUATION]
    rest = crowd.feed({MAX_ITEMS: "-1", CONTINUATION: token}).expect(200)
    assert ids(rest.json["Documents"]) == [str(n) for n in range(10, 150)]


def test_updates_deletes_and_creates_neither_hide_nor_repeat_a_document(container):
    container.fill(10)
    first = container.feed({MAX_ITEMS: "3"}).expect(200)
    container.replace("0", {"id": "0", "pk": "a", "n": "seen"}).expect(200)
    container.upsert({"id": "5", "pk": "a", "n": "changed"}).expect(200)
    for gone in ("2", "3", "7"):  # 2 is the last one seen, 3 would have been next
        container.delete(gone).expect(204)
    container.create({"id": "new", "pk": "a"}).expect(201)
    rest = container.all_documents({MAX_ITEMS: "3", CONTINUATION: first[CONTINUATION]})
    assert ids(first.json["Documents"]) == ["0", "1", "2"]
    assert ids(rest) == ["4", "5", "6", "8", "9", "new"]
    assert rest[1]["n"] == "changed"


def test_rename_while_paging_neither_hides_nor_repeats_a_document(container):
    container.fill(6)
    first = container.feed({MAX_ITEMS: "2"}).expect(200)
    container.replace("0", {"id": "zz", "pk": "a"}).expect(200)
    container.replace("4", {"id": "!!", "pk": "a"}).expect(200)
    rest = container.all_documents({MAX_ITEMS: "2", CONTINUATION: first[CONTINUATION]})
    assert ids(rest) == ["2", "3", "!!", "5"]


@pytest.mark.parametrize("token", ["garbage", "{}", "[]", '{"token":null,"range":{}}', "AAAA", "-1", "x" * 500])
def test_malformed_continuation_is_400(client, container, token):
    container.fill(2)
    for path in (container.docs, f"{container.database.path}/colls", "/dbs", "/offers"):
        client.get(path, {CONTINUATION: token}).expect(400)


def test_empty_continuation_counts_as_none(crowd):
    assert ids(crowd.feed({CONTINUATION: "", MAX_ITEMS: "2"}).expect(200).json["Documents"]) == ["0", "1"]


def test_continuation_survives_a_restart(server, tmp_path):
    first = server("--data-dir", tmp_path / "data")
    client = first.client()
    container = client.create_database("d").create_container({"id": "c"})
    documents = container.fill(10)
    page = container.feed({MAX_ITEMS: "4"}).expect(200)
    client.close()
    first.stop()
    client.endpoint = server("--data-dir", tmp_path / "data").endpoint
    rest = container.all_documents({MAX_ITEMS: "4", CONTINUATION: page[CONTINUATION]})
    assert page.json["Documents"] + rest == documents


# ── SELECT * from c ─────────────────────────────────────────────────────────────────────────────────

READ_ALL = ["SELECT * from c", "SELECT * FROM c", "select * from c", "SELECT * FROM root", "select*from c", "SELECT * FROM items",
            "  SELECT\t*\r\n FROM   whatever_2  ", "SeLeCt * FrOm C"]


@pytest.mark.parametrize("text", READ_ALL)
def test_read_all_is_served_as_a_read_feed(container, text):
    documents = container.fill(3)
    page = container.client.post(container.docs, {"query": text}, wire.QUERY).expect(200)
    assert page.json == {"_rid": container.rid, "Documents": documents, "_count": 3}
    assert page["x-ms-item-count"] == "3" and wire.unversioned(page[wire.SESSION]) == "0:-1#4"
    assert page[CONTINUATION] is None


CROSS = {"x-ms-documentdb-query-enablecrosspartition": "True"}


@pytest.mark.parametrize("headers, body", [
    ({"content-type": "application/query+json"}, {"query": "SELECT * from c", "parameters": []}),
    ({"content-type": "application/query+json; charset=utf-8"}, {"query": "SELECT * from c"}),
    ({"content-type": "application/json", "x-ms-documentdb-isquery": "True"}, {"query": "SELECT * from c"}),
    ({"content-type": "application/json", "x-ms-documentdb-query": "true"}, {"query": "SELECT * from c"}),
    ({"content-type": None, "x-ms-documentdb-isquery": "TRUE"}, {"query": "SELECT * from c"}),
    ({"content-type": "application/sql"}, "SELECT * from c"),
    ({"content-type": "application/query+json", "x-ms-documentdb-is-upsert": "true"}, {"query": "SELECT * from c"}),
], ids=["query+json", "with charset", "isquery", "query", "no type", "sql", "before upsert"])
def test_query_is_recognised_in_every_spelling_of_the_clients(container, headers, body):
    container.fill(2)
    assert container.client.post(container.docs, body, headers | CROSS).expect(200).json["_count"] == 2
    assert len(container.all_documents()) == 2


def test_read_all_has_the_page_size_of_a_query(crowd):
    query = {"query": "SELECT * from c"}
    for size, count in ((None, 150), ("0", 150), ("-1", 150), ("100", 100)):
        headers = wire.QUERY | ({MAX_ITEMS: size} if size else {})
        assert crowd.client.post(crowd.docs, query, headers).expect(200).json["_count"] == count


@pytest.mark.parametrize("size", ["7", "50"])
def test_read_all_is_paged_over_all_ranges(spread, size):
    headers, found = wire.QUERY | {MAX_ITEMS: size}, []
    for _ in range(60):
        page = spread.client.post(spread.docs, {"query": "SELECT * from c"}, headers).expect(200)
        found += page.json["Documents"]
        if page[CONTINUATION] is None:
            break
        headers[CONTINUATION] = page[CONTINUATION]
    assert sorted(ids(found), key=int) == [str(n) for n in range(60)]


def test_read_all_of_a_key_or_range(spread):
    query = {"query": "SELECT * from c"}
    page = spread.client.post(spread.docs, query, wire.QUERY | {wire.KEY: "[17]"}).expect(200)
    assert ids(page.json["Documents"]) == ["17"]
    counts = [spread.client.post(spread.docs, query, wire.QUERY | {wire.RANGE_ID: each["id"]}).expect(200).json["_count"]
              for each in spread.ranges()]
    assert sum(counts) == 60
    spread.client.post(spread.docs, query, wire.QUERY | {wire.RANGE_ID: "77"}).expect(410, 1002)


@pytest.mark.parametrize("body", ["", "{", "[]", '"SELECT * from c"', "{}", '{"query":1}', '{"query":""}'])
def test_malformed_query_is_400(container, body):
    container.client.post(container.docs, body, wire.QUERY).expect(400)
