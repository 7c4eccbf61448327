"""If-Match and If-None-Match."""
import pytest

FAILED = "One of the specified pre-condition is not met"
DOCUMENT = {"id": "x", "pk": "a"}

WRITES = {
    "replace": (lambda c, headers: c.replace("x", DOCUMENT, headers=headers), 200, 404),
    "delete": (lambda c, headers: c.delete("x", headers=headers), 204, 404),
    "upsert": (lambda c, headers: c.upsert(DOCUMENT, headers=headers), 200, 201),
}
CONDITIONS = {  # the header's value, made from the current etag: does it hold for an item that exists?
    "equal": (lambda etag: etag, True), "any": (lambda etag: "*", True), "without quotes": (lambda etag: etag.strip('"'), True),
    "stale": (lambda etag: '"00000000-0000-0000-0000-000000000000"', False), "other text": (lambda etag: "x", False),
    "other case": (lambda etag: etag.upper() + "x", False), "weak": (lambda etag: f"W/{etag}", False),
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("write", WRITES)
def test_if_match_on_an_item_that_exists(container, write, condition):
    call, success, _ = WRITES[write]
    value, holds = CONDITIONS[condition]
    created = container.create(DOCUMENT).expect(201)
    response = call(container, {"If-Match": value(created["etag"])})
    if holds:
        response.expect(success)
    else:
        assert response.expect(412, 0, FAILED).json["code"] == "PreconditionFailed"
        assert container.read("x").expect(200).body == created.body


@pytest.mark.parametrize("value", ["*", '"any"'])
@pytest.mark.parametrize("write", WRITES)
def test_if_match_on_an_item_that_is_missing(container, write, value):
    call, _, missing = WRITES[write]
    call(container, {"If-Match": value}).expect(missing)


@pytest.mark.parametrize("condition", ["equal", "any", "stale"])
@pytest.mark.parametrize("write", WRITES)
def test_if_none_match_is_ignored_on_writes(container, write, condition):
    call, success, _ = WRITES[write]
    created = container.create(DOCUMENT).expect(201)
    call(container, {"If-None-Match": CONDITIONS[condition][0](created["etag"])}).expect(success)


def test_writes_look_at_if_match_only_when_both_are_sent(container):
    etag = container.create(DOCUMENT).expect(201)["etag"]
    container.replace("x", DOCUMENT, headers={"If-Match": '"stale"', "If-None-Match": '"stale"'}).expect(412)
    container.replace("x", DOCUMENT, headers={"If-Match": etag, "If-None-Match": etag}).expect(200)


@pytest.mark.parametrize("headers", [{"If-Match": '"any"'}, {"If-Match": "*"}, {"If-None-Match": "*"}], ids=str)
def test_conditions_are_ignored_on_create(container, headers):
    container.create(DOCUMENT, headers=headers).expect(201)
    container.create(DOCUMENT, headers=headers).expect(409)


@pytest.mark.parametrize("condition", [name for name in CONDITIONS if name not in ("any", "weak")])
def test_if_none_match_on_a_read(container, condition):
    value, holds = CONDITIONS[condition]
    etag = container.create(DOCUMENT).expect(201)["etag"]
    response = container.read("x", headers={"If-None-Match": value(etag)}).expect(304 if holds else 200)
    assert response["etag"] == etag and response.charge == 1
    if holds:
        assert response.body == b"" and response["content-type"] is None and response["content-length"] is None


def test_if_none_match_of_a_missing_item_is_404(container):
    container.read("none", headers={"If-None-Match": '"any"'}).expect(404)


def test_reads_ignore_if_match(container):
    etag = container.create(DOCUMENT).expect(201)["etag"]
    container.read("x", headers={"If-Match": '"stale"'}).expect(200)
    container.read("x", headers={"If-Match": '"stale"', "If-None-Match": etag}).expect(304)


def test_etag_of_an_earlier_version_no_longer_matches(container):
    first = container.create(DOCUMENT).expect(201)["etag"]
    second = container.replace("x", DOCUMENT, headers={"If-Match": first}).expect(200)["etag"]
    container.replace("x", DOCUMENT, headers={"If-Match": first}).expect(412)
    container.delete("x", headers={"If-Match": first}).expect(412)
    container.read("x", headers={"If-None-Match": first}).expect(200)
    container.delete("x", headers={"If-Match": second}).expect(204)


def test_etag_of_a_recreated_item_is_new(container):
    first = container.create(DOCUMENT).expect(201)["etag"]
    container.delete("x").expect(204)
    assert container.create(DOCUMENT).expect(201)["etag"] != first
    container.replace("x", DOCUMENT, headers={"If-Match": first}).expect(412)


def test_condition_is_judged_before_the_new_id_of_a_rename(container):
    container.create(DOCUMENT).expect(201)
    container.create({"id": "y", "pk": "a"}).expect(201)
    container.replace("x", {"id": "y", "pk": "a"}, headers={"If-Match": '"stale"'}).expect(412)
