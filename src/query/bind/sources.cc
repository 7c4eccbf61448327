#include "query/bind/sources.h"

#include <utility>

namespace orrery::query {

Sources::Sources(std::span<const std::string_view> aliases) {
  for (const std::string_view alias : aliases) add(std::string(alias));
}

std::size_t Sources::add(std::string alias) {
  sources_.push_back({std::move(alias), {}, {}});
  return sources_.size() - 1;
}

std::size_t Sources::add_path(std::size_t source, std::span<const json::Step> path) {
  Source& of = sources_[source];
  const std::size_t slot = of.paths.add(path);
  if (slot == of.steps.size()) of.steps.emplace_back(path.begin(), path.end());
  return slot;
}

Sources Sources::only(std::span<const Path> paths) const {
  Sources part = *this;
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    std::vector<std::size_t> slots;
    for (const Path& path : paths) {
      if (path.source == source) slots.push_back(path.slot);
    }
    part.sources_[source].paths = sources_[source].paths.only(slots);
  }
  return part;
}

}  // namespace orrery::query
