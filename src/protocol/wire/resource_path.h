// From the target of a request to what it addresses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/ids.h"

namespace orrery {

enum class ResourceType {
  Account,
  Databases,
  Containers,
  Documents,
  Procedures,
  Triggers,
  Udfs,
  Conflicts,
  Ranges,
  Attachments,
  Users,
  Permissions,
  Offers,
  Media,
  EncryptionKeys,
  Addresses,
  PartitionKeyDelete,  ///< POST …/operations/partitionkeydelete
  Split,               ///< POST …/operations/split, Orrery's own
  Merge,               ///< POST …/operations/merge, likewise
  Own,                 ///< Orrery's own: /_health, /_ready, /_metrics, /_explorer/…
  Administration,      ///< of a running server: /_orrery/…, signed with the path as its link
};

/// The word in the path that is also signed: "dbs", "colls", "docs", …; empty for the account.
std::string_view resource_type_name(ResourceType type);

/// A request target taken apart. Owns its text.
struct ResourcePath {
  ResourceType type = ResourceType::Account;
  bool is_feed = false;  ///< addresses the list, not a member

  /// Percent-decoded names or rids: names[0] is the database, names[1] the container or user,
  /// names[2] what lies in it. An offer's id is names[0].
  std::vector<std::string> names;

  /// Links that a client may have signed, without leading or trailing slash: for a feed the
  /// parent's link. The most likely come first: decoded path, raw path, and for an item with a
  /// query string both with that appended. No duplicates.
  std::vector<std::string> link_candidates;
  /// Set if the link may be rid-based (second segment is 8 characters that decode to 4 bytes): the
  /// last rid as it was sent, not lower-cased.
  std::optional<std::string> rid_link;

  std::string
      text;  ///< decoded path without leading or trailing slash, for Own routes and messages
  std::string query;  ///< raw query string without '?', empty if none
};

/// Normalises as the service does: splits off the query, collapses repeated '/', strips one
/// trailing
/// '/', percent-decodes each segment as UTF-8 ('+' is a plus); an item's query string is part of
/// its id. NotFound for a route that the service does not have; BadRequest for a broken escape or
/// UTF-8.
Result<ResourcePath> parse_resource_path(std::string_view target);

/// Percent-decoding; '+' stays a plus. BadRequest for a broken escape.
Result<std::string> percent_decode(std::string_view text);
/// Escapes all but unreserved characters and '/': for x-ms-alt-content-path.
std::string percent_encode_path(std::string_view text);

}  // namespace orrery
