#include "protocol/container/container_definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kOldVersion = "2017-11-15";
constexpr const char* kNewVersion = "2020-07-15";

/// A body with the id "c" and the given members.
Json body(std::string_view members = "") {
  std::string text = R"({"id":"c")";
  if (!members.empty()) text += "," + std::string(members);
  return Json::parse(text + "}");
}

ContainerDefinition create(const Json& json, std::string_view api_version = kNewVersion) {
  auto result = ContainerDefinition::create(json, api_version);
  EXPECT_TRUE(result.has_value()) << json << ": " << result.error().message();
  return result ? *std::move(result) : ContainerDefinition();
}

std::string refusal_of(const Json& json, std::string_view api_version = kNewVersion) {
  const auto result = ContainerDefinition::create(json, api_version);
  if (result) return "accepted";
  EXPECT_EQ(result.error().code(), ErrorCode::BadRequest);
  return result.error().message();
}

std::string definition_refusal(std::string_view members) { return refusal_of(body(members)); }

std::string replace_refusal(const ContainerDefinition& definition, const Json& json,
                            std::string_view api_version = kNewVersion) {
  const auto result = definition.replace(json, api_version);
  if (result) return "accepted";
  EXPECT_EQ(result.error().code(), ErrorCode::BadRequest);
  return result.error().message();
}

TEST(ContainerDefinitionTest, ACreatedContainerIsShownWithItsDefaults) {
  const auto definition =
      create(body(R"("partitionKey":{"paths":["/pk"],"kind":"Hash","version":2})"));
  EXPECT_EQ(
      definition.to_wire(kNewVersion).dump(),
      R"({"id":"c","indexingPolicy":{"indexingMode":"consistent","automatic":true,)"
      R"("includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]},)"
      R"("partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},)"
      R"("conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts",)"
      R"("conflictResolutionProcedure":""},"geospatialConfig":{"type":"Geography"}})");
  EXPECT_EQ(definition.id(), "c");
  EXPECT_EQ(definition.default_ttl(), std::nullopt);
  EXPECT_TRUE(definition.indexes_everything());
  EXPECT_FALSE(definition.lazily_indexed());
}

TEST(ContainerDefinitionTest, MembersHaveTheirOrderAndUnknownOnesFollow) {
  const auto definition = create(Json::parse(
      R"({"mine":{"z":1,"a":null},"computedProperties":[{"name":"n","query":"SELECT VALUE 1 FROM c"}],
          "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/b/c"]}]},"defaultTtl":-1,
          "partitionKey":{"paths":["/pk"]},"_rid":"x","_etag":"y","_ts":1,"_self":"s","_docs":"docs/",
          "_sprocs":"sprocs/","_triggers":"t","_udfs":"u","_conflicts":"c","statistics":[],"id":"c",
          "other":2})"));
  std::vector<std::string> names;
  for (const auto& [name, value] : definition.to_wire(kNewVersion).items()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("id", "indexingPolicy", "partitionKey", "defaultTtl",
                                 "uniqueKeyPolicy", "conflictResolutionPolicy", "geospatialConfig",
                                 "computedProperties", "mine", "other"));
  EXPECT_EQ(definition.to_wire(kNewVersion)["mine"].dump(), R"({"z":1,"a":null})");
}

TEST(ContainerDefinitionTest, StoredFormsAreReadBack) {
  for (
      const char* members :
      {"", R"("partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2},"x":[1])",
       R"("defaultTtl":10,"ttlPropertyPath":"/t","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]})",
       R"("indexingPolicy":{"indexingMode":"Lazy","excludedPaths":[{"path":"/a/?"}]})"}) {
    const auto definition = create(body(members));
    const auto copy = ContainerDefinition::from_stored(Json::parse(definition.to_stored().dump()));
    for (const char* version : {kOldVersion, kNewVersion, "2018-12-31", ""}) {
      EXPECT_EQ(copy.to_wire(version).dump(), definition.to_wire(version).dump());
    }
    EXPECT_EQ(copy.partition_key(), definition.partition_key());
    EXPECT_EQ(copy.default_ttl(), definition.default_ttl());
    EXPECT_EQ(copy.unique_keys(), definition.unique_keys());
    EXPECT_EQ(copy.lazily_indexed(), definition.lazily_indexed());
  }
}

// ── partitionKey ─────────────────────────────────────────────────────────────────────────────────

