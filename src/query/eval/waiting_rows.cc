#include "query/eval/waiting_rows.h"

#include <iterator>
#include <utility>

#include "json/value.h"

namespace orrery::query {
namespace {

/// Memory of a waiting row beside its text and key.
constexpr std::size_t kOverhead = 120;

}  // namespace

std::size_t WaitingRow::memory() const { return key.size() + text.size() + kOverhead; }

bool WaitingRows::insert(WaitingRow row) {
  memory_ += row.memory();
  const auto inserted = rows_.insert(std::move(row)).first;
  return std::next(inserted) == rows_.end();
}

void WaitingRows::drop_last() { drop(std::prev(rows_.end())); }

void WaitingRows::insert_distinct(WaitingRow row) {
  const json::Hash128 hash = json::hash_of(json::Value::of_checked(row.text));
  const auto found = distinct_.find(hash);
  if (found != distinct_.end()) {
    row.was_shown = found->second->was_shown = row.was_shown || found->second->was_shown;
    if (!(row < *found->second)) return;
    drop(found->second);
    distinct_.erase(found);
  }
  memory_ += row.memory() + kSeenBytes;
  distinct_.emplace(hash, rows_.insert(std::move(row)).first);
}

void WaitingRows::drop(Rows::const_iterator row) {
  memory_ -= row->memory();
  rows_.erase(row);
}

}  // namespace orrery::query
