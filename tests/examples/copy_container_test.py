"""A container is copied under another partition key while several writers change it, and a range is split."""

import random
import sys
import threading

from example_runs import Program, connect, documents_of, make_container, own_properties, run, run_tests
from harness import seeds, wire

REGIONS = ("north", "east", "south", "west")


class Writer(threading.Thread):
    """Creates and changes documents of its own until it is told to stop."""

    def __init__(self, database, name, seed):
        super().__init__(daemon=True)
        self.database, self.name_, self.random = database, name, random.Random(seed)
        self.stopping, self.failure, self.writes = threading.Event(), None, 0

    def run(self):
        try:
            with connect() as client:
                while not self.stopping.is_set():
                    number = self.random.randrange(200)
                    document = {"id": f"{self.name_}-{number}", "pk": f"k{number % 17}",
                                "region": REGIONS[number % 4], "value": self.random.randrange(10**9),
                                "nested": {"list": [1, 2.5, None, "ü"], "seen": self.writes}}
                    headers = wire.UPSERT | wire.key_header([document["pk"]])
                    client.post(f"/dbs/{self.database.id}/colls/source/docs", document, headers).expect((200, 201))
                    self.writes += 1
                assert not client.breaches, client.breaches
        except BaseException as failure:  # Told by the thread of the test.
            self.failure = failure


def expect_equal(client, database):
    source = documents_of(client, database, "source")
    copy = documents_of(client, database, "copy")
    assert source == copy, f"{len(source)} and {len(copy)} documents, of which some differ"
    return source


def test_is_equal_after_writes_went_on(client, database):
    seed = seeds.seed()
    source = make_container(database, "source", "/pk", ranges=2)
    for n in range(300):
        source.create({"id": f"old-{n}", "pk": f"k{n % 17}", "region": REGIONS[n % 4], "value": n}).expect(201)
    writers = [Writer(database, f"w{n}", seed + n) for n in range(3)]
    with Program("copy_container", database.id, "source", "copy", "/region") as program:
        for writer in writers:
            writer.start()

        def copied():
            response = client.get(f"/dbs/{database.id}/colls/copy/docs", {"x-ms-max-item-count": "1000"})
            found = response.json["Documents"] if response.status == 200 else []
            return len(found) > 300 and any(each["id"].startswith("w1-") for each in found)
        # The copy follows while the writers write, and while a range is cut in two under both.
        program.wait_until(copied, "copies of what is written meanwhile")
        range_id = source.ranges()[0]["id"]
        client.post(f"{source.path}/operations/split", {"range": range_id}).expect(200)
        written = sum(writer.writes for writer in writers)
        program.wait_until(lambda: sum(writer.writes for writer in writers) > written + 200, "writes after the split")
        for writer in writers:
            writer.stopping.set()
        for writer in writers:
            writer.join(30)
            assert writer.failure is None and not writer.is_alive(), writer.failure
        lines = program.end()
    documents = expect_equal(client, database)
    assert lines[-1] == f"{len(documents)} documents, 0 missing, 0 different, 0 extra", lines[-1]
    # It is stored under the new key.
    region = [own_properties(each) for each in client.get(
        f"/dbs/{database.id}/colls/copy/docs",
        wire.key_header(["north"]) | {"x-ms-max-item-count": "1000"}).expect(200).json["Documents"]]
    assert region and all(each["region"] == "north" for each in region)


def test_goes_on_where_a_killed_copy_was(client, database):
    source = make_container(database, "source", "/pk")
    for n in range(400):
        source.create({"id": str(n), "pk": f"k{n % 5}", "region": REGIONS[n % 4]}).expect(201)
    with Program("copy_container", database.id, "source", "copy", "/region") as program:
        def begun():
            return client.get(f"/dbs/{database.id}/colls/copy/docs").json.get("Documents")
        program.wait_until(begun, "the first copies")
        program.kill()
    run("copy_container", database.id, "source", "copy", "/region", "--once")
    expect_equal(client, database)


def test_finds_and_removes_what_only_the_copy_has(client, database):
    source = make_container(database, "source", "/pk")
    for n in range(10):
        source.create({"id": str(n), "pk": "a", "region": "north"}).expect(201)
    run("copy_container", database.id, "source", "copy", "/region", "--once")
    source.delete("3").expect(204)
    source.upsert({"id": "4", "pk": "a", "region": "south"}).expect(200)  # leaves a copy under its old key
    lines = run("copy_container", database.id, "source", "copy", "/region", "--once", code=1)
    assert lines[-1] == "9 documents, 0 missing, 0 different, 2 extra", lines
    run("copy_container", database.id, "source", "copy", "/region", "--once", "--remove-extra")
    expect_equal(client, database)


def test_finds_what_somebody_else_has_changed_in_the_copy(client, database):
    source = make_container(database, "source", "/pk")
    for n in range(3):
        source.create({"id": str(n), "pk": "a", "region": "north"}).expect(201)
    run("copy_container", database.id, "source", "copy", "/region", "--once")
    key = wire.key_header(["north"])
    copy = f"/dbs/{database.id}/colls/copy/docs"
    client.put(f"{copy}/1", {"id": "1", "pk": "a", "region": "north", "spoilt": True}, key).expect(200)
    client.delete(f"{copy}/2", key).expect(204)
    lines = run("copy_container", database.id, "source", "copy", "/region", "--once", code=1)
    assert lines[-1] == "3 documents, 1 missing, 1 different, 0 extra", lines


if __name__ == "__main__":
    run_tests(sys.modules[__name__])
