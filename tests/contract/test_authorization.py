"""Authorization."""
import base64
import urllib.parse

import pytest

from harness import wire
from harness.wire import authorization, http_date, quote, sign

OTHER_KEYS = [base64.b64encode(bytes([n]) * 64).decode() for n in range(4)]


# ── What is signed ─────────────────────────────────────────────────────────────────

D, C, X = "/dbs/{d}", "/dbs/{d}/colls/{c}", "/dbs/{d}/colls/{c}/docs/{x}"
ROWS = [  # verb, path, resource type, link; the rid-based link is the last rid of the link, lower-cased
    ("GET", "/dbs", "dbs", ""), ("POST", "/dbs", "dbs", ""),
    ("GET", D, "dbs", D), ("PUT", D, "dbs", D), ("DELETE", D, "dbs", D),
    ("GET", D + "/colls", "colls", D), ("POST", D + "/colls", "colls", D),
    ("GET", C, "colls", C), ("PUT", C, "colls", C), ("DELETE", C, "colls", C),
    ("GET", C + "/docs", "docs", C), ("POST", C + "/docs", "docs", C),
    ("GET", X, "docs", X), ("PUT", X, "docs", X), ("PATCH", X, "docs", X), ("DELETE", X, "docs", X),
    ("GET", C + "/pkranges", "pkranges", C),
    ("GET", C + "/sprocs", "sprocs", C), ("GET", C + "/triggers", "triggers", C), ("GET", C + "/udfs", "udfs", C),
    ("GET", C + "/conflicts", "conflicts", C), ("GET", X + "/attachments", "attachments", X),
    ("GET", D + "/users", "users", D), ("GET", D + "/clientencryptionkeys", "clientencryptionkeys", D),
    ("POST", C + "/operations/partitionkeydelete", "colls", C),
]
NAMED_ROWS = ROWS + [
    ("POST", C + "/operations/partitionkeydelete", "partitionkey", C),  # 2.4 (e)
    ("GET", C + "/sprocs/s", "sprocs", C + "/sprocs/s"), ("POST", C + "/sprocs/s", "sprocs", C + "/sprocs/s"),
    ("GET", C + "/pkranges/0", "pkranges", C + "/pkranges/0"),
    ("GET", D + "/users/u", "users", D + "/users/u"),
    ("GET", D + "/users/u/permissions", "permissions", D + "/users/u"),
    ("GET", D + "/users/u/permissions/p", "permissions", D + "/users/u/permissions/p"),
    ("GET", "/offers", "offers", ""), ("POST", "/offers", "offers", ""),
]


@pytest.fixture
def names(container):
    return {"d": container.database.id, "c": container.id,
            "x": container.create({"id": "item", "pk": "a"}).expect(201).json["id"]}


def assert_signed_as(client, verb, path, resource_type, link):
    """The right type and link are let in (whatever the route then says), wrong ones are not."""
    headers = {wire.KEY: '["a"]'}
    for wrong in (("wrong", link), (resource_type, link + "x"), ("", "")):
        client.request(verb, path, headers=headers, what=wrong).expect(401)
    assert client.request(verb, path, headers=headers, what=(resource_type, link)).status != 401


@pytest.mark.parametrize("verb, path, resource_type, link", NAMED_ROWS)
def test_name_based_request_is_signed_with_its_type_and_link(client, names, verb, path, resource_type, link):
    assert_signed_as(client, verb, path.format(**names), resource_type, link.format(**names)[1:])


@pytest.mark.parametrize("verb, path, resource_type, link", [row for row in ROWS if "{" in row[1]])
def test_rid_based_request_is_signed_with_the_last_rid_in_lower_case(client, container, verb, path, resource_type, link):
    document = container.create({"id": "item", "pk": "a"}).expect(201).json
    rids = {"d": container.database.rid, "c": container.rid, "x": document["_rid"]}
    last = link.format(**rids).rsplit("/", 1)[1].lower()
    assert_signed_as(client, verb, path.format(**rids), resource_type, last)


def test_offer_is_signed_with_its_id_in_lower_case(client, container):
    offer = client.offers_of(container)[0]["id"]
    assert_signed_as(client, "GET", f"/offers/{offer}", "offers", offer.lower())
    assert_signed_as(client, "PUT", f"/offers/{offer}", "offers", offer.lower())


