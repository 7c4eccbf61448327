#include "processor/hosting/lanes.h"

#include <gtest/gtest.h>

namespace orrery::processor {
namespace {

using client::ChangeFeedMode;

TEST(DocumentReader, FindsKeyLsnAndId) {
  const DocumentReader reader({"/home/city", "/zip"}, ChangeFeedMode::LatestVersion);
  const std::string document = R"({"id":"a","home":{"city":"Bern"},"zip":3000,"_lsn":17})";
  EXPECT_EQ(reader.key_of(document), R"("Bern",3000,)");
  EXPECT_EQ(reader.lsn_of(document), 17u);
  EXPECT_EQ(reader.id_of(document), "a");
}

TEST(DocumentReader, MissingPartsOfAKeyAreAValueToo) {
  const DocumentReader reader({"/a", "/b"}, ChangeFeedMode::LatestVersion);
  EXPECT_EQ(reader.key_of(R"({"b":1})"), reader.key_of(R"({"b":1,"c":2})"));
  EXPECT_NE(reader.key_of(R"({"b":1})"), reader.key_of(R"({"a":1})"));
  EXPECT_EQ(reader.lsn_of(R"({"b":1})"), std::nullopt);
}

TEST(DocumentReader, WithAllVersionsTheDocumentIsInside) {
  const DocumentReader reader({"/k"}, ChangeFeedMode::AllVersionsAndDeletes);
  const std::string created = R"({"current":{"id":"a","k":1},"metadata":{"lsn":5}})";
  const std::string deleted = R"({"current":{},"previous":{"id":"a","k":1},"metadata":{"lsn":6}})";
  EXPECT_EQ(reader.key_of(created), reader.key_of(deleted));
  EXPECT_EQ(reader.lsn_of(deleted), 6u);
  EXPECT_EQ(reader.id_of(deleted), "a");
}

TEST(Watermark, MovesOnlyWithTheOldestPage) {
  Watermark mark;
  const auto first = mark.begin("1", 2, 10);
  const auto second = mark.begin("2", 1, 5);
  mark.part_done(second);
  EXPECT_FALSE(mark.take_progress());
  mark.part_done(first);
  EXPECT_FALSE(mark.take_progress());
  EXPECT_EQ(mark.open_pages(), 1u);
  mark.part_done(first);
  const auto progress = mark.take_progress();
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->position, "2");
  EXPECT_EQ(progress->documents, 15u);
  EXPECT_FALSE(mark.take_progress());
  EXPECT_EQ(mark.open_pages(), 0u);
}

TEST(Watermark, ARequestWaitsForTheOlderPages) {
  Watermark mark;
  const auto first = mark.begin("1", 1, 1);
  mark.part_done(mark.begin("2", 1, 1), true);
  EXPECT_FALSE(mark.take_progress());
  mark.part_done(first);
  EXPECT_TRUE(mark.take_progress()->checkpoint_requested);
  mark.part_done(mark.begin("3", 1, 1));
  EXPECT_FALSE(mark.take_progress()->checkpoint_requested);
}

TEST(Watermark, PagesKeepTheirPlaceWhileOthersGo) {
  Watermark mark;
  mark.part_done(mark.begin("1", 1, 1));
  const auto second = mark.begin("2", 1, 1);
  EXPECT_EQ(mark.take_progress()->position, "1");
  const auto third = mark.begin("3", 1, 1);
  mark.part_done(third);
  mark.part_done(second);
  EXPECT_EQ(mark.take_progress()->position, "3");
}

}  // namespace
}  // namespace orrery::processor
