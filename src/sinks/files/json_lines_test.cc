#include "sinks/files/json_lines.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orrery/exception.h"
#include "sinks/test_observer_context.h"

namespace orrery::sinks {
namespace {

namespace fs = std::filesystem;
using processor::Outcome;

class JsonLinesTest : public testing::Test {
 protected:
  JsonLinesTest()
      : directory(fs::temp_directory_path() /
                  fmt::format("orrery-jsonl-{:x}", std::random_device()())) {
    fs::create_directories(directory);
    options.directory = directory;
    options.file_documents_max = 2;
  }
  ~JsonLinesTest() override { fs::remove_all(directory); }

  std::unique_ptr<JsonLinesSink> open(std::uint64_t epoch, const std::string& position) {
    auto observer = std::make_unique<JsonLinesSink>(
        options, stats,
        [this](const std::string&, const std::string& problem) { problems.push_back(problem); });
    TestObserverContext context(epoch, position, position);
    observer->open(context);
    return observer;
  }

  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.is_directory()) continue;
      std::ifstream file(entry.path());
      found[entry.path().filename().string()] =
          std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return found;
  }

  fs::path directory;
  JsonLinesOptions options;
  std::shared_ptr<SinkStats> stats = std::make_shared<SinkStats>();
  std::vector<std::string> problems;
};

using Files = std::map<std::string, std::string>;

TEST_F(JsonLinesTest, AFileIsThereWhenItIsFullAndThenCheckpointed) {
  auto observer = open(1, "");
  TestObserverContext first(1, "", "\"5\"");
  EXPECT_EQ(observer->process(first, page_of({"1"})).kind, Outcome::Kind::Done);
  EXPECT_EQ(files(), Files{});
  EXPECT_TRUE(first.checkpoints.empty());
  TestObserverContext second(1, "\"5\"", "\"9\"");
  second.on_checkpoint = [this] { EXPECT_EQ(files().size(), 1u); };
  EXPECT_EQ(observer->process(second, page_of({"2"})).kind, Outcome::Kind::Done);
  EXPECT_EQ(second.checkpoints, std::vector<std::string>{"\"9\""});
  EXPECT_EQ(files(), (Files{{"7-00000000000000000000.jsonl", "1\n2\n"}}));
}

TEST_F(JsonLinesTest, AFileIsEndedWhenNothingIsLeft) {
  auto observer = open(1, "");
  TestObserverContext batch(1, "", "\"5\"");
  observer->process(batch, page_of({"1"}));
  TestObserverContext idle(1, "\"8\"", "\"8\"");
  observer->idle(idle);
  EXPECT_EQ(idle.checkpoints, std::vector<std::string>{"\"8\""});
  EXPECT_EQ(files(), (Files{{"7-00000000000000000000.jsonl", "1\n"}}));
  observer->idle(idle);
  EXPECT_EQ(idle.checkpoints.size(), 1u);
}

TEST_F(JsonLinesTest, AFileWhosePositionWasNotWrittenIsTakenAwayByTheNextOwner) {
  // The lease stands at 3; the first batch begins at 4, since there was nothing in between.
  TestObserverContext lost(1, "\"4\"", "\"9\"");
  lost.on_checkpoint = [&lost] {
    lost.request_stop();
    throw client::CosmosException("the lease is lost", {});
  };
  EXPECT_EQ(open(1, "\"3\"")->process(lost, page_of({"1", "2"})).kind, Outcome::Kind::Stop);
  EXPECT_EQ(files().size(), 1u);

  auto next = open(2, "\"3\"");
  EXPECT_EQ(files(), Files{});
  TestObserverContext again(2, "\"3\"", "\"12\"");
  next->process(again, page_of({"1", "2", "3"}));
  EXPECT_EQ(files(), (Files{{"7-00000000000000000003.jsonl", "1\n2\n3\n"}}));
}

TEST_F(JsonLinesTest, AFileWhosePositionWasWrittenStays) {
  TestObserverContext batch(1, "\"4\"", "\"9\"");
  open(1, "\"3\"")->process(batch, page_of({"1", "2"}));
  open(2, "\"9\"");
  open(3, "\"11\"");
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(JsonLinesTest, APartThatWasNotCompletedIsNeverSeen) {
  {
    auto observer = open(1, "");
    TestObserverContext batch(1, "", "\"5\"");
    observer->process(batch, page_of({"1"}));
  }
  EXPECT_EQ(files(), Files{});
  fs::create_directories(directory / ".orrery" / "7" / "2");
  std::ofstream(directory / ".orrery" / "7" / "2" / "part") << "half a li";
  open(3, "");
  EXPECT_EQ(files(), Files{});
  EXPECT_FALSE(fs::exists(directory / ".orrery" / "7" / "2"));
}

TEST_F(JsonLinesTest, AnOwnerWhoDiesWhileItTakesOverIsMadeUpFor) {
  TestObserverContext lost(1, "\"4\"", "\"9\"");
  lost.on_checkpoint = [&lost] {
    lost.request_stop();
    throw client::CosmosException("the lease is lost", {});
  };
  open(1, "\"4\"")->process(lost, page_of({"1", "2"}));
  const fs::path place = directory / ".orrery" / "7" / "1";
  fs::rename(place, place.string() + ".closed");
  open(3, "\"4\"");
  EXPECT_EQ(files(), Files{});
}

TEST_F(JsonLinesTest, AnOwnerThatLostTheLeaseUnknowinglyWritesNothing) {
  auto old = open(1, "");
  TestObserverContext first(1, "", "\"5\"");
  old->process(first, page_of({"1"}));
  auto young = open(2, "");
  TestObserverContext taken(2, "", "\"9\"");
  young->process(taken, page_of({"1", "2", "3"}));

  TestObserverContext late(1, "\"5\"", "\"7\"");
  EXPECT_EQ(old->process(late, page_of({"2"})).kind, Outcome::Kind::Stop);
  EXPECT_TRUE(late.checkpoints.empty());
  EXPECT_EQ(files(), (Files{{"7-00000000000000000000.jsonl", "1\n2\n3\n"}}));
  EXPECT_THROW(open(1, ""), std::runtime_error);
}

TEST_F(JsonLinesTest, AnEndPutsTheLastBatchInItsPlace) {
  auto observer = open(1, "");
  TestObserverContext batch(1, "", "\"5\"");
  batch.request_stop();
  observer->process(batch, page_of({"1"}));
  EXPECT_EQ(files().size(), 1u);
}

TEST(FileName, SortsByPosition) {
  EXPECT_EQ(file_name_of("0", ""), "0-00000000000000000000.jsonl");
  EXPECT_EQ(file_name_of("0", "\"4711\""), "0-00000000000000004711.jsonl");
  EXPECT_EQ(file_name_of("05C1-0F", "\"c:1/2\""), "05C1-0F-c%3A1%2F2.jsonl");
}

}  // namespace
}  // namespace orrery::sinks
