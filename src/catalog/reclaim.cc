// The part of Catalog that gives back the space of deleted containers. They are out of reach from
// the moment of their deletion; this only tidies up, a bounded piece at a time, and goes on after a
// restart.
#include <algorithm>
#include <utility>

#include "base/diagnostics.h"
#include "catalog/catalog.h"
#include "storage/keys.h"
#include "storage/store.h"

namespace orrery::catalog {

using storage::Family;

namespace {

/// Up to so many keys are erased one by one. Beyond, one marker hides the whole range: better for
/// many keys, but each marker that lies about slows reads of its neighbours.
constexpr std::size_t kSingleErasuresMax = 10'000;

constexpr Family kDocumentFamilies[] = {Family::Log, Family::Ids, Family::Rids, Family::Unique};

}  // namespace

void Catalog::start_reclaiming() {
  // The caller holds reclaim_mutex_.
  if (reclaiming_ || stopping_ || garbage_.empty()) return;
  if (reclaimer_.joinable()) reclaimer_.join();
  reclaiming_ = true;
  reclaimer_ = std::thread([this] {
    for (;;) {
      PartitionNumber partition;
      {
        std::lock_guard lock(reclaim_mutex_);
        if (garbage_.empty() || stopping_) {
          reclaiming_ = false;
          return;
        }
        partition = garbage_.back();
        garbage_.pop_back();
      }
      reclaim(partition);
    }
  });
}

void Catalog::stop() {
  {
    std::lock_guard lock(reclaim_mutex_);
    stopping_ = true;
  }
  if (reclaimer_.joinable()) reclaimer_.join();
}

void Catalog::reclaim(PartitionNumber partition) {
  auto& store = environment_.store;
  const std::string from = storage::partition_prefix(partition);
  const std::string to = storage::partition_end(partition);
  const auto epoch = environment_.committer.epoch();
  storage::Batch batch;
  {
    const auto snapshot = store.snapshot();
    if (!snapshot) return;
    for (const Family family : kDocumentFamilies) {
      std::vector<std::string> keys;
      auto cursor = snapshot->cursor(family, from, to, storage::Snapshot::Access::Scan);
      for (; cursor.valid() && keys.size() <= kSingleErasuresMax; cursor.next()) {
        keys.emplace_back(cursor.key());
      }
      if (keys.size() > kSingleErasuresMax) {
        batch.erase_range(family, from, to);
        continue;
      }
      for (const std::string& key : keys) {
        if (family == Family::Log) {
          batch.erase_single(family, key);
        } else {
          batch.erase(family, key);
        }
      }
    }
  }
  for (const Family family : kDocumentFamilies) store.drop_files(family, from, to);
  batch.erase(Family::Heads, from);
  batch.erase(Family::Catalog, garbage_key(partition));
  // If the disk refuses, the entry stays, and the next load of the catalog finds it again.
  if (auto committed = environment_.committer.commit(std::move(batch), epoch); !committed) {
    diagnostics::debug("space of a deleted container is not reclaimed yet: {}",
                       committed.error().message());
  }
}

}  // namespace orrery::catalog
