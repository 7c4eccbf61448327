"""CF-300 … CF-335: ranges as a feed, split, merge, containers made anew."""
import threading

import pytest

import change_feed as cf
from harness import wire
from harness.wire import RANGE_ID, SESSION

ALL = cf.INCREMENTAL | {wire.MAX_ITEMS: "-1"}


def ranges_path(container):
    return container.path + "/pkranges"


def tiles(ranges):
    live = sorted((each["minInclusive"], each["maxExclusive"]) for each in ranges)
    return live[0][0] == "" and live[-1][1] == "FF" and all(left[1] == right[0] for left, right in zip(live, live[1:]))


def spread(container, rounds=3, **members):
    """One document of each key of EPKS per round, with names that occur once. Names in order of writing."""
    names = []
    for n in range(rounds):
        for key in cf.EPKS:
            names.append(wire.unique(f"{key} {n}"))
            cf.put(container, names[-1], key, **members)
    return names


def halves(container):
    """The names found through each live range, and the etags reached."""
    found = {each["id"]: cf.drain(container, scope=cf.of_range(each["id"])) for each in container.ranges()}
    return {range_id: cf.ids(items) for range_id, (items, _) in found.items()}


# ── pkranges ────────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("throughput", [400, cf.FIVE_RANGES], ids=["1 range", "5 ranges"])
def test_cf_300_ranges_are_read_until_304(client, db, throughput):
    container = db.create_container(throughput=throughput)
    first = client.get(ranges_path(container), ALL).expect(200)
    again = client.get(ranges_path(container), ALL | {"If-None-Match": first["etag"]}).expect(304)
    assert again["etag"] == first["etag"] and again.body == b""
    assert first.json["PartitionKeyRanges"] == container.ranges()


def test_cf_301_an_older_etag_gets_the_ranges_that_changed(client, container):
    old = client.get(ranges_path(container), ALL).expect(200)
    cf.split(container).expect(200)
    new = client.get(ranges_path(container), ALL | {"If-None-Match": old["etag"]}).expect(200)
    assert new["etag"] != old["etag"]
    merged = {each["id"]: each for each in old.json["PartitionKeyRanges"] + new.json["PartitionKeyRanges"]}
    gone = {parent for each in merged.values() for parent in each["parents"]}
    assert tiles([each for each in merged.values() if each["id"] not in gone])
    client.get(ranges_path(container), ALL | {"If-None-Match": new["etag"]}).expect(304)


def test_cf_302_without_a_im_it_is_always_200_with_an_etag(client, container):
    first = client.get(ranges_path(container)).expect(200)
    assert first["etag"] and client.get(ranges_path(container), {"If-None-Match": first["etag"]}).expect(200).body == first.body
    cf.split(container).expect(200)
    after = client.get(ranges_path(container)).expect(200)
    assert after["etag"] != first["etag"] and [each["id"] for each in after.json["PartitionKeyRanges"]] == ["1", "2"]


def test_cf_303_the_ranges_tile_after_every_change(container):
    spread(container, 1)
    for step in range(6):
        ranges = container.ranges()
        if step < 4:
            cf.split(container, ranges[step % len(ranges)]["id"]).expect(200)
        else:
            cf.merge(container, ranges[0]["id"], ranges[1]["id"]).expect(200)
        assert tiles(container.ranges())
        assert len({each["id"] for each in container.ranges()}) == len(container.ranges())
        assert sum(each["throughputFraction"] for each in container.ranges()) == pytest.approx(1, abs=0.01)


def test_cf_304_ranges_name_all_their_ancestors_oldest_first(container):
    assert container.ranges()[0]["parents"] == []
    left, right = cf.children_of(cf.split(container, "0"))
    assert left["parents"] == right["parents"] == ["0"] and {left["id"], right["id"]} == {"1", "2"}
    grandchild, other, _ = container_after(cf.split(container, left["id"]))
    assert grandchild["parents"] == other["parents"] == ["0", left["id"]]
    merged = container_after(cf.merge(container, grandchild["id"], other["id"]))[0]
    assert set(merged["parents"]) == {"0", left["id"], grandchild["id"], other["id"]}
    assert merged["parents"][0] == "0" and merged["parents"][1] == left["id"], "oldest first"


def container_after(response):
    return sorted(response.expect(200).json["PartitionKeyRanges"], key=lambda each: each["minInclusive"])


