// Point reads with the C++ SDK, by its public headers only: one client, many threads.
//
//   sdk_reads --port P --threads N --seconds S --ids N [--key-count N]
//
// Reads documents that `orrery_load fill` has made, at random. Prints one JSON object; a read that
// fails ends the program.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client.h"
#include "orrery/client.h"

namespace {

using namespace bench;
using namespace orrery;

struct Options : Target {
  int threads = 16;
  double seconds = 5;
  std::uint64_t ids = 10'000;
  std::uint64_t keys = 1000;  // as orrery_load has it
};

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* value = argv[i + 1];
    if (options.take(name, value)) continue;
    if (name == "--threads") {
      options.threads = std::atoi(value);
    } else if (name == "--seconds") {
      options.seconds = std::atof(value);
    } else if (name == "--ids") {
      options.ids = std::strtoull(value, nullptr, 10);
    } else if (name == "--key-count") {
      options.keys = std::strtoull(value, nullptr, 10);
    } else {
      fail("unknown option " + std::string(name));
    }
  }
  return options;
}

std::string padded(const char* format, std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, format, static_cast<unsigned long long>(number));
  return text;
}

void read_until(SteadyClock::time_point deadline, const Options& options,
                const client::Container& container, unsigned seed,
                std::atomic<std::uint64_t>& reads) {
  std::mt19937_64 random(seed);
  std::uint64_t done = 0;
  try {
    while (SteadyClock::now() < deadline) {
      const std::uint64_t number = random() % options.ids;
      const auto document = container.read_item(padded("doc-%010llu", number),
                                                padded("k%06llu", number % options.keys));
      if (document.value.empty()) fail("an empty document");
      ++done;
    }
  } catch (const client::CosmosException& failure) {
    fail(std::string(failure.what()) + " " + failure.diagnostics());
  }
  reads += done;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const client::CosmosClient account("http://" + options.host + ":" + std::to_string(options.port),
                                     kKey);
  const client::Container container =
      account.database(options.database).container(options.container);
  std::atomic<std::uint64_t> reads{0};
  const auto begun = SteadyClock::now();
  const auto deadline = begun + std::chrono::duration_cast<SteadyClock::duration>(
                                    std::chrono::duration<double>(options.seconds));
  std::vector<std::thread> threads;
  for (int i = 0; i < options.threads; ++i) {
    threads.emplace_back(read_until, deadline, std::cref(options), std::cref(container),
                         static_cast<unsigned>(i + 1), std::ref(reads));
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - begun).count();
  std::printf("{\"threads\":%d,\"requests\":%llu,\"seconds\":%.3f,\"per_second\":%.1f}\n",
              options.threads, static_cast<unsigned long long>(reads), seconds,
              static_cast<double>(reads) / seconds);
  return 0;
}
