#include "client/transport/response_parser.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

/// Hands `text` over in pieces of at most `size` bytes.
Result<> feed(ResponseParser& parser, std::string_view text, std::size_t size = 1 << 20) {
  while (!text.empty()) {
    const auto room = parser.room();
    EXPECT_FALSE(room.empty());
    const std::size_t count = std::min({room.size(), text.size(), size});
    std::ranges::copy(text.substr(0, count), room.begin());
    text.remove_prefix(count);
    ORRERY_TRY(parser.received(count));
  }
  return {};
}

class ResponseParserTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  ResponseParser parser;
};

TEST_P(ResponseParserTest, AnswerWithLengthComesWhole) {
  parser.reset(false);
  ASSERT_TRUE(feed(
      parser, "HTTP/1.1 201 Created\r\nETag: \"7\"\r\nContent-Length: 5\r\nX-Empty:\r\n\r\nhello",
      GetParam()));
  ASSERT_TRUE(parser.complete());
  EXPECT_TRUE(parser.keep_alive());
  const Reply reply = parser.take();
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.body, "hello");
  EXPECT_THAT(reply.headers,
              ElementsAre(Pair("etag", "\"7\""), Pair("content-length", "5"), Pair("x-empty", "")));
}

TEST_P(ResponseParserTest, ChunksAreJoined) {
  parser.reset(false);
  ASSERT_TRUE(feed(parser,
                   "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                   "5;why=not\r\nhello\r\nA\r\n, universe\r\n0\r\nx-trailer: 1\r\n\r\n",
                   GetParam()));
  ASSERT_TRUE(parser.complete());
  EXPECT_EQ(parser.take().body, "hello, universe");
}

TEST_P(ResponseParserTest, BodyWithoutLengthEndsWithTheConnection) {
  parser.reset(false);
  const std::string body(300'000, 'b');
  ASSERT_TRUE(feed(parser, "HTTP/1.1 200 OK\r\n\r\n" + body, GetParam()));
  EXPECT_FALSE(parser.complete());
  ASSERT_TRUE(parser.closed());
  EXPECT_TRUE(parser.complete());
  EXPECT_FALSE(parser.keep_alive());
  EXPECT_EQ(parser.take().body, body);
}

TEST_P(ResponseParserTest, SignOfLifeIsNotTheAnswer) {
  parser.reset(false);
  ASSERT_TRUE(feed(parser,
                   "HTTP/1.1 100 Continue\r\nx-first: 1\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
                   GetParam()));
  ASSERT_TRUE(parser.complete());
  const Reply reply = parser.take();
  EXPECT_EQ(reply.status, 204);
  EXPECT_TRUE(reply.headers.empty());
}

INSTANTIATE_TEST_SUITE_P(Pieces, ResponseParserTest, ::testing::Values(1, 3, 1 << 20));

TEST(ResponseParser, HasNoBodyWhereThereIsNone) {
  ResponseParser parser;
  parser.reset(true);
  ASSERT_TRUE(feed(parser, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"));
  EXPECT_TRUE(parser.complete());
  parser.reset(false);
  ASSERT_TRUE(feed(parser, "HTTP/1.1 304 Not Modified\r\netag: 1\r\n\r\n"));
  EXPECT_TRUE(parser.complete());
  parser.reset(false);
  ASSERT_TRUE(feed(parser, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
  EXPECT_TRUE(parser.complete());
}

TEST(ResponseParser, SaysWhetherTheConnectionStays) {
  ResponseParser parser;
  parser.reset(false);
  ASSERT_TRUE(feed(parser, "HTTP/1.1 200 OK\r\nConnection: Close\r\ncontent-length: 0\r\n\r\n"));
  EXPECT_FALSE(parser.keep_alive());
  parser.reset(false);
  ASSERT_TRUE(feed(parser, "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"));
  EXPECT_FALSE(parser.keep_alive());
}

TEST(ResponseParser, LargeBodyIsReceivedInItsPlace) {
  ResponseParser parser;
  parser.reset(false);
  constexpr std::size_t kSize = 4 << 20;
  ASSERT_TRUE(feed(parser, "HTTP/1.1 200 OK\r\ncontent-length: 4194304\r\n\r\n"));
  const auto room = parser.room();
  EXPECT_EQ(room.size(), kSize);
  std::ranges::fill(room, 'x');
  const char* place = room.data();
  ASSERT_TRUE(parser.received(kSize));
  ASSERT_TRUE(parser.complete());
  const Reply reply = parser.take();
  EXPECT_EQ(reply.body.data(), place);
  EXPECT_EQ(reply.body.size(), kSize);
}

TEST(ResponseParser, RefusesNonsense) {
  for (const std::string_view text : {
           "SSH-2.0-OpenSSH\r\n\r\n",
           "HTTP/1.1 abc OK\r\n\r\n",
           "HTTP/1.1 200 OK\r\n: x\r\n\r\n",
           "HTTP/1.1 200 OK\r\nnothing\r\n\r\n",
           "HTTP/1.1 200 OK\r\ncontent-length: 1x\r\n\r\n",
           "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
           "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
           "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
           "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
           "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n",
           "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabc",
           "HTTP/1.1 204 No\r\n\r\nabc",
       }) {
    ResponseParser parser;
    parser.reset(false);
    EXPECT_FALSE(feed(parser, text)) << text;
  }
}

TEST(ResponseParser, HalfAnAnswerIsNone) {
  ResponseParser parser;
  parser.reset(false);
  EXPECT_FALSE(parser.begun());
  ASSERT_TRUE(feed(parser, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel"));
  EXPECT_TRUE(parser.begun());
  const auto closed = parser.closed();
  ASSERT_FALSE(closed);
  EXPECT_THAT(closed.error().message(), HasSubstr("before the answer was complete"));
}

TEST(ResponseParser, HeadHasABound) {
  ResponseParser parser;
  parser.reset(false);
  EXPECT_FALSE(feed(parser, "HTTP/1.1 200 OK\r\nx: " + std::string(300 << 10, 'x')));
}

TEST(ResponseParser, BoundsAreTheSameHoweverItComes) {
  const std::string begin = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: ";
  for (const int beyond : {0, 1}) {
    for (const std::size_t piece : {std::size_t{1} << 20, std::size_t{1}}) {
      const std::string head =
          begin + std::string(ResponseParser::kHeadBytesMax - begin.size() + beyond, 'x');
      ResponseParser parser;
      parser.reset(false);
      EXPECT_EQ(static_cast<bool>(feed(parser, head + "\r\n\r\n", piece)), beyond == 0) << piece;
    }
  }
}

}  // namespace
}  // namespace orrery::client
