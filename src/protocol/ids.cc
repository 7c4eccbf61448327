#include "protocol/ids.h"

#include <algorithm>

#include "base/assert.h"
#include "protocol/base64.h"

namespace orrery {
namespace {

// The meaning of a rid's length, in bytes. `child` is little-endian: a counter in its low 60 bits,
// and in its high four, which are the high nibble of byte 15, the kind.
//
//   3    offer
//   4    database(4)
//   8    database(4) container(4)            bit 7 of byte 4 set
//   8    database(4) user(4)                 bit 7 of byte 4 clear
//   16   database(4) container(4) child(8)
//   16   database(4) user(4) permission(8)
//   16   database(4) 0(4) number(4) 2(4)     a client encryption key; the 2 is little-endian
//   20   document(16) attachment(4)
constexpr std::size_t kOfferSize = 3;
constexpr std::size_t kDatabaseSize = 4;
constexpr std::size_t kContainerSize = 8;
constexpr std::size_t kChildSize = 16;
constexpr std::size_t kAttachmentSize = 20;

constexpr std::uint8_t kContainerBit = 0x80;
constexpr std::uint64_t kEncryptionKeyType = 2;
constexpr std::uint64_t kCounterMax = (std::uint64_t{1} << 60) - 1;
constexpr std::uint8_t kDocumentNibble = 0x0;
constexpr std::uint8_t kRangeNibble = 0x5;

/// The first range's rid has counter 2.
constexpr std::uint64_t kRangeCounterOffset = 2;

constexpr std::size_t kTextSizeMax = base64_size(kAttachmentSize, Base64Alphabet::Rid);

std::optional<RidKind> kind_of_nibble(std::uint8_t nibble) {
  switch (nibble) {
    case kDocumentNibble:
      return RidKind::Document;
    case 0x4:
      return RidKind::Conflict;
    case kRangeNibble:
      return RidKind::Range;
    case 0x6:
      return RidKind::Udf;
    case 0x7:
      return RidKind::Trigger;
    case 0x8:
      return RidKind::Procedure;
    default:
      return std::nullopt;
  }
}

bool all_zero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == 0; });
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  }
  return value;
}

/// Only for sizes that a rid can have; nothing when the type is unknown.
std::optional<RidKind> kind_of(std::string_view bytes) {
  switch (bytes.size()) {
    case kOfferSize:
      return RidKind::Offer;
    case kDatabaseSize:
      return RidKind::Database;
    case kAttachmentSize:
      return RidKind::Attachment;
    default:
      break;
  }
  const bool in_container = (static_cast<std::uint8_t>(bytes[4]) & kContainerBit) != 0;
  if (bytes.size() == kContainerSize) return in_container ? RidKind::Container : RidKind::User;
  if (all_zero(bytes.substr(4, 4))) {
    if (little_endian(bytes.substr(12, 4)) != kEncryptionKeyType) return std::nullopt;
    return RidKind::EncryptionKey;
  }
  if (!in_container) return RidKind::Permission;
  return kind_of_nibble(static_cast<std::uint8_t>(bytes[15]) >> 4);
}

bool is_valid(std::string_view bytes) {
  switch (bytes.size()) {
    case kOfferSize:
      return !all_zero(bytes);
    case kDatabaseSize:
    case kContainerSize:
    case kChildSize:
    case kAttachmentSize:
      break;
    default:
      return false;
  }
  if (all_zero(bytes.substr(0, 4))) return false;
  if (bytes.size() == kContainerSize && all_zero(bytes.substr(4, 4))) return false;
  if (bytes.size() >= kChildSize) {
    const auto kind = kind_of(bytes.substr(0, kChildSize));
    if (!kind) return false;
    if (*kind == RidKind::EncryptionKey) {
      return bytes.size() == kChildSize && !all_zero(bytes.substr(8, 4));
    }
    const std::uint64_t child = little_endian(bytes.substr(8, 8));
    if ((*kind == RidKind::Permission ? child : child & kCounterMax) == 0) return false;
    if (bytes.size() == kAttachmentSize) {
      return *kind == RidKind::Document && !all_zero(bytes.substr(kChildSize));
    }
  }
  return true;
}

char* write_hex(char* out, std::uint64_t value, int digits) {
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
    *out++ = "0123456789abcdef"[value >> shift & 0xF];
  }
  return out;
}

}  // namespace

Rid Rid::offer(std::uint32_t number) {
  ORRERY_ASSERT(number > 0 && number < (1u << 24));
  Rid rid;
  rid.size_ = kOfferSize;
  rid.bytes_[0] = static_cast<std::uint8_t>(number >> 16);
  rid.bytes_[1] = static_cast<std::uint8_t>(number >> 8);
  rid.bytes_[2] = static_cast<std::uint8_t>(number);
  return rid;
}

Rid Rid::database(RidPart database) {
  ORRERY_ASSERT(database != RidPart{});
  Rid rid;
  rid.size_ = kDatabaseSize;
  std::ranges::copy(database, rid.bytes_.begin());
  return rid;
}

