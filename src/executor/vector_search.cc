#include "executor/vector_search.h"

#include <algorithm>
#include <utility>

#include "partition/read/document_cursor.h"
#include "query/eval/execution.h"

namespace orrery::executor {

using index::Candidate;

namespace {

/// More rows than this are found by looking at every document.
constexpr std::uint64_t kRowsMax = 1000;
constexpr std::size_t kCandidatesMin = 100;
/// If WHERE leaves too few, so many times as many are looked at.
constexpr std::size_t kGrowth = 8;
/// More candidates than this part of all documents are no better than all.
constexpr std::size_t kWorthwhileVectorsPart = 4;

/// The entry of an array member with this path.
const Json* find_entry(const Json* list, const std::vector<std::string>& path) {
  if (list == nullptr || !list->is_array()) return nullptr;
  const auto found = std::ranges::find_if(*list, [&](const Json& entry) {
    const Json* const text = find_member(entry, "path");
    if (text == nullptr || !text->is_string()) return false;
    const auto parsed = IndexPath::parse(text->get_ref<const std::string&>());
    return parsed && !parsed->has_elements() &&
           std::ranges::equal(parsed->steps, path, {}, &IndexPath::Step::name);
  });
  return found == list->end() ? nullptr : &*found;
}

/// Whether each document makes exactly one row.
bool shows_every_document(const query::PreparedQuery& query) {
  const query::Query& tree = query.tree();
  return !tree.where && tree.from.size() == 1 && tree.from.front().source == 0 &&
         tree.selection.kind != query::Selection::Kind::Value;
}

}  // namespace

std::optional<VectorSearch> VectorSearch::of(index::VectorIndexes* indexes,
                                             const ContainerDefinition& definition,
                                             const query::PreparedQueryPtr& query,
                                             std::uint64_t rows_max) {
  if (indexes == nullptr) return std::nullopt;
  auto order = query::vector_order_of(*query);
  // A page that is full ends the search: the next one looks at every document.
  if (!order || order->take > rows_max || order->take > kRowsMax || order->skip > kRowsMax) {
    return std::nullopt;
  }
  const Json* const index = find_entry(definition.vector_indexes(), order->path);
  const Json* const policy = definition.member("vectorEmbeddingPolicy");
  const Json* const embedding = find_entry(
      policy == nullptr ? nullptr : find_member(*policy, "vectorEmbeddings"), order->path);
  if (index == nullptr || embedding == nullptr) return std::nullopt;
  const Json* const type = find_member(*index, "type");
  const Json* const dimensions = find_member(*embedding, "dimensions");
  if (type == nullptr || !is_one_of(*type, {"diskANN", "quantizedFlat"}) || dimensions == nullptr ||
      !integer_in(*dimensions, 1, INT64_MAX) ||
      *integer_in(*dimensions, 1, INT64_MAX) != static_cast<std::int64_t>(order->vector.size())) {
    return std::nullopt;
  }
  VectorSearch search(*indexes, query, std::move(*order));
  const auto& options = search.order_.options;
  const std::size_t multiplier = is_one_of(*type, {"diskANN"}) ? options.search_list_multiplier
                                                               : options.quantized_list_multiplier;
  const std::size_t rows = search.order_.skip + search.order_.take;
  search.candidates_ = std::max(kCandidatesMin, rows * multiplier);
  IndexPath path;
  for (const std::string& name : search.order_.path) path.steps.push_back({.name = name});
  search.index_text_ = path.text() + " VECTOR";
  return search;
}

Result<std::optional<std::vector<Candidate>>> VectorSearch::find(const SourceScope& scope) const {
  const index::VectorIndexKey key{.partition = scope.partition,
                                  .path = order_.path,
                                  .function = order_.options.function,
                                  .type = order_.options.type,
                                  .dimensions = order_.vector.size()};
  std::optional<std::vector<Candidate>> candidates;
  for (std::size_t count = candidates_; count <= scope.documents / kWorthwhileVectorsPart;
       count *= kGrowth) {
    ORRERY_TRY(auto found, indexes_->find(key, scope.documents, scope.snapshot,
                                          {.vector = order_.vector, .count = count}));
    if (!found) break;
    // Side by side in the log they are read faster.
    std::ranges::sort(found->similar, {}, &Candidate::position);
    ORRERY_TRY(const bool is_enough, has_enough(scope, found->similar));
    // Going over every document can be divided, this cannot.
    if (scope.work != nullptr && scope.work->is_over()) break;
    if (!is_enough) continue;
    candidates = std::move(found->similar);
    candidates->insert(candidates->end(), found->others.begin(), found->others.end());
    std::ranges::sort(*candidates, {}, &Candidate::position);
    break;
  }
  return candidates;
}

/// Whether there are as many rows as are wanted, so that no other document has to be looked at.
Result<bool> VectorSearch::has_enough(const SourceScope& scope,
                                      const std::vector<Candidate>& similar) const {
  const std::uint64_t rows = order_.skip + order_.take;
  const bool counts_documents = shows_every_document(*query_);
  const bool counts_rows = query_->tree().selection.kind != query::Selection::Kind::Value;
  query::PageLimits limits;
  limits.rows_max = static_cast<std::uint32_t>(std::max<std::uint64_t>(order_.take, 1));
  limits.bytes_max = limits.memory_max;
  query::Execution trial(query_, limits);
  trial.begin_slice({});
  trial.work_with(scope.work);
  std::uint64_t documents = 0;
  auto cursor =
      partition::DocumentCursor::over(scope.snapshot, scope.partition, similar, scope.filter);
  while (cursor.next()) {
    if (counts_documents) {
      if (++documents >= rows) return true;
      continue;
    }
    if (trial.take(cursor.text(), cursor.number()) == query::Execution::Next::PageDone) break;
    if (scope.work != nullptr && scope.work->is_over()) return false;
    if (counts_rows && trial.stats().rows >= rows) return true;
  }
  ORRERY_TRY(cursor.status());
  if (scope.work != nullptr && scope.work->has_stopped()) return interruption(*scope.work);
  // The query itself reports the errors of rows.
  if (counts_documents || counts_rows || !trial.finish()) return false;
  return trial.position().skipped + trial.count() >= rows;
}

}  // namespace orrery::executor
