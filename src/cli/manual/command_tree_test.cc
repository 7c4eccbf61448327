#include "cli/manual/command_tree.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace orrery::cli {
namespace {

CommandOption with_words(std::string description) {
  CommandOption option;
  option.kind = ValueKind::Words;
  option.words = {"strict", "relaxed"};
  option.description = std::move(description);
  return option;
}

TEST(HeadlineTest, IsTheFirstClauseOnOneLine) {
  EXPECT_EQ(headline("Run the server. Ctrl-C ends it"), "Run the server");
  EXPECT_EQ(headline("Cut a range in two; readers go on"), "Cut a range in two");
  EXPECT_EQ(headline("Shows what\nthere is.\n\nAnd more"), "Shows what there is");
  EXPECT_EQ(headline("Port, 8081 by default"), "Port, 8081 by default");
}

TEST(ToldOfWordTest, IsTheClauseThatBeginsWithIt) {
  const auto option = with_words("strict: on the disk first; relaxed: faster, and less safe");
  EXPECT_EQ(told_of_word(option, "strict"), "on the disk first");
  EXPECT_EQ(told_of_word(option, "relaxed"), "faster, and less safe");
  EXPECT_EQ(told_of_word(option, "relax"), "");
  EXPECT_EQ(told_of_word(option, "off"), "");
}

TEST(OptionHeadlineTest, TellsOfAllWordsOrIsTheFirstClause) {
  const std::string each = "strict: on the disk first; relaxed: faster, and less safe";
  EXPECT_EQ(option_headline(with_words(each)), each);
  EXPECT_EQ(option_headline(with_words("How safe; not for tests")), "How safe");
}

}  // namespace
}  // namespace orrery::cli
