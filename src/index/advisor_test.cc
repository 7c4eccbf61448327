#include "index/advisor.h"

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
  };
  std::vector<std::string> after(const Query& query) {
    Advisor::Observation observation{.container = query.container,
                                     .documents = query.documents,
                                     .helpful = {},
                                     .indexes = query.indexes,
                                     .documents_read = query.documents_read,
                                     .rows = query.rows};
    for (const auto& text : query.helpful) {
      observation.helpful.push_back(IndexSpec::parse(text).value());
    }
    std::vector<std::string> texts;
    for (const IndexSpec& spec : advisor.saw(observation)) texts.push_back(spec.text());
    return texts;
  }

  ManualClock clock{1'743'508'800};
  Advisor advisor{clock};
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
  const auto saw = [&](const std::string& container, const std::string& path) {
    clock.advance(1s);
    return small
        .saw({.container = container,
              .documents = 5000,
              .helpful = {IndexSpec::parse(path).value()},
              .indexes = 0,
              .documents_read = 5000,
              .rows = 0})
        .size();
  };
  EXPECT_EQ(saw("one", "/a"), 1U);
  EXPECT_EQ(saw("one", "/b"), 1U);
  EXPECT_EQ(saw("one", "/c"), 1U);
  EXPECT_EQ(saw("one", "/b"), 0U);
  EXPECT_EQ(saw("one", "/a"), 1U) << "forgotten, so it is told again";
  EXPECT_EQ(saw("two", "/a"), 1U);
  EXPECT_EQ(saw("three", "/a"), 1U);
  EXPECT_EQ(saw("two", "/a"), 0U);
  EXPECT_EQ(saw("one", "/a"), 1U) << "forgotten";
}

TEST_F(AdvisorTest, OfManyThreadsOneIsTold) {
  std::atomic<std::size_t> told = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { told += after({}).size(); });
  }
  EXPECT_EQ(told, 1U);
}

}  // namespace
}  // namespace orrery::index
