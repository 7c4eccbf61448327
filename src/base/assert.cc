#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace orrery {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr,
               "orrery: internal error, stopping: '%s' does not hold at %s:%d.\n"
               "Acknowledged writes are safe. Please report this line.\n",
               condition, file, line);
  std::abort();
}

}  // namespace orrery
