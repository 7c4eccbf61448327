"""CF-200 … CF-213: all versions and deletes."""
import pytest

import change_feed as cf
from harness.waiting import wait_until

RETENTION = "You must read the change feed from within the retention period."
ENABLED = "Change Feed 'All Versions and Deletes' mode must be enabled"


@pytest.fixture
def history(db):
    return db.create_container(cf.HISTORY)


def versions(container, after_etag, size=None, scope=None):
    return cf.drain(container, after_etag, size, headers=cf.ALL_VERSIONS, scope=scope)[0]


def brief(items):
    return [(item["metadata"]["operationType"], *cf.ids([item]), cf.lsn_of(item)) for item in items]


@pytest.mark.parametrize("minutes", [1, 10, 1440, 0])
def test_cf_200_retention_is_given_in_minutes(db, minutes):
    container = db.create_container({"changeFeedPolicy": {"retentionDuration": minutes}})
    assert container.body["changeFeedPolicy"]["retentionDuration"] == minutes
    assert container.client.get(container.path).expect(200).json["changeFeedPolicy"]["retentionDuration"] == minutes
    response = cf.read(container, "*", headers=cf.ALL_VERSIONS)
    response.expect(304) if minutes else response.expect(400, text=ENABLED)


@pytest.mark.parametrize("value", [-1, 1.5, "10", True, {}])
def test_cf_200_a_false_retention_is_400(db, value):
    db.post_container({"changeFeedPolicy": {"retentionDuration": value}}).expect(400)


def test_cf_201_the_mode_must_be_enabled(container):
    container.fill(1)
    for at in (None, "*", 1, 2):
        cf.read(container, at, headers=cf.ALL_VERSIONS).expect(400, text=ENABLED)
        cf.read(container, at, headers=cf.FULL_FIDELITY).expect(400, text=ENABLED)


def test_cf_201_the_mode_without_the_wire_format_header_is_the_same(history):
    at = cf.position_now(history)
    cf.put(history, "a")
    with_header = cf.read(history, at, headers=cf.ALL_VERSIONS).expect(200)
    assert cf.read(history, at, headers=cf.FULL_FIDELITY).expect(200).body == with_header.body


def test_cf_202_from_the_beginning_is_refused(history):
    cf.read(history, headers=cf.ALL_VERSIONS).expect(400, text=RETENTION)
    history.fill(2)
    cf.read(history, headers=cf.ALL_VERSIONS).expect(400, text=RETENTION)
    cf.read(history, headers=cf.ALL_VERSIONS, scope=cf.of_key("a")).expect(400, text=RETENTION)


def test_cf_202_now_and_an_etag_are_served(history):
    history.fill(2)
    assert cf.read(history, "*", headers=cf.ALL_VERSIONS).expect(304)["etag"] == '"3"'
    assert brief(versions(history, 1)) == [("create", "0", 2), ("create", "1", 3)]
    assert cf.read(history, 3, headers=cf.ALL_VERSIONS).expect(304)["etag"] == '"3"'


def test_cf_203_a_time_is_refused(history):
    first = history.fill(1)[0]
    cf.read(history, headers=cf.ALL_VERSIONS | cf.since(first["_ts"] - 1)).expect(400)


def test_cf_204_an_etag_below_the_begin_of_history_is_refused(container):
    container.fill(3)
    cf.replace_container(container, **cf.HISTORY).expect(200)
    for at in (0, 1, 2, 3):
        cf.read(container, at, headers=cf.ALL_VERSIONS).expect(400, text=RETENTION)
    assert cf.read(container, 4, headers=cf.ALL_VERSIONS).expect(304)["etag"] == '"4"'
    assert cf.read(container, "*", headers=cf.ALL_VERSIONS).expect(304)["etag"] == '"4"'
    cf.put(container, "1", n="new")
    container.delete("0").expect(204)
    first, second = versions(container, 4)
    assert first["metadata"]["operationType"] == "replace" and first["metadata"]["previousImageLSN"] == 3
    assert second["metadata"]["operationType"] == "delete" and second["metadata"]["previousImageLSN"] == 2
    cf.read(container, 3, headers=cf.ALL_VERSIONS).expect(400, text=RETENTION)


def test_cf_204_history_switched_off_and_on_has_a_new_begin(history):
    cf.put(history, "a")
    cf.replace_container(history, changeFeedPolicy={"retentionDuration": 0}).expect(200)
    cf.read(history, 1, headers=cf.ALL_VERSIONS).expect(400, text=ENABLED)
    cf.put(history, "b")
    cf.replace_container(history, **cf.HISTORY).expect(200)
    cf.read(history, 1, headers=cf.ALL_VERSIONS).expect(400, text=RETENTION)
    cf.read(history, 2, headers=cf.ALL_VERSIONS).expect(400, text=RETENTION)
    cf.put(history, "c")
    assert brief(versions(history, 3)) == [("create", "c", 4)]
    assert cf.ids(cf.drain(history)[0]) == ["a", "b", "c"], "the incremental feed does not mind"


