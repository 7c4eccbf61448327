// The account, databases, containers, and their throughput.
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "orrery/json.h"
#include "test_account.h"

namespace orrery::test {
namespace {

using client::ContainerProperties;
using client::CosmosClient;
using client::CosmosException;
using client::CreateOptions;
using client::ListOptions;
using client::Query;
using client::Throughput;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ResourcesTest : public AccountTest {
 protected:
  template <typename Call>
  static int status_of(Call call) {
    try {
      call();
    } catch (const CosmosException& failure) {
      return failure.status();
    }
    return 0;
  }

  static ContainerProperties by_pk(const std::string& id) {
    ContainerProperties properties;
    properties.id = id;
    properties.partition_key_paths = {"/pk"};
    return properties;
  }

  static CreateOptions with(const Throughput& throughput) {
    CreateOptions options;
    options.throughput = throughput;
    return options;
  }
};

TEST_F(ResourcesTest, AccountTellsItsRegions) {
  const auto account = client().read_account();
  EXPECT_EQ(account.status, 200);
  EXPECT_THAT(account.value.id, Not(IsEmpty()));
  EXPECT_EQ(account.value.consistency, client::ConsistencyLevel::Session);
  ASSERT_THAT(account.value.writable_regions, SizeIs(1));
  EXPECT_THAT(account.value.writable_regions[0].endpoint, HasSubstr("127.0.0.1"));
  EXPECT_THAT(account.value.readable_regions, SizeIs(1));
}

TEST_F(ResourcesTest, ConnectionStringOpensTheAccount) {
  const auto same = CosmosClient::from_connection_string(server().connection_string());
  EXPECT_EQ(same.read_account().status, 200);
  EXPECT_THAT(same.endpoint(), HasSubstr("127.0.0.1"));
}

TEST_F(ResourcesTest, LifeOfADatabase) {
  const auto created = client().create_database("planets");
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.value.id, "planets");
  EXPECT_THAT(created.value.rid, Not(IsEmpty()));
  EXPECT_THAT(created.value.etag, Not(IsEmpty()));
  EXPECT_EQ(status_of([&] { client().create_database("planets"); }), 409);
  EXPECT_EQ(client().database("planets").read().value.rid, created.value.rid);
  EXPECT_EQ(client().create_database_if_not_exists("planets").status, 200);
  EXPECT_EQ(client().database("planets").remove().status, 204);
  EXPECT_EQ(status_of([&] { client().database("planets").read(); }), 404);
  EXPECT_EQ(client().create_database_if_not_exists("planets").status, 201);
  client().database("planets").remove();
  EXPECT_EQ(status_of([&] { client().create_database("a?b"); }), 400);
}

TEST_F(ResourcesTest, DatabasesComeInPages) {
  for (int i = 0; i < 5; ++i) client().create_database("listed " + std::to_string(i));
  ListOptions options;
  options.page_size = 2;
  std::set<std::string> ids;
  int pages = 0;
  client().list_databases(options).for_each([&](const auto& page) {
    EXPECT_LE(page.items.size(), 2u);
    for (const auto& each : page.items) ids.insert(each.id);
    ++pages;
  });
  EXPECT_GE(pages, 3);
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(ids, Contains("listed " + std::to_string(i)));
    client().database("listed " + std::to_string(i)).remove();
  }

  options.page_size = 1;
  auto first = client().list_databases(options);
  first.next();
  const auto second = first.next();
  if (first.has_more()) {
    options.continuation = second.continuation;
    EXPECT_THAT(client().list_databases(options).next().items, SizeIs(1));
  }
}

TEST_F(ResourcesTest, DatabasesAndContainersAreQueried) {
  client().create_database("queried");
  const auto found = client().query_databases("SELECT * FROM d WHERE d.id = 'queried'").next();
  ASSERT_THAT(found.items, SizeIs(1));
  EXPECT_EQ(found.items[0].id, "queried");
  EXPECT_EQ(found.items[0].rid, client().database("queried").read().value.rid);
  EXPECT_THAT(client().database("queried").query_containers("SELECT * FROM c").next().items,
              IsEmpty());
  client().database("queried").remove();
  EXPECT_EQ(status_of([&] { client().query_databases("SELECT").next(); }), 400);
}

