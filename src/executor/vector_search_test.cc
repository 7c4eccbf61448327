#include "executor/vector_search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/access_planner.h"

#include "base/background_pool.h"
#include "executor/container_settings.h"
#include "partition/test_environment.h"
#include "partition/writer/stage.h"
#include "query/eval/execution.h"
#include "storage/test_store.h"

namespace orrery::executor {
namespace {

using partition::Write;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using Way = SourceReport::Way;
using Vector = std::vector<float>;

constexpr PartitionNumber kVectorPartition{7};
constexpr std::size_t kMemoryMax = std::size_t{64} << 20;
constexpr std::uint32_t kSeed = 20261116;

std::string text_of(const Vector& vector) { return fmt::format("[{}]", fmt::join(vector, ",")); }

class VectorSearchTest : public testing::Test {
 protected:
  static ContainerDefinition definition_of(std::size_t dimensions, std::string_view function,
                                           std::string_view type) {
    const Json body = {{"id", "c"},
                       {"partitionKey", {{"paths", {"/pk"}}, {"kind", "Hash"}}},
                       {"vectorEmbeddingPolicy",
                        {{"vectorEmbeddings",
                          {{{"path", "/v"},
                            {"dataType", "float32"},
                            {"distanceFunction", function},
                            {"dimensions", dimensions}}}}}},
                       {"indexingPolicy", {{"vectorIndexes", {{{"path", "/v"}, {"type", type}}}}}}};
    auto definition = ContainerDefinition::create(body, "2018-12-31");
    EXPECT_TRUE(definition) << (definition ? "" : definition.error().message());
    return *definition;
  }

  void use(std::size_t dimensions, std::string_view function = "cosine",
           std::string_view type = "diskANN") {
    dimensions_ = dimensions;
    definition_ = definition_of(dimensions, function, type);
  }

  Vector random_vector() {
    std::normal_distribution<float> normal;
    Vector vector(dimensions_);
    for (float& number : vector) number = normal(random_);
    return vector;
  }

  /// One transaction.
  void write(std::vector<partition::WriteOf> writes) {
    const auto transaction = partition::transaction_of(std::move(writes));
    storage::Batch batch;
    ASSERT_TRUE(stage_.stage(transaction, 1, batch, storage::Tier::Disk));
    batch.put(storage::Family::Heads, storage::partition_prefix(kVectorPartition),
              stage_.head().make());
    ASSERT_TRUE(storage::commit(*store_, batch));
    stage_.forget_committed(stage_.head().lsn);
    stage_.take_records();
  }
  partition::WriteOf with_vector(const std::string& id, const Vector& vector,
                                 Write::Kind kind = Write::Kind::Upsert) {
    return {.kind = kind,
            .id = id,
            .members = fmt::format(R"("n":{},"v":{})", next_n_++, text_of(vector))};
  }

  /// Documents "0", "1", …
  void fill(std::size_t count) {
    std::vector<partition::WriteOf> writes;
    for (std::size_t i = 0; i < count; ++i) {
      writes.push_back(with_vector(std::to_string(i), random_vector()));
      if (writes.size() < 100 && i + 1 < count) continue;
      write(std::exchange(writes, {}));
    }
  }

  /// All that was left to the background.
  void settle() {
    while (!work_.empty()) {
      auto work = std::move(work_.front());
      work_.pop_front();
      work();
    }
  }

