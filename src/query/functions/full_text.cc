#include "query/functions/full_text.h"

#include <locale.h>
#include <wctype.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include <libstemmer.h>

#include "protocol/utf8.h"
#include "query/functions/letters.h"

namespace orrery::query {
namespace {

// ── Words ────────────────────────────────────────────────────────────────────────────────────────

/// Sorted.
constexpr std::array<std::string_view, 33> kEnglishStopWords = {
    "a",   "an",    "and",  "are",   "as",    "at",   "be",   "but", "by",  "for",  "if",
    "in",  "into",  "is",   "it",    "no",    "not",  "of",   "on",  "or",  "such", "that",
    "the", "their", "then", "there", "these", "they", "this", "to",  "was", "will", "with"};
static_assert(std::ranges::is_sorted(kEnglishStopWords));

bool is_part_of_word(char32_t character) {
  if (character < 0x80) {
    return (character >= '0' && character <= '9') || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z');
  }
  // Accents that stand behind their letter belong to it.
  if (character >= 0x300 && character <= 0x36F) return true;
  static const locale_t invariant = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  // Where the system does not know its letters, all that is not ASCII passes for one.
  if (invariant == nullptr) return !is_white_space(character);
  return ::iswalnum_l(static_cast<wint_t>(character), invariant) != 0;
}

/// Not shared by threads.
class Stemmer {
 public:
  explicit Stemmer(const char* algorithm) : stemmer_(sb_stemmer_new(algorithm, "UTF_8")) {}

  std::string stem(const std::string& word) const {
    if (!stemmer_ || word.size() > kWordBytesMax) return word;
    const auto* const stem =
        sb_stemmer_stem(stemmer_.get(), reinterpret_cast<const sb_symbol*>(word.data()),
                        static_cast<int>(word.size()));
    // It has no memory left.
    if (stem == nullptr) return word;
    return {reinterpret_cast<const char*>(stem),
            static_cast<std::size_t>(sb_stemmer_length(stemmer_.get()))};
  }

