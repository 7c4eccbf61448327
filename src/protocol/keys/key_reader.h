// KeyReader: the partition key that a document has.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "json/path.h"
#include "json/value.h"
#include "protocol/keys/partition_key.h"

namespace orrery {

/// Where the key of a document is. Immutable; threads may share it.
class KeyReader {
 public:
  explicit KeyReader(PartitionKeyDefinition definition);

  const PartitionKeyDefinition& definition() const { return definition_; }
  /// A missing value, an object and an array are undefined, as servers see it.
  PartitionKey key_of(const json::Value& document) const;
  /// Likewise; `document` has been checked to be JSON.
  PartitionKey key_of(std::string_view document) const;
  /// Whether the key is, or contains, the document's id: then a logical partition has room for one
  /// document only.
  bool has_id() const;

 private:
  PartitionKeyDefinition definition_;
  json::PathSet paths_;
  std::vector<std::size_t> places_;  // Of each path, in what paths_ finds.
};

}  // namespace orrery
