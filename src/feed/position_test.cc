#include "feed/position.h"

#include <gtest/gtest.h>

namespace orrery::feed {
namespace {

std::string refusal(std::string_view header) {
  const auto start = parse_start(header);
  return start ? "accepted" : start.error().message();
}

TEST(Start, ReadsAnEtagInEveryFormThatClientsSend) {
  for (const char* form : {"12", "\"12\"", "W/\"12\"", "  \"12\" ", "012"}) {
    const auto start = parse_start(form);
    ASSERT_TRUE(start.has_value()) << form;
    EXPECT_EQ(start->kind, Start::Kind::After) << form;
    EXPECT_EQ(start->after, Lsn{12}) << form;
  }
  for (const char* form : {"*", "\"*\"", " * "}) {
    const auto start = parse_start(form);
    ASSERT_TRUE(start.has_value()) << form;
    EXPECT_EQ(start->kind, Start::Kind::Now) << form;
  }
}

TEST(Start, IsNeverTakenForTheBeginningWhenItIsBroken) {
  for (const char* form :
       {"", " ", "\"\"", "\"abc\"", "abc", "-1", "\"-1\"", "+1", "1.0", "\"12", "12\"", "W/12",
        "0x12", "1 2", "9223372036854775808", "\"0000d986-0000-0000-0000-580ac4ea0000\"",
        "\"12\", \"13\"", "\"c:=12\"", "**"}) {
    EXPECT_TRUE(refusal(form).starts_with("Change feed token format is invalid")) << form;
  }
  EXPECT_EQ(parse_start("9223372036854775807")->after, Lsn{INT64_MAX});
}

TEST(Start, AnEtagIsDigitsInQuotes) { EXPECT_EQ(feed_etag(Lsn{28535}), "\"28535\""); }

TEST(Start, TheEtagOfATombstoneReaderSaysWhenItBegan) {
  const auto start = parse_start(tombstone_etag(Lsn{50}, Lsn{1234}));
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->after, Lsn{50});
  EXPECT_EQ(start->began_at, Lsn{1234});
  EXPECT_FALSE(parse_start("\"00000000000000000005012x\""));
}

TEST(ContainerPosition, IsReadAndWritten) {
  const auto position = ContainerPosition::parse("\"c:=12;1F=7;2A00=9\"");
  ASSERT_TRUE(position.has_value());
  EXPECT_EQ(position->etag(), "\"c:=12;1F=7;2A00=9\"");
  EXPECT_EQ(ContainerPosition().etag(), "\"c:=0\"");
  const auto of_tombstones = ContainerPosition::parse("\"c:=12@40;1F=7\"");
  ASSERT_TRUE(of_tombstones.has_value());
  EXPECT_EQ(of_tombstones->parts()[0].began_at, Lsn{40});
  EXPECT_EQ(of_tombstones->parts()[1].began_at, std::nullopt);
  EXPECT_EQ(of_tombstones->etag(), "\"c:=12@40;1F=7\"");
  for (const char* form : {"\"12\"", "12", "\"c:\"", "\"c:1F=7\"", "\"c:=1;1F\"", "\"c:=1;1F=x\"",
                           "\"c:=1;2F=1;1F=1\"", "\"c:=1@\"", "\"c:=1@x\"", "\"c:=@1\"",
                           "\"c:=1;=2\"", "\"c:=1;G0=2\"", "\"c:=-1\""}) {
    EXPECT_FALSE(ContainerPosition::parse(form)) << form;
  }
}

TEST(ContainerPosition, AnEntryReachesToTheNextOne) {
  const auto position = ContainerPosition::parse("\"c:=12;1F=7\"");
  const auto epk = [](const char* hex) { return *Epk::from_hex(hex); };
  // A child takes the entry that covers it, a merged range one for each former parent.
  using Parts = std::vector<ContainerPosition::ReadRange>;
  EXPECT_EQ(position->within({epk("0F"), epk("1F")}), (Parts{{{epk("0F"), epk("1F")}, Lsn{12}}}));
  EXPECT_EQ(position->within({epk(""), epk("FF")}),
            (Parts{{{epk(""), epk("1F")}, Lsn{12}}, {{epk("1F"), epk("FF")}, Lsn{7}}}));
}

}  // namespace
}  // namespace orrery::feed
