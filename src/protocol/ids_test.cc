#include "protocol/ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr RidPart kDatabase = {0x2B, 0x11, 0x00, 0x00};
constexpr RidPart kContainer = {0x91, 0x3F, 0x02, 0x00};

Rid container() { return Rid::container(kDatabase, kContainer); }

TEST(Rid, HasTheLayoutThatClientsParse) {
  EXPECT_EQ(Rid::database(kDatabase).text(), "KxEAAA==");
  EXPECT_EQ(container().text(), "KxEAAJE-AgA=");
  EXPECT_EQ(Rid::document(container(), DocumentNumber{1}).text(), "KxEAAJE-AgABAAAAAAAAAA==");
  EXPECT_EQ(Rid::range(container(), RangeId{0}).text(), "KxEAAJE-AgACAAAAAAAAUA==");
  EXPECT_EQ(Rid::range(container(), RangeId{1}).text(), "KxEAAJE-AgADAAAAAAAAUA==");
  EXPECT_EQ(Rid::offer(0x58B684).text(), "WLaE");
  EXPECT_EQ(Rid::encryption_key(Rid::database(kDatabase), 0x07000000).text(),
            "KxEAAAAAAAAHAAAAAgAAAA==");
  EXPECT_LT(Rid::encryption_key(Rid::database(kDatabase), 255),
            Rid::encryption_key(Rid::database(kDatabase), 256));
}

TEST(Rid, TellsTheKindFromTheBytes) {
  const std::pair<const char*, RidKind> examples[] = {
      {"WLaE", RidKind::Offer},
      {"KxEAAA==", RidKind::Database},
      {"KxEAAJE-AgA=", RidKind::Container},
      {"KxEAABE-AgA=", RidKind::User},
      {"KxEAABE-AgAHAAAAAAAAAA==", RidKind::Permission},
      {"KxEAAAAAAAAHAAAAAgAAAA==", RidKind::EncryptionKey},
      {"KxEAAJE-AgABAAAAAAAAAA==", RidKind::Document},
      {"KxEAAJE-AgABAAAAAAAAQA==", RidKind::Conflict},
      {"KxEAAJE-AgACAAAAAAAAUA==", RidKind::Range},
      {"KxEAAJE-AgABAAAAAAAAYA==", RidKind::Udf},
      {"KxEAAJE-AgABAAAAAAAAcA==", RidKind::Trigger},
      {"KxEAAJE-AgABAAAAAAAAgA==", RidKind::Procedure},
      {"KxEAAJE-AgABAAAAAAAAAFoBAgM=", RidKind::Attachment},
  };
  for (const auto& [text, kind] : examples) {
    const auto rid = Rid::parse(text);
    ASSERT_TRUE(rid.has_value()) << text;
    EXPECT_EQ(rid->kind(), kind) << text;
    EXPECT_EQ(rid->text(), text);
    EXPECT_EQ(Rid::from_bytes(rid->bytes()), rid);
  }
}

TEST(Rid, GivesItsPartsBack) {
  const auto number = DocumentNumber::make(RangeId{3}, 7);
  const Rid rid = Rid::document(container(), number);
  EXPECT_EQ(rid.counter(), number.value);
  EXPECT_EQ(rid.counter(), (std::uint64_t{3} << 40) + 7);
  EXPECT_EQ(rid.database_part(), kDatabase);
  EXPECT_EQ(rid.container_part(), kContainer);
  EXPECT_EQ(rid.database_rid(), Rid::database(kDatabase));
  EXPECT_EQ(rid.container_rid(), container());
}

TEST(Rid, CountsUpToSixtyBitsWithoutTouchingTheType) {
  const auto number = DocumentNumber::make(RangeId{kRangeIdMax}, kDocumentSequenceMax);
  const Rid rid = Rid::document(container(), number);
  EXPECT_EQ(rid.kind(), RidKind::Document);
  EXPECT_EQ(rid.counter(), (std::uint64_t{1} << 60) - 1);
  EXPECT_EQ(Rid::parse(rid.text()), rid);
}