def test_cf_205_the_etags_of_both_modes_are_the_same_numbers(history):
    start = cf.position_now(history)
    for n in range(6):
        cf.put(history, str(n))
    for at in range(1, 8):
        incremental, etag = cf.drain(history, at)
        full, etag_full = cf.drain(history, at, headers=cf.ALL_VERSIONS)
        assert [cf.lsn_of(item) for item in incremental] == [cf.lsn_of(item) for item in full] and etag == etag_full
    history.delete("5").expect(204)
    assert cf.drain(history, start)[1] == cf.drain(history, start, headers=cf.ALL_VERSIONS)[1] == '"8"'


def test_cf_206_a_delete_has_an_empty_object_as_current(history):
    cf.put(history, "a")
    history.delete("a").expect(204)
    page = cf.read(history, 2, headers=cf.ALL_VERSIONS).expect(200)
    (item,) = cf.items_of(page)
    assert item["current"] == {} and "previous" not in item


@pytest.mark.parametrize("paths, document, key, expected", [
    (["/pk"], {"pk": "x"}, ["x"], {"pk": "x"}), (["/pk"], {"pk": 1.5}, [1.5], {"pk": 1.5}), (["/pk"], {"pk": None}, [None], {"pk": None}),
    (["/pk"], {"pk": 'q"é'}, ['q"é'], {"pk": 'q"é'}), (["/a/b"], {"a": {"b": "deep"}}, ["deep"], {"a/b": "deep"}),
    (["/tenant", "/user"], {"tenant": "t1", "user": "u7"}, ["t1", "u7"], {"tenant": "t1", "user": "u7"})], ids=str)
def test_cf_207_a_delete_names_id_and_key(db, paths, document, key, expected):
    kind = "Hash" if len(paths) == 1 else "MultiHash"
    container = db.create_container({"partitionKey": {"paths": paths, "kind": kind, "version": 2}} | cf.HISTORY)
    container.create({"id": "the id é", **document}, key).expect(201)
    container.delete("the id é", key).expect(204)
    create, delete = versions(container, 1)
    assert delete["metadata"]["id"] == "the id é" and delete["metadata"]["partitionKey"] == expected
    assert "id" not in create["metadata"] and "partitionKey" not in create["metadata"]


def test_cf_208_every_entry_has_a_time(history):
    for n in range(3):
        cf.put(history, "a", n=n)
    history.delete("a").expect(204)
    for item in versions(history, 1):
        assert type(item["metadata"]["crts"]) is int and item["metadata"]["crts"] > 0
        if item["current"]:
            assert item["metadata"]["crts"] == item["current"]["_ts"] and "_lsn" not in item["current"]


def test_cf_209_there_are_three_kinds(history):
    history.create({"id": "a", "pk": "a", "n": 0}).expect(201)
    history.replace("a", {"id": "a", "pk": "a", "n": 1}).expect(200)
    history.upsert({"id": "a", "pk": "a", "n": 2}).expect(200)
    cf.patch(history, "a", [{"op": "incr", "path": "/n", "value": 1}]).expect(200)
    history.upsert({"id": "b", "pk": "a"}).expect(201)
    history.delete("a").expect(204)
    items = versions(history, 1)
    assert brief(items) == [("create", "a", 2), ("replace", "a", 3), ("replace", "a", 4), ("replace", "a", 5),
                            ("create", "b", 6), ("delete", "a", 7)]
    assert [item["metadata"].get("previousImageLSN", 0) for item in items] == [0, 2, 3, 4, 0, 5]
    assert [item["current"].get("n") for item in items] == [0, 1, 2, 3, None, None]
    assert not any(item["metadata"].get("timeToLiveExpired") for item in items)
    assert set(items[0]) == {"current", "metadata"}


@pytest.mark.parametrize("setting", ["none", "delete", "all", None])
def test_cf_210_previous_images_are_shown_as_the_container_says(db, setting):
    policy = {"retentionDuration": 10} | ({"previousImage": setting} if setting else {})
    container = db.create_container({"changeFeedPolicy": policy})
    old = container.create({"id": "a", "pk": "a", "n": 0}).expect(201).json
    new = container.replace("a", {"id": "a", "pk": "a", "n": 1}).expect(200).json
    container.delete("a").expect(204)
    create, replace, delete = versions(container, 1)
    assert "previous" not in create
    assert replace.get("previous") == (old if setting == "all" else None)
    assert delete.get("previous") == (new if setting in ("all", "delete") else None)


def test_cf_210_a_false_setting_is_400(db):
    db.post_container({"changeFeedPolicy": {"retentionDuration": 10, "previousImage": "sometimes"}}).expect(400)