TEST(ContainerPartitionKeyTest, TheKindIsFilledInAndTheVersionIsNot) {
  const auto definition = create(body(R"("partitionKey":{"paths":["/a/\"b c\""]})"));
  EXPECT_EQ(definition.to_wire(kNewVersion)["partitionKey"].dump(),
            R"({"paths":["/a/\"b c\""],"kind":"Hash"})");
  EXPECT_EQ(definition.partition_key().version, 1);
  EXPECT_THAT(definition.partition_key().paths, ElementsAre(ElementsAre("a", "b c")));
}

TEST(ContainerPartitionKeyTest, WhatTheClientSentIsEchoed) {
  for (const char* key :
       {R"({"paths":["/id"],"kind":"Hash"})", R"({"kind":"hash","paths":["/id"]})",
        R"({"paths":["/id"],"kind":"Hash","version":1})"}) {
    EXPECT_EQ(create(body(R"("partitionKey":)" + std::string(key)))
                  .to_wire(kOldVersion)["partitionKey"]
                  .dump(),
              key);
  }
}

TEST(ContainerPartitionKeyTest, MultiHashNeedsItsVersions) {
  const std::string key =
      R"("partitionKey":{"paths":["/a","/b","/c"],"kind":"MultiHash","version":2})";
  EXPECT_EQ(create(body(key)).partition_key().kind, KeyKind::MultiHash);
  EXPECT_THAT(refusal_of(body(key), "2018-12-31"), HasSubstr("2020-07-15"));
  EXPECT_EQ(refusal_of(body(key), ""), "accepted");
  EXPECT_THAT(
      definition_refusal(R"("partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":1})"),
      HasSubstr("version"));
  EXPECT_THAT(definition_refusal(R"("partitionKey":{"paths":["/a","/b"],"kind":"MultiHash"})"),
              HasSubstr("version"));
}

TEST(ContainerPartitionKeyTest, BadDefinitionsAreRefused) {
  EXPECT_THAT(definition_refusal(R"("partitionKey":"/pk")"), HasSubstr("object"));
  EXPECT_THAT(definition_refusal(R"("partitionKey":{})"), HasSubstr("paths"));
  EXPECT_THAT(definition_refusal(R"("partitionKey":{"paths":"/id"})"), HasSubstr("array"));
  EXPECT_THAT(definition_refusal(R"("partitionKey":{"paths":[]})"), HasSubstr("at least one"));
  EXPECT_THAT(definition_refusal(R"("partitionKey":{"paths":["/a","/b"]})"),
              HasSubstr("Too many partition key paths"));
  EXPECT_THAT(
      definition_refusal(
          R"("partitionKey":{"paths":["/a","/b","/c","/d"],"kind":"MultiHash","version":2})"),
      HasSubstr("Too many partition key paths"));
  EXPECT_THAT(definition_refusal(R"("partitionKey":{"paths":["/a"],"kind":"Range"})"),
              HasSubstr("kind"));
  EXPECT_THAT(definition_refusal(R"("partitionKey":{"paths":["/a"],"version":3})"),
              HasSubstr("version"));
  EXPECT_THAT(
      definition_refusal(R"("partitionKey":{"paths":["/a","/a"],"kind":"MultiHash","version":2})"),
      HasSubstr("twice"));
  EXPECT_THAT(definition_refusal(R"("partitionKey":{"paths":["/a"],"systemKey":true})"),
              HasSubstr("systemKey"));
}

TEST(ContainerPartitionKeyTest, BadPathsAreRefusedInTheWordsThatClientsExpect) {
  for (const char* path : {"/id ds", "id", "/", "/a/", "/*", "/a/*", "/a/?", "//a", "", "/a*b"}) {
    const Json json = {{"id", "c"}, {"partitionKey", {{"paths", {path}}}}};
    EXPECT_THAT(
        refusal_of(json),
        HasSubstr("Partition key paths must contain only valid characters and not contain a "
                  "trailing slash or wildcard character"))
        << path;
  }
  EXPECT_THAT(
      definition_refusal(R"("partitionKey":{"paths":["id","/b"],"kind":"MultiHash","version":2})"),
      HasSubstr("The partition key component definition path 'id' could not be accepted"));
  EXPECT_EQ(definition_refusal(R"("partitionKey":{"paths":["/\"id ds\"/'*'/größe"]})"), "accepted");
}

