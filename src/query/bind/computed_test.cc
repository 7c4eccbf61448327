#include "query/bind/computed.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::query {
namespace {

using testing::HasSubstr;

std::string computed_refusal(std::vector<Settings::Computed> computed) {
  Settings settings;
  settings.computed = std::move(computed);
  const auto checked = check_computed(settings);
  return checked ? "" : checked.error().message();
}

TEST(ComputedTest, AnExpressionOverOneDocumentIsTaken) {
  EXPECT_EQ(computed_refusal({{"lower", "SELECT VALUE LOWER(c.name) FROM c"},
                              {"price", "SELECT VALUE x.price * 0.8 FROM x"}}),
            "");
}

TEST(ComputedTest, WhatIsMoreIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"SELECT c.name FROM c", "SELECT VALUE"},
      {"SELECT VALUE c.name FROM c WHERE c.a", "SELECT VALUE"},
      {"SELECT TOP 1 VALUE c.name FROM c", "SELECT VALUE"},
      {"SELECT VALUE t FROM t IN c.tags", "SELECT VALUE"},
      {"SELECT VALUE (SELECT VALUE 1) FROM c", "subquery"},
      {"SELECT VALUE RAND() FROM c", "the same value"},
      {"SELECT VALUE udf.f(c) FROM c", "the same value"},
      {"SELECT VALUE GetCurrentTimestamp() - c.t FROM c", "the same value"},
      {"SELECT VALUE COUNT(c.a) FROM c", "SC2101"},
      {"SELECT VALUE NOSUCH(c.a) FROM c", "SC2005"},
      {"SELECT VALUE d.a FROM c", "SC2001"},
      {"SELECT VALUE FROM c", "SC1001"},
      {"SELECT VALUE c.other + 1 FROM c", "another computed property"},
      {R"(SELECT VALUE c["other"] FROM c)", "another computed property"},
      {R"(SELECT VALUE LOWER(c["oth" || "er"].a[0]) FROM c)", "another computed property"},
  };
  for (const auto& [query, reason] : cases) {
    const std::string message =
        computed_refusal({{"mine", query}, {"other", "SELECT VALUE c.a FROM c"}});
    EXPECT_THAT(message, HasSubstr("'mine'")) << query;
    EXPECT_THAT(message, HasSubstr(reason)) << query;
  }
}

TEST(ComputedTest, WhatItHidesIsStillThereForItself) {
  EXPECT_EQ(computed_refusal({{"a", "SELECT VALUE c.a + 1 FROM c"}}), "");
  EXPECT_EQ(computed_refusal({{"a", R"(SELECT VALUE c["a"] + 1 FROM c)"}}), "");
}

TEST(ComputedTest, OnlyTheFirstStepIsTheProperty) {
  EXPECT_EQ(
      computed_refusal({{"a", "SELECT VALUE c.x.b FROM c"}, {"b", "SELECT VALUE c.y FROM c"}}), "");
}

}  // namespace
}  // namespace orrery::query
