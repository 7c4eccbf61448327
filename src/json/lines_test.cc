#include "json/lines.h"

#include <vector>

#include <gtest/gtest.h>

namespace orrery::json {
namespace {

TEST(JsonLines, AreOneLinePerText) {
  const std::vector<std::string_view> texts = {"{\"id\":\n\"a\"}", "{\r\n\"id\":\"b\\n\"}"};
  EXPECT_EQ(lines(texts), "{\"id\": \"a\"}\n{  \"id\":\"b\\n\"}\n");
  EXPECT_EQ(lines({}), "");
}

}  // namespace
}  // namespace orrery::json
