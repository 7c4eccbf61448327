// The part of Stage that keeps secondary indexes: which there are, and building them. What a write
// does to their entries is in stage.cc.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "partition/writer/stage.h"
#include "protocol/container/index_path.h"

namespace orrery::partition {

using storage::IndexRecord;

void Stage::see_indexes() {
  if (!head_.indexes) {
    index_terms_.reset();
  } else if (!index_terms_ || !index_terms_->is_for(*head_.indexes)) {
    index_terms_ = std::make_unique<const IndexTerms>(*head_.indexes);
  }
}

Result<Committed> Stage::attempt(const IndexChange& change, const Scope&) {
  // Not on an event loop: what is staged has to be read.
  ORRERY_TRY(needs_disk());
  storage::Head& head = writer_.head();
  std::vector<IndexRecord> indexes;
  if (head.indexes) indexes = *head.indexes;
  const auto find = [&](const std::string& spec) {
    return std::ranges::find(indexes, spec, &IndexRecord::spec);
  };

  for (const std::string& spec : change.drop) {
    const auto dropped = find(spec);
    if (dropped == indexes.end()) continue;
    writer_.erase_index(dropped->id);
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
    const auto state =
        head.documents == 0 ? IndexRecord::State::Complete : IndexRecord::State::Building;
    added.push_back({++head.last_index_id, std::move(name), state, {}});
    indexes.push_back(added.back());
  }
  index_staged(added);

  if (head.indexes ? indexes == *head.indexes : indexes.empty()) return Committed{};
  head.indexes = indexes.empty()
                     ? nullptr
                     : std::make_shared<const std::vector<IndexRecord>>(std::move(indexes));
  return Committed{};
}

void Stage::index_staged(const std::vector<IndexRecord>& added) {
  if (added.empty()) return;
  // The build walks what is committed; what is staged may come behind it.
  const IndexTerms terms(added);
  for (const auto& [id_key, staged] : documents_) {
    if (!staged.entry) continue;
    // Without its record it has just been committed, and the build will see it.
    const RecordPtr value = staged.record.lock();
    if (!value) continue;
    const auto record = storage::VersionRecord::parse(*value);
    ORRERY_ASSERT(record.has_value());
    writer_.put_terms(staged.entry->header.number, staged.entry->position, terms.of(record->text));
  }
}

Result<Committed> Stage::attempt(const IndexBuildStep&, const Scope&) {
  Committed committed;
  if (!head_.indexes || std::ranges::all_of(*head_.indexes, &IndexRecord::is_complete)) {
    return committed;
  }
  ORRERY_TRY(needs_disk());
  ORRERY_TRY(const auto step, partition::build_indexes(store_, partition_, superseded(), writer_));
  committed.more = step.more;
  committed.tidied = step.documents;
  return committed;
}

}  // namespace orrery::partition
