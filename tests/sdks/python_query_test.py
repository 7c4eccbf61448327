#!/usr/bin/python3
"""Queries as Debian's python3-azure-cosmos 3.1.1 makes them: each class of query_classes.json on one and on five ranges.

The endpoint comes from with_server.py; see README.md.
"""

import contextlib
import json
import os
import pathlib
import unittest
import uuid
import warnings

import azure.cosmos.cosmos_client as cosmos_client
import azure.cosmos.errors as errors

KEY = os.environ["ORRERY_KEY"]
CLASSES = json.loads((pathlib.Path(__file__).parent / "query_classes.json").read_text())
PAGES_MAX = 1000


def spec(each):
    return {"query": each["query"], "parameters": each.get("parameters", [])}


def named(name):
    return next(each for each in CLASSES["queries"] if each["name"] == name)


def arranged(rows, is_ordered):
    texts = [json.dumps(row, sort_keys=True) for row in rows]
    return texts if is_ordered else sorted(texts)


class QueryTest:
    """The tests; a subclass below says on how many ranges."""

    throughput = None

    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")  # Connections that the client leaves open.
        cls.client = cosmos_client.CosmosClient(os.environ["ORRERY_ENDPOINT_HTTP"], {"masterKey": KEY})
        cls.database_link = "dbs/" + cls.client.CreateDatabase({"id": "query " + str(uuid.uuid4())})["id"]
        definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"},
                      "indexingPolicy": {"compositeIndexes": CLASSES["compositeIndexes"]}}
        cls.client.CreateContainer(cls.database_link, definition, {"offerThroughput": cls.throughput})
        cls.link = cls.database_link + "/colls/c"
        for document in CLASSES["documents"]:
            cls.client.CreateItem(cls.link, document)

    @classmethod
    def tearDownClass(cls):
        cls.client.DeleteDatabase(cls.database_link)

    def ask(self, query, **options):
        return self.client.QueryItems(self.link, query, {"enableCrossPartitionQuery": True, **options})

    @contextlib.contextmanager
    def header(self, name, value):
        """Of all requests meanwhile: queries have no option for it, the one for continuations is ignored."""
        if value is not None:
            self.client.default_headers[name] = value
        try:
            yield
        finally:
            self.client.default_headers.pop(name, None)

    def pages(self, iterable):
        """The rows, one request after the other."""
        rows = []
        for _ in range(PAGES_MAX):
            page = iterable.fetch_next_block()
            if not page:
                return rows
            rows += page
        self.fail("the query does not end")

    def assertRows(self, rows, each, how):
        is_ordered = each.get("isOrdered", False)
        self.assertEqual(arranged(rows, is_ordered), arranged(each["rows"], is_ordered), f"{each['name']}, {how}")

    def test_every_class(self):
        for each in CLASSES["queries"]:
            with self.subTest(each["name"]):
                self.assertRows(list(self.ask(spec(each))), each, "whole")
                for size in (1, 3):
                    self.assertRows(list(self.ask(spec(each), maxItemCount=size)), each, f"pages of {size}")

    def test_pages_of_a_query(self):
        for name in ("everything", "ORDER BY one key", "JOIN"):
            self.assertRows(self.pages(self.ask(spec(named(name)), maxItemCount=2)), named(name), "by fetch_next_block")

    def test_a_continuation_goes_on_in_another_iterator(self):
        for name in ("everything", "ORDER BY one key", "OFFSET LIMIT"):
            rows, token = [], None
            for _ in range(PAGES_MAX):
                with self.header("x-ms-continuation", token):
                    rows += self.ask(spec(named(name)), maxItemCount=2).fetch_next_block()
                token = self.client.last_response_headers.get("x-ms-continuation")
                if not token:
                    break
            self.assertRows(rows, named(name), "one iterator per page")

    def test_one_partition_key(self):
        here = [document["id"] for document in CLASSES["documents"] if document["pk"] == "Sol"]
        found = self.client.QueryItems(self.link, "SELECT VALUE c.id FROM c ORDER BY c.n DESC", {"partitionKey": "Sol"})
        self.assertEqual(list(found), here[::-1])
        self.assertEqual(list(self.client.QueryItems(self.link, "SELECT VALUE COUNT(1) FROM c", {"partitionKey": "Sol"})), [len(here)])

    def test_range_by_range(self):
        rows = []
        for each in self.client._ReadPartitionKeyRanges(self.link):
            with self.header("x-ms-documentdb-partitionkeyrangeid", each["id"]):
                rows += self.client.QueryItems(self.link, "SELECT VALUE c.id FROM c")
        self.assertEqual(sorted(rows), sorted(document["id"] for document in CLASSES["documents"]))

    def test_several_partitions_only_if_that_is_asked_for(self):
        with self.assertRaises(errors.HTTPFailure) as failure:
            list(self.client.QueryItems(self.link, "SELECT * FROM c WHERE c.n > 3"))
        self.assertEqual(failure.exception.status_code, 400)
        self.assertIn("Cross partition query is required but disabled", str(failure.exception))

    def test_what_is_wrong_is_refused(self):
        for query, code in (("SELECT * FROM", "SC1002"), ("SELECT VALUE d.x FROM c", "SC2001"), ("SELECT VALUE NOSUCH(1)", "SC2005")):
            with self.assertRaises(errors.HTTPFailure) as failure:
                list(self.ask(query))
            self.assertEqual(failure.exception.status_code, 400)
            self.assertIn(code, str(failure.exception))

    def test_databases_and_containers_are_queried_too(self):
        name = self.database_link.removeprefix("dbs/")
        query = {"query": "SELECT * FROM root r WHERE r.id = @id", "parameters": [{"name": "@id", "value": name}]}
        self.assertEqual([each["id"] for each in self.client.QueryDatabases(query)], [name])
        containers = self.client.QueryContainers(self.database_link, "SELECT VALUE r.id FROM root r WHERE r.id != 'x'")
        self.assertEqual(list(containers), ["c"])


class OnOneRange(QueryTest, unittest.TestCase):
    throughput = 400


class OnFiveRanges(QueryTest, unittest.TestCase):
    throughput = 30_000


if __name__ == "__main__":
    unittest.main()
