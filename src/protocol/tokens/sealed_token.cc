#include "protocol/tokens/sealed_token.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "protocol/base64.h"

namespace orrery::sealed_token {
namespace {

/// FNV-1a.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t hash = 2166136261u;
  for (char c : bytes) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619u;
  return hash;
}

}  // namespace

void append_big_endian(std::string& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = size; i-- > 0;) out += static_cast<char>(value >> (8 * i));
}

std::uint64_t read_big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (char c : bytes) value = value << 8 | static_cast<std::uint8_t>(c);
  return value;
}

std::string_view Taker::take(std::size_t size) {
  if (failed_ || size > bytes_.size()) {
    failed_ = true;
    return {};
  }
  const std::string_view taken = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return taken;
}

Epk Taker::epk() {
  const auto size = static_cast<std::size_t>(number(1));
  if (size > kBoundaryBytesMax) failed_ = true;
  return Epk{bytes(failed_ ? 0 : size)};
}

std::vector<ReadFeedPosition::Rest> Taker::rests() {
  std::vector<ReadFeedPosition::Rest> rests;
  for (std::uint64_t left = number(1); left > 0 && !failed_; --left) {
    const DocumentNumber after{number(kNumberSize)};
    rests.push_back({epk(), after});
  }
  return rests;
}

void append_epk(std::string& out, const Epk& epk) {
  ORRERY_ASSERT(epk.bytes.size() <= kBoundaryBytesMax);
  out += static_cast<char>(epk.bytes.size());
  out += epk.bytes;
}

void append_rests(std::string& out, std::vector<ReadFeedPosition::Rest> rests,
                  std::size_t bytes_max) {
  ORRERY_ASSERT(bytes_max >= kRestBytesMax);
  const auto fits = [&] {
    std::size_t size = 1;
    for (const auto& rest : rests) size += kNumberSize + 1 + rest.max.bytes.size();
    return size <= bytes_max && rests.size() <= UINT8_MAX;
  };
  while (!fits()) {
    auto last = std::move(rests.back());
    rests.pop_back();
    rests.back() = {std::move(last.max), std::min(rests.back().after, last.after)};
  }
  out += static_cast<char>(rests.size());
  for (const auto& rest : rests) {
    append_big_endian(out, rest.after.value, kNumberSize);
    append_epk(out, rest.max);
  }
}

std::string seal(std::string bytes) {
  append_big_endian(bytes, checksum(bytes), kChecksumSize);
  return base64_encode(bytes, Base64Alphabet::Url);
}

std::optional<std::string> unseal(std::string_view token, char kind) {
  if (token.size() > kContinuationSizeMax) return std::nullopt;
  auto bytes = base64_decode(token, Base64Alphabet::Url);
  if (!bytes || bytes->size() < 1 + kChecksumSize || bytes->front() != kind) return std::nullopt;
  const std::string_view all = *bytes;
  const std::size_t body_size = all.size() - kChecksumSize;
  if (read_big_endian(all.substr(body_size)) != checksum(all.substr(0, body_size))) {
    return std::nullopt;
  }
  return std::string(all.substr(1, body_size - 1));
}

}  // namespace orrery::sealed_token
