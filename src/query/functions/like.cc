#include "query/functions/like.h"

#include <algorithm>

#include "protocol/utf8.h"
#include "query/functions/find.h"

namespace orrery::query {
namespace {

/// The character at `at`; a byte that is not UTF-8 is one of its own.
CodePoint character_at(std::string_view text, std::size_t at) {
  const CodePoint character = decode_utf8(text, at);
  if (character.size > 0) return character;
  return {0xDC00u | static_cast<unsigned char>(text[at]), 1};
}

}  // namespace

LikePattern::LikePattern(std::string_view pattern, std::optional<char32_t> escape) : parts_(1) {
  struct Character {
    char32_t value;
    bool is_escaped;
    std::string_view text;
  };
  std::vector<Character> characters;
  bool escaped = false;
  for (std::size_t at = 0; at < pattern.size();) {
    const auto [value, size] = character_at(pattern, at);
    if (!escaped && escape && value == *escape) {
      escaped = true;
    } else {
      characters.push_back({value, escaped, pattern.substr(at, size)});
      escaped = false;
    }
    at += size;
  }

  const auto is = [&](std::size_t i, char32_t value) {
    return i < characters.size() && characters[i].value == value && !characters[i].is_escaped;
  };
  // The place of the ] that closes the set after `i`; 0 where there is no set. An empty one is
  // none.
  std::size_t unclosed_from = characters.size();  // From here on no set is closed.
  const auto closing = [&](std::size_t i) -> std::size_t {
    if (!is(i, '[') || i >= unclosed_from) return 0;
    const std::size_t first = is(i + 1, '^') ? i + 2 : i + 1;
    for (std::size_t end = first; end < characters.size(); ++end) {
      if (is(end, ']')) return end > first ? end : 0;
    }
    unclosed_from = i;
    return 0;
  };
  for (std::size_t i = 0; i < characters.size(); ++i) {
    if (is(i, '%')) {
      parts_.emplace_back();
      continue;
    }
    Part& part = parts_.back();
    Unit& unit = part.units.emplace_back();
    if (is(i, '_')) {
      unit.kind = Unit::Kind::Any;
      part.is_literal = false;
      continue;
    }
    const std::size_t end = closing(i);
    if (end == 0) {
      unit.character = characters[i].value;
      part.text += characters[i].text;
      continue;
    }
    unit.kind = Unit::Kind::Set;
    part.is_literal = false;
    unit.is_negated = is(i + 1, '^');
    for (i += unit.is_negated ? 2 : 1; i < end; ++i) {
      const char32_t first = characters[i].value;
      const bool is_range = is(i + 1, '-') && i + 2 < end;
      const char32_t last = is_range ? characters[i + 2].value : first;
      if (is_range) i += 2;
      unit.ranges.emplace_back(first, last);
    }
  }
}

bool LikePattern::matches_unit(const Unit& unit, char32_t character) {
  switch (unit.kind) {
    case Unit::Kind::Character:
      return unit.character == character;
    case Unit::Kind::Any:
      return true;
    case Unit::Kind::Set:
      break;
  }
  const bool is_in = std::ranges::any_of(unit.ranges, [&](const auto& range) {
    return range.first <= character && character <= range.second;
  });
  return is_in != unit.is_negated;
}

/// The position after the part, if it is at `at`.
std::optional<std::size_t> LikePattern::match_at(const Part& part, std::string_view text,
                                                 std::size_t at) {
  if (part.is_literal) {
    if (!text.substr(at).starts_with(part.text)) return std::nullopt;
    return at + part.text.size();
  }
  for (const Unit& unit : part.units) {
    if (at >= text.size()) return std::nullopt;
    const auto [value, size] = character_at(text, at);
    if (!matches_unit(unit, value)) return std::nullopt;
    at += size;
  }
  return at;
}

/// The position after the first place of the part from `at` on.
std::optional<std::size_t> LikePattern::find(const Part& part, std::string_view text,
                                             std::size_t at, WorkBudget* work) {
  if (part.is_literal) {
    const std::size_t found = find_in(text, part.text, at);
    if (found == std::string_view::npos) return std::nullopt;
    return found + part.text.size();
  }
  while (at < text.size()) {
    if (work != nullptr && !work->spend(1 + part.units.size() / 8)) return std::nullopt;
    if (const auto end = match_at(part, text, at)) return end;
    at += character_at(text, at).size;
  }
  return std::nullopt;
}

bool LikePattern::ends_with(const Part& part, std::string_view text, std::size_t from) {
  if (part.is_literal) return text.substr(from).ends_with(part.text);
  // Go back so many characters from the end.
  std::size_t at = text.size();
  for (std::size_t i = 0; i < part.units.size(); ++i) {
    if (at <= from) return false;
    --at;
    while (at > from && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  }
  return match_at(part, text, at) == text.size();
}

bool LikePattern::matches(std::string_view text, WorkBudget* work) const {
  const auto begin = match_at(parts_.front(), text, 0);
  if (!begin) return false;
  if (parts_.size() == 1) return *begin == text.size();
  std::size_t at = *begin;
  for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
    const auto end = find(parts_[i], text, at, work);
    if (!end) return false;
    at = *end;
  }
  return ends_with(parts_.back(), text, at);
}

}  // namespace orrery::query
