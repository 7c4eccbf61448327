// Functions of geometries, and the cells that an index finds them by.
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "geo/cells.h"
#include "geo/geometry.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Value;
using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;

const Function& function_of(std::string_view name) {
  for (const Function& function : spatial_functions()) {
    if (function.name == name) return function;
  }
  ADD_FAILURE() << "no function " << name;
  return spatial_functions()[0];
}

Value called(std::string_view name, std::string_view a, std::string_view b = "",
             bool is_planar = false) {
  const Value values[] = {Value::of_checked(a), b.empty() ? Value() : Value::of_checked(b)};
  const Value* const arguments[] = {&values[0], &values[1]};
  const Function& function = function_of(name);
  const Surroundings surroundings = {.begun_ticks = 0, .is_planar = is_planar};
  return function.call_in(Arguments(arguments).first(function.arguments_min), surroundings);
}

/// As JSON; "-" is undefined.
std::string said_of_shape(std::string_view name, std::string_view a, std::string_view b = "",
                          bool is_planar = false) {
  const Value value = called(name, a, b, is_planar);
  return value.is_undefined() ? "-" : value.to_text();
}

double number(std::string_view name, std::string_view a, std::string_view b = "",
              bool is_planar = false) {
  const Value value = called(name, a, b, is_planar);
  return value.is_number() ? value.as_number().real : NAN;
}

std::string coordinates(double x, double y) {
  return "[" + Value::number(x).to_text() + "," + Value::number(y).to_text() + "]";
}
std::string point(double x, double y) {
  return R"({"type":"Point","coordinates":)" + coordinates(x, y) + "}";
}
std::string line(std::string_view positions) {
  return R"({"type":"LineString","coordinates":[)" + std::string(positions) + "]}";
}
/// The rings as they are written.
std::string polygon(std::string_view rings) {
  return R"({"type":"Polygon","coordinates":[)" + std::string(rings) + "]}";
}
std::string box_ring(double west, double south, double east, double north) {
  return "[" + coordinates(west, south) + "," + coordinates(east, south) + "," +
         coordinates(east, north) + "," + coordinates(west, north) + "," +
         coordinates(west, south) + "]";
}
std::string box(double west, double south, double east, double north) {
  return polygon(box_ring(west, south, east, north));
}

std::string reason(std::string_view geometry, bool is_planar = false) {
  const Value detail = called("ST_ISVALIDDETAILED", geometry, "", is_planar);
  if (detail.member("valid").is_true()) return "valid";
  std::string buffer;
  const Value text = detail.member("reason");
  return std::string(text.as_string(buffer));
}

// ── On the earth ─────────────────────────────────────────────────────────────────────────────────

TEST(Spatial, DistancesAreMetresOnTheEllipsoid) {
  EXPECT_NEAR(
      number("ST_DISTANCE", point(-122.12826822, 47.63980239), point(-122.11758114, 47.66901087)),
      3345.27, 0.005);
  // A degree along the equator, and from pole to pole along a meridian.
  EXPECT_NEAR(number("ST_DISTANCE", point(0, 0), point(1, 0)), 111319.4908, 0.001);
  EXPECT_NEAR(number("ST_DISTANCE", point(12, 90), point(77, -90)), 20003931.4586, 0.001);
  EXPECT_EQ(number("ST_DISTANCE", point(3, 4), point(3, 4)), 0);
  EXPECT_NEAR(number("ST_DISTANCE", point(179.5, 0), point(-179.5, 0)), 111319.4908, 0.001);
  // Far south, and nearly to the other end of the earth.
  EXPECT_NEAR(number("ST_DISTANCE", point(10, -80), point(10, -81)), 111661.7, 10);
  EXPECT_NEAR(number("ST_DISTANCE", point(0, 0), point(179.5, 0.5)), 19936288.579, 0.001);
}

