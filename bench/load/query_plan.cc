// How long it takes to understand a query: to parse, check and bind it, and to see what indexes
// could do for it, which the server does for every query; and to make the plan that clients ask
// for.
//
//   query_plan --query TEXT [--batches N]
//
// Prints one JSON object. Times are the median of batches: somebody else may be on the machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"
#include "query/plan/access.h"
#include "query/plan/plan.h"
#include "query/plan/prepared.h"

namespace {

using namespace bench;
using namespace orrery;

constexpr int kBatchQueries = 200;

/// Microseconds for one call.
template <typename Act>
double median_us(int batches, Act act) {
  std::vector<double> times;
  for (int batch = 0; batch < batches; ++batch) {
    const auto begun = SteadyClock::now();
    for (int i = 0; i < kBatchQueries; ++i) act();
    times.push_back(std::chrono::duration<double, std::micro>(SteadyClock::now() - begun).count() /
                    kBatchQueries);
  }
  std::ranges::sort(times);
  return quantile(times, 0.5);
}

}  // namespace

int main(int argc, char** argv) {
  std::string text;
  int batches = 100;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--query") {
      text = argv[i + 1];
    } else if (name == "--batches") {
      batches = std::atoi(argv[i + 1]);
    } else {
      fail("unknown option " + std::string(name));
    }
  }
  if (text.empty() || batches < 1) fail("usage: query_plan --query TEXT [--batches N]");

  const query::Settings settings;
  const query::Parameters parameters;
  const PartitionKeyDefinition definition{{{"pk"}}, KeyKind::Hash, 2};
  std::size_t conditions = 0;
  const double understand_us = median_us(batches, [&] {
    const auto prepared = query::PreparedQuery::prepare(text, parameters, settings);
    if (!prepared) fail(prepared.error().message());
    conditions = query::access_of(**prepared).conditions.size();
  });
  const double plan_us = median_us(batches, [&] {
    const auto plan = query::make_plan({text, parameters, settings, definition, std::nullopt});
    if (!plan) fail(plan.error().message());
  });
  std::printf(
      "{\"characters\":%zu,\"conditions\":%zu,\"understand_us\":%.2f,\"client_plan_us\":%.2f}\n",
      text.size(), conditions, understand_us, plan_us);
  return 0;
}
