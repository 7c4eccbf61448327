// A host of the change feed processor, measured. Uses the processor by its public headers only.
//
//   processor_load catch-up --port P --leases C --count N
//       reads the feed of --container from its beginning until N documents were seen by an observer
//       that does nothing with them
//   processor_load latency --port P --leases C --rate WRITES --seconds S
//       writes documents at a steady rate; the time from the acknowledgement of a write to the call
//       of the observer with it
//   processor_load serve --port P --leases C --name N
//       takes part until it is killed, and says "open LEASE SECONDS" on standard output when a
//       lease is its own, by the machine's monotonic clock
//
// The lease container must be there. The first two print one JSON object.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "client.h"
#include "orrery/processor.h"

namespace {

using namespace bench;
using namespace orrery;
using std::chrono::milliseconds;

struct Options : Target {
  std::string mode;
  std::string leases = "leases";
  std::string name = "bench-host";
  std::uint64_t count = 0;
  double rate = 20;
  double seconds = 5;
  milliseconds renew{17'000}, acquire{13'000}, expiration{60'000};
  std::size_t connections = 0;  // 0: as many as the client has by default
};

Options parse_options(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) fail("usage: processor_load catch-up|latency|serve --port P …");
  Options options;
  options.mode = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* value = argv[i + 1];
    if (options.take(name, value)) continue;
    if (name == "--leases") {
      options.leases = value;
    } else if (name == "--name") {
      options.name = value;
    } else if (name == "--count") {
      options.count = std::strtoull(value, nullptr, 10);
    } else if (name == "--rate") {
      options.rate = std::atof(value);
    } else if (name == "--seconds") {
      options.seconds = std::atof(value);
    } else if (name == "--renew-ms") {
      options.renew = milliseconds(std::atoi(value));
    } else if (name == "--acquire-ms") {
      options.acquire = milliseconds(std::atoi(value));
    } else if (name == "--expiration-ms") {
      options.expiration = milliseconds(std::atoi(value));
    } else if (name == "--connections") {
      options.connections = std::strtoull(value, nullptr, 10);
    } else {
      fail("unknown option " + std::string(name));
    }
  }
  return options;
}

processor::ChangeFeedProcessorHost make_host(const Options& options, bool from_beginning) {
  client::ClientOptions client_options;
  if (options.connections > 0) client_options.connections_max = options.connections;
  const client::CosmosClient account("http://" + options.host + ":" + std::to_string(options.port),
                                     kKey, client_options);
  const client::Database database = account.database(options.database);
  processor::MonitoredFeedOptions feed_options;
  feed_options.start_from_beginning = from_beginning;
  processor::ChangeFeedHostOptions host_options;
  host_options.lease_renew_interval = options.renew;
  host_options.lease_acquire_interval = options.acquire;
  host_options.lease_expiration_interval = options.expiration;
  return processor::ChangeFeedProcessorHost(options.name, database.container(options.container),
                                            database.container(options.leases), feed_options,
                                            host_options);
}

/// Calls what it was given with every batch.
class CallingObserver final : public processor::ChangeFeedObserver {
 public:
  using Called = std::function<void(const processor::Documents&)>;
  explicit CallingObserver(const Called& called) : called_(called) {}
  void process_changes(processor::ObserverContext&, const processor::Documents& changes) override {
    called_(changes);
  }

 private:
  const Called& called_;
};

// ── Catching up ────────────────────────────────────────────────────────────────────────────────

int catch_up(const Options& options) {
  std::atomic<std::uint64_t> documents{0};
  std::atomic<std::uint64_t> batches{0};
  std::mutex mutex;
  std::condition_variable changed;
  const CallingObserver::Called count = [&](const processor::Documents& changes) {
    ++batches;
    if (documents.fetch_add(changes.size()) + changes.size() < options.count) return;
    const std::scoped_lock lock(mutex);
    changed.notify_one();
  };
  auto host = make_host(options, /*from_beginning=*/true);
  const auto begun = SteadyClock::now();
  host.register_observer([&] { return std::make_unique<CallingObserver>(count); });
  std::unique_lock lock(mutex);
  if (!changed.wait_for(lock, std::chrono::minutes(5),
                        [&] { return documents >= options.count; })) {
    fail("only " + std::to_string(documents) + " documents have arrived");
  }
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - begun).count();
  lock.unlock();
  host.unregister_observers();
  std::printf(
      "{\"mode\":\"catch-up\",\"documents\":%llu,\"batches\":%llu,\"seconds\":%.3f,"
      "\"per_second\":%.1f}\n",
      static_cast<unsigned long long>(documents), static_cast<unsigned long long>(batches), seconds,
      static_cast<double>(documents) / seconds);
  return documents == options.count ? 0 : 1;
}

