#include "client/exchange/session.h"

#include <algorithm>
#include <charconv>

#include "base/trim.h"

namespace orrery::client {
namespace {

template <typename Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  Integer value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Cuts `text` at the first `separator` and returns what stood before it.
std::string_view take_until(std::string_view& text, char separator) {
  const auto at = std::min(text.find(separator), text.size());
  const auto head = text.substr(0, at);
  text.remove_prefix(std::min(text.size(), at + 1));
  return head;
}

}  // namespace

std::optional<SessionPosition> SessionPosition::parse(std::string_view text) {
  SessionPosition position;
  if (text.find('#') == std::string_view::npos) {
    const auto lsn = parse_integer<std::int64_t>(text);
    if (!lsn) return std::nullopt;
    position.lsn = *lsn;
    return position;
  }
  position.version = parse_integer<std::int64_t>(take_until(text, '#'));
  const auto lsn = parse_integer<std::int64_t>(take_until(text, '#'));
  if (!position.version || !lsn) return std::nullopt;
  position.lsn = *lsn;
  while (!text.empty()) {
    std::string_view region = take_until(text, '#');
    const auto id = parse_integer<std::uint64_t>(take_until(region, '='));
    const auto local = parse_integer<std::int64_t>(region);
    if (!id || !local) return std::nullopt;
    position.regions.emplace_back(*id, *local);
  }
  return position;
}

std::string SessionPosition::text() const {
  if (!version) return std::to_string(lsn);
  std::string result = std::to_string(*version) + '#' + std::to_string(lsn);
  for (const auto& [id, local] : regions) {
    result += '#' + std::to_string(id) + '=' + std::to_string(local);
  }
  return result;
}

void SessionPosition::advance(const SessionPosition& other) {
  // The version counts changes of the set of regions: the newer one says which there are.
  const bool newer = other.version.value_or(-1) > version.value_or(-1) ||
                     (other.version.has_value() && !version.has_value());
  auto merged = newer ? other.regions : regions;
  const auto& rest = newer ? regions : other.regions;
  for (auto& [id, local] : merged) {
    const auto same = std::ranges::find(rest, id, &std::pair<std::uint64_t, std::int64_t>::first);
    if (same != rest.end()) local = std::max(local, same->second);
  }
  if (newer) version = other.version;
  lsn = std::max(lsn, other.lsn);
  regions = std::move(merged);
}

Sessions::TokensPtr Sessions::find(const std::string& container) const {
  const std::shared_lock lock(mutex_);
  const auto found = containers_.find(container);
  return found == containers_.end() ? nullptr : found->second;
}

Sessions::TokensPtr Sessions::find_or_add(const std::string& container) {
  if (auto found = find(container)) return found;
  const std::lock_guard lock(mutex_);
  auto& tokens = containers_[container];
  if (!tokens) tokens = std::make_shared<Tokens>();
  return tokens;
}

void Sessions::Tokens::become(std::string_view other_rid) {
  if (!rid.empty()) {
    positions.clear();
    parents.clear();
    all.clear();
  }
  former_rid = std::exchange(rid, std::string(other_rid));
}

void Sessions::remember(const std::string& container, std::string_view rid,
                        std::string_view token) {
  if (token.empty()) return;
  const TokensPtr tokens = find_or_add(container);
  const std::lock_guard lock(tokens->mutex);
  if (!rid.empty() && rid != tokens->rid) {
    // An answer of the old container may arrive after the first one of the new.
    if (rid == tokens->former_rid) return;
    tokens->become(rid);
  }
  bool changed = false;
  while (!token.empty()) {
    std::string_view entry = trimmed(take_until(token, ','));
    const std::string_view range = trimmed(take_until(entry, ':'));
    const auto position = SessionPosition::parse(trimmed(entry));
    if (range.empty() || !position) continue;
    auto known = tokens->positions.find(range);
    if (known == tokens->positions.end()) {
      tokens->positions.emplace(range, *position);
      changed = true;
      continue;
    }
    SessionPosition later = known->second;
    later.advance(*position);
    if (later == known->second) continue;
    known->second = std::move(later);
    changed = true;
  }
  if (!changed) return;
  tokens->all.clear();
  for (const auto& [range, position] : tokens->positions) {
    if (!tokens->all.empty()) tokens->all += ',';
    tokens->all += range + ':' + position.text();
  }
}

std::string Sessions::token(const std::string& container, std::string_view range) const {
  const TokensPtr tokens = find(container);
  if (!tokens) return {};
  if (const auto comma = range.find(','); comma != std::string_view::npos) {
    range.remove_prefix(comma + 1);
  }
  const std::lock_guard lock(tokens->mutex);
  if (range.empty()) return tokens->all;
  if (const auto own = tokens->positions.find(range); own != tokens->positions.end()) {
    return own->first + ':' + own->second.text();
  }
  const auto parents = tokens->parents.find(range);
  // Where it came from is not known: the server picks what concerns it.
  if (parents == tokens->parents.end()) return tokens->all;
  std::optional<SessionPosition> position;
  for (const std::string& parent : parents->second) {
    const auto found = tokens->positions.find(parent);
    if (found == tokens->positions.end()) continue;
    if (position) {
      position->advance(found->second);
    } else {
      position = found->second;
    }
  }
  return position ? std::string(range) + ':' + position->text() : std::string();
}

void Sessions::learn_parents(const std::string& container,
                             std::span<const PartitionKeyRange> ranges) {
  const TokensPtr tokens = find_or_add(container);
  const std::lock_guard lock(tokens->mutex);
  for (const PartitionKeyRange& range : ranges) tokens->parents[range.id] = range.parents;
}

std::string Sessions::rid(const std::string& container) const {
  const TokensPtr tokens = find(container);
  if (!tokens) return {};
  const std::lock_guard lock(tokens->mutex);
  return tokens->rid;
}

void Sessions::begin_anew(const std::string& container, const std::string& former,
                          std::string_view rid) {
  const TokensPtr tokens = find(container);
  if (!tokens) return;
  const std::lock_guard lock(tokens->mutex);
  if (tokens->rid == former) tokens->become(rid);
}

}  // namespace orrery::client
