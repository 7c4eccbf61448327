// How the catalog is kept in the store. A key is a letter and an id, so that one scan loads it all:
//
//   'd', database rid 4                      database
//   'c', container rid 8                     container, with its ranges and their partitions
//   'k', encryption key rid 16               client encryption key
//   'o', offer rid 3                         offer
//   'g', partition 4                         a partition without a container, to be reclaimed
//   'n', database id, '/', container id      the last head under the name of a deleted container
//   's'                                      the counters
//
// A value is a version byte and JSON. There are few of them, they are read at start only, and a
// person who has to look into a store can read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/resources.h"
#include "protocol/container/container_definition.h"

namespace orrery::catalog {

/// Numbers that are given out once and never again. Every change of the catalog stores them.
struct Counters {
  std::uint32_t database = 0;
  std::uint32_t container = 0;
  std::uint32_t partition = 0;
  std::uint32_t offer = 0;
  std::uint32_t encryption_key = 0;
  std::uint64_t version = 1;
};

/// A range as it is stored: which partition, but not the partition itself.
struct StoredRange {
  RangeId id;
  PartitionNumber partition;
  EpkRange epks;
  std::vector<RangeId> parents;
  std::uint64_t made_in = 1;
  UnixSeconds ts = 0;
};

struct StoredContainer {
  Rid rid;
  ContainerDefinition definition;
  Lsn version;
  UnixSeconds ts = 0;
  std::uint64_t map_version = 1;
  std::vector<StoredRange> ranges;
  RangeId next_range;  ///< the first range id never given out; 0 in what was stored before splits
};

std::string database_key(const Rid& rid);
std::string container_key(const Rid& rid);
std::string encryption_key_key(const Rid& rid);
std::string offer_key(const Rid& rid);
std::string garbage_key(PartitionNumber partition);
std::string last_head_key(std::string_view database_id, std::string_view container_id);
std::string counters_key();

std::string make_value(const Database& database);
std::string make_value(const StoredContainer& container);
std::string make_value(const EncryptionKey& key);
std::string make_value(const Offer& offer);
std::string make_value(const Counters& counters);
std::string make_value(Lsn last_head);

// Nothing when the value is not of this format.
std::optional<Database> parse_database(std::string_view key, std::string_view value);
std::optional<StoredContainer> parse_container(std::string_view key, std::string_view value);
std::optional<EncryptionKey> parse_encryption_key(std::string_view key, std::string_view value);
std::optional<Offer> parse_offer(std::string_view key, std::string_view value);
std::optional<Counters> parse_counters(std::string_view value);
std::optional<Lsn> parse_last_head(std::string_view value);

}  // namespace orrery::catalog
