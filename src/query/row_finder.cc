#include "query/row_finder.h"

#include "query/rows.h"

namespace orrery::query {

RowFinder::RowFinder(const PreparedQuery& query) : tree_(query.tree()), frame_(query.sources()) {
  frame_.surroundings = &query.surroundings();
  frame_.user_functions = query.user_functions();
}

bool RowFinder::finds_row_in(std::string_view document) {
  frame_.begin_row();
  frame_.row.set(0, json::Value::of_object(document));
  // It is told to end by the first row.
  const bool found = !for_each_row(tree_, frame_, [] { return false; });
  frame_.failure.reset();
  return found;
}

}  // namespace orrery::query
