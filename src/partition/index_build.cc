#include "partition/index_build.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "partition/writer/index_terms.h"
#include "storage/records.h"

namespace orrery::partition {

using storage::Family;
using storage::IndexRecord;

namespace {

// A step keeps the writer from its other work: it ends at whichever of these comes first.
constexpr std::size_t kBuildStepDocumentsMax = 1000;
constexpr std::size_t kBuildStepBytesMax = 1 << 20;
constexpr std::chrono::milliseconds kBuildStepTimeMax{3};
constexpr std::size_t kDeadlineInterval = 16;

/// Whether a step is long enough.
class BuildStep {
 public:
  bool is_full(std::size_t bytes) {
    ++documents_;
    bytes_ += bytes;
    if (documents_ >= kBuildStepDocumentsMax || bytes_ >= kBuildStepBytesMax) return true;
    return documents_ % kDeadlineInterval == 0 && std::chrono::steady_clock::now() > deadline_;
  }

 private:
  const std::chrono::steady_clock::time_point deadline_ =
      std::chrono::steady_clock::now() + kBuildStepTimeMax;
  std::size_t documents_ = 0;
  std::size_t bytes_ = 0;
};

/// Those that have come least far, and so how far they have.
struct Hindmost {
  std::vector<IndexRecord> indexes;
  DocumentNumber built_up_to;
  /// Where the next ones stand: they join there.
  DocumentNumber joined_at{UINT64_MAX};
};

Hindmost hindmost_of(const std::vector<IndexRecord>& all) {
  Hindmost found;
  for (const IndexRecord& index : all) {
    if (index.is_complete()) continue;
    if (found.indexes.empty() || index.built_up_to < found.built_up_to) {
      if (!found.indexes.empty()) found.joined_at = found.built_up_to;
      found.indexes.clear();
      found.built_up_to = index.built_up_to;
    } else if (index.built_up_to > found.built_up_to) {
      found.joined_at = std::min(found.joined_at, index.built_up_to);
      continue;
    }
    found.indexes.push_back(index);
  }
  return found;
}

}  // namespace

Result<IndexBuildProgress> build_indexes(const storage::Store& store, PartitionNumber partition,
                                         const TransactionView& view, RecordWriter& writer) {
  auto all = std::make_shared<std::vector<IndexRecord>>(*writer.head().indexes);
  const Hindmost building = hindmost_of(*all);
  const IndexTerms terms(building.indexes);
  ORRERY_TRY(const auto snapshot, store.snapshot());
  auto cursor = snapshot.cursor(
      Family::Rids, storage::rid_key(partition, DocumentNumber{building.built_up_to.value + 1}),
      storage::partition_end(partition), storage::Snapshot::Access::Scan);
  DocumentNumber reached = building.built_up_to;
  std::string value;
  BuildStep step;
  IndexBuildProgress progress;
  for (bool full = false; cursor.valid() && !full; cursor.next()) {
    const DocumentNumber number = storage::document_number(cursor.key());
    if (number > building.joined_at) {
      reached = building.joined_at;
      break;
    }
    const auto position = storage::parse_position_value(cursor.value());
    ORRERY_ASSERT(position.has_value());
    const auto lookup = snapshot.get(Family::Log, storage::log_key(partition, *position), value);
    // The snapshot that has the entry has the version that it names.
    ORRERY_ASSERT(lookup != storage::Lookup::Missing);
    if (lookup != storage::Lookup::Found) {
      return Error(ErrorCode::Unavailable,
                   "the disk could not be read; see the server's diagnostics");
    }
    const auto record = storage::VersionRecord::parse(value);
    ORRERY_ASSERT(record.has_value() && record->header.number == number);
    if (!view.is_superseded(storage::id_key(partition, record->key()), *position)) {
      writer.put_terms(number, *position, terms.of(record->text));
    }
    reached = number;
    ++progress.documents;
    full = step.is_full(record->text.size());
  }
  ORRERY_TRY(cursor.status());
  const bool at_end = !cursor.valid();
  for (IndexRecord& index : *all) {
    if (index.is_complete()) continue;
    if (at_end) {
      // Those that have come farther have nothing left either.
      index.state = IndexRecord::State::Complete;
    } else {
      index.built_up_to = std::max(index.built_up_to, reached);
      progress.more = true;
    }
  }
  writer.head().indexes = std::move(all);
  return progress;
}

}  // namespace orrery::partition
