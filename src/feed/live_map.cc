#include "feed/live_map.h"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/assert.h"
#include "base/diagnostics.h"
#include "feed/source.h"

namespace orrery::feed {

using storage::Family;
using storage::LogPosition;

namespace {

/// The stop flag is checked after so many entries while a map is built.
constexpr std::size_t kStopInterval = 4096;
/// Partitions that are remembered; beyond that those that were not used for longest are forgotten.
constexpr std::size_t kEntriesMax = 1024;
/// To step over a dead version costs about so many times as much as to read an entry of `rids`.
constexpr std::uint64_t kDeadStepCost = 8;

void append_number(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

std::uint64_t read_number(const std::string& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

/// Positions are sorted as one number. An index that does not fit is cut, which makes the map name
/// an earlier place of the same transaction: that is allowed, since a reader seeks to it and finds
/// what is at or after it.
std::uint64_t pack(LogPosition position) {
  return position.lsn.value << LiveMap::kIndexBits | std::min(position.index, LiveMap::kIndexMax);
}
LogPosition unpack(std::uint64_t packed) {
  return {Lsn{packed >> LiveMap::kIndexBits},
          static_cast<std::uint32_t>(packed & LiveMap::kIndexMax)};
}

}  // namespace

// ── LiveMap ──────────────────────────────────────────────────────────────────────────────────────

void LiveMap::Builder::add(LogPosition position) {
  if (count_ > 0 && position == last_) return;
  if (count_ % kBlockPositions == 0) {
    blocks_.emplace_back(position, static_cast<std::uint32_t>(bytes_.size()));
  } else {
    const std::uint64_t ahead = position.lsn.value - last_.lsn.value;
    append_number(bytes_, ahead * 2 + (position.index != 0 ? 1 : 0));
    if (position.index != 0) append_number(bytes_, position.index);
  }
  last_ = position;
  ++count_;
}

LiveMap LiveMap::Builder::finish(Lsn head) {
  LiveMap map;
  bytes_.shrink_to_fit();
  blocks_.shrink_to_fit();
  map.bytes_ = std::move(bytes_);
  map.blocks_ = std::move(blocks_);
  map.count_ = count_;
  map.head_ = head;
  return map;
}

std::size_t LiveMap::byte_size() const {
  return sizeof(LiveMap) + bytes_.capacity() + blocks_.capacity() * sizeof(blocks_[0]);
}

void LiveMap::Walk::enter(std::size_t block) {
  block_ = block;
  current_ = map_->blocks_[block].first;
  at_ = map_->blocks_[block].second;
  left_ = std::min(kBlockPositions, map_->count_ - block * kBlockPositions) - 1;
  placed_ = true;
}

bool LiveMap::Walk::step() {
  if (left_ == 0) {
    if (block_ + 1 == map_->blocks_.size()) return false;
    enter(block_ + 1);
    return true;
  }
  --left_;
  const std::uint64_t number = read_number(map_->bytes_, at_);
  current_.lsn.value += number / 2;
  current_.index = number % 2 == 0 ? 0 : static_cast<std::uint32_t>(read_number(map_->bytes_, at_));
  return true;
}

std::optional<LogPosition> LiveMap::Walk::at_least(LogPosition from) {
  const auto& blocks = map_->blocks_;
  if (blocks.empty()) return std::nullopt;
  // Within this block or the next one steps on; further, or back, one looks the block up.
  const bool near = placed_ && current_ <= from &&
                    (block_ + 2 >= blocks.size() || from < blocks[block_ + 2].first);
  if (!near) {
    const auto after = std::ranges::upper_bound(
        blocks, from, {}, [](const auto& block) -> const LogPosition& { return block.first; });
    enter(after == blocks.begin() ? 0 : static_cast<std::size_t>(after - blocks.begin()) - 1);
  }
  while (current_ < from) {
    if (!step()) return std::nullopt;
  }
  return current_;
}

// ── LiveMaps ─────────────────────────────────────────────────────────────────────────────────────

LiveMaps::LiveMaps(storage::Store& store, boost::asio::thread_pool& pool, LiveMapLimits limits)
    : store_(store), pool_(pool), limits_(limits) {}

void LiveMaps::stop() { stopping_.store(true, std::memory_order_relaxed); }

std::shared_ptr<const LiveMap> LiveMaps::of(PartitionNumber partition, const storage::Head& head) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(partition.value);
  // Most partitions never need one.
  if (found == entries_.end()) return nullptr;
  Entry& entry = found->second;
  entry.used = ++uses_;
  // An older snapshot than the map's may hold versions that the map does not name.
  if (entry.map && entry.map->head() > head.lsn) return nullptr;
  return entry.map;
}

void LiveMaps::note_slow(PartitionNumber partition, const storage::Head& head) {
  if (head.documents > limits_.documents_max) return;
  std::lock_guard lock(mutex_);
  Entry& entry = entries_[partition.value];
  entry.used = ++uses_;
  if (entry.map && head.lsn.value < entry.map->head().value + limits_.new_lsns_min) return;
  begin(partition, entry);
}

void LiveMaps::begin(PartitionNumber partition, Entry& entry) {
  const auto now = std::chrono::steady_clock::now();
  if (building_ || now < entry.rests_until || stopping_.load(std::memory_order_relaxed)) return;
  building_ = true;
  boost::asio::post(pool_, [this, partition] {
    if (auto built = build(partition); !built) {
      diagnostics::debug("no live map was made: {}", built.error().message());
    }
    std::lock_guard lock(mutex_);
    building_ = false;
  });
}

Result<> LiveMaps::build(PartitionNumber partition) {
  const auto begun = std::chrono::steady_clock::now();
  std::shared_ptr<const LiveMap> before;
  {
    std::lock_guard lock(mutex_);
    before = entries_[partition.value].map;
  }
  const auto make = [&]() -> Result<LiveMap> {
    ORRERY_TRY(const auto snapshot, store_.snapshot());
    ORRERY_TRY(const auto head, head_in(snapshot, partition));
    // A map with few changes since, compared with all documents, is extended by them. But one that
    // names mostly dead versions by now is rebuilt.
    const bool extendable = before && before->head() <= head.lsn &&
                            before->count() < head.documents * 2 + limits_.new_lsns_min &&
                            head.lsns_above(before->head()) * kDeadStepCost < head.documents;
    return extendable ? extend(snapshot, partition, head, *before)
                      : build_whole(snapshot, partition, head);
  };
  auto map = make();
  const auto took = std::chrono::steady_clock::now() - begun;
  if (!map) {
    std::lock_guard lock(mutex_);
    entries_[partition.value].rests_until =
        std::chrono::steady_clock::now() + std::chrono::seconds(10);
    return Error(map.error());
  }
  keep(partition, std::move(*map), took);
  return {};
}

Result<LiveMap> LiveMaps::build_whole(const storage::Snapshot& snapshot, PartitionNumber partition,
                                      const storage::Head& head) const {
  std::vector<std::uint64_t> positions;
  positions.reserve(std::min(head.documents, limits_.documents_max));
  auto cursor = snapshot.cursor(Family::Rids, storage::partition_prefix(partition),
                                storage::partition_end(partition), storage::Snapshot::Access::Scan);
  for (; cursor.valid(); cursor.next()) {
    const auto position = storage::parse_position_value(cursor.value());
    ORRERY_ASSERT(position.has_value());
    positions.push_back(pack(*position));
    if (positions.size() % kStopInterval == 0 && stopping_.load(std::memory_order_relaxed)) {
      return Error(ErrorCode::Unavailable, "the server is stopping");
    }
    if (positions.size() > limits_.documents_max) {
      return Error(ErrorCode::TooManyRequests, "the partition has too many documents for a map");
    }
  }
  ORRERY_TRY(cursor.status());
  std::ranges::sort(positions);
  LiveMap::Builder builder;
  for (const std::uint64_t packed : positions) builder.add(unpack(packed));
  return builder.finish(head.lsn);
}

Result<LiveMap> LiveMaps::extend(const storage::Snapshot& snapshot, PartitionNumber partition,
                                 const storage::Head& head, const LiveMap& map) const {
  LiveMap::Builder builder;
  LiveMap::Walk walk(map);
  for (auto at = walk.at_least({}); at; at = walk.at_least({at->lsn, at->index + 1})) {
    builder.add(*at);
  }
  auto cursor = snapshot.cursor(Family::Log, storage::log_key(partition, {next(map.head()), 0}),
                                storage::partition_end(partition), storage::Snapshot::Access::Scan);
  for (std::size_t looked_at = 1; cursor.valid(); cursor.next(), ++looked_at) {
    builder.add(unpack(pack(storage::log_position(cursor.key()))));
    if (looked_at % kStopInterval == 0 && stopping_.load(std::memory_order_relaxed)) {
      return Error(ErrorCode::Unavailable, "the server is stopping");
    }
  }
  ORRERY_TRY(cursor.status());
  return builder.finish(head.lsn);
}

void LiveMaps::keep(PartitionNumber partition, LiveMap map,
                    std::chrono::steady_clock::duration took) {
  std::lock_guard lock(mutex_);
  Entry& entry = entries_[partition.value];
  entry.map = std::make_shared<const LiveMap>(std::move(map));
  entry.rests_until = std::chrono::steady_clock::now() + took * limits_.rest_factor;
  entry.used = ++uses_;
  stats_.built.fetch_add(1, std::memory_order_relaxed);
  // Evict the least recently used maps.
  for (;;) {
    std::size_t bytes = 0;
    auto oldest = entries_.end();
    for (auto each = entries_.begin(); each != entries_.end(); ++each) {
      if (each->second.map) bytes += each->second.map->byte_size();
      if (oldest == entries_.end() || each->second.used < oldest->second.used) oldest = each;
    }
    stats_.bytes.store(bytes, std::memory_order_relaxed);
    if (bytes <= limits_.bytes_max && entries_.size() <= kEntriesMax) return;
    entries_.erase(oldest);
  }
}

}  // namespace orrery::feed
