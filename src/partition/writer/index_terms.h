// IndexTerms: the entries of document versions in the secondary indexes of a partition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/terms.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace orrery::partition {

/// Terms with the ids of the indexes that they are in, as one flat run of bytes: a transaction
/// carries one with each version.
class TermList {
 public:
  void add(std::uint32_t index, std::string_view term) {
    storage::append_u32(bytes_, index);
    storage::append_u32(bytes_, static_cast<std::uint32_t>(term.size()));
    bytes_.append(term);
  }
  bool empty() const { return bytes_.empty(); }
  std::size_t byte_size() const { return bytes_.size(); }

  /// Calls visit(index, term) for each.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::string_view rest = bytes_; !rest.empty();) {
      const std::uint32_t index = storage::read_u32(rest.data());
      const std::size_t size = storage::read_u32(rest.data() + 4);
      visit(index, rest.substr(8, size));
      rest.remove_prefix(8 + size);
    }
  }

 private:
  std::string bytes_;
};

/// Finds the terms of documents in some indexes. Threads may share it.
class IndexTerms {
 public:
  explicit IndexTerms(std::span<const storage::IndexRecord> indexes);

  /// Of a document's text.
  TermList of(std::string_view text) const;
  /// The terms that the document has after a change, and those that it has no more.
  struct Change {
    TermList held;
    TermList lost;
  };
  Change of_change(std::string_view before, std::string_view after) const;

  /// Whether it is for just these indexes.
  bool is_for(std::span<const storage::IndexRecord> indexes) const;

 private:
  /// By index, sorted.
  using Found = std::vector<std::vector<std::string>>;
  Found find(std::string_view text) const;
  TermList list_of(const Found& found) const;

  std::vector<std::uint32_t> ids_;
  index::TermFinder finder_;
};

}  // namespace orrery::partition
