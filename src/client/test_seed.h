// A seed for tests that try what nobody thought of.
#pragma once

#include <cstdlib>
#include <random>
#include <string>

namespace orrery::client::test {

/// Another one each time, or what ORRERY_SEED says, to try again what has failed. Tests show it
/// with SCOPED_TRACE.
inline unsigned seed() {
  const char* given = std::getenv("ORRERY_SEED");
  return given != nullptr ? static_cast<unsigned>(std::stoul(given)) : std::random_device{}();
}

}  // namespace orrery::client::test
