#include "client/handles/bulk.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/test_pipeline.h"
#include "orrery/client.h"
#include "protocol/wire/batch.h"

namespace orrery::client {
namespace {

using std::chrono::milliseconds;
using test::answer_of;
using test::header_of;
using test::refusal;
using test::routing_of;
using test::TestPipeline;
using ::testing::Each;
using ::testing::Field;
using ::testing::Le;
using ::testing::SizeIs;

constexpr const char* kLink = "dbs/sky/colls/stars";
const PartitionKeyDefinition kByPk{{{"pk"}}, KeyKind::Hash, 2};

std::vector<ItemOperation> upserts(std::size_t count, std::size_t padding = 0) {
  std::vector<ItemOperation> operations;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string id = std::to_string(i);
    operations.push_back(ItemOperation::upsert(R"({"id":")" + id + R"(","pad":")" +
                                               std::string(padding, 'x') + "\"}")
                             .with_partition_key(PartitionKey(id)));
  }
  return operations;
}

/// The id that an operation of `upserts` writes.
std::size_t id_of(const BatchOperation& operation) {
  const std::string key = *operation.partition_key;  // ["17"]
  return std::stoul(key.substr(2));
}

/// Answers every operation of a request by itself. `status_of` may be called by several threads.
TestPipeline::Respond answering(std::function<ItemResult(std::size_t id)> result_of) {
  return [result_of = std::move(result_of)](const Call& call) {
    const auto operations = read_json_batch(call.body);
    std::string body = "[";
    for (const BatchOperation& operation : operations.value()) {
      const ItemResult result = result_of(id_of(operation));
      if (body.size() > 1) body.push_back(',');
      body += R"({"statusCode":)" + std::to_string(result.status) + R"(,"subStatusCode":)" +
              std::to_string(result.sub_status) + R"(,"eTag":"e)" +
              R"(","requestCharge":1,"message":"of )" + std::to_string(id_of(operation)) + "\"";
      if (result.retry_after) {
        body += R"(,"retryAfterMilliseconds":)" + std::to_string(result.retry_after->count());
      }
      body += "}";
    }
    return answer_of(207, body + "]");
  };
}

ItemResult status(int code, int sub_status = 0) {
  ItemResult result;
  result.status = code;
  result.sub_status = sub_status;
  return result;
}

class BulkTest : public ::testing::Test {
 protected:
  BulkResponse run(const std::vector<ItemOperation>& operations, const BulkOptions& options = {}) {
    return run_bulk(*pipeline, kLink, operations, options);
  }

  std::shared_ptr<TestPipeline> pipeline = std::make_shared<TestPipeline>();
};

