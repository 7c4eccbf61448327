// What a bound expression says of one row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <boost/container/small_vector.hpp>

#include "json/value.h"
#include "query/ast.h"
#include "query/bind.h"

namespace orrery::query {

/// The documents of one row, as far as an expression reads them: one pass over each.
class Row {
 public:
  /// For expressions without sources.
  Row() = default;
  /// One document for each source, in their order; undefined where there is none. Refers to what
  /// the documents refer to.
  Row(const Sources& sources, std::span<const json::Value> documents);

  const json::Value& at(const Path& path) const { return found_[begin_[path.source] + path.slot]; }

 private:
  boost::container::small_vector<json::Value, 8> found_;
  boost::container::small_vector<std::size_t, 2> begin_;  ///< of each source, in found_
};

/// Strings that one evaluation makes may have so many bytes in all; beyond that they are undefined.
inline constexpr std::size_t kMadeBytesMax = std::size_t{16} << 20;

/// Never fails: what makes no sense is undefined. The value is in `scratch`, or in the expression
/// or the row, and refers to nothing else. Threads may share the expression.
const json::Value& evaluate(const Expression& expression, const Row& row, json::Value& scratch);

/// A number that is the place of an element: an integer, not negative.
std::optional<std::uint64_t> array_index(const json::Value& value);

}  // namespace orrery::query
