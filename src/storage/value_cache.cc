#include "storage/value_cache.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>

#include <boost/intrusive/list.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include "base/assert.h"

namespace orrery::storage {
namespace {

/// Threads that look for different keys seldom meet; and what one shard holds is still much more
/// than the largest document.
constexpr std::size_t kShardsMax = 32;
constexpr std::size_t kShardBytesMin = 8 << 20;
/// The cost of a value in the table, which is never quite full.
constexpr std::size_t kSlotBytes = 16;

/// A key that is looked for.
struct Wanted {
  std::string_view key;
  std::size_t hash;
};

}  // namespace

/// With its key and its value in one piece of memory, right behind it.
struct ValueCache::Entry : boost::intrusive::list_base_hook<> {
  Entry(std::size_t hash_of_key, std::string_view key, std::string_view value)
      : hash(hash_of_key),
        key_size(static_cast<std::uint32_t>(key.size())),
        value_size(static_cast<std::uint32_t>(value.size())) {
    std::memcpy(bytes(), key.data(), key.size());
    std::memcpy(bytes() + key.size(), value.data(), value.size());
  }

  static Entry* make(std::size_t hash, std::string_view key, std::string_view value) {
    void* const memory = ::operator new(sizeof(Entry) + key.size() + value.size());
    return new (memory) Entry(hash, key, value);
  }
  void hold() { holders.fetch_add(1, std::memory_order_relaxed); }
  void let_go() {
    if (holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    this->~Entry();
    ::operator delete(this);
  }

  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
  std::string_view key() const { return {bytes(), key_size}; }
  std::string_view value() const { return {bytes() + key_size, value_size}; }
  std::size_t cost() const { return sizeof(Entry) + kSlotBytes + key_size + value_size; }

  const std::size_t hash;
  const std::uint32_t key_size;
  const std::uint32_t value_size;
  std::atomic<std::uint32_t> holders{1};  // The cache is one of them.
  bool is_marked = false;                 // Since its turn to go came last. Guarded by the shard.
};

class alignas(64) ValueCache::Shard {
 public:
  ~Shard() {
    while (!entries_.empty()) drop_first();
  }

  void set_size(std::size_t bytes) { bytes_max_ = bytes; }

  Entry* find(const Wanted& wanted) {
    std::lock_guard lock(mutex_);
    const auto found = table_.find(wanted);
    if (found == table_.end()) return nullptr;
    (*found)->is_marked = true;
    (*found)->hold();
    return *found;
  }

  void insert(const Wanted& wanted, std::string_view value) {
    Entry* const entry = Entry::make(wanted.hash, wanted.key, value);
    std::lock_guard lock(mutex_);
    if (entry->cost() > bytes_max_ || table_.contains(wanted)) {
      entry->let_go();
      return;
    }
    make_room(entry->cost());
    table_.insert(entry);
    entries_.push_back(*entry);
    bytes_ += entry->cost();
    ORRERY_ASSERT(bytes_ <= bytes_max_);
  }

  std::size_t bytes() {
    std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Entry* entry) const { return entry->hash; }
    std::size_t operator()(const Wanted& wanted) const { return wanted.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Entry* a, const Entry* b) const { return a == b; }
    bool operator()(const Wanted& wanted, const Entry* entry) const {
      return wanted.hash == entry->hash && wanted.key == entry->key();
    }
    bool operator()(const Entry* entry, const Wanted& wanted) const {
      return (*this)(wanted, entry);
    }
  };

  /// Evicts entries; one that was marked when its turn comes gets another turn.
  void make_room(std::size_t cost) {
    while (bytes_ + cost > bytes_max_) {
      // The bytes that are counted belong to entries that can be evicted.
      ORRERY_ASSERT(!entries_.empty());
      Entry& first = entries_.front();
      if (std::exchange(first.is_marked, false)) {
        entries_.splice(entries_.end(), entries_, entries_.begin());
      } else {
        drop_first();
      }
    }
  }

  void drop_first() {
    Entry& first = entries_.front();
    entries_.pop_front();
    table_.erase(&first);
    ORRERY_ASSERT(bytes_ >= first.cost());
    bytes_ -= first.cost();
    first.let_go();
  }

  std::mutex mutex_;
  boost::unordered_flat_set<Entry*, Hash, Equal> table_;
  boost::intrusive::list<Entry> entries_;  // The first has its turn next.
  std::size_t bytes_ = 0;
  std::size_t bytes_max_ = 0;
};

ValueCache::ValueCache(std::size_t bytes)
    : shard_count_(std::clamp<std::size_t>(bytes / kShardBytesMin, 1, kShardsMax)),
      shards_(std::make_unique<Shard[]>(shard_count_)) {
  for (std::size_t i = 0; i < shard_count_; ++i) shards_[i].set_size(bytes / shard_count_);
}
ValueCache::~ValueCache() = default;

ValueCache::Pin::~Pin() {
  if (entry_ != nullptr) entry_->let_go();
}

std::string_view ValueCache::Pin::value() const { return entry_->value(); }

ValueCache::Shard& ValueCache::shard_of(std::size_t hash) const {
  // The table goes by the other end of the hash.
  return shards_[(hash >> 48) % shard_count_];
}

ValueCache::Pin ValueCache::find(std::string_view key) const {
  const Wanted wanted{key, std::hash<std::string_view>()(key)};
  return Pin(shard_of(wanted.hash).find(wanted));
}

void ValueCache::insert(std::string_view key, std::string_view value) {
  const Wanted wanted{key, std::hash<std::string_view>()(key)};
  shard_of(wanted.hash).insert(wanted, value);
}

std::size_t ValueCache::bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < shard_count_; ++i) bytes += shards_[i].bytes();
  return bytes;
}

}  // namespace orrery::storage