  struct Answer {
    std::vector<std::string> ids;
    SourceReport report;
  };
  struct Asked {
    AccessChoice choice = AccessChoice::Auto;
    const storage::Snapshot* snapshot = nullptr;  ///< null: as it is now
    std::uint32_t rows_max = 1000;
    std::string partition_key = {};
    PartitionNumber partition = kVectorPartition;
  };
  /// `query`: with {} in place of the vector; its rows are ids.
  Answer ask(std::string_view query, const Vector& vector, const Asked& asked) {
    const auto prepared = query::PreparedQuery::prepare(
        fmt::format(fmt::runtime(query), text_of(vector)), {}, query_settings(definition_));
    EXPECT_TRUE(prepared) << (prepared ? "" : prepared.error().message());
    const auto search = VectorSearch::of(&indexes_, definition_, *prepared, asked.rows_max);
    const auto access = query::access_of(**prepared);
    const auto now = store_->snapshot();
    SourceScope scope{.snapshot = asked.snapshot == nullptr ? *now : *asked.snapshot,
                      .partition = asked.partition,
                      .documents = stage_.head().documents,
                      .filter = {},
                      .after = {},
                      .from_key = {},
                      .choice = asked.choice,
                      .vectors = search ? &*search : nullptr};
    if (!asked.partition_key.empty()) {
      const auto key = partition::key_of(asked.partition_key, "");
      scope.filter.partition_key = key.partition_key;
      scope.filter.epks = EpkRange{Epk{key.epk}, Epk{key.epk + '\x01'}};
    }
    auto walk = open_source(scope, **prepared, access);
    EXPECT_TRUE(walk);
    query::Execution execution(*prepared, {.rows_max = asked.rows_max});
    execution.begin_slice({});
    while ((*walk)->next()) execution.take((*walk)->text(), (*walk)->number());
    EXPECT_TRUE((*walk)->status());
    EXPECT_TRUE(execution.finish());
    Answer answer{.ids = {}, .report = (*walk)->report()};
    const std::string rows = "[" + execution.take_rows() + "]";
    const auto all = json::Value::of_checked(rows);
    for (json::Reader reader(all); reader.next();) {
      std::string buffer;
      answer.ids.emplace_back(reader.value().as_string(buffer));
    }
    return answer;
  }
  Answer ask(std::string_view query, const Vector& vector) { return ask(query, vector, Asked{}); }
  std::vector<std::string> exactly(std::string_view query, const Vector& vector) {
    return ask(query, vector, Asked{.choice = AccessChoice::Scan}).ids;
  }

  /// Has the index built.
  void build() {
    EXPECT_EQ(ask(kTop, random_vector()).report.way, Way::Scan);
    settle();
    ASSERT_EQ(ask(kTop, random_vector()).report.way, Way::VectorIndex);
  }

  /// Of what an exact search finds, the part that was found; and prints it with the times.
  double recall(std::string_view query, int searches) {
    using Clock = std::chrono::steady_clock;
    std::size_t wanted = 0;
    std::size_t found = 0;
    Clock::duration exact_time{};
    Clock::duration index_time{};
    for (int i = 0; i < searches; ++i) {
      const Vector vector = random_vector();
      const auto begun = Clock::now();
      const auto exact = exactly(query, vector);
      const auto halfway = Clock::now();
      const auto answer = ask(query, vector);
      exact_time += halfway - begun;
      index_time += Clock::now() - halfway;
      EXPECT_EQ(answer.report.way, Way::VectorIndex);
      EXPECT_EQ(answer.ids.size(), exact.size());
      const std::set<std::string> ids(answer.ids.begin(), answer.ids.end());
      wanted += exact.size();
      found += static_cast<std::size_t>(
          std::ranges::count_if(exact, [&](const auto& id) { return ids.contains(id); }));
    }
    const double part = static_cast<double>(found) / static_cast<double>(wanted);
    const auto per_search = [&](Clock::duration time) {
      return std::chrono::duration<double, std::milli>(time).count() / searches;
    };
    std::printf("  recall %.3f; %.2f ms by index, %.2f ms exactly: %s\n", part,
                per_search(index_time), per_search(exact_time), std::string(query).c_str());
    return part;
  }

  static constexpr std::string_view kTop =
      "SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, {})";

  storage::TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_ = storage::open_store(directory_.path());
  partition::Stage stage_{*store_, kVectorPartition, RangeId{0},
                          Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}), storage::Head{}};
  std::deque<std::function<void()>> work_;
  index::VectorIndexes indexes_{
      *store_, [this](std::function<void()> work) { work_.push_back(std::move(work)); },
      kMemoryMax};
  std::size_t dimensions_ = 8;
  ContainerDefinition definition_ = definition_of(8, "cosine", "diskANN");
  std::mt19937 random_{kSeed};
  int next_n_ = 0;
};

