// The name of an HTTP header with its hash, so that looking one up among the thirty that an SDK
// sends compares integers, not text.
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery {

/// FNV-1a over the name with ASCII letters lower-cased: header names are case-insensitive.
constexpr std::uint32_t header_hash(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    hash = (hash ^ byte) * 16777619u;
  }
  return hash;
}

struct HeaderName {
  constexpr HeaderName(std::string_view lower_case_name)  // NOLINT: implicit by design
      : text(lower_case_name), hash(header_hash(lower_case_name)) {}
  constexpr HeaderName(const char* lower_case_name)  // NOLINT: implicit by design
      : HeaderName(std::string_view(lower_case_name)) {}

  std::string_view text;
  std::uint32_t hash;
};

/// ASCII-only, as HTTP compares tokens.
constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto fold = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    if (fold(a[i]) != fold(b[i])) return false;
  }
  return true;
}

}  // namespace orrery
