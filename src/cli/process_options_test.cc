#include "cli/process_options.h"

#include <gtest/gtest.h>

namespace orrery::cli {
namespace {

using std::chrono::milliseconds;

TEST(Duration, IsANumberWithAUnit) {
  EXPECT_EQ(*parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(*parse_duration("20s"), milliseconds(20'000));
  EXPECT_EQ(*parse_duration("5m"), milliseconds(300'000));
  EXPECT_EQ(*parse_duration("2h"), milliseconds(7'200'000));
  EXPECT_EQ(*parse_duration("3"), milliseconds(3000));
  EXPECT_EQ(*parse_duration("0"), milliseconds(0));
  for (const char* text : {"", "s", "-1s", "1.5s", "1 s", "10 days", "99999999999999999999"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Header, IsNameAndValue) {
  EXPECT_EQ(*parse_header("Authorization: Bearer a:b"),
            std::pair(std::string("Authorization"), std::string("Bearer a:b")));
  for (const char* line : {"", "nothing", ": value", "na me: value", "a: b\r\nc: d"}) {
    EXPECT_FALSE(parse_header(line)) << line;
  }
}

TEST(CheckpointFrequency, IsACountOrADuration) {
  EXPECT_EQ(parse_checkpoint_frequency("1000")->processed_document_count, 1000u);
  EXPECT_EQ(parse_checkpoint_frequency("30s")->time_interval, milliseconds(30'000));
  EXPECT_FALSE(parse_checkpoint_frequency("")->processed_document_count);
  for (const char* text : {"0", "0s", "often", "-5"}) {
    EXPECT_FALSE(parse_checkpoint_frequency(text)) << text;
  }
}

TEST(ProcessOptions, RefuseWhatContradictsItself) {
  ProcessOptions options;
  EXPECT_FALSE(options.check());
  options.exec = "cat";
  EXPECT_TRUE(options.check());
  options.webhook = "http://h";
  EXPECT_FALSE(options.check());
  options.webhook.clear();
  options.max_attempts = 3;
  EXPECT_FALSE(options.check());
  options.dead_letters = "a/b";
  EXPECT_TRUE(options.check());
  options.exec.clear();
  options.jsonl = "somewhere";
  EXPECT_FALSE(options.check());
  options.dead_letters.clear();
  options.max_attempts.reset();
  EXPECT_TRUE(options.check());
}

TEST(ProcessOptions, BecomeThoseOfTheProcessor) {
  ProcessOptions options;
  options.dead_letters = "letters.jsonl";
  EXPECT_EQ(options.host_options()->retry.max_attempts, 5);
  options.jsonl = "somewhere";
  EXPECT_TRUE(options.host_options()->checkpoint_frequency.explicit_checkpoint);
  options.from = "1970-01-02";
  EXPECT_EQ(options.feed_options()->start_time->time_since_epoch(), std::chrono::hours(24));
  options.from = "yesterday";
  EXPECT_FALSE(options.feed_options());
}

}  // namespace
}  // namespace orrery::cli
