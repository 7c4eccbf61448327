"""CF-120 … CF-129: positions and etags."""
import re
import threading

import pytest

import change_feed as cf
from harness import wire


def test_cf_120_an_etag_is_quoted_digits_and_lsns_are_small_and_dense(container):
    assert cf.read(container).expect(304)["etag"] == '"1"'
    for n in range(5):
        assert cf.put(container, str(n)) == n + 2
    page = cf.read(container).expect(200)
    assert [item["_lsn"] for item in cf.items_of(page)] == [2, 3, 4, 5, 6] and page["etag"] == '"6"'


def test_cf_120_failed_writes_and_reads_take_no_lsn(container):
    cf.put(container, "a", n=1)
    container.create({"id": "a", "pk": "a"}).expect(409)
    container.replace("a", {"id": "a", "pk": "a"}, headers={"If-Match": '"x"'}).expect(412)
    container.replace("none", {"id": "none", "pk": "a"}).expect(404)
    container.delete("none").expect(404)
    container.create({"id": "big", "pk": "a", "x": "x" * 2_200_000}).expect(413)
    cf.post_batch(container, [cf.creating("b"), cf.creating("a")]).expect(207)
    cf.patch(container, "a", [{"op": "incr", "path": "/pk", "value": 1}]).expect(400)
    cf.read(container).expect(200)
    container.feed().expect(200)
    assert cf.put(container, "next") == 3
    assert cf.ids(cf.drain(container)[0]) == ["a", "next"]


def test_cf_121_an_etag_returns_what_is_greater(container):
    container.fill(3)
    for n in range(5):
        assert [item["_lsn"] for item in cf.drain(container, n)[0]] == [lsn for lsn in (2, 3, 4) if lsn > n]


def test_cf_122_any_number_is_a_position(container):
    container.fill(3)
    cf.put(container, "1", n="moved")  # LSN 3 is empty now
    assert cf.ids(cf.drain(container, "3")[0]) == ["2", "1"]
    assert cf.ids(cf.drain(container, "0")[0]) == ["0", "2", "1"]
    assert cf.ids(cf.drain(container, "000002")[0]) == ["2", "1"]
    assert cf.ids(cf.drain(container, 3, scope=cf.of_key("a"))[0]) == ["2", "1"]


def test_cf_122_the_lsn_of_a_document_unquoted_is_a_position(container):
    container.fill(3)
    items, _ = cf.drain(container)
    assert cf.ids(cf.drain(container, str(items[1]["_lsn"]))[0]) == ["2"]


def test_cf_123_the_etag_of_a_200_is_the_lsn_of_its_last_document(container):
    container.fill(3)
    container.delete("2").expect(204)
    page = cf.read(container).expect(200)
    assert page["etag"] == '"3"' and cf.head(page) == 5, "not the head, although nothing else is left"


def test_cf_123_etag_of_304_is_the_head(container):
    container.fill(3)
    container.delete("2").expect(204)
    container.delete("0").expect(204)
    for at in ("*", 3, 4, 5, 6):
        idle = cf.read(container, at).expect(304)
        assert idle["etag"] == '"6"' and cf.head(idle) == 6


def test_cf_123_etag_of_304_is_the_head_beside_every_filter(container):
    cf.put(container, "1", "a")
    for n in range(5):
        last = cf.put(container, str(n), "redmond")
    epk = cf.EPKS["a"]
    for scope in (cf.of_key("a"), cf.of_epks(epk, cf.after(epk)), cf.of_epks(epk, cf.after(epk), "0")):
        page = cf.read(container, scope=scope).expect(200)
        assert page["etag"] == '"2"'
        assert cf.read(container, page["etag"], scope=scope).expect(304)["etag"] == f'"{last}"'
        assert cf.read(container, "*", scope=scope).expect(304)["etag"] == f'"{last}"'
    assert cf.read(container, scope=cf.of_key("nobody")).expect(304)["etag"] == f'"{last}"'


def test_cf_124_a_sparse_scope_is_found_in_one_request(container):
    """No empty 200 on the way, however much has to be skipped."""
    cf.put(container, "needle", "a")
    cf.bulk(container, [cf.creating(f"x{n}", "redmond") | {"partitionKey": '["redmond"]'} for n in range(100)]).expect(200)
    for n in range(400):
        cf.put(container, str(n), "redmond", n=n)
    last = cf.put(container, "needle 2", "a")
    page = cf.read(container, 2, scope=cf.of_key("a")).expect(200)
    assert cf.ids(cf.items_of(page)) == ["needle 2"] and page["etag"] == f'"{last}"'


@pytest.mark.parametrize("headers", [{}, {"If-None-Match": "*"}, {"If-Modified-Since": wire.http_date(-86400)},
                                     {"If-Modified-Since": wire.http_date()}, {"If-Modified-Since": wire.http_date(86400)}], ids=str)
def test_cf_125_an_empty_container_is_at_1(container, headers):
    assert cf.read(container, headers=headers).expect(304)["etag"] == '"1"'
    cf.put(container, "first")
    assert cf.read(container, "*").expect(304)["etag"] == '"2"'


