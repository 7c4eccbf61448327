// Copies a container into another one with a different partition key, while the application goes on
// writing: a migration without downtime.
//
//   copy_container DATABASE SOURCE DESTINATION KEY_PATH [LEASES] [--remove-extra] [--once]
//
// 1. Start it. It copies everything that is there, and then each change as it comes. It prints how
//    far it is behind.
// 2. When that is close to nothing, let the application pause its writes for a moment.
// 3. Press Ctrl-C (or send SIGTERM). It copies what is left, compares both containers, and ends
// with
//    0 if they are equal. Now let the application use the new container.
//
// The feed of latest versions does not tell of deletes, and a document whose new key value changes
// leaves a copy under the old one. Both are found by the comparison as documents that only the
// destination has; --remove-extra removes them there. A second signal ends it without step 3: the
// leases keep the position, and the next start goes on from there.
//
// Only for documents whose id is unique under the new key as well.
#include <signal.h>

#include <ctime>
#include <functional>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "example.h"

namespace client = orrery::client;
namespace processor = orrery::processor;
using Json = nlohmann::json;

namespace {

/// SIGINT and SIGTERM. They are blocked, in this thread and in all that it starts later: so make
/// one before anything that has threads. Nothing runs inside a signal handler then; whoever wants
/// to know asks.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals_, nullptr);
  }
  /// Waits for one of them; false when none came in that time.
  bool arrived_within(std::chrono::milliseconds time) const {
    const timespec wait{static_cast<time_t>(time.count() / 1000),
                        static_cast<long>(time.count() % 1000 * 1'000'000)};
    return sigtimedwait(&signals_, nullptr, &wait) > 0;
  }

 private:
  sigset_t signals_;
};

/// A document without what a server adds to it: its copy gets its own.
Json own_properties(std::string_view text) {
  Json document = Json::parse(text);
  for (const char* name : {"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"}) {
    document.erase(name);
  }
  return document;
}

/// The value at the path of a partition key, as the requests need it.
client::PartitionKey key_of(const Json& document, const Json::json_pointer& path) {
  if (!document.contains(path)) return client::PartitionKey::none();
  return client::PartitionKey::from_json("[" + document.at(path).dump() + "]");
}

/// Of each document in a container: what it is there under the new key, and what is in it.
using Contents = std::unordered_map<std::string, std::size_t>;

Contents contents_of(const client::Container& container, const Json::json_pointer& key) {
  Contents contents;
  container.list_items().for_each([&](const client::ItemPage& page) {
    for (const std::string_view text : page) {
      const Json document = own_properties(text);
      const Json place = {Json::parse(key_of(document, key).json()), document.at("id")};
      // The members of a Json are sorted, so equal documents have equal texts.
      contents[place.dump()] = std::hash<std::string>()(document.dump());
    }
  });
  return contents;
}

/// Whether both have the same documents. Removes those that only the destination has, if asked to.
bool verify(const client::Container& source, const client::Container& destination,
            const Json::json_pointer& key, bool remove_extra) {
  const Contents wanted = contents_of(source, key);
  const Contents found = contents_of(destination, key);
  std::size_t missing = 0, different = 0, extra = 0;
  for (const auto& [place, hash] : wanted) {
    const auto copy = found.find(place);
    if (copy == found.end()) ++missing;
    if (copy != found.end() && copy->second != hash) ++different;
  }
  for (const auto& [place, hash] : found) {
    if (wanted.contains(place)) continue;
    const Json where = Json::parse(place);
    if (remove_extra) {
      destination.delete_item(where[1].get<std::string>(),
                              client::PartitionKey::from_json(where[0].dump()));
    } else {
      ++extra;
      std::cout << "only in the destination: " << place << '\n';
    }
  }
  std::cout << wanted.size() << " documents, " << missing << " missing, " << different
            << " different, " << extra << " extra\n";
  return missing + different + extra == 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::guarded([&] {
    const StopSignals signals;
    const example::Arguments arguments(argc, argv);
    if (arguments.words.size() < 4) {
      std::cerr << "usage: copy_container DATABASE SOURCE DESTINATION KEY_PATH [LEASES] "
                   "[--remove-extra] [--once]\n";
      return 2;
    }
    const auto database = example::connect().database(arguments.words[0]);
    const auto source = database.container(arguments.words[1]);
    const auto destination =
        example::data_container(database, arguments.words[2], arguments.words[3]);
    const Json::json_pointer key(arguments.words[3]);
    const auto leases = example::lease_container(
        database, arguments.words.size() > 4 ? arguments.words[4] : "leases");

    // Everything that is there, then what changes.
    const processor::MonitoredFeedOptions feed_options{.start_from_beginning = true};
    processor::ChangeFeedHostOptions host_options;
    // Several copies may use one lease container. Without a prefix they would share the work.
    host_options.lease_prefix = "copy-to-" + destination.id() + ".";

    processor::ChangeFeedProcessorHost host("copy", source, leases, feed_options, host_options);
    host.set_health_monitor(example::report_trouble);
    host.start([&](processor::ObserverContext&, const processor::Documents& changes) {
      std::vector<client::ItemOperation> writes;
      for (const std::string_view text : changes) {
        writes.push_back(client::ItemOperation::upsert(own_properties(text)));
      }
      // An upsert that is done twice leaves what one leaves: a batch may come again after a crash.
      // In a batch each document is there once, so the order within it does not matter.
      const client::BulkResponse written = destination.execute_bulk(writes);
      for (const client::ItemResult& result : written.results) {
        // Until the whole batch comes again there is no checkpoint: nothing is passed over.
        if (!result.ok()) {
          return processor::Outcome::retry(std::chrono::seconds(1), result.message);
        }
      }
      return processor::Outcome::done();
    });

    const processor::LeaseGroup group(source, processor::container_lease_store(leases),
                                      host_options.lease_prefix);
    bool finish = arguments.has("once");
    for (std::uint64_t left = example::changes_left(group); left > 0 || !finish;
         left = example::changes_left(group)) {
      std::cout << left << " changes left\n" << std::flush;
      if (!signals.arrived_within(std::chrono::milliseconds(500))) continue;
      if (finish) return 1;  // The second signal, or one that is in a hurry.
      finish = true;
    }
    host.stop();
    return verify(source, destination, key, arguments.has("remove-extra")) ? 0 : 1;
  });
}
