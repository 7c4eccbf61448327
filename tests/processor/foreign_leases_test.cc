// Lease containers that others use, too: documents of other libraries, locks of the dead, thieves;
// and what an operator does to a group. Against a real server.
#include <atomic>

#include "processor_test.h"

namespace orrery::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ForeignLeasesTest : public ProcessorTest {
 protected:
  /// The prefix of the ids of the group, by rids as .NET does it or by names as Java's
  /// handleChanges does.
  std::string group_id(bool by_names = false) {
    const std::string rid = monitored_->read().value.rid;
    const std::string database_rid = database().read().value.rid;
    return by_names ? "127.0.0.1_" + database().id() + "_" + monitored_->id()
                    : "127.0.0.1_" + database_rid + "_" + rid;
  }
  void put(json document) {
    const std::string id = document.at("id");
    leases_->create_item(document.dump(), id);
  }
  json lease(const std::string& id) { return json::parse(leases_->read_item(id, id).value); }
  /// Two documents of the only range; the position of the first.
  std::string write_two() {
    const auto first = monitored_->upsert_item(R"({"id":"first","pk":"k"})", "k").value;
    monitored_->upsert_item(R"({"id":"second","pk":"k"})", "k");
    const auto page = monitored_->change_feed().next();
    return "\"" + member(page[0], "_lsn") + "\"";
  }
  /// A host joins, goes on after the first document, and goes.
  void run_a_host() {
    auto one = host("host-1");
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == 1; }));
    one->unregister_observers();
    EXPECT_THAT(record_.order("k"), ElementsAre("second"));
  }
  /// Base64 as Java writes it.
  static std::string encoded(const std::string& text) {
    static constexpr char kLetters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string out;
    for (std::size_t i = 0; i < text.size(); i += 3) {
      unsigned bits = 0;
      for (std::size_t j = 0; j < 3; ++j) {
        bits = bits << 8 | (i + j < text.size() ? static_cast<unsigned char>(text[i + j]) : 0u);
      }
      for (std::size_t j = 0; j < 4; ++j) {
        out += i + j > text.size() ? '=' : kLetters[bits >> (18 - 6 * j) & 63];
      }
    }
    return out;
  }
  /// The state of a Java host, with its members in the order in which Java writes them.
  std::string java_state(const std::string& position) {
    using nlohmann::ordered_json;
    const ordered_json range{{"min", ""}, {"max", "FF"}};
    const std::string rid = monitored_->read().value.rid;
    ordered_json token{{"token", position}, {"range", range}};
    ordered_json continuation{{"V", 1}, {"Rid", rid}};
    continuation["Continuation"] = ordered_json::array({token});
    continuation["Range"] = range;
    ordered_json state{{"V", 1}, {"Rid", rid}, {"Mode", "INCREMENTAL"}};
    state["StartFrom"]["Type"] = "BEGINNING";
    state["Continuation"] = continuation;
    return encoded(state.dump());
  }
};

TEST_F(ForeignLeasesTest, LeasesOfNet2AreJoined) {
  prepare(1);
  const std::string position = write_two();
  const std::string id = group_id() + "..0";
  put({{"id", group_id() + ".info"}});
  put({{"id", id},
       {"PartitionId", "0"},
       {"Owner", nullptr},
       {"ContinuationToken", position},
       {"properties", {{"theirs", "kept"}}},
       {"timestamp", "2018-05-03T10:11:12.1234567Z"},
       {"unknown", {1, 2, {{"deep", true}}}}});
  run_a_host();
  const json after = lease(id);
  EXPECT_EQ(after["PartitionId"], "0");
  EXPECT_FALSE(after.contains("LeaseToken"));
  EXPECT_FALSE(after.contains("FeedRange"));
  EXPECT_EQ(after["unknown"].dump(), R"([1,2,{"deep":true}])");
  EXPECT_EQ(after["properties"]["theirs"], "kept");
  EXPECT_GT(after["ContinuationToken"], position);
  EXPECT_TRUE(after["Owner"].is_null());
  EXPECT_THAT(lease_documents(".."), SizeIs(1));
}

