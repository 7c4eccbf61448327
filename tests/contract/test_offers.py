"""Throughput and offers."""
import base64

import pytest

from harness import wire
from harness.wire import CONTINUATION, MAX_ITEMS, QUERY

THROUGHPUT = "x-ms-offer-throughput"
AUTOPILOT = "x-ms-cosmos-offer-autopilot-settings"


def offer_of(resource):
    offers = resource.client.offers_of(resource)
    assert len(offers) == 1, offers
    return offers[0]


def path_of(offer):
    return f"/offers/{offer['id']}"


def with_throughput(offer, throughput):
    return offer | {"content": offer["content"] | {"offerThroughput": throughput}}


# ── What a create makes ──────────────────────────────────────────────────────────────────────

def test_manual_offer_has_every_member(db):
    container = db.create_container(throughput=500)
    offer = offer_of(container)
    assert offer["offerVersion"] == "V2" and offer["offerType"] == "Invalid"
    assert offer["resource"] == container.body["_self"] and offer["offerResourceId"] == container.rid
    assert offer["content"] == {
        "offerThroughput": 500, "offerIsRUPerMinuteThroughputEnabled": False,
        "offerMinimumThroughputParameters": {"maxThroughputEverProvisioned": 500, "maxConsumedStorageEverInKB": 0}}
    assert offer["id"] == offer["_rid"] and offer["_self"] == f"offers/{offer['id']}/"
    assert offer["_etag"].startswith('"') and isinstance(offer["_ts"], int)


def test_container_without_throughput_gets_400(container):
    assert offer_of(container)["content"]["offerThroughput"] == 400


def test_database_without_throughput_has_no_offer(client, db):
    assert client.offers_of(db) == []


def test_database_with_throughput_shares_it_with_its_containers(client):
    database = client.create_database(headers={THROUGHPUT: "1000"})
    shared, own = database.create_container(), database.create_container(throughput=600)
    offer = offer_of(database)
    assert offer["content"]["offerThroughput"] == 1000
    assert offer["resource"] == database.body["_self"] and offer["offerResourceId"] == database.rid
    assert client.offers_of(shared) == []
    assert offer_of(own)["content"]["offerThroughput"] == 600


@pytest.mark.parametrize("maximum", [1000, 4000, 5000, 10000])
def test_autoscale_offer(client, db, maximum):
    container = db.create_container(headers={AUTOPILOT: f'{{"maxThroughput":{maximum}}}'})
    content = offer_of(container)["content"]
    assert content["offerAutopilotSettings"] == {"tier": 0, "maximumTierThroughput": 0, "autoUpgrade": False, "maxThroughput": maximum}
    assert maximum / 10 <= content["offerThroughput"] <= maximum
    database = client.create_database(headers={AUTOPILOT: f'{{"maxThroughput":{maximum}}}'})
    assert offer_of(database)["content"]["offerAutopilotSettings"]["maxThroughput"] == maximum


def test_auto_upgrade_policy_is_kept_until_a_replace_leaves_it_out(client, db):
    policy = {"throughputPolicy": {"incrementPercent": 10}}
    container = db.create_container(headers={
        AUTOPILOT: '{"maxThroughput":4000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":10}}}'})
    offer = offer_of(container)
    assert offer["content"]["offerAutopilotSettings"]["autoUpgradePolicy"] == policy
    offer["content"]["offerAutopilotSettings"] = {"maxThroughput": 5000}
    settings = client.put(path_of(offer), offer).expect(200).json["content"]["offerAutopilotSettings"]
    assert settings["maxThroughput"] == 5000 and "autoUpgradePolicy" not in settings


@pytest.mark.parametrize("legacy", ["S1", "S2", "S3"])
def test_legacy_offer_type_is_echoed_as_v1(db, legacy):
    offer = offer_of(db.create_container(headers={"x-ms-offer-type": legacy}, version=wire.OLDEST))
    assert offer["offerVersion"] == "V1" and offer["offerType"] == legacy
    assert "offerThroughput" not in offer.get("content", {})


