"""The rows of queries: by index, by scan, added up, and what indexes cost writers."""

import contextlib
import json
import os
import random
import re
import sqlite3
import statistics
import time
import urllib.parse

from benchmark import (CONTAINER, DATABASE, DOC_BYTES, Harness, Row, run_json, say, spread)
from harness import wire
from harness.waiting import wait_until

LINK = f"dbs/{DATABASE}/colls/{CONTAINER}"
CLIENTS = 16
MATCHES = 10
BUCKETS = 1000
INDEX_SECONDS_MAX = 900
# The cache of Orrery and of PostgreSQL: it has room for all documents.
CACHE_MB = 4096

EQUALITY = "SELECT * FROM c WHERE c.ref = @n"
TOP = "SELECT TOP 10 * FROM c WHERE c.amount >= @n ORDER BY c.amount"
FILTER = "SELECT VALUE c.id FROM c WHERE c.quantity = 777"
TOTALS = "SELECT COUNT(1) AS n, SUM(c.amount) AS total, AVG(c.amount) AS mean FROM c"
BUCKETS_QUERY = "SELECT c.bucket, COUNT(1) AS n, SUM(c.amount) AS total FROM c GROUP BY c.bucket"
POINT = "SELECT * FROM c WHERE c.id = @id AND c.pk = @pk"
# Two hundred characters, as people write them.
LONG = ("SELECT TOP 20 c.id, c.name, c.price * 1.19 AS gross FROM c WHERE c.kind = 'order' AND "
        "c.price >= 10 AND c.price < 250 AND (c.state = 'open' OR STARTSWITH(c.name, 'Ty')) "
        "ORDER BY c.price DESC, c.id ASC")


