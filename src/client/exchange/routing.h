// RoutingMap: which ranges a container has now, and where each partition key lies.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/container.h"
#include "protocol/keys/key_reader.h"
#include "protocol/keys/partition_key.h"

namespace orrery::client {

/// A picture of one moment. Immutable; shared by all who use it while a newer one is fetched.
class RoutingMap {
 public:
  /// `ranges` as the server lists them; parents of others are left out. `definition` is the
  /// container's partition key.
  RoutingMap(std::string container_rid, PartitionKeyDefinition definition,
             std::vector<PartitionKeyRange> ranges, std::string etag);

  const std::string& container_rid() const { return container_rid_; }
  const PartitionKeyDefinition& definition() const { return keys_.definition(); }
  /// Finds the keys of its documents.
  const KeyReader& keys() const { return keys_; }
  /// In the order of the hash space, without gaps.
  std::span<const PartitionKeyRange> ranges() const { return ranges_; }
  /// For the incremental refresh.
  const std::string& etag() const { return etag_; }

  /// Whether the ranges cover the hash space without gap or overlap; a picture that was taken in
  /// the middle of a split may not.
  bool is_complete() const;

  /// The ranges that overlap `range`, in order.
  std::vector<PartitionKeyRange> overlapping(const FeedRange& range) const;
  /// The slice of the hash space of a whole key, or of a prefix of a hierarchical one. Throws
  /// CosmosException (Argument) when it has too many components.
  FeedRange slice_of(const PartitionKey& key) const;

 private:
  std::string container_rid_;
  KeyReader keys_;
  std::vector<PartitionKeyRange> ranges_;
  std::string etag_;
};

using RoutingMapPtr = std::shared_ptr<const RoutingMap>;

}  // namespace orrery::client
