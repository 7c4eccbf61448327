#include "json/document_text.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::json {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DocumentText parse(std::string_view body, std::vector<MemberPath> wanted = {}) {
  auto result = DocumentText::parse(body, wanted);
  EXPECT_TRUE(result.has_value()) << body << ": " << result.error().message();
  return result ? *std::move(result) : *DocumentText::parse("{}");
}

std::string refusal(std::string_view body) {
  const auto result = DocumentText::parse(body);
  if (result) return "accepted";
  EXPECT_EQ(result.error().code(), ErrorCode::BadRequest);
  return result.error().message();
}

std::string open_text(std::string_view body) { return std::string(parse(body).open_text()); }

std::vector<std::string> leaves(const DocumentText& document) {
  std::vector<std::string> result;
  document.for_each_leaf([&](std::span<const std::string_view> path) {
    std::string text;
    for (const std::string_view name : path) text.append("/").append(name);
    result.push_back(text);
  });
  return result;
}

std::string nested(std::size_t levels, std::string_view core) {
  std::string text = R"({"a":)";
  for (std::size_t i = 1; i < levels; ++i) text += i % 2 == 0 ? "[" : R"({"x":)";
  text += core;
  for (std::size_t i = levels; i-- > 1;) text += i % 2 == 0 ? "]" : "}";
  return text + "}";
}

TEST(DocumentTextTest, TheBytesAreKept) {
  EXPECT_EQ(open_text(R"({"id":"a","n":1E5,"z":-0,"s":"\u00e9é","f":1.10})"),
            R"({"id":"a","n":1E5,"z":-0,"s":"\u00e9é","f":1.10)");
  EXPECT_EQ(open_text("{ \"a\" : [ 1 , 2 ] ,\n\"b\":{} }"), "{ \"a\" : [ 1 , 2 ] ,\n\"b\":{}");
}

TEST(DocumentTextTest, WhiteSpaceAroundTheObjectAndBeforeItsEndIsTrimmed) {
  EXPECT_EQ(open_text(" \r\n\t{ \"a\":1 \n} \t"), "{ \"a\":1");
  EXPECT_EQ(open_text("{}"), "{");
  EXPECT_EQ(open_text(" { } "), "{");
  EXPECT_FALSE(parse("{ }").has_members());
  EXPECT_TRUE(parse(R"({"":0})").has_members());
}

