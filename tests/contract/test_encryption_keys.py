"""Client encryption keys, and the policies of containers that name them. The server never decrypts: it keeps them and hands them out."""
import base64

import pytest

import queries
from harness import wire
from harness.wire import CONTINUATION, MAX_ITEMS

ALGORITHM = "AEAD_AES_256_CBC_HMAC_SHA256"
WRAPPED = base64.b64encode(bytes(range(256))).decode()
METADATA = {"type": "AZURE_KEY_VAULT", "name": "vault key", "value": "https://vault/keys/k/1", "algorithm": "RSA-OAEP"}
SYSTEM = ("_rid", "_self", "_etag", "_ts")


def key_body(name="k", **members):
    return {"id": name, "encryptionAlgorithm": ALGORITHM, "wrappedDataEncryptionKey": WRAPPED, "keyWrapMetadata": METADATA} | members


def keys_of(database):
    return f"{database.path}/clientencryptionkeys"


def without_system(body):
    return {name: value for name, value in body.items() if name not in SYSTEM}


def test_life_of_a_key(client, db):
    created = client.post(keys_of(db), key_body()).expect(201)
    assert without_system(created.json) == key_body() and list(created.json)[0] == "id"
    assert created.json["_etag"] == created["etag"] and isinstance(created.json["_ts"], int) and created.charge > 0
    read = client.get(f"{keys_of(db)}/k").expect(200)
    assert read.json == created.json and read["etag"] == created["etag"]
    client.get(f"{keys_of(db)}/k", {"If-None-Match": created["etag"]}).expect(304)

    rewrapped = key_body(wrappedDataEncryptionKey=base64.b64encode(b"anew").decode(), keyWrapMetadata=METADATA | {"value": "https://vault/keys/k/2"})
    replaced = client.put(f"{keys_of(db)}/k", created.json | rewrapped, {"If-Match": created["etag"]}).expect(200)
    assert without_system(replaced.json) == rewrapped and replaced["etag"] != created["etag"]
    assert [replaced.json[name] for name in ("_rid", "_self")] == [created.json[name] for name in ("_rid", "_self")]
    client.put(f"{keys_of(db)}/k", key_body(), {"If-Match": created["etag"]}).expect(412)
    assert client.get(f"{keys_of(db)}/k").expect(200).json == replaced.json
    assert client.put(f"{keys_of(db)}/k", key_body()).expect(200).json["wrappedDataEncryptionKey"] == WRAPPED


def test_members_that_nobody_knows_are_kept(client, db):
    body = key_body(more={"of": ["it"]})
    assert without_system(client.post(keys_of(db), body).expect(201).json) == body


def test_rid_has_the_layout_that_clients_parse_and_addresses_the_key(client, db):
    created = [client.post(keys_of(db), key_body(f"k{n}")).expect(201).json for n in range(300)]
    for key in (created[0], created[-1]):
        rid = wire.rid_bytes(key["_rid"])
        assert len(rid) == 16 and rid[:4] == wire.rid_bytes(db.rid) and rid[4:8] == bytes(4) and any(rid[8:12])
        assert rid[12:] == b"\x02\x00\x00\x00"
        assert key["_self"] == f"dbs/{db.rid}/clientencryptionkeys/{key['_rid']}/"
        assert client.get("/" + key["_self"]).expect(200).json == key
        assert client.put("/" + key["_self"], key).expect(200).json["id"] == key["id"]
    assert not set("+-") & set("".join(key["_rid"] for key in created)) and len({key["_rid"] for key in created}) == 300
    client.get(f"/dbs/{db.rid}/clientencryptionkeys/{db.rid}").expect(404)
    other = client.create_database()
    client.get(f"/dbs/{other.rid}/clientencryptionkeys/{created[0]['_rid']}").expect(404)


def test_list_pages_in_the_order_of_creation(client, db):
    names = [f"key {n}" for n in range(7)]
    for name in names:
        client.post(keys_of(db), key_body(name)).expect(201)
    listed = client.get(keys_of(db)).expect(200).json
    assert [key["id"] for key in listed["ClientEncryptionKeys"]] == names and listed["_rid"] == db.rid and listed["_count"] == 7
    pages = list(client.pages(keys_of(db), {MAX_ITEMS: "3"}))
    assert [[key["id"] for key in page.json["ClientEncryptionKeys"]] for page in pages] == [names[:3], names[3:6], names[6:]]
    assert client.get(keys_of(client.create_database())).expect(200).json["ClientEncryptionKeys"] == []


