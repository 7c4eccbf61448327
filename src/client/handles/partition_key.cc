#include "orrery/partition_key.h"

#include <cmath>

#include "protocol/keys/partition_key.h"

namespace orrery::client {

PartitionKey PartitionKey::none() {
  PartitionKey key;
  key.append_undefined();
  return key;
}

PartitionKey PartitionKey::from_json(std::string json) {
  PartitionKey key;
  key.json_ = std::move(json);
  return key;
}

PartitionKey& PartitionKey::append(std::string_view text) {
  // As a key of one component, whose brackets are cut off: the same escapes as everywhere.
  const std::string json =
      orrery::PartitionKey(std::vector<KeyComponent>{std::string(text)}).to_json();
  return append_json(std::string_view(json).substr(1, json.size() - 2));
}

PartitionKey& PartitionKey::append(double number) {
  // JSON has no infinities and no NaN; the service takes such a property for none.
  if (!std::isfinite(number)) return append_undefined();
  const std::string json = orrery::PartitionKey(std::vector<KeyComponent>{number}).to_json();
  return append_json(std::string_view(json).substr(1, json.size() - 2));
}

PartitionKey& PartitionKey::append(bool value) { return append_json(value ? "true" : "false"); }

PartitionKey& PartitionKey::append(std::nullptr_t) { return append_json("null"); }

PartitionKey& PartitionKey::append_undefined() { return append_json("{}"); }

PartitionKey& PartitionKey::append_json(std::string_view component) {
  const auto end = json_.rfind(']');
  if (end == std::string::npos) return *this;  // From from_json, and no array.
  const bool is_first = json_.find_first_not_of(" \t\r\n", json_.find('[') + 1) == end;
  std::string longer = json_.substr(0, end);
  if (!is_first) longer += ',';
  longer += component;
  longer += ']';
  json_ = std::move(longer);
  return *this;
}

}  // namespace orrery::client
