// The definition of a container: validated, completed with defaults, and written back in the form
// that the client's API version expects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/container/indexing_policy.h"
#include "protocol/keys/partition_key.h"
#include "protocol/wire/resource_body.h"

namespace orrery {

/// The retention of a container's changes: its `changeFeedPolicy`.
struct ChangeFeedPolicy {
  enum class PreviousImage { None, Delete, All };
  static constexpr std::int32_t kForEver = -1;

  std::int32_t retention_minutes = 0;  ///< of every change; 0: there is no all-versions feed
  std::int32_t tombstone_minutes = 0;  ///< of deletes; kForEver; 0: no longer than all changes
  PreviousImage previous_image = PreviousImage::None;

  bool keeps_all() const { return retention_minutes > 0; }
  bool keeps_tombstones() const { return keeps_all() || tombstone_minutes != 0; }
  bool operator==(const ChangeFeedPolicy&) const = default;
};

class ContainerDefinition {
 public:
  /// From the body of a create. `api_version` decides defaults of the indexing policy and whether
  /// MultiHash is admitted. BadRequest names the member and the rule.
  static Result<ContainerDefinition> create(const Json& body, std::string_view api_version);

  /// From what to_stored() returned.
  static ContainerDefinition from_stored(const Json& stored);
  Json to_stored() const;

  /// The definition that a PUT of `body` makes of this one: the whole resource is replaced, but for
  /// what cannot change. BadRequest when id, partitionKey, uniqueKeyPolicy,
  /// conflictResolutionPolicy or clientEncryptionPolicy are given and differ, or a vector index or
  /// embedding does. The output of to_wire() of any version is accepted under any version.
  Result<ContainerDefinition> replace(const Json& body, std::string_view api_version) const;

  const std::string& id() const { return id_; }
  const PartitionKeyDefinition& partition_key() const { return partition_key_; }
  /// Absent: TTL is off. -1: only documents with their own.
  std::optional<std::int32_t> default_ttl() const { return default_ttl_; }
  const ChangeFeedPolicy& change_feed_policy() const { return change_feed_policy_; }
  /// Paths of each unique key, as member names.
  const std::vector<std::vector<std::vector<std::string>>>& unique_keys() const {
    return unique_keys_;
  }
  bool lazily_indexed() const { return indexing_policy_.lazy(); }
  std::vector<IndexSpec> composite_indexes() const { return indexing_policy_.composite_indexes(); }
  /// The kind of its spatial indexes: cells of the earth, or of a plane.
  IndexKind spatial_kind() const;
  std::vector<IndexSpec> named_indexes() const {
    return indexing_policy_.named_indexes(spatial_kind());
  }
  bool allows(const IndexSpec& index) const {
    return indexing_policy_.allows(index) && (!index.is_spatial() || index.kind == spatial_kind());
  }
  /// Of the indexing policy; null when there are none.
  const Json* vector_indexes() const { return indexing_policy_.vector_indexes(); }
  /// Another member as the client gave it, such as `computedProperties`; null when there is none.
  const Json* member(std::string_view name) const { return find_member(members_, name); }

  /// Members in the order that the service uses, without system properties; what a client of
  /// `api_version` is shown.
  Json to_wire(std::string_view api_version) const;

  /// Whether the policy indexes the property at `path` (member names; array elements are "[]").
  /// For request charges.
  bool indexes(const std::vector<std::string_view>& path) const {
    return indexing_policy_.indexes(path);
  }
  /// True when every leaf is indexed except `_etag`, as by default: then indexes() need not be
  /// asked.
  bool indexes_everything() const { return indexing_policy_.indexes_everything(); }

 private:
  /// create() but for rules that stored definitions need not follow: they are older.
  static Result<ContainerDefinition> parse(const Json& body, std::string_view api_version);
  /// BadRequest for a spatial index without boundingBox in a plane, or with one on the earth.
  Result<> check_spatial_indexes() const;
  /// Of the members that a replace may change, and of those that it may not.
  Result<> take_changeable(const Json& body);
  Result<> take_partition_key(const Json* given, std::string_view api_version);
  Result<> take_unique_keys(const Json* given);
  Result<> take_conflict_resolution(const Json* given);

  std::string id_;
  PartitionKeyDefinition partition_key_;
  IndexingPolicy indexing_policy_;
  std::optional<std::int32_t> default_ttl_;
  ChangeFeedPolicy change_feed_policy_;
  std::vector<std::vector<std::vector<std::string>>> unique_keys_;
  /// Everything else that is echoed, and what of the above keeps its spelling; see to_stored().
  Json members_ = Json::object();
};

}  // namespace orrery
