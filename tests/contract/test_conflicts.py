"""The conflict feed of a container: an account of one region has no conflicts, but clients look for them."""
import pytest

import change_feed as cf
import queries
from harness import wire

CROSS = {"x-ms-documentdb-query-enablecrosspartition": "True"}
KEY_A = wire.key_header(["a"])


@pytest.fixture(params=[400, cf.FIVE_RANGES], ids=["one range", "five ranges"])
def feed(request, db):
    container = db.create_container(throughput=request.param)
    container.create({"id": "x", "pk": "a"}).expect(201)
    return container


@pytest.mark.parametrize("headers", [{}, KEY_A, CROSS, {wire.MAX_ITEMS: "-1"}, {wire.MAX_ITEMS: "10"}], ids=str)
def test_list_is_empty(client, feed, headers):
    response = client.get(f"{feed.path}/conflicts", headers).expect(200)
    assert response.json == {"_rid": feed.rid, "Conflicts": [], "_count": 0}
    assert response["x-ms-item-count"] == "0" and response[wire.CONTINUATION] is None and response.charge > 0
    assert response["x-ms-content-path"] == feed.rid and response[wire.SESSION]
    assert client.get(f"{feed.self_path}conflicts/", headers).expect(200).json == response.json


@pytest.mark.parametrize("headers", [{}, KEY_A, CROSS, KEY_A | CROSS], ids=str)
@pytest.mark.parametrize("text", ["SELECT * FROM c", "SELECT * FROM root r WHERE r.resourceId = @id"])
def test_queries_find_nothing(client, feed, headers, text):
    body = queries.body_of(text, {"id": "x"} if "@" in text else None)
    response = client.post(f"{feed.path}/conflicts", body, queries.IS_QUERY | headers).expect(200)
    assert response.json == {"_rid": feed.rid, "Conflicts": [], "_count": 0} and response[wire.CONTINUATION] is None


def test_queries_must_be_right_and_have_a_plan(client, feed):
    client.post(f"{feed.path}/conflicts", queries.body_of("SELECT FROM"), queries.IS_QUERY).expect(400)
    plan = client.post(f"{feed.path}/conflicts", queries.body_of("SELECT * FROM c"), queries.IS_QUERY | {
        "x-ms-cosmos-is-query-plan-request": "True"}).expect(200).json
    assert "queryInfo" in plan


@pytest.mark.parametrize("headers", [{}, KEY_A], ids=str)
@pytest.mark.parametrize("name", ["x", "KxEAAJE-AgABAAAAAAAAQA==", "a%20b"])
def test_one_that_is_missing_is_404(client, feed, name, headers):
    for verb in ("GET", "DELETE"):
        client.request(verb, f"{feed.path}/conflicts/{name}", None, headers).expect(404, 0, "conflict")


def test_conflicts_of_what_is_not_there(client, db):
    for path in (f"{db.path}/colls/none/conflicts", f"{db.path}/colls/none/conflicts/x", "/dbs/none/colls/c/conflicts"):
        client.get(path).expect(404, 1003)


def test_nobody_makes_or_replaces_a_conflict(client, feed):
    client.post(f"{feed.path}/conflicts", {"id": "x"}).expect(405)
    client.put(f"{feed.path}/conflicts/x", {"id": "x"}, KEY_A).expect(405)
    client.request("PATCH", f"{feed.path}/conflicts/x", [], KEY_A).expect(405)


def test_container_names_its_feed(client, feed):
    assert client.get(feed.path).expect(200).json["_conflicts"] == "conflicts/"


def test_reading_one_may_be_signed_as_if_it_were_a_user(client, feed):
    """As @azure/cosmos does it. The link still has to be that of the conflict."""
    link = f"dbs/{feed.database.id}/colls/{feed.id}/conflicts/x"
    client.get(f"/{link}", KEY_A, what=("users", link)).expect(404)
    client.get(f"/{link}", KEY_A, what=("users", f"dbs/{feed.database.id}")).expect(401)
    client.get(f"/{link}", KEY_A, what=("docs", link)).expect(401)
    client.get(f"{feed.path}/conflicts", what=("users", feed.path[1:])).expect(401)
    # It even asks at another path.
    client.get(f"/{link}/conflicts", KEY_A, what=("users", link)).expect(404)
    client.get(f"/{link}/conflicts", KEY_A, what=("users", link + "x")).expect(401)