TEST(Spatial, DistancesOfLinesAndAreasAreTheShortest) {
  // From a place north of a line along the equator: down the meridian.
  const std::string equator = line("[0,0],[10,0]");
  EXPECT_NEAR(number("ST_DISTANCE", point(5, 1), equator), 110574.3886, 0.001);
  EXPECT_NEAR(number("ST_DISTANCE", equator, point(5, 1)), 110574.3886, 0.001);
  EXPECT_NEAR(number("ST_DISTANCE", point(12, 0), equator), 2 * 111319.4908, 0.001);
  // Very near to a line.
  EXPECT_NEAR(number("ST_DISTANCE", point(5.123, 0.000001), equator), 0.110574, 0.000001);
  EXPECT_EQ(number("ST_DISTANCE", point(5, 0.5), box(0, 0, 10, 10)), 0);
  EXPECT_EQ(number("ST_DISTANCE", box(0, 0, 10, 10), box(5, 5, 20, 20)), 0);
  EXPECT_EQ(number("ST_DISTANCE", box(0, 0, 10, 10), box(2, 2, 3, 3)), 0);
  // In a hole it is not in the area.
  const std::string holed = polygon(box_ring(0, -5, 10, 5) + "," + box_ring(2, -2, 8, 2));
  EXPECT_NEAR(number("ST_DISTANCE", point(3, 0), holed), 111319.4908, 0.001);
  EXPECT_NEAR(number("ST_DISTANCE", box(0, -1, 1, 1), box(2, -1, 3, 1)),
              number("ST_DISTANCE", point(1, 1), point(2, 1)), 0.001);
}

TEST(Spatial, DistanceToALongLineIsThatToTheNearestOfItsPlaces) {
  const std::string way = line("[-70,40],[10,55]");
  const double said_distance = number("ST_DISTANCE", point(-20, 30), way);
  // The line is what the plane through the centre of the earth cuts out: places along it, by hand.
  const auto towards = [](double x, double y) {
    constexpr double kDegree = 3.14159265358979323846 / 180;
    const double geocentric = std::atan(0.99330562000986 * std::tan(y * kDegree));
    return std::array{std::cos(geocentric) * std::cos(x * kDegree),
                      std::cos(geocentric) * std::sin(x * kDegree), std::sin(geocentric)};
  };
  const auto a = towards(-70, 40);
  const auto b = towards(10, 55);
  double nearest = 1e9;
  for (int i = 0; i <= 20000; ++i) {
    const double part = i / 20000.0;
    std::array<double, 3> at{};
    for (std::size_t k = 0; k < 3; ++k) at[k] = a[k] * (1 - part) + b[k] * part;
    constexpr double kDegree = 3.14159265358979323846 / 180;
    const double longitude = std::atan2(at[1], at[0]) / kDegree;
    const double latitude =
        std::atan2(at[2], 0.99330562000986 * std::hypot(at[0], at[1])) / kDegree;
    nearest = std::min(nearest, number("ST_DISTANCE", point(-20, 30), point(longitude, latitude)));
  }
  EXPECT_NEAR(said_distance, nearest, 1);
}

TEST(Spatial, AreasAreSquareMetresOnTheEllipsoid) {
  EXPECT_NEAR(number("ST_AREA", box(31.8, -5, 32, -4.7)), 735970283.05, 0.1);
  // An eighth of the earth.
  EXPECT_NEAR(number("ST_AREA", polygon("[[0,0],[90,0],[0,90],[0,0]]")) / 510065621724088.0,
              1.0 / 8, 1e-12);
  // Around the north pole, and the south pole: the same.
  const double north = number("ST_AREA", polygon("[[0,60],[90,60],[180,60],[-90,60],[0,60]]"));
  const double south = number("ST_AREA", polygon("[[0,-60],[-90,-60],[180,-60],[90,-60],[0,-60]]"));
  EXPECT_NEAR(north, south, 1);
  EXPECT_THAT(north, AllOf(Ge(2.2e13), Le(3.4e13)));
  // Across 180 degrees.
  EXPECT_NEAR(number("ST_AREA", box(179, 10, -179, 12)), number("ST_AREA", box(9, 10, 11, 12)), 1);
  const double whole = number("ST_AREA", box(0, 0, 10, 10));
  const double hole = number("ST_AREA", box(2, 2, 3, 3));
  EXPECT_NEAR(number("ST_AREA", polygon(box_ring(0, 0, 10, 10) + "," + box_ring(2, 2, 3, 3))),
              whole - hole, 1);
  EXPECT_NEAR(
      number("ST_AREA", R"({"type":"MultiPolygon","coordinates":[[)" + box_ring(0, 0, 10, 10) +
                            "],[" + box_ring(12, 2, 13, 3) + "]]}"),
      whole + hole, 1);
  EXPECT_EQ(said_of_shape("ST_AREA", point(1, 2)), "-");
  EXPECT_EQ(said_of_shape("ST_AREA", line("[0,0],[1,1]")), "-");
}

