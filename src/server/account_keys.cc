#include "server/account_keys.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "protocol/auth/account_key.h"
#include "protocol/auth/auth_signature.h"
#include "server/key_file.h"

namespace orrery::server {
namespace {

/// Without slots where the configuration names none.
Result<std::vector<NamedKey>> gather_keys(const Config& config) {
  std::vector<NamedKey> keys;
  keys.reserve(config.keys.size());
  for (const std::string& text : config.keys) keys.push_back({"", text});
  if (!config.key_file.empty()) {
    const std::string path = config.key_file.string();
    ORRERY_TRY(auto in_file, read_key_file(path));
    std::ranges::move(in_file, std::back_inserter(keys));
    if (is_readable_by_others(path)) {
      diagnostics::warning("the key file {} can be read by others on this machine: chmod 600 {}",
                           path, path);
    }
  }
  if (keys.empty()) keys.push_back({"", std::string(kWellKnownKey)});
  return keys;
}

/// Keys of --read-only-key have the slots that the key file leaves.
void add_read_only_keys(const Config& config, std::vector<NamedKey>& keys) {
  std::size_t count = 0;
  const auto next_slot = [&] {
    ++count;
    return count <= 2 ? std::string(kKeySlots[count + 1]) : fmt::format("key-{}-readonly", count);
  };
  for (const std::string& text : config.read_only_keys) {
    std::string slot = next_slot();
    while (std::ranges::find(keys, slot, &NamedKey::slot) != keys.end()) slot = next_slot();
    keys.push_back({std::move(slot), text});
  }
}

}  // namespace

Result<api::Keyring::Keys> read_account_keys(const Config& config) {
  ORRERY_TRY(auto named, gather_keys(config));
  name_keys(named);
  add_read_only_keys(config, named);
  api::Keyring::Keys keys;
  bool has_well_known_key = false;
  // A request is mostly signed with a key that may write: those are tried first.
  for (const auto access : {api::Access::ReadWrite, api::Access::ReadOnly}) {
    for (const NamedKey& each : named) {
      if (is_read_only_slot(each.slot) != (access == api::Access::ReadOnly)) continue;
      ORRERY_TRY(check_account_key(each.text));
      ORRERY_TRY(auto key, MasterKey::parse(each.text));
      has_well_known_key = has_well_known_key || each.text == kWellKnownKey;
      keys.push_back(
          {.slot = each.slot, .access = access, .text = each.text, .key = std::move(key)});
    }
  }
  if (has_well_known_key && !config.listens_on_loopback() && !config.allow_well_known_key) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("refusing to listen on {} with the well-known key: everybody has it, and "
                    "could read and change all data. Make a key of your own with\n"
                    "  orrery keygen --file orrery.key\n"
                    "and add --key-file orrery.key; or listen on 127.0.0.1; or say "
                    "--allow-well-known-key if the network is closed",
                    config.listen_address));
  }
  return keys;
}

}  // namespace orrery::server
