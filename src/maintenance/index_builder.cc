#include "maintenance/index_builder.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/diagnostics.h"
#include "protocol/container/index_path.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::maintenance {

using catalog::Catalog;
using catalog::Container;
using catalog::ContainerPtr;
using catalog::DatabasePtr;
using catalog::Range;
using partition::IndexChange;
using storage::IndexRecord;
using storage::IndexRecords;
using Steady = std::chrono::steady_clock;

namespace {

/// The entries of an index over so many documents lie in many tables, and reads of it pay for each.
constexpr std::uint64_t kCompactedDocumentsMin = 100'000;

/// How far the index has come that has come least far; nothing when all are complete.
std::optional<DocumentNumber> least_built(const IndexRecords& indexes) {
  std::optional<DocumentNumber> least;
  if (!indexes) return least;
  for (const IndexRecord& index : *indexes) {
    if (index.is_complete()) continue;
    least = std::min(least.value_or(index.built_up_to), index.built_up_to);
  }
  return least;
}

bool is_allowed(const Container& container, const std::string& spec) {
  const auto parsed = IndexSpec::parse(spec);
  return parsed && container.definition.allows(*parsed);
}

/// The indexes that the container ought to have, most important first, each once.
std::vector<std::string> target_indexes(const Container& container,
                                        const std::set<std::string>& besides,
                                        const std::set<std::string>& unwanted) {
  std::vector<std::string> wanted;
  const auto add = [&](std::string spec) {
    if (std::ranges::find(wanted, spec) == wanted.end()) wanted.push_back(std::move(spec));
  };
  for (const IndexSpec& index : container.definition.named_indexes()) {
    std::string spec = index.text();
    if (spec.size() <= storage::kIndexSpecBytesMax) add(std::move(spec));
  }
  for (const Range& range : container.ranges.all()) {
    const auto indexes = range.partition->indexes();
    if (!indexes) continue;
    for (const IndexRecord& index : *indexes) {
      if (is_allowed(container, index.spec) && !unwanted.contains(index.spec)) add(index.spec);
    }
  }
  for (const std::string& spec : besides) add(spec);
  return wanted;
}

/// The indexes to add to a range, as far as it has room for them, and those to drop.
IndexChange change_for(const IndexRecords& has, const std::vector<std::string>& wanted) {
  IndexChange change;
  std::size_t count = 0;
  if (has) {
    count = has->size();
    for (const IndexRecord& index : *has) {
      const bool is_wanted = std::ranges::find(wanted, index.spec) != wanted.end();
      if (!is_wanted) change.drop.push_back(index.spec);
    }
  }
  count -= change.drop.size();
  for (const std::string& spec : wanted) {
    if (count == storage::kIndexesMax) break;
    if (storage::find_index(has, spec) != nullptr) continue;
    change.add.push_back(spec);
    ++count;
  }
  return change;
}

bool is_empty(const IndexChange& change) { return change.add.empty() && change.drop.empty(); }

/// Whether a range lacks something, or has what it may not.
bool needs_change(const Container& container) {
  const auto wanted = target_indexes(container, {}, {});
  return std::ranges::any_of(container.ranges.all(), [&](const Range& range) {
    return !is_empty(change_for(range.partition->indexes(), wanted));
  });
}

}  // namespace

IndexBuilder::IndexBuilder(partition::Environment& environment, Catalog& catalog,
                           IndexBuilderLimits limits)
    : environment_(environment), catalog_(catalog), limits_(limits) {}

IndexBuilder::~IndexBuilder() { stop(); }

void IndexBuilder::start() {
  for (const DatabasePtr& database : catalog_.databases({}, SIZE_MAX)) {
    for (const ContainerPtr& container : catalog_.containers(database->rid, {}, SIZE_MAX)) {
      const bool is_building = std::ranges::any_of(container->ranges.all(), [](const Range& range) {
        return least_built(range.partition->indexes()).has_value();
      });
      if (is_building || needs_change(*container)) reconcile(container->rid);
    }
  }
  thread_ = std::thread([this] { run(); });
}

