// LIKE: patterns with % (any run), _ (one character) and [sets].
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/work_budget.h"

namespace orrery::query {

/// A pattern, read once. A match takes time in proportion to the text, and to the text times the
/// longest part between two % that has _ or sets in it.
class LikePattern {
 public:
  /// `escape` makes the character after it an ordinary one. An unclosed set, as in "[ab", is
  /// ordinary too.
  LikePattern(std::string_view pattern, std::optional<char32_t> escape);

  /// Matches the whole text, with case. The result does not matter once `work`, if there is one,
  /// has stopped.
  bool matches(std::string_view text, WorkBudget* work = nullptr) const;

 private:
  /// One character of the pattern that is not %.
  struct Unit {
    enum class Kind { Character, Any, Set } kind = Kind::Character;
    char32_t character = 0;
    bool is_negated = false;
    std::vector<std::pair<char32_t, char32_t>> ranges;
  };
  /// The part of a pattern between two %.
  struct Part {
    bool is_literal = true;  ///< `text` says it all
    std::string text;
    std::vector<Unit> units;
  };

  static bool matches_unit(const Unit& unit, char32_t character);
  static std::optional<std::size_t> match_at(const Part& part, std::string_view text,
                                             std::size_t at);
  static std::optional<std::size_t> find(const Part& part, std::string_view text, std::size_t at,
                                         WorkBudget* work);
  static bool ends_with(const Part& part, std::string_view text, std::size_t from);

  std::vector<Part> parts_;  ///< at least one; between each two is a %
};

}  // namespace orrery::query
