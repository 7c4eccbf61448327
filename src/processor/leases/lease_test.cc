#include "processor/leases/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/value.h"
#include "processor/leases/lease_java.h"
#include "protocol/base64.h"

namespace orrery::processor {
namespace {

using ::testing::HasSubstr;

StoredDocument document(std::string text, std::string id = "P..0") {
  return {std::move(id), std::move(text), "\"e1\"", 1'714'731'072, 0};
}

Lease parsed(std::string text) {
  auto lease = parse_lease(document(std::move(text)));
  EXPECT_TRUE(lease.has_value()) << (lease ? "" : lease.error().message());
  return lease ? *lease : Lease{};
}

std::string lease_refusal(std::string text) {
  const auto lease = parse_lease(document(std::move(text)));
  EXPECT_FALSE(lease.has_value());
  return lease ? "" : lease.error().message();
}

const std::string kNet2 =
    R"({ "id":"P..0", "_etag":"\"e\"", "PartitionId":"0", "Owner":"host1", "ContinuationToken":"\"28535\"",
  "properties":{}, "timestamp":"2018-05-03T10:11:12.1234567Z", "_ts":1525342272 })";
const std::string kNet3 =
    R"({ "id":"P..0", "version":0, "_etag":"\"e\"", "LeaseToken":"0",
  "FeedRange":{ "Range":{ "min":"", "max":"FF" } },
  "Owner":"host1", "ContinuationToken":"\"28535\"", "properties":{},
  "timestamp":"2024-05-03T10:11:12.1234567Z", "_ts":1714731072, "Mode":"Incremental Feed" })";
const std::string kNet3Epk =
    R"({ "id":"P..-1FFF", "version":1, "LeaseToken":"-1FFF",
  "FeedRange":{ "Range":{ "min":"", "max":"1FFF" } },
  "Owner":null, "ContinuationToken":"\"7\"", "properties":{"a":"b"}, "timestamp":null,
  "Mode":"Full-Fidelity Feed" })";
const std::string kJavaPk =
    R"({ "id":"P'..0", "_etag":"e", "LeaseToken":"0", "ContinuationToken":"\"28535\"",
  "timestamp":"2024-05-03T10:11:12.123Z", "Owner":"host1" })";

std::string java_state(const std::string& start, const std::string& continuation,
                       const std::string& mode = "INCREMENTAL") {
  return base64_encode(R"({"V":1,"Rid":"qYcAAPEvJBQ=","Mode":")" + mode + R"(","StartFrom":)" +
                       start + continuation + "}");
}
const std::string kJavaContinuation =
    R"(,"Continuation":{"V":1,"Rid":"qYcAAPEvJBQ=","Continuation":[{"token":"\"12\"","range":{"min":"","max":"FF"}}],"Range":{"min":"","max":"FF"}})";
std::string java_epk(const std::string& token) {
  return R"({ "id":"P..-FF", "_etag":"e", "LeaseToken":"-FF", "ContinuationToken":)" + token +
         R"(, "timestamp":"2024-05-03T10:11:12.123Z", "Owner":"host1",
      "version":1, "feedRange":{ "Range":{ "min":"", "max":"FF" } }, "extra":1.50 })";
}