Rid Rid::container(RidPart database, RidPart container) {
  ORRERY_ASSERT((container[0] & kContainerBit) != 0);
  Rid rid = Rid::database(database);
  rid.size_ = kContainerSize;
  std::ranges::copy(container, rid.bytes_.begin() + 4);
  return rid;
}

Rid Rid::encryption_key(const Rid& database, std::uint32_t number) {
  ORRERY_ASSERT(database.size_ == kDatabaseSize && number > 0);
  Rid rid = database;
  rid.size_ = kChildSize;
  // Big-endian, so that rids sort by age.
  for (std::size_t i = 0; i < 4; ++i) {
    rid.bytes_[8 + i] = static_cast<std::uint8_t>(number >> (8 * (3 - i)));
  }
  rid.bytes_[12] = static_cast<std::uint8_t>(kEncryptionKeyType);
  return rid;
}

Rid Rid::child(const Rid& container, std::uint64_t counter, std::uint8_t nibble) {
  ORRERY_ASSERT(container.size_ == kContainerSize && container.kind() == RidKind::Container);
  ORRERY_ASSERT(counter > 0 && counter <= kCounterMax);
  Rid rid = container;
  rid.size_ = kChildSize;
  const std::uint64_t value = counter | std::uint64_t{nibble} << 60;
  for (std::size_t i = 0; i < 8; ++i) {
    rid.bytes_[8 + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  return rid;
}

Rid Rid::document(const Rid& container, DocumentNumber number) {
  return child(container, number.value, kDocumentNibble);
}

Rid Rid::range(const Rid& container, RangeId range) {
  return child(container, range.value + kRangeCounterOffset, kRangeNibble);
}

std::optional<Rid> Rid::parse(std::string_view text) {
  if (text.size() > kTextSizeMax) return std::nullopt;
  std::array<std::uint8_t, kAttachmentSize> bytes;
  const auto size = read_base64(text, Base64Alphabet::Rid, bytes);
  if (!size) return std::nullopt;
  return from_bytes({reinterpret_cast<const char*>(bytes.data()), *size});
}

std::optional<Rid> Rid::from_bytes(std::string_view bytes) {
  if (!is_valid(bytes)) return std::nullopt;
  Rid rid;
  rid.size_ = static_cast<std::uint8_t>(bytes.size());
  std::ranges::transform(bytes, rid.bytes_.begin(),
                         [](char c) { return static_cast<std::uint8_t>(c); });
  return rid;
}

RidKind Rid::kind() const {
  ORRERY_ASSERT(size_ != 0);
  const auto kind = kind_of(bytes());
  ORRERY_ASSERT(kind.has_value());
  return *kind;
}

std::string Rid::text() const {
  std::string out;
  append_text(out);
  return out;
}

void Rid::append_text(std::string& out) const {
  std::array<char, kTextSizeMax> text;
  char* end = write_base64(text.data(), bytes(), Base64Alphabet::Rid);
  out.append(text.data(), end);
}

Rid Rid::database_rid() const { return database(database_part()); }

Rid Rid::container_rid() const { return container(database_part(), container_part()); }

RidPart Rid::database_part() const {
  ORRERY_ASSERT(size_ >= kDatabaseSize);
  return {bytes_[0], bytes_[1], bytes_[2], bytes_[3]};
}

RidPart Rid::container_part() const {
  ORRERY_ASSERT(size_ >= kContainerSize);
  return {bytes_[4], bytes_[5], bytes_[6], bytes_[7]};
}

std::uint64_t Rid::counter() const {
  ORRERY_ASSERT(size_ >= kChildSize);
  return little_endian(bytes().substr(8, 8)) & kCounterMax;
}

// The text of an ETag, quotes included. L and T are hex digits of the LSN and of the time, most
// significant first within a group; real ones also end in the time and four zeros.
//   "LLLLLLLL-LLLL-LLLL-TTTT-TTTTTTTT0000"
//    bits 0–31         ┆    ┆         LSN
//             32–47    ┆    ┆         LSN
//                  48–63    ┆         LSN
//                       32–47         time
//                            0–31     time
ETag::ETag(Lsn lsn, UnixSeconds ts) {
  const auto time = static_cast<std::uint64_t>(ts);
  char* out = text_.data();
  *out++ = '"';
  out = write_hex(out, lsn.value & 0xFFFFFFFF, 8);
  *out++ = '-';
  out = write_hex(out, lsn.value >> 32 & 0xFFFF, 4);
  *out++ = '-';
  out = write_hex(out, lsn.value >> 48, 4);
  *out++ = '-';
  out = write_hex(out, time >> 32 & 0xFFFF, 4);
  *out++ = '-';
  out = write_hex(out, time & 0xFFFFFFFF, 8);
  out = write_hex(out, 0, 4);
  *out++ = '"';
  ORRERY_ASSERT(out == text_.data() + kSize);
}

bool ETag::matches(std::string_view condition) const {
  return condition == "*" || condition == text() || condition == text().substr(1, kSize - 2);
}

}  // namespace orrery
