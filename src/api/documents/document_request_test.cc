#include "api/documents/document_request.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_request.h"
#include "api/test_services.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/resource_path.h"

namespace orrery::api {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ParsedDocumentTest : public testing::Test {
 protected:
  Result<ParsedDocument> take(std::string_view body, std::string_view key = "") {
    std::optional<PartitionKey> named;
    if (!key.empty()) {
      ORRERY_TRY(named, PartitionKey::parse(key));
    }
    return parse_document(container->definition, body, named);
  }
  ParsedDocument taken(std::string_view body, std::string_view key = "") {
    auto parsed = take(body, key);
    EXPECT_TRUE(parsed) << parsed.error().message();
    return parsed ? std::move(*parsed) : ParsedDocument{};
  }
  ErrorCode refusal(std::string_view body, std::string_view key = "") {
    const auto parsed = take(body, key);
    EXPECT_FALSE(parsed) << body;
    if (!parsed) message = parsed.error().message();
    return parsed ? ErrorCode::Internal : parsed.error().code();
  }

  std::shared_ptr<const catalog::Container> container = test_container(kHashKey);
  std::string message;
};

// ── bodies ───────────────────────────────────────────────────────────────────────────────────────

TEST_F(ParsedDocumentTest, ADocumentBecomesAWriteWithItsIdTextAndKey) {
  const auto parsed = taken(R"({"id":"a","pk":"x","n":1})", R"(["x"])");
  EXPECT_EQ(parsed.version.new_id, "a");
  EXPECT_EQ(parsed.version.open_text, R"({"id":"a","pk":"x","n":1)");
  EXPECT_EQ(parsed.key.to_json(), R"(["x"])");
  EXPECT_EQ(parsed.version.own_ttl, partition::kTtlAbsent);
  EXPECT_EQ(parsed.version.indexed_leaves, 3u);
  EXPECT_THAT(parsed.version.unique_values, IsEmpty());
}

TEST_F(ParsedDocumentTest, SystemPropertiesOfTheBodyAreTheServers) {
  const auto parsed =
      taken(R"({"id":"a","_rid":"x","_etag":"y","_ts":1,"_self":"s","pk":"x"})", R"(["x"])");
  EXPECT_EQ(parsed.version.open_text, R"({"id":"a","pk":"x")");
}

TEST_F(ParsedDocumentTest, ABodyThatIsNoDocumentIsRefused) {
  for (const auto* body : {"", "[]", "{", "1", R"({"pk":"x"})", R"({"id":7,"pk":"x"})",
                           R"({"id":"","pk":"x"})", R"({"id":"a","id":"b","pk":"x"})"}) {
    EXPECT_EQ(refusal(body, R"(["x"])"), ErrorCode::BadRequest) << body;
  }
}

// ── keys ─────────────────────────────────────────────────────────────────────────────────────────

TEST_F(ParsedDocumentTest, TheKeyComesFromTheBodyAndMustAgreeWithTheHeader) {
  EXPECT_EQ(taken(R"({"id":"a","pk":"x"})").key.to_json(), R"(["x"])") << "no header";
  EXPECT_EQ(taken(R"({"id":"a","pk":1})", "[1.0]").key.to_json(), "[1]") << "numbers are doubles";
  EXPECT_EQ(taken(R"({"id":"a","pk":null})", "[null]").key.to_json(), "[null]");
  EXPECT_EQ(taken(R"({"id":"a","pk":true})", "[true]").key.to_json(), "[true]");
  EXPECT_EQ(taken(R"({"id":"a"})", "[{}]").key.to_json(), "[{}]");
  EXPECT_EQ(taken(R"({"id":"a","pk":{"x":1}})", "[{}]").key.to_json(), "[{}]")
      << "an object is no key";
  EXPECT_EQ(refusal(R"({"id":"a","pk":"x"})", R"(["y"])"), ErrorCode::PartitionKeyMismatch);
  EXPECT_THAT(message, HasSubstr(R"(["y"])"));
  EXPECT_EQ(refusal(R"({"id":"a","pk":"1"})", "[1]"), ErrorCode::PartitionKeyMismatch);
  EXPECT_EQ(refusal(R"({"id":"a"})", "[null]"), ErrorCode::PartitionKeyMismatch);
  EXPECT_EQ(refusal(R"({"id":"a","pk":"x"})", "[]"), ErrorCode::PartitionKeyMismatch);
  EXPECT_EQ(refusal(R"({"id":"a","pk":"x"})", R"(["x","y"])"), ErrorCode::PartitionKeyMismatch);
  EXPECT_EQ(refusal(R"({"id":"a","pk":"x"})", "x"), ErrorCode::BadRequest);
}

TEST_F(ParsedDocumentTest, AKeyMayBeAsLongAsItsHashAdmits) {
  const std::string longest(2048, 'k');
  taken(R"({"id":"a","pk":")" + longest + "\"}");
  EXPECT_EQ(refusal(R"({"id":"a","pk":")" + longest + "k\"}"), ErrorCode::BadRequest);
}

