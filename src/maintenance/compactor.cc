#include "maintenance/compactor.h"

#include <algorithm>

#include "maintenance/document_families.h"
#include "storage/keys.h"

namespace orrery::maintenance {
namespace {

using storage::Family;

constexpr std::chrono::seconds kInterval{1};

}  // namespace

Compactor::Compactor(storage::Store& store, CompactorLimits limits)
    : store_(store), limits_(limits) {}

Compactor::~Compactor() { stop(); }

void Compactor::start() {
  thread_ = std::thread([this] {
    while (!is_cancelled_) {
      if (run_once()) continue;
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kInterval, [this] { return is_cancelled_.load(); });
    }
  });
}

void Compactor::stop() {
  {
    std::lock_guard lock(mutex_);
    is_cancelled_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Compactor::note_erased(PartitionNumber partition, std::uint64_t count) {
  if (count == 0) return;
  const auto now = Steady::now();
  std::lock_guard lock(mutex_);
  const auto known = erased_.find(partition);
  if (known == erased_.end()) {
    if (erased_.size() < limits_.partitions_max)
      erased_.emplace(partition, Erased{count, now, now});
    return;
  }
  known->second.count += count;
  known->second.last = now;
}

std::optional<PartitionNumber> Compactor::take_due() {
  const auto now = Steady::now();
  std::lock_guard lock(mutex_);
  const auto due = std::ranges::find_if(erased_, [&](const auto& each) {
    const Erased& erased = each.second;
    return erased.count >= limits_.erasures_min &&
           (now - erased.last >= limits_.quiet || now - erased.first >= limits_.wait_max);
  });
  if (due == erased_.end()) return {};
  const PartitionNumber partition = due->first;
  erased_.erase(due);
  return partition;
}

bool Compactor::run_once() {
  const auto partition = take_due();
  if (!partition) return false;
  for (const Family family : kDocumentFamilies) {
    if (is_cancelled_) return false;
    store_.compact(family, storage::partition_prefix(*partition),
                   storage::partition_end(*partition), is_cancelled_);
  }
  compactions_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace orrery::maintenance
