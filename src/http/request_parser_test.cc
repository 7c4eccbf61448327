#include "http/request_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace orrery::http {
namespace {

using Progress = RequestParser::Progress;

class RequestParserTest : public testing::Test {
 protected:
  /// Feeds `text` in pieces of at most `piece` bytes until a request is complete or broken.
  Result<Progress> feed(std::string_view text, std::size_t piece = 1'000'000) {
    Result<Progress> progress = parser.advance();
    while (progress && *progress != Progress::Complete && !text.empty()) {
      const auto space = parser.space();
      const auto size = std::min({text.size(), piece, space.size()});
      std::copy_n(text.data(), size, space.data());
      parser.commit(size);
      text.remove_prefix(size);
      progress = parser.advance();
      if (progress && *progress == Progress::HeadComplete) ++heads_completed;
    }
    unfed = std::string(text);
    return progress;
  }

  ErrorCode failure(std::string_view text, std::size_t piece = 1'000'000) {
    const auto progress = feed(text, piece);
    EXPECT_FALSE(progress) << text;
    return progress ? ErrorCode::Internal : progress.error().code();
  }

  bool completes(std::string_view text, std::size_t piece = 1'000'000) {
    const auto progress = feed(text, piece);
    return progress && *progress == Progress::Complete;
  }

