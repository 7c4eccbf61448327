// A lease store that lives as long as its process.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "processor/leases/lease_store.h"

namespace orrery::processor {

/// Thread-safe: hosts of one process may share it, each on an executor of its own.
class MemoryLeaseStore final : public AsyncLeaseStore {
 public:
  MemoryLeaseStore() : clock_(machine_clock_) {}
  /// `clock` outlives it, and gives the `ts` of documents.
  explicit MemoryLeaseStore(const Clock& clock) : clock_(clock) {}

  Async<std::vector<StoredDocument>> list(std::string prefix) override;
  Async<StoredDocument> read(std::string id) override;
  Async<StoredDocument> create(std::string id, std::string text) override;
  Async<StoredDocument> replace(std::string id, std::string text, std::string etag) override;
  Async<> remove(std::string id, std::string etag) override;

 private:
  StoredDocument& write(const std::string& id, std::string text);

  SystemClock machine_clock_;
  const Clock& clock_;
  std::mutex mutex_;  // Guards what follows.
  std::map<std::string, StoredDocument> documents_;
  std::uint64_t version_ = 0;
};

}  // namespace orrery::processor
