#include "client/exchange/regions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::client {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

const auto kNow = Regions::TimePoint(1000h);

AccountProperties account() {
  AccountProperties properties;
  properties.writable_regions = {{"West Europe", "https://a-west.example/"}};
  properties.readable_regions = {{"West Europe", "https://a-west.example/"},
                                 {"East US", "https://a-east.example/"},
                                 {"Japan West", "https://a-japan.example/"}};
  return properties;
}

class RegionsTest : public ::testing::Test {
 protected:
  std::string next(bool writes, Regions::TimePoint now = kNow) {
    Regions::Known& known = regions->choose(writes, tried, now);
    tried.push_back(&known);
    return known.endpoint->url;
  }
  void make(std::vector<std::string> preferred) {
    regions.emplace(*Endpoint::parse("https://a.example/"), std::move(preferred));
  }

  std::optional<Regions> regions;
  std::vector<Regions::Known*> tried;
};

TEST_F(RegionsTest, UntilTheAccountIsKnownAllGoesToTheEndpointThatWasGiven) {
  make({"East US"});
  EXPECT_FALSE(regions->known());
  EXPECT_EQ(next(false), "https://a.example");
  EXPECT_FALSE(regions->has_other(false, tried));
  EXPECT_EQ(next(false), "https://a.example");
}

TEST_F(RegionsTest, ReadsGoToTheRegionsAsPreferred) {
  make({"japanwest", "East US"});
  regions->update(account());
  EXPECT_TRUE(regions->known());
  EXPECT_EQ(next(false), "https://a-japan.example");
  EXPECT_EQ(next(false), "https://a-east.example");
  EXPECT_EQ(next(false), "https://a-west.example");
  EXPECT_EQ(next(false), "https://a.example");
  EXPECT_FALSE(regions->has_other(false, tried));
  EXPECT_EQ(next(false), "https://a-japan.example") << "all were tried: from the front again";
}

TEST_F(RegionsTest, WritesGoToTheWriteRegion) {
  make({"East US"});
  regions->update(account());
  Regions::Known& known = regions->choose(true, tried, kNow);
  EXPECT_EQ(known.endpoint->url, "https://a-west.example");
  EXPECT_TRUE(regions->is_write_region(known));
  EXPECT_FALSE(regions->is_write_region(regions->choose(false, tried, kNow)));
}

TEST_F(RegionsTest, UnreachableRegionComesLastForAWhile) {
  make({});
  regions->update(account());
  Regions::Known& west = regions->choose(false, {}, kNow);
  regions->answered(west);
  regions->unreachable(west, kNow);
  EXPECT_EQ(regions->choose(false, {}, kNow + 1min).endpoint->url, "https://a-east.example");
  EXPECT_EQ(regions->choose(false, {}, kNow + 6min).endpoint->url, "https://a-west.example");
  regions->unreachable(west, kNow + 6min);
  regions->answered(west);
  EXPECT_EQ(regions->choose(false, {}, kNow + 7min).endpoint->url, "https://a-west.example");
}

TEST_F(RegionsTest, EndpointThatNeverAnsweredGivesWayToTheOneThatWasGiven) {
  make({});
  AccountProperties inside;
  inside.writable_regions = inside.readable_regions = {{"Local", "http://container:8081/"}};
  regions->update(inside);
  Regions::Known& advertised = regions->choose(true, {}, kNow);
  EXPECT_EQ(advertised.endpoint->url, "http://container:8081");
  regions->unreachable(advertised, kNow);
  EXPECT_EQ(regions->choose(true, {}, kNow + 1h).endpoint->url, "https://a.example");
  EXPECT_EQ(regions->choose(false, {}, kNow + 1h).endpoint->url, "https://a.example");
}

TEST_F(RegionsTest, NewPictureReplacesTheOldOne) {
  make({});
  regions->update(account());
  AccountProperties moved = account();
  moved.writable_regions = {{"East US", "https://a-east.example/"}};
  regions->update(moved);
  EXPECT_EQ(next(true), "https://a-east.example");
}

TEST(Account, IsReadFromItsJson) {
  const auto parsed = parse_account(
      R"({"id":"sky","writableLocations":[{"name":"Local","databaseAccountEndpoint":"http://h:1/"}],
          "readableLocations":[{"name":"Local","databaseAccountEndpoint":"http://h:1/"},{"no":1}],
          "userConsistencyPolicy":{"defaultConsistencyLevel":"BoundedStaleness"}})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, "sky");
  EXPECT_EQ(parsed->consistency, ConsistencyLevel::BoundedStaleness);
  ASSERT_EQ(parsed->readable_regions.size(), 1u);
  EXPECT_EQ(parsed->readable_regions[0].endpoint, "http://h:1/");
  EXPECT_FALSE(parse_account("[]"));
  EXPECT_FALSE(parse_account("{}"));
  EXPECT_FALSE(parse_account("<html>"));
}

TEST(Endpoint, IsTakenApart) {
  const auto endpoint = Endpoint::parse("HTTPS://[::1]:8081/base//");
  ASSERT_TRUE(endpoint);
  EXPECT_EQ((*endpoint)->url, "https://[::1]:8081/base");
  EXPECT_EQ((*endpoint)->authority, "[::1]:8081");
  EXPECT_EQ((*endpoint)->base_path, "/base");
  EXPECT_TRUE((*endpoint)->secure);
  for (const std::string_view text : {"", "localhost:8081", "ftp://h/", "http://", "http:///",
                                      "http://h/?q", "http://u@h/", "http://h\r\nx: y/"}) {
    EXPECT_FALSE(Endpoint::parse(text)) << text;
  }
}

}  // namespace
}  // namespace orrery::client
