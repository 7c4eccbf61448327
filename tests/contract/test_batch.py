"""Transactional batch and bulk: POST …/docs with x-ms-cosmos-is-batch-request, in JSON and in the binary form."""
import json
import threading

import pytest

import hybrid_row
from harness import wire
from harness.waiting import wait_until
from harness.wire import KEY, RANGE_ID, SESSION, key_header

BATCH = {"x-ms-cosmos-is-batch-request": "True"}
ATOMIC = BATCH | {"x-ms-cosmos-batch-atomic": "True"}
BULK = BATCH | {"x-ms-cosmos-batch-atomic": "False", "x-ms-cosmos-batch-continue-on-error": "True"}
STOPPING_BULK = BATCH | {"x-ms-cosmos-batch-atomic": "False"}
MINIMAL = {"Prefer": "return=minimal"}
TWO_RANGES = 11000
LOW_KEY, HIGH_KEY = "aa", "a"  # in the two ranges of version 2


def send(container, operations, headers, **options):
    """Every answer is held against the rules for all batch answers."""
    response = container.client.post(container.docs, operations, headers, **options)
    if response.status in (200, 207):
        check(response, len(operations) if isinstance(operations, list) else None)
    return response


def check(response, count):
    results = response.json if response.body[:1] == b"[" else hybrid_row.results(response.body)
    assert count is None or len(results) == count
    assert abs(sum(result["requestCharge"] for result in results) - response.charge) < 0.005
    statuses = [result["statusCode"] for result in results]
    assert response.status == (200 if all(200 <= status < 300 for status in statuses) else 207)
    for result in results:
        status = result["statusCode"]
        assert (status == 424) == (result["requestCharge"] == 0)
        assert ("eTag" in result) == (status in (200, 201, 304))
        if status in (204, 304, 424):
            assert "resourceBody" not in result
        assert result.get("subStatusCode") != 0 or response.body[:1] != b"["


def batch(container, operations, key=("a",), headers=None, **options):
    return send(container, operations, ATOMIC | key_header(key) | (headers or {}), **options)


def bulk(container, operations, headers=None, range_id="0", mode=None, **options):
    target = {} if range_id is None else {RANGE_ID: range_id}
    return send(container, operations, (mode or BULK) | target | (headers or {}), **options)


def statuses(response):
    return [(result["statusCode"], result.get("subStatusCode", 0)) if result.get("subStatusCode") else result["statusCode"]
            for result in response.json]


def operation(kind, name=None, body=None, **members):
    return {"operationType": kind} | ({"id": name} if name is not None else {}) | ({"resourceBody": body} if body is not None else {}) | members


def create(name, key="a", **members):
    return operation("Create", body={"id": name, "pk": key, **members})


def upsert(name, key="a", **members):
    return operation("Upsert", body={"id": name, "pk": key, **members})


def replace(name, key="a", **members):
    return operation("Replace", name, {"id": name, "pk": key, **members})


def patch(name, *operations, **members):
    return operation("Patch", name, {"operations": list(operations)}, **members)


def incr(path="/n", value=1):
    return {"op": "incr", "path": path, "value": value}


def read(name, **members):
    return operation("Read", name, **members)


def delete(name, **members):
    return operation("Delete", name, **members)


def keyed(operation, key="a"):
    return operation | {"partitionKey": json.dumps([key])}


def names(container):
    return sorted(document["id"] for document in container.all_documents())


# ── Atomic ──────────────────────────────────────────────────────────────────────────────────────────

def test_every_kind_succeeds_with_its_status_and_shape(container):
    for name in ("r", "p", "d", "u"):
        container.create({"id": name, "pk": "a", "n": 1}).expect(201)
    response = batch(container, [create("c", n=1), upsert("v"), upsert("u", n=2), read("r"), replace("r", n=3), patch("p", incr()),
                                 delete("d")]).expect(200)
    assert statuses(response) == [201, 201, 200, 200, 200, 200, 204]
    results = response.json
    for result in results[:6]:
        assert result["eTag"] == result["resourceBody"]["_etag"]
    assert results[3]["resourceBody"]["n"] == 1 and results[4]["resourceBody"]["n"] == 3 and results[5]["resourceBody"]["n"] == 2
    assert names(container) == ["c", "p", "r", "u", "v"]
    for name, at in (("c", 0), ("v", 1), ("u", 2), ("r", 4), ("p", 5)):
        assert container.read(name).expect(200).json == results[at]["resourceBody"]


