// Aggregates and GROUP BY: groups are rows once the last document was seen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "query/eval/aggregate.h"
#include "query/eval/page.h"

namespace orrery::query {

/// Not thread-safe. Must not outlive the page.
class GroupedRows {
 public:
  explicit GroupedRows(Page& page) : page_(page), groups_(page.tree) {}

  /// The row that is in the frame. False when the query failed.
  bool take_row();
  /// All documents were taken: makes the page.
  Result<> emit();

  std::size_t memory() const { return groups_.memory(); }

 private:
  struct GroupRow {
    std::string key;  // Of ORDER BY, then of the group.
    json::Value value;
  };
  /// In the order of their keys.
  std::vector<GroupRow> rows();
  /// Moves the end of the page to the row that has this key.
  void end_with(std::string key);

  Page& page_;
  Groups groups_;
};

}  // namespace orrery::query
