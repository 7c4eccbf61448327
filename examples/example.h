// What all examples share: the account, the words on the command line, and an end by signal.
#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <orrery/processor.h>

namespace example {

/// The account that the environment names. Without a word, a local server that was started without
/// a key: this one is published in every Cosmos DB tutorial, and protects nothing.
inline orrery::client::CosmosClient connect() {
  const char* given = std::getenv("ORRERY_CONNECTION");
  return orrery::client::CosmosClient::from_connection_string(
      given != nullptr ? given
                       : "AccountEndpoint=http://127.0.0.1:8081/;"
                         "AccountKey=C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGG"
                         "yPMbIZnqyMsEcaGQy67XIw/Jw==;");
}

/// Words, and options "--name" or "--name=value" among them.
struct Arguments {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;

  Arguments(int argc, char** argv) {
    for (const std::string& word : std::vector<std::string>(argv + 1, argv + argc)) {
      if (!word.starts_with("--")) {
        words.push_back(word);
        continue;
      }
      const std::size_t equals = std::min(word.find('='), word.size());
      options[word.substr(2, equals - 2)] = word.substr(std::min(equals + 1, word.size()));
    }
  }
  bool has(const std::string& option) const { return options.contains(option); }
  std::string value(const std::string& option, const std::string& otherwise) const {
    const auto found = options.find(option);
    return found == options.end() || found->second.empty() ? otherwise : found->second;
  }
};

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

/// The container that the leases of a processor live in, made if it is not there. Leases are looked
/// up by their id, so that is the partition key. Time to live is switched on (-1: only documents
/// that ask for it expire) for the lock that hosts take while they make the leases: it goes away by
/// itself when its holder dies.
inline orrery::client::Container lease_container(const orrery::client::Database& database,
                                                 const std::string& id) {
  orrery::client::ContainerProperties properties;
  properties.id = id;
  properties.partition_key_paths = {"/id"};
  properties.default_ttl = -1;
  database.create_container_if_not_exists(properties);
  return database.container(id);
}

/// A container of data, made if it is not there.
inline orrery::client::Container data_container(const orrery::client::Database& database,
                                                const std::string& id, const std::string& key) {
  orrery::client::ContainerProperties properties;
  properties.id = id;
  properties.partition_key_paths = {key};
  database.create_container_if_not_exists(properties);
  return database.container(id);
}

/// How many changes nobody has processed yet. Positions count as they are in the leases, so what an
/// observer is still at work on is among them.
inline std::uint64_t changes_left(const orrery::processor::LeaseGroup& group) {
  std::uint64_t sum = 0;
  for (const auto& lag : group.lag()) sum += lag.documents;
  return sum;
}

/// Waits until somebody wants an end or, with `once`, until nothing is left to do.
inline void run_until_stopped(const StopSignals& signals,
                              const orrery::processor::LeaseGroup& group, bool once) {
  while (!signals.arrived_within(std::chrono::milliseconds(200))) {
    if (once && changes_left(group) == 0) return;
  }
}

/// For operators: what goes wrong, on standard error. The processor goes on by itself.
inline void report_trouble(const orrery::processor::HealthEvent& event) {
  if (event.severity == orrery::processor::Severity::Informational) return;
  std::cerr << event.operation << ' ' << event.lease_token << ": " << event.message << '\n';
}

/// Runs `body`; what it throws becomes a message and an exit code.
template <typename Body>
int guarded(Body body) {
  try {
    return body();
  } catch (const orrery::client::CosmosException& failure) {
    std::cerr << failure.what() << '\n' << failure.diagnostics() << '\n';
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << '\n';
  }
  return 1;
}

}  // namespace example
