// The C++ side of tests that are shared with other languages: writes, or reads the change feed, as
// it is told.
//
//   feed_probe write DATABASE CONTAINER PREFIX COUNT
//     upserts PREFIX0… with keys "key 0" to "key 6"
//   feed_probe delete DATABASE CONTAINER ID KEY
//   feed_probe read DATABASE CONTAINER [all] [key KEY] [size N] [from beginning|now|CONTINUATION]
//     prints each item as a line of JSON until there is nothing new, then "continuation TEXT"
//   feed_probe process DATABASE CONTAINER LEASES PREFIX
//     a host of the processor: prints each change as a line of JSON until nothing is left to do
//
// The account is ORRERY_ENDPOINT_HTTP and ORRERY_KEY.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "orrery/client.h"
#include "orrery/processor.h"

namespace {

using namespace orrery::client;

std::string required(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

void write(const Container& container, const std::vector<std::string>& words) {
  const int count = std::stoi(words.at(4));
  for (int i = 0; i < count; ++i) {
    const std::string key = "key " + std::to_string(i % 7);
    container.upsert_item(R"({"id":")" + words.at(3) + std::to_string(i) + R"(","pk":")" + key +
                              R"(","n":)" + std::to_string(i) + "}",
                          key);
  }
}

ChangeFeedOptions options_of(const std::vector<std::string>& words) {
  ChangeFeedOptions options;
  for (std::size_t i = 3; i < words.size(); ++i) {
    if (words[i] == "all") {
      options.mode = ChangeFeedMode::AllVersionsAndDeletes;
    } else if (words[i] == "key") {
      options.partition_key = PartitionKey(words.at(++i));
    } else if (words[i] == "size") {
      options.page_size = static_cast<std::uint32_t>(std::stoul(words.at(++i)));
    } else if (words[i] == "from") {
      const std::string& start = words.at(++i);
      options.start = start == "beginning" ? ChangeFeedStart::beginning()
                      : start == "now"     ? ChangeFeedStart::now()
                                           : ChangeFeedStart::continuation(start);
    } else {
      throw std::runtime_error("what is '" + words[i] + "'?");
    }
  }
  return options;
}

void read(const Container& container, const std::vector<std::string>& words) {
  auto feed = container.change_feed(options_of(words));
  for (auto page = feed.next(); !page.not_modified; page = feed.next()) {
    for (const std::string_view item : page) std::cout << item << '\n';
  }
  std::cout << "continuation " << feed.continuation() << '\n';
}

void process(const Container& container, const Container& leases, const std::string& prefix) {
  namespace processor = orrery::processor;
  processor::MonitoredFeedOptions feed_options;
  feed_options.start_from_beginning = true;
  processor::ChangeFeedHostOptions host_options;
  host_options.lease_prefix = prefix;
  processor::ChangeFeedProcessorHost host("probe", container, leases, feed_options, host_options);
  std::mutex printing;
  host.register_handler([&](processor::ObserverContext&, const processor::Documents& changes) {
    const std::scoped_lock lock(printing);
    for (const std::string_view item : changes) std::cout << item << '\n';
    return processor::Outcome::done();
  });
  const processor::LeaseGroup group(container, processor::container_lease_store(leases), prefix);
  for (std::uint64_t left = 1; left > 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    left = 0;
    for (const processor::LeaseLag& lag : group.lag()) left += lag.documents;
  }
  host.unregister_observers();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    const CosmosClient client(required("ORRERY_ENDPOINT_HTTP"), required("ORRERY_KEY"));
    const auto container = client.database(words.at(1)).container(words.at(2));
    if (words[0] == "write") {
      write(container, words);
    } else if (words[0] == "delete") {
      container.delete_item(words.at(3), words.at(4));
    } else if (words[0] == "read") {
      read(container, words);
    } else if (words[0] == "process") {
      process(container, client.database(words[1]).container(words.at(3)), words.at(4));
    } else {
      throw std::runtime_error("what is '" + words[0] + "'?");
    }
    return 0;
  } catch (const std::exception& failure) {
    std::cerr << "feed_probe: " << failure.what() << '\n';
    return 1;
  }
}