// ── what is found ────────────────────────────────────────────────────────────────────────────────

TEST_F(VectorSearchTest, MostOfTheMostSimilarAreFound) {
  use(32);
  fill(10'000);
  build();
  EXPECT_GE(recall(kTop, 20), 0.9);
  EXPECT_GE(
      recall("SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, {}) OFFSET 5 LIMIT 20", 10),
      0.9);
  EXPECT_GE(recall("SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, {}, false, "
                   "{{'searchListSizeMultiplier': 50}})",
                   10),
            0.98)
      << "more candidates find more";
}

TEST_F(VectorSearchTest, OtherDistancesAreFoundAsWell) {
  use(32, "euclidean", "quantizedFlat");
  fill(3000);
  build();
  EXPECT_GE(recall(kTop, 30), 0.9);
  definition_ = definition_of(32, "dotproduct", "diskANN");
  build();
  EXPECT_GE(recall(kTop, 30), 0.9);
  EXPECT_EQ(indexes_.stats().indexes, 2U);
}

TEST_F(VectorSearchTest, TheIndexIsNamedAndReadsLittle) {
  fill(2000);
  build();
  const auto answer = ask(kTop, random_vector());
  EXPECT_THAT(answer.report.indexes, ElementsAre("/v VECTOR"));
  EXPECT_EQ(answer.report.documents_read, 100U);
  EXPECT_EQ(answer.report.entries_read, 100U);
}

TEST_F(VectorSearchTest, FewDocumentsAreComparedOneByOne) {
  fill(index::PartitionVectors::kVectorsMin - 1);
  EXPECT_EQ(ask(kTop, random_vector()).report.way, Way::Scan);
  EXPECT_THAT(work_, IsEmpty());
  EXPECT_EQ(indexes_.stats().indexes, 0U);
}

TEST_F(VectorSearchTest, WhoWantsItExactlyGetsIt) {
  fill(1500);
  build();
  const Vector vector = random_vector();
  EXPECT_EQ(ask("SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, {}, true)", vector)
                .report.way,
            Way::Scan);
  EXPECT_EQ(ask(kTop, vector, {.choice = AccessChoice::Scan}).report.way, Way::Scan);
  EXPECT_EQ(ask(kTop, vector, {.rows_max = 9}).report.way, Way::Scan) << "more than one page";
  EXPECT_EQ(ask("SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, {})", vector).report.way,
            Way::Scan);
  EXPECT_EQ(
      ask("SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.w, {})", vector).report.way,
      Way::Scan)
      << "no policy names it";
  EXPECT_EQ(ask(kTop, Vector(7, 1.0F)).report.way, Way::Scan) << "of another length";
  definition_ = definition_of(8, "cosine", "flat");
  EXPECT_EQ(ask(kTop, vector).report.way, Way::Scan);
}

// ── filters ──────────────────────────────────────────────────────────────────────────────────────

TEST_F(VectorSearchTest, AFilterThatLeavesEnoughIsServed) {
  use(16);
  fill(5000);
  build();
  const std::string_view query =
      "SELECT TOP 10 VALUE c.id FROM c WHERE c.n % 4 = 0 ORDER BY VectorDistance(c.v, {})";
  EXPECT_GE(recall(query, 20), 0.9);
}

TEST_F(VectorSearchTest, AFilterThatLeavesTooFewIsExact) {
  fill(2000);
  build();
  for (int i = 0; i < 5; ++i) {
    const std::string_view query =
        "SELECT TOP 10 VALUE c.id FROM c WHERE c.n % 100 = 3 ORDER BY VectorDistance(c.v, {})";
    const Vector vector = random_vector();
    const auto answer = ask(query, vector);
    EXPECT_EQ(answer.report.way, Way::Scan);
    EXPECT_EQ(answer.ids, exactly(query, vector));
    EXPECT_EQ(answer.ids.size(), 10U);
  }
}

TEST_F(VectorSearchTest, RowsThatShowNothingDoNotCount) {
  fill(1500);
  build();
  const std::string_view query =
      "SELECT TOP 10 VALUE c.n % 100 = 0 ? c.id : undefined FROM c ORDER BY VectorDistance(c.v, "
      "{})";
  const Vector vector = random_vector();
  const auto answer = ask(query, vector);
  EXPECT_EQ(answer.ids.size(), 10U);
  EXPECT_EQ(answer.ids, exactly(query, vector));
}

TEST_F(VectorSearchTest, DocumentsOfOneKeyAreSearchedAmongThemselves) {
  fill(1500);
  write({{.kind = Write::Kind::Create,
          .id = "alone",
          .partition_key = "q",
          .members = R"("v":)" + text_of(random_vector())}});
  build();
  const auto answer = ask(kTop, random_vector(), {.partition_key = "q"});
  EXPECT_THAT(answer.ids, ElementsAre("alone"));
}

// ── changes ──────────────────────────────────────────────────────────────────────────────────────

TEST_F(VectorSearchTest, UntilItIsBuiltEverythingIsLookedAt) {
  fill(1500);
  const Vector vector = random_vector();
  for (int i = 0; i < 3; ++i) {
    const auto answer = ask(kTop, vector);
    EXPECT_EQ(answer.report.way, Way::Scan);
    EXPECT_EQ(answer.ids.size(), 10U);
  }
  EXPECT_EQ(work_.size(), 1U) << "built once";
  settle();
  EXPECT_EQ(ask(kTop, vector).report.way, Way::VectorIndex);
}

TEST_F(VectorSearchTest, ChangesCountAtOnce) {
  fill(1500);
  build();
  const Vector vector = random_vector();
  write({with_vector("new", vector, Write::Kind::Create)});
  auto answer = ask(kTop, vector);
  EXPECT_EQ(answer.report.way, Way::VectorIndex);
  EXPECT_EQ(answer.ids.front(), "new");

  // Away from there, and back: the index knows the first place only.
  Vector opposite = vector;
  for (float& number : opposite) number = -number;
  write({with_vector("new", opposite)});
  answer = ask(kTop, vector);
  EXPECT_EQ(answer.report.way, Way::VectorIndex);
  EXPECT_THAT(answer.ids, Not(Contains("new")));
  EXPECT_EQ(ask(kTop, opposite).ids.front(), "new");

  write({{.kind = Write::Kind::Delete, .id = "new"}});
  answer = ask(kTop, opposite);
  EXPECT_EQ(answer.report.way, Way::VectorIndex);
  EXPECT_THAT(answer.ids, Not(Contains("new")));
  EXPECT_EQ(answer.ids.size(), 10U);
  EXPECT_THAT(work_, IsEmpty()) << "so few changes are no work";
}

TEST_F(VectorSearchTest, DeletedDocumentsGiveWayToOthers) {
  fill(3000);
  build();
  const Vector vector = random_vector();
  const std::string_view nearest =
      "SELECT TOP 300 VALUE c.id FROM c ORDER BY VectorDistance(c.v, {})";
  std::vector<partition::WriteOf> deletes;
  for (const auto& id : exactly(nearest, vector)) {
    deletes.push_back({.kind = Write::Kind::Delete, .id = id});
    if (deletes.size() == 100) write(std::exchange(deletes, {}));
  }
  const auto answer = ask(kTop, vector);
  EXPECT_EQ(answer.report.way, Way::VectorIndex);
  EXPECT_EQ(answer.ids, exactly(kTop, vector));
}

TEST_F(VectorSearchTest, ManyChangesAreTakenInLater) {
  fill(3000);
  build();
  const Vector vector = random_vector();
  for (int i = 0; i < 11; ++i) {
    std::vector<partition::WriteOf> writes;
    for (int j = 0; j < 100; ++j) {
      writes.push_back(with_vector(std::to_string(100 * i + j), random_vector()));
    }
    write(std::move(writes));
    const auto answer = ask(kTop, vector);
    const bool is_far_behind =
        100 * (i + 1) > static_cast<int>(index::PartitionVectors::kChangesMax);
    EXPECT_EQ(answer.report.way, is_far_behind ? Way::Scan : Way::VectorIndex) << i;
    EXPECT_EQ(answer.ids.size(), 10U);
  }
  EXPECT_EQ(work_.size(), 1U);
  settle();
  EXPECT_GE(recall(kTop, 10), 0.9);
}

TEST_F(VectorSearchTest, MoreDocumentsThanThereIsRoomForAreGivenMore) {
  fill(1000);
  build();
  const std::size_t bytes = indexes_.stats().bytes;
  fill(3000);
  const Vector vector = random_vector();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ask(kTop, vector).report.way, Way::Scan);
    settle();
  }
  EXPECT_EQ(ask(kTop, vector).report.way, Way::VectorIndex);
  EXPECT_GT(indexes_.stats().bytes, bytes);
}

