"""Documents that have not changed for a while go to files, whole, and leave the container if that is wanted."""

import json
import pathlib
import sys
import tempfile
import time

from example_runs import Program, documents_of, make_container, own_properties, run, run_tests


def archived(directory):
    """Every document in the files, as (directory, document). No file may be half written."""
    found = []
    for path in sorted(pathlib.Path(directory).rglob("*.jsonl")):
        text = path.read_text()
        assert text.endswith("\n"), path
        found += [(path.parent.name, json.loads(line)) for line in text.splitlines()]
    return found


def test_archives_by_day_and_leaves_the_source(client, database):
    container = make_container(database, "events", "/pk", ranges=2)
    wanted = [{"id": f"e{n}", "pk": f"k{n % 5}", "text": f"line\nbreak {n}"} for n in range(60)]
    for document in wanted:
        container.create(document).expect(201)
    with tempfile.TemporaryDirectory() as directory:
        run("archive_cold_data", database.id, "events", directory, "--once")
        found = archived(directory)
        assert sorted((own_properties(each) for _, each in found), key=lambda each: each["id"]) == \
            sorted(wanted, key=lambda each: each["id"])
        assert all(day == time.strftime("%Y-%m-%d", time.gmtime(each["_ts"])) for day, each in found)
        # Nothing is archived twice, and nothing was taken away.
        run("archive_cold_data", database.id, "events", directory, "--once")
        assert len(archived(directory)) == 60
        assert not list(pathlib.Path(directory).rglob("*.unfinished"))
    assert len(documents_of(client, database, "events")) == 60


def test_archives_by_key_and_deletes(client, database):
    container = make_container(database, "events", "/pk")
    for n in range(30):
        container.create({"id": f"e{n}", "pk": ("a", "b/c", "ü")[n % 3]}).expect(201)
    with tempfile.TemporaryDirectory() as directory:
        run("archive_cold_data", database.id, "events", directory, "--by=key", "--delete", "--once")
        by_key = {}
        for name, document in archived(directory):
            by_key.setdefault(document["pk"], set()).add(name)
        assert by_key.keys() == {"a", "b/c", "ü"} and all(len(names) == 1 for names in by_key.values()), by_key
        assert len(archived(directory)) == 30
    assert documents_of(client, database, "events") == []


def test_leaves_alone_what_is_not_cold_yet(client, database):
    container = make_container(database, "events", "/pk")
    container.create({"id": "old", "pk": "a"}).expect(201)
    changed_at = []  # when "busy" got its n

    def is_archived(name):
        # It changes all the time, so it does not grow cold.
        changed_at.append(time.monotonic())
        container.upsert({"id": "busy", "pk": "a", "n": len(changed_at) - 1}).expect((200, 201))
        return any(each["id"] == name for _, each in archived(directory))

    with tempfile.TemporaryDirectory() as directory:
        with Program("archive_cold_data", database.id, "events", directory, "--older-than=3", "--delete") as program:
            program.wait_until(lambda: is_archived("old"), "the cold document")
            # Now it is left alone, too, and follows as it was in the end.
            program.wait_until(lambda: documents_of(client, database, "events") == [], "the other document")
            program.end()
        versions = [each["n"] for _, each in archived(directory) if each["id"] == "busy"]
        last = len(changed_at) - 1
        assert last > 0 and versions.count(last) == 1, versions
        # On a machine that stood still for a while an earlier one may have grown cold.
        assert all(changed_at[n + 1] - changed_at[n] > 1.5 for n in versions if n != last), versions


def test_a_killed_archive_is_completed_and_loses_nothing(client, database):
    container = make_container(database, "events", "/pk", ranges=2)
    wanted = {f"e{n}" for n in range(500)}
    for name in wanted:
        container.create({"id": name, "pk": name[-1]}).expect(201)
    with tempfile.TemporaryDirectory() as directory:
        with Program("archive_cold_data", database.id, "events", directory, "--delete") as program:
            program.wait_until(lambda: archived(directory), "the first file")
            program.kill()
        for _, document in archived(directory):
            assert document["id"] in wanted
        run("archive_cold_data", database.id, "events", directory, "--delete", "--once")
        assert {document["id"] for _, document in archived(directory)} == wanted
    assert documents_of(client, database, "events") == []


if __name__ == "__main__":
    run_tests(sys.modules[__name__])
