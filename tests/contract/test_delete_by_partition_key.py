"""POST …/operations/partitionkeydelete."""
import pytest

from harness import wire


def test_all_items_of_the_key_are_gone_at_once_and_others_stay(container):
    container.fill(5, "a")
    container.fill(2, "b")
    response = container.delete_key(["a"]).expect(200)
    assert response.body == b""
    assert [document["pk"] for document in container.all_documents()] == ["b", "b"]
    container.read("0").expect(404, 0)
    container.create({"id": "0", "pk": "a"}).expect(201)


@pytest.mark.parametrize("key", [["unknown"], [None], [{}]])
def test_key_without_items_is_200_and_changes_nothing(container, key):
    container.fill(2)
    container.delete_key(key).expect(200)
    assert len(container.all_documents()) == 2


def test_delete_of_a_key_is_one_transaction(container):
    container.fill(5)
    container.delete_key(["a"]).expect(200)
    assert wire.unversioned(container.read("0").expect(404)[wire.SESSION]) == "0:-1#7"


def test_undefined_key_is_not_null(container):
    container.create({"id": "undefined"}).expect(201)
    container.create({"id": "null", "pk": None}).expect(201)
    container.delete_key([{}]).expect(200)
    assert [document["id"] for document in container.all_documents()] == ["null"]


@pytest.mark.parametrize("signed_as", ["colls", "partitionkey"])
def test_both_signatures_of_the_clients_are_accepted(container, signed_as):
    link = f"dbs/{container.database.id}/colls/{container.id}"
    container.delete_key(["a"], what=(signed_as, link)).expect(200)
    container.delete_key(["a"], what=("docs", link)).expect(401)


def test_missing_or_malformed_key_is_400(container):
    container.delete_key(None).expect(400)
    container.delete_key("not json").expect(400)
    container.delete_key(["a", "b"]).expect(400, 1001)


def test_hierarchical_key_must_be_complete(db):
    container = db.create_container({"partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}})
    for name in ("x", "y"):
        container.create({"id": name, "a": "1", "b": name}, ["1", name]).expect(201)
    container.delete_key(["1"]).expect(400, 1001)
    container.delete_key([]).expect(400)
    container.delete_key(["1", "x"]).expect(200)
    assert [document["id"] for document in container.all_documents()] == ["y"]


def test_other_verbs_are_405_and_a_missing_container_404(client, container):
    path = f"{container.path}/operations/partitionkeydelete"
    for verb in ("GET", "PUT", "DELETE"):
        client.request(verb, path).expect(405)
    client.post(f"{container.database.path}/colls/none/operations/partitionkeydelete", None,
                {wire.KEY: '["a"]'}).expect(404, 1003)