TEST(LeaseTest, ReadsTheLeaseOfNet2) {
  const Lease lease = parsed(kNet2);
  EXPECT_EQ(lease.format, LeaseFormat::Net2);
  EXPECT_EQ(lease.token, "0");
  EXPECT_EQ(lease.owner, "host1");
  EXPECT_EQ(lease.position, "\"28535\"");
  EXPECT_FALSE(lease.range.has_value());
  EXPECT_EQ(lease.timestamp,
            WallTime(std::chrono::seconds(1'525'342'272)) + std::chrono::nanoseconds(123'456'700));
}

TEST(LeaseTest, ReadsTheLeasesOfNet3) {
  const Lease lease = parsed(kNet3);
  EXPECT_EQ(lease.format, LeaseFormat::Net3);
  EXPECT_FALSE(lease.is_epk());
  EXPECT_EQ(lease.range, (client::FeedRange{"", "FF"}));
  EXPECT_EQ(lease.mode, client::ChangeFeedMode::LatestVersion);
  const Lease part = parsed(kNet3Epk);
  EXPECT_EQ(part.format, LeaseFormat::Net3);
  EXPECT_TRUE(part.is_epk());
  EXPECT_EQ(part.range, (client::FeedRange{"", "1FFF"}));
  EXPECT_EQ(part.owner, "");
  EXPECT_EQ(part.mode, client::ChangeFeedMode::AllVersionsAndDeletes);
  EXPECT_EQ(part.properties.at("a"), "b");
}

TEST(LeaseTest, ReadsLeasesOfAnEarlyNet3) {
  EXPECT_EQ(parsed(R"({"id":"x","LeaseToken":"3","Owner":null,"properties":{}})").format,
            LeaseFormat::Net3);
  EXPECT_EQ(parsed(R"({"id":"x","LeaseToken":"3","PartitionId":"3"})").format, LeaseFormat::Net3);
}

TEST(LeaseTest, ReadsTheLeasesOfJava) {
  const Lease by_range = parsed(kJavaPk);
  EXPECT_EQ(by_range.format, LeaseFormat::JavaPk);
  EXPECT_EQ(by_range.position, "\"28535\"");
  const Lease part =
      parsed(java_epk('"' + java_state(R"({"Type":"NOW"})", kJavaContinuation) + '"'));
  EXPECT_EQ(part.format, LeaseFormat::JavaEpk);
  EXPECT_EQ(part.position, "\"12\"");
  EXPECT_EQ(part.range, (client::FeedRange{"", "FF"}));
  EXPECT_EQ(part.container_rid, "qYcAAPEvJBQ=");
  EXPECT_EQ(part.mode, client::ChangeFeedMode::LatestVersion);
}

TEST(LeaseTest, JavaStateWithoutTokensTellsWhereItBegins) {
  EXPECT_EQ(parsed(java_epk("null")).position, std::nullopt);
  EXPECT_EQ(parsed(java_epk("null")).mode, std::nullopt);
  EXPECT_EQ(parsed(java_epk('"' + java_state(R"({"Type":"BEGINNING"})", "") + '"')).position,
            "\"0\"");
  EXPECT_EQ(
      parsed(java_epk('"' + java_state(R"({"Type":"LEASE","Etag":"\"9\""})", "") + '"')).position,
      "\"9\"");
  const Lease timed = parsed(java_epk(
      '"' + java_state(R"({"Type":"POINT_IN_TIME","PointInTimeMs":1500})", "", "FULL_FIDELITY") +
      '"'));
  EXPECT_EQ(timed.position, std::nullopt);
  EXPECT_EQ(timed.start_time, WallTime(std::chrono::milliseconds(1500)));
  EXPECT_EQ(timed.mode, client::ChangeFeedMode::AllVersionsAndDeletes);
  const std::string end_of_time =
      java_state(R"({"Type":"POINT_IN_TIME","PointInTimeMs":9223372036854775807})", "");
  EXPECT_EQ(parsed(java_epk('"' + end_of_time + '"')).start_time, std::nullopt);
}

TEST(LeaseTest, JavaStateOfSeveralRangesIsAsFarAsTheLeastOfThem) {
  const std::string two =
      R"(,"Continuation":{"Continuation":[{"token":"\"12\"","range":{"min":"","max":"1F"}},{"token":"\"9\"","range":{"min":"1F","max":"FF"}}]})";
  EXPECT_EQ(parse_java_state(java_state(R"({"Type":"NOW"})", two))->position, "\"9\"");
  const std::string half =
      R"(,"Continuation":{"Continuation":[{"token":"\"12\"","range":{"min":"","max":"1F"}},{"token":null,"range":{"min":"1F","max":"FF"}}]})";
  EXPECT_EQ(parse_java_state(java_state(R"({"Type":"NOW"})", half))->position, std::nullopt);
}

