#include "protocol/tokens/continuation.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/assert.h"
#include "protocol/tokens/sealed_token.h"

namespace orrery {
namespace {

// A token is base64url, without padding, of the following. Integers are big-endian.
//
//   read feed   offset 0   size 1   13: kind 1, version 3
//               offset 1   size 8   document number
//               offset 9   size 1   size of the lower EPK, then that
//                          size 1   size of the upper EPK, then that
//                          the rests: see append_rests; not there if there are none
//   earlier     offset 0   size 1   12: kind 1, version 2; still read
//               ...                 the same with one rest at most
//                          size 8   its document number
//                          size n   and its upper EPK, up to the checksum
//   first       offset 0   size 1   11: kind 1, version 1; still read
//               offset 1   size 8   document number
//               offset 9   size n   lower EPK, up to the checksum
//   list        offset 0   size 1   21: kind 2, version 1
//               offset 1   size n   rid, up to the checksum
//   all         last       size 4   checksum of all before it
//
// The checksum guards against tokens of other servers and cut ones, not against forgery: a position
// gives no access that the request itself does not have.
constexpr char kReadFeedKind = '\x13';
constexpr char kEarlierReadFeedKind = '\x12';
constexpr char kFirstReadFeedKind = '\x11';
constexpr char kListKind = '\x21';
using sealed_token::append_big_endian;
using sealed_token::kChecksumSize;
using sealed_token::kNumberSize;
using sealed_token::read_big_endian;
using sealed_token::seal;
using sealed_token::Taker;
using sealed_token::unseal;
static_assert(1 + kNumberSize + 2 * (1 + kBoundaryBytesMax) + sealed_token::kRestBytesMax +
                  kChecksumSize <=
              sealed_token::kTokenBytesMax);

Error malformed_continuation() {
  return Error(ErrorCode::BadRequest,
               "The continuation token is malformed; send back x-ms-continuation exactly as it was "
               "received");
}

}  // namespace

std::string encode_continuation(const ReadFeedPosition& position) {
  std::string bytes(1, kReadFeedKind);
  append_big_endian(bytes, position.after.value, kNumberSize);
  sealed_token::append_epk(bytes, position.range_min);
  sealed_token::append_epk(bytes, position.range_max.value_or(Epk{}));
  if (!position.rests.empty()) {
    sealed_token::append_rests(bytes, position.rests,
                               sealed_token::kTokenBytesMax - kChecksumSize - bytes.size());
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

std::optional<ReadFeedPosition> decode_first(std::string_view token) {
  const auto body = unseal(token, kFirstReadFeedKind);
  if (!body || body->size() < kNumberSize || body->size() > kNumberSize + kBoundaryBytesMax) {
    return std::nullopt;
  }
  ReadFeedPosition position;
  position.after = DocumentNumber{read_big_endian(std::string_view(*body).substr(0, kNumberSize))};
  position.range_min.bytes = body->substr(kNumberSize);
  return position;
}

/// Takes the fields that both later versions begin with.
ReadFeedPosition take_position(Taker& taker) {
  ReadFeedPosition position;
  position.after = DocumentNumber{taker.number(kNumberSize)};
  position.range_min = taker.epk();
  Epk max = taker.epk();
  // No range ends where the space begins.
  if (!max.bytes.empty()) position.range_max = std::move(max);
  return position;
}

std::optional<ReadFeedPosition> decode_earlier(std::string_view token) {
  const auto body = unseal(token, kEarlierReadFeedKind);
  if (!body) return std::nullopt;
  Taker taker(*body);
  ReadFeedPosition position = take_position(taker);
  if (const std::size_t left = taker.left(); left > 0) {
    const DocumentNumber after{taker.number(kNumberSize)};
    if (left < kNumberSize || left > kNumberSize + kBoundaryBytesMax) return std::nullopt;
    position.rests.push_back({Epk{taker.bytes(left - kNumberSize)}, after});
  }
  return taker.is_complete() ? std::optional(std::move(position)) : std::nullopt;
}

}  // namespace

Result<ReadFeedPosition> decode_read_feed_continuation(std::string_view token) {
  if (auto first = decode_first(token)) return std::move(*first);
  if (auto earlier = decode_earlier(token)) return std::move(*earlier);
  const auto body = unseal(token, kReadFeedKind);
  if (!body) return malformed_continuation();
  Taker taker(*body);
  ReadFeedPosition position = take_position(taker);
  if (taker.left() > 0) {
    position.rests = taker.rests();
    if (position.rests.empty()) taker.fail();
  }
  if (!taker.is_complete()) return malformed_continuation();
  return position;
}

Result<ListPosition> decode_list_continuation(std::string_view token) {
  auto body = unseal(token, kListKind);
  if (!body || body->size() > Epk::kBytesMax) return malformed_continuation();
  return ListPosition{std::move(*body)};
}

}  // namespace orrery
