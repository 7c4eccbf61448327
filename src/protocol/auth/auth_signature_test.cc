#include "protocol/auth/auth_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kEmulatorKey =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
constexpr std::string_view kDateText = "Tue, 01 Apr 2025 12:00:00 GMT";

MasterKey emulator_key() { return MasterKey::parse(kEmulatorKey).value(); }

SignedContent content(std::string_view verb, std::string_view type, std::string_view link) {
  return {.verb = verb, .resource_type = type, .link = link, .x_ms_date = kDateText, .date = {}};
}

struct Vector {
  SignedContent content;
  std::string_view signature;
};

// Signatures as the official SDKs make them.
const Vector kVectors[] = {
    {content("GET", "", ""), "WkFgO9PG0jZ156dFGtn90LdXcD+TWa+2KcVXY4GjLHs="},
    {content("GET", "dbs", ""), "8bLx0atOI7D2//2BT1xFbZzRhk85Jd4iGtEHVWH0mls="},
    {content("POST", "dbs", ""), "38W5VqmR0581YmckWQ8/SNgqfHmd1ObrNHao5lq7pzc="},
    {content("GET", "dbs", "dbs/ToDo"), "QTK1aHfV/w3c9uwV1ExNzRbmw+m5xnwpz2kAHZPJ4sw="},
    {content("POST", "docs", "dbs/ToDo/colls/Items"),
     "OaCzpolfLAeFcjhnHtIFXYPnuui3ShNmptgRB3Io67k="},
    {content("GET", "docs", "dbs/ToDo/colls/Items/docs/Ä b"),
     "aLduzuC8c0RuNLDwFt9g0v/Od+kafBMlHCqrtRkjhoE="},
    {content("GET", "pkranges", "qycaapevjbq="), "Lo24CrdxhwYkjSXo6o+ijNe5rdTbO+XrnVj05Zx19RA="},
    {content("POST", "offers", ""), "lmIC1xzHfjRVaHTo9IR7ETZuEMpx5soG2KT5f3DS5xw="},
    {content("PUT", "offers", "wlae"), "R6InSpS9s7tTSPOcyN/ZH7ogty1zLgakPFdVclsCEns="},
    {content("POST", "sprocs", "dbs/ToDo/colls/Items/sprocs/bulk"),
     "V8RFTSNNaLCPQiqC9OxT/cqndX8dIwefYV97GWbA+Fw="},
    {{.verb = "GET",
      .resource_type = "dbs",
      .link = "dbs/ToDo",
      .x_ms_date = {},
      .date = kDateText},
     "4jrEOHNRYpn/GpXH8yt5KCwQ5wjXYUukP/fg6HTft54="},
};

TEST(StringToSign, IsFiveLinesInLowerCaseButForTheLink) {
  EXPECT_EQ(string_to_sign(content("GET", "Docs", "dbs/ToDo"), false),
            "get\ndocs\ndbs/ToDo\ntue, 01 apr 2025 12:00:00 gmt\n\n");
  const SignedContent only_date{
      .verb = "GET", .resource_type = "dbs", .link = "", .x_ms_date = {}, .date = kDateText};
  EXPECT_EQ(string_to_sign(only_date, true), "get\ndbs\n\n\ntue, 01 apr 2025 12:00:00 gmt\n");
}

TEST(MasterKey, SignsAsClientsDo) {
  const MasterKey key = emulator_key();
  for (const Vector& vector : kVectors) {
    EXPECT_EQ(key.sign(vector.content), vector.signature) << vector.content.link;
    EXPECT_TRUE(key.verify(vector.content, vector.signature)) << vector.content.link;
  }
}

