#!/usr/bin/env python3
"""Random documents and random queries: what the server answers against what reference.py says.

    query_torture.py [--seed N] [--seeds 50] [--seconds 40] [--only QUERY] [--jobs 1]

A seed is a history: a container of one range or of five, documents that are created, replaced and deleted, ranges that
split, and in between queries, each made from the seed and its own number. A query is asked by scan, from indexes and as
the server likes, in pages of several sizes, now and then through the plan; and it is asked in other words, whose answer
follows from the first one. --seeds 0 goes on until something breaks. --only runs one query of the history, with all
the changes before it.
"""

import argparse
import json
import multiprocessing
import pathlib
import random
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import generate  # noqa: E402
import harness.seeds  # noqa: E402
import reference  # noqa: E402
from generate import path_of  # noqa: E402
from harness import server as launcher, wire  # noqa: E402
from plan_client import run_planned  # noqa: E402
from plan_resume import run_resumed  # noqa: E402
from query_client import FIVE_RANGES, Refused, body_of, query_all, query_pages  # noqa: E402
from tree import (Aggregate, ArrayOf, Call, Literal, Name, ObjectOf, Query, Source, Subquery, Unary, children,  # noqa: E402
                  to_sql)
from values import (UNDEFINED, canonical, distinct, equal, multiset, same_multiset, same_sequence, sort_key,  # noqa: E402
                    type_of)

QUERIES = 50  # of a seed
DOCUMENTS = 25
RANGES_MAX = 9
PAGE_SIZES = [1, 3, 100, -1]
ACCESSES = ["scan", "index", "auto"]
COMPOSITE_POLICY = {"compositeIndexes": [[{"path": "/g", "order": "ascending"}, {"path": "/n", "order": "descending"}]]}
SYSTEM = ("_rid", "_self", "_etag", "_attachments", "_ts")


class Mismatch(Exception):
    pass


class Asked:
    """A query, with its text and what its rows are."""

    def __init__(self, query, parameters, documents, spare):
        self.query, self.parameters = query, parameters
        self.text = to_sql(query, spare)
        self.expected = reference.run(query, documents)
        self.is_in_order = not query.is_grouped
        self.is_sliced = query.top is not None or query.offset is not None
        # Arrays, and objects, come in an order among themselves that only the server knows.
        keys = [[reference.evaluate(item, {"c": document}) for document in documents] for item, _ in query.order_by]
        self.is_order_known = not any(has_several(column, kind) for column in keys for kind in ("array", "object"))

    @property
    def body(self):
        return body_of(self.text, self.parameters)

    def check(self, rows, way):
        if not self.is_in_order:
            is_right = same_multiset(rows, self.expected)
        elif self.is_order_known:
            is_right = same_sequence(rows, self.expected)
        elif self.is_sliced:
            is_right = len(rows) == len(self.expected)
        else:
            is_right = same_multiset(rows, self.expected)
        if not is_right:
            raise Mismatch(f"{way}\n{difference(self.expected, rows)}")


def has_several(values, kind):
    return len({canonical(value) for value in values if type_of(value) == kind}) > 1


def text_of(row):
    text = json.dumps(row, ensure_ascii=False)
    return text if len(text) < 300 else text[:300] + " …"


def difference(expected, rows):
    """Where two lists of rows begin to differ, and which rows are in one of them only."""
    lines = [f"expected {len(expected)} rows, got {len(rows)}"]
    wanted, found = multiset(expected), multiset(rows)
    for title, ours, theirs, source in (("missing", wanted, found, expected), ("too much", found, wanted, rows)):
        lines += [f"  {title}: {text_of(row)}" for key, row in {canonical(row): row for row in source}.items()
                  if ours[key] > theirs.get(key, 0)][:5]
    at = next((n for n, pair in enumerate(zip(expected, rows)) if not equal(*pair)), None)
    if at is not None and wanted == found:
        lines += [f"  row {at} should be {text_of(expected[at])}", f"  but it is {text_of(rows[at])}"]
    return "\n".join(lines)


