// Keyring: the account keys in force. They can be exchanged while requests are served.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/authorizer.h"
#include "base/clock.h"
#include "protocol/auth/auth_signature.h"

namespace orrery::api {

struct AccountKey {
  std::string slot;  ///< "primary", "secondary-readonly": what its owner calls it
  Access access = Access::ReadOnly;
  std::string text;  ///< base64
  MasterKey key;
  /// Of the key, as long as it is in force, and never of another one; set by the keyring.
  std::uint64_t id = 0;
  /// When a request that it signed was let in; 0: not since the start. Shared with its successors.
  std::shared_ptr<std::atomic<UnixSeconds>> last_used = {};
};

/// Thread-safe.
class Keyring {
 public:
  using Keys = std::vector<AccountKey>;

  explicit Keyring(Keys keys);

  /// From when it returns, these keys and no others open the door. A key that stays keeps its id.
  void replace(Keys keys);

  /// The keys in force, until the next call on this thread. Takes no lock while they stay the same.
  const Keys& in_force() const;
  /// Whether the key with this id is still in force.
  bool holds(std::uint64_t id) const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Keys> keys_;  // Guarded by mutex_.
  // Another one for each exchange, among all keyrings of the process.
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace orrery::api
