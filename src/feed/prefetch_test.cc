#include "feed/prefetch.h"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace orrery::feed {
namespace {

PreparedPage page_of(std::string body) {
  PreparedPage page;
  page.body = std::move(body);
  return page;
}

class PrefetcherTest : public ::testing::Test {
 protected:
  BackgroundPool pool{2, [] { return false; }};
  Prefetcher ahead;
  Owner container;  // Only its identity matters here.

  void begin(const std::string& key, std::string body) {
    ahead.begin(pool, key, container, [body = std::move(body)] { return page_of(body); });
  }
};

TEST_F(PrefetcherTest, APageIsTakenOnceByTheRequestThatItWasReadFor) {
  begin("a", "first");
  EXPECT_FALSE(ahead.take("b", container));
  const auto page = ahead.take("a", container);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->body, "first");
  EXPECT_FALSE(ahead.take("a", container));
}

TEST_F(PrefetcherTest, APageOfAContainerThatHasBeenReplacedSinceIsNotUsed) {
  begin("a", "first");
  // Shares nothing: only another pointer than the one that the page was read for.
  int other = 0;
  const Owner replaced(container, &other);
  EXPECT_FALSE(ahead.take("a", replaced));
}

TEST_F(PrefetcherTest, AFailedReadIsForgotten) {
  ahead.begin(pool, "a", container,
              []() -> Result<PreparedPage> { return Error(ErrorCode::Unavailable, "no"); });
  EXPECT_FALSE(ahead.take("a", container));
}

TEST_F(PrefetcherTest, NobodyWaitsForAThreadThatWaitsToo) {
  BackgroundPool busy{1, [] { return false; }};
  std::promise<void> over;
  // The only thread of the pool asks for a page that it would have to read itself, later.
  busy.post([&] {
    ahead.begin(busy, "a", container, [] { return page_of("first"); });
    EXPECT_TRUE(ahead.take("a", container));
    over.set_value();
  });
  over.get_future().wait();
  busy.join();
}

TEST_F(PrefetcherTest, OnlyAFewPagesAreKept) {
  for (int i = 0; i < 12; ++i) begin(std::to_string(i), "page");
  int kept = 0;
  for (int i = 0; i < 12; ++i) kept += ahead.take(std::to_string(i), container) ? 1 : 0;
  EXPECT_EQ(kept, 8);
}

class PrefetchChainTest : public PrefetcherTest {
 protected:
  BackgroundPool one{1, [] { return false; }};
  int read = 0;  // By the thread of `one`.

  /// Pages "0" to "4".
  std::optional<PrefetchChain::Next> next(const PreparedPage& page) {
    const int number = std::stoi(page.body) + 1;
    if (number == 5) return {};
    return PrefetchChain::Next{std::to_string(number), [this, number] {
                                 ++read;
                                 return page_of(std::to_string(number));
                               }};
  }
  /// How many have been read when the thread has nothing to do.
  int read_so_far() {
    int seen = -1;
    // Each piece of work may have left another one behind.
    for (int last = -2; seen != last;) {
      last = seen;
      std::promise<int> told;
      one.post([&] { told.set_value(read); });
      seen = told.get_future().get();
    }
    return seen;
  }
};

TEST_F(PrefetchChainTest, IsTwoPagesAheadOfTheReader) {
  const auto reader = std::make_shared<PrefetchChain>(
      ahead, one, container, [this](const PreparedPage& page) { return next(page); });
  reader->after(page_of("0"));
  EXPECT_EQ(read_so_far(), 2);
  for (const char* number : {"1", "2", "3", "4"}) {
    auto page = ahead.take(number, container);
    ASSERT_TRUE(page) << number;
    EXPECT_EQ(page->body, number);
    page->ahead->page_taken();
    EXPECT_EQ(read_so_far(), std::min(4, 2 + std::stoi(number)));
  }
}

}  // namespace
}  // namespace orrery::feed
