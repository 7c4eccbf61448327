#!/usr/bin/python3
"""Debian's python3-azure-cosmos 3.1.1, unmodified, against a running Orrery, over http and https.

The endpoint comes from with_server.py; see README.md. The package is installed for /usr/bin/python3.
"""

import concurrent.futures
import json
import os
import threading
import unittest
import uuid
from urllib.parse import quote
import warnings

import azure.cosmos.cosmos_client as cosmos_client
import azure.cosmos.documents as documents
import azure.cosmos.errors as errors

KEY = os.environ["ORRERY_KEY"]
CONNECTIONS_MAX = 16
PAGES_MAX = 10_000

KEYS_OF_EVERY_KIND = ["", "a", "päng 鱀 😀", 'with "quotes"', "x" * 90, 0, 1, -2.5, 1e300, True, False, None,
                      documents.Undefined]


def connect(endpoint, **options):
    return cosmos_client.CosmosClient(endpoint, {"masterKey": KEY}, **options)


def new_id():
    return str(uuid.uuid4())


def ids_of(resources):
    return sorted(resource["id"] for resource in resources)


def if_match(etag, **options):
    return {**options, "accessCondition": {"type": "IfMatch", "condition": etag}}


def key_of(document):
    return {"partitionKey": document.get("pk") if "pk" in document else documents.Undefined}


def pages_of(iterable):
    """The pages of a feed, one request each."""
    pages = []
    while page := iterable.fetch_next_block():
        pages.append(page)
        assert len(pages) < PAGES_MAX, "the feed does not end"
    return pages