TEST(ContainerPartitionKeyTest, WithoutAKeyItIsTheSystemKey) {
  const auto definition = create(body(), kOldVersion);
  EXPECT_TRUE(definition.partition_key().system_key);
  EXPECT_TRUE(definition.partition_key().paths.empty());
  EXPECT_FALSE(definition.to_wire(kOldVersion).contains("partitionKey"));
  EXPECT_FALSE(definition.to_wire("2018-12-30").contains("partitionKey"));
  const char* shown = R"({"paths":["/_partitionKey"],"kind":"Hash","systemKey":true})";
  EXPECT_EQ(definition.to_wire("2018-12-31")["partitionKey"].dump(), shown);
  EXPECT_EQ(definition.to_wire("")["partitionKey"].dump(), shown);
  EXPECT_TRUE(create(body(R"("partitionKey":)" + std::string(shown))).partition_key().system_key);
  EXPECT_FALSE(
      create(body(R"("partitionKey":{"paths":["/_partitionKey"]})")).partition_key().system_key);
}

// ── Other members ────────────────────────────────────────────────────────────────────────────────

TEST(ContainerDefinitionTest, DefaultTtlIsMinusOneOrPositive) {
  EXPECT_EQ(create(body(R"("defaultTtl":-1)")).default_ttl(), -1);
  EXPECT_EQ(create(body(R"("defaultTtl":2147483647)")).default_ttl(), 2147483647);
  EXPECT_EQ(create(body(R"("defaultTtl":5.0)")).to_wire(kNewVersion)["defaultTtl"].dump(), "5");
  for (const char* ttl : {"0", "null", "-2", "-10", "2147483648", "1.5", "\"5\"", "true", "1e30"}) {
    EXPECT_THAT(definition_refusal(R"("defaultTtl":)" + std::string(ttl)), HasSubstr("defaultTtl"))
        << ttl;
  }
  EXPECT_THAT(definition_refusal(R"("defaultTtl":5,"indexingPolicy":{"indexingMode":"none"})"),
              HasSubstr("none"));
}

TEST(ContainerDefinitionTest, TtlPropertyPathNeedsDefaultTtl) {
  EXPECT_THAT(definition_refusal(R"("ttlPropertyPath":"/created")"), HasSubstr("needs defaultTtl"));
  EXPECT_THAT(definition_refusal(R"("ttlPropertyPath":"created","defaultTtl":5)"),
              HasSubstr("path"));
  EXPECT_EQ(definition_refusal(R"("ttlPropertyPath":"/created","defaultTtl":5)"), "accepted");
}

TEST(ContainerDefinitionTest, AnalyticalStorageTtlIsEchoed) {
  EXPECT_EQ(
      create(body(R"("analyticalStorageTtl":-1)")).to_wire(kNewVersion)["analyticalStorageTtl"],
      -1);
  EXPECT_THAT(definition_refusal(R"("analyticalStorageTtl":"x")"),
              HasSubstr("analyticalStorageTtl"));
}

TEST(ContainerDefinitionTest, UniqueKeysAreReadAndBounded) {
  const auto definition = create(body(
      R"("uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/name","/address/zip"]},{"paths":["/x"]}]})"));
  EXPECT_THAT(definition.unique_keys(),
              ElementsAre(ElementsAre(ElementsAre("name"), ElementsAre("address", "zip")),
                          ElementsAre(ElementsAre("x"))));
  EXPECT_FALSE(create(body()).to_wire(kNewVersion).contains("uniqueKeyPolicy"));

  Json many = body(R"("uniqueKeyPolicy":{"uniqueKeys":[]})");
  for (int i = 0; i < 10; ++i) {
    many["uniqueKeyPolicy"]["uniqueKeys"].push_back(Json::parse(R"({"paths":["/a"]})"));
  }
  EXPECT_EQ(refusal_of(many), "accepted");
  many["uniqueKeyPolicy"]["uniqueKeys"].push_back(Json::parse(R"({"paths":["/a"]})"));
  EXPECT_THAT(refusal_of(many), HasSubstr("10"));

  Json wide = body(R"("uniqueKeyPolicy":{"uniqueKeys":[{"paths":[]}]})");
  EXPECT_THAT(refusal_of(wide), HasSubstr("1 to 16"));
  for (int i = 0; i < 17; ++i) {
    wide["uniqueKeyPolicy"]["uniqueKeys"][0]["paths"].push_back("/p" + std::to_string(i));
  }
  EXPECT_THAT(refusal_of(wide), HasSubstr("1 to 16"));
  EXPECT_THAT(definition_refusal(R"("uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a/[]/b"]}]})"),
              HasSubstr("wildcard"));
  EXPECT_THAT(definition_refusal(R"("uniqueKeyPolicy":[])"), HasSubstr("uniqueKeyPolicy"));
}

