#include "query/eval/execution.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/value.h"

namespace orrery::query {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Documents = std::vector<std::string>;

PreparedQueryPtr prepared(const std::string& text, std::string_view parameters = "[]",
                          const Settings& settings = {}) {
  auto given = Parameters::parse(json::Value::of_checked(parameters));
  EXPECT_TRUE(given) << given.error().message();
  auto query = PreparedQuery::prepare(text, *given, settings);
  EXPECT_TRUE(query) << query.error().message();
  return query ? *query : nullptr;
}

/// One after the other, as JSON texts.
std::vector<std::string> split(const std::string& rows) {
  const std::string text = "[" + rows + "]";
  const json::Value all = json::Value::of_checked(text);
  std::vector<std::string> out;
  for (json::Reader reader(all); reader.next();) out.push_back(reader.value().to_text());
  return out;
}

/// All rows of a query, page by page: what the api does with one range.
class Drain {
 public:
  Drain(PreparedQueryPtr query, Documents documents, std::uint32_t rows_max)
      : query_(std::move(query)), documents_(std::move(documents)) {
    limits_.rows_max = rows_max;
  }

  std::vector<std::string> rows() {
    std::vector<std::string> all;
    while (page(all)) {
      EXPECT_LT(++pages, 1000);
      if (pages >= 1000) break;
    }
    ++pages;
    return all;
  }

  int pages = 0;
  PageLimits limits_;

 private:
  bool page(std::vector<std::string>& all) {
    const bool is_stream = query_->shape() == PreparedQuery::Shape::Stream && !query_->inner();
    Execution execution(query_, limits_, position_);
    execution.begin_slice(after_);
    DocumentNumber last = after_;
    bool is_done = false;
    for (std::size_t i = 0; i < documents_.size() && !is_done && query_->reads_documents(); ++i) {
      const DocumentNumber number{i + 1};
      if (is_stream && number <= after_) {
        if (execution.wants_remembering()) execution.remember(documents_[i], number);
        continue;
      }
      is_done = execution.take(documents_[i], number) == Execution::Next::PageDone;
      if (!is_done) last = number;
    }
    const auto finished = execution.finish();
    EXPECT_TRUE(finished) << finished.error().message();
    if (!finished) return false;
    EXPECT_LE(execution.count(), limits_.rows_max);
    for (std::string& row : split(execution.rows())) all.push_back(std::move(row));
    position_ = execution.position();
    after_ = is_stream ? last : execution.last_number();
    return !execution.is_over() && !(is_stream && !is_done);
  }

