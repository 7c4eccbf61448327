"""CF-143 … CF-148: deletes, time to live, documents made anew."""
import pytest

import change_feed as cf
from harness.waiting import wait_until

PURGE_SECONDS = 20.0


def gone(container, name, seconds=6):
    wait_until(lambda: container.read(name).status == 404, seconds, f"the expiry of {name}")


@pytest.fixture
def mortal(db):
    """Documents live for ever unless they have a ttl of their own."""
    return db.create_container({"defaultTtl": -1})


def test_cf_143_a_created_and_deleted_document_leaves_only_a_higher_etag(container):
    at = cf.position_now(container)
    cf.put(container, "a")
    lsn = cf.lsn_written(container.delete("a"))
    for start in (at, None, 2):
        assert cf.read(container, start).expect(304)["etag"] == f'"{lsn}"'


def test_cf_143_a_key_deleted_as_a_whole_is_one_transaction(db):
    container = db.create_container(cf.HISTORY)
    for n in range(5):
        cf.put(container, str(n), "a")
        cf.put(container, str(n), "redmond")
    at = cf.position_now(container)
    container.delete_key(["a"]).expect(200)
    wait_until(lambda: cf.read(container, scope=cf.of_key("a")).status == 304, 10, "the delete of a key")
    assert [item["pk"] for item in cf.drain(container)[0]] == ["redmond"] * 5
    deletes, _ = cf.drain(container, at, headers=cf.ALL_VERSIONS)
    assert sorted(item["metadata"]["id"] for item in deletes) == list("01234")
    assert len({cf.lsn_of(item) for item in deletes}) == 1


def test_cf_144_a_document_made_anew_is_one_new_document(container):
    old = container.create({"id": "a", "pk": "a", "n": 1}).expect(201).json
    at = cf.drain(container)[1]
    container.delete("a").expect(204)
    new = container.create({"id": "a", "pk": "a", "n": 2}).expect(201)
    for start in (None, at):
        (item,), _ = cf.drain(container, start)
        assert item["n"] == 2 and item["_lsn"] == cf.head(new) and item["_rid"] == new.json["_rid"] != old["_rid"]


def test_cf_145_an_expired_document_is_not_in_the_feed_even_before_the_purge(mortal):
    """Asked in the very moment in which a point read no longer finds it."""
    at = cf.position_now(mortal)
    cf.put(mortal, "stays")
    for n in range(3):
        cf.put(mortal, f"goes {n}", ttl=1)
    cf.put(mortal, "long", ttl=1000)
    assert len(cf.drain(mortal, at)[0]) >= 2
    gone(mortal, "goes 2")
    for options in ({}, {"scope": cf.of_key("a")}, {"scope": cf.of_epks("", "FF")}, {"headers": cf.WIRE_FORMAT}, {"size": 1}):
        assert cf.ids(cf.drain(mortal, at, **options)[0]) == ["stays", "long"]


def test_cf_145_a_default_ttl_counts_for_documents_without_their_own(db):
    container = db.create_container({"defaultTtl": 1})
    cf.put(container, "default")
    cf.put(container, "never", ttl=-1)
    cf.put(container, "own", ttl=1000)
    gone(container, "default")
    assert cf.ids(cf.drain(container)[0]) == ["never", "own"]


def test_cf_145_a_time_start_does_not_find_expired_documents(mortal):
    ts = mortal.create({"id": "goes", "pk": "a", "ttl": 1}).expect(201).json["_ts"]
    gone(mortal, "goes")
    cf.read(mortal, headers=cf.since(ts - 1)).expect(304)


def test_cf_146_a_purge_advances_the_head_like_a_delete(mortal):
    lsn = cf.put(mortal, "goes", ttl=1)
    wait_until(lambda: cf.position(cf.read(mortal, lsn).expect(304)) > lsn, PURGE_SECONDS, "the purge")
    at = cf.read(mortal, lsn).expect(304)
    assert cf.position(at) == lsn + 1 == cf.head(at), "one document, one transaction"
    assert cf.put(mortal, "next") == lsn + 2


@pytest.mark.parametrize("kind", ["create", "upsert"])
def test_cf_146_a_write_that_meets_an_expired_document_makes_a_new_one(mortal, kind):
    old = mortal.create({"id": "x", "pk": "a", "ttl": 1}).expect(201).json
    gone(mortal, "x")
    write = mortal.create if kind == "create" else mortal.upsert
    response = write({"id": "x", "pk": "a", "n": 1}).expect(201)
    (item,), _ = cf.drain(mortal)
    assert item["n"] == 1 and item["_rid"] == response.json["_rid"] != old["_rid"] and item["_lsn"] == cf.head(response)


def test_cf_146_other_writes_find_no_expired_document(mortal):
    cf.put(mortal, "x", ttl=1)
    gone(mortal, "x")
    mortal.replace("x", {"id": "x", "pk": "a", "n": 1}).expect(404)
    cf.patch(mortal, "x", [{"op": "set", "path": "/n", "value": 1}]).expect(404)
    mortal.delete("x").expect(404)
    cf.post_batch(mortal, [cf.replacing("x")]).expect(207)
    assert cf.drain(mortal)[0] == []


