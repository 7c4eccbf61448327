"""Queries over databases, containers, offers and ranges: the same language, the same paging."""
import pytest

import change_feed as cf
import queries
from harness import wire
from harness.wire import CONTINUATION, MAX_ITEMS


def send(client, path, text, parameters=None, size=None, token=None, headers=None):
    fields = queries.IS_QUERY | (headers or {})
    if size is not None:
        fields[MAX_ITEMS] = size
    if token is not None:
        fields[CONTINUATION] = token
    return client.post(path, queries.body_of(text, parameters), fields)


def rows(client, path, member, text, parameters=None, size=None):
    found, token = [], None
    for _ in range(1000):
        page = send(client, path, text, parameters, size, token).expect(200)
        body = page.json
        assert set(body) == {"_rid", member, "_count"} and body["_count"] == len(body[member]) == int(page["x-ms-item-count"])
        assert page[queries.EXECUTION_INFO] == '{"reverseRidEnabled":false,"reverseIndexScan":false}'
        assert size is None or body["_count"] <= size
        found += body[member]
        if (token := page[CONTINUATION]) is None:
            return found
        assert len(token) < queries.TOKEN_BYTES_MAX
    raise AssertionError("the query does not end")


@pytest.fixture(scope="module")
def filled(module_client):
    """A database with containers named a … e, of which b has five ranges."""
    database = module_client.create_database()
    containers = {}
    for n, name in enumerate("abcde"):
        containers[name] = database.create_container({"id": name, "defaultTtl": 100 + n % 2}, throughput=cf.FIVE_RANGES if name == "b" else 400)
    return database, containers


@pytest.fixture
def lists(filled):
    """Path, member, what the list itself says, and a member of it to sort by."""
    database, containers = filled
    return {"colls": (f"{database.path}/colls", "DocumentCollections", "id"), "pkranges": (f"{containers['b'].path}/pkranges", "PartitionKeyRanges", "minInclusive")}


@pytest.mark.parametrize("kind", ["colls", "pkranges"])
def test_all_of_a_list(module_client, lists, kind):
    path, member, _ = lists[kind]
    listed = module_client.get(path).expect(200).json
    page = send(module_client, path, "SELECT * FROM root").expect(200)
    assert page.json[member] == listed[member] and page.json["_rid"] == listed["_rid"] and len(listed[member]) == 5
    assert page.charge > 0 and page[CONTINUATION] is None
    assert rows(module_client, path, member, "SELECT * FROM root r", size=2) == listed[member]


@pytest.mark.parametrize("kind", ["colls", "pkranges"])
def test_the_language_is_the_same(module_client, lists, kind):
    path, member, key = lists[kind]
    listed = module_client.get(path).expect(200).json[member]
    keys = [each[key] for each in listed]
    for size in (None, 1, 2):
        assert rows(module_client, path, member, f"SELECT VALUE r.{key} FROM r ORDER BY r.{key} DESC", size=size) == sorted(keys, reverse=True)
        assert rows(module_client, path, member, f"SELECT VALUE r.{key} FROM r WHERE r.{key} > @k", {"k": keys[2]}, size=size) == keys[3:]
        assert rows(module_client, path, member, "SELECT r.id FROM r OFFSET 1 LIMIT 3", size=size) == [{"id": each["id"]} for each in listed[1:4]]
        assert rows(module_client, path, member, "SELECT TOP 2 VALUE r._rid FROM r", size=size) == [each["_rid"] for each in listed[:2]]
        assert rows(module_client, path, member, "SELECT VALUE COUNT(1) FROM r", size=size) == [5]
        assert rows(module_client, path, member, "SELECT DISTINCT VALUE IS_DEFINED(r.id) FROM r", size=size) == [True]
        assert len(rows(module_client, path, member, "SELECT r.id, n FROM r JOIN n IN (SELECT VALUE [1, 2, 3])", size=size)) == 15


def test_groups_of_containers(module_client, lists):
    path, member, _ = lists["colls"]
    text = "SELECT c.defaultTtl AS ttl, COUNT(1) AS n FROM c GROUP BY c.defaultTtl"
    for size in (None, 1):
        assert rows(module_client, path, member, text, size=size) == [{"ttl": 100, "n": 3}, {"ttl": 101, "n": 2}]


