// Catalog: what exists in the account. Changes are transactions with the same guarantees as writes
// of documents: a container is there completely or not at all.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "catalog/entries.h"
#include "catalog/range_change.h"
#include "catalog/resources.h"
#include "partition/partition.h"
#include "protocol/container/container_definition.h"
#include "protocol/ids.h"
#include "storage/life.h"

namespace orrery::catalog {

using DatabasePtr = std::shared_ptr<const Database>;            // Shared with requests under way.
using ContainerPtr = std::shared_ptr<const Container>;          // Likewise.
using OfferPtr = std::shared_ptr<const Offer>;                  // Likewise.
using EncryptionKeyPtr = std::shared_ptr<const EncryptionKey>;  // Likewise.

/// Client encryption keys of a database. They cannot be deleted but with it.
inline constexpr std::size_t kEncryptionKeysMax = 1000;

/// Limits that an operator sets.
struct CatalogLimits {
  /// Containers that may share a database's throughput; 0: any number.
  std::size_t shared_throughput_containers_max = 0;
};

/// Thread-safe. Look-ups never block; everything that changes something does.
class Catalog {
 public:
  /// Makes the rules of a container's unique keys; given by the layer that can parse documents.
  using RulesMaker = std::function<partition::Rules(const ContainerDefinition&)>;

  /// Loads what exists. Blocks. Unavailable when the store cannot be read.
  static Result<std::unique_ptr<Catalog>> open(partition::Environment& environment,
                                               RulesMaker make_rules, CatalogLimits limits = {});
  ~Catalog();
  /// Ends the reclaiming of space; it goes on at the next start.
  void stop();

  /// `tell` hears of each container whose definition or ranges have changed, after the change. It
  /// must not block. To be set before there is any change.
  void on_change(std::function<void(const Rid& container)> tell) { tell_ = std::move(tell); }

  // ── looking up: null when there is none ──
  DatabasePtr database(std::string_view id) const;
  DatabasePtr database(const Rid& rid) const;
  ContainerPtr container(std::string_view database_id, std::string_view container_id) const;
  ContainerPtr container(const Rid& rid) const;
  EncryptionKeyPtr encryption_key(std::string_view database_id, std::string_view key_id) const;
  EncryptionKeyPtr encryption_key(const Rid& rid) const;
  OfferPtr offer(const Rid& rid) const;
  OfferPtr offer_of(const Rid& owner) const;

  // ── lists: in the order of creation, those after `after`, at most `count_max` ──
  std::vector<DatabasePtr> databases(std::string_view after, std::size_t count_max) const;
  std::vector<ContainerPtr> containers(const Rid& database, std::string_view after,
                                       std::size_t count_max) const;
  std::vector<EncryptionKeyPtr> encryption_keys(const Rid& database, std::string_view after,
                                                std::size_t count_max) const;
  std::vector<OfferPtr> offers(std::string_view after, std::size_t count_max) const;
  std::size_t container_count() const;
  /// The latest `_ts` of any range, and the container that has it; null when there is none.
  struct LatestTime {
    UnixSeconds ts = 0;
    ContainerPtr container;
  };
  LatestTime latest_time() const;

  /// The life that the store is in: storage::Life::text().
  const std::string& life() const { return life_text_; }

  /// Whether the offer is for more than the ranges of its container serve.
  bool needs_more_ranges(const Offer& offer) const;

  // ── changing: all block ──
  /// Conflict when the id is taken.
  Result<DatabasePtr> create_database(const std::string& id,
                                      const std::optional<Throughput>& throughput);
  /// With all that is in it. NotFound; PreconditionFailed by `if_match` (empty: no condition).
  Result<> delete_database(const Rid& rid, std::string_view if_match);

  /// Conflict when the id is taken, OwnerNotFound when the database has gone, Forbidden when its
  /// shared throughput serves as many containers as it may.
  Result<ContainerPtr> create_container(const Rid& database, ContainerDefinition definition,
                                        const std::optional<Throughput>& throughput);
  /// `change` makes the new definition of the current one. NotFound; PreconditionFailed; and what
  /// `change` returns.
  Result<ContainerPtr> replace_container(
      const Rid& rid, std::string_view if_match,
      const std::function<Result<ContainerDefinition>(const ContainerDefinition&)>& change);
  Result<> delete_container(const Rid& rid, std::string_view if_match);

  /// `members` are of parse_encryption_key. Conflict when the id is taken, OwnerNotFound when the
  /// database has gone, Forbidden when it has kEncryptionKeysMax.
  Result<EncryptionKeyPtr> create_encryption_key(const Rid& database, Json members);
  /// With the same id. NotFound; PreconditionFailed.
  Result<EncryptionKeyPtr> replace_encryption_key(const Rid& rid, std::string_view if_match,
                                                  Json members);

  // ── split and merge ──
  /// Accepts a split of a range, at `at` or in the middle; run() does it. NotFound when the
  /// container is not there, RangeGone when the range is not; BadRequest when it cannot be cut, or
  /// not there; Conflict while another change of it is under way. Does not block.
  Result<std::unique_ptr<RangeChange>> begin_split(const Rid& container, RangeId range,
                                                   const std::optional<Epk>& at);
  /// Likewise of two neighbours, in any order.
  Result<std::unique_ptr<RangeChange>> begin_merge(const Rid& container, RangeId one,
                                                   RangeId other);
  /// Both steps at once.
  Result<ContainerPtr> split_range(const Rid& container, RangeId range,
                                   const std::optional<Epk>& at = {});
  Result<ContainerPtr> merge_ranges(const Rid& container, RangeId one, RangeId other);