TEST_F(ParsedDocumentTest, NullIsNotALevelThatTheBodyLacks) {
  container = test_container(kMultiHashKey);
  EXPECT_EQ(taken(R"({"id":"1","a":"x","b":"y"})", R"(["x","y"])").key.to_json(), R"(["x","y"])");
  EXPECT_EQ(taken(R"({"id":"1","a":"x","b":null})", R"(["x",null])").key.to_json(),
            R"(["x",null])");
  EXPECT_EQ(refusal(R"({"id":"1","a":"x"})", R"(["x",null])"), ErrorCode::PartitionKeyMismatch);
  EXPECT_EQ(taken(R"({"id":"1","a":"x"})", R"(["x",{}])").key.to_json(), R"(["x",{}])");
  EXPECT_EQ(refusal(R"({"id":"1","a":"x","b":null})", R"(["x",{}])"),
            ErrorCode::PartitionKeyMismatch);
  EXPECT_EQ(refusal(R"({"id":"1","a":"x","b":"y"})", R"(["x"])"), ErrorCode::PartitionKeyMismatch);
}

TEST_F(ParsedDocumentTest, NestedKeysAreFound) {
  container = test_container(R"(,"partitionKey":{"paths":["/a/b"],"kind":"Hash","version":2})");
  EXPECT_EQ(taken(R"({"id":"1","a":{"b":"deep"}})").key.to_json(), R"(["deep"])");
  EXPECT_EQ(taken(R"({"id":"1","a":"b"})").key.to_json(), "[{}]");
}

// ── TTL ──────────────────────────────────────────────────────────────────────────────────────────

TEST_F(ParsedDocumentTest, ATtlIsKeptAndCheckedAlsoWhileTtlIsOff) {
  for (const auto* default_ttl : {"", R"(,"defaultTtl":-1)"}) {
    container = test_container(kHashKey + default_ttl);
    EXPECT_EQ(taken(R"({"id":"a","pk":"x","ttl":60})").version.own_ttl, 60);
    EXPECT_EQ(taken(R"({"id":"a","pk":"x","ttl":-1})").version.own_ttl, partition::kTtlNever);
    EXPECT_EQ(taken(R"({"id":"a","pk":"x"})").version.own_ttl, partition::kTtlAbsent);
    for (const auto* ttl : {"0", "-2", "1.5", "\"60\"", "\"soon\"", "2147483648", "{}"}) {
      EXPECT_EQ(refusal(R"({"id":"a","pk":"x","ttl":)" + std::string(ttl) + "}"),
                ErrorCode::BadRequest)
          << default_ttl << ttl;
    }
  }
}

// ── unique keys ──────────────────────────────────────────────────────────────────────────────────

TEST_F(ParsedDocumentTest, UniqueValuesAreOneTuplePerKeyAndTellDifferentValuesApart) {
  container = test_container(
      kHashKey + R"(,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/b/c"]},{"paths":["/d"]}]})");
  const auto values = [&](const std::string& members) {
    auto unique = taken(R"({"id":"1","pk":"x")" + members + "}").version.unique_values;
    EXPECT_EQ(unique.size(), 2u);
    return unique;
  };
  const auto base = values(R"(,"a":1,"b":{"c":"x"},"d":true)");
  EXPECT_EQ(values(R"(,"d":true,"b":{"c":"x"},"a":1.0)"), base) << "by value, not by text";
  EXPECT_NE(values(R"(,"a":2,"b":{"c":"x"},"d":true)")[0], base[0]);
  EXPECT_EQ(values(R"(,"a":2,"b":{"c":"x"},"d":true)")[1], base[1]);
  EXPECT_NE(values(R"(,"a":"1","b":{"c":"x"},"d":true)")[0], base[0]) << "text is no number";
  EXPECT_EQ(values("")[1], values(R"(,"d":null)")[1]) << "missing counts as null";
  EXPECT_NE(values(R"(,"a":"x","b":{"c":""})")[0], values(R"(,"a":"","b":{"c":"x"})")[0]);
}

TEST_F(ParsedDocumentTest, TheRulesOfAContainerFindTheSameValuesInAStoredDocument) {
  container = test_container(
      kHashKey + R"(,"defaultTtl":5,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/b/c"]}]})");
  EXPECT_EQ(container->rules.default_ttl, 5);
  ASSERT_TRUE(container->rules.unique_values_of);
  const auto parsed = taken(R"({"id":"1","pk":"x","a":"é","b":{"c":1e3}})");
  EXPECT_EQ((*container->rules.unique_values_of)(parsed.version.open_text +
                                                 R"(,"_rid":"r","_self":"s","_etag":"e","_ts":1})"),
            parsed.version.unique_values);
  EXPECT_FALSE(test_container(kHashKey)->rules.unique_values_of);
}