def test_headers_of_an_answer(container):
    head = int(container.create({"id": "x", "pk": "a"}).expect(201)["lsn"])
    response = batch(container, [create("c"), create("d")]).expect(200)
    assert int(response["lsn"]) == head + 1
    assert wire.unversioned(response[SESSION]) == f"0:-1#{head + 1}"
    assert response["x-ms-content-path"] == container.rid and response["x-ms-alt-content-path"] == container.path.lstrip("/")
    assert response["content-type"].startswith("application/json") and response[RANGE_ID] == "0"
    failed = batch(container, [create("c")]).expect(207)
    assert wire.unversioned(failed[SESSION]) == f"0:-1#{head + 1}" and failed["x-ms-content-path"] is None
    refused = batch(container, []).expect(400)
    assert refused["x-ms-content-path"] is None


def test_one_batch_takes_one_lsn_and_its_changes_share_it(container):
    head = int(container.create({"id": "x", "pk": "a"}).expect(201)["lsn"])
    response = batch(container, [create(str(n)) for n in range(5)] + [replace("x", n=1), replace("0", n=2), delete("1")]).expect(200)
    assert int(response["lsn"]) == head + 1
    page = container.feed({"A-IM": "Incremental feed", "If-None-Match": f'"{head}"', wire.MAX_ITEMS: "1"}).expect(200)
    documents = page.json["Documents"]
    assert sorted(document["id"] for document in documents) == ["0", "2", "3", "4", "x"]
    assert {document["_lsn"] for document in documents} == {head + 1}


def test_later_operations_see_earlier_ones(container):
    response = batch(container, [create("x", n=1), read("x"), patch("x", incr()), replace("x", n=10), patch("x", incr()), read("x"), delete("x"),
                                 create("x", n=20)]).expect(200)
    bodies = [result.get("resourceBody", {}).get("n") for result in response.json]
    assert bodies == [1, 1, 2, 10, 11, 11, None, 20]
    assert container.read("x").json["n"] == 20


def test_patch_in_a_batch_may_have_a_condition_and_be_a_bare_array(container):
    container.create({"id": "x", "pk": "a", "n": 1}).expect(201)
    assert statuses(batch(container, [operation("Patch", "x", [incr()])])) == [200]
    conditional = operation("Patch", "x", {"operations": [incr()], "condition": "from c where c.n < 2"})
    assert statuses(batch(container, [create("y"), conditional])) == [424, 412]
    assert names(container) == ["x"]


@pytest.mark.parametrize("failing, status", [
    (create("x"), 409), (read("y"), 404), (replace("y"), 404), (delete("y"), 404), (patch("y", incr()), 404),
    (patch("x", {"op": "remove", "path": "/q"}), 400), (patch("x", {"op": "set", "path": "/id", "value": "q"}), 400),
    (replace("x") | {"ifMatch": '"stale"'}, 412), (delete("x") | {"ifMatch": '"stale"'}, 412), (upsert("x") | {"ifMatch": '"stale"'}, 412),
    (patch("x", incr()) | {"ifMatch": '"stale"'}, 412), (create("z", key="b"), 400), (operation("Create", body={"id": "z"}), 400),
    (operation("Create", body={"pk": "a"}), 400), (operation("Create", body="text"), 400), (operation("Create"), 400),
    (operation("Read"), 400), (operation("Replace", body={"id": "x", "pk": "a"}), 400), (operation("Patch", "x"), 400),
    (operation("Patch", "x", {"operations": []}), 400), (create("z") | {"indexingDirective": "Nonsense"}, 400),
], ids=lambda value: json.dumps(value)[:70])
def test_first_failure_takes_all_others_with_it(container, failing, status):
    before = container.create({"id": "x", "pk": "a", "n": 1}).expect(201)
    response = batch(container, [create("first"), failing, create("last"), delete("nowhere")]).expect(207)
    assert [result["statusCode"] for result in response.json] == [424, status, 424, 424]
    failure = response.json[1]
    assert failure["message"] and "resourceBody" not in failure and "eTag" not in failure
    assert failure["requestCharge"] == (1.24 if status in (409, 412) else 1)
    assert response.json[0] == {"statusCode": 424, "requestCharge": 0}
    assert names(container) == ["x"] and container.read("x").body == before.body
    assert container.read("x")["lsn"] == before["lsn"], "a failed batch takes no LSN"


