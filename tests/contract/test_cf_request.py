"""CF-100 … CF-111: what a request says."""
import pytest

import change_feed as cf
from harness import wire
from harness.wire import KEY, MAX_ITEMS, RANGE_ID


@pytest.fixture(scope="module")
def three(module_client):
    """Documents "0", "1", "2" of key a at LSN 2, 3, 4 in one range; only read from."""
    container = module_client.create_database().create_container()
    container.fill(3)
    return container


@pytest.fixture(scope="module")
def halves(module_client):
    """Two ranges, three documents of each key of EPKS; only read from."""
    container = module_client.create_database().create_container(throughput=cf.TWO_RANGES)
    for n in range(3):
        for key in cf.EPKS:
            cf.put(container, f"{key} {n}", key)
    return container


def names(*keys):
    return [f"{key} {n}" for n in range(3) for key in keys]


@pytest.mark.parametrize("value", ["Incremental feed", "Incremental Feed", "incremental feed", "INCREMENTAL FEED", "iNcReMeNtAl FeEd"])
@pytest.mark.parametrize("header", ["A-IM", "a-im"])
def test_cf_100_a_im_in_any_case(three, header, value):
    assert cf.ids(cf.items_of(three.feed({header: value}).expect(200))) == ["0", "1", "2"]


@pytest.mark.parametrize("value", ["nonsense", "Incremental", "feed", "Incremental-feed", "Full Fidelity Feed", "Incremental feed, x"])
def test_cf_100_an_unknown_a_im_is_400(three, value):
    three.feed({"A-IM": value}).expect(400, text="A-IM")


@pytest.mark.parametrize("value", ['"3"', "3", 'W/"3"', ' "3" ', "  3"])
def test_cf_101_every_spelling_of_an_etag(three, value):
    page = cf.read(three, value).expect(200)
    assert cf.ids(cf.items_of(page)) == ["2"] and page["etag"] == '"4"'


@pytest.mark.parametrize("value", ["*", '"*"', " * "])
def test_cf_101_every_spelling_of_now(three, value):
    assert cf.read(three, value).expect(304)["etag"] == '"4"'


def test_cf_102_a_range_is_named_with_or_without_its_collection(three):
    plain = cf.read(three, scope=cf.of_range("0")).expect(200)
    assert cf.read(three, scope=cf.of_range(f"{three.rid},0")).expect(200).body == plain.body


def test_cf_102_a_range_of_another_collection_is_410_1000(three):
    other = three.database.create_container()
    cf.read(three, scope=cf.of_range(f"{other.rid},0")).expect(410, 1000)


@pytest.mark.parametrize("token", ["garbage", '{"token":"x"}', '"3"', "-RID:~0#RT:1"])
def test_cf_103_a_continuation_is_ignored(three, token):
    page = cf.read(three, headers={wire.CONTINUATION: token}).expect(200)
    assert cf.ids(cf.items_of(page)) == ["0", "1", "2"]
    assert cf.ids(cf.items_of(cf.read(three, 3, headers={wire.CONTINUATION: token}).expect(200))) == ["2"]


def test_cf_104_the_wire_format_header_wraps_items_in_incremental_mode(three):
    bare = cf.items_of(cf.read(three).expect(200))
    wrapped = cf.items_of(cf.read(three, headers=cf.WIRE_FORMAT).expect(200))
    assert len(wrapped) == 3
    for item, document in zip(wrapped, bare):
        lsn = document.pop("_lsn")
        item["current"].pop("_lsn", None)
        assert item["current"] == document
        assert item["metadata"]["lsn"] == lsn and item["metadata"]["crts"] == document["_ts"]
        assert item["metadata"]["operationType"] == "create"


def test_cf_104_a_changed_document_is_a_replace_in_the_wrapped_form(container):
    cf.put(container, "a")
    cf.put(container, "b")
    cf.put(container, "a", n=1)
    items = cf.items_of(cf.read(container, headers=cf.WIRE_FORMAT).expect(200))
    assert [(item["current"]["id"], item["metadata"]["operationType"]) for item in items] == [("b", "create"), ("a", "replace")]


def test_cf_105_a_filter_inside_its_range_is_served(halves):
    for start, end in [("", cf.MIDDLE), ("", "05"), ("05", cf.MIDDLE), (cf.EPKS["aa"], cf.after(cf.EPKS["aa"]))]:
        inside = [key for key in cf.LOW if start <= cf.EPKS[key] < end]
        found, _ = cf.drain(halves, scope=cf.of_epks(start, end, "0"))
        assert cf.ids(found) == names(*inside)


