// Which indexes are worth their price: those that queries would have profited from.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "protocol/index_path.h"

namespace orrery::index {

struct AdvisorLimits {
  /// A query has read too much if it has read so many documents, and that many times its rows.
  std::uint64_t documents_min = 1000;
  std::uint64_t documents_per_row_min = 10;
  /// Of queries that have read less, the reading is added up: so many documents are too much.
  std::uint64_t documents_sum_min = 10'000;
  /// What was added up is forgotten if nothing comes for that long.
  std::chrono::seconds memory = std::chrono::hours(1);
  /// A wish is told once in so long: whoever hears it may not be able to grant it.
  std::chrono::seconds patience = std::chrono::minutes(1);
  std::size_t indexes_max = 32;       ///< of a container
  std::size_t containers_max = 1000;  ///< that are remembered
  std::size_t wishes_max = 256;       ///< of a container that are remembered
};

/// Only keeps the books: builds nothing. Thread-safe.
class Advisor {
 public:
  explicit Advisor(const Clock& clock, AdvisorLimits limits = {})
      : clock_(clock), limits_(limits) {}

  /// What a query has done, without indexes that would have helped it.
  struct Observation {
    std::string_view container;      ///< its `_rid`
    std::uint64_t documents = 0;     ///< of the container
    std::vector<IndexSpec> helpful;  ///< that are not there, best first
    std::size_t indexes = 0;         ///< how many are there
    std::uint64_t documents_read = 0;
    std::uint64_t rows = 0;
  };
  /// Those that should be built now.
  std::vector<IndexSpec> saw(const Observation& observation);

  /// The container is gone, or its policy is another one.
  void forget(std::string_view container);

 private:
  /// An index that queries would have liked.
  struct Wish {
    std::uint64_t documents_read = 0;  // Since it was told.
    UnixSeconds seen_at = 0;
    UnixSeconds told_at = 0;  // 0: never.
  };
  struct Container {
    std::map<IndexSpec, Wish> wishes;
    UnixSeconds seen_at = 0;
  };

  void forget_old(UnixSeconds now);

  const Clock& clock_;
  const AdvisorLimits limits_;
  std::mutex mutex_;
  std::map<std::string, Container, std::less<>> containers_;
};

}  // namespace orrery::index
