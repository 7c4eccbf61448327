#include "processor/leases/renewal_pacer.h"

#include <algorithm>

namespace orrery::processor {

namespace {
/// So few may be written at once without anybody noticing.
constexpr std::size_t kUnpaced = 8;
}  // namespace

void RenewalPacer::set_due(const std::string& id, MonotonicTime due) {
  const auto [at, added] = due_.try_emplace(id, due);
  if (!added) {
    order_.erase({at->second, id});
    at->second = due;
  }
  order_.emplace(due, id);
}

void RenewalPacer::written(const std::string& id, MonotonicTime when) {
  if (due_.contains(id)) set_due(id, when + interval_);
}

void RenewalPacer::failed(const std::string& id, MonotonicTime now) {
  if (due_.contains(id)) set_due(id, now + interval_ / 4);
}

void RenewalPacer::hasten(const std::string& id, MonotonicTime now) {
  if (due_.contains(id)) set_due(id, now);
}

void RenewalPacer::remove(const std::string& id) {
  const auto at = due_.find(id);
  if (at == due_.end()) return;
  order_.erase({at->second, id});
  due_.erase(at);
}

MonotonicTime::duration RenewalPacer::gap() const {
  if (due_.size() < kUnpaced) return MonotonicTime::duration::zero();
  return MonotonicTime::duration(interval_) * 4 / (5 * static_cast<long>(due_.size()));
}

MonotonicTime RenewalPacer::next() const {
  if (order_.empty()) return MonotonicTime::max();
  return std::max(order_.begin()->first, last_taken_ + gap());
}

std::optional<std::string> RenewalPacer::take(MonotonicTime now) {
  if (order_.empty() || next() > now) return std::nullopt;
  // The time it was due at counts, not the moment it got its turn: a thread that wakes late
  // would otherwise fall behind a little more each time.
  last_taken_ = std::max(next(), now - interval_ / 10);
  std::string id = order_.begin()->second;
  set_due(id, now + interval_);
  return id;
}

}  // namespace orrery::processor
