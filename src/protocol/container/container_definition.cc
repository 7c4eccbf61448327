#include "protocol/container/container_definition.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/assert.h"
#include "protocol/container/client_encryption.h"
#include "protocol/container/search_policies.h"

namespace orrery {
namespace {

constexpr std::size_t kHierarchicalPathsMax = 3;
constexpr std::size_t kUniqueKeysMax = 10;
constexpr std::size_t kUniqueKeyPathsMax = 16;
constexpr std::size_t kComputedPropertiesMax = 20;
constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::string_view kSystemKeyPath = "/_partitionKey";

constexpr std::string_view kFirstVersionWithSystemKey = "2018-12-31";
constexpr std::string_view kFirstVersionWithMultiHash = "2020-07-15";

bool is_before(std::string_view api_version, std::string_view first) {
  return !api_version.empty() && api_version < first;  // Without one it is the newest.
}

// The order on the wire. Members not named here follow, as they came.
constexpr std::array<const char*, 14> kMemberOrder = {"id",
                                                      "indexingPolicy",
                                                      "partitionKey",
                                                      "defaultTtl",
                                                      "ttlPropertyPath",
                                                      "uniqueKeyPolicy",
                                                      "conflictResolutionPolicy",
                                                      "geospatialConfig",
                                                      "analyticalStorageTtl",
                                                      "computedProperties",
                                                      "changeFeedPolicy",
                                                      "vectorEmbeddingPolicy",
                                                      "fullTextPolicy",
                                                      "clientEncryptionPolicy"};

bool is_ordered(std::string_view name) {
  return std::ranges::find(kMemberOrder, name) != kMemberOrder.end();
}

bool is_system_property(std::string_view name) {
  constexpr std::array<std::string_view, 10> kNames = {
      "_rid",    "_ts",       "_self", "_etag",      "_docs",
      "_sprocs", "_triggers", "_udfs", "_conflicts", "statistics"};
  return std::ranges::find(kNames, name) != kNames.end();
}

// ── Partition key ────────────────────────────────────────────────────────────────────────────────

/// Whether a segment that is not quoted has a character that asks for quotes.
bool needs_quotes(std::string_view path) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t begin = ++at;  // Here stood a '/'.
    if (begin < path.size() && (path[begin] == '"' || path[begin] == '\'')) {
      for (++at; at < path.size() && path[at] != path[begin]; ++at) {
        if (path[at] == '\\') ++at;
      }
      at = std::min(path.find('/', at), path.size());
      continue;
    }
    for (; at < path.size() && path[at] != '/'; ++at) {
      const char c = path[at];
      if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F ||
          std::string_view("*?\"'\\[]{}").find(c) != std::string_view::npos) {
        return true;
      }
    }
  }
  return false;
}

Result<std::vector<std::string>> parse_key_path(const Json& path) {
  if (path.is_string()) {
    const auto& text = path.get_ref<const std::string&>();
    auto names = parse_property_path(text);
    if (names && !needs_quotes(text)) return *std::move(names);
  }
  // Clients look for either half.
  return bad_request(fmt::format(
      "The partition key component definition path '{}' could not be accepted. Partition key paths "
      "must contain only valid characters and not contain a trailing slash or wildcard character.",
      path.is_string() ? path.get_ref<const std::string&>() : path.dump()));
}

bool has_system_key_path(const Json& key) {
  const Json* paths = find_member(key, "paths");
  return paths != nullptr && *paths == Json::array({kSystemKeyPath});
}

