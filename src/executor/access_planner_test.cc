#include "executor/access_planner.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_seed.h"
#include "executor/index_match.h"
#include "index/terms.h"
#include "partition/test_environment.h"
#include "partition/writer/stage.h"
#include "query/eval/evaluate.h"
#include "query/eval/rows.h"
#include "storage/test_store.h"

namespace orrery::executor {
namespace {

using partition::key_of;
using query::PreparedQuery;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Way = SourceReport::Way;

constexpr PartitionNumber kPlannedPartition{7};

query::PreparedQueryPtr prepared(const std::string& text) {
  auto query = PreparedQuery::prepare(text, {}, {});
  EXPECT_TRUE(query) << text;
  return *query;
}

class QueryDocumentsTest : public testing::Test {
 protected:
  /// `members`: what stands after the id, such as `"a":1`. Ids are "0", "1", …
  void add(const std::string& members, std::string_view partition_key = "p") {
    partition::Write write;
    const std::string id = std::to_string(count_++);
    write.kind = partition::Write::Kind::Create;
    write.key = key_of(partition_key, id);
    write.version.new_id = id;
    write.version.open_text = R"({"id":")" + id + "\"" + (members.empty() ? "" : ",") + members;
    const partition::Transaction transaction{.work = partition::DocumentWrites{{std::move(write)}}};
    storage::Batch batch;
    ASSERT_TRUE(stage_.stage(transaction, 1, batch, storage::Tier::Disk));
    ASSERT_TRUE(storage::commit(*store_, batch));
    stage_.forget_committed(stage_.head().lsn);
  }

  /// Makes indexes of all that is there, as their writer keeps them.
  void index(const std::vector<std::string>& texts) {
    std::vector<IndexSpec> specs;
    std::vector<storage::IndexRecord> records;
    for (const auto& text : texts) {
      specs.push_back(IndexSpec::parse(text).value());
      records.push_back({.id = static_cast<std::uint32_t>(records.size() + 1),
                         .spec = text,
                         .state = storage::IndexRecord::State::Complete,
                         .built_up_to = {}});
    }
    storage::Batch batch;
    const index::TermFinder finder(specs);
    const auto snapshot = store_->snapshot();
    for (const auto& [key, value] : storage::contents(*snapshot, storage::Family::Log,
                                                      storage::partition_prefix(kPlannedPartition),
                                                      storage::partition_end(kPlannedPartition))) {
      const auto record = *storage::VersionRecord::parse(value);
      std::vector<std::vector<std::string>> terms(specs.size());
      finder.find(record.text, terms);
      for (std::size_t i = 0; i < terms.size(); ++i) {
        for (const auto& term : terms[i]) {
          std::string entry;
          storage::append_term_key(entry, kPlannedPartition, records[i].id, term,
                                   record.header.number);
          batch.put(storage::Family::Terms, entry,
                    storage::make_position_value(storage::log_position(key)));
        }
      }
    }
    auto head = stage_.head();
    head.indexes = std::make_shared<const std::vector<storage::IndexRecord>>(std::move(records));
    batch.put(storage::Family::Heads, storage::partition_prefix(kPlannedPartition), head.make());
    ASSERT_TRUE(storage::commit(*store_, batch));
  }

  void want_key(std::string_view partition_key) {
    const auto key = key_of(partition_key, "");
    filter_.partition_key = key.partition_key;
    filter_.epks = EpkRange{Epk{key.epk}, Epk{key.epk + '\x01'}};
  }

