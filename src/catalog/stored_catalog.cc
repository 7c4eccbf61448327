#include "catalog/stored_catalog.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "storage/keys.h"

namespace orrery::catalog {

using storage::Family;

namespace {

Result<> read_heads(const storage::Snapshot& snapshot, StoredCatalog& into) {
  auto cursor = snapshot.cursor(Family::Heads, "", std::string(8, '\xFF'));
  for (; cursor.valid(); cursor.next()) {
    if (cursor.key().size() != 4) continue;
    if (auto head = storage::Head::parse(cursor.value())) {
      into.heads.emplace(storage::read_u32(cursor.key().data()), *head);
    }
  }
  return cursor.status();
}

/// False when the value is not of its format. Throws Json::exception likewise.
bool read_entry(std::string_view key, std::string_view value, StoredCatalog& into) {
  if (key.starts_with('d')) {
    auto database = parse_database(key, value);
    if (!database) return false;
    auto shared = std::make_shared<const Database>(std::move(*database));
    into.databases.emplace(shared->rid, std::move(shared));
  } else if (key.starts_with('c')) {
    auto container = parse_container(key, value);
    if (!container) return false;
    into.containers.push_back(std::move(*container));
  } else if (key.starts_with('k')) {
    auto encryption_key = parse_encryption_key(key, value);
    if (!encryption_key) return false;
    // Databases come before it in the scan.
    const auto database = into.databases.find(encryption_key->rid.database_rid());
    if (database == into.databases.end()) return false;
    into.encryption_keys.push_back(
        {database->second->id, std::make_shared<const EncryptionKey>(std::move(*encryption_key))});
  } else if (key.starts_with('o')) {
    auto offer = parse_offer(key, value);
    if (!offer) return false;
    into.offers.push_back(std::make_shared<const Offer>(std::move(*offer)));
  } else if (key.starts_with('g') && key.size() == 5) {
    into.garbage.push_back(PartitionNumber{storage::read_u32(key.data() + 1)});
  } else if (key == counters_key()) {
    auto parsed = parse_counters(value);
    if (!parsed) return false;
    into.counters = *parsed;
  } else if (key == storage::kLifeKey) {
    into.life = storage::Life::parse(value);
    if (!into.life) return false;
  }
  return true;
}

}  // namespace

Error unreadable_entry(std::string_view key) {
  return Error(ErrorCode::Unavailable,
               fmt::format("the catalog entry '{}' cannot be read; restore the data directory "
                           "from a backup",
                           fmt::format("{:.1}…", key)));
}

Result<StoredCatalog> read_catalog(const storage::Snapshot& snapshot) {
  StoredCatalog stored;
  ORRERY_TRY(read_heads(snapshot, stored));
  auto cursor = snapshot.cursor(Family::Catalog, "", std::string(8, '\xFF'));
  try {
    for (; cursor.valid(); cursor.next()) {
      if (!read_entry(cursor.key(), cursor.value(), stored)) return unreadable_entry(cursor.key());
    }
  } catch (const Json::exception& broken) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("a catalog entry cannot be read ({}); restore the data directory from "
                             "a backup",
                             broken.what()));
  }
  ORRERY_TRY(cursor.status());
  return stored;
}

}  // namespace orrery::catalog