def test_cf_146_the_purge_by_a_write_stands_right_before_it_in_all_versions(db):
    container = db.create_container({"defaultTtl": -1} | cf.HISTORY)
    at = cf.position_now(container)
    first = cf.put(container, "x", ttl=1)
    gone(container, "x")
    second = cf.lsn_written(container.create({"id": "x", "pk": "a"}).expect(201))
    items, _ = cf.drain(container, at, headers=cf.ALL_VERSIONS)
    assert [item["metadata"]["operationType"] for item in items] == ["create", "delete", "create"]
    created, expired, anew = (item["metadata"] for item in items)
    assert expired["timeToLiveExpired"] is True and expired["id"] == "x" and expired["previousImageLSN"] == first
    assert created["lsn"] == first < expired["lsn"] <= anew["lsn"] == second
    assert anew.get("previousImageLSN", 0) == 0, "a create, although there was one of its id"


def test_cf_146_an_expired_unique_value_is_free(db):
    container = db.create_container({"defaultTtl": -1, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/email"]}]}} | cf.HISTORY)
    at = cf.position_now(container)
    cf.put(container, "x", email="e", ttl=2)
    container.create({"id": "y", "pk": "a", "email": "e"}).expect(409)
    gone(container, "x")
    lsn = cf.lsn_written(container.upsert({"id": "z", "pk": "a", "email": "e"}).expect(201))
    items, _ = cf.drain(container, at, headers=cf.ALL_VERSIONS)
    kinds = [(item["metadata"]["operationType"], *cf.ids([item])) for item in items]
    assert kinds == [("create", "x"), ("delete", "x"), ("create", "z")] and cf.lsn_of(items[1]) <= cf.lsn_of(items[2]) == lsn


def test_cf_146_a_write_restarts_the_ttl(mortal):
    at = cf.put(mortal, "x", ttl=2)
    first = mortal.read("x").expect(200).json["_ts"]
    cf.later_than(mortal, first)
    cf.put(mortal, "x", ttl=1000)
    cf.later_than(mortal, first + 2)
    assert cf.ids(cf.drain(mortal, at)[0]) == ["x"]


def test_cf_147_another_default_ttl_makes_no_changes_appear(container):
    container.fill(3)
    at = cf.drain(container)[1]
    cf.replace_container(container, defaultTtl=1).expect(200)
    found, after = cf.drain(container, at)
    assert found == []
    gone(container, "2")
    assert cf.drain(container)[0] == [], "documents just vanish when due"
    cf.replace_container(container, defaultTtl=None).expect(200)
    assert all(item["id"] in "012" for item in cf.drain(container)[0])
    assert cf.position(cf.read(container, after).expect((200, 304))) >= cf.position(cf.read(container, at).expect((200, 304)))


def test_cf_147_enabling_ttl_takes_no_lsn_by_itself(container):
    container.fill(2)
    cf.replace_container(container, defaultTtl=1000).expect(200)
    assert cf.put(container, "next") == 4


def test_cf_148_a_replace_with_identical_content_is_a_change(container):
    body = {"id": "a", "pk": "a", "n": 1}
    first = container.create(body).expect(201)
    second = container.replace("a", body).expect(200)
    third = container.upsert(body).expect(200)
    assert [cf.head(each) for each in (first, second, third)] == [2, 3, 4]
    assert len({each.json["_etag"] for each in (first, second, third)}) == 3
    (item,), _ = cf.drain(container, 2)
    assert item["_lsn"] == 4 and item["_etag"] == third.json["_etag"]


def test_cf_148_a_replace_that_renames_is_one_change(db):
    container = db.create_container(cf.HISTORY)
    at = cf.position_now(container)
    old = container.create({"id": "old", "pk": "a", "n": 1}).expect(201).json
    lsn = cf.lsn_written(container.replace("old", {"id": "new", "pk": "a", "n": 2}))
    (item,), _ = cf.drain(container, at)
    assert (item["id"], item["_rid"], item["_lsn"]) == ("new", old["_rid"], lsn)
    _, renamed = cf.drain(container, at, headers=cf.ALL_VERSIONS)[0]
    assert renamed["metadata"]["operationType"] == "replace" and renamed["metadata"]["previousImageLSN"] == 2
    assert renamed["current"]["id"] == "new" and renamed["current"]["_rid"] == old["_rid"]


def test_cf_146_expired_documents_of_several_keys_are_purged_and_counted_once(mortal):
    for n in range(10):
        last = cf.put(mortal, str(n), list(cf.EPKS)[n % 5], ttl=1)
    keep = cf.put(mortal, "stays")
    assert keep == last + 1
    quiet = wait_until(lambda: settled(mortal, keep), PURGE_SECONDS, "the purge of ten documents")
    assert keep < quiet <= keep + 10, "at most one transaction each"
    assert cf.ids(cf.drain(mortal)[0]) == ["stays"] and cf.ids(mortal.all_documents()) == ["stays"]


def settled(container, floor):
    """The head, once a purge has happened and every document of /n is gone from the plain feed."""
    at = cf.position(cf.read(container, floor).expect(304))
    return at if at > floor and len(container.all_documents()) == 1 else None
