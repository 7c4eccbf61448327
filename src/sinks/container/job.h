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
#include "sinks/container/target.h"

namespace orrery::sinks {

struct JobOptions {
  std::string host_name;
  std::string lease_prefix;
  std::uint32_t page_size = 1000;
  std::size_t concurrency = 16;  ///< batches at the same time
  bool follow = false;           ///< wait for changes, not only until there are none
  /// The source's data went back to an earlier state while it was being copied: documents that were
  /// copied before may differ. On any thread, perhaps for each lease.
  std::function<void()> source_restored = [] {};
};

/// Whether everything that was in the source at the start has been copied, by the positions of
/// leases, whoever has them.
class CatchUp {
 public:
  /// `heads`: how far each range reached at the start.
  explicit CatchUp(std::vector<std::pair<client::FeedRange, std::uint64_t>> heads)
      : heads_(std::move(heads)) {}

  /// As leases are now. Whether all of them are through: beyond where the source ended at the
  /// start, or found with nothing left to do once.
  bool update(const std::vector<processor::LeaseGroup::Lease>& leases,
              const std::vector<processor::LeaseLag>& lag);

 private:
  std::vector<std::pair<client::FeedRange, std::uint64_t>> heads_;
  std::set<std::string> through_;  // Tokens of leases.
};

/// Which part of the hash space a lease "{min}-{max}" stands for; nullopt: another kind of lease.
std::optional<client::FeedRange> area_of_token(const std::string& token);

/// For one thread, except where it says otherwise.
class CopyJob {
 public:
  CopyJob(client::Container source, std::shared_ptr<processor::LeaseStore> leases, Target& target,
          JobOptions options);
  ~CopyJob();

  /// Begins. Throws CosmosException.
  void start();
  /// Returns when everything that was written has its position, and the leases are given back.
  void stop();

  /// What ended it, in words; empty while there is nothing. Thread-safe.
  std::string failure() const;
  /// Asks how far it is. True: caught up.
  bool look();
  /// As of the last look.
  std::optional<std::uint64_t> documents_left() const { return documents_left_; }
  /// Whether some lease has found nothing more to do since the last look.
  bool worth_a_look() { return idle_.exchange(false); }
  /// Whether nobody has a lease of the group.
  bool is_alone() const;

 private:
  class Observer;
  class Workers;

  void fail(const std::string& message);

  client::Container source_;
  Target& target_;
  JobOptions options_;
  ChangeReader changes_;
  LedgerKeeper ledger_;
  std::unique_ptr<Workers> workers_;
  processor::LeaseGroup group_;
  processor::ChangeFeedProcessorHost host_;
  std::optional<CatchUp> catch_up_;
  std::optional<std::uint64_t> documents_left_;
  std::atomic<bool> idle_{false};
  mutable std::mutex mutex_;
  std::string failure_;
};

}  // namespace orrery::sinks
