// Shared by all examples: the account, the words on the command line, and when to end.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
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

/// The container that the leases of a processor live in, made if it is not there. Leases are looked
/// up by their id, so that is the partition key. Time to live is switched on (-1: only documents
/// that ask for it expire) for the lock that hosts take while they make the leases: it goes away by
/// itself when its holder dies.
inline orrery::client::Container lease_container(const orrery::client::Database& database,
                                                 const std::string& id) {
  database.create_container_if_not_exists(
      {.id = id, .partition_key_paths = {"/id"}, .default_ttl = -1});
  return database.container(id);
}

/// A container of data, made if it is not there.
inline orrery::client::Container data_container(const orrery::client::Database& database,
                                                const std::string& id, const std::string& key) {
  database.create_container_if_not_exists({.id = id, .partition_key_paths = {key}});
  return database.container(id);
}

/// How many changes nobody has processed yet. Positions count as they are in the leases, so what an
/// observer is still at work on is among them.
inline std::uint64_t changes_left(const orrery::processor::LeaseGroup& group) {
  std::uint64_t sum = 0;
  for (const auto& lag : group.lag()) sum += lag.documents;
  return sum;
}

/// When to end: with `once` as soon as nothing is left to do, otherwise only by a signal.
inline std::function<bool()> when_done(const orrery::processor::LeaseGroup& group, bool once) {
  if (!once) return {};
  return [&group] { return changes_left(group) == 0; };
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
