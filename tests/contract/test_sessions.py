"""Consistency levels and session tokens."""
import re

import pytest

import change_feed as cf
from harness import wire
from harness.wire import SESSION

DOCUMENT = {"id": "x", "pk": "a"}


# ── Levels ────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("level, status", [("Session", 200), ("ConsistentPrefix", 200), ("Eventual", 200), ("Strong", 400),
                                           ("BoundedStaleness", 400), ("Bounded", 400), ("Whatever", 400), ("1", 400)])
def test_read_may_ask_for_the_accounts_level_or_less(container, level, status):
    container.create(DOCUMENT).expect(201)
    header = {"x-ms-consistency-level": level}
    container.read("x", headers=header).expect(status)
    container.feed(header).expect(status)


@pytest.mark.parametrize("level", ["Session", "Strong", "BoundedStaleness", "Bounded", "ConsistentPrefix", "Eventual"])
def test_level_is_ignored_on_writes(container, level):
    header = {"x-ms-consistency-level": level}
    container.create(DOCUMENT, headers=header).expect(201)
    container.upsert(DOCUMENT, headers=header).expect(200)
    container.replace("x", DOCUMENT, headers=header).expect(200)
    container.delete("x", headers=header).expect(204)


# ── Tokens that the server sends; their form by version is in test_versions.py ────────────────

def test_new_range_is_at_1_and_each_write_adds_exactly_1(container):
    assert wire.unversioned(container.read("x").expect(404)[SESSION]) == "0:-1#1"
    assert wire.unversioned(container.feed().expect(200)[SESSION]) == "0:-1#1"
    for n, call in enumerate([lambda: container.create(DOCUMENT).expect(201), lambda: container.replace("x", DOCUMENT).expect(200),
                              lambda: container.upsert(DOCUMENT).expect(200), lambda: container.delete("x").expect(204),
                              lambda: container.upsert(DOCUMENT).expect(201)]):
        response = call()
        assert wire.unversioned(response[SESSION]) == f"0:-1#{n + 2}"
        assert response["lsn"] == response["x-ms-item-lsn"] == str(n + 2)


def test_reads_report_the_head_and_do_not_move_it(container):
    container.fill(3)
    for _ in range(2):
        assert wire.unversioned(container.read("0").expect(200)[SESSION]) == "0:-1#4"
        assert wire.unversioned(container.feed().expect(200)[SESSION]) == "0:-1#4"


def test_refused_writes_do_not_move_the_head(container):
    container.create(DOCUMENT).expect(201)
    container.create(DOCUMENT).expect(409)
    container.replace("x", DOCUMENT, headers={"If-Match": '"stale"'}).expect(412)
    container.delete("none").expect(404)
    container.create({"id": "", "pk": "a"}).expect(400)
    container.create(DOCUMENT, ["b"]).expect(400, 1001)
    assert wire.unversioned(container.read("x").expect(200)[SESSION]) == "0:-1#2"


def test_each_range_counts_alone(db):
    container = db.create_container(throughput=30000)
    heads = {each["id"]: 1 for each in container.ranges()}
    for n in range(30):
        response = container.create({"id": "x", "pk": n}).expect(201)
        heads[response[wire.RANGE_ID]] += 1
        assert wire.unversioned(response[SESSION]) == f"{response[wire.RANGE_ID]}:-1#{heads[response[wire.RANGE_ID]]}"
    whole = container.feed({wire.MAX_ITEMS: "-1"}).expect(200)
    assert sorted(wire.unversioned(whole[SESSION]).split(",")) == sorted(f"{each}:-1#{head}" for each, head in heads.items())


def test_feed_over_several_ranges_has_the_simple_form_for_old_clients(db):
    container = db.create_container(throughput=15000)
    token = container.feed(version=wire.OLDEST).expect(200)[SESSION]
    assert sorted(token.split(",")) == ["0:1", "1:1", "2:1"]


def test_resources_without_a_log_have_no_token(client, container):
    for path in ("/", "/dbs", container.database.path, container.database.path + "/colls", container.path,
                 container.path + "/pkranges", "/offers"):
        assert client.get(path).expect(200)[SESSION] is None


# ── Tokens that the server checks ─────────────────────────────────────────────────────────────

@pytest.mark.parametrize("token", ["0:2", "0:-1#2", "0:1", "0:-1#1", "0:-1#2#1=2", "0:5#2#1=2#3=1", "", "0:-1#2,1:-1#7", "99:-1#1000000",
                                   "99:1000000", "1:7,0:2"])
