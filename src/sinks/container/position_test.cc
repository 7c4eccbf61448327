#include "sinks/container/position.h"

#include <gtest/gtest.h>

#include "json/value.h"

namespace orrery::sinks {
namespace {

const client::FeedRange kAll{"", "FF"};
const client::FeedRange kLeft{"", "1F"};
const client::FeedRange kRight{"1F", "FF"};
const PartitionKeyDefinition kByRegion{{{"region"}}, KeyKind::Hash, 2, false};

Change change(std::uint64_t lsn, std::string rid, std::size_t bytes = 10) {
  Change made;
  made.lsn = lsn;
  made.rid = std::move(rid);
  made.text = std::string(bytes, 'x');
  return made;
}

std::vector<const Change*> pointers(const std::vector<Change>& changes) {
  std::vector<const Change*> all;
  for (const Change& each : changes) all.push_back(&each);
  return all;
}

TEST(Reach, IncludesWhatIsBeforeIt) {
  EXPECT_TRUE((Reach{5, ""}.includes(change(5, "z"))));
  EXPECT_FALSE((Reach{5, ""}.includes(change(6, "a"))));
  EXPECT_TRUE((Reach{5, "m"}.includes(change(4, "z"))));
  EXPECT_TRUE((Reach{5, "m"}.includes(change(5, "m"))));
  EXPECT_FALSE((Reach{5, "m"}.includes(change(5, "n"))));
}

TEST(PositionFormat, WritesWhatItReads) {
  const PositionFormat format("g", kByRegion, {});
  const Position position{{17, "rid"}, 1763270400, {}};
  const std::string text = format.text_of(kLeft, PartitionKey({KeyComponent("eu")}), position);
  EXPECT_EQ(text,
            R"({"id":"orrery.position.g.-1F","region":"eu","ttl":-1,"orreryPosition":)"
            R"({"group":"g","min":"","max":"1F","epoch":1763270400,"to":17,"within":"rid"}})");
  const auto read = PositionFormat::parse(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->reach, position.reach);
  EXPECT_EQ(read->epoch, position.epoch);
  EXPECT_TRUE(PositionFormat::is_position(text));
  EXPECT_TRUE(format.is_ours(text));
  EXPECT_FALSE(PositionFormat("h", kByRegion, {}).is_ours(text));
  EXPECT_FALSE(PositionFormat::is_position(R"({"id":"x","orreryPosition":{}})"));
  EXPECT_FALSE(PositionFormat::parse(R"({"id":"x"})"));
}

TEST(PositionFormat, HasTheKeyOfItsPartitionAndUniqueValues) {
  const PartitionKeyDefinition definition{{{"a", "b"}, {"c"}}, KeyKind::MultiHash, 2, false};
  const PositionFormat format("g", definition, {{"mail"}, {"a", "d"}, {"c"}});
  const auto text =
      format.text_of(kAll, PartitionKey({KeyComponent(-0.0), KeyComponent(Undefined())}), {});
  const auto value = json::Value::parse(text);
  ASSERT_TRUE(value) << text;
  EXPECT_EQ(KeyReader(definition).key_of(text).to_json(), "[-0,{}]");
  EXPECT_TRUE(value->member("mail").is_string("orrery.position.g.-FF"));
  EXPECT_TRUE(value->member("a").member("d").is_string("orrery.position.g.-FF"));
  EXPECT_TRUE(value->member("c").is_undefined());
}

TEST(Ledger, TellsWhoCameBeforeAndWhoIsLate) {
  Ledger ledger{"rid", {}};
  ledger.take(kAll, 10);
  ledger.take(kLeft, 12);
  ledger.take(kRight, 11);
  const PositionFormat format("g", kByRegion, {});
  const auto read = Ledger::parse(format.ledger_text(ledger.to_json()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->source_rid, "rid");
  ASSERT_EQ(read->entries.size(), 3u);

  EXPECT_TRUE(read->is_superseded(kAll, 11));
  EXPECT_FALSE(read->is_superseded(kAll, 13));
  EXPECT_FALSE(read->is_superseded(kRight, 11));
  ASSERT_EQ(read->predecessors_of(kRight).size(), 1u);
  EXPECT_EQ(read->predecessors_of(kRight)[0].area, kAll);
  EXPECT_EQ(read->predecessors_of(kAll).size(), 2u);
  ASSERT_NE(read->find(kLeft), nullptr);
  EXPECT_EQ(read->find(kLeft)->epoch, 12u);
  EXPECT_FALSE(Ledger::parse(R"({"id":"x"})"));
}

TEST(PlanBatch, KeepsTransactionsTogetherAsLongAsTheyFit) {
  const std::vector<Change> changes{change(1, "a"), change(2, "d"), change(2, "c"), change(3, "e")};
  const auto all = plan_batch(pointers(changes), {10, 10'000});
  EXPECT_EQ(all.changes.size(), 4u);
  EXPECT_EQ(all.reach, (Reach{3, ""}));

  const auto two = plan_batch(pointers(changes), {2, 10'000});
  EXPECT_EQ(two.changes.size(), 1u);
  EXPECT_EQ(two.reach, (Reach{1, ""}));

  const auto by_bytes = plan_batch(pointers(changes), {10, 3 * operation_bytes(10)});
  EXPECT_EQ(by_bytes.changes.size(), 3u);
  EXPECT_EQ(by_bytes.reach, (Reach{2, ""}));
}

TEST(PlanBatch, CutsATransactionInTheOrderOfRids) {
  const std::vector<Change> changes{change(2, "d"), change(2, "b"), change(2, "c"), change(3, "a")};
  const auto first = plan_batch(pointers(changes), {2, 10'000});
  ASSERT_EQ(first.changes.size(), 2u);
  EXPECT_EQ(first.changes[0]->rid, "b");
  EXPECT_EQ(first.reach, (Reach{2, "c"}));

  std::vector<const Change*> left;
  for (const Change& each : changes) {
    if (!first.reach.includes(each)) left.push_back(&each);
  }
  const auto second = plan_batch(left, {1, 10'000});
  ASSERT_EQ(second.changes.size(), 1u);
  EXPECT_EQ(second.changes[0]->rid, "d");
  EXPECT_EQ(second.reach, (Reach{2, ""}));
}

TEST(PlanBatch, TellsOfOneThatIsTooLarge) {
  const std::vector<Change> changes{change(2, "b", 5000), change(2, "a", 5000), change(3, "c")};
  const auto plan = plan_batch(pointers(changes), {10, 1000});
  EXPECT_TRUE(plan.too_large);
  ASSERT_EQ(plan.changes.size(), 1u);
  EXPECT_EQ(plan.changes[0]->rid, "a");
  EXPECT_EQ(plan.reach, (Reach{2, "a"}));
}

}  // namespace
}  // namespace orrery::sinks
