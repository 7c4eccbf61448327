// Processes the changes of a container that sky has made: follow ENDPOINT KEY DATABASE.
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <string>

#include <orrery/processor.h>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    orrery::client::CosmosClient client(argv[1], std::string(argv[2]));
    const auto stars = client.database(argv[3]).container("stars");

    std::mutex mutex;
    std::condition_variable processed;
    std::size_t count = 0;
    orrery::processor::MonitoredFeedOptions options;
    options.start_from_beginning = true;
    orrery::processor::ChangeFeedProcessorHost host(
        "follow", stars, orrery::processor::memory_lease_store(), options);
    host.register_handler(
        [&](orrery::processor::ObserverContext&, const orrery::processor::Documents& changes) {
          const std::scoped_lock lock(mutex);
          count += changes.size();
          processed.notify_all();
          return orrery::processor::Outcome::done();
        });
    {
      std::unique_lock lock(mutex);
      processed.wait_for(lock, std::chrono::seconds(60), [&] { return count >= 2; });
    }
    host.unregister_observers();
    std::cout << count << " stars processed\n";
    return count == 2 ? 0 : 1;
  } catch (const orrery::client::CosmosException& failure) {
    std::cerr << failure.what() << '\n' << failure.diagnostics() << '\n';
    return 1;
  }
}
