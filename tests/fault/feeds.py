"""Change feeds under crashes: a reader that resumes from an earlier etag misses nothing and
sees nothing twice, whatever was killed meanwhile, a split or a merge included.

Two containers of their own database, one with full history. Each key has one writer, which knows what it
wrote; followers read along and keep every etag they get; a third party splits and merges. After a restart
`check` settles what was left open, reads both feeds from the beginning, and then again from the etags.
"""

import collections
import random
import threading

from harness import wire
from promises import parse_session_token

DATABASE = "feeds"
WRITERS = 2
WRITES_PER_CYCLE = 120  # bounds the history that every check reads
NAMES = 5  # of documents per key
RANGES_MAX = 4
ETAGS_CHECKED = 30
PAGES_MAX = 20_000

INCREMENTAL = {"a-im": "Incremental feed"}
ALL_VERSIONS = {"a-im": "Full-Fidelity Feed", "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15"}

# Keys with their effective partition keys, so that the test knows what a range holds.
EPKS = {"partitionKey": "013AEFCF77FA271571CF665A58C933F1", "aa": "05033626483AE80D00E44FBD35362B19",
        "redmond": "22E342F38A486A088463DFF7838A5963", "Hello World": "306C52B42DECB3AE9D3C7586975E30B9",
        "": "32E9366E637A71B4E710384B2F4970A0", "a": "3A5381E1114EB8D3FCC90795045B49B7"}

Version = collections.namedtuple("Version", "lsn kind name stamp")  # kind: put, delete
Checkpoint = collections.namedtuple("Checkpoint", "all_versions low high after")


class Container:
    def __init__(self, name, has_history):
        self.name, self.has_history = name, has_history
        self.link = f"dbs/{DATABASE}/colls/{name}"
        self.log = {key: [] for key in EPKS}  # Versions, in order
        self.doubt = {}  # key -> operations of the one transaction that got no answer
        self.ranges = []
        self.checkpoints = []
        self.seen = set()  # (key, Version) that some follower was shown
        self.change = None  # (ids before, how many go, how many come) of a split or merge without an answer

    def live(self):
        """{(key, name): Version} by what is known."""
        last = {}
        for key, versions in self.log.items():
            for version in versions:
                last[key, version.name] = version
        return {place: version for place, version in last.items() if version.kind == "put"}

    def commit(self, key, lsn, operations):
        self.log[key] += [Version(lsn, kind, name, stamp) for kind, name, stamp in operations]


def version_of(item):
    """(key, Version) of an item in either mode."""
    if "current" not in item:
        return item["pk"], Version(item["_lsn"], "put", item["id"], item["stamp"])
    metadata, current = item["metadata"], item["current"]
    if metadata["operationType"] == "delete":
        return metadata["partitionKey"]["pk"], Version(metadata["lsn"], "delete", metadata["id"], None)
    return current["pk"], Version(metadata["lsn"], "put", current["id"], current["stamp"])


