"""Rankings by full text: BM25 as published, and the same order every time."""
import math
import random

import pytest

import queries
from harness import wire

FIVE_RANGES = 30_000
WORDS = ["comet", "dust", "orbit", "tail", "crater", "moon", "ring", "storm"]
STOP_WORDS = {"the", "of", "a", "and"}
SATURATION, LENGTH_WEIGHT = 1.2, 0.75


@pytest.fixture(scope="module", params=[400, FIVE_RANGES], ids=["one range", "five ranges"])
def library(module_client, request):
    """Texts of words that are their own stems, many of which are equally good."""
    chance = random.Random(16)
    container = module_client.create_database().create_container(
        {"partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}}, throughput=request.param)
    for number in range(60):
        words = chance.choices(WORDS, k=chance.choice([4, 8, 12])) + chance.choices(sorted(STOP_WORDS), k=number % 5)
        container.create({"id": str(number), "t": " ".join(words)}, [str(number)]).expect(201)
    return container


def best_first(container, terms):
    """By the formula: stop words do not count, neither as terms nor for the length of a text."""
    rows = queries.rows(container, "SELECT c.id, c.t, c._rid FROM c")
    texts = {row["id"]: [word for word in row["t"].split() if word not in STOP_WORDS] for row in rows}
    average = sum(map(len, texts.values())) / len(texts)

    def score(words):
        total = 0
        for term in terms:
            hits = sum(term in other for other in texts.values())
            rarity = math.log(1 + (len(texts) - hits + 0.5) / (hits + 0.5))
            count = words.count(term)
            total += rarity * count * (SATURATION + 1) / (count + SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * len(words) / average))
        return round(total, 9)

    return [row["id"] for row in sorted(rows, key=lambda row: (-score(texts[row["id"]]), int.from_bytes(wire.rid_bytes(row["_rid"])[8:], "little")))]


@pytest.mark.parametrize("terms", [["comet"], ["dust", "ring"], ["storm", "tail", "moon"], ["the", "crater"], ["nowhere"]], ids="+".join)
def test_texts_come_by_their_score_and_then_by_document(library, terms):
    wanted = best_first(library, terms)
    text = f"SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.t, {', '.join(map(repr, terms))})"
    for size in (None, None, 7):
        assert queries.rows(library, text, size=size) == wanted
    assert queries.rows(library, text.replace("SELECT", "SELECT TOP 20")) == wanted[:20]
    assert queries.rows(library, text + " OFFSET 5 LIMIT 9") == wanted[5:14]