TEST(Spatial, WhatIsAtTheOnePoleDoesNotMeetWhatIsAtTheOther) {
  const std::string north = line(
      "[-180,90],[-90,89.99999774112726],[-90,89.99999914622636],[-90,89.99999026548271],"
      "[-90,89.99999137730885]");
  const std::string south =
      R"({"type":"MultiPolygon","coordinates":[[[[124.79504025525905,-89.99997627799489],)"
      R"([105.10556349186844,-89.99997707494546],[68.64893554104954,-89.99998804716896],)"
      R"([54.180996143285924,-89.9999891668269],[179.26478037352925,-89.99999704244134],)"
      R"([124.54736002966875,-89.99999133514383],[124.79504025525905,-89.99997627799489]]],)"
      R"([[[-83.01388250912184,-89.99998051225417],[-140.5329580149714,-89.9999820910929],)"
      R"([7.192848639089869,-90],[-83.01388250912184,-89.99998051225417]]]]})";
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", north, south), "false");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", south, north), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", north, south), "false");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", south, south), "true");
}

TEST(Spatial, WideShapesDoNotMeetWhatIsOppositeToThem) {
  // One part is at the south pole, and one so far from it that they fill half of the earth.
  const std::string parts = R"({"type":"MultiPolygon","coordinates":[[)" +
                            box_ring(0, -90, 1, -80) + "],[" + box_ring(-46, 0, -45, 1) + "]]}";
  const std::string at_the_south_pole = box(-45, -90, -35, -89);
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", parts, point(15, 90)), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(15, 90), parts), "false");
  EXPECT_NEAR(number("ST_DISTANCE", parts, point(15, 90)), 9'891'000, 5'000);
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", parts, point(15, -90)), "true");
  const std::string from_north = line("[-179.99,90],[-180,-0.86]");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", from_north, at_the_south_pole), "false");
  EXPECT_GT(number("ST_DISTANCE", from_north, at_the_south_pole), 9'000'000);
  const std::string meridian = line("[0,-60],[0,60]");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", meridian, line("[180,-80],[180,-10]")), "false");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", meridian, line("[170,-20],[-170,20]")), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", line("[0,89],[90,89]"), box(0, -90, 90, -80)), "false");
  const std::string north = polygon("[[0,60],[90,60],[180,60],[-90,60],[0,60]]");
  const std::string south = polygon("[[0,-60],[-90,-60],[180,-60],[90,-60],[0,-60]]");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", north, south), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", south, north), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", box(10, 80, 20, 85), north), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", box(10, 80, 20, 90), north), "true");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", box(10, 80, 20, 90), north), "true");
}

TEST(Spatial, WithinAreasLinesAndPoints) {
  const std::string square = box(10, 10, 11, 11);
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(10.5, 10.5), square), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(20, 20), square), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", square, point(10.5, 10.5)), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", line("[10.2,10.2],[10.8,10.8]"), square), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", line("[10.2,10.2],[12,12]"), square), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", box(10.2, 10.2, 10.8, 10.8), square), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", square, square), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", box(10.5, 10.5, 12, 12), square), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", square, line("[10,10],[11,11]")), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(3, 4), point(3, 4)), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(3, 4), point(3, 5)), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", line("[0,0],[1,0]"), point(0, 0)), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(5, 0), line("[0,0],[10,0]")), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", line("[2,0],[3,0]"), line("[0,0],[10,0]")), "true");
  const std::string holed = polygon(box_ring(0, 0, 10, 10) + "," + box_ring(2, 2, 8, 8));
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(5, 5), holed), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(1, 5), holed), "true");
  // Over the pole and across 180 degrees.
  const std::string cap = polygon("[[0,60],[90,60],[180,60],[-90,60],[0,60]]");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(33, 88), cap), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(33, 90), cap), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(33, 40), cap), "false");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", point(90, 90), line("[0,80],[180,80]")), "true");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", point(90, 85), line("[0,80],[180,80]")), "false");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", point(90, 90), line("[0,80],[50,90]")), "true");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", point(-90, -50), line("[0,80],[50,90]")), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(20, 80), polygon("[[0,70],[40,70],[77,90],[0,70]]")),
            "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(60, 80), polygon("[[0,70],[40,70],[77,90],[0,70]]")),
            "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(180, 11), box(179, 10, -179, 12)), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(0, 11), box(179, 10, -179, 12)), "false");
}