TEST_F(VectorSearchTest, AQueryWithAnOlderSnapshotSeesWhatWasThere) {
  fill(1500);
  const Vector vector = random_vector();
  write({with_vector("moved", vector, Write::Kind::Create),
         with_vector("deleted", vector, Write::Kind::Create)});
  build();
  const auto before = store_->snapshot();
  write({with_vector("moved", random_vector()), {.kind = Write::Kind::Delete, .id = "deleted"}});
  std::vector<partition::WriteOf> writes;
  for (std::size_t i = 0; i < index::PartitionVectors::kChangesMin; ++i) {
    writes.push_back(with_vector(fmt::format("new-{}", i), vector));
  }
  write(std::move(writes));
  // Here it is noticed that one was deleted, and that there is work to do.
  EXPECT_THAT(ask(kTop, vector).ids, Not(Contains("deleted")));
  settle();
  const auto answer = ask(kTop, vector, {.snapshot = &*before});
  EXPECT_EQ(answer.report.way, Way::VectorIndex);
  EXPECT_THAT(answer.ids, Contains("moved"));
  EXPECT_THAT(answer.ids, Contains("deleted"));
  EXPECT_THAT(answer.ids, Not(Contains("new-0")));
}

TEST_F(VectorSearchTest, ASnapshotFromBeforeAllThatIsRememberedIsSearchedExactly) {
  fill(3000);
  const auto before = store_->snapshot();
  fill(index::PartitionVectors::kRecentMax + 1000);
  build();
  const auto answer = ask(kTop, random_vector(), {.snapshot = &*before});
  EXPECT_EQ(answer.report.way, Way::Scan);
  EXPECT_EQ(answer.ids.size(), 10U);
}