def test_queries(client, db):
    for name in "cab":
        client.post(keys_of(db), key_body(name)).expect(201)

    def ask(text, **headers):
        return client.post(keys_of(db), queries.body_of(text), queries.IS_QUERY | headers).expect(200)

    assert [key["id"] for key in ask("SELECT * FROM k").json["ClientEncryptionKeys"]] == ["c", "a", "b"]
    assert ask("SELECT VALUE k.id FROM k WHERE k.id > 'a' ORDER BY k.id").json["ClientEncryptionKeys"] == ["b", "c"]
    first = client.post(keys_of(db), queries.body_of("SELECT VALUE k.id FROM k"), queries.IS_QUERY | {MAX_ITEMS: "2"}).expect(200)
    rest = client.post(keys_of(db), queries.body_of("SELECT VALUE k.id FROM k"), queries.IS_QUERY | {CONTINUATION: first[CONTINUATION]})
    assert first.json["ClientEncryptionKeys"] + rest.expect(200).json["ClientEncryptionKeys"] == ["c", "a", "b"]


@pytest.mark.parametrize("body, word", [
    ({}, "id"), (key_body(name=""), "id"), (key_body(name="a/b"), "id"), (key_body(encryptionAlgorithm=None), "encryptionAlgorithm"),
    (key_body(encryptionAlgorithm=1), "encryptionAlgorithm"), (key_body(wrappedDataEncryptionKey="?"), "wrappedDataEncryptionKey"),
    (key_body(wrappedDataEncryptionKey=""), "wrappedDataEncryptionKey"), (key_body(keyWrapMetadata=None), "keyWrapMetadata"),
    (key_body(keyWrapMetadata=[]), "keyWrapMetadata"), (key_body(keyWrapMetadata=METADATA | {"name": 1}), "keyWrapMetadata.name"),
    (key_body(more="x" * 16384), "16384"), ("[]", "object"), ("{", "JSON")], ids=str)
def test_bad_key_is_400_and_says_what_to_mend(client, db, body, word):
    client.post(keys_of(db), body).expect(400, text=word)
    client.post(keys_of(db), key_body()).expect(201)
    client.put(f"{keys_of(db)}/k", body).expect(400)
    assert len(client.get(keys_of(db)).expect(200).json["ClientEncryptionKeys"]) == 1


def test_what_is_not_there_is_taken_or_cannot_be_done(client, db):
    client.get(f"{keys_of(db)}/k").expect(404, 0)
    client.put(f"{keys_of(db)}/k", key_body()).expect(404, 0)
    client.get("/dbs/none/clientencryptionkeys").expect(404, 1003)
    client.get("/dbs/none/clientencryptionkeys/k").expect(404, 1003)
    client.post("/dbs/none/clientencryptionkeys", key_body()).expect(404, 1003)
    client.post(keys_of(db), key_body()).expect(201)
    client.post(keys_of(db), key_body()).expect(409)
    client.put(f"{keys_of(db)}/k", key_body("other")).expect(400, text="cannot change")
    for verb, path in (("DELETE", f"{keys_of(db)}/k"), ("PATCH", f"{keys_of(db)}/k"), ("POST", f"{keys_of(db)}/k"),
                       ("PUT", keys_of(db)), ("DELETE", keys_of(db))):
        client.request(verb, path, key_body() if verb != "DELETE" else None).expect(405)
    assert client.get(f"{keys_of(db)}/k").expect(200)


def test_keys_are_gone_with_their_database(client):
    first = client.create_database("once")
    gone = client.post(keys_of(first), key_body()).expect(201).json
    client.delete(first.path).expect(204)
    client.get(keys_of(first)).expect(404, 1003)
    client.get("/" + gone["_self"]).expect(404)
    second = client.create_database("once")
    assert client.get(keys_of(second)).expect(200).json["ClientEncryptionKeys"] == []
    assert client.post(keys_of(second), key_body()).expect(201).json["_rid"] != gone["_rid"]
    client.delete(second.path).expect(204)


def test_keys_survive_a_restart(server, tmp_path):
    one = server("--data-dir", tmp_path)
    with one.client() as client:
        for name in ("d", "gone"):
            client.post("/dbs", {"id": name}).expect(201)
        kept = client.post("/dbs/d/clientencryptionkeys", key_body()).expect(201).json
        client.post("/dbs/gone/clientencryptionkeys", key_body()).expect(201)
        client.delete("/dbs/gone").expect(204)
    one.stop()
    with server("--data-dir", tmp_path).client() as client:
        assert client.get("/dbs/d/clientencryptionkeys").expect(200).json["ClientEncryptionKeys"] == [kept]
        assert client.get("/" + kept["_self"]).expect(200).json == kept
        assert client.post("/dbs/d/clientencryptionkeys", key_body("next")).expect(201).json["_rid"] > kept["_rid"]


