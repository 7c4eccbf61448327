#include "protocol/base64.h"

#include <array>

namespace orrery {
namespace {

constexpr std::uint8_t kNoDigit = 0xFF;

struct Tables {
  std::array<char, 64> digits{};
  std::array<std::uint8_t, 256> values{};
};

constexpr Tables make_tables(char digit62, char digit63) {
  Tables tables;
  std::size_t value = 0;
  for (char c = 'A'; c <= 'Z'; ++c) tables.digits[value++] = c;
  for (char c = 'a'; c <= 'z'; ++c) tables.digits[value++] = c;
  for (char c = '0'; c <= '9'; ++c) tables.digits[value++] = c;
  tables.digits[value++] = digit62;
  tables.digits[value++] = digit63;
  tables.values.fill(kNoDigit);
  for (std::size_t i = 0; i < tables.digits.size(); ++i) {
    tables.values[static_cast<unsigned char>(tables.digits[i])] = static_cast<std::uint8_t>(i);
  }
  return tables;
}

constexpr Tables kStandard = make_tables('+', '/');
constexpr Tables kRid = make_tables('+', '-');
constexpr Tables kUrl = make_tables('-', '_');

const Tables& tables_of(Base64Alphabet alphabet) {
  switch (alphabet) {
    case Base64Alphabet::Rid:
      return kRid;
    case Base64Alphabet::Url:
      return kUrl;
    case Base64Alphabet::Standard:
      break;
  }
  return kStandard;
}

}  // namespace

char* write_base64(char* out, std::string_view bytes, Base64Alphabet alphabet) {
  const auto& digits = tables_of(alphabet).digits;
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return static_cast<unsigned char>(bytes[i]);
  };
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    *out++ = digits[group >> 18];
    *out++ = digits[group >> 12 & 63];
    *out++ = digits[group >> 6 & 63];
    *out++ = digits[group & 63];
  }
  const std::size_t left = bytes.size() - i;
  if (left == 0) return out;

  const std::uint32_t group = byte(i) << 16 | (left == 2 ? byte(i + 1) << 8 : 0);
  *out++ = digits[group >> 18];
  *out++ = digits[group >> 12 & 63];
  if (left == 2) *out++ = digits[group >> 6 & 63];
  if (alphabet != Base64Alphabet::Url) {
    *out++ = '=';
    if (left == 1) *out++ = '=';
  }
  return out;
}

std::optional<std::size_t> read_base64(std::string_view text, Base64Alphabet alphabet,
                                       std::span<std::uint8_t> out) {
  const auto& values = tables_of(alphabet).values;
  if (alphabet != Base64Alphabet::Url) {
    if (text.size() % 4 != 0) return std::nullopt;
    if (text.ends_with("==")) {
      text.remove_suffix(2);
    } else if (text.ends_with('=')) {
      text.remove_suffix(1);
    }
  }
  const std::size_t left = text.size() % 4;  // Digits of the last, incomplete group.
  if (left == 1) return std::nullopt;
  const std::size_t size = text.size() / 4 * 3 + (left == 0 ? 0 : left - 1);
  if (size > out.size()) return std::nullopt;

  // A '=' that is not padding has no value and is caught here like any foreign character.
  const auto value = [&](std::size_t i) -> std::uint32_t {
    return values[static_cast<unsigned char>(text[i])];
  };
  std::size_t written = 0;
  std::size_t i = 0;
  for (; i + 4 <= text.size(); i += 4) {
    const std::uint32_t a = value(i), b = value(i + 1), c = value(i + 2), d = value(i + 3);
    if ((a | b | c | d) > 63) return std::nullopt;
    const std::uint32_t group = a << 18 | b << 12 | c << 6 | d;
    out[written++] = static_cast<std::uint8_t>(group >> 16);
    out[written++] = static_cast<std::uint8_t>(group >> 8);
    out[written++] = static_cast<std::uint8_t>(group);
  }
  if (left == 0) return written;

  const std::uint32_t a = value(i), b = value(i + 1), c = left == 3 ? value(i + 2) : 0;
  if ((a | b | c) > 63) return std::nullopt;
  const std::uint32_t group = a << 18 | b << 12 | c << 6;
  if ((group & (left == 3 ? 0xFFu : 0xFFFFu)) != 0) return std::nullopt;
  out[written++] = static_cast<std::uint8_t>(group >> 16);
  if (left == 3) out[written++] = static_cast<std::uint8_t>(group >> 8);
  return written;
}

std::string base64_encode(std::string_view bytes, Base64Alphabet alphabet) {
  std::string text(base64_size(bytes.size(), alphabet), '\0');
  write_base64(text.data(), bytes, alphabet);
  return text;
}

std::optional<std::string> base64_decode(std::string_view text, Base64Alphabet alphabet) {
  std::string bytes(text.size() / 4 * 3 + 2, '\0');
  const auto size =
      read_base64(text, alphabet, {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
  if (!size) return std::nullopt;
  bytes.resize(*size);
  return bytes;
}

}  // namespace orrery
