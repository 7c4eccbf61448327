#include "processor/hosting/container_feed_reader.h"

#include <gtest/gtest.h>

#include "client/exchange/test_pipeline.h"
#include "orrery/exception.h"
#include "processor/errors.h"
#include "processor/leases/test_leases.h"

namespace orrery::processor {
namespace {

using client::CosmosException;
using client::Failure;
using Kind = FeedAnswer::Kind;

std::exception_ptr refusal(int status, int sub_status = 0, const std::string& message = "no") {
  CosmosException::Details details;
  details.status = status;
  details.sub_status = sub_status;
  details.retry_after = std::chrono::milliseconds(250);
  return std::make_exception_ptr(CosmosException(message, std::move(details)));
}

std::exception_ptr failure(Failure kind) {
  CosmosException::Details details;
  details.failure = kind;
  return std::make_exception_ptr(CosmosException("no answer", std::move(details)));
}

TEST(FeedRefusal, SplitsAndMergesAreNotTheEndOfTheContainer) {
  EXPECT_EQ(feed_refusal(refusal(410, 1002)).kind, Kind::Gone);
  EXPECT_EQ(feed_refusal(refusal(410, 1007)).kind, Kind::Gone);
  EXPECT_EQ(feed_refusal(refusal(410, 1000)).kind, Kind::NotFound);
  EXPECT_EQ(feed_refusal(refusal(404)).kind, Kind::NotFound);
  EXPECT_EQ(feed_refusal(refusal(404, 1003)).kind, Kind::NotFound);
  EXPECT_EQ(feed_refusal(refusal(400, 1024)).kind, Kind::NotFound);
  EXPECT_EQ(feed_refusal(refusal(404, 1002)).kind, Kind::SessionNotAvailable);
}

TEST(FeedRefusal, WhatPassesIsWaitedFor) {
  const FeedAnswer throttled = feed_refusal(refusal(429));
  EXPECT_EQ(throttled.kind, Kind::Throttled);
  EXPECT_EQ(throttled.retry_after, std::chrono::milliseconds(250));
  EXPECT_EQ(throttled.status, 429);
  EXPECT_EQ(feed_refusal(refusal(503)).kind, Kind::Throttled);
  EXPECT_EQ(feed_refusal(refusal(500)).kind, Kind::Throttled);
  EXPECT_EQ(feed_refusal(failure(Failure::Network)).kind, Kind::Throttled);
  EXPECT_EQ(feed_refusal(failure(Failure::Timeout)).kind, Kind::Throttled);
}

TEST(FeedRefusal, PagesThatAreTooLargeAreKnownByTheirMessage) {
  EXPECT_EQ(feed_refusal(refusal(400, 0, "Reduce page size and try again.")).kind,
            Kind::PageTooLarge);
  EXPECT_EQ(feed_refusal(refusal(400)).kind, Kind::Failed);
}

TEST(FeedRefusal, EverythingElseFails) {
  EXPECT_EQ(feed_refusal(refusal(403)).kind, Kind::Failed);
  EXPECT_EQ(feed_refusal(failure(Failure::Cancelled)).kind, Kind::Failed);
  EXPECT_EQ(feed_refusal(std::make_exception_ptr(std::runtime_error("x"))).kind, Kind::Failed);
}

TEST(ErrorOf, TellsWhatMayPassFromWhatDoesNot) {
  EXPECT_EQ(error_of(refusal(404, 1002)).code(), ErrorCode::Unavailable);
  EXPECT_EQ(error_of(refusal(412)).code(), ErrorCode::PreconditionFailed);
  EXPECT_EQ(error_of(refusal(409)).code(), ErrorCode::Conflict);
  EXPECT_EQ(error_of(refusal(404)).code(), ErrorCode::NotFound);
  EXPECT_EQ(error_of(refusal(429)).code(), ErrorCode::TooManyRequests);
  EXPECT_EQ(error_of(refusal(503)).code(), ErrorCode::Unavailable);
  EXPECT_EQ(error_of(refusal(401)).code(), ErrorCode::Unauthorized);
  EXPECT_EQ(error_of(failure(Failure::Network)).code(), ErrorCode::Unavailable);
  EXPECT_EQ(error_of(failure(Failure::Argument)).code(), ErrorCode::BadRequest);
}

TEST(ContainerFeedReader, RangesAreAskedForInPagesOfTheSizeThatWasSet) {
  const auto pipeline = std::make_shared<client::test::TestPipeline>();
  pipeline->respond = [](const client::Call& call) {
    const bool second = client::test::header_of(call, "x-ms-continuation").has_value();
    return client::test::answer_of(
        200,
        second
            ? R"({"PartitionKeyRanges":[{"id":"2","minInclusive":"80","maxExclusive":"FF","parents":["0"]}]})"
            : R"({"PartitionKeyRanges":[{"id":"1","minInclusive":"","maxExclusive":"80","parents":["0"]}]})",
        second ? client::HeaderList{} : client::HeaderList{{"x-ms-continuation", "more"}});
  };
  ContainerFeedReader reader(client::Container(pipeline, "db", "c"), 1);
  TestRuntime runtime;
  const auto ranges = runtime.run(reader.ranges());
  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->size(), 2u);
  EXPECT_EQ((*ranges)[1].id, "2");
  EXPECT_EQ((*ranges)[1].range.min, "80");
  EXPECT_EQ((*ranges)[1].parents, std::vector<std::string>{"0"});
  for (const client::Call& call : pipeline->calls) {
    EXPECT_EQ(client::test::header_of(call, "x-ms-max-item-count"), "1");
  }
  EXPECT_EQ(pipeline->calls.size(), 2u);
}

}  // namespace
}  // namespace orrery::processor
