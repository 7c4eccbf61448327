// Makes the leases of a group, once: the first host does.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/async.h"
#include "processor/hosting/feed_reader.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/lease.h"
#include "processor/leases/lease_area.h"
#include "processor/leases/lease_store.h"

namespace orrery::processor {

/// A group of hosts: where its documents are and what they look like.
struct LeaseGroupKey {
  LeaseIds ids;
  LeaseFormat format = LeaseFormat::Net3;  ///< never Detect
  FeedReader::Identity identity;
  std::string feed_host;  ///< in the ids
};

/// Finds the group by its prefix. `feed_host` overrides the host of the endpoint. With
/// Detect the leases decide: those under rids, or those under names, which are JavaPk's; without
/// any it is Net3. BadRequest when both are there, when leases of different libraries are mixed, or
/// when they are not of the format that was asked for.
Async<LeaseGroupKey> find_group(AsyncLeaseStore& store, FeedReader& reader, std::string prefix,
                                std::string feed_host, LeaseFormat format);

struct BootstrapOptions {
  MonitoredFeedOptions feed;  ///< where new leases begin, mode and session token
  bool discard_existing_leases = false;
  int degree_of_parallelism = 25;
  std::chrono::seconds lock_ttl{30};
  std::chrono::milliseconds lock_wait{15'000};
};

struct BootstrapReport {
  bool initialised = false;  ///< by this call: it wrote the marker
  std::size_t created = 0;   ///< leases, by this call
  std::size_t discarded = 0;
  std::size_t doubles_removed = 0;
};

/// Returns when the group has a lease for every part of the hash space, each with a fixed position,
/// and the marker. Everybody may call it at once and die anywhere in it.
///
/// When the marker is there already, it looks whether leases are missing all the same and makes
/// those. Leases of a vanished range are left to the hosts that acquire them: those meet the split
/// and hand on their position.
///
/// BadRequest: options, mode or formats contradict each other or what is in the store. Other errors
/// of store and feed are passed on: call again.
Async<BootstrapReport> bootstrap(AsyncLeaseStore& store, FeedReader& reader, LeaseGroupKey group,
                                 BootstrapOptions options, Runtime& runtime);

}  // namespace orrery::processor
