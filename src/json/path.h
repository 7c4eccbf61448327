// The parts of a document that somebody wants, all read in one pass over its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json/value.h"

namespace orrery::json {

/// A member's name, or the place of an array's element.
using Step = std::variant<std::string, std::uint64_t>;

/// A set of paths, made once and read from many documents. Reading stops as soon as everything is
/// found, and skips what no path leads to. Threads may share one that is made.
class PathSet {
 public:
  /// The place in `found` of what is at `path`; the same for the same path. A path of no steps is
  /// the document itself.
  std::size_t add(std::span<const Step> path);
  /// How many different paths were added.
  std::size_t size() const { return size_; }

  /// The same places, of which only these are read: all others stay undefined.
  PathSet only(std::span<const std::size_t> slots) const;

  /// Puts what is at each path, or undefined, into `found`, which must have size() places. The
  /// values refer to `document` or to what it refers to.
  void read(const Value& document, std::span<Value> found) const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  struct Child {
    Step step;
    std::uint32_t node;
    std::string quoted;  ///< of a name: see MemberSearch
  };
  /// A node of the tree of paths: whether its value is wanted, and what is below it.
  struct Node {
    std::uint32_t slot = kNone;
    std::vector<Child> names;     ///< sorted by length, then by name
    std::vector<Child> elements;  ///< sorted
  };

  class Pass;

  /// Takes everything away below this node that leads to none of the slots. False if nothing is
  /// left.
  bool keep_only(std::uint32_t node, std::span<const std::size_t> slots);

  std::vector<Node> nodes_ = {Node()};
  std::size_t size_ = 0;
};

}  // namespace orrery::json