  struct Walked {
    std::vector<std::string> ids;
    std::vector<bool> in_order;
    SourceReport report;
  };
  Walked walk(const std::string& text, AccessChoice choice = AccessChoice::Auto,
              DocumentNumber after = {}, std::optional<std::string_view> from_key = {}) {
    const auto query = prepared(text);
    const auto access = query::access_of(*query);
    const auto snapshot = store_->snapshot();
    const SourceScope scope{.snapshot = *snapshot,
                            .partition = kPlannedPartition,
                            .documents = count_,
                            .filter = filter_,
                            .after = after,
                            .from_key = from_key,
                            .choice = choice};
    auto walk = open_source(scope, *query, access);
    EXPECT_TRUE(walk);
    Walked walked;
    while ((*walk)->next()) {
      const auto document = (*walk)->text();
      const auto id = document.substr(7, document.find('"', 7) - 7);
      walked.ids.emplace_back(id);
      walked.in_order.push_back((*walk)->is_in_order());
    }
    EXPECT_TRUE((*walk)->status());
    walked.report = (*walk)->report();
    return walked;
  }

  /// Documents with a = 0 … 19 and b = 0 … 4 again and again.
  void add_many(int count = 200) {
    for (int i = 0; i < count; ++i) {
      add("\"a\":" + std::to_string(i % 20) + ",\"b\":" + std::to_string(i % 5) + ",\"tags\":[\"t" +
          std::to_string(i % 50) + "\",\"all\"]");
    }
  }

  storage::TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_ = storage::open_store(directory_.path());
  partition::Stage stage_{*store_, kPlannedPartition, RangeId{0},
                          Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}), storage::Head{}};
  partition::ScanFilter filter_;
  std::uint64_t count_ = 0;
};

// ── lists ────────────────────────────────────────────────────────────────────────────────────────

TEST_F(QueryDocumentsTest, WithoutAnIndexEverythingIsLookedAt) {
  add_many(20);
  const auto walked = walk("SELECT * FROM c WHERE c.a = 3");
  EXPECT_EQ(walked.report.way, Way::Scan);
  EXPECT_EQ(walked.ids.size(), 20U);
  EXPECT_EQ(walked.report.documents_read, 20U);
}

TEST_F(QueryDocumentsTest, AnIndexFindsTheFewThatAreWanted) {
  add_many();
  index({"/b", "/a"});
  const auto walked = walk("SELECT * FROM c WHERE c.a = 3");
  EXPECT_EQ(walked.report.way, Way::Index);
  EXPECT_THAT(walked.report.indexes, ElementsAre("/a"));
  EXPECT_EQ(walked.ids.size(), 10U);
  EXPECT_EQ(walked.report.documents_read, 10U);
  EXPECT_EQ(walked.ids.front(), "3");
  EXPECT_EQ(walked.ids.back(), "183");
}

TEST_F(QueryDocumentsTest, AnIndexThatFindsNearlyAllIsNotUsedUnlessItMust) {
  add_many();
  index({"/a"});
  const std::string text = "SELECT * FROM c WHERE c.a > 3";
  EXPECT_EQ(walk(text).report.way, Way::Scan);
  const auto forced = walk(text, AccessChoice::Index);
  EXPECT_EQ(forced.report.way, Way::Index);
  EXPECT_EQ(forced.ids.size(), 160U);
  EXPECT_EQ(walk("SELECT * FROM c WHERE c.a = 3", AccessChoice::Scan).report.way, Way::Scan);
  EXPECT_EQ(walk("SELECT * FROM c WHERE c.d = 3", AccessChoice::Index).report.way, Way::Scan)
      << "there is none";
}

TEST_F(QueryDocumentsTest, AStreamGoesOnAfterANumber) {
  add_many();
  index({"/a"});
  const std::string text = "SELECT * FROM c WHERE c.a = 3";
  const auto query = prepared(text);
  std::vector<DocumentNumber> numbers;
  const auto snapshot = store_->snapshot();
  auto cursor = partition::DocumentCursor::by_number(*snapshot, kPlannedPartition, {}, {});
  while (cursor.next()) numbers.push_back(cursor.number());
  const auto walked = walk(text, AccessChoice::Auto, numbers[143]);
  EXPECT_THAT(walked.ids, ElementsAre("163", "183"));
  EXPECT_EQ(walk(text, AccessChoice::Scan, numbers[143]).ids.size(), 56U);
}

