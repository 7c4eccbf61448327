// ChangeFeedTest: readers of the change feed of a container that a test has in its hands.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/feed/test_feed_pipeline.h"
#include "orrery/change_feed.h"
#include "orrery/container.h"

namespace orrery::client {

using namespace std::chrono_literals;
using test::FeedPipeline;

using Versions = std::vector<int>;

inline std::string key_of(int number) { return "[\"key " + std::to_string(number) + "\"]"; }

inline Versions versions_of(const ChangeFeedPage& page) {
  Versions versions;
  for (const std::string_view item : page) {
    versions.push_back(nlohmann::json::parse(item)["version"].get<int>());
  }
  return versions;
}

/// All that is there, up to the first page that says so.
inline Versions drain(ChangeFeedIterator& feed) {
  Versions found;
  for (auto page = feed.next(); !page.not_modified; page = feed.next()) {
    const Versions more = versions_of(page);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

class ChangeFeedTest : public ::testing::Test {
 protected:
  ChangeFeedIterator feed(ChangeFeedOptions options = {}) {
    return container_.change_feed(options);
  }
  Versions write(int count, int key_count = 20) {
    Versions written;
    for (int i = 0; i < count; ++i) written.push_back(server_->write(key_of(i % key_count)));
    return written;
  }
  static ChangeFeedOptions from(ChangeFeedStart start) {
    ChangeFeedOptions options;
    options.start = std::move(start);
    return options;
  }
  static ChangeFeedOptions waiting(std::chrono::seconds wait) {
    ChangeFeedOptions options = from(ChangeFeedStart::now());
    options.wait = wait;
    return options;
  }
  void make_ranges(int splits) {
    for (int i = 0; i < splits; ++i)
      server_->split(static_cast<std::size_t>(2 * i) % server_->range_count());
    // As a client that knows them.
    server_->forget_routing("", server_->routing("", {}));
  }

  std::shared_ptr<FeedPipeline> server_ = std::make_shared<FeedPipeline>();
  Container container_{server_, "db", "c"};
};

}  // namespace orrery::client
