// Ways over the surface of the earth, as WGS-84 has it.
#pragma once

#include "geo/earth.h"

namespace orrery::geo {

/// The shortest way over the surface.
double metres_between(Position a, Position b);

}  // namespace orrery::geo
