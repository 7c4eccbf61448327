// StoredCatalog: all that a store says exists, as values.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "catalog/encryption_keys.h"
#include "catalog/entries.h"
#include "catalog/resources.h"
#include "storage/life.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::catalog {

struct StoredCatalog {
  std::map<Rid, DatabasePtr> databases;
  std::vector<StoredContainer> containers;
  std::vector<EncryptionKeys::Stored> encryption_keys;
  std::vector<OfferPtr> offers;
  Counters counters;
  std::optional<storage::Life> life;
  std::vector<PartitionNumber> garbage;
  std::unordered_map<std::uint32_t, storage::Head> heads;  // By partition number.
};

/// Blocks. Unavailable when an entry, or the disk, cannot be read.
Result<StoredCatalog> read_catalog(const storage::Snapshot& snapshot);

/// An entry that this version cannot read, or that lacks another one it needs.
Error unreadable_entry(std::string_view key);

}  // namespace orrery::catalog
