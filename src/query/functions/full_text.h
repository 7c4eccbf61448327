// Text as search sees it: words without their endings, and which of them were asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/work_budget.h"
#include "json/value.h"

namespace orrery::query {

/// A word of a text: letters and digits in a row.
struct Word {
  std::string plain;  ///< in lower case
  std::string stem;   ///< without its ending
};

/// The words of a text in their order. Of English, words that all texts have ("the") are left out.
/// Languages: en-US, de-DE, es-ES, fr-FR; words of others are their own stems.
std::vector<Word> words_of(std::string_view text, std::string_view language);
using WordsPtr = std::shared_ptr<const std::vector<Word>>;  // Shared by the cache and its users.
/// The same; what a thread asked for last is not taken apart again, unless it is long.
WordsPtr recent_words_of(std::string_view text, std::string_view language);

/// A term to search for: a word, or several in a row.
class SearchTerm {
 public:
  /// From a string; or from {"term":"…","distance":0 to 2}, which allows for so many letters that
  /// are wrong, missing or too many in each of its words, of which there are no more than
  /// kFuzzyWordsMax. Nothing when it is neither.
  static constexpr std::size_t kFuzzyWordsMax = 32;
  static std::optional<SearchTerm> read(const json::Value& value, std::string_view language);

  /// How often it occurs. A term without words, such as "the", never does.
  std::size_t count_in(std::span<const Word> words) const;
  bool occurs_in(std::span<const Word> words) const { return count_up_to(words, 1) > 0; }

  const std::vector<Word>& words() const { return words_; }
  /// Whether words are compared letter by letter: they themselves, or their stems.
  bool is_fuzzy() const { return distance_.has_value(); }

 private:
  std::size_t count_up_to(std::span<const Word> words, std::size_t count_max) const;
  std::size_t count_stems(std::span<const Word> words, std::size_t count_max) const;
  std::size_t count_similar(std::span<const Word> words, std::size_t count_max) const;

  std::vector<Word> words_;
  std::optional<std::size_t> distance_;
  /// By word: how many of the first words are also the last ones up to it.
  std::vector<std::size_t> borders_;
};

/// Whether `a` becomes `b` by changing, leaving out and putting in `distance_max` letters at most.
bool is_similar(std::string_view a, std::string_view b, std::size_t distance_max);

/// The statistics of all texts together.
struct TextStatistics {
  double documents = 0;
  double words = 0;                   ///< of all texts
  std::span<const double> hits = {};  ///< by term: texts that it occurs in
};

/// BM25: how well a text fits the terms, 0 when none of them occurs. There are as many terms as
/// hits. Of no use once `work`, if there is one, has stopped.
double full_text_score(std::span<const Word> words, std::span<const SearchTerm> terms,
                       const TextStatistics& statistics, WorkBudget* work = nullptr);

}  // namespace orrery::query
