// Filters about places, as an index of cells serves them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_seed.h"
#include "geo/cells.h"
#include "geo/earth.h"
#include "geo/geometry.h"
#include "query/eval/evaluate.h"
#include "query/eval/rows.h"
#include "query/plan/access.h"

namespace orrery::query {
namespace {

using geo::Position;
using json::Value;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kPoint = R"({"type":"Point","coordinates":[12.5,41.9]})";
constexpr std::string_view kBox =
    R"({"type":"Polygon","coordinates":[[[12,41],[13,41],[13,42],[12,42],[12,41]]]})";

Value spatial_value(std::string_view text) {
  Value value = Value::of_checked(text);
  value.own();
  return value;
}

PreparedQueryPtr spatial_query(const std::string& condition, bool is_planar = false,
                               std::string_view region = kBox, double distance = 1000) {
  Parameters parameters;
  parameters.set("@r", spatial_value(region));
  parameters.set("@d", Value::number(distance));
  Settings settings;
  settings.surroundings.is_planar = is_planar;
  auto query =
      PreparedQuery::prepare("SELECT * FROM c WHERE " + condition, std::move(parameters), settings);
  EXPECT_TRUE(query) << condition << ": " << (query ? "" : query.error().message());
  return *query;
}

std::string text_of(const PathCondition& condition) {
  return IndexSpec::single(condition.path, condition.kind).text();
}

/// The indexes that could serve the conditions; of alternatives all in one.
std::vector<std::string> served_by(const std::string& condition, bool is_planar = false) {
  const auto access = access_of(*spatial_query(condition, is_planar));
  std::vector<std::string> texts;
  if (access.is_empty) texts.emplace_back("never");
  for (const auto& each : access.conditions) texts.push_back(text_of(each));
  for (const auto& alternatives : access.alternatives) {
    auto& text = texts.emplace_back();
    for (const auto& each : alternatives) text += (text.empty() ? "" : " or ") + text_of(each);
  }
  return texts;
}

void append_geometries(const Value& value, const IndexPath& path, std::size_t step,
                       std::vector<Value>& found) {
  if (step == path.steps.size()) {
    found.push_back(value);
  } else if (path.steps[step].is_element) {
    for (json::Reader reader(value); value.is_array() && reader.next();) {
      append_geometries(reader.value(), path, step + 1, found);
    }
  } else {
    append_geometries(value.member(path.steps[step].name), path, step + 1, found);
  }
}

bool admits_spatial(const PathCondition& condition, const Value& document) {
  std::vector<Value> geometries;
  append_geometries(document, condition.path, 0, geometries);
  for (const Value& geometry : geometries) {
    for (const auto& cell : geo::covering_cells(geometry, condition.kind == IndexKind::PlaneCells,
                                                geo::kEntryCellsMax)) {
      for (const auto& [low, high] : condition.intervals) {
        if (low <= cell && cell < high) return true;
      }
    }
  }
  return false;
}

bool admits_spatial(const QueryAccess& access, const Value& document) {
  const auto one = [&](const PathCondition& condition) {
    return admits_spatial(condition, document);
  };
  return !access.is_empty && std::ranges::all_of(access.conditions, one) &&
         std::ranges::all_of(access.alternatives, [&](const auto& alternatives) {
           return std::ranges::any_of(alternatives, one);
         });
}

bool has_row(const PreparedQuery& query, const Value& document) {
  Frame frame(query.sources());
  frame.surroundings = &query.surroundings();
  frame.row.set(0, document);
  bool found = false;
  for_each_row(query.tree(), frame, [&] {
    found = true;
    return false;
  });
  return found;
}

TEST(SpatialAccessTest, WhatLiesInOrMeetsAConstant) {
  for (const auto* condition : {"ST_WITHIN(c.place.at, @r)", "ST_WITHIN(@r, c.place.at)",
                                "ST_INTERSECTS(c.place.at, @r)", "ST_INTERSECTS(@r, c.place.at)"}) {
    EXPECT_THAT(served_by(condition), ElementsAre("/place/at SPATIAL")) << condition;
    EXPECT_THAT(served_by(condition, true), ElementsAre("/place/at SPATIAL PLANAR")) << condition;
  }
}

TEST(SpatialAccessTest, WhatIsNearAConstant) {
  for (const auto* condition :
       {"ST_DISTANCE(c.w, @r) < @d", "ST_DISTANCE(@r, c.w) <= @d", "@d > ST_DISTANCE(c.w, @r)",
        "@d >= ST_DISTANCE(c.w, @r)", "ST_DISTANCE(c.w, @r) = @d",
        "NOT (ST_DISTANCE(c.w, @r) > @d)", "NOT (@d <= ST_DISTANCE(@r, c.w))",
        "ST_DISTANCE(c.w, @r) BETWEEN 1 AND @d"}) {
    EXPECT_THAT(served_by(condition), ElementsAre("/w SPATIAL")) << condition;
  }
}

TEST(SpatialAccessTest, WhatIsFarAwayOrElsewhereIsNotToldByCells) {
  for (const auto* condition :
       {"ST_DISTANCE(c.w, @r) > @d", "ST_DISTANCE(c.w, @r) != @d", "NOT ST_WITHIN(c.w, @r)",
        "NOT (ST_DISTANCE(c.w, @r) < @d)", "ST_DISTANCE(c.w, c.v) < @d", "ST_WITHIN(c.w, c.v)",
        "ST_DISTANCE(c.w, @r) < c.d", "ST_AREA(c.w) < @d", "ST_ISVALID(c.w)",
        "ST_DISTANCE(c.w, @r) NOT BETWEEN 1 AND 2"}) {
    EXPECT_THAT(served_by(condition), IsEmpty()) << condition;
  }
}

TEST(SpatialAccessTest, WhatIsNoGeometryIsNearNothing) {
  EXPECT_THAT(served_by("ST_WITHIN(c.w, {'type':'Point'})"), ElementsAre("never"));
  EXPECT_THAT(served_by("ST_INTERSECTS('here', c.w)"), ElementsAre("never"));
  EXPECT_THAT(served_by("ST_DISTANCE(c.w, @r) < -1"), ElementsAre("never"));
}

TEST(SpatialAccessTest, ElementsOfArrays) {
  EXPECT_THAT(served_by("EXISTS(SELECT VALUE p FROM p IN c.places WHERE ST_WITHIN(p.at, @r))"),
              ElementsAre("/places/[]/at SPATIAL"));
}

TEST(SpatialAccessTest, SeveralConditionsOnOneGeometryStaySeveral) {
  EXPECT_THAT(served_by("ST_WITHIN(c.w, @r) AND ST_DISTANCE(c.w, @r) < @d AND c.w != 1"),
              ElementsAre("/w", "/w SPATIAL", "/w SPATIAL"));
  // A line between two places that no cell has in common.
  const auto query = spatial_query(
      "ST_INTERSECTS(c.w, {'type':'Point','coordinates':[0,0]}) AND "
      "ST_INTERSECTS(c.w, {'type':'Point','coordinates':[40,0]})");
  EXPECT_TRUE(admits_spatial(
      access_of(*query),
      spatial_value(R"({"w":{"type":"LineString","coordinates":[[-50,0],[0,0],[40,0],[90,0]]}})")));
}

TEST(SpatialAccessTest, Alternatives) {
  EXPECT_THAT(served_by("ST_WITHIN(c.w, @r) OR ST_DISTANCE(c.w, @r) < @d"),
              ElementsAre("/w SPATIAL"));
  EXPECT_THAT(served_by("ST_WITHIN(c.w, @r) OR c.w = 1"), ElementsAre("/w or /w SPATIAL"));
  EXPECT_THAT(served_by("ST_WITHIN(c.w, @r) OR ST_AREA(c.w) > 1"), IsEmpty());
}

TEST(SpatialAccessTest, LeavesOutWhatIsElsewhere) {
  const auto access = access_of(*spatial_query("ST_WITHIN(c.w, @r)"));
  EXPECT_TRUE(admits_spatial(access, spatial_value(fmt::format(R"({{"w":{}}})", kPoint))));
  for (const auto* elsewhere : {"[20,41.9]", "[12.5,30]", "[-167.5,41.9]", "[12.5,-41.9]"}) {
    EXPECT_FALSE(admits_spatial(
        access,
        spatial_value(fmt::format(R"({{"w":{{"type":"Point","coordinates":{}}}}})", elsewhere))))
        << elsewhere;
  }
  EXPECT_FALSE(admits_spatial(access, spatial_value(R"({"w":"here"})")));
}

// ── chance ───────────────────────────────────────────────────────────────────────────────────────

/// Geometries around some place, small and large, often where the earth has its seams.
class Shapes {
 public:
  Shapes(std::uint32_t seed, bool is_planar) : random_(seed), is_planar_(is_planar) { move(); }

