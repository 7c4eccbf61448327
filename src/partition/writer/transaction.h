// What a writer is asked to do, all or nothing, and what came of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "json/document_text.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace orrery::partition {

/// Computes the unique-key values of a stored document: one entry per unique key of the container,
/// in the form that NewVersion::unique_values has.
using UniqueValuesOf = std::function<std::vector<std::string>(std::string_view text)>;

/// What the rules of the container say, as they were when the request arrived.
struct Rules {
  std::optional<std::int32_t> default_ttl;
  /// Null when the container has no unique keys. Shared with the container, which may be replaced
  /// while the transaction waits.
  std::shared_ptr<const UniqueValuesOf> unique_values_of;
};

/// What a write makes of a document.
struct NewVersion {
  std::string new_id;     ///< the id in the body; a Replace with another one renames
  std::string open_text;  ///< json::DocumentText::open_text
  /// Where a version that replaces another has its system properties; one that creates a document
  /// has them at the end.
  json::SystemPlaces system_places;
  std::int32_t own_ttl = storage::kTtlAbsent;
  std::uint32_t indexed_leaves = 0;
  std::vector<std::string> unique_values;
};

struct Write {
  enum class Kind { Create, Upsert, Replace, Delete, Patch, Read };
  Kind kind = Kind::Create;

  storage::DocumentKey key;  ///< which document
  /// Only this document, not another that came under the same id later: requests addressed by rid.
  std::optional<DocumentNumber> number;
  std::string if_match;       ///< empty: no condition. On a Read it means the same as the next.
  std::string if_none_match;  ///< Read: if it names the current version, that is all to be told

  bool tells_text = true;  ///< whether its text counts against Transaction::text_budget

  /// Refused before it came here, and for what: of a batch, those before it are judged first.
  std::optional<Error> refusal;

  NewVersion version;  ///< Create, Upsert and Replace
  /// Patch: makes the new version from the stored text; its refusal is the write's. Called on the
  /// writer's thread, or on an event loop: must not block, and may be called more than once.
  std::function<Result<NewVersion>(std::string_view text)> change;
};

struct Written {
  enum class Kind { Created, Replaced, Deleted, Read, NotModified };
  Kind kind = Kind::Created;
  storage::LogPosition position;  ///< of the version; after a Delete that of the deletion
  storage::VersionHeader header;  ///< of the version; of the deleted one after a Delete
  std::string text;               ///< the document as stored; empty after Deleted and NotModified
  std::uint32_t text_size = 0;    ///< of the version; of the deleted one after a Delete

  ETag etag() const { return ETag(position.lsn, header.ts); }
};

/// A document that seems to have expired: see expiry.h.
struct PurgeCandidate {
  storage::ExpiryEntry entry;
};

/// Which history to let go. What is kept is decided by Keeping: this only says how long.
struct HistoryTrim {
  UnixSeconds all_before = 0;            ///< older ones keep deletes only
  UnixSeconds tombstones_before = 0;     ///< older ones go altogether; not later than all_before
  std::uint64_t bytes_max = UINT64_MAX;  ///< beyond that the oldest go whatever their age
};

/// Secondary indexes to have and not to have from now on, by IndexSpec::text. What is there already
/// stays as it is; what is not there need not go.
struct IndexChange {
  std::vector<std::string> add;
  std::vector<std::string> drop;  ///< with all that is in them
};

/// One or more writes of one logical partition that get one LSN. Or, instead of writes, one of the
/// other things that only a partition's writer may do; those that change no document take no LSN.
struct Transaction {
  Rules rules;
  std::vector<Write> writes;
  /// Of a batch: that one of its writes fails is an outcome (Committed::failure), not an Error.
  bool tell_failure = false;
  /// How many bytes of text (Written::text) the answer to a request still has room for; shared by
  /// all transactions of that request, which take from it what they bring. ResponseTooLarge for a
  /// write whose text finds no room: it is not done. Null: no limit.
  std::shared_ptr<std::atomic<std::int64_t>> text_budget;

  /// Deletes all documents of this logical partition, as far as one transaction goes. Its `id` is
  /// not used.
  std::optional<storage::DocumentKey> delete_all;
  /// Deletes those that have expired, if they still are there and still have; entries that name
  /// nothing are collected. One LSN for all, of whatever key.
  std::vector<PurgeCandidate> purge;
  /// Changes what is kept from now on. Its `expiry` says only whether there are to be entries.
  std::optional<storage::Keeping> keep;
  /// Makes the next expiry entries of what was there when they were switched on. Committed::more
  /// says whether there is more to do. Conflict where none are kept.
  bool build_expiry = false;
  /// Lets history go, a bounded piece at a time. Committed::more as above.
  std::optional<HistoryTrim> trim;
  /// Changes which secondary indexes there are. BadRequest for what is no spec, Forbidden where
  /// there would be more than storage::kIndexesMax: then none of it is done.
  std::optional<IndexChange> indexes;
  /// Makes the next entries of indexes for what was there when they were added; at the end they are
  /// complete. Committed::more as above.
  bool build_indexes = false;

  std::size_t byte_size() const;
};

/// How many documents one transaction may delete of a logical partition.
inline constexpr std::size_t kDeleteAllDocumentsMax = 10'000;

/// Which write of a transaction was refused, and why. Nothing was written.
struct Failure {
  std::size_t index = 0;
  Error error;
};

struct Committed {
  Lsn lsn;
  std::vector<Written> writes;
  bool more = false;  ///< delete_all, build_expiry, trim, build_indexes: there is more to do
  std::optional<Failure> failure;
  /// purge, trim, build_indexes: documents purged, history records let go, documents indexed.
  std::size_t tidied = 0;
  /// trim: in how many seconds there will be more, as far as can be seen now.
  std::optional<UnixSeconds> next_in;
};

}  // namespace orrery::partition
