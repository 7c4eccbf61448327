// The documents that ORDER BY VectorDistance wants, by a vector index of the container's policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "executor/document_source.h"
#include "index/reader.h"
#include "index/vector/vector_indexes.h"
#include "protocol/container/container_definition.h"
#include "query/plan/prepared.h"
#include "query/plan/vector_order.h"

namespace orrery::executor {

/// Of one query. Which documents are found is approximate: a few that are as similar may be missed.
/// Their distances, their order, and what WHERE says of them are not: they are looked at like any
/// others.
class VectorSearch {
 public:
  /// Nothing when every document has to be looked at: because the query or the policy say so
  /// (`flat`), or it wants more rows than `rows_max`, which a page has. `indexes` may be null.
  static std::optional<VectorSearch> of(index::VectorIndexes* indexes,
                                        const ContainerDefinition& definition,
                                        const query::PreparedQueryPtr& query,
                                        std::uint64_t rows_max);

  /// In the scope's partition, in the order of the log. Nothing when the index is not ready yet, or
  /// too few of what it finds pass WHERE and the scope's filter. Blocks.
  Result<std::optional<std::vector<index::Candidate>>> find(const SourceScope& scope) const;
  /// For explanations.
  const std::string& index_text() const { return index_text_; }

 private:
  VectorSearch(index::VectorIndexes& indexes, query::PreparedQueryPtr query,
               query::VectorOrder order)
      : indexes_(&indexes), query_(std::move(query)), order_(std::move(order)) {}

  Result<bool> has_enough(const SourceScope& scope,
                          const std::vector<index::Candidate>& similar) const;

  index::VectorIndexes* indexes_;
  query::PreparedQueryPtr query_;
  query::VectorOrder order_;
  std::size_t candidates_ = 0;  // As many are looked at, if they are enough.
  std::string index_text_;
};

}  // namespace orrery::executor
