// RateLimiter: so much per second, for all leases of a host together.
#pragma once

#include <array>
#include <optional>

#include "orrery/processor.h"
#include "processor/hosting/runtime.h"

namespace orrery::processor {

/// The cost of a page is known only afterwards: it is booked as a debt, which time pays off. While
/// there is debt nobody reads. Up to one second of unused budget is kept.
class RateLimiter {
 public:
  RateLimiter(const RateLimits& limits, MonotonicTime now);

  struct Spent {
    double documents = 0;
    double bytes = 0;
    double request_units = 0;
  };
  void spend(const Spent& spent, MonotonicTime now);
  /// From when on there is no debt; `now` when there is none.
  MonotonicTime free_at(MonotonicTime now) const;

 private:
  struct Bucket {
    std::optional<double> per_second;
    double level = 0;  ///< negative: debt
    MonotonicTime at;

    double level_at(MonotonicTime now) const;
    void spend(double amount, MonotonicTime now);
  };
  std::array<Bucket, 3> buckets_;
};

}  // namespace orrery::processor
