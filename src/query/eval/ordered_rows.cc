#include "query/eval/ordered_rows.h"

#include <utility>

#include "base/fnv1a.h"
#include "json/sort_key.h"

namespace orrery::query {

using json::Value;

void append_order_key(std::string& key, const OrderItem& item, const Value& value) {
  const bool is_descending =
      item.is_score ? item.is_largest_first : item.is_descending.value_or(false);
  if (is_descending) {
    json::append_sort_key_descending(key, value);
  } else if (item.is_score && value.is_undefined()) {
    // A row without a score is not the most similar, but the least: it comes after all others.
    key.push_back('\xFF');
  } else {
    json::append_sort_key(key, value);
  }
}

bool OrderedRows::take_row() {
  ++page_.stats.rows;
  WaitingRow row;
  row.key = sort_key();
  row.slice = afters_.empty() ? 0 : afters_.size() - 1;
  row.number = page_.number;
  row.place = page_.place++;
  for (Resumption::Partial& each : page_.resumed.partials) {
    if (each.shown.number == row.number && row.key == page_.resumed.key) each.slice = row.slice;
  }
  const bool is_distinct = page_.tree.is_distinct;
  // DISTINCT judges that when all rows are known: one that was shown hides its like.
  if (!is_distinct && is_before_resumption(row)) return true;
  const std::size_t memory_max = page_.limits.memory_max;
  const bool is_full = waiting_.size() >= page_.wanted() || waiting_.memory() > memory_max;
  if (is_full && !is_distinct && !waiting_.empty() && !(row < waiting_.last())) {
    // In the query's order nothing after it is smaller.
    page_.is_slice_done = row.key > waiting_.last().key;
    has_more_ = true;
    return true;
  }
  if (!page_.append_selected_to(row.text)) return true;
  if (page_.frame.failure) return false;
  if (is_distinct) return take_distinct_row(std::move(row));
  const bool is_last = waiting_.insert(std::move(row));
  // The last row that TOP wants: in the query's order all others come after it.
  page_.is_slice_done =
      is_last && waiting_.size() == page_.wanted() && page_.left_to_take() <= page_.limits.rows_max;
  while (waiting_.size() > page_.wanted() ||
         (waiting_.memory() > memory_max && waiting_.size() > 1)) {
    waiting_.drop_last();
    has_more_ = true;
  }
  return true;
}

bool OrderedRows::take_distinct_row(WaitingRow row) {
  row.was_shown = is_before_resumption(row);
  waiting_.insert_distinct(std::move(row));
  if (waiting_.memory() <= page_.limits.memory_max) return true;
  page_.frame.failure = too_much_memory("DISTINCT with ORDER BY has too many different rows");
  return false;
}

std::string OrderedRows::sort_key() {
  std::string key;
  Value scratch;
  for (const OrderItem& item : page_.tree.order_by) {
    append_order_key(key, item, evaluate(*item.expression, page_.frame, scratch));
  }
  return key;
}

void OrderedRows::resume_at_row() {
  std::string key = sort_key();
  if (key.starts_with(*page_.resumed.key) && fnv1a(key) == page_.position.cut_hash) {
    page_.resumed.key = std::move(key);
  }
}

bool OrderedRows::is_before_resumption(const WaitingRow& row) const {
  const Resumption& resumed = page_.resumed;
  if (!resumed.key) return false;
  if (resumed.cut_rows > 0) return row.key < *resumed.key;
  if (row.key != *resumed.key) return row.key < *resumed.key;
  if (const auto shown = resumed.shown_rows_of(row.number); shown > 0) return row.place < shown;
  return row.number <= afters_[row.slice];
}

void OrderedRows::emit() {
  std::uint64_t cut_rows_left = page_.resumed.cut_rows;
  for (const WaitingRow& row : waiting_) {
    if (page_.is_over()) return;
    if (row.was_shown) continue;
    if (cut_rows_left > 0 && row.key.starts_with(*page_.resumed.key)) {
      --cut_rows_left;
      continue;
    }
    if (page_.is_skipping()) {
      ++page_.position.skipped;
      end_with(row);
      continue;
    }
    if (page_.count >= page_.limits.rows_max ||
        (page_.count > 0 && page_.rows.size() + 1 + row.text.size() > page_.limits.bytes_max)) {
      return;
    }
    page_.separate();
    page_.rows += row.text;
    ++page_.count;
    ++page_.position.emitted;
    end_with(row);
  }
  // A full page is followed by another one, even if that is empty: so the service's are.
  page_.is_last = !has_more_ && page_.count < page_.limits.rows_max;
}

void OrderedRows::end_with(const WaitingRow& row) {
  RowPosition& position = page_.position;
  if (row.key.size() > RowPosition::kKeyBytesMax) {
    // A key that is too long for a token is told by its beginning, and by how many rows with that
    // beginning were shown.
    const std::string_view beginning =
        std::string_view(row.key).substr(0, RowPosition::kKeyBytesMax);
    const bool is_same = position.cut_rows > 0 && position.key == beginning;
    position.cut_rows = is_same ? position.cut_rows + 1 : rows_before(row, beginning) + 1;
    position.cut_hash = fnv1a(row.key);
    position.key = beginning;
  } else {
    position.cut_rows = position.cut_hash = 0;
    position.key = row.key;
  }
  has_new_key_ = row.key != page_.resumed.key;
  position.partial = {row.number, row.place + 1};
  last_slice_ = row.slice;
  last_number_ = row.number;
  keep_partials_after(row);
}

void OrderedRows::keep_partials_after(const WaitingRow& row) {
  page_.position.others.clear();
  if (has_new_key_) return;
  for (const Resumption::Partial& each : page_.resumed.partials) {
    if (each.shown.rows > 0 && each.slice > row.slice) page_.keep_other(each.shown);
  }
}

std::uint64_t OrderedRows::rows_before(const WaitingRow& row, std::string_view beginning) const {
  std::uint64_t count = 0;
  for (const WaitingRow& other : waiting_) {
    if (!(other < row)) break;
    if (other.key.starts_with(beginning)) ++count;
  }
  return count;
}

}  // namespace orrery::query
