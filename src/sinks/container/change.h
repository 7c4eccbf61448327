// SourceChange: a document of the source as it is written into the destination, and where it goes
// there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "protocol/keys/epk.h"
#include "protocol/keys/key_reader.h"
#include "protocol/keys/partition_key.h"

namespace orrery::sinks {

/// The document without the members that a server adds; every other member keeps its bytes, numbers
/// and spaces included.
std::string without_system_properties(std::string_view document);

/// A change of the source.
struct SourceChange {
  std::string text;  ///< to be written
  std::string id;
  std::string rid;  ///< in the source
  std::uint64_t lsn = 0;
  PartitionKey key;  ///< in the destination
  Epk source_epk;    ///< where it is in the source
};

/// Makes changes of what the feed shows. Immutable; threads may share it.
class ChangeReader {
 public:
  ChangeReader(PartitionKeyDefinition source, PartitionKeyDefinition destination)
      : source_(std::move(source)), destination_(std::move(destination)) {}

  /// BadRequest when it is not what a change feed shows.
  Result<SourceChange> read(std::string_view document) const;

  const KeyReader& source() const { return source_; }
  const KeyReader& destination() const { return destination_; }

 private:
  KeyReader source_;
  KeyReader destination_;
};

}  // namespace orrery::sinks