TEST_F(ForeignLeasesTest, LeasesOfNet3AreJoinedAndKeepTheirPartitionId) {
  prepare(1);
  const std::string position = write_two();
  const std::string id = group_id() + "..0";
  put({{"id", group_id() + ".info"}});
  put({{"id", id},
       {"version", 0},
       {"LeaseToken", "0"},
       {"PartitionId", "0"},
       {"Owner", nullptr},
       {"ContinuationToken", position},
       {"properties", json::object()},
       {"timestamp", "2024-05-03T10:11:12.1234567Z"},
       {"Mode", "Incremental Feed"},
       {"unknown", "kept"}});
  run_a_host();
  const json after = lease(id);
  EXPECT_EQ(after["PartitionId"], "0");
  EXPECT_EQ(after["LeaseToken"], "0");
  EXPECT_EQ(after["unknown"], "kept");
  EXPECT_EQ(after["Mode"], "Incremental Feed");
  EXPECT_GT(after["ContinuationToken"], position);
}

TEST_F(ForeignLeasesTest, PartsOfNet3AreReadAsSuch) {
  prepare(1);
  const std::string position = write_two();
  put({{"id", group_id() + ".info"}});
  for (const auto& [min, max] : {std::pair{"", "1F"}, std::pair{"1F", "FF"}}) {
    const std::string token = std::string(min) + "-" + max;
    put({{"id", group_id() + ".." + token},
         {"version", 1},
         {"LeaseToken", token},
         {"FeedRange", {{"Range", {{"min", min}, {"max", max}}}}},
         {"Owner", nullptr},
         {"ContinuationToken", position},
         {"properties", json::object()},
         {"timestamp", nullptr},
         {"Mode", "Incremental Feed"}});
  }
  run_a_host();
  EXPECT_THAT(lease_documents(".."), SizeIs(2));
}

TEST_F(ForeignLeasesTest, LeasesOfJavasHandleChangesAreJoined) {
  prepare(1);
  const std::string position = write_two();
  const std::string id = group_id(true) + "..0";
  put({{"id", group_id(true) + ".info"}});
  put({{"id", id},
       {"LeaseToken", "0"},
       {"ContinuationToken", position},
       {"timestamp", "2024-05-03T10:11:12.123Z"},
       {"Owner", nullptr},
       {"unknown", "kept"}});
  run_a_host();
  const json after = lease(id);
  EXPECT_EQ(after["unknown"], "kept");
  EXPECT_FALSE(after.contains("version"));
  EXPECT_FALSE(after.contains("FeedRange"));
  EXPECT_GT(after["ContinuationToken"], position);
  EXPECT_THAT(lease_documents(".."), SizeIs(1));
}

TEST_F(ForeignLeasesTest, LeasesOfJavasOtherHandlersAreJoined) {
  prepare(1);
  const std::string position = write_two();
  const std::string id = group_id() + "..-FF";
  put({{"id", group_id() + ".info"}});
  const std::string state = java_state(position);
  put({{"id", id},
       {"LeaseToken", "-FF"},
       {"ContinuationToken", state},
       {"timestamp", "2024-05-03T10:11:12.123Z"},
       {"Owner", nullptr},
       {"version", 1},
       {"feedRange", {{"Range", {{"min", ""}, {"max", "FF"}}}}},
       {"unknown", "kept"}});
  run_a_host();
  const json after = lease(id);
  EXPECT_EQ(after["unknown"], "kept");
  EXPECT_FALSE(after.contains("FeedRange"));
  EXPECT_NE(after["ContinuationToken"], state);
  const std::string position_now = group().leases()[0].position;
  EXPECT_EQ(after["ContinuationToken"], java_state(position_now)) << "it is the same state";
  EXPECT_GT(position_now, position);
}

TEST_F(ForeignLeasesTest, APositionOfJavaInALeaseOfNetIsRefusedInWords) {
  prepare(1);
  const std::string position = write_two();
  put({{"id", group_id() + ".info"}});
  put({{"id", group_id() + "..0"},
       {"version", 0},
       {"LeaseToken", "0"},
       {"FeedRange", {{"Range", {{"min", ""}, {"max", "FF"}}}}},
       {"Owner", nullptr},
       {"ContinuationToken", java_state(position)},
       {"properties", json::object()},
       {"timestamp", nullptr},
       {"Mode", "Incremental Feed"}});
  try {
    host("host-1");
    FAIL() << "it has started";
  } catch (const client::CosmosException& refusal) {
    EXPECT_EQ(refusal.status(), 400);
    EXPECT_THAT(refusal.what(), HasSubstr("Java"));
    EXPECT_THAT(refusal.what(), HasSubstr("another lease prefix"));
  }
}

