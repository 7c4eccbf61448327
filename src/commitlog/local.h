// The default commit log: the write to this node's store is the commit.
#pragma once

#include "commitlog/commit_log.h"
#include "storage/store.h"

namespace orrery::commitlog {

class LocalCommitLog final : public CommitLog {
 public:
  explicit LocalCommitLog(storage::Store& store) : store_(store) {}

  Result<> append(std::span<const storage::Batch* const> batches) override {
    return store_.commit(batches);
  }
  Result<> recover() override { return store_.recover(); }

 private:
  storage::Store& store_;
};

}  // namespace orrery::commitlog
