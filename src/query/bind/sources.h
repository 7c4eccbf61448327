// The sources that a tree reads from.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/path.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// Everything that a tree reads from: documents, elements of arrays, rows of subqueries, all of the
/// whole tree in one list. Of each, the paths that are read of it.
class Sources {
 public:
  Sources() = default;
  /// Documents with these aliases.
  explicit Sources(std::span<const std::string_view> aliases);

  std::size_t size() const { return sources_.size(); }
  /// A new one.
  std::size_t add(std::string alias);
  const std::string& alias(std::size_t source) const { return sources_[source].alias; }
  const json::PathSet& paths(std::size_t source) const { return sources_[source].paths; }
  /// The slot of a path of a source, the same for the same path.
  std::size_t add_path(std::size_t source, std::span<const json::Step> path);
  /// The same, of which only these paths are read.
  Sources only(std::span<const Path> paths) const;
  /// The path that has this slot.
  const std::vector<json::Step>& steps(const Path& path) const {
    return sources_[path.source].steps[path.slot];
  }

 private:
  struct Source {
    std::string alias;
    json::PathSet paths;
    std::vector<std::vector<json::Step>> steps;  ///< by slot
  };
  std::vector<Source> sources_;
};

}  // namespace orrery::query
