"""The expected contents of a change feed, kept in plain dictionaries.

The torture test makes one request at a time, so that the model knows every commit. Two things it cannot
know and learns from answers: in which instant of its last second a document expires, and at which LSN an
expired one is purged. Everything else is predicted exactly.
"""

import bisect
import collections

CLOCK_SLACK = 0.02  # between the test's clock and the server's, which are the same

# Keys and their effective partition keys (version 2).
EPKS = {
    "aa": "05033626483AE80D00E44FBD35362B19", "partitionKey": "013AEFCF77FA271571CF665A58C933F1",
    "redmond": "22E342F38A486A088463DFF7838A5963", "Hello World": "306C52B42DECB3AE9D3C7586975E30B9",
    "a": "3A5381E1114EB8D3FCC90795045B49B7", "": "32E9366E637A71B4E710384B2F4970A0",
    0: "155B95BEDAC4B1E9EC1CDC9BB0DDDE58", 1: "20CD98B339BA78A5D0CF6953B87070B0",
    5.5: "0E2EE47829D1AF775EEFB6540FD1D0ED", None: "378867E4430E67857ACE5C908374FE16",
}


class Violation(Exception):
    """The server broke a promise."""


class Document:
    """The last version of a document: `n` tells versions apart, `expiry` is a second or None."""

    def __init__(self, key, name, n, lsn, second, ttl, rid, created_at):
        self.key, self.name, self.n, self.lsn, self.rid = key, name, n, lsn, rid
        self.expiry = second + ttl if ttl is not None and ttl > 0 else None
        self.is_gone = False  # an answer has told that it expired
        self.created_at = created_at  # the LSN of its creation
        self.place = 0  # within its transaction

    def definitely_dead(self, sent):
        return self.is_gone or (self.expiry is not None and int(sent - CLOCK_SLACK) >= self.expiry)

    def definitely_alive(self, received):
        return not self.is_gone and (self.expiry is None or int(received + CLOCK_SLACK) < self.expiry)


Entry = collections.namedtuple("Entry", "lsn place kind name n previous expired")


class Container:
    """One container: live documents, and with history every version there was."""

    def __init__(self, name, has_history):
        self.name, self.has_history = name, has_history
        self.link = f"dbs/torture/colls/{name}"
        self.rid = None
        self.documents = {}  # (key, name) -> Document, the expired ones until something tells
        self.log = {key: [] for key in EPKS}  # entries in the order of their LSN
        self.unseen_purges = {}  # (key, name, LSN of the version) -> expiry
        self.covered = {key: 1 for key in EPKS}  # up to where some reader has seen the history
        self.last_lsn = {key: 1 for key in EPKS}
        self.head_of = {}  # range id -> the highest LSN told
        self.ranges = []  # as pkranges lists them
        self.used_ids = set()

    # ── Commits ───────────────────────────────────────────────────────────────────────────────

    def took(self, range_id, lsn, keys):
        """A transaction was acknowledged. Order of commits is order of LSNs, per range and per key."""
        if lsn <= self.head_of.get(range_id, 1):
            raise Violation(f"{self.name}: LSN {lsn} of range {range_id} is not above {self.head_of[range_id]}")
        self.head_of[range_id] = lsn
        for key in keys:
            if lsn <= self.last_lsn[key]:
                raise Violation(f"{self.name}: LSN {lsn} of key {key!r} is not above {self.last_lsn[key]}")
            self.last_lsn[key] = lsn

    def find(self, key, name):
        document = self.documents.get((key, name))
        return None if document is None or document.is_gone else document

    def expire(self, document):
        """Something told that it is gone. Its delete is due in the history, or there already."""
        if not document.is_gone:
            document.is_gone = True
            del self.documents[document.key, document.name]

    def put(self, document, kind, previous, place):
        document.place = place
        self.documents[document.key, document.name] = document
        self.append(document.key, Entry(document.lsn, place, kind, document.name, document.n, previous, False))
        if document.expiry is not None and self.has_history:
            self.unseen_purges[document.key, document.name, document.lsn] = document.expiry

    def supersede(self, document):
        """It is about to get another version, or to be deleted, while alive: no purge will come of it."""
        self.unseen_purges.pop((document.key, document.name, document.lsn), None)

    def remove(self, document, lsn, place):
        self.supersede(document)
        del self.documents[document.key, document.name]
        self.append(document.key, Entry(lsn, place, "delete", document.name, None, document.lsn, False))

    def append(self, key, entry):
        if self.has_history:
            self.log[key].append(entry)

    def learn_purge(self, key, entry, place=None):
        """A delete by TTL, seen for the first time. Returns what is wrong with it, or None."""
        if any(each._replace(place=entry.place) == entry for each in self.log[key]):
            return None
        if self.unseen_purges.pop((key, entry.name, entry.previous), None) is None:
            return "no expired version waits for that purge"
        if entry.lsn <= self.covered[key]:
            return f"a reader had passed LSN {self.covered[key]} of this key without it"
        if place is None:  # right before the write that met it, if it was one
            met = next((each for each in self.log[key] if (each.lsn, each.name, each.kind) == (entry.lsn, entry.name, "create")), None)
            place = met.place - 0.5 if met else -1
        bisect.insort(self.log[key], entry._replace(place=place), key=lambda each: (each.lsn, each.place))
        return None

    # ── Expectations ──────────────────────────────────────────────────────────────────────────

    def keys_between(self, low, high):
        return [key for key, epk in EPKS.items() if low <= epk and (high == "FF" or epk < high)]

    def latest(self, keys, after, second):
        """Documents after that LSN that are alive in that second, in the order of the log."""
        keys = set(keys)
        found = [document for document in self.documents.values() if document.key in keys and document.lsn > after
                 and not document.is_gone and (document.expiry is None or second < document.expiry)]
        return sorted(found, key=lambda document: document.lsn)

    def history(self, keys, after, count):
        """(key, entry) after that LSN in order, enough for a page of that many."""
        found = []
        for key in keys:
            log = self.log[key]
            start = bisect.bisect_right(log, after, key=lambda entry: entry.lsn)
            found += [(key, entry) for entry in log[start:start + count + 200]]
        found.sort(key=lambda pair: pair[1].lsn)
        return found


def page_of(items, lsn_of, limit):
    """The page algorithm: whole LSN groups, over the limit only when the page would be empty."""
    page, start = [], 0
    while start < len(items):
        end = start
        while end < len(items) and lsn_of(items[end]) == lsn_of(items[start]):
            end += 1
        if page and len(page) + end - start > limit:
            break
        page += items[start:end]
        if len(page) >= limit:
            break
        start = end
    return page
