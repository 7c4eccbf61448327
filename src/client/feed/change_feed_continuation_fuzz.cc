// Whatever somebody says is a continuation of a change feed: it is refused, or it is one and stays
// the same when it is written.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "client/feed/change_feed_continuation.h"
#include "orrery/exception.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery::client;
  try {
    const auto parsed =
        FeedContinuation::parse(std::string_view(reinterpret_cast<const char*>(data), size));
    ORRERY_ASSERT(FeedContinuation::parse(parsed.to_text()) == parsed);
  } catch (const CosmosException& refusal) {
    ORRERY_ASSERT(refusal.failure() == Failure::Argument);
  }
  return 0;
}
