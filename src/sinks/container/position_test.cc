#include "sinks/container/position.h"

#include <gtest/gtest.h>

#include "json/value.h"

namespace orrery::sinks {
namespace {

const client::FeedRange kAll{"", "FF"};
const client::FeedRange kLeft{"", "1F"};
const client::FeedRange kRight{"1F", "FF"};
const PartitionKeyDefinition kByRegion{{{"region"}}, KeyKind::Hash, 2, false};

SourceChange change_at(std::uint64_t lsn, std::string rid) {
  SourceChange made;
  made.lsn = lsn;
  made.rid = std::move(rid);
  return made;
}

TEST(AppliedUpTo, IncludesWhatIsBeforeIt) {
  EXPECT_TRUE((AppliedUpTo{5, ""}.includes(change_at(5, "z"))));
  EXPECT_FALSE((AppliedUpTo{5, ""}.includes(change_at(6, "a"))));
  EXPECT_TRUE((AppliedUpTo{5, "m"}.includes(change_at(4, "z"))));
  EXPECT_TRUE((AppliedUpTo{5, "m"}.includes(change_at(5, "m"))));
  EXPECT_FALSE((AppliedUpTo{5, "m"}.includes(change_at(5, "n"))));
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
  EXPECT_EQ(read->applied, position.applied);
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
  ledger.put(kAll, 10);
  ledger.put(kLeft, 12);
  ledger.put(kRight, 11);
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

}  // namespace
}  // namespace orrery::sinks
