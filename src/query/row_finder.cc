#include "query/row_finder.h"

#include "query/rows.h"

namespace orrery::query {

RowFinder::RowFinder(const PreparedQuery& query)
    : tree_(query.tree()),
      is_document_the_row_(tree_.where && tree_.from.size() == 1 && tree_.from[0].is_document()),
      frame_(query.sources()) {
  frame_.surroundings = &query.surroundings();
  frame_.user_functions = query.user_functions();
}

bool RowFinder::finds_row_in(std::string_view document) {
  frame_.begin_row();
  frame_.row.set(0, json::Value::of_object(document));
  // It is told to end by the first row.
  const bool found = is_document_the_row_ ? is_true(*tree_.where, frame_) || frame_.failure
                                          : !for_each_row(tree_, frame_, [] { return false; });
  frame_.failure.reset();
  return found;
}

}  // namespace orrery::query
