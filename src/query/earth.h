// Ways over the surface of the earth, as WGS-84 has it.
#pragma once

#include "json/geo_earth.h"

namespace orrery::query {

namespace geo = json::geo;

/// The shortest way over the surface.
double metres_between(geo::Position a, geo::Position b);

}  // namespace orrery::query
