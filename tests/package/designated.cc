// Every option by its name, as programs write it that want nothing but what differs from the
// default; and both namespaces side by side. Compiled by check_headers.py, not run.
#include <nlohmann/json.hpp>

#include <orrery/batch.h>
#include <orrery/client.h>
#include <orrery/json.h>
#include <orrery/processor.h>

using namespace orrery::client;
using namespace orrery::processor;
using namespace std::chrono_literals;

void options(const CosmosClient& account, const Database& database, const Container& stars,
             const std::string& etag, const Log& log) {
  const CosmosClient other(
      "http://127.0.0.1:8081", "a2V5",
      {.preferred_regions = {"West"}, .retry = {.attempts_max = 2}, .log = log});
  const CosmosClient third("http://127.0.0.1:8081", "a2V5", {.certificate_file = "orrery.pem"});
  account.create_database("sky", {.throughput = Throughput{.manual = 400}});
  account.list_databases({.page_size = 5});
  database.create_container({.id = "stars", .partition_key_paths = {"/pk"}, .default_ttl = -1},
                            {.timeout = 5s, .throughput = Throughput{.autoscale_max = 4000}});
  database.list_containers({.continuation = "x"});
  stars.read_item("deneb", "cygnus", {.if_none_match = etag});
  stars.read_item("deneb", "cygnus", {.session_token = "0:1", .timeout = 2s});
  stars.upsert_item(R"({"id":"deneb"})", "cygnus", {.if_match = etag});
  stars.upsert_item(R"({"id":"deneb"})", {.return_content = false});
  stars.create_item(nlohmann::json{{"id", "deneb"}}, {.pre_triggers = {"stamp"}});
  stars.replace_item("deneb", nlohmann::json{{"id", "deneb"}}, {.if_match = etag});
  stars.patch_item("deneb", {.operations = {PatchOperation::set("/n", "1")}, .condition = "from c"},
                   "k", {.headers = {{"x-a", "b"}}});
  stars.list_items({.page_size = 10, .partition_key = "cygnus"});
  stars.list_items({.feed_range = FeedRange{.min = "1F"}});
  stars.query_items({"SELECT * FROM c WHERE c.n = @n", {{"@n", nlohmann::json(1)}, {"@m", "2"}}},
                    {.partition_key = PartitionKey("cygnus"), .explain = true});
  stars.execute_batch({ItemOperation{.kind = ItemOperation::Kind::Read, .id = "deneb"}}, "k",
                      {.timeout = 1s});
  stars.execute_bulk({ItemOperation::create(nlohmann::json::object())},
                     {.stop = {}, .concurrency = 2});
  stars.change_feed({.start = ChangeFeedStart::now(), .wait = 5s, .filter = "c.n > 1"});
  stars.change_feed({.timeout = 5s, .page_size = 10});
  stars.feed_ranges({.timeout = 1s});
}

void hosts(const Container& stars, const Container& leases, const Log& log) {
  ChangeFeedProcessorHost host("host", stars, leases,
                               {.max_item_count = 10, .start_from_beginning = true},
                               {.checkpoint_frequency = {.processed_document_count = 100},
                                .lease_prefix = "a.",
                                .retry = {.max_attempts = 3, .then = RetryPolicy::Then::HaltRange},
                                .limits = {.documents = 100},
                                .log = log});
  host.start([](ObserverContext&, const Documents&) { return Outcome::done(); });
  host.stop();
  host.start([] { return std::make_unique<ChangeFeedObserver>(); });
  host.stop();
  ChangeFeedProcessorHost second("second", stars, memory_lease_store(), {.start_time = {}});
  run_until_signal(second, [](ObserverContext&, const Documents&) { return Outcome::done(); });
  LeaseGroup group(stars, file_lease_store("leases"), "a.");
  group.reset({.kind = LeaseGroup::Position::Kind::Etag, .etag = "\"1\""});
  const ChangeFeedOptions pull{.mode = ChangeFeedMode::LatestVersion};
  const MonitoredFeedOptions pushed{.mode = ChangeFeedMode::AllVersionsAndDeletes};
  const StoredDocument document{.id = "a", .text = "{}", .etag = "1"};
  const HealthEvent event{.severity = Severity::Error, .message = "m"};
  const DeadLetter letter{.document = "{}", .attempts = 2};
  (void)pull, (void)pushed, (void)document, (void)event, (void)letter;
}
