// Writer: changes of the catalog, one at a time, each committed as one transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "catalog/entries.h"
#include "partition/committer.h"
#include "protocol/ids.h"
#include "storage/batch.h"

namespace orrery::catalog {

/// Thread-safe.
class Writer {
 public:
  class Transaction;

  explicit Writer(partition::Committer& committer) : committer_(committer) {}

  /// Waits until no other transaction exists. Blocks.
  Transaction begin();
  /// Likewise, for a change that was validated in `generation` of the committer: it commits only
  /// while that lasts.
  Transaction begin(partition::StoreGeneration generation);

  /// The counters as the store has them. On the committer's thread, or before there is any change.
  void load(const Counters& counters);

 private:
  partition::Committer& committer_;
  /// One transaction at a time, from begin() until it is destroyed, commit included. The first lock
  /// of the catalog that is taken; look-ups never take it.
  std::mutex turn_mutex_;
  std::mutex counters_mutex_;  // A leaf: nothing is locked inside.
  Counters counters_;          // Guarded by counters_mutex_.
};

/// A change that is being prepared beside the current state. Without commit() nothing happens.
class Writer::Transaction {
 public:
  /// Without a generation, in that which the committer is in once it is its turn.
  explicit Transaction(Writer& writer, std::optional<partition::StoreGeneration> generation = {});

  storage::Batch batch;
  Counters counters;  ///< with the version of this change; others may be taken from it

  Lsn version() const { return Lsn{counters.version}; }
  partition::StoreGeneration generation() const { return generation_; }

  /// Commits, and shows the change to others by `publish`. That runs on the committer's thread, as
  /// loading does after a disk error: were it later, loading could come in between, and a partition
  /// get two writers. Once only. Blocks. Unavailable or OutcomeUnknown when the disk refuses.
  Result<> commit(const std::function<void()>& publish);

 private:
  std::unique_lock<std::mutex> turn_;
  Writer& writer_;
  const partition::StoreGeneration generation_;
};

}  // namespace orrery::catalog
