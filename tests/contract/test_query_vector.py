"""ORDER BY VectorDistance where the policy names an index: most of the most similar documents are found without looking at
all of them, and what is told of those that are found is exact."""
import json
import random
from urllib.parse import unquote

import pytest

import change_feed as cf
import queries
from harness import wire
from harness.waiting import wait_until

DIMENSIONS = 16
COUNT = 2400
KEYS = [f"k{number}" for number in range(40)]
SEARCHES = 20
SEED = 11

NEAREST = "SELECT TOP 10 c.id, VectorDistance(c.v, @v) AS distance FROM c ORDER BY VectorDistance(c.v, @v)"
EXACT = NEAREST[:-1] + ", true)"


def vector_container(db, kind="diskANN", function="cosine"):
    policy = {"vectorEmbeddings": [{"path": "/v", "dataType": "float32", "distanceFunction": function,
                                    "dimensions": DIMENSIONS}]}
    indexing = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}],
                "vectorIndexes": [{"path": "/v", "type": kind}]}
    return db.create_container({"vectorEmbeddingPolicy": policy, "indexingPolicy": indexing})


def random_vector(generator):
    return [round(generator.gauss(0, 1), 4) for _ in range(DIMENSIONS)]


def fill(container, count, generator):
    operations = [{"operationType": "Create", "partitionKey": json.dumps([KEYS[number % len(KEYS)]]),
                   "resourceBody": {"id": str(number), "pk": KEYS[number % len(KEYS)], "number": number,
                                    "v": random_vector(generator)}} for number in range(count)]
    for begin in range(0, count, 100):
        answer = cf.bulk(container, operations[begin:begin + 100]).expect(200)
        assert all(result["statusCode"] == 201 for result in answer.json)


def send(container, text, vector, **options):
    headers = {queries.EXPLAIN: "True"} | options.pop("headers", {})
    return queries.send(container, text, {"v": vector}, headers=headers, **options).expect(200)


def rows_of(container, text, vector, **options):
    return send(container, text, vector, **options).json["Documents"]


def ways(page):
    return {(part["way"], *part["indexes"]) for part in json.loads(unquote(page[queries.EXPLAIN]))["ranges"]}


def wait_for_index(container, vector, text=NEAREST):
    def is_used():
        return ways(send(container, text, vector)) == {("vector index", "/v VECTOR")}

    wait_until(is_used, 60, "the vector index")


def cosine(a, b):
    def dot(x, y):
        return sum(p * q for p, q in zip(x, y))

    return dot(a, b) / (dot(a, a) * dot(b, b)) ** 0.5


@pytest.fixture(scope="module")
def filled(module_client):
    print("seed", SEED)
    container = vector_container(module_client.create_database())
    fill(container, COUNT, random.Random(SEED))
    wait_for_index(container, [1.0] * DIMENSIONS)
    return container


def test_most_of_the_most_similar_documents_are_found_with_their_exact_distances(filled):
    generator = random.Random(SEED + 1)
    documents = {document["id"]: document["v"] for document in filled.all_documents({wire.MAX_ITEMS: 1000})}
    found = 0
    for _ in range(SEARCHES):
        vector = random_vector(generator)
        page = send(filled, NEAREST, vector)
        rows = page.json["Documents"]
        assert ways(page) == {("vector index", "/v VECTOR")} and len(rows) == 10
        exact = {row["id"]: row["distance"] for row in rows_of(filled, EXACT, vector)}
        assert exact == {row["id"]: row["distance"] for row in rows_of(filled, NEAREST, vector, headers={queries.ACCESS: "scan"})}
        distances = [row["distance"] for row in rows]
        assert distances == sorted(distances, reverse=True)
        for row in rows:
            assert abs(row["distance"] - cosine(documents[row["id"]], vector)) < 1e-5
            assert row["distance"] == exact.get(row["id"], row["distance"])
        found += sum(row["id"] in exact for row in rows)
    assert found >= 0.9 * 10 * SEARCHES, f"recall {found / 10 / SEARCHES}"


def test_who_wants_every_document_looked_at_gets_it(filled):
    vector = [0.5] * DIMENSIONS
    scan = {("scan",)}
    assert ways(send(filled, EXACT, vector)) == scan
    assert ways(send(filled, NEAREST, vector, headers={queries.ACCESS: "scan"})) == scan
    assert ways(send(filled, NEAREST, vector, size=9)) == scan, "more than one page"


