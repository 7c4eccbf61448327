"""Writers that never rest: documents in containers of one and of several ranges, and containers and
databases that come and go. Everything they learn goes into Promises."""

import json
import random
import threading
import time

from harness import wire

STABLE_DATABASE = "stable"
STABLE_CONTAINERS = {"one": 400, "three": 15000, "five": 30000}
KEYS = 60
IDS_PER_WRITER = 24
HOT_IDS = 6  # written by everybody
PADDING_MAX = 1500
LARGE_PADDING = 120_000  # now and then, so that memtables fill and files are made

CHURN_DATABASES = 2  # per churner
CHURN_CONTAINERS = 3  # per database


def create_container_request(container_id, throughput, version=2):
    body = {"id": container_id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": version}}
    headers = {} if throughput is None else {"x-ms-offer-throughput": str(throughput)}
    return body, headers


def set_up(promises, port):
    """Makes the containers that stay."""
    connection = wire.connect(port)
    database = promises.database(STABLE_DATABASE)
    response = connection.post("/dbs", {"id": STABLE_DATABASE})
    assert response.status == 201, response
    database.body = response.json
    for version, (name, throughput) in enumerate(STABLE_CONTAINERS.items()):
        where = database.container(name, never_deleted=True)
        body, headers = create_container_request(name, throughput, version=1 if version == 1 else 2)
        response = connection.post(f"/{database.link}/colls", body, headers)
        assert response.status == 201, response
        where.container = where.life(response.json["_rid"])
        where.container.body = response.json
        where.throughput = throughput
    connection.close()


class Worker(threading.Thread):
    """Makes one request after the other until told to stop or until the server is gone.

    refused(response, sent_at) is called with a 503, whose write is then in doubt; without it a 503
    is a violation. So is a connection that breaks before may_break is set. accepted(sent_at) is
    called with every write that succeeds.
    """

    def __init__(self, name, promises, port, seed, stop, may_break=None, refused=None,
                 accepted=None):
        super().__init__(name=name, daemon=True)
        self.promises = promises
        self.connection = wire.connect(port)
        self.random = random.Random(f"{seed}/{name}")
        self.seed = seed
        self.stop = stop
        self.may_break = may_break
        self.refused = refused
        self.accepted = accepted
        self.successes = 0

    def run(self):
        try:
            while not self.stop.is_set():
                self.step()
        except wire.NoAnswer as failure:
            if self.may_break is None or not self.may_break.is_set():
                self.promises.violate(f"{self.name}: no answer from a living server: {failure}")
        except Exception as error:  # a worker that dies silently would be a test that tests less
            self.promises.violate(f"{self.name}: {type(error).__name__}: {error}")
        finally:
            self.connection.close()

    def succeeded(self, sent_at):
        self.successes += 1
        if self.accepted is not None:
            self.accepted(sent_at)

    def leaves_open(self, response, sent_at):
        """Whether the answer is a refusal that says nothing about the outcome."""
        if response.status != 503 or self.refused is None:
            return False
        self.refused(response, sent_at)
        # As a client would: come back later, but not too much later for a test.
        self.stop.wait(min(int(response["x-ms-retry-after-ms"] or 1), 20) / 1000)
        return True


class DocumentWriter(Worker):
    def __init__(self, *arguments, padding_max=PADDING_MAX):
        super().__init__(*arguments)
        self.count = 0
        self.padding_max = padding_max

    def step(self):
        where = self.choose_container()
        if where is None:
            return
        owned = where.never_deleted and self.random.random() < 0.9
        number = self.random.randrange(IDS_PER_WRITER if owned else HOT_IDS)
        document_id = f"{self.name}-{number}" if owned else f"hot-{number}"
        pk = f"k{hash_of(document_id) % KEYS}"
        self.write(where, (pk, document_id), owned)

    def choose_container(self):
        """Mostly a container that stays; sometimes one that may vanish under our hands."""
        databases = self.promises.databases
        if self.random.random() < 0.15:
            others = [c for d in list(databases.values()) if d.name != STABLE_DATABASE
                      for c in list(d.containers.values()) if c.container is not None]
            if others:
                return self.random.choice(others)
        stable = databases[STABLE_DATABASE].containers
        return stable[self.random.choice(list(STABLE_CONTAINERS))]

    def write(self, where, key, owned):
        operation = self.random.choices(
            ["create", "replace", "upsert", "delete", "replace-if"], [35, 20, 25, 15, 5])[0]
        life = where.container
        known = life.promised.get(key) if life is not None else None
        exists = known is not None and known.kind == "put"
        # Only of a document that nobody else writes do we know beforehand what must happen.
        certain = owned and not where.doubts.get(key)
        if operation == "replace-if" and not (certain and exists):
            operation = "upsert"
        expected = {
            "create": {409} if exists else {201},
            "replace": {200} if exists else {404},
            "upsert": {200} if exists else {201},
            "delete": {204} if exists else {404},
            "replace-if": {200},
        }[operation]
        if not certain:
            expected = {"create": {201, 409}, "replace": {200, 404}, "upsert": {200, 201},
                        "delete": {204, 404}}[operation]
        if not where.never_deleted:
            expected = expected | {404}
        self.send(where, key, operation, expected, known)

    def send(self, where, key, operation, expected, known):
        self.count += 1
        stamp = f"{self.seed}/{self.name}/{self.count}"
        headers = wire.of_key(key[0])
        kind = "delete" if operation == "delete" else "put"
        body = b"" if kind == "delete" else self.body(key, stamp)
        sent_at = time.monotonic()
        try:
            if operation in ("create", "upsert"):
                if operation == "upsert":
                    headers["x-ms-documentdb-is-upsert"] = "True"
                response = self.connection.post(f"/{where.link}/docs", body, headers)
            else:
                if operation == "replace-if":
                    headers["if-match"] = known.document["_etag"]
                link = f"{where.link}/docs/{key[1]}"
                response = self.connection.request("DELETE" if kind == "delete" else "PUT", f"/{link}", body,
                                                   headers)
        except wire.NoAnswer as failure:
            if failure.sent:
                self.promises.doubt(where, key, self.name, kind, stamp)
            raise
        if response.status in (200, 201, 204):
            self.promises.acknowledge(where, key, self.name, kind, stamp, response, sent_at)
            self.succeeded(sent_at)
        elif self.leaves_open(response, sent_at):
            self.promises.doubt(where, key, self.name, kind, stamp)
            return response
        if response.status not in expected:
            self.promises.violate(f"{where.link} {key}: {operation} {stamp} should answer "
                                  f"{expected}, known is {known}; it answers {response}")
        return response

    def body(self, key, stamp):
        padding = (LARGE_PADDING if self.random.random() < 0.01
                   else self.random.randrange(self.padding_max))
        return json.dumps({"id": key[1], "pk": key[0], "stamp": stamp,
                           "padding": self.random.choice("abcdef") * padding}).encode()


class Churner(Worker):
    """Creates and deletes databases and containers of its own. `began` is set at every request that
    changes the catalog, so that a test can kill the server right then."""

    def __init__(self, *arguments, began=None):
        super().__init__(*arguments)
        self.began = began
        self.databases = [self.promises.database(f"{self.name}-db{i}")
                          for i in range(CHURN_DATABASES)]

    def step(self):
        free = [d for d in self.databases if d.doubt is None]
        if not free:
            self.stop.wait(0.05)  # all in doubt until the next check
            return
        database = self.random.choice(free)
        if database.body is None:
            return self.create_database(database)
        if self.random.random() < 0.08:
            return self.change("delete", database, f"/{database.link}")
        where = database.container(f"c{self.random.randrange(CHURN_CONTAINERS)}")
        if where.doubt is not None:
            self.stop.wait(0.001)
        elif where.container is None:
            self.create_container(where)
        else:
            self.change("delete", where, f"/{where.link}")

    def create_database(self, database):
        with_offer = self.random.random() < 0.3
        headers = {"x-ms-offer-throughput": "400"} if with_offer else {}
        database.offer = with_offer
        self.change("create", database, "/dbs", {"id": database.name}, headers)

    def create_container(self, where):
        throughput = self.random.choice([None, 400, 15000])
        body, headers = create_container_request(where.name, throughput)
        where.throughput = throughput
        # Without its own throughput it shares the database's, or gets the default offer.
        where.own_offer = throughput is not None or not where.database.offer
        self.change("create", where, f"/{where.database.link}/colls", body, headers)

    def change(self, what, target, path, body=None, headers=None):
        if self.began is not None:
            self.began.set()
        sent_at = time.monotonic()
        try:
            if what == "create":
                response = self.connection.post(path, body, headers)
            else:
                response = self.connection.delete(path, headers)
        except wire.NoAnswer as failure:
            if failure.sent:
                target.doubt = what
            raise
        if self.leaves_open(response, sent_at):
            target.doubt = what
            return
        if response.status != (201 if what == "create" else 204):
            return self.promises.violate(f"{what} {target.link}: {response}")
        self.succeeded(sent_at)
        with self.promises.lock:
            self.promises.catalog_acknowledged += 1
            if what == "delete":
                return target.bury()
            resource = response.json
            if path == "/dbs":
                if resource["_rid"] in target.dead_rids:
                    self.promises.violate(f"{target.link}: has the rid of a deleted one")
                target.body = resource
                return
            if resource["_rid"] in target.dead:
                self.promises.violate(f"{target.link}: has the rid of a deleted one")
            target.container = target.life(resource["_rid"])
            target.container.body = resource


def probe_heads(promises, port, seed):
    """One write to every range of the containers that stay: its LSN must be above every LSN that
    was acknowledged before, its document number above every other."""
    prober = DocumentWriter("probe", promises, port, seed, threading.Event())
    for where in promises.databases[STABLE_DATABASE].containers.values():
        heads = {range_id: place.head for range_id, place in where.container.ranges.items()}
        missing = set(heads)
        for number in range(KEYS):
            key = (f"k{number}", f"probe-{number}")
            response = prober.send(where, key, "create", {201}, None)
            outcome = where.container.promised.get(key)
            if outcome is None:
                promises.violate(f"{where.link}: a write after the restart answers {response}")
                break
            if outcome.range_id in missing:
                missing.remove(outcome.range_id)
                if outcome.lsn <= heads[outcome.range_id]:
                    promises.violate(f"{where.link}: LSN {outcome.lsn} in range {outcome.range_id} "
                                     f"after the restart, but {heads[outcome.range_id]} was there")
            prober.send(where, key, "delete", {204}, outcome)
            if not missing:
                break
        if missing:
            promises.violate(f"{where.link}: no key of {KEYS} leads to the ranges {missing}")
    prober.connection.close()


def hash_of(text):
    """Python's own hash differs from run to run; a replay needs one that does not."""
    value = 0
    for byte in text.encode():
        value = (value * 131 + byte) & 0xFFFFFFFF
    return value