TEST(Rid, DocumentsOfAChildRangeFollowThoseOfItsParents) {
  EXPECT_LT(DocumentNumber::make(RangeId{0}, kDocumentSequenceMax),
            DocumentNumber::make(RangeId{1}, 1));
}

TEST(Rid, RefusesWhatClientsWouldRefuse) {
  const char* const broken[] = {
      "",
      "ToDo1",                             // not a multiple of four
      "KxEAAA",                            // padding is missing
      "KxEAAA=",                           //
      "KxEAAA===",                         //
      "KxEAAB==",                          // bits left over
      "KxE/AA==",                          // '/' is written '-'
      "KxE_AA==",                          //
      "Kx==AA==",                          // padding inside
      "AAAA",                              // an offer of zeros
      "AAAAAA==",                          // a database of zeros
      "KxEAAAAAAAA=",                      // a user of zeros
      "AAAAAJE-AgA=",                      // in a database of zeros
      "KxEAAJE-AgAAAAAAAAAAAA==",          // document 0
      "KxEAABE-AgAAAAAAAAAAAA==",          // permission 0
      "KxEAAAAAAAAAAAAAAgAAAA==",          // encryption key 0
      "KxEAAAAAAAAHAAAAAQAAAA==",          // a type of another age
      "KxEAAAAAAAAHAAAAAgAAAAEAAAA=",      // something in an encryption key
      "KxEAAJE-AgABAAAAAAAAEA==",          // type 1
      "KxEAAJE-AgABAAAAAAAAkA==",          // a schema
      "KxEAAJE-AgABAAAAAAAA8A==",          // type 15
      "KxEAAJE-AgABAAAAAAAAAAAAAAA=",      // attachment 0
      "KxEAAJE-AgABAAAAAAAAgFoBAgM=",      // an attachment of a stored procedure
      "KxEAABE-AgAHAAAAAAAAAFoBAgM=",      // an attachment of a permission
      "KxEAAAA=",                          // 5 bytes
      "KxEAAJE-AgABAAAA",                  // 12 bytes
      "KxEAAJE-AgABAAAAAAAAAFoBAgNaAQID",  // 24 bytes
  };
  for (const char* text : broken) EXPECT_EQ(Rid::parse(text), std::nullopt) << text;
  EXPECT_EQ(Rid::from_bytes("12345"), std::nullopt);
  EXPECT_EQ(Rid::from_bytes(std::string(21, '\x01')), std::nullopt);
}

TEST(ETag, IsShapedLikeAGuidWithQuotes) {
  const ETag etag(Lsn{0x2A}, 0x67EBD3C0);
  EXPECT_EQ(etag.text(), "\"0000002a-0000-0000-0000-67ebd3c00000\"");
  EXPECT_EQ(ETag(Lsn{0x0123456789ABCDEF}, 1).text(), "\"89abcdef-4567-0123-0000-000000010000\"");
}

TEST(ETag, ChangesWithEveryWrite) {
  EXPECT_FALSE(ETag(Lsn{1}, 5) == ETag(Lsn{2}, 5));
  EXPECT_FALSE(ETag(Lsn{1}, 5) == ETag(Lsn{1}, 6));
  EXPECT_TRUE(ETag(Lsn{1}, 5) == ETag(Lsn{1}, 5));
}

TEST(ETag, MatchesItselfWithOrWithoutQuotesAndTheStar) {
  const ETag etag(Lsn{0x2A}, 0x67EBD3C0);
  EXPECT_TRUE(etag.matches("\"0000002a-0000-0000-0000-67ebd3c00000\""));
  EXPECT_TRUE(etag.matches("0000002a-0000-0000-0000-67ebd3c00000"));
  EXPECT_TRUE(etag.matches("*"));
  EXPECT_FALSE(etag.matches(""));
  EXPECT_FALSE(etag.matches("\"*\""));
  EXPECT_FALSE(etag.matches("\"0000002a-0000-0000-0000-67ebd3c00000"));
  EXPECT_FALSE(etag.matches("\"0000002b-0000-0000-0000-67ebd3c00000\""));
  EXPECT_FALSE(etag.matches("\"0000002A-0000-0000-0000-67EBD3C00000\""));
}

}  // namespace
}  // namespace orrery
