#include "index/advisor.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::index {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class AdvisorTest : public testing::Test {
 protected:
  struct Query {
    std::vector<std::string> helpful = {"/a"};
    std::uint64_t documents_read = 5000;
    std::uint64_t rows = 10;
    std::uint64_t documents = 5000;
    std::size_t indexes = 0;
    std::string container = "one";
    std::vector<std::string> automatic = {};
    bool is_read_only = false;
  };
  static Advisor::Observation observation_of(const Query& query) {
    Advisor::Observation observation{.container = query.container,
                                     .documents = query.documents,
                                     .helpful = {},
                                     .indexes = std::max(query.indexes, query.automatic.size()),
                                     .documents_read = query.documents_read,
                                     .rows = query.rows,
                                     .automatic = query.automatic,
                                     .is_read_only = query.is_read_only};
    for (const auto& text : query.helpful) {
      observation.helpful.push_back(IndexSpec::parse(text).value());
    }
    return observation;
  }
  std::vector<std::string> after(const Query& query) {
    const auto advice = advisor.observe(observation_of(query));
    dropped = advice.drop;
    return texts_of(advice.build);
  }
  static std::vector<std::string> texts_of(const std::vector<IndexSpec>& specs) {
    std::vector<std::string> texts;
    for (const IndexSpec& spec : specs) texts.push_back(spec.text());
    return texts;
  }
  /// A query for each of the paths /<prefix>0, /<prefix>1…, all of which are then there.
  std::vector<std::string> squat(std::size_t count, bool is_read_only) {
    std::vector<std::string> built;
    for (std::size_t i = 0; i < count; ++i) {
      const auto told = after({.helpful = {"/junk" + std::to_string(i)},
                               .automatic = built,
                               .is_read_only = is_read_only});
      built.insert(built.end(), told.begin(), told.end());
    }
    return built;
  }

  ManualClock clock{1'743'508'800};
  Advisor advisor{clock};
  std::vector<std::string> dropped;  // By the last advice.
};

TEST_F(AdvisorTest, OneQueryThatReadsMuchForLittleIsEnough) {
  EXPECT_THAT(after({.helpful = {"/a", "/b ASC,/c DESC"}}), ElementsAre("/a", "/b ASC,/c DESC"));
}

TEST_F(AdvisorTest, RowsThatAreAGoodPartOfWhatIsReadNeedNoIndex) {
  EXPECT_THAT(after({.documents_read = 5000, .rows = 501}), IsEmpty());
  EXPECT_THAT(after({.documents_read = 5000, .rows = 500}), ElementsAre("/a"));
}

TEST_F(AdvisorTest, SmallContainersNeedNoIndex) {
  EXPECT_THAT(after({.documents_read = 999, .rows = 0, .documents = 999}), IsEmpty());
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(after({.documents_read = 999, .rows = 0, .documents = 999}), IsEmpty());
  }
}

TEST_F(AdvisorTest, ManyQueriesThatReadLessAddUp) {
  const Query query{.documents_read = 900, .rows = 1};
  for (int i = 0; i < 11; ++i) EXPECT_THAT(after(query), IsEmpty()) << i;
  EXPECT_THAT(after(query), ElementsAre("/a"));
}

TEST_F(AdvisorTest, WhatWasLongAgoDoesNotCount) {
  const Query query{.documents_read = 900, .rows = 1};
  for (int i = 0; i < 11; ++i) EXPECT_THAT(after(query), IsEmpty());
  clock.advance(1h);
  EXPECT_THAT(after(query), IsEmpty());
}

TEST_F(AdvisorTest, AWishIsToldAgainOnlyAfterAWhile) {
  EXPECT_THAT(after({}), ElementsAre("/a"));
  EXPECT_THAT(after({}), IsEmpty());
  EXPECT_THAT(after({.container = "other"}), ElementsAre("/a"));
  clock.advance(1min);
  EXPECT_THAT(after({}), ElementsAre("/a")) << "it has not been granted";
}

TEST_F(AdvisorTest, AContainerHasOnlySoManyIndexes) {
  const std::size_t max = AdvisorLimits{}.indexes_max;
  EXPECT_THAT(after({.indexes = max}), IsEmpty());
  EXPECT_THAT(after({.helpful = {"/a", "/b"}, .indexes = max - 1}), ElementsAre("/a"));
}

TEST_F(AdvisorTest, AContainerThatIsMadeAnewBeginsAnew) {
  EXPECT_THAT(after({}), ElementsAre("/a"));
  advisor.forget("one");
  advisor.forget("never seen");
  EXPECT_THAT(after({}), ElementsAre("/a"));
}