TEST(Spatial, IntersectsWhereAnythingIsShared) {
  const std::string square = box(10, 10, 11, 11);
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", square, line("[9,10.5],[12,10.5]")), "true");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", square, point(30, 30)), "false");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", point(10.5, 10.5), square), "true");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", square, box(11, 10, 12, 11)), "true");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", square, box(11.01, 10, 12, 11)), "false");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", line("[0,0],[2,2]"), line("[0,2],[2,0]")), "true");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", line("[0,0],[2,2]"), line("[3,2],[4,0]")), "false");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", point(1, 1), point(1, 1)), "true");
}

TEST(Spatial, LinesAreGreatCirclesNotParallels) {
  // The northern border bends north, and so does the southern one.
  const std::string wide = box(0, 40, 60, 50);
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(30, 51), wide), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(30, 41), wide), "false");
}

TEST(Spatial, PointsInRandomTrianglesAsOneFindsThemByHand) {
  const std::uint32_t seed = 20240611;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> longitude(-180, 180);
  std::uniform_real_distribution<double> sine(-1, 1);
  constexpr double kDegree = 3.14159265358979323846 / 180;
  struct Place {
    double x, y;
    std::array<double, 3> v;
  };
  const auto draw = [&] {
    const double y = std::asin(sine(random)) / kDegree;
    const double x = longitude(random);
    const double geocentric = std::atan(0.99330562000986 * std::tan(y * kDegree));
    return Place{x,
                 y,
                 {std::cos(geocentric) * std::cos(x * kDegree),
                  std::cos(geocentric) * std::sin(x * kDegree), std::sin(geocentric)}};
  };
  const auto side = [](const Place& a, const Place& b, const Place& c) {
    return a.v[0] * (b.v[1] * c.v[2] - b.v[2] * c.v[1]) -
           a.v[1] * (b.v[0] * c.v[2] - b.v[2] * c.v[0]) +
           a.v[2] * (b.v[0] * c.v[1] - b.v[1] * c.v[0]);
  };
  int within = 0;
  for (int i = 0; i < 2000; ++i) {
    Place a = draw();
    Place b = draw();
    const Place c = draw();
    const Place p = draw();
    if (side(a, b, c) < 0) std::swap(a, b);
    const std::string triangle =
        polygon("[" + coordinates(a.x, a.y) + "," + coordinates(b.x, b.y) + "," +
                coordinates(c.x, c.y) + "," + coordinates(a.x, a.y) + "]");
    const bool expected = side(a, b, p) > 0 && side(b, c, p) > 0 && side(c, a, p) > 0;
    within += expected;
    EXPECT_EQ(said_of_shape("ST_WITHIN", point(p.x, p.y), triangle), expected ? "true" : "false")
        << triangle << " " << point(p.x, p.y) << reason(triangle);
  }
  EXPECT_GT(within, 100);
}

// ── In a plane ───────────────────────────────────────────────────────────────────────────────────

TEST(Spatial, InAPlaneUnitsAreThoseOfTheCoordinates) {
  EXPECT_EQ(said_of_shape("ST_DISTANCE", point(0, 0), point(3, 4), true), "5");
  EXPECT_EQ(said_of_shape("ST_DISTANCE", point(500, 1000), line("[0,0],[1000,0]"), true), "1000");
  EXPECT_EQ(said_of_shape("ST_DISTANCE", box(0, 0, 10, 10), box(13, 14, 20, 20), true), "5");
  EXPECT_EQ(said_of_shape("ST_DISTANCE", box(0, 0, 10, 10), point(3, 3), true), "0");
  EXPECT_EQ(said_of_shape("ST_AREA", box(0, 0, 1000, 500), "", true), "500000");
  EXPECT_EQ(said_of_shape("ST_AREA", polygon(box_ring(0, 0, 10, 10) + "," + box_ring(2, 2, 4, 4)),
                          "", true),
            "96");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(500, 250), box(0, 0, 1000, 500), true), "true");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(500, 500), box(0, 0, 1000, 500), true), "false");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", point(500, 500), box(0, 0, 1000, 500), true), "true");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", line("[0,0],[9,9]"), line("[0,9],[9,0]"), true), "true");
  EXPECT_EQ(said_of_shape("ST_ISVALID", point(500, 1000), "", true), "true");
  EXPECT_EQ(said_of_shape("ST_ISVALID", point(500, 1000)), "false");
}