  // ── upkeep: see maintenance/housekeeper.h ──
  /// Those with TTL or history, in the order of their rids.
  std::vector<ContainerPtr> containers_with_upkeep() const;
  /// Those of which a partition may not keep yet what the definition asks for, because a crash or a
  /// disk error came in between; each is told once.
  std::vector<Rid> take_unreconciled();
  void reconcile_later(const Rid& container);
  /// Makes all partitions of the container keep what it asks for now, and waits for them. Blocks.
  /// Unavailable when the disk refuses.
  Result<> reconcile_keeping(const Rid& container);

  /// NotFound; PreconditionFailed. The ranges stay as they are: see needs_more_ranges.
  Result<OfferPtr> replace_offer(const Rid& rid, std::string_view if_match,
                                 const Throughput& throughput);

 private:
  friend class RangeChange;

  /// All that exists, by every name it is asked for.
  struct State {
    std::unordered_map<std::string, DatabasePtr> databases_by_id;
    std::map<Rid, DatabasePtr> databases;
    std::unordered_map<std::string, ContainerPtr> containers_by_path;  // "database/container"
    std::map<Rid, ContainerPtr> containers;
    std::map<Rid, ContainerPtr> with_upkeep;  // Of the containers.
    std::unordered_map<std::string, EncryptionKeyPtr> encryption_keys_by_path;  // "database/key"
    std::map<Rid, EncryptionKeyPtr> encryption_keys;
    std::map<Rid, OfferPtr> offers;
    std::map<Rid, Rid> offers_by_owner;
  };

  Catalog(partition::Environment& environment, RulesMaker make_rules, CatalogLimits limits);
  /// Reads everything anew, keeping the partitions that are in use.
  Result<> load();
  static StoredContainer stored_form(const Container& container);
  ContainerPtr make_container(StoredContainer stored, const std::string& database_id,
                              std::vector<Range> ranges) const;
  /// The head that a new container begins with: 1, or above the head that the name's last bearer
  /// had, and where this life of the store began.
  Result<storage::Head> first_head(const std::string& database_id, UnixSeconds now,
                                   const ContainerDefinition& definition) const;

  /// Numbers for a change that is being prepared; they count only when it commits.
  Counters next_counters() const;
  OfferPtr make_offer(Counters& counters, const Rid& owner, const Throughput& throughput) const;
  /// Commits, and shows the change to others by `show`, which changes the state under its lock. It
  /// runs on the committer's thread, as load() does after a disk error: were it later, load() could
  /// come in between, and a partition get two writers.
  Result<> commit(storage::Batch batch, const Counters& counters,
                  partition::StoreGeneration generation, const std::function<void(State&)>& show);
  /// Stages the removal of a container and of its offer, and keeps its partitions from taking
  /// writes.
  void stage_removal(const Container& container, storage::Batch& batch);
  void put_back(const std::vector<ContainerPtr>& containers);
  static void add(State& state, const OfferPtr& offer);
  static void erase_offer_of(State& state, const Rid& owner);
  void reclaim_space_of(const Container& container);
  Result<ContainerPtr> replace_definition(
      const Rid& rid, std::string_view if_match,
      const std::function<Result<ContainerDefinition>(const ContainerDefinition&)>& change);
  static void put(State& state, const ContainerPtr& container);
  static void put(State& state, const std::string& database_id, const EncryptionKeyPtr& key);
  static void erase(State& state, const Rid& container);
  Result<std::unique_ptr<RangeChange>> claim(const Container& container, std::vector<Range> parents,
                                             std::vector<EpkRange> parts);
  /// Waits; false when the catalog is stopping.
  bool rest(std::chrono::steady_clock::duration duration);

  /// A partition that belongs to no container any more.
  struct Garbage {
    PartitionNumber partition;
    /// Reclaimed when nobody reads it any more, or then at the latest.
    std::weak_ptr<partition::Partition> readers;
    std::chrono::steady_clock::time_point deadline{};
    /// The disk refused: not at once again.
    std::chrono::steady_clock::time_point not_before{};
  };
  /// Of partitions that others have replaced: readers who are under way may finish.
  void reclaim_when_unused(const std::vector<Range>& ranges);
  void reclaim(const std::vector<PartitionNumber>& partitions);
  void add_garbage(Garbage garbage);
  static Garbage used_garbage(const std::shared_ptr<partition::Partition>& partition);
  void start_reclaiming();
  /// The next that can be reclaimed now. Nothing when stopping, or when there is none.
  std::optional<PartitionNumber> next_garbage();
  void reclaim(PartitionNumber partition);

  partition::Environment& environment_;
  const RulesMaker make_rules_;
  const CatalogLimits limits_;
  std::function<void(const Rid&)> tell_ = [](const Rid&) {};

  std::mutex change_mutex_;  // One change at a time; look-ups don't wait for it.
  mutable std::shared_mutex state_mutex_;
  State state_;            // Guarded by state_mutex_.
  Counters counters_;      // Guarded by state_mutex_.
  storage::Life life_;     // Of the store as it was opened; never changes after open().
  std::string life_text_;  // The same.

  std::mutex reclaim_mutex_;
  std::condition_variable reclaim_work_;
  std::vector<Garbage> garbage_;  // Guarded by reclaim_mutex_.
  bool stopping_ = false;
  std::thread reclaimer_;                         // Runs only while there is something to reclaim.
  std::atomic<bool> gives_up_reclaiming_{false};  // What is compacted when stop() is called.
  bool reclaiming_ = false;

  std::mutex keeping_mutex_;  // One at a time changes what partitions keep.
  std::mutex unreconciled_mutex_;
  std::set<Rid> unreconciled_;  // Guarded by unreconciled_mutex_.

  std::mutex claims_mutex_;
  std::set<PartitionNumber> claims_;  // Being split or merged. Guarded by claims_mutex_.
};

}  // namespace orrery::catalog