TEST(ContainerDefinitionTest, ConflictResolutionIsCompleted) {
  const auto custom = create(body(
      R"("conflictResolutionPolicy":{"mode":"custom","conflictResolutionProcedure":"dbs/d"})"));
  EXPECT_EQ(
      custom.to_wire(kNewVersion)["conflictResolutionPolicy"].dump(),
      R"({"mode":"custom","conflictResolutionPath":"","conflictResolutionProcedure":"dbs/d"})");
  const auto last = create(body(R"("conflictResolutionPolicy":{"conflictResolutionPath":"/n"})"));
  EXPECT_EQ(last.to_wire(kNewVersion)["conflictResolutionPolicy"]["conflictResolutionPath"], "/n");
  EXPECT_THAT(definition_refusal(R"("conflictResolutionPolicy":{"mode":"FirstWins"})"),
              HasSubstr("mode"));
  EXPECT_THAT(definition_refusal(R"("conflictResolutionPolicy":{"conflictResolutionPath":1})"),
              HasSubstr("string"));
}

TEST(ContainerDefinitionTest, OtherPoliciesAreChecked) {
  EXPECT_EQ(definition_refusal(R"("geospatialConfig":{"type":"Geometry"})"), "accepted");
  EXPECT_THAT(definition_refusal(R"("geospatialConfig":{"type":"Flat"})"),
              HasSubstr("geospatialConfig"));
  EXPECT_EQ(
      definition_refusal(R"("changeFeedPolicy":{"retentionDuration":10,"previousImage":"all"})"),
      "accepted");
  EXPECT_THAT(definition_refusal(R"("changeFeedPolicy":{"retentionDuration":-1})"),
              HasSubstr("minutes"));
  EXPECT_THAT(definition_refusal(R"("changeFeedPolicy":{"retentionDuration":1.5})"),
              HasSubstr("minutes"));
  EXPECT_THAT(definition_refusal(R"("changeFeedPolicy":{"previousImage":"some"})"),
              HasSubstr("previousImage"));
  EXPECT_THAT(definition_refusal(R"("changeFeedPolicy":{"tombstoneDuration":-2})"),
              HasSubstr("tombstone"));
  EXPECT_EQ(definition_refusal(R"("computedProperties":{})"),
            "One of the specified inputs is invalid: computedProperties must be an array.");
  EXPECT_THAT(definition_refusal(R"("computedProperties":[{"name":"a"}])"), HasSubstr("'query'"));
  EXPECT_THAT(definition_refusal(R"("computedProperties":[{"name":"id","query":"q"}])"),
              HasSubstr("'id'"));
  EXPECT_THAT(definition_refusal(
                  R"("computedProperties":[{"name":"a","query":"q"},{"name":"a","query":"r"}])"),
              HasSubstr("twice"));
  EXPECT_THAT(definition_refusal(R"("clientEncryptionPolicy":1)"),
              HasSubstr("clientEncryptionPolicy"));
}

TEST(ContainerDefinitionTest, AnEncryptionPolicyOfAnOlderStoreIsReadAsItIs) {
  Json stored = ContainerDefinition::create(
                    Json::parse(R"({"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"}})"), {})
                    .value()
                    .to_stored();
  stored["clientEncryptionPolicy"] = Json::parse(R"({"includedPaths":[{"path":"/id"}]})");
  const auto definition = ContainerDefinition::from_stored(stored);
  EXPECT_EQ(definition.to_stored()["clientEncryptionPolicy"], stored["clientEncryptionPolicy"]);
  EXPECT_TRUE(definition.replace(definition.to_wire({}), {}).has_value());
  EXPECT_FALSE(ContainerDefinition::create(definition.to_wire({}), {}).has_value());
}

