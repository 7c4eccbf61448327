// Searching texts.
#include "query/functions/full_text.h"

#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Value;
using testing::ElementsAre;
using testing::IsEmpty;

/// The value of a function of these JSON texts, the language last; "-" is undefined.
std::string said(std::string_view name, std::vector<std::string> texts,
                 std::string_view language = "en-US") {
  std::vector<Value> values;
  for (const auto& text : texts) values.push_back(Value::of_checked(text));
  values.push_back(Value::string(std::string(language)));
  std::vector<const Value*> arguments;
  for (const auto& value : values) arguments.push_back(&value);
  for (const Function& function : full_text_functions()) {
    if (function.name != name) continue;
    EXPECT_EQ(function.hidden, Function::Hidden::Language);
    const Value value = function.call(arguments);
    return value.is_undefined() ? "-" : value.to_text();
  }
  return "no such function";
}

std::vector<std::string> stems(std::string_view text, std::string_view language = "en-US") {
  std::vector<std::string> stems;
  for (const Word& word : words_of(text, language)) stems.push_back(word.stem);
  return stems;
}

constexpr const char* kHill = R"("a red bicycle on the hill")";

TEST(FullText, WordsAreLettersAndDigitsInLowerCase) {
  EXPECT_THAT(stems("The Red-Fox's 42 dens!"), ElementsAre("red", "fox", "s", "42", "den"));
  EXPECT_THAT(stems("ÜBER\tStraße naïve", "none"), ElementsAre("über", "straße", "naïve"));
  EXPECT_THAT(stems("日本 語"), ElementsAre("日本", "語"));
  // An accent of its own is a part of the word.
  EXPECT_THAT(stems("cafe\xCC\x81s", "none"), ElementsAre("cafe\xCC\x81s"));
  EXPECT_THAT(stems(""), IsEmpty());
  EXPECT_THAT(stems("the, of and -- !"), IsEmpty());
  EXPECT_THAT(stems("one\xFFtwo"), ElementsAre("one", "two"));
}

TEST(FullText, StemsAreThoseOfTheLanguage) {
  EXPECT_THAT(stems("running runs houses", "en-US"), ElementsAre("run", "run", "hous"));
  EXPECT_THAT(stems("Häuser laufen", "de-DE"), ElementsAre("haus", "lauf"));
  EXPECT_THAT(stems("chicas corriendo", "es-ES"), ElementsAre("chic", "corr"));
  EXPECT_THAT(stems("continuellement", "fr-FR"), ElementsAre("continuel"));
  EXPECT_THAT(stems("running", "xx-XX"), ElementsAre("running"));
  // Only English has words that do not count.
  EXPECT_THAT(stems("the", "de-DE"), ElementsAre("the"));
}

TEST(FullText, ContainsAWordWhateverItsCaseAndEnding) {
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"("bicycle")"}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"("BICYCLES")"}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"("cycle")"}), "false");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {R"("Die Häuser")", R"("haus")"}, "de-DE"), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {R"("Die Häuser")", R"("haus")"}, "en-US"), "false");
  // A term without words is in no text.
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"("the")"}), "false");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"("")"}), "false");
}

TEST(FullText, WordsOfAPhraseFollowEachOther) {
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"("red bicycle")"}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"("bicycle red")"}), "false");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"("red hill")"}), "false");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"("bicycles on a hill")"}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {R"("x x x y")", R"("x x y")"}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {R"("x x")", R"("x x x")"}), "false");
}

TEST(FullText, ContainsAllOrAnyOfSeveral) {
  EXPECT_EQ(said("FULLTEXTCONTAINSALL", {kHill, R"("red")", R"("bicycle")"}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINSALL", {kHill, R"("red")", R"("car")"}), "false");
  EXPECT_EQ(said("FULLTEXTCONTAINSANY", {kHill, R"("car")", R"("bicycle")"}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINSANY", {kHill, R"("car")", R"("bus")"}), "false");
}

TEST(FullText, FuzzyTermsAllowForWrongLetters) {
  const auto fuzzy = [](std::string_view term, int distance) {
    return R"({"term":")" + std::string(term) + R"(","distance":)" + std::to_string(distance) + "}";
  };
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, fuzzy("bicycle", 0)}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, fuzzy("bicykles", 0)}), "false");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, fuzzy("bycicle", 1)}), "false");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, fuzzy("bycicle", 2)}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, fuzzy("bicicle", 1)}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, fuzzy("bicyle", 1)}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, fuzzy("rad bicykle", 1)}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {R"("Straßen")", fuzzy("strassen", 2)}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {R"("Straßen")", fuzzy("straten", 1)}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, fuzzy("bicycle", 3)}), "-");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"({"term":"bicycle"})"}), "-");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, R"({"term":7,"distance":1})"}), "-");
}

TEST(FullText, FuzzyTermsFindWhatOthersFind) {
  constexpr const char* kFoxes = R"("quick brown foxes jumped")";
  for (const std::string term : {"fox", "foxes", "FOX", "jumping", "brown fox", "foxes jumps"}) {
    EXPECT_EQ(said("FULLTEXTCONTAINS", {kFoxes, '"' + term + '"'}), "true") << term;
    for (const char distance : {'0', '1', '2'}) {
      const std::string fuzzy = R"({"term":")" + term + R"(","distance":)" + distance + "}";
      EXPECT_EQ(said("FULLTEXTCONTAINS", {kFoxes, fuzzy}), "true") << fuzzy;
    }
  }
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kFoxes, R"({"term":"fix","distance":1})"}), "true");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kFoxes, R"({"term":"fix","distance":0})"}), "false");
}