TEST_F(ResourcesTest, LifeOfAContainer) {
  ContainerProperties wanted = by_pk("stars");
  wanted.default_ttl = 3'600;
  wanted.indexing_policy = R"({"indexingMode":"consistent","excludedPaths":[{"path":"/blob/*"}]})";
  wanted.unique_key_policy = R"({"uniqueKeys":[{"paths":["/name"]}]})";
  wanted.change_feed_policy = R"({"retentionDuration":60})";
  const auto created = database().create_container(wanted);
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(status_of([&] { database().create_container(wanted); }), 409);

  const auto stars = database().container("stars");
  EXPECT_EQ(stars.id(), "stars");
  EXPECT_EQ(stars.link(), "dbs/" + database().id() + "/colls/stars");
  auto properties = stars.read().value;
  EXPECT_THAT(properties.partition_key_paths, ElementsAre("/pk"));
  EXPECT_EQ(properties.default_ttl, 3'600);
  EXPECT_THAT(properties.indexing_policy, HasSubstr("/blob/*"));
  EXPECT_THAT(properties.unique_key_policy, HasSubstr("/name"));
  EXPECT_EQ(nlohmann::json::parse(properties.change_feed_policy)["retentionDuration"], 60);
  EXPECT_EQ(properties.rid, created.value.rid);
  EXPECT_THAT(properties.json, HasSubstr("geospatialConfig"));

  properties.default_ttl.reset();
  properties.indexing_policy.clear();
  const auto replaced = stars.replace(properties);
  EXPECT_EQ(replaced.status, 200);
  EXPECT_FALSE(replaced.value.default_ttl);
  EXPECT_THAT(replaced.value.indexing_policy, Not(HasSubstr("/blob/*")));
  EXPECT_NE(replaced.value.etag, created.value.etag);
  properties.partition_key_paths = {"/other"};
  EXPECT_EQ(status_of([&] { stars.replace(properties); }), 400);

  EXPECT_EQ(stars.remove().status, 204);
  EXPECT_EQ(status_of([&] { stars.read(); }), 404);
  EXPECT_EQ(status_of([&] { stars.remove(); }), 404);
}

TEST_F(ResourcesTest, ContainersComeInPages) {
  for (int i = 0; i < 5; ++i) database().create_container(by_pk("c" + std::to_string(i)));
  ListOptions options;
  options.page_size = 2;
  std::vector<std::string> ids;
  database().list_containers(options).for_each([&](const auto& page) {
    for (const auto& each : page.items) {
      ids.push_back(each.id);
      EXPECT_THAT(each.partition_key_paths, ElementsAre("/pk"));
    }
  });
  EXPECT_THAT(ids, ::testing::UnorderedElementsAre("c0", "c1", "c2", "c3", "c4"));
}

TEST_F(ResourcesTest, ManyMayCreateTheSameAtOnce) {
  for (int round = 0; round < 10; ++round) {
    const std::string name = "raced " + std::to_string(round);
    std::atomic<int> created = 0;
    {
      std::vector<std::jthread> racers;
      for (int i = 0; i < 8; ++i) {
        racers.emplace_back([&] {
          if (client().create_database_if_not_exists(name).status == 201) ++created;
          const auto container =
              client().database(name).create_container_if_not_exists(by_pk("stars"));
          EXPECT_EQ(container.value.id, "stars");
          if (container.status == 201) created += 100;
        });
      }
    }
    EXPECT_EQ(created, 101);
    client().database(name).remove();
  }
  EXPECT_EQ(
      status_of([&] { client().database("no").create_container_if_not_exists(by_pk("stars")); }),
      404);
}

TEST_F(ResourcesTest, ThroughputOfAContainer) {
  database().create_container(by_pk("stars"), with(Throughput::fixed(700)));
  const auto stars = database().container("stars");
  EXPECT_EQ(stars.read_throughput().value.manual, 700);
  EXPECT_EQ(stars.replace_throughput(Throughput::fixed(900)).value.manual, 900);
  EXPECT_EQ(stars.replace_throughput(Throughput::autoscale(5'000)).value.autoscale_max, 5'000);
  const auto read = stars.read_throughput();
  EXPECT_EQ(read.value.autoscale_max, 5'000);
  EXPECT_FALSE(read.value.manual);
  EXPECT_EQ(stars.replace_throughput(Throughput::autoscale(6'000)).value.autoscale_max, 6'000);
  EXPECT_EQ(stars.replace_throughput(Throughput::fixed(500)).value.manual, 500);
  EXPECT_EQ(stars.read_throughput().value.manual, 500);
  EXPECT_EQ(status_of([&] { stars.replace_throughput(Throughput::fixed(450)); }), 400);
  EXPECT_EQ(status_of([&] { database().container("no").read_throughput(); }), 404);
}

TEST_F(ResourcesTest, ThroughputThatContainersShare) {
  client().create_database("shared", with(Throughput::autoscale(4'000)));
  const auto shared = client().database("shared");
  EXPECT_EQ(shared.read_throughput().value.autoscale_max, 4'000);
  EXPECT_EQ(shared.replace_throughput(Throughput::fixed(1'000)).value.manual, 1'000);
  shared.create_container(by_pk("stars"));
  EXPECT_EQ(status_of([&] { shared.container("stars").read_throughput(); }), 404);
  EXPECT_EQ(status_of([&] { database().read_throughput(); }), 404);
  shared.remove();
}

TEST_F(ResourcesTest, OffersAreListed) {
  database().create_container(by_pk("a"), with(Throughput::fixed(800)));
  database().create_container(by_pk("b"), with(Throughput::autoscale(3'000)));
  const std::string rid = database().container("a").read().value.rid;
  std::set<std::int64_t> seen;
  ListOptions options;
  options.page_size = 1;
  client().list_offers(options).for_each([&](const auto& page) {
    for (const auto& offer : page.items) {
      EXPECT_THAT(offer.id, Not(IsEmpty()));
      if (offer.resource_link.find(rid) != std::string::npos) {
        EXPECT_EQ(offer.throughput.manual, 800);
        EXPECT_THAT(offer.json, HasSubstr(rid));
      }
      seen.insert(offer.throughput.manual.value_or(offer.throughput.autoscale_max.value_or(0)));
    }
  });
  EXPECT_THAT(seen, Contains(800));
  EXPECT_THAT(seen, Contains(3'000));
}

TEST(KeysTest, EveryKeyDoesWhatItMay) {
  const std::string read_only = "cmVhZC1vbmx5LWtleS1vZi10aGlzLXRlc3QtbG9uZy1lbm91Z2g=";
  ServerProcess::Options options;
  options.arguments = {"--read-only-key", read_only};
  const ServerProcess server(options);
  const CosmosClient writer(server.endpoint(), server.key());
  writer.create_database("sky");
  ContainerProperties stars;
  stars.id = "stars";
  stars.partition_key_paths = {"/pk"};
  writer.database("sky").create_container(stars);
  writer.database("sky").container("stars").create_item(R"({"id":"a","pk":"k"})", "k");

  const CosmosClient reader(server.endpoint(), read_only);
  const auto seen = reader.database("sky").container("stars");
  EXPECT_EQ(seen.read_item("a", "k").status, 200);
  EXPECT_EQ(seen.list_items().next().size(), 1u);
  EXPECT_EQ(seen.query_items("SELECT * FROM c").next().size(), 1u);
  try {
    seen.delete_item("a", "k");
    ADD_FAILURE() << "it was deleted";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.status(), 403);
  }

  const CosmosClient stranger(server.endpoint(), std::string("YSBzdHJhbmdlciB3aG8gaGFzIGEga2V5"));
  try {
    stranger.database("sky").read();
    ADD_FAILURE() << "anybody may";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.status(), 401);
  }
  // Orrery gives no resource tokens, and tells clients that come with one.
  const CosmosClient guest(server.endpoint(),
                           client::Credential::resource_token("type=resource&ver=1&sig=a+b/c==;"));
  try {
    guest.database("sky").container("stars").read_item("a", "k");
    ADD_FAILURE() << "anybody may";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.status(), 401);
    EXPECT_THAT(std::string(failure.what()), HasSubstr("resource"));
  }
  EXPECT_THROW(CosmosClient(server.endpoint(), std::string("not base64!")), CosmosException);
  EXPECT_THROW(CosmosClient("ftp://localhost/", server.key()), CosmosException);
}

}  // namespace
}  // namespace orrery::test
