// Leases in a container of a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>

#include "orrery/processor.h"
#include "processor/hosting/bootstrap.h"
#include "processor/hosting/container_feed_reader.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/blocking_lease_store.h"
#include "processor/leases/container_lease_store.h"
#include "processor/leases/lease_manager.h"
#include "processor/leases/lease_split.h"
#include "test_account.h"

namespace orrery::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The lease container is keyed by what the parameter says.
class LeaseContainerTest : public test::AccountTest {
 protected:
  ThreadRuntime runtime{1};

  template <typename T>
  Result<T> run(Async<T> task) {
    std::promise<Result<T>> outcome;
    asio::co_spawn(runtime.executor(), std::move(task),
                   [&](const std::exception_ptr& failure, Result<T> result) {
                     if (failure) {
                       outcome.set_exception(failure);
                     } else {
                       outcome.set_value(std::move(result));
                     }
                   });
    return outcome.get_future().get();
  }
  template <typename T>
  T get(Async<T> task) {
    auto result = run(std::move(task));
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message());
    return result ? std::move(*result) : T{};
  }
  template <typename T>
  ErrorCode failure(Async<T> task) {
    const auto result = run(std::move(task));
    EXPECT_FALSE(result.has_value());
    return result ? ErrorCode::Internal : result.error().code();
  }
  std::vector<std::string> listed(AsyncLeaseStore& store, const std::string& prefix) {
    std::vector<std::string> found;
    for (const auto& document : get(store.list(prefix))) found.push_back(document.id);
    return found;
  }
};

class KeyedLeaseContainerTest : public LeaseContainerTest,
                                public ::testing::WithParamInterface<std::string> {};

TEST_P(KeyedLeaseContainerTest, IsAStoreLikeTheOthers) {
  ContainerLeaseStore store(make_container("leases", 2, {GetParam()}));
  const std::string id = "p.localhost_qYcAAA==_qYcA+-EvJBQ=..0";
  const auto created = get(store.create(id, fmt::format(R"({{"id":"{}","n":1}})", id)));
  EXPECT_FALSE(created.etag.empty());
  EXPECT_EQ(failure(store.create(id, fmt::format(R"({{"id":"{}"}})", id))), ErrorCode::Conflict);
  const auto read = get(store.read(id));
  EXPECT_EQ(read.id, id);
  EXPECT_EQ(read.etag, created.etag);
  EXPECT_THAT(read.text, HasSubstr("\"n\":1"));
  EXPECT_GT(read.ts, 1'700'000'000);
  EXPECT_GE(read.store_now, read.ts);
  EXPECT_LE(read.store_now - read.ts, 30);

  const auto replaced =
      get(store.replace(id, fmt::format(R"({{"id":"{}","n":2}})", id), created.etag));
  EXPECT_NE(replaced.etag, created.etag);
  EXPECT_EQ(failure(store.replace(id, fmt::format(R"({{"id":"{}"}})", id), created.etag)),
            ErrorCode::PreconditionFailed);
  EXPECT_EQ(get(store.read(id)).etag, replaced.etag);
  EXPECT_EQ(failure(store.replace("other", R"({"id":"other"})", created.etag)),
            ErrorCode::NotFound);
  EXPECT_EQ(failure(store.remove(id, created.etag)), ErrorCode::PreconditionFailed);
  EXPECT_TRUE(run(store.remove(id, replaced.etag)));
  EXPECT_EQ(failure(store.read(id)), ErrorCode::NotFound);
  EXPECT_EQ(failure(store.remove(id, {})), ErrorCode::NotFound);
}

TEST_P(KeyedLeaseContainerTest, ListsByPrefixOverAllPartitions) {
  ContainerLeaseStore store(make_container("leases", 3, {GetParam()}));
  std::vector<std::string> expected;
  for (int count = 10; count < 60; ++count) {
    const auto id = fmt::format("P..{}", count);
    expected.push_back(id);
    get(store.create(id, fmt::format(R"({{"id":"{}"}})", id)));
  }
  for (const auto* id : {"P.info", "P.lock", "Q..1"}) {
    get(store.create(id, fmt::format(R"({{"id":"{}"}})", id)));
  }
  EXPECT_EQ(listed(store, "P.."), expected);
}

TEST_P(KeyedLeaseContainerTest, HoldsAGroupFromItsStartOverASplitToItsEnd) {
  const auto monitored = make_container("stars", 2);
  const auto leases = make_container("leases", 1, {GetParam()});
  ContainerFeedReader reader(monitored);
  ContainerLeaseStore store(leases);
  const auto group = get(find_group(store, reader, "p.", "", LeaseFormat::Detect));
  BootstrapOptions options;
  options.feed.start_from_beginning = true;
  EXPECT_EQ(get(bootstrap(store, reader, group, options, runtime)).created, 2U);

  LeaseManager manager(store, group.ids, "host-1", runtime);
  auto found = get(manager.list());
  ASSERT_THAT(found, SizeIs(2));
  const Lease first = get(manager.acquire(found[0])).lease;
  for (int step = 1; step <= 5; ++step) {
    ASSERT_TRUE(get(manager.renew(first.id)).done());
    ASSERT_TRUE(get(manager.checkpoint(first.id, fmt::format("\"{}\"", step))).done());
  }
  EXPECT_EQ(manager.stats().conflicts, 0U) << "etags come from the answers";

  split(monitored, first.token);
  ASSERT_TRUE(test::wait_until([&] { return get(reader.ranges()).size() == 3; }));
  const auto replacement = get(replace_lease(manager, reader, first, "\"5\""));
  ASSERT_THAT(replacement.leases, SizeIs(2));
  EXPECT_EQ(replacement.leases[0].position, "\"5\"");
  EXPECT_THAT(get(manager.list()), SizeIs(3));
  for (const Lease& child : replacement.leases) {
    ASSERT_TRUE(get(manager.acquire(child)).done());
    ASSERT_TRUE(get(manager.release(child.id)).done());
  }
  EXPECT_FALSE(run(store.read(group.ids.lock())).has_value());
  EXPECT_TRUE(run(store.read(group.ids.marker())).has_value());
}

INSTANTIATE_TEST_SUITE_P(Keys, KeyedLeaseContainerTest, ::testing::Values("/id", "/partitionKey"),
                         [](const auto& each) { return each.param.substr(1); });

TEST_F(LeaseContainerTest, OtherKeysAreRefused) {
  ContainerLeaseStore store(make_container("leases", 1, {"/owner"}));
  const auto refused = run(store.list("P.."));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::BadRequest);
  EXPECT_THAT(refused.error().message(), HasSubstr("/owner"));
}

