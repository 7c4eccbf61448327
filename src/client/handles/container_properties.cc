#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client/handles/resource.h"
#include "json/value.h"
#include "orrery/container.h"

namespace orrery::client {
namespace {

std::vector<std::string> paths_of(const json::Value& partition_key) {
  std::vector<std::string> paths;
  const json::Value list = partition_key.member("paths");
  for (json::Reader reader(list); reader.next();) {
    std::string buffer;
    const json::Value path = reader.value();
    if (path.is_string()) paths.emplace_back(path.as_string(buffer));
  }
  return paths;
}

/// The hash function that all new containers have; and where there are several paths, the key is
/// hierarchical.
json::Value partition_key_of(const std::vector<std::string>& paths) {
  std::vector<json::Value> list;
  list.reserve(paths.size());
  for (const std::string& path : paths) list.push_back(json::Value::string(path));
  json::Value key = json::Value::object();
  key.set_member("paths", json::Value::array(std::move(list)));
  key.set_member("kind", json::Value::string(paths.size() > 1 ? "MultiHash" : "Hash"));
  key.set_member("version", json::Value::number(std::int64_t{2}));
  return key;
}

/// A part that is JSON: in its place, or away when there is none.
void set_json(json::Value& body, std::string_view member, const std::string& text) {
  if (text.empty()) {
    body.erase_member(member);
    return;
  }
  auto value = json::Value::parse(text);
  if (!value) refuse_argument(std::string(member) + " is no JSON: " + value.error().message());
  body.set_member(member, std::move(*value));
}

json::Value object_of(std::string_view text) {
  auto body = json::Value::parse(text);
  if (!body || !body->is_object()) {
    refuse_argument("What a container is made of is a JSON object, and this is none: " +
                    std::string(text));
  }
  return std::move(*body);
}

}  // namespace

ContainerProperties ContainerProperties::from_json(std::string_view json) {
  const json::Value body = object_of(json);
  ContainerProperties properties;
  properties.id = body.member("id").string_or_empty();
  properties.partition_key_paths = paths_of(body.member("partitionKey"));
  if (const json::Value ttl = body.member("defaultTtl"); ttl.is_number()) {
    properties.default_ttl =
        static_cast<int>(std::clamp(ttl.as_number().real, -2147483648.0, 2147483647.0));
  }
  properties.indexing_policy = text_at(body, "indexingPolicy");
  properties.unique_key_policy = text_at(body, "uniqueKeyPolicy");
  properties.conflict_resolution_policy = text_at(body, "conflictResolutionPolicy");
  properties.change_feed_policy = text_at(body, "changeFeedPolicy");
  properties.rid = body.member("_rid").string_or_empty();
  properties.etag = body.member("_etag").string_or_empty();
  properties.json = json;
  return properties;
}

std::string ContainerProperties::to_json() const {
  // Members that this client does not know go back as they came: the service removes members that
  // are missing.
  json::Value body = json.empty() ? json::Value::object() : object_of(json);
  body.set_member("id", json::Value::string(id));
  if (partition_key_paths.empty()) {
    body.erase_member("partitionKey");
  } else if (paths_of(body.member("partitionKey")) != partition_key_paths) {
    body.set_member("partitionKey", partition_key_of(partition_key_paths));
  }
  if (default_ttl) {
    body.set_member("defaultTtl", json::Value::number(std::int64_t{*default_ttl}));
  } else {
    body.erase_member("defaultTtl");
  }
  set_json(body, "indexingPolicy", indexing_policy);
  set_json(body, "uniqueKeyPolicy", unique_key_policy);
  set_json(body, "conflictResolutionPolicy", conflict_resolution_policy);
  set_json(body, "changeFeedPolicy", change_feed_policy);
  return body.to_text();
}

}  // namespace orrery::client