  /// From now on they are around another place.
  void move() {
    centre_ = {one_of<double>({-180, 0, 90, 180, uniform(-180, 180)}),
               one_of<double>({-90, 0, 89.99999999, 90, uniform(-90, 90), uniform(-90, 90)})};
    size_ = one_of<double>({1e-9, 1e-5, 0.01, 1, 10, 60, 100});
  }

  std::string any() {
    switch (random_() % 5) {
      case 0:
        return fmt::format(R"({{"type":"Point","coordinates":{}}})", text(near(centre_)));
      case 1:
        return line();
      case 2:
        return fmt::format(R"({{"type":"MultiPolygon","coordinates":[{},{}]}})", polygon(),
                           polygon());
      default:
        return fmt::format(R"({{"type":"Polygon","coordinates":{}}})", polygon());
    }
  }

  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }

 private:
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  static std::string text(Position position) {
    return fmt::format("[{},{}]", position.x, position.y);
  }

  /// So far away, in degrees, in a direction that turns counter-clockwise.
  Position offset(Position from, double turn, double distance) const {
    if (is_planar_) {
      return {from.x + distance * std::cos(turn), from.y + distance * std::sin(turn)};
    }
    constexpr double kDegree = std::numbers::pi / 180;
    const double latitude = from.y * kDegree;
    const double angle = distance * kDegree;
    const double sine = std::sin(latitude) * std::cos(angle) +
                        std::cos(latitude) * std::sin(angle) * std::sin(turn);
    const double longitude =
        from.x * kDegree + std::atan2(std::cos(turn) * std::sin(angle) * std::cos(latitude),
                                      std::cos(angle) - std::sin(latitude) * sine);
    return {std::remainder(longitude / kDegree, 360),
            std::asin(std::clamp(sine, -1.0, 1.0)) / kDegree};
  }

