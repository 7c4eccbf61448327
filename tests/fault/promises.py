"""The promises of a server by its answers, and whether it has kept them.

Writers report every answer here, and every request that got none. After a restart `check` reads
everything back. A request without an answer is a *doubt*: it may have happened or not, wholly.
`check` settles the doubts; from then on its findings are promises like any other.

All writes of a physical partition are ordered by LSN, so documents may be written by many threads
at once: the promise is the acknowledged write with the highest LSN.
"""

import base64
import collections
import concurrent.futures
import json
import threading
import time

from harness import wire

RANGES_BY_THROUGHPUT = {None: 1, 400: 1, 15000: 3, 30000: 5}
POINT_READERS = 8
RID_READS_PER_CONTAINER = 20
DEAD_RIDS_CHECKED = 6


def canonical(document):
    """Equal for equal documents with equal member order."""
    return json.dumps(document)


def parse_session_token(text):
    """{range id: LSN} of an x-ms-session-token."""
    heads = {}
    for entry in text.split(","):
        range_id, _, value = entry.partition(":")
        heads[range_id] = int(value.split("#")[1] if "#" in value else value)
    return heads


def document_number(rid):
    """The counter in a document's _rid, as (range number, sequence)."""
    counter = int.from_bytes(base64.b64decode(rid.replace("-", "/"))[8:16], "little")
    return counter >> 40, counter & ((1 << 40) - 1)


def database_rid_of(container_rid):
    """The first four bytes of a container's rid are its database's."""
    four = base64.b64decode(container_rid.replace("-", "/"))[:4]
    return base64.b64encode(four).decode().replace("/", "-")


Doubt = collections.namedtuple("Doubt", "writer kind stamp")


class Outcome:
    """One committed write of a document."""

    def __init__(self, kind, range_id, lsn, stamp, document=None):
        self.kind = kind  # "put" or "delete"
        self.range_id = range_id
        self.lsn = lsn
        self.stamp = stamp
        self.document = document

    def __str__(self):
        etag = self.document["_etag"] if self.document else "-"
        return f"{self.kind} {self.stamp} LSN {self.range_id}:{self.lsn} etag {etag}"


class Range:
    """One physical partition: the LSNs seen in it."""

    def __init__(self):
        self.lsns = {}  # LSN -> the write that has it
        self.head = 1
        self.times = []  # (LSN, _ts) of the writes since the last check
        self.last_time = (0, 0)
        self.last_number = 0  # the highest document number at the last check
        self.highest_number = 0


class Container:
    """One life of a container, from its creation to its deletion, known by its rid."""

    def __init__(self, rid):
        self.rid = rid
        self.body = None
        self.promised = {}  # (pk, id) -> Outcome with the highest LSN
        self.ranges = collections.defaultdict(Range)
        self.rid_owner = {}  # document rid -> (pk, id)
        self.created_rids = set()  # rids that a 201 has named


class ContainerName:
    """The known state of the container of one name."""

    def __init__(self, database, name, durable_name=False):
        self.database = database
        self.name = name
        self.link = f"dbs/{database.name}/colls/{name}"
        self.never_deleted = durable_name
        self.container = None  # the promised life, None when it is promised to be absent
        self.doubt = None  # "create", "delete"
        self.throughput = None  # of the last creation
        self.own_offer = True
        self.lives = {}  # rid -> Container
        self.dead = {}  # rid -> when its deletion was acknowledged
        self.doubts = collections.defaultdict(list)  # (pk, id) -> [Doubt]
        self.doubts_ever = 0

    def life(self, rid):
        if rid not in self.lives:
            self.lives[rid] = Container(rid)
        return self.lives[rid]

    def bury(self):
        if self.container is not None:
            self.dead[self.container.rid] = time.monotonic()
        self.container = None
        self.doubt = None


