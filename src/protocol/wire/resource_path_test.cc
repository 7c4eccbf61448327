#include "protocol/wire/resource_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ResourcePath parsed_path(std::string_view target) {
  auto result = parse_resource_path(target);
  EXPECT_TRUE(result.has_value()) << target << ": " << result.error().message();
  return result.value_or(ResourcePath());
}

ErrorCode refused(std::string_view target) {
  const auto result = parse_resource_path(target);
  EXPECT_FALSE(result.has_value()) << target;
  return result ? ErrorCode::Internal : result.error().code();
}

struct Row {
  const char* target;
  ResourceType type;
  bool is_feed;
  std::vector<std::string> names;
  const char* link;  // what a client signs
};

TEST(ResourcePath, KnowsEveryRouteOfTheService) {
  using enum ResourceType;
  const Row rows[] = {
      {"/", Account, false, {}, ""},
      {"", Account, false, {}, ""},
      {"/dbs", Databases, true, {}, ""},
      {"/dbs/d", Databases, false, {"d"}, "dbs/d"},
      {"/dbs/d/colls", Containers, true, {"d"}, "dbs/d"},
      {"/dbs/d/colls/c", Containers, false, {"d", "c"}, "dbs/d/colls/c"},
      {"/dbs/d/colls/c/docs", Documents, true, {"d", "c"}, "dbs/d/colls/c"},
      {"/dbs/d/colls/c/docs/x", Documents, false, {"d", "c", "x"}, "dbs/d/colls/c/docs/x"},
      {"/dbs/d/colls/c/docs/x/attachments",
       Attachments,
       true,
       {"d", "c", "x"},
       "dbs/d/colls/c/docs/x"},
      {"/dbs/d/colls/c/docs/x/attachments/a",
       Attachments,
       false,
       {"d", "c", "x", "a"},
       "dbs/d/colls/c/docs/x/attachments/a"},
      {"/dbs/d/colls/c/sprocs", Procedures, true, {"d", "c"}, "dbs/d/colls/c"},
      {"/dbs/d/colls/c/sprocs/s", Procedures, false, {"d", "c", "s"}, "dbs/d/colls/c/sprocs/s"},
      {"/dbs/d/colls/c/triggers", Triggers, true, {"d", "c"}, "dbs/d/colls/c"},
      {"/dbs/d/colls/c/triggers/t", Triggers, false, {"d", "c", "t"}, "dbs/d/colls/c/triggers/t"},
      {"/dbs/d/colls/c/udfs", Udfs, true, {"d", "c"}, "dbs/d/colls/c"},
      {"/dbs/d/colls/c/udfs/u", Udfs, false, {"d", "c", "u"}, "dbs/d/colls/c/udfs/u"},
      {"/dbs/d/colls/c/conflicts", Conflicts, true, {"d", "c"}, "dbs/d/colls/c"},
      {"/dbs/d/colls/c/conflicts/x",
       Conflicts,
       false,
       {"d", "c", "x"},
       "dbs/d/colls/c/conflicts/x"},
      {"/dbs/d/colls/c/pkranges", Ranges, true, {"d", "c"}, "dbs/d/colls/c"},
      {"/dbs/d/colls/c/pkranges/0", Ranges, false, {"d", "c", "0"}, "dbs/d/colls/c/pkranges/0"},
      {"/dbs/d/colls/c/operations/partitionkeydelete",
       PartitionKeyDelete,
       false,
       {"d", "c"},
       "dbs/d/colls/c"},
      {"/dbs/d/colls/c/operations/split", Split, false, {"d", "c"}, "dbs/d/colls/c"},
      {"/dbs/d/colls/c/operations/merge", Merge, false, {"d", "c"}, "dbs/d/colls/c"},
      {"/dbs/d/users", Users, true, {"d"}, "dbs/d"},
      {"/dbs/d/users/u", Users, false, {"d", "u"}, "dbs/d/users/u"},
      {"/dbs/d/users/u/permissions", Permissions, true, {"d", "u"}, "dbs/d/users/u"},
      {"/dbs/d/users/u/permissions/p",
       Permissions,
       false,
       {"d", "u", "p"},
       "dbs/d/users/u/permissions/p"},
      {"/dbs/d/clientencryptionkeys", EncryptionKeys, true, {"d"}, "dbs/d"},
      {"/dbs/d/clientencryptionkeys/k",
       EncryptionKeys,
       false,
       {"d", "k"},
       "dbs/d/clientencryptionkeys/k"},
      {"/offers", Offers, true, {}, ""},
      {"/addresses/?$resolveFor=dbs", Addresses, true, {}, ""},
  };
  for (const Row& row : rows) {
    const ResourcePath path = parsed_path(row.target);
    EXPECT_EQ(path.type, row.type) << row.target;
    EXPECT_EQ(path.is_feed, row.is_feed) << row.target;
    EXPECT_EQ(path.names, row.names) << row.target;
    EXPECT_THAT(path.link_candidates, ElementsAre(row.link)) << row.target;
    EXPECT_EQ(path.rid_link, std::nullopt) << row.target;
  }
}

