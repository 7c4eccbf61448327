#!/usr/bin/env python3
"""Runs the cases of *.test against the real server, each in every way in which its query can be answered.

    run_cases.py [--endpoint URL] [--way WORD] [--list] [name ...]

A name may be the beginning of one: `run_cases.py where/ select/list`. On one range and on five: by scan and from
indexes, whole and row by row through continuations; and as clients do that ask for the plan and go from range to range
by themselves. Without --endpoint it starts $ORRERY_BINARY, or build/orrery.
"""

import argparse
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import case_files  # noqa: E402
from harness import server as launcher, wire  # noqa: E402
from plan_client import run_planned  # noqa: E402
from plan_resume import run_resumed  # noqa: E402
from query_client import FIVE_RANGES, Refused, body_of, query_all  # noqa: E402
from values import same_multiset, same_sequence  # noqa: E402

RANGES = {"1 range": None, "5 ranges": FIVE_RANGES}
# How a case is asked for: names of ways, and what gives its rows.
WAYS = {
    "scan": lambda container, case: ask(container, case, access="scan"),
    "scan, row by row": lambda container, case: ask(container, case, access="scan", page_size=1),
    "index": lambda container, case: ask(container, case, access="index"),
    "index, row by row": lambda container, case: ask(container, case, access="index", page_size=1),
    "auto": lambda container, case: ask(container, case),
    "plan": lambda container, case: run_planned(container, case.query, case.parameters),
    "plan, row by row": lambda container, case: run_planned(container, case.query, case.parameters, page_size=1),
    "plan, resumed by condition": lambda container, case: resume(container, case, is_by_text=True),
    "plan, resumed by value": lambda container, case: resume(container, case, is_by_text=False),
}


def ask(container, case, **chosen):
    return query_all(container, body_of(case.query, case.parameters), **chosen)


def resume(container, case, is_by_text):
    """Only of queries that can be read so; the rows of others are taken for right."""
    rows = run_resumed(container, case.query, case.parameters, is_by_text)
    return case.rows if rows is None else rows


def what_is_wrong(case, way, container):
    """None when the server does what the case says."""
    try:
        rows = way(container, case)
    except Refused as refusal:
        if case.rows is not None or not refusal.is_bad_request:
            return f"refused: {refusal}"
        if case.error and f'"{case.error}"' not in codes_of(refusal.response):
            return f"refused, but not with {case.error}: {refusal}"
        return None
    except (AssertionError, KeyError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    if case.rows is None:
        return f"not refused: {json.dumps(rows)}"
    if not (same_sequence if case.is_ordered else same_multiset)(rows, case.rows):
        return f"expected {json.dumps(case.rows)}\n     but got {json.dumps(rows)}"
    return None


def codes_of(response):
    """The answer's own code, and those of the errors that its message may list, each in quotes."""
    codes = [str(response.json["code"])]
    message = response.message
    if message.startswith("Message: {"):
        listed, _ = json.JSONDecoder().raw_decode(message.removeprefix("Message: "))
        codes += [str(each.get("code")) for each in listed.get("errors", [])]
    return " ".join(f'"{code}"' for code in codes)


class Containers:
    """One per set of documents and number of ranges: cases only read."""

    def __init__(self, client, sets):
        self.database = client.create_database(wire.unique("query-cases"))
        self.sets, self.made = sets, {}

    def get(self, set_name, throughput):
        if (set_name, throughput) not in self.made:
            self.made[set_name, throughput] = self.make(self.sets[set_name], throughput)
        return self.made[set_name, throughput]

    def make(self, documents, throughput):
        definition = {"partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}} | documents.definition
        container = self.database.create_container(definition, throughput=throughput)
        for document in documents.documents:
            container.create(document, [document["id"]]).expect(201)
        return container


def run(client, sets, cases, wanted_way):
    containers, failures, asked = Containers(client, sets), [], 0
    for case in cases:
        for ranges, throughput in RANGES.items():
            container = containers.get(case.set_name, throughput)
            for way_name, way in WAYS.items():
                if wanted_way not in way_name or (way_name.startswith("plan") and not case.is_planned):
                    continue
                if "resumed" in way_name and case.rows is None:
                    continue  # refused at the first page, if at all
                asked += 1
                if wrong := what_is_wrong(case, way, container):
                    failures.append((case, f"{ranges}, {way_name}", wrong))
    return asked, failures


def show(failures):
    by_case = {}
    for case, way, wrong in failures:
        by_case.setdefault(case.name, (case, {}))[1].setdefault(wrong, []).append(way)
    for name, (case, wrongs) in by_case.items():
        print(f"\nFAILED {name} ({case.place}) on {case.set_name}\n     {case.query}")
        for wrong, ways in wrongs.items():
            print(f"   - {'; '.join(ways)}\n     {wrong}")
    return len(by_case)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--endpoint", help="a server that runs already, with the well-known key")
    parser.add_argument("--way", default="", help="only ways with this in their name")
    parser.add_argument("--list", action="store_true", help="print the names of all cases")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    sets, cases = case_files.read_directory(HERE)
    if arguments.list:
        print("\n".join(case.name for case in cases))
        return 0
    if arguments.names:
        cases = [case for case in cases if case.name.startswith(tuple(arguments.names))]
    if not cases:
        sys.exit("no such case")
    server = None if arguments.endpoint else launcher.started()
    endpoint = wire.Endpoint(arguments.endpoint) if arguments.endpoint else server.endpoint
    began = time.monotonic()
    try:
        with wire.Client(endpoint) as client:
            asked, failures = run(client, sets, cases, arguments.way)
    finally:
        if server:
            server.stop()
    failed = show(failures)
    for breach in client.breaches[:20]:
        print("BREACH", breach)
    print(f"{len(cases)} cases, asked {asked} times in {time.monotonic() - began:.1f} s: {failed} failed")
    return 1 if failed or client.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