def test_cf_305_children_become_visible_all_at_once(endpoint, container):
    spread(container, 4)
    seen, failures, done = set(), [], threading.Event()

    def watch():
        try:
            with wire.Client(endpoint) as client:
                while not done.is_set():
                    ranges = client.get(ranges_path(container)).expect(200).json["PartitionKeyRanges"]
                    seen.add(tuple(each["id"] for each in ranges))
                    assert tiles(ranges), ranges
        except Exception as error:
            failures.append(error)

    watcher = threading.Thread(target=watch)
    watcher.start()
    cf.split(container).expect(200)
    after = tuple(each["id"] for each in container.ranges())
    done.set()
    watcher.join()
    assert not failures and seen <= {("0",), after} and len(after) == 2


# ── Split ───────────────────────────────────────────────────────────────────────────────────────────

def test_cf_310_the_parents_id_is_410_1002_for_every_request(client, container):
    spread(container, 1)
    at = cf.drain(container)[1]
    cf.split(container).expect(200)
    for start in (None, at, "*", 1):
        cf.read(container, start, scope=cf.of_range("0")).expect(410, 1002)
    cf.read(container, at, scope=cf.of_range(f"{container.rid},0")).expect(410, 1002)
    cf.read(container, at, scope=cf.of_epks("", "FF", "0")).expect(410, 1002)
    cf.read(container, at, scope=cf.of_epks("", "05", "0")).expect(410, 1002)
    container.feed({RANGE_ID: "0"}).expect(410, 1002)
    cf.bulk(container, [cf.creating("x") | {"partitionKey": '["a"]'}], "0").expect(410, 1002)


@pytest.mark.parametrize("wrapped", [{}, cf.WIRE_FORMAT], ids=["bare", "wrapped"])
def test_cf_311_the_children_return_exactly_what_the_parent_would_have(container, wrapped):
    names = spread(container, 4)
    container.delete(names[3], ["Hello World"]).expect(204)
    cf.put(container, names[0], cf.LOW[0], n="moved")
    etags = [1] + [cf.position(page) for page in cf.pages(container, size=3)]
    wanted = {at: cf.drain(container, at, headers=wrapped)[0] for at in etags}
    left, right = cf.children_of(cf.split(container))
    for at in etags:
        parts = [cf.drain(container, at, size=2, headers=wrapped, scope=cf.of_range(each["id"]))[0] for each in (left, right)]
        assert sorted(map(str, parts[0] + parts[1])) == sorted(map(str, wanted[at]))
        for part in parts:
            assert part == [item for item in wanted[at] if item in part], "in the parent's order, with its LSNs"


def test_cf_312_a_child_starts_at_the_parents_head_even_when_empty(container):
    for n in range(5):
        cf.put(container, str(n), cf.LOW[0])
    at = cf.drain(container)[1]
    left, right = cf.children_of(cf.split(container))
    for each in (left, right):
        idle = cf.read(container, at, scope=cf.of_range(each["id"])).expect(304)
        assert idle["etag"] == at and cf.head(idle) == 6
    for start in (None, "*", 1, 3):
        assert cf.read(container, start, scope=cf.of_range(right["id"])).expect(304)["etag"] == at
    assert cf.put(container, "first of its range", cf.HIGH[0]) == 7
    assert cf.put(container, "first of its range", cf.LOW[0]) == 7


def test_cf_313_a_document_is_in_exactly_one_child(container):
    names = spread(container, 4)
    cf.split(container).expect(200)
    cf.split(container, container.ranges()[0]["id"]).expect(200)
    cf.split(container, container.ranges()[2]["id"]).expect(200)
    found = [name for part in halves(container).values() for name in part]
    assert len(found) == len(names) and set(found) == set(names)
    assert sorted(cf.ids(container.all_documents())) == sorted(names)


@pytest.mark.parametrize("version", [wire.OLDEST, wire.NEWEST])
def test_cf_314_session_tokens_of_the_parent_are_good_for_its_children(container, version):
    written = container.create({"id": "1", "pk": "a"}, version=version).expect(201)
    token = written[SESSION]
    assert token.startswith("0:")
    cf.split(container).expect(200)
    container.read("1", headers={SESSION: token}, version=version).expect(200)
    child = container.read("1").expect(200)[RANGE_ID]
    cf.read(container, scope=cf.of_range(child), headers={SESSION: token}, version=version).expect(200)
    ahead = token.removesuffix("2") + "2000"
    cf.read(container, scope=cf.of_range(child), headers={SESSION: ahead}, version=version).expect(404, 1002)