  PreparedQueryPtr query_;
  Documents documents_;
  RowPosition position_;
  DocumentNumber after_;
};

/// The rows, which are the same for every size of pages.
std::vector<std::string> rows_of(const std::string& text, const Documents& documents,
                                 std::string_view parameters = "[]") {
  const PreparedQueryPtr query = prepared(text, parameters);
  if (!query) return {};
  auto rows = Drain(query, documents, 1000).rows();
  for (const std::uint32_t size : {1u, 2u, 3u}) {
    EXPECT_EQ(Drain(query, documents, size).rows(), rows) << query->text() << " by " << size;
  }
  return rows;
}

/// The error of running the query over the documents.
std::string failure_of(const std::string& text, const Documents& documents,
                       const PageLimits& limits = {}) {
  Execution execution(prepared(text), limits);
  execution.begin_slice({});
  std::uint64_t number = 0;
  for (const std::string& document : documents) {
    execution.take(document, DocumentNumber{++number});
  }
  const auto finished = execution.finish();
  return finished ? "" : finished.error().message();
}

const Documents kStars = {
    R"({"id":"1","class":"G","mag":4.8,"planets":[{"n":"Earth"},{"n":"Mars"}]})",
    R"({"id":"2","class":"M","mag":11,"planets":[{"n":"b"}]})",
    R"({"id":"3","class":"G","mag":1})",
    R"({"id":"4","class":"A","mag":-1.46,"planets":[]})",
    R"({"id":"5","mag":"faint","planets":[{"n":"c"},{"n":"b"},{"n":"d"}]})",
};

TEST(ExecutionTest, RowsComeDocumentByDocument) {
  EXPECT_THAT(rows_of("SELECT VALUE c.id FROM c WHERE c.class = 'G'", kStars),
              ElementsAre(R"("1")", R"("3")"));
  EXPECT_THAT(rows_of("SELECT c.id, c.class FROM c WHERE c.mag = @m", kStars,
                      R"([{"name":"@m","value":"faint"}])"),
              ElementsAre(R"({"id":"5"})"));
  EXPECT_THAT(rows_of("SELECT VALUE c.class FROM c", kStars),
              ElementsAre(R"("G")", R"("M")", R"("G")", R"("A")"));
}

TEST(ExecutionTest, WholeDocumentsAreShownAsTheyAre) {
  const Documents odd = {R"({ "id" : "x",  "n":1.50 })"};
  EXPECT_THAT(rows_of("SELECT * FROM c", odd), ElementsAre(odd[0]));
  EXPECT_TRUE(prepared("SELECT * FROM c")->shows_documents());
  EXPECT_TRUE(prepared("SELECT VALUE c FROM c WHERE c.a > 1")->shows_documents());
  EXPECT_FALSE(prepared("SELECT DISTINCT VALUE c FROM c")->shows_documents());
}

TEST(ExecutionTest, APlainQueryTakesADocumentNoLongerThanItIs) {
  for (const auto* text : {"SELECT * FROM c WHERE c.a = 1 AND c.b IN (1, 2) ORDER BY c.a",
                           "SELECT c.a, {'b': c.b + 1} AS o FROM c WHERE c.s LIKE 'x%'",
                           "SELECT VALUE UPPER('x') FROM c"}) {
    EXPECT_TRUE(prepared(text)->is_plain()) << text;
  }
  for (const auto* text :
       {"SELECT * FROM c WHERE RegexMatch(c.s, '(a+)+b')", "SELECT VALUE t FROM c JOIN t IN c.tags",
        "SELECT VALUE t FROM t IN c.tags", "SELECT VALUE UPPER(c.s) FROM c",
        "SELECT VALUE c.a FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 1)",
        "SELECT VALUE COUNT(1) FROM c", "SELECT VALUE c.a FROM c GROUP BY c.a",
        "SELECT VALUE d FROM (SELECT DISTINCT VALUE c.a FROM c) AS d",
        "SELECT VALUE 1 FROM c ORDER BY ABS(c.a)"}) {
    const auto query = PreparedQuery::prepare(text, {}, {});
    if (query) EXPECT_FALSE((*query)->is_plain()) << text;
  }
}

TEST(ExecutionTest, APageMayEndWithinADocument) {
  EXPECT_THAT(rows_of("SELECT VALUE p.n FROM c JOIN p IN c.planets", kStars),
              ElementsAre(R"("Earth")", R"("Mars")", R"("b")", R"("c")", R"("b")", R"("d")"));
  EXPECT_THAT(rows_of("SELECT VALUE p.n FROM p IN c.planets OFFSET 1 LIMIT 3", kStars),
              ElementsAre(R"("Mars")", R"("b")", R"("c")"));
}

TEST(ExecutionTest, DistinctHoldsOverPages) {
  EXPECT_THAT(rows_of("SELECT DISTINCT VALUE p.n FROM c JOIN p IN c.planets", kStars),
              ElementsAre(R"("Earth")", R"("Mars")", R"("b")", R"("c")", R"("d")"));
  EXPECT_THAT(rows_of("SELECT DISTINCT TOP 2 c.class FROM c", kStars),
              ElementsAre(R"({"class":"G"})", R"({"class":"M"})"));
  EXPECT_THAT(rows_of("SELECT DISTINCT VALUE e FROM e IN c.l", {R"({"l":[1,2,1,3,2]})"}),
              ElementsAre("1", "2", "3"))
      << "what a page has shown of a document holds in the rest of it, too";
}

TEST(ExecutionTest, OrderIsOfTypesThenOfValuesThenOfDocuments) {
  EXPECT_THAT(rows_of("SELECT VALUE c.id FROM c ORDER BY c.mag", kStars),
              ElementsAre(R"("4")", R"("3")", R"("1")", R"("2")", R"("5")"));
  EXPECT_THAT(rows_of("SELECT VALUE c.id FROM c ORDER BY c.class DESC", kStars),
              ElementsAre(R"("2")", R"("1")", R"("3")", R"("4")", R"("5")"));
  EXPECT_THAT(rows_of("SELECT TOP 3 VALUE c.id FROM c ORDER BY c.class", kStars),
              ElementsAre(R"("5")", R"("4")", R"("1")"));
  EXPECT_THAT(rows_of("SELECT VALUE c.id FROM c ORDER BY c.class OFFSET 2 LIMIT 2", kStars),
              ElementsAre(R"("1")", R"("3")"));
}

TEST(ExecutionTest, WhatHasNoVectorIsLeastSimilar) {
  const Documents documents = {R"({"id":"none"})", R"({"id":"far","v":[9,9]})",
                               R"({"id":"near","v":[1,0]})"};
  EXPECT_THAT(rows_of("SELECT TOP 3 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [0, 0], false, "
                      "{'distanceFunction': 'euclidean'})",
                      documents),
              ElementsAre(R"("near")", R"("far")", R"("none")"));
  EXPECT_THAT(rows_of("SELECT TOP 3 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0], false, "
                      "{'distanceFunction': 'cosine'})",
                      documents),
              ElementsAre(R"("near")", R"("far")", R"("none")"));
}

TEST(ExecutionTest, RowsOfOneDocumentStayTogetherInOrder) {
  EXPECT_THAT(rows_of("SELECT c.id, p.n FROM c JOIN p IN c.planets ORDER BY c.mag DESC", kStars),
              ElementsAre(R"({"id":"5","n":"c"})", R"({"id":"5","n":"b"})", R"({"id":"5","n":"d"})",
                          R"({"id":"2","n":"b"})", R"({"id":"1","n":"Earth"})",
                          R"({"id":"1","n":"Mars"})"));
}

TEST(ExecutionTest, KeysThatAreTooLongForATokenResumeToo) {
  Documents documents;
  const std::string beginning(400, 'x');
  for (int i = 0; i < 7; ++i) {
    documents.push_back(R"({"id":")" + std::to_string(i) + R"(","k":")" + beginning +
                        std::to_string(i * 3 % 7) + R"("})");
  }
  documents.push_back(R"({"id":"last","k":"y"})");
  documents.push_back(R"({"id":"first","k":"a"})");
  EXPECT_THAT(rows_of("SELECT VALUE c.id FROM c ORDER BY c.k", documents),
              ElementsAre(R"("first")", R"("0")", R"("5")", R"("3")", R"("1")", R"("6")", R"("4")",
                          R"("2")", R"("last")"));
}