  Position near(Position from) {
    if (random_() % 8 == 0) return from;
    return offset(from, uniform(0, 2 * std::numbers::pi), uniform(0, size_));
  }

  std::string line() {
    std::string positions = text(near(centre_));
    for (auto more = 1 + random_() % 4; more > 0; --more) positions += "," + text(near(centre_));
    return fmt::format(R"({{"type":"LineString","coordinates":[{}]}})", positions);
  }

  /// Like a star around a place; its arms may be thin and reach round the earth.
  std::string polygon() {
    const Position middle = near(centre_);
    const auto corners = 3 + random_() % 6;
    std::string ring;
    std::string first;
    for (std::size_t i = 0; i < corners; ++i) {
      const double turn = 2 * std::numbers::pi * (static_cast<double>(i) + uniform(0, 0.9)) /
                          static_cast<double>(corners);
      const std::string corner = text(offset(middle, turn, size_ * uniform(0.05, 1.7)));
      if (i == 0) first = corner;
      ring += corner + ",";
    }
    return "[[" + ring + first + "]]";
  }

  std::mt19937 random_;
  bool is_planar_;
  Position centre_{};
  double size_ = 0;
};

class SpatialChanceTest : public testing::TestWithParam<bool> {};

TEST_P(SpatialChanceTest, NoRowIsEverMissed) {
  const bool is_planar = GetParam();
  const auto seed = static_cast<std::uint32_t>(test::seed());
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Shapes shapes(seed, is_planar);
  int rows = 0;
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    if (round % 3 == 0) shapes.move();
    const std::string region = shapes.any();
    const auto read = geo::Geometry::read_valid(Value::of_checked(region), is_planar);
    if (!read) continue;
    for (int i = 0; i < 4; ++i) {
      const std::string geometry = shapes.any();
      const auto other = geo::Geometry::read_valid(Value::of_checked(geometry), is_planar);
      if (!other) continue;
      const std::string condition = shapes.one_of<const char*>(
          {"ST_WITHIN(c.w, @r)", "ST_WITHIN(@r, c.w)", "ST_INTERSECTS(c.w, @r)",
           "ST_INTERSECTS(@r, c.w) AND ST_DISTANCE(c.w, @r) <= 0",
           "ST_WITHIN(c.w, @r) OR ST_DISTANCE(@r, c.w) <= @d", "ST_DISTANCE(c.w, @r) <= @d"});
      // Just as far as it is, or not quite.
      const double distance =
          read->distance(*other).value_or(1) * shapes.one_of({1.0, 1.0, 0.9, 0.5});
      const auto query = spatial_query(condition, is_planar, region, distance);
      const auto access = access_of(*query);
      const std::string text = "{\"w\":" + geometry + "}";
      const Value document = Value::of_checked(text);
      Frame frame(query->sources());
      frame.surroundings = &query->surroundings();
      frame.row.set(0, document);
      bool has_row = false;
      for_each_row(query->tree(), frame, [&] {
        has_row = true;
        return false;
      });
      const bool is_admitted = admits_spatial(access, document);
      rows += has_row;
      refused += !is_admitted;
      ASSERT_TRUE(!has_row || is_admitted) << condition << "\n"
                                           << region << "\n"
                                           << geometry << "\n"
                                           << distance;
    }
    // Others are elsewhere.
    shapes.move();
    const std::string elsewhere = "{\"w\":" + shapes.any() + "}";
    const Value document = Value::of_checked(elsewhere);
    const auto query = spatial_query("ST_INTERSECTS(c.w, @r)", is_planar, region);
    const bool is_admitted = admits_spatial(access_of(*query), document);
    refused += !is_admitted;
    ASSERT_TRUE(is_admitted || !has_row(*query, document)) << region << "\n" << elsewhere;
  }
  EXPECT_GT(rows, 500);
  EXPECT_GT(refused, 300);
}