TEST(DocumentTextTest, BrokenBodiesAreRefusedWithAReason) {
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal("  "), HasSubstr("empty"));
  EXPECT_THAT(refusal("[{}]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("\"{}\""), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("null"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("\xEF\xBB\xBF{}"), HasSubstr("byte order mark"));
  EXPECT_THAT(refusal("{\"a\":\"\xFF\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal("{\"a\":\"\xED\xA0\x80\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal("{\"a\":\"x\ny\"}"), HasSubstr("at byte 7"));
  EXPECT_THAT(refusal(R"({"a":"x)"), HasSubstr("closing quote"));
  EXPECT_THAT(refusal(R"({"a":"\x"})"), HasSubstr("escape"));
  EXPECT_THAT(refusal(R"({"a":"\ud800"})"), HasSubstr("escape")) << "half a surrogate pair";
  for (const char* body :
       {"{", "}", R"({"a")", R"({"a":})", R"({"a":1,})", R"({,"a":1})", R"({a:1})", R"({"a":1}{})",
        R"({"a":1}x)", R"({"a":[1,]})", R"({"a":tru})", R"({"a":nul})", R"({"a":'b'})"}) {
    EXPECT_NE(refusal(body), "accepted") << body;
  }
  EXPECT_NE(refusal(std::string_view("{\"a\":1}\0", 8)), "accepted");
}

TEST(DocumentTextTest, IntegersBeyond64BitsAreAccepted) {
  for (const char* number : {"9223372036854775808", "-9223372036854775809", "18446744073709551616",
                             "123456789012345678901234567890"}) {
    const std::string body =
        R"({"s":"12345678901234567890123 \" ","n":)" + std::string(number) + "}";
    const auto document = parse(body, {{"n"}});
    EXPECT_EQ(document.open_text(), body.substr(0, body.size() - 1));
    EXPECT_EQ(std::get<double>(document.wanted(0)), std::stod(number));
    EXPECT_THAT(leaves(document), ElementsAre("/s", "/n"));
  }
}

TEST(DocumentTextTest, ANumberThatNoDoubleHoldsIsRefused) {
  EXPECT_THAT(refusal(R"({"s":"1e999","n":1e400})"),
              HasSubstr("1e400, at byte 17, that no double"));
  EXPECT_THAT(refusal(R"({"n":[1,-1e999]})"), HasSubstr("no double can hold"));
  EXPECT_THAT(refusal(R"({"n":1)" + std::string(400, '0') + "}"), HasSubstr("no double can hold"));
  EXPECT_EQ(refusal(R"({"n":1e-400,"m":0.)" + std::string(500, '0') + "1}"), "accepted")
      << "too small is zero";
}

TEST(DocumentTextTest, NumbersThatAreNotJsonAreRefused) {
  for (const char* number : {"01", "-", "1.", ".5", "+1", "1e", "1e+", "--1", "0x10", "1_000",
                             "012345678901234567890", "NaN", "Infinity", "1.e5", "-01"}) {
    EXPECT_NE(refusal(R"({"n":)" + std::string(number) + "}"), "accepted") << number;
  }
  EXPECT_THAT(refusal(R"({"n":01})"), HasSubstr("01, at byte 5, that is not valid JSON"));
  EXPECT_THAT(refusal(R"({"n":012345678901234567890})"), HasSubstr("not valid JSON"));
}

TEST(DocumentTextTest, NestingOf128IsTheMost) {
  for (const char* core : {"1", "[]", "{}"}) {
    const std::size_t own = std::string_view(core) == "1" ? 0 : 1;
    EXPECT_EQ(refusal(nested(128 - own, core)), "accepted") << core;
    EXPECT_THAT(refusal(nested(129 - own, core)), HasSubstr("deeper than 128")) << core;
    EXPECT_THAT(refusal(nested(131, core)), HasSubstr("deeper than 128")) << core;
    EXPECT_THAT(refusal(nested(100'000, core)), HasSubstr("deeper than 128")) << core;
  }
  EXPECT_THAT(leaves(parse(nested(128, "1"))), testing::SizeIs(1));
}

TEST(DocumentTextTest, AMemberTwiceAtTheTopIsRefusedByName) {
  EXPECT_THAT(refusal(R"({"a":1,"b":2,"a":3})"), HasSubstr("'a' twice"));
  EXPECT_THAT(refusal(R"({"é":1,"\u00e9":2})"), HasSubstr("'é' twice"));
  EXPECT_THAT(refusal(R"({"_ts":1,"_ts":2})"), HasSubstr("'_ts' twice"));
  EXPECT_THAT(refusal(R"({"":1,"":2})"), HasSubstr("twice"));
  EXPECT_EQ(refusal(R"({"x":{"a":1,"a":2},"A":1,"a":2})"), "accepted");
}

TEST(DocumentTextTest, AMemberTwiceIsFoundAmongAnyNumber) {
  for (const int count : {1, 2, 16, 17, 127, 128, 129, 200, 1000}) {
    std::string body = "{";
    for (int i = 0; i < count; ++i) body += "\"member" + std::to_string(i) + "\":0,";
    EXPECT_EQ(refusal(body + "\"last\":0}"), "accepted") << count;
    EXPECT_THAT(refusal(body + "\"member0\":0}"), HasSubstr("'member0' twice")) << count;
  }
}

TEST(DocumentTextTest, VeryManyMembersTakeNoMoreThanTheirShare) {
  std::string body = "{";
  for (int i = 0; body.size() < 2'000'000; ++i) body += "\"" + std::to_string(i) + "\":0,";
  body += "\"end\":0}";
  EXPECT_EQ(refusal(body), "accepted");
}

// ── System members ───────────────────────────────────────────────────────────────────────────────

TEST(DocumentTextTest, SystemMembersAreTakenOutWhereverTheyStand) {
  EXPECT_EQ(open_text(R"({"_rid":"r","id":"a","b":1})"), R"({"id":"a","b":1)");
  EXPECT_EQ(open_text(R"({"id":"a","_self":"s","b":1})"), R"({"id":"a","b":1)");
  EXPECT_EQ(open_text(R"({"id":"a","b":1,"_ts":5})"), R"({"id":"a","b":1)");
  EXPECT_EQ(open_text(R"({"_ts":5})"), "{");
  EXPECT_EQ(open_text(R"({ "_ts" : 5 , "_lsn" : 6 })"), "{");
  EXPECT_EQ(
      open_text(R"({"_etag":"\"}{,\"","_attachments":"x","id":"a","_lsn":[{"a":","}],"c":"]"})"),
      R"({"id":"a","c":"]")");
  EXPECT_EQ(open_text(R"({"\u005frid":1,"id":"a","_\u0074s":2})"), R"({"id":"a")");
  EXPECT_EQ(open_text("{ \"_rid\":1 ,\n \"id\" : \"a\" , \"_ts\":2 ,\"b\":[ ] }"),
            "{\n \"id\" : \"a\" ,\"b\":[ ]");
}

TEST(DocumentTextTest, OtherMembersWithAnUnderscoreStay) {
  const char* body = R"({"_id":1,"_rid2":2,"_TS":3,"x":{"_rid":4},"_partitionKey":"k")";
  EXPECT_EQ(open_text(std::string(body) + "}"), body);
}

TEST(DocumentTextTest, AStringThatEndsInABackslashDoesNotHideItsQuote) {
  EXPECT_EQ(open_text(R"({"a":"\\","_ts":1,"b":"\\\"","_rid":"\\\\"})"), R"({"a":"\\","b":"\\\"")");
}

TEST(DocumentTextTest, SystemMembersAreNeitherCountedNorFound) {
  const auto document = parse(R"({"_rid":{"a":[1,2,3]},"x":1})", {{"_rid", "a"}, {"_rid"}, {"x"}});
  EXPECT_EQ(document.leaf_count(), 1u);
  EXPECT_THAT(leaves(document), ElementsAre("/x"));
  EXPECT_EQ(document.wanted(0), Scalar());
  EXPECT_EQ(document.wanted(1), Scalar());
  EXPECT_EQ(document.wanted(2), Scalar(1.0));
}

TEST(DocumentTextTest, WhatTheServerAddedIsTakenOutAgain) {
  for (const char* body : {"{}", R"({"id":"a","n":[1,{"x":"y"}]})"}) {
    const auto document = parse(body);
    const std::string stored = with_system_properties(
        document.open_text(), {.rid = "r==", .self = "dbs/r==/", .etag = "\"e\"", .ts = 5});
    EXPECT_EQ(parse(stored).open_text(), document.open_text());
  }
}

// ── id, ttl, wanted paths, leaves ────────────────────────────────────────────────────────────────

std::string id_refusal(std::string_view body) {
  const auto id = parse(body).id();
  if (id) return "accepted " + *id;
  EXPECT_EQ(id.error().code(), ErrorCode::BadRequest);
  return id.error().message();
}

TEST(DocumentTextTest, EveryRuleOfIdsIsNamed) {
  EXPECT_EQ(id_refusal(R"({"id":"a/b?c#d "})"), "accepted a/b?c#d ");
  EXPECT_EQ(id_refusal(R"({"id":"\u00e9"})"), "accepted é");
  EXPECT_EQ(id_refusal("{}"),
            "The input content is invalid because the required properties - 'id; ' - are missing");
  EXPECT_THAT(id_refusal(R"({"id":5})"), HasSubstr("must be a string"));
  EXPECT_THAT(id_refusal(R"({"id":null})"), HasSubstr("must be a string"));
  EXPECT_THAT(id_refusal(R"({"id":""})"), HasSubstr("empty"));
  EXPECT_THAT(id_refusal(R"({"id":"a\\b"})"), HasSubstr("backslash"));
  EXPECT_EQ(id_refusal(R"({"id":")" + std::string(1023, 'x') + R"("})"),
            "accepted " + std::string(1023, 'x'));
  EXPECT_THAT(id_refusal(R"({"id":")" + std::string(1024, 'x') + R"("})"), HasSubstr("1023 bytes"));
}

TEST(DocumentTextTest, TtlIsReadFromTheTop) {
  EXPECT_EQ(parse(R"({"x":{"ttl":5}})").ttl().kind, TtlMember::Kind::Absent);
  for (const auto& [text, seconds] : std::vector<std::pair<std::string, std::int32_t>>{
           {"-1", -1}, {"1", 1}, {"2147483647", 2147483647}, {"5.0", 5}, {"1e2", 100}}) {
    const TtlMember ttl = parse(R"({"ttl":)" + text + "}").ttl();
    EXPECT_EQ(ttl.kind, TtlMember::Kind::Valid) << text;
    EXPECT_EQ(ttl.seconds, seconds);
  }
  for (const char* text : {"0", "-2", "-10", "null", "\"5\"", "1.5", "2147483648", "true", "[5]",
                           "18446744073709551615", "99999999999999999999", "-0"}) {
    EXPECT_EQ(parse(R"({"ttl":)" + std::string(text) + "}").ttl().kind, TtlMember::Kind::Invalid)
        << text;
  }
}

TEST(DocumentTextTest, WantedScalarsAreReadOnTheWay) {
  const auto document = parse(
      R"({"s":"x\n","t":true,"n":null,"i":-3,"u":18446744073709551615,"o":{"a":{"b":"deep"}},"l":[1]})",
      {{"s"},
       {"t"},
       {"n"},
       {"i"},
       {"u"},
       {"o", "a", "b"},
       {"o", "a"},
       {"l"},
       {"none"},
       {"s", "x"}});
  EXPECT_EQ(document.wanted(0), Scalar("x\n"));
  EXPECT_EQ(document.wanted(1), Scalar(true));
  EXPECT_EQ(document.wanted(2), Scalar(NullValue{}));
  EXPECT_EQ(document.wanted(3), Scalar(-3.0));
  EXPECT_EQ(document.wanted(4), Scalar(18446744073709551616.0));
  EXPECT_EQ(document.wanted(5), Scalar("deep"));
  for (std::size_t i = 6; i < 10; ++i) EXPECT_EQ(document.wanted(i), Scalar()) << i;
}

TEST(DocumentTextTest, ADocumentOutlivesTheNextParse) {
  const auto first =
      parse(R"({"id":"first","pk":"a long partition key value, not stored inline"})", {{"pk"}});
  const auto second = parse(R"({"id":"second","pk":"b"})", {{"pk"}});
  EXPECT_EQ(first.id(), "first");
  EXPECT_EQ(first.wanted(0), Scalar("a long partition key value, not stored inline"));
  EXPECT_THAT(leaves(first), ElementsAre("/id", "/pk"));
  EXPECT_EQ(second.id(), "second");
}

TEST(DocumentTextTest, LeavesAreScalarsAndEmptyContainers) {
  const auto document = parse(R"({"a":1,"b":{"c":[1,{"d":2},[]]},"e":{},"f":[[3]]})");
  EXPECT_THAT(leaves(document),
              ElementsAre("/a", "/b/c/[]", "/b/c/[]/d", "/b/c/[]", "/e", "/f/[]/[]"));
  EXPECT_EQ(document.leaf_count(), 6u);
  EXPECT_EQ(parse("{}").leaf_count(), 0u);
  EXPECT_THAT(leaves(parse("{}")), IsEmpty());
}

TEST(DocumentTextTest, AVisitorMayParse) {
  const auto document = parse(R"({"first":1,"second":2})");
  std::vector<std::string> names;
  document.for_each_leaf([&](std::span<const std::string_view> path) {
    parse(R"({"something":"else","entirely":[1,2,3]})");
    names.emplace_back(path[0]);
  });
  EXPECT_THAT(names, ElementsAre("first", "second"));
}

TEST(DocumentTextTest, LargeDocumentsAreParsedToo) {
  const std::string large(1'000'000, 'x');
  const auto document = parse(R"({"id":"a","text":")" + large + R"("})", {{"text"}});
  EXPECT_EQ(std::get<std::string>(document.wanted(0)).size(), large.size());
  EXPECT_EQ(parse(R"({"id":"b"})").id(), "b");
}

// ── Writing ──────────────────────────────────────────────────────────────────────────────────────

TEST(SystemPropertiesTest, TheyFollowInTheirOrder) {
  const SystemProperties properties{.rid = "KxEAAJE-AgABAAAAAAAAAA==",
                                    .self = "dbs/KxEAAA==/",
                                    .etag = "\"0000a100-0000\"",
                                    .ts = 1743508800};
  const std::string tail =
      R"("_rid":"KxEAAJE-AgABAAAAAAAAAA==","_self":"dbs/KxEAAA==/",)"
      R"("_etag":"\"0000a100-0000\"","_attachments":"attachments/","_ts":1743508800})";
  EXPECT_EQ(with_system_properties(R"({"id":"i1","pk":"a")", properties),
            R"({"id":"i1","pk":"a",)" + tail);
  EXPECT_EQ(with_system_properties("{", properties), "{" + tail);
}

// How a body reads that replaces a document.
std::string replaced(std::string_view body) {
  const auto document = parse(body);
  return with_system_properties(document.open_text(),
                                {.rid = "R", .self = "S/", .etag = "E", .ts = 5},
                                document.system_places());
}

TEST(SystemPropertiesTest, TheyStayWhereTheClientHadThem) {
  EXPECT_EQ(
      replaced(R"({"_rid":"r","id":"a","_self":"s","_etag":"e","_attachments":1,"b":2,"_ts":3})"),
      R"({"_rid":"R","id":"a","_self":"S/","_etag":"E","_attachments":"attachments/","b":2,"_ts":5})");
  EXPECT_EQ(
      replaced(R"({"_ts":1,"_attachments":{},"_etag":[1,"]"],"_self":null,"_rid":"\"","id":"a"})"),
      R"({"_ts":5,"_attachments":"attachments/","_etag":"E","_self":"S/","_rid":"R","id":"a"})");
  EXPECT_EQ(
      replaced(R"({"id":"a","_ts":1,"_rid":2,"_self":3,"_etag":4,"_attachments":5})"),
      R"({"id":"a","_ts":5,"_rid":"R","_self":"S/","_etag":"E","_attachments":"attachments/"})");
}

TEST(SystemPropertiesTest, ThoseThatTheClientLeftOutFollowInTheirOrder) {
  EXPECT_EQ(
      replaced(R"({"_ts":1,"id":"a","_self":2,"b":3})"),
      R"({"_ts":5,"id":"a","_self":"S/","b":3,"_rid":"R","_etag":"E","_attachments":"attachments/"})");
  EXPECT_EQ(replaced(R"({"_ts":1})"),
            R"({"_ts":5,"_rid":"R","_self":"S/","_etag":"E","_attachments":"attachments/"})");
  EXPECT_EQ(replaced("{}"),
            R"({"_rid":"R","_self":"S/","_etag":"E","_attachments":"attachments/","_ts":5})");
}

TEST(SystemPropertiesTest, TheLsnOfAFeedHasNoPlace) {
  EXPECT_EQ(
      replaced(R"({"_lsn":7,"_ts":1,"id":"a","_lsn2":8})"),
      R"({"_ts":5,"id":"a","_lsn2":8,"_rid":"R","_self":"S/","_etag":"E","_attachments":"attachments/"})");
  EXPECT_EQ(
      replaced(R"({"_rid":1,"_self":2,"_etag":3,"_attachments":4,"_ts":5,"_lsn":6,"id":"a"})"),
      R"({"_rid":"R","_self":"S/","_etag":"E","_attachments":"attachments/","_ts":5,"id":"a"})");
}

TEST(SystemPropertiesTest, WhiteSpaceOfTheOthersStays) {
  EXPECT_EQ(replaced("{ \"id\" : \"a\" ,\n \"_ts\" : 1 ,\n \"b\" : [ 1 , 2 ] , \"_rid\" : 2 }"),
            "{ \"id\" : \"a\" ,\"_ts\":5,\n \"b\" : [ 1 , 2 ],\"_rid\":\"R\",\"_self\":\"S/\","
            "\"_etag\":\"E\",\"_attachments\":\"attachments/\"}");
  EXPECT_EQ(
      replaced("{ \"_rid\" : 1 , \"id\":\"a\" }"),
      R"({"_rid":"R", "id":"a","_self":"S/","_etag":"E","_attachments":"attachments/","_ts":5})");
}

TEST(AppendQuotedTest, EscapesWhatJsonAsksForAndKeepsTheRest) {
  std::string out = "x";
  append_quoted(out, std::string_view("a\"b\\c/é\x7F\b\f\n\r\t\x01\x1F\0z", 18));
  EXPECT_EQ(out, "x\"a\\\"b\\\\c/é\x7F\\b\\f\\n\\r\\t\\u0001\\u001f\\u0000z\"");
  out.clear();
  append_quoted(out, "");
  EXPECT_EQ(out, "\"\"");
}

}  // namespace
}  // namespace orrery::json