TEST(LeaseTest, JavaStateIsReadInBothAlphabetsAndWrittenPadded) {
  const std::string json = R"({"V":1,"StartFrom":{"Type":"NOW"},"x":"??>>~~"})";
  const std::string url = base64_encode(json, Base64Alphabet::Url);
  EXPECT_THAT(url, ::testing::ContainsRegex("[-_]"));
  EXPECT_EQ(parse_java_state(url)->json, json);
  EXPECT_EQ(parse_java_state(base64_encode(json))->json, json);
  EXPECT_EQ(
      write_java_state("", {}, "\"1\"", client::ChangeFeedMode::LatestVersion, "r").size() % 4, 0U);
  EXPECT_FALSE(parse_java_state("\"28535\"").has_value());
  EXPECT_FALSE(parse_java_state("").has_value());
}

TEST(LeaseTest, TheFormatOfAStoreIsThatOfItsLeases) {
  const Lease net2 = parsed(kNet2);
  const Lease net3 = parsed(kNet3);
  const Lease java = parsed(kJavaPk);
  const Lease java_part = parsed(java_epk("null"));
  EXPECT_EQ(store_format({}, LeaseFormat::Detect), LeaseFormat::Net3);
  EXPECT_EQ(store_format({}, LeaseFormat::JavaEpk), LeaseFormat::JavaEpk);
  EXPECT_EQ(store_format(std::vector{net2}, LeaseFormat::Detect), LeaseFormat::Net2);
  EXPECT_EQ(store_format(std::vector{net2, net3}, LeaseFormat::Detect), LeaseFormat::Net3);
  EXPECT_EQ(store_format(std::vector{net3, net2}, LeaseFormat::Net2), LeaseFormat::Net2);
  EXPECT_EQ(store_format(std::vector{java}, LeaseFormat::Detect), LeaseFormat::JavaPk);
  EXPECT_EQ(store_format(std::vector{java_part}, LeaseFormat::Detect), LeaseFormat::JavaEpk);
}

TEST(LeaseTest, MixedStoresAreRefused) {
  const auto mixed =
      store_format(std::vector{parsed(kNet3), parsed(java_epk("null"))}, LeaseFormat::Detect);
  ASSERT_FALSE(mixed.has_value());
  EXPECT_EQ(mixed.error().code(), ErrorCode::BadRequest);
  EXPECT_THAT(mixed.error().message(), HasSubstr("mixed"));
  EXPECT_THAT(mixed.error().message(), HasSubstr(".NET SDK v3"));
  const auto other = store_format(std::vector{parsed(kNet3)}, LeaseFormat::JavaPk);
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message(), HasSubstr("asked for"));
}

TEST(LeaseTest, LeasesOfNet1AreRefusedWithAWayOut) {
  EXPECT_THAT(lease_refusal(R"({ "id":"P..0", "state":2, "PartitionId":"0", "Owner":"host1",
      "ContinuationToken":"\"28535\"", "SequenceNumber":17, "_ts":1502791872 })"),
              HasSubstr("1.x"));
}