def test_cf_315_feeds_of_a_key_go_on_without_any_error(container):
    spread(container, 3)
    etags = {key: cf.read(container, size=1, scope=cf.of_key(key)).expect(200)["etag"] for key in cf.EPKS}
    wanted = {key: cf.drain(container, at, scope=cf.of_key(key))[0] for key, at in etags.items()}
    cf.split(container).expect(200)
    cf.split(container, container.ranges()[1]["id"]).expect(200)
    for key, at in etags.items():
        assert cf.drain(container, at, scope=cf.of_key(key))[0] == wanted[key]
        cf.put(container, "new", key)
        assert cf.ids(cf.drain(container, at, scope=cf.of_key(key))[0]) == cf.ids(wanted[key]) + ["new"]


def test_cf_316_no_write_is_lost_or_reordered_while_a_range_splits(endpoint, container):
    """Writers run through two splits and a merge; followers by key see every acknowledged version in order."""
    spread(container, 2)
    start = cf.drain(container)[1]
    last, failures, done = {key: [] for key in cf.EPKS}, [], threading.Event()

    def write(key):
        try:
            with wire.Client(endpoint) as client:
                n = 0
                while not done.is_set() or n < 30:
                    n += 1
                    written = client.post(container.docs, {"id": f"w{n % 9}", "pk": key, "n": n}, cf.of_key(key) | wire.UPSERT)
                    last[key].append(cf.lsn_written(written))
        except Exception as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(key,)) for key in cf.EPKS]
    for writer in writers:
        writer.start()
    try:
        left, right = cf.children_of(cf.split(container))
        between = cf.pages(container, start, scope=cf.of_range(left["id"]))
        deeper = container_after(cf.split(container, right["id"]))
        cf.merge(container, deeper[1]["id"], deeper[2]["id"]).expect(200)
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert not failures, failures
    assert between
    for key, lsns in last.items():
        assert lsns == sorted(set(lsns)), "the order of one writer is the order of the log"
        items, _ = cf.drain(container, start, scope=cf.of_key(key), size=2)
        assert [(item["n"], item["_lsn"]) for item in items] == [(n + 1, lsns[n]) for n in range(len(lsns) - 9, len(lsns))]


# ── Merge ───────────────────────────────────────────────────────────────────────────────────────────

@pytest.fixture
def parents(db):
    """Two ranges: 0 with six documents at LSN 2 … 7, 1 with nine at 2 … 10."""
    container = cf.two_ranges(db)
    spread(container, 3)
    return container


def test_cf_320_documents_keep_their_lsns_and_new_ones_start_above_both_heads(parents):
    before = {item["_self"]: item["_lsn"] for each in "01" for item in cf.drain(parents, scope=cf.of_range(each))[0]}
    (merged,) = cf.merge(parents, "0", "1").expect(200).json["PartitionKeyRanges"]
    after, at = cf.drain(parents, scope=cf.of_range(merged["id"]))
    assert {item["_self"]: item["_lsn"] for item in after} == before and at == '"10"'
    assert cf.put(parents, "new", cf.LOW[0]) == 11 and cf.put(parents, "new", cf.HIGH[0]) == 12


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_cf_321_documents_of_both_parents_with_one_lsn_form_a_group(parents, size):
    cf.merge(parents, "0", "1").expect(200)
    found = cf.pages(parents, size=size)
    pages = [[cf.lsn_of(item) for item in cf.items_of(page)] for page in found]
    assert sorted(lsn for page in pages for lsn in page) == sorted([*range(2, 8), *range(2, 11)])
    assert all(not set(left) & set(right) for left, right in zip(pages, pages[1:])), pages
    if size == 1:
        assert [len(page) for page in pages] == [2] * 6 + [1] * 3 + [0]
        for page in found[:6]:
            assert [item["pk"] in cf.LOW for item in cf.items_of(page)] == [True, False], "the left parent first"


def test_cf_322_a_filter_inside_a_former_parent_sees_no_merge(parents):
    bounds = {each["id"]: (each["minInclusive"], each["maxExclusive"]) for each in parents.ranges()}
    before = {(each, at): cf.drain(parents, at, size=2, scope=cf.of_range(each)) for each in "01" for at in (None, 3, 6)}
    (merged,) = cf.merge(parents, "0", "1").expect(200).json["PartitionKeyRanges"]
    for (each, at), (items, _) in before.items():
        scope = cf.of_epks(*bounds[each], merged["id"])
        assert cf.drain(parents, at, size=2, scope=scope)[0] == items
    for n in range(3):
        cf.put(parents, f"new {n}", cf.LOW[0])
        cf.put(parents, f"new {n}", cf.HIGH[0])
    for (each, at), (items, _) in before.items():
        found, _ = cf.drain(parents, at, size=1, scope=cf.of_epks(*bounds[each], merged["id"]))
        assert found[:len(items)] == items and cf.ids(found[len(items):]) == ["new 0", "new 1", "new 2"]


