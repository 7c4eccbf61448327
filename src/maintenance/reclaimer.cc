#include "maintenance/reclaimer.h"

#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "catalog/entries.h"
#include "maintenance/document_families.h"
#include "storage/keys.h"
#include "storage/store.h"

namespace orrery::maintenance {

using storage::Family;

namespace {

/// Up to so many keys are erased one by one. Beyond, one marker hides the whole range: better for
/// many keys, but each marker that lies about slows reads of its neighbours.
constexpr std::size_t kSingleErasuresMax = 10'000;

}  // namespace

void Reclaimer::start() {
  thread_ = std::thread([this] {
    while (const auto partition = garbage_.take()) reclaim(*partition);
  });
}

void Reclaimer::stop() {
  is_cancelled_ = true;
  garbage_.close();
  if (thread_.joinable()) thread_.join();
}

void Reclaimer::reclaim(PartitionNumber partition) {
  auto& store = environment_.store;
  const std::string from = storage::partition_prefix(partition);
  const std::string to = storage::partition_end(partition);
  const auto generation = environment_.committer.generation();
  storage::Batch batch;
  bool is_large = false;
  {
    const auto snapshot = store.snapshot();
    if (!snapshot) return;
    for (const Family family : kDocumentFamilies) {
      std::vector<std::string> keys;
      auto cursor = snapshot->cursor(family, from, to, storage::Snapshot::Access::Scan);
      for (; cursor.valid() && keys.size() <= kSingleErasuresMax; cursor.next()) {
        keys.emplace_back(cursor.key());
      }
      // A partition that cannot be read stays, with its entry, until the next start.
      if (!cursor.status()) return;
      if (keys.size() > kSingleErasuresMax) {
        is_large = true;
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
  batch.erase(Family::Catalog, catalog::garbage_key(partition));
  // If the disk refuses, the entry stays: it is tried again later, and after the next start.
  if (auto committed = environment_.committer.commit(std::move(batch), generation); !committed) {
    diagnostics::debug("space of a deleted container is not reclaimed yet: {}",
                       committed.error().message());
    garbage_.retry_later(partition);
    return;
  }
  if (!is_large) return;
  // Nothing else may ever be written near it, and then nothing would compact it.
  for (const Family family : kDocumentFamilies) {
    store.compact(family, from, to, is_cancelled_);
  }
}

}  // namespace orrery::maintenance
