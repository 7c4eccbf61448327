"""`_rid`s, self links, rid-based addressing and system properties."""
import email.utils
import json
import re

import pytest

from harness import wire
from harness.wire import rid_bytes

RID_TEXT = re.compile(r"^[A-Za-z0-9+-]+={0,2}$")


def child_counter(rid):
    """Counter and type nibble of a collection's child."""
    value = int.from_bytes(rid_bytes(rid)[8:], "little")
    return value & ((1 << 60) - 1), value >> 60


# ── Layout ──────────────────────────────────────────────────────────────────────────────────────────

def test_database_rid_is_4_bytes(db):
    assert RID_TEXT.match(db.rid) and len(db.rid) == 8 and db.rid.endswith("==")
    assert len(rid_bytes(db.rid)) == 4 and any(rid_bytes(db.rid))


def test_container_rid_is_the_databases_and_4_bytes_with_the_high_bit_set(container):
    data = rid_bytes(container.rid)
    assert RID_TEXT.match(container.rid) and len(data) == 8
    assert data[:4] == rid_bytes(container.database.rid)
    assert data[4] & 0x80 and any(data[5:])


def test_document_rid_is_the_containers_and_a_counter_of_its_range(container):
    for sequence in (1, 2, 3):
        rid = container.create({"id": str(sequence), "pk": "a"}).expect(201).json["_rid"]
        assert RID_TEXT.match(rid) and len(rid_bytes(rid)) == 16
        assert rid_bytes(rid)[:8] == rid_bytes(container.rid)
        assert child_counter(rid) == (sequence, 0)


def test_document_counter_carries_the_range_in_bits_40_to_59(db):
    container = db.create_container(throughput=30000)
    for n in range(20):
        response = container.create({"id": "x", "pk": str(n)}).expect(201)
        counter, kind = child_counter(response.json["_rid"])
        assert (counter >> 40, kind) == (int(response[wire.RANGE_ID]), 0)
        assert counter & ((1 << 40) - 1) >= 1


def test_range_rid_has_nibble_5_and_its_id_plus_2(db):
    container = db.create_container(throughput=15000)
    for each in container.ranges():
        assert rid_bytes(each["_rid"])[:8] == rid_bytes(container.rid)
        assert child_counter(each["_rid"]) == (int(each["id"]) + 2, 5)


def test_offer_rid_is_3_bytes_and_also_its_id(client, container):
    offer = client.offers_of(container)[0]
    assert len(offer["_rid"]) == 4 and RID_TEXT.match(offer["_rid"]) and "=" not in offer["_rid"]
    assert len(rid_bytes(offer["_rid"])) == 3 and any(rid_bytes(offer["_rid"]))
    assert offer["id"] == offer["_rid"]


def test_container_part_of_the_rid_is_unique_in_the_account(client):
    databases = [client.create_database() for _ in range(3)]
    rids = [rid_bytes(database.create_container().rid) for database in databases for _ in range(3)]
    assert len({rid[4:] for rid in rids}) == len(rids)


def test_document_rids_increase_and_are_never_used_again(container):
    counters = []
    for _ in range(3):
        for name in ("x", "y"):
            counters.append(child_counter(container.create({"id": name, "pk": "a"}).expect(201).json["_rid"]))
        container.delete("x").expect(204)
        container.delete("y").expect(204)
    assert counters == sorted(set(counters))


def test_recreated_database_container_and_document_have_new_rids(client):
    name, seen = wire.unique(), []
    for _ in range(2):
        database = client.create_database(name)
        container = database.create_container({"id": "c"})
        seen += [database.rid, container.rid, rid_bytes(container.rid)[4:]]
        client.delete(container.path).expect(204)
        seen.append(database.create_container({"id": "c"}).rid)
        client.delete(database.path).expect(204)
    assert len(set(seen)) == len(seen)


def test_replace_and_upsert_keep_the_rid(container):
    rid = container.create({"id": "x", "pk": "a"}).expect(201).json["_rid"]
    assert container.replace("x", {"id": "x", "pk": "a", "n": 1}).expect(200).json["_rid"] == rid
    assert container.upsert({"id": "x", "pk": "a", "n": 2}).expect(200).json["_rid"] == rid


# ── Self links and rid-based addressing (traps 12, 13) ──────────────────────────────────────────────

def test_self_links_are_rid_paths_with_a_trailing_slash(client, container):
    document = container.create({"id": "x", "pk": "a"}).expect(201).json
    offer, each = client.offers_of(container)[0], container.ranges()[0]
    database_self = f"dbs/{container.database.rid}/"
    container_self = f"{database_self}colls/{container.rid}/"
    assert container.database.body["_self"] == database_self
    assert container.body["_self"] == container_self
    assert document["_self"] == f"{container_self}docs/{document['_rid']}/"
    assert each["_self"] == f"{container_self}pkranges/{each['_rid']}/"
    assert offer["_self"] == f"offers/{offer['_rid']}/"
    assert offer["resource"] == container_self and offer["offerResourceId"] == container.rid


