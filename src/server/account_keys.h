// The account keys of a configuration: from its options and its key file.
#pragma once

#include "api/keyring.h"
#include "base/result.h"
#include "server/config.h"

namespace orrery::server {

/// The well-known key where none is given. Warns of a key file that others can read. BadRequest for
/// what is no key, and for the well-known one where others than this machine could use it;
/// Unavailable when the key file cannot be read.
Result<api::Keyring::Keys> read_account_keys(const Config& config);

}  // namespace orrery::server
