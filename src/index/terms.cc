#include "index/terms.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>

#include "geo/cells.h"
#include "json/sort_key.h"

namespace orrery::index {
namespace {

using json::kIndexedStringBytesMax;

std::vector<json::Step> names_of(std::span<const IndexPath::Step> steps) {
  std::vector<json::Step> names;
  names.reserve(steps.size());
  for (const IndexPath::Step& step : steps) names.emplace_back(step.name);
  return names;
}

/// Of one value in an index over a single path.
void append_keys_of(const json::Value& value, IndexKind kind, std::vector<std::string>& keys) {
  if (kind == IndexKind::Values) {
    json::append_sort_key(keys.emplace_back(), value, kIndexedStringBytesMax);
    return;
  }
  std::ranges::move(geo::covering_cells(value, kind == IndexKind::PlaneCells, geo::kEntryCellsMax),
                    std::back_inserter(keys));
}

/// Appends the keys of all values that `steps` lead to from `value`; they may repeat.
void append_keys_below(const json::Value& value, std::span<const IndexPath::Step> steps,
                       IndexKind kind, std::vector<std::string>& keys) {
  if (steps.empty()) {
    append_keys_of(value, kind, keys);
    return;
  }
  if (!steps.front().is_element) {
    append_keys_below(value.member(steps.front().name), steps.subspan(1), kind, keys);
    return;
  }
  if (!value.is_array()) return;
  for (json::Reader reader(value); reader.next();) {
    append_keys_below(reader.value(), steps.subspan(1), kind, keys);
  }
}

}  // namespace

struct TermFinder::Impl {
  /// Where a part of an index begins: a value that is read in the common pass.
  struct Part {
    std::size_t slot;
    bool is_descending;
  };
  struct Index {
    std::vector<Part> parts;
    std::vector<IndexPath::Step> below;  ///< of a path with []: from the first of them on
    IndexKind kind;
  };

  json::PathSet paths;
  std::vector<Index> indexes;

  void append_keys(const Index& index, std::span<const json::Value> values,
                   std::vector<std::string>& keys) const {
    const bool has_one_key = index.below.empty() && index.kind == IndexKind::Values;
    if (has_one_key) {
      std::string& key = keys.emplace_back();
      for (const Part& part : index.parts) {
        if (part.is_descending) {
          json::append_sort_key_descending(key, values[part.slot], kIndexedStringBytesMax);
        } else {
          json::append_sort_key(key, values[part.slot], kIndexedStringBytesMax);
        }
      }
      return;
    }
    const auto before = static_cast<std::ptrdiff_t>(keys.size());
    append_keys_below(values[index.parts.front().slot], index.below, index.kind, keys);
    std::sort(keys.begin() + before, keys.end());
    keys.erase(std::unique(keys.begin() + before, keys.end()), keys.end());
  }
};

TermFinder::TermFinder(std::vector<IndexSpec> specs) {
  auto impl = std::make_unique<Impl>();
  for (IndexSpec& spec : specs) {
    Impl::Index& index = impl->indexes.emplace_back();
    index.kind = spec.kind;
    for (IndexSpec::Part& part : spec.parts) {
      auto& steps = part.path.steps;
      const auto element = std::ranges::find_if(steps, &IndexPath::Step::is_element);
      index.parts.push_back(
          {impl->paths.add(names_of(std::span(steps.begin(), element))), part.is_descending});
      // Only a single path has [].
      index.below.assign(element, steps.end());
    }
  }
  impl_ = std::move(impl);
}

TermFinder::~TermFinder() = default;

void TermFinder::find(std::string_view document,
                      std::vector<std::vector<std::string>>& terms) const {
  std::vector<json::Value> values(impl_->paths.size());
  impl_->paths.read(json::Value::of_checked(document), values);
  for (std::size_t i = 0; i < impl_->indexes.size(); ++i) {
    impl_->append_keys(impl_->indexes[i], values, terms[i]);
  }
}

}  // namespace orrery::index
