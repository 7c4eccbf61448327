#include "query/syntax/nesting.h"

#include "query/plan/rewrite.h"

namespace orrery::query {

const Query* subquery_of(const Query& query) {
  if (query.from.empty()) return nullptr;
  const auto* subquery = std::get_if<Subquery>(&query.from.front().collection->node);
  return subquery ? subquery->query.get() : nullptr;
}

bool reads_container(const Query& query) {
  const Query* inner = subquery_of(query);
  return inner ? reads_container(*inner) : !query.from.empty();
}

bool is_row_by_row(const Query& query) {
  const Query* inner = subquery_of(query);
  return !query.is_distinct && !query.top && !query.offset && query.group_by.empty() &&
         !has_aggregate(query.selection) && (inner == nullptr || is_row_by_row(*inner));
}

}  // namespace orrery::query
