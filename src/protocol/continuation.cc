#include "protocol/continuation.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/assert.h"
#include "protocol/base64.h"
#include "protocol/sealed_token.h"

namespace orrery {
namespace {

// A token is base64url, without padding, of the following. Integers are big-endian.
//
//   read feed   offset 0   size 1   12: kind 1, version 2
//               offset 1   size 8   document number
//               offset 9   size 1   size of the lower EPK, then that
//                          size 1   size of the upper EPK, then that
//                          size 8   if there is a rest: its document number
//                          size n   and its upper EPK, up to the checksum
//   earlier     offset 0   size 1   11: kind 1, version 1; still read
//               offset 1   size 8   document number
//               offset 9   size n   lower EPK, up to the checksum
//   list        offset 0   size 1   21: kind 2, version 1
//               offset 1   size n   rid, up to the checksum
//   both        last       size 4   checksum of all before it
//
// The checksum guards against tokens of other servers and cut ones, not against forgery: a position
// gives no access that the request itself does not have.
constexpr char kReadFeedKind = '\x12';
constexpr char kEarlierReadFeedKind = '\x11';
constexpr char kListKind = '\x21';
using sealed_token::append_big_endian;
using sealed_token::kChecksumSize;
using sealed_token::kNumberSize;
using sealed_token::read_big_endian;
using sealed_token::seal;
using sealed_token::unseal;
constexpr std::size_t kTokenBytesMax =
    1 + 2 * kNumberSize + 2 + 3 * kBoundaryBytesMax + kChecksumSize;
static_assert(base64_size(kTokenBytesMax, Base64Alphabet::Url) <= kContinuationSizeMax);

Error malformed() {
  return Error(ErrorCode::BadRequest,
               "The continuation token is malformed; send back x-ms-continuation exactly as it was "
               "received");
}

}  // namespace

std::string encode_continuation(const ReadFeedPosition& position) {
  std::string bytes(1, kReadFeedKind);
  append_big_endian(bytes, position.after.value, kNumberSize);
  const auto append_sized = [&bytes](const Epk& epk) {
    ORRERY_ASSERT(epk.bytes.size() <= kBoundaryBytesMax);
    bytes += static_cast<char>(epk.bytes.size());
    bytes += epk.bytes;
  };
  append_sized(position.range_min);
  append_sized(position.range_max.value_or(Epk{}));
  if (position.rest) {
    ORRERY_ASSERT(position.rest->max.bytes.size() <= kBoundaryBytesMax);
    append_big_endian(bytes, position.rest->after.value, kNumberSize);
    bytes += position.rest->max.bytes;
  }
  return seal(std::move(bytes));
}

std::string encode_continuation(const ListPosition& position) {
  ORRERY_ASSERT(position.after.size() <= Epk::kBytesMax);
  std::string bytes(1, kListKind);
  bytes += position.after;
  return seal(std::move(bytes));
}

namespace {

std::optional<ReadFeedPosition> decode_earlier(std::string_view token) {
  const auto body = unseal(token, kEarlierReadFeedKind);
  if (!body || body->size() < kNumberSize || body->size() > kNumberSize + kBoundaryBytesMax) {
    return std::nullopt;
  }
  ReadFeedPosition position;
  position.after = DocumentNumber{read_big_endian(std::string_view(*body).substr(0, kNumberSize))};
  position.range_min.bytes = body->substr(kNumberSize);
  return position;
}

std::optional<DocumentNumber> take_number(std::string_view& bytes) {
  if (bytes.size() < kNumberSize) return std::nullopt;
  const DocumentNumber number{read_big_endian(bytes.substr(0, kNumberSize))};
  bytes.remove_prefix(kNumberSize);
  return number;
}

std::optional<Epk> take_sized(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  const std::size_t size = static_cast<std::uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  if (size > bytes.size() || size > kBoundaryBytesMax) return std::nullopt;
  Epk epk{std::string(bytes.substr(0, size))};
  bytes.remove_prefix(size);
  return epk;
}

}  // namespace

Result<ReadFeedPosition> decode_read_feed_continuation(std::string_view token) {
  if (auto earlier = decode_earlier(token)) return std::move(*earlier);
  const auto body = unseal(token, kReadFeedKind);
  if (!body) return malformed();
  std::string_view bytes = *body;
  const auto after = take_number(bytes);
  auto min = after ? take_sized(bytes) : std::nullopt;
  auto max = min ? take_sized(bytes) : std::nullopt;
  if (!max) return malformed();
  ReadFeedPosition position{std::move(*min), *after, {}, {}};
  // No range ends where the space begins.
  if (!max->bytes.empty()) position.range_max = std::move(*max);
  if (bytes.empty()) return position;
  const auto rest_after = take_number(bytes);
  if (!rest_after || bytes.size() > kBoundaryBytesMax) return malformed();
  position.rest = ReadFeedPosition::Rest{Epk{std::string(bytes)}, *rest_after};
  return position;
}

Result<ListPosition> decode_list_continuation(std::string_view token) {
  auto body = unseal(token, kListKind);
  if (!body || body->size() > Epk::kBytesMax) return malformed();
  return ListPosition{std::move(*body)};
}

}  // namespace orrery
