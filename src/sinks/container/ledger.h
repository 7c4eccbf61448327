// LedgerStore: the ledger of a copy, as a document in its destination.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "orrery/client.h"
#include "sinks/container/position.h"
#include "sinks/container/target.h"

namespace orrery::sinks {

/// The ledger of a group in its destination. Thread-safe; its calls throw CosmosException, and
/// CopyFailure when the group was made for another source.
class LedgerStore {
 public:
  explicit LedgerStore(const CopyTarget& target);

  struct Registration {
    bool superseded = false;  ///< an owner with a higher epoch has taken a part of it
    bool first = false;       ///< no lease had this area before
    std::vector<Ledger::Entry> predecessors;
  };
  /// Registers an owner. Must precede every write for `area` at `epoch`.
  Registration register_owner(const client::FeedRange& area, std::uint64_t epoch);
  bool is_superseded(const client::FeedRange& area, std::uint64_t epoch);

 private:
  struct Known {
    Ledger ledger;
    std::string etag;  ///< empty: there is none yet
  };
  Known read() const;

  const CopyTarget& target_;
  const std::string id_;
  const client::PartitionKey key_;
  // Serialises the registrations of this process, which would make each other's etags stale.
  std::mutex mutex_;
};

}  // namespace orrery::sinks
