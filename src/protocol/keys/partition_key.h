// Partition key values and definitions, and their three forms: header, document, and store.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace orrery {

struct Undefined {
  auto operator<=>(const Undefined&) const = default;
};
struct Null {
  auto operator<=>(const Null&) const = default;
};

/// One level of a key. Numbers are IEEE doubles, whatever their text was.
using KeyComponent = std::variant<Undefined, Null, bool, double, std::string>;

/// A partition key value: one component per path of the definition, fewer for a prefix of a
/// hierarchical key, none for the empty key `[]`.
class PartitionKey {
 public:
  PartitionKey() = default;
  explicit PartitionKey(std::vector<KeyComponent> components)
      : components_(std::move(components)) {}

  /// From the header x-ms-documentdb-partitionkey: a JSON array of scalars; `{}` is undefined.
  /// BadRequest when it is not JSON, not an array, or holds an array or a non-empty object.
  static Result<PartitionKey> parse(std::string_view header);

  const std::vector<KeyComponent>& components() const { return components_; }
  bool empty() const { return components_.empty(); }
  std::size_t size() const { return components_.size(); }

  /// The header form: ASCII only.
  std::string to_json() const;

  /// Bytes that tell every key from every other, and where no key's bytes begin another's of the
  /// same number of components (the format is drawn in partition_key.cc).
  void append_canonical(std::string& out) const;
  std::string canonical() const {
    std::string bytes;
    append_canonical(bytes);
    return bytes;
  }
  /// From what append_canonical wrote of a key of that many components. BadRequest for anything
  /// else.
  static Result<PartitionKey> from_canonical(std::string_view bytes, std::size_t components);

  /// Equality of bytes: 0 and -0 are different keys, as their hashes are.
  bool operator==(const PartitionKey& other) const;

 private:
  std::vector<KeyComponent> components_;
};

enum class KeyKind { Hash, MultiHash };

/// How a container finds the key in a document and hashes it.
struct PartitionKeyDefinition {
  /// Each path as its member names: "/a/\"b c\"" is {"a", "b c"}. Empty: a container without a key,
  /// whose documents all have the key `[]`.
  std::vector<std::vector<std::string>> paths;
  KeyKind kind = KeyKind::Hash;
  int version = 1;  ///< 1 or 2: the hash function
  /// Made without a partition key; newer API versions show it as the system key /_partitionKey.
  bool system_key = false;

  bool operator==(const PartitionKeyDefinition&) const = default;
};

/// Splits "/a/\"b c\"/d" into member names. BadRequest when it does not begin with '/', has an
/// empty segment, a wildcard, a trailing slash or an unclosed quote.
Result<std::vector<std::string>> parse_property_path(std::string_view path);

/// Of a string in a key. Version 1 hashes its beginning only: longer ones that begin alike are
/// different keys with one EPK.
inline constexpr std::size_t kKeyBytesMax = 2048;
/// BadRequest when a string of the key is longer than that.
Result<> check_key_size(const PartitionKey& key);

}  // namespace orrery
