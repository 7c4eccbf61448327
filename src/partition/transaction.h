// What a writer is asked to do, all or nothing, and what came of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/ids.h"
#include "storage/records.h"

namespace orrery::partition {

/// Computes the unique-key values of a stored document: one entry per unique key of the container,
/// in the form that Write::unique_values has.
using UniqueValuesOf = std::function<std::vector<std::string>(std::string_view text)>;

/// What the rules of the container say, as they were when the request arrived.
struct Rules {
  std::optional<std::int32_t> default_ttl;
  /// Null when the container has no unique keys. Shared with the container, which may be replaced
  /// while the transaction waits.
  std::shared_ptr<const UniqueValuesOf> unique_values_of;
};

struct Write {
  enum class Kind { Create, Upsert, Replace, Delete };
  Kind kind = Kind::Create;

  storage::DocumentKey key;  ///< which document
  /// Only this document, not another that came under the same id later: requests addressed by rid.
  std::optional<DocumentNumber> number;
  std::string if_match;  ///< empty: no condition

  // All but Delete:
  std::string new_id;     ///< the id in the body; a Replace with another one renames
  std::string open_text;  ///< json::DocumentText::open_text
  std::int32_t own_ttl = storage::kTtlAbsent;
  std::uint32_t indexed_leaves = 0;
  std::vector<std::string> unique_values;
};

struct Written {
  enum class Kind { Created, Replaced, Deleted };
  Kind kind = Kind::Created;
  storage::LogPosition position;
  storage::VersionHeader header;  ///< of the new version; of the deleted one after a Delete
  std::string text;               ///< the document as stored; empty after a Delete
  std::uint32_t text_size = 0;    ///< of the new version; of the deleted one after a Delete

  ETag etag() const { return ETag(position.lsn, header.ts); }
};

/// One or more writes of one logical partition that get one LSN.
struct Transaction {
  Rules rules;
  std::vector<Write> writes;
  /// Instead of `writes`: delete all documents of this logical partition, as far as one transaction
  /// goes. Its `id` is not used.
  std::optional<storage::DocumentKey> delete_all;

  std::size_t byte_size() const;
};

/// How many documents one transaction may delete of a logical partition.
inline constexpr std::size_t kDeleteAllDocumentsMax = 10'000;

struct Committed {
  Lsn lsn;
  std::vector<Written> writes;
  bool more = false;  ///< delete_all: there are further documents
};

}  // namespace orrery::partition
