// Reading single documents of a partition, at the latest committed state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
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

/// A document by its key and id, or by its number: then under that key or not at all.
struct DocumentAddress {
  storage::DocumentKey key;  ///< its id is empty where there is a number
  std::optional<DocumentNumber> number;
};

struct PointReadOptions {
  std::optional<std::int32_t> default_ttl;  ///< of the container: expired documents are not there
  std::string_view if_none_match;           ///< the text of a document with this etag is not wanted
};

struct PointRead {
  Lsn lsn;  ///< of the version
  ETag etag;
  bool is_unchanged = false;  ///< if_none_match is its etag
  std::string text = {};      ///< empty if it is unchanged
};

/// The error of an address under which there is nothing.
Error no_such_document();

/// The latest committed version. NotFound; NotInMemory if Tier::Memory does not hold what is
/// needed; Unavailable on an I/O error.
Result<PointRead> read_document(const storage::Store& store, PartitionNumber partition,
                                const DocumentAddress& address, const PointReadOptions& options,
                                UnixSeconds now, storage::Tier tier);

/// The id of a document that is addressed by its number. Blocks. NotFound; Unavailable on an I/O
/// error.
Result<std::string> find_document_id(const storage::Store& store, PartitionNumber partition,
                                     const DocumentAddress& address);

}  // namespace orrery::partition