void IndexBuilder::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void IndexBuilder::request(const Rid& rid, const std::vector<std::string>& specs,
                           const std::vector<std::string>& unwanted) {
  const auto container = catalog_.container(rid);
  if (!container) return;
  Specs wanted;
  for (const std::string& text : specs) {
    const auto spec = IndexSpec::parse(text);
    if (!spec || !container->definition.allows(*spec)) continue;
    std::string name = spec->text();
    if (name.size() <= storage::kIndexSpecBytesMax) wanted.insert(std::move(name));
  }
  const bool lacks_some = std::ranges::any_of(container->ranges.all(), [&](const Range& range) {
    const auto has = range.partition->indexes();
    const bool has_room = !has || has->size() < storage::kIndexesMax || !unwanted.empty();
    return has_room && std::ranges::any_of(wanted, [&](const std::string& spec) {
             return storage::find_index(has, spec) == nullptr;
           });
  });
  if (!lacks_some) return;
  {
    std::lock_guard lock(mutex_);
    Request& waiting = waiting_[rid];
    for (const std::string& spec : wanted) {
      if (waiting.add.size() < storage::kIndexesMax) waiting.add.insert(spec);
      waiting.drop.erase(spec);
    }
    for (const std::string& spec : unwanted) {
      if (waiting.drop.size() < storage::kIndexesMax && !wanted.contains(spec)) {
        waiting.drop.insert(spec);
      }
    }
  }
  wake_.notify_all();
}

void IndexBuilder::reconcile(const Rid& container) {
  {
    std::lock_guard lock(mutex_);
    waiting_[container];
  }
  wake_.notify_all();
}

// ── working ──────────────────────────────────────────────────────────────────────────────────────

void IndexBuilder::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    lock.unlock();
    const Outcome outcome = run_once();
    lock.lock();
    if (outcome == Outcome::Refused) {
      wake_.wait_for(lock, limits_.retry_interval, [this] { return stopping_.load(); });
    }
  }
}

bool IndexBuilder::rest(Steady::duration worked) {
  const Steady::duration longest = limits_.rest_max;
  const bool gives_way = environment_.committer.is_contended() || environment_.store.is_behind();
  const auto pause = gives_way ? longest : std::min(worked, longest);
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, pause, [this] { return stopping_.load(); });
  return !stopping_;
}

IndexBuilder::Outcome IndexBuilder::run_once() {
  Rid rid;
  Request request;
  {
    std::lock_guard lock(mutex_);
    if (waiting_.empty()) return Outcome::Idle;
    // Round robin, so that a long build does not starve other containers.
    auto next = waiting_.upper_bound(last_);
    if (next == waiting_.end()) next = waiting_.begin();
    rid = last_ = next->first;
    request = std::move(next->second);
    waiting_.erase(next);
    current_ = rid;
  }
  const auto container = catalog_.container(rid);
  const Progress progress = container ? process(*container, request) : Progress::Done;
  std::lock_guard lock(mutex_);
  current_.reset();
  if (progress != Progress::Done) {
    Request& waiting = waiting_[rid];
    // A request that came meanwhile is newer.
    for (const std::string& spec : request.drop) {
      if (!waiting.add.contains(spec)) waiting.drop.insert(spec);
    }
    waiting.add.merge(request.add);
  }
  return progress == Progress::Refused ? Outcome::Refused : Outcome::Worked;
}

IndexBuilder::Progress IndexBuilder::process(const Container& container, const Request& request) {
  const auto wanted = target_indexes(container, request.add, request.drop);
  for (const Range& range : container.ranges.all()) {
    IndexChange change = change_for(range.partition->indexes(), wanted);
    if (is_empty(change)) continue;
    const std::size_t added = change.add.size();
    const std::size_t dropped = change.drop.size();
    const auto changed = range.partition->submit_and_wait({.work = std::move(change)});
    if (!changed) {
      switch (changed.error().code()) {
        case ErrorCode::RangeGone:
          return Progress::More;  // With the ranges that took its place.
        case ErrorCode::OwnerNotFound:
          return Progress::Done;  // It is being deleted.
        default:
          diagnostics::debug("{}: an index waits: {}", container.alt_content_path,
                             changed.error().message());
          return Progress::Refused;
      }
    }
    stats_.added_indexes.fetch_add(added, std::memory_order_relaxed);
    stats_.dropped_indexes.fetch_add(dropped, std::memory_order_relaxed);
  }
  Progress all = Progress::Done;
  for (const Range& range : container.ranges.all()) {
    if (!least_built(range.partition->indexes())) continue;
    const auto begin = Steady::now();
    const Progress one = build_piece(*range.partition);
    if (one == Progress::Refused) return one;
    if (one == Progress::More) all = Progress::More;
    if (!rest(Steady::now() - begin)) return Progress::More;
  }
  return all;
}