INSTANTIATE_TEST_SUITE_P(Surfaces, SpatialChanceTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Plane" : "Earth"; });

/// A band from beside the equator over both poles nearly back to where it began. No ring of it goes
/// round a pole.
TEST(SpatialAccessTest, AnAreaWithBothPolesHasAllLongitudes) {
  constexpr std::string_view kBand = R"({"type":"Polygon","coordinates":[[[-5,5],[5,5],[90,85],
      [175,0],[90,-85],[5,-5],[-5,-5],[-90,-85],[-175,0],[-90,85],[-5,5]]]})";
  const auto access = access_of(*spatial_query("ST_WITHIN(c.w, @r)", false, kBand));
  for (const auto* place : {"[0,90]", "[0,-90]", "[180,0]", "[180,30]", "[100,89]"}) {
    const Value document =
        spatial_value(fmt::format(R"({{"w":{{"type":"Point","coordinates":{}}}}})", place));
    EXPECT_TRUE(admits_spatial(access, document)) << place;
  }
}

/// Functions take places for the same that are very near to each other, across the border of cells
/// too.
TEST(SpatialAccessTest, WhatIsTakenForTheSamePlaceIsFound) {
  struct Pair {
    bool is_planar;
    std::string_view region;
    std::string_view point;
  };
  for (const auto& [is_planar, region, point] :
       {Pair{true, "[[4e-10,-6e-10],[-1.5e-10,-4e-11]]", "[0,0]"},
        Pair{false, "[[4e-12,-1],[4e-12,1]]", "[0,0]"}}) {
    const auto query =
        spatial_query("ST_INTERSECTS(c.w, @r)", is_planar,
                      fmt::format(R"({{"type":"LineString","coordinates":{}}})", region));
    const Value document =
        spatial_value(fmt::format(R"({{"w":{{"type":"Point","coordinates":{}}}}})", point));
    EXPECT_TRUE(has_row(*query, document)) << region;
    EXPECT_TRUE(admits_spatial(access_of(*query), document)) << region;
  }
}

}  // namespace
}  // namespace orrery::query