TEST(LeaseTest, ATokenOfJavaInAStoreOfNetIsRefused) {
  const std::string state = java_state(R"({"Type":"NOW"})", kJavaContinuation);
  const std::string message = lease_refusal(R"({"id":"P..-FF","version":1,"LeaseToken":"-FF",
      "FeedRange":{"Range":{"min":"","max":"FF"}},"ContinuationToken":")" +
                                            state + R"("})");
  EXPECT_THAT(message, HasSubstr("must not share leases"));
  EXPECT_THAT(message, HasSubstr("P..0"));
  EXPECT_THAT(lease_refusal(java_epk(R"("\"12\"")")), HasSubstr("must not share leases"));
}

TEST(LeaseTest, BrokenDocumentsAreRefused) {
  EXPECT_THAT(lease_refusal("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(lease_refusal("{"), HasSubstr("no JSON object"));
  EXPECT_THAT(lease_refusal(R"({"id":"x"})"), HasSubstr("neither LeaseToken nor PartitionId"));
  EXPECT_THAT(lease_refusal(R"({"id":"x","version":1,"LeaseToken":"0"})"), HasSubstr("min-max"));
}

TEST(LeaseTest, UnknownPropertiesAreKept) {
  const std::string text =
      R"({ "id":"P..0", "version":0,"LeaseToken":"0", "future":{"a":[1, 2.50,"\u00e9"]},
  "FeedRange":{"Range":{"min":"","max":"FF","isMaxInclusive":true}}, "Owner":"host1",
  "ContinuationToken":"\"1\"", "properties":{"x":1e3,"y":"z"}, "timestamp":null })";
  Lease lease = parsed(text);
  EXPECT_EQ(write_lease(lease), text);
  lease.owner = "host2";
  lease.position = "\"2\"";
  lease.properties["orrery.epoch"] = "5";
  lease.timestamp = WallTime(std::chrono::seconds(1'714'731'072));
  EXPECT_EQ(write_lease(lease),
            R"({"id":"P..0","version":0,"LeaseToken":"0","future":{"a":[1, 2.50,"\u00e9"]},)"
            R"("FeedRange":{"Range":{"min":"","max":"FF","isMaxInclusive":true}},"Owner":"host2",)"
            R"("ContinuationToken":"\"2\"","properties":{"x":1e3,"y":"z","orrery.epoch":"5"},)"
            R"("timestamp":"2024-05-03T10:11:12.0000000Z"})");
}

TEST(LeaseTest, PropertiesThatAreTakenAwayLeaveTheOthers) {
  Lease lease =
      parsed(R"({"id":"P..0","version":0,"LeaseToken":"0","properties":{"x":1e3,"y":"z"}})");
  lease.properties.erase("y");
  EXPECT_EQ(write_lease(lease),
            R"({"id":"P..0","version":0,"LeaseToken":"0","properties":{"x":1e3}})");
}

TEST(LeaseTest, OfAJavaStateOnlyTheTokensChange) {
  Lease lease = parsed(java_epk(
      '"' + java_state(R"({"Type":"POINT_IN_TIME","PointInTimeMs":1500})", kJavaContinuation) +
      '"'));
  lease.position = "\"13\"";
  const auto text = write_lease(lease);
  EXPECT_THAT(text, HasSubstr("\"extra\":1.50"));
  StoredDocument again = document(text);
  const Lease moved = *parse_lease(again);
  EXPECT_EQ(moved.position, "\"13\"");
  std::string buffer;
  const auto value = json::Value::of_checked(text);
  const json::Value token = value.member("ContinuationToken");
  const auto state = parse_java_state(token.as_string(buffer));
  EXPECT_THAT(state->json, HasSubstr("PointInTimeMs"));
}

TEST(LeaseTest, NewLeasesHaveExplicitNulls) {
  const LeaseIds ids{"P"};
  const auto made = [&](LeaseFormat format, std::string token) {
    return write_lease(*new_lease(ids, format, std::move(token), client::FeedRange{"", "FF"},
                                  std::nullopt, client::ChangeFeedMode::LatestVersion, "rid"));
  };
  EXPECT_EQ(
      made(LeaseFormat::Net3, "0"),
      R"({"id":"P..0","version":0,"LeaseToken":"0","FeedRange":{"Range":{"min":"","max":"FF"}},)"
      R"("Owner":null,"ContinuationToken":null,"properties":{},"timestamp":null,"Mode":"Incremental Feed"})");
  EXPECT_EQ(
      made(LeaseFormat::Net3, ""),
      R"({"id":"P..-FF","version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},)"
      R"("Owner":null,"ContinuationToken":null,"properties":{},"timestamp":null,"Mode":"Incremental Feed"})");
  EXPECT_EQ(
      made(LeaseFormat::Net2, "0"),
      R"({"id":"P..0","PartitionId":"0","Owner":null,"ContinuationToken":null,"properties":{},"timestamp":null})");
  EXPECT_EQ(
      made(LeaseFormat::JavaPk, "0"),
      R"({"id":"P..0","LeaseToken":"0","ContinuationToken":null,"timestamp":null,"Owner":null})");
  EXPECT_EQ(
      made(LeaseFormat::JavaEpk, "0"),
      R"({"id":"P..-FF","LeaseToken":"-FF","ContinuationToken":null,"timestamp":null,"Owner":null,)"
      R"("version":1,"feedRange":{"Range":{"min":"","max":"FF"}}})");
}

TEST(LeaseTest, NewLeasesAreReadAsWhatTheyAre) {
  for (const auto format :
       {LeaseFormat::Net2, LeaseFormat::Net3, LeaseFormat::JavaPk, LeaseFormat::JavaEpk}) {
    Lease lease = *new_lease(LeaseIds{"P"}, format, "0", client::FeedRange{"", "FF"}, "\"3\"",
                             client::ChangeFeedMode::AllVersionsAndDeletes, "rid");
    lease.owner = "me";
    lease.properties["orrery.epoch"] = "4";
    const Lease again = parsed(write_lease(lease));
    EXPECT_EQ(again.format, format);
    EXPECT_EQ(again.position, "\"3\"");
    EXPECT_EQ(again.owner, "me");
    EXPECT_EQ(again.epoch(), 4U);
  }
}

TEST(LeaseTest, PartsOfRangesAreNoLeasesOfJavaPkAndThoseOfNet3InNet2) {
  const LeaseIds ids{"P"};
  const client::FeedRange range{"", "1F"};
  EXPECT_FALSE(new_lease(ids, LeaseFormat::JavaPk, "", range, std::nullopt, {}, "").has_value());
  EXPECT_EQ(new_lease(ids, LeaseFormat::Net2, "", range, std::nullopt, {}, "")->format,
            LeaseFormat::Net3);
  EXPECT_FALSE(
      new_lease(ids, LeaseFormat::Net3, "", std::nullopt, std::nullopt, {}, "").has_value());
}

TEST(LeaseTest, PartitionIdOfALeaseThatCameFromNet2IsKept) {
  Lease lease = parsed(
      R"({"id":"P..0","version":0,"PartitionId":"0","LeaseToken":"0","Owner":null,"properties":{}})");
  lease.owner = "me";
  lease.range = client::FeedRange{"", "FF"};
  EXPECT_EQ(
      write_lease(lease),
      R"({"id":"P..0","version":0,"PartitionId":"0","LeaseToken":"0","Owner":"me","properties":{},"FeedRange":{"Range":{"min":"","max":"FF"}}})");
}

TEST(LeaseTest, TheModeOfAGroupIsNotSwitched) {
  const std::vector leases{parsed(kNet3Epk), parsed(java_epk("null"))};
  EXPECT_TRUE(check_mode(leases, client::ChangeFeedMode::AllVersionsAndDeletes).has_value());
  const auto refused = check_mode(leases, client::ChangeFeedMode::LatestVersion);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("not allowed"));
}