  RequestParser parser{4096, 100'000};
  std::string unfed;
  int heads_completed = 0;
};

TEST_F(RequestParserTest, ReadsARequestWithoutBody) {
  ASSERT_TRUE(
      completes("GET /dbs/a?x=1 HTTP/1.1\r\nHost: h\r\nX-Ms-Version:  2020-07-15 \r\n\r\n"));
  const auto& request = parser.request();
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/dbs/a?x=1");
  EXPECT_EQ(request.header("x-ms-version"), "2020-07-15");
  EXPECT_EQ(request.header("absent"), "");
  EXPECT_EQ(request.header_count(), 2u);
  EXPECT_EQ(request.body, "");
  EXPECT_TRUE(parser.keep_alive());
  EXPECT_FALSE(parser.expects_continue());
}

TEST_F(RequestParserTest, TellsAnEmptyHeaderFromAnAbsentOne) {
  ASSERT_TRUE(completes("GET / HTTP/1.1\r\nx-ms-session-token:\r\n\r\n"));
  EXPECT_TRUE(parser.request().has_header("x-ms-session-token"));
  EXPECT_EQ(parser.request().header("x-ms-session-token"), "");
  EXPECT_FALSE(parser.request().has_header("etag"));
}

TEST_F(RequestParserTest, ReadsTheSameFromFragmentsOfAnySize) {
  for (std::size_t piece = 1; piece < 40; ++piece) {
    ASSERT_TRUE(
        completes("POST /docs HTTP/1.1\r\ncontent-length: 11\r\nx: y\r\n\r\nhello world", piece));
    EXPECT_EQ(parser.request().header("x"), "y");
    EXPECT_EQ(parser.request().body, "hello world");
    parser.next();
    ASSERT_TRUE(
        completes("POST /docs HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
                  "5;a=b\r\nhello\r\n6\r\n world\r\n0\r\ntrailer: t\r\n\r\n",
                  piece));
    EXPECT_EQ(parser.request().body, "hello world");
    EXPECT_EQ(parser.request().header_count(), 1u);
    parser.next();
  }
}

TEST_F(RequestParserTest, SaysOnceThatTheHeadIsComplete) {
  ASSERT_TRUE(
      completes("POST / HTTP/1.1\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\nhello", 1));
  EXPECT_EQ(heads_completed, 1);
  EXPECT_TRUE(parser.expects_continue());
}

TEST_F(RequestParserTest, KeepsTheHeadInPlaceWhileALargeBodyArrives) {
  const std::string body(99'000, 'x');
  ASSERT_TRUE(
      completes("POST /large HTTP/1.1\r\ncontent-length: 99000\r\nx: y\r\n\r\n" + body, 700));
  EXPECT_EQ(parser.request().target, "/large");
  EXPECT_EQ(parser.request().header("x"), "y");
  EXPECT_TRUE(parser.request().body == body);
}

TEST_F(RequestParserTest, KeepsTheHeadInPlaceWhileALargeChunkedBodyArrives) {
  const std::string body(60'000, 'x');
  ASSERT_TRUE(
      completes("POST /large HTTP/1.1\r\ntransfer-encoding: chunked\r\nx: y\r\n\r\nea60\r\n" +
                body + "\r\n0\r\n\r\n"));
  EXPECT_EQ(parser.request().header("x"), "y");
  EXPECT_TRUE(parser.request().body == body);
}

TEST_F(RequestParserTest, KeepsPipelinedRequestsForLater) {
  ASSERT_TRUE(
      completes("POST /1 HTTP/1.1\r\ncontent-length: 1\r\n\r\nA"
                "POST /2 HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nB\r\n0\r\n\r\n"
                "GET /3 HTTP/1.1\r\n\r\nGET /4"));
  EXPECT_EQ(parser.request().body, "A");
  EXPECT_TRUE(parser.has_leftover());
  parser.next();
  ASSERT_TRUE(completes(""));
  EXPECT_EQ(parser.request().target, "/2");
  EXPECT_EQ(parser.request().body, "B");
  parser.next();
  ASSERT_TRUE(completes(""));
  EXPECT_EQ(parser.request().target, "/3");
  parser.next();
  EXPECT_FALSE(completes(""));
  EXPECT_TRUE(parser.started());
  ASSERT_TRUE(completes(" HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(parser.request().target, "/4");
  parser.next();
  EXPECT_FALSE(parser.started());
}

TEST_F(RequestParserTest, OverlooksEmptyLinesBeforeARequest) {
  ASSERT_TRUE(completes("\r\n\r\nGET /1 HTTP/1.1\r\n\r\n\r\n", 1));
  parser.next();
  ASSERT_TRUE(completes("\r\nGET /2 HTTP/1.1\r\n\r\n", 1));
  EXPECT_EQ(parser.request().target, "/2");
}

TEST_F(RequestParserTest, KnowsWhoWantsToKeepTheConnection) {
  ASSERT_TRUE(completes("GET / HTTP/1.1\r\nconnection: close\r\n\r\n"));
  EXPECT_FALSE(parser.keep_alive());
  parser.next();
  ASSERT_TRUE(completes("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_FALSE(parser.keep_alive());
  EXPECT_TRUE(parser.is_http_1_0());
  parser.next();
  ASSERT_TRUE(completes("GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n"));
  EXPECT_TRUE(parser.keep_alive());
}

TEST_F(RequestParserTest, RefusesAHeadAboveTheLimit) {
  const std::string longest(4096 - 24, 'x');
  ASSERT_TRUE(completes("GET / HTTP/1.1\r\nx: " + longest + "y\r\n\r\n"));
  parser.next();
  EXPECT_EQ(failure("GET / HTTP/1.1\r\nx: " + longest + "yz\r\n\r\n"), ErrorCode::HeadTooLarge);
}

TEST_F(RequestParserTest, RefusesAHeadAboveTheLimitBeforeItEnds) {
  EXPECT_EQ(failure("GET / HTTP/1.1\r\nx: " + std::string(5000, 'x'), 100),
            ErrorCode::HeadTooLarge);
}

TEST(RequestParserLimits, RefusesMoreHeadersThanItHasRoomFor) {
  RequestParser parser(128 * 1024, 10);
  std::string text = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 1001; ++i) text += "a:b\r\n";
  text += "\r\n";
  for (std::string_view left = text; !left.empty();) {
    const auto space = parser.space();
    const auto size = left.copy(space.data(), space.size());
    parser.commit(size);
    left.remove_prefix(size);
    const auto progress = parser.advance();
    if (left.empty()) {
      ASSERT_FALSE(progress);
      EXPECT_EQ(progress.error().code(), ErrorCode::HeadTooLarge);
    }
  }
}

TEST_F(RequestParserTest, RefusesABodyAboveTheLimitBeforeReadingIt) {
  EXPECT_EQ(failure("POST / HTTP/1.1\r\ncontent-length: 100001\r\n\r\n"),
            ErrorCode::RequestTooLarge);
}

TEST_F(RequestParserTest, RefusesAnAbsurdLength) {
  EXPECT_EQ(failure("POST / HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n"),
            ErrorCode::BadRequest);
}

TEST_F(RequestParserTest, RefusesChunksAboveTheLimit) {
  EXPECT_EQ(failure("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n186a1\r\n"),
            ErrorCode::RequestTooLarge);
}

TEST_F(RequestParserTest, RefusesChunksThatAddUpAboveTheLimit) {
  std::string text = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) text += "2710\r\n" + std::string(10'000, 'x') + "\r\n";
  EXPECT_EQ(failure(text, 3'000), ErrorCode::RequestTooLarge);
}

TEST_F(RequestParserTest, HearsOfGarbageBeforeAHeadIsComplete) {
  EXPECT_EQ(failure("\x16\x03\x01"), ErrorCode::BadRequest);
}

class MalformedRequest : public testing::TestWithParam<const char*> {};

TEST_P(MalformedRequest, IsRefused) {
  for (const std::size_t piece : {1u, 7u, 1000u}) {
    RequestParser parser(4096, 1000);
    std::string_view text = GetParam();
    Result<Progress> progress = Progress::NeedMore;
    while (!text.empty() && progress && *progress != Progress::Complete) {
      const auto space = parser.space();
      const auto size = text.copy(space.data(), std::min(piece, space.size()));
      parser.commit(size);
      text.remove_prefix(size);
      progress = parser.advance();
    }
    ASSERT_FALSE(progress) << GetParam() << " in pieces of " << piece;
    EXPECT_EQ(progress.error().code(), ErrorCode::BadRequest);
  }
}

INSTANTIATE_TEST_SUITE_P(
    RequestParser, MalformedRequest,
    testing::Values(
        "GARBAGE\r\n", "GET /\r\n", "GET / HTTP/2.0\r\n\r\n", "GET / HTTP/1.1\n\n",
        "GET  HTTP/1.1\r\n\r\n", " GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nspace : before\r\n\r\n", "GET / HTTP/1.1\r\n: no name\r\n\r\n",
        "GET / HTTP/1.1\r\nfolded: a\r\n b\r\n\r\n", "GET / HTTP/1.1\r\nx: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nfolded:\r\n b\r\n\r\n", "GET / HTTP/1.1\r\nfolded:\r\n\tb\r\n\r\n",
        "GET / HTTP/1.1\r\nfolded: \r\n \r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\nfolded:\r\n \r\nx: y\r\n\r\n",
        "GET / HTTP/1.1\r\nfolded: a\r\n \r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n \r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length:\r\n 5\r\n\r\nhello",
        "GET / HTTP/1.1\r\nx: a\nb: c\r\n\r\n", "GET / HTTP/1.1\r\nx: \x01\r\n\r\n",
        // Each of these is read in two ways by two careless parsers: request smuggling.
        "POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: 5, 6\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: 0x5\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: 5 5\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length:\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding : chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\nhello\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello!\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5;\nhello\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nbare\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\rx",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n10000000000000005\r\n"));

TEST(ChunkDecoder, RefusesEndlessExtensionsAndTrailers) {
  std::string body;
  ChunkDecoder extension(100);
  EXPECT_FALSE(extension.decode("1;" + std::string(20'000, 'x'), body));
  ChunkDecoder trailers(100);
  std::string text = "0\r\n";
  for (int i = 0; i < 5'000; ++i) text += "a: b\r\n";
  EXPECT_FALSE(trailers.decode(text, body));
}

}  // namespace
}  // namespace orrery::http
