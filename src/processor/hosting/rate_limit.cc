#include "processor/hosting/rate_limit.h"

#include <algorithm>

namespace orrery::processor {

namespace {

double seconds_between(MonotonicTime from, MonotonicTime to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

double RateLimiter::Bucket::level_at(MonotonicTime now) const {
  return std::min(*per_second, level + *per_second * seconds_between(at, now));
}

void RateLimiter::Bucket::spend(double amount, MonotonicTime now) {
  if (!per_second) return;
  level = level_at(now) - amount;
  at = now;
}

RateLimiter::RateLimiter(const RateLimits& limits, MonotonicTime now)
    : buckets_{Bucket{limits.documents, 0, now}, Bucket{limits.bytes, 0, now},
               Bucket{limits.request_units, 0, now}} {}

void RateLimiter::spend(const Spent& spent, MonotonicTime now) {
  buckets_[0].spend(spent.documents, now);
  buckets_[1].spend(spent.bytes, now);
  buckets_[2].spend(spent.request_units, now);
}

MonotonicTime RateLimiter::free_at(MonotonicTime now) const {
  MonotonicTime free = now;
  for (const Bucket& bucket : buckets_) {
    if (!bucket.per_second) continue;
    const double debt = -bucket.level_at(now);
    if (debt <= 0) continue;
    const auto wait = std::chrono::duration<double>(debt / *bucket.per_second);
    free = std::max(free, now + std::chrono::ceil<MonotonicTime::duration>(wait));
  }
  return free;
}

}  // namespace orrery::processor
