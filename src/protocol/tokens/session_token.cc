#include "protocol/tokens/session_token.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "base/trim.h"

namespace orrery {
namespace {

/// From this version on clients expect vector tokens, and before it they crash on them.
constexpr std::string_view kFirstVectorVersion = "2018-06-18";

template <typename Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  Integer value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// Cuts `text` at the first `separator` and returns what stood before it.
std::string_view take_until(std::string_view& text, char separator, bool& found) {
  const std::size_t at = text.find(separator);
  found = at != std::string_view::npos;
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(found ? at + 1 : text.size());
  return head;
}

struct Value {
  std::int64_t version = kSessionVersionUnknown;
  std::int64_t lsn = 0;
};

/// `lsn` or `version#lsn[#region=lsn]…`
std::optional<Value> parse_value(std::string_view value) {
  bool more = false;
  const auto first = parse_integer<std::int64_t>(take_until(value, '#', more));
  if (!first) return std::nullopt;
  if (!more) return Value{.lsn = *first};

  const auto lsn = parse_integer<std::int64_t>(take_until(value, '#', more));
  if (!lsn) return std::nullopt;
  while (more) {
    std::string_view region_lsn = take_until(value, '#', more);
    bool has_lsn = false;
    const std::string_view region = take_until(region_lsn, '=', has_lsn);
    if (!has_lsn || !parse_integer<std::uint64_t>(region) ||
        !parse_integer<std::int64_t>(region_lsn)) {
      return std::nullopt;
    }
  }
  return Value{*first, *lsn};
}

bool is_number(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Error malformed_session(std::string_view entry) {
  return Error(ErrorCode::BadRequest,
               "The session token has the entry '" + std::string(entry.substr(0, 100)) +
                   "'; send back x-ms-session-token exactly as it was received");
}

}  // namespace

SessionTokenForm session_token_form(std::string_view api_version) {
  const bool vector = api_version.empty() || api_version >= kFirstVectorVersion;
  return vector ? SessionTokenForm::Vector : SessionTokenForm::Simple;
}

Result<std::vector<SessionEntry>> parse_session_token(std::string_view header) {
  std::vector<SessionEntry> entries;
  header = trimmed(header);
  if (header.empty()) return entries;  // P3 sends the header without a value when it has no token.

  for (bool more = true; more;) {
    const std::string_view entry = trimmed(take_until(header, ',', more));
    std::string_view value = entry;
    bool has_value = false;
    const std::string_view id = take_until(value, ':', has_value);
    const auto parsed = parse_value(value);
    if (!has_value || id.empty() || !parsed) return malformed_session(entry);

    // A range that cannot be one of ours is as unknown as one that no longer exists.
    const auto range = is_number(id) ? parse_integer<std::uint32_t>(id) : std::nullopt;
    if (!range) continue;
    // Clients start from -1, which every range has reached.
    const auto lsn = static_cast<std::uint64_t>(std::max<std::int64_t>(parsed->lsn, 0));
    entries.push_back({RangeId{*range}, Lsn{lsn}, parsed->version});
  }
  return entries;
}

std::int64_t session_version(std::uint64_t life, const Rid& container) {
  constexpr std::uint64_t kLivesMax = std::uint64_t{1} << 21;
  std::uint64_t number = 0;
  for (const std::uint8_t byte : container.container_part()) number = number << 8 | byte;
  return static_cast<std::int64_t>(life % kLivesMax << 32 | number);
}

void append_session_entry(std::string& out, SessionTokenForm form, std::int64_t version,
                          RangeId range, Lsn lsn) {
  std::array<char, 10 + 1 + 20 + 1 + 20> text;
  char* const end = text.data() + text.size();
  char* at = std::to_chars(text.data(), end, range.value).ptr;
  *at++ = ':';
  if (form == SessionTokenForm::Vector) {
    // No regions, always: clients throw on equal versions with different regions.
    at = std::to_chars(at, end, version).ptr;
    *at++ = '#';
  }
  at = std::to_chars(at, end, lsn.value).ptr;
  out.append(text.data(), at);
}

}  // namespace orrery