TEST_F(ParsedDocumentTest, OnlyIndexedLeavesAreCountedAndTheIdAlwaysIs) {
  container = test_container(
      kHashKey +
      R"(,"indexingPolicy":{"includedPaths":[{"path":"/a/*"}],"excludedPaths":[{"path":"/*"}]})");
  EXPECT_EQ(taken(R"({"id":"1","pk":"x","a":{"b":1,"c":[2,3]},"d":4})").version.indexed_leaves, 4u);
}

// ── headers ──────────────────────────────────────────────────────────────────────────────────────

TEST(WriteHeadersTest, TriggersAreRefusedRatherThanForgotten) {
  for (const auto name : {headers::kPreTriggerInclude, headers::kPostTriggerInclude}) {
    TestRequest request("POST");
    request.header(name, "t");
    const auto refused = check_write_headers(request.context());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::NotImplemented);
    EXPECT_THAT(refused.error().message(), HasSubstr(std::string(name.text)));
  }
}

TEST(WriteHeadersTest, AnIndexingDirectiveIsOneOfThree) {
  const auto accepts = [](std::string_view value) {
    TestRequest request("POST");
    request.header(headers::kIndexingDirective, value);
    return check_write_headers(request.context()).has_value();
  };
  EXPECT_TRUE(accepts("Exclude"));
  EXPECT_TRUE(accepts("include"));
  EXPECT_TRUE(accepts(""));
  EXPECT_FALSE(accepts("Never"));
}

// ── keys of point requests ───────────────────────────────────────────────────────────────────────

class RequiredKeyTest : public testing::Test {
 protected:
  std::string key(std::string_view header) {
    TestRequest request;
    if (!header.empty()) request.header(headers::kPartitionKey, header);
    const auto context = request.context();
    const auto found = required_key(context, definition);
    if (found) return found->to_json();
    switch (found.error().code()) {
      case ErrorCode::BadRequest:
        return "bad request";
      case ErrorCode::PartitionKeyMismatch:
        return "mismatch";
      default:
        return "?";
    }
  }
  ContainerDefinition definition = test_container(kHashKey)->definition;
};

TEST_F(RequiredKeyTest, AFullKeyIsNeeded) {
  EXPECT_EQ(key(R"(["x"])"), R"(["x"])");
  EXPECT_EQ(key("[{}]"), "[{}]");
  EXPECT_EQ(key(""), "bad request");
  EXPECT_EQ(key("[]"), "mismatch");
  EXPECT_EQ(key("{}"), "bad request");
  EXPECT_EQ(key(R"(["x","y"])"), "mismatch");
}

TEST_F(RequiredKeyTest, APrefixOfAHierarchicalKeyIsNotEnough) {
  definition = test_container(kMultiHashKey)->definition;
  EXPECT_EQ(key(R"(["x"])"), "mismatch");
  EXPECT_EQ(key(R"(["x","y"])"), R"(["x","y"])");
}

TEST_F(RequiredKeyTest, AContainerWithoutAKeyTakesNoneInAnySpelling) {
  definition = ContainerDefinition::create(Json::parse(R"({"id":"c"})"), "2015-12-16").value();
  EXPECT_EQ(key(""), "[]");
  EXPECT_EQ(key("[]"), "[]");
  EXPECT_EQ(key("[{}]"), "[]");
  EXPECT_EQ(key(R"(["x"])"), "mismatch");
}

// ── addressing ───────────────────────────────────────────────────────────────────────────────────

class PointTargetTest : public testing::Test {
 protected:
  Result<partition::DocumentAddress> target(const std::string& path) {
    TestRequest request("GET", path);
    request.header(headers::kPartitionKey, R"(["x"])");
    auto context = request.context(container);
    context.path = parse_resource_path(path).value();
    ORRERY_TRY(resolve(*services, context));
    EXPECT_EQ(context.target.range, &container->ranges.all()[0]);
    return *context.target.document;
  }

  TestServices services;
  catalog::ContainerPtr container = services.create_container("c", kHashKey);
};

TEST_F(PointTargetTest, ADocumentIsAddressedByName) {
  const auto found = target("/dbs/d/colls/c/docs/the%20id");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key.id, "the id");
  EXPECT_FALSE(found->number);
  const auto place = place_of(container->definition, PartitionKey::parse(R"(["x"])").value());
  EXPECT_EQ(found->key.epk, place.epk.bytes);
  EXPECT_EQ(found->key.partition_key, place.canonical);
}

TEST_F(PointTargetTest, ADocumentIsAddressedByRid) {
  const auto number = DocumentNumber::make(RangeId{0}, 7);
  const std::string prefix = "/" + container->self() + "docs/";
  const auto found = target(prefix + Rid::document(container->rid, number).text());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, number);
  EXPECT_EQ(found->key.id, "");
}

TEST_F(PointTargetTest, ARidOfSomethingElseFindsNothing) {
  const std::string prefix = "/" + container->self() + "docs/";
  const auto elsewhere = Rid::container(container->rid.database_part(), {0x80, 0, 0, 9});
  for (const auto& rid : {Rid::document(elsewhere, DocumentNumber{1}).text(),
                          Rid::range(container->rid, RangeId{0}).text(), std::string("nonsense")}) {
    const auto found = target(prefix + rid);
    ASSERT_FALSE(found) << rid;
    EXPECT_EQ(found.error().code(), ErrorCode::NotFound);
  }
}

}  // namespace
}  // namespace orrery::api