TEST(ResourcePath, SpellingsOfSlashesMeanTheSame) {
  for (const char* target : {"/dbs/x", "/dbs/x/", "//dbs/x/", "//dbs//x//", "dbs/x",
                             "http://localhost:8081/dbs/x", "https://localhost//dbs/x/"}) {
    const ResourcePath path = parsed_path(target);
    EXPECT_EQ(path.type, ResourceType::Databases) << target;
    EXPECT_FALSE(path.is_feed) << target;
    EXPECT_THAT(path.names, ElementsAre("x")) << target;
    EXPECT_THAT(path.link_candidates, ElementsAre("dbs/x")) << target;
    EXPECT_EQ(path.text, "dbs/x") << target;
  }
  EXPECT_EQ(parsed_path("//").type, ResourceType::Account);
  EXPECT_EQ(parsed_path("http://localhost:8081").type, ResourceType::Account);
  EXPECT_TRUE(parsed_path("//dbs/").is_feed);
}

TEST(ResourcePath, SignedTypeIsTheWordInThePath) {
  using enum ResourceType;
  EXPECT_EQ(resource_type_name(Account), "");
  EXPECT_EQ(resource_type_name(Databases), "dbs");
  EXPECT_EQ(resource_type_name(Containers), "colls");
  EXPECT_EQ(resource_type_name(Documents), "docs");
  EXPECT_EQ(resource_type_name(Ranges), "pkranges");
  EXPECT_EQ(resource_type_name(Attachments), "attachments");
  EXPECT_EQ(resource_type_name(Media), "media");
  EXPECT_EQ(resource_type_name(EncryptionKeys), "clientencryptionkeys");
  EXPECT_EQ(resource_type_name(PartitionKeyDelete), "colls");
  EXPECT_EQ(resource_type_name(Split), "colls");
  EXPECT_EQ(resource_type_name(Merge), "colls");
}

TEST(ResourcePath, DecodesNamesAndKeepsBothSpellingsForTheSignature) {
  const ResourcePath path = parsed_path("/dbs/ToDo/colls/Items/docs/%C3%84%20b+c");
  EXPECT_THAT(path.names, ElementsAre("ToDo", "Items", "Ä b+c"));
  EXPECT_THAT(path.link_candidates, ElementsAre("dbs/ToDo/colls/Items/docs/Ä b+c",
                                                "dbs/ToDo/colls/Items/docs/%C3%84%20b+c"));
  EXPECT_THAT(parsed_path("/dbs/%C3%84/colls").link_candidates, ElementsAre("dbs/Ä", "dbs/%C3%84"));
}

TEST(ResourcePath, DecodesOnlyOnce) {
  EXPECT_THAT(parsed_path("/dbs/d/colls/c/docs/a%2520b").names, ElementsAre("d", "c", "a%20b"));
}

TEST(ResourcePath, AnEscapedSlashBelongsToTheName) {
  const ResourcePath path = parsed_path("/dbs/d/colls/c/docs/a%2Fb%2f");
  EXPECT_EQ(path.type, ResourceType::Documents);
  EXPECT_THAT(path.names, ElementsAre("d", "c", "a/b/"));
  EXPECT_EQ(refused("/dbs/d/colls/c/docs/a/b"), ErrorCode::NotFound);
}

