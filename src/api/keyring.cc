#include "api/keyring.h"

#include <algorithm>
#include <utility>

namespace orrery::api {
namespace {

/// Numbers for keys and generations; none is given out twice, and none is 0.
std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Keyring::Keyring(Keys keys) : keys_(std::make_shared<const Keys>()) { replace(std::move(keys)); }

void Keyring::replace(Keys keys) {
  std::lock_guard lock(mutex_);
  for (AccountKey& key : keys) {
    const auto before = std::ranges::find(*keys_, key.text, &AccountKey::text);
    const bool stays = before != keys_->end() && before->access == key.access;
    key.id = stays ? before->id : next_number();
    key.last_used =
        stays ? before->last_used : std::make_shared<std::atomic<UnixSeconds>>(UnixSeconds{0});
  }
  keys_ = std::make_shared<const Keys>(std::move(keys));
  generation_.store(next_number(), std::memory_order_release);
}

const Keyring::Keys& Keyring::in_force() const {
  struct Cached {
    std::uint64_t generation = 0;
    std::shared_ptr<const Keys> keys;
  };
  static thread_local Cached cached;
  if (cached.generation != generation_.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex_);
    cached = {generation_.load(std::memory_order_relaxed), keys_};
  }
  return *cached.keys;
}

bool Keyring::holds(std::uint64_t id) const {
  return std::ranges::find(in_force(), id, &AccountKey::id) != in_force().end();
}

}  // namespace orrery::api
