// Resolving what an expression names: sources, parameters, functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/path.h"
#include "query/ast.h"

namespace orrery::query {

/// The documents that an expression is over, by their aliases, and what it reads of each.
class Sources {
 public:
  explicit Sources(std::span<const std::string_view> aliases);

  std::size_t size() const { return sources_.size(); }
  std::optional<std::size_t> find(std::string_view alias) const;
  json::PathSet& paths(std::size_t source) { return sources_[source].paths; }
  const json::PathSet& paths(std::size_t source) const { return sources_[source].paths; }

 private:
  struct Source {
    std::string alias;
    json::PathSet paths;
  };
  std::vector<Source> sources_;
};

/// Binds `expression` in place, for a per-document expression: names become paths of `sources`,
/// calls find their functions, and what is constant is computed once. `text` is what it was parsed
/// from, for errors: SC2001 an unknown name, SC2005 an unknown function, SC2050 a wrong number of
/// arguments, SC2101 an aggregate; UDFs and parameters (nobody could give them a value) are refused
/// too.
Result<> bind(Expression& expression, Sources& sources, std::string_view text);

}  // namespace orrery::query
