#include "feed/position.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "base/trim.h"

namespace orrery::feed {
namespace {

/// Clients read positions into signed 64-bit integers.
constexpr std::uint64_t kPositionMax = INT64_MAX;
constexpr std::size_t kPositionDigits = 19;

Error invalid(std::string_view given, std::string_view expected) {
  constexpr std::size_t kQuotedMax = 64;
  return Error(
      ErrorCode::BadRequest,
      fmt::format("Change feed token format is invalid. If-None-Match is '{}', but must be "
                  "{}.",
                  given.substr(0, kQuotedMax), expected));
}
Error invalid_position(std::string_view given) {
  return invalid(given, "*, or the etag of a change feed response: a number such as \"28535\"");
}
Error invalid_container_position(std::string_view given) {
  return invalid(given,
                 "*, or the etag of a response to a request with x-orrery-feed-scope: container, "
                 "such as \"c:=12;1F=7\"");
}

/// The text between the quotes, if there are any. Nothing when it is malformed.
std::optional<std::string_view> unquoted(std::string_view text) {
  text = trimmed(text);
  const bool weak = text.starts_with("W/");
  if (weak) text.remove_prefix(2);
  const bool opened = text.starts_with('"');
  if (weak && !opened) return std::nullopt;
  if (!opened) return text;
  if (text.size() < 2 || !text.ends_with('"')) return std::nullopt;
  return text.substr(1, text.size() - 2);
}

std::optional<Lsn> parse_lsn(std::string_view digits) {
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, failure] = std::from_chars(digits.data(), end, value);
  if (failure != std::errc() || stop != end || value > kPositionMax) return std::nullopt;
  return Lsn{value};
}

}  // namespace

Result<Start> parse_start(std::string_view if_none_match) {
  const auto text = unquoted(if_none_match);
  if (!text || text->empty()) return invalid_position(if_none_match);
  Start start;
  if (*text == "*") {
    start.kind = Start::Kind::Now;
    return start;
  }
  start.kind = Start::Kind::After;
  if (text->starts_with("00") && text->size() > 2 + kPositionDigits) {
    const auto after = parse_lsn(text->substr(2, kPositionDigits));
    start.began_at = parse_lsn(text->substr(2 + kPositionDigits));
    if (!after || !start.began_at) return invalid_position(if_none_match);
    start.after = *after;
    return start;
  }
  const auto after = parse_lsn(*text);
  if (!after) return invalid_position(if_none_match);
  start.after = *after;
  return start;
}

std::string feed_etag(Lsn position) { return fmt::format("\"{}\"", position.value); }

std::string tombstone_etag(Lsn position, Lsn began_at) {
  return fmt::format("\"00{:019}{}\"", position.value, began_at.value);
}

Result<ContainerPosition> ContainerPosition::parse(std::string_view if_none_match) {
  const auto text = unquoted(if_none_match);
  if (!text || !text->starts_with("c:")) return invalid_container_position(if_none_match);
  std::string_view rest = text->substr(2);
  std::vector<Part> parts;
  for (;;) {
    const auto semicolon = rest.find(';');
    const auto entry = rest.substr(0, semicolon);
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || parts.size() == kPartsMax) {
      return invalid_container_position(if_none_match);
    }
    auto min = Epk::from_hex(entry.substr(0, equals));
    const auto at_sign = entry.find('@', equals);
    const auto after = parse_lsn(entry.substr(equals + 1, at_sign - equals - 1));
    std::optional<Lsn> began_at;
    if (at_sign != std::string_view::npos) {
      began_at = parse_lsn(entry.substr(at_sign + 1));
      if (!began_at) return invalid_container_position(if_none_match);
    }
    const bool ascends = parts.empty() ? min && *min == Epk::min() : min && parts.back().min < *min;
    if (!ascends || !after) return invalid_container_position(if_none_match);
    parts.push_back({std::move(*min), *after, began_at});
    if (semicolon == std::string_view::npos) break;
    rest.remove_prefix(semicolon + 1);
  }
  return ContainerPosition(std::move(parts));
}

std::string ContainerPosition::etag() const {
  std::string text = "\"c:";
  for (const Part& part : parts_) {
    if (text.size() > 3) text.push_back(';');
    fmt::format_to(std::back_inserter(text), "{}={}", part.min.hex(), part.after.value);
    if (part.began_at) fmt::format_to(std::back_inserter(text), "@{}", part.began_at->value);
  }
  text.push_back('"');
  return text;
}

std::vector<ContainerPosition::ReadRange> ContainerPosition::within(const EpkRange& epks) const {
  std::vector<ReadRange> found;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    EpkRange part{parts_[i].min, i + 1 < parts_.size() ? parts_[i + 1].min : Epk::max()};
    part.min = std::max(part.min, epks.min);
    part.max = std::min(part.max, epks.max);
    if (part.min < part.max) {
      found.push_back({std::move(part), parts_[i].after, parts_[i].began_at});
    }
  }
  return found;
}

}  // namespace orrery::feed
