"""Reads pages of the feed and holds each against the model; followers keep positions as the clients do."""

import collections
import time

from feed_model import CLOCK_SLACK, EPKS, Entry, Violation, page_of
from harness import wire

INCREMENTAL = {"A-IM": "Incremental feed"}
ALL_VERSIONS = {"A-IM": "Full-Fidelity Feed", "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15"}
DEFAULT_SIZE = 100
UNBOUNDED = 1 << 30
PAGE_BYTES_NEAR = 3_900_000  # a page of 4 MB may end from here on


def token_of(response):
    """(range id, LSN) of a session token."""
    range_id, _, value = response["x-ms-session-token"].partition(":")
    return range_id, int(value.split("#")[-1])


def number(etag):
    if not (etag and etag[0] == etag[-1] == '"' and etag[1:-1].isdigit()):
        raise Violation(f"a feed etag that is no number: {etag}")
    return int(etag[1:-1])


class Page:
    def __init__(self, response, items, etag):
        self.response, self.items, self.etag = response, items, etag


def size_headers(size):
    return {} if size is None else {"x-ms-max-item-count": str(size)}


def limit_of(size):
    return {None: DEFAULT_SIZE, -1: UNBOUNDED}.get(size, size)


def read(connection, container, keys, after, size, scope, all_versions, wrapped=False):
    """One page over those keys, judged. `after` None is the beginning. Errors are returned as they came."""
    headers = dict(ALL_VERSIONS if all_versions else INCREMENTAL) | scope | size_headers(size)
    if wrapped and not all_versions:
        headers["x-ms-cosmos-changefeed-wire-format-version"] = "2021-09-15"
    if after is not None:
        headers["If-None-Match"] = f'"{after}"'
    sent = time.time()
    response = connection.get(f"/{container.link}/docs", headers)
    received = time.time()
    if response.status not in (200, 304):
        return Page(response, [], None)
    what = f"{container.name} {'all versions' if all_versions else 'latest'} {scope} after {after} size {size}"
    items = response.json["Documents"] if response.status == 200 else []
    etag = number(response["etag"])
    judge_frame(response, items, etag, after or 0, what)
    if all_versions:
        judge_versions(container, keys, after or 0, size, items, etag, len(response.body) > PAGE_BYTES_NEAR, what)
    else:
        judge_latest(container, keys, after or 0, size, items, sent, received, what)
    return Page(response, items, etag)


def judge_frame(response, items, etag, after, what):
    if response["x-ms-continuation"] is not None or etag < after:
        raise Violation(f"{what}: {response.headers}")
    if int(response["x-ms-item-count"]) != len(items):
        raise Violation(f"{what}: item count {response['x-ms-item-count']} of {len(items)}")
    _, head = token_of(response)
    if response.status == 304 and etag != head:
        raise Violation(f"{what}: the etag of a 304 is {etag}, the head {head}")
    if response.status == 200 and not items:
        raise Violation(f"{what}: an empty page")
    if items and (lsn(items[-1]) != etag or lsn(items[0]) <= after):
        raise Violation(f"{what}: etag {etag} of a page from {lsn(items[0])} to {lsn(items[-1])}")


def lsn(item):
    return item["metadata"]["lsn"] if "current" in item else item["_lsn"]


def judge_latest(container, keys, after, size, items, sent, received, what):
    shown = {}
    for item in items:
        document = item.get("current", item)
        shown[document["pk"], document["id"]] = (lsn(item), document["n"])
    wanted = None
    # One answer is of one instant; there are two to choose from when a second ends meanwhile.
    for second in range(int(sent - CLOCK_SLACK), int(received + CLOCK_SLACK) + 1):
        page = page_of(container.latest(keys, after, second), lambda each: each.lsn, limit_of(size))
        wanted = {(each.key, each.name): (each.lsn, each.n) for each in page}
        if shown == wanted and len(items) == len(page):
            break
    else:
        raise Violation(f"{what}: shown {shown}, expected {wanted}")
    lsns = [lsn(item) for item in items]
    if lsns != sorted(lsns):
        raise Violation(f"{what}: not in the order of the log: {lsns}")


def entry_of(item):
    """(key, Entry) of an item; the place is not told."""
    metadata, current = item["metadata"], item["current"]
    if metadata["operationType"] == "delete":
        key = metadata["partitionKey"]["pk"]
        return key, Entry(metadata["lsn"], -1, "delete", metadata["id"], None, metadata["previousImageLSN"],
                          bool(metadata.get("timeToLiveExpired")))
    return current["pk"], Entry(metadata["lsn"], 0, metadata["operationType"], current["id"], current["n"],
                                metadata.get("previousImageLSN", 0), False)


