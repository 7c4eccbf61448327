// FeedPrinter: changes as lines, for people or for programs.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "cli/feed/feed_follower.h"

namespace orrery::cli {

/// The LSN that an item of a feed carries, in either form.
std::int64_t lsn_of(std::string_view item);

class FeedPrinter {
 public:
  enum class Style { Pretty, Json, Etag };
  static Style style_of(std::string_view name);

  FeedPrinter(std::FILE* out, Style style, bool coloured, bool all_versions)
      : out_(out), style_(style), coloured_(coloured), all_versions_(all_versions) {}

  /// False when nobody reads any more.
  bool print(const FeedGroup& group);

 private:
  std::string pretty(std::string_view item) const;

  std::FILE* out_;
  const Style style_;
  const bool coloured_;
  const bool all_versions_;
};

}  // namespace orrery::cli
