// LeaseStore: where hosts of the processor keep their leases. In a container, in memory, in files,
// or wherever you like: derive from it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "orrery/container.h"
#include "orrery/exception.h"

namespace orrery::processor {

/// A document of a lease store.
struct StoredDocument {
  std::string id = {};
  std::string text = {};  ///< JSON: what was written, or that with what the store adds to it
  std::string etag = {};  ///< of this version; no other version of any document has it
  std::int64_t ts = 0;    ///< when it was written, in seconds since 1970
  /// The clock that `ts` was read from, when the document was read; 0: not known. The only clock
  /// that an age in seconds may be judged by.
  std::int64_t store_now = 0;
};

/// Small documents, each changed only by those who have seen its last version. Knows nothing of
/// what is in them. Hosts list them all every acquire interval, and write each once in a renew
/// interval and at every checkpoint.
///
/// Called from several threads at the same time, and may block. Reads must see every write that was
/// answered before, of whatever host: two hosts that are told that they have written the same
/// version would process the same changes.
///
/// Throws CosmosException: not_found(), conflict() and precondition_failed() as said below; with
/// status 400, 401 or 403 what trying again would not mend. Whatever else is thrown is tried again
/// later; then a write may have been carried out or not.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;

  /// All whose id begins with `prefix`, in the order of their ids.
  virtual std::vector<StoredDocument> list(const std::string& prefix) = 0;
  /// Throws not_found().
  virtual StoredDocument read(const std::string& id) = 0;
  /// Throws conflict() when the id is taken.
  virtual StoredDocument create(const std::string& id, const std::string& text) = 0;
  /// Throws precondition_failed() when the etag is another one now, and not_found().
  virtual StoredDocument replace(const std::string& id, const std::string& text,
                                 const std::string& etag) = 0;
  /// With an empty etag whatever the version is. Throws precondition_failed() and not_found().
  virtual void remove(const std::string& id, const std::string& etag) = 0;

  static client::CosmosException not_found(const std::string& id);
  static client::CosmosException conflict(const std::string& id);
  static client::CosmosException precondition_failed(const std::string& id);
};

/// In a container, shared by hosts of any number of processes and libraries.
std::shared_ptr<LeaseStore> container_lease_store(client::Container leases);
/// For one process, and only while it runs.
std::shared_ptr<LeaseStore> memory_lease_store();
/// For the processes of one machine: one file per lease in `directory`.
std::shared_ptr<LeaseStore> file_lease_store(std::string directory);

}  // namespace orrery::processor