@pytest.mark.parametrize("throughput", ["300", "399", "450", "0", "-400", "abc", "400.5", "1e3", "1000100"])
def test_bad_throughput_is_400_and_makes_nothing(client, db, throughput):
    text = "in increments of 100" if throughput.isdigit() else None
    db.post_container({"id": "c"}, {THROUGHPUT: throughput}).expect(400, text=text)
    client.post("/dbs", {"id": "never-" + db.id}, {THROUGHPUT: throughput}).expect(400)
    assert client.get(f"{db.path}/colls").expect(200).json["_count"] == 0
    client.get("/dbs/never-" + db.id).expect(404)


@pytest.mark.parametrize("settings", ['{"maxThroughput":900}', '{"maxThroughput":1500}', '{"maxThroughput":0}', '{"maxThroughput":"4000"}',
                                      "{}", "[]", "4000", "garbage", '{"maxThroughput":-1000}'])
def test_bad_autoscale_settings_are_400(db, settings):
    db.post_container(None, {AUTOPILOT: settings}).expect(400)


def test_any_number_of_containers_shares_a_databases_throughput_unless_it_is_limited(client, server):
    database = client.create_database(headers={THROUGHPUT: "1000"})
    for _ in range(26):
        database.create_container()
    with server("--shared-throughput-containers-max", "2").client() as limited:
        database = limited.create_database(headers={THROUGHPUT: "1000"})
        first = database.create_container()
        database.create_container()
        database.post_container().expect(403, 1010, "--shared-throughput-containers-max")
        database.create_container(throughput=400)
        limited.delete(first.path).expect(204)
        database.create_container()


@pytest.mark.parametrize("maximum", [-200, 0, 900])
def test_autoscale_below_its_minimum_is_refused_in_the_words_that_clients_look_for(client, db, maximum):
    words = f"Requested throughput {maximum} is less than required minimum throughput 1000"
    db.post_container(None, {AUTOPILOT: f'{{"maxThroughput":{maximum}}}'}).expect(400, text=words)
    offer = offer_of(db.create_container(headers={AUTOPILOT: '{"maxThroughput":4000}'}))
    offer["content"]["offerAutopilotSettings"] = {"maxThroughput": maximum}
    client.put(f"/offers/{offer['id']}", offer).expect(400, text=words)


def test_manual_and_autoscale_together_are_400(client, db):
    both = {THROUGHPUT: "400", AUTOPILOT: '{"maxThroughput":4000}'}
    db.post_container(None, both).expect(400)
    client.post("/dbs", {"id": wire.unique()}, both).expect(400)


# ── Finding offers ──────────────────────────────────────────────────────────────────────────────────

def test_offers_are_listed_and_paged(client, db):
    mine = {offer_of(db.create_container())["id"] for _ in range(3)}
    page = client.get("/offers", {MAX_ITEMS: "-1"}).expect(200)
    assert page.json["_rid"] == "" and page.json["_count"] == len(page.json["Offers"]) == int(page["x-ms-item-count"])
    assert mine <= {offer["id"] for offer in page.json["Offers"]}
    listed = [offer["id"] for each in client.pages("/offers", {MAX_ITEMS: "2"}) for offer in each.json["Offers"]]
    assert len(listed) == len(set(listed)) and mine <= set(listed)


@pytest.mark.parametrize("text, value", [
    ("SELECT * FROM root r WHERE r.resource=@link", "_self"),
    ("SELECT * FROM root r WHERE r.resource = @link", "_self"),
    ('SELECT * from root where root.resource = "{_self}"', None),
    ("select * from root r where r.offerResourceId= @targetRID", "_rid"),
    ("select * from root r where r.offerResourceId=@targetRID", "_rid"),
    ("select * FROM root r WHERE r.id=@id", "offer")])
def test_queries_of_the_clients_find_the_offer_of_a_container(client, container, text, value):
    offer = offer_of(container)
    values = {"_self": container.body["_self"], "_rid": container.rid, "offer": offer["id"]}
    query = {"query": text.format(**values)}
    if value:
        query["parameters"] = [{"name": text[text.index("@"):], "value": values[value]}]
    page = client.post("/offers", query, QUERY).expect(200)
    assert page.json["Offers"] == [offer] and page.json["_count"] == 1 and page["x-ms-item-count"] == "1"
    assert page[CONTINUATION] is None
    if value:
        query["parameters"][0]["value"] = "none"
    else:
        query["query"] = text.format(_self="dbs/none/")
    empty = client.post("/offers", query, QUERY).expect(200).json
    assert empty["Offers"] == [] and empty["_count"] == 0


