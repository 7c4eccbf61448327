"""Scores of many games become one board, which follows them and is the same after a restart."""

import random
import sys

from example_runs import Program, make_container, run, run_tests
from harness import seeds


def board_of(client, database):
    path = f"/dbs/{database.id}/colls/boards/docs/leaderboard"
    response = client.get(path, {"x-ms-documentdb-partitionkey": '["leaderboard"]'})
    return [(each["player"], each["score"]) for each in response.json["top"]] if response.status == 200 else None


def ranked(scores, top):
    best = {}
    for player, score in scores:
        best[player] = max(score, best.get(player, score))
    return sorted(best.items(), key=lambda each: (-each[1], each[0]))[:top]


def test_shows_the_best_scores_and_follows_them(client, database):
    chance = random.Random(seeds.seed())
    container = make_container(database, "scores", "/player", ranges=3)
    scores = []

    def play(player, score):
        document = {"id": f"game-{len(scores)}", "player": player, "score": score}
        container.create(document, [player]).expect(201)
        scores.append((player, score))

    for _ in range(200):
        play(f"player {chance.randrange(30)}", chance.randrange(10_000))
    # Documents without a valid score are skipped.
    container.create({"id": "odd-1", "player": 7, "score": 99_999}, [7]).expect(201)
    container.create({"id": "odd-2", "player": "nobody"}, ["nobody"]).expect(201)
    with Program("leaderboard", database.id, "scores", "boards", "--top=5") as program:
        program.wait_until(lambda: board_of(client, database) == ranked(scores, 5), "the board")
        play("late winner", 20_000)
        play("player 3", 15_000)
        program.wait_until(lambda: board_of(client, database) == ranked(scores, 5), "the board with the new scores")
        assert board_of(client, database)[0] == ("late winner", 20_000)
        program.end()


def test_is_built_anew_after_a_restart(client, database):
    container = make_container(database, "scores", "/player")
    for n, (player, score) in enumerate([("ada", 10), ("bob", 30), ("ada", 20)]):
        container.create({"id": str(n), "player": player, "score": score}, [player]).expect(201)
    run("leaderboard", database.id, "scores", "boards", "--once")
    assert board_of(client, database) == [("bob", 30), ("ada", 20)]
    client.delete(f"/dbs/{database.id}/colls/boards/docs/leaderboard",
                  {"x-ms-documentdb-partitionkey": '["leaderboard"]'}).expect(204)
    run("leaderboard", database.id, "scores", "boards", "--once")
    assert board_of(client, database) == [("bob", 30), ("ada", 20)]


if __name__ == "__main__":
    run_tests(sys.modules[__name__])