def test_unique_keys_hold_within_a_batch(db):
    container = db.create_container({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})
    assert statuses(batch(container, [create("x", u=1), create("y", u=1)])) == [424, 409]
    assert statuses(batch(container, [create("x", u=1), replace("x", u=2), create("y", u=1)])) == [201, 200, 201]


@pytest.mark.parametrize("member", ["ifMatch", "ifNoneMatch"])
def test_read_that_finds_its_etag_is_304_and_no_failure(container, member):
    etag = container.create({"id": "x", "pk": "a"}).expect(201)["etag"]
    response = batch(container, [create("c"), read("x", **{member: etag}), create("d")]).expect(207)
    assert statuses(response) == [201, 304, 201]
    assert response.json[1] == {"statusCode": 304, "requestCharge": 1, "eTag": etag}
    assert names(container) == ["c", "d", "x"]
    assert statuses(batch(container, [read("x", **{member: '"stale"'})])) == [200]


@pytest.mark.parametrize("kind, holds", [(replace("x", n=2), 200), (upsert("x", n=2), 200), (patch("x", incr()), 200), (delete("x"), 204)],
                         ids=["replace", "upsert", "patch", "delete"])
def test_if_match_that_holds(container, kind, holds):
    etag = container.create({"id": "x", "pk": "a", "n": 1}).expect(201)["etag"]
    assert statuses(batch(container, [kind | {"ifMatch": etag, "ifNoneMatch": etag}])) == [holds]


def test_upsert_with_if_match_creates_what_is_missing(container):
    assert statuses(batch(container, [upsert("x") | {"ifMatch": '"any"'}])) == [201]


def test_minimal_answers_have_etags_and_no_bodies(container):
    container.create({"id": "x", "pk": "a", "n": 1}).expect(201)
    operations = [create("c"), upsert("x"), patch("x", incr()), replace("x"), read("x"), delete("x")]
    response = batch(container, operations, headers=MINIMAL).expect(200)
    assert [("eTag" in result, "resourceBody" in result) for result in response.json] == [(True, False)] * 5 + [(False, False)]
    single = batch(container, [create("d") | {"minimalReturnPreference": True}, create("e")]).expect(200)
    assert ["resourceBody" in result for result in single.json] == [False, True]


def test_operation_types_are_taken_in_any_case(container):
    assert statuses(batch(container, [create("x") | {"operationType": "CREATE"}, operation("delete", "x")])) == [201, 204]


# ── Keys of an atomic batch ─────────────────────────────────────────────────────────────────────────

def test_key_of_an_operation_must_be_that_of_the_request(container):
    assert statuses(batch(container, [keyed(create("x")), keyed(read("x"))])) == [201, 200]
    for other in (keyed(read("x"), "b"), read("x", partitionKey="[{}]"), read("x", partitionKey='["a","a"]')):
        batch(container, [create("y"), other]).expect(
            400, text="One or more operations within the batch request have a different partition key value than the request.")
    batch(container, [read("x", partitionKey="nonsense")]).expect(400)
    assert names(container) == ["x"]


def test_wrong_key_in_a_body_fails_that_operation_with_1001(container):
    assert statuses(batch(container, [create("x"), create("y", key="b")])) == [424, (400, 1001)]