TEST_F(QueryDocumentsTest, SeveralListsLeaveWhatTheyHaveInCommon) {
  add_many(600);
  index({"/a", "/b", "/tags/[]"});
  const auto walked = walk("SELECT * FROM c WHERE c.a = 3 AND ARRAY_CONTAINS(c.tags, 't3')");
  EXPECT_EQ(walked.ids.size(), 6U);  // Those that are 3 modulo 100.
  EXPECT_EQ(walked.ids[1], "103");
}

TEST_F(QueryDocumentsTest, ACompositeIndexServesSeveralConditions) {
  add_many();
  index({"/b ASC,/a DESC"});
  const auto points = walk("SELECT * FROM c WHERE c.a IN (3, 8) AND c.b = 3");
  EXPECT_THAT(points.report.indexes, ElementsAre("/b ASC,/a DESC"));
  EXPECT_EQ(points.ids.size(), 20U);
  const auto range = walk("SELECT * FROM c WHERE c.a > 8 AND c.b = 3");
  EXPECT_EQ(range.ids.size(), 20U);  // 13 and 18.
  EXPECT_EQ(range.report.way, Way::Index);
  EXPECT_EQ(walk("SELECT * FROM c WHERE c.a = 3").report.way, Way::Scan);
}

TEST_F(QueryDocumentsTest, AlternativesAreUnited) {
  add_many();
  index({"/a", "/tags/[]"});
  const std::string text = "SELECT * FROM c WHERE c.a = 3 OR ARRAY_CONTAINS(c.tags, 't23')";
  const auto walked = walk(text);
  EXPECT_EQ(walked.report.way, Way::Index);
  EXPECT_THAT(walked.report.indexes, ElementsAre("/a", "/tags/[]"));
  EXPECT_EQ(walked.ids.size(), 12U) << "10, and 4 of which 2 are the same";
  EXPECT_TRUE(
      std::ranges::is_sorted(walked.ids, {}, [](const std::string& id) { return std::stoi(id); }));
  EXPECT_EQ(walk("SELECT * FROM c WHERE c.a = 3 OR c.d = 1").report.way, Way::Scan);
}

TEST_F(QueryDocumentsTest, ElementsOfOneDocumentFindItOnce) {
  add_many();
  index({"/tags/[]"});
  const auto walked =
      walk("SELECT * FROM c WHERE ARRAY_CONTAINS_ANY(c.tags, 't3', 'all')", AccessChoice::Index);
  EXPECT_EQ(walked.ids.size(), 200U);
  EXPECT_EQ(std::set<std::string>(walked.ids.begin(), walked.ids.end()).size(), 200U);
}

TEST_F(QueryDocumentsTest, WhatCanNeverBeTrueReadsNothing) {
  add_many(20);
  const auto walked = walk("SELECT VALUE COUNT(1) FROM c WHERE c.a = 1 AND c.a = 2");
  EXPECT_EQ(walked.report.way, Way::Nothing);
  EXPECT_THAT(walked.ids, IsEmpty());
}

// ── one partition key ────────────────────────────────────────────────────────────────────────────

TEST_F(QueryDocumentsTest, OneDocumentOfAKeyIsFoundByItsId) {
  for (int i = 0; i < 50; ++i) add("", i % 2 == 0 ? "even" : "odd");
  want_key("even");
  const auto walked = walk("SELECT * FROM c WHERE c.id IN ('8', '3', '4', 5)");
  EXPECT_THAT(walked.ids, ElementsAre("4", "8"));
  EXPECT_EQ(walked.report.documents_read, 2U);
  EXPECT_THAT(walk("SELECT * FROM c WHERE c.id = 'none'").ids, IsEmpty());
}

