"""x-ms-version and what it varies."""
import pytest

from harness import wire

SYSTEM_KEY = {"paths": ["/_partitionKey"], "kind": "Hash", "systemKey": True}


@pytest.mark.parametrize("version", ["2015-12-16", "2016-07-11", "2017-02-22", "2017-11-15", "2018-06-18", "2018-09-17",
                                     "2018-12-31", "2020-07-15", "1999-01-01", "2099-12-31"])
def test_every_date_is_accepted(client, version):
    client.get("/dbs", version=version).expect(200)


def test_absent_version_is_the_newest(client, container):
    response = container.create({"id": "x", "pk": "a"}, headers={"x-ms-version": None}).expect(201)
    assert wire.unversioned(response[wire.SESSION]) == "0:-1#2"


@pytest.mark.parametrize("version", ["latest", "2020", "2020-7-15", "2020/07/15", "20200715", "2020-07-15T00:00:00Z", "1.0"])
def test_what_is_no_date_is_400(client, version):
    client.get("/dbs", version=version).expect(400)
    client.get("/dbs", version=version, signed=False).expect(401)


@pytest.mark.parametrize("version, shown", [("2017-11-15", None), ("2018-06-18", None), ("2018-09-17", None),
                                            ("2018-12-31", SYSTEM_KEY), ("2020-07-15", SYSTEM_KEY)])
def test_container_without_a_key_shows_its_system_key_from_2018_12_31(client, db, version, shown):
    container = db.create_container({"partitionKey": wire.ABSENT}, version=wire.OLDEST)
    assert "partitionKey" not in container.body
    assert client.get(container.path, version=version).expect(200).json.get("partitionKey") == shown
    listed = client.get(f"{db.path}/colls", version=version).expect(200).json["DocumentCollections"]
    assert [each.get("partitionKey") for each in listed] == [shown]


@pytest.mark.parametrize("version, status", [("2017-11-15", 400), ("2018-12-31", 400), ("2020-07-15", 201)])
def test_hierarchical_keys_need_2020_07_15(db, version, status):
    definition = {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}
    db.post_container({"partitionKey": definition}, version=version).expect(status)


@pytest.mark.parametrize("version, form", [("2017-11-15", "0:{}"), ("2018-06-17", "0:{}"), ("2018-06-18", "0:-1#{}"),
                                           ("2018-09-17", "0:-1#{}"), ("2020-07-15", "0:-1#{}"), ("2099-01-01", "0:-1#{}")])
def test_session_token_takes_its_form_from_the_version_on_every_response(client, container, version, form):
    created = container.create({"id": "x", "pk": "a"}, version=version).expect(201)
    assert wire.unversioned(created[wire.SESSION]) == form.format(2)
    assert wire.unversioned(container.read("x", version=version).expect(200)[wire.SESSION]) == form.format(2)
    not_modified = container.read("x", headers={"If-None-Match": created["etag"]}, version=version).expect(304)
    assert wire.unversioned(not_modified[wire.SESSION]) == form.format(2)
    assert wire.unversioned(container.feed(version=version).expect(200)[wire.SESSION]) == form.format(2)
    assert wire.unversioned(container.create({"id": "x", "pk": "a"}, version=version).expect(409)[wire.SESSION]) == form.format(2)
    assert wire.unversioned(container.read("y", version=version).expect(404)[wire.SESSION]) == form.format(2)
    assert wire.unversioned(container.delete("x", version=version).expect(204)[wire.SESSION]) == form.format(3)
