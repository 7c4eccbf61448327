#include "geo/earth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace orrery::geo {
namespace {

using std::numbers::pi;

constexpr double kEccentricitySquare = kFlattening * (2 - kFlattening);

Space direction_of(Position position) { return normalized(on_earth(position)); }

/// The sine of the latitude on a sphere of the same area, of a geocentric one: all areas are kept.
double authalic_sine(double geocentric_sine) {
  const double e = std::sqrt(kEccentricitySquare);
  const auto q = [&](double sine) {
    return sine / (1 - kEccentricitySquare * sine * sine) + std::atanh(e * sine) / e;
  };
  static const double whole = q(1);
  // tan(geographic) = tan(geocentric) / (1 - e²)
  const double cosine =
      std::sqrt(std::max(0.0, 1 - geocentric_sine * geocentric_sine)) * (1 - kEccentricitySquare);
  return q(geocentric_sine / std::hypot(geocentric_sine, cosine)) / whole;
}

double authalic_radius_square() {
  const double e = std::sqrt(kEccentricitySquare);
  return kPolarMetres * kPolarMetres / 2 * (1 / (1 - kEccentricitySquare) + std::atanh(e) / e);
}

/// The integral of sin(authalic) - sin(geocentric) over the longitude, along an arc. The integrand
/// over the angle of the arc is smooth, also beside the poles, where the longitude is not.
double authalic_excess(Space a, Space b) {
  // Gauss and Legendre, five points.
  static constexpr std::array<std::array<double, 2>, 5> kPoints = {
      {{-0.9061798459386640, 0.2369268850561891},
       {-0.5384693101056831, 0.4786286704993665},
       {0.0, 0.5688888888888889},
       {0.5384693101056831, 0.4786286704993665},
       {0.9061798459386640, 0.2369268850561891}}};
  const Arc arc(a, b);
  const double eastward = cross(arc.begin, arc.ahead).z;
  const auto pieces = static_cast<std::size_t>(std::ceil(arc.angle / (pi / 8)));
  double sum = 0;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const double half = arc.angle / static_cast<double>(pieces) / 2;
    const double middle = (2 * static_cast<double>(piece) + 1) * half;
    for (const auto& [at, weight] : kPoints) {
      const double z = arc.at(middle + at * half).z;
      // At the pole itself both are 1, and the quotient has a limit.
      const double cosine_square = std::max(1e-9, 1 - z * z);
      const double sine = std::copysign(std::sqrt(1 - cosine_square), z);
      sum += weight * half * (authalic_sine(sine) - sine) / cosine_square;
    }
  }
  return sum * eastward;
}

/// The integral of the sine of the latitude over the longitude, along an arc: the area between it
/// and the equator on a sphere of radius 1.
double area_below(Position from, Position to) {
  const double difference = longitude_difference(from.x, to.x) * kDegree;
  const double a = std::tan(geocentric_latitude(from.y) * kDegree / 2);
  const double b = std::tan(geocentric_latitude(to.y) * kDegree / 2);
  // Half a turn goes over a pole: the nearer one, and the area is that of the way along meridians.
  return 2 * std::atan2(std::sin(difference / 2) * (a + b), std::cos(difference / 2) * (1 + a * b));
}

}  // namespace

