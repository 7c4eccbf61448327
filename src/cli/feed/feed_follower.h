// FeedFollower: reads a change feed to its end and then waits for more, through drops of the
// connection and restarts of the server, without losing or repeating a change.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/connection.h"

namespace orrery::cli {

/// Which feed, and where to begin.
struct FeedChoice {
  std::string link;          ///< dbs/…/colls/…
  std::string range;         ///< one range; or
  std::string key;           ///< one partition key, as JSON array; neither: the whole container
  std::string from = "now";  ///< "beginning", "now", an RFC 3339 or RFC 1123 time, or an etag
  std::string filter;        ///< SQL predicate over c
  bool all_versions = false;
};

/// One group of changes that belong together, as the server sent it.
struct FeedGroup {
  std::string etag;
  std::vector<std::string_view> items;  ///< JSON texts
};

class FeedFollower {
 public:
  /// False ends the reading.
  using Take = std::function<bool(const FeedGroup&)>;

  FeedFollower(Connection& connection, FeedChoice choice);

  /// Reads what there is, then waits for more: ends only when `take` says so, or with an error that
  /// waiting does not mend. A server that is away is waited for; `tell` says so.
  Result<> follow(const Take& take, const std::function<void(const std::string&)>& tell);
  /// Reads what there is.
  Result<> drain(const Take& take);

  /// The changes that are still to be read.
  struct Lag {
    std::string items, bytes, lsns, oldest_ts, head;
  };
  Result<Lag> lag();

 private:
  /// The headers that say which feed and from where.
  client::Request request() const;
  /// Turns a start that only holds now into an etag that holds for ever.
  Result<> fix_start();
  Result<> read_stream(const Take& take, bool& ended);

  Connection& connection_;
  const FeedChoice choice_;
  std::string position_;  ///< an etag; empty: the beginning
  std::string modified_since_;
  bool fixed_ = false;
};

}  // namespace orrery::cli
