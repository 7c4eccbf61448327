// WalGuard: watches RocksDB replay its write-ahead log. For store.cc only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <rocksdb/wal_filter.h>

namespace orrery::storage {

/// RocksDB numbers all operations without gaps, but replays across a gap without a word. Used by
/// one opening; must live as long as the RocksDB that it was given to.
class WalGuard final : public rocksdb::WalFilter {
 public:
  enum class OnGap {
    Fail,  ///< the opening fails, with nothing changed on the disk
    Stop,  ///< replay ends, and what follows is dropped
  };
  explicit WalGuard(OnGap on_gap) : on_gap_(on_gap) {}

  /// Whether replay has begun: MANIFEST and tables were in order.
  bool has_begun() const { return !first_wals_.empty(); }
  /// No log before this one is replayed.
  std::uint64_t first_wal() const;
  std::uint32_t family(const std::string& name) const;
  /// Whether there was anything to replay.
  bool has_replayed() const { return first_seen_.has_value(); }
  /// How much of the log was replayed, in bytes of its file; 0: nothing.
  std::uint64_t replayed(std::uint64_t wal) const;
  /// The log that replay was stopped in, because of a gap before it.
  std::optional<std::uint64_t> stopped_in() const { return stopped_in_; }
  /// Whether the family has nothing more to take from that log, or from those before it.
  bool is_beyond(std::uint32_t family, std::uint64_t wal) const;

  const char* Name() const override { return "orrery.WalGuard"; }
  void ColumnFamilyLogNumberMap(const std::map<std::uint32_t, std::uint64_t>& first_wals,
                                const std::map<std::string, std::uint32_t>& families) override;
  WalProcessingOption LogRecordFound(unsigned long long wal, const std::string& file,
                                     const rocksdb::WriteBatch& batch, rocksdb::WriteBatch*,
                                     bool*) override;

 private:
  const OnGap on_gap_;
  std::map<std::uint32_t, std::uint64_t> first_wals_;  // Of each family.
  std::map<std::string, std::uint32_t> families_;
  std::optional<std::uint64_t> first_seen_;
  std::map<std::uint64_t, std::uint64_t> replayed_;  // Bytes of each log.
  std::optional<std::uint64_t> expected_;            // The number of the next operation.
  std::optional<std::uint64_t> stopped_in_;
};

}  // namespace orrery::storage
