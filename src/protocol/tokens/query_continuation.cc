#include "protocol/tokens/query_continuation.h"

#include <utility>

#include "base/assert.h"
#include "protocol/tokens/gateway_continuation.h"
#include "protocol/tokens/sealed_token.h"

namespace orrery {
namespace {

using sealed_token::append_big_endian;
using sealed_token::kNumberSize;
using sealed_token::Taker;

// A token is, between its kind (31: kind 3, version 1) and the checksum:
//
//   size 8   hash of the query                size 1   flags, below
//   size 8   document number                  size 1   size of the lower EPK, then that
//            then as the flags say, in this order:
//   Max      size 1   size of the upper EPK, then that
//   Counts   size 8   skipped, size 8 emitted
//   Key      size 2   size of the key, then that
//   Cut      size 8   rows with that beginning, size 8 hash of the whole key
//   Partial  size 8   document number, size 4 rows
//   Others   size 1   how many, then of each the same
//   State    size 8   what the server keeps
//   Rests    see append_rests
constexpr char kKind = '\x31';
enum Flag : std::uint8_t {
  Max = 1,
  Rests = 2,
  Counts = 4,
  Key = 8,
  Cut = 16,
  Partial = 32,
  State = 64,
  Others = 128
};

constexpr std::size_t kPartialSize = kNumberSize + 4;
constexpr std::size_t kLongestSize = 1 + 8 + 1 + 8 + 2 * (1 + kBoundaryBytesMax) + 16 + 2 +
                                     RowPosition::kKeyBytesMax + 16 + kPartialSize + 1 +
                                     RowPosition::kOthersMax * kPartialSize + 8 +
                                     sealed_token::kRestBytesMax + sealed_token::kChecksumSize;
static_assert(kLongestSize <= sealed_token::kTokenBytesMax);

void append_partial(std::string& out, const RowPosition::Partial& partial) {
  append_big_endian(out, partial.number.value, kNumberSize);
  append_big_endian(out, partial.rows, 4);
}

RowPosition::Partial take_partial(Taker& taker) {
  const DocumentNumber number{taker.number(kNumberSize)};
  return {number, static_cast<std::uint32_t>(taker.number(4))};
}

std::uint8_t flags_of(const QueryPosition& position) {
  unsigned flags = 0;
  if (position.at.range_max) flags |= Max;
  if (!position.at.rests.empty()) flags |= Rests;
  if (position.rows.skipped != 0 || position.rows.emitted != 0) flags |= Counts;
  if (position.rows.key) flags |= Key;
  if (position.rows.cut_rows != 0) flags |= Cut;
  if (position.rows.partial.rows != 0) flags |= Partial;
  if (!position.rows.others.empty()) flags |= Others;
  if (position.suspended != 0) flags |= State;
  return static_cast<std::uint8_t>(flags);
}

}  // namespace

std::string encode_continuation(const QueryPosition& position) {
  std::string bytes(1, kKind);
  append_big_endian(bytes, position.query, kNumberSize);
  bytes += static_cast<char>(flags_of(position));
  append_big_endian(bytes, position.at.after.value, kNumberSize);
  sealed_token::append_epk(bytes, position.at.range_min);
  if (position.at.range_max) sealed_token::append_epk(bytes, *position.at.range_max);
  if (position.rows.skipped != 0 || position.rows.emitted != 0) {
    append_big_endian(bytes, position.rows.skipped, kNumberSize);
    append_big_endian(bytes, position.rows.emitted, kNumberSize);
  }
  if (position.rows.key) {
    ORRERY_ASSERT(position.rows.key->size() <= RowPosition::kKeyBytesMax);
    append_big_endian(bytes, position.rows.key->size(), 2);
    bytes += *position.rows.key;
  }
  if (position.rows.cut_rows != 0) {
    append_big_endian(bytes, position.rows.cut_rows, kNumberSize);
    append_big_endian(bytes, position.rows.cut_hash, kNumberSize);
  }
  if (position.rows.partial.rows != 0) append_partial(bytes, position.rows.partial);
  if (!position.rows.others.empty()) {
    ORRERY_ASSERT(position.rows.others.size() <= RowPosition::kOthersMax);
    bytes += static_cast<char>(position.rows.others.size());
    for (const auto& each : position.rows.others) append_partial(bytes, each);
  }
  if (position.suspended != 0) append_big_endian(bytes, position.suspended, kNumberSize);
  if (!position.at.rests.empty()) {
    const std::size_t left =
        sealed_token::kTokenBytesMax - sealed_token::kChecksumSize - bytes.size();
    sealed_token::append_rests(bytes, position.at.rests, left);
  }
  return sealed_token::seal(std::move(bytes));
}

EpkRange told_range(const QueryPosition& position) {
  const auto& at = position.at;
  if (position.rows.key || !at.range_max || *at.range_max <= at.range_min) return {};
  return {at.range_min, *at.range_max};
}

std::string encode_gateway_continuation(const QueryPosition& position) {
  std::string token = encode_continuation(position);
  std::string wrapped = wrap_token(token, told_range(position));
  return wrapped.size() <= kContinuationSizeMax ? wrapped : token;
}

Result<QueryPosition> decode_query_continuation(std::string_view token) {
  const Error malformed = malformed_query_continuation();
  const auto body = sealed_token::unseal(token, kKind);
  if (!body) return malformed;
  Taker taker(*body);
  QueryPosition position;
  position.query = taker.number(kNumberSize);
  const auto flags = static_cast<unsigned>(taker.number(1));
  position.at.after = DocumentNumber{taker.number(kNumberSize)};
  position.at.range_min = taker.epk();
  if (flags & Max) position.at.range_max = taker.epk();
  if (flags & Counts) {
    position.rows.skipped = taker.number(kNumberSize);
    position.rows.emitted = taker.number(kNumberSize);
  }
  if (flags & Key) {
    const auto size = static_cast<std::size_t>(taker.number(2));
    if (size > RowPosition::kKeyBytesMax) taker.fail();
    position.rows.key = taker.bytes(size);
  }
  if (flags & Cut) {
    position.rows.cut_rows = taker.number(kNumberSize);
    position.rows.cut_hash = taker.number(kNumberSize);
  }
  if (flags & Partial) position.rows.partial = take_partial(taker);
  if (flags & Others) {
    const std::uint64_t count = taker.number(1);
    if (count == 0 || count > RowPosition::kOthersMax) taker.fail();
    while (position.rows.others.size() < count && taker.left() > 0) {
      position.rows.others.push_back(take_partial(taker));
    }
    if (position.rows.others.size() != count) taker.fail();
  }
  if (flags & State) position.suspended = taker.number(kNumberSize);
  if (flags & Rests) position.at.rests = taker.rests();
  if (!taker.is_complete()) return malformed;
  return position;
}

}  // namespace orrery
