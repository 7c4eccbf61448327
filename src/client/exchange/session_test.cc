#include "client/exchange/session.h"

#include <gtest/gtest.h>

namespace orrery::client {
namespace {

const std::string kStarsLink = "dbs/sky/colls/stars";

TEST(SessionPosition, ReadsAndWritesBothForms) {
  for (const std::string text : {"42", "-1#42", "3#42#1=40#7=41", "9007199254740991#42"}) {
    const auto position = SessionPosition::parse(text);
    ASSERT_TRUE(position) << text;
    EXPECT_EQ(position->text(), text);
    EXPECT_EQ(position->lsn, 42);
  }
  for (const std::string text : {"", "x", "1#", "#1", "1#2#3", "1#2#x=3", "4 2"}) {
    EXPECT_FALSE(SessionPosition::parse(text)) << text;
  }
}

TEST(SessionPosition, NeverGoesBack) {
  auto position = *SessionPosition::parse("1#42#1=40#2=41");
  position.advance(*SessionPosition::parse("1#41#1=45#2=39"));
  EXPECT_EQ(position.text(), "1#42#1=45#2=41");
  position.advance(*SessionPosition::parse("2#40#1=30#3=5"));
  EXPECT_EQ(position.text(), "2#42#1=45#3=5") << "the newer version says which regions there are";
}

TEST(SessionPosition, TakesTheVersionOfALaterLifeOfTheServer) {
  auto position = *SessionPosition::parse("6442450945#21");
  position.advance(*SessionPosition::parse("10737418241#1876951040000000"));
  EXPECT_EQ(position.text(), "10737418241#1876951040000000");
  position.advance(*SessionPosition::parse("6442450945#22"));
  EXPECT_EQ(position.text(), "10737418241#1876951040000000");
}

TEST(Sessions, RemembersTheLatestOfEachRange) {
  Sessions sessions;
  EXPECT_EQ(sessions.token(kStarsLink, ""), "");
  sessions.remember(kStarsLink, "rid", "0:-1#42");
  sessions.remember(kStarsLink, "rid", "1:-1#7");
  sessions.remember(kStarsLink, "rid", "0:-1#40");
  EXPECT_EQ(sessions.token(kStarsLink, ""), "0:-1#42,1:-1#7");
  EXPECT_EQ(sessions.token(kStarsLink, "1"), "1:-1#7");
  EXPECT_EQ(sessions.token(kStarsLink, "rid,1"), "1:-1#7");
  EXPECT_EQ(sessions.token("dbs/sky/colls/other", ""), "");
}

TEST(Sessions, TakesSeveralRangesAndSkipsNonsense) {
  Sessions sessions;
  sessions.remember(kStarsLink, "", "0:42, 1:-1#5,nonsense,2:x,:3");
  EXPECT_EQ(sessions.token(kStarsLink, ""), "0:42,1:-1#5");
}

TEST(Sessions, ParentCountsForItsChildren) {
  Sessions sessions;
  sessions.remember(kStarsLink, "rid", "0:-1#42");
  const std::vector<PartitionKeyRange> ranges = {{"1", {"", "1F"}, {"0"}},
                                                 {"2", {"1F", "FF"}, {"0"}}};
  EXPECT_EQ(sessions.token(kStarsLink, "1"), "0:-1#42") << "the server picks what concerns it";
  sessions.learn_parents(kStarsLink, ranges);
  EXPECT_EQ(sessions.token(kStarsLink, "1"), "1:-1#42");
  sessions.remember(kStarsLink, "rid", "1:-1#50");
  EXPECT_EQ(sessions.token(kStarsLink, "1"), "1:-1#50");
  EXPECT_EQ(sessions.token(kStarsLink, "2"), "2:-1#42");
}

TEST(Sessions, MergedRangeHasTheLatestOfItsParents) {
  Sessions sessions;
  sessions.remember(kStarsLink, "rid", "1:-1#50,2:-1#60");
  sessions.learn_parents(kStarsLink, std::vector<PartitionKeyRange>{{"3", {"", "FF"}, {"1", "2"}}});
  EXPECT_EQ(sessions.token(kStarsLink, "3"), "3:-1#60");
}

TEST(Sessions, AnotherContainerOfTheSameNameBeginsAnew) {
  Sessions sessions;
  sessions.remember(kStarsLink, "old", "0:-1#42");
  sessions.remember(kStarsLink, "new", "0:-1#2");
  EXPECT_EQ(sessions.token(kStarsLink, ""), "0:-1#2");
  sessions.remember(kStarsLink, "old", "0:-1#43");
  EXPECT_EQ(sessions.token(kStarsLink, ""), "0:-1#2") << "an answer of the old one that came late";
}

TEST(Sessions, ForgetsAContainerThatIsKnownToBeGone) {
  Sessions sessions;
  EXPECT_EQ(sessions.rid(kStarsLink), "");
  sessions.remember(kStarsLink, "old", "0:-1#42");
  EXPECT_EQ(sessions.rid(kStarsLink), "old");
  sessions.begin_anew(kStarsLink, "older", "old");
  EXPECT_EQ(sessions.token(kStarsLink, ""), "0:-1#42") << "that has long been known";
  sessions.begin_anew(kStarsLink, "old", "new");
  EXPECT_EQ(sessions.token(kStarsLink, ""), "");
  EXPECT_EQ(sessions.rid(kStarsLink), "new");
  sessions.remember(kStarsLink, "old", "0:-1#43");
  EXPECT_EQ(sessions.token(kStarsLink, ""), "") << "an answer of the old one that came late";
  sessions.remember(kStarsLink, "new", "0:-1#1");
  EXPECT_EQ(sessions.token(kStarsLink, ""), "0:-1#1");
}

}  // namespace
}  // namespace orrery::client
