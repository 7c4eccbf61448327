#include "protocol/keys/epk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/assert.h"
#include "base/hex_digit.h"
#include "protocol/keys/murmur3.h"
#include "protocol/utf8.h"

namespace orrery {
namespace {

using Components = std::span<const KeyComponent>;
using Wide = unsigned __int128;

// A hash of version 2 is written as 16 bytes whose two top bits are clear.
constexpr std::size_t kHashSizeV2 = 16;
constexpr Wide kHashMaxV2 = (Wide{1} << 126) - 1;
constexpr std::uint32_t kHashMaxV1 = 0xFFFFFFFF;

constexpr std::size_t kTruncatedUnitsV1 = 100;
constexpr std::size_t kEncodedBytesMaxV1 = 100;

constexpr std::int64_t kSingleRangeMax = 10'000;
constexpr std::int64_t kRequestUnitsPerRange = 6'000;

// The tag that each component begins with.
constexpr char kUndefinedTag = '\x00';
constexpr char kNullTag = '\x01';
constexpr char kFalseTag = '\x02';
constexpr char kTrueTag = '\x03';
constexpr char kNumberTag = '\x05';
constexpr char kStringTag = '\x08';

char tag_of(const KeyComponent& component) {
  struct Tag {
    char operator()(Undefined) const { return kUndefinedTag; }
    char operator()(Null) const { return kNullTag; }
    char operator()(bool value) const { return value ? kTrueTag : kFalseTag; }
    char operator()(double) const { return kNumberTag; }
    char operator()(const std::string&) const { return kStringTag; }
  };
  return std::visit(Tag{}, component);
}

// The hashed bytes of a component: its tag; of a number then the IEEE double, little-endian; of a
// string then its bytes and a terminator, 00 in version 1 and FF in version 2.
std::size_t hashed_size(const KeyComponent& component) {
  if (std::holds_alternative<double>(component)) return 1 + 8;
  if (const auto* text = std::get_if<std::string>(&component)) return 1 + text->size() + 1;
  return 1;
}

char* write_hashed(char* out, const KeyComponent& component, char terminator) {
  *out++ = tag_of(component);
  if (const auto* number = std::get_if<double>(&component)) {
    const auto bits = std::bit_cast<std::uint64_t>(*number);
    for (int shift = 0; shift < 64; shift += 8) *out++ = static_cast<char>(bits >> shift);
  } else if (const auto* text = std::get_if<std::string>(&component)) {
    out = std::ranges::copy(*text, out).out;
    *out++ = terminator;
  }
  return out;
}

/// Calls `hash` with the bytes of all components. Usual keys are laid out on the stack.
template <typename Hash>
auto hash_components(Components components, char terminator, Hash hash) {
  std::size_t size = 0;
  for (const KeyComponent& component : components) size += hashed_size(component);

  std::array<char, 512> on_stack;
  std::string on_heap;
  char* begin = on_stack.data();
  if (size > on_stack.size()) {
    on_heap.resize(size);
    begin = on_heap.data();
  }
  char* end = begin;
  for (const KeyComponent& component : components) end = write_hashed(end, component, terminator);
  return hash(std::string_view(begin, end));
}

// ── Version 1 ──

/// A number so that the order of the bytes is that of numbers: the bits, turned to sort, as one
/// byte and then groups of seven, each in the high bits of a byte whose low bit says that more
/// follow.
void append_number_v1(std::string& out, double number) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  auto bits = std::bit_cast<std::uint64_t>(number);
  bits = (bits & kSign) == 0 ? bits ^ kSign : ~bits + 1;

