// The feed of a whole container: all ranges merged in the order of time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "feed/page.h"
#include "feed/position.h"
#include "feed/reader.h"
#include "storage/store.h"

namespace orrery::feed {

/// A range of the container, in the order of their EPKs.
struct ContainerRange {
  PartitionNumber partition;
  EpkRange epks;
};

struct ContainerPage {
  std::string text;  ///< the items, separated by commas, after what was in it before
  std::size_t count = 0;
  ContainerPosition position;
  std::vector<Lsn> heads;  ///< of each range, in the snapshot that was read
  UnixSeconds last_ts = 0;
  bool caught_up = false;    ///< nothing is left above `position`; without items: answer 304
  bool below_merge = false;  ///< in some range where `_ts` is not monotone
  std::optional<EndedLife> ended_life;  ///< of the first part whose position has one
};

/// Changes after `from` in the order of (`_ts`, range), each range's own order kept. Of the request
/// its scope and its `after` do not matter. Blocks. Errors as Reader::read.
Result<ContainerPage> read_container(Reader& reader, const storage::Snapshot& snapshot,
                                     const std::vector<ContainerRange>& ranges,
                                     const ContainerPosition& from, const PageRequest& request,
                                     std::string text = {});

/// Where everything that is newer than `time` begins. Nothing when nothing is; then `heads` is
/// where the ranges stand.
struct ContainerTimePosition {
  bool found = false;
  ContainerPosition position;
  std::vector<Lsn> heads;
};
Result<ContainerTimePosition> find_container_time(Reader& reader, const storage::Snapshot& snapshot,
                                                  const std::vector<ContainerRange>& ranges,
                                                  const PageRequest& request, UnixSeconds time);

/// The position of a reader that begins now.
Result<ContainerTimePosition> find_container_heads(const storage::Snapshot& snapshot,
                                                   const std::vector<ContainerRange>& ranges);

/// The changes above `from`, in all ranges.
struct ContainerLag {
  Lag sum;
  std::vector<Lsn> heads;
};
Result<ContainerLag> container_lag(Reader& reader, const storage::Snapshot& snapshot,
                                   const std::vector<ContainerRange>& ranges,
                                   const ContainerPosition& from, const PageRequest& request);

}  // namespace orrery::feed
