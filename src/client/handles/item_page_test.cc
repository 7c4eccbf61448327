#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/pipeline.h"

namespace orrery::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Answer answer_with(std::string body) {
  Answer answer;
  answer.status = 200;
  answer.etag = "\"9\"";
  answer.body = std::move(body);
  return answer;
}

TEST(ItemPage, IsCutIntoDocuments) {
  const ItemPage page = item_page(
      answer_with(R"({"_rid":"KxEAAJE-AgA=","Documents":[{"id":"a","x":["]",{}]}, {"id":"b\"]"} ,)"
                  R"(7,"s",null],"_count":5})"),
      "Documents", "next");
  EXPECT_THAT(page.items(),
              ElementsAre(R"({"id":"a","x":["]",{}]})", R"({"id":"b\"]"})", "7", R"("s")", "null"));
  EXPECT_EQ(page.continuation, "next");
  EXPECT_EQ(page.etag, "\"9\"");
}

TEST(ItemPage, ViewsLiveAsLongAsAnyCopy) {
  std::optional<ItemPage> page =
      item_page(answer_with(R"({"Documents":[{"id":"a"}]})"), "Documents", "");
  const ItemPage copy = *page;
  page.reset();
  EXPECT_THAT(copy.items(), ElementsAre(R"({"id":"a"})"));
}

TEST(ItemPage, MayBeEmpty) {
  EXPECT_THAT(item_page(answer_with(R"({"Documents":[],"_count":0})"), "Documents", "").items(),
              IsEmpty());
  EXPECT_THAT(item_page(answer_with(R"( { "Documents" : [ ] } )"), "Documents", "").items(),
              IsEmpty());
}

TEST(ItemPage, OnlyTheArrayOfThatNameCounts) {
  const ItemPage page = item_page(
      answer_with(R"({"x":{"Documents":[1]},"y":[2],"Docum\u0065nts":[3]})"), "Documents", "");
  EXPECT_THAT(page.items(), ElementsAre("3"));
}

TEST(ItemPage, RefusesNonsense) {
  for (const std::string body :
       {"", "[]", "{}", "null", R"({"Documents":7})", R"({"Documents":[)", R"({"Documents":[1,2)",
        R"({"Documents":[1,2])", R"({"Documents":[1,2],)", R"({"Documents":[1 2]})",
        R"({"Documents":[,]})", R"({"Documents":[1,]})", R"({"Documents":[{"a":1})",
        R"({"Documents":["abc)", R"({"Documents":[1},"b":2})"}) {
    EXPECT_THROW(item_page(answer_with(body), "Documents", ""), CosmosException) << body;
  }
}

}  // namespace
}  // namespace orrery::client
