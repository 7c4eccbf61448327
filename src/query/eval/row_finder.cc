#include "query/eval/row_finder.h"

#include <variant>
#include <vector>

#include "query/eval/rows.h"
#include "query/syntax/walk.h"

namespace orrery::query {
namespace {

/// Of a condition on the document alone: what it reads and no more.
Sources sources_of(const Expression& condition, const Sources& all) {
  std::vector<Path> paths;
  const bool has_queries = any_within(condition, [&](const Expression& part) {
    if (const auto* path = std::get_if<Path>(&part.node)) paths.push_back(*path);
    return std::holds_alternative<Subquery>(part.node);
  });
  return has_queries ? all : all.only(paths);
}

}  // namespace

RowFinder::RowFinder(const PreparedQuery& query, WorkBudget& work)
    : tree_(query.tree()),
      is_document_the_row_(tree_.where && tree_.from.size() == 1 && tree_.from[0].is_document()),
      sources_(is_document_the_row_ ? sources_of(*tree_.where, query.sources()) : query.sources()),
      frame_(sources_) {
  frame_.surroundings = &query.surroundings();
  frame_.user_functions = query.user_functions();
  frame_.work = &work;
}

bool RowFinder::finds_row_in(std::string_view document) {
  frame_.begin_row();
  frame_.work->begin_item();
  if (!frame_.work->spend(kDocumentSteps + WorkBudget::steps_of(document.size()))) return true;
  frame_.row.set(0, json::Value::of_object(document));
  // It is told to end by the first row.
  const bool found = is_document_the_row_ ? is_true(*tree_.where, frame_) || frame_.failure
                                          : !for_each_row(tree_, frame_, [] { return false; });
  frame_.failure.reset();
  return found;
}

}  // namespace orrery::query
