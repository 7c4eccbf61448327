// AsyncLeaseStore: where the documents of a group of hosts are kept: leases, the marker, the
// lock, members, control. Knows nothing of what is in them. To users it is a LeaseStore, which
// blocks: blocking_lease_store.h.
#pragma once

#include <string>
#include <vector>

#include "base/async.h"
#include "base/result.h"
#include "orrery/lease_store.h"

namespace orrery::processor {

/// All operations are conditional on one document. Implementations: a container, memory, files, a
/// simulated one, and whatever users bring. Called on the host's executor; resumes there.
///
/// Further errors of each: Unavailable or TooManyRequests (try again later; a write may have been
/// carried out all the same), Unauthorized and Forbidden, BadRequest (this store can't hold leases;
/// the message says why).
class AsyncLeaseStore {
 public:
  virtual ~AsyncLeaseStore() = default;

  /// All whose id begins with `prefix`, in the order of their ids. An id may appear twice where the
  /// store is a container that others have keyed at random; replace() and remove() then go to the
  /// one that has the etag.
  virtual Async<std::vector<StoredDocument>> list(std::string prefix) = 0;
  /// NotFound.
  virtual Async<StoredDocument> read(std::string id) = 0;
  /// Conflict when the id is taken.
  virtual Async<StoredDocument> create(std::string id, std::string text) = 0;
  /// PreconditionFailed when the etag is another one now; NotFound.
  virtual Async<StoredDocument> replace(std::string id, std::string text, std::string etag) = 0;
  /// With an empty etag unconditionally. PreconditionFailed; NotFound.
  virtual Async<> remove(std::string id, std::string etag) = 0;
};

}  // namespace orrery::processor
