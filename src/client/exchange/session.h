// Sessions: how far this client has read and written in each range of each container, so that it
// never reads what is older.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orrery/container.h"

namespace orrery::client {

/// The position in one range: `42`, or `version#42` with positions of regions after it.
struct SessionPosition {
  std::optional<std::int64_t> version;  ///< none: the simple form
  std::int64_t lsn = 0;
  std::vector<std::pair<std::uint64_t, std::int64_t>> regions;  ///< by id

  /// Nothing for what has neither form.
  static std::optional<SessionPosition> parse(std::string_view text);
  std::string text() const;
  /// Becomes the later of both, region by region.
  void advance(const SessionPosition& other);

  bool operator==(const SessionPosition&) const = default;
};

/// Thread-safe.
class Sessions {
 public:
  /// Takes what an answer about `container` ("dbs/x/colls/y") says. `rid` is the container's as the
  /// answer names it, or empty: another one than before means another container under the same
  /// name, whose positions begin anew.
  void remember(const std::string& container, std::string_view rid, std::string_view token);

  /// The session token for a read: of one range if `range` names it ("3" or "<rid>,3"), otherwise
  /// of all. A range that has no position of its own has that of the ranges that it was made of.
  /// Empty when nothing is known.
  std::string token(const std::string& container, std::string_view range) const;

  /// Tells which ranges came from which.
  void learn_parents(const std::string& container, std::span<const PartitionKeyRange> ranges);

  /// The rid of the container that the positions are of; empty where no answer has named it.
  std::string rid(const std::string& container) const;

  /// `rid` has the name now and `former`, whose positions are forgotten, no longer. Nothing happens
  /// if that is known already.
  void begin_anew(const std::string& container, const std::string& former, std::string_view rid);

 private:
  struct Tokens {
    mutable std::mutex mutex;
    std::string rid;
    std::string former_rid;
    std::map<std::string, SessionPosition, std::less<>> positions;  // By id of the range.
    std::map<std::string, std::vector<std::string>, std::less<>> parents;
    std::string all;  // The header for all ranges, made anew when a position changes.

    void become(std::string_view other_rid);  // With the lock held.
  };
  using TokensPtr = std::shared_ptr<Tokens>;

  TokensPtr find(const std::string& container) const;
  TokensPtr find_or_add(const std::string& container);

  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, TokensPtr> containers_;  // Shared with their users.
};

}  // namespace orrery::client
