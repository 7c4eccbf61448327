// LeaseWriter: writes the changes of one lease into the destination, each exactly once.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "sinks/container/batch_plan.h"
#include "sinks/container/ledger.h"
#include "sinks/container/target.h"

namespace orrery::sinks {

enum class WriteOutcome {
  Done,
  Lost,         ///< another owner has the lease
  Interrupted,  ///< by a stop request; some changes may be written
};

/// Changes of one logical partition are written in batches together with its position. An owner
/// that reads the changes again, after a crash or in place of a host that was cut off, finds there
/// which of them were applied. A batch is conditional on that position. Where the area belonged to
/// another lease before, the batch is conditional on that one's position too and moves it, which
/// fences off its former writer.
///
/// Where the key is the id, a logical partition has no room for a position. There, and for
/// documents that leave no room in a batch, the stored document is compared instead.
///
/// Lives as long as the lease is held. Calls for different keys may overlap.
class LeaseWriter {
 public:
  LeaseWriter(CopyTarget& target, LedgerStore& ledger, client::FeedRange area, std::uint64_t epoch,
              LedgerStore::Registration registration);

  /// `changes` are of one key of the destination, in the order of the feed. Throws CopyFailure.
  WriteOutcome write_key(const std::vector<const SourceChange*>& changes,
                         const std::stop_token& stop);
  /// Of any keys, each document once. Throws CopyFailure.
  WriteOutcome write_compared(std::vector<const SourceChange*> changes,
                              const std::stop_token& stop);

 private:
  /// The positions in one logical partition: of this lease, and of the areas before it, in the
  /// order of the registration.
  struct Positions {
    Position own;
    std::vector<Position> before;
  };

  std::optional<Positions> cached(const std::string& key);
  void cache(const std::string& key, Positions known);
  void evict(const std::string& key);
  Positions read(const PartitionKey& key, const std::stop_token& stop) const;
  Position read_position(const client::FeedRange& area, const client::PartitionKey& key,
                         const std::stop_token& stop) const;
  bool is_applied(const SourceChange& change, const Positions& known) const;

  enum class BatchOutcome { Done, PositionMoved, TryLater };
  WriteOutcome apply(const std::vector<const SourceChange*>& changes, const std::stop_token& stop,
                     std::size_t& written);
  BatchOutcome write_batch(const PartitionKey& key, Positions& known, const BatchPlan& plan,
                           const std::stop_token& stop);
  BatchOutcome settle(const client::BatchResponse& response, std::size_t positions,
                      const BatchPlan& plan) const;
  struct CompareRound;
  void create(CompareRound& round, const std::stop_token& stop) const;
  void compare(CompareRound& round, const std::stop_token& stop) const;
  bool replace(CompareRound& round, const std::stop_token& stop);
  void retry_later(CompareRound& round, const SourceChange* change,
                   const client::ItemResult& result) const;
  WriteOutcome write_where_different(std::vector<const SourceChange*> changes,
                                     const std::stop_token& stop, std::size_t& written);
  [[noreturn]] void refuse(const SourceChange& change, int status,
                           const std::string& message) const;

  CopyTarget& target_;
  LedgerStore& ledger_;
  const client::FeedRange area_;
  const std::uint64_t epoch_;
  const LedgerStore::Registration registration_;
  std::vector<EpkRange> areas_before_;  // Of the predecessors.

  std::mutex mutex_;
  std::unordered_map<std::string, Positions> cache_;  // By the canonical form of the key.
};

}  // namespace orrery::sinks
