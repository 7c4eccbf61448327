#include "protocol/container/client_encryption.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using testing::HasSubstr;

const std::string kKey =
    R"({"id":"k","_rid":"r","keyWrapMetadata":{"type":"T","name":"n","value":"v","algorithm":"a"},)"
    R"("_etag":"e","wrappedDataEncryptionKey":"AAEC","encryptionAlgorithm":"A","more":[1],"_ts":1})";

TEST(EncryptionKeyBody, KeepsWhatTheClientSaidWithoutSystemProperties) {
  const auto key = parse_encryption_key(kKey);
  ASSERT_TRUE(key.has_value()) << key.error().message();
  EXPECT_EQ(key->dump(),
            R"({"id":"k","keyWrapMetadata":{"type":"T","name":"n","value":"v","algorithm":"a"},)"
            R"("wrappedDataEncryptionKey":"AAEC","encryptionAlgorithm":"A","more":[1]})");
  EXPECT_EQ(parse_encryption_key(key->dump()).value(), *key) << "what is kept is accepted";
}

TEST(EncryptionKeyBody, IsBounded) {
  const std::string large = R"({"id":")" + std::string(kEncryptionKeyBytesMax, 'x') + "\"}";
  EXPECT_THAT(parse_encryption_key(large).error().message(), HasSubstr("16384 bytes"));
}

std::string encryption_refusal(const std::string& paths, const std::string& more = "") {
  const PartitionKeyDefinition key{
      .paths = {{"tenant"}, {"deep", "er"}}, .kind = KeyKind::MultiHash, .version = 2};
  const auto checked =
      check_encryption_policy(Json::parse(R"({"includedPaths":[)" + paths + "]" + more + "}"), key);
  if (checked) return "accepted";
  EXPECT_EQ(checked.error().code(), ErrorCode::BadRequest);
  return checked.error().message();
}

std::string included(const std::string& path, const std::string& type = "Deterministic") {
  return R"({"path":")" + path + R"(","clientEncryptionKeyId":"k","encryptionType":")" + type +
         R"(","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256"})";
}

TEST(EncryptionPolicy, EncryptsTopLevelProperties) {
  EXPECT_EQ(encryption_refusal(""), "accepted");
  EXPECT_EQ(encryption_refusal(included("/a") + "," + included("/b", "Randomized")), "accepted");
  EXPECT_EQ(encryption_refusal(included("/er")), "accepted");
  EXPECT_THAT(encryption_refusal(included("/a/b")),
              HasSubstr("'/a/b' must be that of a top level property"));
  EXPECT_THAT(encryption_refusal(included("/a") + "," + included("/a")),
              HasSubstr("'/a' is there twice"));
}

TEST(EncryptionPolicy, NeedsFormat2ForWhatLocatesADocument) {
  for (const char* path : {"/id", "/tenant", "/deep"}) {
    EXPECT_THAT(encryption_refusal(included(path)), HasSubstr("policyFormatVersion 1")) << path;
    EXPECT_EQ(encryption_refusal(included(path), R"(,"policyFormatVersion":2)"), "accepted")
        << path;
    EXPECT_THAT(encryption_refusal(included(path, "Randomized"), R"(,"policyFormatVersion":2)"),
                HasSubstr("must be Deterministic"))
        << path;
  }
}

}  // namespace
}  // namespace orrery