TEST(LeaseTest, OfDoubledLeasesTheFurtherOneIsKept) {
  const auto twin = [](std::string position, std::string key) {
    return parsed(R"({"id":"P..0","version":0,"LeaseToken":"0","ContinuationToken":)" + position +
                  R"(,"partitionKey":")" + key + "\"}");
  };
  const Lease behind = twin(R"("\"9\"")", "a");
  const Lease further = twin(R"("\"10\"")", "b");
  const Lease none = twin("null", "c");
  const auto distinct = distinct_leases({behind, further, none});
  ASSERT_EQ(distinct.leases.size(), 1U);
  EXPECT_EQ(distinct.leases[0].position, "\"10\"");
  EXPECT_EQ(distinct.doubles.size(), 2U);
  // Equally far: all hosts choose the same, in whatever order they see them.
  const Lease other = twin(R"("\"9\"")", "z");
  EXPECT_EQ(distinct_leases({behind, other}).leases[0].text, behind.text);
  EXPECT_EQ(distinct_leases({other, behind}).leases[0].text, behind.text);
}

TEST(LeaseTest, PositionsAreComparedByTheirNumbers) {
  EXPECT_EQ(position_lsn("\"28535\""), 28535U);
  EXPECT_EQ(position_lsn("28535"), 28535U);
  EXPECT_EQ(position_lsn("W/\"7\""), 7U);
  EXPECT_EQ(position_lsn("\"00000000000000000004299\""), 42U);
  EXPECT_EQ(position_lsn("\"c:=12\""), std::nullopt);
  EXPECT_TRUE(compare_positions("\"9\"", "\"10\"") < 0);
  EXPECT_TRUE(compare_positions("\"9\"", "9") == 0);
  EXPECT_TRUE(compare_positions(std::nullopt, "\"0\"") < 0);
  EXPECT_TRUE(compare_positions("a", "\"1\"") == std::partial_ordering::unordered);
  EXPECT_EQ(lowest_position("\"9\"", "\"10\""), "\"9\"");
  EXPECT_EQ(lowest_position("\"9\"", std::nullopt), std::nullopt);
}

