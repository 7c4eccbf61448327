// Authorising: whether who asks may do what is asked with the target. The second of the three
// steps of every request; which key or token signed it is the authenticator's business.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace orrery::api {

struct Target;

/// The rights of the key that signed the request.
enum class Access { ReadWrite, ReadOnly };

/// The authenticated caller.
struct Principal {
  Access access = Access::ReadOnly;
  std::uint64_t key = 0;  ///< the id of the account key: see Keyring::holds()
};

/// The access that a request needs. Queries and query plans are reads.
enum class Action { Read, Write };

/// Forbidden, with a message that says which key to use. The target is empty where it does not
/// exist: keys of the account are for everything in it, and are refused before anybody is told.
Result<> authorize(const Principal& principal, Action action, const Target& target);

}  // namespace orrery::api
