#include "sinks/container/target.h"

#include <nlohmann/json.hpp>

#include "client/handles/container_access.h"

namespace orrery::sinks {
namespace {

std::vector<std::vector<std::string>> unique_paths(const client::ContainerProperties& properties) {
  std::vector<std::vector<std::string>> paths;
  const auto policy =
      nlohmann::json::parse(properties.unique_key_policy, nullptr, /*allow_exceptions=*/false);
  if (!policy.is_object()) return paths;
  for (const auto& key : policy.value("uniqueKeys", nlohmann::json::array())) {
    for (const auto& path : key.value("paths", nlohmann::json::array())) {
      if (!path.is_string()) continue;
      if (auto names = parse_property_path(path.get<std::string>())) paths.push_back(*names);
    }
  }
  return paths;
}

}  // namespace

CopyTarget::CopyTarget(client::Container container, std::string name, std::string group,
                       std::string source_rid)
    : CopyTarget(container, std::move(name), std::move(group), std::move(source_rid),
                 container.read().value,
                 client::ContainerAccess::pipeline(container)
                     .routing(container.link(), {})
                     ->definition()) {}

CopyTarget::CopyTarget(client::Container container, std::string name, std::string group,
                       std::string source_rid, const client::ContainerProperties& properties,
                       const PartitionKeyDefinition& definition)
    : container(std::move(container)),
      name(std::move(name)),
      source_rid(std::move(source_rid)),
      keys(definition),
      positions(std::move(group), definition, unique_paths(properties)) {}

client::PartitionKey client_key(const PartitionKey& key) {
  // A key that is missing altogether is written differently for containers that have none.
  if (key.size() <= 1 &&
      (key.empty() || std::holds_alternative<Undefined>(key.components().front()))) {
    return client::PartitionKey::none();
  }
  return client::PartitionKey::from_json(key.to_json());
}

}  // namespace orrery::sinks
