// Documents: written, read, changed and deleted, with all kinds of keys and ids.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "orrery/json.h"
#include "test_account.h"

namespace orrery::test {
namespace {

using client::CosmosException;
using client::Failure;
using client::ItemListOptions;
using client::ItemOperation;
using client::ItemOptions;
using client::PartitionKey;
using client::Patch;
using client::PatchOperation;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class DocumentsTest : public AccountTest {};

/// The exception that `call` throws.
template <typename Call>
CosmosException thrown_by(Call call) {
  try {
    call();
  } catch (const CosmosException& failure) {
    return failure;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {"nothing was thrown", {}};
}

nlohmann::json read_of(const client::Container& stars, const std::string& id) {
  return client::to_json(stars.read_item(id, "cygnus"));
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

TEST_F(DocumentsTest, AnswersTellWhatTheyCostAndWhereTheyStand) {
  const auto stars = make_container("stars");
  const auto created = stars.create_item(R"({"id":"deneb", "pk":"cygnus", "n": 1.50e2})", "cygnus");
  EXPECT_EQ(created.status, 201);
  EXPECT_GT(created.request_charge, 0);
  EXPECT_THAT(created.activity_id, Not(IsEmpty()));
  EXPECT_THAT(created.etag, StartsWith("\""));
  EXPECT_THAT(created.session_token, MatchesRegex("0:[0-9]+#[0-9]+"));
  EXPECT_EQ(created.diagnostics.attempts.size(), 1u);
  EXPECT_EQ(created.header("etag"), created.etag);
  EXPECT_THAT(created.value, StartsWith(R"({"id":"deneb", "pk":"cygnus", "n": 1.50e2)"))
      << "the text is kept as it was";

  const auto read = stars.read_item("deneb", "cygnus");
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.value, created.value);
  EXPECT_EQ(client::to_json(read)["_etag"], created.etag);
}

TEST_F(DocumentsTest, DiagnosticsTellEveryAttempt) {
  const auto stars = make_container("stars");
  const auto created = stars.create_item(R"({"id":"a","pk":"k"})", "k");
  const client::Attempt& attempt = created.diagnostics.attempts.front();
  EXPECT_EQ(attempt.endpoint + "/", server().endpoint());
  EXPECT_EQ(attempt.activity_id, created.activity_id) << "the server's log has the same";
  EXPECT_EQ(attempt.status, 201);
  EXPECT_GT(attempt.duration.count(), 0);
  EXPECT_GE(created.diagnostics.duration, attempt.duration);
  EXPECT_THAT(created.diagnostics.to_string(),
              AllOf(HasSubstr("201"), HasSubstr(attempt.endpoint), HasSubstr(attempt.activity_id)));
  const auto missing = thrown_by([&] { stars.read_item("b", "k"); });
  EXPECT_THAT(missing.diagnostics(), AllOf(HasSubstr("404"), HasSubstr(missing.activity_id())));
}

TEST_F(DocumentsTest, SessionCanBeHandedToAnotherClient) {
  const auto stars = make_container("stars");
  const auto written = stars.create_item(R"({"id":"a","pk":"k"})", "k");
  const client::CosmosClient other(server().endpoint(), server().key());
  const auto theirs = other.database(database().id()).container("stars");
  ItemOptions options;
  options.session_token = written.session_token;
  EXPECT_EQ(theirs.read_item("a", "k", options).value, written.value);

  // Nobody has written so much. It is said, not waited for or passed over.
  options.session_token = "0:-1#1000000";
  const auto ahead = thrown_by([&] { theirs.read_item("a", "k", options); });
  EXPECT_EQ(ahead.status(), 404);
  EXPECT_EQ(ahead.sub_status(), 1002);
  EXPECT_FALSE(ahead.is_not_found());
  options.consistency = client::ConsistencyLevel::Eventual;
  options.session_token.reset();
  EXPECT_EQ(theirs.read_item("a", "k", options).value, written.value);
}

TEST_F(DocumentsTest, LifeOfADocument) {
  const auto stars = make_container("stars");
  EXPECT_EQ(stars.upsert_item(R"({"id":"a","pk":1})", 1).status, 201);
  EXPECT_EQ(stars.upsert_item(R"({"id":"a","pk":1,"n":1})", 1).status, 200);
  EXPECT_EQ(stars.replace_item("a", R"({"id":"a","pk":1,"n":2})", 1).status, 200);
  const Patch patch{{PatchOperation::increment("/n", std::int64_t{40}),
                     PatchOperation::add("/tags", "[1]"), PatchOperation::add("/tags/-", "2"),
                     PatchOperation::set("/x", R"({"y":null})"), PatchOperation::move("/x", "/z"),
                     PatchOperation::replace("/tags/0", "0"), PatchOperation::remove("/z/y")},
                    ""};
  const auto patched = client::to_json(stars.patch_item("a", patch, 1));
  EXPECT_EQ(patched["n"], 42);
  EXPECT_EQ(patched["tags"].dump(), "[0,2]");
  EXPECT_EQ(patched["z"].dump(), "{}");
  EXPECT_FALSE(patched.contains("x"));
  EXPECT_EQ(stars.delete_item("a", 1).status, 204);
  EXPECT_TRUE(thrown_by([&] { stars.read_item("a", 1); }).is_not_found());
  EXPECT_TRUE(thrown_by([&] { stars.delete_item("a", 1); }).is_not_found());
  EXPECT_TRUE(
      thrown_by([&] { stars.replace_item("a", R"({"id":"a","pk":1})", 1); }).is_not_found());
}

TEST_F(DocumentsTest, EveryKindOfKey) {
  const auto stars = make_container("stars", 3);
  struct Case {
    std::string json;  ///< empty: the property is missing
    PartitionKey key;
  };
  const std::vector<Case> cases{
      {R"("cygnus")", "cygnus"},
      {R"("")", ""},
      {R"("é \"quoted\" \\ \n 日本語 😀")", std::string("é \"quoted\" \\ \n 日本語 😀")},
      {"7", 7},
      {"-0.25", -0.25},
      {"1e300", 1e300},
      {"true", true},
      {"false", false},
      {"null", nullptr},
      {"", PartitionKey::none()},
      {quoted(std::string(2'000, 'k')), std::string(2'000, 'k')},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.key.json());
    const std::string document =
        R"({"id":"same")" + (each.json.empty() ? "" : R"(,"pk":)" + each.json) + "}";
    EXPECT_EQ(stars.create_item(document, each.key).status, 201);
    EXPECT_EQ(stars.read_item("same", each.key).status, 200);
    EXPECT_EQ(stars.replace_item("same", document, each.key).status, 200);
    EXPECT_EQ(stars.upsert_item(document, each.key).status, 200);
    EXPECT_EQ(stars.patch_item("same", {{PatchOperation::set("/n", "1")}, ""}, each.key).status,
              200);
    EXPECT_TRUE(stars.execute_batch({ItemOperation::read("same")}, each.key).ok());
    EXPECT_EQ(stars.execute_bulk({ItemOperation::read("same").with_partition_key(each.key)})
                  .results[0]
                  .status,
              200);
    ItemListOptions options;
    options.partition_key = each.key;
    std::size_t found = 0;
    stars.list_items(options).for_each([&](const auto& page) { found += page.size(); });
    EXPECT_EQ(found, 1u);
    options.partition_key.reset();
    options.feed_range = stars.feed_range_of(each.key);
    found = 0;
    stars.list_items(options).for_each([&](const auto& page) { found += page.size(); });
    EXPECT_EQ(found, 1u);
  }
  for (const Case& each : cases) EXPECT_EQ(stars.delete_item("same", each.key).status, 204);
}

TEST_F(DocumentsTest, HierarchicalKeys) {
  const auto places = make_container("places", 3, {"/country", "/city", "/zip"});
  const auto key = [](const char* country, const char* city, double zip) {
    return PartitionKey(country).append(city).append(zip);
  };
  places.create_item(R"({"id":"1","country":"USA","city":"Redmond","zip":98052})",
                     key("USA", "Redmond", 98052));
  places.create_item(R"({"id":"2","country":"USA","city":"Redmond","zip":98053})",
                     key("USA", "Redmond", 98053));
  places.create_item(R"({"id":"3","country":"USA","city":"Seattle","zip":98101})",
                     key("USA", "Seattle", 98101));
  places.create_item(R"({"id":"4","country":"DE","city":"Jena","zip":7743})",
                     key("DE", "Jena", 7743));
  places.create_item(R"({"id":"5","country":"DE"})",
                     PartitionKey("DE").append_undefined().append_undefined());
  EXPECT_EQ(places.read_item("3", key("USA", "Seattle", 98101)).status, 200);
  EXPECT_EQ(places.read_item("5", PartitionKey("DE").append_undefined().append_undefined()).status,
            200);

  const auto ids_under = [&](const PartitionKey& prefix) {
    ItemListOptions options;
    options.partition_key = prefix;
    options.page_size = 1;
    std::vector<std::string> ids;
    places.list_items(options).for_each([&](const client::ItemPage& page) {
      for (const auto& item : client::to_json(page)) ids.push_back(item["id"]);
    });
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  EXPECT_THAT(ids_under(key("USA", "Redmond", 98052)), ElementsAre("1"));
  EXPECT_THAT(ids_under(PartitionKey("USA").append("Redmond")), ElementsAre("1", "2"));
  EXPECT_THAT(ids_under("USA"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(ids_under("DE"), ElementsAre("4", "5"));
  EXPECT_THAT(ids_under("FR"), IsEmpty());
  EXPECT_EQ(thrown_by([&] { places.read_item("1", "USA"); }).status(), 400);
  EXPECT_EQ(thrown_by([&] {
              places.feed_range_of(key("USA", "Redmond", 1).append("one too many"));
            }).failure(),
            Failure::Argument);
}

TEST_F(DocumentsTest, ContainerWithoutAKey) {
  const auto bag = make_container("bag", 1, {});
  EXPECT_EQ(bag.create_item(R"({"id":"a"})", PartitionKey::none()).status, 201);
  EXPECT_EQ(bag.read_item("a", PartitionKey::none()).status, 200);
  EXPECT_TRUE(bag.execute_batch({ItemOperation::read("a")}, PartitionKey::none()).ok());
  EXPECT_EQ(bag.execute_bulk({ItemOperation::read("a").with_partition_key(PartitionKey::none())})
                .failed(),
            0u);
  ItemListOptions options;
  options.partition_key = PartitionKey::none();
  EXPECT_EQ(bag.list_items(options).next().size(), 1u);
  EXPECT_EQ(bag.list_items().next().size(), 1u);
  options.partition_key.reset();
  options.feed_range = bag.feed_range_of(PartitionKey::none());
  EXPECT_EQ(bag.list_items(options).next().size(), 1u);
}

TEST_F(DocumentsTest, IdsWithOddCharacters) {
  const auto stars = make_container("stars");
  const std::vector<std::string> ids{"a b",
                                     "é",
                                     "日本語",
                                     "😀",
                                     "?x=1&y",
                                     "a#b",
                                     "%20",
                                     "%",
                                     "a%2Fb",
                                     "a+b",
                                     ".",
                                     "..",
                                     "\"q\"",
                                     "a;b,c:d@e",
                                     "x'y",
                                     "(z)",
                                     "[1]",
                                     "{2}",
                                     "<3>",
                                     "~!*$",
                                     "trailing ",
                                     "&=",
                                     std::string(255, 'i')};
  for (const std::string& id : ids) {
    SCOPED_TRACE(id);
    const std::string document = R"({"id":)" + quoted(id) + R"(,"pk":"k"})";
    EXPECT_EQ(stars.create_item(document, "k").status, 201);
    EXPECT_EQ(client::to_json(stars.read_item(id, "k"))["id"], id);
    EXPECT_EQ(stars.replace_item(id, document, "k").status, 200);
    EXPECT_EQ(stars.patch_item(id, {{PatchOperation::set("/n", "1")}, ""}, "k").status, 200);
    EXPECT_EQ(stars.delete_item(id, "k").status, 204);
  }
}

TEST_F(DocumentsTest, IdWithASlashIsReachedByABatch) {
  const auto stars = make_container("stars");
  stars.create_item(R"({"id":"a/b","pk":"k"})", "k");
  EXPECT_EQ(thrown_by([&] { stars.read_item("a/b", "k"); }).failure(), Failure::Argument);
  EXPECT_TRUE(stars.execute_batch({ItemOperation::remove("a/b")}, "k").ok());
}

TEST_F(DocumentsTest, NamesOfDatabasesAndContainersWithOddCharacters) {
  for (const std::string name : {"a b", "é 日本語", "x%20y", "a+b&c=d", "KxEAAA==", "."}) {
    SCOPED_TRACE(name);
    client().create_database(name);
    const auto odd = client().database(name);
    client::ContainerProperties properties;
    properties.id = name;
    properties.partition_key_paths = {"/pk"};
    odd.create_container(properties);
    const auto container = odd.container(name);
    EXPECT_EQ(container.create_item(R"({"id":"a","pk":"k"})", "k").status, 201);
    EXPECT_EQ(container.list_items().next().size(), 1u);
    EXPECT_EQ(container.read().value.id, name);
    EXPECT_EQ(odd.remove().status, 204);
  }
}

TEST_F(DocumentsTest, ConditionsHoldOrAreRefused) {
  const auto stars = make_container("stars");
  const auto first = stars.create_item(R"({"id":"a","pk":"k","n":1})", "k");
  ItemOptions same;
  same.if_none_match = first.etag;
  const auto unchanged = stars.read_item("a", "k", same);
  EXPECT_EQ(unchanged.status, 304);
  EXPECT_EQ(unchanged.value, "");
  EXPECT_EQ(unchanged.etag, first.etag);

  ItemOptions if_first;
  if_first.if_match = first.etag;
  const auto second = stars.replace_item("a", R"({"id":"a","pk":"k","n":2})", "k", if_first);
  EXPECT_NE(second.etag, first.etag);
  EXPECT_EQ(stars.read_item("a", "k", same).status, 200);
  const auto refused =
      thrown_by([&] { stars.replace_item("a", R"({"id":"a","pk":"k","n":3})", "k", if_first); });
  EXPECT_TRUE(refused.is_precondition_failed());
  EXPECT_EQ(refused.status(), 412);
  EXPECT_TRUE(thrown_by([&] {
                stars.upsert_item(R"({"id":"a","pk":"k"})", "k", if_first);
              }).is_precondition_failed());
  EXPECT_TRUE(thrown_by([&] {
                stars.patch_item("a", {{PatchOperation::set("/n", "3")}, ""}, "k", if_first);
              }).is_precondition_failed());
  EXPECT_TRUE(thrown_by([&] { stars.delete_item("a", "k", if_first); }).is_precondition_failed());
  EXPECT_TRUE(thrown_by([&] {
                stars.patch_item("a", {{PatchOperation::set("/n", "3")}, "from c where c.n = 1"},
                                 "k");
              }).is_precondition_failed());
  EXPECT_EQ(client::to_json(stars.read_item("a", "k"))["n"], 2);
  ItemOptions if_second;
  if_second.if_match = second.etag;
  EXPECT_EQ(stars.delete_item("a", "k", if_second).status, 204);
}

TEST_F(DocumentsTest, WritesNeedNotAnswerWithTheDocument) {
  const auto stars = make_container("stars");
  ItemOptions quiet;
  quiet.return_content = false;
  const auto created = stars.create_item(R"({"id":"a","pk":"k"})", "k", quiet);
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.value, "");
  EXPECT_THAT(created.etag, Not(IsEmpty()));
  EXPECT_TRUE(client::to_json(created).is_null());
  EXPECT_EQ(stars.patch_item("a", {{PatchOperation::set("/n", "1")}, ""}, "k", quiet).value, "");
  EXPECT_THAT(stars.read_item("a", "k", quiet).value, HasSubstr(R"("n":1)"));
}

TEST_F(DocumentsTest, RefusalsSayWhat) {
  const auto stars = make_container("stars");
  stars.create_item(R"({"id":"a","pk":"k"})", "k");
  const auto conflict = thrown_by([&] { stars.create_item(R"({"id":"a","pk":"k"})", "k"); });
  EXPECT_TRUE(conflict.is_conflict());
  EXPECT_EQ(conflict.failure(), Failure::Response);
  EXPECT_EQ(conflict.code(), "Conflict");
  EXPECT_THAT(conflict.what(), HasSubstr("already exists"));
  EXPECT_THAT(conflict.activity_id(), Not(IsEmpty()));
  EXPECT_GT(conflict.request_charge(), 0);
  EXPECT_THAT(conflict.diagnostics(), HasSubstr("409"));

  const auto other_key = thrown_by([&] { stars.create_item(R"({"id":"b","pk":"k"})", "other"); });
  EXPECT_EQ(other_key.status(), 400);
  EXPECT_EQ(other_key.sub_status(), 1001);
  EXPECT_EQ(thrown_by([&] { stars.create_item("{", "k"); }).status(), 400);
  EXPECT_EQ(thrown_by([&] { stars.create_item(R"({"pk":"k"})", "k"); }).status(), 400);
  EXPECT_EQ(thrown_by([&] {
              stars.create_item(R"({"id":"b","pk":"k","x":")" + std::string(2 << 20, 'x') + "\"}",
                                "k");
            }).status(),
            413);
  EXPECT_EQ(thrown_by([&] { stars.patch_item("a", {}, "k"); }).status(), 400);
  const auto no_container = thrown_by([&] { database().container("no").read_item("a", "k"); });
  EXPECT_TRUE(no_container.is_not_found());
  EXPECT_EQ(no_container.sub_status(), 1003);
  EXPECT_TRUE(thrown_by([&] {
                database().container("no").create_item(R"({"id":"a"})", PartitionKey::none());
              }).is_not_found());
}

TEST_F(DocumentsTest, OwnHeadersGoAlong) {
  const auto stars = make_container("stars");
  ItemOptions options;
  options.headers = {{"x-ms-indexing-directive", "nonsense"}};
  EXPECT_EQ(thrown_by([&] { stars.create_item(R"({"id":"a","pk":"k"})", "k", options); }).status(),
            400);
}

TEST_F(DocumentsTest, BatchIsAllOrNothing) {
  const auto stars = make_container("stars");
  const auto done = stars.execute_batch(
      {ItemOperation::create(R"({"id":"a","pk":"k"})"),
       ItemOperation::upsert(R"({"id":"b","pk":"k"})"),
       ItemOperation::replace("a", R"({"id":"a","pk":"k","n":1})"), ItemOperation::read("a"),
       ItemOperation::patch("b", {{PatchOperation::set("/n", "2")}, ""}),
       ItemOperation::remove("a")},
      "k");
  ASSERT_TRUE(done.ok());
  EXPECT_GT(done.request_charge, 0);
  std::vector<int> statuses;
  for (const auto& result : done.results) statuses.push_back(result.status);
  EXPECT_THAT(statuses, ElementsAre(201, 201, 200, 200, 200, 204));
  EXPECT_EQ(nlohmann::json::parse(done.results[3].json)["n"], 1);
  EXPECT_THAT(done.results[4].etag, Not(IsEmpty()));

  const auto refused = stars.execute_batch({ItemOperation::create(R"({"id":"c","pk":"k"})"),
                                            ItemOperation::create(R"({"id":"b","pk":"k"})"),
                                            ItemOperation::create(R"({"id":"d","pk":"k"})")},
                                           "k");
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(refused.results[0].status, 424);
  EXPECT_EQ(refused.results[1].status, 409);
  EXPECT_THAT(refused.results[1].message, Not(IsEmpty()));
  EXPECT_EQ(refused.results[2].status, 424);
  EXPECT_TRUE(thrown_by([&] { stars.read_item("c", "k"); }).is_not_found());

  const auto stale =
      stars.execute_batch({ItemOperation::remove("b").with_if_match("\"old\"")}, "k");
  EXPECT_EQ(stale.results[0].status, 412);
  EXPECT_EQ(thrown_by([&] { stars.execute_batch({}, "k"); }).status(), 400);
  const std::vector<ItemOperation> many(101, ItemOperation::read("b"));
  EXPECT_EQ(thrown_by([&] { stars.execute_batch(many, "k"); }).status(), 400);
}

TEST_F(DocumentsTest, ValuesOfNlohmannJsonGoInAsTheyComeOut) {
  const auto stars = make_container("stars");
  const nlohmann::json deneb = {{"id", "deneb"}, {"pk", "cygnus"}, {"magnitude", 1.25}};
  EXPECT_EQ(stars.create_item(deneb).status, 201);
  nlohmann::json read = client::to_json(stars.read_item("deneb", "cygnus"));
  EXPECT_EQ(read["magnitude"], 1.25);
  read["magnitude"] = 1.21;
  EXPECT_EQ(
      stars.replace_item("deneb", read, {.if_match = read["_etag"].get<std::string>()}).status,
      200);
  EXPECT_EQ(stars.upsert_item(nlohmann::json{{"id", "sadr"}, {"pk", "cygnus"}}, "cygnus").status,
            201);
  stars.patch_item("sadr",
                   {{PatchOperation::set("/seen", nlohmann::json{{"who", "ann"}}),
                     PatchOperation::add("/name", nlohmann::json("Sadr"))}},
                   "cygnus");
  EXPECT_TRUE(stars
                  .execute_batch({ItemOperation::upsert(deneb),
                                  ItemOperation::replace("sadr", read_of(stars, "sadr"))},
                                 "cygnus")
                  .ok());

  const client::Query query("SELECT VALUE c.id FROM c WHERE c.name = @name AND c.seen.who = @who",
                            {{"@name", nlohmann::json("Sadr")}, {"@who", nlohmann::json("ann")}});
  auto pages = stars.query_items(query);
  std::vector<std::string> found;
  pages.for_each([&](const client::ItemPage& page) {
    for (const auto& id : client::to_json(page)) found.push_back(id);
  });
  EXPECT_THAT(found, ElementsAre("sadr"));
}

TEST_F(DocumentsTest, TheKeyIsTakenFromTheDocument) {
  const auto stars = make_container("stars", 3);
  for (const char* key : {R"("cygnus")", "7", "null", "true", "0.5"}) {
    const std::string document = std::string(R"({"id":"a","pk":)") + key + "}";
    EXPECT_EQ(stars.create_item(document).status, 201) << key;
    EXPECT_EQ(stars.upsert_item(document).status, 200) << key;
    EXPECT_EQ(stars.replace_item("a", document).status, 200) << key;
    EXPECT_EQ(stars.read_item("a", PartitionKey::from_json(std::string("[") + key + "]")).status,
              200);
  }
  EXPECT_EQ(stars.create_item(R"({"id":"none"})").status, 201);
  EXPECT_EQ(stars.read_item("none", PartitionKey::none()).status, 200);

  const auto orders = make_container("orders", 1, {"/tenant", "/address/city"});
  orders.create_item(R"({"id":"1","tenant":"t","address":{"city":"Ulm"}})");
  EXPECT_EQ(orders.read_item("1", PartitionKey("t").append("Ulm")).status, 200);

  std::vector<ItemOperation> many;
  for (int i = 0; i < 50; ++i) {
    many.push_back(ItemOperation::create(nlohmann::json{{"id", std::to_string(i)}, {"pk", i}}));
  }
  EXPECT_EQ(stars.execute_bulk(many).failed(), 0u);
  EXPECT_EQ(stars.read_item("49", 49).status, 200);
}

TEST_F(DocumentsTest, AContainerOfTheSameNameMayHaveAnotherKey) {
  const auto stars = make_container("stars");
  EXPECT_EQ(stars.create_item(R"({"id":"a","pk":"k","other":"o"})").status, 201);
  stars.remove();
  make_container("stars", 1, {"/other"});
  EXPECT_EQ(stars.create_item(R"({"id":"a","pk":"k","other":"o"})").status, 201);
  EXPECT_EQ(stars.read_item("a", "o").status, 200);
}

}  // namespace
}  // namespace orrery::test