def documents(count):
    """Documents of 1 KB, the same in every run: `ref` is shared by ten, `amount` by none, and
    `bucket` takes a thousand values."""
    chance = random.Random(1609)
    amounts = list(range(count))
    chance.shuffle(amounts)
    letters = "abcdefghijklmnop"
    for number in range(count):
        document = {"id": f"doc-{number:010d}", "pk": f"k{number % 1000:06d}", "kind": "order",
                    "ref": number % max(1, count // MATCHES), "amount": amounts[number],
                    "bucket": f"b{chance.randrange(BUCKETS):03d}",
                    "quantity": chance.randrange(1000), "price": chance.randrange(10_000) / 100,
                    "paid": True, "customer": {"name": "Tycho Brahe", "city": "Uraniborg"},
                    "tags": ["a", "b"], "note": "", "text": ""}
        rest = DOC_BYTES - len(json.dumps(document, separators=(",", ":")))
        # Words that differ, so that compression does not make documents weigh nothing.
        document["note"] = "".join(chance.choices(letters, k=rest // 2))
        document["text"] = ("the stars move on " * 60)[:rest - rest // 2]
        yield json.dumps(document, separators=(",", ":"))


class QueryRows(Harness):
    def __init__(self, arguments, directory):
        super().__init__(arguments, directory)
        self.query_count = 50_000 if self.quick else 1_000_000
        self.query_file = None
        self.query_store = None

    # ── The documents, here and there ─────────────────────────────────────────────────────────

    def lines(self):
        """A file with the documents, one per line."""
        if self.query_file is None:
            path = os.path.join(self.directory, "documents.jsonl")
            say(f"writing {self.query_count:,} documents")
            with open(path, "w", encoding="ascii") as file:
                file.writelines(line + "\n" for line in documents(self.query_count))
            os.chmod(path, 0o644)  # for PostgreSQL, which reads it as another user
            self.query_file = path
        return self.query_file

    def query_dir(self):
        """The directory of a server that has the documents, in one range, and was stopped."""
        if self.query_store is None:
            data_dir = self.fresh_directory("queries")
            with self.server(data_dir) as server:
                self.make_container(server)
                say("filling them in")
                self.load("lines", server.port, file=self.lines(), connections=64)
            self.query_store = data_dir
        return self.query_store

    @contextlib.contextmanager
    def postgres_with_documents(self, *indexed):
        """PostgreSQL with the same documents, and an expression index on each of these members."""
        with self.postgres(f"shared_buffers={CACHE_MB}MB") as postgres:
            say("filling PostgreSQL")
            # Neither of these characters stands in JSON: each line is one value as it is.
            postgres.sql(f"COPY docs (body) FROM '{self.lines()}' "
                         "WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')")
            for member in indexed:
                postgres.sql(f"CREATE INDEX ON docs (((body->>'{member}')::bigint))")
            postgres.sql("VACUUM ANALYZE docs")
            postgres.sql("CHECKPOINT")
            yield postgres

    def ask(self, connection, query, value=0, **headers):
        body = {"query": query, "parameters": [{"name": "@n", "value": value}]}
        return connection.post(f"/{LINK}/docs", body, {
            "x-ms-documentdb-isquery": "True", "x-orrery-explain": "true",
            "x-ms-documentdb-query-enablecrosspartition": "True",
            "x-orrery-cross-partition-queries": "serve", **headers})

    def wait_for_index(self, server, query):
        """Asks until an index serves. The server builds what such a question wants."""
        connection = wire.connect(server.port, seconds_max=INDEX_SECONDS_MAX)

        def served():
            answer = self.ask(connection, query, **{"x-orrery-query-access": "index"})
            if answer.status == 503:  # It takes longer than a request may.
                return False
            if answer.status != 200:
                raise RuntimeError(f"{query}: {answer}")
            ranges = json.loads(urllib.parse.unquote(answer["x-orrery-explain"]))["ranges"]
            return all("index" in each["way"] for each in ranges)

        wait_until(served, INDEX_SECONDS_MAX, f"an index serves {query}", pause=0.2)
        connection.close()

    # ── By index ──────────────────────────────────────────────────────────────────────────────

    def alternate_queries(self, name, member, query, sql, rows, values):
        """Queries per second with CLIENTS clients, in turn with pgbench. Each gives `rows` rows. Both
        have been asked for a while before: what they keep in memory is there."""
        ours, theirs = [], []
        with self.postgres_with_documents(member) as postgres, \
                self.server(self.query_dir(), "--cache-mb", str(CACHE_MB)) as server:
            self.wait_for_index(server, query)
            found = postgres.sql(f"SELECT count(*) FROM ({sql.replace(':n', '1')}) AS t")
            if int(found) != rows:
                raise RuntimeError(f"PostgreSQL finds {found} rows and not {rows}: {sql}")

            def ask(seconds):
                result = self.load("query", server.port, query=query, ids=values,
                                   connections=CLIENTS, seconds=seconds)
                if result["documents"] != rows * result["requests"]:
                    raise RuntimeError(f"{result['documents']} rows in {result['requests']} "
                                       f"answers and not {rows} each: {query}")
                return result["requests_per_second"]

            warm_seconds = max(self.seconds, self.query_count // 40_000)
            ask(warm_seconds)
            postgres_rate(postgres, sql, values, warm_seconds)
            for _ in range(self.rounds):
                ours.append(ask(self.seconds))
                theirs.append(postgres_rate(postgres, sql, values, self.seconds))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        return Row(name, "≥ 1.0", ratio >= 1.0,
                   f"{spread(ours)} queries/s of {rows} rows, PostgreSQL 15 {spread(theirs)}, "
                   f"{CLIENTS} clients, {self.query_count:,} documents", ratio)

    def query_equality(self):
        return self.alternate_queries(
            "query-equality", "ref", EQUALITY,
            "SELECT body FROM docs WHERE (body->>'ref')::bigint = :n", MATCHES,
            self.query_count // MATCHES)

    def query_top(self):
        return self.alternate_queries(
            "query-top", "amount", TOP,
            "SELECT body FROM docs WHERE (body->>'amount')::bigint >= :n "
            "ORDER BY (body->>'amount')::bigint LIMIT 10", 10, self.query_count * 9 // 10)

    # ── By scan ───────────────────────────────────────────────────────────────────────────────

    def all_rows(self, server, query, rows):
        """Documents looked at per second by a query over all of them, all its pages."""
        result = self.load("rows", server.port, query=query, access="scan")
        if result["documents"] != rows:
            raise RuntimeError(f"{result['documents']} rows and not {rows}: {query}")
        return self.query_count / result["seconds"]

    def alternate_scans(self, name, goal, query, rows, other, other_name):
        ours, theirs = [], []
        with self.server(self.query_dir()) as server:
            self.all_rows(server, query, rows)  # brings the files into the page cache
            for _ in range(self.rounds):
                ours.append(self.all_rows(server, query, rows))
                theirs.append(other())
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        return Row(name, f"≥ {goal}", ratio >= goal,
                   f"{spread(ours)} documents/s, {other_name} {spread(theirs)}, "
                   f"{self.query_count:,} documents", ratio)

    def query_scan(self):
        """A filter on one path that no index serves, and SQLite's json_extract."""
        path = os.path.join(self.fresh_directory("sqlite"), "documents.db")
        with contextlib.closing(sqlite3.connect(path)) as database:
            say("filling SQLite")
            database.execute("CREATE TABLE docs (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
            with open(self.lines(), encoding="ascii") as file:
                database.executemany("INSERT INTO docs (body) VALUES (?)",
                                     ((line.rstrip("\n"),) for line in file))
            database.commit()

            def scan():
                return database.execute(
                    "SELECT json_extract(body, '$.id') FROM docs "
                    "WHERE json_extract(body, '$.quantity') = 777").fetchall()

            rows = len(scan())
            return self.alternate_scans(
                "query-scan", 5, FILTER, rows, lambda: self.query_count / seconds_of(scan),
                f"SQLite {sqlite3.sqlite_version} json_extract")

    def query_aggregate(self):
        store = os.path.join(self.query_dir(), self.arguments.store)

        def scan():
            result = run_json(self.tool("rocksdb_baseline"), "scan", "--dir", store, "--passes", 1,
                              "--member", "amount")
            expected = self.query_count * (self.query_count - 1) // 2
            if result["sum_of_a_pass"] != expected:
                raise RuntimeError(f"the scan adds up to {result['sum_of_a_pass']}")
            return result["per_second"]

        return self.alternate_scans("query-aggregate", 0.6, TOTALS, 1, scan,
                                    "bare RocksDB scan that parses the one path")

    def query_group(self):
        sql = ("SELECT body->>'bucket', count(*), sum((body->>'amount')::bigint) FROM docs "
               "GROUP BY 1")
        with self.postgres_with_documents() as postgres:
            buckets = int(postgres.sql(f"SELECT count(*) FROM ({sql}) AS t"))
            return self.alternate_scans(
                "query-group", 1.0, BUCKETS_QUERY, buckets,
                lambda: self.query_count / seconds_of(lambda: postgres.sql(sql)),
                f"PostgreSQL 15, {buckets} groups")

    # ── What indexes cost writers ─────────────────────────────────────────────────────────────

    def alternate_policies(self, name, goal, policy, what, query=None):
        """Creates under `policy` in turn with creates that nothing is indexed of."""
        rates = {"ours": [], "none": []}
        policies = {"ours": policy, "none": {"indexingMode": "none", "automatic": False}}
        share = self.query_count // self.rounds
        with contextlib.ExitStack() as stack:
            servers = {}
            for side, each in policies.items():
                servers[side] = stack.enter_context(self.server(self.fresh_directory(side)))
                self.make_container_with(servers[side], each)
            for number in range(self.rounds):
                for side, server in servers.items():
                    result = self.load("lines", server.port, file=self.lines(), connections=64,
                                       first=number * share, count=share, seconds=self.seconds)
                    rates[side].append(result["per_second"])
            if query is not None:
                self.wait_for_index(servers["ours"], query)
        ratio = statistics.median(a / b for a, b in zip(rates["ours"], rates["none"]))
        return Row(name, f"≥ {goal}", ratio >= goal,
                   f"{spread(rates['ours'])} creates/s {what}, {spread(rates['none'])} with "
                   f"indexing mode none, 64 connections", ratio)

    def make_container_with(self, server, policy):
        connection = wire.connect(server.port)
        made = [connection.post("/dbs", {"id": DATABASE})]
        definition = {"id": CONTAINER, "partitionKey": {"paths": ["/pk"], "kind": "Hash",
                                                        "version": 2}}
        if policy is not None:
            definition["indexingPolicy"] = policy
        made.append(connection.post(f"/dbs/{DATABASE}/colls", definition, {"x-ms-offer-throughput": "400"}))
        connection.close()
        if [each.status for each in made] != [201, 201]:
            raise RuntimeError(f"create database and container: {made}")

    def create_unqueried(self):
        return self.alternate_policies("create-unqueried", 0.95, None,
                                       "under the default policy, no query ever run")

    def create_indexed(self):
        paths = ("/ref/?", "/amount/?", "/bucket/?", "/quantity/?", "/price/?")
        policy = {"indexingMode": "consistent", "automatic": True,
                  "includedPaths": [{"path": path} for path in paths],
                  "excludedPaths": [{"path": "/*"}]}
        # The last question shows that the indexes are really there.
        return self.alternate_policies("create-indexed", 0.5, policy, "with five paths indexed",
                                       EQUALITY)

    # ── Small ones ────────────────────────────────────────────────────────────────────────────

    def query_point(self):
        """A query that names id and key, and a point read of the same documents: server CPU."""
        queries, reads = [], []
        with self.server(self.query_dir()) as server:
            pid = server.process.pid
            options = {"ids": min(10_000, self.query_count), "connections": CLIENTS}

            def ask():
                result, cost = self.load_and_cpu(pid, "query", server.port, query=POINT,
                                                 **{"by-key": 1}, **options)
                if result["documents"] != result["requests"]:
                    raise RuntimeError(f"{result['documents']} rows in {result['requests']} answers")
                return cost

            ask()
            for _ in range(self.rounds):
                queries.append(ask())
                reads.append(self.load_and_cpu(pid, "read", server.port, **options)[1])
        ratio = statistics.median(a / b for a, b in zip(queries, reads))
        return Row("query-point", "≤ 3", ratio <= 3,
                   f"{spread(queries, 1)} µs CPU per query by id and key, {spread(reads, 1)} per "
                   f"point read, {CLIENTS} connections", ratio)

    def query_parse(self):
        times, plans = [], []
        for _ in range(self.rounds):
            result = run_json(self.tool("query_plan"), "--query", LONG)
            times.append(result["understand_us"])
            plans.append(result["client_plan_us"])
        middle = statistics.median(times)
        return Row("query-parse", "≤ 20 µs", middle <= 20,
                   f"{spread(times, 1)} µs to parse and plan {len(LONG)} characters; "
                   f"{spread(plans, 1)} µs for the plan that clients ask for")


def seconds_of(act):
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def postgres_rate(postgres, sql, values, seconds):
    """Queries per second of pgbench, with the same clients and values as ours."""
    script = os.path.join(postgres.directory, "query.sql")
    with open(script, "w", encoding="ascii") as file:
        file.write(f"\\set n random(0, {values - 1})\n{sql};\n")
    os.chmod(script, 0o644)
    out = postgres.run("pgbench", "-h", postgres.sockets, "-U", "postgres", "-n", "-M", "prepared",
                       "-c", str(CLIENTS), "-j", "2", "-T", str(seconds), "-f", script, "postgres")
    if not re.search(r"number of failed transactions: 0\b", out):
        raise RuntimeError(out)
    return float(re.search(r"^tps = ([0-9.]+)", out, re.M).group(1))


ROWS = {
    "query-equality": QueryRows.query_equality,
    "query-top": QueryRows.query_top,
    "query-scan": QueryRows.query_scan,
    "query-aggregate": QueryRows.query_aggregate,
    "query-group": QueryRows.query_group,
    "create-unqueried": QueryRows.create_unqueried,
    "create-indexed": QueryRows.create_indexed,
    "query-point": QueryRows.query_point,
    "query-parse": QueryRows.query_parse,
}
