// Readers of a store that was put back from a copy: see storage/life.h.
#include <gmock/gmock.h>

#include "feed/test_feed.h"

namespace orrery::feed {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<std::string>;

class LifeTest : public FeedTest {
 protected:
  void create_all(std::initializer_list<const char*> ids) {
    for (const char* id : ids) create(id);
  }
};

TEST_F(LifeTest, AReaderBeyondTheCopysEndSeesAllThatIsNew) {
  create_all({"a", "b", "c"});
  begin_life();
  const Page nothing = read(Lsn{30});
  EXPECT_TRUE(nothing.caught_up);
  EXPECT_EQ(nothing.count, 0u);
  EXPECT_EQ(nothing.position, part->head());
  create_all({"d", "e"});
  const Page page = read(Lsn{30});
  EXPECT_EQ(ids(page), (Ids{"d", "e"}));
  EXPECT_EQ(page.position, part->head());
  EXPECT_EQ(ids(read(Lsn{3})), (Ids{"c", "d", "e"}));
  EXPECT_EQ(ids(read(Lsn{})), (Ids{"a", "b", "c", "d", "e"}));
}

TEST_F(LifeTest, OnlyAPositionThatTheCopyDoesNotHaveIsWarnedOf) {
  create_all({"a", "b", "c"});
  begin_life();
  const Lsn begun = part->head();
  create("d");
  const auto warned = read(Lsn{5}).ended_life;
  ASSERT_TRUE(warned);
  EXPECT_EQ(warned->position, Lsn{5});
  EXPECT_EQ(warned->ended, Lsn{4});
  EXPECT_TRUE(read(Lsn{begun.value - 1}).ended_life);
  for (const Lsn position : {Lsn{}, Lsn{2}, Lsn{4}, begun, part->head()}) {
    EXPECT_FALSE(read(position).ended_life) << position.value;
  }
  EXPECT_FALSE(reader.read(*part, request(next(part->head()))).has_value());
}

TEST_F(LifeTest, PagesEndAtTheSamePlacesAndNeverInsideTheGap) {
  create_all({"a", "b", "c"});
  begin_life();
  const Lsn begun = part->head();
  create_all({"d", "e"});
  PageRequest one = request();
  one.count_max = 1;
  std::vector<std::uint64_t> positions;
  for (Page page = read(one); page.count > 0; page = read(one)) {
    positions.push_back(page.position.value);
    one.after = page.position;
  }
  EXPECT_THAT(positions, ElementsAre(2, 3, 4, begun.value + 1, begun.value + 2));
}

TEST_F(LifeTest, LagCountsChangesAndNotTheGap) {
  create_all({"a", "b", "c"});
  begin_life();
  create_all({"d", "e"});
  for (const auto& [after, lsns, items] :
       {std::tuple{Lsn{1}, 5u, 5u}, {Lsn{4}, 2u, 2u}, {Lsn{30}, 2u, 2u}, {part->head(), 0u, 0u}}) {
    const auto lag = reader.lag(*part, request(after));
    ASSERT_TRUE(lag);
    EXPECT_EQ(lag->lsns, lsns) << after.value;
    EXPECT_EQ(lag->items, items) << after.value;
  }
}

TEST_F(LifeTest, ATimeIsFoundOnEitherSideOfTheGap) {
  create_all({"a", "b"});
  const UnixSeconds early = home.clock().unix_seconds();
  home.advance(std::chrono::seconds(10));
  create("c");
  begin_life();
  const Lsn begun = part->head();
  home.advance(std::chrono::seconds(10));
  create("d");
  EXPECT_EQ(reader.find_time(*part, request(), early)->position, Lsn{3});
  EXPECT_EQ(reader.find_time(*part, request(), early + 10)->position, begun);
  EXPECT_FALSE(reader.find_time(*part, request(), early + 20)->found);
}

TEST_F(LifeTest, AllVersionsGoOnFromAPositionThatTheCopyDoesNotHave) {
  keep({.history = storage::RetentionSettings::History::All});
  const Lsn kept = create("a");
  begin_life();
  upsert("a");
  remove("a");
  PageRequest all = request(Lsn{kept.value + 20});
  all.mode = Mode::AllVersions;
  const Page page = read(all);
  EXPECT_EQ(page.count, 2u);
  EXPECT_TRUE(page.ended_life);
  all.after = next(part->head());
  EXPECT_FALSE(reader.read(*part, all).has_value());
}

TEST_F(LifeTest, AMapOfTheLiveVersionsSpansTheGap) {
  create_all({"a", "b", "c"});
  begin_life();
  for (int i = 0; i < 100; ++i) upsert("a");
  create("d");
  ASSERT_TRUE(live_maps.build(part->number()));
  EXPECT_EQ(ids(read(Lsn{})), (Ids{"b", "c", "a", "d"}));
  EXPECT_EQ(ids(read(Lsn{4})), (Ids{"a", "d"}));
  EXPECT_EQ(ids(read(Lsn{77})), (Ids{"a", "d"}));
}

TEST_F(LifeTest, TheFeedOfAKeySpansTheGap) {
  for (int i = 0; i < 200; ++i) create(std::to_string(i), i % 50 == 0 ? "few" : "many");
  begin_life();
  for (int i = 200; i < 400; ++i) create(std::to_string(i), i % 50 == 0 ? "few" : "many");
  for (const Lsn after : {Lsn{}, Lsn{100}, Lsn{201}, Lsn{300}}) {
    PageRequest few = request(after);
    few.scope = scope_of_key("few");
    Ids wanted;
    for (int i = 0; i < 400; i += 50) {
      if (i >= 200 || after.value < static_cast<std::uint64_t>(i) + 2) {
        wanted.push_back(std::to_string(i));
      }
    }
    EXPECT_EQ(ids(read(few)), wanted) << after.value;
  }
}

}  // namespace
}  // namespace orrery::feed