 private:
  /// Longer words are none of any language, and are not stemmed.
  static constexpr std::size_t kWordBytesMax = 256;
  struct Delete {
    void operator()(sb_stemmer* stemmer) const { sb_stemmer_delete(stemmer); }
  };
  std::unique_ptr<sb_stemmer, Delete> stemmer_;
};

const Stemmer* stemmer_of(std::string_view language) {
  struct Known {
    std::string_view language;
    Stemmer stemmer;
  };
  static thread_local const std::array<Known, 4> known = {{{"en-US", Stemmer("english")},
                                                           {"de-DE", Stemmer("german")},
                                                           {"es-ES", Stemmer("spanish")},
                                                           {"fr-FR", Stemmer("french")}}};
  const auto found = std::ranges::find(known, language, &Known::language);
  return found == known.end() ? nullptr : &found->stemmer;
}

}  // namespace

std::vector<Word> words_of(std::string_view text, std::string_view language) {
  const Stemmer* const stemmer = stemmer_of(language);
  const bool is_english = language == "en-US";
  std::vector<Word> words;
  std::size_t begin = 0;
  const auto end_word = [&](std::size_t end) {
    if (begin == end) return;
    std::string plain = to_lower(text.substr(begin, end - begin));
    if (is_english && std::ranges::binary_search(kEnglishStopWords, plain)) return;
    std::string stem = stemmer != nullptr ? stemmer->stem(plain) : plain;
    words.push_back({std::move(plain), std::move(stem)});
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto [character, size] = decode_utf8(text, at);
    const std::size_t next = at + std::max<std::size_t>(size, 1);
    if (size == 0 || !is_part_of_word(character)) {
      end_word(at);
      begin = next;
    }
    at = next;
  }
  end_word(text.size());
  return words;
}

WordsPtr recent_words_of(std::string_view text, std::string_view language) {
  constexpr std::size_t kKeptBytesMax = std::size_t{256} << 10;
  struct Recent {
    std::string text;
    std::string language;
    WordsPtr words;
  };
  static thread_local Recent recent;
  if (recent.words && recent.text == text && recent.language == language) return recent.words;
  auto words = std::make_shared<const std::vector<Word>>(words_of(text, language));
  if (text.size() <= kKeptBytesMax) {
    recent = {.text = std::string(text), .language = std::string(language), .words = words};
  }
  return words;
}

// ── Terms ────────────────────────────────────────────────────────────────────────────────────────

namespace {

constexpr std::size_t kDistanceMax = 2;

/// Levenshtein, only as far as the bound allows: a band of a table, row by row.
template <typename Text>
bool is_similar_in(const Text& a, const Text& b, std::size_t distance_max) {
  const std::size_t shorter = std::min(a.size(), b.size());
  const std::size_t longer = std::max(a.size(), b.size());
  if (longer - shorter > distance_max) return false;
  // row[k]: between the first i letters of `a` and the first i + k - distance_max of `b`.
  std::array<std::size_t, 2 * kDistanceMax + 1> row{};
  const std::size_t width = 2 * distance_max + 1;
  const std::size_t over = distance_max + 1;
  for (std::size_t k = 0; k < width; ++k) row[k] = k >= distance_max ? k - distance_max : over;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t best = over;
    for (std::size_t k = 0; k < width; ++k) {
      const std::size_t j_shifted = i + k;
      if (j_shifted < distance_max || j_shifted - distance_max > b.size()) {
        row[k] = over;
        continue;
      }
      const std::size_t j = j_shifted - distance_max;
      // row[k] is still that of i - 1 and j - 1, row[k + 1] that of i - 1 and j.
      std::size_t cost = j == 0 ? over : row[k] + (a[i - 1] == b[j - 1] ? 0 : 1);
      if (k + 1 < width) cost = std::min(cost, row[k + 1] + 1);
      if (k > 0) cost = std::min(cost, row[k - 1] + 1);
      row[k] = std::min(cost, over);
      best = std::min(best, row[k]);
    }
    if (best > distance_max) return false;
  }
  const std::size_t last = b.size() + distance_max - a.size();
  return last < width && row[last] <= distance_max;
}

bool is_ascii_term(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::u32string letters_of(std::string_view text) {
  std::u32string letters;
  for (std::size_t at = 0; at < text.size();) {
    const auto [letter, size] = decode_utf8(text, at);
    letters += letter;
    at += std::max<std::size_t>(size, 1);
  }
  return letters;
}

}  // namespace

bool is_similar(std::string_view a, std::string_view b, std::size_t distance_max) {
  const std::size_t bound = std::min(distance_max, kDistanceMax);
  if (bound == 0) return a == b;
  if (is_ascii_term(a) && is_ascii_term(b)) return is_similar_in(a, b, bound);
  return is_similar_in(letters_of(a), letters_of(b), bound);
}

std::optional<SearchTerm> SearchTerm::read(const json::Value& value, std::string_view language) {
  SearchTerm term;
  json::Value text = json::Value::referring_to(value);
  if (value.is_object()) {
    const json::Value distance = value.member("distance");
    if (!distance.is_number()) return std::nullopt;
    const double number = distance.as_number().real;
    if (number != 0 && number != 1 && number != kDistanceMax) return std::nullopt;
    term.distance_ = static_cast<std::size_t>(number);
    text = value.member("term");
  }
  if (!text.is_string()) return std::nullopt;
  std::string buffer;
  term.words_ = words_of(text.as_string(buffer), language);
  if (term.is_fuzzy()) {
    if (term.words_.size() > kFuzzyWordsMax) return std::nullopt;
    return term;
  }
  term.borders_.assign(term.words_.size(), 0);
  std::size_t matched = 0;
  for (std::size_t i = 1; i < term.words_.size(); ++i) {
    while (matched > 0 && term.words_[matched].stem != term.words_[i].stem) {
      matched = term.borders_[matched - 1];
    }
    if (term.words_[matched].stem == term.words_[i].stem) ++matched;
    term.borders_[i] = matched;
  }
  return term;
}

/// Knuth, Morris and Pratt: no word of the text is looked at twice.
std::size_t SearchTerm::count_stems(std::span<const Word> words, std::size_t count_max) const {
  std::size_t count = 0;
  std::size_t matched = 0;
  for (const Word& word : words) {
    while (matched > 0 && (matched == words_.size() || words_[matched].stem != word.stem)) {
      matched = borders_[matched - 1];
    }
    if (words_[matched].stem == word.stem) ++matched;
    if (matched == words_.size() && ++count == count_max) break;
  }
  return count;
}

std::size_t SearchTerm::count_similar(std::span<const Word> words, std::size_t count_max) const {
  std::size_t count = 0;
  for (std::size_t at = 0; at + words_.size() <= words.size() && count < count_max; ++at) {
    const bool is_here = std::ranges::equal(
        words_, words.subspan(at, words_.size()), [&](const Word& wanted, const Word& word) {
          // Compares stems too: a term found without a distance is also found with one.
          return is_similar(wanted.plain, word.plain, *distance_) ||
                 is_similar(wanted.stem, word.stem, *distance_);
        });
    if (is_here) ++count;
  }
  return count;
}

std::size_t SearchTerm::count_up_to(std::span<const Word> words, std::size_t count_max) const {
  if (words_.empty()) return 0;
  return distance_ ? count_similar(words, count_max) : count_stems(words, count_max);
}

std::size_t SearchTerm::count_in(std::span<const Word> words) const {
  return count_up_to(words, words.size());
}

double full_text_score(std::span<const Word> words, std::span<const SearchTerm> terms,
                       const TextStatistics& statistics, WorkBudget* work) {
  constexpr double kSaturation = 1.2;
  constexpr double kLengthWeight = 0.75;
  const bool is_known = statistics.documents > 0 && statistics.words > 0;
  const double length = static_cast<double>(words.size());
  const double relative_length =
      is_known ? length / (statistics.words / statistics.documents) : 1.0;
  double score = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (work != nullptr && !work->spend(1 + words.size())) return 0;
    const auto frequency = static_cast<double>(terms[i].count_in(words));
    if (frequency == 0) continue;
    // Statistics may be older than the text, so that more texts are hit than were counted.
    const double hits = std::max(statistics.hits[i], 0.0);
    const double missed = std::max(statistics.documents - hits, 0.0);
    const double rarity = std::log(1 + (missed + 0.5) / (hits + 0.5));
    score += rarity * frequency * (kSaturation + 1) /
             (frequency + kSaturation * (1 - kLengthWeight + kLengthWeight * relative_length));
  }
  return score;
}

}  // namespace orrery::query