@pytest.mark.parametrize("start, end, range_id", [(cf.MIDDLE, "FF", "0"), ("", "FF", "0"), ("", cf.MIDDLE, "1"),
                                                  ("1FFF", "2FFF", "0"), ("1FFF", "2FFF", "1"), ("", "FF", "1")])
def test_cf_105_a_filter_outside_of_its_range_is_410_1002(halves, start, end, range_id):
    cf.read(halves, scope=cf.of_epks(start, end, range_id)).expect(410, 1002)


@pytest.mark.parametrize("value", ["99", "2", "4294967296", "00"])
@pytest.mark.parametrize("headers", [cf.INCREMENTAL, cf.ALL_VERSIONS], ids=["incremental", "all versions"])
def test_cf_106_an_unknown_range_is_410_1002(halves, value, headers):
    if headers is cf.INCREMENTAL or value == "99":
        cf.read(halves, 1, scope=cf.of_range(value), headers=headers).expect(410, 1002)


def test_cf_107_a_single_range_needs_no_name(three):
    page = cf.read(three).expect(200)
    assert page[RANGE_ID] == "0" and page.body == cf.read(three, scope=cf.of_range("0")).expect(200).body


def test_cf_107_several_ranges_need_a_name_and_the_message_says_which_header(halves):
    for at in (None, "*", 1):
        response = cf.read(halves, at).expect(400, text=RANGE_ID)
        assert KEY in response.message.lower().replace(RANGE_ID, "")


def test_cf_108_filters_shorter_than_a_hash(halves):
    for start, end in [("", "02"), ("02", "05"), ("05", "06"), ("0503", "0504")]:
        inside = [key for key in cf.LOW if start <= cf.EPKS[key] < end]
        assert cf.ids(cf.drain(halves, scope=cf.of_epks(start, end, "0"))[0]) == names(*inside)
    for start, end in [("20", "30"), ("30", "3A"), ("3A53", "3A54"), ("3A", "FF"), (cf.MIDDLE, "30")]:
        inside = [key for key in cf.HIGH if start <= cf.EPKS[key] < end]
        assert cf.ids(cf.drain(halves, scope=cf.of_epks(start, end, "1"))[0]) == names(*inside)


@pytest.mark.parametrize("key", cf.EPKS)
def test_cf_108_a_filter_one_logical_key_wide(halves, key):
    epk, range_id = cf.EPKS[key], "0" if key in cf.LOW else "1"
    found, at = cf.drain(halves, scope=cf.of_epks(epk, cf.after(epk), range_id))
    by_key, at_by_key = cf.drain(halves, scope=cf.of_key(key))
    assert found == by_key and cf.ids(found) == names(key) and at == at_by_key


def test_cf_108_an_empty_or_absent_start_is_the_lowest(halves):
    whole = cf.drain(halves, scope=cf.of_range("0"))
    absent = cf.of_epks("", cf.MIDDLE, "0")
    del absent["x-ms-start-epk"]
    assert cf.drain(halves, scope=absent) == cf.drain(halves, scope=cf.of_epks("", cf.MIDDLE, "0")) == whole


def test_cf_108_filters_without_a_range_id_find_their_range(halves):
    for key, epk in cf.EPKS.items():
        assert cf.ids(cf.drain(halves, scope=cf.of_epks(epk, cf.after(epk)))[0]) == names(key)
    cf.read(halves, scope=cf.of_epks("1FFF", "2FFF")).expect(400)


@pytest.fixture(scope="module")
def many(module_client):
    """150 documents at LSN 2 … 151; only read from."""
    container = module_client.create_database().create_container()
    container.fill(150)
    return container


@pytest.mark.parametrize("size", [None, "0"], ids=["absent", "0"])
def test_cf_109_without_a_size_a_page_has_100(many, size):
    page = cf.read(many, size=size).expect(200)
    assert page["x-ms-item-count"] == "100" and page["etag"] == '"101"'


def test_cf_109_minus_one_has_no_bound_by_count(many):
    assert cf.read(many, size="-1").expect(200)["x-ms-item-count"] == "150"


@pytest.mark.parametrize("size", [1, 2, 99, 100, 101, 149, 150, 151, 10_000, 2147483647])
def test_cf_110_any_positive_size_is_honoured(many, size):
    page = cf.read(many, size=size).expect(200)
    assert len(cf.items_of(page)) == min(size, 150)


@pytest.mark.parametrize("size", ["-2", "abc", "1.5", "-100", "99999999999999999999", "1 2"])
def test_cf_110_a_false_size_is_400(many, size):
    cf.read(many, size=size).expect(400)