TEST(ExecutionTest, ADocumentTellsTheWholeOfAKeyThatWasCut) {
  const std::string beginning(400, 'x');
  const auto document = [&](std::string_view end) {
    return R"({"k":")" + beginning + std::string(end) + R"("})";
  };
  const auto query = prepared("SELECT VALUE RIGHT(c.k, 1) FROM c ORDER BY c.k");
  PageLimits limits;
  limits.rows_max = 3;
  Execution first(query, limits);
  first.begin_slice({});
  for (std::uint64_t i = 0; i < 6; ++i) {
    first.take(document(std::to_string(i)), DocumentNumber{i + 1});
  }
  ASSERT_TRUE(first.finish());
  EXPECT_EQ(first.rows(), R"("0","1","2")");
  EXPECT_LE(first.position().key->size(), RowPosition::kKeyBytesMax);
  EXPECT_EQ(first.position().partial.number, DocumentNumber{3});

  // Only two of those that come before the position are in this part of the range.
  const auto rest_of_part = [&](const std::string& last) {
    Execution second(query, limits, first.position());
    second.begin_slice(first.last_number());
    second.resume_at(last);
    for (const std::uint64_t i : {0, 1, 4, 5}) {
      second.take(document(std::to_string(i)), DocumentNumber{i + 1});
    }
    EXPECT_TRUE(second.finish());
    return second.rows();
  };
  EXPECT_EQ(rest_of_part(document("2")), R"("4","5")");
  EXPECT_EQ(rest_of_part(document("9")), R"("0","1","4")")
      << "it has changed: rows with that beginning come again, and none is left out";
}

