// ErrorCode ↔ status, sub-status and `code`: the one table.
#pragma once

#include <string_view>

#include "base/error.h"

namespace orrery {

struct WireError {
  int status;
  int substatus;          ///< 0: none
  std::string_view code;  ///< the body's `code`
};

WireError wire_error(ErrorCode code);

/// "OK", "Created", … for the status line; "Unknown" for what we never send.
std::string_view reason_phrase(int status);

}  // namespace orrery
