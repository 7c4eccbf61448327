#include "geo/geodesic.h"

#include <cmath>

#include <boost/geometry/util/math.hpp>

// Boost's own turns a negative quadrant into an unsigned number, which is whatever the processor
// makes of it. Arguments here are all within half a turn, so this is as exact.
template <>
inline void boost::geometry::math::sin_cos_degrees<double>(const double& degrees, double& sine,
                                                           double& cosine) {
  const double quadrant = std::round(degrees / 90);
  const double rest = (degrees - 90 * quadrant) * (std::numbers::pi / 180);
  const double s = std::sin(rest);
  const double c = std::cos(rest);
  switch (static_cast<int>(std::fmod(quadrant, 4) + 4) % 4) {
    case 0:
      sine = s;
      cosine = c;
      break;
    case 1:
      sine = c;
      cosine = -s;
      break;
    case 2:
      sine = -s;
      cosine = -c;
      break;
    default:
      sine = -c;
      cosine = s;
      break;
  }
}

#include <boost/geometry/formulas/karney_inverse.hpp>
#include <boost/geometry/srs/spheroid.hpp>

#include "geo/earth.h"

namespace orrery::geo {

double metres_between(Position a, Position b) {
  using Inverse = boost::geometry::formula::karney_inverse<double, true, false>;
  static const boost::geometry::srs::spheroid<double> earth(kEquatorMetres, kPolarMetres);
  if (a == b) return 0;
  return Inverse::apply(a.x * kDegree, a.y * kDegree, b.x * kDegree, b.y * kDegree, earth).distance;
}

}  // namespace orrery::geo
