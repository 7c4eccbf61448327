#include "api/feed/feed_push.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "api/test_request.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

using std::chrono::seconds;

std::optional<seconds> wait_of(std::string_view prefer) {
  TestRequest request;
  request.header(headers::kPrefer, prefer);
  return wait_preference(request.context());
}

TEST(WaitPreference, IsFoundInAList) {
  EXPECT_EQ(wait_of("wait=5"), seconds(5));
  EXPECT_EQ(wait_of("return=minimal, wait=5"), seconds(5));
  EXPECT_EQ(wait_of("return=minimal,WAIT = \"7\" ; a=b, handling=lenient"), seconds(7));
  EXPECT_EQ(wait_of("respond-async,wait=60"), seconds(60));
}

TEST(WaitPreference, IsAMinuteAtTheMost) {
  EXPECT_EQ(wait_of("wait=61"), seconds(60));
  EXPECT_EQ(wait_of("wait=99999999999999999999"), seconds(60));
}

TEST(WaitPreference, IsIgnoredWhenItMakesNoSense) {
  for (const char* prefer : {"", "wait", "wait=", "wait=0", "wait=-1", "wait=soon", "wait=5s",
                             "waits=5", "wait=\"", "x;wait=5", ",,;"}) {
    EXPECT_EQ(wait_of(prefer), std::nullopt) << prefer;
  }
}

std::optional<StreamForm> form_of(std::string_view accept) {
  TestRequest request;
  request.header(headers::kAccept, accept);
  return stream_form(request.context());
}

TEST(StreamForm, IsTheFirstThatIsAccepted) {
  EXPECT_EQ(form_of("text/event-stream"), StreamForm::Events);
  EXPECT_EQ(form_of("application/x-ndjson"), StreamForm::Lines);
  EXPECT_EQ(form_of("Application/X-NDJSON;q=1"), StreamForm::Lines);
  EXPECT_EQ(form_of("image/png, text/event-stream;q=0.9, application/x-ndjson"),
            StreamForm::Events);
}

TEST(StreamForm, IsNotMeantByWhatEverybodySends) {
  for (const char* accept : {"", "*/*", "application/json", "text/*", "text/event-streams"}) {
    EXPECT_EQ(form_of(accept), std::nullopt) << accept;
  }
}

TEST(StartHeader, IsTheLastEventIdOfAStreamOnly) {
  TestRequest page;
  page.header(headers::kIfNoneMatch, "\"3\"").header(headers::kLastEventId, "7");
  EXPECT_EQ(start_header(page.context()), "\"3\"");
  TestRequest stream;
  stream.header(headers::kIfNoneMatch, "\"3\"").header(headers::kLastEventId, "7");
  stream.header(headers::kAccept, "text/event-stream");
  EXPECT_EQ(start_header(stream.context()), "7");
  TestRequest first;
  first.header(headers::kAccept, "text/event-stream").header(headers::kLastEventId, "");
  EXPECT_EQ(start_header(first.context()), std::nullopt);
}

TEST(GoOnFrom, SetsThePositionThatAnEtagNames) {
  const catalog::Range range;
  ChangeFeedRequest request;
  request.range = &range;
  request.start.kind = feed::Start::Kind::Now;
  request.since = 1'000;
  go_on_from(request, "\"12\"");
  EXPECT_EQ(request.page.after, Lsn{12});
  EXPECT_EQ(request.start.kind, feed::Start::Kind::After);
  EXPECT_EQ(request.since, std::nullopt);
  EXPECT_EQ(request.page.newer_than, 1'000) << "who began at a time is shown nothing older later";
  go_on_from(request, "\"13\"");
  EXPECT_EQ(request.page.newer_than, 1'000);

  ChangeFeedRequest whole;
  go_on_from(whole, "\"c:=4;1F=9\"");
  EXPECT_EQ(whole.container_start.etag(), "\"c:=4;1F=9\"");
}

TEST(Moment, CountsTheCommitsOfAllRanges) { EXPECT_EQ(moment_of({Lsn{3}, Lsn{4}}), 7u); }

}  // namespace
}  // namespace orrery::api
