#include "api/page_ahead.h"

#include <future>

#include <gtest/gtest.h>

namespace orrery::api {
namespace {

FeedPage page_of(std::string body) {
  FeedPage page;
  page.body = std::move(body);
  return page;
}

class PageAheadTest : public ::testing::Test {
 protected:
  BackgroundPool pool{2, [] { return false; }};
  PageAhead ahead;
  catalog::ContainerPtr container;  // Only its identity matters here.

  void begin(const std::string& key, std::string body) {
    ahead.begin(pool, key, container, [body = std::move(body)] { return page_of(body); });
  }
};

TEST_F(PageAheadTest, APageIsTakenOnceByTheRequestThatItWasReadFor) {
  begin("a", "first");
  EXPECT_FALSE(ahead.take("b", container));
  const auto page = ahead.take("a", container);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->body, "first");
  EXPECT_FALSE(ahead.take("a", container));
}

TEST_F(PageAheadTest, APageOfAContainerThatHasBeenReplacedSinceIsNotUsed) {
  begin("a", "first");
  // Shares nothing: only another pointer than the one that the page was read for.
  int other = 0;
  const catalog::ContainerPtr replaced(container,
                                       reinterpret_cast<const catalog::Container*>(&other));
  EXPECT_FALSE(ahead.take("a", replaced));
}

TEST_F(PageAheadTest, AFailedReadIsForgotten) {
  ahead.begin(pool, "a", container,
              []() -> Result<FeedPage> { return Error(ErrorCode::Unavailable, "no"); });
  EXPECT_FALSE(ahead.take("a", container));
}

TEST_F(PageAheadTest, NobodyWaitsForAThreadThatWaitsToo) {
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

TEST_F(PageAheadTest, OnlyAFewPagesAreKept) {
  for (int i = 0; i < 12; ++i) begin(std::to_string(i), "page");
  int kept = 0;
  for (int i = 0; i < 12; ++i) kept += ahead.take(std::to_string(i), container) ? 1 : 0;
  EXPECT_EQ(kept, 8);
}

}  // namespace
}  // namespace orrery::api
