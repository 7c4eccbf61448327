// Where a reader of the change feed begins: what it says in If-None-Match, and the etags that it
// gets to say it with.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"

namespace orrery::feed {

/// The start of a change feed, as If-None-Match names it.
struct Start {
  enum class Kind {
    Beginning,  ///< no such header
    Now,        ///< `*`
    After,      ///< an etag: changes above that LSN
  };
  Kind kind = Kind::Beginning;
  Lsn after;  ///< Kind::After
  /// Kind::After, in an etag of a reader of tombstones that is still reading from the beginning:
  /// the head when it began. See tombstone_etag().
  std::optional<Lsn> began_at;
};

/// Reads `123`, `"123"`, `W/"123"`, `*`, `"*"`, with blanks around. BadRequest, with the text that
/// clients look for, for everything else: a broken position is never taken for the beginning.
Result<Start> parse_start(std::string_view if_none_match);

/// `"123"`: decimal digits in quotes and nothing else, since clients parse it.
std::string feed_etag(Lsn position);

/// A reader of tombstones that began at the beginning may stand below where tombstones are kept,
/// and misses none all the same: of what was deleted before it began it was shown nothing. Its etag
/// says when that was:
///
///   "00" position (19 digits) head when it began
std::string tombstone_etag(Lsn position, Lsn began_at);

/// The position of a reader of a whole container: one LSN for each part of the hash space. On the
/// wire `"c:<min>=<lsn>;<min>=<lsn>…"`, ascending; each entry reaches to the next one's min. Where
/// tombstone_etag() would be needed, an entry is `<min>=<lsn>@<head when it began>`.
class ContainerPosition {
 public:
  struct Part {
    Epk min;
    Lsn after;
    std::optional<Lsn> began_at = std::nullopt;  ///< as in Start
    bool operator==(const Part&) const = default;
  };
  /// More than a container can have ranges, but no more than a header holds.
  static constexpr std::size_t kPartsMax = 1024;

  /// Everything from the beginning.
  ContainerPosition() : parts_{{Epk::min(), Lsn{}}} {}
  /// Ascending, the first at Epk::min(). Neighbours that are equally far become one if they may.
  explicit ContainerPosition(std::vector<Part> parts) : parts_(std::move(parts)) {}

  /// BadRequest when it is not such an etag, also for a plain number.
  static Result<ContainerPosition> parse(std::string_view if_none_match);
  std::string etag() const;

  const std::vector<Part>& parts() const { return parts_; }
  /// A range, and how far it has been read.
  struct ReadRange {
    EpkRange epks;
    Lsn after;
    std::optional<Lsn> began_at = std::nullopt;
    bool operator==(const ReadRange&) const = default;
  };
  /// The parts of `epks`, in order.
  std::vector<ReadRange> within(const EpkRange& epks) const;

 private:
  std::vector<Part> parts_;
};

}  // namespace orrery::feed
