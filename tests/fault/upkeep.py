"""Background work of the server, under crashes: indexes are built while documents are written, documents expire.

Two containers of their own database. In `indexed` composite indexes are added and dropped without end; after a
restart every way to the documents must show the same. In `expiring` documents have a TTL; after a restart none is
gone before its time, and none is shown after it.
"""

import time

from feeds import Worker
from harness import wire

DATABASE = "upkeep"
DOCUMENTS = 60
VALUES = 7
WRITES_PER_CYCLE = 150
SLACK_SECONDS = 1.5  # the second in which a document expires, and the test's own slowness
QUERY = {"x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True",
         "x-ms-max-item-count": "-1"}


class Container:
    def __init__(self, name, members):
        self.name, self.link = name, f"dbs/{DATABASE}/colls/{name}"
        self.definition = {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}} | members
        self.known = {}  # id -> document, as acknowledged; None: deleted, or gone
        self.doubt = {}  # id -> documents that may be there instead


def key_of(name):
    return f"k{int(name[1:]) % 5}"


class Upkeep:
    def __init__(self, promises, port):
        self.promises, self.port = promises, port
        self.indexed = Container("indexed", {})
        self.expiring = Container("expiring", {"defaultTtl": -1})
        self.policies = 0
        self.expired = 0

    def set_up(self):
        connection = wire.connect(self.port)
        assert connection.post("/dbs", {"id": DATABASE}).status == 201
        self.promises.foreign.add(DATABASE)
        for container in (self.indexed, self.expiring):
            response = connection.post(f"/dbs/{DATABASE}/colls", container.definition)
            assert response.status == 201, response
        connection.close()

    def violate(self, text):
        self.promises.violate(f"upkeep: {text}")

    def workers(self, seed, killed):
        """Threads for one cycle, not yet started."""
        return [Writer(self, self.indexed, seed, killed, with_ttl=False),
                Writer(self, self.expiring, seed, killed, with_ttl=True),
                Indexer(self, self.indexed, seed, killed)]

    # ── After a restart ───────────────────────────────────────────────────────────────────────

    def check(self):
        connection = wire.connect(self.port)
        try:
            for container in (self.indexed, self.expiring):
                for name in list(container.known.keys() | container.doubt.keys()):
                    self.settle(connection, container, name)
                container.doubt.clear()
            self.check_queries(connection)
        finally:
            connection.close()

    def settle(self, connection, container, name):
        """The acknowledged version, or one that was left open."""
        response = connection.get(f"/{container.link}/docs/{name}", wire.of_key(key_of(name)))
        if response.status not in (200, 404):
            return self.violate(f"{container.name} {name}: {response}")
        found = response.json if response.status == 200 else None
        now = time.time()
        possible = [container.known.get(name), *container.doubt.get(name, [])]
        if found is None:
            if not any(each is None or may_be_gone(each, now) for each in possible):
                self.violate(f"{container.name} {name}: acknowledged {possible}, and it is gone")
            self.expired += container is self.expiring and container.known.get(name) is not None
        elif found["stamp"] not in [each["stamp"] for each in possible if each is not None]:
            self.violate(f"{container.name} {name}: {found}, which is none of {possible}")
        elif must_be_gone(found, now):
            self.violate(f"{container.name} {name}: {found} is shown after it has expired")
        container.known[name] = found

    def check_queries(self, connection):
        wanted = {}
        for name, document in self.indexed.known.items():
            if document is not None:
                wanted.setdefault(document["n"], set()).add(name)
        for value in range(VALUES):
            self.compare(connection, f"SELECT VALUE c.id FROM c WHERE c.n = {value}", wanted.get(value, set()))
        everything = set().union(*wanted.values()) if wanted else set()
        self.compare(connection, "SELECT VALUE c.id FROM c WHERE c.n >= 0", everything)

    def compare(self, connection, text, wanted):
        found, headers = [], dict(QUERY)
        while True:
            response = connection.post(f"/{self.indexed.link}/docs", {"query": text}, headers)
            if response.status != 200:
                return self.violate(f"{text}: {response}")
            found += response.json["Documents"]
            if response["x-ms-continuation"] is None:
                break
            headers["x-ms-continuation"] = response["x-ms-continuation"]
        if sorted(found) != sorted(wanted):
            self.violate(f"{text}: missing {wanted - set(found)}, too many {set(found) - wanted}, "
                         f"{len(found) - len(set(found))} twice")


def may_be_gone(document, now):
    return "ttl" in document and now >= document["_ts"] + document["ttl"] - SLACK_SECONDS


def must_be_gone(document, now):
    return "ttl" in document and now >= document["_ts"] + document["ttl"] + SLACK_SECONDS


class Writer(Worker):
    """Owns all documents of its container."""

    def __init__(self, upkeep, container, seed, killed, with_ttl):
        super().__init__(upkeep, container, "upkeep writer", seed, killed)
        self.seed, self.with_ttl, self.count = seed, with_ttl, 0

    def step(self):
        if self.count == WRITES_PER_CYCLE:
            return False
        self.count += 1
        name = f"d{self.random.randrange(DOCUMENTS)}"
        key, link = wire.of_key(key_of(name)), f"{self.container.link}/docs/{name}"
        deletes = self.random.random() < 0.15
        body = {"id": name, "pk": key_of(name), "stamp": f"{self.seed}/{self.container.name}/{self.count}",
                "n": self.random.randrange(VALUES), "m": self.random.random()}
        if self.with_ttl and self.random.random() < 0.7:
            body["ttl"] = self.random.randrange(1, 6)
        try:
            if deletes:
                response = self.connection.delete(f"/{link}", key)
            else:
                response = self.connection.post(f"/{self.container.link}/docs", body, key | wire.UPSERT)
        except wire.NoAnswer as failure:
            if failure.sent:
                self.leave_open(name, None if deletes else body)
            raise
        if response.status in (200, 201, 204) or (deletes and response.status == 404):
            self.successes += 1
            self.container.known[name] = None if deletes else response.json
            self.container.doubt.pop(name, None)
            return True
        self.leave_open(name, None if deletes else body)
        return not self.going_down(response)

    def leave_open(self, name, document):
        if document is not None:
            document["_ts"] = time.time()  # about; what is found tells
        self.container.doubt.setdefault(name, []).append(document)


class Indexer(Worker):
    """Replaces the indexing policy, one after the other."""

    def __init__(self, upkeep, container, seed, killed):
        super().__init__(upkeep, container, "indexer", seed, killed)

    def step(self):
        paths = self.random.sample(["/n", "/m", "/stamp", "/id"], self.random.choice([2, 3]))
        policy = {"compositeIndexes": [[{"path": path} for path in paths]]} if self.random.random() < 0.8 else {}
        link = self.container.link
        response = self.connection.put(f"/{link}", self.container.definition | {"indexingPolicy": policy})
        if response.status != 200:
            return not self.going_down(response)
        self.successes += 1
        self.feeds.policies += 1
        # So that some indexes are complete when the server is killed, and some are not.
        return not self.killed.wait(self.random.uniform(0, 0.2))