def test_cf_126_the_etag_reaches_the_session_token_once_caught_up(container):
    chance = iter("cdcdccdduucd" * 4)
    at, live = None, []
    for n, kind in enumerate(chance):
        if kind == "d" and live:
            container.delete(live.pop(), ["b" if n % 2 else "a"]).expect((204, 404))
        else:
            cf.put(container, str(n), "a" if n % 3 else "b")
            live.append(str(n))
        for scope in ({}, cf.of_key("a"), cf.of_key("b"), cf.of_epks("00", "20")):
            caught_up = cf.pages(container, at, scope=scope)[-1]
            assert cf.position(caught_up) == cf.head(caught_up)


@pytest.mark.parametrize("ahead", [100, 28535, 2**31, 2**53 + 1, 2**63 - 1])
def test_cf_127_an_etag_beyond_the_head_is_refused_and_hides_nothing(container, ahead):
    """The service's answer is not known. A 304 would hide the changes up to that position from the reader."""
    container.fill(2)
    whole = {"x-orrery-feed-scope": "container", "If-None-Match": f'"c:={ahead}"'}
    for scope in ({}, cf.of_key("a"), cf.of_epks("", "FF"), {"Prefer": "wait=30"}, {"Accept": "text/event-stream"},
                  {"Accept": "application/x-ndjson"}, {"x-ms-max-item-count": "-1"}, whole, whole | {"Prefer": "wait=30"},
                  whole | {"Accept": "text/event-stream"}):
        at = {"If-None-Match": f'"{ahead}"'}
        refused = container.client.get(container.docs, cf.INCREMENTAL | at | scope).expect(400)
        assert f"names {ahead}, but the last change has the position 3" in refused.message
        container.client.request("HEAD", container.docs, None, cf.INCREMENTAL | at | scope).expect(400)
    container.fill(1, key="b")
    cf.read(container, 4).expect(304)


def test_a_reader_that_follows_closely_is_never_ahead_of_what_is_published(container):
    """A page is read from the store, a 304 from memory, where a commit is known a moment later."""
    writer = threading.Thread(target=lambda: container.fill(300))
    follower = wire.Client(container.client.endpoint)
    writer.start()
    at, seen = 1, 0
    while seen < 300:
        page = follower.get(container.docs, cf.INCREMENTAL | {"If-None-Match": f'"{at}"', "Prefer": "wait=10"}).expect((200, 304))
        at, seen = int(page["etag"].strip('"')), seen + int(page["x-ms-item-count"])
    writer.join()
    follower.close()


def test_cf_128_a_position_is_stable_under_changes_of_the_container(client, container):
    container.fill(10)
    etags = [page["etag"] for page in cf.pages(container, size=3)]
    before = [cf.drain(container, at) for at in etags]
    cf.replace_container(container, indexingPolicy={"indexingMode": "consistent", "automatic": True,
                                                    "includedPaths": [], "excludedPaths": [{"path": "/*"}]}).expect(200)
    (offer,) = client.offers_of(container)
    offer["content"]["offerThroughput"] = 1000
    client.put("/" + offer["_self"], offer).expect(200)
    cf.replace_container(container, defaultTtl=1000).expect(200)
    assert [cf.drain(container, at) for at in etags] == before
    cf.split(container).expect(200)
    items = [item for each in container.ranges() for item in cf.drain(container, etags[0], scope=cf.of_range(each["id"]))[0]]
    assert items == before[0][0], "all documents are of one key, in one child"


def test_cf_128_a_position_is_stable_under_restart(server, tmp_path):
    first = server("--data-dir", tmp_path / "data")
    client = first.client()
    container = client.create_database().create_container()
    container.fill(10)
    for n in (3, 9):
        container.delete(str(n)).expect(204)
    etags = [None] + [page["etag"] for page in cf.pages(container, size=3)]
    before = [cf.drain(container, at) for at in etags]
    client.close()
    first.stop()
    with server("--data-dir", tmp_path / "data").client() as after:
        container.client = after
        assert [cf.drain(container, at) for at in etags] == before
        assert cf.put(container, "next") == 14


@pytest.mark.parametrize("headers", [cf.INCREMENTAL, cf.ALL_VERSIONS], ids=["incremental", "all versions"])
@pytest.mark.parametrize("value", ['"abc"', '""', '"-1"', "-1", '"1.5"', '"0x10"', '"1e3"', '"12', '12"', "9223372036854775808",
                                   '"99999999999999999999999"', '"+5"', '"5,6"', '"5", "6"', '"00000000-0000-0000-0000-580ac4ea0000"',
                                   'w/"x"', '"**"', '"c:=5"', '"1 2"', "null"])
def test_cf_129_a_malformed_etag_is_400_and_never_the_beginning(db, value, headers):
    container = db.create_container(cf.HISTORY) if headers is cf.ALL_VERSIONS else db.create_container()
    container.fill(1)
    cf.read(container, value, headers=headers).expect(400, text="Change feed token format is invalid")


def test_cf_120_a_container_made_anew_does_not_hide_changes_from_an_old_etag(db):
    old = db.create_container()
    for n in range(5):
        cf.put(old, str(n))
    at = cf.drain(old)[1]
    db.client.delete(old.path).expect(204)
    new = db.create_container({"id": old.id})
    first = cf.read(new, "*").expect(304)
    assert cf.position(first) == 7, "one above the last head of its predecessor"
    assert cf.put(new, "a") == 8
    assert cf.ids(cf.drain(new, at)[0]) == ["a"], "a full replay, not a silent gap"
    assert re.fullmatch(r'"\d+"', first["etag"])