TEST(ResourcePath, AnItemsQueryStringIsPartOfItsId) {
  const ResourcePath path = parsed_path("/dbs/d/colls/c/docs/a%20?b=1&c");
  EXPECT_THAT(path.names, ElementsAre("d", "c", "a ?b=1&c"));
  EXPECT_EQ(path.query, "b=1&c");
  EXPECT_THAT(path.link_candidates,
              ElementsAre("dbs/d/colls/c/docs/a ", "dbs/d/colls/c/docs/a%20",
                          "dbs/d/colls/c/docs/a ?b=1&c", "dbs/d/colls/c/docs/a%20?b=1&c"));
  EXPECT_THAT(parsed_path("/dbs/d/colls/c/docs/a?").names, ElementsAre("d", "c", "a?"));
  EXPECT_THAT(parsed_path("/dbs/d/colls/c/docs/a?b?c").names, ElementsAre("d", "c", "a?b?c"));
  EXPECT_THAT(parsed_path("/dbs/d/colls/c/docs/a/?b").names, ElementsAre("d", "c", "a?b"));
}

TEST(ResourcePath, OtherQueryStringsAreSplitOff) {
  const ResourcePath path = parsed_path("/dbs/d/colls/c/docs?x=%zz");
  EXPECT_TRUE(path.is_feed);
  EXPECT_EQ(path.query, "x=%zz");
  EXPECT_THAT(path.names, ElementsAre("d", "c"));
  EXPECT_THAT(parsed_path("/dbs/d/colls/c/sprocs/s?x").names, ElementsAre("d", "c", "s"));
  EXPECT_THAT(parsed_path("/dbs/d/colls/c/sprocs/s?x").link_candidates,
              ElementsAre("dbs/d/colls/c/sprocs/s"));
}

TEST(ResourcePath, MayBeBasedOnRids) {
  EXPECT_EQ(parsed_path("/dbs/KxEAAA==").rid_link, "KxEAAA==");
  EXPECT_EQ(parsed_path("/dbs/KxEAAA==/colls/").rid_link, "KxEAAA==");
  EXPECT_EQ(parsed_path("/dbs/KxEAAA==/colls/KxEAAJE-AgA=/").rid_link, "KxEAAJE-AgA=");
  EXPECT_EQ(parsed_path("//dbs/KxEAAA==/colls/KxEAAJE-AgA=/pkranges").rid_link, "KxEAAJE-AgA=");
  EXPECT_EQ(parsed_path("/dbs/KxEAAA==/colls/KxEAAJE-AgA=/docs/KxEAAJE-AgABAAAAAAAAAA==/").rid_link,
            "KxEAAJE-AgABAAAAAAAAAA==");
  EXPECT_EQ(parsed_path("/dbs/KxEAAA%3D%3D/colls/KxEAAJE-AgA%3d").rid_link, "KxEAAJE-AgA=");
  EXPECT_THAT(parsed_path("/dbs/KxEAAA==/colls/KxEAAJE-AgA=/").link_candidates,
              ElementsAre("dbs/KxEAAA==/colls/KxEAAJE-AgA="));
}

TEST(ResourcePath, NamesThatOnlyResembleRidsAreNames) {
  for (const char* target : {"/dbs", "/dbs/12345678", "/dbs/KxEAAA=", "/dbs/KxEAAAA=",
                             "/dbs/KxEAAAA==", "/dbs/Kx_AAA==", "/dbs/KxEA===="}) {
    EXPECT_EQ(parsed_path(target).rid_link, std::nullopt) << target;
  }
}

TEST(ResourcePath, OffersAndMediaAreAddressedByRid) {
  const ResourcePath offer = parsed_path("/offers/WLaE/");
  EXPECT_EQ(offer.type, ResourceType::Offers);
  EXPECT_FALSE(offer.is_feed);
  EXPECT_THAT(offer.names, ElementsAre("WLaE"));
  EXPECT_EQ(offer.rid_link, "WLaE");

  // The attachment's 20 bytes and one of the storage index.
  const ResourcePath media = parsed_path("//media/KxEAAJE-AgABAAAAAAAAAFoBAgMB");
  EXPECT_EQ(media.type, ResourceType::Media);
  EXPECT_FALSE(media.is_feed);
  EXPECT_THAT(media.names, ElementsAre("KxEAAJE-AgABAAAAAAAAAFoBAgMB"));
  EXPECT_EQ(media.rid_link, "KxEAAJE-AgABAAAAAAAAAFoBAgM=");
  EXPECT_EQ(parsed_path("/media/KxEAAJE-AgABAAAAAAAAAFoBAgM=").rid_link,
            "KxEAAJE-AgABAAAAAAAAAFoBAgM=");
  EXPECT_EQ(parsed_path("/media/what").rid_link, "what");
}

