#include "json/sort_key.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <tuple>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "json/order.h"

namespace orrery::json {
namespace {

constexpr char kEscapedZero = '\xFF';  // After 00: it stands for a 00 of the string.
constexpr char kEndWhole = '\x01';     // After 00: the string ends.
constexpr char kEndCut = '\x02';       // After 00: it is longer, its hash follows.

void append_big_endian(std::string& out, std::uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(number >> shift));
  }
}

void append_tag(std::string& out, SortTag tag) { out.push_back(static_cast<char>(tag)); }

void append_hash(std::string& out, const Hash128& hash) {
  append_big_endian(out, hash.high, 8);
  append_big_endian(out, hash.low, 8);
}

/// How far an integer is from the double that is nearest to it: at most 512 either way.
std::int64_t rounded_off(Number number) {
  if (!number.is_integer) return 0;
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 63;
  const std::uint64_t rounded =
      number.real >= static_cast<double>(kBeyond)
          ? kBeyond
          : static_cast<std::uint64_t>(static_cast<std::int64_t>(number.real));
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(number.integer) - rounded);
}

void append_number_key(std::string& out, Number number) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  std::uint64_t bits = 0;  // NaN: below even minus infinity.
  if (!std::isnan(number.real)) {
    const double real = number.real == 0 ? 0.0 : number.real;
    bits = std::bit_cast<std::uint64_t>(real);
    bits = (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  append_big_endian(out, bits, 8);
  append_big_endian(out, static_cast<std::uint64_t>(0x8000 + rounded_off(number)), 2);
}

void append_escaped(std::string& out, std::string_view text) {
  while (true) {
    const std::size_t zero = text.find('\0');
    out.append(text.substr(0, zero));
    if (zero == std::string_view::npos) return;
    out.push_back('\0');
    out.push_back(kEscapedZero);
    text.remove_prefix(zero + 1);
  }
}

// ── Hashes ───────────────────────────────────────────────────────────────────────────────────────
// Each of a type's own bytes, seeded with its tag: of a number those of its key, of a string its
// characters, of an array the hashes of its elements, of an object the hashes of its names and
// values, in the order of the names' hashes.

Hash128 hashed(SortTag tag, std::string_view bytes) {
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(bytes.data(), bytes.size(), static_cast<XXH64_hash_t>(tag));
  return {.high = hash.high64, .low = hash.low64};
}

Hash128 hash_of_string(const Value& value) {
  std::string buffer;
  return hashed(SortTag::String, value.as_string(buffer));
}

Hash128 hash_at(const Value& value, std::size_t level);

Hash128 hash_of_array(const Value& array, std::size_t level) {
  std::string bytes;
  for (Reader reader(array); reader.next();) append_hash(bytes, hash_at(reader.value(), level));
  return hashed(SortTag::Array, bytes);
}

Hash128 hash_of_object(const Value& object, std::size_t level) {
  struct HashedMember {
    Hash128 name;
    std::size_t place;
    Hash128 value;
  };
  std::vector<HashedMember> members;
  for (Reader reader(object); reader.next();) {
    const Hash128 name = hash_of_string(reader.name());
    members.emplace_back(name, members.size(), hash_at(reader.value(), level));
  }
  // Of members of one name the first counts.
  std::ranges::sort(members, [](const HashedMember& a, const HashedMember& b) {
    return std::tie(a.name, a.place) < std::tie(b.name, b.place);
  });
  const auto repeated = std::ranges::unique(members, {}, &HashedMember::name);
  members.erase(repeated.begin(), repeated.end());
  std::string bytes;
  bytes.reserve(members.size() * 2 * sizeof(Hash128));
  for (const HashedMember& member : members) {
    append_hash(bytes, member.name);
    append_hash(bytes, member.value);
  }
  return hashed(SortTag::Object, bytes);
}

Hash128 hash_at(const Value& value, std::size_t level) {
  switch (value.kind()) {
    case Kind::Undefined:
      return hashed(SortTag::Undefined, {});
    case Kind::Null:
      return hashed(SortTag::Null, {});
    case Kind::Boolean:
      return hashed(value.as_boolean() ? SortTag::True : SortTag::False, {});
    case Kind::Number: {
      std::string bytes;
      append_number_key(bytes, value.as_number());
      return hashed(SortTag::Number, bytes);
    }
    case Kind::String:
      return hash_of_string(value);
    case Kind::Array:
    case Kind::Object:
      break;
  }
  if (level >= kComparedLevelsMax) {
    return hashed(value.is_array() ? SortTag::Array : SortTag::Object, "too deep");
  }
  return value.is_array() ? hash_of_array(value, level + 1) : hash_of_object(value, level + 1);
}

}  // namespace

Hash128 hash_of(const Value& value) { return hash_at(value, 0); }

void append_sort_key(std::string& out, const Value& value, std::size_t string_bytes_max) {
  switch (value.kind()) {
    case Kind::Undefined:
      append_tag(out, SortTag::Undefined);
      break;
    case Kind::Null:
      append_tag(out, SortTag::Null);
      break;
    case Kind::Boolean:
      append_tag(out, value.as_boolean() ? SortTag::True : SortTag::False);
      break;
    case Kind::Number:
      append_tag(out, SortTag::Number);
      append_number_key(out, value.as_number());
      break;
    case Kind::String: {
      std::string buffer;
      const std::string_view text = value.as_string(buffer);
      append_sort_key_prefix(out, text.substr(0, string_bytes_max));
      out.push_back('\0');
      if (text.size() <= string_bytes_max) {
        out.push_back(kEndWhole);
      } else {
        out.push_back(kEndCut);
        append_big_endian(out, hashed(SortTag::String, text).high, 8);
      }
      break;
    }
    case Kind::Array:
    case Kind::Object:
      append_tag(out, value.is_array() ? SortTag::Array : SortTag::Object);
      append_hash(out, hash_of(value));
      break;
  }
}

void append_sort_key_descending(std::string& out, const Value& value,
                                std::size_t string_bytes_max) {
  const std::size_t begin = out.size();
  append_sort_key(out, value, string_bytes_max);
  for (std::size_t i = begin; i < out.size(); ++i) out[i] = static_cast<char>(~out[i]);
}

void append_sort_key_prefix(std::string& out, std::string_view prefix) {
  append_tag(out, SortTag::String);
  append_escaped(out, prefix);
}

std::string key_successor(std::string key) {
  while (!key.empty() && key.back() == '\xFF') key.pop_back();
  if (!key.empty()) ++key.back();
  return key;
}

}  // namespace orrery::json
