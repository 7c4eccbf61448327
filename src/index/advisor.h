// Which indexes are worth their price: those that queries would have profited from.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "protocol/container/index_path.h"

namespace orrery::index {

struct AdvisorLimits {
  /// A query has read too much if it has read so many documents, and that many times its rows.
  std::uint64_t documents_min = 1000;
  std::uint64_t documents_per_row_min = 10;
  /// Of queries that have read less, the reading is added up: so many documents are too much.
  std::uint64_t documents_sum_min = 10'000;
  /// The sum is dropped if nothing is added for that long.
  std::chrono::seconds memory = std::chrono::hours(1);
  /// An index is advised once in so long: the caller may not be able to build it.
  std::chrono::seconds patience = std::chrono::minutes(1);
  std::size_t indexes_max = 32;  ///< of a container
  /// Of these, so many may be there for queries of read-only keys alone.
  std::size_t read_only_max = 16;
  /// An index gives way to one that would have saved so many times as much reading, if it was not
  /// used for so long...
  double advantage_min = 2;
  std::chrono::seconds idle_min = std::chrono::minutes(10);
  /// ...and one that is there for read-only keys alone to any that another key's query wants.
  /// Either way one at a time, and none that is younger than this.
  std::chrono::seconds age_min = std::chrono::minutes(1);
  /// Cost that an index has saved counts for half as much after this time.
  std::chrono::seconds half_life = std::chrono::hours(1);
  std::size_t containers_max = 1000;  ///< that are remembered
  std::size_t wishes_max = 256;       ///< of a container that are remembered
};

/// Only keeps the books: builds nothing. Thread-safe.
class Advisor {
 public:
  explicit Advisor(const Clock& clock, AdvisorLimits limits = {})
      : clock_(clock), limits_(limits) {}

  /// The work of a query without indexes that would have helped it.
  struct Observation {
    std::string_view container;      ///< its `_rid`
    std::uint64_t documents = 0;     ///< of the container
    std::vector<IndexSpec> helpful;  ///< that are not there, best first
    std::size_t indexes = 0;         ///< how many are there
    std::uint64_t documents_read = 0;
    std::uint64_t rows = 0;
    /// Of the indexes that are there, those that the policy does not name, by IndexSpec::text.
    std::vector<std::string> automatic = {};
    bool is_read_only = false;  ///< the key that signed the query
  };
  struct Advice {
    std::vector<IndexSpec> build;   ///< now
    std::vector<std::string> drop;  ///< to make room for them
  };
  Advice observe(const Observation& observation);
  /// The same where the query wants its indexes at once, whatever it would read: some of them, if
  /// there is no room for others in a container that may have `indexes_max`.
  Advice request(const Observation& observation, std::size_t indexes_max);

  /// A query was served by these indexes, by IndexSpec::text, and did not have to read so many
  /// documents. One call may stand for several.
  void used(std::string_view container, std::span<const std::string> indexes,
            std::uint64_t documents_saved);

  /// The container is gone, or its policy is another one.
  void forget(std::string_view container);

 private:
  /// An index that queries would have liked.
  struct Wish {
    std::uint64_t documents_read = 0;  // Since it was told.
    UnixSeconds seen_at = 0;
    UnixSeconds told_at = 0;    // 0: never.
    bool is_read_only = false;  // Nobody else has asked.
  };
  /// An index that is there, or was told.
  struct Index {
    double saved = 0;  // Documents, as of `used_at`.
    UnixSeconds used_at = 0;
    UnixSeconds since = 0;  // That we know of it.
    bool is_read_only = false;
  };
  struct Container {
    std::map<IndexSpec, Wish> wishes;
    std::map<std::string, Index, std::less<>> indexes;
    UnixSeconds seen_at = 0;
    UnixSeconds dropped_at = 0;
  };
  using Indexes = std::map<std::string, Index, std::less<>>;

  Container& container_of(const Observation& observation, UnixSeconds now);
  bool grant(Container& container, const Observation& observation, const IndexSpec& spec,
             double worth, std::size_t indexes_max, UnixSeconds now, Advice& advice) const;
  Indexes::iterator find_victim(Container& container, bool for_read_only, bool of_read_only,
                                double worth, UnixSeconds now) const;
  double worth_of(const Index& index, UnixSeconds now) const;
  void forget_surplus(Container& container);
  void forget_old(UnixSeconds now);

  const Clock& clock_;
  const AdvisorLimits limits_;
  std::mutex mutex_;
  std::map<std::string, Container, std::less<>> containers_;
};

}  // namespace orrery::index
