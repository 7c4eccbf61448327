// LeaseManager: what one host does to leases. Every update is conditional on the version that was
// seen; who owns a lease, and nothing else, decides whether it is lost.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/lease.h"
#include "processor/leases/lease_store.h"

namespace orrery::processor {

/// The outcome of an update that reached the store. (That it did not is an Error: the lease may or
/// may not have been changed; try again, or look.)
struct LeaseChange {
  enum class Kind {
    Done,   ///< `lease` is as it is in the store now; also when there was nothing to write
    Lost,   ///< somebody else has it, or nobody: not ours any more. `lease` is what was seen
    Gone,   ///< lost, and its document does not exist
    Older,  ///< a checkpoint behind one that is written already; refused, the lease is still ours
  };
  Kind kind = Kind::Done;
  Lease lease;
  std::string reason;  ///< of all but Done, in words

  bool done() const { return kind == Kind::Done; }
  bool lost() const { return kind == Kind::Lost || kind == Kind::Gone; }
};

/// Changes of `properties`: a value, or nullopt to take the key away.
using PropertyChanges = std::map<std::string, std::optional<std::string>>;

/// The leases of one host, in one group. Remembers those that it has acquired, with their etags, so
/// that an update costs one write. Updates of one lease wait for each other, in the order of the
/// calls: a host never conflicts with itself. Different leases go on at once.
///
/// For the one thread of the runtime's executor, where it also resumes. Callers await the outcome;
/// the manager must outlive that. Parameters are values.
class LeaseManager {
 public:
  /// `store` and `runtime` outlive it.
  LeaseManager(AsyncLeaseStore& store, LeaseIds ids, std::string host, Runtime& runtime);
  ~LeaseManager();
  LeaseManager(const LeaseManager&) = delete;
  LeaseManager& operator=(const LeaseManager&) = delete;

  /// Sets what JavaEpk leases store with their first position: they have no other place for it.
  void set_feed(client::ChangeFeedMode mode, std::string container_rid);

  client::ChangeFeedMode mode() const { return mode_; }
  const std::string& container_rid() const { return container_rid_; }

  const LeaseIds& ids() const { return ids_; }
  const std::string& host() const { return host_; }
  AsyncLeaseStore& store() { return store_; }

  /// All leases of the group in the order of their ids, of doubled ones the one that is further.
  /// BadRequest when one can't be understood, or formats are mixed.
  Async<std::vector<Lease>> list();

  /// Takes a lease, as it was seen in a listing: free, expired, to be stolen, or of this very host
  /// from an earlier life. Raises its epoch. Sent once: Lost when it has changed since it
  /// was seen. `seen.range`, when the caller knows it, is written where the document lacks
  /// it.
  Async<LeaseChange> acquire(Lease seen);

  /// Shows that this host is alive; and writes `position` along with it, where it is further than
  /// what the lease has. One write. Done without one when another update of the lease was written
  /// while this call waited for its turn and left nothing to say.
  Async<LeaseChange> renew(std::string id, std::optional<std::string> position = std::nullopt);

  /// Writes a position, and renews by it. Older when it is behind the one in the lease; when
  /// it is the same there is nothing to write.
  Async<LeaseChange> checkpoint(std::string id, std::string position);

  /// Gives the lease up: its owner is nobody, or `to`, a host that has asked for it and still wants
  /// it. Done also when it was not ours any more; either way it is forgotten here.
  Async<LeaseChange> release(std::string id, std::string to = {});

  /// Changes some properties and leaves the others as they are in the store.
  Async<LeaseChange> update_properties(std::string id, PropertyChanges changes);

  /// Asks the owner of a lease as it was seen to hand it over to this host, by `orrery.wanted-by`.
  /// Leaves its timestamp alone: it is not the owner who speaks. Sent once; Lost when the lease has
  /// changed since.
  Async<LeaseChange> ask_for(Lease seen);

  /// Takes such a request back, and gives up a lease that was handed over meanwhile. Sent once;
  /// Lost when the lease has changed since it was seen.
  Async<LeaseChange> withdraw(Lease seen);

  /// Creates a lease. Done, with its etag, also when it was there before: `lease` is then what is
  /// there.
  Async<LeaseChange> create(Lease lease);

  /// Deletes the document, for any owner, and forgets it. Idempotent: it may be gone already.
  Async<> remove(std::string id);

  /// The lease as this host knows it: after acquire, until it is released, lost or removed. The
  /// pointer holds until the next co_await.
  const Lease* owned(const std::string& id) const;
  /// Forgets a lease without a word to the store, as after LeaseLost.
  void forget(const std::string& id);

  struct Stats {
    std::uint64_t writes = 0;     ///< sent
    std::uint64_t conflicts = 0;  ///< of those, refused because the etag was another one
  };
  const Stats& stats() const { return stats_; }

 private:
  struct Entry;
  struct Intent;

  std::shared_ptr<Entry> entry_of(const std::string& id);
  Async<LeaseChange> update(std::string id, Intent intent);
  Async<LeaseChange> write_once(Lease seen, Lease wanted);

  AsyncLeaseStore& store_;
  LeaseIds ids_;
  std::string host_;
  Runtime& runtime_;
  client::ChangeFeedMode mode_ = client::ChangeFeedMode::LatestVersion;
  std::string container_rid_;
  Stats stats_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;  // Shared with calls that wait.
};

/// The leases of a group without a host: for listings before there is a manager.
Async<std::vector<Lease>> list_leases(AsyncLeaseStore& store, LeaseIds ids);

}  // namespace orrery::processor
