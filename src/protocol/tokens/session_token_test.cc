#include "protocol/tokens/session_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SessionEntry entry(std::uint32_t range, std::uint64_t lsn, std::int64_t version = -1) {
  return {RangeId{range}, Lsn{lsn}, version};
}

std::string written(SessionTokenForm form, std::uint32_t range, std::uint64_t lsn,
                    std::int64_t version = -1) {
  std::string out;
  append_session_entry(out, form, version, RangeId{range}, Lsn{lsn});
  return out;
}

TEST(SessionTokenForm, IsSimpleOnlyBeforeJune2018) {
  EXPECT_EQ(session_token_form("2015-12-16"), SessionTokenForm::Simple);
  EXPECT_EQ(session_token_form("2017-11-15"), SessionTokenForm::Simple);
  EXPECT_EQ(session_token_form("2018-06-17"), SessionTokenForm::Simple);
  EXPECT_EQ(session_token_form("2018-06-18"), SessionTokenForm::Vector);
  EXPECT_EQ(session_token_form("2018-09-17"), SessionTokenForm::Vector);
  EXPECT_EQ(session_token_form("2020-07-15"), SessionTokenForm::Vector);
  EXPECT_EQ(session_token_form(""), SessionTokenForm::Vector);
}

TEST(SessionToken, IsWrittenInTheFormOfTheVersion) {
  EXPECT_EQ(written(SessionTokenForm::Simple, 0, 42), "0:42");
  EXPECT_EQ(written(SessionTokenForm::Vector, 0, 42), "0:-1#42");
  EXPECT_EQ(written(SessionTokenForm::Vector, 4294967295, 18446744073709551615u),
            "4294967295:-1#18446744073709551615");
  EXPECT_EQ(written(SessionTokenForm::Vector, 7, 42, 6'442'450'945), "7:6442450945#42");
  EXPECT_EQ(written(SessionTokenForm::Simple, 7, 42, 6'442'450'945), "7:42");
  EXPECT_EQ(written(SessionTokenForm::Vector, 4294967295, 18446744073709551615u, INT64_MIN),
            "4294967295:-9223372036854775808#18446744073709551615");
}

TEST(SessionToken, TheVersionTellsContainersAndLivesApartAndRisesWithTheLife) {
  const Rid one = Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1});
  const Rid other = Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 2});
  const Rid last = Rid::container({0, 0, 0, 1}, {0xFF, 0xFF, 0xFF, 0xFF});
  EXPECT_EQ(session_version(1, one), 0x1'8000'0001);
  EXPECT_NE(session_version(1, one), session_version(1, other));
  EXPECT_GT(session_version(2, one), session_version(1, last));
  EXPECT_LT(session_version((1 << 21) - 1, last), std::int64_t{1} << 53);
}

TEST(SessionToken, IsReadInBothForms) {
  EXPECT_THAT(*parse_session_token("0:42"), ElementsAre(entry(0, 42)));
  EXPECT_THAT(*parse_session_token("0:-1#42"), ElementsAre(entry(0, 42)));
  EXPECT_THAT(*parse_session_token("3:7#42#1=40#2=41"), ElementsAre(entry(3, 42, 7)));
  EXPECT_THAT(*parse_session_token("0:42,1:-1#7, 2:9"),
              ElementsAre(entry(0, 42), entry(1, 7), entry(2, 9)));
}

TEST(SessionToken, EmptyIsNone) {
  EXPECT_THAT(*parse_session_token(""), IsEmpty());
  EXPECT_THAT(*parse_session_token("  "), IsEmpty());
}

TEST(SessionToken, SkipsRangesThatCannotBeOurs) {
  EXPECT_THAT(*parse_session_token("M:42,1:7"), ElementsAre(entry(1, 7)));
  EXPECT_THAT(*parse_session_token("99999999999:42,-1:3"), IsEmpty());
}

TEST(SessionToken, ANegativePositionAsksForNothing) {
  EXPECT_THAT(*parse_session_token("0:-1"), ElementsAre(entry(0, 0)));
}

TEST(SessionToken, RefusesWhatDoesNotHaveTheShape) {
  for (const char* header : {"42",
                             "0:",
                             ":42",
                             "0:x",
                             "0:4x",
                             "0:42,",
                             ",0:42",
                             "0:42,,1:3",
                             "0:-1#",
                             "0:#42",
                             "0:1#2#",
                             "0:1#2#3",
                             "0:1#2#3=",
                             "0:1#2#=3",
                             "0:1#2#a=3",
                             "0:1#2#3=4=5",
                             "0:+42",
                             "0: 42",
                             "0:99999999999999999999",
                             "M:x",
                             "0:0x2A",
                             ","}) {
    const auto result = parse_session_token(header);
    ASSERT_FALSE(result.has_value()) << header;
    EXPECT_EQ(result.error().code(), ErrorCode::BadRequest);
  }
}

}  // namespace
}  // namespace orrery
