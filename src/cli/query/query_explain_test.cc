#include "cli/query/query_explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kAllRows = 1'000'000;

std::string explained(const std::string& json, const std::string& metrics = "") {
  QueryExplanation explanation;
  explanation.add_page(json, metrics, kAllRows);
  return explanation.to_words();
}

TEST(QueryExplanation, NamesTheIndexThatServed) {
  EXPECT_EQ(
      explained(R"({"shape":"stream","ranges":[{"id":"0","way":"index","indexes":["/city"],)"
                R"("documentsRead":12,"entriesRead":40,"rows":7}],"helpful":[],"building":[]})"),
      "The index on /city found the documents in the only range that was asked: 40 entries "
      "and 12 documents were read, and 7 rows came of them.\n");
}

TEST(QueryExplanation, SaysWhatWasScannedAndWhatWouldHelp) {
  EXPECT_EQ(
      explained(R"({"shape":"stream","ranges":[)"
                R"({"id":"0","way":"scan","indexes":[],"documentsRead":1234567,"rows":1},)"
                R"({"id":"1","way":"scan","indexes":[],"documentsRead":33,"rows":0}],)"
                R"("helpful":["/b","/a ASC,/b DESC"],"potential":["/d","/a ASC,/c ASC"],)"
                R"("building":[]})"),
      "No index was used in all 2 ranges that were asked: 1,234,600 documents were read one "
      "after the other, and 1 row came of them.\n"
      "An index on /b would help; the server builds it by itself once such queries have "
      "read enough to make it worthwhile.\n"
      "The composite index on (/a ASC, /b DESC) of the indexing policy would help; the server "
      "has yet to build it.\n"
      "An index on /d would help, if the indexing policy listed it.\n"
      "A composite index on (/a ASC, /c ASC) would help, if the indexing policy listed it.\n");
}

TEST(QueryExplanation, RangesThatWereReadAlikeAreToldTogether) {
  const std::string words = explained(
      R"({"shape":"grouped","ranges":[{"id":"1","way":"scan","documentsRead":1},)"
      R"({"id":"2","way":"index","indexes":["/a","/b"],"documentsRead":5,"entriesRead":6},)"
      R"({"id":"3","way":"scan","documentsRead":4},{"id":"4","way":"nothing"}],)"
      R"("helpful":["/a"],"building":["/a"]})");
  EXPECT_THAT(words, HasSubstr("No index was used in ranges 1 and 3: 5 documents were read"));
  EXPECT_THAT(words,
              HasSubstr("The indexes on /a and /b found the documents in range 2: 6 entries"));
  EXPECT_THAT(words, HasSubstr("Nothing was read in range 4"));
  EXPECT_THAT(words, HasSubstr("All documents were looked at before the first row."));
  EXPECT_THAT(words, HasSubstr("The index on /a is being built"));
  EXPECT_THAT(words, Not(HasSubstr("would help")));
}

TEST(QueryExplanation, SaysWhereTheOrderComesFrom) {
  const std::string begin = R"({"shape":"ordered","ranges":[{"id":"0","documentsRead":1,"way":)";
  EXPECT_THAT(explained(begin + R"("ordered index","indexes":["/a ASC,/b DESC"]}]})"),
              AllOf(HasSubstr("The index on (/a ASC, /b DESC) gave the documents in order"),
                    HasSubstr("The order comes from the index")));
  EXPECT_THAT(
      explained(begin + R"("scan"}]})"),
      AllOf(HasSubstr("The rows are sorted"), HasSubstr("1 document was read"),
            HasSubstr("0 rows came of it"), HasSubstr("No index that the indexing policy")));
}

TEST(QueryExplanation, AddsUpPages) {
  QueryExplanation explanation;
  // Percent-encoded, as it comes in a header.
  const std::string page =
      "%7B%22shape%22%3A%22stream%22%2C%22ranges%22%3A%5B%7B%22id%22%3A%220%22%2C%22way%22%3A%22"
      "scan%22%2C%22documentsRead%22%3A10%2C%22rows%22%3A2%7D%5D%7D";
  const std::string metrics =
      "totalExecutionTimeInMs=1.50;queryCompileTimeInMs=0.25;indexLookupTimeInMs=0.50;"
      "documentLoadTimeInMs=0.10;VMExecutionTimeInMs=0.20;nonsense;x=;y=abc";
  explanation.add_page(page, metrics, 2);
  explanation.add_page(page, metrics, 2);
  const std::string words = explanation.to_words();
  EXPECT_THAT(words, HasSubstr("20 documents were read one after the other, and 4 rows"));
  EXPECT_THAT(words, HasSubstr("The server took 3.00 ms for 2 pages: 0.50 to understand the query, "
                               "1.00 in indexes, 0.60 with documents."));
}