TEST_F(AdvisorTest, NoMoreThanSoMuchIsRemembered) {
  Advisor small(clock, {.containers_max = 2, .wishes_max = 2});
  const auto observe = [&](const std::string& container, const std::string& path) {
    clock.advance(1s);
    return small
        .observe({.container = container,
                  .documents = 5000,
                  .helpful = {IndexSpec::parse(path).value()},
                  .indexes = 0,
                  .documents_read = 5000,
                  .rows = 0})
        .build.size();
  };
  EXPECT_EQ(observe("one", "/a"), 1U);
  EXPECT_EQ(observe("one", "/b"), 1U);
  EXPECT_EQ(observe("one", "/c"), 1U);
  EXPECT_EQ(observe("one", "/b"), 0U);
  EXPECT_EQ(observe("one", "/a"), 1U) << "forgotten, so it is told again";
  EXPECT_EQ(observe("two", "/a"), 1U);
  EXPECT_EQ(observe("three", "/a"), 1U);
  EXPECT_EQ(observe("two", "/a"), 0U);
  EXPECT_EQ(observe("one", "/a"), 1U) << "forgotten";
}

TEST_F(AdvisorTest, OfManyThreadsOneIsTold) {
  std::atomic<std::size_t> told = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { told += advisor.observe(observation_of({})).build.size(); });
    }
  }
  EXPECT_EQ(told, 1U);
}

TEST_F(AdvisorTest, ReadOnlyKeysGetAShareOfTheIndexes) {
  const auto junk = squat(100, true);
  EXPECT_EQ(junk.size(), AdvisorLimits{}.read_only_max);
  EXPECT_THAT(after({.automatic = junk}), ElementsAre("/a")) << "there is room for others";
  EXPECT_THAT(dropped, IsEmpty());
}

TEST_F(AdvisorTest, AnIndexThatIsNotUsedGivesWayToABetterOne) {
  auto there = squat(100, false);
  ASSERT_EQ(there.size(), AdvisorLimits{}.indexes_max);
  EXPECT_THAT(after({.automatic = there}), IsEmpty()) << "all of them are new";
  clock.advance(5min);
  advisor.used("one", std::vector<std::string>{"/junk7"}, 1'000'000);
  clock.advance(5min);
  EXPECT_THAT(after({.documents_read = 50'000, .automatic = there}), ElementsAre("/a"));
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_NE(dropped[0], "/junk7");
}

TEST_F(AdvisorTest, AnIndexGivesWayOnlyToOneThatIsMuchBetter) {
  const auto there = squat(100, false);
  for (const auto& each : there) advisor.used("one", std::vector<std::string>{each}, 100'000);
  clock.advance(10min);
  EXPECT_THAT(after({.documents_read = 100'000, .automatic = there}), IsEmpty());
  EXPECT_THAT(after({.documents_read = 100'000, .automatic = there}), ElementsAre("/a"))
      << "what it would have saved adds up";
}

TEST_F(AdvisorTest, OneIndexGivesWayAtATime) {
  const auto there = squat(100, false);
  clock.advance(10min);
  EXPECT_THAT(after({.helpful = {"/a", "/b"}, .documents_read = 50'000, .automatic = there}),
              ElementsAre("/a"));
  EXPECT_EQ(dropped.size(), 1U);
}

TEST_F(AdvisorTest, AnIndexOfReadOnlyKeysGivesWayHoweverMuchItIsUsed) {
  auto there = squat(100, true);
  for (std::size_t i = 0; there.size() < AdvisorLimits{}.indexes_max; ++i) {
    there.push_back(after({.helpful = {"/own" + std::to_string(i)}, .automatic = there}).at(0));
  }
  clock.advance(1min);
  for (const auto& each : there) advisor.used("one", std::vector<std::string>{each}, 1'000'000);
  EXPECT_THAT(after({.automatic = there, .is_read_only = true}), IsEmpty());
  EXPECT_THAT(after({.automatic = there}), ElementsAre("/a"));
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_TRUE(dropped[0].starts_with("/junk")) << dropped[0];
}

TEST_F(AdvisorTest, ReadOnlyKeysDoNotMakeItForgetWhatOthersWant) {
  const Query modest{.documents_read = 900, .rows = 1};
  for (int i = 0; i < 11; ++i) EXPECT_THAT(after(modest), IsEmpty());
  clock.advance(1s);
  for (std::size_t i = 0; i < 2 * AdvisorLimits{}.wishes_max; ++i) {
    after({.helpful = {"/junk" + std::to_string(i)},
           .documents_read = 900,
           .rows = 1,
           .is_read_only = true});
  }
  EXPECT_THAT(after(modest), ElementsAre("/a"));
}

TEST_F(AdvisorTest, WhatIsAskedForIsBuiltAtOnceAsFarAsThereIsRoom) {
  const Query small{.documents_read = 0, .documents = 10};
  EXPECT_THAT(texts_of(advisor.request(observation_of(small), 64).build), ElementsAre("/a"));
  EXPECT_THAT(texts_of(advisor.request(observation_of(small), 64).build), ElementsAre("/a"))
      << "it is on its way";
  const auto junk = squat(100, true);
  const Query another{.helpful = {"/b"}, .automatic = junk, .is_read_only = true};
  EXPECT_THAT(advisor.request(observation_of(another), 64).build, IsEmpty());
  const Query full{.helpful = {"/c"}, .indexes = 64};
  EXPECT_THAT(advisor.request(observation_of(full), 64).build, IsEmpty());
}

}  // namespace
}  // namespace orrery::index