TEST_F(BulkTest, GroupsByRangeAndKeepsTheOrderOfResults) {
  pipeline->map = routing_of({"0F", "1F", "2F"}, kByPk);
  pipeline->respond = answering([](std::size_t) { return status(200); });
  const auto operations = upserts(1'000);
  const auto response = run(operations);
  ASSERT_THAT(response.results, SizeIs(1'000));
  EXPECT_EQ(response.failed(), 0u);
  EXPECT_DOUBLE_EQ(response.request_charge, static_cast<double>(pipeline->calls.size()));
  for (std::size_t i = 0; i < 1'000; ++i) {
    ASSERT_EQ(response.results[i].message, "of " + std::to_string(i));
  }
  for (const Call& call : pipeline->calls) {
    EXPECT_EQ(header_of(call, "x-ms-cosmos-is-batch-request"), "True");
    EXPECT_EQ(header_of(call, "x-ms-cosmos-batch-atomic"), "False");
    EXPECT_EQ(header_of(call, "x-ms-cosmos-batch-continue-on-error"), "True");
    EXPECT_FALSE(header_of(call, "x-ms-documentdb-partitionkey"));
    const std::string target = *header_of(call, "x-ms-documentdb-partitionkeyrangeid");
    const auto read = read_json_batch(call.body);
    ASSERT_TRUE(read);
    for (const BatchOperation& operation : *read) {
      const auto slice = pipeline->map->slice_of(PartitionKey(std::to_string(id_of(operation))));
      EXPECT_EQ("KxEAAJE-AgA=," + pipeline->map->overlapping(slice)[0].id, target);
    }
  }
}

TEST_F(BulkTest, RequestsAreNoLargerThanTheServerTakes) {
  pipeline->respond = answering([](std::size_t) { return status(200); });
  run(upserts(60, 150'000));
  EXPECT_GT(pipeline->calls.size(), 4u);
  EXPECT_THAT(pipeline->calls, Each(Field(&Call::body, ::testing::SizeIs(Le(kBulkBytesMax)))));

  pipeline->calls.clear();
  BulkOptions options;
  options.operations_max = 1'000'000;
  run(upserts(201), options);
  EXPECT_THAT(pipeline->calls, SizeIs(3));

  pipeline->calls.clear();
  run(upserts(2, kBulkBytesMax));
  EXPECT_THAT(pipeline->calls, SizeIs(2)) << "the server says what it thinks of these";
}

TEST_F(BulkTest, ConcurrencyIsBounded) {
  std::mutex mutex;
  std::condition_variable changed;
  int now = 0;
  int most = 0;
  const auto answer = answering([](std::size_t) { return status(200); });
  pipeline->respond = [&](const Call& call) {
    std::unique_lock lock(mutex);
    most = std::max(most, ++now);
    changed.notify_all();
    // All that may run at once do, before any of them is answered.
    changed.wait_for(lock, std::chrono::seconds(5), [&] { return most >= 3; });
    --now;
    lock.unlock();
    return answer(call);
  };
  BulkOptions options;
  options.concurrency = 3;
  options.operations_max = 1;
  EXPECT_EQ(run(upserts(30), options).failed(), 0u);
  EXPECT_EQ(most, 3);
}

TEST_F(BulkTest, ThrottledOnesAreSentAgainAfterTheirTime) {
  std::map<std::size_t, int> attempts;
  pipeline->respond = answering([&](std::size_t id) {
    ItemResult result = status(id % 10 == 0 && ++attempts[id] < 3 ? 429 : 200);
    if (result.status == 429) result.retry_after = milliseconds(7);
    return result;
  });
  BulkOptions options;
  options.concurrency = 1;
  const auto begin = std::chrono::steady_clock::now();
  const auto response = run(upserts(100), options);
  EXPECT_EQ(response.failed(), 0u);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(14));
  ASSERT_THAT(pipeline->calls, SizeIs(3));
  EXPECT_EQ(read_json_batch(pipeline->last_call().body)->size(), 10u) << "only those";
}

TEST_F(BulkTest, ThrottlingHasAnEnd) {
  pipeline->client_options.retry.throttled_max = 4;
  pipeline->respond = answering([](std::size_t) {
    ItemResult result = status(429, 3200);
    result.retry_after = milliseconds(1);
    return result;
  });
  const auto response = run(upserts(3));
  EXPECT_EQ(response.failed(), 3u);
  EXPECT_EQ(response.results[0].status, 429);
  EXPECT_THAT(pipeline->calls, SizeIs(5));
}

TEST_F(BulkTest, WritersInEachOthersWayTryAgain) {
  std::map<std::size_t, int> attempts;
  pipeline->respond =
      answering([&](std::size_t id) { return status(++attempts[id] < 3 ? 449 : 200); });
  BulkOptions options;
  options.concurrency = 1;
  EXPECT_EQ(run(upserts(5), options).failed(), 0u);

  pipeline->client_options.retry.conflict_wait_max = milliseconds(25);
  pipeline->respond = answering([](std::size_t) { return status(449); });
  EXPECT_EQ(run(upserts(5), options).failed(), 5u);
}

TEST_F(BulkTest, AfterASplitTheRestIsGroupedAnew) {
  pipeline->map = routing_of({}, kByPk);
  pipeline->next_map = routing_of({"1F"}, kByPk, 1);
  const auto answer = answering([](std::size_t) { return status(200); });
  std::atomic<int> count = 0;
  std::atomic<bool> is_split = false;
  pipeline->respond = [&](const Call& call) {
    if (++count == 4) is_split = true;
    const bool is_old = header_of(call, "x-ms-documentdb-partitionkeyrangeid") == "KxEAAJE-AgA=,0";
    if (is_old == is_split) throw refusal(410, 1002);
    return answer(call);
  };
  BulkOptions options;
  options.concurrency = 4;
  options.operations_max = 10;
  const auto response = run(upserts(200), options);
  EXPECT_EQ(response.failed(), 0u);
  for (std::size_t i = 0; i < 200; ++i) {
    ASSERT_EQ(response.results[i].message, "of " + std::to_string(i));
  }
}

TEST_F(BulkTest, SingleOperationsThatAreGoneAreSentAgain) {
  std::map<std::size_t, int> attempts;
  pipeline->respond =
      answering([&](std::size_t id) { return status(++attempts[id] == 1 ? 410 : 200, 1002); });
  BulkOptions options;
  options.concurrency = 1;
  EXPECT_EQ(run(upserts(20), options).failed(), 0u);
}

TEST_F(BulkTest, WhatHadNoRoomInTheAnswerHasItsTurnLater) {
  pipeline->respond = [answer = answering([](std::size_t id) {
                         return status(id == 0 ? 200 : 413, id == 0 ? 0 : 3402);
                       }),
                       rest = answering([](std::size_t) { return status(200); }),
                       count = std::make_shared<std::atomic<int>>(0)](const Call& call) {
    return ++*count == 1 ? answer(call) : rest(call);
  };
  EXPECT_EQ(run(upserts(10)).failed(), 0u);
  pipeline->respond = answering([](std::size_t) { return status(413, 3402); });
  EXPECT_EQ(run(upserts(1)).failed(), 1u) << "but not for ever";
}

TEST_F(BulkTest, RefusalsStayWithTheirOperations) {
  pipeline->respond = answering([](std::size_t id) { return status(id % 2 == 0 ? 409 : 201); });
  const auto response = run(upserts(10));
  EXPECT_EQ(response.failed(), 5u);
  EXPECT_EQ(response.results[4].status, 409);
  EXPECT_EQ(response.results[5].status, 201);
}

TEST_F(BulkTest, FailureOfARequestIsToldOfItsOperations) {
  const auto answer = answering([](std::size_t) { return status(200); });
  pipeline->respond = [&](const Call& call) {
    if (read_json_batch(call.body)->front().partition_key != R"(["0"])") return answer(call);
    CosmosException::Details details;
    details.failure = Failure::Network;
    throw CosmosException("connection lost", std::move(details));
  };
  BulkOptions options;
  options.operations_max = 5;
  const auto response = run(upserts(10), options);
  EXPECT_EQ(response.failed(), 5u);
  EXPECT_EQ(response.results[0].status, 0);
  EXPECT_EQ(response.results[0].message, "connection lost");
  EXPECT_EQ(response.results[9].status, 200);
}

TEST_F(BulkTest, CancellationEndsIt) {
  std::stop_source source;
  pipeline->respond =
      [&, answer = answering([](std::size_t) { return status(429); })](const Call& call) {
        source.request_stop();
        return answer(call);
      };
  BulkOptions options;
  options.stop = source.get_token();
  options.operations_max = 1;
  options.concurrency = 2;
  try {
    run(upserts(1'000), options);
    ADD_FAILURE() << "it was not";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.failure(), Failure::Cancelled);
  }
  EXPECT_LE(pipeline->calls.size(), 2u);
}

TEST_F(BulkTest, TimeOverLeavesWhatWasDone) {
  const auto answer =
      answering([](std::size_t id) { return id == 0 ? status(200) : status(429, 3200); });
  pipeline->respond = answer;
  BulkOptions options;
  options.timeout = milliseconds(30);
  const auto response = run(upserts(2), options);
  EXPECT_EQ(response.results[0].status, 200);
  EXPECT_EQ(response.results[1].status, 0);
}

TEST_F(BulkTest, WhatCantBeMeantIsNotBegun) {
  auto operations = upserts(3);
  operations[2] = ItemOperation::read("2");
  EXPECT_THROW(run(operations), CosmosException) << "there is no document to read the key from";
  operations = upserts(3);
  operations[1].json.clear();
  EXPECT_THROW(run(operations), CosmosException);
  EXPECT_THAT(pipeline->calls, SizeIs(0));
  EXPECT_THAT(run({}).results, SizeIs(0));
}

TEST_F(BulkTest, AnyMixtureOfTroublesDoesEachOperationOnce) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 chance(seed);
    pipeline = std::make_shared<TestPipeline>();
    pipeline->client_options.retry.throttled_max = 1'000;
    pipeline->map = routing_of({"1F"}, kByPk);
    std::map<std::size_t, int> done;
    std::map<std::size_t, int> troubles;
    const auto answer = answering([&](std::size_t id) {
      if (++troubles[id] < 4 && chance() % 3 == 0) {
        ItemResult result = status(std::vector{429, 449, 410}[chance() % 3]);
        result.retry_after = milliseconds(0);
        return result;
      }
      ++done[id];
      return status(201);
    });
    int id = 10;
    pipeline->respond = [&](const Call& call) {
      if (chance() % 5 == 0) {
        pipeline->next_map = routing_of({"0F", "2F"}, kByPk, id += 10);
        throw refusal(410, 1002);
      }
      return answer(call);
    };
    BulkOptions options;
    options.concurrency = 1;
    options.operations_max = 7;
    const auto response = run(upserts(50), options);
    ASSERT_EQ(response.failed(), 0u);
    ASSERT_EQ(done.size(), 50u);
    for (const auto& [each, times] : done) ASSERT_EQ(times, 1) << each;
  }
}

TEST_F(BulkTest, TheKeyIsTakenFromTheDocumentWhereNoneIsGiven) {
  pipeline->map = routing_of({"1F"}, kByPk);
  pipeline->respond = answering([](std::size_t) { return status(200); });
  std::vector<ItemOperation> operations;
  for (int i = 0; i < 100; ++i) {
    const std::string id = std::to_string(i);
    operations.push_back(ItemOperation::upsert(R"({"id":")" + id + R"(","pk":")" + id + "\"}"));
  }
  operations[1].with_partition_key("1");
  EXPECT_EQ(run(operations).failed(), 0u);
  EXPECT_EQ(pipeline->calls.size(), 2u) << "each went to its range";
  std::string bodies;
  for (const Call& call : pipeline->calls) bodies += call.body;
  for (int i = 0; i < 100; ++i) {
    EXPECT_NE(bodies.find(R"("partitionKey":"[\")" + std::to_string(i) + R"(\"]")"),
              std::string::npos)
        << i;
  }

  const auto calls = pipeline->calls.size();
  EXPECT_THROW(run({operations[0], ItemOperation::read("1")}), CosmosException);
  EXPECT_THROW(run({operations[0], ItemOperation::create("[]")}), CosmosException);
  EXPECT_EQ(pipeline->calls.size(), calls) << "nothing was sent";
}

}  // namespace
}  // namespace orrery::client
