// The options of each call of the SDK. Every option has a sensible default, so that designated
// initialisers name only what differs:
//
//   stars.read_item("deneb", "cygnus", {.timeout = 2s, .if_none_match = etag});
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/json_text.h"
#include "orrery/log.h"
#include "orrery/partition_key.h"

namespace orrery::client {

enum class ConsistencyLevel { Strong, BoundedStaleness, Session, ConsistentPrefix, Eventual };

/// When and how often a request is sent again. Waits are jittered.
struct RetryOptions {
  int throttled_max = 9;  ///< 429, each after the time that the server asked for
  std::chrono::milliseconds throttled_wait_max{30'000};  ///< of all those waits together
  int attempts_max = 4;  ///< no connection, a broken one, 408 and 503; also the next region
  std::chrono::milliseconds first_wait{100};            ///< doubled from attempt to attempt
  std::chrono::milliseconds conflict_wait_max{10'000};  ///< 449: somebody else was at it; in all
};

/// How a client talks to an account.
struct ClientOptions {
  /// Regions to read from, the nearest first; empty: where the account says.
  std::vector<std::string> preferred_regions = {};
  /// False: everything goes to the endpoint that was given, whatever the account says of others.
  bool discover_endpoints = true;
  std::optional<ConsistencyLevel> consistency = {};  ///< weaker than the account's, or none
  RetryOptions retry = {};
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds request_timeout{65'000};  ///< of one attempt
  std::size_t connections_max = 256;                  ///< at the same time; more calls wait
  /// PEM of the authority that signed the server's certificate; empty: the system's. Orrery serves
  /// its own at /_explorer/emulator.pem.
  std::string certificate_file = {};
  bool verify_certificate = true;  ///< false only for a server on one's own machine
  std::string user_agent_suffix = {};
  /// Hears of requests that are sent again, and of processors that use the client. None: silence.
  Log log = {};
};

/// For every call. The options of each call begin with these.
struct RequestOptions {
  std::optional<std::string> session_token = {};  ///< instead of the one that the client remembers
  std::optional<ConsistencyLevel> consistency = {};
  std::optional<std::chrono::milliseconds> timeout = {};  ///< of the call, with all its retries
  std::stop_token stop = {};  ///< ends the call soon, with Failure::Cancelled
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< sent along as they are
};

// The structs below have the members of RequestOptions as their own instead of a base: a base has
// no name that an initialiser could designate, and g++ warns of it in every one that leaves it out.

/// For calls about one document.
struct ItemOptions {
  std::optional<std::string> session_token = {};
  std::optional<ConsistencyLevel> consistency = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::stop_token stop = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string if_match = {};       ///< only if its etag is still this one; else 412
  std::string if_none_match = {};  ///< reads: only if its etag is another; else 304 and no text
  bool return_content = true;      ///< false: writes answer without the document
  std::vector<std::string> pre_triggers = {};
  std::vector<std::string> post_triggers = {};

  operator RequestOptions() const { return {session_token, consistency, timeout, stop, headers}; }
};

/// A part of the hash space of a container, or all of it. Stays meaningful when ranges are split or
/// merged. As text, for storing it: `{"Range":{"min":"","max":"FF"}}`.
struct FeedRange {
  std::string min = {};    ///< inclusive, hexadecimal
  std::string max = "FF";  ///< exclusive

  std::string to_json() const;
  /// Throws CosmosException (Argument) when it is none.
  static FeedRange from_json(std::string_view json);
  bool overlaps(const FeedRange& other) const { return min < other.max && other.min < max; }
  friend bool operator==(const FeedRange&, const FeedRange&) = default;
};

/// For lists.
struct ListOptions {
  std::optional<std::string> session_token = {};
  std::optional<ConsistencyLevel> consistency = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::stop_token stop = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::optional<std::uint32_t> page_size = {};  ///< at the most; none: the server decides
  std::string continuation = {};                ///< go on where a page ended

  operator RequestOptions() const { return {session_token, consistency, timeout, stop, headers}; }
};

struct QueryOptions;

/// For lists of documents. Neither key nor range: the whole container.
struct ItemListOptions {
  std::optional<std::string> session_token = {};
  std::optional<ConsistencyLevel> consistency = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::stop_token stop = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::optional<std::uint32_t> page_size = {};  ///< at the most; none: the server decides
  std::string continuation = {};                ///< go on where a page ended
  std::optional<PartitionKey> partition_key = {};
  std::optional<FeedRange> feed_range = {};

  operator RequestOptions() const { return {session_token, consistency, timeout, stop, headers}; }
  operator QueryOptions() const;
};

/// For queries of documents. Of a feed range, each range of the server answers by itself, and its
/// rows come one range after the other; everything else the server puts together.
struct QueryOptions {
  std::optional<std::string> session_token = {};
  std::optional<ConsistencyLevel> consistency = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::stop_token stop = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::optional<std::uint32_t> page_size = {};  ///< at the most; none: the server decides
  std::string continuation = {};                ///< go on where a page ended
  std::optional<PartitionKey> partition_key = {};
  std::optional<FeedRange> feed_range = {};
  /// Requests the times of each step: the header x-ms-documentdb-query-metrics of each page,
  /// `name=value;…`.
  bool populate_query_metrics = false;
  /// Which indexes served, or would: the header x-ms-cosmos-index-utilization of each page, JSON
  /// that is percent-encoded.
  bool populate_index_metrics = false;
  /// How the rows were found: the header x-orrery-explain of each page, JSON that is
  /// percent-encoded. Orrery only.
  bool explain = false;

  operator RequestOptions() const { return {session_token, consistency, timeout, stop, headers}; }
};

inline ItemListOptions::operator QueryOptions() const {
  return {.session_token = session_token,
          .consistency = consistency,
          .timeout = timeout,
          .stop = stop,
          .headers = headers,
          .page_size = page_size,
          .continuation = continuation,
          .partition_key = partition_key,
          .feed_range = feed_range};
}

/// A parameter of a query: `@name` and its value.
struct QueryParameter {
  std::string name;
  std::string json;

  QueryParameter(std::string parameter, JsonText value)
      : name(std::move(parameter)), json(std::move(value).take()) {}
};

struct Query {
  std::string text;
  std::vector<QueryParameter> parameters;

  Query(const char* sql) : text(sql) {}
  Query(std::string sql, std::vector<QueryParameter> values = {})
      : text(std::move(sql)), parameters(std::move(values)) {}
};

/// Provisioned throughput: one of the two.
struct Throughput {
  std::optional<std::int64_t> manual = {};         ///< RU/s
  std::optional<std::int64_t> autoscale_max = {};  ///< RU/s at the most

  static Throughput fixed(std::int64_t units) { return {units, {}}; }
  static Throughput autoscale(std::int64_t units_max) { return {{}, units_max}; }
};

/// For calls that make a database or a container.
struct CreateOptions {
  std::optional<std::string> session_token = {};
  std::optional<ConsistencyLevel> consistency = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::stop_token stop = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::optional<Throughput> throughput = {};

  operator RequestOptions() const { return {session_token, consistency, timeout, stop, headers}; }
};

}  // namespace orrery::client
