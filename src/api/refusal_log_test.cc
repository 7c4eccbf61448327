#include "api/refusal_log.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::api {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class RefusalLogTest : public testing::Test {
 protected:
  void add(std::string_view target, std::string_view reason = "No.") {
    log->add({.client = "127.0.0.1:4711",
              .method = "GET",
              .target = target,
              .status = 401,
              .reason = reason,
              .activity_id = "a-b"});
  }

  ManualClock clock{1'000};
  std::vector<std::string> lines;
  std::unique_ptr<RefusalLog> log = std::make_unique<RefusalLog>(
      clock, [this](const std::string& line) { lines.push_back(line); });
};

TEST_F(RefusalLogTest, SaysWhoWantedWhatAndWhyNot) {
  add("/dbs/d?secret=1");
  log->add({.client = "[::1]:80",
            .method = {},
            .target = {},
            .status = 429,
            .substatus = 3092,
            .reason = "Full.",
            .activity_id = "c"});
  EXPECT_THAT(lines, ElementsAre("refused 127.0.0.1:4711 GET /dbs/d: 401 No. (activity a-b)",
                                 "refused [::1]:80: 429/3092 Full. (activity c)"));
}

TEST_F(RefusalLogTest, ClientsCannotWriteLinesOfTheirOwn) {
  add("/a\n2026 error all is lost", std::string("x\r\ny\x1b[31m"));
  EXPECT_THAT(lines, ElementsAre("refused 127.0.0.1:4711 GET /a?2026 error all is lost: 401 "
                                 "x??y?[31m (activity a-b)"));
}

TEST_F(RefusalLogTest, LongTextsAreCut) {
  add("/" + std::string(5'000, 'p'), std::string(5'000, 'r'));
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_LT(lines[0].size(), 700u);
}

TEST_F(RefusalLogTest, AFloodIsCountedInsteadOfWritten) {
  for (int i = 0; i < 1'000; ++i) add("/");
  EXPECT_THAT(lines, SizeIs(RefusalLog::kLinesPerSecond));
  clock.advance(std::chrono::seconds(1));
  add("/next");
  ASSERT_THAT(lines, SizeIs(RefusalLog::kLinesPerSecond + 2));
  EXPECT_EQ(lines[RefusalLog::kLinesPerSecond],
            "refused 990 more requests that had no line of their own");
}

TEST_F(RefusalLogTest, TheCountIsToldAtTheEnd) {
  for (int i = 0; i < 12; ++i) add("/");
  log.reset();
  EXPECT_EQ(lines.back(), "refused 2 more requests that had no line of their own");
}

}  // namespace
}  // namespace orrery::api