class DatabaseName:
    def __init__(self, name):
        self.name = name
        self.link = f"dbs/{name}"
        self.body = None  # the promised database, None when it is promised to be absent
        self.doubt = None
        self.offer = False
        self.dead_rids = []
        self.containers = {}

    def container(self, name, never_deleted=False):
        if name not in self.containers:
            self.containers[name] = ContainerName(self, name, never_deleted)
        return self.containers[name]

    def bury(self):
        if self.body is not None:
            self.dead_rids.append(self.body["_rid"])
        self.body = None
        self.doubt = None
        for container in self.containers.values():
            container.bury()


class Promises:
    """All promises of one account. The methods that writers call are thread-safe."""

    def __init__(self, port):
        self.port = port
        self.lock = threading.RLock()
        self.databases = {}
        self.foreign = set()  # names of databases that somebody else checks
        self.violations = []
        self.acknowledged = 0
        self.catalog_acknowledged = 0
        self.doubts_kept = 0
        self.doubts_dropped = 0
        self.checks = 0

    def database(self, name):
        with self.lock:
            if name not in self.databases:
                self.databases[name] = DatabaseName(name)
            return self.databases[name]

    def violate(self, text):
        with self.lock:
            self.violations.append(text)

    # ── Documents: called by writers ──────────────────────────────────────────────────────────

    def doubt(self, where, key, writer, kind, stamp):
        """A write that got no answer, or one that leaves it open."""
        with self.lock:
            where.doubts[key].append(Doubt(writer, kind, stamp))
            where.doubts_ever += 1

    def acknowledge(self, where, key, writer, kind, stamp, response, sent_at):
        """A write that was answered with success."""
        with self.lock:
            self.acknowledged += 1
            name = f"{where.link} {key} {stamp}"
            rid = response["x-ms-content-path"]
            token = response["x-ms-session-token"]
            if rid is None or token is None:
                return self.violate(f"{name}: an answer without x-ms-content-path or session token")
            if where.dead.get(rid, sent_at) < sent_at:
                self.violate(f"{name}: written into a container that was deleted before")
            container = where.life(rid)
            heads = parse_session_token(token)
            if len(heads) != 1:
                return self.violate(f"{name}: the session token of a write is {token}")
            ((range_id, lsn),) = heads.items()
            document = response.json if kind == "put" else None
            outcome = Outcome(kind, range_id, lsn, stamp, document)
            self._take_lsn(container, outcome, name)
            if document is not None:
                self._judge_written(container, key, outcome, response, name)
            # Earlier doubts of the same writer are settled: they came earlier in the log or never.
            if key in where.doubts:
                where.doubts[key] = [d for d in where.doubts[key] if d.writer != writer]
            before = container.promised.get(key)
            if before is None or before.lsn < lsn:
                container.promised[key] = outcome

    def _take_lsn(self, container, outcome, name):
        place = container.ranges[outcome.range_id]
        if outcome.lsn in place.lsns:
            self.violate(f"{name}: LSN {outcome.range_id}:{outcome.lsn} was given twice, before "
                         f"to {place.lsns[outcome.lsn]}")
        place.lsns[outcome.lsn] = f"{outcome.kind} {name}"
        place.head = max(place.head, outcome.lsn)
        if outcome.document is not None:
            place.times.append((outcome.lsn, outcome.document["_ts"]))

    def _judge_written(self, container, key, outcome, response, name):
        document = outcome.document
        item_lsn = response["x-ms-item-lsn"]
        if item_lsn is not None and int(item_lsn) != outcome.lsn:
            self.violate(f"{name}: x-ms-item-lsn {item_lsn}, but its session token has "
                         f"{outcome.lsn}")
        if response["etag"] != document["_etag"]:
            self.violate(f"{name}: etag header and _etag differ")
        if (document["pk"], document["id"], document["stamp"]) != (*key, outcome.stamp):
            self.violate(f"{name}: the answer shows another document: {document}")
        self._take_rid(container, key, outcome, name)
        if response.status == 201:
            rid = document["_rid"]
            number = document_number(rid)[1]
            if rid in container.created_rids:
                self.violate(f"{name}: _rid {rid} was given twice")
            container.created_rids.add(rid)
            if number <= container.ranges[outcome.range_id].last_number:
                self.violate(f"{name}: document number {number} is not above those before the "
                             f"restart")

    def _take_rid(self, container, key, outcome, name):
        rid = outcome.document["_rid"]
        if container.rid_owner.setdefault(rid, key) != key:
            self.violate(f"{name}: _rid {rid} belongs to {container.rid_owner[rid]}")
        place = container.ranges[outcome.range_id]
        place.highest_number = max(place.highest_number, document_number(rid)[1])

    # ── Reading everything back ───────────────────────────────────────────────────────────────

    def check(self):
        """Compares the whole account with what was promised, and settles the doubts. No writer may
        run meanwhile."""
        self.checks += 1
        connection = wire.connect(self.port)
        readers = threading.local()

        def point_read(link, headers):
            if not hasattr(readers, "connection"):
                readers.connection = wire.connect(self.port)
                opened.append(readers.connection)
            return readers.connection.get(f"/{link}", headers)

        opened = [connection]
        try:
            with concurrent.futures.ThreadPoolExecutor(POINT_READERS) as pool:
                offers, pages = connection.all_of("/offers", "Offers")
                if pages[-1].status != 200:
                    return self.violate(f"GET /offers: {pages[-1]}")
                self._check_account(connection, offers, pool, point_read)
        finally:
            for each in opened:
                each.close()

    def _check_account(self, connection, offers, pool, point_read):
        offers_of = collections.Counter(offer["offerResourceId"] for offer in offers)
        found = set()
        for database in list(self.databases.values()):
            if not self._check_database(connection, database):
                continue
            found.add(database.name)
            self._check_offer(offers_of, database.body["_rid"], database.offer, database.link)
            found_containers = set()
            for where in list(database.containers.values()):
                if self._check_container(connection, where):
                    found_containers.add(where.name)
                    self._check_offer(offers_of, where.container.rid, where.own_offer, where.link)
                    self._check_ranges(connection, where)
                    self._check_documents(connection, where, pool, point_read)
                self._check_dead(connection, where)
                where.doubts.clear()
            self._compare_listing(connection, f"/{database.link}/colls", "DocumentCollections",
                                  found_containers)
        self._compare_listing(connection, "/dbs", "Databases", found | self.foreign)
        for rid in offers_of:
            if not self._is_foreign(connection, rid):
                self.violate(f"an offer is left over for {rid}, which does not exist")

    def _is_foreign(self, connection, rid):
        foreign = {connection.get(f"/dbs/{name}").json.get("_rid") for name in self.foreign}
        return database_rid_of(rid) in foreign

    def _compare_listing(self, connection, path, member, expected):
        resources, pages = connection.all_of(path, member)
        listed = [resource["id"] for resource in resources]
        if pages[-1].status != 200 or sorted(listed) != sorted(expected):
            self.violate(f"{path}: listed {sorted(listed)}, but readable "
                         f"are {sorted(expected)}; {pages[-1].status}")

    def _check_database(self, connection, database):
        """Settles whether it is there. Returns that."""
        response = connection.get(f"/{database.link}")
        if response.status == 200:
            body = response.json
            if database.body is not None:
                if canonical(body) != canonical(database.body):
                    self.violate(f"{database.link}: is {body}, promised was {database.body}")
            elif database.doubt != "create":
                self.violate(f"{database.link}: is there, although its deletion was acknowledged "
                             f"or its creation never asked for")
            elif body["_rid"] in database.dead_rids:
                self.violate(f"{database.link}: has the rid of a deleted one")
            self._count_doubt(database.doubt, database.doubt == "create")
            database.body, database.doubt = body, None
            return True
        if response.status != 404:
            self.violate(f"{database.link}: {response}")
        elif database.body is not None and database.doubt != "delete":
            self.violate(f"{database.link}: its creation was acknowledged, and it is gone")
        self._count_doubt(database.doubt, database.doubt == "delete")
        database.bury()
        for where in database.containers.values():
            self._expect_gone(connection, where)
            self._check_dead(connection, where)
            where.doubts.clear()
        return False

    def _expect_gone(self, connection, where):
        for response in (connection.get(f"/{where.link}"), connection.get(f"/{where.link}/docs")):
            if response.status != 404:
                self.violate(f"{where.link}: its database is gone, and it answers {response}")

    def _count_doubt(self, doubt, kept):
        if doubt is not None:
            self.doubts_kept += kept
            self.doubts_dropped += not kept

    def _check_container(self, connection, where):
        """Settles whether it is there. Returns that."""
        response = connection.get(f"/{where.link}")
        doubt, where.doubt = where.doubt, None
        self._count_doubt(doubt, (response.status == 200) == (doubt == "create"))
        if response.status == 200:
            body = response.json
            container = where.life(body["_rid"])
            if where.container is None and doubt != "create":
                self.violate(f"{where.link}: is there, although its deletion was acknowledged or "
                             f"its creation never asked for")
            if where.container is not None and where.container is not container:
                self.violate(f"{where.link}: rid {container.rid}, promised was "
                             f"{where.container.rid}")
            if container.rid in where.dead:
                self.violate(f"{where.link}: has the rid of a deleted one")
            if container.body is not None and canonical(container.body) != canonical(body):
                self.violate(f"{where.link}: is {body}, promised was {container.body}")
            container.body = body
            where.container = container
            return True
        if response.status != 404:
            self.violate(f"{where.link}: {response}")
        elif where.container is not None and doubt != "delete":
            self.violate(f"{where.link}: its creation was acknowledged, and it is gone")
        elif where.container is None:
            for life in where.lives.values():
                if life.rid not in where.dead and life.promised:
                    self.violate(f"{where.link}: documents were acknowledged in {life.rid}, and "
                                 f"the container is gone")
        for life in where.lives.values():
            where.dead.setdefault(life.rid, time.monotonic())
        where.bury()
        ranges = connection.get(f"/{where.link}/pkranges")
        documents = connection.get(f"/{where.link}/docs")
        if ranges.status != 404 or documents.status != 404:
            self.violate(f"{where.link}: gone, but pkranges answers {ranges.status} and docs "
                         f"{documents.status}")
        return False

    def _check_offer(self, offers_of, rid, expected, name):
        count = offers_of.pop(rid, 0)
        if count != int(expected):
            self.violate(f"{name}: {count} offers instead of {int(expected)}")

    def _check_ranges(self, connection, where):
        ranges, pages = connection.all_of(f"/{where.link}/pkranges", "PartitionKeyRanges")
        if pages[-1].status != 200:
            return self.violate(f"{where.link}: pkranges {pages[-1]}")
        ranges.sort(key=lambda each: each["minInclusive"])
        edges = [each["minInclusive"] for each in ranges] + ["FF"]
        ends = [""] + [each["maxExclusive"] for each in ranges]
        if edges != ends:
            self.violate(f"{where.link}: the ranges do not tile: {edges} {ends}")
        wanted = RANGES_BY_THROUGHPUT[where.throughput]
        if len(ranges) != wanted:
            self.violate(f"{where.link}: {len(ranges)} ranges instead of {wanted}")

    def _check_dead(self, connection, where):
        """A deleted container is gone from the paths that name it by rid, too."""
        for rid in list(where.dead)[-DEAD_RIDS_CHECKED:]:
            path = f"/dbs/{database_rid_of(rid)}/colls/{rid}"
            for gone in (path, f"{path}/docs"):
                response = connection.get(gone)
                if response.status != 404:
                    self.violate(f"{gone}: deleted, and answers {response}")

    def _check_documents(self, connection, where, pool, point_read):
        container = where.container
        documents, pages = connection.all_of(f"/{where.link}/docs", "Documents")
        if pages[-1].status != 200:
            return self.violate(f"{where.link}: read feed {pages[-1]}")
        listed = {}
        for document in documents:
            key = (document["pk"], document["id"])
            if key in listed:
                self.violate(f"{where.link} {key}: twice in the read feed")
            listed[key] = document
        keys = sorted({*container.promised, *listed, *where.doubts})
        answers = pool.map(
            lambda key: point_read(f"{where.link}/docs/{key[1]}", wire.of_key(key[0])),
            keys)
        for key, response in zip(keys, answers):
            self._judge_read(where, key, response)
            there = canonical(response.json) if response.status == 200 else None
            if there != (canonical(listed[key]) if key in listed else None):
                self.violate(f"{where.link} {key}: half there: point read {response}, read feed "
                             f"{listed.get(key)}")
        for key in keys[::max(1, len(keys) // RID_READS_PER_CONTAINER)]:
            if key in listed:
                self._check_by_rid(connection, key, listed[key])
        self._check_heads(where, pages)

    def _check_by_rid(self, connection, key, document):
        response = connection.get("/" + document["_self"].rstrip("/"), wire.of_key(key[0]))
        if response.status != 200 or canonical(response.json) != canonical(document):
            self.violate(f"{document['_self']} {key}: read by rid {response}, by name {document}")

    def _judge_read(self, where, key, response):
        """Holds what a point read shows against what was promised, and makes it the promise."""
        container = where.container
        name = f"{where.link} {key}"
        promised = container.promised.get(key)
        doubts = where.doubts.get(key, [])
        if response.status == 404:
            container.promised.pop(key, None)
            if promised is None or promised.kind == "delete":
                self.doubts_dropped += len(doubts)
            elif any(d.kind == "delete" for d in doubts):
                self.doubts_kept += 1
            else:
                self.violate(f"{name}: LOST: acknowledged {promised}, now 404")
            return
        if response.status != 200:
            return self.violate(f"{name}: {response}")
        document = response.json
        if response["etag"] != document["_etag"]:
            self.violate(f"{name}: etag header and _etag differ")
        if response["x-ms-item-lsn"] is None:
            return self.violate(f"{name}: a point read without x-ms-item-lsn")
        (range_id,) = parse_session_token(response["x-ms-session-token"])
        found = Outcome("put", range_id, int(response["x-ms-item-lsn"]),
                        document.get("stamp"), document)
        if promised is not None and promised.kind == "put" and promised.stamp == found.stamp:
            if (canonical(promised.document) != canonical(document)
                    or (promised.range_id, promised.lsn) != (found.range_id, found.lsn)):
                self.violate(f"{name}: acknowledged {promised}, now {found}")
            self.doubts_dropped += len(doubts)
            return
        # Not the acknowledged version, so it must be a write that was left open, and a later one.
        if not any(d.kind == "put" and d.stamp == found.stamp for d in doubts):
            self.violate(f"{name}: acknowledged {promised}, left open {doubts}, now {found}")
        elif promised is not None and found.lsn <= promised.lsn:
            self.violate(f"{name}: {found} is there, but {promised} came later")
        else:
            self._take_lsn(container, found, name)
            self._take_rid(container, key, found, name)
        self.doubts_kept += 1
        container.promised[key] = found

    def _check_heads(self, where, pages):
        container = where.container
        heads = {}
        for page in pages:
            for range_id, lsn in parse_session_token(page["x-ms-session-token"]).items():
                heads[range_id] = max(lsn, heads.get(range_id, 0))
        unknown = 0
        for range_id, place in container.ranges.items():
            head = heads.get(range_id)
            if head is not None and head < place.head:
                self.violate(f"{where.link}: the head of range {range_id} is {head}, but LSN "
                             f"{place.head} was acknowledged or read: "
                             f"{place.lsns[place.head]}")
            if head is not None:
                unknown += max(0, head - 1 - len(place.lsns))
            place.times.sort()
            for lsn, seconds in place.times:
                if seconds < place.last_time[1] and lsn > place.last_time[0]:
                    self.violate(f"{where.link}: _ts {seconds} at LSN {lsn} of range {range_id} is "
                                 f"before {place.last_time[1]} at LSN {place.last_time[0]}")
                place.last_time = max(place.last_time, (lsn, seconds))
            place.times.clear()
            place.last_number = place.highest_number
        # LSNs are dense: one that no answer has named belongs to a write without an answer. (A
        # container that was created again may start higher.)
        if where.never_deleted and unknown > where.doubts_ever:
            self.violate(f"{where.link}: {unknown} LSNs belong to nothing, only "
                         f"{where.doubts_ever} writes were left open")
