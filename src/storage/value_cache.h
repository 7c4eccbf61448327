// Values that never change under their keys, kept in memory one by one.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace orrery::storage {

/// Where one document here and one there is read, blocks that hold its neighbours too are a waste
/// of memory, and finding it in one takes longer than all else. Thread-safe.
///
/// RocksDB's own caches keep their values in the order of their last use: each look-up moves one in
/// a list, and touches its neighbours in memory, twice. Here a look-up only marks an entry;
/// those that were not marked are evicted first.
class ValueCache {
 private:
  struct Entry;
  class Shard;

 public:
  explicit ValueCache(std::size_t bytes);
  ~ValueCache();

  /// A value that stays for as long as somebody holds on to it, even longer than the cache.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(entry_, other.entry_);
      return *this;
    }
    ~Pin();
    explicit operator bool() const { return entry_ != nullptr; }
    std::string_view value() const;

   private:
    friend class ValueCache;
    explicit Pin(Entry* entry) : entry_(entry) {}
    Entry* entry_ = nullptr;
  };

  /// Nothing when it is not there.
  Pin find(std::string_view key) const;
  /// Does nothing where the key has a value already, or where it does not fit.
  void insert(std::string_view key, std::string_view value);
  std::size_t bytes() const;

 private:
  Shard& shard_of(std::size_t hash) const;

  const std::size_t shard_count_;
  const std::unique_ptr<Shard[]> shards_;
};

}  // namespace orrery::storage