TEST(ContainerDefinitionTest, TheChangeFeedPolicySaysWhatIsKept) {
  const auto policy_of = [](const std::string& members) {
    const auto body =
        Json::parse(R"({"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"})" + members + "}");
    return ContainerDefinition::create(body, {}).value().change_feed_policy();
  };
  using PreviousImage = ChangeFeedPolicy::PreviousImage;
  EXPECT_EQ(policy_of(""), ChangeFeedPolicy{});
  EXPECT_FALSE(policy_of("").keeps_tombstones());
  EXPECT_FALSE(policy_of(R"(,"changeFeedPolicy":{"retentionDuration":0})").keeps_tombstones());
  const auto all =
      policy_of(R"(,"changeFeedPolicy":{"retentionDuration":10,"previousImage":"all"})");
  EXPECT_EQ(all, (ChangeFeedPolicy{10, 0, PreviousImage::All}));
  EXPECT_TRUE(all.keeps_all() && all.keeps_tombstones());
  const auto tombstones =
      policy_of(R"(,"changeFeedPolicy":{"tombstoneDuration":-1,"previousImage":"delete"})");
  EXPECT_EQ(tombstones, (ChangeFeedPolicy{0, ChangeFeedPolicy::kForEver, PreviousImage::Delete}));
  EXPECT_TRUE(!tombstones.keeps_all() && tombstones.keeps_tombstones());
}

TEST(ContainerDefinitionTest, TheChangeFeedPolicyIsStoredShownAndReplaced) {
  const auto body = Json::parse(
      R"({"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"},
          "changeFeedPolicy":{"retentionDuration":10,"tombstoneDuration":60}})");
  const auto made = ContainerDefinition::create(body, {}).value();
  const auto copy = ContainerDefinition::from_stored(made.to_stored());
  EXPECT_EQ(copy.change_feed_policy(), made.change_feed_policy());
  EXPECT_EQ(copy.to_wire({})["changeFeedPolicy"], body["changeFeedPolicy"]);
  const auto without = made.replace(Json::parse(R"({"id":"c"})"), {}).value();
  EXPECT_EQ(without.change_feed_policy(), ChangeFeedPolicy{});
  const auto other =
      made.replace(Json::parse(R"({"id":"c","changeFeedPolicy":{"retentionDuration":5}})"), {});
  EXPECT_EQ(other.value().change_feed_policy(), (ChangeFeedPolicy{5, 0, {}}));
}

constexpr const char* kVectorMembers =
    R"("vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32",
       "dimensions":256,"distanceFunction":"cosine"}]})";

std::string vector_refusal(const std::string& index) {
  return definition_refusal(std::string(kVectorMembers) +
                            R"(,"indexingPolicy":{"vectorIndexes":[)" + index + "]}");
}

TEST(ContainerSearchTest, VectorIndexesMustMatchTheEmbeddings) {
  EXPECT_EQ(vector_refusal(R"({"path":"/v","type":"flat"})"), "accepted");
  EXPECT_EQ(vector_refusal(R"({"path":"/v","type":"diskANN","quantizationByteSize":256,
                               "indexingSearchListSize":100,"vectorIndexShardKey":["/c"]})"),
            "accepted");
  EXPECT_THAT(
      definition_refusal(R"("indexingPolicy":{"vectorIndexes":[{"path":"/v","type":"flat"}]})"),
      HasSubstr("The Vector Indexing Policy's path::/v not matching in Embedding's path."));
  EXPECT_THAT(vector_refusal(R"({"path":"/w","type":"flat"})"),
              HasSubstr("w not matching in Embedding's path"));
  EXPECT_THAT(vector_refusal(R"({"path":"/v","type":"notFlat"})"),
              HasSubstr("Index Type::notFlat is invalid"));
  EXPECT_THAT(
      vector_refusal(R"({"path":"/v","type":"quantizedFlat","quantizationByteSize":0})"),
      HasSubstr("The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out "
                "of range. The allowed range is between 1 and 256."));
  EXPECT_THAT(vector_refusal(R"({"path":"/v","type":"diskANN","indexingSearchListSize":5})"),
              HasSubstr("IndexingSearchListSize value :: 5 is out of range. The allowed range is "
                        "between 25 and 500."));
  EXPECT_THAT(vector_refusal(R"({"path":"/v","type":"diskANN","vectorIndexShardKey":["c"]})"),
              HasSubstr("The Vector Indexing Policy has an invalid Shard Path: c."));
  EXPECT_THAT(
      vector_refusal(R"({"path":"/v","type":"diskANN","vectorIndexShardKey":["/c","/d"]})"),
      HasSubstr("The number of shard paths defined in the Vector Indexing Policy: 2 exceeds "
                "the maximum: 1."));
  EXPECT_THAT(vector_refusal(R"({"path":"/v","type":"diskANN","vectorIndexShardKey":"/c"})"),
              HasSubstr("One of the specified inputs is invalid"));
  EXPECT_THAT(vector_refusal(R"({"path":"/v","type":"flat"},{"path":"/v","type":"diskANN"})"),
              HasSubstr("twice"));
}