class Feeds:
    def __init__(self, promises, port):
        self.promises, self.port = promises, port
        self.containers = [Container("latest", False), Container("history", True)]
        self.etags = 0
        self.resumed = 0
        self.changes = 0

    def set_up(self):
        connection = wire.connect(self.port)
        assert connection.post("/dbs", {"id": DATABASE}).status == 201
        self.promises.foreign.add(DATABASE)
        for container in self.containers:
            body = {"id": container.name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
            if container.has_history:
                body["changeFeedPolicy"] = {"retentionDuration": 1440}
            response = connection.post(f"/dbs/{DATABASE}/colls", body)
            assert response.status == 201, response
            container.ranges = ranges_of(connection, container)
        connection.close()

    def violate(self, text):
        self.promises.violate(f"feeds: {text}")

    def workers(self, seed, killed):
        """Threads for one cycle, not yet started."""
        found = []
        for container in self.containers:
            keys = list(EPKS)
            for number in range(WRITERS):
                found.append(Writer(self, container, keys[number::WRITERS], f"{seed}/{container.name}/{number}", killed))
            found.append(Reader(self, container, False, seed, killed))
            found.append(Changer(self, container, f"{seed}/{container.name}", killed))
        found.append(Reader(self, self.containers[1], True, seed, killed))
        return found

    # ── After a restart ───────────────────────────────────────────────────────────────────────

    def check(self, seed):
        chance, connection = random.Random(f"{seed}/feeds"), wire.connect(self.port)
        try:
            for container in self.containers:
                self.check_map(connection, container)
                for key, operations in list(container.doubt.items()):
                    self.settle(connection, container, key, operations)
                container.doubt.clear()
                self.check_feeds(connection, container, chance)
        finally:
            connection.close()

    def check_map(self, connection, container):
        """The old map or the new one."""
        before = {each["id"] for each in container.ranges}
        container.ranges = ranges_of(connection, container)
        after = {each["id"] for each in container.ranges}
        edges = [each["minInclusive"] for each in container.ranges] + ["FF"]
        if edges != [""] + [each["maxExclusive"] for each in container.ranges]:
            self.violate(f"{container.name}: the ranges do not tile: {container.ranges}")
        if container.change is not None:
            before, gone, fresh = container.change
            if after != before and (len(before - after), len(after - before)) != (gone, fresh):
                self.violate(f"{container.name}: {before} was to change by {gone} to {fresh}, and is {after}")
        elif after != before:
            self.violate(f"{container.name}: {before} became {after} by itself")
        container.change = None

    def settle(self, connection, container, key, operations):
        """A transaction without an answer has happened wholly or not at all."""
        last = {name: (kind, stamp) for kind, name, stamp in operations}
        before = {name: version.stamp for (other, name), version in container.live().items() if other == key}
        outcomes, lsns = set(), set()
        for name, (kind, stamp) in last.items():
            response = connection.get(f"/{container.link}/docs/{name}", wire.of_key(key))
            found = response.json["stamp"] if response.status == 200 else None
            if found == before.get(name) and not (found is None and kind == "delete"):
                outcomes.add(False)
            elif found == stamp:
                outcomes.add(True)
                if response.status == 200:
                    lsns.add(int(response["x-ms-item-lsn"]))
            else:
                self.violate(f"{container.name} {key!r} {name}: {response} after {operations}, before {before.get(name)}")
        if len(outcomes) > 1 or len(lsns) > 1:
            return self.violate(f"{container.name} {key!r}: half of {operations}: {outcomes} {lsns}")
        if True in outcomes:
            container.commit(key, lsns.pop() if lsns else self.lsn_of_delete(connection, container, key), operations)

    def lsn_of_delete(self, connection, container, key):
        """Only the history tells; without one nobody asks."""
        if not container.has_history:
            return 0
        after = container.log[key][-1].lsn
        response = connection.get(f"/{container.link}/docs", ALL_VERSIONS | wire.of_key(key) | {"if-none-match": f'"{after}"'})
        if response.status != 200 or len(response.json["Documents"]) != 1:
            self.violate(f"{container.name} {key!r}: a delete has happened, but its history after {after} is {response}")
            return after + 1
        return response.json["Documents"][0]["metadata"]["lsn"]

    def check_feeds(self, connection, container, chance):
        everything = self.drain(connection, container, Checkpoint(False, "", "FF", 0))
        wanted = {(key, version) for (key, _), version in container.live().items()}
        self.compare(f"{container.name} from the beginning", everything, wanted)
        known = {(key, version) for key, versions in container.log.items() for version in versions}
        if container.has_history:
            history = self.drain(connection, container, Checkpoint(True, "", "FF", 1))
            self.compare(f"{container.name}, all versions", history, known, in_order=container.log)
        if vanished := [pair for pair in container.seen if pair not in known]:
            self.violate(f"{container.name}: {len(vanished)} versions were shown before the crash and are gone: {vanished[:3]}")
        recent = container.checkpoints[-ETAGS_CHECKED // 2:]
        chosen = recent + chance.sample(container.checkpoints, min(ETAGS_CHECKED // 2, len(container.checkpoints)))
        for checkpoint in chosen:
            self.resumed += 1
            rest = self.drain(connection, container, checkpoint)
            source = known if checkpoint.all_versions else wanted
            self.compare(f"{container.name} resumed from {checkpoint}", rest, {
                (key, version) for key, version in source if version.lsn > checkpoint.after and inside(key, checkpoint)})

    def compare(self, what, found, wanted, in_order=None):
        shown = collections.Counter(found)
        twice = [pair for pair, count in shown.items() if count > 1]
        missing, unknown = wanted - shown.keys(), shown.keys() - wanted
        if twice or missing or unknown:
            self.violate(f"{what}: {len(twice)} twice {twice[:3]}, {len(missing)} missing {list(missing)[:3]}, "
                         f"{len(unknown)} unknown {list(unknown)[:3]}")
        for key, versions in (in_order or {}).items():
            if [version for other, version in found if other == key] != versions:
                self.violate(f"{what}: key {key!r} is not in the order of its commits")

    def drain(self, connection, container, checkpoint):
        """Everything after a checkpoint, over the ranges there are now."""
        found = []
        for each in container.ranges:
            low, high = max(each["minInclusive"], checkpoint.low), min(each["maxExclusive"], checkpoint.high)
            if low >= high:
                continue
            after = checkpoint.after
            for _ in range(PAGES_MAX):
                response = connection.get(f"/{container.link}/docs",
                                          scope(each, low, high) | position(checkpoint.all_versions, after))
                if response.status == 304:
                    break
                if response.status != 200:
                    self.violate(f"{container.name} after {checkpoint}: {response}")
                    break
                items = response.json["Documents"]
                found += [version_of(item) for item in items]
                if trouble := self.disorder(container, items, after, response, checkpoint.all_versions):
                    self.violate(f"{container.name} after {checkpoint}: {trouble}")
                    break
                after = int(response["etag"].strip('"'))
        return found

    def disorder(self, container, items, after, response, all_versions):
        """The fault of a page as such, or None."""
        lsns = [version_of(item)[1].lsn for item in items]
        if not lsns or lsns != sorted(lsns) or lsns[0] <= after or response["etag"] != f'"{lsns[-1]}"':
            return f"a page of {lsns} after {after} with etag {response['etag']}"
        if all_versions:
            by_transaction = collections.Counter((item["metadata"]["lsn"], item["current"]["of"], item["current"]["transaction"])
                                                 for item in items if item["current"])
            for (lsn, of, transaction), count in by_transaction.items():
                if count != of:
                    return f"{count} of {of} writes of transaction {transaction} at LSN {lsn} in one page"
        return None


def inside(key, checkpoint):
    epk = EPKS[key]
    return checkpoint.low <= epk and (checkpoint.high == "FF" or epk < checkpoint.high)


def scope(each, low, high):
    headers = {"x-ms-documentdb-partitionkeyrangeid": each["id"]}
    if (low, high) != (each["minInclusive"], each["maxExclusive"]):
        headers |= {"x-ms-start-epk": low, "x-ms-end-epk": high, "x-ms-read-key-type": "EffectivePartitionKeyRange"}
    return headers


def position(all_versions, after):
    headers = ALL_VERSIONS if all_versions else INCREMENTAL
    return headers | ({"if-none-match": f'"{after}"'} if after else {}) | {"x-ms-max-item-count": "-1"}


def ranges_of(connection, container):
    response = connection.get(f"/{container.link}/pkranges")
    assert response.status == 200, response
    return sorted(response.json["PartitionKeyRanges"], key=lambda each: each["minInclusive"])


class Worker(threading.Thread):
    """Steps until the server is gone."""

    def __init__(self, feeds, container, name, seed, killed):
        super().__init__(name=f"feeds {name} {container.name}", daemon=True)
        self.feeds, self.container, self.killed = feeds, container, killed
        self.random = random.Random(f"{seed}/{name}")
        self.connection = wire.connect(feeds.port)
        self.successes = 0

    def run(self):
        try:
            while self.step():
                pass
        except wire.NoAnswer as failure:
            if not self.killed.is_set():
                self.feeds.violate(f"{self.name}: no answer from a living server: {failure}")
        except Exception as error:  # a worker that dies silently would be a test that tests less
            self.feeds.violate(f"{self.name}: {type(error).__name__}: {error}")
        finally:
            self.connection.close()

    def going_down(self, response):
        """A server that was told to stop may refuse; nobody else."""
        if response.status == 503 and self.killed.is_set():
            return True
        self.feeds.violate(f"{self.name}: {response}")
        return True


class Writer(Worker):
    """Owns its keys, so it knows what each of its transactions must find."""

    def __init__(self, feeds, container, keys, seed, killed):
        super().__init__(feeds, container, f"writer of {keys[0]!r}", seed, killed)
        self.keys, self.seed, self.count = keys, seed, 0
        self.live = {(key, name) for key, name in container.live() if key in keys}

    def step(self):
        if self.count == WRITES_PER_CYCLE:
            return False
        self.count += 1
        key = self.random.choice(self.keys)
        names = self.random.sample([f"d{n}" for n in range(NAMES)], self.random.choice([1, 1, 1, 2, 4]))
        transaction = f"{self.seed}/{self.count}"
        operations, bodies = [], []
        deletes = self.random.random() < 0.15 and len(names) == 1 and (key, names[0]) in self.live
        for number, name in enumerate(names):
            operations.append(("delete", name, None) if deletes else ("put", name, f"{transaction}/{number}"))
            bodies.append({"id": name, "pk": key, "stamp": f"{transaction}/{number}", "transaction": transaction,
                           "of": len(names), "padding": "x" * self.random.randrange(400)})
        try:
            response = self.send(key, names, bodies, deletes)
        except wire.NoAnswer as failure:
            if failure.sent:
                self.container.doubt[key] = operations
            raise
        if response.status not in (200, 201, 204):
            self.container.doubt[key] = operations
            return not self.going_down(response)
        self.successes += 1
        (lsn,) = parse_session_token(response["x-ms-session-token"]).values()
        self.container.commit(key, lsn, operations)
        for kind, name, _ in operations:
            (self.live.add if kind == "put" else self.live.discard)((key, name))
        return True

    def send(self, key, names, bodies, deletes):
        link, headers = self.container.link, wire.of_key(key)
        if deletes:
            target = f"{link}/docs/{names[0]}"
            return self.connection.delete(f"/{target}", headers)
        if len(names) == 1:
            return self.connection.post(f"/{link}/docs", bodies[0], headers | {"x-ms-documentdb-is-upsert": "True"})
        operations = [{"operationType": "Upsert", "resourceBody": body} for body in bodies]
        return self.connection.post(f"/{link}/docs", operations, headers | {
            "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"})


class Reader(Worker):
    """Follows all ranges, from a checkpoint of the cycle before or from the beginning, and keeps every etag."""

    def __init__(self, feeds, container, all_versions, seed, killed):
        super().__init__(feeds, container, "reader of all versions" if all_versions else "reader", seed, killed)
        self.all_versions = all_versions
        self.parts = [Checkpoint(all_versions, each["minInclusive"], each["maxExclusive"], 1 if all_versions else 0)
                      for each in container.ranges]
        self.ranges = container.ranges

    def step(self):
        part = self.parts.pop(0)
        there = [each for each in self.ranges if each["minInclusive"] < part.high and part.low < each["maxExclusive"]]
        if len(there) != 1:
            self.parts += [part._replace(low=max(part.low, each["minInclusive"]), high=min(part.high, each["maxExclusive"]))
                           for each in there]
            return True
        headers = scope(there[0], part.low, part.high) | position(self.all_versions, part.after)
        headers["x-ms-max-item-count"] = self.random.choice(["1", "3", "10", "-1"])
        response = self.connection.get(f"/{self.container.link}/docs", headers)
        if response.status == 410 and response["x-ms-substatus"] in ("1002", "1007"):
            self.ranges = ranges_of(self.connection, self.container)
            self.parts.append(part)
            return True
        if response.status not in (200, 304):
            return not self.going_down(response)
        if response.status == 200:
            items = response.json["Documents"]
            if trouble := self.feeds.disorder(self.container, items, part.after, response, self.all_versions):
                self.feeds.violate(f"{self.name}: {trouble}")
            self.container.seen.update(version_of(item) for item in items)
        part = part._replace(after=int(response["etag"].strip('"')))
        self.container.checkpoints.append(part)
        self.feeds.etags += 1
        self.parts.append(part)
        return True


class Changer(Worker):
    """Splits and merges, one after the other."""

    def __init__(self, feeds, container, seed, killed):
        super().__init__(feeds, container, "topology", seed, killed)
        self.ranges = container.ranges

    def step(self):
        before = {each["id"] for each in self.ranges}
        if len(self.ranges) == 1 or (len(self.ranges) < RANGES_MAX and self.random.random() < 0.5):
            operation, body, gone, fresh = "split", {"range": self.random.choice(self.ranges)["id"]}, 1, 2
        else:
            left = self.random.randrange(len(self.ranges) - 1)
            operation, gone, fresh = "merge", 2, 1
            body = {"ranges": [each["id"] for each in self.ranges[left:left + 2]]}
        self.container.change = (before, gone, fresh)
        link = self.container.link
        response = self.connection.post(f"/{link}/operations/{operation}", body)
        if response.status == 403 and "merged too often" in response.message:
            # Of thousands of merges with documents that stay: the ranges are as they were.
            self.container.change = None
            return not self.killed.wait(0.05)
        if response.status != 200:
            return not self.going_down(response)
        self.feeds.changes += 1
        self.successes += 1
        self.ranges = self.container.ranges = ranges_of(self.connection, self.container)
        self.container.change = None  # only now: the server may be killed between the two
        after = {each["id"] for each in self.ranges}
        if (len(before - after), len(after - before)) != (gone, fresh):
            self.feeds.violate(f"{self.name}: {operation} {body} of {before} left {after}")
        # The rest of the cycle belongs to what it did, half of the time: not all kills should meet a change.
        return self.random.random() < 0.5 or not self.killed.wait(0.05)
