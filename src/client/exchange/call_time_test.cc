#include "client/exchange/call_time.h"

#include <gtest/gtest.h>

#include "orrery/exception.h"

namespace orrery::client {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

TEST(CallTime, EachRequestHasWhatIsLeft) {
  RequestOptions options;
  EXPECT_EQ(CallTime(options).for_next_request().timeout, std::nullopt);
  options.timeout = 1h;
  const CallTime time(options);
  const auto left = *time.for_next_request().timeout;
  EXPECT_LE(left, 1h);
  EXPECT_GT(left, 59min);
  options.timeout = 0ms;
  EXPECT_THROW(CallTime(options).for_next_request(), CosmosException);
}

TEST(CallTime, TheLongestTimeIsNoShortOne) {
  RequestOptions options;
  options.timeout = milliseconds::max();
  EXPECT_GT(*CallTime(options).for_next_request().timeout, 24h);
}

TEST(CallTime, PauseDoesNotOutlastTheCall) {
  RequestOptions options;
  options.timeout = 1h;
  EXPECT_NO_THROW(CallTime(options).pause(1ms));
  try {
    CallTime(options).pause(2h);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.failure(), Failure::Timeout);
  }
  std::stop_source source;
  options.stop = source.get_token();
  source.request_stop();
  try {
    CallTime(options).pause(30min);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.failure(), Failure::Cancelled);
  }
}

}  // namespace
}  // namespace orrery::client
