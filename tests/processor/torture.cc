// Random histories of hosts in a simulated world, as many at once as there are processors.
//
//   processor_torture [schedules [first seed]]     0 schedules: until something breaks
//
// Without a first seed it is ORRERY_SEED, else 1.
//
// The exit status is 1 when something broke; the seed that replays it is printed.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "base/diagnostics.h"
#include "base/test_seed.h"
#include "processor/simulation/test_schedule.h"

namespace {

using orrery::processor::simulation::Events;
using orrery::processor::simulation::Schedule;

constexpr std::uint64_t kReportEvery = 1000;

/// The totals of all workers so far.
class Tally {
 public:
  void add(const Schedule& schedule) {
    const std::scoped_lock lock(mutex_);
    ++done_;
    changes_ += schedule.changes();
    deliveries_ += schedule.deliveries();
    events_ += schedule.events();
    if (done_ % kReportEvery == 0) print();
  }
  void add_failure(std::uint64_t seed, const std::vector<std::string>& problems) {
    const std::scoped_lock lock(mutex_);
    failed_ = true;
    for (const std::string& problem : problems) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), problem.c_str());
    }
    std::printf("replay: processor_torture 1 %llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }
  bool failed() const {
    const std::scoped_lock lock(mutex_);
    return failed_;
  }
  void finish() const {
    const std::scoped_lock lock(mutex_);
    if (!failed_ && done_ % kReportEvery != 0) print();
  }

 private:
  void print() const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    std::printf("%llu schedules, %zu changes, %zu deliveries, %.0f schedules/s; %s\n",
                static_cast<unsigned long long>(done_), changes_, deliveries_,
                static_cast<double>(done_) / elapsed.count(), events_.text().c_str());
    std::fflush(stdout);
  }

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;  // Guards what follows.
  std::uint64_t done_ = 0;
  std::size_t changes_ = 0;
  std::size_t deliveries_ = 0;
  Events events_;
  bool failed_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const std::uint64_t first =
      argc > 2 ? std::strtoull(argv[2], nullptr, 10) : orrery::test::seed_or(1);
  // A single one is a replay: tell what hosts say.
  orrery::diagnostics::set_level(count == 1 ? orrery::diagnostics::Level::Debug
                                            : orrery::diagnostics::Level::Off);
  Tally tally;
  std::atomic<std::uint64_t> next = first;
  const auto work = [&] {
    while (!tally.failed()) {
      const std::uint64_t seed = next++;
      if (count != 0 && seed >= first + count) break;
      Schedule schedule(seed);
      const auto problems = schedule.run();
      if (problems.empty()) {
        tally.add(schedule);
      } else {
        tally.add_failure(seed, problems);
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < (count == 1 ? 1 : processors); ++i) workers.emplace_back(work);
  }
  tally.finish();
  return tally.failed() ? 1 : 0;
}
