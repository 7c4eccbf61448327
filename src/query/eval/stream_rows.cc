#include "query/eval/stream_rows.h"

#include "json/sort_key.h"
#include "query/eval/rows.h"

namespace orrery::query {

using json::Value;

bool StreamRows::take_row() {
  ++page_.stats.rows;
  // Of a document that the last page has shown in part.
  if (page_.place < page_.resumed.shown_rows_of(page_.number)) {
    if (page_.tree.is_distinct) is_new(selected(page_.tree, page_.frame));
    return pass_over();
  }
  if (page_.tree.is_distinct) return take_distinct_row();
  if (page_.count >= page_.limits.rows_max) return page_is_full();
  if (page_.is_skipping()) return is_row_defined() ? skip_row() : pass_over();
  const std::size_t before = page_.rows.size();
  page_.separate();
  if (!page_.append_selected_to(page_.rows)) {
    page_.rows.resize(before);
    return pass_over();
  }
  return show_row(before);
}

bool StreamRows::take_distinct_row() {
  const Value value = selected(page_.tree, page_.frame);
  if (value.is_undefined()) return pass_over();
  if (!page_.check_numbers(value)) return false;
  // A page that is full must not remember what it did not show.
  if (page_.count >= page_.limits.rows_max && !seen_.contains(json::hash_of(value))) {
    return page_is_full();
  }
  if (!is_new(value)) return pass_over();
  if (page_.is_skipping()) return skip_row();
  const std::size_t before = page_.rows.size();
  page_.separate();
  value.append_to(page_.rows);
  return show_row(before);
}

bool StreamRows::show_row(std::size_t rows_before) {
  if (page_.count > 0 && page_.rows.size() > page_.limits.bytes_max) {
    page_.rows.resize(rows_before);
    return page_is_full();
  }
  ++page_.count;
  ++page_.position.emitted;
  pass_over();
  return page_.position.emitted < page_.take;
}

bool StreamRows::pass_over() {
  ++page_.place;
  page_.position.partial = {page_.number, page_.place};
  return true;
}

bool StreamRows::skip_row() {
  ++page_.position.skipped;
  return pass_over();
}

bool StreamRows::page_is_full() {
  page_.is_full = true;
  return false;
}

bool StreamRows::is_row_defined() {
  const Selection& selection = page_.tree.selection;
  if (selection.kind != Selection::Kind::Value) return true;
  Value scratch;
  return !evaluate(*selection.items.front().expression, page_.frame, scratch).is_undefined();
}

bool StreamRows::is_new(const Value& value) {
  if (!seen_.insert(json::hash_of(value)).second) return false;
  if (memory() > page_.limits.memory_max) {
    page_.frame.failure = too_much_memory("DISTINCT has too many different rows to remember");
  }
  return true;
}

void StreamRows::remember_rows(std::uint32_t rows_max) {
  for_each_row(page_.tree, page_.frame, [this, left = rows_max]() mutable {
    const Value value = selected(page_.tree, page_.frame);
    if (!value.is_undefined()) is_new(value);
    return --left > 0;
  });
}

void StreamRows::end_document() {
  page_.position.partial = {};
  for (Resumption::Partial& each : page_.resumed.partials) {
    if (each.shown.number == page_.number) each = {};
  }
}

void StreamRows::finish() {
  RowPosition& position = page_.position;
  for (const Resumption::Partial& each : page_.resumed.partials) {
    if (each.shown.rows == 0 || each.shown.number == position.partial.number) continue;
    if (position.partial.rows == 0) {
      position.partial = each.shown;
    } else {
      page_.keep_other(each.shown);
    }
  }
}

}  // namespace orrery::query
