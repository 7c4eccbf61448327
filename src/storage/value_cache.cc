#include "storage/value_cache.h"

#include <string>

#include <rocksdb/cache.h>

namespace orrery::storage {
namespace {

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

/// What a cached value costs beside its bytes: the entry, its key and its string.
constexpr std::size_t kEntryOverhead = 128;

void destroy(const rocksdb::Slice& /*key*/, void* value) {
  delete static_cast<std::string*>(value);
}

}  // namespace

ValueCache::ValueCache(std::size_t bytes) : cache_(rocksdb::NewLRUCache(bytes)) {}
ValueCache::~ValueCache() = default;

ValueCache::Pin::~Pin() {
  if (cache_ != nullptr) cache_->Release(static_cast<rocksdb::Cache::Handle*>(handle_));
}

std::string_view ValueCache::Pin::value() const {
  return *static_cast<const std::string*>(
      cache_->Value(static_cast<rocksdb::Cache::Handle*>(handle_)));
}

ValueCache::Pin ValueCache::find(std::string_view key) const {
  auto* const handle = cache_->Lookup(slice(key));
  return handle == nullptr ? Pin() : Pin(cache_.get(), handle);
}

void ValueCache::insert(std::string_view key, std::string_view value) {
  auto copy = std::make_unique<std::string>(value);
  const std::size_t charge = copy->capacity() + kEntryOverhead;
  // Takes the value over, also where it has no room for it.
  cache_->Insert(slice(key), copy.release(), charge, &destroy).PermitUncheckedError();
}

std::size_t ValueCache::bytes() const { return cache_->GetUsage(); }

}  // namespace orrery::storage
