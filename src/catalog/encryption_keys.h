// EncryptionKeys: the client encryption keys of databases.
#pragma once

#include <cstddef>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "catalog/definitions.h"
#include "catalog/resources.h"
#include "catalog/writer.h"
#include "protocol/ids.h"

namespace orrery::catalog {

/// Client encryption keys of a database. They cannot be deleted but with it.
inline constexpr std::size_t kEncryptionKeysMax = 1000;

/// Thread-safe. Look-ups take a shared lock for a moment.
class EncryptionKeys {
 public:
  EncryptionKeys(Writer& writer, const Definitions& definitions, const Clock& clock)
      : writer_(writer), definitions_(definitions), clock_(clock) {}

  /// Null when there is none.
  EncryptionKeyPtr find(std::string_view database_id, std::string_view key_id) const;
  EncryptionKeyPtr find(const Rid& rid) const;
  /// In the order of creation, those after `after`, at most `count_max`.
  std::vector<EncryptionKeyPtr> list(const Rid& database, std::string_view after,
                                     std::size_t count_max) const;

  /// `members` are of parse_encryption_key. Conflict when the id is taken, OwnerNotFound when the
  /// database has gone, Forbidden when it has kEncryptionKeysMax. Blocks.
  Result<EncryptionKeyPtr> create(const Rid& database, Json members);
  /// With the same id. NotFound; PreconditionFailed by `if_match` (empty: no condition). Blocks.
  Result<EncryptionKeyPtr> replace(const Rid& rid, std::string_view if_match, Json members);

  /// A part of the deletion of their database: shown when that is committed.
  void erase(const Database& database, const std::vector<EncryptionKeyPtr>& keys);
  /// A key as the store has it, with the id of its database.
  struct Stored {
    std::string database_id;
    EncryptionKeyPtr key;
  };
  /// Those of the store take the place of all.
  void load(const std::vector<Stored>& keys);

 private:
  struct Tables {
    std::unordered_map<std::string, EncryptionKeyPtr> by_path;  // "database/key"
    std::map<Rid, EncryptionKeyPtr> keys;

    void put(const std::string& database_id, const EncryptionKeyPtr& key);
  };
  /// Stores the key by `transaction` and shows it.
  Result<EncryptionKeyPtr> commit(Writer::Transaction& transaction, const std::string& database_id,
                                  EncryptionKey key);

  Writer& writer_;
  const Definitions& definitions_;
  const Clock& clock_;
  /// Guards the tables. Taken inside the writer's turn, on the committer's thread too. A leaf:
  /// nothing is locked inside.
  mutable std::shared_mutex mutex_;
  Tables tables_;
};

}  // namespace orrery::catalog
