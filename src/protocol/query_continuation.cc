#include "protocol/query_continuation.h"

#include <utility>

#include "base/assert.h"
#include "protocol/base64.h"
#include "protocol/sealed_token.h"

namespace orrery {
namespace {

using sealed_token::append_big_endian;
using sealed_token::kNumberSize;
using sealed_token::read_big_endian;

// A token is, between its kind (31: kind 3, version 1) and the checksum:
//
//   size 8   hash of the query                size 1   flags, below
//   size 8   document number                  size 1   size of the lower EPK, then that
//            then as the flags say, in this order:
//   Max      size 1   size of the upper EPK, then that
//   Rest     size 8   its document number, size 1 + EPK
//   Counts   size 8   skipped, size 8 emitted
//   Key      size 2   size of the key, then that
//   Cut      size 8   rows with that beginning, size 8 hash of the whole key
//   Partial  size 8   document number, size 4 rows
//   Other    the same
//   State    size 8   what the server keeps
constexpr char kKind = '\x31';
enum Flag : std::uint8_t {
  Max = 1,
  Rest = 2,
  Counts = 4,
  Key = 8,
  Cut = 16,
  Partial = 32,
  State = 64,
  Other = 128
};

constexpr std::size_t kTokenBytesMax = 1 + 8 + 1 + 8 + 3 * (1 + kBoundaryBytesMax) + 8 + 16 + 2 +
                                       RowPosition::kKeyBytesMax + 16 + 24 + 8 +
                                       sealed_token::kChecksumSize;
static_assert(base64_size(kTokenBytesMax, Base64Alphabet::Url) <= kContinuationSizeMax);

void append_epk(std::string& out, const Epk& epk) {
  ORRERY_ASSERT(epk.bytes.size() <= kBoundaryBytesMax);
  out += static_cast<char>(epk.bytes.size());
  out += epk.bytes;
}

std::uint8_t flags_of(const QueryPosition& position) {
  unsigned flags = 0;
  if (position.at.range_max) flags |= Max;
  if (position.at.rest) flags |= Rest;
  if (position.rows.skipped != 0 || position.rows.emitted != 0) flags |= Counts;
  if (position.rows.key) flags |= Key;
  if (position.rows.cut_rows != 0) flags |= Cut;
  if (position.rows.partial_rows != 0) flags |= Partial;
  if (position.rows.other_partial_rows != 0) flags |= Other;
  if (position.suspended != 0) flags |= State;
  return static_cast<std::uint8_t>(flags);
}

/// Takes from the front; once something is missing, everything is.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number(std::size_t size) { return read_big_endian(take(size)); }
  std::string bytes(std::size_t size) { return std::string(take(size)); }
  Epk epk() {
    const auto size = static_cast<std::size_t>(number(1));
    if (size > kBoundaryBytesMax) failed_ = true;
    return Epk{bytes(failed_ ? 0 : size)};
  }
  void fail() { failed_ = true; }
  bool is_complete() const { return !failed_ && bytes_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (failed_ || size > bytes_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace

std::string encode_continuation(const QueryPosition& position) {
  std::string bytes(1, kKind);
  append_big_endian(bytes, position.query, kNumberSize);
  bytes += static_cast<char>(flags_of(position));
  append_big_endian(bytes, position.at.after.value, kNumberSize);
  append_epk(bytes, position.at.range_min);
  if (position.at.range_max) append_epk(bytes, *position.at.range_max);
  if (position.at.rest) {
    append_big_endian(bytes, position.at.rest->after.value, kNumberSize);
    append_epk(bytes, position.at.rest->max);
  }
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
  if (position.rows.partial_rows != 0) {
    append_big_endian(bytes, position.rows.partial.value, kNumberSize);
    append_big_endian(bytes, position.rows.partial_rows, 4);
  }
  if (position.rows.other_partial_rows != 0) {
    append_big_endian(bytes, position.rows.other_partial.value, kNumberSize);
    append_big_endian(bytes, position.rows.other_partial_rows, 4);
  }
  if (position.suspended != 0) append_big_endian(bytes, position.suspended, kNumberSize);
  return sealed_token::seal(std::move(bytes));
}

Result<QueryPosition> decode_query_continuation(std::string_view token) {
  const Error malformed(ErrorCode::BadRequest,
                        "Invalid Continuation Token. Send back x-ms-continuation exactly as it was "
                        "received, with the same query.");
  const auto body = sealed_token::unseal(token, kKind);
  if (!body) return malformed;
  Taker taker(*body);
  QueryPosition position;
  position.query = taker.number(kNumberSize);
  const auto flags = static_cast<unsigned>(taker.number(1));
  position.at.after = DocumentNumber{taker.number(kNumberSize)};
  position.at.range_min = taker.epk();
  if (flags & Max) position.at.range_max = taker.epk();
  if (flags & Rest) {
    const DocumentNumber after{taker.number(kNumberSize)};
    position.at.rest = ReadFeedPosition::Rest{taker.epk(), after};
  }
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
  if (flags & Partial) {
    position.rows.partial = DocumentNumber{taker.number(kNumberSize)};
    position.rows.partial_rows = static_cast<std::uint32_t>(taker.number(4));
  }
  if (flags & Other) {
    position.rows.other_partial = DocumentNumber{taker.number(kNumberSize)};
    position.rows.other_partial_rows = static_cast<std::uint32_t>(taker.number(4));
  }
  if (flags & State) position.suspended = taker.number(kNumberSize);
  if (!taker.is_complete()) return malformed;
  return position;
}

}  // namespace orrery
