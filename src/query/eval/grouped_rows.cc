#include "query/eval/grouped_rows.h"

#include <algorithm>
#include <utility>

#include "json/sort_key.h"
#include "query/eval/ordered_rows.h"
#include "query/eval/waiting_rows.h"

namespace orrery::query {

using json::Value;

bool GroupedRows::take_row() {
  ++page_.stats.rows;
  groups_.add(page_.frame);
  if (groups_.memory() <= page_.limits.memory_max) return true;
  page_.frame.failure = too_much_memory("there are too many groups");
  return false;
}

std::vector<GroupedRows::GroupRow> GroupedRows::rows() {
  std::vector<GroupRow> rows;
  Frame& frame = page_.frame;
  for (const auto& [key, group] : groups_.sorted()) {
    if (!frame.spend()) break;
    frame.begin_row();
    Value value = groups_.show(*group, frame);
    if (value.is_undefined()) continue;
    GroupRow row;
    for (const OrderItem& item : page_.tree.order_by) {
      append_order_key(row.key, item, groups_.evaluate_in(*group, *item.expression, frame));
    }
    row.key += key;
    row.value = std::move(value);
    rows.push_back(std::move(row));
  }
  if (!page_.tree.order_by.empty()) {
    std::ranges::sort(rows, {}, &GroupRow::key);
  }
  return rows;
}

Result<> GroupedRows::emit() {
  SeenRows seen;
  const Resumption& resumed = page_.resumed;
  std::uint64_t cut_rows_left = resumed.cut_rows;
  for (GroupRow& row : rows()) {
    if (page_.frame.failure) return Error(*page_.frame.failure);
    if (page_.is_over()) return {};
    if (page_.tree.is_distinct && !seen.insert(json::hash_of(row.value)).second) continue;
    if (cut_rows_left > 0 && row.key.starts_with(*resumed.key)) {
      --cut_rows_left;
      continue;
    }
    if (resumed.key && row.key <= *resumed.key) continue;
    if (page_.is_skipping()) {
      ++page_.position.skipped;
      end_with(std::move(row.key));
      continue;
    }
    if (!page_.check_numbers(row.value)) return Error(*page_.frame.failure);
    if (page_.count >= page_.limits.rows_max) return {};
    const std::size_t before = page_.rows.size();
    page_.separate();
    row.value.append_to(page_.rows);
    if (page_.count > 0 && page_.rows.size() > page_.limits.bytes_max) {
      page_.rows.resize(before);
      return {};
    }
    ++page_.count;
    ++page_.position.emitted;
    end_with(std::move(row.key));
  }
  page_.is_last = true;
  return {};
}

void GroupedRows::end_with(std::string key) {
  RowPosition& position = page_.position;
  const bool is_cut = key.size() > RowPosition::kKeyBytesMax;
  if (is_cut) key.resize(RowPosition::kKeyBytesMax);
  if (!is_cut) {
    position.cut_rows = 0;
  } else if (position.key == key) {
    // A key that is no longer than this beginning counts, too.
    position.cut_rows = std::max<std::uint64_t>(position.cut_rows, 1) + 1;
  } else {
    position.cut_rows = 1;
  }
  position.key = std::move(key);
}

}  // namespace orrery::query
