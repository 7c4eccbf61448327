"""Pages of one reading, with one split after another between them: each row comes once."""
import itertools

import pytest

import change_feed as cf
import queries
from harness.wire import CONTINUATION

KEYS = 11
COUNT = 30
TEXTS = [
    "SELECT VALUE c.id FROM c",
    "SELECT c.id, e FROM c JOIN e IN c.list",
    "SELECT VALUE c.id FROM c WHERE c.n >= 3",
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.tie",
    "SELECT c.id, e FROM c JOIN e IN c.list ORDER BY c.tie",
    "SELECT DISTINCT VALUE c.tie FROM c",
]


@pytest.fixture
def container(db):
    made = db.create_container({"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}})
    queries.fill(made, [{"pk": f"k{n % KEYS}", "n": n, "tie": n % 3, "list": [n, n + 1]} for n in range(COUNT)])
    return made


def split_first(container):
    """In two: the range at the beginning, where the reading is or has been."""
    first = min(container.ranges(), key=lambda each: each["minInclusive"])
    cf.split(container, first["id"]).expect(200)


def rows_over_splits(container, text, every, splits=3):
    rows, left = [], splits
    for number, page in enumerate(queries.pages(container, text, size=1), 1):
        rows += page.json["Documents"]
        if left > 0 and number % every == 0:
            split_first(container)
            left -= 1
    assert left == 0, "there are as many pages as splits want"
    return rows


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("text", TEXTS)
def test_a_query_shows_each_row_once(container, text, every):
    if "DISTINCT" in text and every > 1:
        pytest.skip("there are three rows only")
    wanted = queries.rows(container, text)
    found = rows_over_splits(container, text, every)
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


@pytest.mark.parametrize("every", [1, 2, 3])
def test_offset_and_limit_count_each_row_once(container, every):
    found = rows_over_splits(container, "SELECT VALUE c.id FROM c OFFSET 5 LIMIT 20", every)
    assert len(found) == len(set(found)) == 20


@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_read_feed_shows_each_document_once(container, every):
    found, token, splits = [], None, 0
    for number in itertools.count(1):
        page = container.client.get(container.docs, {"x-ms-max-item-count": "1"} | ({CONTINUATION: token} if token else {}))
        found += [each["id"] for each in page.expect(200).json["Documents"]]
        token = page[CONTINUATION]
        if token is None:
            break
        if splits < 3 and number % every == 0:
            split_first(container)
            splits += 1
    assert sorted(found, key=int) == [str(n) for n in range(COUNT)]
