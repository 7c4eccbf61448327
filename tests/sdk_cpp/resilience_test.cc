// Many threads, calls that shall end, and servers that come and go.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "orrery/json.h"
#include "test_account.h"

namespace orrery::test {
namespace {

using client::ClientOptions;
using client::Container;
using client::ContainerProperties;
using client::CosmosClient;
using client::CosmosException;
using client::Failure;
using client::ItemOperation;
using client::ItemOptions;
using client::PartitionKey;
using client::PatchOperation;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

template <typename Call>
Failure failure_of(Call call) {
  try {
    call();
  } catch (const CosmosException& failure) {
    return failure.failure();
  }
  ADD_FAILURE() << "nothing was thrown";
  return Failure::Response;
}

class ResilienceTest : public AccountTest {};

TEST_F(ResilienceTest, SixteenThreadsOnOneClient) {
  const auto stars = make_container("stars", 4);
  constexpr int kThreads = 16;
  constexpr int kRounds = 50;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&stars, thread] {
      for (int round = 0; round < kRounds; ++round) {
        const std::string id = std::to_string(thread) + " " + std::to_string(round);
        const PartitionKey key(id);
        const std::string document = R"({"id":")" + id + R"(","pk":")" + id + R"(","n":0})";
        const auto created = stars.create_item(document, key);
        ASSERT_EQ(created.status, 201);
        ASSERT_EQ(stars.read_item(id, key).value, created.value) << "one reads what one wrote";
        stars.upsert_item(document, key);
        stars.patch_item(id, {{PatchOperation::increment("/n", std::int64_t{1})}, ""}, key);
        ASSERT_EQ(client::to_json(stars.read_item(id, key))["n"], 1);
        if (round % 2 == 0) {
          ASSERT_EQ(stars.delete_item(id, key).status, 204);
        }
      }
    });
  }
  threads.clear();
  std::size_t left = 0;
  stars.list_items().for_each([&](const auto& page) { left += page.size(); });
  EXPECT_EQ(left, static_cast<std::size_t>(kThreads * kRounds / 2));
}

TEST_F(ResilienceTest, WritersWithEtagsLoseNothing) {
  const auto stars = make_container("stars");
  stars.create_item(R"({"id":"counter","pk":"k","n":0})", "k");
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&stars] {
      for (int done = 0; done < 10;) {
        auto read = stars.read_item("counter", "k");
        auto document = client::to_json(read);
        document["n"] = document["n"].get<int>() + 1;
        ItemOptions options;
        options.if_match = read.etag;
        try {
          stars.replace_item("counter", document.dump(), "k", options);
          ++done;
        } catch (const CosmosException& failure) {
          ASSERT_TRUE(failure.is_precondition_failed()) << failure.what();
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(client::to_json(stars.read_item("counter", "k"))["n"], 80);
}

TEST(StandstillTest, CallsEndWhenTheyShall) {
  ServerProcess server;
  const CosmosClient client(server.endpoint(), server.key());
  client.create_database("sky");
  ContainerProperties properties;
  properties.id = "stars";
  properties.partition_key_paths = {"/pk"};
  client.database("sky").create_container(properties);
  const auto stars = client.database("sky").container("stars");
  stars.create_item(R"({"id":"a","pk":"k"})", "k");
  stars.list_items().next();

  server.pause();
  const auto begin = steady_clock::now();
  ItemOptions hurried;
  hurried.timeout = milliseconds(200);
  EXPECT_EQ(failure_of([&] { stars.read_item("a", "k", hurried); }), Failure::Timeout);
  client::ItemListOptions hurried_list;
  hurried_list.timeout = milliseconds(200);
  EXPECT_EQ(failure_of([&] { stars.list_items(hurried_list).next(); }), Failure::Timeout);

  const auto cancelled = [&](auto call) {
    std::stop_source source;
    std::atomic<bool> is_under_way = false;
    std::jthread canceller([&] {
      wait_until([&] { return is_under_way.load(); });
      source.request_stop();
    });
    is_under_way = true;
    return failure_of([&] { call(source.get_token()); }) == Failure::Cancelled;
  };
  EXPECT_TRUE(cancelled([&](std::stop_token stop) {
    ItemOptions options;
    options.stop = stop;
    stars.read_item("a", "k", options);
  }));
  EXPECT_TRUE(cancelled([&](std::stop_token stop) {
    client::ItemListOptions options;
    options.stop = stop;
    stars.list_items(options).next();
  }));
  EXPECT_TRUE(cancelled([&](std::stop_token stop) {
    client::BulkOptions options;
    options.stop = stop;
    stars.execute_bulk({ItemOperation::read("a").with_partition_key("k")}, options);
  }));
  EXPECT_LT(steady_clock::now() - begin, seconds(10));
  server.resume();
  EXPECT_EQ(stars.read_item("a", "k").status, 200);

  std::stop_source stopped;
  stopped.request_stop();
  ItemOptions options;
  options.stop = stopped.get_token();
  EXPECT_EQ(failure_of([&] { stars.read_item("a", "k", options); }), Failure::Cancelled);
}

TEST(RestartTest, ReadersAndUpsertersOutliveRestarts) {
  ServerProcess::Options server_options;
  server_options.keeps_data = true;
  ServerProcess server(server_options);
  ClientOptions options;
  options.retry.attempts_max = 30;
  options.retry.first_wait = milliseconds(20);
  const CosmosClient client(server.endpoint(), server.key(), options);
  client.create_database("sky");
  ContainerProperties properties;
  properties.id = "stars";
  properties.partition_key_paths = {"/pk"};
  client.database("sky").create_container(properties);
  const auto stars = client.database("sky").container("stars");
  stars.create_item(R"({"id":"a","pk":"k"})", "k");

  std::atomic<bool> is_done = false;
  std::atomic<int> rounds = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, id = "own " + std::to_string(thread)] {
      for (int n = 0; !is_done; ++n) {
        try {
          stars.upsert_item(R"({"id":")" + id + R"(","pk":"k","n":)" + std::to_string(n) + "}",
                            "k");
          ASSERT_EQ(client::to_json(stars.read_item(id, "k"))["n"], n);
          ASSERT_GT(stars.list_items().next().size(), 0u);
          ++rounds;
        } catch (const CosmosException& failure) {
          ADD_FAILURE() << failure.what() << "\n" << failure.diagnostics();
          return;
        }
      }
    });
  }
  for (int restart = 0; restart < 3; ++restart) {
    const int before = rounds;
    EXPECT_TRUE(wait_until([&] { return rounds > before + 20; }));
    if (restart == 1) {
      server.kill();
      server.start();
    } else {
      server.restart();
    }
  }
  const int before = rounds;
  EXPECT_TRUE(wait_until([&] { return rounds > before + 20; }));
  is_done = true;
  threads.clear();
}