TEST(MasterKey, RefusesAnyOtherSignature) {
  const MasterKey key = emulator_key();
  for (const Vector& vector : kVectors) {
    std::string signature(vector.signature);
    signature[10] = signature[10] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(key.verify(vector.content, signature));
  }
  const SignedContent get = content("GET", "dbs", "dbs/ToDo");
  const std::string_view right = kVectors[3].signature;
  EXPECT_FALSE(key.verify(get, ""));
  EXPECT_FALSE(key.verify(get, right.substr(0, 43)));
  EXPECT_FALSE(key.verify(get, std::string(right) + "="));
  // The service also takes another letter case; that would shorten the key.
  EXPECT_FALSE(key.verify(get, "qtk1AHfV/w3c9uwV1ExNzRbmw+m5xnwpz2kAHZPJ4sw="));
  EXPECT_FALSE(key.verify(content("PUT", "dbs", "dbs/ToDo"), right));
  EXPECT_FALSE(key.verify(content("GET", "colls", "dbs/ToDo"), right));
  EXPECT_FALSE(key.verify(content("GET", "dbs", "dbs/todo"), right));
  const MasterKey other = MasterKey::parse(base64_encode(std::string(64, 'k'))).value();
  EXPECT_FALSE(other.verify(get, right));
}

TEST(MasterKey, AcceptsADateHeaderThatWasNotSigned) {
  const MasterKey key = emulator_key();
  SignedContent both = content("GET", "dbs", "dbs/ToDo");
  both.date = "Tue, 01 Apr 2025 12:00:01 GMT";
  EXPECT_TRUE(key.verify(both, kVectors[3].signature));

  EXPECT_EQ(string_to_sign(both, true),
            "get\ndbs\ndbs/ToDo\ntue, 01 apr 2025 12:00:00 gmt\ntue, 01 apr 2025 12:00:01 gmt\n");
}

TEST(MasterKey, AcceptsASignedDateLineBesideXMsDate) {
  const MasterKey key = emulator_key();
  SignedContent both = content("GET", "dbs", "dbs/ToDo");
  both.date = kDateText;
  // Computed with Python's hmac over the five lines.
  EXPECT_TRUE(key.verify(both, "HtXFf6VQsoFe/r3A2WqyPuwMNeLc2nmV+yRlxQWGiEI="));
  both.date = {};
  EXPECT_FALSE(key.verify(both, "HtXFf6VQsoFe/r3A2WqyPuwMNeLc2nmV+yRlxQWGiEI="));
}

TEST(MasterKey, SignsLinksLongerThanItsBuffer) {
  // A link of 1000 characters; computed with Python's hmac.
  const std::string link(1000, 'L');
  EXPECT_EQ(emulator_key().sign(content("GET", "docs", link)),
            "vTPqRpxJk0OaojgZkrFtGAB/RmPLwrZuCunWQaKwHjc=");
}

TEST(MasterKey, KeysLongerThanAHashBlockAreHashedFirst) {
  const auto key = MasterKey::parse(base64_encode(std::string(100, 'k')));
  EXPECT_EQ(key->sign(content("GET", "dbs", "")), "SjRSM8+f8CNqaVa3/dhhl2BxsXF1SJbByNyredcegTg=");
}

TEST(MasterKey, IsBase64OfAtLeastSixteenBytes) {
  EXPECT_TRUE(MasterKey::parse(base64_encode(std::string(16, 'k'))).has_value());
  for (const std::string& text :
       {std::string(), std::string("secret"), base64_encode(std::string(15, 'k')),
        std::string(kEmulatorKey.substr(1)), std::string(kEmulatorKey) + " "}) {
    ASSERT_FALSE(MasterKey::parse(text).has_value()) << text;
    EXPECT_EQ(MasterKey::parse(text).error().code(), ErrorCode::BadRequest);
  }
}

TEST(MasterKey, CopiesSignAlike) {
  const MasterKey key = emulator_key();
  const MasterKey copy = key;  // NOLINT: the copy is what is tested
  EXPECT_EQ(copy.sign(kVectors[0].content), key.sign(kVectors[0].content));
}