def test_pages_show_the_same_as_one(filled):
    vector = [0.25, -1.0] * (DIMENSIONS // 2)
    exact = rows_of(filled, EXACT, vector)
    assert queries.rows(filled, NEAREST, {"v": vector}, size=3) == exact


def test_a_filter_holds_and_never_takes_rows_away(filled):
    generator = random.Random(SEED + 2)
    for filter_text, used in (("c.number % 3 = 1", "vector index"), ("c.number % 200 = 1", "scan"), ("c.number > 2380", None)):
        nearest, exact = (text.replace("FROM c", f"FROM c WHERE {filter_text}") for text in (NEAREST, EXACT))
        found = 0
        for _ in range(5):
            vector = random_vector(generator)
            page = send(filled, nearest, vector)
            ids = [row["id"] for row in page.json["Documents"]]
            expected = [row["id"] for row in rows_of(filled, exact, vector)]
            assert used is None or {way[0] for way in ways(page)} == {used}
            assert len(ids) == len(expected) == 10
            if used != "vector index":
                assert ids == expected
            found += len(set(ids) & set(expected))
        assert found >= 45, filter_text


def test_offset_and_limit(filled):
    vector = random_vector(random.Random(SEED + 3))
    text = "SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v) OFFSET {} LIMIT 5"
    page = send(filled, text.format(5), vector)
    assert {way[0] for way in ways(page)} == {"vector index"}
    both = rows_of(filled, text.format(0), vector) + page.json["Documents"]
    assert both == [row["id"] for row in rows_of(filled, NEAREST, vector)]


def test_a_ranking_of_several_scores_stands_on_the_same_documents(filled):
    generator = random.Random(SEED + 8)
    text = "SELECT TOP 10 VALUE c.id FROM c ORDER BY RANK RRF(VectorDistance(c.v, @v), VectorDistance(c.v, @w))"
    found = 0
    for _ in range(5):
        vector = random_vector(generator)
        near = [number + generator.gauss(0, 0.3) for number in vector]
        vectors = {"v": vector, "w": near}
        ids, exact = (queries.rows(filled, text, vectors, headers=headers) for headers in ({}, {queries.ACCESS: "scan"}))
        assert len(ids) == len(exact) == 10
        found += len(set(ids) & set(exact))
    assert found >= 45


def test_one_key_is_searched_by_itself(filled):
    vector = random_vector(random.Random(SEED + 4))
    ids = [row["id"] for row in rows_of(filled, NEAREST, vector, scope=cf.of_key(KEYS[3]))]
    assert len(ids) == 10 and all(int(name) % len(KEYS) == 3 for name in ids)


@pytest.mark.parametrize("kind, function", [("quantizedFlat", "euclidean"), ("diskANN", "dotproduct")])
def test_changes_count_at_once(db, kind, function):
    generator = random.Random(SEED + 5)
    container = vector_container(db, kind, function)
    fill(container, 1200, generator)
    vector = [3.0 * number for number in random_vector(generator)]
    wait_for_index(container, vector)
    first = NEAREST.replace("TOP 10", "TOP 1")

    def nearest(text=first):
        page = send(container, text, vector)
        assert {way[0] for way in ways(page)} == {"vector index"}
        return page.json["Documents"][0]["id"]

    # By far the largest product, and no distance at all where that counts.
    best = vector if function == "euclidean" else [10 * number for number in vector]
    before = nearest()
    container.create({"id": "new", "pk": "a", "v": best}).expect(201)
    assert nearest() == "new"
    container.replace("new", {"id": "new", "pk": "a", "v": [-number for number in best]}).expect(200)
    assert nearest() == before
    container.upsert({"id": "new", "pk": "a", "v": best}).expect(200)
    assert nearest() == "new"
    container.delete("new").expect(204)
    assert nearest() == before


def test_a_flat_index_is_exact(db):
    container = vector_container(db, "flat")
    fill(container, 1100, random.Random(SEED + 6))
    vector = [1.0] * DIMENSIONS
    for _ in range(3):
        assert ways(send(container, NEAREST, vector)) == {("scan",)}


def test_after_a_split_both_ranges_have_an_index(db):
    generator = random.Random(SEED + 7)
    container = vector_container(db)
    fill(container, 2 * COUNT, generator)
    vector = random_vector(generator)
    wait_for_index(container, vector)
    cf.split(container).expect(200)
    exact = rows_of(container, EXACT, vector)
    assert rows_of(container, NEAREST, vector) == exact, "until they are built"
    wait_for_index(container, vector)
    page = send(container, NEAREST, vector)
    assert len(json.loads(unquote(page[queries.EXPLAIN]))["ranges"]) == 2
    found = {row["id"] for row in page.json["Documents"]} & {row["id"] for row in exact}
    assert len(found) >= 9


@pytest.mark.parametrize("name", ["dotproduct", "dotProduct", "DotProduct", "Cosine", "COSINE", "Euclidean", "euclidean"])
def test_distance_functions_are_named_in_any_case(container, name):
    for number, vector in enumerate([[1, 0], [0, 3], [5, 5], [0, 1]]):
        container.create({"id": str(number), "pk": "a", "v": vector}).expect(201)
    best = {"dotproduct": ["2", "1"], "cosine": ["1", "3"], "euclidean": ["3", "0"]}[name.lower()]
    text = f"SELECT TOP 2 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [0, 1], true, {{distanceFunction: '{name}'}})"
    assert queries.rows(container, text) == best


@pytest.mark.parametrize("name", ["manhattan", "", "dot product", 7, None])
def test_an_unknown_distance_function_is_400(container, name):
    text = "SELECT TOP 2 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [0, 1], true, @options)"
    response = queries.send(container, text, {"options": {"distanceFunction": name}})
    assert "must be 'cosine', 'dotproduct' or 'euclidean'" in queries.error_of(response)[3]
    queries.plan(container, text, {"options": {"distanceFunction": name}}).expect(400)
