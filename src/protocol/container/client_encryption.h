// Always Encrypted on the wire: keys that clients wrap, and which properties of a container they
// encrypt with them. The server keeps both and hands them out; it never sees a key or a plain text.
#pragma once

#include "base/result.h"
#include "protocol/keys/partition_key.h"
#include "protocol/wire/resource_body.h"

namespace orrery {

/// Of the body of a client encryption key. The wrapped key of an RSA key of 4096 bits takes 684.
inline constexpr std::size_t kEncryptionKeyBytesMax = 16 << 10;

/// The body of a client encryption key as it is stored: its id first, then the other members as
/// they came, without system properties. BadRequest names the member and the rule.
Result<Json> parse_encryption_key(std::string_view body);

/// The `clientEncryptionPolicy` of a container with this partition key. BadRequest names the member
/// and the rule. That a key which it names exists is not asked for: clients find that out.
Result<> check_encryption_policy(const Json& policy, const PartitionKeyDefinition& partition_key);

}  // namespace orrery