double dot(Space a, Space b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Space cross(Space a, Space b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
double length(Space a) { return std::sqrt(dot(a, a)); }
Space normalized(Space a) { return a * (1 / length(a)); }

double geocentric_latitude(double geographic) {
  // The tangent has no value at the poles, and loses digits beside them.
  if (std::fabs(geographic) >= 90) return geographic;
  return std::atan((1 - kEccentricitySquare) * std::tan(geographic * kDegree)) / kDegree;
}

double geographic_latitude(double geocentric) {
  if (std::fabs(geocentric) >= 90) return geocentric;
  return std::atan(std::tan(geocentric * kDegree) / (1 - kEccentricitySquare)) / kDegree;
}

Space on_earth(Position position) {
  const double sine = std::sin(position.y * kDegree);
  const double cosine = std::cos(position.y * kDegree);
  const double radius = kEquatorMetres / std::sqrt(1 - kEccentricitySquare * sine * sine);
  return {radius * cosine * std::cos(position.x * kDegree),
          radius * cosine * std::sin(position.x * kDegree),
          radius * (1 - kEccentricitySquare) * sine};
}

Space surface_towards(Space direction) {
  const double x = direction.x / kEquatorMetres;
  const double y = direction.y / kEquatorMetres;
  const double z = direction.z / kPolarMetres;
  return direction * (1 / std::sqrt(x * x + y * y + z * z));
}

Position position_towards(Space direction) {
  const double latitude =
      std::atan2(direction.z / (1 - kEccentricitySquare), std::hypot(direction.x, direction.y));
  return {std::atan2(direction.y, direction.x) / kDegree, latitude / kDegree};
}

Arc::Arc(Space a, Space b) : begin(normalized(a)) {
  const Space end = normalized(b);
  const Space normal = cross(begin, end);
  angle = std::atan2(length(normal), dot(begin, end));
  ahead = length(normal) > 0 ? normalized(cross(normal, begin)) : Space{0, 0, 0};
}

Space Arc::at(double along) const { return begin * std::cos(along) + ahead * std::sin(along); }

double Arc::nearest(Space to) const {
  const double along = std::atan2(dot(to, ahead), dot(to, begin));
  if (along >= 0 && along <= angle) return along;
  // In the middle of the rest of the circle it changes from one end to the other.
  const double beyond = along < 0 ? along + 2 * pi : along;
  return beyond - angle < 2 * pi - beyond ? angle : 0;
}

double longitude_difference(double from, double to) {
  double difference = std::remainder(to - from, 360);
  if (difference == -180) difference = 180;
  return difference;
}

Space about_nearest_on_line(Space a, Space b, Space to) {
  const Arc arc(a, b);
  return surface_towards(arc.at(arc.nearest(to)));
}

Space nearest_on_line(Space a, Space b, Space to) {
  const Arc arc(a, b);
  // As seen from the centre it is off by the flattening at most. There is one minimum around it:
  // the golden section finds it.
  const double about = arc.nearest(to);
  const double slack = 4 * kFlattening;
  const auto off = [&](double along) { return length(surface_towards(arc.at(along)) - to); };
  const double ratio = 1 / std::numbers::phi;
  double low = std::max(0.0, about - slack);
  double high = std::min(arc.angle, about + slack);
  double left = high - ratio * (high - low);
  double right = low + ratio * (high - low);
  double off_left = off(left);
  double off_right = off(right);
  constexpr int kSteps = 50;
  for (int step = 0; step < kSteps; ++step) {
    if (off_left <= off_right) {
      high = right;
      right = left;
      off_right = off_left;
      left = high - ratio * (high - low);
      off_left = off(left);
    } else {
      low = left;
      left = right;
      off_left = off_right;
      right = low + ratio * (high - low);
      off_right = off(right);
    }
  }
  const Space inside = surface_towards(arc.at((low + high) / 2));
  // The ends themselves are exact.
  return std::ranges::min(std::array{a, b, inside}, {},
                          [&](Space candidate) { return length(candidate - to); });
}

int turns_around_pole(std::span<const Position> ring) {
  double eastward = 0;
  for (std::size_t i = 1; i < ring.size(); ++i) {
    eastward += longitude_difference(ring[i - 1].x, ring[i].x);
  }
  return static_cast<int>(std::clamp(std::round(eastward / 360), -1.0, 1.0));
}

double area_on_earth(std::span<const Position> ring) {
  double sum = 0;
  for (std::size_t i = 1; i < ring.size(); ++i) {
    sum += area_below(ring[i - 1], ring[i]);
    sum += authalic_excess(direction_of(ring[i - 1]), direction_of(ring[i]));
  }
  // Of a sphere of radius 1. To the left of a ring that goes east lies the north pole, which the
  // sum, an area beside the equator, leaves out.
  const double left = 2 * pi * std::abs(turns_around_pole(ring)) - sum;
  return std::remainder(left, 4 * pi) * authalic_radius_square();
}

}  // namespace orrery::geo
