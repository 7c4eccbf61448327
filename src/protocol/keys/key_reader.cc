#include "protocol/keys/key_reader.h"

#include <algorithm>
#include <string>
#include <utility>

namespace orrery {
namespace {

KeyComponent component_of(const json::Value& value) {
  if (value.is_null()) return Null{};
  if (value.is_boolean()) return value.as_boolean();
  if (value.is_number()) return value.as_number().real;
  if (value.is_string()) {
    std::string buffer;
    return std::string(value.as_string(buffer));
  }
  return Undefined{};
}

}  // namespace

KeyReader::KeyReader(PartitionKeyDefinition definition) : definition_(std::move(definition)) {
  for (const auto& path : definition_.paths) {
    const std::vector<json::Step> steps(path.begin(), path.end());
    places_.push_back(paths_.add(steps));
  }
}

PartitionKey KeyReader::key_of(const json::Value& document) const {
  std::vector<json::Value> found(paths_.size());
  paths_.read(document, found);
  std::vector<KeyComponent> components;
  components.reserve(places_.size());
  for (const std::size_t place : places_) components.push_back(component_of(found[place]));
  return PartitionKey(std::move(components));
}

PartitionKey KeyReader::key_of(std::string_view document) const {
  return key_of(json::Value::of_checked(document));
}

bool KeyReader::has_id() const {
  return std::ranges::find(definition_.paths, std::vector<std::string>{"id"}) !=
         definition_.paths.end();
}

}  // namespace orrery
