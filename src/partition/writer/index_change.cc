#include "partition/writer/index_change.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "partition/index_build.h"
#include "partition/writer/index_terms.h"
#include "protocol/container/index_path.h"

namespace orrery::partition {

using storage::IndexRecord;

namespace {

/// Makes the entries of staged versions, for indexes that are added now.
void index_staged(StageState& state, const std::vector<IndexRecord>& added) {
  if (added.empty()) return;
  // The build walks what is committed; staged versions may come behind it.
  const IndexTerms terms(added);
  state.view.for_each_staged([&](const storage::IdEntry& entry, const RecordPtr& value) {
    // Without its record it has just been committed, and the build will see it.
    if (!value) return;
    const auto record = storage::VersionRecord::parse(*value);
    ORRERY_ASSERT(record.has_value());
    state.writer.put_terms(entry.header.number, entry.position, terms.of(record->text));
  });
}

}  // namespace

Result<Committed> change_indexes(StageState& state, const IndexChange& change) {
  // Not on an event loop: staged versions have to be read.
  ORRERY_TRY(state.view.require_disk());
  storage::Head& head = state.writer.head();
  std::vector<IndexRecord> indexes;
  if (head.indexes) indexes = *head.indexes;
  const auto find = [&](const std::string& spec) {
    return std::ranges::find(indexes, spec, &IndexRecord::spec);
  };

  for (const std::string& spec : change.drop) {
    const auto dropped = find(spec);
    if (dropped == indexes.end()) continue;
    state.writer.erase_index(dropped->id);
    indexes.erase(dropped);
  }

  std::vector<IndexRecord> added;
  for (const std::string& text : change.add) {
    const auto spec = IndexSpec::parse(text);
    if (!spec || text.size() > storage::kIndexSpecBytesMax) {
      return Error(ErrorCode::BadRequest, fmt::format("'{}' cannot be indexed", text));
    }
    std::string name = spec->text();
    if (find(name) != indexes.end()) continue;
    if (indexes.size() == storage::kIndexesMax) {
      return Error(ErrorCode::Forbidden,
                   fmt::format("a range has at most {} indexes", storage::kIndexesMax));
    }
    // Where there is nothing, nothing is missing.
    const auto begins_as =
        head.documents == 0 ? IndexRecord::State::Complete : IndexRecord::State::Building;
    added.push_back({++head.last_index_id, std::move(name), begins_as, {}});
    indexes.push_back(added.back());
  }
  index_staged(state, added);

  if (head.indexes ? indexes == *head.indexes : indexes.empty()) return Committed{};
  head.indexes = indexes.empty()
                     ? nullptr
                     : std::make_shared<const std::vector<IndexRecord>>(std::move(indexes));
  return Committed{};
}

Result<Committed> build_indexes(StageState& state) {
  Committed committed;
  const auto& indexes = state.head.indexes;
  if (!indexes || std::ranges::all_of(*indexes, &IndexRecord::is_complete)) return committed;
  ORRERY_TRY(state.view.require_disk());
  ORRERY_TRY(const auto progress,
             build_indexes(state.store, state.partition, state.view, state.writer));
  committed.more = progress.more;
  committed.tidied = progress.documents;
  return committed;
}

}  // namespace orrery::partition
