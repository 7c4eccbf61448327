#include "processor/leases/memory_lease_store.h"

#include <fmt/format.h>

#include "processor/errors.h"
#include "processor/leases/blocking_lease_store.h"

namespace orrery::processor {
namespace {

Error changed(std::string_view id) {
  return Error(ErrorCode::PreconditionFailed,
               fmt::format("the document '{}' has another etag", id));
}

}  // namespace

Async<std::vector<StoredDocument>> MemoryLeaseStore::list(std::string prefix) {
  const std::lock_guard lock(mutex_);
  std::vector<StoredDocument> found;
  for (auto each = documents_.lower_bound(prefix); each != documents_.end(); ++each) {
    if (!each->first.starts_with(prefix)) break;
    found.push_back(each->second);
    found.back().store_now = clock_.unix_seconds();
  }
  co_return found;
}

Async<StoredDocument> MemoryLeaseStore::read(std::string id) {
  const std::lock_guard lock(mutex_);
  const auto found = documents_.find(id);
  if (found == documents_.end()) co_return no_such_lease_document(id);
  StoredDocument document = found->second;
  document.store_now = clock_.unix_seconds();
  co_return document;
}

StoredDocument& MemoryLeaseStore::write(const std::string& id, std::string text) {
  StoredDocument& document = documents_[id];
  document.id = id;
  document.text = std::move(text);
  document.etag = fmt::format("\"{}\"", ++version_);
  document.ts = clock_.unix_seconds();
  document.store_now = document.ts;
  return document;
}

Async<StoredDocument> MemoryLeaseStore::create(std::string id, std::string text) {
  const std::lock_guard lock(mutex_);
  if (documents_.contains(id)) {
    co_return Error(ErrorCode::Conflict, fmt::format("the id '{}' is taken", id));
  }
  co_return write(id, std::move(text));
}

Async<StoredDocument> MemoryLeaseStore::replace(std::string id, std::string text,
                                                std::string etag) {
  const std::lock_guard lock(mutex_);
  const auto found = documents_.find(id);
  if (found == documents_.end()) co_return no_such_lease_document(id);
  if (found->second.etag != etag) co_return changed(id);
  co_return write(id, std::move(text));
}

Async<> MemoryLeaseStore::remove(std::string id, std::string etag) {
  const std::lock_guard lock(mutex_);
  const auto found = documents_.find(id);
  if (found == documents_.end()) co_return no_such_lease_document(id);
  if (!etag.empty() && found->second.etag != etag) co_return changed(id);
  documents_.erase(found);
  co_return Result<>{};
}

std::shared_ptr<LeaseStore> memory_lease_store() {
  return std::make_shared<BlockingLeaseStore>(std::make_unique<MemoryLeaseStore>());
}

}  // namespace orrery::processor
