#!/usr/bin/env python3
"""Everything that can happen to a change feed, in random order, against a model that knows the outcome.

Creates, replaces, upserts, patches, renames, deletes, batches and expiring documents; splits and merges,
while writes go on; restarts, SIGKILL between requests and in the middle of one. After every step pages of
random size, scope, position and mode are read and compared with feed_model.py. Followers go through the
feed from its beginning and must end with every live document, or with every version exactly once.

    feed_torture.py [--binary build/orrery] [--seed N] [--steps 3000] [--seconds 75]

The seed is printed; the same seed makes the same requests, except where the clock decides. --steps 0 goes
on until something breaks, with a new seed after each round.
"""

import argparse
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from feed_model import EPKS, Container, Document, Violation  # noqa: E402
from feed_readers import ALL_VERSIONS, Follower, WholeFollower, entry_of, probe, token_of  # noqa: E402
from harness import seeds, server as launcher, wire  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

DATABASE = "dbs/torture"
NAMES = 6  # of documents per key
RANGES_MAX = 6
ROUND_STEPS = 2000  # of an endless run
PURGE_SECONDS_MAX = 30
KEYS = list(EPKS)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default=launcher.BINARY)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--steps", type=int, default=3000, help="0: for ever")
    parser.add_argument("--seconds", type=float, default=None, help="end the steps after this time, too")
    parser.add_argument("--work-dir", default=None, help="kept when the test fails")
    arguments = parser.parse_args()
    return arguments


class TopologyChange(threading.Thread):
    """A split or merge, asked for in the background."""

    def __init__(self, port, container, operation, body):
        super().__init__(daemon=True)
        self.connection = wire.connect(port)
        self.container, self.operation, self.body = container, operation, body
        self.before = [each["id"] for each in container.ranges]
        self.response = None

    def run(self):
        link = self.container.link
        try:
            self.response = self.connection.post(f"/{link}/operations/{self.operation}", self.body)
        except wire.NoAnswer:
            pass  # the server was killed meanwhile: the old map or the new one
        finally:
            self.connection.close()


