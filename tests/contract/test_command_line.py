"""`orrery feed`, `orrery split` and `orrery merge`: what a person at a terminal, or a script, gets."""
import json
import os
import pty
import signal
import subprocess

import pytest

import change_feed
from harness import program, server as launcher, wire
from harness.server import BINARY
from harness.waiting import wait_until

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def own_binary(request):
    if request.config.getoption("--endpoint"):
        pytest.skip("runs the commands of the binary that it starts")


def environment_for(endpoint):
    return program.clean_environment({"ORRERY_ENDPOINT": endpoint.url, "ORRERY_ACCOUNT_KEY": endpoint.key, "TZ": "UTC"})


def run(endpoint, *arguments):
    return subprocess.run([BINARY, *arguments], env=environment_for(endpoint), capture_output=True,
                          text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)


def name_of(container):
    return f"{container.database.id}/{container.id}"


class Running(program.Program):
    """A command that goes on."""

    def __init__(self, endpoint, *arguments):
        super().__init__([BINARY, *arguments], environment_for(endpoint))

    def wait_for_lines(self, count):
        wait_until(lambda: len(self.lines) >= count or not self.alive(), PATIENCE,
                   f"{count} lines of {self.process.args}")
        assert len(self.lines) >= count, self.report()


def ids_of(lines):
    return [json.loads(line)["id"] for line in lines]


def test_tail_without_following_prints_what_there_is(client, container):
    container.fill(5)
    done = run(client.endpoint, "feed", "tail", name_of(container), "--from", "beginning", "--no-follow",
               "--output", "json")
    assert done.returncode == 0, done.stderr
    read = change_feed.items_of(change_feed.read(container))
    assert [json.loads(line) for line in done.stdout.splitlines()] == read


def test_tail_prints_documents_as_they_were_written(client, container):
    container.create(b'{"id":"n","pk":"a","exact":1E5,"large":12345678901234567890123}', key=("a",))
    done = run(client.endpoint, "feed", "tail", name_of(container), "--from", "beginning", "--no-follow",
               "--output", "json")
    assert '"exact":1E5' in done.stdout and '"large":12345678901234567890123' in done.stdout


def test_tail_follows_from_now(client, container):
    container.fill(3)
    with Running(client.endpoint, "feed", "tail", name_of(container), "--output", "json") as tail:
        # The tail says nothing until something happens: write until it does.
        number = 0
        while not tail.lines and number < 3000:
            container.create({"id": f"new-{number}", "pk": "a"})
            number += 1
        tail.wait_for_lines(1)
        first = int(ids_of(tail.lines)[0].removeprefix("new-"))
        container.create({"id": "last", "pk": "a"})
        wait_until(lambda: tail.lines and ids_of(tail.lines)[-1] == "last", PATIENCE, "the last document")
        assert ids_of(tail.lines) == [f"new-{n}" for n in range(first, number)] + ["last"]


def test_tail_goes_on_after_a_restart_without_loss_or_repetition(server, tmp_path):
    running = launcher.started(data_dir=tmp_path / "data")
    client = running.client()
    container = client.create_database().create_container()
    container.fill(2)
    try:
        with Running(running.endpoint, "feed", "tail", name_of(container), "--from", "beginning",
                     "--output", "json") as tail:
            tail.wait_for_lines(2)
            before = ids_of(tail.lines)
            running.kill()
            running.start()
            container.create({"id": "after the crash", "pk": "a"})
            tail.wait_for_lines(3)
            assert ids_of(tail.lines) == before + ["after the crash"]
            assert any("trying again" in line for line in tail.errors)
    finally:
        client.close()
        running.stop()


def test_etags_printed_are_places_to_go_on_from(client, container):
    container.fill(4)
    done = run(client.endpoint, "feed", "tail", name_of(container), "--from", "beginning", "--no-follow",
               "--output", "etag")
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    container.create({"id": "later", "pk": "a"})
    again = run(client.endpoint, "feed", "tail", name_of(container), "--from", last, "--no-follow",
                "--output", "json")
    assert ids_of(again.stdout.splitlines()) == ["later"]


