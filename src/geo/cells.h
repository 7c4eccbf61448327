// Cells of a quadtree over longitudes and latitudes, or over the plane: by which an index finds
// geometries.
//
// The key of a cell tells the way to it from the root, one byte (1 to 4) per level, and ends with a
// byte 0. So keys of cells that lie in another one follow its own, and no key begins another one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "json/sort_key.h"
#include "json/value.h"

namespace orrery::geo {

/// Cells of one geometry in an index: each is an entry. The stored entries depend on it, and on the
/// choice of cells: an index with others needs another name.
inline constexpr std::size_t kEntryCellsMax = 8;
/// Cells of what is looked for: each is a place where the index is read, and so are those around.
inline constexpr std::size_t kRegionCellsMax = 12;

/// The keys of cells that together hold all of a geometry, few but small ones, sorted; a point is
/// in one. None when it is none, so that no function says anything of it. One whose rings cross or
/// go clockwise, of which none does either, may have some.
std::vector<std::string> covering_cells(const json::Value& value, bool is_planar,
                                        std::size_t cells_max);

/// Where in an index of such keys everything is found that is no farther than `distance` from
/// `region`: sorted and disjoint. More may be found, never less. None when there can be nothing,
/// since the region is no geometry or the distance is negative.
std::vector<json::KeyInterval> covering_intervals(const json::Value& region, bool is_planar,
                                                  double distance, std::size_t cells_max);

}  // namespace orrery::geo
