// Key files: account keys, one a line, with or without the name of their slot.
//
//   # since May
//   primary: 2H7…==
//   secondary: mN0…==
//   primary-readonly: x81…==
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace orrery::server {

/// Names that owners give their keys, as in the service. A file may have more keys, without a name.
inline constexpr std::array<std::string_view, 4> kKeySlots = {
    "primary", "secondary", "primary-readonly", "secondary-readonly"};

/// Whether a key in this slot may only read.
inline bool is_read_only_slot(std::string_view slot) { return slot.ends_with("-readonly"); }

struct NamedKey {
  std::string slot;  ///< empty: the line has none, and it is a read-write key
  std::string text;
};

/// The keys in a file. Empty lines and lines that begin with # don't count. A file without a
/// read-write key is refused: to go on with the well-known one instead would open the door that
/// somebody meant to close. So is one in which a line is not a whole key, or in which a key seems
/// to be broken over several lines: each part would open the account. BadRequest, naming the lines;
/// Unavailable when the file cannot be read.
Result<std::vector<NamedKey>> read_key_file(const std::string& path);

/// Gives the keys without a slot the next free ones, in their order: primary, secondary, key-3, …
void name_keys(std::vector<NamedKey>& keys);

/// Puts a key into a slot of a file, in place of the one that is there. All other lines stay; a
/// server that reads the file meanwhile finds the old or the new one whole. The file has mode 0600
/// afterwards, and its owner as before. Errors as read_key_file().
Result<> set_key(const std::string& path, std::string_view slot, const std::string& key);

/// Whether others on this machine may read it.
bool is_readable_by_others(const std::string& path);

}  // namespace orrery::server