def test_signed_link_is_case_sensitive(client, container):
    client.get(container.path, what=("colls", f"dbs/{container.database.id.upper()}/colls/{container.id}")).expect(401)


def test_resource_type_is_signed_in_lower_case(client):
    client.get("/dbs", what=("DBS", "")).expect(200)


# ── Tolerance: ids that paths distort ────────────────────────────────────────────────

AWKWARD_IDS = ["a b", "a%20b", "Ä b", "日本語 😀", "a?b", "a?b=c&d", "a#b", "trailing space ", " leading", "a%2Fb", "a+b",
               "100%", 'quote"s', "a&b=c", "a;b,c", "%", "%41", "tab\tinside"]


@pytest.mark.parametrize("name", AWKWARD_IDS)
def test_id_is_signed_unencoded_and_found_percent_encoded(client, container, name):
    container.create({"id": name, "pk": "a"}).expect(201)
    link = f"dbs/{container.database.id}/colls/{container.id}/docs/{name}"
    path, key = f"{container.docs}/{quote(name)}", {wire.KEY: '["a"]'}
    assert client.get(path, key, what=("docs", link)).expect(200).json["id"] == name
    client.put(path, {"id": name, "pk": "a"}, key, what=("docs", link)).expect(200)
    client.delete(path, key, what=("docs", link)).expect(204)


@pytest.mark.parametrize("segment", ["a%20b", "%41", "%C3%84", "a%3Fb", "trailing%20"])
def test_raw_path_is_accepted_as_signed_link(client, container, segment):
    container.create({"id": urllib.parse.unquote(segment), "pk": "a"}).expect(201)
    link = f"dbs/{container.database.id}/colls/{container.id}/docs/{segment}"
    client.get(f"{container.docs}/{segment}", {wire.KEY: '["a"]'}, what=("docs", link)).expect(200)


def test_item_id_with_an_unescaped_question_mark_may_be_signed_with_it(client, container):
    container.create({"id": "a?b", "pk": "a"}).expect(201)
    link = f"dbs/{container.database.id}/colls/{container.id}/docs/a?b"
    client.get(container.docs + "/a?b", {wire.KEY: '["a"]'}, what=("docs", link)).expect(200)


def test_names_of_databases_and_containers_are_signed_unencoded(client):
    database = client.create_database(wire.unique("Ä b %20"))
    container = database.create_container({"id": "ç d+e"})
    link = f"dbs/{database.id}/colls/{container.id}"
    client.get(container.path, what=("colls", link)).expect(200)
    client.get(container.path, what=("colls", f"{database.path}/colls/{quote(container.id)}"[1:])).expect(200)


# ── The header's shape ────────────────────────────────────────────────────────────────────────

def token(client, date, **parts):
    """The un-encoded text of a right header for GET /dbs, with parts changed."""
    parts = {"type": "master", "ver": "1.0", "sig": sign(client.endpoint.key, "GET", "dbs", "", date)} | parts
    return "&".join(f"{name}={value}" for name, value in parts.items())


def get_dbs(client, header, date):
    return client.get("/dbs", {"authorization": header}, date=date, signed=False)


@pytest.mark.parametrize("spell", [
    lambda text: quote(text),
    lambda text: quote(text).replace("%3D", "%3d").replace("%26", "%26").replace("%2B", "%2b").replace("%2F", "%2f"),
    lambda text: text,
    lambda text: text.replace("type=", "TYPE=").replace("ver=", "Ver=").replace("sig=", "SIG="),
    lambda text: quote(text) + ",type%3Dmaster%26ver%3D1.0%26sig%3Dzzz",
    lambda text: text + ",and more",
], ids=["upper-case hex", "lower-case hex", "not encoded", "keys in other case", "doubled", "doubled, not encoded"])
def test_header_is_read_in_every_spelling_of_the_clients(client, spell):
    date = http_date()
    get_dbs(client, spell(token(client, date)), date).expect(200)


def test_plus_in_an_unencoded_signature_survives(client):
    for age in range(60):
        date = http_date(-age)
        if "+" in (text := token(client, date)):
            break
    assert "+" in text
    get_dbs(client, text, date).expect(200)


@pytest.mark.parametrize("change", [
    {"type": "sas"}, {"type": "system"}, {"type": "aad"}, {"type": "resource"}, {"type": "unknown"}, {"type": ""},
    {"ver": ""}, {"sig": ""}, {"sig": "not base64!"}, {"sig": "AAAA"}, {"sig": "A" * 2000}],
    ids=lambda change: "{}={:.12}".format(*next(iter(change.items()))))