TEST_F(ResilienceTest, ContainerThatSomebodyElseMadeAnewHasASessionOfItsOwn) {
  const auto stars = make_container("stars");
  for (int i = 0; i < 20; ++i) {
    stars.create_item(R"({"id":")" + std::to_string(i) + R"(","pk":"k"})", "k");
  }
  const CosmosClient other(server().endpoint(), server().key());
  const auto theirs = other.database(database().id());
  theirs.container("stars").remove();
  ContainerProperties properties;
  properties.id = "stars";
  properties.partition_key_paths = {"/pk"};
  theirs.create_container(properties);
  theirs.container("stars").create_item(R"({"id":"new","pk":"k"})", "k");
  // The positions of the old one mean nothing here, and this client does not know of it yet.
  EXPECT_EQ(stars.read_item("new", "k").status, 200);
  EXPECT_EQ(stars.read_item("new", "k").diagnostics.attempts.size(), 1u) << "now it knows";
}

TEST(RestartTest, AccountThatBeganAnewDoesNotPassForWhatItWas) {
  ServerProcess server;  // It forgets everything.
  const CosmosClient client(server.endpoint(), server.key());
  const auto make = [&] {
    client.create_database("sky");
    ContainerProperties properties;
    properties.id = "stars";
    properties.partition_key_paths = {"/pk"};
    client.database("sky").create_container(properties);
  };
  make();
  const auto stars = client.database("sky").container("stars");
  for (int i = 0; i < 20; ++i) {
    stars.create_item(R"({"id":")" + std::to_string(i) + R"(","pk":"k"})", "k");
  }
  server.restart();
  make();
  stars.create_item(R"({"id":"new","pk":"k"})", "k");
  // The container has the same rid as before. The data that this client has seen is lost, and it
  // says so instead of showing older data.
  try {
    stars.read_item("new", "k");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.status(), 404);
    EXPECT_EQ(failure.sub_status(), 1002);
    EXPECT_FALSE(failure.is_not_found());
    EXPECT_THAT(failure.what(), HasSubstr("a new client begins a new session"));
  }
  const CosmosClient fresh(server.endpoint(), server.key());
  EXPECT_EQ(fresh.database("sky").container("stars").read_item("new", "k").status, 200);
}

TEST(UnreachableTest, NobodyThere) {
  ClientOptions options;
  options.retry.attempts_max = 2;
  options.retry.first_wait = milliseconds(1);
  const CosmosClient client("http://127.0.0.1:1/", std::string(kWellKnownKey), options);
  EXPECT_EQ(failure_of([&] { client.read_account(); }), Failure::Network);
  EXPECT_EQ(
      failure_of([&] { client.database("a").container("b").create_item(R"({"id":"a"})", "k"); }),
      Failure::Network);
  EXPECT_EQ(failure_of([&] { client.database("a").container("b").list_items().next(); }),
            Failure::Network);
}

}  // namespace
}  // namespace orrery::test