def test_every_resource_is_read_by_its_self_link_and_by_name_alike(client, container):
    document = container.create({"id": "x", "pk": "a"}).expect(201).json
    offer, key = client.offers_of(container)[0], {wire.KEY: '["a"]'}
    for by_name, by_rid in [
            (container.database.path, container.database.self_path), (container.path, container.self_path),
            (container.doc("x"), "/" + document["_self"]), (f"/offers/{offer['id']}", "/" + offer["_self"]),
            (container.database.path + "/colls", container.database.self_path + "colls/"),
            (container.docs, container.self_path + "docs/"), (container.path + "/pkranges", container.self_path + "pkranges/")]:
        expected = client.get(by_name, key).expect(200).body
        for path in (by_rid, by_rid[:-1]):  # NET leaves the trailing slash out
            assert client.get(path, key).expect(200).body == expected


def test_writes_by_rid(client, db):
    container = wire.Container(client, client.post(db.self_path + "colls/", {
        "id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}}).expect(201), db)
    key = {wire.KEY: '["a"]'}
    document = client.post(container.self_path + "docs/", {"id": "x", "pk": "a"}, key).expect(201).json
    path = "/" + document["_self"]
    client.post(container.self_path + "docs/", {"id": "x", "pk": "a"}, key | wire.UPSERT).expect(200)
    client.put(path, {"id": "x", "pk": "a", "n": 1}, key).expect(200)
    assert container.read("x").expect(200).json["n"] == 1
    client.post(container.self_path + "operations/partitionkeydelete", None, {wire.KEY: '["b"]'}).expect(200)
    client.delete(path, key).expect(204)
    client.put(container.self_path, container.body | {"defaultTtl": 60}).expect(200)
    client.delete(container.self_path).expect(204)
    client.delete(db.self_path).expect(204)
    client.get(db.path).expect(404)


def test_rid_based_item_needs_its_own_key(client, container):
    path = "/" + container.create({"id": "x", "pk": "a"}).expect(201).json["_self"]
    client.get(path, {wire.KEY: '["b"]'}).expect(404)
    client.get(path, {wire.KEY: '["a"]'}).expect(200)


def test_item_id_with_a_slash_is_reached_by_rid_only(client, container):
    document = container.create({"id": "a/b", "pk": "a"}).expect(201).json
    key = {wire.KEY: '["a"]'}
    assert client.get("/" + document["_self"], key).expect(200).json["id"] == "a/b"
    client.get(container.docs + "/a/b", key).expect(404)
    client.delete("/" + document["_self"], key).expect(204)


@pytest.mark.parametrize("spoil", [
    lambda rid: wire.rid_text(rid_bytes(rid)[:-1] + b"\x50"), lambda rid: wire.rid_text(rid_bytes(rid)[:-1] + b"\xf0"),
    lambda rid: wire.rid_text(rid_bytes(rid)[:8] + b"\x63" + bytes(7)), lambda rid: rid.swapcase(), lambda rid: rid[:-2],
    lambda rid: "AAAA", lambda rid: wire.rid_text(rid_bytes(rid) + b"\x01\x02\x03\x04")],
    ids=["range's nibble", "no type's nibble", "never given out", "other case", "no padding", "too short", "attachment's length"])
def test_rid_that_names_no_document_is_404_or_400(client, container, spoil):
    rid = container.create({"id": "x", "pk": "a"}).expect(201).json["_rid"]
    client.get(f"{container.self_path}docs/{spoil(rid)}/", {wire.KEY: '["a"]'}).expect((400, 404))


def test_document_is_not_found_under_another_containers_rid(client, container):
    document = container.create({"id": "x", "pk": "a"}).expect(201).json
    other = container.database.create_container()
    client.get(f"{other.self_path}docs/{document['_rid']}/", {wire.KEY: '["a"]'}).expect((400, 404))


# ── System properties ─────────────────────────────────────────────────────────────────────────

SYSTEM_TEXT = (rb',"_rid":"[^"]+","_self":"[^"]+/","_etag":"\\"[^"\\]+\\"","_attachments":"attachments/","_ts":\d+\}$')


@pytest.mark.parametrize("text", [
    '{"id":"x","pk":"a"}', '{"pk":"a","z":1,"id":"x","a":{"_rid":"mine","_ts":null},"m":[{"_etag":1}]}',
    '{"pk":"a","n":1.0,"e":1E+2,"u":"\\u00e9é\\/","id":"x"}'])
def test_user_members_keep_their_order_and_text_before_the_system_properties(container, text):
    created = container.create(text, ["a"]).expect(201)
    assert created.body.startswith(text[:-1].encode())
    assert re.match(SYSTEM_TEXT, created.body[len(text.encode()) - 1:]), created.body


def test_create_read_replace_and_feed_return_the_same_bytes(container):
    text = '{ "b" : [1, 2.50, {"x":null}],\n "id":"x",\t"pk":"a", "a":true }'
    created = container.create(text, ["a"]).expect(201).body
    assert container.read("x").expect(200).body == created
    assert created in container.feed().expect(200).body
    replaced = container.replace("x", text).expect(200).body
    upserted = container.upsert(text, ["a"]).expect(200).body
    assert list(json.loads(created)) == list(json.loads(replaced)) == list(json.loads(upserted))
    assert container.read("x").expect(200).body == upserted
    assert upserted in container.feed().expect(200).body


@pytest.mark.parametrize("text", [
    '{"_rid":"r","id":"x","_self":"s","_etag":"e","_attachments":"t","_ts":1,"_lsn":5,"pk":"a"}',
    '{"id":"x","pk":"a","_rid":null,"_self":{"a":[1]},"_etag":[],"_attachments":true,"_ts":"now","_lsn":null}',
    '{"id":"x","_ts":{},"pk":"a"}'])
@pytest.mark.parametrize("write", ["create", "upsert"])
def test_system_properties_of_the_client_are_replaced_at_the_end_of_a_new_document(container, text, write):
    body = getattr(container, write)(text, ["a"]).expect(201).body
    assert body.startswith(b'{"id":"x","pk":"a","_rid":"'), body
    assert re.match(SYSTEM_TEXT, body[len('{"id":"x","pk":"a"'):])
    assert container.read("x").expect(200).json.keys() == {"id", "pk", "_rid", "_self", "_etag", "_attachments", "_ts"}


SYSTEM_NAMES = ["_rid", "_self", "_etag", "_attachments", "_ts"]


@pytest.mark.parametrize("text, names", [
    ('{"_rid":"r","id":"x","_self":"s","_etag":"e","_attachments":"t","_ts":1,"_lsn":5,"pk":"a"}',
     ["_rid", "id", "_self", "_etag", "_attachments", "_ts", "pk"]),
    ('{"_ts":{"a":[1]},"_attachments":null,"pk":"a","_etag":[],"n":1.50,"_self":"now","_rid":true,"id":"x"}',
     ["_ts", "_attachments", "pk", "_etag", "n", "_self", "_rid", "id"]),
    ('{"id":"x","_ts":{},"pk":"a","_self":"s","z":0}',
     ["id", "_ts", "pk", "_self", "z", "_rid", "_etag", "_attachments"]),
    ('{"id":"x","pk":"a"}', ["id", "pk"] + SYSTEM_NAMES)])
def test_system_properties_of_a_replaced_document_stay_where_the_client_sent_them(container, text, names):
    created = container.create({"id": "x", "pk": "a"}).expect(201).json
    operations = '[{"operationType":"Replace","id":"x","resourceBody":%s},{"operationType":"Upsert","resourceBody":%s}]'
    batch = container.client.post(container.docs, operations % (text, text), wire.key_header(["a"]) | {
        "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}).expect(200)
    documents = [result["resourceBody"] for result in batch.json]
    for write in (lambda: container.upsert(text, ["a"]), lambda: container.replace("x", text, ["a"])):
        response = write().expect(200)
        documents.append(response.json)
        assert response.json["_etag"] == response["etag"] and isinstance(response.json["_ts"], int)
        assert container.read("x").expect(200).body == response.body
        assert response.body in container.feed().expect(200).body
    for document in documents:
        assert list(document) == names
        assert [document[name] for name in ("_rid", "_self", "_attachments")] == \
               [created[name] for name in ("_rid", "_self", "_attachments")]
    # A read, changed and sent back, is the document it was.
    read = container.read("x").expect(200)
    again = container.replace("x", read.body.decode(), ["a"]).expect(200)
    assert list(again.json) == names and len(again.body) == len(read.body)


def test_system_properties_of_a_patched_document_follow_what_was_added(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    container.replace("x", '{"_ts":1,"id":"x","pk":"a"}', ["a"]).expect(200)
    patched = container.client.request("PATCH", container.doc("x"), [{"op": "add", "path": "/n", "value": 1}],
                                       wire.key_header(["a"])).expect(200).json
    assert list(patched) == ["id", "pk", "n"] + SYSTEM_NAMES


def test_properties_of_the_server_that_are_not_system_properties_of_items_are_kept(container):
    document = {"id": "x", "pk": "a", "_docs": 1, "_colls": 2, "_token": 3, "_mine": 4}
    body = container.create(document).expect(201).json
    assert {name: body[name] for name in document} == document


def test_etag_has_its_quotes_in_header_and_body_and_changes_with_every_write(container):
    created = container.create({"id": "x", "pk": "a"}).expect(201)
    replaced = container.replace("x", {"id": "x", "pk": "a"}).expect(200)
    upserted = container.upsert({"id": "x", "pk": "a"}).expect(200)
    etags = [response["etag"] for response in (created, replaced, upserted)]
    assert [response.json["_etag"] for response in (created, replaced, upserted)] == etags
    assert all(re.match(r'^"[^"]+"$', etag) for etag in etags) and len(set(etags)) == 3
    assert container.read("x").expect(200)["etag"] == etags[-1]


def test_ts_is_the_second_of_the_last_write_by_the_servers_clock(container):
    response = container.create({"id": "x", "pk": "a"}).expect(201)
    now = email.utils.parsedate_to_datetime(response["date"]).timestamp()
    assert abs(response.json["_ts"] - now) <= 2
