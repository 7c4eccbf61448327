// Topology: replaces ranges of a container by others, in one commit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "catalog/container_factory.h"
#include "catalog/definitions.h"
#include "catalog/garbage.h"
#include "catalog/resources.h"
#include "catalog/writer.h"
#include "partition/partition.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"
#include "storage/records.h"

namespace orrery::catalog {

/// New partitions are reserved first, which registers them as garbage before anything is put into
/// them; the commit that puts them into the map takes them out of that list, and puts the old ones
/// on it. After a crash one map or the other holds completely, and the rest is reclaimed.
///
/// Thread-safe.
class Topology {
 public:
  /// `changed` hears of each container whose ranges were replaced. It must not block.
  Topology(partition::Environment& environment, Writer& writer, Definitions& definitions,
           Garbage& garbage, const ContainerFactory& factory,
           const std::function<void(const Rid&)>& changed)
      : environment_(environment),
        writer_(writer),
        definitions_(definitions),
        garbage_(garbage),
        factory_(factory),
        changed_(changed) {}

  /// New partitions, and the generation of the committer that they were reserved in: whatever is
  /// put into them, and the change that they are for, is committed in that generation or not at
  /// all.
  struct Reserved {
    std::vector<PartitionNumber> partitions;
    partition::StoreGeneration generation;
  };
  /// NotFound when the container does not exist. Blocks. Unavailable or OutcomeUnknown when the
  /// disk refuses.
  Result<Reserved> reserve(const Rid& container, std::size_t count);
  /// Reclaims reserved partitions of which no change was committed, or tried.
  void abandon(const Reserved& reserved) { garbage_.add(reserved.partitions); }

  /// A new range: a reserved partition, with the head that it begins with.
  struct Child {
    PartitionNumber partition;
    EpkRange epks;
    storage::Head head;
  };
  class Change;
  /// Waits for its turn among all changes of the catalog. NotFound when the container does not
  /// exist.
  Result<Change> begin(const Rid& container, partition::StoreGeneration generation);

 private:
  partition::Environment& environment_;
  Writer& writer_;
  Definitions& definitions_;
  Garbage& garbage_;
  const ContainerFactory& factory_;
  const std::function<void(const Rid&)>& changed_;
};

/// As long as it exists, the container stays as it is. Without commit() nothing happens.
class Topology::Change {
 public:
  Change(Topology& topology, Writer::Transaction transaction, ContainerPtr current)
      : topology_(topology), transaction_(std::move(transaction)), current_(std::move(current)) {}

  /// More that is committed with it.
  storage::Batch& batch() { return transaction_.batch; }

  /// `children` take the place of `parents`, which are retired in the same step, and reclaimed once
  /// nobody reads them. The container with its new ranges. Blocks. OutcomeUnknown when the
  /// disk refuses: then only loading the catalog anew tells which map holds.
  Result<ContainerPtr> commit(const std::vector<Range>& parents,
                              const std::vector<Child>& children);

 private:
  Topology& topology_;
  Writer::Transaction transaction_;
  ContainerPtr current_;
};

}  // namespace orrery::catalog
