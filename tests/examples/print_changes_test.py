"""Two hosts print the changes of a container: together every one, and after the end of one the other goes on."""

import json
import sys

from example_runs import Program, make_container, run, run_tests


def printed(*programs):
    """The ids that were printed, with the name of the lease before each."""
    lines = [line for program in programs for line in list(program.lines)]
    return [json.loads(line.split("\t", 1)[1])["id"] for line in lines]


def test_prints_what_is_there_and_ends_when_caught_up(client, database):
    container = make_container(database, "orders", "/pk", ranges=2)
    for n in range(50):
        container.create({"id": f"o{n}", "pk": f"k{n % 7}"}).expect(201)
    lines = run("print_changes", database.id, "orders", "--from-beginning", "--once")
    ids = [json.loads(line.split("\t", 1)[1])["id"] for line in lines]
    assert sorted(ids) == sorted(f"o{n}" for n in range(50)), ids
    # The position is kept: a second run has nothing to print, and says why.
    with Program("print_changes", database.id, "orders", "--from-beginning", "--once") as again:
        assert again.ended(0) == []
        assert any("--from-beginning is not used" in line for line in again.errors), again.report()
    # Other groups have positions of their own.
    container.create({"id": "late", "pk": "a"}).expect(201)
    assert len(run("print_changes", database.id, "orders", "--once")) == 1


def test_from_now_on_shows_only_what_comes(client, database):
    container = make_container(database, "orders", "/pk")
    container.create({"id": "before", "pk": "a"}).expect(201)
    with Program("print_changes", database.id, "orders") as program:
        # Nobody says from when on it watches, so changes are made until one is seen.
        def is_seen():
            container.upsert({"id": "after", "pk": "a"}).expect((200, 201))
            return "after" in printed(program)
        program.wait_until(is_seen, "a change")
        program.end()
        assert set(printed(program)) == {"after"}


def test_a_host_that_ends_leaves_its_ranges_to_the_other(client, database):
    container = make_container(database, "orders", "/pk", ranges=4)
    with Program("print_changes", database.id, "orders", "--host=one", "--from-beginning") as one:
        container.create({"id": "first", "pk": "a"}).expect(201)
        one.wait_until(lambda: "first" in printed(one), "the first change")
        one.end()
    with Program("print_changes", database.id, "orders", "--host=two") as two:
        # The first one gave its leases back, so nothing has to expire.
        for n in range(20):
            container.create({"id": f"o{n}", "pk": f"k{n}"}).expect(201)
        wanted = {f"o{n}" for n in range(20)}
        two.wait_until(lambda: wanted <= set(printed(two)), "all changes")
        two.end()
        assert "first" not in printed(two)


def test_says_how_it_is_used(client, database):
    run("print_changes", code=2)


if __name__ == "__main__":
    run_tests(sys.modules[__name__])
