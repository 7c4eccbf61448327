// Ranges that split and merge under hosts, and while nobody runs; against a real server.
#include "processor_test.h"

namespace orrery::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RangesTest : public ProcessorTest {
 protected:
  /// Two ranges that may be merged, since their throughput is that of one.
  void prepare_two() {
    prepare(1);
    split_first();
  }
  void split_first() { split(*monitored_, monitored_->partition_key_ranges()[0].id); }
  void merge_first_two() {
    const auto ranges = monitored_->partition_key_ranges();
    server().merge(database().id() + "/" + monitored_->id(), ranges[0].id, ranges[1].id);
  }
  /// The tokens of the leases, in order.
  std::vector<std::string> tokens() {
    std::vector<std::string> found;
    for (const auto& [token, _] : positions()) found.push_back(token);
    return found;
  }
  std::vector<std::string> range_ids() {
    std::vector<std::string> ids;
    for (const auto& range : monitored_->partition_key_ranges()) ids.push_back(range.id);
    std::ranges::sort(ids);
    return ids;
  }
};

TEST_F(RangesTest, ASplitWhileRunningLosesNothing) {
  prepare(1);
  write(100);
  auto one = host("host-1");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 100; }));
  split_first();
  write(100, "after");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 200; }));
  EXPECT_TRUE(wait_until([&] { return tokens() == range_ids(); }));
  ASSERT_FALSE(record_.closes().empty());
  EXPECT_EQ(record_.closes()[0].reason, CloseReason::LeaseGone);
  expect_each_once();
  expect_order_of_keys("d", 100);
  expect_order_of_keys("after", 100);
}

TEST_F(RangesTest, ChildrenBeginWhereTheirParentWas) {
  prepare(1);
  write(50);
  ChangeFeedHostOptions options = fast();
  auto one = host("host-1", options);
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 50; }));
  one->unregister_observers();
  const std::string parent = positions().at("0");
  split_first();
  // The host that meets the split makes them; no writes meanwhile move them on.
  auto two = host("host-2", options);
  ASSERT_TRUE(wait_until([&] { return tokens() == range_ids(); }));
  two->unregister_observers();
  for (const auto& [token, position] : positions()) {
    // At least there: what has nothing new may have moved to the head since.
    EXPECT_GE(std::stoll(position.substr(1)), std::stoll(parent.substr(1))) << token;
  }
  expect_each_once();
}

TEST_F(RangesTest, ASplitWhileNobodyRunsLosesNothing) {
  prepare(1);
  write(50);
  {
    auto one = host("host-1");
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == 50; }));
  }
  EXPECT_THAT(tokens(), ElementsAre("0"));
  split_first();
  write(50, "after");
  auto two = host("host-2");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 100; }));
  EXPECT_TRUE(wait_until([&] { return tokens() == range_ids(); }));
  expect_each_once();
  expect_order_of_keys("after", 50);
}

TEST_F(RangesTest, WhoCrashedAfterTheFirstChildIsCompletedByTheNextOwner) {
  prepare(1);
  write(50);
  {
    auto one = host("host-1");
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == 50; }));
  }
  split_first();
  write(50, "after");
  // Of two children one was made, as a host does it, and then it died.
  const auto child = monitored_->partition_key_ranges()[0];
  auto lease = nlohmann::json::parse(lease_documents("..0")[0]);
  const std::string parent_id = lease["id"];
  const std::string child_id = parent_id.substr(0, parent_id.size() - 1) + child.id;
  for (const char* name : {"_etag", "_ts", "_rid", "_self", "_attachments"}) lease.erase(name);
  lease["id"] = child_id;
  lease["LeaseToken"] = child.id;
  lease["FeedRange"]["Range"] = {{"min", child.range.min}, {"max", child.range.max}};
  lease["properties"]["orrery.generation"] = "1";
  leases_->create_item(lease.dump(), child_id);

  auto two = host("host-2");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 100; }));
  EXPECT_TRUE(wait_until([&] { return tokens() == range_ids(); }));
  expect_each_once();
  expect_order_of_keys("after", 50);
}

TEST_F(RangesTest, AMergeAndASplitAfterwardsLoseNothing) {
  prepare_two();
  write(60);
  auto one = host("host-1");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 60; }));
  const auto parts = monitored_->partition_key_ranges();
  merge_first_two();
  write(60, "merged");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 120; }));
  // Each old range keeps a lease of its own, for the part of the new one that it was.
  const auto part = [&](int i) {
    return parts[static_cast<std::size_t>(i)].range.min + "-" +
           parts[static_cast<std::size_t>(i)].range.max;
  };
  ASSERT_TRUE(wait_until([&] { return tokens() == std::vector{part(0), part(1)}; }));
  for (const std::string& lease : lease_documents("..")) {
    EXPECT_EQ(member(lease, "version"), "1") << lease;
  }
  // Where the new border is another one than the old one was, a lease is cut there.
  split_first();
  write(60, "split");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 180; }));
  expect_each_once();
  for (const char* prefix : {"d", "merged", "split"}) expect_order_of_keys(prefix, 60);
  EXPECT_THAT(group().doctor(), ::testing::Not(::testing::Contains(::testing::Field(
                                    &LeaseGroup::Finding::severity, Severity::Critical))));
}

TEST_F(RangesTest, AMergeWhileNobodyRunsLosesNothing) {
  prepare_two();
  write(60);
  {
    auto one = host("host-1");
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == 60; }));
  }
  merge_first_two();
  write(60, "merged");
  auto two = host("host-2");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 120; }));
  expect_each_once();
  expect_order_of_keys("merged", 60);
}

}  // namespace
}  // namespace orrery::test
