// Account keys as their owners handle them: made, and checked before a server takes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace orrery {

/// Shorter ones could be guessed from a signature that somebody has overheard.
inline constexpr std::size_t kAccountKeyBytesMin = 32;

/// A new random key of 64 bytes, base64 on one line. Internal when there is no randomness.
Result<std::string> make_account_key();

/// BadRequest, saying what to do, unless it is base64 of enough bytes.
Result<> check_account_key(std::string_view base64);

}  // namespace orrery