/// The rows of a query after one page of a range that was split then: into documents with even and
/// with odd numbers.
std::vector<std::string> rows_over_split(std::string text, const Documents& documents,
                                         std::uint32_t rows_max) {
  const auto query = prepared(std::move(text));
  const bool is_stream = query->shape() == PreparedQuery::Shape::Stream;
  PageLimits limits;
  limits.rows_max = rows_max;
  Execution first(query, limits);
  first.begin_slice({});
  DocumentNumber last;
  for (std::uint64_t i = 1; i <= documents.size(); ++i) {
    if (first.take(documents[i - 1], DocumentNumber{i}) == Execution::Next::PageDone) break;
    last = DocumentNumber{i};
  }
  EXPECT_TRUE(first.finish());
  auto rows = split(first.rows());
  const DocumentNumber after = is_stream ? last : first.last_number();

  // One row of the even ones, then all that is left.
  RowPosition position = first.position();
  DocumentNumber after_even = after;
  for (const bool is_last : {false, true}) {
    limits.rows_max = is_last ? 1000 : 1;
    Execution execution(query, limits, position);
    bool is_done = false;
    for (const std::uint64_t odd : {0u, 1u}) {
      const DocumentNumber done = odd == 0 ? after_even : after;
      execution.begin_slice(done);
      for (std::uint64_t i = odd == 0 ? 2 : 1; i <= documents.size() && !is_done; i += 2) {
        if (is_stream && DocumentNumber{i} <= done) continue;
        is_done = execution.take(documents[i - 1], DocumentNumber{i}) == Execution::Next::PageDone;
        if (!is_done && odd == 0) last = DocumentNumber{i};
      }
    }
    EXPECT_TRUE(execution.finish());
    for (std::string& row : split(execution.rows())) rows.push_back(std::move(row));
    position = execution.position();
    after_even = is_stream ? last : execution.last_number();
  }
  return rows;
}

TEST(ExecutionTest, ADocumentShownInPartWaitsInAnotherPiece) {
  const Documents documents = {R"({"id":1,"l":[1,2,3]})", R"({"id":2,"l":[1,2]})",
                               R"({"id":3,"l":[1,2]})", R"({"id":4,"l":[1,2,3]})"};
  const std::string text = "SELECT VALUE c.id * 10 + e FROM c JOIN e IN c.l";
  EXPECT_THAT(rows_over_split(text, documents, 2),
              ElementsAre("11", "12", "21", "22", "41", "42", "43", "13", "31", "32"));
  EXPECT_THAT(rows_over_split(text + " ORDER BY c.tie", documents, 2),
              ElementsAre("11", "12", "21", "22", "41", "42", "43", "13", "31", "32"));
}

TEST(ExecutionTest, ARowThatWasShownHidesItsLikeInOtherPieces) {
  const Documents documents = {R"({"t":1})", R"({"t":1})", R"({"t":2})",
                               R"({"t":2})", R"({"t":3})", R"({"t":3})"};
  EXPECT_THAT(rows_over_split("SELECT DISTINCT VALUE c.t FROM c ORDER BY c.t", documents, 1),
              ElementsAre("1", "2", "3"));
}

TEST(ExecutionTest, OfEqualRowsTheFirstInOrderCounts) {
  EXPECT_THAT(rows_of("SELECT DISTINCT VALUE c.class FROM c ORDER BY c.mag", kStars),
              ElementsAre(R"("A")", R"("G")", R"("M")"));
  EXPECT_THAT(rows_of("SELECT DISTINCT VALUE c.class FROM c ORDER BY c.class DESC", kStars),
              ElementsAre(R"("M")", R"("G")", R"("A")"));
}

