// The names of things: positions in a log, documents, and `_rid`s. Ids are types, never bare
// integers.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace orrery {

/// A position in a physical partition's log. One transaction takes one. A new partition's head
/// is 1.
struct Lsn {
  std::uint64_t value = 0;
  auto operator<=>(const Lsn&) const = default;
};
constexpr Lsn next(Lsn lsn) { return Lsn{lsn.value + 1}; }

/// A physical partition: unique in the account and never used again.
struct PartitionNumber {
  std::uint32_t value = 0;
  auto operator<=>(const PartitionNumber&) const = default;
};

/// A partition key range of one container: "0", "1", … on the wire. Never used again in it.
struct RangeId {
  std::uint32_t value = 0;
  auto operator<=>(const RangeId&) const = default;
  std::string text() const { return std::to_string(value); }
};

/// The counter in a document's `_rid`: the number of the range that created it in bits 40 to 59,
/// and a sequence of that range, from 1, in bits 0 to 39. Numeric order is creation order.
struct DocumentNumber {
  std::uint64_t value = 0;
  auto operator<=>(const DocumentNumber&) const = default;

  static constexpr DocumentNumber make(RangeId range, std::uint64_t sequence) {
    return DocumentNumber{(std::uint64_t{range.value} << 40) | sequence};
  }
};
inline constexpr std::uint64_t kDocumentSequenceMax = (std::uint64_t{1} << 40) - 1;
inline constexpr std::uint32_t kRangeIdMax = (std::uint32_t{1} << 20) - 1;

/// Four bytes of a database's rid, and four of a container's. Both non-zero. The container's has
/// the highest bit of its first byte set, and is unique in the whole account, since some clients
/// drop the database part.
using RidPart = std::array<std::uint8_t, 4>;

enum class RidKind {
  Offer,
  Database,
  Container,
  User,
  Permission,
  EncryptionKey,
  Document,
  Conflict,
  Range,
  Udf,
  Trigger,
  Procedure,
  Attachment,
};

/// A resource id: 3 to 20 bytes with a fixed layout that clients parse; base64 with '/' written
/// '-'.
class Rid {
 public:
  static Rid offer(std::uint32_t number);  ///< 1 … 2^24-1
  static Rid database(RidPart database);
  static Rid container(RidPart database, RidPart container);
  static Rid encryption_key(const Rid& database, std::uint32_t number);  ///< from 1
  static Rid document(const Rid& container, DocumentNumber number);
  static Rid range(const Rid& container, RangeId range);  ///< its counter is the id + 2

  /// Strict: right length, padding and alphabet, all components non-zero, a known type nibble.
  /// Nothing otherwise.
  static std::optional<Rid> parse(std::string_view text);
  /// The same bytes without the base64, as they are kept in the store.
  static std::optional<Rid> from_bytes(std::string_view bytes);

  RidKind kind() const;
  std::string text() const;
  void append_text(std::string& out) const;
  std::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_.data()), size_}; }

  /// The first 4 and the first 8 bytes. Only for rids that are long enough.
  Rid database_rid() const;
  Rid container_rid() const;
  RidPart database_part() const;   ///< bytes 0–3
  RidPart container_part() const;  ///< bytes 4–7
  /// The 60-bit counter of a collection's child.
  std::uint64_t counter() const;

  auto operator<=>(const Rid&) const = default;

 private:
  static Rid child(const Rid& container, std::uint64_t counter, std::uint8_t nibble);

  std::array<std::uint8_t, 20> bytes_{};
  std::uint8_t size_ = 0;
};

/// A document's or other resource's version: shaped like a GUID, with the quotes that are part of
/// it on the wire and in JSON. Made from the position and time of the write.
class ETag {
 public:
  static constexpr std::size_t kSize = 38;  ///< with both quotes

  ETag(Lsn lsn, UnixSeconds ts);
  /// "\"0000002a-0000-0000-0000-67ebd3c00000\"" including the two quote characters.
  std::string_view text() const { return {text_.data(), kSize}; }
  /// Whether an If-Match or If-None-Match value names this version: `*`, exactly equal, or equal
  /// but for a missing pair of quotes.
  bool matches(std::string_view condition) const;

  bool operator==(const ETag&) const = default;

 private:
  std::array<char, kSize> text_;
};

}  // namespace orrery