/// Parses `partitionKey`, with `fallback` for the kind and the version that it does not name.
Result<PartitionKeyDefinition> parse_partition_key(const Json& key,
                                                   const PartitionKeyDefinition& fallback) {
  if (!key.is_object()) return bad_request("partitionKey must be an object.");
  PartitionKeyDefinition result;
  if (const Json* system_key = find_member(key, "systemKey")) {
    if (!system_key->is_boolean()) {
      return bad_request("partitionKey.systemKey must be true or false.");
    }
    if (system_key->get<bool>()) {
      if (!has_system_key_path(key)) {
        return bad_request(
            fmt::format("partitionKey.systemKey is only for the path '{}' of a container that was "
                        "made without a "
                        "partition key.",
                        kSystemKeyPath));
      }
      result.system_key = true;
      return result;
    }
  }

  result.kind = fallback.kind;
  if (const Json* kind = find_member(key, "kind")) {
    if (is_one_of(*kind, {"Hash"})) {
      result.kind = KeyKind::Hash;
    } else if (is_one_of(*kind, {"MultiHash"})) {
      result.kind = KeyKind::MultiHash;
    } else {
      return bad_request("partitionKey.kind must be 'Hash' or 'MultiHash'.");
    }
  }
  result.version = fallback.version;
  if (const Json* version = find_member(key, "version")) {
    const auto number = integer_in(*version, 1, 2);
    if (!number) return bad_request("partitionKey.version must be 1 or 2.");
    result.version = static_cast<int>(*number);
  }
  if (result.kind == KeyKind::MultiHash && result.version != 2) {
    return bad_request("partitionKey.version must be 2 when partitionKey.kind is 'MultiHash'.");
  }

  const Json* paths = find_member(key, "paths");
  if (paths == nullptr || !paths->is_array() || paths->empty()) {
    return bad_request("partitionKey.paths must be an array of at least one path.");
  }
  if (paths->size() > (result.kind == KeyKind::Hash ? 1 : kHierarchicalPathsMax)) {
    return bad_request(
        fmt::format("Too many partition key paths: {}. A key of kind 'Hash' has one, a key of kind "
                    "'MultiHash' up to {}.",
                    paths->size(), kHierarchicalPathsMax));
  }
  for (const Json& path : *paths) {
    ORRERY_TRY(auto names, parse_key_path(path));
    if (std::ranges::find(result.paths, names) != result.paths.end()) {
      return bad_request(fmt::format("partitionKey.paths has the path '{}' twice.",
                                     path.get_ref<const std::string&>()));
    }
    result.paths.push_back(std::move(names));
  }
  return result;
}

/// As the client wrote it, with its kind: some clients look for that.
Json shown_partition_key(const Json& key) {
  const bool has_kind = find_member(key, "kind") != nullptr;
  Json result = Json::object();
  for (const auto& [name, value] : key.items()) {
    if (name == "systemKey" || value.is_null()) continue;
    result[name] = value;
    if (name == "paths" && !has_kind) result["kind"] = "Hash";
  }
  return result;
}

Json shown_system_key() {
  return {{"paths", {kSystemKeyPath}}, {"kind", "Hash"}, {"systemKey", true}};
}

// ── Other members ────────────────────────────────────────────────────────────────────────────────

using UniqueKeys = std::vector<std::vector<std::vector<std::string>>>;

Result<UniqueKeys> parse_unique_keys(const Json& policy) {
  const Json* keys = find_member(policy, "uniqueKeys");
  if (keys == nullptr && policy.is_object()) return UniqueKeys{};
  if (keys == nullptr || !keys->is_array()) {
    return bad_request("uniqueKeyPolicy must be an object with the array uniqueKeys.");
  }
  if (keys->size() > kUniqueKeysMax) {
    return bad_request(
        fmt::format("uniqueKeyPolicy must not have more than {} unique keys.", kUniqueKeysMax));
  }
  UniqueKeys result;
  for (const Json& key : *keys) {
    const Json* paths = find_member(key, "paths");
    if (paths == nullptr || !paths->is_array() || paths->empty() ||
        paths->size() > kUniqueKeyPathsMax) {
      return bad_request(
          fmt::format("A unique key must have an array of 1 to {} paths.", kUniqueKeyPathsMax));
    }
    auto& names_of_paths = result.emplace_back();
    for (const Json& path : *paths) {
      if (!path.is_string()) return bad_request("A path of a unique key must be a string.");
      ORRERY_TRY(auto names, parse_property_path(path.get_ref<const std::string&>()));
      if (std::ranges::find(names_of_paths, names) != names_of_paths.end()) {
        return bad_request(fmt::format("A unique key has the path '{}' twice.",
                                       path.get_ref<const std::string&>()));
      }
      names_of_paths.push_back(std::move(names));
    }
  }
  return result;
}

Result<Json> complete_conflict_resolution(const Json* given) {
  const Json policy = given != nullptr ? *given : Json::object();
  if (!policy.is_object()) return bad_request("conflictResolutionPolicy must be an object.");
  Json result = Json::object();
  const Json* mode = find_member(policy, "mode");
  if (mode != nullptr && !is_one_of(*mode, {"LastWriterWins", "Custom"})) {
    return bad_request("conflictResolutionPolicy.mode must be 'LastWriterWins' or 'Custom'.");
  }
  result["mode"] = mode != nullptr ? *mode : Json("LastWriterWins");
  const bool custom = is_one_of(result["mode"], {"Custom"});
  result["conflictResolutionPath"] = custom ? "" : "/_ts";
  result["conflictResolutionProcedure"] = "";
  for (const auto& [name, value] : policy.items()) {
    if (value.is_null() || name == "mode") continue;
    if (result.contains(name)) {
      if (!value.is_string()) {
        return bad_request(fmt::format("conflictResolutionPolicy.{} must be a string.", name));
      }
      // Some clients send what they leave open as an empty string.
      if (value.get_ref<const std::string&>().empty()) continue;
    }
    result[name] = value;
  }
  return result;
}

