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

/// How long those who read a partition that was split or merged may take, and how often it is
/// looked whether they are done.
constexpr std::chrono::seconds kReadersPatience{60};
constexpr std::chrono::milliseconds kReadersInterval{50};
constexpr std::chrono::milliseconds kRetryInterval{250};

constexpr Family kDocumentFamilies[] = {Family::Log,    Family::Ids,     Family::Rids,
                                        Family::Unique, Family::History, Family::Expiry,
                                        Family::Terms};

}  // namespace

void Catalog::start_reclaiming() {
  // The caller holds reclaim_mutex_.
  if (reclaiming_ || stopping_ || garbage_.empty()) return;
  if (reclaimer_.joinable()) reclaimer_.join();
  reclaiming_ = true;
  reclaimer_ = std::thread([this] {
    while (const auto partition = next_garbage()) reclaim(*partition);
  });
}

std::optional<PartitionNumber> Catalog::next_garbage() {
  std::unique_lock lock(reclaim_mutex_);
  for (;;) {
    if (garbage_.empty() || stopping_) {
      reclaiming_ = false;
      return {};
    }
    const auto now = std::chrono::steady_clock::now();
    const auto due = std::ranges::find_if(garbage_, [&](const Garbage& each) {
      return each.not_before <= now && (each.readers.expired() || each.deadline <= now);
    });
    if (due != garbage_.end()) {
      const PartitionNumber partition = due->partition;
      garbage_.erase(due);
      return partition;
    }
    reclaim_work_.wait_for(lock, kReadersInterval);
  }
}

void Catalog::add_garbage(Garbage garbage) {
  // The caller holds reclaim_mutex_.
  const auto known = std::ranges::find(garbage_, garbage.partition, &Garbage::partition);
  if (known == garbage_.end()) garbage_.push_back(std::move(garbage));
}

Catalog::Garbage Catalog::used_garbage(const std::shared_ptr<partition::Partition>& partition) {
  return {partition->number(), partition, std::chrono::steady_clock::now() + kReadersPatience, {}};
}

void Catalog::reclaim(const std::vector<PartitionNumber>& partitions) {
  std::lock_guard lock(reclaim_mutex_);
  for (const PartitionNumber partition : partitions) add_garbage({partition, {}, {}, {}});
  start_reclaiming();
}

void Catalog::reclaim_when_unused(const std::vector<Range>& ranges) {
  std::lock_guard lock(reclaim_mutex_);
  for (const Range& range : ranges) add_garbage(used_garbage(range.partition));
  start_reclaiming();
}

void Catalog::stop() {
  {
    std::lock_guard lock(reclaim_mutex_);
    stopping_ = true;
  }
  gives_up_reclaiming_ = true;
  reclaim_work_.notify_all();
  if (reclaimer_.joinable()) reclaimer_.join();
}

void Catalog::reclaim(PartitionNumber partition) {
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
  batch.erase(Family::Catalog, garbage_key(partition));
  // If the disk refuses, the entry stays: it is tried again later, and after the next start.
  if (auto committed = environment_.committer.commit(std::move(batch), generation); !committed) {
    diagnostics::debug("space of a deleted container is not reclaimed yet: {}",
                       committed.error().message());
    std::lock_guard lock(reclaim_mutex_);
    add_garbage({partition, {}, {}, std::chrono::steady_clock::now() + kRetryInterval});
    return;
  }
  if (!is_large) return;
  // Nothing else may ever be written near it, and then nothing would compact it.
  for (const Family family : kDocumentFamilies) {
    store.compact(family, from, to, gives_up_reclaiming_);
  }
}

}  // namespace orrery::catalog
