#include "catalog/entries.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace orrery::catalog {
namespace {

const Rid kDatabase = Rid::database({0, 0, 0, 5});
const Rid kContainer = Rid::container({0, 0, 0, 5}, {0x80, 0, 0, 9});

ContainerDefinition definition() {
  return ContainerDefinition::create(
             Json::parse(R"({"id":"c ü","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
                             "defaultTtl":60,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]}})"),
             "2020-07-15")
      .value();
}

TEST(EntriesTest, ADatabaseIsReadBack) {
  const Database database{kDatabase, "dü", Lsn{7}, 1'743'508'800};
  const auto copy = parse_database(database_key(kDatabase), make_value(database));
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->rid, database.rid);
  EXPECT_EQ(copy->id, database.id);
  EXPECT_EQ(copy->etag(), database.etag());
}

TEST(EntriesTest, AContainerIsReadBackWithItsRanges) {
  StoredContainer container{kContainer, definition(), Lsn{8}, 1'743'508'800, 3, {}, RangeId{9}};
  container.ranges.push_back({RangeId{2},
                              PartitionNumber{11},
                              {Epk::min(), Epk::from_hex("40").value()},
                              {RangeId{0}, RangeId{1}},
                              2,
                              99});
  container.ranges.push_back(
      {RangeId{3}, PartitionNumber{12}, {Epk::from_hex("40").value(), Epk::max()}, {}, 1, 98});
  const auto copy = parse_container(container_key(kContainer), make_value(container));
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->rid, kContainer);
  EXPECT_EQ(copy->definition.to_stored(), container.definition.to_stored());
  EXPECT_EQ(copy->version, Lsn{8});
  EXPECT_EQ(copy->map_version, 3u);
  EXPECT_EQ(copy->next_range, RangeId{9});
  ASSERT_EQ(copy->ranges.size(), 2u);
  EXPECT_EQ(copy->ranges[0].id, RangeId{2});
  EXPECT_EQ(copy->ranges[0].partition, PartitionNumber{11});
  EXPECT_EQ(copy->ranges[0].epks, container.ranges[0].epks);
  EXPECT_EQ(copy->ranges[0].parents, container.ranges[0].parents);
  EXPECT_EQ(copy->ranges[0].made_in, 2u);
  EXPECT_EQ(copy->ranges[0].ts, 99);
  EXPECT_EQ(copy->ranges[1].epks.max, Epk::max());
}

TEST(EntriesTest, AnEncryptionKeyIsReadBack) {
  const EncryptionKey key{Rid::encryption_key(kDatabase, 5), "k",
                          Json::parse(R"({"id":"k","z":[1],"a":{"b":null}})"), Lsn{7},
                          1'743'508'800};
  const auto copy = parse_encryption_key(encryption_key_key(key.rid), make_value(key));
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->rid, key.rid);
  EXPECT_EQ(copy->id, "k");
  EXPECT_EQ(copy->members.dump(), key.members.dump());
  EXPECT_EQ(copy->etag(), key.etag());
}

TEST(EntriesTest, AnOfferIsReadBackWithWhatItHasAndWithoutWhatItLacks) {
  Offer offer{Rid::offer(3), kContainer, {}, 5000, Lsn{9}, 1'743'508'800};
  for (int kind = 0; kind < 3; ++kind) {
    offer.throughput = {};
    if (kind == 0) offer.throughput.manual = 400;
    if (kind == 1) {
      offer.throughput.autoscale_max = 4000;
      offer.throughput.increment_percent = 10;
    }
    if (kind == 2) offer.throughput.legacy_type = "S2";
    const auto copy = parse_offer(offer_key(offer.rid), make_value(offer));
    ASSERT_TRUE(copy);
    EXPECT_EQ(copy->rid, offer.rid);
    EXPECT_EQ(copy->owner, kContainer);
    EXPECT_EQ(copy->throughput, offer.throughput);
    EXPECT_EQ(copy->highest_ever, 5000);
    EXPECT_EQ(copy->etag(), offer.etag());
  }
}

TEST(EntriesTest, CountersAndLastHeadsAreReadBack) {
  const Counters counters{1, 2, 3, 4, 6, 5'000'000'000};
  const auto copy = parse_counters(make_value(counters));
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->database, 1u);
  EXPECT_EQ(copy->container, 2u);
  EXPECT_EQ(copy->partition, 3u);
  EXPECT_EQ(copy->offer, 4u);
  EXPECT_EQ(copy->encryption_key, 6u);
  EXPECT_EQ(copy->version, 5'000'000'000u);
  EXPECT_EQ(parse_last_head(make_value(Lsn{1ull << 40})), Lsn{1ull << 40});
}

TEST(EntriesTest, CountersFromBeforeEncryptionKeysAreRead) {
  const auto counters = parse_counters(
      "\x01"
      R"({"database":1,"container":2,"partition":3,"offer":4,"version":5})");
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->encryption_key, 0u);
  EXPECT_EQ(counters->version, 5u);
}

TEST(EntriesTest, WhatIsNotOfThisFormatIsRefused) {
  const Database database{kDatabase, "d", Lsn{7}, 0};
  const std::string good = make_value(database);
  for (const std::string& value :
       {std::string(), std::string("\x02") + good.substr(1), good.substr(0, 1),
        good.substr(0, good.size() - 1), std::string("\x01[]"), std::string("\x01") + "7"}) {
    EXPECT_FALSE(parse_database(database_key(kDatabase), value)) << value;
    EXPECT_FALSE(parse_container(container_key(kContainer), value)) << value;
    EXPECT_FALSE(parse_encryption_key(encryption_key_key(Rid::encryption_key(kDatabase, 1)), value))
        << value;
    EXPECT_FALSE(parse_offer(offer_key(Rid::offer(1)), value)) << value;
    EXPECT_FALSE(parse_counters(value)) << value;
    EXPECT_FALSE(parse_last_head(value)) << value;
  }
  EXPECT_FALSE(parse_database("d12", good)) << "a key that holds no rid";
}

TEST(EntriesTest, KeysOfDifferentKindsNeverMeet) {
  const std::set<std::string> keys = {database_key(kDatabase),
                                      container_key(kContainer),
                                      offer_key(Rid::offer(1)),
                                      garbage_key(PartitionNumber{1}),
                                      last_head_key("d", "c"),
                                      counters_key(),
                                      encryption_key_key(Rid::encryption_key(kDatabase, 1))};
  EXPECT_EQ(keys.size(), 7u);
  std::set<char> letters;
  for (const auto& key : keys) letters.insert(key[0]);
  EXPECT_EQ(letters.size(), 7u);
}

}  // namespace
}  // namespace orrery::catalog
