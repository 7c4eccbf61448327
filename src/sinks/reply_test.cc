#include "sinks/reply.h"

#include <vector>

#include <gtest/gtest.h>

namespace orrery::sinks {
namespace {

using processor::Outcome;

TEST(Reply, SaysWhatBecameOfABatch) {
  EXPECT_TRUE(parse_reply("{}", 5)->is_done());
  EXPECT_TRUE(parse_reply(R"({"done":true})", 5)->is_done());
  EXPECT_TRUE(parse_reply(R"({"done_until":5})", 5)->is_done());
  const auto until = parse_reply(" {\"done_until\": 3}\n", 5);
  EXPECT_EQ(until->outcome.kind, Outcome::Kind::DoneUntil);
  EXPECT_EQ(until->outcome.count, 3u);
  const auto later = parse_reply(R"({"retry_after_ms":500,"reason":"busy"})", 5);
  EXPECT_EQ(later->kind, Delivery::Kind::Later);
  EXPECT_EQ(later->after.count(), 500);
  EXPECT_EQ(later->reason, "busy");
  const auto reject = parse_reply(R"({"reject":[4,0,4],"reason":"bad"})", 5);
  EXPECT_EQ(reject->outcome.kind, Outcome::Kind::Reject);
  EXPECT_EQ(reject->outcome.rejected, (std::vector<std::size_t>{0, 4}));
  EXPECT_EQ(reject->outcome.reason, "bad");
  EXPECT_TRUE(parse_reply(R"({"reject":[]})", 5)->is_done());
  EXPECT_EQ(parse_reply(R"({"stop":true})", 5)->outcome.kind, Outcome::Kind::Stop);
  EXPECT_EQ(parse_reply(R"({"failed":true})", 5)->kind, Delivery::Kind::Failed);
  EXPECT_EQ(parse_reply(R"({"done_until":0})", 5)->kind, Delivery::Kind::Failed);
}

TEST(Reply, IsNothingElse) {
  EXPECT_FALSE(parse_reply("", 5));
  EXPECT_FALSE(parse_reply("12", 5));
  EXPECT_FALSE(parse_reply("done", 5));
  EXPECT_FALSE(parse_reply("[]", 5));
  // A document that a command prints, even one with a familiar member.
  EXPECT_FALSE(parse_reply(R"({"id":"a","done":true})", 5));
}

TEST(Reply, ThatCantBeMeantIsAFailure) {
  for (const char* text :
       {R"({"done_until":6})", R"({"done_until":-1})", R"({"done_until":"3"})", R"({"reject":[5]})",
        R"({"reject":3})", R"({"reject":[1.5]})", R"({"retry_after_ms":"soon"})"}) {
    EXPECT_EQ(parse_reply(text, 5)->kind, Delivery::Kind::Failed) << text;
  }
}

}  // namespace
}  // namespace orrery::sinks
