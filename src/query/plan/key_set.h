// Sets of sort keys: which values at a path can make a condition true.
#pragma once

#include <string_view>
#include <vector>

#include "json/sort_key.h"
#include "json/value.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// Of the keys that indexes have, in which long strings are cut: what cannot be told apart there is
/// in the set if any of it is.
struct KeySet {
  std::vector<json::KeyInterval> intervals;  ///< sorted, disjoint
  bool is_points = false;                    ///< each is the key of one value

  bool empty() const { return intervals.empty(); }
  bool has_undefined() const;
};

KeySet none();
KeySet undefined_only();
KeySet all_defined();
/// All values of a kind, or of the kinds from one to another.
KeySet of_kinds(json::Kind first, json::Kind last);
inline KeySet of_kind(json::Kind kind) { return of_kinds(kind, kind); }
/// The defined values that `=` finds equal; none for undefined and NaN.
KeySet equal_to(const json::Value& value);
/// The same, but none for a value whose key others may have.
KeySet only(const json::Value& value);
/// Strings that begin so.
KeySet with_prefix(std::string_view prefix);

/// The values x for which `x op constant` is true, or is false; `op` compares.
KeySet compared(BinaryOperator op, const json::Value& constant, bool is_true);

KeySet union_of(const std::vector<KeySet>& sets);
KeySet intersection_of(const KeySet& a, const KeySet& b);
/// All defined values but these, whose keys no others may have.
KeySet defined_except(const KeySet& values);

}  // namespace orrery::query
