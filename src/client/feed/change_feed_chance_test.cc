#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "base/test_seed.h"
#include "client/feed/test_change_feed.h"
#include "orrery/exception.h"

namespace orrery::client {
namespace {

/// Writes, splits, merges, errors, and readers that are taken over in the middle of everything, as
/// chance has it. Of all versions each is seen once and in the order of its key; of latest ones
/// none twice, and the last of each key.
class ChangeFeedChanceTest : public ChangeFeedTest,
                             public ::testing::WithParamInterface<std::tuple<bool, bool>> {};

TEST_P(ChangeFeedChanceTest, NothingIsLostRepeatedOrOutOfOrder) {
  const auto [all_versions, waits] = GetParam();
  const auto seed = static_cast<unsigned>(orrery::test::seed());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const int rounds = waits ? 5 : 40;
  for (int round = 0; round < rounds; ++round) {
    server_ = std::make_shared<FeedPipeline>();
    container_ = Container(server_, "db", "c");
    ChangeFeedOptions options;
    options.page_size = 1 + random() % 5;
    if (waits) options.wait = 1s;
    if (all_versions) {
      options.mode = ChangeFeedMode::AllVersionsAndDeletes;
      options.start = ChangeFeedStart::now();
    }
    std::optional<ChangeFeedIterator> reader(feed(options));
    std::string position = reader->continuation();
    std::map<std::string, Versions> written, found;
    const auto read_page = [&] {
      try {
        const auto page = reader->next();
        position = page.continuation;
        for (const std::string_view item : page) {
          const auto change = nlohmann::json::parse(item);
          found[change["key"].dump()].push_back(change["version"].get<int>());
        }
        return !page.not_modified;
      } catch (const CosmosException& failure) {
        EXPECT_EQ(failure.status(), 500);
        return true;
      }
    };
    if (waits) read_page();  // From then on it polls.
    for (int step = 0; step < 150; ++step) {
      const std::size_t range = random() % server_->range_count();
      switch (random() % 12) {
        case 0:
          if (server_->range_count() < 12) server_->split(range);
          break;
        case 1:
          if (range + 1 < server_->range_count()) server_->merge(range);
          break;
        case 2:
          server_->refuse_next(1, 500, 0);
          break;
        case 3:
          if (waits && random() % 4 != 0) break;
          options.start =
              ChangeFeedStart::continuation(random() % 2 ? position : reader->continuation());
          reader.emplace(feed(options));
          break;
        case 4:
        case 5:
        case 6:
        case 7:
          // A call that would wait is mostly made when there is something.
          if (!waits || random() % 50 != 0) {
            const std::string key = key_of(static_cast<int>(random() % 15));
            written[key].push_back(server_->write(key));
          }
          read_page();
          break;
        default: {
          const std::string key = key_of(static_cast<int>(random() % 15));
          written[key].push_back(server_->write(key));
        }
      }
    }
    server_->refuse_next(0, 0, 0);
    options.start = ChangeFeedStart::continuation(position);
    options.wait.reset();
    reader.emplace(feed(options));
    while (read_page()) {
    }
    if (all_versions) {
      ASSERT_EQ(found, written) << "round " << round;
      continue;
    }
    for (const auto& [key, versions] : written) {
      ASSERT_FALSE(found[key].empty()) << "round " << round;
      ASSERT_EQ(found[key].back(), versions.back()) << "round " << round;
      ASSERT_TRUE(std::ranges::is_sorted(found[key], std::less_equal<>{})) << "round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ChangeFeedChanceTest,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()));

}  // namespace
}  // namespace orrery::client
