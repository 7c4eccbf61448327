#!/usr/bin/python3
"""The change feed as Debian's python3-azure-cosmos 3.1.1 reads it, and the flow of the founding article.

The endpoint comes from with_server.py; see README.md.
"""

import os
import unittest
import uuid
import warnings

import azure.cosmos.cosmos_client as cosmos_client
import azure.cosmos.errors as errors

KEY = os.environ["ORRERY_KEY"]
PAGES_MAX = 10_000


def new_id():
    return str(uuid.uuid4())


class ChangeFeedTest:
    """The tests; a subclass below says over which transport."""

    endpoint = None

    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")  # The client does not check the certificate of 127.0.0.1, and says so.
        cls.client = cosmos_client.CosmosClient(cls.endpoint, {"masterKey": KEY})
        cls.database_link = "dbs/" + cls.client.CreateDatabase({"id": "feed " + new_id()})["id"]

    @classmethod
    def tearDownClass(cls):
        cls.client.DeleteDatabase(cls.database_link)

    def new_container(self, throughput, path="/pk"):
        definition = {"id": new_id(), "partitionKey": {"paths": [path], "kind": "Hash"}}
        container = self.client.CreateContainer(self.database_link, definition, {"offerThroughput": throughput})
        return self.database_link + "/colls/" + container["id"]

    def ranges_of(self, link):
        return [each["id"] for each in self.client._ReadPartitionKeyRanges(link)]

    def pages(self, link, **options):
        """Pages as the client asks for them, and the etag after each."""
        found, iterable = [], self.client.QueryItemsChangeFeed(link, options)
        while page := iterable.fetch_next_block():
            found.append((page, self.client.last_response_headers["etag"]))
            self.assertLess(len(found), PAGES_MAX, "the feed does not end")
        return found, self.client.last_response_headers["etag"]

    def changes(self, link, **options):
        found, etag = self.pages(link, **options)
        return [document["id"] for page, _ in found for document in page], etag

    def get_changes(self, link, checkpoints):
        """GetChanges of the article: every range from its checkpoint on, in pages of one document."""
        found = []
        for range_id in self.ranges_of(link):
            options = {"partitionKeyRangeId": range_id, "maxItemCount": 1}
            if range_id in checkpoints:
                options["continuation"] = checkpoints[range_id]
            ids, checkpoints[range_id] = self.changes(link, **options)
            found += ids
        return found

    def test_article(self):
        for throughput, ranges in ((400, 1), (30_000, 5)):
            with self.subTest(throughput=throughput):
                link, checkpoints = self.new_container(throughput, "/deviceId"), {}

                def create(device, metric):
                    reading = {"id": new_id(), "deviceId": device, "metricType": metric, "metricValue": 1000}
                    return self.client.CreateItem(link, reading)["id"]

                old = [create(f"xsensr-{n}", "Temperature") for n in range(25)]
                self.assertEqual(sorted(self.get_changes(link, checkpoints)), sorted(old))
                self.assertEqual(len(checkpoints), ranges)
                new = [create("xsensr-201", "Temperature"), create("xsensr-212", "Pressure")]
                self.assertEqual(sorted(self.get_changes(link, checkpoints)), sorted(new))
                self.assertEqual(self.get_changes(link, checkpoints), [])

    def test_whole_container_of_one_range_from_the_beginning(self):
        link = self.new_container(400)
        for n in range(12):
            self.client.CreateItem(link, {"id": str(n), "pk": str(n % 3)})
        self.assertEqual(self.changes(link)[0], [str(n) for n in range(12)])
        for size in (1, 5, 100):
            found, etag = self.pages(link, maxItemCount=size)
            self.assertEqual([len(page) for page, _ in found], [size] * (12 // size) + ([12 % size] if 12 % size else []))
            self.assertRegex(etag, r'^"\d+"$')

    def test_continuation_is_the_etag_of_any_page(self):
        link = self.new_container(400)
        for n in range(6):
            self.client.CreateItem(link, {"id": str(n), "pk": "a"})
        found, _ = self.pages(link, maxItemCount=2)
        for number, (_, etag) in enumerate(found):
            self.assertEqual(self.changes(link, continuation=etag)[0], [str(n) for n in range(2 * number + 2, 6)])

    def test_updates_once_and_deletes_never(self):
        link = self.new_container(400)
        for n in range(4):
            self.client.CreateItem(link, {"id": str(n), "pk": "a", "n": 0})
        _, etag = self.changes(link)
        for n in range(3):
            self.client.UpsertItem(link, {"id": "1", "pk": "a", "n": n})
        self.client.DeleteItem(link + "/docs/2", {"partitionKey": "a"})
        self.assertEqual(self.changes(link, continuation=etag)[0], ["1"])
        self.assertEqual(self.changes(link)[0], ["0", "3", "1"])

    def test_partition_key(self):
        link = self.new_container(30_000)
        for n in range(12):
            self.client.CreateItem(link, {"id": str(n), "pk": str(n % 4)})
        found, etag = self.changes(link, partitionKey="2")
        self.assertEqual(found, ["2", "6", "10"])
        self.client.CreateItem(link, {"id": "new", "pk": "2"})
        self.assertEqual(self.changes(link, partitionKey="2", continuation=etag)[0], ["new"])

    def test_unknown_range_and_false_continuation_are_errors(self):
        link = self.new_container(400)
        for status, options in ((410, {"partitionKeyRangeId": "99"}), (400, {"continuation": "nonsense"})):
            with self.assertRaises(errors.HTTPFailure) as failure:
                self.changes(link, **options)
            self.assertEqual(failure.exception.status_code, status)


class OverHttp(ChangeFeedTest, unittest.TestCase):
    endpoint = os.environ["ORRERY_ENDPOINT_HTTP"]


class OverHttps(ChangeFeedTest, unittest.TestCase):
    endpoint = os.environ["ORRERY_ENDPOINT_HTTPS"]


if __name__ == "__main__":
    unittest.main(verbosity=2)
