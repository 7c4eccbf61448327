// Transaction: one of the things that a partition's writer does, all or nothing, and its outcome.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "json/document_text.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace orrery::partition {

// Words of storage that those who write documents use too.
using storage::DocumentKey;
using storage::kTtlAbsent;
using storage::kTtlNever;

/// Computes the unique-key values of a stored document: one entry per unique key of the container,
/// in the form that NewVersion::unique_values has.
using UniqueValuesOf = std::function<std::vector<std::string>(std::string_view text)>;

/// The container's rules, as they were when the request arrived.
struct Rules {
  std::optional<std::int32_t> default_ttl;
  /// Null when the container has no unique keys. Shared with the container, which may be replaced
  /// while the transaction waits.
  std::shared_ptr<const UniqueValuesOf> unique_values_of;
};

/// The version of a document that a write makes.
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

  bool tells_text = true;  ///< whether its text counts against DocumentWrites::text_budget

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

// ── the alternatives; only those that change documents take an LSN ──

/// Writes to documents of one logical partition.
struct DocumentWrites {
  std::vector<Write> writes;
  /// Of a batch: a write that fails is an outcome (Committed::failure), not an Error.
  bool tell_failure = false;
  /// How many bytes of text (Written::text) the answer to a request still has room for; shared by
  /// all transactions of that request, each of which takes from it the size of its texts.
  /// ResponseTooLarge for a write whose text finds no room: it is not done. Null: no limit.
  std::shared_ptr<std::atomic<std::int64_t>> text_budget = {};
};

/// Deletes all documents of a logical partition, at most kDeleteByKeyDocumentsMax at a time.
/// Committed::more says whether there are more.
struct DeleteByKey {
  storage::DocumentKey key;  ///< its `id` is not used
};

/// A document that seems to have expired: see expiry.h.
struct PurgeCandidate {
  storage::ExpiryEntry entry;
};

/// Deletes expired documents, of whatever key, if they are still there and still expired; entries
/// that name nothing are collected.
struct ExpiryPurge {
  std::vector<PurgeCandidate> candidates;
};

/// Changes what is kept from now on.
struct RetentionChange {
  storage::RetentionSettings retention;  ///< its `expiry` says only whether there are to be entries
};

/// Makes the next expiry entries of documents that were there when they were switched on.
/// Committed::more as above. Conflict where none are kept.
struct ExpiryBuildStep {};

/// Lets history go, a bounded number of records at a time. RetentionChange decides which kinds are
/// kept; this only says how long. Committed::more as above.
struct HistoryTrim {
  UnixSeconds all_before = 0;            ///< older ones keep deletes only
  UnixSeconds tombstones_before = 0;     ///< older ones go altogether; not later than all_before
  std::uint64_t bytes_max = UINT64_MAX;  ///< beyond that the oldest go whatever their age
};

/// Secondary indexes to have and not to have from now on, by IndexSpec::text. Indexes to add that
/// exist stay as they are; those to drop need not exist. BadRequest for a text that is no spec,
/// Forbidden where there would be more than storage::kIndexesMax: then nothing is changed.
struct IndexChange {
  std::vector<std::string> add;
  std::vector<std::string> drop;  ///< with all their entries
};

/// Makes the next entries of indexes for documents that were there when they were added; at the end
/// they are complete. Committed::more as above.
struct IndexBuildStep {};

/// One alternative that a partition's writer does at once, under one LSN if documents change.
struct Transaction {
  Rules rules = {};  ///< for those that look at documents
  std::variant<DocumentWrites, DeleteByKey, ExpiryPurge, RetentionChange, ExpiryBuildStep,
               HistoryTrim, IndexChange, IndexBuildStep>
      work = {};

  /// Counts against the bound of a mailbox.
  std::size_t byte_size() const;
};

/// How many documents one transaction may delete of a logical partition.
inline constexpr std::size_t kDeleteByKeyDocumentsMax = 10'000;

/// Which write of a transaction was refused, and why. Nothing was written.
struct Failure {
  std::size_t index = 0;
  Error error;
};

struct Committed {
  Lsn lsn;
  std::vector<Written> writes;
  bool more = false;  ///< DeleteByKey, HistoryTrim and the build steps: there is more to do
  std::optional<Failure> failure;
  /// Documents purged (ExpiryPurge), history records let go (HistoryTrim), documents indexed
  /// (IndexBuildStep).
  std::size_t tidied = 0;
  /// HistoryTrim: in how many seconds there will be more, as far as can be seen now.
  std::optional<UnixSeconds> next_in;
};

}  // namespace orrery::partition