TEST_F(LeaseContainerTest, AContainerThatIsNotThereIsNotMade) {
  ContainerLeaseStore store(database().container("nowhere"));
  EXPECT_EQ(failure(store.list("P..")), ErrorCode::NotFound);
}

TEST_F(LeaseContainerTest, LeasesUnderRandomKeysAreReadWrittenAndMerged) {
  const auto container = make_container("leases", 2, {"/partitionKey"});
  const LeaseIds ids{"P"};
  const auto put = [&](const std::string& key, const std::string& position) {
    container.create_item(
        fmt::format(R"({{"id":"P..0","partitionKey":"{}","version":0,"LeaseToken":"0",)"
                    R"("FeedRange":{{"Range":{{"min":"","max":"FF"}}}},"Owner":null,)"
                    R"("ContinuationToken":"\"{}\"","properties":{{}}}})",
                    key, position),
        key);
  };
  put("guid-1", "7");
  put("guid-2", "9");
  put("guid-3", "8");
  ContainerLeaseStore store(container);
  LeaseManager manager(store, ids, "host-1", runtime);
  const auto found = get(manager.list());
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].position, "\"9\"");
  const Lease lease = get(manager.acquire(found[0])).lease;
  ASSERT_TRUE(get(manager.checkpoint(lease.id, "\"12\"")).done());
  EXPECT_THAT(container.read_item("P..0", "guid-2").value, HasSubstr("\\\"12\\\""));
  EXPECT_THAT(container.read_item("P..0", "guid-1").value, HasSubstr("\\\"7\\\""));

  ContainerFeedReader reader(make_container("stars"));
  LeaseGroupKey group = get(find_group(store, reader, "", "", LeaseFormat::Detect));
  group.ids = ids;
  BootstrapOptions options;
  EXPECT_EQ(get(bootstrap(store, reader, group, options, runtime)).doubles_removed, 2U);
  EXPECT_THAT(listed(store, "P.."), ElementsAre("P..0"));
  ASSERT_TRUE(get(manager.checkpoint(lease.id, "\"13\"")).done());
}