class SdkTest:
    """The tests; a subclass below says over which transport."""

    endpoint = None

    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")  # The client does not check the certificate of 127.0.0.1, and says so.
        cls.client = connect(cls.endpoint)
        cls.database = cls.client.CreateDatabase({"id": "python " + new_id()})
        cls.database_link = "dbs/" + cls.database["id"]

    @classmethod
    def tearDownClass(cls):
        cls.client.DeleteDatabase(cls.database_link)

    def new_container(self, options=None, **definition):
        definition = {"id": new_id(), "partitionKey": {"paths": ["/pk"], "kind": "Hash"}, **definition}
        definition = {name: value for name, value in definition.items() if value is not None}
        return self.client.CreateContainer(self.database_link, definition, options or {})

    def link_of(self, container):
        return self.database_link + "/colls/" + container["id"]

    def assertFails(self, status, function, *arguments):
        with self.assertRaises(errors.HTTPFailure) as failure:
            function(*arguments)
        self.assertEqual(failure.exception.status_code, status, failure.exception)
        return failure.exception

    # ── account, databases, containers

    def test_account_is_described(self):
        account = self.client.GetDatabaseAccount()
        self.assertEqual(account.ConsistencyPolicy["defaultConsistencyLevel"], "Session")
        self.assertEqual(len(account._WritableLocations), 1)

    def test_wrong_key_is_refused(self):
        with self.assertRaises(errors.HTTPFailure) as failure:
            cosmos_client.CosmosClient(self.endpoint, {"masterKey": "AAAA" * 22}).CreateDatabase({"id": new_id()})
        self.assertEqual(failure.exception.status_code, 401)

    def test_database_is_created_read_listed_and_deleted(self):
        created = self.client.CreateDatabase({"id": new_id() + " 中文"})
        link = "dbs/" + created["id"]
        self.assertEqual(self.client.ReadDatabase(link), created)
        self.assertEqual(self.client.ReadDatabase(created["_self"]), created)
        self.assertIn(created["id"], ids_of(self.client.ReadDatabases()))
        self.assertTrue(all(len(page) == 1 for page in pages_of(self.client.ReadDatabases({"maxItemCount": 1}))))
        self.assertFails(409, self.client.CreateDatabase, {"id": created["id"]})
        self.client.DeleteDatabase(link)
        self.assertFails(404, self.client.ReadDatabase, link)
        self.assertFails(404, self.client.DeleteDatabase, link)

    def test_container_keeps_its_definition_and_may_change_part_of_it(self):
        created = self.new_container(defaultTtl=100)
        link = self.link_of(created)
        self.assertEqual(created["partitionKey"]["paths"], ["/pk"])
        self.assertEqual(created["defaultTtl"], 100)
        self.assertEqual(created["indexingPolicy"]["indexingMode"], "consistent")
        self.assertEqual(self.client.ReadContainer(link), created)
        self.assertEqual(self.client.ReadContainer(created["_self"]), created)
        self.assertIn(created["id"], ids_of(self.client.ReadContainers(self.database_link)))

        changed = {**created, "defaultTtl": -1}
        changed["indexingPolicy"] = {**created["indexingPolicy"], "indexingMode": "Lazy"}
        replaced = self.client.ReplaceContainer(link, changed)
        self.assertEqual(replaced["defaultTtl"], -1)
        self.assertEqual(replaced["indexingPolicy"]["indexingMode"], "lazy")
        self.assertEqual(replaced["_rid"], created["_rid"])
        other_key = {**changed, "partitionKey": {"paths": ["/other"], "kind": "Hash"}}
        self.assertFails(400, self.client.ReplaceContainer, link, other_key)
        self.assertFails(409, self.client.CreateContainer, self.database_link, {"id": created["id"]})

        self.client.DeleteContainer(link)
        self.assertFails(404, self.client.ReadContainer, link)
        again = self.new_container(id=created["id"])
        self.assertNotEqual(again["_rid"], created["_rid"])

    def test_container_tells_quota_and_statistics_when_asked(self):
        container = self.new_container()
        read = self.client.ReadContainer(self.link_of(container),
                                         {"populateQuotaInfo": True, "populatePartitionKeyRangeStatistics": True})
        quota = self.client.last_response_headers["x-ms-resource-quota"]
        self.assertIn("collectionSize=", quota)
        self.assertEqual([statistic["id"] for statistic in read["statistics"]], ["0"])

    def test_container_has_the_ranges_that_its_throughput_needs(self):
        for throughput, count in ((400, 1), (30000, 5)):
            container = self.new_container({"offerThroughput": throughput})
            ranges = list(self.client._ReadPartitionKeyRanges(self.link_of(container)))
            ranges.sort(key=lambda r: r["minInclusive"])
            self.assertEqual(len(ranges), count)
            bounds = [r["minInclusive"] for r in ranges] + ["FF"]
            self.assertEqual(bounds[0], "")
            self.assertEqual([r["maxExclusive"] for r in ranges], bounds[1:])

    # ── documents

    def test_documents_are_found_under_any_kind_of_partition_key(self):
        for throughput in (400, 30000):
            for version in (None, 2):
                definition = {"paths": ["/pk"], "kind": "Hash", **({"version": version} if version else {})}
                container = self.new_container({"offerThroughput": throughput}, partitionKey=definition)
                link = self.link_of(container)
                for n, key in enumerate(KEYS_OF_EVERY_KIND):
                    with self.subTest(throughput=throughput, version=version, key=key):
                        document = {"id": str(n), "n": n, **({} if key is documents.Undefined else {"pk": key})}
                        options = {"partitionKey": key}
                        created = self.client.CreateItem(link, document)
                        read = self.client.ReadItem(f"{link}/docs/{n}", dict(options))
                        self.assertEqual(json.dumps(read), json.dumps(created))
                        self.assertEqual(self.client.ReadItem(created["_self"], dict(options)), created)
                        replaced = self.client.ReplaceItem(f"{link}/docs/{n}", {**document, "n": -1})
                        self.assertEqual(replaced["n"], -1)
                        self.assertEqual(replaced["_rid"], created["_rid"])
                everything = list(self.client.ReadItems(link))
                self.assertEqual(ids_of(everything), sorted(str(n) for n in range(len(KEYS_OF_EVERY_KIND))))
                of_one_key = self.client.ReadItems(link, {"partitionKey": "a"})
                self.assertEqual(ids_of(of_one_key), ["1"])
                for document in everything:
                    self.client.DeleteItem(f"{link}/docs/{document['id']}", key_of(document))
                    self.assertFails(404, self.client.ReadItem, document["_self"], key_of(document))
                self.assertEqual(list(self.client.ReadItems(link)), [])

    def test_documents_are_found_by_a_nested_path(self):
        container = self.new_container(partitionKey={"paths": ["/a/b"], "kind": "Hash"})
        self.client.CreateItem(self.link_of(container), {"id": "1", "a": {"b": "deep"}})
        read = self.client.ReadItem(self.link_of(container) + "/docs/1", {"partitionKey": "deep"})
        self.assertEqual(read["a"], {"b": "deep"})

    def test_documents_live_without_a_key_in_a_container_without_one(self):
        container = self.new_container(partitionKey=None)
        link = self.link_of(container)
        self.assertNotIn("partitionKey", container)
        self.client.CreateItem(link, {"id": "1", "n": 1})
        self.assertEqual(self.client.ReadItem(link + "/docs/1")["n"], 1)
        self.assertEqual(self.client.ReplaceItem(link + "/docs/1", {"id": "1", "n": 2})["n"], 2)
        self.assertEqual(ids_of(self.client.ReadItems(link)), ["1"])
        self.client.DeleteItem(link + "/docs/1")
        self.assertFails(404, self.client.ReadItem, link + "/docs/1")

    def test_document_needs_its_partition_key(self):
        link = self.link_of(self.new_container())
        self.client.CreateItem(link, {"id": "1", "pk": "a"})
        self.assertFails(400, self.client.ReadItem, link + "/docs/1")
        self.assertFails(404, self.client.ReadItem, link + "/docs/1", {"partitionKey": "b"})
        failure = self.assertFails(400, self.client.CreateItem, link, {"id": "2", "pk": "a"}, {"partitionKey": "b"})
        self.assertEqual(failure.sub_status, 1001)

    def test_document_id_is_taken_once_per_key(self):
        link = self.link_of(self.new_container())
        self.client.CreateItem(link, {"id": "1", "pk": "a"})
        self.assertFails(409, self.client.CreateItem, link, {"id": "1", "pk": "a"})
        self.client.CreateItem(link, {"id": "1", "pk": "b"})

    def test_document_is_inserted_then_replaced_by_upsert(self):
        link = self.link_of(self.new_container())
        inserted = self.client.UpsertItem(link, {"id": "1", "pk": "a", "n": 1})
        updated = self.client.UpsertItem(link, {"id": "1", "pk": "a", "n": 2})
        self.assertEqual(updated["_rid"], inserted["_rid"])
        self.assertEqual(updated["n"], 2)
        self.assertEqual(len(list(self.client.ReadItems(link))), 1)

    def test_document_is_replaced_and_deleted_only_under_a_matching_etag(self):
        link = self.link_of(self.new_container())
        item = link + "/docs/1"
        first = self.client.CreateItem(link, {"id": "1", "pk": "a", "n": 1})
        second = self.client.ReplaceItem(item, {**first, "n": 2}, if_match(first["_etag"]))
        self.assertFails(412, self.client.ReplaceItem, item, {**first, "n": 3}, if_match(first["_etag"]))
        self.assertFails(412, self.client.UpsertItem, link, {**first, "n": 3}, if_match(first["_etag"]))
        self.assertFails(412, self.client.DeleteItem, item, if_match(first["_etag"], partitionKey="a"))
        self.assertEqual(self.client.ReadItem(item, {"partitionKey": "a"})["n"], 2)
        unchanged = self.client.ReadItem(item, {"partitionKey": "a", "accessCondition": {
            "type": "IfNoneMatch", "condition": second["_etag"]}})
        self.assertIsNone(unchanged)
        self.client.DeleteItem(item, if_match(second["_etag"], partitionKey="a"))

    def test_names_and_ids_of_any_alphabet_are_addressed(self):
        container = self.new_container(id="डेटाबेस پایگاه داده 数据库")
        for document_id in ("ä ö ü", "日本語", "a+b", "100%", "😀"):
            self.client.CreateItem(self.link_of(container), {"id": document_id, "pk": "a"})
            read = self.client.ReadItem(self.link_of(container) + "/docs/" + document_id, {"partitionKey": "a"})
            self.assertEqual(read["id"], document_id)

    def test_thousands_of_documents_are_read_page_by_page(self):
        for throughput in (400, 30000):
            with self.subTest(throughput=throughput):
                link = self.link_of(self.new_container({"offerThroughput": throughput}))
                self.create_in_parallel(link, [{"id": str(n), "pk": f"key {n % 53}"} for n in range(2500)])
                pages = pages_of(self.client.ReadItems(link, {"maxItemCount": 100}))
                self.assertLessEqual(max(map(len, pages)), 100)
                documents_read = [document for page in pages for document in page]
                self.assertEqual(len(documents_read), 2500)
                self.assertEqual(len({document["id"] for document in documents_read}), 2500)
                of_one_key = list(self.client.ReadItems(link, {"partitionKey": "key 7", "maxItemCount": 10}))
                self.assertEqual(ids_of(of_one_key), sorted(str(n) for n in range(2500) if n % 53 == 7))

    def create_in_parallel(self, link, new_documents):
        own = threading.local()  # A client is not made for several threads.

        def create(document):
            if not hasattr(own, "client"):
                own.client = connect(self.endpoint)
            own.client.CreateItem(link, document)

        with concurrent.futures.ThreadPoolExecutor(CONNECTIONS_MAX) as pool:
            list(pool.map(create, new_documents))

    def test_what_is_missing_is_answered_with_404(self):
        link = self.link_of(self.new_container())
        self.assertFails(404, self.client.ReadItem, link + "/docs/none", {"partitionKey": "a"})
        self.assertFails(404, self.client.DeleteItem, link + "/docs/none", {"partitionKey": "a"})
        self.assertFails(404, self.client.CreateItem, self.database_link + "/colls/none", {"id": "1"})

    # ── offers

    def offer_of(self, container):
        query = {"query": "SELECT * FROM root r WHERE r.resource=@link",
                 "parameters": [{"name": "@link", "value": container["_self"]}]}
        return list(self.client.QueryOffers(query))

    def test_offer_is_read_queried_replaced_and_goes_with_its_container(self):
        container = self.new_container({"offerThroughput": 500})
        offers = [o for o in self.client.ReadOffers() if o["resource"] == container["_self"]]
        self.assertEqual(len(offers), 1)
        offer = offers[0]
        self.assertEqual(self.offer_of(container), offers)
        self.assertEqual(offer["offerVersion"], "V2")
        self.assertEqual(offer["content"]["offerThroughput"], 500)
        self.assertEqual(offer["offerResourceId"], container["_rid"])

        offer["content"]["offerThroughput"] = 700
        self.assertEqual(self.client.ReplaceOffer(offer["_self"], offer)["content"]["offerThroughput"], 700)
        self.assertEqual(self.client.ReadOffer(offer["_self"])["content"]["offerThroughput"], 700)
        self.assertFails(400, self.client.ReplaceOffer, offer["_self"], {**offer, "_rid": "NotAllowed"})

        self.client.DeleteContainer(self.link_of(container))
        self.assertFails(404, self.client.ReadOffer, offer["_self"])
        self.assertEqual(self.offer_of(container), [])

    def test_container_gets_an_offer_by_default(self):
        container = self.new_container()
        self.assertEqual([o["content"]["offerThroughput"] for o in self.offer_of(container)], [400])

    # ── sessions

    def test_session_reads_its_writes(self):
        container = self.new_container({"offerThroughput": 30000})
        link = self.link_of(container)
        session = connect(self.endpoint)
        for n in range(20):
            session.CreateItem(link, {"id": str(n), "pk": n})
            self.assertRegex(session.last_response_headers["x-ms-session-token"], r"^\d+:\d+#\d+$")
            self.assertEqual(session.ReadItem(f"{link}/docs/{n}", {"partitionKey": n})["pk"], n)
        self.assertRegex(session.session.get_session_token(quote(link)), r"^\d+:\d+#\d+(,\d+:\d+#\d+)+$")
        self.assertEqual(len(list(session.ReadItems(link))), 20)

    def test_session_survives_a_container_made_anew(self):
        session = connect(self.endpoint)
        container = self.new_container()
        link = self.link_of(container)
        for n in range(5):
            session.CreateItem(link, {"id": str(n), "pk": "a"})
        session.DeleteContainer(link)
        self.new_container(id=container["id"])
        session.CreateItem(link, {"id": "new", "pk": "a"})
        self.assertEqual(session.ReadItem(link + "/docs/new", {"partitionKey": "a"})["id"], "new")


class OverHttp(SdkTest, unittest.TestCase):
    endpoint = os.environ["ORRERY_ENDPOINT_HTTP"]


class OverHttps(SdkTest, unittest.TestCase):
    endpoint = os.environ["ORRERY_ENDPOINT_HTTPS"]


if __name__ == "__main__":
    unittest.main(verbosity=2)
