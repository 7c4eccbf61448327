// FeedReader: the monitored container, as the processor sees it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/async.h"
#include "orrery/container.h"
#include "orrery/response.h"

namespace orrery::processor {

/// Where to read, and how much.
struct FeedRequest {
  std::string range_id;
  std::optional<client::FeedRange> slice;  ///< of that range, for leases of a part of it
  /// If-None-Match: an etag, or "*" for now; empty: from the beginning.
  std::string after;
  std::optional<std::chrono::system_clock::time_point> since;  ///< instead of `after`
  std::optional<std::uint32_t> page_size;
  std::optional<std::chrono::seconds> wait;  ///< long poll, where the server offers it
  std::string session_token;
  client::ChangeFeedMode mode = client::ChangeFeedMode::LatestVersion;
  std::chrono::milliseconds time_max{600'000};
  std::stop_token stop;  ///< ends the read soon, with whatever kind of answer
};

/// The outcome of a read. Never an exception: everything the feed loop has to tell apart is a kind.
struct FeedAnswer {
  enum class Kind {
    Page,         ///< changes, or an empty page with a new etag
    NotModified,  ///< caught up
    Gone,         ///< the range was split or merged
    NotFound,     ///< the container is gone
    SessionNotAvailable,
    Throttled,     ///< 429, and 5xx: wait
    PageTooLarge,  ///< "Reduce page size and try again."
    Failed,
  };
  Kind kind = Kind::NotModified;
  client::ItemPage page;
  std::string etag;           ///< the position after it
  std::string session_token;  ///< of the answer
  bool waited = false;        ///< the server has long-polled
  std::optional<std::chrono::milliseconds> retry_after;
  int status = 0;
  std::string message;
  /// The server's warning about the position that was asked from: its data was put back from a
  /// copy, or lost writes, and the position is from before. Empty: none.
  std::string warning;
};

/// Exactly what is left after a position, where the server can tell.
struct PendingChanges {
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  std::chrono::seconds age{0};
};

/// Implementations: a container of a server, and a simulated one. Called on the host's executor;
/// resumes there.
class FeedReader {
 public:
  virtual ~FeedReader() = default;

  virtual asio::awaitable<FeedAnswer> read(FeedRequest request) = 0;
  /// The ranges as they are now.
  virtual Async<std::vector<client::PartitionKeyRange>> ranges() = 0;
  /// nullopt where the server can't tell.
  virtual Async<std::optional<PendingChanges>> pending(FeedRequest request) = 0;
  /// The parts of the ids of leases: host name of the endpoint, and rids and names of database and
  /// container.
  struct Identity {
    std::string feed_host, database_rid, container_rid, database_name, container_name;
  };
  virtual Async<Identity> identity() = 0;
  /// Where the partition key of a document is: what may not overtake one another.
  virtual Async<std::vector<std::string>> partition_key_paths() {
    co_return std::vector<std::string>{"/id"};
  }
};

}  // namespace orrery::processor
