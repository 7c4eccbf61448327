#include "storage/life.h"

#include <fstream>

#include <gmock/gmock.h>

#include "storage/keys.h"
#include "storage/records.h"
#include "storage/test_store.h"

namespace orrery::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr UnixSeconds kLifeNow = 1'790'000'000;

class LifeTest : public ::testing::Test {
 protected:
  void put_head(std::uint32_t partition, Lsn lsn) {
    Head head;
    head.lsn = lsn;
    Batch batch;
    batch.put(Family::Heads, partition_prefix({partition}), head.make());
    ASSERT_TRUE(commit(*store_, batch));
  }
  Head head_of(std::uint32_t partition) {
    std::string value;
    EXPECT_EQ(store_->get(Family::Heads, partition_prefix({partition}), value, Tier::Disk),
              Lookup::Found);
    return Head::parse(value).value_or(Head{});
  }
  Life current() {
    auto life = open_life(*store_, kLifeNow);
    EXPECT_TRUE(life) << life.error().message();
    return life.value_or(Life{});
  }
  Life begin(UnixSeconds now) {
    auto life = begin_life(*store_, now);
    EXPECT_TRUE(life) << life.error().message();
    return life.value_or(Life{});
  }
  std::string format_line() {
    std::ifstream in(directory_.path() / "format");
    std::string line;
    std::getline(in, line);
    return line;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_ = open_store(directory_.path());
};

TEST_F(LifeTest, ANewStoreIsInItsFirstLifeAndStaysInIt) {
  const Life first = current();
  EXPECT_EQ(first.number, 1u);
  EXPECT_EQ(first.first_lsn, Lsn{1});
  EXPECT_NE(first.id, Life::Id{});
  EXPECT_THAT(first.text(), ::testing::MatchesRegex("1-[0-9a-f]{32}"));
  store_.reset();
  store_ = open_store(directory_.path());
  EXPECT_EQ(current(), first);
  // Versions that know nothing of lives may still open it.
  EXPECT_EQ(format_line(), "orrery store format 1");
}

TEST_F(LifeTest, ANewLifeLiftsEveryHeadAndNotesTheGap) {
  const Life first = current();
  put_head(1, Lsn{11});
  put_head(7, Lsn{200});
  const Life life = begin(kLifeNow);
  EXPECT_EQ(life.number, 2u);
  EXPECT_NE(life.id, first.id);
  EXPECT_EQ(life.first_lsn, Lsn{kLifeNow * kLsnsPerSecondMax});
  EXPECT_EQ(current(), life);
  for (const auto& [partition, ended] : {std::pair{1u, Lsn{11}}, std::pair{7u, Lsn{200}}}) {
    const Head head = head_of(partition);
    EXPECT_EQ(head.lsn, life.first_lsn);
    EXPECT_THAT(*head.gaps, ElementsAre(LsnGap{ended, life.first_lsn}));
  }
  EXPECT_EQ(format_line(), "orrery store format 2");
  store_.reset();
  store_ = open_store(directory_.path());
  EXPECT_EQ(current(), life);
}

TEST_F(LifeTest, TheSameCopyPutBackTwiceBeginsAboveItsFirstTime) {
  put_head(1, Lsn{11});
  TemporaryDirectory other;
  std::filesystem::remove_all(other.path());
  store_.reset();
  copy_directory(directory_.path(), other.path());
  store_ = open_store(directory_.path());
  const Life once = begin(kLifeNow);
  store_ = open_store(other.path());
  const Life again = begin(kLifeNow + 1);
  EXPECT_NE(once.id, again.id);
  // The LSNs that the first one may have given out within a second.
  EXPECT_GE(again.first_lsn.value, once.first_lsn.value + kLsnsPerSecondMax);
  store_.reset();
}

TEST_F(LifeTest, HeadsRiseThoughTheClockStandsStillOrIsWrong) {
  put_head(1, Lsn{11});
  Lsn before = begin(kLifeNow).first_lsn;
  for (const UnixSeconds now : {kLifeNow, UnixSeconds{0}, UnixSeconds{-5}, UnixSeconds{1} << 40}) {
    const Lsn after = begin(now).first_lsn;
    EXPECT_EQ(after.value, before.value + kLsnLiftMin);
    before = after;
  }
  EXPECT_EQ(head_of(1).gaps->size(), 5u);
  EXPECT_EQ(current().number, 6u);
}

TEST_F(LifeTest, AHeadThatWouldPassWhatClientsCanReadIsRefused) {
  put_head(1, Lsn{kLsnMax - kLsnLiftMin});
  const auto life = begin_life(*store_, kLifeNow);
  ASSERT_FALSE(life);
  EXPECT_THAT(life.error().message(), HasSubstr("orrery copy"));
  EXPECT_EQ(head_of(1).lsn, Lsn{kLsnMax - kLsnLiftMin});
  EXPECT_EQ(format_line(), "orrery store format 1");
}

TEST_F(LifeTest, ALifeOfALaterFormatIsRefused) {
  Batch batch;
  batch.put(Family::Catalog, kLifeKey, "\x09later");
  ASSERT_TRUE(commit(*store_, batch));
  EXPECT_FALSE(open_life(*store_, kLifeNow));
  EXPECT_FALSE(begin_life(*store_, kLifeNow));
}

}  // namespace
}  // namespace orrery::storage
