// Container: documents, their change feed, and what a container is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/batch.h"
#include "orrery/change_feed.h"
#include "orrery/options.h"
#include "orrery/response.h"

namespace orrery::client {

class Pipeline;
struct ContainerAccess;

/// The definition of a container. The parts that are JSON are sent and come back as they are.
struct ContainerProperties {
  std::string id = {};
  std::vector<std::string> partition_key_paths = {};  ///< several: a hierarchical key
  std::optional<int> default_ttl = {};          ///< seconds; -1: only where a document says so
  std::string indexing_policy = {};             ///< JSON; empty: the default
  std::string unique_key_policy = {};           ///< JSON
  std::string conflict_resolution_policy = {};  ///< JSON
  std::string change_feed_policy = {};          ///< JSON, such as {"retentionDuration":60}; minutes
  /// From the server.
  std::string rid = {};
  std::string etag = {};
  std::string json = {};  ///< all of it, with what this client knows nothing of

  static ContainerProperties from_json(std::string_view json);
  std::string to_json() const;
};

/// A physical partition, as the server calls it now.
struct PartitionKeyRange {
  std::string id = {};
  FeedRange range = {};
  std::vector<std::string> parents = {};
};

/// The exact lag of a reader: the changes that it has not read yet. Orrery only.
struct ChangeFeedLag {
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  std::chrono::seconds age{0};  ///< of the oldest change that is left
};

/// A container of an account. Cheap to copy, thread-safe. Making one sends nothing.
class Container {
 public:
  const std::string& id() const { return id_; }
  /// "dbs/<database>/colls/<container>"
  const std::string& link() const { return link_; }

  // ── documents, as JSON ────────────────────────────────────────────────────────────────────────
  // A document goes in as text, or as a value of nlohmann::json or its like. Without a key, it is
  // the one in the document: what the paths of the container's key lead to.
  // A document whose id has a '/' has no address of its own: batches, bulk and lists reach it.
  Response<std::string> create_item(const JsonText& document, const PartitionKey& key,
                                    const ItemOptions& options = {}) const;
  Response<std::string> create_item(const JsonText& document,
                                    const ItemOptions& options = {}) const;
  Response<std::string> upsert_item(const JsonText& document, const PartitionKey& key,
                                    const ItemOptions& options = {}) const;
  Response<std::string> upsert_item(const JsonText& document,
                                    const ItemOptions& options = {}) const;
  Response<std::string> read_item(std::string_view id, const PartitionKey& key,
                                  const ItemOptions& options = {}) const;
  Response<std::string> replace_item(std::string_view id, const JsonText& document,
                                     const PartitionKey& key,
                                     const ItemOptions& options = {}) const;
  Response<std::string> replace_item(std::string_view id, const JsonText& document,
                                     const ItemOptions& options = {}) const;
  Response<std::string> patch_item(std::string_view id, const Patch& patch, const PartitionKey& key,
                                   const ItemOptions& options = {}) const;
  Response<Nothing> delete_item(std::string_view id, const PartitionKey& key,
                                const ItemOptions& options = {}) const;

  ItemPages list_items(const ItemListOptions& options = {}) const;
  /// Rows as JSON text: documents, or whatever the query makes of them. Sends the text as it is.
  /// Orrery is asked to put the answer together from all ranges. The service does so for filters
  /// and joins only; for what must be sorted or added up it wants a partition key, and refuses
  /// otherwise (400/1004). A mistake in the text is thrown as 400, with
  /// CosmosException::location().
  ItemPages query_items(const Query& query, const QueryOptions& options = {}) const;

  /// All or nothing, within one partition key. A refusal of an operation is not thrown: see
  /// BatchResponse::ok().
  BatchResponse execute_batch(const std::vector<ItemOperation>& operations, const PartitionKey& key,
                              const RequestOptions& options = {}) const;
  /// Executes each by itself, many to a request; throttled ones are retried. Each needs its
  /// partition key, or a document that has it. Failures are not thrown but stand in the results: a
  /// refusal, or status 0 without an answer. Cancellation is thrown.
  BulkResponse execute_bulk(const std::vector<ItemOperation>& operations,
                            const BulkOptions& options = {}) const;

  // ── the change feed ───────────────────────────────────────────────────────────────────────────
  ChangeFeedIterator change_feed(const ChangeFeedOptions& options = {}) const;
  /// One per physical partition; together they are the container.
  std::vector<FeedRange> feed_ranges(const RequestOptions& options = {}) const;
  /// The range that one partition key, or a prefix of a hierarchical one, covers.
  FeedRange feed_range_of(const PartitionKey& key, const RequestOptions& options = {}) const;
  std::vector<PartitionKeyRange> partition_key_ranges(const RequestOptions& options = {}) const;
  /// The lag of a reader that would resume from `continuation`. nullopt where the server can't tell
  /// (it is not Orrery).
  std::optional<ChangeFeedLag> change_feed_lag(const std::string& continuation,
                                               const RequestOptions& options = {}) const;

  // ── the container itself ──────────────────────────────────────────────────────────────────────
  Response<ContainerProperties> read(const RequestOptions& options = {}) const;
  Response<ContainerProperties> replace(const ContainerProperties& properties,
                                        const RequestOptions& options = {}) const;
  Response<Nothing> remove(const RequestOptions& options = {}) const;
  /// Throws 404 where the throughput is the database's.
  Response<Throughput> read_throughput(const RequestOptions& options = {}) const;
  Response<Throughput> replace_throughput(const Throughput& throughput,
                                          const RequestOptions& options = {}) const;

  Container(std::shared_ptr<Pipeline> pipeline, std::string database, std::string id);

 private:
  friend struct ContainerAccess;  // For the processor and the commands of Orrery, in src/.

  std::shared_ptr<Pipeline> pipeline_;  // Shared by all handles of one client.
  std::string id_;
  std::string link_;
};

}  // namespace orrery::client