def test_header_with_a_wrong_part_is_401(client, change):
    date = http_date()
    get_dbs(client, quote(token(client, date, **change)), date).expect(401)


@pytest.mark.parametrize("header", ["", "garbage", "type=master", "type%3Dmaster%26ver%3D1.0", "&&", "=&=&=", "%", "%zz",
                                    "Bearer abc", "type=master&sig=x&ver=1.0", "sig=x&ver=1.0&type=master"])
def test_malformed_header_is_401(client, header):
    get_dbs(client, header, http_date()).expect(401)


def test_missing_header_is_401(client):
    assert client.get("/dbs", signed=False).expect(401).json["code"] == "Unauthorized"


def test_signature_in_other_letter_case_is_401(client):
    date = http_date()
    get_dbs(client, authorization(sign(client.endpoint.key, "GET", "dbs", "", date).swapcase()), date).expect(401)


def test_signature_of_another_key_is_401(client):
    client.get("/dbs", key=OTHER_KEYS[0]).expect(401)


@pytest.mark.parametrize("verb, what, payload", [
    ("GET", ("dbs", "x"), "get\ndbs\n\n{date}\n\n"), ("POST", ("dbs", "x"), "post\ndbs\n\n{date}\n\n")])
def test_401_names_the_payload_that_was_expected(client, verb, what, payload):
    date = http_date()
    message = client.request(verb, "/dbs", what=what, date=date).expect(401, text="to sign").message
    assert "The input authorization token can't serve the request." in message
    assert payload.format(date=date.lower()) in message.replace("\\n", "\n")


# ── Dates ─────────────────────────────────────────────────────────────────────────────────────

MINUTE = 60


@pytest.mark.parametrize("offset, status", [(0, 200), (-29 * MINUTE, 200), (14 * MINUTE, 200), (-31 * MINUTE, 403),
                                            (16 * MINUTE, 403), (-86400, 403), (365 * 86400, 403)])
def test_date_counts_from_30_minutes_ago_to_15_minutes_ahead(client, offset, status):
    client.get("/dbs", date=http_date(offset)).expect(status)


def test_date_outside_the_window_is_explained(client):
    response = client.get("/dbs", date=http_date(-86400)).expect(403, 0, "not valid at the current time")
    assert response.json["code"] == "Forbidden"


@pytest.mark.parametrize("offset", [-86400, 86400])
def test_date_outside_the_window_with_a_wrong_signature_is_401(client, offset):
    client.get("/dbs", date=http_date(offset), key=OTHER_KEYS[0]).expect(401)


def test_missing_date_is_401(client):
    header = authorization(sign(client.endpoint.key, "GET", "dbs", "", ""))
    client.get("/dbs", {"x-ms-date": None, "authorization": header}).expect(401)


@pytest.mark.parametrize("date", ["yesterday", "2025-04-01T12:00:00Z", "1743508800", "Tue, 99 Apr 2025 12:00:00 GMT"])
def test_unparsable_date_is_401_even_if_signed(client, date):
    client.get("/dbs", date=date).expect(401)


def test_date_header_serves_where_x_ms_date_is_absent(client):
    date = http_date()
    header = authorization(sign(client.endpoint.key, "GET", "dbs", "", "", date))
    client.get("/dbs", {"x-ms-date": None, "Date": date, "authorization": header}).expect(200)


@pytest.mark.parametrize("with_date_line", [False, True])
def test_with_both_dates_the_date_line_may_be_filled_or_empty(client, with_date_line):
    date, plain = http_date(), http_date(-5)
    header = authorization(sign(client.endpoint.key, "GET", "dbs", "", date, plain if with_date_line else ""))
    client.get("/dbs", {"Date": plain, "authorization": header}, date=date).expect(200)


# ── What comes first ────────────────────────────────────────────────────────────────────────────────

REFUSED_ROUTES = [("GET", "/dbs/no-such-database", 404), ("GET", "/dbs/no-such-database/colls/c/docs/x", 404),
                  ("PUT", "/dbs/no-such-database", (404, 405)), ("DELETE", "/dbs", 405), ("POST", "/", 405),
                  ("GET", C + "/sprocs", 501), ("PATCH", X, 400), ("GET", D + "/users", 501)]


