// RenewalPacer: when to renew which lease, so that a host with many writes them evenly.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "processor/hosting/runtime.h"

namespace orrery::processor {

/// A lease is due one interval after it was last written, whatever wrote it; for the first time
/// half an interval after it was acquired. Where many are due at once, they are spread: never more
/// than a quarter above the mean rate.
class RenewalPacer {
 public:
  explicit RenewalPacer(std::chrono::milliseconds interval) : interval_(interval) {}

  void acquired(const std::string& id, MonotonicTime now) { set_due(id, now + interval_ / 2); }
  /// Ids that are not there are ignored by this and the following.
  void written(const std::string& id, MonotonicTime when);
  /// It could not be written: soon again.
  void failed(const std::string& id, MonotonicTime now);
  /// As soon as may be.
  void hasten(const std::string& id, MonotonicTime now);
  void remove(const std::string& id);

  /// When take() will have something; never, when there are no leases.
  MonotonicTime next() const;
  /// A lease to renew now, if there is one. It is due again in an interval.
  std::optional<std::string> take(MonotonicTime now);

 private:
  void set_due(const std::string& id, MonotonicTime due);
  MonotonicTime::duration gap() const;

  std::chrono::milliseconds interval_;
  std::map<std::string, MonotonicTime> due_;
  std::set<std::pair<MonotonicTime, std::string>> order_;
  MonotonicTime last_taken_{};
};

}  // namespace orrery::processor
