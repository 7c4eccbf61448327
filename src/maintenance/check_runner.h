// CheckRunner: checks the store while the server runs, when somebody asks for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "catalog/container_factory.h"
#include "maintenance/job.h"
#include "maintenance/store_check.h"
#include "storage/store.h"

namespace orrery::maintenance {

/// Takes half of one processor at the most, and gives way to everybody else. Thread-safe.
class CheckRunner {
 public:
  CheckRunner(const storage::Store& store, catalog::RulesMaker make_rules, const Clock& clock)
      : store_(store), make_rules_(std::move(make_rules)), job_(clock) {}

  /// As Job::start.
  Result<std::uint64_t> start();
  void stop() { job_.stop(); }
  Job<CheckReport>::Status status() const { return job_.status(); }
  /// Of all checks since the start.
  std::uint64_t findings() const { return findings_.load(std::memory_order_relaxed); }

 private:
  Result<CheckReport> run(std::stop_token stop);

  const storage::Store& store_;
  const catalog::RulesMaker make_rules_;
  std::atomic<std::uint64_t> findings_{0};
  Job<CheckReport> job_;  // Ends before what it uses.
};

}  // namespace orrery::maintenance
