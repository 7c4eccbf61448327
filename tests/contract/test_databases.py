"""Databases."""
import re

import pytest

from harness import wire

FORBIDDEN_NAMES = ["", "a/b", "a\\b", "a?b", "a#b", "trailing ", " ", "a\tb", "a\nb", "a\x00b", "a\x7fb", "x" * 256]
ODD_NAMES = ["a b", " leading", "a%20b", "a+b", "ünï", "日本語", "😀", "a&b=c;d,e", "'quoted\"", "-._~!$()*@:", "x" * 223]


def test_created_database_has_its_members_in_order(client):
    name = wire.unique()
    database = client.create_database(name)
    assert list(database.body) == ["id", "_rid", "_self", "_etag", "_colls", "_users", "_ts"]
    assert database.body["id"] == name
    assert database.body["_colls"] == "colls/" and database.body["_users"] == "users/"
    assert database.response["etag"] == database.body["_etag"]
    assert re.match(r'^"[^"]+"$', database.body["_etag"]) and isinstance(database.body["_ts"], int)


def test_create_read_and_list_return_the_same_database(client, db):
    read = client.get(db.path).expect(200)
    assert read.body == db.response.body and read["etag"] == db.body["_etag"]
    listed = [each for page in client.pages("/dbs") for each in page.json["Databases"]]
    assert [each for each in listed if each["id"] == db.id] == [db.body]


def test_second_database_of_a_name_is_409(client, db):
    response = client.post("/dbs", {"id": db.id}).expect(409, 0, "Entity with the specified id already exists")
    assert response.json["code"] == "Conflict"


def test_names_that_differ_in_case_are_two_databases(client):
    name = wire.unique("Case")
    assert client.create_database(name).rid != client.create_database(name.upper()).rid


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_name_is_accepted_and_found(client, name):
    name = f"{name}-{wire.unique('x')[:31]}"[:255]
    database = client.create_database(name)
    assert client.get(database.path).expect(200).json["id"] == name


def test_name_of_255_characters_is_accepted(client):
    client.create_database(wire.unique().ljust(255, "x"))
    client.create_database(wire.unique().ljust(255, "ä"))


@pytest.mark.parametrize("name", FORBIDDEN_NAMES)
def test_forbidden_name_is_400(client, name):
    assert client.post("/dbs", {"id": name}).expect(400).json["code"] == "BadRequest"


@pytest.mark.parametrize("body", ["", "{", "[]", '"x"', "null", "{}", '{"id":1}', '{"id":null}', '{"id":["x"]}',
                                  '{"name":"x"}', b'{"id":"\xff"}', '{"id":"x"} trailing'])
def test_bad_body_is_400(client, body):
    client.post("/dbs", body).expect(400)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_missing_database_is_404_without_1003(client, verb):
    response = client.request(verb, f"/dbs/{wire.unique()}").expect(404, 0, "Resource Not Found")
    assert response.json["code"] == "NotFound"


def test_delete_is_204_once_and_takes_everything_below(client, db):
    container = db.create_container(throughput=400)
    container.create({"id": "x", "pk": "a"}).expect(201)
    offer = client.offers_of(container)[0]
    client.delete(db.path).expect(204)
    client.delete(db.path).expect(404, 0)
    client.get(container.path).expect(404, 1003)
    container.read("x").expect(404, 1003)
    client.get(f"{db.path}/colls").expect(404, 1003)
    client.get(f"/offers/{offer['id']}").expect(404)
    assert client.offers_of(container) == []


def test_recreated_database_is_empty(client, db):
    db.create_container({"id": "c"})
    client.delete(db.path).expect(204)
    client.create_database(db.id)
    assert client.get(f"{db.path}/colls").expect(200).json["DocumentCollections"] == []
    client.get(f"{db.path}/colls/c").expect(404, 0)
    client.get(db.self_path).expect(404)


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "POST"])
def test_database_cannot_be_replaced(client, db, verb):
    assert client.request(verb, db.path, db.body).expect(405).json["code"] == "MethodNotAllowed"


def test_list_is_an_envelope_with_the_count(client, db):
    page = client.get("/dbs", {wire.MAX_ITEMS: "-1"}).expect(200)
    assert page.json["_rid"] == ""
    assert page.json["_count"] == len(page.json["Databases"]) == int(page["x-ms-item-count"])
    assert page["content-type"] == "application/json"


def test_list_is_paged_without_loss_or_repetition(client):
    names = {client.create_database().id for _ in range(4)}
    listed = [each["id"] for page in client.pages("/dbs", {wire.MAX_ITEMS: "3"}) for each in page.json["Databases"]]
    assert len(listed) == len(set(listed)) and names <= set(listed)


def test_if_none_match_on_a_read_is_304(client, db):
    response = client.get(db.path, {"If-None-Match": db.body["_etag"]}).expect(304)
    assert response["etag"] == db.body["_etag"]
    client.get(db.path, {"If-None-Match": '"other"'}).expect(200)


def test_if_match_on_a_delete(client, db):
    client.delete(db.path, {"If-Match": '"other"'}).expect(412, text="One of the specified pre-condition is not met")
    client.delete(db.path, {"If-Match": db.body["_etag"]}).expect(204)


def test_databases_carry_no_session_token(client, db):
    for response in (db.response, client.get(db.path), client.get("/dbs")):
        assert response[wire.SESSION] is None


def test_quota_of_databases_is_a_list(client, db):
    assert re.match(r"^(\w+=-?\d+;)+$", client.get(db.path).expect(200)["x-ms-resource-quota"])


@pytest.mark.parametrize("level", ["Session", "Eventual", "Strong"])
def test_consistency_level_is_ignored_when_a_database_is_made(client, level):
    client.create_database(headers={"x-ms-consistency-level": level})


def test_name_that_is_too_long_is_refused_in_the_words_that_clients_look_for(client, db):
    for name in ("n" * 256, "ä" * 256):
        for path in ("/dbs", f"{db.path}/colls"):
            client.post(path, {"id": name}).expect(400, text="Ensure to provide a unique non-empty string less than '255' characters.")