TEST_F(QueryDocumentsTest, TheDocumentsOfAKeyArePreferredToALongerList) {
  for (int i = 0; i < 200; ++i) {
    add("\"a\":" + std::to_string(i % 10) + ",\"b\":" + std::to_string(i), i < 5 ? "few" : "many");
  }
  index({"/a", "/b"});
  want_key("few");
  const auto own = walk("SELECT * FROM c WHERE c.a = 3");
  EXPECT_EQ(own.report.way, Way::Scan);
  EXPECT_EQ(own.report.documents_read, 5U);
  EXPECT_EQ(walk("SELECT * FROM c ORDER BY c.a").report.documents_read, 5U);
  const auto shorter = walk("SELECT * FROM c WHERE c.b = 3");
  EXPECT_EQ(shorter.report.way, Way::Index);
  EXPECT_THAT(shorter.ids, ElementsAre("3"));
  EXPECT_EQ(walk("SELECT * FROM c ORDER BY c.a", AccessChoice::Index).report.way,
            Way::OrderedIndex);
}

// ── order ────────────────────────────────────────────────────────────────────────────────────────

TEST_F(QueryDocumentsTest, AnIndexYieldsTheOrderForwardAndBackward) {
  for (const auto* members : {R"("a":2)", R"("a":1)", "", R"("a":"x")", R"("a":1)"}) add(members);
  index({"/a"});
  const auto forward = walk("SELECT * FROM c ORDER BY c.a");
  EXPECT_EQ(forward.report.way, Way::OrderedIndex);
  EXPECT_THAT(forward.ids, ElementsAre("2", "1", "4", "0", "3"));
  EXPECT_THAT(walk("SELECT * FROM c ORDER BY c.a DESC").ids, ElementsAre("3", "0", "1", "4", "2"));
  EXPECT_TRUE(std::ranges::all_of(forward.in_order, std::identity()));
}

TEST_F(QueryDocumentsTest, AConditionOnTheOrderNarrowsTheWalk) {
  add_many(40);
  index({"/a"});
  const auto walked = walk("SELECT * FROM c WHERE c.a IN (3, 7) OR c.a >= 18 ORDER BY c.a DESC",
                           AccessChoice::Index);
  EXPECT_THAT(walked.ids, ElementsAre("19", "39", "18", "38", "7", "27", "3", "23"));
}

TEST_F(QueryDocumentsTest, AnOrderGoesOnFromAKey) {
  add_many(40);
  index({"/a", "/b ASC,/a DESC"});
  std::string key;
  json::append_sort_key(key, json::Value::number(std::int64_t{18}));
  EXPECT_THAT(walk("SELECT * FROM c ORDER BY c.a", AccessChoice::Auto, {}, key).ids,
              ElementsAre("18", "38", "19", "39"));
  key.clear();
  json::append_sort_key_descending(key, json::Value::number(std::int64_t{1}));
  EXPECT_THAT(walk("SELECT * FROM c ORDER BY c.a DESC", AccessChoice::Auto, {}, key).ids,
              ElementsAre("1", "21", "0", "20"));
  key.clear();
  json::append_sort_key(key, json::Value::number(std::int64_t{4}));
  json::append_sort_key_descending(key, json::Value::number(std::int64_t{9}));
  EXPECT_THAT(walk("SELECT * FROM c ORDER BY c.b, c.a DESC", AccessChoice::Auto, {}, key).ids,
              ElementsAre("9", "29", "4", "24"));
  key.clear();
  json::append_sort_key_descending(key, json::Value::number(std::int64_t{0}));
  json::append_sort_key(key, json::Value::number(std::int64_t{10}));
  EXPECT_THAT(walk("SELECT * FROM c ORDER BY c.b DESC, c.a", AccessChoice::Auto, {}, key).ids,
              ElementsAre("10", "30", "15", "35"));
}

