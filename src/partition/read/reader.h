// Reading single documents of a partition, at the latest committed state.
#pragma once

#include <optional>
#include <string>

#include "protocol/ids.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::partition {

/// A document as it is stored now.
struct Found {
  storage::IdEntry entry;
  std::string record;  ///< a VersionRecord; empty when only the entry was asked for

  storage::VersionRecord version() const { return *storage::VersionRecord::parse(record); }
};

/// The entry of a document; does not look at its expiry.
storage::Lookup find_entry(const storage::Store& store, PartitionNumber partition,
                           const storage::DocumentKey& key, storage::Tier tier, Found& out);

/// The version that find_entry found. Missing when it has been superseded since: look again.
storage::Lookup fetch_version(const storage::Store& store, PartitionNumber partition,
                              storage::Tier tier, Found& found);

/// Entry and version of the document with that number. Missing when there is none.
storage::Lookup find_by_number(const storage::Store& store, PartitionNumber partition,
                               DocumentNumber number, storage::Tier tier, Found& out);

}  // namespace orrery::partition