def test_tail_of_a_range_of_a_key_and_with_a_filter(client, db):
    container = db.create_container(throughput=11_000)
    for number in range(20):
        container.create({"id": f"d{number}", "pk": f"k{number % 4}", "n": number})
    name = name_of(container)
    everything = ("--from", "beginning", "--no-follow", "--output", "json")
    by_range = []
    for each in container.ranges():
        done = run(client.endpoint, "feed", "tail", name, *everything, "--range", each["id"])
        assert done.returncode == 0, done.stderr
        by_range += ids_of(done.stdout.splitlines())
    assert sorted(by_range) == sorted(f"d{number}" for number in range(20))
    of_key = run(client.endpoint, "feed", "tail", name, *everything, "--key", '"k1"')
    assert ids_of(of_key.stdout.splitlines()) == ["d1", "d5", "d9", "d13", "d17"]
    filtered = run(client.endpoint, "feed", "tail", name, *everything, "--filter", "c.n >= 18 AND c.pk != 'k2'")
    assert ids_of(filtered.stdout.splitlines()) == ["d19"], filtered.stderr


def test_all_versions_show_deletes(client, db):
    container = db.create_container({"changeFeedPolicy": {"retentionDuration": 60}})
    with Running(client.endpoint, "feed", "tail", name_of(container), "--all-versions", "--from",
                 change_feed.etag(1).strip('"'), "--range", "0") as tail:
        container.create({"id": "x", "pk": "a", "v": 1})
        container.replace("x", {"id": "x", "pk": "a", "v": 2})
        container.delete("x")
        tail.wait_for_lines(3)
        words = [line.split() for line in tail.lines]
        assert [(word[2], word[3]) for word in words] == [("create", "x"), ("replace", "x"), ("delete", "x")]


def test_colours_only_on_a_terminal(client, container):
    container.fill(1)
    command = ["feed", "tail", name_of(container), "--from", "beginning", "--no-follow"]
    assert "\033" not in run(client.endpoint, *command).stdout
    ours, theirs = pty.openpty()
    process = subprocess.Popen([BINARY, *command], env=environment_for(client.endpoint), stdout=theirs,
                               stdin=subprocess.DEVNULL)
    os.close(theirs)
    assert process.wait(PATIENCE) == 0
    assert b"\033[" in os.read(ours, 65536)
    os.close(ours)


def test_lag_tells_what_is_pending(client, container):
    container.fill(3)
    etag = change_feed.read(container)["etag"]
    done = run(client.endpoint, "feed", "lag", name_of(container), "--range", "0", "--etag", etag)
    assert done.returncode == 0, done.stderr
    assert "pending changes  0" in done.stdout
    container.fill(7, key="b")
    done = run(client.endpoint, "feed", "lag", name_of(container), "--range", "0", "--etag", etag)
    assert "pending changes  7" in done.stdout and "pending LSNs     7" in done.stdout


def test_split_and_merge_from_the_command_line(client, container):
    container.fill(10)
    done = run(client.endpoint, "split", name_of(container), "--range", "0")
    assert done.returncode == 0, done.stderr
    assert [each["id"] for each in container.ranges()] == ["1", "2"]
    assert "range 1" in done.stdout and "out of 0" in done.stdout
    done = run(client.endpoint, "merge", name_of(container), "--ranges", "1", "2")
    assert done.returncode == 0, done.stderr
    assert [each["id"] for each in container.ranges()] == ["3"]


@pytest.mark.parametrize("arguments, code, words", [
    (("feed", "tail", "nothing"), 2, "DATABASE/CONTAINER"),
    (("feed", "tail", "no/such"), 1, "404"),
    (("feed", "tail", "no/such", "--output", "xml"), 2, '--output must be pretty, json or etag, not "xml"'),
    (("feed", "tail", "no/such", "--form", "now"), 2, "did you mean --from?"),
    (("feed", "tail", "no/such", "--from", "yesterday"), 1, "no place to begin"),
    (("split", "no/such", "--range", "0"), 1, "404"),
])
def test_mistakes_are_explained(client, arguments, code, words):
    done = run(client.endpoint, *arguments)
    assert done.returncode == code
    assert words in done.stderr


def test_a_wrong_key_is_told(client, container):
    wrong = wire.Endpoint(client.endpoint.url, "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXk=")
    done = run(wrong, "feed", "tail", name_of(container))
    assert done.returncode != 0 and "401" in done.stderr


def test_no_server_is_told_and_waited_for(client, container):
    nobody = wire.Endpoint("http://127.0.0.1:9/", client.endpoint.key)
    with Running(nobody, "feed", "tail", name_of(container)) as tail:
        wait_until(lambda: tail.errors, PATIENCE, "a complaint")
        assert "no answer from http://127.0.0.1:9" in tail.errors[0]
        assert tail.process.poll() is None
        tail.process.send_signal(signal.SIGINT)
        assert tail.process.wait(PATIENCE) != 0