TEST(LeaseTest, TimestampsHaveAnyFractionAndZone) {
  const WallTime second(std::chrono::seconds(1'714'731'072));
  EXPECT_EQ(parse_timestamp("2024-05-03T10:11:12Z"), second);
  EXPECT_EQ(parse_timestamp("2024-05-03T10:11:12.Z"), second);
  EXPECT_EQ(parse_timestamp("2024-05-03T12:11:12+02:00"), second);
  EXPECT_EQ(parse_timestamp("2024-05-03T08:41:12.000-0130"), second);
  EXPECT_EQ(parse_timestamp("2024-05-03T10:11:12.5Z"), second + std::chrono::milliseconds(500));
  EXPECT_EQ(parse_timestamp("2024-05-03T10:11:12.123456789Z"),
            second + std::chrono::nanoseconds(123'456'789));
  for (const auto* broken :
       {"", "2024-05-03", "2024-05-03T10:11:12", "2024-13-03T10:11:12Z", "2024-05-03T25:11:12Z",
        "2024-05-03T10:11:12.1234567891Z", "2024-05-03T10:11:12Z ", "yesterday",
        "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00Z"}) {
    EXPECT_EQ(parse_timestamp(broken), std::nullopt) << broken;
  }
  EXPECT_EQ(format_timestamp(second + std::chrono::nanoseconds(123'456'789), 7),
            "2024-05-03T10:11:12.1234567Z");
  EXPECT_EQ(format_timestamp(second + std::chrono::milliseconds(5), 3), "2024-05-03T10:11:12.005Z");
}

TEST(LeaseTest, IdsAreMadeOfPrefixHostDatabaseAndContainer) {
  const auto ids = LeaseIds::make("myprefix", "localhost", "qYcAAA==", "qYcAAPEvJBQ=");
  EXPECT_EQ(ids.lease("0"), "myprefixlocalhost_qYcAAA==_qYcAAPEvJBQ=..0");
  EXPECT_EQ(ids.lease(epk_token({"", "FF"})), "myprefixlocalhost_qYcAAA==_qYcAAPEvJBQ=..-FF");
  EXPECT_EQ(ids.marker(), "myprefixlocalhost_qYcAAA==_qYcAAPEvJBQ=.info");
  // None of the others looks like a lease.
  for (const auto& id : {ids.marker(), ids.lock(), ids.control(), ids.member("a")}) {
    EXPECT_FALSE(id.starts_with(ids.lease_prefix())) << id;
  }
}

TEST(LeaseTest, TheEpochRisesEvenIfAForeignHostDroppedIt) {
  Lease lease = parsed(kNet3);
  EXPECT_EQ(lease.epoch(), 1'714'731'072U);
  lease.properties["orrery.epoch"] = "12";
  EXPECT_EQ(lease.epoch(), 12U);
  lease.properties["orrery.epoch"] = "nonsense";
  EXPECT_EQ(lease.epoch(), 1'714'731'072U);
}

TEST(LeaseTest, HostNamesDifferByMoreThanCase) {
  EXPECT_TRUE(same_host("Host-1", "host-1"));
  EXPECT_FALSE(same_host("host-1", "host-2"));
}

}  // namespace
}  // namespace orrery::processor