TEST_F(VectorSearchTest, DocumentsWithoutAVectorAreNotAmongTheMostSimilar) {
  use(8, "euclidean");
  fill(1500);
  write({{.kind = Write::Kind::Create, .id = "none"},
         {.kind = Write::Kind::Create, .id = "short", .members = R"("v":[1,2])"}});
  build();
  const Vector vector = random_vector();
  auto answer = ask(kTop, vector);
  EXPECT_EQ(answer.report.way, Way::VectorIndex);
  EXPECT_EQ(answer.ids, exactly(kTop, vector));
  EXPECT_THAT(answer.ids, Not(Contains("none")));
  write({{.kind = Write::Kind::Delete, .id = "none"}, with_vector("short", vector)});
  answer = ask(kTop, vector);
  EXPECT_EQ(answer.ids, exactly(kTop, vector));
  EXPECT_EQ(answer.ids.front(), "short");
}

TEST_F(VectorSearchTest, WhatIsWornIsBuiltAnew) {
  fill(1200);
  build();
  for (int i = 0; i < 4; ++i) {
    fill(600);  // Half of them have another vector now.
    ask(kTop, random_vector());
    settle();
  }
  EXPECT_EQ(indexes_.stats().indexes, 1U);
  EXPECT_GE(recall(kTop, 10), 0.9);
}

