// CopyJob: the changes of one container, written into another.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "orrery/processor.h"
#include "sinks/container/copy_failure.h"
#include "sinks/container/ledger.h"
#include "sinks/container/target.h"

namespace orrery::sinks {

struct CopyOptions {
  std::string host_name;
  std::string lease_prefix;
  std::uint32_t page_size = 1000;
  std::size_t concurrency = 16;  ///< batches at the same time
  bool follow = false;           ///< wait for changes, not only until there are none
  /// The source's data went back to an earlier state while it was being copied: documents that were
  /// copied before may differ. On any thread, perhaps for each lease.
  std::function<void()> source_restored = [] {};
};

/// Tells by the positions of leases, also those of other hosts, whether everything is copied that
/// was in the source at the start.
class CatchUp {
 public:
  /// `heads`: how far each range reached at the start.
  explicit CatchUp(std::vector<std::pair<client::FeedRange, std::uint64_t>> heads)
      : heads_(std::move(heads)) {}

  /// Takes the leases as they are now. Whether all of them are through: beyond where the source
  /// ended at the start, or found with nothing left to do once.
  bool update(const std::vector<processor::LeaseGroup::Lease>& leases,
              const std::vector<processor::LeaseLag>& lag);

 private:
  std::vector<std::pair<client::FeedRange, std::uint64_t>> heads_;
  std::set<std::string> through_;  // Tokens of leases.
};

/// The part of the hash space that a lease "{min}-{max}" stands for; nullopt: another kind of
/// lease.
std::optional<client::FeedRange> area_of_token(const std::string& token);

/// For one thread, except where it says otherwise.
class CopyJob {
 public:
  CopyJob(client::Container source, std::shared_ptr<processor::LeaseStore> leases,
          CopyTarget& target, CopyOptions options);
  ~CopyJob();

  /// Begins. Throws CosmosException.
  void start();
  /// Returns when everything that was written has its position, and the leases are given back.
  void stop();

  /// The failure that ended it, if one did. Thread-safe.
  std::optional<CopyFailure> failure() const;
  /// Reads the leases and their lag. True: caught up. Throws CosmosException.
  bool refresh();
  /// As of the last refresh.
  std::optional<std::uint64_t> documents_left() const { return documents_left_; }
  /// Whether some lease has found nothing more to do since the last call.
  bool became_idle() { return idle_.exchange(false); }
  /// Whether no host has a lease of the group.
  bool is_alone() const;

 private:
  class Observer;
  class Workers;

  void fail(CopyFailure failure);

  client::Container source_;
  CopyTarget& target_;
  CopyOptions options_;
  ChangeReader changes_;
  LedgerStore ledger_;
  std::unique_ptr<Workers> workers_;
  processor::LeaseGroup group_;
  processor::ChangeFeedProcessorHost host_;
  std::optional<CatchUp> catch_up_;
  std::optional<std::uint64_t> documents_left_;
  std::atomic<bool> idle_{false};
  mutable std::mutex mutex_;
  std::optional<CopyFailure> failure_;
};

}  // namespace orrery::sinks
