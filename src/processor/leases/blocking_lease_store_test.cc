// A user's lease store as hosts see it, and ours as users see them.
#include "processor/leases/blocking_lease_store.h"

#include <map>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "processor/hosting/runtime.h"
#include "processor/leases/memory_lease_store.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

namespace orrery::processor {
namespace {

using client::CosmosException;
using ::testing::HasSubstr;

int status_of(const std::function<void()>& call) {
  try {
    call();
    return 0;
  } catch (const CosmosException& exception) {
    return exception.status();
  }
}

TEST(BlockingLeaseStore, OursCanBeUsedByAnybody) {
  const auto store = memory_lease_store();
  const auto made = store->create("a..1", R"({"n":1})");
  EXPECT_EQ(made.text, R"({"n":1})");
  EXPECT_EQ(store->read("a..1").etag, made.etag);
  EXPECT_EQ(status_of([&] { store->create("a..1", "{}"); }), 409);
  const auto replaced = store->replace("a..1", R"({"n":2})", made.etag);
  EXPECT_NE(replaced.etag, made.etag);
  EXPECT_EQ(status_of([&] { store->replace("a..1", "{}", made.etag); }), 412);
  EXPECT_EQ(status_of([&] { store->replace("a..2", "{}", made.etag); }), 404);
  EXPECT_EQ(status_of([&] { store->read("a..2"); }), 404);
  store->create("b..1", "{}");
  EXPECT_EQ(store->list("a..").size(), 1u);
  EXPECT_EQ(status_of([&] { store->remove("a..1", made.etag); }), 412);
  store->remove("a..1", replaced.etag);
  EXPECT_EQ(status_of([&] { store->remove("a..1", ""); }), 404);
}

TEST(BlockingLeaseStore, HostsUseOursWithoutAWayAround) {
  const auto store = memory_lease_store();
  const auto ours = async_lease_store(store);
  EXPECT_NE(dynamic_cast<MemoryLeaseStore*>(ours.get()), nullptr);
  EXPECT_EQ(async_lease_store(nullptr), nullptr);
}

/// Throws what it is told to.
class FailingStore final : public LeaseStore {
 public:
  std::vector<StoredDocument> list(const std::string&) override {
    return fail(), std::vector<StoredDocument>();
  }
  StoredDocument read(const std::string& id) override { throw not_found(id); }
  StoredDocument create(const std::string& id, const std::string&) override { throw conflict(id); }
  StoredDocument replace(const std::string& id, const std::string&, const std::string&) override {
    throw precondition_failed(id);
  }
  void remove(const std::string&, const std::string&) override { fail(); }

  std::function<void()> fail = [] {};
};

TEST(PooledLeaseStore, WhatAUsersStoreThrowsIsAnError) {
  ThreadRuntime runtime(1);
  const auto user = std::make_shared<FailingStore>();
  const auto store = async_lease_store(user);
  const auto failure = [&]<typename T>(Async<T> task) {
    auto result = asio::co_spawn(runtime.executor(), std::move(task), asio::use_future).get();
    return result ? Error(ErrorCode::Internal, "it succeeded") : result.error();
  };
  EXPECT_EQ(failure(store->read("x")).code(), ErrorCode::NotFound);
  EXPECT_EQ(failure(store->create("x", "{}")).code(), ErrorCode::Conflict);
  EXPECT_EQ(failure(store->replace("x", "{}", "e")).code(), ErrorCode::PreconditionFailed);
  user->fail = [] { throw std::runtime_error("the table is locked"); };
  EXPECT_EQ(failure(store->remove("x", "e")).code(), ErrorCode::Unavailable) << "tried again later";
  EXPECT_THAT(failure(store->list("x")).message(), HasSubstr("the table is locked"));
  user->fail = [] { throw 7; };
  EXPECT_EQ(failure(store->list("x")).code(), ErrorCode::Unavailable);
}

}  // namespace
}  // namespace orrery::processor
