// Offers: the throughput that databases and containers have.
#pragma once

#include <cstddef>
#include <map>
#include <shared_mutex>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "catalog/resources.h"
#include "catalog/writer.h"
#include "protocol/ids.h"

namespace orrery::catalog {

/// Thread-safe. Look-ups take a shared lock for a moment.
class Offers {
 public:
  Offers(Writer& writer, const Clock& clock) : writer_(writer), clock_(clock) {}

  /// Null when there is none.
  OfferPtr find(const Rid& rid) const;
  OfferPtr of(const Rid& owner) const;
  /// In the order of creation, those after `after`, at most `count_max`.
  std::vector<OfferPtr> list(std::string_view after, std::size_t count_max) const;

  /// The ranges stay as they are: see needs_more_ranges. NotFound; PreconditionFailed by `if_match`
  /// (empty: no condition). Blocks.
  Result<OfferPtr> replace(const Rid& rid, std::string_view if_match, const Throughput& throughput);

  // ── parts of changes of their owners: shown when those are committed ──
  /// An offer of a new owner, which `transaction` stores.
  OfferPtr stage(Writer::Transaction& transaction, const Rid& owner,
                 const Throughput& throughput) const;
  void put(const OfferPtr& offer);
  void erase_of(const Rid& owner);
  /// Those of the store take the place of all.
  void load(const std::vector<OfferPtr>& offers);

 private:
  struct Tables {
    std::map<Rid, OfferPtr> offers;
    std::map<Rid, Rid> by_owner;

    void put(const OfferPtr& offer);
  };

  Writer& writer_;
  const Clock& clock_;
  /// Guards the tables. Taken inside the writer's turn, on the committer's thread too. A leaf:
  /// nothing is locked inside.
  mutable std::shared_mutex mutex_;
  Tables tables_;
};

}  // namespace orrery::catalog