# ── The policy of a container ───────────────────────────────────────────────────────────────────────

def included(path, kind="Deterministic", **members):
    return {"path": path, "clientEncryptionKeyId": "k", "encryptionType": kind, "encryptionAlgorithm": ALGORITHM} | members


def policy(*paths, version=1):
    return {"clientEncryptionPolicy": {"includedPaths": list(paths), "policyFormatVersion": version}}


@pytest.mark.parametrize("body", [
    policy(included("/ssn"), included("/name", "Randomized")), policy(), policy(included('/"a b"')),
    policy(included("/id"), included("/pk"), included("/n", "Randomized"), version=2),
    {"clientEncryptionPolicy": {"includedPaths": [included("/ssn")]}}], ids=str)
def test_policy_is_stored_and_returned_also_when_it_names_an_unknown_key(client, db, body):
    container = db.create_container(body)
    assert client.get(container.path).expect(200).json["clientEncryptionPolicy"] == body["clientEncryptionPolicy"]


@pytest.mark.parametrize("body, word", [
    (policy(included("/a/b")), "top level"), (policy(included("/")), "top level"), (policy(included("a")), "top level"),
    (policy(included("/a/*")), "top level"), (policy({"path": 1}), "top level"), (policy(included("/id")), "policyFormatVersion"),
    (policy(included("/pk")), "policyFormatVersion"), (policy(included("/id", "Randomized"), version=2), "Deterministic"),
    (policy(included("/pk", "Randomized"), version=2), "Deterministic"), (policy(included("/a"), included("/a")), "twice"),
    (policy(included("/a", "Sometimes")), "encryptionType"), (policy(included("/a", encryptionType=None)), "encryptionType"),
    (policy(included("/a", clientEncryptionKeyId="")), "clientEncryptionKeyId"), (policy(included("/a", encryptionAlgorithm="ROT13")), ALGORITHM),
    (policy(version=3), "policyFormatVersion"), (policy(version="1"), "policyFormatVersion"),
    ({"clientEncryptionPolicy": {}}, "includedPaths"), ({"clientEncryptionPolicy": []}, "includedPaths"),
    ({"clientEncryptionPolicy": {"includedPaths": {}}}, "includedPaths")], ids=str)
def test_bad_policy_is_400_and_names_the_member(db, body, word):
    db.post_container(body).expect(400, text=word)


def test_policy_may_not_cover_a_part_of_a_nested_or_hierarchical_key_in_format_1(db):
    for key in ({"paths": ["/a/b"], "kind": "Hash", "version": 2}, {"paths": ["/t", "/a"], "kind": "MultiHash", "version": 2}):
        db.post_container({"partitionKey": key} | policy(included("/a"))).expect(400, text="policyFormatVersion")
        db.post_container({"partitionKey": key} | policy(included("/b"))).expect(201)


def test_policy_cannot_change(client, db):
    container = db.create_container(policy(included("/ssn")))
    body = client.get(container.path).expect(200).json
    assert client.put(container.path, body | {"defaultTtl": 60}).expect(200).json["clientEncryptionPolicy"] == body["clientEncryptionPolicy"]
    del body["clientEncryptionPolicy"]
    assert client.put(container.path, body).expect(200).json["clientEncryptionPolicy"]["includedPaths"] == [included("/ssn")]
    client.put(container.path, body | policy(included("/other"))).expect(400, text="clientEncryptionPolicy")
    plain = db.create_container()
    client.put(plain.path, plain.body | policy(included("/ssn"))).expect(400, text="clientEncryptionPolicy")


def test_intended_container_of_encrypting_clients_is_checked(client, db):
    container = db.create_container(policy(included("/ssn")))
    headers = {"x-ms-cosmos-is-client-encrypted": "true", "x-ms-cosmos-database-rid": db.rid, "x-ms-cosmos-allow-cachedreads": "true"}
    container.create({"id": "x", "pk": "a"}, headers=headers | {"x-ms-cosmos-intended-collection-rid": container.rid}).expect(201)
    container.read("x", headers=headers | {"x-ms-cosmos-intended-collection-rid": db.rid}).expect(400, 1024)