  out += kNumberTag;
  out += static_cast<char>(bits >> 56);
  bits <<= 8;
  do {
    const auto group = static_cast<char>(bits >> 56 & 0xFE);
    bits <<= 7;
    out += static_cast<char>(group | (bits != 0 ? 1 : 0));
  } while (bits != 0);
}

void append_string_v1(std::string& out, std::string_view text) {
  const bool is_short = text.size() <= kEncodedBytesMaxV1;
  out += kStringTag;
  for (char c : text.substr(0, kEncodedBytesMaxV1 + 1)) {
    // Room is made for the terminator by moving every byte up; FF, which UTF-8 has not, stays.
    out += c == '\xFF' ? c : static_cast<char>(c + 1);
  }
  if (is_short) out += '\0';
}

void append_component_v1(std::string& out, const KeyComponent& component) {
  if (const auto* number = std::get_if<double>(&component)) {
    append_number_v1(out, *number);
  } else if (const auto* text = std::get_if<std::string>(&component)) {
    append_string_v1(out, *text);
  } else {
    out += tag_of(component);
  }
}

/// The first 100 UTF-16 code units. Half a surrogate pair becomes U+FFFD, as in .NET.
void truncate_v1(std::string& text) {
  std::size_t units = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, size] = decode_utf8(text, at);
    const std::size_t wanted = value >= 0x10000 ? 2 : 1;
    if (units + wanted > kTruncatedUnitsV1) {
      text.resize(at);
      if (units < kTruncatedUnitsV1) append_utf8(text, 0xFFFD);
      return;
    }
    units += wanted;
    at += std::max<std::size_t>(size, 1);
  }
}

Epk hash_v1(const PartitionKey& key) {
  std::vector<KeyComponent> truncated;
  Components components = key.components();
  const bool has_long = std::ranges::any_of(components, [](const KeyComponent& component) {
    const auto* text = std::get_if<std::string>(&component);
    return text != nullptr && text->size() > kTruncatedUnitsV1;
  });
  if (has_long) {
    truncated.assign(components.begin(), components.end());
    for (KeyComponent& component : truncated) {
      if (auto* text = std::get_if<std::string>(&component)) truncate_v1(*text);
    }
    components = truncated;
  }
  const std::uint32_t hash = hash_components(components, '\x00', murmur3_32);
  Epk epk;
  append_number_v1(epk.bytes, hash);
  for (const KeyComponent& component : components) append_component_v1(epk.bytes, component);
  return epk;
}

Epk boundary_v1(std::uint32_t hash) {
  Epk epk;
  append_number_v1(epk.bytes, hash);
  return epk;
}

/// The greatest hash whose boundary is not above `epk`; 0 when there is none.
std::uint32_t hash_at_v1(const Epk& epk) {
  std::uint32_t low = 0;
  std::uint32_t high = kHashMaxV1;
  while (low < high) {
    const std::uint32_t middle = high - (high - low) / 2;
    if (boundary_v1(middle) <= epk) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// ── Version 2 ──

void append_wide(std::string& out, Wide value) {
  std::array<char, kHashSizeV2> bytes;
  for (std::size_t i = bytes.size(); i-- > 0; value >>= 8) bytes[i] = static_cast<char>(value);
  out.append(bytes.data(), bytes.size());
}

void append_hash_v2(std::string& out, Components components) {
  const Murmur3Hash128 hash = hash_components(components, '\xFF', murmur3_128);
  append_wide(out, (Wide{hash.high} << 64 | hash.low) & kHashMaxV2);
}

/// The number of one level of a bound, from its 16 bytes. Missing ones are zero, and "FF" is the
/// end.
Wide level_value(std::string_view bytes) {
  Wide value = 0;
  for (std::size_t i = 0; i < kHashSizeV2; ++i) {
    value = value << 8 | (i < bytes.size() ? static_cast<std::uint8_t>(bytes[i]) : 0);
  }
  return std::min(value, kHashMaxV2);
}

std::string_view next_level(std::string_view bytes) {
  return bytes.substr(std::min(kHashSizeV2, bytes.size()));
}

bool uses_v1(const PartitionKeyDefinition& definition) {
  return definition.kind == KeyKind::Hash && definition.version < 2;
}

Error nothing_between() {
  return Error(ErrorCode::BadRequest, "The range is too narrow to be divided");
}

}  // namespace

Result<Epk> Epk::from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) {
    return Error(ErrorCode::BadRequest,
                 "An effective partition key has an even number of hex digits");
  }
  if (hex.size() / 2 > kBytesMax) {
    return Error(ErrorCode::BadRequest, "An effective partition key is longer than any can be");
  }
  Epk epk;
  epk.bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = hex_value(hex[i]);
    const int low = hex_value(hex[i + 1]);
    if (high < 0 || low < 0) {
      return Error(ErrorCode::BadRequest, "An effective partition key consists of hex digits");
    }
    epk.bytes += static_cast<char>(high << 4 | low);
  }
  return epk;
}