def test_batch_needs_the_whole_key(container, db):
    batch(container, [create("x")], key=None).expect(400)
    hierarchical = db.create_container({"partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}})
    batch(hierarchical, [operation("Create", body={"id": "x", "a": "1", "b": "2"})], key=["1"]).expect(
        400, 1001, "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field "
                   "values specified in the document.")
    assert statuses(batch(hierarchical, [operation("Create", body={"id": "x", "a": "1", "b": "2"}), read("x")], key=["1", "2"])) == [201, 200]


def test_batch_of_the_undefined_key(container):
    assert statuses(batch(container, [operation("Create", body={"id": "x"}), read("x", partitionKey="[{}]")], key="[{}]")) == [201, 200]


# ── Sessions ────────────────────────────────────────────────────────────────────────────────────────

def test_session_token_from_the_future_refuses_batches_with_reads_only(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    ahead = {SESSION: "0:-1#99999"}
    refused = batch(container, [create("c"), read("x")], headers=ahead).expect(404, 1002)
    assert refused["x-ms-content-path"] is None
    assert names(container) == ["x"]
    assert statuses(batch(container, [create("c")], headers=ahead)) == [201]


# ── Limits and malformed requests ───────────────────────────────────────────────────────────────────

def test_batch_has_one_to_a_hundred_operations(container):
    batch(container, []).expect(400, text="Batch request has no operations.")
    batch(container, [upsert("x")] * 101).expect(400, text="Batch request has more operations than what is supported.")
    assert statuses(batch(container, [upsert("x")] * 100)) == [201] + [200] * 99
    assert container.read("x").expect(200)["lsn"] == "2"


def test_body_above_two_megabytes_is_413(container):
    half = "y" * (1 << 20)
    batch(container, [create("x", s=half), create("y", s=half)]).expect(413, text="Request size is too large")
    assert names(container) == []


@pytest.mark.parametrize("body", ["{}", "null", "[", "[1]", '[{"operationType":"Read"', '[{"id":"x"}]', '[{"operationType":"Query","id":"x"}]',
                                  '[{"operationType":"Read","id":7}]', b'[{"operationType":"Read","id":"\xff"}]', "", "[{}] x"], ids=str)
@pytest.mark.parametrize("send_as", [batch, bulk])
def test_malformed_request_is_a_plain_400(container, send_as, body):
    assert send_as(container, body).expect(400).json["code"] == "BadRequest"


@pytest.mark.parametrize("header", ["x-ms-cosmos-batch-atomic", "x-ms-cosmos-batch-continue-on-error"])
def test_flags_are_true_or_false(container, header):
    batch(container, [create("x")], headers={header: "maybe"}).expect(400, text=header)


def test_batch_on_a_missing_container(client, container):
    client.post(container.path + "x/docs", [create("x")], ATOMIC | {KEY: '["a"]'}).expect(404, 1003)


@pytest.mark.parametrize("send_as, substatus", [(batch, 0), (bulk, 3402)])
def test_answer_above_four_megabytes_fails_the_operation_that_overflows(container, send_as, substatus):
    big = "y" * 1_000_000
    for name in ("1", "2", "3", "4", "5"):
        container.create({"id": name, "pk": "a", "s": big}).expect(201)
    before = container.read("5")
    reads = [keyed(read(name)) for name in ("1", "2", "3", "4")]
    overflow = keyed(patch("5", {"op": "set", "path": "/t", "value": 1}))
    response = send_as(container, [keyed(create("c")), *reads, overflow, keyed(delete("1"))]).expect(207)
    if send_as is batch:
        assert statuses(response) == [424, 424, 424, 424, 424, 413, 424]
        assert names(container) == ["1", "2", "3", "4", "5"]
    else:
        assert statuses(response) == [201, 200, 200, 200, 200, (413, 3402), 204]
        assert names(container) == ["2", "3", "4", "5", "c"]
    assert container.read("5").body == before.body, "an operation without an answer was not done"
    minimal = send_as(container, [*(keyed(read(name)) for name in ("2", "3", "4")), overflow], headers=MINIMAL).expect(200)
    assert statuses(minimal) == [200, 200, 200, 200]
    assert len(response.body) <= 4 << 20


# ── Bulk ────────────────────────────────────────────────────────────────────────────────────────────

def test_each_operation_of_a_bulk_stands_alone(container):
    head = int(container.create({"id": "x", "pk": "a", "n": 1}).expect(201)["lsn"])
    response = bulk(container, [keyed(create("c")), keyed(create("x")), keyed(read("nowhere")), keyed(patch("x", incr())), keyed(create("d", key="b"), "b"),
                                keyed(delete("c")), keyed(replace("x", n=9) | {"ifMatch": '"stale"'}), keyed(read("x"))]).expect(207)
    assert statuses(response) == [201, 409, 404, 200, 201, 204, 412, 200]
    assert response.json[7]["resourceBody"]["n"] == 2
    assert int(response["lsn"]) == head + 4, "each write its own LSN"
    assert wire.unversioned(response[SESSION]) == f"0:-1#{head + 4}"
    assert names(container) == ["d", "x"]


def test_bulk_that_does_not_go_on_after_a_failure(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    operations = [keyed(create("c")), keyed(create("x")), keyed(create("d")), keyed(read("c"))]
    for mode in (STOPPING_BULK, STOPPING_BULK | {"x-ms-cosmos-batch-continue-on-error": "False"}):
        assert statuses(bulk(container, operations, mode=mode).expect(207)) == [201, 409, 424, 424]
        assert names(container) == ["c", "x"]
        container.delete("c").expect(204)


def test_304_does_not_stop_a_bulk(container):
    etag = container.create({"id": "x", "pk": "a"}).expect(201)["etag"]
    assert statuses(bulk(container, [keyed(read("x", ifNoneMatch=etag)), keyed(create("c"))], mode=STOPPING_BULK)) == [304, 201]


def test_wrong_body_or_key_in_a_bulk_concerns_its_operation_only(container):
    response = bulk(container, [keyed(create("x", key="b")), keyed(create("y")), operation("Create", body=7, partitionKey='["a"]'), read("y"),
                                read("y", partitionKey="[]"), read("y", partitionKey="nonsense"), create("z")]).expect(207)
    assert statuses(response) == [(400, 1001), 201, 400, 400, (400, 1001), 400, 201]
    assert names(container) == ["y", "z"]


def test_stale_range_is_410_for_the_whole_request(container):
    for range_id in ("7", "nonsense"):
        bulk(container, [keyed(create("x"))], range_id=range_id).expect(410, 1002)
    bulk(container, [keyed(create("x"))], range_id=f"{container.rid},0").expect(200)


def test_operations_of_another_range_are_sent_away_one_by_one(db):
    container = db.create_container(throughput=TWO_RANGES)
    assert [each["id"] for each in container.ranges()] == ["0", "1"]
    operations = [keyed(create("x", key=LOW_KEY), LOW_KEY), keyed(create("y", key=HIGH_KEY), HIGH_KEY)]
    assert statuses(bulk(container, operations, range_id="0").expect(207)) == [201, (410, 1002)]
    assert statuses(bulk(container, operations, range_id="1").expect(207)) == [(410, 1002), 201]
    assert names(container) == ["x", "y"]


def test_bulk_without_a_range_finds_each_key_by_itself(db):
    container = db.create_container(throughput=TWO_RANGES)
    operations = [keyed(create(f"{key}{n}", key=key), key) for n in range(10) for key in (LOW_KEY, HIGH_KEY)]
    for mode in (BULK, STOPPING_BULK):
        response = bulk(container, operations, range_id=None, mode=mode).expect(200)
        assert statuses(response) == [201] * 20
        assert {entry.split(":")[0] for entry in response[SESSION].split(",")} == {"0", "1"}
        for name in names(container):
            container.delete(name, [name[:-1]]).expect(204)


def test_session_token_from_the_future_refuses_bulks_with_reads(container):
    container.create({"id": "x", "pk": "a"}).expect(201)
    bulk(container, [keyed(read("x"))], headers={SESSION: "0:-1#99999"}).expect(404, 1002)
    bulk(container, [keyed(create("y"))], headers={SESSION: "0:-1#99999"}).expect(200)


def test_bulk_of_a_hundred(container):
    response = bulk(container, [keyed(create(f"{n:03}", n=n)) for n in range(100)]).expect(200)
    assert [result["resourceBody"]["n"] for result in response.json] == list(range(100))
    assert int(response["lsn"]) == 101


def test_split_under_batches_and_bulks_is_not_noticed_by_those_that_address_by_key(endpoint, container):
    stop, failures, written = threading.Event(), [], []

    def write(worker, send_one):
        with wire.Client(endpoint) as client:
            mine = wire.Container(client, container.response, container.database)
            n = 0
            while not stop.is_set():
                key, n = f"k{n % 16}", n + 1
                ids = [f"{worker}-{n}-{i}" for i in range(10)]
                response = send_one(mine, [keyed(create(each, key=key), key) for each in ids], key)
                if response.status != 200:
                    failures.append(response)
                    return
                written.extend(ids)

    workers = [threading.Thread(target=write, args=("atomic", lambda mine, operations, key: batch(mine, operations, key=[key]))),
               threading.Thread(target=write, args=("bulk", lambda mine, operations, _: bulk(mine, operations, range_id=None)))]
    for worker in workers:
        worker.start()
    try:
        for range_id in ("0", "1", "2"):
            wait_until(lambda before=len(written): failures or len(written) > before + 100)
            container.client.post(f"{container.path}/operations/split", {"range": range_id}).expect(200)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert not failures
    assert names(container) == sorted(written)


# ── Charges ─────────────────────────────────────────────────────────────────────────────────────────

def test_charges_are_those_of_single_requests(container):
    single = [container.create({"id": "x", "pk": "a", "n": 1}), container.read("x"), container.replace("x", {"id": "x", "pk": "a", "n": 2}),
              container.delete("x")]
    response = batch(container, [create("x", n=1), read("x"), replace("x", n=2), delete("x")]).expect(200)
    assert [result["requestCharge"] for result in response.json] == [each.charge for each in single]


# ── Binary ──────────────────────────────────────────────────────────────────────────────────────────

def test_binary_request_gets_a_binary_answer(container):
    container.create({"id": "x", "pk": "a", "n": 1}).expect(201)
    body = hybrid_row.stream(
        hybrid_row.operation("Create", resourceBody='{"id":"c","pk":"a"}'), hybrid_row.operation("Read", id="x"),
        hybrid_row.operation("Patch", id="x", resourceBody='{"operations":[{"op":"incr","path":"/n","value":1}]}'),
        hybrid_row.operation("Upsert", resourceBody='{"id":"u","pk":"a"}', minimalReturnPreference=True),
        hybrid_row.operation("Replace", id="u", resourceBody='{"id":"u","pk":"a","n":1}'), hybrid_row.operation("Delete", id="c"))
    response = batch(container, body).expect(200)
    assert response.body[0] == 0x81 and not response["content-type"].startswith("application/json")
    results = hybrid_row.results(response.body)
    assert [result["statusCode"] for result in results] == [201, 200, 200, 201, 200, 204]
    assert json.loads(results[1]["resourceBody"])["n"] == 1 and json.loads(results[2]["resourceBody"])["n"] == 2
    assert "resourceBody" not in results[3] and results[3]["eTag"]
    assert results[4]["eTag"] == json.loads(results[4]["resourceBody"])["_etag"]
    assert names(container) == ["u", "x"]


def test_binary_failures_carry_their_text(container):
    etag = container.create({"id": "x", "pk": "a"}).expect(201)["etag"]
    response = batch(container, hybrid_row.stream(hybrid_row.operation("Read", id="x", ifNoneMatch=etag),
                                                  hybrid_row.operation("Create", resourceBody='{"id":"x","pk":"a"}'))).expect(207)
    results = hybrid_row.results(response.body)
    assert [result["statusCode"] for result in results] == [424, 409]
    assert "already exists" in results[1]["resourceBody"]
    response = batch(container, hybrid_row.stream(hybrid_row.operation("Read", id="x", ifMatch=etag))).expect(207)
    assert [result["statusCode"] for result in hybrid_row.results(response.body)] == [304]


def test_binary_bulk(container):
    response = bulk(container, hybrid_row.stream(*[
        hybrid_row.operation("Create", partitionKey=f'["{key}"]', resourceBody=json.dumps({"id": "x", "pk": key})) for key in "aba"])).expect(207)
    assert [result["statusCode"] for result in hybrid_row.results(response.body)] == [201, 201, 409]


@pytest.mark.parametrize("body", [
    hybrid_row.SEGMENT, hybrid_row.SEGMENT[:7], hybrid_row.stream(hybrid_row.operation("Delete", id="x"))[:-1],
    hybrid_row.stream(hybrid_row.operation("Delete", id="x"))[:-1] + b"y", hybrid_row.stream(hybrid_row.operation("Delete", id="x")) + b"[]",
    hybrid_row.stream(hybrid_row.operation("Delete", 3, id="x")), hybrid_row.stream(hybrid_row.operation("Delete", id=b"\xff")),
    hybrid_row.stream(b""), b"\x81" * 1000], ids=["empty", "cut header", "cut row", "checksum", "rest", "resource", "utf-8", "no row", "noise"])
def test_broken_binary_request_is_400_with_a_message(container, body):
    container.create({"id": "x", "pk": "a"}).expect(201)
    batch(container, body).expect(400, 0, "batch request")
    assert names(container) == ["x"]


def test_binary_json_inside_is_refused_for_its_operation(container):
    response = batch(container, hybrid_row.stream(hybrid_row.operation("Create", resourceBody=b"\x80\x01\x02"))).expect(207)
    assert hybrid_row.results(response.body)[0]["statusCode"] == 400
