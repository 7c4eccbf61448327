// The change feed, pulled page by page.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/options.h"
#include "orrery/response.h"

namespace orrery::client {

enum class ChangeFeedMode {
  LatestVersion,          ///< each document once, as it is now, in the order of the last changes
  AllVersionsAndDeletes,  ///< every change, as far as the container keeps them
};

/// Where reading begins.
class ChangeFeedStart {
 public:
  enum class Kind { Beginning, Now, Time, Continuation };

  static ChangeFeedStart beginning() { return ChangeFeedStart(Kind::Beginning); }
  static ChangeFeedStart now() { return ChangeFeedStart(Kind::Now); }
  /// After this second.
  static ChangeFeedStart after(std::chrono::system_clock::time_point time) {
    ChangeFeedStart start(Kind::Time);
    start.time_ = time;
    return start;
  }
  /// Resumes from a continuation token of an iterator or a page. Scope and mode come with it.
  static ChangeFeedStart continuation(std::string token) {
    ChangeFeedStart start(Kind::Continuation);
    start.token_ = std::move(token);
    return start;
  }

  Kind kind() const { return kind_; }
  std::chrono::system_clock::time_point time() const { return time_; }
  const std::string& token() const { return token_; }

 private:
  explicit ChangeFeedStart(Kind kind) : kind_(kind) {}

  Kind kind_;
  std::chrono::system_clock::time_point time_;
  std::string token_;
};

/// For Container::change_feed().
struct ChangeFeedOptions {
  std::optional<std::string> session_token = {};
  std::optional<ConsistencyLevel> consistency = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::stop_token stop = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  ChangeFeedStart start = ChangeFeedStart::beginning();
  ChangeFeedMode mode = ChangeFeedMode::LatestVersion;
  /// Neither of the two: the whole container.
  std::optional<PartitionKey> partition_key = {};
  std::optional<FeedRange> feed_range = {};
  std::optional<std::uint32_t> page_size =
      {};  ///< a transaction is never cut: a page may have more
  /// Where the server offers it (Orrery does), next() waits so long for a change before it answers
  /// that there is none. Elsewhere it has no effect; see ChangeFeedPage::waited.
  std::optional<std::chrono::seconds> wait = {};
  /// Orrery only: an expression over `c`, and a select list. Others show everything.
  std::string filter = {};
  std::string select = {};

  operator RequestOptions() const { return {session_token, consistency, timeout, stop, headers}; }
};

/// Some changes of one range, in order. Of a transaction, all or nothing.
struct ChangeFeedPage : ItemPage {
  /// There was nothing new. The continuation may have moved all the same.
  bool not_modified = false;
  /// The server has waited for a change; there is no need to pause before the next call.
  bool waited = false;
  /// Where the changes come from.
  FeedRange feed_range;
};

/// Reads on and on. Splits and merges of ranges are followed; nothing is skipped or shown twice by
/// them. For one thread.
class ChangeFeedIterator {
 public:
  /// The next page. When a whole round of all ranges has brought nothing, one that is not_modified:
  /// then pause, or stop.
  ChangeFeedPage next();

  /// Where the page after the last one that next() gave begins: store it together with what was
  /// made of that page. Before the first page it is where reading began, as soon as that is known.
  std::string continuation() const;

  class State;
  explicit ChangeFeedIterator(std::unique_ptr<State> state);
  ~ChangeFeedIterator();
  ChangeFeedIterator(ChangeFeedIterator&&) noexcept;
  ChangeFeedIterator& operator=(ChangeFeedIterator&&) noexcept;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace orrery::client