TEST(ExecutionTest, AggregatesHaveOneRow) {
  EXPECT_THAT(rows_of("SELECT VALUE COUNT(1) FROM c", kStars), ElementsAre("5"));
  EXPECT_THAT(rows_of("SELECT VALUE COUNT(1) FROM c", {}), ElementsAre("0"));
  EXPECT_THAT(rows_of("SELECT VALUE MAX(c.nothing) FROM c", kStars), IsEmpty());
  EXPECT_THAT(rows_of("SELECT MAX(c.nothing) AS m, SUM(c.nothing) AS s FROM c", kStars),
              ElementsAre(R"({"s":0})"));
  EXPECT_THAT(rows_of("SELECT VALUE AVG(c.mag) FROM c WHERE IS_NUMBER(c.mag)", kStars),
              ElementsAre("3.835"));
  EXPECT_THAT(rows_of("SELECT VALUE SUM(c.mag) FROM c", kStars), IsEmpty());
  EXPECT_THAT(rows_of("SELECT VALUE {\"n\": COUNT(1) + 1, \"of\": MIN(c.class)} FROM c", kStars),
              ElementsAre(R"({"n":6,"of":"A"})"));
  EXPECT_THAT(rows_of("SELECT COUNTIF(c.mag > 1) AS n, MAKESET(c.class) AS s FROM c", kStars),
              ElementsAre(R"({"n":2,"s":["G","M","A"]})"));
}

TEST(ExecutionTest, GroupsComeInTheOrderOfTheirKeys) {
  EXPECT_THAT(rows_of("SELECT c.class, COUNT(1) AS n FROM c GROUP BY c.class", kStars),
              ElementsAre(R"({"n":1})", R"({"class":"A","n":1})", R"({"class":"G","n":2})",
                          R"({"class":"M","n":1})"));
  EXPECT_THAT(rows_of("SELECT VALUE c.class FROM c GROUP BY c.class OFFSET 1 LIMIT 1", kStars),
              ElementsAre(R"("G")"));
  EXPECT_THAT(
      rows_of("SELECT c.class, COUNT(1) AS n FROM c WHERE IS_DEFINED(c.class) "
              "GROUP BY c.class ORDER BY COUNT(1) DESC",
              kStars),
      ElementsAre(R"({"class":"G","n":2})", R"({"class":"A","n":1})", R"({"class":"M","n":1})"));
  EXPECT_THAT(
      rows_of("SELECT UPPER(c.class) AS u FROM c WHERE c.id = '2' GROUP BY UPPER(c.class)", kStars),
      ElementsAre(R"({"u":"M"})"));
}

TEST(ExecutionTest, GroupsWhoseKeysAreTooLongForATokenResumeToo) {
  Documents documents;
  for (int i = 0; i < 5; ++i) {
    documents.push_back(R"({"i":)" + std::to_string(i) + R"(,"k":")" + std::string(400, 'x') +
                        std::to_string(i * 3 % 5) + R"("})");
  }
  documents.push_back(R"({"i":5,"k":"a"})");
  EXPECT_THAT(rows_of("SELECT VALUE c.i FROM c GROUP BY c.k, c.i ORDER BY c.k", documents),
              ElementsAre("5", "0", "2", "4", "1", "3"));
  EXPECT_THAT(
      rows_of("SELECT VALUE c.i FROM c GROUP BY c.k, c.i ORDER BY c.k OFFSET 2 LIMIT 3", documents),
      ElementsAre("2", "4", "1"));
  EXPECT_THAT(
      rows_of("SELECT VALUE c.i FROM c GROUP BY c.k, c.k || 'a', c.k || 'b', c.i", documents),
      UnorderedElementsAre("5", "0", "2", "4", "1", "3"));
}

TEST(ExecutionTest, RowsOfAnInnerQueryAreDocuments) {
  EXPECT_THAT(rows_of("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.class FROM c)", kStars),
              ElementsAre("3"));
  EXPECT_THAT(rows_of("SELECT VALUE s.n FROM (SELECT c.class, COUNT(1) AS n FROM c "
                      "GROUP BY c.class) AS s WHERE s.n > 1",
                      kStars),
              ElementsAre("2"));
  EXPECT_THAT(rows_of("SELECT VALUE k FROM (SELECT DISTINCT VALUE c.class FROM c) AS k", kStars),
              ElementsAre(R"("G")", R"("M")", R"("A")"));
  EXPECT_THAT(rows_of("SELECT s.n FROM (SELECT c.id AS n FROM c WHERE c.mag = 1) AS s", kStars),
              ElementsAre(R"({"n":"3"})"));
}

