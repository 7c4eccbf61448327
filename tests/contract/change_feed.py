"""Reading the change feed over the wire, and the operations that its tests need beside `wire`.

`read` makes one request and holds every answer against the rules for all feed answers (`check`); `drain`
follows etags to the 304, as every client does.
"""
import json
import re
import time
import uuid

from harness import wire
from harness.waiting import wait_until
from harness.wire import MAX_ITEMS, RANGE_ID, SESSION, of_key

INCREMENTAL = {"A-IM": "Incremental feed"}
FULL_FIDELITY = {"A-IM": "Full-Fidelity Feed"}
WIRE_FORMAT = {"x-ms-cosmos-changefeed-wire-format-version": "2021-09-15"}
ALL_VERSIONS = FULL_FIDELITY | WIRE_FORMAT
CAPABILITIES = "x-ms-cosmos-sdk-supportedcapabilities"
NOW = "*"

HISTORY = {"changeFeedPolicy": {"retentionDuration": 60}}
TWO_RANGES, THREE_RANGES, FIVE_RANGES = 11000, 15000, 30000
MIDDLE = "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"  # where the two ranges of version 2 meet

# Keys with their effective partition keys in version 2, from low to high; MIDDLE lies between "2" and 1.
EPKS = {"partitionKey": "013AEFCF77FA271571CF665A58C933F1", "aa": "05033626483AE80D00E44FBD35362B19",
        "redmond": "22E342F38A486A088463DFF7838A5963", "Hello World": "306C52B42DECB3AE9D3C7586975E30B9",
        "a": "3A5381E1114EB8D3FCC90795045B49B7"}
LOW, HIGH = ("partitionKey", "aa"), ("redmond", "Hello World", "a")


def after(epk):
    """The EPK that follows, by arithmetic on the hex number, as Python's client does."""
    return f"{int(epk, 16) + 1:0{len(epk)}X}"


# ── Scopes ──────────────────────────────────────────────────────────────────────────────────────────

def of_range(range_id):
    return {RANGE_ID: range_id}


def of_epks(start, end, range_id=None):
    headers = {"x-ms-start-epk": start, "x-ms-end-epk": end, "x-ms-read-key-type": "EffectivePartitionKeyRange"}
    return headers | (of_range(range_id) if range_id is not None else {})


def since(seconds):
    """If-Modified-Since of a second since 1970."""
    return {"If-Modified-Since": wire.email.utils.formatdate(seconds, usegmt=True)}


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────

def etag(lsn):
    return f'"{lsn}"'


def position(response):
    """The number in the etag of a feed answer."""
    match = re.fullmatch(r'"(\d+)"', response["etag"] or "")
    assert match, f"a feed etag is quoted digits: {response!r}"
    return int(match[1])


def head(response):
    """The LSN in the session token of an answer for one range."""
    token = response[SESSION]
    assert token and "," not in token, f"one range answers with one token: {response!r}"
    return int(re.split("[:#]", token)[-1])


def lsn_of(item):
    return item["metadata"]["lsn"] if "metadata" in item and "_rid" not in item else item["_lsn"]


def items_of(response):
    return response.json["Documents"] if response.status == 200 else []


def ids(items):
    """Names of documents, in order; of a delete entry the name in its metadata."""
    return [item["id"] if "id" in item else (item["current"] or item["metadata"])["id"] for item in items]


def requested(headers):
    text = next((value for name, value in headers.items() if name.lower() == "if-none-match"), None)
    digits = re.fullmatch(r'\s*(?:W/)?"?(\d+)"?\s*', text or "")
    return int(digits[1]) if digits else 0