TEST(FullText, SimilarityIsThatOfTheWholeTable) {
  const std::uint32_t seed = 11;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto draw = [&] {
    std::string text;
    for (auto left = random() % 7; left > 0; --left) text += static_cast<char>('a' + random() % 3);
    return text;
  };
  const auto whole_table = [](const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i);
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t above = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
        diagonal = above;
      }
    }
    return row[b.size()];
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string a = draw();
    const std::string b = draw();
    for (const std::size_t bound : {0U, 1U, 2U}) {
      ASSERT_EQ(is_similar(a, b, bound), whole_table(a, b) <= bound) << a << " " << b << bound;
    }
  }
}

TEST(FullText, WhatIsNoTextOrNoTermIsUndefined) {
  EXPECT_EQ(said("FULLTEXTCONTAINS", {"7", R"("bicycle")"}), "-");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {kHill, "7"}), "-");
  EXPECT_EQ(said("FULLTEXTCONTAINSANY", {kHill, R"("red")", "null"}), "-");
  EXPECT_EQ(said("_FULLTEXTWORDCOUNT", {"7"}), "-");
  EXPECT_EQ(said("_FULLTEXTSCORE", {"7", R"(["red"])", "1", "1", "[1]"}), "-");
  EXPECT_EQ(said("_FULLTEXTSCORE", {kHill, R"("red")", "1", "1", "[1]"}), "-");
  EXPECT_EQ(said("_FULLTEXTSCORE", {kHill, R"(["red"])", "1", "1", "[1,2]"}), "-");
  EXPECT_EQ(said("_FULLTEXTSCORE", {kHill, R"(["red"])", R"("1")", "1", "[1]"}), "-");
  EXPECT_EQ(said("_FULLTEXTSCORE", {kHill, R"(["red"])", "1", "1", R"(["1"])"}), "-");
}

TEST(FullText, WordCountIsThatOfTheWordsThatAreSearched) {
  EXPECT_EQ(said("_FULLTEXTWORDCOUNT", {kHill}), "3");
  EXPECT_EQ(said("_FULLTEXTWORDCOUNT", {R"("")"}), "0");
  EXPECT_EQ(said("_FULLTEXTWORDCOUNT", {R"("the the")"}, "de-DE"), "2");
}

TEST(FullText, ScoreIsBm25) {
  // 10 texts of 40 words in all; "red" is in 2 of them, "hill" in 5.
  const double norm = 1.2 * (1 - 0.75 + 0.75 * 3 / 4.0);
  const double red = std::log(1 + 8.5 / 2.5) * 2.2 / (1 + norm);
  const double hill = std::log(1 + 5.5 / 5.5) * 2.2 / (1 + norm);
  const auto score = [&](std::string_view text, std::string_view terms, std::string_view hits) {
    return std::stod(said("_FULLTEXTSCORE",
                          {std::string(text), std::string(terms), "10", "40", std::string(hits)}));
  };
  EXPECT_NEAR(score(kHill, R"(["red"])", "[2]"), red, 1e-12);
  EXPECT_NEAR(score(kHill, R"(["red","hills","car"])", "[2,5,1]"), red + hill, 1e-12);
  EXPECT_EQ(score(kHill, R"(["car"])", "[1]"), 0);
  EXPECT_EQ(score(kHill, "[]", "[]"), 0);
  // Twice is better than once, but not twice as good.
  const double once = score(R"("red car blue sky")", R"(["red"])", "[2]");
  const double twice = score(R"("red car red sky")", R"(["red"])", "[2]");
  EXPECT_GT(twice, once);
  EXPECT_LT(twice, 2 * once);
  // Phrases and fuzzy terms count likewise.
  EXPECT_NEAR(score(kHill, R"(["red bicycle"])", "[2]"), red, 1e-12);
  EXPECT_NEAR(score(kHill, R"([{"term":"rad","distance":1}])", "[2]"), red, 1e-12);
}

TEST(FullText, ScoreIsANumberWhateverTheStatistics) {
  for (const char* const number : {"0", "-5", "1e308", "3"}) {
    const std::string hits = "[" + std::string(number) + "]";
    const std::string score = said("_FULLTEXTSCORE", {kHill, R"(["red"])", number, number, hits});
    EXPECT_GE(std::stod(score), 0) << number;
    EXPECT_GE(std::stod(said("_FULLTEXTSCORE", {kHill, R"(["red"])", "2", "9", hits})), 0);
  }
}

TEST(FullText, LongPhrasesAreFoundInOnePass) {
  // Each place of the text begins like the phrase: to try them one by one would take for ever.
  std::string text = "\"";
  for (int i = 0; i < 200'000; ++i) text += "x ";
  std::string phrase = "\"";
  for (int i = 0; i < 50'000; ++i) phrase += "x ";
  EXPECT_EQ(said("FULLTEXTCONTAINS", {text + "\"", phrase + "y\""}), "false");
  EXPECT_EQ(said("FULLTEXTCONTAINS", {text + "y\"", phrase + "y\""}), "true");
}

TEST(FullText, ScoresOfRankHaveNoValueOfTheirOwn) {
  EXPECT_EQ(said("FULLTEXTSCORE", {kHill, R"("red")"}), "-");
}

}  // namespace
}  // namespace orrery::query
