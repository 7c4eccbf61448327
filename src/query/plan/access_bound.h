// Bounds of the documents that can meet a condition, for access by indexes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "protocol/container/index_path.h"
#include "query/plan/key_set.h"

namespace orrery::query {

/// The target of an index lookup: values at a path, or cells of geometries there.
struct IndexTarget {
  IndexPath path;
  IndexKind kind = IndexKind::Values;
  auto operator<=>(const IndexTarget&) const = default;
};

/// A condition on one value in a document: it, or one of its cells, is in the set.
struct ValueCondition {
  IndexTarget target;
  KeySet keys;
};

/// Conditions, one of which holds. By their targets: for "one of the values there" it is the same
/// whether one of two sets has it, or the two together.
using Alternatives = std::map<IndexTarget, KeySet>;

/// Conditions that a document must meet for an expression to have a wanted value. To say less is
/// always right, and is done where there are too many conditions.
struct AccessBound {
  bool is_never = false;
  /// All hold. By what tells values apart: two conditions on one value are one, while two on values
  /// of one path, such as two elements of an array, stay two.
  std::map<std::string, ValueCondition> conditions;
  std::vector<Alternatives> alternatives;  ///< one of each holds

  bool says_nothing() const { return !is_never && conditions.empty() && alternatives.empty(); }

  /// No document is.
  static AccessBound never();
  /// The bound that holds if one of the branches does.
  static AccessBound one_of(std::vector<AccessBound> branches);
  /// The other one holds, too.
  void add(AccessBound other);
};

}  // namespace orrery::query