Result<Json> complete_geospatial_config(const Json* given) {
  Json result = given != nullptr ? *given : Json::object();
  if (!result.is_object()) return bad_request("geospatialConfig must be an object.");
  const Json* type = find_member(result, "type");
  if (type == nullptr) {
    result["type"] = "Geography";
  } else if (!is_one_of(*type, {"Geography", "Geometry"})) {
    return bad_request("geospatialConfig.type must be 'Geography' or 'Geometry'.");
  }
  return result;
}

Result<> check_computed_properties(const Json& properties) {
  // Clients look for the words in front.
  constexpr std::string_view kInvalid =
      "One of the specified inputs is invalid: computedProperties";
  if (!properties.is_array()) return bad_request(fmt::format("{} must be an array.", kInvalid));
  if (properties.size() > kComputedPropertiesMax) {
    return bad_request(fmt::format("computedProperties must not have more than {} entries.",
                                   kComputedPropertiesMax));
  }
  std::set<std::string> names;
  for (const Json& property : properties) {
    for (const char* member : {"name", "query"}) {
      const Json* text = find_member(property, member);
      if (text == nullptr || !text->is_string() || text->get_ref<const std::string&>().empty()) {
        return bad_request(
            fmt::format("{}: every entry must have the string '{}', not empty.", kInvalid, member));
      }
    }
    const auto name = property["name"].get<std::string>();
    if (name == "id" || name == "_rid" || name == "_ts") {
      return bad_request(
          fmt::format("computedProperties: '{}' cannot be the name of a computed property.", name));
    }
    if (!names.insert(name).second) {
      return bad_request(fmt::format("computedProperties has the name '{}' twice.", name));
    }
  }
  return {};
}

Result<ChangeFeedPolicy> parse_change_feed_policy(const Json& policy) {
  ChangeFeedPolicy result;
  if (!policy.is_object()) return bad_request("changeFeedPolicy must be an object.");
  if (const Json* retention = find_member(policy, "retentionDuration")) {
    const auto minutes = integer_in(*retention, 0, kInt32Max);
    if (!minutes) {
      return bad_request("changeFeedPolicy.retentionDuration must be whole minutes, 0 or more.");
    }
    result.retention_minutes = static_cast<std::int32_t>(*minutes);
  }
  if (const Json* tombstones = find_member(policy, "tombstoneDuration")) {
    const auto minutes = integer_in(*tombstones, ChangeFeedPolicy::kForEver, kInt32Max);
    if (!minutes) {
      return bad_request(
          "changeFeedPolicy.tombstoneDuration must be whole minutes, or -1 for ever.");
    }
    result.tombstone_minutes = static_cast<std::int32_t>(*minutes);
  }
  if (const Json* image = find_member(policy, "previousImage")) {
    using PreviousImage = ChangeFeedPolicy::PreviousImage;
    if (is_one_of(*image, {"all"})) {
      result.previous_image = PreviousImage::All;
    } else if (is_one_of(*image, {"delete"})) {
      result.previous_image = PreviousImage::Delete;
    } else if (!is_one_of(*image, {"none"})) {
      return bad_request("changeFeedPolicy.previousImage must be 'none', 'delete' or 'all'.");
    }
  }
  return result;
}

Result<std::optional<std::int32_t>> parse_default_ttl(const Json& body) {
  // Null is not the same as absent here: clients that send it meant a number.
  const auto member = body.find("defaultTtl");
  if (member == body.end()) return std::optional<std::int32_t>{};
  const auto seconds = integer_in(*member, -1, kInt32Max);
  if (!seconds || *seconds == 0) {
    return bad_request(fmt::format("defaultTtl must be -1 or an integer from 1 to {}.", kInt32Max));
  }
  return std::optional<std::int32_t>{static_cast<std::int32_t>(*seconds)};
}

/// Arrays and objects are equal whatever the order of members and the spelling of numbers.
bool same_value(const Json& a, const Json& b) { return nlohmann::json(a) == nlohmann::json(b); }

}  // namespace

Result<ContainerDefinition> ContainerDefinition::create(const Json& body,
                                                        std::string_view api_version) {
  ORRERY_TRY(auto result, parse(body, api_version));
  ORRERY_TRY(result.check_spatial_indexes());
  if (const Json* policy = result.member("clientEncryptionPolicy")) {
    ORRERY_TRY(check_encryption_policy(*policy, result.partition_key_));
  }
  return result;
}

