#include "partition/writer/index_terms.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "protocol/container/index_path.h"

namespace orrery::partition {
namespace {

std::vector<IndexSpec> specs_of(std::span<const storage::IndexRecord> indexes) {
  std::vector<IndexSpec> specs;
  specs.reserve(indexes.size());
  for (const storage::IndexRecord& index : indexes) {
    auto spec = IndexSpec::parse(index.spec);
    ORRERY_ASSERT(spec.has_value());
    specs.push_back(std::move(*spec));
  }
  return specs;
}

}  // namespace

IndexTerms::IndexTerms(std::span<const storage::IndexRecord> indexes) : finder_(specs_of(indexes)) {
  for (const storage::IndexRecord& index : indexes) ids_.push_back(index.id);
}

IndexTerms::Found IndexTerms::find(std::string_view text) const {
  Found found(ids_.size());
  finder_.find(text, found);
  return found;
}

TermList IndexTerms::list_of(const Found& found) const {
  TermList list;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    for (const std::string& term : found[i]) list.add(ids_[i], term);
  }
  return list;
}

TermList IndexTerms::of(std::string_view text) const { return list_of(find(text)); }

IndexTerms::Change IndexTerms::of_change(std::string_view before, std::string_view after) const {
  const Found had = find(before);
  const Found has = find(after);
  Change change{.held = list_of(has), .lost = {}};
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    for (const std::string& term : had[i]) {
      if (!std::ranges::binary_search(has[i], term)) change.lost.add(ids_[i], term);
    }
  }
  return change;
}

bool IndexTerms::is_for(std::span<const storage::IndexRecord> indexes) const {
  return std::ranges::equal(ids_, indexes, {}, {}, &storage::IndexRecord::id);
}

}  // namespace orrery::partition
