"""Scans of many documents for few: threads read ahead for them (10,000 documents and more), and nothing is to be seen of
it but the time that it takes."""
import json
import urllib.parse

import pytest

import change_feed as cf
import queries
from harness.waiting import wait_until

DOCUMENTS = 12_000
BY_SCAN = {queries.ACCESS: "scan"}
IS_WANTED = "c.n % 401 = 3"


def wanted(n):
    return n % 401 == 3


def upsert(container, numbers, **members):
    numbers = list(numbers)
    for begin in range(0, len(numbers), 100):
        operations = [{"operationType": "Upsert", "partitionKey": '["a"]',
                       "resourceBody": {"id": f"d{n}", "pk": "a", "n": n, "twice": 2 * n} | members} for n in numbers[begin:begin + 100]]
        assert {result["statusCode"] for result in cf.bulk(container, operations).expect(200).json} <= {200, 201}


@pytest.fixture(scope="module")
def many(module_client):
    container = module_client.create_database().create_container()
    upsert(container, range(DOCUMENTS))
    return container


@pytest.fixture(scope="module", params=["as it was written", "written again in part"])
def scanned(request, many):
    if request.param != "as it was written":
        upsert(many, range(0, DOCUMENTS, 5), again=True)
    return many


@pytest.mark.parametrize("size", [1, 7, None, -1])
def test_rows_come_once_each_in_the_order_of_documents_whatever_the_pages(scanned, size):
    rows = queries.rows(scanned, f"SELECT VALUE c.n FROM c WHERE {IS_WANTED}", size=size, headers=BY_SCAN)
    assert rows == [n for n in range(DOCUMENTS) if wanted(n)]


@pytest.mark.parametrize("text, rows", [
    (f"SELECT VALUE COUNT(1) FROM c WHERE {IS_WANTED}", [sum(map(wanted, range(DOCUMENTS)))]),
    (f"SELECT VALUE SUM(c.n) FROM c WHERE {IS_WANTED}", [sum(filter(wanted, range(DOCUMENTS)))]),
    (f"SELECT VALUE c.n FROM c WHERE {IS_WANTED} ORDER BY c.n DESC", [n for n in reversed(range(DOCUMENTS)) if wanted(n)]),
    (f"SELECT TOP 3 VALUE c.n FROM c WHERE {IS_WANTED}", [3, 404, 805]),
    (f"SELECT VALUE c.n FROM c WHERE {IS_WANTED} OFFSET 20 LIMIT 2", [8023, 8424]),
    ("SELECT DISTINCT VALUE c.n % 2 FROM c WHERE c.n % 401 IN (3, 4)", [1, 0]),
    ("SELECT VALUE c.n FROM c WHERE c.none", []),
    ("SELECT VALUE COUNT(1) FROM c WHERE c.n >= 100", [DOCUMENTS - 100]),
    ("SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE [c.n, -c.n]) WHERE c.n < 20", [40]),
])
def test_every_shape_of_query(scanned, text, rows):
    assert queries.rows(scanned, text, headers=BY_SCAN) == rows


def test_metrics_and_charge_count_what_was_read_ahead(scanned):
    page = queries.send(scanned, f"SELECT VALUE c.n FROM c WHERE {IS_WANTED}", size=-1,
                        headers=BY_SCAN | {"x-ms-documentdb-populatequerymetrics": "True"}).expect(200)
    metrics = dict(item.split("=") for item in page[queries.METRICS].split(";"))
    assert int(metrics["retrievedDocumentCount"]) == DOCUMENTS
    assert int(metrics["retrievedDocumentSize"]) > 100 * DOCUMENTS
    assert page.charge > 100


def test_what_an_expression_refuses_is_told(scanned):
    queries.send(scanned, "SELECT VALUE c.n FROM c WHERE udf.none(c.n)", headers=BY_SCAN).expect(400)
    queries.send(scanned, "SELECT VALUE 1 / 0 FROM c WHERE c.n = 11000", headers=BY_SCAN).expect(400)


def explained(container, text, **headers):
    page = queries.send(container, text, headers=headers | {queries.EXPLAIN: "true"}).expect(200)
    return json.loads(urllib.parse.unquote(page[queries.EXPLAIN]))


def test_scans_on_request_have_no_index_built(many):
    """Others do, by themselves."""
    unwanted, wished = ("SELECT VALUE c.id FROM c WHERE c.twice = 10", "SELECT VALUE c.id FROM c WHERE c.n = 10")
    for _ in range(5):
        explained(many, unwanted, **BY_SCAN)
    wait_until(lambda: explained(many, wished)["ranges"][0]["way"] == "index", 60, "an index of what was asked for")
    told = explained(many, unwanted, **BY_SCAN)
    assert told["ranges"][0]["way"] == "scan" and told["helpful"] == ["/twice"] and told["building"] == []
