// PartitionKey: which logical partition a document belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::client {

/// The value of a partition key, of one component or, for hierarchical keys, of several. A value
/// type; converts from what a component can be, so that `read_item("id", "tycho")` works.
class PartitionKey {
 public:
  /// Without components; append() adds them.
  PartitionKey() = default;
  PartitionKey(std::string_view text) { append(text); }
  PartitionKey(const char* text) { append(std::string_view(text)); }
  PartitionKey(const std::string& text) { append(std::string_view(text)); }
  PartitionKey(double number) { append(number); }
  PartitionKey(int number) { append(static_cast<double>(number)); }
  PartitionKey(std::int64_t number) { append(static_cast<double>(number)); }
  PartitionKey(bool value) { append(value); }
  PartitionKey(std::nullptr_t) { append(nullptr); }

  /// Of documents that lack the property.
  static PartitionKey none();
  /// From the array as it goes over the wire: `["tycho", 4]`. Not checked; the server does that.
  static PartitionKey from_json(std::string json);

  PartitionKey& append(std::string_view text);
  PartitionKey& append(const char* text) { return append(std::string_view(text)); }
  PartitionKey& append(double number);
  PartitionKey& append(bool value);
  PartitionKey& append(std::nullptr_t);
  /// The property is missing at this level.
  PartitionKey& append_undefined();

  /// As in the header x-ms-documentdb-partitionkey.
  const std::string& json() const { return json_; }

  friend bool operator==(const PartitionKey&, const PartitionKey&) = default;

 private:
  PartitionKey& append_json(std::string_view component);

  std::string json_ = "[]";
};

}  // namespace orrery::client