@pytest.mark.parametrize("size", [1, 2, 7, None])
def test_cf_211_every_version_is_shown_in_order(history, size):
    expected = []
    for n in range(20):
        name = f"d{n % 3}"
        if n % 7 == 6:
            lsn, kind = cf.lsn_written(history.delete(name).expect(204)), "delete"
        else:
            kind = "create" if history.read(name).status == 404 else "replace"
            lsn = cf.put(history, name, n=n)
        expected.append((kind, name, lsn))
    assert brief(versions(history, 1, size)) == expected
    page = cf.read(history, 1, headers=cf.ALL_VERSIONS).expect(200)
    assert len(cf.items_of(page)) == 20, "several versions of one document in a page"


def test_cf_211_a_key_and_a_filter_show_only_theirs(history):
    for n in range(3):
        cf.put(history, "x", "a", n=n)
        cf.put(history, "y", "redmond", n=n)
    history.delete("y", ["redmond"]).expect(204)
    epk = cf.EPKS["redmond"]
    assert brief(versions(history, 1, scope=cf.of_key("a"))) == [("create", "x", 2), ("replace", "x", 4), ("replace", "x", 6)]
    for scope in (cf.of_key("redmond"), cf.of_epks(epk, cf.after(epk))):
        assert brief(versions(history, 1, 1, scope)) == [("create", "y", 3), ("replace", "y", 5), ("replace", "y", 7), ("delete", "y", 8)]
    assert cf.read(history, 6, headers=cf.ALL_VERSIONS, scope=cf.of_key("a")).expect(304)["etag"] == '"8"'


def test_cf_212_all_operations_of_a_transaction_are_in_one_page(history):
    cf.put(history, "old")
    lsn = cf.batch(history, [cf.creating("a", n=1), cf.replacing("a", n=2), cf.creating("b"), cf.deleting("b"), cf.deleting("old"),
                             {"operationType": "Patch", "id": "a", "resourceBody": {"operations": [{"op": "incr", "path": "/n", "value": 1}]}}])
    cf.put(history, "after")
    page = cf.read(history, 2, size=1, headers=cf.ALL_VERSIONS).expect(200)
    assert brief(cf.items_of(page)) == [("create", "a", lsn), ("replace", "a", lsn), ("create", "b", lsn), ("delete", "b", lsn),
                                        ("delete", "old", lsn), ("replace", "a", lsn)]
    assert [item["current"].get("n") for item in cf.items_of(page)] == [1, 2, None, None, None, 3]
    assert brief(versions(history, page["etag"])) == [("create", "after", lsn + 1)]


def test_cf_213_there_is_one_write_region(client):
    account = client.get("/").expect(200).json
    assert len(account["writableLocations"]) == 1 and not account.get("enableMultipleWriteLocations")


def test_cf_209_a_ttl_delete_is_told_apart(db):
    container = db.create_container({"defaultTtl": -1, "changeFeedPolicy": {"retentionDuration": 10, "previousImage": "all"}})
    image = container.create({"id": "x", "pk": "a", "ttl": 1}).expect(201).json
    items = wait_until(lambda: versions(container, 2), 20, "the entry of the purge")
    (item,) = items
    metadata = item["metadata"]
    assert (metadata["operationType"], metadata["timeToLiveExpired"], metadata["previousImageLSN"]) == ("delete", True, 2)
    assert metadata["id"] == "x" and metadata["partitionKey"] == {"pk": "a"} and metadata["lsn"] == 3
    assert metadata["crts"] >= image["_ts"] + 1 and item["current"] == {} and item["previous"] == image


def test_cf_205_a_restart_keeps_history(server, tmp_path):
    first = server("--data-dir", tmp_path / "data")
    client = first.client()
    container = client.create_database().create_container(cf.HISTORY)
    for n in range(5):
        cf.put(container, "a", n=n)
    container.delete("a").expect(204)
    before = versions(container, 1)
    assert len(before) == 6
    client.close()
    first.kill()
    with server("--data-dir", tmp_path / "data").client() as after:
        container.client = after
        assert versions(container, 1) == before and versions(container, 4) == before[3:]


def test_cf_202_a_false_position_is_no_position(history):
    history.fill(1)
    cf.read(history, 1000, headers=cf.ALL_VERSIONS).expect(400, text="beyond the end of this change feed")
    document = history.read("0").expect(200).json
    cf.read(history, document["_etag"], headers=cf.ALL_VERSIONS).expect(400, text="Change feed token format is invalid")


def test_cf_204_a_reader_behind_history_that_grew_too_large_is_told(server):
    """The bound on the size of history lets the oldest go before its time: an error, never a gap."""
    with server("--history-size-mb", "1").client() as client:
        container = client.create_database().create_container(cf.HISTORY)
        for n in range(40):
            cf.put(container, "a", n=n, text="x" * 100_000)
        wait_until(lambda: cf.read(container, 2, size=1, headers=cf.ALL_VERSIONS).status == 400, 20, "trimmed history")
        cf.read(container, 2, headers=cf.ALL_VERSIONS).expect(400, text=RETENTION)
        assert [item["current"]["n"] for item in versions(container, 36)] == [35, 36, 37, 38, 39]