TEST_F(ForeignLeasesTest, ALockWhoseHolderDiedIsBrokenAlthoughNothingExpires) {
  monitored_.emplace(make_container("monitored", 1));
  leases_.emplace(make_container("leases", 1, {"/id"}));  // Without time to live.
  write(5);
  put({{"id", group_id() + ".lock"}, {"ttl", 1}});
  auto one = host("host-1");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 5; }, 60s));
  EXPECT_THAT(lease_documents(".lock"), IsEmpty());
}

TEST_F(ForeignLeasesTest, ALeaseThatSomebodyTookIsClosedOnceAndLeftAlone) {
  prepare(1);
  ChangeFeedHostOptions options = fast();
  options.lease_expiration_interval = 5s;  // So that the thief has it for a while.
  auto one = host("host-1", options);
  ASSERT_TRUE(wait_until([&] { return owners()["host-1"] == 1; }));
  const std::string id = lease_id("0");
  ASSERT_TRUE(wait_until([&] {
    return rewrite_lease(id, [](json& document) {
      if (document["Owner"] != "host-1") return false;
      document["Owner"] = "thief";
      return true;
    });
  }));
  const std::string stolen = lease(id)["_etag"];
  ASSERT_TRUE(wait_until([&] { return !record_.closes().empty(); }));
  EXPECT_EQ(record_.closes()[0].reason, CloseReason::LeaseLost);
  EXPECT_EQ(lease(id)["_etag"], stolen) << "the victim has written it";
  EXPECT_THAT(record_.closes(), SizeIs(1));
  // The thief does not renew: after a while it is taken for dead.
  EXPECT_TRUE(wait_until([&] { return owners()["host-1"] == 1; }));
  EXPECT_THAT(record_.closes(), SizeIs(1));
}

TEST_F(ForeignLeasesTest, NoBatchBeginsWhileAnOperatorHasPausedTheGroup) {
  prepare(2);
  write(10);
  auto one = host("host-1");
  auto two = host("host-2");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 10; }));
  LeaseGroup operators = group();
  operators.pause();
  EXPECT_TRUE(operators.paused());
  ASSERT_TRUE(wait_until([&] { return one->stats().paused && two->stats().paused; }));
  write(10, "paused");
  // Both have read the leases several times since.
  const auto renewed = [&] { return one->stats().renewed + two->stats().renewed; };
  const auto before = renewed();
  ASSERT_TRUE(wait_until([&] { return renewed() >= before + 6; }));
  EXPECT_EQ(record_.distinct(), 10u);
  operators.resume();
  EXPECT_TRUE(wait_until([&] { return record_.distinct() == 20; }));
  expect_each_once();
}

TEST_F(ForeignLeasesTest, DeletesAreNoWorkThatIsLeft) {
  prepare(1);
  write(10);
  {
    auto one = host("host-1");
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == 10; }));
  }
  for (int i = 0; i < 10; ++i) {
    const std::string key = "k" + std::to_string(i);
    monitored_->delete_item("d" + std::to_string(i), key);
  }
  const auto lag = group().lag();
  ASSERT_THAT(lag, SizeIs(1));
  EXPECT_TRUE(lag[0].exact);
  EXPECT_EQ(lag[0].documents, 0u);
  write(3, "new");
  EXPECT_EQ(group().lag()[0].documents, 3u);
}

TEST_F(ForeignLeasesTest, ExistingLeasesAreDiscardedOnRequest) {
  prepare(1);
  write(10);
  {
    auto one = host("host-1");
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == 10; }));
  }
  ChangeFeedHostOptions options = fast();
  options.discard_existing_leases = true;
  auto two = host("host-2", options);
  EXPECT_TRUE(wait_until([&] { return record_.counts()["d9"] == 2; }));
}

}  // namespace
}  // namespace orrery::test
