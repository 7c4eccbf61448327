// The terms of a document in its indexes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json/path.h"
#include "json/value.h"
#include "protocol/container/index_path.h"

namespace orrery::index {

/// Finds the entries of several indexes in one document, in one pass where that is possible. Made
/// once per set of indexes; threads may share it.
class TermFinder {
 public:
  explicit TermFinder(std::vector<IndexSpec> specs);
  ~TermFinder();

  /// Appends to terms[i], for each index i, the keys (json/sort_key.h, strings cut) of the
  /// document's entries in it, each once. A single path without [] has exactly one, that of
  /// undefined where nothing is there; so has a composite. A path with [] has one per different
  /// element value, none if there are none. A spatial one has the cells (geo/cells.h) of the
  /// geometries there, none where there is no geometry.
  void find(std::string_view document, std::vector<std::vector<std::string>>& terms) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace orrery::index
