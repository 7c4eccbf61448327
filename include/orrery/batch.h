// TransactionalBatch and bulk: many operations in one request.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/options.h"
#include "orrery/response.h"

namespace orrery::client {

/// One step of a partial update. Values are JSON.
struct PatchOperation {
  enum class Kind { Add, Set, Replace, Remove, Increment, Move };
  Kind kind = Kind::Set;
  std::string path = {};  ///< "/orbit/period"
  std::string json = {};  ///< the value; of Increment a number; of Remove and Move empty
  std::string from = {};  ///< of Move only

  static PatchOperation add(std::string path, JsonText value);
  static PatchOperation set(std::string path, JsonText value);
  static PatchOperation replace(std::string path, JsonText value);
  static PatchOperation remove(std::string path);
  static PatchOperation increment(std::string path, double by);
  static PatchOperation increment(std::string path, std::int64_t by);
  static PatchOperation move(std::string from, std::string path);
};

/// A partial update: up to ten steps, done together or not at all.
struct Patch {
  std::vector<PatchOperation> operations = {};
  std::string condition = {};  ///< "from c where c.visible": done only where it holds; else 412

  /// The body as it goes over the wire.
  std::string to_json() const;
};

/// One operation on a document, in a batch or in bulk.
struct ItemOperation {
  enum class Kind { Create, Upsert, Read, Replace, Delete, Patch };
  Kind kind = Kind::Create;
  std::string id = {};    ///< of Read, Replace, Delete and Patch
  std::string json = {};  ///< the document; of Patch, its body
  std::string if_match = {};
  std::string if_none_match = {};
  /// In bulk; a batch has one for all. None: what the document says, where there is one.
  std::optional<PartitionKey> partition_key = {};

  static ItemOperation create(JsonText document);
  static ItemOperation upsert(JsonText document);
  static ItemOperation read(std::string id);
  static ItemOperation replace(std::string id, JsonText document);
  static ItemOperation remove(std::string id);
  static ItemOperation patch(std::string id, const Patch& patch);

  ItemOperation& with_if_match(std::string etag);
  ItemOperation& with_partition_key(PartitionKey key);
};

/// The result of one operation.
struct ItemResult {
  int status = 0;
  int sub_status = 0;
  std::string etag;
  double request_charge = 0;
  std::string json;     ///< the document, where there is one to show
  std::string message;  ///< of a refusal, where the server gave one
  std::optional<std::chrono::milliseconds> retry_after;

  bool ok() const { return status >= 200 && status < 300; }
};

/// The result of a transactional batch: all operations are applied, or none.
struct BatchResponse : ResponseInfo {
  /// One for each operation, in order. When one has failed, the others have status 424.
  std::vector<ItemResult> results;

  bool ok() const { return status == 200; }
};

/// For Container::execute_bulk().
struct BulkOptions {
  std::optional<std::string> session_token = {};
  std::optional<ConsistencyLevel> consistency = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::stop_token stop = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::size_t concurrency = 8;       ///< requests at the same time
  std::size_t operations_max = 100;  ///< in one request

  operator RequestOptions() const { return {session_token, consistency, timeout, stop, headers}; }
};

/// The results of a bulk execution, whose operations are independent of each other.
struct BulkResponse {
  std::vector<ItemResult> results;  ///< one for each operation, in order
  double request_charge = 0;
  std::size_t failed() const;
};

}  // namespace orrery::client