class Torture:
    def __init__(self, arguments, seed, work_dir):
        self.chance = random.Random(seed)
        data_dir = os.path.join(work_dir, "data")
        os.mkdir(data_dir)
        options = ["--durability", "relaxed"] if self.chance.random() < 0.7 else []
        self.server = launcher.Server(*options, data_dir=data_dir, log_path=os.path.join(work_dir, "server.log"),
                                      binary=arguments.binary)
        self.connection = wire.connect(self.server.port)
        self.containers = [Container("latest", False), Container("history", True)]
        self.followers, self.change, self.stamp = [], None, 0
        self.counts = {}

    # ── Setting up ────────────────────────────────────────────────────────────────────────────

    def set_up(self):
        self.server.start()
        self.expect(self.connection.post("/dbs", b'{"id":"torture"}'), 201)
        for container in self.containers:
            body = {"id": container.name, "defaultTtl": -1, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
            if container.has_history:
                body["changeFeedPolicy"] = {"retentionDuration": 600}
            throughput = self.chance.choice([400, 11000, 15000])
            response = self.connection.post(f"/{DATABASE}/colls", body, {"x-ms-offer-throughput": throughput})
            container.rid = self.expect(response, 201).json["_rid"]
            self.calm(container)
            self.refresh(container)
            self.follow(container)

    def calm(self, container):
        """Lowers the throughput again, so that nothing asks for more ranges than a merge leaves."""
        offers, _ = self.connection.all_of("/offers", "Offers")
        offer = next(each for each in offers if each["offerResourceId"] == container.rid)
        offer["content"]["offerThroughput"] = 400
        self.expect(self.connection.put(f"/offers/{offer['id']}", offer), 200)

    def follow(self, container):
        number = len(self.followers)
        low, high = ("", "FF") if self.chance.random() < 0.7 else sorted(self.chance.sample(["", "0F", "1FFF", "20", "3A", "FF"], 2))
        if container.has_history and self.chance.random() < 0.5:
            self.followers.append(Follower(f"follower {number} of all versions", container, True, low, high))
        elif self.chance.random() < 0.25:
            self.followers.append(WholeFollower(f"follower {number} of the whole container", container))
        else:
            self.followers.append(Follower(f"follower {number}", container, False, low, high))

    def expect(self, response, *statuses):
        if response.status not in statuses:
            raise Violation(f"expected {statuses}, got {response}")
        return response

    def refresh(self, container):
        """Reads the map; it tiles, and no id of the past comes back."""
        response = self.expect(self.connection.get(f"/{container.link}/pkranges"), 200)
        ranges = sorted(response.json["PartitionKeyRanges"], key=lambda each: each["minInclusive"])
        edges = [each["minInclusive"] for each in ranges] + ["FF"]
        if edges != [""] + [each["maxExclusive"] for each in ranges]:
            raise Violation(f"{container.name}: the ranges do not tile: {ranges}")
        known = {each["id"] for each in container.ranges}
        for each in ranges:
            if each["id"] not in known and each["id"] in container.used_ids:
                raise Violation(f"{container.name}: range id {each['id']} was used before")
            container.used_ids.add(each["id"])
            inherited = [container.head_of.get(parent, 1) for parent in each["parents"]]
            container.head_of[each["id"]] = max([container.head_of.get(each["id"], 1), *inherited])
        container.ranges = ranges

    # ── Writing ───────────────────────────────────────────────────────────────────────────────

    def write(self, container):
        key, name = self.chance.choice(KEYS), f"d{self.chance.randrange(NAMES)}"
        operation = self.chance.choices(["create", "upsert", "replace", "patch", "delete", "rename", "batch", "key"],
                                        [22, 22, 12, 10, 10, 4, 19, 1])[0]
        self.count(operation)
        if operation == "batch":
            return self.batch(container, key)
        if operation == "key":
            return self.delete_key(container, key)
        self.single(container, key, name, operation)

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def body(self, key, name):
        self.stamp += 1
        body = {"id": name, "pk": key, "n": self.stamp}
        if self.chance.random() < 0.12:
            body["ttl"] = self.chance.choice([1, 2, 3])
        if self.chance.random() < 0.05:
            body["padding"] = "x" * self.chance.randrange(20_000)
        return body

    def patch_operations(self):
        self.stamp += 1
        return [{"op": "set", "path": "/n", "value": self.stamp}]

    def single(self, container, key, name, operation):
        target, new_name, headers = f"{container.link}/docs/{name}", name, wire.of_key(key)
        if operation == "rename":
            new_name = f"d{self.chance.randrange(NAMES)}"
        sent = time.time()
        if operation in ("create", "upsert"):
            headers |= {"x-ms-documentdb-is-upsert": "True"} if operation == "upsert" else {}
            response = self.connection.post(f"/{container.link}/docs", self.body(key, name), headers)
        elif operation in ("replace", "rename"):
            response = self.send("PUT", target, headers, self.body(key, new_name))
        elif operation == "patch":
            response = self.send("PATCH", target, headers, {"operations": self.patch_operations()})
        else:
            response = self.send("DELETE", target, headers)
        self.settle(container, key, name, operation, response, sent, time.time(), new_name)

    def send(self, verb, target, headers, body=None):
        return self.connection.request(verb, f"/{target}", body, headers)

    def settle(self, container, key, name, operation, response, sent, received, new_name):
        """The outcome must be the one that the model has, or one of two in the second of an expiry."""
        what = f"{container.name} {operation} {key!r} {name}"
        alive = self.presence(container, key, name, sent, received)
        status = response.status
        if operation == "create":
            allowed = {True: {409}, False: {201}, None: {201, 409}}[alive]
        elif operation == "upsert":
            allowed = {True: {200}, False: {201}, None: {200, 201}}[alive]
        elif operation == "delete":
            allowed = {True: {204}, False: {404}, None: {204, 404}}[alive]
        else:
            allowed = {True: {200}, False: {404}, None: {200, 404}}[alive]
        if operation == "rename" and new_name != name:
            taken = self.presence(container, key, new_name, sent, received)
            allowed = allowed - {200} | {409} if taken else allowed | {409} if taken is None else allowed
            if alive is False:
                allowed = {404}
        if status not in allowed:
            raise Violation(f"{what}: expected {allowed}, got {response}")
        document = container.find(key, name)
        if document is not None and (status in (201, 404)):
            container.expire(document)  # the answer says that it is no longer there
            document = None
        if operation == "rename" and status == 200 and new_name != name and (met := container.find(key, new_name)) is not None:
            container.expire(met)
        if status in (200, 201, 204):
            range_id, lsn = token_of(response)
            container.took(range_id, lsn, [key])
            self.apply(container, key, document, lsn, 0, None if status == 204 else response.json)

    def presence(self, container, key, name, sent, received):
        """True, False, or None within the second of its expiry."""
        document = container.find(key, name)
        if document is None or document.definitely_dead(sent):
            return False
        return True if document.definitely_alive(received) else None

    def apply(self, container, key, document, lsn, place, result):
        """One write of a transaction: `document` is what it met, `result` the new version or None for a delete."""
        if result is None:
            return container.remove(document, lsn, place)
        new = Document(key, result["id"], result["n"], lsn, result["_ts"], result.get("ttl"), result["_rid"],
                       document.created_at if document else lsn)
        if document is not None:
            if document.rid != new.rid:
                raise Violation(f"{container.name} {key!r} {new.name}: a replace changed _rid")
            container.supersede(document)
            del container.documents[key, document.name]
        container.put(new, "replace" if document else "create", document.lsn if document else 0, place)

    def batch(self, container, key):
        operations, plan = [], []
        for _ in range(self.chance.choice([1, 2, 2, 3, 3, 4, 6])):
            name = f"d{self.chance.randrange(NAMES)}"
            kind = self.chance.choices(["Create", "Upsert", "Replace", "Patch", "Delete"], [20, 45, 15, 10, 10])[0]
            if self.chance.random() < 0.7:  # mostly such that the batch succeeds
                kind = "Upsert"
            operation = {"operationType": kind, "id": name}
            if kind == "Patch":
                operation["resourceBody"] = {"operations": self.patch_operations()}
            elif kind != "Delete":
                operation["resourceBody"] = self.body(key, name)
            operations.append(operation)
            plan.append((kind, name))
        sent = time.time()
        response = self.connection.post(f"/{container.link}/docs", operations, wire.of_key(key) | {
            "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"})
        self.settle_batch(container, key, plan, response, sent, time.time())

    def settle_batch(self, container, key, plan, response, sent, received):
        results = self.expect(response, 200, 207).json
        if response.status == 207:
            return self.judge_failed_batch(container, key, plan, results, sent, received)
        range_id, lsn = token_of(response)
        container.took(range_id, lsn, [key])
        for place, ((kind, name), result) in enumerate(zip(plan, results, strict=True)):
            document = container.find(key, name)
            alive = self.presence(container, key, name, sent, received) if document is None or document.lsn != lsn else True
            status = result["statusCode"]
            allowed = {"Create": {True: set(), False: {201}, None: {201}}, "Upsert": {True: {200}, False: {201}, None: {200, 201}},
                       "Delete": {True: {204}, False: set(), None: {204}}}.get(kind, {True: {200}, False: set(), None: {200}})[alive]
            if status not in allowed:
                raise Violation(f"{container.name} batch {plan} of {key!r}: operation {place} is {status}, expected {allowed}")
            if status == 201 and document is not None:
                container.expire(document)
                document = None
            self.apply(container, key, document, lsn, place, None if kind == "Delete" else result["resourceBody"])

    def judge_failed_batch(self, container, key, plan, results, sent, received):
        """It must have had a reason: walk through until the operation that failed."""
        present = {}
        for (kind, name), result in zip(plan, results, strict=True):
            alive = present.get(name, self.presence(container, key, name, sent, received))
            if result["statusCode"] != 424:
                reasons = {"Create": (True, 409), "Upsert": (None, 0)}.get(kind, (False, 404))
                if alive not in (reasons[0], None) or result["statusCode"] != reasons[1]:
                    raise Violation(f"{container.name} batch {plan} of {key!r} failed without a reason: {results}")
                return
            present[name] = kind != "Delete"
        raise Violation(f"{container.name} batch {plan} of {key!r}: no operation failed in {results}")

    def delete_key(self, container, key):
        sent = time.time()
        response = self.connection.post(f"/{container.link}/operations/partitionkeydelete", None, wire.of_key(key))
        self.expect(response, 200)
        received = time.time()
        # The answer does not list the deletes; the container is read until it is done, and the LSNs come from the history.
        wait_until(lambda: self.connection.get(f"/{container.link}/docs", wire.of_key(key)).json["_count"] == 0,
                   20, f"{container.name}: the delete of key {key!r}")
        here = [document for document in container.documents.values() if document.key == key]
        alive = [document for document in here if not document.definitely_dead(sent)]
        if not container.has_history or not alive:
            for document in here:
                container.expire(document) if document.definitely_dead(sent) else container.documents.pop((key, document.name))
            return
        self.learn_key_delete(container, key, here, received)

    def learn_key_delete(self, container, key, here, received):
        """Takes LSN and order of the deletes from the feed; each document has exactly one, of either kind."""
        after = container.last_lsn[key]
        page = self.expect(self.connection.get(f"/{container.link}/docs", ALL_VERSIONS | wire.of_key(key) | {
            "If-None-Match": f'"{after}"', "x-ms-max-item-count": "-1"}), 200, 304)
        entries = [entry_of(item)[1] for item in page.json["Documents"]] if page.status == 200 else []
        for place, entry in enumerate(entries):
            if entry.expired and (trouble := container.learn_purge(key, entry, place)):
                raise Violation(f"{container.name}: {entry} of {key!r}: {trouble}")
        deleted = {entry.name: entry for entry in entries if not entry.expired}
        for document in here:
            entry = deleted.pop(document.name, None)
            if entry is None:
                if document.definitely_alive(received):
                    raise Violation(f"{container.name}: {key!r} {document.name} went without a delete")
                container.expire(document)
            elif entry.previous != document.lsn:
                raise Violation(f"{container.name}: {entry} of {key!r} deletes {document.lsn}")
            else:
                container.remove(document, entry.lsn, entries.index(entry))
        if deleted:
            raise Violation(f"{container.name}: deletes of nothing: {deleted}")
        container.log[key].sort(key=lambda entry: (entry.lsn, entry.place))
        container.last_lsn[key] = max([after, *(entry.lsn for entry in entries)])

    # ── Splits and merges ─────────────────────────────────────────────────────────────────────

    def change_topology(self):
        container = self.chance.choice(self.containers)
        self.refresh(container)
        ranges = container.ranges
        if len(ranges) < RANGES_MAX and (len(ranges) == 1 or self.chance.random() < 0.55):
            there = self.chance.choice(ranges)
            inside = [epk for epk in EPKS.values() if there["minInclusive"] < epk and (there["maxExclusive"] == "FF" or epk < there["maxExclusive"])]
            body = {"range": there["id"]}
            if inside and self.chance.random() < 0.6:
                body["at"] = self.chance.choice(inside)[:self.chance.choice([4, 32])]
                if not there["minInclusive"] < body["at"]:
                    del body["at"]
            self.count("split")
            self.change = TopologyChange(self.server.port, container, "split", body)
        else:
            left = self.chance.randrange(len(ranges) - 1)
            self.count("merge")
            self.change = TopologyChange(self.server.port, container, "merge", {"ranges": [ranges[left]["id"], ranges[left + 1]["id"]]})
        self.change.start()
        if self.chance.random() < 0.4:
            self.change.join()
        self.look_after_change()

    def look_after_change(self, must_end=False):
        change = self.change
        if change is None:
            return
        if must_end:
            change.join(timeout=wire.ANSWER_SECONDS_MAX)
        if change.is_alive():
            if must_end:
                raise Violation(f"{change.operation} {change.body} does not end")
            return
        self.change = None
        if change.response is not None:
            self.expect(change.response, 200)
        self.refresh(change.container)
        after = {each["id"] for each in change.container.ranges}
        gone, fresh = set(change.before) - after, after - set(change.before)
        wanted = (1, 2) if change.operation == "split" else (2, 1)
        if (len(gone), len(fresh)) != wanted and not (change.response is None and not gone and not fresh):
            raise Violation(f"{change.container.name}: {change.operation} {change.body} of {change.before} left {after}")

    # ── Ends ──────────────────────────────────────────────────────────────────────────────────

    def restart(self):
        if self.chance.random() < 0.4:
            self.count("stop")
            if self.server.terminate() != 0:
                raise Violation(f"SIGTERM: exit status {self.server.process.returncode}")
        elif self.chance.random() < 0.5:
            self.count("kill")
            self.server.kill()
        else:
            self.count("kill in a write")
            return self.kill_in_a_write()
        self.start_again()

    def start_again(self):
        self.connection.close()
        self.server.start()
        self.look_after_change(must_end=True)
        for container in self.containers:
            self.refresh(container)

    def kill_in_a_write(self):
        """The write in the middle is there wholly or not at all; what is read tells which."""
        container, key = self.chance.choice(self.containers), self.chance.choice(KEYS)
        names = self.chance.sample([f"d{n}" for n in range(NAMES)], self.chance.choice([1, 3]))
        bodies = [{"id": name, "pk": key, "n": self.take_stamp()} for name in names]
        operations = [{"operationType": "Upsert", "resourceBody": body} for body in bodies]
        killer = threading.Timer(self.chance.choice([0, 0, 0.0005, 0.001, 0.002]), self.server.kill)
        sent, answer = time.time(), None
        killer.start()
        try:
            answer = self.connection.post(f"/{container.link}/docs", operations, wire.of_key(key) | {
                "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"})
        except wire.NoAnswer:
            pass
        killer.join()
        if answer is not None:
            self.settle_batch(container, key, [("Upsert", name) for name in names], answer, sent, time.time())
            return self.start_again()
        self.start_again()
        self.settle_doubt(container, key, bodies, sent)

    def take_stamp(self):
        self.stamp += 1
        return self.stamp

    def settle_doubt(self, container, key, bodies, sent):
        found = [self.send("GET", f"{container.link}/docs/{body['id']}", wire.of_key(key)) for body in bodies]
        happened = [response.status == 200 and response.json["n"] == body["n"] for response, body in zip(found, bodies)]
        if len(set(happened)) != 1:
            raise Violation(f"{container.name}: half of a transaction: {bodies} {[str(each) for each in found]}")
        if not happened[0]:
            return
        self.count("doubts that had happened")
        range_id, lsn = token_of(found[0])[0], int(found[0]["x-ms-item-lsn"])
        container.took(range_id, lsn, [key])
        for place, (body, response) in enumerate(zip(bodies, found)):
            if int(response["x-ms-item-lsn"]) != lsn:
                raise Violation(f"{container.name}: one transaction, two LSNs: {response.headers}")
            result = response.json
            document = container.find(key, body["id"])
            if document is not None and document.rid != result["_rid"]:
                container.expire(document)
                document = None
            self.apply(container, key, document, lsn, place, result)

    # ── The run ───────────────────────────────────────────────────────────────────────────────

    def step(self):
        kind = self.chance.random()
        if kind < 0.955:
            self.write(self.chance.choice(self.containers))
        elif kind < 0.965:
            self.connection.close()  # another connection, so possibly another thread of the server
        elif kind < 0.99 and self.change is None:
            self.change_topology()
        elif kind > 0.996:
            self.restart()
        elif len(self.followers) < 12:
            self.follow(self.chance.choice(self.containers))
        self.look_after_change()
        container = self.chance.choice(self.containers)
        for _ in range(self.chance.choice([0, 1, 1, 2])):
            probe(self.connection, container, self.chance, is_changing=self.change is not None)
        for follower in self.chance.sample(self.followers, min(2, len(self.followers))):
            follower.read_one(self.connection, self.chance.choice([1, 2, 3, 10, None, -1]), self.refresh)

    def finish(self):
        """Nothing is written any more: purges come to an end, and every follower has seen what there is."""
        self.look_after_change(must_end=True)
        watcher = [each for each in self.followers if isinstance(each, Follower) and each.all_versions] or [
            Follower("the last follower", self.containers[1], True)]

        def is_purged():
            for each in watcher:
                each.drain(self.connection, 20, self.refresh)
            Follower("a late reader", self.containers[1], True).drain(self.connection, -1, self.refresh)
            return not self.containers[1].unseen_purges

        wait_until(is_purged, PURGE_SECONDS_MAX, f"purges of {self.containers[1].unseen_purges}", pause=0.2)
        for container in self.containers:
            self.followers.append(Follower(f"a late follower of {container.name}", container, False))
        for follower in self.followers:
            follower.drain(self.connection, self.chance.choice([1, 3, 20, None, -1]), self.refresh)
            follower.judge_end()
        if self.server.terminate() != 0:
            raise Violation(f"SIGTERM: exit status {self.server.process.returncode}")


def run(arguments, seed, steps):
    work_dir = tempfile.mkdtemp(prefix="orrery-feed-", dir=arguments.work_dir)
    torture, done, began = Torture(arguments, seed, work_dir), 0, time.monotonic()
    try:
        torture.set_up()
        while done < steps and (arguments.seconds is None or time.monotonic() - began < arguments.seconds):
            torture.step()
            done += 1
        torture.finish()
    except Exception as error:
        print(f"VIOLATION {error}" if isinstance(error, Violation) else traceback.format_exc())
        print(f"After {done} steps, {torture.counts}. The data is kept in {work_dir}. The server said last:\n{torture.server.log_tail()}")
        print(f"Replay: {os.path.relpath(__file__)} --binary {arguments.binary} --seed {seed} --steps {steps}")
        return False
    finally:
        torture.server.kill()
    shutil.rmtree(work_dir)
    print(f"{done} steps in {time.monotonic() - began:.0f} s: {torture.counts}\nPASS", flush=True)
    return True


def main():
    arguments = parse_arguments()
    seed = seeds.seed(arguments.seed)
    if arguments.steps:
        return 0 if run(arguments, seed, arguments.steps) else 1
    while run(arguments, seed, ROUND_STEPS):
        seed = seeds.seed(random.Random(seed).randrange(seeds.SEED_MAX))
    return 1


if __name__ == "__main__":
    sys.exit(main())