def judge_versions(container, keys, after, size, items, etag, is_full, what):
    found = [entry_of(item) for item in items]
    for key, entry in found:
        if entry.expired and (trouble := container.learn_purge(key, entry)):
            raise Violation(f"{what}: {entry} of key {key!r}: {trouble}")
    limit = limit_of(size)
    expected = container.history(keys, after, min(limit, 5000) + len(found))
    page = page_of(expected, lambda pair: pair[1].lsn, limit)
    if found and len(found) < len(page) and (is_full or any(key in keys for key, _, _ in container.unseen_purges)):
        # It has the bytes of a page, or a purge that nobody has seen yet stands behind it and does not fit.
        page = [pair for pair in page if pair[1].lsn <= etag]
    for key in keys:
        shown = [without_place(entry) for other, entry in found if other == key]
        wanted = [without_place(entry) for other, entry in page if other == key]
        if shown != wanted:
            at = next((n for n, (one, other) in enumerate(zip(shown, wanted)) if one != other), min(len(shown), len(wanted)))
            raise Violation(f"{what}: key {key!r} has {len(shown)} entries, of {len(wanted)}; they differ at number {at}: "
                            f"{shown[at:at + 3]} instead of {wanted[at:at + 3]}")
    if len(found) != len(page):
        raise Violation(f"{what}: {len(found)} entries instead of {len(page)}")
    lsns = [entry.lsn for _, entry in found]
    if lsns != sorted(lsns):
        raise Violation(f"{what}: not in the order of the log: {lsns}")
    for key in keys:
        if after <= container.covered[key]:
            container.covered[key] = max(container.covered[key], etag)


def without_place(entry):
    return entry._replace(place=0)


class Follower:
    """Follows a part of a container from its beginning, range by range, and remaps its positions when ranges
    are gone, as the official clients do."""

    def __init__(self, name, container, all_versions, low="", high="FF"):
        self.name, self.container, self.all_versions = name, container, all_versions
        self.parts = [[low, high, 1 if all_versions else None]]  # low, high, after
        self.turn = 0
        self.seen = {}  # latest: (key, name) -> n of what was shown last
        self.versions = collections.Counter()  # all versions: (key, name, LSN, kind, n); a batch may delete one name twice
        self.transactions = set()  # (key, LSN) of the pages so far

    def read_one(self, connection, size, refresh):
        """One page of the next part. True when that part was caught up."""
        self.turn += 1
        part = self.parts[self.turn % len(self.parts)]
        low, high, after = part
        overlapping = [each for each in self.container.ranges if each["minInclusive"] < high and low < each["maxExclusive"]]
        if len(overlapping) != 1:
            self.divide(part, overlapping)
            return False
        (there,) = overlapping
        scope = {"x-ms-documentdb-partitionkeyrangeid": there["id"]}
        if (there["minInclusive"], there["maxExclusive"]) != (low, high):
            scope |= {"x-ms-start-epk": low, "x-ms-end-epk": high, "x-ms-read-key-type": "EffectivePartitionKeyRange"}
        page = read(connection, self.container, self.container.keys_between(low, high), after, size, scope, self.all_versions)
        if page.etag is None:
            if page.response.status == 410 and page.response["x-ms-substatus"] in ("1002", "1007"):
                refresh(self.container)
                return False
            raise Violation(f"{self.name}: {page.response}")
        self.take(page.items)
        part[2] = page.etag
        return page.response.status == 304

    def divide(self, part, overlapping):
        low, high, after = part
        self.parts.remove(part)
        for each in overlapping:
            self.parts.append([max(low, each["minInclusive"]), min(high, each["maxExclusive"]), after])

    def take(self, items):
        if not self.all_versions:
            self.seen.update({(item["pk"], item["id"]): item["n"] for item in items})
            return
        entries = [entry_of(item) for item in items]
        transactions = {(key, entry.lsn) for key, entry in entries}
        if again := transactions & self.transactions:  # read() has judged each page by itself
            raise Violation(f"{self.name}: {again} came twice")
        self.transactions |= transactions
        self.versions.update((key, entry.name, entry.lsn, entry.kind, entry.n) for key, entry in entries)

    def drain(self, connection, size, refresh):
        caught_up = 0
        for _ in range(20_000):
            caught_up = caught_up + 1 if self.read_one(connection, size, refresh) else 0
            if caught_up > len(self.parts):
                return
        raise Violation(f"{self.name}: the feed does not end")

    def judge_end(self):
        """After a drain with nothing written meanwhile: it has seen what there is."""
        if self.all_versions:
            wanted = collections.Counter((key, entry.name, entry.lsn, entry.kind, entry.n)
                                         for low, high, _ in self.parts for key in self.container.keys_between(low, high)
                                         for entry in self.container.log[key])
            if self.versions != wanted:
                raise Violation(f"{self.name}: missing {list(wanted - self.versions)[:5]}, too much {list(self.versions - wanted)[:5]}")
            return
        now = time.time()
        keys = {key for low, high, _ in self.parts for key in self.container.keys_between(low, high)}
        for (key, name), document in self.container.documents.items():
            if key in keys and document.definitely_alive(now) and self.seen.get((key, name)) != document.n:
                raise Violation(f"{self.name}: {key!r} {name} is {document.n}, the follower has {self.seen.get((key, name))}")


