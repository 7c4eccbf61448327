// Which documents a query can want, as far as indexes could tell: conditions on single paths, and
// the order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json/sort_key.h"
#include "protocol/container/index_path.h"
#include "query/plan/prepared.h"

namespace orrery::query {

/// A necessary condition on a path of a document, or it does not pass WHERE. Its value there (of a
/// path with [], one of its values) lies in one of the intervals, which are of keys with cut
/// strings; or it is a geometry, of which one of the cells does. It is not sufficient: WHERE is
/// always evaluated, too.
struct PathCondition {
  IndexPath path;
  std::vector<json::KeyInterval> intervals;  ///< sorted, disjoint, never none
  bool is_equality = false;                  ///< all of them are single values
  IndexKind kind = IndexKind::Values;        ///< what they are intervals of
};

struct QueryAccess {
  /// All of them hold (AND). One that can be served by an index is enough to find all rows.
  std::vector<PathCondition> conditions;
  /// Alternatives (OR) of conditions on different paths: documents that pass have one of each.
  std::vector<std::vector<PathCondition>> alternatives;

  struct Order {
    IndexPath path;
    bool is_descending = false;
    auto operator<=>(const Order&) const = default;
  };
  std::vector<Order> order;  ///< of ORDER BY, when all its items are paths of the document

  /// WHERE is never true.
  bool is_empty = false;
  /// Paths that WHERE reads in ways that an index over them cannot bound (CONTAINS, …).
  std::vector<IndexPath> unbounded_paths;
};

/// Of a query over the rows of an inner one: that of the inner one.
QueryAccess access_of(const PreparedQuery& query);

}  // namespace orrery::query