class History:
    def __init__(self, client, database, seed):
        self.client, self.database, self.seed = client, database, seed
        self.chance = random.Random(seed)
        self.members_of = generate.Documents(self.chance)
        self.is_composite = self.chance.random() < 0.4
        self.container = self.new_container(FIVE_RANGES if self.chance.random() < 0.5 else None)
        self.model = {}  # id → members
        self.names = 0
        for _ in range(self.chance.choice([0, 1, 5, DOCUMENTS, DOCUMENTS, DOCUMENTS])):
            self.create()
        self.asked = 0

    def new_container(self, throughput):
        body = {"partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}}
        if self.is_composite:
            body["indexingPolicy"] = COMPOSITE_POLICY
        return self.database.create_container(body, throughput=throughput)

    def run(self, only=None):
        """Raises Mismatch, with everything that is known of it."""
        self.load()
        for number in range(QUERIES):
            if number and self.chance.random() < 0.3:
                self.change()
            chance = random.Random(f"{self.seed} {number}")
            if only is not None and number != only:
                continue
            self.ask(number, chance)

    # ── Changes

    def create(self):
        name = f"d{self.names}"
        self.names += 1
        self.write(name, self.members_of.members())

    def write(self, name, members):
        self.container.upsert({"id": name, **members}, [name]).expect((200, 201))
        self.model[name] = members

    def change(self):
        chance = self.chance
        for _ in range(chance.randrange(1, 4)):
            roll = chance.random()
            if roll < 0.3 or not self.model:
                self.create()
            elif roll < 0.7:
                self.write(chance.choice(list(self.model)), self.members_of.members())
            else:
                name = chance.choice(list(self.model))
                self.container.delete(name, [name]).expect(204)
                del self.model[name]
        if chance.random() < 0.15:
            self.split(chance)
        self.load()

    def split(self, chance):
        ranges = self.container.ranges()
        if len(ranges) < RANGES_MAX:
            body = {"range": chance.choice(ranges)["id"]}
            self.client.post(f"{self.container.path}/operations/split", body).expect(200)

    def load(self):
        """The documents as the server has them, in the order of a scan."""
        self.documents = query_all(self.container, body_of("SELECT * FROM c"), access="scan")
        bare = [{name: value for name, value in document.items() if name not in SYSTEM} for document in self.documents]
        written = [{"id": name, **members} for name, members in self.model.items()]
        if not same_multiset(bare, written):
            raise Mismatch(f"seed {self.seed}: SELECT * FROM c shows other documents\n{difference(written, bare)}")

    # ── Queries

    def ask(self, number, chance):
        maker = generate.Queries(chance, self.documents, self.is_composite)
        query = maker.query()
        asked = Asked(query, maker.parameters, self.documents, chance.random() < 0.6)
        try:
            self.ask_in_all_ways(asked, chance)
            if chance.random() < 0.3:
                self.ask_otherwise(query, maker.parameters, chance)
            if chance.random() < 0.04:
                self.ask_while_splitting(asked, chance)
            if chance.random() < 0.04:
                self.ask_while_writing(query.where, maker.parameters, chance)
        except (Mismatch, Refused, AssertionError, KeyError) as error:
            raise Mismatch(self.report(number, asked, error)) from error

    def rows(self, body, **chosen):
        self.asked += 1
        return query_all(self.container, body, **chosen)

    def ask_in_all_ways(self, asked, chance):
        ways = [("scan", -1), ("index", -1), (chance.choice(ACCESSES), chance.choice(PAGE_SIZES))]
        if len(asked.expected) < 12:
            ways.append((chance.choice(ACCESSES), 1))
        for access, size in ways:
            asked.check(self.rows(asked.body, access=access, page_size=size), f"access {access}, pages of {size}")
        if chance.random() < 0.2 and asked.is_order_known:
            size = chance.choice(PAGE_SIZES)
            rows = run_planned(self.container, asked.text, asked.parameters, page_size=size)
            asked.check(rows, f"through the plan, pages of {size}")
            if asked.query.order_by and len(asked.expected) < 12:
                is_by_text = chance.random() < 0.5
                rows = run_resumed(self.container, asked.text, asked.parameters, is_by_text)
                if rows is not None:
                    asked.check(rows, f"through the plan, resumed by {'condition' if is_by_text else 'value'} after each row")

    def ask_otherwise(self, query, parameters, chance):
        """Other queries, whose answers follow from that of this one, whatever it is."""
        checks = [self.check_three_parts] if query.where is not None else []
        if not query.is_grouped:
            checks += [self.check_slices, self.check_count]
            if not (query.is_distinct or query.top is not None or query.offset is not None):
                checks += [self.check_distinct, self.check_order]
        if checks:
            chance.choice(checks)(query, parameters, chance)

    def answer(self, query, parameters, chance):
        body = body_of(to_sql(query), parameters)
        return self.rows(body, access=chance.choice(ACCESSES), page_size=chance.choice([3, 100, -1]))

    def check_three_parts(self, query, parameters, chance):
        """Every row passes a filter, or its negation, or the filter is not a boolean."""
        def count(where):
            (rows,) = self.answer(Query([(Aggregate("COUNT", Literal(1)), None)], query.sources, where), parameters, chance)
            return rows
        whole = count(None)
        parts = [count(where) for where in (query.where, Unary("NOT", query.where), Unary("NOT", Call("IS_BOOL", [query.where])))]
        if sum(parts) != whole:
            raise Mismatch(f"of {whole} rows {parts} pass {to_sql(query)}, NOT it, and neither")

    def check_slices(self, query, parameters, chance):
        whole_query = copy_of(query, top=None, offset=None, limit=None)
        whole = self.answer(whole_query, parameters, chance)
        offset, limit = chance.randrange(len(whole) + 2), chance.randrange(len(whole) + 2)
        sliced = copy_of(whole_query, offset=offset, limit=limit)
        rows = self.answer(sliced, parameters, chance)
        if not same_sequence(rows, whole[offset:offset + limit]):
            raise Mismatch(f"{to_sql(sliced)}\nis not that slice of the whole: {difference(whole[offset:offset + limit], rows)}")

    def check_count(self, query, parameters, chance):
        rows = self.answer(Query([(Literal(1), None)], query.sources, query.where), parameters, chance)
        (count,) = self.answer(Query([(Aggregate("COUNT", Literal(1)), None)], query.sources, query.where), parameters, chance)
        if count != len(rows):
            raise Mismatch(f"COUNT is {count} of {len(rows)} rows: {to_sql(query)}")

    def check_distinct(self, query, parameters, chance):
        plain = copy_of(query, order_by=[])
        if not plain.select:
            return
        rows = self.answer(copy_of(plain, is_distinct=True), parameters, chance)
        if not same_multiset(rows, distinct(self.answer(plain, parameters, chance))):
            raise Mismatch(f"DISTINCT gives something else than the different rows: {to_sql(plain)}")

    def check_order(self, query, parameters, chance):
        if not query.order_by:
            return
        item, is_descending = query.order_by[0]
        keyed = copy_of(query, select=[(ArrayOf([ObjectOf([("key", item)])]), "key"), (Name("c"), "c")])
        rows = self.answer(keyed, parameters, chance)
        if not same_multiset(rows, self.answer(copy_of(keyed, order_by=[]), parameters, chance)):
            raise Mismatch(f"ORDER BY changes which rows there are: {to_sql(keyed)}")
        keys = [sort_key(row["key"][0].get("key", UNDEFINED)) for row in rows]
        pairs = zip(keys, keys[1:])
        if any((later > earlier) if is_descending else (later < earlier) for earlier, later in pairs):
            raise Mismatch(f"not in order: {to_sql(keyed)}")

    def ask_while_splitting(self, asked, chance):
        """A range splits after the first page. The order of ties, and of rows without ORDER BY, is then another."""
        if asked.is_sliced or asked.query.is_grouped or not asked.expected:
            return
        pages = query_pages(self.container, asked.body, page_size=chance.choice([1, 3]), access=chance.choice(ACCESSES))
        rows = next(pages)
        self.split(chance)
        rows = rows + [row for page in pages for row in page]
        if not same_multiset(rows, asked.expected):
            raise Mismatch(f"a range split after the first page\n{difference(asked.expected, rows)}")
        self.load()

    def ask_while_writing(self, where, parameters, chance):
        """Others come, change and go between the pages. Whatever stays as it is comes exactly once."""
        query = Query([(path_of(Name("c"), ("id",)), None)], [Source("c")])
        if where is not None and set(aliases_of(where)) <= {"c"}:
            query.where = where
        if chance.random() < 0.6:
            query.order_by = [(path_of(Name("c"), chance.choice(generate.ORDERED_PATHS)), chance.random() < 0.5)]
        expected = reference.run(query, self.documents)
        members_of, others, found = generate.Documents(chance), [f"w{n}" for n in range(6)], []
        body = body_of(to_sql(query), parameters)
        for page in query_pages(self.container, body, page_size=chance.choice([1, 3]), access=chance.choice(ACCESSES)):
            found += page
            for name in chance.sample(others, 2):
                if chance.random() < 0.7:
                    self.container.upsert({"id": name, **members_of.members()}, [name]).expect((200, 201))
                else:
                    self.container.delete(name, [name]).expect((204, 404))
        for name in others:
            self.container.delete(name, [name]).expect((204, 404))
        found = [name for name in found if name not in others]
        if not same_multiset(found, expected):
            raise Mismatch(f"while others were written: {to_sql(query)}\n{difference(expected, found)}")
        self.load()

    def report(self, number, asked, error):
        what = str(error) if isinstance(error, Mismatch) else f"{type(error).__name__}: {error}"
        lines = [f"seed {self.seed}, query {number}, {len(self.container.ranges())} ranges: {asked.text}",
                 f"parameters {json.dumps(asked.parameters)}" if asked.parameters else "", what, self.culprit(asked)]
        return "\n".join(line for line in lines if line)

    def culprit(self, asked):
        """A document of which alone the query is answered wrongly."""
        for document in self.documents:
            alone = self.new_container(None)
            alone.create({name: value for name, value in document.items() if name not in SYSTEM}, [document["id"]])
            try:
                stored = query_all(alone, body_of("SELECT * FROM c"), access="scan")
                again = Asked(asked.query, asked.parameters, stored, True)
                for access in ACCESSES:
                    again.check(query_all(alone, asked.body, access=access), f"access {access}")
            except (Mismatch, Refused, AssertionError) as error:
                return f"also with only the document {text_of(document)}: {error}"
            finally:
                self.client.delete(alone.path)
        return ""


def aliases_of(node):
    """Of the sources that an expression reads; "" when it has a subquery, which may read others."""
    if isinstance(node, Name):
        yield node.alias
    elif isinstance(node, Subquery):
        yield ""
    for child in children(node):
        yield from aliases_of(child)


def copy_of(query, **changes):
    return Query(**(vars(query) | changes))


# ── Runs

def run_seed(endpoint, seed, only=None):
    """How often queries were asked. Raises Mismatch."""
    with wire.Client(endpoint) as client:
        database = client.create_database(f"torture-{seed}")
        history = History(client, database, seed)
        history.run(only)
        client.delete(database.path)
    if client.breaches:
        raise Mismatch(f"seed {seed}: " + "\n".join(client.breaches[:5]))
    return history.asked


def worker(url, seeds, stop_at, results):
    """Takes seeds until there are none, the time is over, or one fails."""
    endpoint = wire.Endpoint(url)
    while (seed := seeds.get()) is not None and (stop_at is None or time.monotonic() < stop_at):
        try:
            results.put((seed, run_seed(endpoint, seed), None))
        except Mismatch as mismatch:
            results.put((seed, 0, str(mismatch)))
        except Exception:
            results.put((seed, 0, f"seed {seed}\n{traceback.format_exc()}"))
    results.put(None)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default=None, help="instead of $ORRERY_BINARY, or build/orrery")
    parser.add_argument("--seed", type=int, default=None, help="the first one")
    parser.add_argument("--seeds", type=int, default=None, help="how many; 0: until something breaks; 1 when --seed is given")
    parser.add_argument("--seconds", type=float, default=None, help="begin no seed after this time")
    parser.add_argument("--only", type=int, default=None, help="the number of a query")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep-going", action="store_true", help="show all failures, not only the first")
    arguments = parser.parse_args()
    if arguments.seeds is None:
        arguments.seeds = 50 if arguments.seed is None else 1
    arguments.seed = harness.seeds.seed(arguments.seed)
    return arguments