TEST(AuthorizationHeader, IsReadInEitherHexCase) {
  for (const char* header :
       {"type%3Dmaster%26ver%3D1.0%26sig%3DQTK1aHfV%2Fw3c9uwV1ExNzRbmw%2Bm5xnwpz2kAHZPJ4sw%3D",
        "type%3dmaster%26ver%3d1.0%26sig%3dQTK1aHfV%2fw3c9uwV1ExNzRbmw%2bm5xnwpz2kAHZPJ4sw%3d",
        "type=master&ver=1.0&sig=QTK1aHfV/w3c9uwV1ExNzRbmw+m5xnwpz2kAHZPJ4sw=",
        "Type=MASTER&VER=1.0&Sig=QTK1aHfV/w3c9uwV1ExNzRbmw+m5xnwpz2kAHZPJ4sw=",
        "type=master&ver=1.0&sig=QTK1aHfV/"
        "w3c9uwV1ExNzRbmw+m5xnwpz2kAHZPJ4sw=,type=master&ver=1.0"}) {
    const auto parsed = parse_authorization(header);
    ASSERT_TRUE(parsed.has_value()) << header;
    EXPECT_EQ(parsed->type, "master");
    EXPECT_EQ(parsed->version, "1.0");
    EXPECT_EQ(parsed->signature, kVectors[3].signature);
  }
}

TEST(AuthorizationHeader, ReadsResourceAndEntraTokens) {
  const auto resource =
      parse_authorization("type%3Dresource%26ver%3D1%26sig%3Dab%3D%3D%3Bcd%26e%3B");
  ASSERT_TRUE(resource.has_value());
  EXPECT_EQ(resource->type, "resource");
  EXPECT_EQ(resource->version, "1");
  EXPECT_EQ(resource->signature, "ab==;cd&e;");

  const std::string jwt(12'000, 'j');
  const auto aad = parse_authorization("type=aad&ver=1.0&sig=" + jwt);
  ASSERT_TRUE(aad.has_value());
  EXPECT_EQ(aad->signature, jwt);
}

TEST(AuthorizationHeader, IsWrittenAsClientsSendIt) {
  EXPECT_EQ(format_authorization(kVectors[3].signature),
            "type%3Dmaster%26ver%3D1.0%26sig%3DQTK1aHfV%2Fw3c9uwV1ExNzRbmw%2Bm5xnwpz2kAHZPJ4sw%3D");
}

TEST(AuthorizationHeader, SaysWhatIsWrong) {
  const std::pair<std::string, const char*> broken[] = {
      {"", "missing"},
      {"Bearer abc", "three parts"},
      {"type=master&ver=1.0", "three parts"},
      {"type=&ver=1.0&sig=a", "first part"},
      {"ver=1.0&type=master&sig=a", "first part"},
      {"type=master&ver=&sig=a", "second part"},
      {"type=master&version=1.0&sig=a", "second part"},
      {"type=master&ver=1.0&sig=", "third part"},
      {"type=master&ver=1.0&sig=,a", "third part"},
      {"type=master&ver=1.0&signature=a", "third part"},
      {"type%3Dmaster%26ver%3D1.0%26sig%3Da%2", "hex digits"},
      {"type%3Gmaster", "hex digits"},
      {"type=master&ver=1.0&sig=" + std::string(1001, 'a'), "too long"},
      {"type=resource&ver=1.0&sig=" + std::string(8192, 'a'), "too long"},
      {"type=aad&ver=1.0&sig=" + std::string(16384, 'a'), "too long"},
  };
  for (const auto& [header, fragment] : broken) {
    const auto result = parse_authorization(header);
    ASSERT_FALSE(result.has_value()) << header;
    EXPECT_EQ(result.error().code(), ErrorCode::Unauthorized);
    EXPECT_THAT(result.error().message(), HasSubstr(fragment)) << header;
  }
  EXPECT_TRUE(parse_authorization("type=master&ver=1.0&sig=" + std::string(1000, 'a')).has_value());
}

}  // namespace
}  // namespace orrery
