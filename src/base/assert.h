// ORRERY_ASSERT: for what cannot be false unless the program is wrong. On in every build; stops the
// process. User input never reaches one: what a client can cause is an Error.
#pragma once

namespace orrery {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace orrery

#define ORRERY_ASSERT(condition)          \
  (static_cast<bool>(condition) ? void(0) \
                                : ::orrery::assertion_failed(#condition, __FILE__, __LINE__))