TEST(Spatial, DistancesOfManyEdgesAreThoseOfTheNearest) {
  const std::uint32_t seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> anywhere(0, 100);
  for (const bool is_planar : {true, false}) {
    const double beside = is_planar ? 500 : 30;
    std::string positions;
    std::vector<std::string> edges;
    std::string last;
    for (int i = 0; i < 200; ++i) {
      const std::string next = coordinates(anywhere(random) / 10, anywhere(random) / 10);
      if (i > 0) {
        positions += ",";
        edges.push_back(line(last + "," + next));
      }
      positions += next;
      last = next;
    }
    for (int i = 0; i < 20; ++i) {
      const std::string from = point(beside + anywhere(random) / 10, anywhere(random) / 10);
      double nearest = 1e300;
      for (const auto& edge : edges) {
        nearest = std::min(nearest, number("ST_DISTANCE", from, edge, is_planar));
      }
      EXPECT_NEAR(number("ST_DISTANCE", from, line(positions), is_planar) / nearest, 1, 1e-9);
    }
  }
}

// ── What is not valid ────────────────────────────────────────────────────────────────────────────

TEST(Spatial, SaysWhyAGeometryIsNotValid) {
  EXPECT_EQ(said_of_shape("ST_ISVALIDDETAILED", point(10, 120)),
            R"({"valid":false,"reason":"Latitude values must be between -90 and 90 degrees."})");
  EXPECT_EQ(said_of_shape("ST_ISVALIDDETAILED", point(10, 20)), R"({"valid":true})");
  EXPECT_EQ(reason(point(190, 20)), "Longitude values must be between -180 and 180 degrees.");
  EXPECT_EQ(reason(polygon("[[31.8,-5],[32,-5],[32,-4.7],[31.8,-4.7]]")),
            "The Polygon input is not valid because the start and end points of the ring number 1 "
            "are not the same. Each ring of a polygon must have the same start and end points.");
  EXPECT_THAT(reason(polygon("[[0,0],[1,1],[0,0]]")), HasSubstr("fewer than four"));
  EXPECT_THAT(reason(polygon("[[0,0],[0,1],[1,1],[1,0],[0,0]]")), HasSubstr("clockwise"));
  EXPECT_THAT(reason(polygon("[[0,0],[6,0],[6,4],[2,-1],[0,0]]")), HasSubstr("cross"));
  EXPECT_THAT(reason(polygon("[[0,0],[4,0],[4,4],[2,9],[4,4],[0,4],[0,0]]")),
              HasSubstr("the way that it came"));
  EXPECT_THAT(reason(polygon(box_ring(0, 0, 10, 10) + "," + box_ring(12, 2, 13, 3))),
              HasSubstr("hole lies outside"));
  EXPECT_THAT(reason(R"({"type":"MultiPolygon","coordinates":[[)" + box_ring(0, 0, 10, 10) + "],[" +
                     box_ring(2, 2, 3, 3) + "]]}"),
              HasSubstr("overlap"));
  EXPECT_THAT(reason(R"({"type":"MultiPolygon","coordinates":[[)" + box_ring(0, 0, 10, 10) + "],[" +
                     box_ring(2, 2, 13, 3) + "]]}"),
              HasSubstr("cross"));
  EXPECT_THAT(reason(line("[1,1]")), HasSubstr("two different positions"));
  EXPECT_THAT(reason(line("[1,1],[1,1]")), HasSubstr("two different positions"));
  EXPECT_THAT(reason(line("[0,10],[180,-10]")), HasSubstr("opposite ends"));
  EXPECT_THAT(reason(R"({"type":"Circle","coordinates":[0,0]})"), HasSubstr("type"));
  EXPECT_THAT(reason(R"({"coordinates":[0,0]})"), HasSubstr("type"));
  EXPECT_THAT(reason(R"({"type":"Point"})"), HasSubstr("two numbers"));
  EXPECT_THAT(reason(R"({"type":"Point","coordinates":[1]})"), HasSubstr("two numbers"));
  EXPECT_THAT(reason(R"({"type":"Point","coordinates":["1",2]})"), HasSubstr("numbers"));
  EXPECT_THAT(reason(R"({"type":"Polygon","coordinates":[]})"), HasSubstr("outer ring"));
  EXPECT_THAT(reason(R"({"type":"Polygon","coordinates":[[]]})"), HasSubstr("not the same"));
  EXPECT_THAT(reason(R"({"type":"Polygon","coordinates":7})"), HasSubstr("array of rings"));
  EXPECT_THAT(reason(R"({"type":"MultiPolygon","coordinates":[]})"), HasSubstr("at least one"));
  EXPECT_THAT(reason(point(1e31, 0), true), HasSubstr("1e30"));
  EXPECT_EQ(reason(R"({"type":"Point","coordinates":[1,2,300]})"), "valid");
  // Either way round.
  EXPECT_EQ(reason(polygon(box_ring(0, 0, 10, 10) + ",[[2,2],[2,3],[3,3],[3,2],[2,2]]")), "valid");
  EXPECT_EQ(reason(polygon(box_ring(0, 0, 10, 10) + "," + box_ring(2, 2, 3, 3))), "valid");
  EXPECT_EQ(said_of_shape("ST_ISVALID", R"("text")"), "-");
  EXPECT_EQ(said_of_shape("ST_ISVALIDDETAILED", "null"), "-");
}

