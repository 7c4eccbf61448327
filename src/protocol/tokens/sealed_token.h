// The form of all continuation tokens: bytes with a kind in front and a checksum behind, as
// base64url.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/tokens/continuation.h"

namespace orrery::sealed_token {

inline constexpr std::size_t kNumberSize = 8;
inline constexpr std::size_t kChecksumSize = 4;

void append_big_endian(std::string& out, std::uint64_t value, std::size_t size);
std::uint64_t read_big_endian(std::string_view bytes);

/// Takes from the front; once something is missing, everything is.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number(std::size_t size) { return read_big_endian(take(size)); }
  std::string bytes(std::size_t size) { return std::string(take(size)); }
  Epk epk();
  std::vector<ReadFeedPosition::Rest> rests();
  void fail() { failed_ = true; }
  std::size_t left() const { return bytes_.size(); }
  bool is_complete() const { return !failed_ && bytes_.empty(); }

 private:
  std::string_view take(std::size_t size);

  std::string_view bytes_;
  bool failed_ = false;
};

/// size 1, then the bytes.
void append_epk(std::string& out, const Epk& epk);
/// How many (size 1), and of each its document number (size 8) and its upper EPK. Where they do not
/// fit into `bytes_max`, the last ones become one that begins where the first of them does.
void append_rests(std::string& out, std::vector<ReadFeedPosition::Rest> rests,
                  std::size_t bytes_max);
/// The largest size of a list with a single one.
inline constexpr std::size_t kRestBytesMax = 1 + kNumberSize + 1 + kBoundaryBytesMax;

/// The largest size of a token's bytes, with its kind and its checksum.
inline constexpr std::size_t kTokenBytesMax = kContinuationSizeMax * 3 / 4;

/// `bytes` begin with the kind.
std::string seal(std::string bytes);
/// The bytes between the kind and the checksum; nothing when the token is not of that kind.
std::optional<std::string> unseal(std::string_view token, char kind);

}  // namespace orrery::sealed_token
