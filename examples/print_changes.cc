// Prints what changes in a container, as it happens.
//
//   print_changes DATABASE CONTAINER [LEASES] [--host=NAME] [--from-beginning] [--once]
//
// Start it twice with different names: the two share the container's ranges between them. Stop one,
// and the other takes over where it was.
#include <mutex>

#include <unistd.h>

#include "example.h"

namespace processor = orrery::processor;

int main(int argc, char** argv) {
  return example::guarded([&] {
    const example::Arguments arguments(argc, argv);
    if (arguments.words.size() < 2) {
      std::cerr << "usage: print_changes DATABASE CONTAINER [LEASES] [--host=NAME] "
                   "[--from-beginning] [--once]\n";
      return 2;
    }
    const auto database = example::connect().database(arguments.words[0]);
    const auto monitored = database.container(arguments.words[1]);
    const auto leases = example::lease_container(
        database, arguments.words.size() > 2 ? arguments.words[2] : "leases");

    // Where to begin matters only for the very first host: from then on the leases know.
    const processor::MonitoredFeedOptions feed_options{.start_from_beginning =
                                                           arguments.has("from-beginning")};

    // All programs that watch with this prefix are one group, and share the work.
    processor::ChangeFeedHostOptions host_options;
    host_options.lease_prefix = "print.";
    const processor::LeaseGroup group(monitored, processor::container_lease_store(leases),
                                      host_options.lease_prefix);
    if (feed_options.start_from_beginning && !group.leases().empty()) {
      std::cerr << "--from-beginning is not used: the group 'print.' has leases, and goes on where "
                   "they are. 'orrery leases reset' begins anew\n";
    }

    // Names tell hosts apart, so two that run at the same time need different ones. A name that
    // stays the same over a restart lets a host take its own leases again at once.
    const std::string name = arguments.value("host", "print-" + std::to_string(getpid()));

    processor::ChangeFeedProcessorHost host(name, monitored, leases, feed_options, host_options);
    host.set_health_monitor(example::report_trouble);

    // Called for each range by itself, and for several at the same time: hence the mutex. When it
    // returns, the host writes into the lease that the batch is done.
    std::mutex printing;
    const auto print = [&](processor::ObserverContext& context,
                           const processor::Documents& changes) {
      const std::scoped_lock lock(printing);
      for (const std::string_view document : changes) {
        std::cout << context.lease_token() << '\t' << document << '\n';
      }
      std::cout.flush();
      return processor::Outcome::done();
    };
    std::cerr << "host " << name << " watches " << monitored.link() << '\n';

    // In the end it waits for batches that are under way and gives the leases back, so that another
    // host need not wait for them to expire.
    processor::run_until_signal(host, print, example::when_done(group, arguments.has("once")));
    return 0;
  });
}
