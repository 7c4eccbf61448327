// LeaseWriter: writes the changes of one lease into the destination, each exactly once.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "sinks/container/target.h"

namespace orrery::sinks {

enum class WriteOutcome {
  Done,
  Lost,         ///< somebody else has the lease
  Interrupted,  ///< somebody asked for an end; some may be written
};

/// What is written for one logical partition goes into batches together with its position: whoever
/// reads the changes again, after a crash or instead of a host that was cut off, finds there what
/// has been applied. A batch is conditional on that position, and where the area was another
/// lease's before on that one's too, which from then on refuses its former writer.
///
/// Where the key is the id, a logical partition has no room for a position. There, and for
/// documents that leave no room in a batch, what is there already is compared instead.
///
/// Lives as long as the lease is held. Calls for different keys may overlap.
class LeaseWriter {
 public:
  LeaseWriter(Target& target, LedgerKeeper& ledger, client::FeedRange area, std::uint64_t epoch,
              LedgerKeeper::Registration registration);

  /// `changes` are of one key of the destination, in the order of the feed. Throws CopyFailure.
  WriteOutcome write_key(const std::vector<const Change*>& changes, const std::stop_token& stop);
  /// Of any keys, each document once. Throws CopyFailure.
  WriteOutcome write_compared(std::vector<const Change*> changes, const std::stop_token& stop);

 private:
  /// What is known of one logical partition: its position for this lease, and those for the areas
  /// before it, in the order of the registration.
  struct Known {
    Position own;
    std::vector<Position> before;
  };

  std::optional<Known> remembered(const std::string& key);
  void remember(const std::string& key, Known known);
  void forget(const std::string& key);
  Known read(const PartitionKey& key, const std::stop_token& stop) const;
  Position read_position(const client::FeedRange& area, const client::PartitionKey& key,
                         const std::stop_token& stop) const;
  bool is_applied(const Change& change, const Known& known) const;

  enum class BatchOutcome { Done, PositionMoved, TryLater };
  WriteOutcome apply(const std::vector<const Change*>& changes, const std::stop_token& stop,
                     std::size_t& written);
  BatchOutcome write_batch(const PartitionKey& key, Known& known, const BatchPlan& plan,
                           const std::stop_token& stop);
  BatchOutcome settle(const client::BatchResponse& response, std::size_t positions,
                      const BatchPlan& plan) const;
  struct Comparison;
  void create(Comparison& comparison, const std::stop_token& stop) const;
  void compare(Comparison& comparison, const std::stop_token& stop) const;
  bool replace(Comparison& comparison, const std::stop_token& stop);
  void put_off(Comparison& comparison, const Change* change,
               const client::ItemResult& result) const;
  WriteOutcome write_where_different(std::vector<const Change*> changes,
                                     const std::stop_token& stop, std::size_t& written);
  [[noreturn]] void refuse(const Change& change, int status, const std::string& message) const;

  Target& target_;
  LedgerKeeper& ledger_;
  const client::FeedRange area_;
  const std::uint64_t epoch_;
  const LedgerKeeper::Registration registration_;
  std::vector<EpkRange> areas_before_;  // Of the predecessors.

  std::mutex mutex_;
  std::unordered_map<std::string, Known> known_;  // By the canonical form of the key.
};

}  // namespace orrery::sinks
