// FeedContinuation: how far a reader of the change feed has come, and of what, as a text that can
// be kept for years and used by another process.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "orrery/change_feed.h"

namespace orrery::client {

/// A part of the hash space that is read as one, and how far.
struct FeedSlice {
  FeedRange range{};
  /// If-None-Match of the next request, as the server gave it; empty: the beginning. "*" is now,
  /// until the server has said where that is.
  std::string etag{};
  /// Changes up to this second are not wanted.
  std::optional<UnixSeconds> since{};

  bool operator==(const FeedSlice&) const = default;
};

/// As text, a JSON object. Readers ignore members that they do not know.
///
///   {"v":1,                                 the version of this format
///    "rid":"AAAAAYAAAAE=",                  of the container
///    "mode":"latest",                       or "all"
///    "key":"[\"ann\"]",                     only where one partition key, or a prefix of one, is
///    read "slices":[{"min":"","max":"1F","etag":"\"12\""},{"min":"1F","max":"FF"}]}
///
/// Slices are in the order of the hash space and without gaps. One without "etag" is at the
/// beginning; "since" (seconds since 1970) is where the start was a time.
struct FeedContinuation {
  std::string container_rid{};
  ChangeFeedMode mode = ChangeFeedMode::LatestVersion;
  std::optional<PartitionKey> key{};
  std::vector<FeedSlice> slices{};

  std::string to_text() const;
  /// Throws CosmosException (Argument) for whatever to_text did not make.
  static FeedContinuation parse(std::string_view text);

  /// The range that is read, from the first slice to the last.
  FeedRange range() const { return {slices.front().range.min, slices.back().range.max}; }

  bool operator==(const FeedContinuation&) const = default;
};

/// The same range, its bounds written as the server writes them. Throws CosmosException (Argument)
/// when it is none, or empty.
FeedRange checked_range(const FeedRange& range);

}  // namespace orrery::client
