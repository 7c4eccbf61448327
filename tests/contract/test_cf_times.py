"""CF-130 … CF-135, CF-138: starting at a time."""
import collections
import email.utils
import time

import pytest

import change_feed as cf
from harness import wire

Times = collections.namedtuple("Times", "container early late")


@pytest.fixture(scope="module")
def times(module_client):
    """early 0, 1 and other 0 in one second, late 0, 1 in a later one; then a delete. Only read from."""
    container = module_client.create_database().create_container()
    cf.put(container, "deleted")
    for n in range(2):
        container.create({"id": f"early {n}", "pk": "a"}).expect(201)
    container.create({"id": "other 0", "pk": "redmond"}).expect(201)
    first = cf.items_of(cf.read(container).expect(200))
    cf.later_than(container, max(item["_ts"] for item in first))
    for n in range(2):
        late = container.create({"id": f"late {n}", "pk": "a"}).expect(201).json["_ts"]
    container.delete("deleted").expect(204)
    lates = [item["_ts"] for item in cf.drain(container, 5)[0]]
    return Times(container, (min(item["_ts"] for item in first), max(item["_ts"] for item in first)), (min(lates), late))


def test_cf_130_a_time_before_matches_is_an_empty_200_with_the_position_below_the_first(times):
    page = cf.read(times.container, headers=cf.since(times.early[1])).expect(200)
    assert page.json["Documents"] == [] and page.json["_count"] == 0 and page["x-ms-item-count"] == "0"
    assert page["etag"] == '"5"', "the LSN of the first match, less one"
    assert cf.ids(cf.drain(times.container, page["etag"])[0]) == ["late 0", "late 1"]


def test_cf_130_the_position_is_found_in_the_scope(times):
    headers = cf.since(times.early[0] - 1)
    assert cf.read(times.container, headers=headers, scope=cf.of_key("redmond")).expect(200)["etag"] == '"4"'
    epk = cf.EPKS["redmond"]
    assert cf.read(times.container, headers=headers, scope=cf.of_epks(epk, cf.after(epk))).expect(200)["etag"] == '"4"'
    assert cf.read(times.container, headers=cf.since(times.early[1]), scope=cf.of_key("a")).expect(200)["etag"] == '"5"'
    assert cf.read(times.container, headers=cf.since(times.early[1]), scope=cf.of_key("redmond")).expect(304)["etag"] == '"8"'


@pytest.mark.parametrize("ahead", [0, 1, 100, 10**9])
def test_cf_131_a_time_with_nothing_after_it_is_304_at_the_head(times, ahead):
    idle = cf.read(times.container, headers=cf.since(times.late[1] + ahead)).expect(304)
    assert idle["etag"] == '"8"' and cf.head(idle) == 8


def test_cf_132_a_document_of_that_second_is_not_included(times):
    at_second = cf.read(times.container, headers=cf.since(times.late[0])).expect((200, 304))
    found = cf.drain(times.container, at_second["etag"])[0]
    assert all(item["_ts"] > times.late[0] for item in found)
    before = cf.read(times.container, headers=cf.since(times.late[0] - 1)).expect(200)
    assert "late 0" in cf.ids(cf.drain(times.container, before["etag"])[0])


@pytest.mark.parametrize("second", [0, 1, 86400 * 365])
def test_cf_133_a_time_before_the_container_is_the_beginning(times, second):
    page = cf.read(times.container, headers=cf.since(second)).expect(200)
    assert page["etag"] == '"2"', "just below the first live LSN"
    assert cf.drain(times.container, page["etag"]) == cf.drain(times.container)


def test_cf_134_never_304_when_matches_exist(container):
    for n in range(30):
        ts = container.create({"id": str(n), "pk": "a"}).expect(201).json["_ts"]
        page = cf.read(container, headers=cf.since(ts - 1)).expect(200)
        assert str(n) in cf.ids(cf.drain(container, page["etag"])[0])


def test_cf_135_time_never_falls_in_a_log(container):
    started = time.monotonic()
    n = 0
    while time.monotonic() - started < 1.2:
        cf.put(container, str(n))
        n += 1
    seconds = [item["_ts"] for item in cf.drain(container, size="-1")[0]]
    assert len(seconds) == n and seconds == sorted(seconds) and seconds[0] < seconds[-1]


