#include "sinks/batch_text.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "sinks/test_observer_context.h"

namespace orrery::sinks {
namespace {

TEST(BatchText, AnEnvelopeIsOneLine) {
  const std::vector<std::string_view> documents = {"{\"id\":\n\"a\"}", "{\r\n\"id\":\"b\\n\"}"};
  const TestObserverContext context(3, "\"10\"", "\"20\"");
  EXPECT_EQ(envelope(context, documents),
            R"({"lease":"7","range":"7","epoch":3,"from":"10","to":"20","documents":)"
            R"([{"id": "a"},{  "id":"b\n"}]})");
}

TEST(BatchText, IdempotencyKeysTellPartsOfABatchApart) {
  const std::vector<std::string_view> documents = {"1", "2", "12"};
  const Changes all(documents);
  const TestObserverContext context(3, "\"10\"", "\"20\"");
  EXPECT_EQ(idempotency_key(context, all), idempotency_key(context, all));
  EXPECT_TRUE(idempotency_key(context, all).starts_with("7/3/20/"));
  std::set<std::string> keys = {idempotency_key(context, all)};
  keys.insert(idempotency_key(context, all.first(1)));
  keys.insert(idempotency_key(context, all.first(2)));
  keys.insert(idempotency_key(context, all.last(1)));
  keys.insert(idempotency_key(TestObserverContext(4, "\"10\"", "\"20\""), all));
  EXPECT_EQ(keys.size(), 5u);
}

}  // namespace
}  // namespace orrery::sinks