TEST_F(LeaseContainerTest, ForeignPropertiesSurviveTheServer) {
  const auto container = make_container("leases", 1, {"/id"});
  container.create_item(
      R"({"id":"P..0","_etag":null,"_ts":0,"PartitionId":"0","Owner":null,"ContinuationToken":null,)"
      R"("properties":{},"timestamp":null,"future":{"a":[1, 2.50]}})",
      "P..0");
  ContainerLeaseStore store(container);
  LeaseManager manager(store, LeaseIds{"P"}, "host-1", runtime);
  const auto found = get(manager.list());
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].format, LeaseFormat::Net2);
  ASSERT_TRUE(get(manager.acquire(found[0])).done());
  ASSERT_TRUE(get(manager.checkpoint("P..0", "\"4\"")).done());
  const auto text = container.read_item("P..0", "P..0").value;
  EXPECT_THAT(text, HasSubstr(R"("future":{"a":[1, 2.50]})"));
  EXPECT_THAT(text, HasSubstr(R"("ContinuationToken":"\"4\"")"));
}

TEST_F(LeaseContainerTest, ADeletedLeaseAndAThiefAreToldApart) {
  const auto container = make_container("leases", 1, {"/id"});
  ContainerLeaseStore store(container);
  LeaseManager manager(store, LeaseIds{"P"}, "host-1", runtime);
  LeaseManager thief(store, LeaseIds{"P"}, "host-2", runtime);
  for (const auto* token : {"0", "1"}) {
    auto lease = new_lease(LeaseIds{"P"}, LeaseFormat::Net3, token, client::FeedRange{}, "\"1\"",
                           client::ChangeFeedMode::LatestVersion, "");
    const auto created = get(manager.create(std::move(*lease)));
    ASSERT_TRUE(get(manager.acquire(created.lease)).done());
  }
  container.delete_item("P..0", "P..0");
  EXPECT_EQ(get(manager.renew("P..0")).kind, LeaseChange::Kind::Gone);
  ASSERT_TRUE(get(thief.acquire(get(thief.list())[0])).done());
  EXPECT_EQ(get(manager.renew("P..1")).kind, LeaseChange::Kind::Lost);
}

TEST_F(LeaseContainerTest, LeasesArePartOfTheGroupThatAnybodyCanLookAt) {
  const auto monitored = make_container("stars", 2);
  const auto leases = container_lease_store(make_container("leases", 1, {"/id"}));
  const auto store = async_lease_store(leases);
  ContainerFeedReader reader(monitored);
  const auto key = get(find_group(*store, reader, "p.", "", LeaseFormat::Detect));
  BootstrapOptions options;
  options.feed.start_from_beginning = true;
  get(bootstrap(*store, reader, key, options, runtime));
  for (int count = 0; count < 20; ++count) {
    monitored.create_item(fmt::format(R"({{"id":"{0}","pk":"{0}"}})", count),
                          std::to_string(count));
  }

  LeaseGroup group(monitored, leases, "p.");
  ASSERT_THAT(group.leases(), SizeIs(2));
  std::uint64_t documents = 0;
  for (const auto& lag : group.lag()) {
    EXPECT_TRUE(lag.exact);
    documents += lag.documents;
  }
  EXPECT_EQ(documents, 20U);

  const std::string snapshot = group.snapshot();
  group.reset({LeaseGroup::Position::Kind::Now, {}, {}});
  for (const auto& lag : group.lag()) EXPECT_EQ(lag.documents, 0U);
  group.restore(snapshot);
  for (const auto& lease : group.leases()) EXPECT_EQ(lease.position, "\"0\"");

  LeaseManager manager(*store, key.ids, "host-1", runtime);
  for (const Lease& lease : get(manager.list())) ASSERT_TRUE(get(manager.acquire(lease)).done());
  EXPECT_THROW(group.reset({}), client::CosmosException);
  group.pause();
  EXPECT_TRUE(group.paused());
  group.reset({LeaseGroup::Position::Kind::Time,
               std::chrono::system_clock::now() - std::chrono::hours(1),
               {}});
  documents = 0;
  for (const auto& lag : group.lag()) documents += lag.documents;
  EXPECT_EQ(documents, 20U);
  group.resume();
  EXPECT_FALSE(group.paused());
  EXPECT_EQ(group.release("host-1"), 0U) << "the reset has taken them already";
  for (const auto& finding : group.doctor()) {
    EXPECT_EQ(finding.severity, Severity::Informational) << finding.message;
  }
}

}  // namespace
}  // namespace orrery::processor