class WholeFollower:
    """Follows all ranges with the composite etag of a container-wide feed."""

    def __init__(self, name, container):
        self.name, self.container, self.etag, self.seen = name, container, None, {}

    def read_one(self, connection, size, _refresh):
        headers = INCREMENTAL | {"x-orrery-feed-scope": "container"} | size_headers(size)
        if self.etag is not None:
            headers["If-None-Match"] = self.etag
        response = connection.get(f"/{self.container.link}/docs", headers)
        if response.status not in (200, 304):
            raise Violation(f"{self.name}: {response}")
        self.etag = response["etag"]
        for item in response.json["Documents"] if response.status == 200 else []:
            place = (item["pk"], item["id"])
            document = self.container.documents.get(place)
            if document is None or document.n != item["n"] or document.lsn != item["_lsn"]:
                raise Violation(f"{self.name}: {item['pk']!r} {item['id']} {item['n']} at {item['_lsn']} is not the latest version")
            if self.seen.get(place) == item["n"]:
                raise Violation(f"{self.name}: {place} {item['n']} came twice")
            self.seen[place] = item["n"]
        return response.status == 304

    def drain(self, connection, size, refresh):
        for _ in range(20_000):
            if self.read_one(connection, size, refresh):
                return
        raise Violation(f"{self.name}: the feed does not end")

    def judge_end(self):
        now = time.time()
        for place, document in self.container.documents.items():
            if document.definitely_alive(now) and self.seen.get(place) != document.n:
                raise Violation(f"{self.name}: {place} is {document.n}, the follower has {self.seen.get(place)}")


def may_be_beyond(container, low, high, after):
    """Whether a range in [low, high) may not have come as far: all that is known is that its head is not below its keys."""
    for there in container.ranges:
        first, end = there["minInclusive"], there["maxExclusive"]
        keys = container.keys_between(first, end)
        overlaps = (first < high or high == "FF") and (low < end or end == "FF")
        if overlaps and after > max((container.last_lsn[key] for key in keys), default=1):
            return True
    return False


def probe(connection, container, chance, is_changing):
    """A page from anywhere: random position, scope, size and mode."""
    all_versions = container.has_history and chance.random() < 0.5
    highest = max(container.last_lsn.values())
    after = chance.choice([None, 0, 1, highest, highest + 7]) if chance.random() < 0.3 else chance.randrange(1, highest + 1)
    if all_versions and (after is None or after < 1):
        after = 1
    size = chance.choice([None, -1, 1, 1, 2, 3, 5, 8, 13])
    kind = chance.random()
    if kind < 0.4:
        key = chance.choice(list(EPKS))
        keys, scope = [key], wire.of_key(key)
        low, high = EPKS[key], EPKS[key] + "00"
    else:
        there = chance.choice(container.ranges)
        low, high = there["minInclusive"], there["maxExclusive"]
        scope = {"x-ms-documentdb-partitionkeyrangeid": there["id"]}
        if kind > 0.7:
            inside = [epk for epk in EPKS.values() if low <= epk and (high == "FF" or epk < high)]
            cuts = sorted({low, high, *(chance.choice(inside) for _ in range(2) if inside)})
            low = chance.choice(cuts[:-1])
            high = chance.choice([cut for cut in cuts if cut > low])
            scope |= {"x-ms-start-epk": low, "x-ms-end-epk": high, "x-ms-read-key-type": "EffectivePartitionKeyRange"}
            if kind > 0.85 and not is_changing:
                del scope["x-ms-documentdb-partitionkeyrangeid"]
        keys = container.keys_between(low, high)
    page = read(connection, container, keys, after, size, scope, all_versions, wrapped=chance.random() < 0.3)
    if page.response.status == 400 and may_be_beyond(container, low, high, after or 0):
        return
    if page.etag is None and not (page.response.status == 410 and is_changing):
        raise Violation(f"{container.name} {scope} after {after}: {page.response}")