def test_cf_323_a_whole_range_reader_may_start_at_the_lower_etag(parents):
    low = cf.drain(parents, scope=cf.of_range("0"))[1]
    cf.merge(parents, "0", "1").expect(200)
    cf.put(parents, "new", cf.LOW[0])
    found, _ = cf.drain(parents, low)
    assert cf.ids(found)[-1] == "new" and [cf.lsn_of(item) for item in found] == [8, 9, 10, 11]


def test_cf_324_idle_filtered_readers_get_the_higher_head(parents):
    (merged,) = cf.merge(parents, "0", "1").expect(200).json["PartitionKeyRanges"]
    for bounds, at in ((("", cf.MIDDLE), 7), ((cf.MIDDLE, "FF"), 10)):
        idle = cf.read(parents, at, scope=cf.of_epks(*bounds, merged["id"])).expect(304)
        assert idle["etag"] == '"10"' and cf.head(idle) == 10


def test_cf_325_a_time_on_a_merged_range_skips_nothing_newer(db):
    container = cf.two_ranges(db)
    for n in range(6):
        cf.put(container, f"old {n}", cf.HIGH[0])
    second = max(item["_ts"] for item in cf.drain(container, scope=cf.of_range("1"))[0])
    cf.later_than(container, second)
    cf.put(container, "new low", cf.LOW[0])  # LSN 2, but later than LSN 7 of the other
    cf.put(container, "new high", cf.HIGH[0])
    (merged,) = cf.merge(container, "0", "1").expect(200).json["PartitionKeyRanges"]
    start = cf.read(container, headers=cf.since(second)).expect(200)
    assert start["etag"] == '"1"'
    plain = cf.ids(cf.drain(container, start["etag"], headers=cf.since(second))[0])
    assert {"new low", "new high"} <= set(plain), "without the capability older ones may follow"
    exact = cf.drain(container, start["etag"], headers=cf.since(second) | {cf.CAPABILITIES: "3"})[0]
    assert cf.ids(exact) == ["new low", "new high"]
    cf.read(container, headers=cf.since(max(item["_ts"] for item in exact)), scope=cf.of_range(merged["id"])).expect(304)


def test_cf_322_history_goes_with_split_and_merge(db):
    container = db.create_container(cf.HISTORY)
    names = spread(container, 2)
    for name, key in zip(names, cf.EPKS):
        cf.put(container, name, key, n="again")
    container.delete(names[0], ["partitionKey"]).expect(204)
    wanted = cf.drain(container, 1, headers=cf.ALL_VERSIONS)[0]
    assert len(wanted) == 16
    left, right = cf.children_of(cf.split(container))
    parts = [cf.drain(container, 1, size=3, headers=cf.ALL_VERSIONS, scope=cf.of_range(each["id"]))[0] for each in (left, right)]
    assert sorted(map(str, parts[0] + parts[1])) == sorted(map(str, wanted))
    cf.merge(container, left["id"], right["id"]).expect(200)
    again = cf.drain(container, 1, headers=cf.ALL_VERSIONS)[0]
    assert again == wanted, "of one log once, so in its order again"


# ── Made anew, never written ────────────────────────────────────────────────────────────────────────

def test_cf_330_a_deleted_container_is_404_and_its_name_is_free(client, db):
    old = db.create_container()
    old.fill(2)
    client.delete(old.path).expect(204)
    for at in (None, "*", 1):
        cf.read(old, at).expect(404, 1003)
        cf.read(old, at, scope=cf.of_range("0")).expect(404, 1003)
    new = db.create_container({"id": old.id})
    assert new.rid != old.rid
    cf.put(new, "first")
    assert cf.ids(cf.drain(new)[0]) == ["first"]


def test_cf_331_an_intended_rid_of_another_container_is_400_1024(client, db):
    old = db.create_container()
    intended = {"x-ms-cosmos-intended-collection-rid": old.rid}
    old.create({"id": "1", "pk": "a"}, headers=intended).expect(201)
    cf.read(old, headers=intended).expect(200)
    client.delete(old.path).expect(204)
    new = db.create_container({"id": old.id})
    cf.read(new, headers=intended).expect(400, 1024)
    new.feed(intended).expect(400, 1024)
    new.create({"id": "1", "pk": "a"}, headers=intended).expect(400, 1024)
    new.read("1", headers=intended).expect(400, 1024)
    client.get(ranges_path(new), intended).expect(400, 1024)
    cf.read(new, headers={"x-ms-cosmos-intended-collection-rid": new.rid}).expect(304)


