// Random histories of hosts in a simulated world, one after the other.
//
//   processor_torture [schedules [first seed]]     0 schedules: until something breaks
//
// The exit status is 1 when something broke; the seed that replays it is printed.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/diagnostics.h"
#include "processor/test_schedule.h"

int main(int argc, char** argv) {
  using orrery::processor::simulation::Schedule;
  const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  // A single one is a replay: tell what hosts say.
  orrery::diagnostics::set_level(count == 1 ? orrery::diagnostics::Level::Debug
                                            : orrery::diagnostics::Level::Off);
  const auto begin = std::chrono::steady_clock::now();
  std::size_t changes = 0;
  std::size_t deliveries = 0;
  for (std::uint64_t seed = first; count == 0 || seed < first + count; ++seed) {
    Schedule schedule(seed);
    const auto problems = schedule.run();
    for (const std::string& problem : problems) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), problem.c_str());
    }
    if (!problems.empty()) {
      std::printf("replay: processor_torture 1 %llu\n", static_cast<unsigned long long>(seed));
      return 1;
    }
    changes += schedule.changes();
    deliveries += schedule.deliveries();
    const std::uint64_t done = seed - first + 1;
    if (done % 1000 == 0 || done == count) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
      std::printf("%llu schedules, %zu changes, %zu deliveries, %.0f schedules/s\n",
                  static_cast<unsigned long long>(done), changes, deliveries,
                  static_cast<double>(done) / elapsed.count());
      std::fflush(stdout);
    }
  }
  return 0;
}
