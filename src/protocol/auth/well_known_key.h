// The account key that every emulator of the service has, and that everybody knows.
#pragma once

#include <string_view>

namespace orrery {

/// The key that every emulator and SDK example uses. It is public: it protects nothing.
inline constexpr std::string_view kWellKnownKey =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

}  // namespace orrery