TEST(Spatial, WhatIsNotValidMakesTheRestUndefined) {
  const std::string clockwise = polygon("[[0,0],[0,1],[1,1],[1,0],[0,0]]");
  for (const char* const name : {"ST_DISTANCE", "ST_WITHIN", "ST_INTERSECTS"}) {
    EXPECT_EQ(said_of_shape(name, point(1, 1), clockwise), "-");
    EXPECT_EQ(said_of_shape(name, clockwise, point(1, 1)), "-");
    EXPECT_EQ(said_of_shape(name, point(1, 91), box(0, 0, 1, 1)), "-");
    EXPECT_EQ(said_of_shape(name, "7", point(1, 1)), "-");
  }
  EXPECT_EQ(said_of_shape("ST_AREA", clockwise), "-");
}

TEST(Spatial, AGeometryIsReadAgainForAnotherSurface) {
  // A cached geometry of the one does not answer for the other.
  const std::string far = line("[0,0],[1000,0]");
  EXPECT_EQ(said_of_shape("ST_ISVALID", far, "", true), "true");
  EXPECT_EQ(said_of_shape("ST_ISVALID", far, "", false), "false");
  EXPECT_EQ(said_of_shape("ST_ISVALID", far, "", true), "true");
}

TEST(Spatial, MorePositionsThanItCanComputeWithAreRefused) {
  std::string positions = "[0,0]";
  for (int i = 0; i < 32'768; ++i) positions += i % 2 == 0 ? ",[1,1]" : ",[0,0]";
  EXPECT_THAT(reason(line(positions)), HasSubstr("32768 positions"));
}

TEST(Spatial, ManyRingsThatMeetInOnePlaceAreRefused) {
  // Like the leaves of a flower.
  std::string leaves;
  const auto flower = [&] { return R"({"type":"MultiPolygon","coordinates":[)" + leaves + "]}"; };
  for (int i = 0; i < 65; ++i) {
    const auto leaf = [&](double turn) {
      return coordinates(std::cos((i + turn) / 11), std::sin((i + turn) / 11));
    };
    if (i > 0) leaves += ",";
    leaves += "[[[0,0]," + leaf(0) + "," + leaf(0.5) + ",[0,0]]]";
    if (i == 60) {
      EXPECT_EQ(reason(flower(), true), "valid");
    }
  }
  EXPECT_THAT(reason(flower(), true), HasSubstr("meet in one place"));
}

TEST(Spatial, ALineIsWithinALineThatItLiesOn) {
  for (const bool is_planar : {true, false}) {
    const auto is_within = [&](std::string_view a, std::string_view b) {
      return said_of_shape("ST_WITHIN", line(a), line(b), is_planar);
    };
    EXPECT_EQ(is_within("[2,0],[3,0]", "[0,0],[10,0]"), "true");
    EXPECT_EQ(is_within("[3,0],[2,0],[3,0]", "[0,0],[10,0]"), "true");
    EXPECT_EQ(is_within("[0,0],[10,0]", "[2,0],[3,0]"), "false");
    EXPECT_EQ(is_within("[1,0],[9,0]", "[0,0],[4,0],[3,0],[10,0]"), "true");
    EXPECT_EQ(is_within("[1,0],[9,0]", "[10,0],[6,0],[6,5],[5,5],[5,0],[0,0]"), "false");
    EXPECT_EQ(is_within("[0,0],[0,5]", "[0,0],[10,0]"), "false");
    EXPECT_EQ(is_within("[0,1],[2,1]", "[1,0],[1,2]"), "false");
    EXPECT_EQ(is_within("[1,1],[2,5]", "[0,7],[1,1],[2,5],[7,7]"), "true");
    EXPECT_EQ(is_within("[1,1],[1,1],[2,5]", "[0,7],[1,1],[2,5],[7,7]"), "true");
  }
}

TEST(Spatial, ALineIsNotAtTheOtherEndOfTheEarth) {
  const std::string way = line("[180,90],[175.8,23.3]");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", point(0, -90), way), "false");
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", way, point(0, -90)), "false");
  EXPECT_EQ(said_of_shape("ST_WITHIN", point(-180, -90), way), "false");
  EXPECT_GT(number("ST_DISTANCE", point(0, -90), way), 1e7);
  EXPECT_EQ(said_of_shape("ST_INTERSECTS", point(0, 90), way), "true");
}

TEST(Spatial, ALineThatIsOnlyOnTheBorderIsNotWithin) {
  for (const bool is_planar : {true, false}) {
    const std::string area = box(0, 0, 10, 10);
    const auto is_within = [&](std::string_view positions) {
      return said_of_shape("ST_WITHIN", line(positions), area, is_planar);
    };
    EXPECT_EQ(is_within("[0,1],[0,9]"), "false");
    EXPECT_EQ(is_within("[0,1],[0,9],[5,9]"), "true");
    EXPECT_EQ(is_within("[5,5],[10,0]"), "true");
    EXPECT_EQ(is_within("[5,5],[11,0]"), "false");
    EXPECT_EQ(is_within("[0,0],[-1,-1]"), "false");
  }
}

TEST(Spatial, ALongLineIsWithinWhenAllItsPiecesAre) {
  // More pairs of edges than are looked at in one go; only the last piece leaves the border.
  std::string ring;
  for (int i = 0; i < 2000; ++i) {
    const double turn = 2 * 3.14159265358979323846 * i / 2000;
    ring += coordinates(10 * std::cos(turn), 10 * std::sin(turn)) + ",";
  }
  const std::string area = polygon("[" + ring + "[10,0]]");
  ring.pop_back();
  for (const bool is_planar : {true, false}) {
    EXPECT_EQ(said_of_shape("ST_WITHIN", line(ring), area, is_planar), "false");
    EXPECT_EQ(said_of_shape("ST_WITHIN", line(ring + ",[0,0]"), area, is_planar), "true");
    EXPECT_EQ(said_of_shape("ST_WITHIN", line(ring + ",[0,0],[20,0]"), area, is_planar), "false");
  }
}

TEST(Spatial, LinesThatCrossEverywhereTakeNotForEver) {
  std::string along;
  std::string across;
  for (int i = 0; i < 3000; ++i) {
    const double slow = i / 300.0;
    const double fast = i % 2 == 0 ? 0 : 10;
    if (i > 0) {
      along += ",";
      across += ",";
    }
    along += coordinates(slow, fast);
    across += coordinates(fast, slow);
  }
  for (const bool is_planar : {true, false}) {
    EXPECT_EQ(said_of_shape("ST_WITHIN", line(along), line(across), is_planar), "false");
    EXPECT_EQ(said_of_shape("ST_WITHIN", line(along), line(along), is_planar), "true");
    EXPECT_EQ(said_of_shape("ST_INTERSECTS", line(along), line(across), is_planar), "true");
  }
}

// ── Cells ────────────────────────────────────────────────────────────────────────────────────────

bool is_found(const std::vector<std::string>& cells,
              const std::vector<json::KeyInterval>& intervals) {
  for (const auto& cell : cells) {
    for (const auto& [low, high] : intervals) {
      if (low <= cell && cell < high) return true;
    }
  }
  return false;
}

void expect_sorted_and_disjoint(const std::vector<json::KeyInterval>& intervals) {
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    EXPECT_LT(intervals[i].low, intervals[i].high);
    if (i > 0) EXPECT_LE(intervals[i - 1].high, intervals[i].low);
  }
}