TEST_F(QueryDocumentsTest, ACompositeIndexMustHaveExactlyTheOrder) {
  add_many(40);
  index({"/b ASC,/a DESC"});
  for (const auto* order : {"c.b, c.a DESC", "c.b DESC, c.a"}) {
    EXPECT_EQ(walk(std::string("SELECT * FROM c ORDER BY ") + order).report.way, Way::OrderedIndex);
  }
  for (const auto* order : {"c.b, c.a", "c.a, c.b DESC", "c.b", "c.a DESC"}) {
    EXPECT_EQ(walk(std::string("SELECT * FROM c ORDER BY ") + order).report.way, Way::Scan)
        << order;
  }
  const auto bound = walk("SELECT * FROM c WHERE c.b = 4 ORDER BY c.a", AccessChoice::Index);
  EXPECT_EQ(bound.report.way, Way::OrderedIndex);
  EXPECT_THAT(bound.ids, ElementsAre("4", "24", "9", "29", "14", "34", "19", "39"));
}

TEST_F(QueryDocumentsTest, AFewCandidatesAreSortedRatherThanWalkedTo) {
  add_many();
  add(R"("a":1,"rare":true)");
  index({"/a", "/rare"});
  const auto walked = walk("SELECT * FROM c WHERE c.rare ORDER BY c.a");
  EXPECT_EQ(walked.report.way, Way::Index);
  EXPECT_EQ(walked.report.documents_read, 1U);
  EXPECT_THAT(walked.in_order, ElementsAre(false));
}

TEST_F(QueryDocumentsTest, WhereStringsAreCutTheOrderIsNotPromised) {
  const std::string head(json::kIndexedStringBytesMax, 'm');
  for (const auto& text :
       {std::string("z"), head + "3", head + "1", head, head + "2", head + "0", std::string("a")}) {
    add("\"a\":\"" + text + "\"");
  }
  index({"/a"});
  const auto walked = walk("SELECT * FROM c ORDER BY c.a");
  ASSERT_EQ(walked.ids.size(), 7U);
  EXPECT_EQ(walked.ids[0], "6");
  EXPECT_EQ(walked.ids[1], "3");
  EXPECT_EQ(walked.ids[6], "0");
  EXPECT_THAT(walked.in_order, ElementsAre(true, true, false, false, false, false, true));
  std::string key;
  json::append_sort_key(key, json::Value::string(head + "2"));
  EXPECT_EQ(walk("SELECT * FROM c ORDER BY c.a", AccessChoice::Auto, {}, key).ids.size(), 5U)
      << "all that begin so, for any of them may come after it";
  key.clear();
  json::append_sort_key_descending(key, json::Value::string(head + "2"));
  EXPECT_EQ(walk("SELECT * FROM c ORDER BY c.a DESC", AccessChoice::Auto, {}, key).ids.size(), 6U);
}

TEST_F(QueryDocumentsTest, AKeyThatIsNoneHarmsNothing) {
  add_many(10);
  index({"/a"});
  for (const std::string_view key : {"", "\x40", "\xFF\xFF\xFF", "\x30\x01", "\xBF\xFF"}) {
    walk("SELECT * FROM c ORDER BY c.a", AccessChoice::Auto, {}, key);
    walk("SELECT * FROM c ORDER BY c.a DESC", AccessChoice::Auto, {}, key);
  }
}

// ── places ───────────────────────────────────────────────────────────────────────────────────────

TEST_F(QueryDocumentsTest, PlacesAreFoundByTheirCells) {
  const auto point = [](int x, int y) {
    return R"("at":{"type":"Point","coordinates":[)" + std::to_string(x) + "," + std::to_string(y) +
           "]}";
  };
  for (int x = -170; x <= 170; x += 10) {
    for (int y = -80; y <= 80; y += 10) add(point(x, y));
  }
  add(R"("at":"here")");
  add(R"("there":1)");
  index({"/at SPATIAL", "/at"});
  const auto near = [&](const std::string& order) {
    return walk(
        "SELECT * FROM c WHERE ST_DISTANCE(c.at, {'type':'Point','coordinates':[20,30]}) < 10000" +
        order);
  };
  const auto walked = near("");
  EXPECT_EQ(walked.report.way, Way::Index);
  EXPECT_THAT(walked.report.indexes, ElementsAre("/at SPATIAL"));
  EXPECT_EQ(walked.report.documents_read, 1U);
  EXPECT_EQ(walked.ids.size(), 1U);
  EXPECT_EQ(near(" ORDER BY c.at").report.documents_read, 1U);
  // Cells of the earth tell nothing of a plane, and cells are in no order of values.
  index({"/at SPATIAL PLANAR"});
  EXPECT_EQ(near("").report.way, Way::Scan);
  index({"/at SPATIAL"});
  EXPECT_EQ(walk("SELECT * FROM c ORDER BY c.at", AccessChoice::Index).report.way, Way::Scan);
}

