#include "protocol/sealed_token.h"

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
