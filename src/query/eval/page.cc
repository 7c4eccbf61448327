#include "query/eval/page.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "query/eval/rows.h"

namespace orrery::query {
namespace {

/// The text of a page has room for so much at once: some documents.
constexpr std::size_t kRowsBytesFirst = std::size_t{16} << 10;

}  // namespace

Resumption::Resumption(const RowPosition& from) : key(from.key), cut_rows(from.cut_rows) {
  partials.push_back({from.partial});
  for (const RowPosition::Partial& other : from.others) partials.push_back({other});
}

std::uint32_t Resumption::shown_rows_of(DocumentNumber number) const {
  for (const Partial& each : partials) {
    if (each.shown.rows > 0 && each.shown.number == number) return each.shown.rows;
  }
  return 0;
}

Page::Page(const PreparedQuery& query, const PageLimits& limits, RowPosition from)
    : tree(query.tree()),
      limits(limits),
      frame(query.sources()),
      resumed(from),
      position(std::move(from)) {
  frame.surroundings = &query.surroundings();
  frame.user_functions = query.user_functions();
  skip = tree.offset ? tree.offset->value : 0;
  take = tree.limit ? tree.limit->value : std::numeric_limits<std::uint64_t>::max();
  if (tree.top) take = std::min(take, tree.top->value);
  position.partial = {};
  position.others.clear();
}

std::uint64_t Page::wanted() const {
  const std::uint64_t skipping = skip - std::min(skip, position.skipped);
  const std::uint64_t showing = std::min<std::uint64_t>(limits.rows_max, left_to_take());
  return skipping + showing + resumed.cut_rows;
}

void Page::keep_other(const RowPosition::Partial& other) {
  if (position.others.size() < RowPosition::kOthersMax) position.others.push_back(other);
}

void Page::separate() {
  if (count > 0) rows.push_back(',');
  if (rows.empty()) rows.reserve(kRowsBytesFirst);
}

bool Page::append_selected_to(std::string& out) {
  bool has_unfit_number = false;
  const bool is_defined = append_selected(tree, frame, out, has_unfit_number);
  if (has_unfit_number) frame.failure = number_not_in_json();
  return is_defined;
}

bool Page::check_numbers(const json::Value& value) {
  if (!has_number_not_in_json(value)) return true;
  frame.failure = number_not_in_json();
  return false;
}

Error too_much_memory(std::string_view what) {
  return Error(ErrorCode::RequestTooLarge,
               fmt::format("The query needs more memory than a request may have: {}. Filter more, "
                           "or group by less.",
                           what));
}

}  // namespace orrery::query
