// The surface of the earth as WGS-84 has it: places, ways and areas on it.
//
// The line between two places is where the plane through both and the centre of the earth cuts the
// surface. It is not quite the shortest way, but what the service computes with: its areas fit to
// ten digits. And seen from the centre such lines are great circles, so that with geocentric
// latitudes all questions of what lies where are those of a sphere.
#pragma once

#include <numbers>

#include <span>

namespace orrery::geo {

/// Degrees of longitude and latitude; or a place in a plane.
struct Position {
  double x;
  double y;
  bool operator==(const Position&) const = default;
};

/// A point in space, or a direction.
struct Space {
  double x;
  double y;
  double z;

  Space operator+(Space other) const { return {x + other.x, y + other.y, z + other.z}; }
  Space operator-(Space other) const { return {x - other.x, y - other.y, z - other.z}; }
  Space operator*(double factor) const { return {x * factor, y * factor, z * factor}; }
};
double dot(Space a, Space b);
Space cross(Space a, Space b);
double length(Space a);
Space normalized(Space a);

inline constexpr double kDegree = std::numbers::pi / 180;  ///< in radians
inline constexpr double kEquatorMetres = 6378137.0;
inline constexpr double kFlattening = 1 / 298.257223563;
inline constexpr double kPolarMetres = kEquatorMetres * (1 - kFlattening);
/// Nowhere is the surface curved more than a sphere of this radius: that of a meridian at the
/// equator.
inline constexpr double kCurvatureMetresMin = kPolarMetres * (1 - kFlattening);

// Degrees, both ways.
double geocentric_latitude(double geographic);
double geographic_latitude(double geocentric);

/// Metres from the centre of the earth.
Space on_earth(Position position);
/// The place where a direction from the centre leaves the surface; and its degrees.
Space surface_towards(Space direction);
Position position_towards(Space direction);

/// A line on the earth as seen from its centre: an arc between two directions.
struct Arc {
  Space begin;
  Space ahead;   ///< at a right angle to `begin`
  double angle;  ///< from one to the other, at most pi

  Arc(Space a, Space b);
  /// The direction at an angle from `begin`.
  Space at(double along) const;
  /// The angle at which it is nearest to a direction: an end of it, or between.
  double nearest(Space to) const;
};

/// From -180 up to and including 180: the shorter way east from one longitude to another.
double longitude_difference(double from, double to);

/// The place of the line from `a` to `b` that is nearest to `to`, all three on the earth.
Space nearest_on_line(Space a, Space b, Space to);
/// The same, but only nearly the nearest: cheaper, and good enough to find out which of several
/// lines is nearest.
Space about_nearest_on_line(Space a, Space b, Space to);

/// Square metres within a ring whose last position is its first. Negative when the smaller of the
/// two parts into which it cuts the earth is to its right.
double area_on_earth(std::span<const Position> ring);
/// How often the ring goes round the pole, eastward: 1, 0 or -1.
int turns_around_pole(std::span<const Position> ring);

}  // namespace orrery::geo