TEST(ContainerSearchTest, NumbersOfVectorIndexesAreTakenAsFarAsTheServiceDocumentsThem) {
  // Its refusals name narrower ranges.
  for (const char* number : {R"("quantizationByteSize":1)", R"("quantizationByteSize":512)",
                             R"("indexingSearchListSize":10)", R"("indexingSearchListSize":500)"}) {
    EXPECT_EQ(vector_refusal(std::string(R"({"path":"/v","type":"diskANN",)") + number + "}"),
              "accepted")
        << number;
  }
  for (const char* number : {R"("quantizationByteSize":513)", R"("indexingSearchListSize":9)",
                             R"("indexingSearchListSize":501)"}) {
    EXPECT_THAT(vector_refusal(std::string(R"({"path":"/v","type":"diskANN",)") + number + "}"),
                HasSubstr("out of range"))
        << number;
  }
}

TEST(ContainerSearchTest, EmbeddingsAreChecked) {
  const auto embedding_refusal = [](const char* member, const Json& value) {
    Json json = body(kVectorMembers);
    json["vectorEmbeddingPolicy"]["vectorEmbeddings"][0][member] = value;
    return refusal_of(json);
  };
  EXPECT_THAT(embedding_refusal("dataType", "float33"),
              HasSubstr("Vector Embedding Policy has an invalid DataType"));
  EXPECT_THAT(
      embedding_refusal("dimensions", 8000),
      HasSubstr("Vector Embedding Policy has Dimensions:8000 which is more than the maximum "
                "supported value"));
  EXPECT_THAT(embedding_refusal("dimensions", -1),
              HasSubstr("The Vector Embedding Policy has Dimensions:-1"));
  EXPECT_THAT(
      embedding_refusal("distanceFunction", "handMeasured"),
      HasSubstr("The Vector Embedding Policy has an invalid DistanceFunction:handMeasured"));
  EXPECT_THAT(embedding_refusal("path", "v"), HasSubstr("invalid Path"));
  EXPECT_THAT(definition_refusal(R"("vectorEmbeddingPolicy":{})"), HasSubstr("vectorEmbeddings"));
}

TEST(ContainerSearchTest, FullTextPoliciesAreChecked) {
  EXPECT_EQ(definition_refusal(
                R"("fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/a"}]},
                       "indexingPolicy":{"fullTextIndexes":[{"path":"/a"}]})"),
            "accepted");
  EXPECT_EQ(definition_refusal(R"("fullTextPolicy":{"defaultLanguage":"en-US"})"), "accepted");
  EXPECT_EQ(definition_refusal(
                R"("fullTextPolicy":{"defaultLanguage":"1033","fullTextPaths":[{"path":"/a",
                       "language":"1033"}]})"),
            "accepted");
  EXPECT_THAT(definition_refusal(R"("fullTextPolicy":{"fullTextPaths":[{"path":"abstract"}]})"),
              HasSubstr("The Full Text Policy contains an invalid Path: abstract"));
  EXPECT_THAT(definition_refusal(R"("fullTextPolicy":{"defaultLanguage":"spa-SPA"})"),
              HasSubstr("The Full Text Policy contains an unsupported language spa-SPA. Supported "
                        "languages are:"));
  EXPECT_THAT(definition_refusal(R"("indexingPolicy":{"fullTextIndexes":[{"path":"abstract"}]})"),
              HasSubstr("Full-text index specification at index (0) contains invalid path"));
  EXPECT_THAT(
      definition_refusal(R"("indexingPolicy":{"fullTextIndexes":[{"not_path":"abstract"}]})"),
      HasSubstr("Missing path in full-text index specification at index (0)"));
}

// ── Replace ──────────────────────────────────────────────────────────────────────────────────────

TEST(ContainerReplaceTest, WhatAClientWasShownIsAcceptedInEveryVersion) {
  for (
      const char* members :
      {"", R"("partitionKey":{"paths":["/a"]})",
       R"("partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2})",
       R"("indexingPolicy":{"indexingMode":"none"})",
       R"("uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]},"x":1)",
       R"("conflictResolutionPolicy":{"mode":"Custom"},"defaultTtl":3)",
       R"("indexingPolicy":{"includedPaths":[{"path":"/","indexes":[{"kind":"Hash","dataType":"Number"}]}]})"}) {
    const auto definition = create(body(members));
    for (const char* shown_to : {kOldVersion, "2018-12-31", kNewVersion}) {
      for (const char* sent_by : {kOldVersion, "2018-12-31", kNewVersion}) {
        const auto replaced = definition.replace(definition.to_wire(shown_to), sent_by);
        ASSERT_TRUE(replaced.has_value()) << members << ": " << replaced.error().message();
        EXPECT_EQ(replaced->partition_key(), definition.partition_key());
        EXPECT_EQ(replaced->unique_keys(), definition.unique_keys());
        EXPECT_EQ(replaced->to_wire(shown_to), definition.to_wire(shown_to)) << members;
      }
    }
  }
}

