"""Partition key ranges."""
import re

import pytest

from harness import wire
from harness.wire import INCREMENTAL

ALL = INCREMENTAL | {wire.MAX_ITEMS: "-1"}


@pytest.fixture(params=[400, 30000], ids=["1 range", "5 ranges"])
def any_container(request, db):
    return db.create_container(throughput=request.param)


def ranges_path(container):
    return container.path + "/pkranges"


def test_ranges_have_every_member_clients_read(client, any_container):
    response = client.get(ranges_path(any_container)).expect(200)
    body = response.json
    assert body["_rid"] == any_container.rid
    assert body["_count"] == len(body["PartitionKeyRanges"]) == int(response["x-ms-item-count"])
    for n, each in enumerate(body["PartitionKeyRanges"]):
        assert each["id"] == str(n) and each["ridPrefix"] == n
        assert each["status"] == "online" and each["parents"] == []
        assert 0 < each["throughputFraction"] <= 1
        assert re.match(r'^"[^"]+"$', each["_etag"])
        assert isinstance(each["_ts"], int) and isinstance(each["_lsn"], int)
        assert each["_self"] == f"{any_container.body['_self']}pkranges/{each['_rid']}/"
    assert sum(each["throughputFraction"] for each in body["PartitionKeyRanges"]) == pytest.approx(1, abs=0.01)


def test_ranges_tile_the_whole_space_in_upper_case_hex(any_container):
    ranges = any_container.ranges()
    assert ranges[0]["minInclusive"] == "" and ranges[-1]["maxExclusive"] == "FF"
    for left, right in zip(ranges, ranges[1:]):
        assert left["maxExclusive"] == right["minInclusive"] and re.match(r"^[0-9A-F]+$", left["maxExclusive"])


@pytest.mark.parametrize("a_im", ["Incremental Feed", "Incremental feed", "incremental feed", "INCREMENTAL FEED"])
def test_current_etag_with_a_im_is_304(client, container, a_im):
    headers = {"A-IM": a_im, wire.MAX_ITEMS: "-1"}
    first = client.get(ranges_path(container), headers).expect(200)
    assert re.match(r'^"[^"]+"$', first["etag"])
    second = client.get(ranges_path(container), headers | {"If-None-Match": first["etag"]}).expect(304)
    assert second.body == b"" and second["etag"] == first["etag"]
    assert second["content-type"] is None and second["content-length"] is None


def test_client_that_loops_until_304_ends(client, any_container):
    etag, found = None, {}
    for _ in range(5):
        response = client.get(ranges_path(any_container), ALL | ({"If-None-Match": etag} if etag else {})).expect((200, 304))
        if response.status == 304:
            break
        found |= {each["id"]: each for each in response.json["PartitionKeyRanges"]}
        etag = response["etag"]
    assert response.status == 304
    assert list(found.values()) == any_container.ranges()


@pytest.mark.parametrize("etag", ['"no-such-version"', '"999999"', "garbage"])
def test_unknown_etag_counts_as_none(client, any_container, etag):
    response = client.get(ranges_path(any_container), ALL | {"If-None-Match": etag}).expect(200)
    assert response.json["PartitionKeyRanges"] == any_container.ranges()


def test_without_a_im_the_answer_is_always_200_with_the_same_etag(client, container):
    first = client.get(ranges_path(container), ALL).expect(200)
    plain = client.get(ranges_path(container)).expect(200)
    assert plain["etag"] == first["etag"]
    client.get(ranges_path(container), {"If-None-Match": first["etag"]}).expect(200)


def test_etag_does_not_change_with_item_writes(client, container):
    etag = client.get(ranges_path(container), ALL).expect(200)["etag"]
    container.fill(3)
    container.delete("1").expect(204)
    client.get(ranges_path(container), ALL | {"If-None-Match": etag}).expect(304)


def test_ranges_by_rid_are_the_same_and_signed_with_the_lower_cased_rid(client, any_container):
    path = f"/dbs/{any_container.database.rid}/colls/{any_container.rid}/pkranges"
    by_rid = client.get(path, ALL, what=("pkranges", any_container.rid.lower())).expect(200)
    assert by_rid.body == client.get(ranges_path(any_container), ALL).expect(200).body
    client.get(path, ALL | {"If-None-Match": by_rid["etag"]}).expect(304)


def test_one_range_is_read_by_id_and_by_rid(client, any_container):
    for each in any_container.ranges():
        assert client.get(f"{ranges_path(any_container)}/{each['id']}").expect(200).json == each
        assert client.get("/" + each["_self"]).expect(200).json == each
    client.get(f"{ranges_path(any_container)}/77").expect(404)


@pytest.mark.parametrize("size", ["1", "2"])
def test_with_a_im_ranges_are_never_paged(client, db, size):
    container = db.create_container(throughput=30000)
    response = client.get(ranges_path(container), INCREMENTAL | {wire.MAX_ITEMS: size}).expect(200)
    assert response.json["_count"] == 5 and response[wire.CONTINUATION] is None


@pytest.mark.parametrize("size, pages", [("1", [1] * 5), ("2", [2, 2, 1]), ("5", [5]), ("0", [5]), ("-1", [5])])
def test_without_a_im_ranges_are_paged_when_asked(client, db, size, pages):
    container = db.create_container(throughput=30000)
    found = list(client.pages(ranges_path(container), {wire.MAX_ITEMS: size}))
    assert [page.json["_count"] for page in found] == pages
    assert [each for page in found for each in page.json["PartitionKeyRanges"]] == container.ranges()


def test_ranges_carry_no_session_token(client, container):
    assert client.get(ranges_path(container)).expect(200)[wire.SESSION] is None


@pytest.mark.parametrize("headers", [{}, ALL], ids=["plain", "A-IM"])
def test_ranges_of_a_missing_container_are_404(client, db, headers):
    client.get(f"{db.path}/colls/none/pkranges", headers).expect(404, 1003)


@pytest.mark.parametrize("verb, path", [("POST", ""), ("PUT", ""), ("DELETE", ""), ("PUT", "/0"), ("DELETE", "/0"), ("POST", "/0")])
def test_ranges_cannot_be_written(client, container, verb, path):
    client.request(verb, ranges_path(container) + path, {"id": "0"} if verb != "DELETE" else None).expect(405)
