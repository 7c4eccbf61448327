#include "catalog/encryption_keys.h"

#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "catalog/entries.h"
#include "catalog/errors.h"
#include "catalog/lookup.h"
#include "catalog/rids.h"

namespace orrery::catalog {

using storage::Family;

EncryptionKeyPtr EncryptionKeys::find(std::string_view database_id, std::string_view key_id) const {
  const std::string path = fmt::format("{}/{}", database_id, key_id);
  std::shared_lock lock(mutex_);
  return find_in(tables_.by_path, path);
}

EncryptionKeyPtr EncryptionKeys::find(const Rid& rid) const {
  std::shared_lock lock(mutex_);
  return find_in(tables_.keys, rid);
}

std::vector<EncryptionKeyPtr> EncryptionKeys::list(const Rid& database, std::string_view after,
                                                   std::size_t count_max) const {
  std::shared_lock lock(mutex_);
  return list_after(tables_.keys, after, count_max, &database);
}

Result<EncryptionKeyPtr> EncryptionKeys::create(const Rid& database, Json members) {
  auto transaction = writer_.begin();
  const auto owner = definitions_.database(database);
  if (!owner) return database_deleted();
  const std::string id = members.at("id");
  if (find(owner->id, id)) return already_exists("client encryption key", id);
  if (list(database, {}, kEncryptionKeysMax).size() == kEncryptionKeysMax) {
    return Error(ErrorCode::Forbidden,
                 fmt::format("The database '{}' has {} client encryption keys, which is the most "
                             "that there may be. Wrap an existing one anew, or use another "
                             "database.",
                             owner->id, kEncryptionKeysMax));
  }
  const Rid rid = next_encryption_key_rid(transaction.counters, database);
  return commit(
      transaction, owner->id,
      EncryptionKey{rid, id, std::move(members), transaction.version(), clock_.unix_seconds()});
}

Result<EncryptionKeyPtr> EncryptionKeys::replace(const Rid& rid, std::string_view if_match,
                                                 Json members) {
  auto transaction = writer_.begin();
  const auto current = find(rid);
  if (!current) return not_found("client encryption key");
  if (!if_match.empty() && !current->etag().matches(if_match)) {
    return precondition_failed("client encryption key");
  }
  const auto owner = definitions_.database(rid.database_rid());
  ORRERY_ASSERT(owner != nullptr && members.at("id") == current->id);
  return commit(transaction, owner->id,
                EncryptionKey{rid, current->id, std::move(members), transaction.version(),
                              clock_.unix_seconds()});
}

Result<EncryptionKeyPtr> EncryptionKeys::commit(Writer::Transaction& transaction,
                                                const std::string& database_id, EncryptionKey key) {
  transaction.batch.put(Family::Catalog, encryption_key_key(key.rid), make_value(key));
  const auto made = std::make_shared<const EncryptionKey>(std::move(key));
  ORRERY_TRY(transaction.commit([&] {
    std::unique_lock lock(mutex_);
    tables_.put(database_id, made);
  }));
  return made;
}

void EncryptionKeys::erase(const Database& database, const std::vector<EncryptionKeyPtr>& keys) {
  std::unique_lock lock(mutex_);
  for (const EncryptionKeyPtr& key : keys) {
    tables_.by_path.erase(database.id + "/" + key->id);
    tables_.keys.erase(key->rid);
  }
}

void EncryptionKeys::Tables::put(const std::string& database_id, const EncryptionKeyPtr& key) {
  by_path.insert_or_assign(database_id + "/" + key->id, key);
  keys.insert_or_assign(key->rid, key);
}

void EncryptionKeys::load(const std::vector<Stored>& keys) {
  Tables tables;
  for (const Stored& each : keys) tables.put(each.database_id, each.key);
  std::unique_lock lock(mutex_);
  tables_ = std::move(tables);
}

}  // namespace orrery::catalog
