#include "storage/value_cache.h"

#include <string>

#include <rocksdb/cache.h>

#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#endif

namespace orrery::storage {
namespace {

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

/// What a cached value costs beside its bytes: the entry, its key and its string.
constexpr std::size_t kEntryOverhead = 128;

// The cache's own locks order what threads do with a value, but RocksDB comes without
// instrumentation: TSan has to be told.
void hand_over([[maybe_unused]] void* value) {
#if __has_feature(thread_sanitizer)
  __tsan_release(value);
#endif
}
void take_over([[maybe_unused]] void* value) {
#if __has_feature(thread_sanitizer)
  __tsan_acquire(value);
#endif
}

void destroy(const rocksdb::Slice& /*key*/, void* value) {
  take_over(value);
  delete static_cast<std::string*>(value);
}

}  // namespace

ValueCache::ValueCache(std::size_t bytes) : cache_(rocksdb::NewLRUCache(bytes)) {}
ValueCache::~ValueCache() = default;

ValueCache::Pin::~Pin() {
  if (cache_ == nullptr) return;
  auto* const handle = static_cast<rocksdb::Cache::Handle*>(handle_);
  hand_over(cache_->Value(handle));
  cache_->Release(handle);
}

std::string_view ValueCache::Pin::value() const {
  return *static_cast<const std::string*>(
      cache_->Value(static_cast<rocksdb::Cache::Handle*>(handle_)));
}

ValueCache::Pin ValueCache::find(std::string_view key) const {
  auto* const handle = cache_->Lookup(slice(key));
  if (handle == nullptr) return Pin();
  take_over(cache_->Value(handle));
  return Pin(cache_.get(), handle);
}

void ValueCache::insert(std::string_view key, std::string_view value) {
  auto copy = std::make_unique<std::string>(value);
  const std::size_t charge = copy->capacity() + kEntryOverhead;
  hand_over(copy.get());
  // Takes the value over, also where it has no room for it.
  cache_->Insert(slice(key), copy.release(), charge, &destroy).PermitUncheckedError();
}

std::size_t ValueCache::bytes() const { return cache_->GetUsage(); }

}  // namespace orrery::storage
