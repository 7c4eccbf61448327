// Effective partition keys: the hash space that physical partitions are ranges of.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/keys/partition_key.h"

namespace orrery {

/// A point in the hash space. Kept as bytes; on the wire it is their upper-case hex. Byte order is
/// the order of the hex text, a prefix before its extensions.
struct Epk {
  std::string bytes;

  /// Far above what any key hashes to, so that a client cannot make us carry megabytes as a bound.
  static constexpr std::size_t kBytesMax = 512;

  static Epk min() { return Epk{}; }                        ///< "" on the wire
  static Epk max() { return Epk{std::string(1, '\xFF')}; }  ///< "FF" on the wire, exclusive
  /// Either case; BadRequest for an odd length, more than kBytesMax, or a character that is not a
  /// hex digit.
  static Result<Epk> from_hex(std::string_view hex);
  std::string hex() const;

  auto operator<=>(const Epk&) const = default;
};

/// [min, max)
struct EpkRange {
  Epk min = Epk::min();
  Epk max = Epk::max();

  bool contains(const Epk& epk) const { return min <= epk && epk < max; }
  bool overlaps(const EpkRange& other) const { return min < other.max && other.min < max; }
  bool operator==(const EpkRange&) const = default;
};

/// The key's place in the hash space. The key must have a component for every path (or be empty);
/// for a MultiHash prefix it is the common prefix of all its extensions.
Epk effective_partition_key(const PartitionKeyDefinition& definition, const PartitionKey& key);

/// All keys that begin with the given components: [epk, epk + "FF"). For a full key the range that
/// holds just its EPK.
EpkRange effective_key_range(const PartitionKeyDefinition& definition, const PartitionKey& prefix);

/// The throughput of one physical partition, in request units per second.
inline constexpr std::int64_t kRangeUnitsMax = 10'000;

/// How many physical partitions a container of that throughput starts with: one up to 10,000 RU/s,
/// above that one for each 6,000 begun.
std::uint32_t initial_range_count(std::int64_t request_units);

/// The even division of the space into `count` ranges that the service uses, in order, first min
/// "", last max "FF".
std::vector<EpkRange> divide_evenly(const PartitionKeyDefinition& definition, std::uint32_t count);

/// The boundary at which a range is divided in two: halfway between its ends as numbers of the hash
/// space. BadRequest when nothing lies strictly between them.
Result<Epk> midpoint(const PartitionKeyDefinition& definition, const EpkRange& range);

/// Which share of the hash space the range is, from 0 to 1.
double share_of_space(const PartitionKeyDefinition& definition, const EpkRange& range);

}  // namespace orrery