Result<ContainerDefinition> ContainerDefinition::parse(const Json& body,
                                                       std::string_view api_version) {
  ContainerDefinition result;
  ORRERY_TRY(result.id_, parse_resource_id(body));
  ORRERY_TRY(result.take_partition_key(find_member(body, "partitionKey"), api_version));
  ORRERY_TRY(result.take_unique_keys(find_member(body, "uniqueKeyPolicy")));
  ORRERY_TRY(result.take_conflict_resolution(find_member(body, "conflictResolutionPolicy")));
  ORRERY_TRY(result.take_changeable(body));
  return result;
}

Result<> ContainerDefinition::take_partition_key(const Json* given, std::string_view api_version) {
  if (given == nullptr) {
    partition_key_ = {.paths = {}, .kind = KeyKind::Hash, .version = 1, .system_key = true};
  } else {
    ORRERY_TRY(partition_key_, parse_partition_key(*given, {}));
  }
  if (partition_key_.kind == KeyKind::MultiHash &&
      is_before(api_version, kFirstVersionWithMultiHash)) {
    return bad_request(fmt::format("partitionKey.kind 'MultiHash' needs x-ms-version {} or later.",
                                   kFirstVersionWithMultiHash));
  }
  members_["partitionKey"] =
      partition_key_.system_key ? shown_system_key() : shown_partition_key(*given);
  return {};
}

Result<> ContainerDefinition::take_unique_keys(const Json* given) {
  if (given == nullptr) return {};
  ORRERY_TRY(unique_keys_, parse_unique_keys(*given));
  members_["uniqueKeyPolicy"] = *given;
  return {};
}

Result<> ContainerDefinition::take_conflict_resolution(const Json* given) {
  ORRERY_TRY(members_["conflictResolutionPolicy"], complete_conflict_resolution(given));
  return {};
}

Result<> ContainerDefinition::take_changeable(const Json& body) {
  ORRERY_TRY(indexing_policy_, IndexingPolicy::parse(find_member(body, "indexingPolicy")));

  ORRERY_TRY(default_ttl_, parse_default_ttl(body));
  if (default_ttl_) {
    if (indexing_policy_.none()) {
      return bad_request("defaultTtl is not allowed when indexingPolicy.indexingMode is 'none'.");
    }
    members_["defaultTtl"] = *default_ttl_;
  }
  if (const Json* path = find_member(body, "ttlPropertyPath")) {
    if (!path->is_string() || !parse_property_path(path->get_ref<const std::string&>())) {
      return bad_request("ttlPropertyPath must be a path such as '/created'.");
    }
    if (!default_ttl_) return bad_request("ttlPropertyPath needs defaultTtl.");
    members_["ttlPropertyPath"] = *path;
  }
  if (const Json* ttl = find_member(body, "analyticalStorageTtl")) {
    const auto seconds = integer_in(*ttl, -1, kInt32Max);
    if (!seconds) return bad_request("analyticalStorageTtl must be an integer, -1 or more.");
    members_["analyticalStorageTtl"] = *seconds;
  }

  ORRERY_TRY(members_["geospatialConfig"],
             complete_geospatial_config(find_member(body, "geospatialConfig")));
  if (const Json* properties = find_member(body, "computedProperties")) {
    ORRERY_TRY(check_computed_properties(*properties));
  }
  if (const Json* policy = find_member(body, "changeFeedPolicy")) {
    ORRERY_TRY(change_feed_policy_, parse_change_feed_policy(*policy));
  }
  ORRERY_TRY(check_vector_policies(find_member(body, "vectorEmbeddingPolicy"),
                                   indexing_policy_.vector_indexes()));
  ORRERY_TRY(check_full_text_policies(find_member(body, "fullTextPolicy"),
                                      indexing_policy_.full_text_indexes()));
  for (const auto& [name, value] : body.items()) {
    if (is_system_property(name) || members_.contains(name)) continue;
    // A null of a member that we know is the same as none; one that we do not know is the client's.
    if (is_ordered(name) && (value.is_null() || name == "id" || name == "indexingPolicy")) continue;
    members_[name] = value;
  }
  return {};
}