TEST(ContainerReplaceTest, TheWholeResourceIsReplaced) {
  const auto definition = create(
      body(R"("defaultTtl":5,"ttlPropertyPath":"/t","mine":1,"geospatialConfig":{"type":"Geometry"},
                     "indexingPolicy":{"indexingMode":"lazy"},"partitionKey":{"paths":["/a"]})"));
  const auto replaced = definition.replace(body(R"("other":2)"), kNewVersion);
  ASSERT_TRUE(replaced.has_value());
  EXPECT_EQ(replaced->default_ttl(), std::nullopt);
  EXPECT_FALSE(replaced->lazily_indexed());
  const Json wire = replaced->to_wire(kNewVersion);
  EXPECT_FALSE(wire.contains("mine"));
  EXPECT_FALSE(wire.contains("defaultTtl"));
  EXPECT_FALSE(wire.contains("ttlPropertyPath"));
  EXPECT_EQ(wire["other"], 2);
  EXPECT_EQ(wire["geospatialConfig"]["type"], "Geography");
  EXPECT_EQ(wire["partitionKey"], definition.to_wire(kNewVersion)["partitionKey"]);
}

TEST(ContainerReplaceTest, IdAndPartitionKeyCannotChange) {
  const auto definition =
      create(body(R"("partitionKey":{"paths":["/a"],"kind":"Hash","version":2})"));
  EXPECT_THAT(replace_refusal(definition, Json::parse(R"({"id":"other"})")), HasSubstr("id"));
  EXPECT_EQ(replace_refusal(definition, Json::object()), "accepted");
  EXPECT_EQ(replace_refusal(definition, body(R"("partitionKey":{"paths":["/a"]})")), "accepted");
  EXPECT_EQ(replace_refusal(definition, body(R"("partitionKey":{"paths":["/\"a\""],"version":2})")),
            "accepted");
  EXPECT_THAT(replace_refusal(definition, body(R"("partitionKey":{"paths":["/b"]})")),
              HasSubstr("partitionKey"));
  EXPECT_THAT(replace_refusal(definition, body(R"("partitionKey":{"paths":["/a"],"version":1})")),
              HasSubstr("partitionKey"));
  EXPECT_THAT(
      replace_refusal(
          definition,
          body(R"("partitionKey":{"paths":["/_partitionKey"],"kind":"Hash","systemKey":true})")),
      HasSubstr("partitionKey"));
}

TEST(ContainerReplaceTest, TheSystemKeyMayBeSentBackInAnyForm) {
  const auto definition = create(body());
  for (const char* key : {R"({"paths":["/_partitionKey"],"kind":"Hash","systemKey":true})",
                          R"({"paths":["/_partitionKey"],"kind":"Hash"})",
                          R"({"paths":["/_partitionKey"],"kind":"Hash","version":2})"}) {
    EXPECT_EQ(replace_refusal(definition, body(R"("partitionKey":)" + std::string(key))),
              "accepted");
  }
  EXPECT_THAT(replace_refusal(definition, body(R"("partitionKey":{"paths":["/a"]})")),
              HasSubstr("cannot change"));
}

TEST(ContainerReplaceTest, UniqueKeysAndConflictResolutionCannotChange) {
  const auto definition = create(body(R"("uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]})"));
  EXPECT_EQ(replace_refusal(definition, body()), "accepted");
  EXPECT_THAT(definition.replace(body(), kNewVersion)->unique_keys(), testing::SizeIs(1));
  EXPECT_THAT(
      replace_refusal(definition, body(R"("uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/b"]}]})")),
      HasSubstr("uniqueKeyPolicy"));
  EXPECT_THAT(replace_refusal(definition, body(R"("uniqueKeyPolicy":{"uniqueKeys":[]})")),
              HasSubstr("uniqueKeyPolicy"));
  EXPECT_EQ(replace_refusal(create(body()), body(R"("uniqueKeyPolicy":{"uniqueKeys":[]})")),
            "accepted");
  EXPECT_THAT(replace_refusal(definition, body(R"("conflictResolutionPolicy":{"mode":"Custom"})")),
              HasSubstr("conflictResolutionPolicy"));
  EXPECT_EQ(
      replace_refusal(definition, body(R"("conflictResolutionPolicy":{"mode":"LastWriterWins"})")),
      "accepted");
}

