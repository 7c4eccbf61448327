// After a copy: compares both containers, and removes the positions of the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orrery/client.h"
#include "sinks/container/target.h"

namespace orrery::sinks {

/// Takes all documents of the destination, then all of the source, and tells where they differ.
/// System properties and positions are left out. Keeps a few words of each document in memory, not
/// its text.
class Comparison {
 public:
  /// `destination` outlives it.
  explicit Comparison(const KeyReader& destination) : destination_(destination) {}

  void take_destination(std::string_view document);
  void take_source(std::string_view document);

  struct Report {
    std::uint64_t compared = 0;  ///< documents of the source
    std::uint64_t missing = 0;
    std::uint64_t different = 0;
    std::uint64_t extra = 0;  ///< in the destination
    /// Documents of the source that share one place in the destination with others.
    std::uint64_t merged = 0;
    std::vector<std::string> lines;  ///< the first differences, in words

    bool same() const { return missing + different + extra + merged == 0; }
  };
  /// When all were taken.
  Report report();

 private:
  struct Entry {
    std::size_t hash = 0;      ///< of the text
    std::size_t key_size = 0;  ///< of its place: the id follows
    bool found = false;        ///< in the source
  };
  void note(std::string_view what, const PartitionKey& key, std::string_view id);

  const KeyReader& destination_;
  std::unordered_map<std::string, Entry> entries_;  // By canonical key and id.
  Report report_;
};

/// Reads both containers from end to end. Throws CosmosException.
Comparison::Report compare(const client::Container& source, const CopyTarget& target,
                           const std::stop_token& stop = {});

/// Deletes the positions and the ledger of the group. Throws CosmosException and CopyFailure.
/// Returns how many there were.
std::uint64_t remove_positions(const CopyTarget& target, const std::stop_token& stop = {});

}  // namespace orrery::sinks
