// Whether a document has any row that a query wants, apart from running the query.
#pragma once

#include <string_view>

#include "base/work_budget.h"
#include "query/eval/evaluate.h"
#include "query/plan/prepared.h"

namespace orrery::query {

/// Filters documents ahead of an execution: those without a row need not be given to it. One
/// thread's; several may each have one of the same query. The query must outlive it.
class RowFinder {
 public:
  /// Where `work` stops, every document has a row.
  RowFinder(const PreparedQuery& query, WorkBudget& work);

  /// Whether FROM and WHERE leave a row of it. Also where something fails: the execution tells
  /// what.
  bool finds_row_in(std::string_view document);

 private:
  const Query& tree_;
  const bool is_document_the_row_;  // There is a WHERE, and nothing else in FROM.
  const Sources sources_;
  Frame frame_;
};

}  // namespace orrery::query