@pytest.mark.parametrize("size", [7, 64, None, "-1"])
def test_cf_111_nothing_but_its_limit_ends_a_page(many, size):
    *full, last, end = cf.pages(many, size=size)
    limit = {None: 100, "-1": 150}.get(size, size)
    assert all(len(cf.items_of(page)) == limit for page in full) and cf.items_of(last) and end.status == 304


def test_cf_111_a_page_of_many_bytes_ends_before_4_mb_and_is_never_empty(container):
    padding = "x" * 300_000
    lsns = [cf.put(container, str(n), padding=padding) for n in range(30)]
    for size in ("-1", 100):
        found = cf.pages(container, size=size)
        assert [cf.lsn_of(item) for page in found for item in cf.items_of(page)] == lsns
        assert len(found) == 4 and all(len(page.body) <= 4 * 1024 * 1024 for page in found)
        assert all(len(page.body) > 3 * 1024 * 1024 for page in found[:-2])


@pytest.mark.parametrize("members", [
    {"x-ms-start-epk": "05"}, {"x-ms-start-epk": "XY", "x-ms-end-epk": "FF"}, {"x-ms-start-epk": "", "x-ms-end-epk": "0G"},
    {"x-ms-start-epk": "10", "x-ms-end-epk": "05"}, {"x-ms-start-epk": "05", "x-ms-end-epk": "05"},
    {"x-ms-start-epk": "", "x-ms-end-epk": "FF", "x-ms-read-key-type": "ResourceId"}], ids=str)
def test_cf_108_a_false_filter_is_400(three, members):
    headers = {"x-ms-read-key-type": "EffectivePartitionKeyRange"} | members
    cf.read(three, scope=cf.of_range("0") | headers).expect(400)


@pytest.mark.parametrize("key", ["a", "{}", '["a"', "[]", '["a","b"]', "[[]]", '[{"x":1}]'])
def test_cf_106_a_malformed_key_is_400(three, key):
    cf.read(three, scope={KEY: key}).expect(400)


def test_cf_102_a_full_key_decides_and_the_range_id_beside_it_is_ignored(halves):
    for key in cf.EPKS:
        for range_id in "01":
            assert cf.ids(cf.drain(halves, scope=cf.of_key(key) | cf.of_range(range_id))[0]) == names(key)


def test_cf_102_a_key_is_its_value_not_its_hash(container):
    values = ["a", None, True, False, 0, 1, 1.5, "", {}]
    for n, value in enumerate(values):
        document = {"id": str(n), "pk": value} if value != {} else {"id": str(n)}
        container.create(document, [value]).expect(201)
    for n, value in enumerate(values):
        assert cf.ids(cf.drain(container, scope=cf.of_key(value))[0]) == [str(n)]
    assert cf.drain(container, scope=cf.of_key("none"))[0] == []


@pytest.fixture(params=[400, cf.FIVE_RANGES], ids=["1 range", "5 ranges"])
def hierarchical(request, db):
    container = db.create_container({"partitionKey": {"paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2}},
                                    throughput=request.param)
    for n in range(3):
        for tenant in ("t1", "t2", "t3"):
            for user in ("u1", "u2"):
                document = {"id": f"{tenant} {user} {n}", "tenant": tenant, "user": user}
                container.create(document, [tenant, user]).expect(201)
    return container


def test_cf_108_a_prefix_of_a_hierarchical_key_is_the_feed_of_all_below(hierarchical):
    for tenant in ("t1", "t2", "t3"):
        found, _ = cf.drain(hierarchical, size=2, scope=cf.of_key(tenant))
        assert cf.ids(found) == [f"{tenant} {user} {n}" for n in range(3) for user in ("u1", "u2")]
        for user in ("u1", "u2"):
            assert cf.ids(cf.drain(hierarchical, scope=cf.of_key(tenant, user))[0]) == [f"{tenant} {user} {n}" for n in range(3)]
    cf.read(hierarchical, scope=cf.of_key("t1", "u1", "x")).expect(400)


def test_cf_103_headers_without_effect_are_accepted(three):
    plain = cf.read(three, headers={MAX_ITEMS: "2"}).expect(200)
    noise = {"x-ms-documentdb-populatequerymetrics": "true", "x-ms-documentdb-query-enablecrosspartition": "true",
             "x-ms-documentdb-responsecontinuationtokenlimitinkb": "1", "x-ms-cosmos-allow-tentative-writes": "true",
             "x-ms-cosmos-include-tentative-writes": "true", "x-ms-cosmos-priority-level": "Low", cf.CAPABILITIES: "31",
             "x-ms-cosmos-throughput-bucket": "1", "x-ms-consistency-level": "Eventual", MAX_ITEMS: "2"}
    assert cf.read(three, headers=noise).expect(200).body == plain.body
