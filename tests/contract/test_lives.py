"""A data directory that is put back from a copy: nothing new is hidden from readers that are beyond it.

Each test writes, stops the server and copies its directory, goes on, lets a reader come further, puts the copy
back, and writes again.
"""
import re
import shutil
import subprocess
import time

import pytest

import change_feed as cf
from harness import wire
from harness.waiting import wait_until
from harness.wire import SESSION

LIFE, WARNING = "x-orrery-life", "x-orrery-feed-warning"
CONTAINER = {"x-orrery-feed-scope": "container"}


class Home:
    """A data directory, the server that runs in it, and a container there."""

    def __init__(self, server, tmp_path):
        self.start_server, self.directory, self.copied = server, tmp_path / "data", tmp_path / "copy"
        self.client = self.running = self.database = None

    def start(self, *options):
        self.running = self.start_server("--data-dir", self.directory, *options)
        if self.client is None:
            self.client = self.running.client()
            self.database = self.client.create_database("d")
        else:
            self.client.endpoint = self.running.endpoint

    def stop(self):
        self.client.close()
        self.running.stop()

    def copy(self):
        self.stop()
        subprocess.run(["cp", "-a", self.directory, self.copied], check=True)
        self.start()

    def put_back(self, *options):
        self.stop()
        shutil.rmtree(self.directory)
        subprocess.run(["cp", "-a", self.copied, self.directory], check=True)
        self.start(*options)

    def warnings(self):
        return self.running.log_lines("new life")


@pytest.fixture
def home(server, tmp_path):
    home = Home(server, tmp_path)
    home.start()
    yield home
    home.client.close()


def life(client):
    return client.get("/").expect(200)[LIFE]


def restored(home, body=None, throughput=None):
    """Ten documents, a copy, ten more, which a reader has read, and the copy put back. The container and its etag."""
    container = home.database.create_container({"id": "c"} | (body or {}), throughput=throughput)
    container.fill(10)
    home.copy()
    for n in range(10, 20):
        container.create({"id": str(n), "pk": "a"}).expect(201)
    return container


def write_new(container, count=12):
    for n in range(count):
        container.create({"id": f"new {n}", "pk": "a"}).expect(201)
    return {f"new {n}" for n in range(count)}


def test_a_restart_and_a_rename_are_the_same_life(home):
    first = life(home.client)
    assert re.fullmatch(r"1-[0-9a-f]{32}", first)
    home.stop()
    home.directory.rename(home.copied)
    home.copied.rename(home.directory)
    home.start()
    assert life(home.client) == first and not home.warnings()


def test_a_reader_beyond_the_copy_sees_every_new_change(home):
    container = restored(home)
    first, at = life(home.client), cf.position(cf.pages(container)[-1])
    assert at == 21
    home.put_back()
    assert life(home.client) != first and life(home.client).startswith("2-")
    (told,) = home.warnings()
    assert "put back from a copy" in told and "Nothing has to be done" in told
    idle = cf.read(container, at).expect(304)
    assert idle[WARNING] and "only the changes up to 11 are still here" in idle[WARNING]
    new = write_new(container)
    page = cf.read(container, at).expect(200)
    assert set(cf.ids(cf.items_of(page))) == new and page[WARNING] and page[LIFE] == life(home.client)
    # From there on all is as ever, and nothing is said any more.
    rest = cf.read(container, page["etag"]).expect(304)
    assert rest[WARNING] is None and rest[LIFE] == life(home.client)
    assert len(cf.drain(container, 0)[0]) == 22


def test_each_way_of_reading_goes_on(home):
    container = restored(home, cf.HISTORY)
    home.put_back()
    lsn = cf.position(cf.read(container, 21).expect(304))
    with wire.Connection(home.running.endpoint) as poll:
        poll.send(home.client.build("GET", container.docs, None, cf.INCREMENTAL | {"If-None-Match": '"21"', "Prefer": "wait=30"}))
        new = write_new(container, 1)
        assert cf.ids(poll.receive().expect(200).json["Documents"]) == ["new 0"]
    assert new == set(cf.ids(cf.items_of(cf.read(container, 21).expect(200))))
    versions = cf.read(container, 21, headers=cf.ALL_VERSIONS).expect(200)
    assert [item["current"]["id"] for item in cf.items_of(versions)] == ["new 0"] and versions[WARNING]
    whole = home.client.get(container.docs, cf.INCREMENTAL | CONTAINER | {"If-None-Match": '"c:=21"'}).expect(200)
    assert cf.ids(whole.json["Documents"]) == ["new 0"] and whole[WARNING] and whole[LIFE]
    key = cf.read(container, 21, scope=cf.of_key("a")).expect(200)
    assert cf.ids(cf.items_of(key)) == ["new 0"]
    with wire.Connection(home.running.endpoint) as stream:
        stream.send(home.client.build("GET", container.docs, None,
                                      cf.INCREMENTAL | {"If-None-Match": '"21"', "Accept": "application/x-ndjson"}))
        head = b""
        while b"new 0" not in head:
            head += stream.socket.recv(65536)
        assert WARNING.encode() in head and LIFE.encode() in head
    # A position that no life has given out is refused.
    cf.read(container, lsn + 2).expect(400, text="beyond the end of this change feed")