def check(response, headers, rid=None):
    """The invariants of every 200 and 304 of the feed of one range."""
    reached, after_lsn = position(response), requested(headers)
    assert response[wire.CONTINUATION] is None, f"x-ms-continuation makes clients repeat: {response!r}"
    assert reached >= after_lsn, f"the feed went backwards from {after_lsn}: {response!r}"
    assert re.fullmatch(r"\d+", response[RANGE_ID] or ""), f"which range answered? {response!r}"
    assert response.charge > 0 and head(response) >= 1
    if response.status == 304:
        assert response.body == b"" and response["x-ms-item-count"] == "0", f"{response!r}"
        assert reached >= head(response), f"a 304 is at the head: {response!r}"
        return
    body = response.json
    items = body["Documents"]
    assert body["_count"] == len(items) == int(response["x-ms-item-count"]), f"{response!r}"
    assert rid is None or body["_rid"] == rid
    lsns = [lsn_of(item) for item in items]
    assert all(type(lsn) is int and lsn > after_lsn for lsn in lsns), f"{lsns} after {after_lsn}"
    assert lsns == sorted(lsns), f"not in the order of the log: {lsns}"
    assert not items or reached == lsns[-1], f"etag {reached} of a page that ends with {lsns[-1]}"
    assert reached <= head(response), f"{response!r}"


# ── Requests ────────────────────────────────────────────────────────────────────────────────────────

def read(container, after_etag=None, size=None, scope=None, headers=None, client=None, **options):
    """One request, incremental unless the headers say otherwise; 200 and 304 are checked, errors returned."""
    fields = dict(INCREMENTAL) | (scope or {}) | (headers or {})
    if after_etag is not None:
        fields["If-None-Match"] = etag(after_etag) if isinstance(after_etag, int) else after_etag
    if size is not None:
        fields[MAX_ITEMS] = size
    response = (client or container.client).get(container.docs, fields, **options)
    if response.status in (200, 304):
        check(response, fields, container.rid)
    return response


def pages(container, after_etag=None, size=None, pages_max=5000, **options):
    """The 200s up to the 304, and then the 304."""
    found = []
    while True:
        found.append(read(container, after_etag, size, **options).expect((200, 304)))
        if found[-1].status == 304:
            return found
        assert items_of(found[-1]), f"an empty page that was not asked for: {found[-1]!r}"
        after_etag = found[-1]["etag"]
        assert len(found) < pages_max, "the feed does not end"


def drain(container, after_etag=None, size=None, **options):
    """All items after the etag, and the etag to go on from."""
    found = pages(container, after_etag, size, **options)
    return [item for page in found for item in items_of(page)], found[-1]["etag"]


def drain_ranges(container, checkpoints=None, size=None):
    """The loop of the article: every range from its checkpoint. Items and the new checkpoints by range id."""
    items, checkpoints = [], dict(checkpoints or {})
    for each in container.ranges():
        found, checkpoints[each["id"]] = drain(container, checkpoints.get(each["id"]), size, scope=of_range(each["id"]))
        items += found
    return items, checkpoints


def position_now(container, scope=None):
    """Where a reader that starts now starts."""
    return read(container, NOW, scope=scope).expect(304)["etag"]


# ── Writes ──────────────────────────────────────────────────────────────────────────────────────────

def lsn_written(response):
    return head(response.expect((200, 201, 204)))


def put(container, name, key="a", **members):
    """Creates or replaces a document; the LSN it got."""
    return lsn_written(container.upsert({"id": name, "pk": key, **members}))


def patch(container, name, operations, key="a", headers=None):
    return container.client.request("PATCH", container.doc(name), {"operations": operations},
                                    of_key(key) | {"content-type": "application/json_patch+json"} | (headers or {}))


def creating(name, key="a", **members):
    return {"operationType": "Create", "resourceBody": {"id": name, "pk": key, **members}}


def replacing(name, key="a", **members):
    return {"operationType": "Replace", "id": name, "resourceBody": {"id": name, "pk": key, **members}}


def deleting(name):
    return {"operationType": "Delete", "id": name}


def post_batch(container, operations, key="a", client=None):
    return (client or container.client).post(container.docs, operations, of_key(key) | {
        "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"})


def batch(container, operations, key="a"):
    """A transactional batch that succeeds; its LSN."""
    return head(post_batch(container, operations, key).expect(200))