def test_link_of_a_query_must_equal_the_self_link_exactly(client, container):
    query = {"query": "SELECT * FROM root r WHERE r.resource=@link",
             "parameters": [{"name": "@link", "value": container.body["_self"].rstrip("/")}]}
    assert client.post("/offers", query, QUERY).expect(200).json["Offers"] == []


def test_offers_are_counted_by_their_throughput(client, db):
    container = db.create_container(throughput=700)
    query = {"query": "SELECT VALUE COUNT(1) FROM root r WHERE r.content.offerThroughput > @least AND r.offerResourceId = @rid",
             "parameters": [{"name": "@rid", "value": container.rid}, {"name": "@least", "value": 699}]}
    assert client.post("/offers", query, QUERY).expect(200).json["Offers"] == [1]
    query["parameters"][1]["value"] = 700
    assert client.post("/offers", query, QUERY).expect(200).json["Offers"] == [0]


def test_offer_is_read_with_its_headers(client, container):
    offer = offer_of(container)
    for path in (path_of(offer), path_of(offer) + "/", "/" + offer["_self"]):
        response = client.get(path).expect(200)
        assert response.json == offer and response["etag"] == offer["_etag"]
        assert response["x-ms-cosmos-min-throughput"] == "400"
        assert response["x-ms-offer-replace-pending"] == "false"


def test_well_formed_unknown_offer_is_404(client):
    known = {offer["id"] for page in client.pages("/offers") for offer in page.json["Offers"]}
    unknown = next(name for n in range(1, 1 << 24) if (name := base64.b64encode(bytes([255, n >> 8 & 255, n & 255])).decode()
                                                       .replace("/", "-")) not in known)
    client.get(f"/offers/{unknown}").expect(404, 0)
    client.put(f"/offers/{unknown}", {"id": unknown, "_rid": unknown, "content": {"offerThroughput": 400}}).expect(404)


@pytest.mark.parametrize("name", ["abc", "abcde", "KxEAAA==", "no-such-offer", "!!!!", "ab%20c"])
def test_offer_id_that_is_no_3_byte_rid_is_400(client, name):
    client.get(f"/offers/{name}").expect(400)


# ── Replacing ───────────────────────────────────────────────────────────────────────────────────────

def test_replace_changes_the_throughput(client, container):
    offer = offer_of(container)
    replaced = client.put(path_of(offer), with_throughput(offer, 700)).expect(200)
    assert replaced.json["content"]["offerThroughput"] == 700
    assert replaced.json["content"]["offerMinimumThroughputParameters"]["maxThroughputEverProvisioned"] == 700
    assert {name: replaced.json[name] for name in ("id", "_rid", "_self", "resource", "offerResourceId")} == \
        {name: offer[name] for name in ("id", "_rid", "_self", "resource", "offerResourceId")}
    assert replaced.json["_etag"] != offer["_etag"] and replaced["etag"] == replaced.json["_etag"]
    assert replaced["x-ms-cosmos-min-throughput"] == "400" and replaced["x-ms-offer-replace-pending"] in ("false", "true")
    assert offer_of(container) == replaced.json == client.get(path_of(offer)).expect(200).json


def test_highest_ever_is_remembered_when_throughput_is_lowered(client, container):
    offer = offer_of(container)
    client.put(path_of(offer), with_throughput(offer, 900)).expect(200)
    lowered = client.put(path_of(offer), with_throughput(offer, 400)).expect(200).json["content"]
    assert lowered["offerThroughput"] == 400
    assert lowered["offerMinimumThroughputParameters"]["maxThroughputEverProvisioned"] == 900


def test_minimum_is_a_hundredth_of_the_highest_ever(client, db):
    offer = offer_of(db.create_container(throughput=60000))
    assert client.get(path_of(offer)).expect(200)["x-ms-cosmos-min-throughput"] == "600"
    client.put(path_of(offer), with_throughput(offer, 500)).expect(400, text="600")
    client.put(path_of(offer), with_throughput(offer, 600)).expect(200)


