// Target: the container that a copy goes into, as all parts of a copy share it; and its ledger.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "orrery/client.h"
#include "sinks/container/change.h"
#include "sinks/container/position.h"

namespace orrery::sinks {

/// What ends a copy: it can't go on before somebody has done something about it. what() is for
/// people.
class CopyFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thread-safe.
struct Target {
  /// Throws CosmosException when the container is not there.
  Target(client::Container container, std::string name, std::string group, std::string source_rid);

  client::Container container;
  const std::string name;  ///< DATABASE/CONTAINER, for messages
  const std::string source_rid;
  const KeyReader keys;
  const PositionFormat positions;

  std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> skipped{0};  ///< that were there already
  /// Says once, on standard error, that the server has to be waited for.
  std::function<void(const std::string&)> tell_waiting = [](const std::string&) {};

 private:
  Target(client::Container container, std::string name, std::string group, std::string source_rid,
         const client::ContainerProperties& properties, const PartitionKeyDefinition& definition);
};

/// The key as calls of the client take it.
client::PartitionKey key_for_calls(const PartitionKey& key);

/// Whether the same call may succeed later without anybody's help.
bool may_pass(const client::CosmosException& failure);
bool may_pass(int status, int sub_status);

/// Waits between attempts: longer and longer.
class Patience {
 public:
  explicit Patience(std::stop_token stop) : stop_(std::move(stop)) {}
  /// At least `at_least`, unless somebody asks for an end.
  void wait(std::optional<std::chrono::milliseconds> at_least = {});

 private:
  std::stop_token stop_;
  std::chrono::milliseconds next_{20};
};

/// The ledger of a group in its destination. Thread-safe; its calls throw CosmosException, and
/// CopyFailure when the group was made for another source.
class LedgerKeeper {
 public:
  explicit LedgerKeeper(const Target& target);

  struct Registration {
    bool superseded = false;  ///< somebody with a higher epoch has taken a part of it
    bool first = false;       ///< nobody had this area before
    std::vector<Ledger::Entry> predecessors;
  };
  /// To be called before anything is written for `area` at `epoch`.
  Registration enter(const client::FeedRange& area, std::uint64_t epoch);
  bool is_superseded(const client::FeedRange& area, std::uint64_t epoch);

 private:
  struct Known {
    Ledger ledger;
    std::string etag;  ///< empty: there is none yet
  };
  Known read() const;

  const Target& target_;
  const std::string id_;
  const client::PartitionKey key_;
  std::mutex mutex_;  // One of this process at a time: others would only meet each other's etags.
};

}  // namespace orrery::sinks
