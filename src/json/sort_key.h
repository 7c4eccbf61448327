// Values as bytes: such that their order is the order of values, and hashes that tell them apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "json/value.h"

namespace orrery::json {

/// 128 bits. Equal for equal values (json::equal), whatever their text: 1 and 1.0, members in
/// another order. Different ones differ, for all that anybody will ever see.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
};
Hash128 hash_of(const Value& value);

/// Characters of a string in an index: what is beyond is told apart by a hash.
inline constexpr std::size_t kIndexedStringBytesMax = 1024;

/// The first byte of a sort key tells the type.
enum class SortTag : std::uint8_t {
  Undefined = 0x05,
  Null = 0x10,
  False = 0x20,
  True = 0x21,
  Number = 0x30,
  String = 0x40,
  Array = 0x50,
  Object = 0x60,
};

/// Appends bytes whose order is that in which Cosmos DB sorts: undefined < null < false < true <
/// numbers < strings < arrays < objects; arrays and objects among themselves by a hash. No key is
/// the beginning of another one, so that keys of several values can stand behind each other.
///
///   undefined, null, false, true   the tag
///   number                         the tag; 8 bytes of the double, big-endian, sign bit flipped if
///                                  it is not negative, all bits if it is (-0 is 0, NaN below all);
///                                  2 bytes: 0x8000 + (the exact integer - the double)
///   string                         the tag; UTF-8 with 00 as 00 FF; 00 01. Of one that is longer
///                                  than `string_bytes_max`: its first bytes, 00 02, hash 8
///   array, object                  the tag; hash 16
///
/// With a bound, strings that share their first bytes are in the order of their hashes, not in
/// their own.
void append_sort_key(std::string& out, const Value& value, std::size_t string_bytes_max = SIZE_MAX);

/// The same such that the order is reversed: every byte inverted.
void append_sort_key_descending(std::string& out, const Value& value,
                                std::size_t string_bytes_max = SIZE_MAX);

/// Appends what every key of a string that begins with `prefix` begins with. For intervals. Of keys
/// with a bound: no more of the prefix than that.
void append_sort_key_prefix(std::string& out, std::string_view prefix);

/// [low, high) of sort keys.
struct KeyInterval {
  std::string low;
  std::string high;
  bool operator==(const KeyInterval&) const = default;
};

/// The smallest bytes after all that begin with `key`; empty when there are none.
std::string key_successor(std::string key);

}  // namespace orrery::json