std::string Epk::hex() const {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    text += "0123456789ABCDEF"[byte >> 4];
    text += "0123456789ABCDEF"[byte & 0xF];
  }
  return text;
}

Epk effective_partition_key(const PartitionKeyDefinition& definition, const PartitionKey& key) {
  Epk epk;
  if (key.empty()) return epk;
  if (uses_v1(definition)) return hash_v1(key);

  const Components components = key.components();
  if (definition.kind == KeyKind::Hash) {
    epk.bytes.reserve(kHashSizeV2);
    append_hash_v2(epk.bytes, components);
    return epk;
  }
  epk.bytes.reserve(kHashSizeV2 * components.size());
  for (const KeyComponent& component : components) append_hash_v2(epk.bytes, {&component, 1});
  return epk;
}

EpkRange effective_key_range(const PartitionKeyDefinition& definition, const PartitionKey& prefix) {
  EpkRange range;
  range.min = effective_partition_key(definition, prefix);
  range.max = range.min;
  const bool is_prefix =
      definition.kind == KeyKind::MultiHash && prefix.size() < definition.paths.size();
  // No hash begins with FF, so that is above all extensions; nothing lies between a key and the
  // same with 00 after it.
  range.max.bytes += is_prefix ? '\xFF' : '\x00';
  return range;
}

std::uint32_t initial_range_count(std::int64_t request_units) {
  if (request_units <= kSingleRangeMax) return 1;
  return static_cast<std::uint32_t>((request_units - 1) / kRequestUnitsPerRange + 1);
}

std::vector<EpkRange> divide_evenly(const PartitionKeyDefinition& definition, std::uint32_t count) {
  ORRERY_ASSERT(count > 0);
  const auto boundary = [&](std::uint32_t i) {
    // As the service does it, all but the last are equally wide; the remainder is the last one's.
    if (uses_v1(definition)) return boundary_v1(kHashMaxV1 / count * i);
    Epk epk;
    append_wide(epk.bytes, kHashMaxV2 / count * i);
    return epk;
  };
  std::vector<EpkRange> ranges(count);
  for (std::uint32_t i = 1; i < count; ++i) ranges[i - 1].max = ranges[i].min = boundary(i);
  return ranges;
}

Result<Epk> midpoint(const PartitionKeyDefinition& definition, const EpkRange& range) {
  if (range.max <= range.min) return nothing_between();
  if (uses_v1(definition)) {
    const std::uint32_t low = hash_at_v1(range.min);
    const std::uint32_t high = hash_at_v1(range.max);
    const std::uint32_t middle = low + (high - low) / 2;
    if (middle == low) return nothing_between();
    return boundary_v1(middle);
  }

  // A hierarchical key may need its second or third hash: where the bounds are equal or next to
  // each other in the first, all keys between them begin with the lower one.
  const bool hierarchical = definition.kind == KeyKind::MultiHash;
  const std::size_t levels = hierarchical ? std::max<std::size_t>(definition.paths.size(), 1) : 1;
  std::string_view min = range.min.bytes;
  std::string_view max = range.max.bytes;
  Epk middle;
  for (std::size_t level = 0; level < levels; ++level) {
    const Wide low = level_value(min);
    const Wide high = level_value(max);
    if (high < low) break;  // Only bounds that are not hashes at all.
    const Wide value = low + (high - low) / 2;
    if (value != low) {
      append_wide(middle.bytes, value);
      return middle;
    }
    append_wide(middle.bytes, low);
    min = next_level(min);
    max = high == low ? next_level(max) : std::string_view("\xFF");
  }
  return nothing_between();
}

double share_of_space(const PartitionKeyDefinition& definition, const EpkRange& range) {
  if (uses_v1(definition)) {
    const std::uint32_t low = hash_at_v1(range.min);
    const std::uint32_t high = hash_at_v1(range.max);
    return high < low ? 0 : static_cast<double>(high - low) / static_cast<double>(kHashMaxV1);
  }
  const Wide low = level_value(range.min.bytes);
  const Wide high = level_value(range.max.bytes);
  return high < low ? 0 : static_cast<double>(high - low) / static_cast<double>(kHashMaxV2);
}

}  // namespace orrery
