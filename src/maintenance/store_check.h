// StoreCheck: whether a store is sound. Every table as it was written, every entry of the catalog
// readable, the ranges of each container side by side over the whole hash space, and every
// partition in agreement with itself (partition/check/partition_check.h).
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/result.h"
#include "catalog/container_factory.h"
#include "catalog/stored_catalog.h"
#include "partition/check/findings.h"
#include "protocol/ids.h"
#include "storage/loss.h"
#include "storage/store.h"

namespace orrery::maintenance {

using partition::Finding;

struct CheckReport {
  std::uint64_t partitions = 0;
  std::uint64_t documents = 0;
  std::uint64_t finding_count = 0;
  std::vector<Finding> findings;  ///< the first of them
  bool is_stopped = false;        ///< and so has not seen everything
};

/// How it goes about it.
struct CheckOptions {
  /// Rests as long as it works, so that a server that runs meanwhile has the machine to itself.
  bool rests = false;
  std::stop_token stop = {};
};

class StoreCheck {
 public:
  /// `make_rules` as for the catalog.
  StoreCheck(const storage::Store& store, catalog::RulesMaker make_rules, CheckOptions options)
      : store_(store), make_rules_(std::move(make_rules)), pace_(options.stop, options.rests) {}

  /// Looks at everything once, while others write. Blocks, for long.
  CheckReport run();

 private:
  /// Of what is in the snapshot and was not checked yet. True: there was something.
  bool check_partitions();
  void check_catalog(const storage::Snapshot& snapshot, const catalog::StoredCatalog& catalog);
  void check_ranges(const std::string& name, const catalog::StoredContainer& container);
  /// Partitions that no container has and nobody reclaims.
  void check_strays(const storage::Snapshot& snapshot, const catalog::StoredCatalog& catalog);

  const storage::Store& store_;
  const catalog::RulesMaker make_rules_;
  partition::CheckPace pace_;
  partition::Findings findings_;
  std::set<PartitionNumber> seen_;
  CheckReport report_;
};

/// The report of a data directory that no server has open; with what a damaged write-ahead log has
/// lost, if anything. Of a store that cannot be opened it tells the tables that are damaged, and
/// nothing else. Changes nothing. Blocks. Errors as storage::Store::open where no table is.
Result<CheckReport> check_directory(storage::StoreOptions options,
                                    const catalog::RulesMaker& make_rules, std::stop_token stop);

}  // namespace orrery::maintenance