class Cells : public testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kCells = 8;
  bool is_planar() const { return GetParam(); }
  std::vector<std::string> cells(const std::string& value) const {
    return geo::covering_cells(Value::of_checked(value), is_planar(), kCells);
  }
  std::vector<json::KeyInterval> intervals(const std::string& value, double distance) const {
    return geo::covering_intervals(Value::of_checked(value), is_planar(), distance, kCells);
  }
  std::string said_of(std::string_view name, const std::string& a, const std::string& b) const {
    return said_of_shape(name, a, b, is_planar());
  }
  double distance(const std::string& a, const std::string& b) const {
    return number("ST_DISTANCE", a, b, is_planar());
  }
};

TEST_P(Cells, OfWhateverIsNearEnoughAreFound) {
  const std::uint32_t seed = 99;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> longitude(-180, 180);
  std::uniform_real_distribution<double> latitude(-90, 90);
  std::uniform_real_distribution<double> size(0, 1);
  // Many at the places where the earth has seams.
  const auto draw_x = [&] { return size(random) < 0.1 ? 180.0 : longitude(random); };
  const auto draw_y = [&] { return size(random) < 0.1 ? 90.0 : latitude(random); };
  int near = 0;
  int skipped = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string centre = point(draw_x(), draw_y());
    std::string other = point(draw_x(), draw_y());
    if (i % 3 == 0) {
      other = line(coordinates(draw_x(), draw_y()) + "," + coordinates(draw_x(), draw_y()));
      if (distance(other, centre) != distance(other, centre)) continue;  // not a valid line
    }
    const double between = distance(centre, other);
    const auto found = intervals(centre, between);
    expect_sorted_and_disjoint(found);
    EXPECT_TRUE(is_found(cells(other), found)) << centre << other << between;
    EXPECT_TRUE(is_found(cells(centre), intervals(other, between))) << centre << other;
    ++near;
    skipped += !is_found(cells(other), intervals(centre, between / 4));
  }
  EXPECT_GT(near, 2000);
  // They are of use only if they leave out most of what is too far away.
  EXPECT_GT(skipped, near / 2);
}

