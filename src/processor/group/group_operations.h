// Looking at the leases of a group and moving them, without being a host. LeaseGroup of the public
// header is a synchronous front of this.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "orrery/processor.h"
#include "processor/hosting/bootstrap.h"
#include "processor/hosting/feed_reader.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/lease.h"
#include "processor/leases/lease_area.h"
#include "processor/leases/lease_store.h"

namespace orrery::processor {

/// The state that all hosts of a group share: the document P.control. Hosts of this library read it
/// at each renew interval.
struct GroupControl {
  bool paused = false;
  std::string reason;  ///< of the pause, in words
};
/// Not paused when there is no such document.
Async<GroupControl> read_control(AsyncLeaseStore& store, LeaseIds ids);
/// Keeps what else is in the document. Written again when somebody else was faster; Conflict when
/// that happens too often.
Async<> write_control(AsyncLeaseStore& store, LeaseIds ids, GroupControl control);

/// References outlive every call.
class GroupOperations {
 public:
  GroupOperations(AsyncLeaseStore& store, FeedReader& reader, LeaseGroupKey group, Runtime& runtime)
      : store_(store), reader_(reader), group_(std::move(group)), runtime_(runtime) {}

  Async<std::vector<Lease>> leases();
  Async<std::vector<LeaseLag>> lag();
  Async<> pause(bool paused);
  Async<bool> paused();
  /// Conflict when the group is not paused and leases are owned; NotFound when there is no lease of
  /// that token. Owners lose what is reset: they take it anew, and begin there.
  Async<> reset(LeaseGroup::Position to, std::string token);
  Async<std::string> snapshot();
  /// BadRequest when it is no snapshot, or of another container, or says nothing about a part of
  /// the hash space that a lease covers. Conflict as in reset. Nothing is written then.
  Async<> restore(std::string snapshot);
  /// How many were taken away.
  Async<std::size_t> release(std::string host);
  Async<std::vector<LeaseGroup::Finding>> doctor();

 private:
  /// Conflict unless the group is paused, or nobody owns a lease.
  Async<> check_idle(std::vector<Lease> leases);
  /// Changes a lease of any owner, on condition that it is as `change` has seen it: that is called
  /// again when it was not. False when `change` was not interested.
  using Change = std::function<bool(Lease&)>;
  Async<bool> edit(Lease lease, Change change);
  /// Sets the position, and owner to nobody.
  Async<> move(Lease lease, std::optional<std::string> position);
  Async<std::optional<std::string>> resolve(Lease lease, Ranges ranges, StartPosition to);

  AsyncLeaseStore& store_;
  FeedReader& reader_;
  LeaseGroupKey group_;
  Runtime& runtime_;
};

}  // namespace orrery::processor