IndexBuilder::Progress IndexBuilder::build_piece(partition::Partition& partition) {
  const IndexRecords indexes = partition.indexes();
  const DocumentNumber before = least_built(indexes).value_or(DocumentNumber{});
  const auto step = partition.submit_and_wait({.work = partition::IndexBuildStep{}});
  if (!step) {
    const auto code = step.error().code();
    if (code == ErrorCode::OwnerNotFound) return Progress::Done;
    return code == ErrorCode::RangeGone ? Progress::More : Progress::Refused;
  }
  stats_.indexed_documents.fetch_add(step->tidied, std::memory_order_relaxed);
  record_built(partition, before, step->tidied);
  if (step->more) return Progress::More;
  compact_built(partition, indexes);
  return Progress::Done;
}

/// Compacts the entries of the indexes that have just been completed.
void IndexBuilder::compact_built(const partition::Partition& partition,
                                 const IndexRecords& before) {
  if (partition.documents() < kCompactedDocumentsMin) return;
  for (const IndexRecord& index : *before) {
    if (index.is_complete()) continue;
    environment_.store.compact(storage::Family::Terms,
                               storage::terms_prefix(partition.number(), index.id),
                               storage::terms_end(partition.number(), index.id), stopping_);
  }
}

// ── telling how far it is ────────────────────────────────────────────────────────────────────────

void IndexBuilder::record_built(const partition::Partition& partition, DocumentNumber before,
                                std::size_t documents) {
  const std::uint32_t number = partition.number().value;
  const auto reached = least_built(partition.indexes());
  std::unique_lock lock(mutex_);
  if (!reached) {
    built_.erase(number);
    return;
  }
  const auto known = built_.find(number);
  const bool goes_on = known != built_.end() && known->second.up_to == before;
  if (goes_on || before == DocumentNumber{}) {
    built_[number] = {*reached, (goes_on ? known->second.documents : 0) + documents};
    return;
  }
  // Built by an earlier run of the server.
  lock.unlock();
  const auto counted = count_up_to(partition.number(), *reached);
  lock.lock();
  if (counted) built_[number] = {*reached, *counted};
}

std::optional<std::uint64_t> IndexBuilder::count_up_to(PartitionNumber partition,
                                                       DocumentNumber number) const {
  const auto snapshot = environment_.store.snapshot();
  if (!snapshot) return {};
  std::uint64_t count = 0;
  auto cursor = snapshot->cursor(storage::Family::Rids, storage::partition_prefix(partition),
                                 storage::rid_key(partition, DocumentNumber{number.value + 1}),
                                 storage::Snapshot::Access::Scan);
  for (; cursor.valid(); cursor.next()) ++count;
  return count;
}

std::uint64_t IndexBuilder::behind(PartitionNumber partition, DocumentNumber up_to) const {
  std::lock_guard lock(mutex_);
  const auto known = built_.find(partition.value);
  return known != built_.end() && known->second.up_to <= up_to ? known->second.documents : 0;
}

int IndexBuilder::progress(const Rid& rid) const {
  const auto container = catalog_.container(rid);
  if (!container) return 100;
  bool waits = false;
  {
    std::lock_guard lock(mutex_);
    waits = current_ == rid || waiting_.contains(rid);
  }
  if (waits && needs_change(*container)) return 0;
  std::uint64_t documents = 0;
  std::uint64_t indexed = 0;
  bool is_building = false;
  for (const Range& range : container->ranges.all()) {
    const std::uint64_t here = range.partition->documents();
    documents += here;
    const auto built = least_built(range.partition->indexes());
    if (built) is_building = true;
    indexed += built ? std::min(here, behind(range.partition->number(), *built)) : here;
  }
  if (!is_building) return 100;
  // A build under way is not done, however little is missing.
  return documents == 0 ? 99
                        : static_cast<int>(std::min<std::uint64_t>(99, indexed * 100 / documents));
}

}  // namespace orrery::maintenance