def test_helpers_of_the_sdks(client, db, container):
    by_id = "SELECT * FROM root r WHERE r.id=@id"
    assert rows(client, "/dbs", "Databases", by_id, {"id": db.id}) == [client.get(db.path).expect(200).json]
    assert rows(client, "/dbs", "Databases", by_id, {"id": "none"}) == []
    assert rows(client, f"{db.path}/colls", "DocumentCollections", by_id, {"id": container.id}) == [client.get(container.path).expect(200).json]
    for text, parameters in (("SELECT * FROM root r WHERE r.resource = @link", {"link": container.body["_self"]}),
                             ("SELECT * FROM root r WHERE r.offerResourceId = @rid", {"rid": container.rid})):
        (offer,) = rows(client, "/offers", "Offers", text, parameters)
        assert offer["offerResourceId"] == container.rid


def test_databases_and_offers_by_pages(client):
    databases = [client.create_database() for _ in range(4)]
    containers = [each.create_container() for each in databases]
    names = rows(client, "/dbs", "Databases", "SELECT VALUE r.id FROM r WHERE ARRAY_CONTAINS(@all, r.id)", {"all": [each.id for each in databases]}, size=1)
    assert names == [each.id for each in databases]
    offers = rows(client, "/offers", "Offers", "SELECT VALUE r.offerResourceId FROM r WHERE ARRAY_CONTAINS(@all, r.offerResourceId) ORDER BY r.offerResourceId",
                  {"all": [each.rid for each in containers]}, size=1)
    assert offers == sorted(each.rid for each in containers)


def test_no_permission_to_cross_partitions_is_needed(client, db):
    for path in ("/dbs", f"{db.path}/colls", "/offers"):
        send(client, path, "SELECT * FROM r", headers=queries.NO_CROSS).expect(200)


def test_what_is_created_between_pages_comes_at_the_end(client, db):
    for n in range(3):
        db.create_container({"id": f"c{n}"})
    path, text = f"{db.path}/colls", "SELECT VALUE c.id FROM c"
    first = send(client, path, text, size=2).expect(200)
    client.delete(f"{db.path}/colls/c1").expect(204)
    db.create_container({"id": "late"})
    rest = send(client, path, text, token=first[CONTINUATION]).expect(200)
    assert first.json["DocumentCollections"] == ["c0", "c1"] and rest.json["DocumentCollections"] == ["c2", "late"]


@pytest.mark.parametrize("path", ["/dbs", "/offers"])
def test_errors_are_the_same(client, path):
    start, end, code, _ = queries.error_of(send(client, path, "SELECT * FROM r WHERE"))
    assert (start, end, code) == (21, 21, "SC1002")
    assert queries.error_of(send(client, path, "SELECT * FROM r WHERE x.a = 1"))[2] == "SC2001"
    for token in ("x", "MQAAAA"):
        send(client, path, "SELECT * FROM r", token=token).expect(400, text="Invalid Continuation Token")
    for size in ("abc", "-2"):
        assert send(client, path, "SELECT * FROM r", size=size).expect(400).message.startswith(f"The input PageSize {size} is invalid")
    client.post(path, "{", queries.IS_QUERY).expect(400)
    client.post(path, {"query": "SELECT * FROM r"}, queries.IS_QUERY, signed=False).expect(401)
    assert send(client, path, "SELECT VALUE Infinity").expect(400, 4001).json["code"] == 4001


def test_a_token_of_another_query_or_list_is_400(module_client, lists):
    path, _, _ = lists["colls"]
    token = send(module_client, path, "SELECT * FROM r", size=1).expect(200)[CONTINUATION]
    send(module_client, path, "SELECT VALUE r FROM r", size=1, token=token).expect(400, text="Invalid Continuation Token")


def test_lists_of_what_is_not_there(client, db):
    send(client, "/dbs/none/colls", "SELECT * FROM r").expect(404)
    send(client, f"{db.path}/colls/none/pkranges", "SELECT * FROM r").expect(404)


def test_bare_text_and_flags(client, db):
    page = client.post("/dbs", f"SELECT VALUE r.id FROM r WHERE r.id = '{db.id}'", {"content-type": "application/sql"}).expect(200)
    assert page.json["Databases"] == [db.id]
    body = {"query": f"SELECT VALUE r.id FROM r WHERE r.id = '{db.id}'"}
    assert client.post("/dbs", body, {"x-ms-documentdb-isquery": "True"}).expect(200).json["Databases"] == [db.id]
    created = client.post("/dbs", {"id": wire.unique(), "query": "SELECT 1"}, {}).expect((201, 400))
    if created.status == 201:
        client.delete(f"/dbs/{created.json['id']}").expect(204)


def test_ranges_of_a_container_after_a_split(client, container):
    cf.split(container).expect(200)
    path = f"{container.path}/pkranges"
    assert rows(client, path, "PartitionKeyRanges", "SELECT VALUE r.id FROM r WHERE ARRAY_CONTAINS(r.parents, '0')", size=1) == ["1", "2"]