def test_token_that_has_been_reached_is_accepted_in_both_forms(container, token):
    container.create(DOCUMENT).expect(201)
    for version in (wire.OLDEST, wire.NEWEST):
        container.read("x", headers={SESSION: token}, version=version).expect(200)
        container.feed({SESSION: token}, version=version).expect(200)


@pytest.mark.parametrize("token", ["0:3", "0:-1#3", "0:-1#1000000", "0:-1#3#1=1", "7:-1#1,0:-1#3", "0:1000000"])
def test_token_from_the_future_is_404_1002(container, token):
    container.create(DOCUMENT).expect(201)
    for response in (container.read("x", headers={SESSION: token}), container.feed({SESSION: token}),
                     container.read("none", headers={SESSION: token})):
        assert response.expect(404, 1002).json["code"] == "NotFound"


def test_token_from_the_future_does_not_hinder_writes(container):
    future = {SESSION: "0:-1#1000"}
    container.create(DOCUMENT, headers=future).expect(201)
    container.replace("x", DOCUMENT, headers=future).expect(200)
    container.delete("x", headers=future).expect(204)


@pytest.mark.parametrize("level, status", [(None, 404), ("Session", 404), ("ConsistentPrefix", 200), ("Eventual", 200)])
def test_token_counts_for_session_reads_only(container, level, status):
    container.create(DOCUMENT).expect(201)
    headers = {SESSION: "0:-1#1000"} | ({"x-ms-consistency-level": level} if level else {})
    container.read("x", headers=headers).expect(status)


@pytest.mark.parametrize("token", ["garbage", "0", "0:", "0:abc", "0:-1#", "0:-1#abc", "0:-1#2#", "0:1.5", "0:2;1:2"])
def test_unparsable_token_is_400(container, token):
    container.create(DOCUMENT).expect(201)
    container.read("x", headers={SESSION: token}).expect(400)


def test_token_of_another_range_does_not_count(db):
    container = db.create_container(throughput=11000)
    mine = container.create(DOCUMENT).expect(201)[wire.RANGE_ID]
    other = "1" if mine == "0" else "0"
    container.read("x", headers={SESSION: f"{other}:-1#1000"}).expect(200)
    container.feed({SESSION: f"{other}:-1#1000", wire.RANGE_ID: mine}).expect(200)
    container.read("x", headers={SESSION: f"{mine}:-1#1000"}).expect(404, 1002)


def test_token_of_another_container_does_not_count(db, container):
    """Newer Python clients send one: after writes with minimal answers they do not know whose it is."""
    other = db.create_container()
    other.fill(20)
    foreign = other.read("0").expect(200)[SESSION]
    minimal = container.create(DOCUMENT, headers={"Prefer": "return=minimal", SESSION: foreign}).expect(201)
    assert not minimal.body and minimal[SESSION] != foreign
    for token in (foreign, f"{minimal[SESSION]},{foreign}", foreign.replace("#21", "#999999")):
        container.read("x", headers={SESSION: token}).expect(200)
        container.feed({SESSION: token}).expect(200)
        cf.read(container, headers={SESSION: token}).expect(200)
    # Without a version nobody can tell whose it is.
    for token in ("0:21", "0:-1#21"):
        container.read("x", headers={SESSION: token}).expect(404, 1002)


def test_every_container_has_a_version_of_its_own_that_javascript_can_read(db, container):
    tokens = [each.read("x").expect(404)[SESSION] for each in (container, db.create_container(), container)]
    versions = [int(re.fullmatch(r"0:(\d+)#1", token)[1]) for token in tokens]
    assert versions[0] == versions[2] != versions[1] and max(versions) < 2**53
    future = tokens[0].replace("#1", "#2")
    container.read("x", headers={SESSION: future}).expect(404, 1002)


def test_every_write_is_read_by_its_own_token(container):
    for n in range(20):
        token = container.upsert(DOCUMENT | {"n": n}).expect((200, 201))[SESSION]
        assert container.read("x", headers={SESSION: token}).expect(200).json["n"] == n


def test_head_never_goes_back_over_a_restart(server, tmp_path):
    first = server("--data-dir", tmp_path / "data")
    client = first.client()
    container = client.create_database("d").create_container({"id": "c"})
    container.fill(3)
    container.delete("2").expect(204)  # a delete leaves nothing behind but the head
    client.close()
    first.stop()
    client.endpoint = server("--data-dir", tmp_path / "data").endpoint
    assert wire.unversioned(container.read("0").expect(200)[SESSION]) == "0:-1#5"
    created = container.create({"id": "new", "pk": "a"}).expect(201)
    assert wire.unversioned(created[SESSION]) == "0:-1#6"
    assert int.from_bytes(wire.rid_bytes(created.json["_rid"])[8:], "little") == 4