TEST_F(VectorSearchTest, AnIndexOfDocumentsThatAreGoneIsBuiltAnew) {
  fill(4000);
  build();
  const std::size_t bytes = indexes_.stats().bytes;
  for (int i = 0; i < 28; ++i) {
    std::vector<partition::WriteOf> deletes;
    for (int j = 0; j < 100; ++j) {
      deletes.push_back({.kind = Write::Kind::Delete, .id = std::to_string(100 * i + j)});
    }
    write(std::move(deletes));
  }
  const Vector vector = random_vector();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ask(kTop, vector).report.way, Way::Scan);
    settle();
  }
  EXPECT_EQ(ask(kTop, vector).report.way, Way::VectorIndex);
  EXPECT_LT(indexes_.stats().bytes, bytes);
}

// ── memory ───────────────────────────────────────────────────────────────────────────────────────

TEST_F(VectorSearchTest, WhatIsTooLargeIsNotBuilt) {
  fill(1500);
  index::VectorIndexes small(
      *store_, [this](std::function<void()> work) { work_.push_back(std::move(work)); }, 100'000);
  const auto snapshot = store_->snapshot();
  const Vector vector = random_vector();
  const auto found = small.find({.partition = kVectorPartition, .path = {"v"}, .dimensions = 8},
                                1500, *snapshot, {.vector = vector, .count = 10});
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
  EXPECT_EQ(small.stats().bytes, 0U);
  EXPECT_THAT(work_, IsEmpty());
}

TEST_F(VectorSearchTest, TheOneThatWasNotUsedForLongestMakesRoom) {
  fill(1500);
  const std::size_t one =
      index::VectorIndex::bytes_max({.dimensions = 8, .vectors_max = 1500 + 1000});
  const std::size_t memory_max = 2 * one + one / 2;
  index::VectorIndexes two(
      *store_, [this](std::function<void()> work) { work_.push_back(std::move(work)); },
      memory_max);
  const auto snapshot = store_->snapshot();
  const Vector vector = random_vector();
  const auto is_found = [&](DistanceFunction function) {
    const auto found = two.find(
        {.partition = kVectorPartition, .path = {"v"}, .function = function, .dimensions = 8}, 1500,
        *snapshot, {.vector = vector, .count = 10});
    settle();
    EXPECT_LE(two.stats().bytes, memory_max);
    return found && *found;
  };
  for (const auto function : {DistanceFunction::Cosine, DistanceFunction::DotProduct}) {
    EXPECT_FALSE(is_found(function)) << "not built yet";
    EXPECT_TRUE(is_found(function));
  }
  EXPECT_FALSE(is_found(DistanceFunction::Euclidean));
  EXPECT_FALSE(is_found(DistanceFunction::Euclidean)) << "the others were just used";
  EXPECT_TRUE(is_found(DistanceFunction::Cosine));
  for (std::uint64_t i = 0; i < index::VectorIndexes::kRestSearches; ++i) {
    EXPECT_TRUE(is_found(DistanceFunction::Cosine));
  }
  EXPECT_FALSE(is_found(DistanceFunction::Euclidean)) << "not built yet";
  EXPECT_TRUE(is_found(DistanceFunction::Euclidean));
  EXPECT_TRUE(is_found(DistanceFunction::Cosine)) << "it had been used";
  EXPECT_FALSE(is_found(DistanceFunction::DotProduct)) << "it has made room";
  EXPECT_EQ(two.stats().indexes, 2U);
}

// ── threads ──────────────────────────────────────────────────────────────────────────────────────

// The log does not tell of it any more when the index comes there.
TEST_F(VectorSearchTest, WhatIsDeletedBeforeTheIndexTakesItInIsFoundInOlderSnapshots) {
  fill(2 * index::PartitionVectors::kChangesMin * (index::PartitionVectors::kWalksMax + 2));
  build();
  const Vector vector = random_vector();
  write({with_vector("brief", vector, Write::Kind::Create)});
  const auto before = store_->snapshot();
  write({{.kind = Write::Kind::Delete, .id = "brief"}});
  const auto follow = [&] {
    fill(index::PartitionVectors::kChangesMin);
    EXPECT_THAT(ask(kTop, vector).ids, Not(Contains("brief")));
    EXPECT_THAT(work_, Not(IsEmpty()));
    settle();
  };
  follow();
  auto answer = ask(kTop, vector, {.snapshot = &*before});
  EXPECT_EQ(answer.report.way, Way::VectorIndex);
  EXPECT_EQ(answer.ids.front(), "brief");

  for (std::size_t i = 0; i < index::PartitionVectors::kWalksMax; ++i) follow();
  answer = ask(kTop, vector, {.snapshot = &*before});
  EXPECT_EQ(answer.report.way, Way::Scan) << "so old a state is not known any more";
  EXPECT_EQ(answer.ids.front(), "brief");
}

TEST_F(VectorSearchTest, SearchesAgreeWithTheirSnapshotsWhileDocumentsComeAndGo) {
  fill(1200);
  const Vector vector = random_vector();
  Vector opposite = vector;
  for (float& number : opposite) number = -number;
  BackgroundPool pool(1, [] { return false; });
  index::VectorIndexes indexes(
      *store_, [&](std::function<void()> work) { pool.post(std::move(work)); }, kMemoryMax);
  const index::VectorIndexKey key{
      .partition = kVectorPartition, .path = {"v"}, .dimensions = dimensions_};

  std::atomic<bool> is_over = false;
  std::atomic<int> compared = 0;
  // The one that moves is found just where the snapshot has it.
  const auto search = [&] {
    while (!is_over) {
      const auto snapshot = store_->snapshot();
      const auto found = indexes.find(key, 1200, *snapshot, {.vector = vector, .count = 10});
      ASSERT_TRUE(found);
      if (!*found) {
        // It is being built, by a thread of a low priority.
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      auto candidates = (*found)->similar;
      candidates.insert(candidates.end(), (*found)->others.begin(), (*found)->others.end());
      const auto is_there = [&](partition::DocumentCursor cursor) {
        bool is_found = false;
        while (cursor.next()) {
          is_found = is_found || cursor.text().find("\"is_near\":true") != std::string_view::npos;
        }
        EXPECT_TRUE(cursor.status());
        return is_found;
      };
      EXPECT_EQ(
          is_there(partition::DocumentCursor::over(*snapshot, kVectorPartition, candidates, {})),
          is_there(partition::DocumentCursor::in_log(*snapshot, kVectorPartition, {})));
      ++compared;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back(search);
  ASSERT_TRUE(partition::eventually([&] { return compared > 0; }));
  for (int i = 0; i < 60; ++i) {
    const bool is_near = i % 2 == 0;
    std::vector<partition::WriteOf> writes;
    writes.push_back({.kind = i % 3 == 2 ? Write::Kind::Delete : Write::Kind::Upsert,
                      .id = "moving",
                      .members = fmt::format(R"("is_near":{},"v":{})", is_near,
                                             text_of(is_near ? vector : opposite))});
    for (int j = 0; j < 20; ++j) {
      writes.push_back(with_vector(std::to_string((i * 20 + j) % 1200), random_vector()));
    }
    write(std::move(writes));
    const int before = compared;
    ASSERT_TRUE(partition::eventually([&] { return compared > before; }));
  }
  is_over = true;
  for (auto& thread : threads) thread.join();
  indexes.stop();
  pool.join();
}

TEST_F(VectorSearchTest, OnceStoppedNothingIsBuilt) {
  fill(1500);
  ask(kTop, random_vector());
  indexes_.stop();
  settle();
  EXPECT_EQ(ask(kTop, random_vector()).report.way, Way::Scan);
  EXPECT_THAT(work_, IsEmpty());
}

}  // namespace
}  // namespace orrery::executor