// ── How soon ───────────────────────────────────────────────────────────────────────────────────

/// When something happened to each document; epoch: not yet.
using Times = std::vector<std::atomic<SteadyClock::time_point>>;

int latency(const Options& options) {
  const auto writes = static_cast<std::size_t>(options.rate * options.seconds);
  Times acknowledged(writes), seen(writes);
  std::atomic<std::size_t> arrived{0};
  const CallingObserver::Called note = [&](const processor::Documents& changes) {
    const auto now = SteadyClock::now();
    for (const std::string_view document : changes) {
      constexpr std::string_view kMark = "\"seq\":";
      const char* number = document.data() + document.find(kMark) + kMark.size();
      seen[std::strtoull(number, nullptr, 10)] = now;
      ++arrived;
    }
  };
  auto host = make_host(options, /*from_beginning=*/false);
  host.register_observer([&] { return std::make_unique<CallingObserver>(note); });

  const Signer signer(kKey);
  const int fd = connect_to(options);
  std::vector<char> buffer(64 * 1024);
  const auto begun = SteadyClock::now();
  for (std::size_t n = 0; n < writes; ++n) {
    const std::chrono::duration<double> due(static_cast<double>(n) / options.rate);
    std::this_thread::sleep_until(begun + std::chrono::duration_cast<SteadyClock::duration>(due));
    const std::string number = std::to_string(n);
    upsert(fd, options, signer, "latency",
           "{\"id\":\"latency" + number + "\",\"pk\":\"latency\",\"seq\":" + number +
               ",\"pad\":\"" + std::string(900, 'x') + "\"}",
           buffer);
    acknowledged[n] = SteadyClock::now();
  }
  ::close(fd);
  const auto deadline = SteadyClock::now() + std::chrono::seconds(30);
  while (arrived < writes && SteadyClock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  if (arrived != writes) fail(std::to_string(arrived) + " documents have arrived");
  host.unregister_observers();

  std::vector<double> delays_ms;
  for (std::size_t n = 0; n < writes; ++n) {
    delays_ms.push_back(
        std::chrono::duration<double, std::milli>(seen[n].load() - acknowledged[n].load()).count());
  }
  std::sort(delays_ms.begin(), delays_ms.end());
  std::printf(
      "{\"mode\":\"latency\",\"writes\":%zu,\"p50_ms\":%.3f,\"p90_ms\":%.3f,\"p99_ms\":%.3f,"
      "\"max_ms\":%.3f}\n",
      writes, quantile(delays_ms, 0.5), quantile(delays_ms, 0.9), quantile(delays_ms, 0.99),
      delays_ms.back());
  return 0;
}

// ── Taking part ────────────────────────────────────────────────────────────────────────────────

class TellingObserver final : public processor::ChangeFeedObserver {
 public:
  void open(processor::ObserverContext& context) override {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    std::printf("open %s %.6f\n", context.lease_token().c_str(),
                static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9);
    std::fflush(stdout);
  }
};

int serve(const Options& options) {
  auto host = make_host(options, /*from_beginning=*/true);
  host.register_observer([] { return std::make_unique<TellingObserver>(); });
  std::puts("ready");
  std::fflush(stdout);
  while (true) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  try {
    if (options.mode == "catch-up") return catch_up(options);
    if (options.mode == "latency") return latency(options);
    if (options.mode == "serve") return serve(options);
  } catch (const client::CosmosException& failure) {
    fail(std::string(failure.what()) + " " + failure.diagnostics());
  }
  fail("unknown mode " + options.mode);
}