def spelled(seconds, form):
    moment = time.gmtime(seconds)
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    clock, day, month = time.strftime("%H:%M:%S", moment), days[moment.tm_wday], months[moment.tm_mon - 1]
    return {"RFC 1123": email.utils.formatdate(seconds, usegmt=True),
            "RFC 850": f"{day}, {moment.tm_mday:02}-{month}-{moment.tm_year % 100:02} {clock} GMT",
            "asctime": f"{day[:3]} {month} {moment.tm_mday:2} {clock} {moment.tm_year}"}[form]


@pytest.mark.parametrize("form", ["RFC 1123", "RFC 850", "asctime"])
def test_cf_130_every_form_of_an_http_date(times, form):
    headers = {"If-Modified-Since": spelled(times.early[1], form)}
    assert cf.read(times.container, headers=headers).expect(200)["etag"] == '"5"'


@pytest.mark.parametrize("text", ["yesterday", "2016-11-15T07:26:51Z", "1479194811", "Tue, 15 Nov 2016", "Tue, 32 Nov 2016 07:26:51 GMT",
                                  "Tue, 15 Nov 2016 25:26:51 GMT", "Tue, 15 Nox 2016 07:26:51 GMT"])
def test_cf_130_a_false_date_is_400(container, text):
    cf.read(container, headers={"If-Modified-Since": text}).expect(400, text="If-Modified-Since")


def test_cf_33_without_the_capability_the_time_beside_an_etag_is_ignored(times):
    for capabilities in ({}, {cf.CAPABILITIES: "0"}, {cf.CAPABILITIES: "1"}, {cf.CAPABILITIES: "9"}):
        found, _ = cf.drain(times.container, 1, headers=cf.since(times.early[1]) | capabilities)
        assert cf.ids(found) == ["early 0", "early 1", "other 0", "late 0", "late 1"]


@pytest.mark.parametrize("capabilities", ["2", "3", "11", "31"])
def test_cf_138_with_the_capability_both_conditions_hold_and_the_etag_rules_stay(times, capabilities):
    headers = cf.since(times.early[1]) | {cf.CAPABILITIES: capabilities}
    found, at = cf.drain(times.container, 1, headers=headers)
    assert cf.ids(found) == ["late 0", "late 1"] and at == '"8"'
    page = cf.read(times.container, 1, size=1, headers=headers).expect(200)
    assert cf.ids(cf.items_of(page)) == ["late 0"] and page["etag"] == f'"{cf.items_of(page)[0]["_lsn"]}"'
    idle = cf.read(times.container, 1, headers=cf.since(times.late[1]) | {cf.CAPABILITIES: capabilities}).expect(304)
    assert idle["etag"] == '"8"'


def test_cf_138_a_key_and_a_time_together(times):
    headers = cf.since(times.early[1]) | {cf.CAPABILITIES: "2"}
    assert cf.read(times.container, 1, headers=headers, scope=cf.of_key("redmond")).expect(304)["etag"] == '"8"'
    found, at = cf.drain(times.container, 1, headers=headers, scope=cf.of_key("a"))
    assert cf.ids(found) == ["late 0", "late 1"] and at == '"8"'


def test_cf_130_prefer_representation_returns_the_documents_at_once(times):
    """An opt-in of Orrery's own; a server without it may answer as usual."""
    page = cf.read(times.container, headers=cf.since(times.early[1]) | {"Prefer": "return=representation"}).expect(200)
    assert cf.ids(cf.items_of(page)) in (["late 0", "late 1"], [])


def test_cf_130_a_time_is_a_start_for_a_drain_of_any_client(times):
    """Time on every request, as JS and Python send it; the empty page is read over once."""
    headers = cf.since(times.early[1]) | {cf.CAPABILITIES: "1"}
    page = cf.read(times.container, headers=headers).expect(200)
    assert cf.ids(cf.drain(times.container, page["etag"], size=1, headers=headers)[0]) == ["late 0", "late 1"]
    assert wire.CONTINUATION not in dict(page.headers)