TEST(QueryExplanation, RowsThatAPageOnlyLookedAtAreNotCountedTwice) {
  const std::string two =
      R"({"ranges":[{"id":"0","way":"scan","documentsRead":1,"rows":1},)"
      R"({"id":"1","way":"nothing","rows":0},{"id":"2","way":"scan","documentsRead":1,"rows":1}],)";
  const std::string one = R"({"ranges":[{"id":"2","way":"scan","documentsRead":1,"rows":1}],)";
  QueryExplanation pages;
  pages.add_page(two + R"("shape":"stream"})", "", 1);
  pages.add_page(one + R"("shape":"stream"})", "", 1);
  EXPECT_THAT(pages.to_words(), HasSubstr("3 documents were read one after the other, and 2 rows"));
  QueryExplanation ordered;
  ordered.add_page(two + R"("shape":"ordered"})", "", 1);
  ordered.add_page(two + R"("shape":"ordered"})", "", 1);
  EXPECT_THAT(ordered.to_words(),
              HasSubstr("4 documents were read one after the other, and 2 rows"));
  // Rows of groups are not the documents that were read.
  QueryExplanation groups;
  groups.add_page(two + R"("shape":"grouped"})", "", 1);
  EXPECT_THAT(groups.to_words(), HasSubstr("2 rows came of them"));
}

TEST(QueryExplanation, ACommaInANameMakesNoCompositeIndex) {
  const auto advised = [](const std::string& index) {
    return explained(R"({"shape":"stream","ranges":[],"helpful":[)" + index + "]}");
  };
  EXPECT_THAT(advised(R"("/\"a,b\"")"), HasSubstr(R"(An index on /"a,b" would help)"));
  EXPECT_THAT(advised(R"("/\"a\\\",b\\\\\"/c")"),
              HasSubstr(R"(An index on /"a\",b\\"/c would help)"));
  EXPECT_THAT(advised(R"("/\"a,b\" ASC,/\"c,\\\\\" DESC")"),
              HasSubstr(R"(The composite index on (/"a,b" ASC, /"c,\\" DESC) of the)"));
}

TEST(QueryExplanation, SaysOfHowManyRangesItDoesNotKnow) {
  const std::string begin = R"({"shape":"stream","ranges":[{"id":"0","way":"scan"}],)";
  EXPECT_THAT(explained(begin + R"("rangesLeftOut":1200})"),
              HasSubstr("There was no room to tell of 1,200 more ranges.\n"));
  EXPECT_THAT(explained(begin + R"("rangesLeftOut":1})"), HasSubstr("of 1 more range.\n"));
  EXPECT_THAT(explained(begin + R"("helpful":[]})"), Not(HasSubstr("no room")));
}

TEST(QueryExplanation, AVectorIndexFindsMostOfThem) {
  EXPECT_THAT(explained(R"({"shape":"ordered","ranges":[{"id":"0","way":"vector index",)"
                        R"("indexes":["/v VECTOR"],"documentsRead":100,"entriesRead":100,)"
                        R"("rows":100}],"helpful":[],"building":[]})"),
              HasSubstr("found the most similar documents, or nearly so, in the only range"));
}

TEST(QueryExplanation, OfAnotherServerIsWhatItsMetricsSay) {
  EXPECT_EQ(
      explained("", "retrievedDocumentCount=2000;outputDocumentCount=1"),
      "This server does not tell how it found the rows.\nIt read 2,000 documents for 1 row.\n");
  for (const char* nonsense : {"%zz", "{", "[]", "7", "\"\""}) {
    EXPECT_EQ(explained(nonsense), "This server does not tell how it found the rows.\n");
  }
  EXPECT_EQ(
      explained(R"({"shape":7,"ranges":[1,{"id":3}],"helpful":{},"building":"x"})").find("\x1b"),
      std::string::npos);
}

}  // namespace
}  // namespace orrery::cli
