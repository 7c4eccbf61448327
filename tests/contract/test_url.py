"""URL normalisation and name- or rid-based addressing."""
import uuid

import pytest

from harness import wire
from harness.wire import quote

SPELLINGS = ["{}", "{}/", "/{}", "/{}/"]  # each path begins with one slash itself


def spellings(path):
    """The ways in which clients write one path, and a slash repeated in the middle."""
    return [each.format(path) for each in SPELLINGS] + [path.replace("/", "//")]


@pytest.mark.parametrize("resource", ["dbs", "db", "colls", "container", "docs", "doc", "pkranges", "offers"])
def test_repeated_and_trailing_slashes_mean_the_same_path(client, container, resource):
    container.create({"id": "x", "pk": "a"}).expect(201)
    path = {"dbs": "/dbs", "db": container.database.path, "colls": container.database.path + "/colls",
            "container": container.path, "docs": container.docs, "doc": container.doc("x"),
            "pkranges": container.path + "/pkranges", "offers": "/offers"}[resource]
    key = {wire.KEY: '["a"]'}
    for spelling in spellings(path):
        client.get(spelling, key).expect(200)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_writes_accept_every_spelling_too(client, container, spelling):
    body = {"id": "x", "pk": "a"}
    client.post(spelling.format(container.docs), body, {wire.KEY: '["a"]'}).expect(201)
    client.put(spelling.format(container.doc("x")), body, {wire.KEY: '["a"]'}).expect(200)
    client.delete(spelling.format(container.doc("x")), {wire.KEY: '["a"]'}).expect(204)


@pytest.mark.parametrize("name, escaped", [
    ("Abc", "%41%62c"), ("a+b", "a+b"), ("a+b", "a%2Bb"), ("a b", "a%20b"), ("Ä b", "%C3%84%20b"), ("Ä", "%c3%84"),
    ("日本語", quote("日本語")), ("😀", quote("😀")), ("a%20b", "a%2520b"), ("a&b=c", "a&b=c"), ("a;b,c", "a;b,c"),
    ("a:b@c", "a:b@c"), ("a'(b)*!", "a'(b)*!"), ("a%3Fb", "a%253Fb"), ("~._-", "~._-")])
def test_segments_are_percent_decoded_once_and_plus_is_a_plus(container, client, name, escaped):
    container.create({"id": name, "pk": "a"}).expect(201)
    assert client.get(f"{container.docs}/{escaped}", {wire.KEY: '["a"]'}).expect(200).json["id"] == name


@pytest.mark.parametrize("escaped", ["a?b", "a%3Fb", "a%3fb"])
def test_item_id_with_a_question_mark_is_found_escaped_or_not(container, client, escaped):
    container.create({"id": "a?b", "pk": "a"}).expect(201)
    assert client.get(f"{container.docs}/{escaped}", {wire.KEY: '["a"]'}).expect(200).json["id"] == "a?b"


def test_query_string_of_an_item_is_part_of_its_id(container, client):
    container.create({"id": "x", "pk": "a"}).expect(201)
    client.get(container.doc("x") + "?y=1", {wire.KEY: '["a"]'}).expect(404)
    container.create({"id": "x?y=1&z=%20", "pk": "a"}).expect(201)
    client.get(container.doc("x") + "?y=1&z=%20", {wire.KEY: '["a"]'}).expect(200)


def test_query_string_elsewhere_is_split_off(client, container):
    for path in ("/", "/dbs", container.database.path, container.path, container.docs):
        client.get(path + "?a=b").expect(200)


@pytest.mark.parametrize("target", ["/DBS", "/Dbs", "/nosuchroute", "/dbs/{db}/Colls", "/dbs/{db}/nosuchroute",
                                    "/dbs/{db}/colls/{c}/nosuchroute", "/dbs/{db}/colls/{c}/nosuchroute/x",
                                    "/dbs/{db}/colls/{c}/docs/a/b", "/dbs/{db}/colls/{c}/docs/a/nosuchroute/b",
                                    "/dbs/{db}/colls/{c}/operations/nosuchoperation"])
def test_unknown_route_is_404_and_401_without_a_signature(client, container, target):
    target = target.format(db=container.database.id, c=container.id)
    assert client.get(target).expect(404).json["code"] == "NotFound"
    client.get(target, signed=False).expect(401)


def test_addresses_of_direct_mode_are_404(client, container):
    client.get(f"//addresses/?$resolveFor={container.path[1:]}/docs&$filter=protocol eq rntbd&$partitionKeyRangeIds=0"
               .replace(" ", "%20")).expect(404)


@pytest.mark.parametrize("segment", ["%zz", "%4", "%", "%ff", "%c3%28"])
def test_broken_escape_or_utf8_in_a_path_is_refused(client, db, segment):
    client.get(f"{db.path}/colls/{segment}", what=("colls", f"dbs/{db.id}/colls/{segment}")).expect((400, 404))


# ── Name or rid ─────────────────────────────────────────────────────────────────────────────────────

def test_database_whose_name_looks_like_a_rid_is_found_by_name(client):
    name = uuid.uuid4().hex[:5] + "Q=="  # 8 characters that decode to 4 bytes
    assert wire.is_rid_link(["dbs", name])
    database = client.create_database(name)
    for link in (f"dbs/{name}", name.lower()):  # clients sign it as a rid
        assert client.get(f"/dbs/{quote(name)}", what=("dbs", link)).expect(200).json["id"] == name
    container = database.create_container({"id": "c"}, what=("colls", name.lower()))
    client.get(container.path, what=("colls", f"dbs/{name}/colls/c")).expect(200)


def test_names_and_rids_cannot_be_mixed(client, container):
    database = container.database
    client.get(f"/dbs/{database.rid}/colls/{container.id}").expect(404)
    client.get(f"/dbs/{database.id}/colls/{container.rid}").expect(404)


def test_names_are_case_sensitive(client, container):
    container.create({"id": "Abc", "pk": "a"}).expect(201)
    container.read("abc").expect(404)
    client.get(container.database.path.upper().replace("/DBS", "/dbs")).expect(404)


def test_names_are_not_normalised(container):
    container.create({"id": "\u00e9", "pk": "a"}).expect(201)
    container.read("e\u0301").expect(404)
    container.create({"id": "e\u0301", "pk": "a"}).expect(201)