def test_lag_is_the_number_of_changes(home):
    container = restored(home)
    home.put_back()
    write_new(container)
    for at, left in ((21, 12), (11, 12), (6, 17), (1, 22)):
        lag = home.client.request("HEAD", container.docs, None, cf.INCREMENTAL | {"If-None-Match": f'"{at}"'}).expect(200)
        assert lag["x-orrery-pending-items"] == lag["x-orrery-pending-lsn"] == str(left)


def test_the_same_copy_put_back_twice_hides_nothing_either(home):
    container = restored(home)
    home.put_back()
    write_new(container, 5)
    at = cf.position(cf.pages(container, 21)[-1])
    # Lives begin above their second: nobody stops, copies and starts a server twice within one.
    second = int(time.time())
    wait_until(lambda: int(time.time()) > second)
    home.put_back()
    new = write_new(container, 3)
    page = cf.read(container, at).expect(200)
    assert set(cf.ids(cf.items_of(page))) == new and page[WARNING]


def test_a_rolled_back_snapshot_is_told_of_with_an_option(home):
    container = restored(home)
    first = life(home.client)
    home.stop()
    home.start("--new-life")
    assert life(home.client) != first
    (told,) = home.warnings()
    assert "--new-life" in told
    assert cf.read(container, 21).expect(304)[WARNING] is None  # the head of the life that ended
    assert cf.read(container, 22).expect(304)[WARNING]


def test_a_container_that_the_copy_does_not_have_begins_above_its_former_self(home):
    restored(home)
    lost = home.database.create_container({"id": "lost"})
    lost.fill(10)
    home.put_back()
    again = home.database.create_container({"id": "lost"})
    write_new(again, 2)
    page = cf.read(again, 11).expect(200)
    assert cf.ids(cf.items_of(page)) == ["new 0", "new 1"] and page[WARNING]


def test_splits_and_merges_carry_the_gap(home):
    container = restored(home)
    home.put_back()
    cf.split(container).expect(200)
    new = write_new(container)
    found = []
    for each in container.ranges():
        page = cf.read(container, 21, scope=cf.of_range(each["id"])).expect((200, 304))
        found += cf.ids(cf.items_of(page)) if page.status == 200 else []
        assert page[WARNING]
    assert set(found) == new
    cf.merge(container, *[each["id"] for each in container.ranges()]).expect(200)
    page = cf.read(container, 21).expect(200)
    assert set(cf.ids(cf.items_of(page))) == new and page[WARNING]


def test_the_ranges_of_a_life_that_ended_are_not_taken_for_the_present_ones(home):
    container = restored(home)
    cf.split(container).expect(200)
    stale = home.client.get(container.path + "/pkranges", cf.INCREMENTAL).expect(200)["etag"]
    home.put_back()
    cf.split(container).expect(200)
    again = home.client.get(container.path + "/pkranges", cf.INCREMENTAL | {"If-None-Match": stale}).expect(200)
    assert len(again.json["PartitionKeyRanges"]) == 2 and again["etag"] != stale


def test_session_tokens_of_a_life_that_ended_are_ignored(home):
    container = restored(home)
    before = container.read("19").expect(200)[SESSION]
    home.put_back()
    after = container.read("0", headers={SESSION: before}).expect(200)[SESSION]
    version = [int(token.split(":")[1].split("#")[0]) for token in (before, after)]
    assert version[1] > version[0], "clients that merge tokens keep the higher version"
    # One of this life that is beyond the head is not: it would be a broken promise.
    head = int(after.split("#")[1])
    container.read("0", headers={SESSION: after.replace(f"#{head}", f"#{head + 1}")}).expect(404, 1002)