def test_replace_of_an_autoscale_maximum(client, db):
    offer = offer_of(db.create_container(headers={AUTOPILOT: '{"maxThroughput":4000}'}))
    offer["content"]["offerAutopilotSettings"]["maxThroughput"] = 6000
    replaced = client.put(path_of(offer), offer).expect(200).json["content"]
    assert replaced["offerAutopilotSettings"]["maxThroughput"] == 6000
    assert 600 <= replaced["offerThroughput"] <= 6000


@pytest.mark.parametrize("change", [{"id": "AAAB"}, {"_rid": "AAAB"}, {"id": wire.ABSENT}, {"_rid": wire.ABSENT}, {"id": 1}, {"_rid": None}],
                         ids=["other id", "other rid", "no id", "no rid", "number", "null"])
def test_body_that_does_not_match_the_url_is_400(client, container, change):
    offer = offer_of(container)
    body = {name: value for name, value in (with_throughput(offer, 800) | change).items() if value is not wire.ABSENT}
    client.put(path_of(offer), body).expect(400)
    assert offer_of(container) == offer


@pytest.mark.parametrize("throughput", [300, 450, 0, -400, "500", None, 400.5, 1000100])
def test_replace_with_bad_throughput_is_400(client, container, throughput):
    offer = offer_of(container)
    client.put(path_of(offer), with_throughput(offer, throughput)).expect(400)
    assert offer_of(container) == offer


@pytest.mark.parametrize("body", ["", "{", "[]", "null"])
def test_replace_with_a_bad_body_is_400(client, container, body):
    client.put(path_of(offer_of(container)), body).expect(400)


def test_if_match_guards_the_replace(client, container):
    offer = offer_of(container)
    client.put(path_of(offer), with_throughput(offer, 500), {"If-Match": '"stale"'}).expect(
        412, text="One of the specified pre-condition is not met")
    client.put(path_of(offer), with_throughput(offer, 500), {"If-Match": offer["_etag"]}).expect(200)


def test_migration_between_manual_and_autoscale(client, container):
    offer = offer_of(container)
    scaled = client.put(path_of(offer), offer, {"x-ms-cosmos-migrate-offer-to-autopilot": "true"}).expect(200).json
    assert scaled["content"]["offerAutopilotSettings"]["maxThroughput"] >= 1000
    manual = client.put(path_of(offer), scaled, {"x-ms-cosmos-migrate-offer-to-manual-throughput": "true"}).expect(200).json
    assert "offerAutopilotSettings" not in manual["content"] and manual["content"]["offerThroughput"] >= 400


def test_map_still_tiles_after_throughput_was_raised_beyond_its_ranges(client, container):
    offer = offer_of(container)
    client.put(path_of(offer), with_throughput(offer, 12000)).expect(200)
    parents = {parent for each in container.ranges() for parent in each["parents"]}
    live = sorted((each["minInclusive"], each["maxExclusive"]) for each in container.ranges() if each["id"] not in parents)
    assert live[0][0] == "" and live[-1][1] == "FF"
    assert all(left[1] == right[0] for left, right in zip(live, live[1:]))
    container.create({"id": "x", "pk": "a"}).expect(201)


# ── Owners ──────────────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("level", ["container", "database"])
def test_offer_goes_with_its_owner(client, level):
    database = client.create_database(headers={THROUGHPUT: "400"})
    owner = database if level == "database" else database.create_container(throughput=400)
    offer = offer_of(owner)
    client.delete(owner.path).expect(204)
    client.get(path_of(offer)).expect(404)
    client.put(path_of(offer), with_throughput(offer, 500)).expect(404)
    assert client.offers_of(owner) == []


@pytest.mark.parametrize("verb, feed", [("POST", True), ("PUT", True), ("DELETE", True), ("DELETE", False), ("POST", False)])
def test_offers_are_neither_created_nor_deleted_directly(client, container, verb, feed):
    offer = offer_of(container)
    client.request(verb, "/offers" if feed else path_of(offer), offer if verb != "DELETE" else None).expect(405)
    assert offer_of(container) == offer