TEST(ExecutionTest, SubqueriesAreOfTheirDocument) {
  EXPECT_THAT(rows_of("SELECT VALUE (SELECT VALUE COUNT(1) FROM p IN c.planets) FROM c", kStars),
              ElementsAre("2", "1", "0", "0", "3"));
  EXPECT_THAT(rows_of("SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE p FROM p IN c.planets "
                      "WHERE p.n = 'b')",
                      kStars),
              ElementsAre(R"("2")", R"("5")"));
  EXPECT_THAT(rows_of("SELECT VALUE ARRAY(SELECT VALUE p.n FROM p IN c.planets) FROM c "
                      "WHERE c.id = '1'",
                      kStars),
              ElementsAre(R"(["Earth","Mars"])"));
}

TEST(ExecutionTest, WithoutFromThereIsOneRow) {
  EXPECT_THAT(rows_of("SELECT VALUE 1 + 1", kStars), ElementsAre("2"));
  EXPECT_THAT(rows_of("SELECT VALUE COUNT(1)", kStars), ElementsAre("1"));
  EXPECT_THAT(rows_of("SELECT VALUE undefined", kStars), IsEmpty());
  EXPECT_THAT(rows_of("SELECT 1 AS a WHERE false", kStars), IsEmpty());
}

TEST(ExecutionTest, NothingIsWantedBeyondTop) {
  Execution execution(prepared("SELECT TOP 1 VALUE c.id FROM c"), {});
  execution.begin_slice({});
  EXPECT_EQ(execution.take(kStars[0], DocumentNumber{1}), Execution::Next::PageDone);
  EXPECT_TRUE(execution.is_over());
}

TEST(ExecutionTest, InOrderAPieceIsDoneWhenItCannotMatterAnyMore) {
  PageLimits limits;
  limits.rows_max = 1;
  Execution page(prepared("SELECT VALUE c.id FROM c ORDER BY c.mag"), limits);
  page.begin_slice({});
  EXPECT_EQ(page.take(kStars[3], DocumentNumber{4}), Execution::Next::More);
  EXPECT_EQ(page.take(kStars[2], DocumentNumber{3}), Execution::Next::SliceDone);
  // After the last row that TOP wants nobody asks whether there is another one.
  Execution top(prepared("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.mag"), {});
  top.begin_slice({});
  EXPECT_EQ(top.take(kStars[3], DocumentNumber{4}), Execution::Next::More);
  EXPECT_EQ(top.take(kStars[2], DocumentNumber{3}), Execution::Next::SliceDone);
}

TEST(ExecutionTest, NumbersThatJsonHasNotAreRefused) {
  for (const auto* text : {"SELECT VALUE 1 / 0", "SELECT VALUE [SQRT(-1)]", "SELECT -1 / 0 AS x",
                           "SELECT DISTINCT VALUE 1 / 0", "SELECT VALUE SUM(1 / 0)"}) {
    EXPECT_THAT(failure_of(text, {}), HasSubstr("cannot be represented in JSON")) << text;
  }
  EXPECT_EQ(failure_of("SELECT VALUE c.id FROM c WHERE 1 / 0 > 5", kStars), "");
}

TEST(ExecutionTest, MemoryIsBounded) {
  Documents documents;
  for (int i = 0; i < 2000; ++i) documents.push_back(R"({"k":)" + std::to_string(i) + "}");
  PageLimits limits;
  limits.memory_max = 20'000;
  EXPECT_THAT(failure_of("SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k", documents, limits),
              HasSubstr("more memory"));
  EXPECT_THAT(failure_of("SELECT DISTINCT VALUE c.k FROM c", documents, limits),
              HasSubstr("more memory"));
  // Sorting needs no more than a page.
  Drain drain(prepared("SELECT VALUE c.k FROM c ORDER BY c.k DESC"), documents, 1000);
  drain.limits_ = limits;
  const auto rows = drain.rows();
  ASSERT_EQ(rows.size(), documents.size());
  EXPECT_EQ(rows.front(), "1999");
  EXPECT_GT(drain.pages, 2);
}

TEST(ExecutionTest, ManyRowsOfOneDocumentAreRefused) {
  std::string document = R"({"a":[0)";
  for (int i = 1; i < 200; ++i) document += "," + std::to_string(i);
  document += "]}";
  EXPECT_THAT(failure_of("SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a",
                         {document}),
              HasSubstr("rows of one document"));
}

}  // namespace
}  // namespace orrery::query
