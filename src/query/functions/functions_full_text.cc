// Functions that search texts. The last argument of each is the language of the text, which bind
// appends.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "query/functions/full_text.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Reader;
using json::Value;

/// The text that is searched, and its language.
class Searched {
 public:
  explicit Searched(Arguments arguments) {
    if (!arguments.front()->is_string() || !arguments.back()->is_string()) return;
    language_ = arguments.back()->as_string(language_buffer_);
    std::string buffer;
    words_ = recent_words_of(arguments.front()->as_string(buffer), language_);
  }
  explicit operator bool() const { return words_ != nullptr; }
  const std::vector<Word>& words() const { return *words_; }
  std::string_view language() const { return language_; }

 private:
  std::string language_buffer_;
  std::string_view language_;
  WordsPtr words_;
};

/// Terms are what stands between the text and the language.
std::optional<std::vector<SearchTerm>> terms_of(Arguments arguments, std::string_view language) {
  std::vector<SearchTerm> terms;
  for (const Value* const argument : arguments.subspan(1, arguments.size() - 2)) {
    auto term = SearchTerm::read(*argument, language);
    if (!term) return std::nullopt;
    terms.push_back(std::move(*term));
  }
  return terms;
}

/// `decisive`: one term that does (or does not) occur is enough to know.
template <bool decisive>
Value full_text_contains(Arguments arguments) {
  const Searched searched(arguments);
  if (!searched) return {};
  const auto terms = terms_of(arguments, searched.language());
  if (!terms) return {};
  for (const SearchTerm& term : *terms) {
    if (!arguments.spend(1 + searched.words().size())) return {};
    if (term.occurs_in(searched.words()) == decisive) return Value::boolean(decisive);
  }
  return Value::boolean(!decisive);
}

Value word_count(Arguments arguments) {
  const Searched searched(arguments);
  if (!searched) return {};
  return Value::number(static_cast<std::int64_t>(searched.words().size()));
}

/// (text, terms, documents, words of all, hits by term, language)
Value score(Arguments arguments) {
  const Searched searched(arguments);
  const Value& terms_given = *arguments[1];
  const Value& hits_given = *arguments[4];
  if (!searched || !terms_given.is_array() || !hits_given.is_array()) return {};
  if (!arguments[2]->is_number() || !arguments[3]->is_number()) return {};
  std::vector<SearchTerm> terms;
  for (Reader reader(terms_given); reader.next();) {
    auto term = SearchTerm::read(reader.value(), searched.language());
    if (!term) return {};
    terms.push_back(std::move(*term));
  }
  std::vector<double> hits;
  for (Reader reader(hits_given); reader.next();) {
    const Value hit = reader.value();
    if (!hit.is_number()) return {};
    hits.push_back(hit.as_number().real);
  }
  if (hits.size() != terms.size()) return {};
  const TextStatistics statistics = {.documents = arguments[2]->as_number().real,
                                     .words = arguments[3]->as_number().real,
                                     .hits = hits};
  const double value = full_text_score(searched.words(), terms, statistics, arguments.work());
  return std::isfinite(value) ? Value::number(value) : Value();
}

/// Those that have a value only in ORDER BY RANK, where others compute it over all documents.
Value of_rank_only(Arguments) { return {}; }

constexpr Function over_text(std::string_view name, std::uint8_t arguments_min,
                             std::uint8_t arguments_max, Value (*call)(Arguments)) {
  return {.name = name,
          .arguments_min = arguments_min,
          .arguments_max = arguments_max,
          .call = call,
          .hidden = Function::Hidden::Language};
}

constexpr std::array kFullTextFunctions = {
    over_text("FULLTEXTCONTAINS", 2, 2, full_text_contains<true>),
    over_text("FULLTEXTCONTAINSALL", 2, kAnyNumber, full_text_contains<false>),
    over_text("FULLTEXTCONTAINSANY", 2, kAnyNumber, full_text_contains<true>),
    over_text("FULLTEXTSCORE", 2, kAnyNumber, of_rank_only),
    over_text("_FULLTEXTSCORE", 5, 5, score),
    over_text("_FULLTEXTWORDCOUNT", 1, 1, word_count),
    Function{"RRF", 1, kAnyNumber, of_rank_only},
};

}  // namespace

std::span<const Function> full_text_functions() { return kFullTextFunctions; }

}  // namespace orrery::query
