// Paths of documents that indexes are over, and how they are written.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// A path as indexes know it: names of members, and [] for the elements of an array.
struct IndexPath {
  struct Step {
    std::string name;
    bool is_element = false;  ///< []: any element; it has no name
    auto operator<=>(const Step&) const = default;
  };
  std::vector<Step> steps;

  /// `/a/[]/"b c"`: names that are not plain words in quotes, as JSON strings. The root is "/".
  std::string text() const;
  /// Nothing when it is not such a text.
  static std::optional<IndexPath> parse(std::string_view text);
  bool has_elements() const;
  auto operator<=>(const IndexPath&) const = default;
};

/// The terms that an index makes of the values at its paths.
enum class IndexKind : std::uint8_t {
  Values,      ///< their sort keys
  EarthCells,  ///< of geometries on the earth: the cells that hold them
  PlaneCells,  ///< the same in a plane
};

/// One index: over a single path, or a composite one over several.
struct IndexSpec {
  struct Part {
    IndexPath path;
    bool is_descending = false;
    auto operator<=>(const Part&) const = default;
  };
  std::vector<Part> parts;             ///< one, ascending; or two and more, without []
  IndexKind kind = IndexKind::Values;  ///< of a composite one always that

  bool is_composite() const { return parts.size() > 1; }
  bool is_spatial() const { return kind != IndexKind::Values; }
  /// `/a/[]/b`, or `/a ASC,/b DESC` of a composite one; `/a SPATIAL` of a spatial one, and
  /// `/a SPATIAL PLANAR` where the geometry is flat. Identifies the index; also stored.
  std::string text() const;
  static std::optional<IndexSpec> parse(std::string_view text);
  static IndexSpec single(IndexPath path, IndexKind kind = IndexKind::Values) {
    return {{{std::move(path), false}}, kind};
  }
  auto operator<=>(const IndexSpec&) const = default;
};

}  // namespace orrery
