// A request that is refused before it becomes one.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"

namespace orrery::http {

/// Why a request was refused that no handler has seen, for the answer and for a trace.
struct Refusal {
  Error error;
  std::string client;         ///< "127.0.0.1:4711"
  std::string_view method{};  ///< empty, as the target, when it is not known
  std::string_view target{};
  std::chrono::milliseconds retry_after{0};  ///< 0: whatever is usual for the error
};

}  // namespace orrery::http