def bulk(container, operations, range_id="0"):
    return container.client.post(container.docs, operations, of_range(range_id) | {
        "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "False",
        "x-ms-cosmos-batch-continue-on-error": "True"})


def replace_container(container, **members):
    """PUT with these members of the definition changed; None takes one away."""
    body = {name: value for name, value in (container.body | members).items() if value is not None}
    return container.client.put(container.path, body)


def later_than(container, second):
    """Waits until the server's clock, as its writes tell it, is past that second. Leaves no change behind."""
    scratch = container.database.create_container()

    def has_passed():
        return scratch.upsert({"id": "clock", "pk": "a"}).expect((200, 201)).json["_ts"] > second

    wait_until(has_passed, 10, "the next second")
    container.client.delete(scratch.path).expect(204)


# ── Topology ────────────────────────────────────────────────────────────────────────────────────────

def split(container, range_id="0", at=None):
    body = {"range": range_id} | ({"at": at} if at else {})
    return container.client.post(f"{container.path}/operations/split", body)


def merge(container, *range_ids):
    return container.client.post(f"{container.path}/operations/merge", {"ranges": list(range_ids)})


def two_ranges(db):
    """A container of ranges "0" and "1" that may be merged: no throughput asks for two of them any more."""
    container = db.create_container(throughput=TWO_RANGES)
    (offer,) = db.client.offers_of(container)
    offer["content"]["offerThroughput"] = 1000
    db.client.put("/" + offer["_self"], offer).expect(200)
    return container


def children_of(response):
    """The ranges of a split's or merge's answer that have parents, by minInclusive."""
    ranges = response.expect(200).json["PartitionKeyRanges"]
    return sorted((each for each in ranges if each["parents"]), key=lambda each: each["minInclusive"])


# ── Streams ─────────────────────────────────────────────────────────────────────────────────────────

class Stream:
    """A chunked answer, read line by line while it comes."""

    def __init__(self, container, headers):
        self.connection = wire.Connection(container.client.endpoint)
        self.connection.send(container.client.build("GET", container.docs, None, INCREMENTAL | headers))
        while b"\r\n\r\n" not in self.connection.buffer:
            self.connection.fill()
        head_bytes, _, self.connection.buffer = self.connection.buffer.partition(b"\r\n\r\n")
        status_line, *lines = head_bytes.decode().split("\r\n")
        self.status = int(status_line.split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.text, self.is_ended = b"", False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def more(self):
        """Takes in one chunk; the last one ends the stream."""
        buffer = self.connection
        while b"\r\n" not in buffer.buffer:
            buffer.fill()
        length, _, _ = buffer.buffer.partition(b"\r\n")
        size, start = int(length.split(b";")[0], 16), len(length) + 2
        while len(buffer.buffer) < start + size + 2:
            buffer.fill()
        self.text += buffer.buffer[start:start + size]
        buffer.buffer = buffer.buffer[start + size + 2:]
        self.is_ended = size == 0

    def line(self):
        """The next line without its end; None at the end of the stream."""
        while b"\n" not in self.text:
            if self.is_ended:
                return None
            self.more()
        line, _, self.text = self.text.partition(b"\n")
        return line.decode().rstrip("\r")

    def event(self):
        """The next server-sent event as (name, id, data); comments are skipped. None at the end."""
        fields = {}
        while (line := self.line()) is not None:
            if not line and "data" in fields:
                return fields.get("event"), fields.get("id"), json.loads(fields["data"])
            name, _, value = line.partition(":")
            if name:
                value = value.removeprefix(" ")
                fields[name] = fields[name] + "\n" + value if name == "data" and "data" in fields else value
        return None

    def record(self):
        """The next line of an NDJSON stream as an object; heartbeats are skipped. None at the end."""
        while (line := self.line()) is not None:
            if line:
                return json.loads(line)
        return None


def fresh_activity():
    return str(uuid.uuid4())


def seconds_of(action):
    began = time.monotonic()
    result = action()
    return result, time.monotonic() - began