@pytest.mark.parametrize("verb, path, status", REFUSED_ROUTES)
def test_401_comes_before_403_before_400_404_405_and_501(client, names, verb, path, status):
    path, key = path.format(**names), {wire.KEY: '["a"]'}
    client.request(verb, path, headers=key, signed=False).expect(401)
    client.request(verb, path, headers=key, key=OTHER_KEYS[0]).expect(401)
    client.request(verb, path, headers=key, date=http_date(-86400)).expect(403)
    client.request(verb, path, headers=key).expect(status)


def test_401_comes_before_400(client, container):
    for body in ("{", '{"id":""}', b"\xff"):
        container.create(body, signed=False).expect(401)
    container.feed({wire.MAX_ITEMS: "abc"}, signed=False).expect(401)


# ── Key classes ───────────────────────────────────────────────────────────────────────────────

@pytest.fixture
def four_keys(server):
    primary, secondary, reader, second_reader = OTHER_KEYS
    return server("--key", primary, "--key", secondary, "--read-only-key", reader, "--read-only-key", second_reader,
                  key=primary)


def test_primary_and_secondary_key_read_and_write(four_keys):
    with four_keys.client() as client:
        container = client.create_database().create_container()
        for n, key in enumerate(OTHER_KEYS[:2]):
            client.get(container.path, key=key).expect(200)
            client.post(container.docs, {"id": str(n), "pk": "a"}, {wire.KEY: '["a"]'}, key=key).expect(201)
        client.get("/dbs", key=wire.WELL_KNOWN_KEY).expect(401)


@pytest.mark.parametrize("reader", OTHER_KEYS[2:])
def test_read_only_key_reads_everything_and_writes_nothing(four_keys, reader):
    with four_keys.client() as client:
        container = client.create_database().create_container()
        container.create({"id": "x", "pk": "a"}).expect(201)
        offer = client.offers_of(container)[0]
        key, database = {wire.KEY: '["a"]'}, container.database
        for path in ("/", "/dbs", database.path, database.path + "/colls", container.path, container.docs,
                     container.doc("x"), container.path + "/pkranges", container.path + "/conflicts",
                     database.path + "/clientencryptionkeys", "/offers", f"/offers/{offer['id']}"):
            client.get(path, key, key=reader).expect(200)
        for verb, path, body in [
                ("POST", "/dbs", {"id": "new"}), ("DELETE", database.path, None),
                ("POST", database.path + "/colls", {"id": "new"}), ("PUT", container.path, container.body),
                ("DELETE", container.path, None), ("POST", container.docs, {"id": "y", "pk": "a"}),
                ("PUT", container.doc("x"), {"id": "x", "pk": "a"}), ("DELETE", container.doc("x"), None),
                ("PUT", f"/offers/{offer['id']}", offer),
                ("POST", database.path + "/clientencryptionkeys", {"id": "k"}), ("PUT", database.path + "/clientencryptionkeys/k", {"id": "k"}),
                ("DELETE", container.path + "/conflicts/x", None),
                ("POST", container.path + "/operations/partitionkeydelete", None)]:
            response = client.request(verb, path, body, key, key=reader).expect(403)
            assert response.substatus not in (3, 1008)
        client.post(container.docs, {"id": "x", "pk": "a"}, key | wire.UPSERT, key=reader).expect(403)
        assert container.read("x").expect(200)["lsn"] == "2"
        assert not client.breaches


def test_read_only_key_may_query(four_keys):
    with four_keys.client() as client:
        container = client.create_database().create_container()
        query = {"query": "SELECT * FROM root r WHERE r.resource=@link",
                 "parameters": [{"name": "@link", "value": container.body["_self"]}]}
        assert len(client.post("/offers", query, wire.QUERY, key=OTHER_KEYS[2]).expect(200).json["Offers"]) == 1
        client.post(container.docs, {"query": "SELECT * from c"}, wire.QUERY, key=OTHER_KEYS[2]).expect(200)


def test_read_only_key_that_writes_to_nothing_is_403_not_404(four_keys):
    with four_keys.client() as client:
        client.delete("/dbs/no-such-database", key=OTHER_KEYS[2]).expect(403)
        client.post("/dbs/no-such-database/colls", {"id": "c"}, key=OTHER_KEYS[2]).expect(403)
