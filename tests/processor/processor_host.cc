// A host in a process of its own, for tests that kill it and stop it.
//
//   processor_host ENDPOINT KEY DATABASE HOST DIRECTORY
//
// Processes the container `monitored` with leases in `leases`, and tells on standard output what it
// does, a line each:
//   open LEASE EPOCH | batch LEASE EPOCH ID… | sink accepts | sink refuses | close LEASE REASON
// While there is a file DIRECTORY/hold, a batch that has been told of waits until it is gone. The
// first time that a batch was held, its lease goes to the sink before the batch is done.
#include <cstdio>
#include <filesystem>
#include <thread>

#include "test_sink.h"

namespace {

using namespace std::chrono_literals;
using namespace orrery::processor;

/// Flushes: a line must be there even if the process is killed right after it.
void tell(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

class Teller final : public ChangeFeedObserver {
 public:
  Teller(orrery::client::Container sink, std::filesystem::path hold)
      : sink_(std::move(sink)), hold_(std::move(hold)) {}

  void open(ObserverContext& context) override {
    tell("open " + context.lease_token() + " " + std::to_string(context.epoch()));
  }
  void process_changes(ObserverContext& context, const Documents& changes) override {
    std::string line = "batch " + context.lease_token() + " " + std::to_string(context.epoch());
    for (const std::string_view document : changes) {
      const std::size_t begin = document.find("\"id\":\"") + 6;
      line += " " + std::string(document.substr(begin, document.find('"', begin) - begin));
    }
    tell(line);
    if (!std::filesystem::exists(hold_)) return;
    while (std::filesystem::exists(hold_)) std::this_thread::sleep_for(5ms);
    const bool accepted =
        orrery::test::sink_takes(sink_, context.lease_token(), context.epoch(), context.to());
    tell(accepted ? "sink accepts" : "sink refuses");
  }
  void close(ObserverContext& context, CloseReason reason) override {
    tell("close " + context.lease_token() + " " + std::to_string(static_cast<int>(reason)));
  }

 private:
  orrery::client::Container sink_;
  std::filesystem::path hold_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const orrery::client::CosmosClient client(argv[1], argv[2]);
  const auto database = client.database(argv[3]);
  MonitoredFeedOptions feed;
  feed.start_from_beginning = true;
  feed.max_item_count = 10;
  ChangeFeedProcessorHost host(argv[4], database.container("monitored"),
                               database.container("leases"), feed, orrery::test::fast());
  const std::filesystem::path hold = std::filesystem::path(argv[5]) / "hold";
  host.register_observer(
      [&] { return std::make_unique<Teller>(database.container("sink"), hold); });
  tell("ready");
  // Until somebody closes standard input.
  while (std::getchar() != EOF) {
  }
  host.unregister_observers();
  tell("stopped");
  return 0;
}