def test_cf_332_a_dead_rid_is_404_1003(client, db):
    old = db.create_container()
    client.delete(old.path).expect(204)
    db.create_container({"id": old.id})
    client.get(f"/dbs/{db.rid}/colls/{old.rid}/docs", cf.INCREMENTAL).expect(404, 1003)
    client.get(f"/dbs/{db.rid}/colls/{old.rid}/pkranges", ALL).expect(404, 1003)


def test_cf_333_ranges_never_written_are_at_1_for_every_start(db):
    container = db.create_container(throughput=cf.THREE_RANGES)
    for each in container.ranges():
        for headers in ({}, {"If-None-Match": "*"}, {"If-None-Match": '"1"'}, {"If-Modified-Since": wire.http_date(-100)}):
            idle = cf.read(container, headers=headers, scope=cf.of_range(each["id"])).expect(304)
            assert idle["etag"] == '"1"' and idle["x-ms-item-count"] == "0" and idle.charge > 0
        cf.read(container, 5, scope=cf.of_range(each["id"])).expect(400, text="beyond the end of this change feed")


# ── On command ──────────────────────────────────────────────────────────────────────────────────────

def test_cf_334_a_range_is_split_on_command(container):
    answer = cf.split(container, "0").expect(200)
    assert answer.json["PartitionKeyRanges"] == container.ranges() and answer.json["_rid"] == container.rid
    left, right = container.ranges()
    assert (left["minInclusive"], left["maxExclusive"], right["maxExclusive"]) == ("", cf.MIDDLE, "FF")
    cf.split(container, left["id"], at="0A").expect(200)
    assert [each["maxExclusive"] for each in container.ranges()] == ["0A", cf.MIDDLE, "FF"]


@pytest.mark.parametrize("body", [{"range": "0", "at": ""}, {"range": "0", "at": "FF"}, {"range": "0", "at": "XY"}, {"range": "0", "at": 5},
                                  {"range": 0}, {}, [], {"range": None}], ids=str)
def test_cf_334_a_false_split_is_400_and_changes_nothing(client, container, body):
    client.post(f"{container.path}/operations/split", body).expect(400)
    assert [each["id"] for each in container.ranges()] == ["0"]


def test_cf_334_a_split_outside_of_its_range_is_400(container):
    cf.split(container).expect(200)
    left, right = container.ranges()
    for range_id, at in ((left["id"], cf.MIDDLE), (left["id"], "20"), (right["id"], cf.MIDDLE), (right["id"], "10")):
        cf.split(container, range_id, at).expect(400)
    cf.split(container, "0").expect(410, 1002)
    cf.split(container, "99").expect(410, 1002)


def test_cf_335_two_neighbours_are_merged_on_command(container):
    cf.split(container).expect(200)
    left, right = (each["id"] for each in container.ranges())
    (merged,) = cf.merge(container, left, right).expect(200).json["PartitionKeyRanges"]
    assert (merged["minInclusive"], merged["maxExclusive"]) == ("", "FF") and set(merged["parents"]) == {"0", left, right}
    cf.merge(container, left, right).expect(410, 1002)


def test_cf_335_a_false_merge_is_400_and_changes_nothing(client, db):
    container = db.create_container(throughput=cf.THREE_RANGES)
    for body in ({"ranges": ["0", "2"]}, {"ranges": ["0"]}, {"ranges": ["0", "1", "2"]}, {"ranges": ["0", "0"]}, {"ranges": "0"}, {}, []):
        client.post(f"{container.path}/operations/merge", body).expect(400)
    client.post(f"{container.path}/operations/merge", {"ranges": ["2", "99"]}).expect(410, 1002)
    assert [each["id"] for each in container.ranges()] == ["0", "1", "2"]


@pytest.mark.parametrize("operation, body", [("split", {"range": "0"}), ("merge", {"ranges": ["0", "1"]})])
def test_cf_334_only_a_read_write_key_changes_ranges(server, operation, body):
    read_only = wire.base64.b64encode(b"r" * 64).decode()
    running = server("--read-only-key", read_only)
    with running.client() as owner:
        container = owner.create_database().create_container()
        with running.client(read_only) as reader:
            reader.post(f"{container.path}/operations/{operation}", body).expect(403)
            reader.post(f"{container.path}/operations/{operation}", body, signed=False).expect(401)
        assert len(container.ranges()) == 1