TEST_P(Cells, OfWhateverLiesInAnAreaAreFound) {
  const std::uint32_t seed = 5;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> x(-180, 180);
  std::uniform_real_distribution<double> y(-90, 90);
  int within = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string ring[2];
    const std::string a = coordinates(x(random), y(random));
    const std::string b = coordinates(x(random), y(random));
    const std::string c = coordinates(x(random), y(random));
    std::string triangle = polygon("[" + a + "," + b + "," + c + "," + a + "]");
    if (said_of_shape("ST_ISVALID", triangle, "", is_planar()) != "true") {
      triangle = polygon("[" + a + "," + c + "," + b + "," + a + "]");
    }
    const std::string place = point(x(random), y(random));
    if (said_of("ST_INTERSECTS", place, triangle) != "true") continue;
    ++within;
    EXPECT_TRUE(is_found(cells(place), intervals(triangle, 0))) << place << triangle;
    EXPECT_TRUE(is_found(cells(triangle), intervals(place, 0))) << place << triangle;
  }
  EXPECT_GT(within, 200);
}

TEST_P(Cells, OfAPointAreOne) {
  EXPECT_EQ(cells(point(12.5, 41.9)).size(), 1U);
  EXPECT_EQ(cells(point(0, 0)).size(), 1U);
  EXPECT_EQ(cells(point(180, 90)).size(), 1U);
}

TEST_P(Cells, AreNoMoreThanWanted) {
  EXPECT_LE(cells(line("[-100,-50],[70,40]")).size(), kCells);
  EXPECT_LE(cells(box(3, 5, 17, 29)).size(), kCells);
  EXPECT_EQ(geo::covering_cells(Value::of_checked(box(3, 5, 17, 29)), is_planar(), 0).size(), 1U);
}

TEST_P(Cells, OfWhatIsNotValidAreNone) {
  EXPECT_TRUE(cells(R"({"type":"Point"})").empty());
  EXPECT_TRUE(cells("7").empty());
  EXPECT_TRUE(intervals(R"({"type":"Point"})", 1).empty());
  EXPECT_TRUE(intervals(point(1, 1), -1).empty());
  EXPECT_TRUE(intervals(point(1, 1), NAN).empty());
  EXPECT_TRUE(is_found(cells(point(100, 70)), intervals(point(1, 1), INFINITY)));
}

TEST_P(Cells, OfASmallRegionLeaveOutTheRest) {
  const auto found = intervals(point(12.5, 41.9), is_planar() ? 0.01 : 1000);
  EXPECT_TRUE(is_found(cells(point(12.5001, 41.9001)), found));
  EXPECT_FALSE(is_found(cells(point(13.5, 41.9)), found));
  EXPECT_FALSE(is_found(cells(point(12.5, 42.9)), found));
}

INSTANTIATE_TEST_SUITE_P(Surfaces, Cells, testing::Bool(),
                         [](const auto& info) { return info.param ? "Plane" : "Earth"; });

}  // namespace
}  // namespace orrery::query