TEST(ContainerReplaceTest, VectorIndexesMayBeAddedAndRemovedButNotChanged) {
  const std::string vectors = kVectorMembers;
  const auto with_index = [&](const std::string& index) {
    return body(vectors + R"(,"indexingPolicy":{"vectorIndexes":[)" + index + "]}");
  };
  const auto definition = create(with_index(R"({"path":"/v","type":"flat"})"));
  EXPECT_EQ(replace_refusal(definition, body()), "accepted");
  EXPECT_EQ(replace_refusal(definition, with_index(R"({"type":"flat","path":"/v"})")), "accepted");
  EXPECT_THAT(
      replace_refusal(definition, with_index(R"({"path":"/v","type":"quantizedFlat"})")),
      HasSubstr(
          "Paths in existing vector indexing policy cannot be modified in Collection Replace"));
  Json changed = with_index(R"({"path":"/v","type":"flat"})");
  changed["vectorEmbeddingPolicy"]["vectorEmbeddings"][0]["dimensions"] = 384;
  EXPECT_THAT(
      replace_refusal(definition, changed),
      HasSubstr("Paths in existing embedding policy cannot be modified in Collection Replace"));
}

TEST(ContainerReplaceTest, OldShapesAreNotForgottenWhenANewClientLooks) {
  const auto definition = create(body(), kOldVersion);
  const auto replaced = definition.replace(definition.to_wire(kOldVersion), kOldVersion);
  ASSERT_TRUE(replaced.has_value());
  EXPECT_EQ(replaced->to_wire(kNewVersion).dump(), definition.to_wire(kNewVersion).dump());
}

constexpr std::string_view kBox = R"(,"boundingBox":{"xmin":0,"ymin":0,"xmax":10,"ymax":10})";

std::string spatial_members(std::string_view box, std::string_view type) {
  return R"("indexingPolicy":{"spatialIndexes":[{"path":"/at/*")" + std::string(box) +
         R"(}]},"geospatialConfig":{"type":")" + std::string(type) + "\"}";
}

TEST(ContainerDefinitionTest, ASpatialIndexHasABoundingBoxInAPlaneOnly) {
  EXPECT_EQ(definition_refusal(spatial_members("", "Geography")), "accepted");
  EXPECT_EQ(definition_refusal(spatial_members(kBox, "Geometry")), "accepted");
  EXPECT_THAT(definition_refusal(spatial_members("", "Geometry")),
              HasSubstr("'/at/*' needs a boundingBox, since geospatialConfig.type is 'Geometry'"));
  EXPECT_THAT(definition_refusal(spatial_members(kBox, "Geography")),
              HasSubstr("must not have a boundingBox, since geospatialConfig.type is 'Geography'"));
}

TEST(ContainerDefinitionTest, ASpatialPolicyOfAnOlderStoreStaysUntilItIsChanged) {
  Json stored = create(body(spatial_members("", "Geography"))).to_stored();
  stored["geospatialConfig"]["type"] = "Geometry";
  const auto old = ContainerDefinition::from_stored(stored);
  Json wire = old.to_wire({});
  wire["defaultTtl"] = 5;
  EXPECT_TRUE(old.replace(wire, {}).has_value());
  wire["indexingPolicy"]["spatialIndexes"][0]["path"] = "/other/*";
  EXPECT_FALSE(old.replace(wire, {}).has_value());
}

TEST(ContainerDefinitionTest, ItsGeometryDecidesOnTheKindOfSpatialIndexes) {
  const auto earth = create(body(spatial_members("", "Geography")));
  const auto plane = create(body(spatial_members(kBox, "Geometry")));
  const auto of_earth = IndexSpec::parse("/at SPATIAL").value();
  const auto of_plane = IndexSpec::parse("/at SPATIAL PLANAR").value();
  EXPECT_THAT(earth.named_indexes(), ElementsAre(of_earth));
  EXPECT_THAT(plane.named_indexes(), ElementsAre(of_plane));
  EXPECT_TRUE(earth.allows(of_earth) && !earth.allows(of_plane));
  EXPECT_TRUE(plane.allows(of_plane) && !plane.allows(of_earth));
}

}  // namespace
}  // namespace orrery
