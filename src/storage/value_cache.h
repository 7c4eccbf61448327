// Values that never change under their keys, kept in memory one by one.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace rocksdb {
class Cache;
}

namespace orrery::storage {

/// Where one document here and one there is read, blocks that hold its neighbours too are a waste
/// of memory, and finding it in one takes longer than all else. Thread-safe.
class ValueCache {
 public:
  explicit ValueCache(std::size_t bytes);
  ~ValueCache();

  /// A value that stays for as long as somebody holds on to it.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept
        : cache_(std::exchange(other.cache_, nullptr)), handle_(other.handle_) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(cache_, other.cache_);
      std::swap(handle_, other.handle_);
      return *this;
    }
    ~Pin();
    explicit operator bool() const { return cache_ != nullptr; }
    std::string_view value() const;

   private:
    friend class ValueCache;
    Pin(rocksdb::Cache* cache, void* handle) : cache_(cache), handle_(handle) {}
    rocksdb::Cache* cache_ = nullptr;
    void* handle_ = nullptr;
  };

  /// Nothing when it is not there.
  Pin find(std::string_view key) const;
  void insert(std::string_view key, std::string_view value);
  std::size_t bytes() const;

 private:
  const std::shared_ptr<rocksdb::Cache> cache_;
};

}  // namespace orrery::storage