Result<ContainerDefinition> ContainerDefinition::replace(const Json& body,
                                                         std::string_view /*api_version*/) const {
  ContainerDefinition result;
  result.id_ = id_;
  result.partition_key_ = partition_key_;
  result.unique_keys_ = unique_keys_;
  for (const char* name :
       {"partitionKey", "uniqueKeyPolicy", "conflictResolutionPolicy", "clientEncryptionPolicy"}) {
    if (members_.contains(name)) result.members_[name] = members_[name];
  }

  if (find_member(body, "id") != nullptr) {
    ORRERY_TRY(const std::string id, parse_resource_id(body));
    if (id != id_) {
      return bad_request(
          fmt::format("The id of a container cannot change from '{}' to '{}'.", id_, id));
    }
  }
  if (const Json* key = find_member(body, "partitionKey")) {
    // Some clients send the system key back without the member that says it is one.
    const bool same_system_key = partition_key_.system_key && has_system_key_path(*key);
    if (!same_system_key) {
      ORRERY_TRY(const auto given, parse_partition_key(*key, partition_key_));
      if (given != partition_key_) {
        return bad_request("The partitionKey of a container cannot change.");
      }
    }
  }
  if (const Json* policy = find_member(body, "uniqueKeyPolicy")) {
    ORRERY_TRY(const auto keys, parse_unique_keys(*policy));
    if (keys != unique_keys_) {
      return bad_request("The uniqueKeyPolicy of a container cannot change.");
    }
  }
  if (const Json* policy = find_member(body, "conflictResolutionPolicy")) {
    ORRERY_TRY(const Json given, complete_conflict_resolution(policy));
    if (!same_value(given, members_["conflictResolutionPolicy"])) {
      return bad_request("The conflictResolutionPolicy of a container cannot change.");
    }
  }
  if (const Json* policy = find_member(body, "clientEncryptionPolicy")) {
    const Json* current = member("clientEncryptionPolicy");
    if (current == nullptr || !same_value(*policy, *current)) {
      return bad_request("The clientEncryptionPolicy of a container cannot change.");
    }
  }
  ORRERY_TRY(result.take_changeable(body));
  ORRERY_TRY(check_vector_change(find_member(members_, "vectorEmbeddingPolicy"),
                                 indexing_policy_.vector_indexes(),
                                 find_member(result.members_, "vectorEmbeddingPolicy"),
                                 result.indexing_policy_.vector_indexes()));
  // A policy from before that rule may stay as it is.
  const Json* before = indexing_policy_.spatial_indexes();
  const Json* after = result.indexing_policy_.spatial_indexes();
  const bool is_same = before != nullptr && after != nullptr && same_value(*before, *after) &&
                       spatial_kind() == result.spatial_kind();
  if (!is_same) ORRERY_TRY(result.check_spatial_indexes());
  return result;
}

Result<> ContainerDefinition::check_spatial_indexes() const {
  const Json* indexes = indexing_policy_.spatial_indexes();
  if (indexes == nullptr) return {};
  const bool is_planar = spatial_kind() == IndexKind::PlaneCells;
  for (const Json& index : *indexes) {
    const bool has_box = find_member(index, "boundingBox") != nullptr;
    if (has_box == is_planar) continue;
    return bad_request(fmt::format(
        "indexingPolicy.spatialIndexes: '{}' {} boundingBox, since geospatialConfig.type is '{}'.",
        index["path"].get_ref<const std::string&>(), is_planar ? "needs a" : "must not have a",
        is_planar ? "Geometry" : "Geography"));
  }
  return {};
}

Json ContainerDefinition::to_stored() const {
  Json stored = members_;
  stored["id"] = id_;
  stored["indexingPolicy"] = indexing_policy_.stored();
  return stored;
}

ContainerDefinition ContainerDefinition::from_stored(const Json& stored) {
  auto result = parse(stored, {});
  ORRERY_ASSERT(result.has_value());  // We wrote it, and the store checks its bytes.
  return *std::move(result);
}

IndexKind ContainerDefinition::spatial_kind() const {
  const Json* config = member("geospatialConfig");
  const Json* type = config != nullptr ? find_member(*config, "type") : nullptr;
  const bool is_planar = type != nullptr && is_one_of(*type, {"Geometry"});
  return is_planar ? IndexKind::PlaneCells : IndexKind::EarthCells;
}

Json ContainerDefinition::to_wire(std::string_view api_version) const {
  Json wire = Json::object();
  for (const char* name : kMemberOrder) {
    const std::string_view view = name;
    if (view == "id") {
      wire[name] = id_;
    } else if (view == "indexingPolicy") {
      wire[name] = indexing_policy_.to_wire(api_version);
    } else if (view == "partitionKey" && partition_key_.system_key &&
               is_before(api_version, kFirstVersionWithSystemKey)) {
      continue;
    } else if (members_.contains(name)) {
      wire[name] = members_[name];
    }
  }
  for (const auto& [name, value] : members_.items()) {
    if (!is_ordered(name)) wire[name] = value;
  }
  return wire;
}

}  // namespace orrery