def main():
    arguments = parse_arguments()
    server = launcher.started(binary=arguments.binary)
    began = time.monotonic()
    try:
        done, asked, failures = run_all(arguments, server.endpoint, began)
    finally:
        server.stop()
    for failure in failures:
        print(f"\nFAILED {failure}\n")
    if failures:
        print(f"replay: {sys.argv[0]} --seed <seed>, and --only <query> for that query alone")
    print(f"{done} seeds of {QUERIES} queries, {asked} times asked, {time.monotonic() - began:.1f} s, {len(failures)} failures")
    return 1 if failures else 0


def run_all(arguments, endpoint, began):
    if arguments.only is not None:
        try:
            return 1, run_seed(endpoint, arguments.seed, arguments.only), []
        except Mismatch as mismatch:
            return 1, 0, [str(mismatch)]
    seeds, results = multiprocessing.Queue(2 * arguments.jobs), multiprocessing.Queue()
    stop_at = began + arguments.seconds if arguments.seconds else None
    workers = [multiprocessing.Process(target=worker, args=(endpoint.url, seeds, stop_at, results), daemon=True)
               for _ in range(arguments.jobs)]
    for each in workers:
        each.start()
    return collect(arguments, seeds, results)


def collect(arguments, seeds, results):
    """Hands out seeds and takes in results, until all workers have ended."""
    done, asked, failures, given, running = 0, 0, [], 0, arguments.jobs
    while running:
        while not seeds.full():
            is_over = (arguments.seeds and given >= arguments.seeds) or (failures and not arguments.keep_going)
            seeds.put(None if is_over else arguments.seed + given)
            given += 1
        result = results.get()
        if result is None:
            running -= 1
            continue
        done, asked = done + 1, asked + result[1]
        if result[2]:
            failures.append(result[2])
        if not arguments.seeds and done % 100 == 0:
            print(f"{done} seeds, the last one {result[0]}", flush=True)
    return done, asked, failures


if __name__ == "__main__":
    sys.exit(main())
