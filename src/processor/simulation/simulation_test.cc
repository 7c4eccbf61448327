#include <chrono>
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/diagnostics.h"
#include "processor/simulation/test_schedule.h"

namespace orrery::processor::simulation {
namespace {

/// ORRERY_SEED replays one schedule, and tells what hosts say meanwhile.
TEST(Simulation, WhateverHappensToHostsNoChangeIsLostOrOutOfOrder) {
  diagnostics::set_level(diagnostics::Level::Off);
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
  if (const char* seed = std::getenv("ORRERY_SEED")) {
    first = std::strtoull(seed, nullptr, 10);
    count = 1;
    diagnostics::set_level(diagnostics::Level::Debug);
  }
  std::size_t changes = 0;
  std::size_t deliveries = 0;
  Events events;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Schedule schedule(seed);
    for (const std::string& problem : schedule.run()) {
      ADD_FAILURE() << "seed " << seed << ": " << problem;
    }
    if (HasFailure()) break;
    changes += schedule.changes();
    deliveries += schedule.deliveries();
    events += schedule.events();
  }
  std::printf("%zu changes in %zu deliveries; %s\n", changes, deliveries, events.text().c_str());
}

}  // namespace
}  // namespace orrery::processor::simulation