TEST(ResourcePath, OrreryHasRoutesOfItsOwn) {
  for (const char* target : {"/_health", "/_ready", "/_metrics", "/_explorer", "/_explorer/",
                             "/_explorer/js/app.js?v=1"}) {
    const ResourcePath path = parsed_path(target);
    EXPECT_EQ(path.type, ResourceType::Own) << target;
    EXPECT_THAT(path.names, IsEmpty());
    EXPECT_EQ(path.rid_link, std::nullopt);
  }
  EXPECT_EQ(parsed_path("//_health/").text, "_health");
  EXPECT_EQ(parsed_path("/_explorer/a%20b/c").text, "_explorer/a b/c");
  EXPECT_EQ(parsed_path("/_explorer/a/b/c/d/e/f/g/h/i/j").text, "_explorer/a/b/c/d/e/f/g/h/i/j");
}

TEST(ResourcePath, TheExplorerDoesNotLeadOutOfItsDirectory) {
  for (const char* target : {"/_explorer/../etc/passwd", "/_explorer/%2e%2e/x", "/_explorer/..%2fx",
                             "/_explorer/a/./b", "/_explorer/a%5Cb", "/_explorer/a%00"}) {
    EXPECT_EQ(refused(target), ErrorCode::NotFound) << target;
  }
}

TEST(ResourcePath, UnknownRoutesAreNotFound) {
  for (const char* target : {"/x",
                             "/DBS",
                             "/Dbs/d",
                             "/dbs/d/docs",
                             "/dbs/d/colls/c/x",
                             "/dbs/d/colls/c/Docs",
                             "/dbs/d/colls/c/operations",
                             "/dbs/d/colls/c/operations/x",
                             "/dbs/d/colls/c/operations/partitionkeydelete/x",
                             "/dbs/d/colls/c/docs/x/y",
                             "/dbs/d/colls/c/docs/x/attachments/a/b",
                             "/dbs/d/colls/c/sprocs/s/attachments",
                             "/dbs/d/users/u/docs",
                             "/media",
                             "/media/a/b",
                             "/offers/a/b",
                             "/addresses/x",
                             "/colls",
                             "/_unknown",
                             "/_health/x",
                             "*",
                             "/dbs%2Fd"}) {
    EXPECT_EQ(refused(target), ErrorCode::NotFound) << target;
  }
}

TEST(ResourcePath, BrokenEscapesAreBadRequests) {
  for (const char* target :
       {"/dbs/%", "/dbs/%4", "/dbs/a%zz", "/dbs/%C3", "/dbs/%FF/colls", "/dbs/%C3/colls/%84",
        "/dbs/%ED%A0%80", "/dbs/\xFF", "/dbs/%+1", "/dbs/d/colls/c/docs/a?\xFF"}) {
    EXPECT_EQ(refused(target), ErrorCode::BadRequest) << target;
  }
}

TEST(PercentEncoding, DecodesBytesAndLeavesThePlus) {
  EXPECT_EQ(percent_decode("a%2Bb+c%3d").value(), "a+b+c=");
  EXPECT_EQ(percent_decode("%00%ff").value(), std::string("\0\xFF", 2));
  EXPECT_FALSE(percent_decode("%").has_value());
  EXPECT_FALSE(percent_decode("abc%1").has_value());
}

TEST(PercentEncoding, IsAsciiAndReversible) {
  EXPECT_EQ(percent_encode_path("dbs/d/colls/c"), "dbs/d/colls/c");
  EXPECT_EQ(percent_encode_path("dbs/Ä b+%"), "dbs/%C3%84%20b%2B%25");
  EXPECT_EQ(percent_decode(percent_encode_path("dbs/Ä b+%")).value(), "dbs/Ä b+%");
  EXPECT_EQ(percent_encode_path("-._~"), "-._~");
}

}  // namespace
}  // namespace orrery