// ── chance ───────────────────────────────────────────────────────────────────────────────────────

TEST_F(QueryDocumentsTest, HoweverDocumentsAreFoundTheSameOnesPass) {
  const auto seed = static_cast<std::uint32_t>(test::seed());
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto one_of = [&](std::initializer_list<const char*> texts) {
    return std::string(texts.begin()[random() % texts.size()]);
  };
  const auto value = [&] {
    return one_of({"null", "true", "false", "0", "1", "1.5", "2", R"("")", R"("a")", R"("ab")",
                   R"([1,"a"])", R"({"p":1})"});
  };
  for (int i = 0; i < 150; ++i) {
    std::string members;
    for (const auto* name : {"a", "b", "d"}) {
      if (random() % 5 == 0) continue;
      if (!members.empty()) members += ",";
      members += std::string("\"") + name + "\":" + value();
    }
    add(members, one_of({"k", "other"}));
  }
  index({"/a", "/b", "/a/[]", "/d ASC,/a DESC", "/a ASC,/b ASC"});
  const auto condition = [&] {
    const std::string path = one_of({"c.a", "c.b", "c.d"});
    switch (random() % 5) {
      case 0:
        return path + one_of({" = ", " != ", " < ", " >= "}) + value();
      case 1:
        return path + " IN (" + value() + ", " + value() + ")";
      case 2:
        return "ARRAY_CONTAINS(c.a, " + value() + ")";
      case 3:
        return one_of({"IS_DEFINED(", "NOT IS_DEFINED(", "IS_STRING(", "NOT IS_NULL("}) + path +
               ")";
      default:
        return "STARTSWITH(" + path + R"(, "a"))";
    }
  };
  for (int round = 0; round < 300; ++round) {
    const std::string text = "SELECT * FROM c WHERE (" + condition() + one_of({" AND ", " OR "}) +
                             condition() + ")" + one_of({" AND ", " OR "}) + condition() +
                             one_of({"", "", " ORDER BY c.a", " ORDER BY c.a DESC",
                                     " ORDER BY c.d DESC, c.a", " ORDER BY c.a DESC, c.b DESC"});
    filter_ = {};
    if (random() % 3 == 0) want_key("k");
    const auto query = prepared(text);
    const auto passing = [&](AccessChoice choice) {
      std::multiset<std::string> ids;
      const auto snapshot = store_->snapshot();
      const auto access = query::access_of(*query);
      auto walk = open_source({.snapshot = *snapshot,
                               .partition = kPlannedPartition,
                               .documents = count_,
                               .filter = filter_,
                               .after = {},
                               .from_key = {},
                               .choice = choice},
                              *query, access);
      EXPECT_TRUE(walk);
      while ((*walk)->next()) {
        query::Frame frame(query->sources());
        const auto document = json::Value::of_checked((*walk)->text());
        frame.row.set(0, document);
        query::for_each_row(query->tree(), frame, [&] {
          ids.insert(std::string((*walk)->text()));
          return true;
        });
      }
      EXPECT_TRUE((*walk)->status());
      return ids;
    };
    const auto expected = passing(AccessChoice::Scan);
    ASSERT_EQ(passing(AccessChoice::Auto), expected) << text;
    ASSERT_EQ(passing(AccessChoice::Index), expected) << text;
  }
}

}  // namespace
}  // namespace orrery::executor
