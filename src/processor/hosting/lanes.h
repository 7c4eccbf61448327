// Several batches at once inside one lease: what belongs to the same key stays in order, and the
// position never passes what is not done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/path.h"
#include "orrery/change_feed.h"

namespace orrery::processor {

/// Reads partition keys and transactions out of documents. Immutable; threads may share it.
class DocumentReader {
 public:
  /// `key_paths` as in the container's definition: "/a/b". Paths that are none are left out.
  DocumentReader(const std::vector<std::string>& key_paths, client::ChangeFeedMode mode);

  /// The values at the key's paths, as JSON text; the same for documents of the same key.
  std::string key_of(std::string_view document) const;
  /// The LSN of the change: documents of one transaction have the same. nullopt: not told.
  std::optional<std::uint64_t> lsn_of(std::string_view document) const;
  /// The document's id; empty when it has none.
  std::string id_of(std::string_view document) const;

 private:
  json::PathSet paths_;
  std::vector<std::vector<std::size_t>> keys_;  // Alternatives: the first that has one counts.
  std::size_t lsn_ = 0;
  std::vector<std::size_t> ids_;
};

/// Which lane a key goes to.
std::size_t lane_of(std::string_view key, std::size_t lanes);

/// The highest position below which everything is done, while parts of several pages are worked on.
class Watermark {
 public:
  using PageId = std::uint64_t;

  /// The next page, in the order of the feed. `parts` of it have to be done.
  PageId begin(std::string to, std::size_t parts, std::uint64_t documents);
  /// One of its parts is done. `checkpoint_requested`: the observer asks for the page's position.
  void part_done(PageId page, bool checkpoint_requested = false);

  struct Progress {
    std::string position;         ///< everything up to it is done
    std::uint64_t documents = 0;  ///< since the last time it was asked
    bool checkpoint_requested = false;
  };
  /// How far the mark has moved since the last time; nullopt: not at all.
  std::optional<Progress> take_progress();
  /// Pages that are not done.
  std::size_t open_pages() const;

 private:
  struct Page {
    std::string to;
    std::size_t open_parts = 0;
    std::uint64_t documents = 0;
    bool checkpoint_requested = false;
  };
  std::deque<Page> pages_;
  PageId first_ = 0;  // Of pages_.front().
};

}  // namespace orrery::processor
