#include "protocol/keys/epk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using ::testing::ElementsAre;

const PartitionKeyDefinition kV1{.paths = {{"pk"}}, .kind = KeyKind::Hash, .version = 1};
const PartitionKeyDefinition kV2{.paths = {{"pk"}}, .kind = KeyKind::Hash, .version = 2};
const PartitionKeyDefinition kMulti{
    .paths = {{"a"}, {"b"}, {"c"}}, .kind = KeyKind::MultiHash, .version = 2};

std::string repeat(int count, std::string_view text) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

PartitionKey key(std::vector<KeyComponent> components) {
  return PartitionKey(std::move(components));
}

std::string epk(const PartitionKeyDefinition& definition, std::vector<KeyComponent> components) {
  return effective_partition_key(definition, key(std::move(components))).hex();
}

Epk hex(std::string_view text) { return Epk::from_hex(text).value(); }

std::vector<std::string> mins(const std::vector<EpkRange>& ranges) {
  std::vector<std::string> result;
  for (const auto& range : ranges) result.push_back(range.min.hex());
  return result;
}

struct EpkVector {
  KeyComponent component;
  std::string v1;
  std::string v2;
};

// Computed by the SDKs of two languages and by an independent implementation.
std::vector<EpkVector> vectors() {
  return {
      {std::string(""), "05C1CF33970FF80800", "32E9366E637A71B4E710384B2F4970A0"},
      {std::string("a"), "05C1D78593652C086200", "3A5381E1114EB8D3FCC90795045B49B7"},
      {std::string("aa"), "05C1C7B7270FE008626200", "05033626483AE80D00E44FBD35362B19"},
      {std::string("redmond"), "05C1EFE313830C087366656E706F6500",
       "22E342F38A486A088463DFF7838A5963"},
      {std::string("partitionKey"), "05C1E1B3D9CD2608716273756A756A706F4C667A00",
       "013AEFCF77FA271571CF665A58C933F1"},
      {std::string("Hello World"), "05C1C5D58F13B00849666D6D70215870736D6500",
       "306C52B42DECB3AE9D3C7586975E30B9"},
      {repeat(99, "a"), "05C1E9CD098BB208" + repeat(99, "62") + "00",
       "3C02F609961C32AAC2B912B940D1209A"},
      {repeat(100, "a"), "05C1EB5921F70608" + repeat(100, "62") + "00",
       "0DBD7D229437BB665DE6417747994D57"},
      {repeat(101, "a"), "05C1EB5921F70608" + repeat(100, "62") + "00",
       "08042541D30C8BF90D7092B1519AE0BC"},
      {repeat(110, "a"), "05C1EB5921F70608" + repeat(100, "62") + "00",
       "0BA3E9CA8EE4C14538828D1612A4B652"},
      {std::string("é"), "05C1B3CD91912008C4AA00", "007199F104E04116EE25AF912CA4889B"},
      {std::string("鱀"), "05C1ADC9E18FA008EAB28100", "26BB8A9DC450408217303F7AA09BCD38"},
      {std::string("日本語"), "05C1E31DE9C91E08E798A6E79DADE9AB9F00",
       "3F0624929BDE45571F050DCA6A1CB775"},
      {std::string("😀"), "05C1814D5F9C08F1A0998100", "28D7FCB721E75FBE0DAC3D71DAB82766"},
      {repeat(60, "é"), "05C1A329C995C008" + repeat(50, "C4AA") + "C4",
       "3ABA5DCC7655B85B22DF2D0454928E02"},
      {0.0, "05C1BF6DA11560058000", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"},
      {-0.0, "05C1E703ED99A0058000", "3D018BB1DF3DB27235766E81FD10406E"},
      {1.0, "05C1ED172B6B2605BFF0", "20CD98B339BA78A5D0CF6953B87070B0"},
      {-1.0, "05C1D1A5BDDF9C054010", "19938E7A936C1C5B9E3AE842BBC16839"},
      {2.0, "05C1D93569113805C000", "11BEC098BB8A08943F0A144281ACC26C"},
      {5.0, "05C1D9C1C5517C05C014", "19C08621B135968252FB34B4CF66F811"},
      {5.5, "05C1D7A771716C05C016", "0E2EE47829D1AF775EEFB6540FD1D0ED"},
      {100.0, "05C1E30371BF2005C05980", "34235CFA9F2448C372F53E4119DBB9AB"},
      {0.1, "05C1D92733D70405BFB9CD673399CD6734", "21DEBA97B3AF01087F4E1F889B0A7739"},
      {-123456.789, "05C1EB75F1A30A053F01EDFD6D050D256E", "16249C27626393A515C13A3125183A10"},
      {12313.1221, "05C1ED154D592E05C0C90723F50FC925D8", "27E7ECA8F2EE3E53424DE8D5220631C6"},
      {123456789.0, "05C1D9E1A5311C05C19DB7CD8B40", "1F56D2538088EBA82CCF988F36E16760"},
      {4294967296.0, "05C1ED5B039B6005C1F0", "0C746AE2C07859994662C1770E77CCFB"},
      {9007199254740991.0, "05C1B3FBA771A005C33FFFFFFFFFFFFFFE",
       "12C221C7032CED1F9E6693CE1428E6CF"},
      {1e308, "05C145CFAE05FFE1E73D715F5F2340", "1E0D61F83E0EBE180144F756FA5C918A"},
      {5e-324, "05C1E5C91F4D3005800101010101010102", "0E6CBA63A280927DE485DEF865800139"},
      {true, "05C1D7C5A903D803", "0E711127C5B5A8E4726AC6DD306A3E59"},
      {false, "05C1DB857D857C02", "2FE1BE91E90A3439635E0E9E37361EF2"},
      {Null{}, "05C1ED45D7475601", "378867E4430E67857ACE5C908374FE16"},
      {Undefined{}, "05C1D529E345DC00", "11622DAA78F835834610ABE56EFF5CB5"},
  };
}

TEST(EffectivePartitionKey, AgreesWithTheServiceInVersion1) {
  for (const EpkVector& vector : vectors()) {
    EXPECT_EQ(epk(kV1, {vector.component}), vector.v1) << key({vector.component}).to_json();
  }
}

TEST(EffectivePartitionKey, AgreesWithTheServiceInVersion2) {
  for (const EpkVector& vector : vectors()) {
    EXPECT_EQ(epk(kV2, {vector.component}), vector.v2) << key({vector.component}).to_json();
  }
}

TEST(EffectivePartitionKey, HashesEachLevelOfAHierarchicalKey) {
  EXPECT_EQ(epk(kMulti, {"a", "b"}),
            "3A5381E1114EB8D3FCC90795045B49B7195644569A78B1E22D200348AF9416CE");
  EXPECT_EQ(epk(kMulti, {"USA"}), "2D145581F5E75BAC6C539649981C9670");
  EXPECT_EQ(epk(kMulti, {"USA", "Redmond"}),
            "2D145581F5E75BAC6C539649981C967001620B162169497AFD85FA66E99F7376");
  EXPECT_EQ(epk(kMulti, {"USA", "Redmond", "98052"}),
            "2D145581F5E75BAC6C539649981C967001620B162169497AFD85FA66E99F7376"
            "36C8BBEC5EEB4676558994E4D8DF79A7");
  EXPECT_EQ(epk(kMulti, {"tenant1", 42.0, true}),
            "0DAE0B8467B011E957BC0B8B0DEB5ACA08E6D561F6FD951DCC25E7E4EA2884B5"
            "0E711127C5B5A8E4726AC6DD306A3E59");
  EXPECT_EQ(epk(kMulti, {"x", Null{}, Undefined{}}),
            "11E3F358618BE9AA5BAFF4C7C74F0716378867E4430E67857ACE5C908374FE16"
            "11622DAA78F835834610ABE56EFF5CB5");
}

TEST(EffectivePartitionKey, HashesSeveralValuesOfAHashKeyTogether) {
  EXPECT_EQ(epk(kV2, {"redmond", 50.0, 5.5, true, false, Null{}, "", 12313.1221}),
            "1A5E512F591E980E07A6D8AD5BD5AB2F");
}

TEST(EffectivePartitionKey, OfTheEmptyKeyIsTheLowest) {
  for (const auto* definition : {&kV1, &kV2, &kMulti}) {
    EXPECT_EQ(effective_partition_key(*definition, key({})), Epk::min());
  }
}

TEST(EffectivePartitionKey, OfALongKeyDependsOnAllOfItInVersion2) {
  const std::string longest(2048, 'a');
  EXPECT_NE(epk(kV2, {longest}), epk(kV2, {longest.substr(1)}));
  EXPECT_NE(epk(kV2, {longest + "b"}), epk(kV2, {longest + "c"}));
  EXPECT_EQ(epk(kV2, {longest}).size(), 32u);
}

TEST(EffectivePartitionKey, TruncatesVersion1ByUtf16CodeUnits) {
  // 99 units, then a pair of which one half fits: .NET writes U+FFFD for that.
  EXPECT_EQ(epk(kV1, {repeat(99, "a") + "😀"}), epk(kV1, {repeat(99, "a") + "\xEF\xBF\xBD"}));
  EXPECT_EQ(epk(kV1, {repeat(50, "😀") + "a"}), epk(kV1, {repeat(50, "😀") + "b"}));
  EXPECT_NE(epk(kV1, {repeat(49, "😀") + "ax"}), epk(kV1, {repeat(49, "😀") + "bx"}));
}

TEST(Epk, IsHexInEitherCase) {
  EXPECT_EQ(hex("05C1ff").hex(), "05C1FF");
  EXPECT_EQ(hex(""), Epk::min());
  EXPECT_EQ(hex("FF"), Epk::max());
  EXPECT_EQ(Epk::min().hex(), "");
  EXPECT_EQ(Epk::max().hex(), "FF");
  for (const std::string& text : {std::string("F"), std::string("0G"), std::string(" 0"),
                                  std::string("0x"), std::string(2 * Epk::kBytesMax + 2, '0')}) {
    ASSERT_FALSE(Epk::from_hex(text).has_value()) << text;
    EXPECT_EQ(Epk::from_hex(text).error().code(), ErrorCode::BadRequest);
  }
}

TEST(Epk, IsOrderedAsItsHexText) {
  EXPECT_LT(hex("05"), hex("0500"));
  EXPECT_LT(hex("7F"), hex("80"));
  EXPECT_LT(hex("05FF"), hex("06"));
  EXPECT_LT(Epk::min(), hex("00"));
  EXPECT_LT(hex("3FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"), Epk::max());
}

TEST(EffectiveKeyRange, OfAPrefixHoldsAllItsExtensions) {
  const EpkRange range = effective_key_range(kMulti, key({"USA"}));
  EXPECT_EQ(range.min.hex(), "2D145581F5E75BAC6C539649981C9670");
  EXPECT_EQ(range.max.hex(), "2D145581F5E75BAC6C539649981C9670FF");
  EXPECT_TRUE(range.contains(effective_partition_key(kMulti, key({"USA", "Redmond", "98052"}))));
  EXPECT_FALSE(range.contains(effective_partition_key(kMulti, key({"UK", "London", "N1"}))));
  EXPECT_EQ(effective_key_range(kMulti, key({})), EpkRange{});
}

TEST(EffectiveKeyRange, OfAFullKeyHoldsNothingElse) {
  const auto check = [](const PartitionKeyDefinition& definition, const PartitionKey& value) {
    const EpkRange range = effective_key_range(definition, value);
    const Epk point = effective_partition_key(definition, value);
    EXPECT_TRUE(range.contains(point));
    EXPECT_EQ(range.min, point);
    EXPECT_FALSE(range.contains(Epk{point.bytes + '\x01'}));
    EXPECT_FALSE(range.contains(Epk{point.bytes + '\0'}));
  };
  check(kV1, key({"a"}));
  check(kV2, key({"a"}));
  check(kV2, key({}));
  check(kMulti, key({"a", "b", "c"}));
}

TEST(InitialRanges, AreCountedByThroughput) {
  EXPECT_EQ(initial_range_count(0), 1u);
  EXPECT_EQ(initial_range_count(400), 1u);
  EXPECT_EQ(initial_range_count(10'000), 1u);
  EXPECT_EQ(initial_range_count(11'000), 2u);
  EXPECT_EQ(initial_range_count(12'000), 2u);
  EXPECT_EQ(initial_range_count(12'100), 3u);
  EXPECT_EQ(initial_range_count(15'000), 3u);
  EXPECT_EQ(initial_range_count(30'000), 5u);
}

TEST(InitialRanges, HaveTheBoundariesOfTheService) {
  for (const auto* definition : {&kV2, &kMulti}) {
    EXPECT_THAT(
        mins(divide_evenly(*definition, 4)),
        ElementsAre("", "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE",
                    "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD"));
    EXPECT_EQ(divide_evenly(*definition, 2)[1].min.hex(), "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    EXPECT_EQ(divide_evenly(*definition, 5)[4].min.hex(), "33333333333333333333333333333330");
  }
  EXPECT_THAT(mins(divide_evenly(kV1, 5)), ElementsAre("", "05C1C9CD673398", "05C1D9CD673398",
                                                       "05C1E399CD6732", "05C1E9CD673398"));
}

TEST(InitialRanges, TileTheWholeSpace) {
  for (const auto* definition : {&kV1, &kV2, &kMulti}) {
    for (std::uint32_t count : {1u, 2u, 3u, 7u, 100u, 1'000u}) {
      const auto ranges = divide_evenly(*definition, count);
      ASSERT_EQ(ranges.size(), count);
      EXPECT_EQ(ranges.front().min, Epk::min());
      EXPECT_EQ(ranges.back().max, Epk::max());
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        EXPECT_LT(ranges[i].min, ranges[i].max);
        if (i > 0) {
          EXPECT_EQ(ranges[i].min, ranges[i - 1].max);
        }
      }
    }
  }
}

TEST(Midpoint, IsHalfwayInTheHashSpace) {
  EXPECT_EQ(midpoint(kV2, {})->hex(), "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  EXPECT_EQ(midpoint(kMulti, {})->hex(), "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  EXPECT_EQ(midpoint(kV2, {hex("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"), Epk::max()})->hex(),
            "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  EXPECT_EQ(midpoint(kV1, {}), divide_evenly(kV1, 2)[0].max);
  // floor((2^32 - 1) / 2) between the whole and its first quarter.
  const Epk half = *midpoint(kV1, {});
  const Epk quarter = *midpoint(kV1, {Epk::min(), half});
  EXPECT_EQ(quarter, divide_evenly(kV1, 4)[0].max);
}

TEST(Midpoint, LiesStrictlyBetweenForAsLongAsSomethingDoes) {
  for (const auto* definition : {&kV1, &kV2}) {
    EpkRange range;
    int splits = 0;
    for (;; ++splits) {
      const auto middle = midpoint(*definition, range);
      if (!middle) {
        EXPECT_EQ(middle.error().code(), ErrorCode::BadRequest);
        break;
      }
      ASSERT_LT(range.min, *middle);
      ASSERT_LT(*middle, range.max);
      (splits % 2 == 0 ? range.min : range.max) = *middle;
    }
    EXPECT_GE(splits, definition == &kV1 ? 31 : 125);
  }
  EXPECT_FALSE(midpoint(kV2, {Epk::max(), Epk::min()}).has_value());
}

TEST(Midpoint, OfOneHierarchicalPrefixIsAtTheNextLevel) {
  const EpkRange prefix = effective_key_range(kMulti, key({"USA"}));
  EXPECT_EQ(midpoint(kMulti, prefix)->hex(),
            "2D145581F5E75BAC6C539649981C9670"
            "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  const EpkRange second = effective_key_range(kMulti, key({"USA", "Redmond"}));
  EXPECT_EQ(midpoint(kMulti, second)->hex(),
            "2D145581F5E75BAC6C539649981C967001620B162169497AFD85FA66E99F7376"
            "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  // The bounds are neighbours: all that lies between begins with the lower one.
  EXPECT_EQ(midpoint(kMulti, {hex("2D145581F5E75BAC6C539649981C9670"),
                              hex("2D145581F5E75BAC6C539649981C9671")})
                ->hex(),
            "2D145581F5E75BAC6C539649981C9670"
            "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  EXPECT_FALSE(midpoint(kV2, {hex("2D145581F5E75BAC6C539649981C9670"),
                              hex("2D145581F5E75BAC6C539649981C9671")})
                   .has_value());
}

TEST(EpkRange, OverlapsWhatSharesAPoint) {
  const EpkRange low{Epk::min(), hex("10")};
  const EpkRange high{hex("10"), Epk::max()};
  EXPECT_FALSE(low.overlaps(high));
  EXPECT_TRUE(low.overlaps(EpkRange{}));
  EXPECT_TRUE((EpkRange{hex("0F"), hex("11")}.overlaps(high)));
  EXPECT_FALSE(low.contains(hex("10")));
  EXPECT_TRUE(high.contains(hex("10")));
}

TEST(EpkTest, SharesOfTheSpaceAddUpToOne) {
  for (const int version : {1, 2}) {
    PartitionKeyDefinition definition;
    definition.version = version;
    definition.paths = {{"pk"}};
    EXPECT_NEAR(share_of_space(definition, EpkRange{}), 1.0, 1e-6);
    double sum = 0;
    for (const auto& range : divide_evenly(definition, 5)) {
      EXPECT_NEAR(share_of_space(definition, range), 0.2, 1e-6) << "version " << version;
      sum += share_of_space(definition, range);
    }
    EXPECT_NEAR(sum, 1.0, 1e-6);
  }
}

}  // namespace
}  // namespace orrery
