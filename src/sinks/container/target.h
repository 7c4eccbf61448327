// CopyTarget: the container that a copy goes into, shared by all parts of the copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "orrery/client.h"
#include "sinks/container/change.h"
#include "sinks/container/position.h"

namespace orrery::sinks {

/// Thread-safe.
struct CopyTarget {
  /// Throws CosmosException when the container is not there.
  CopyTarget(client::Container container, std::string name, std::string group,
             std::string source_rid);

  client::Container container;
  const std::string name;  ///< DATABASE/CONTAINER, for messages
  const std::string source_rid;
  const KeyReader keys;
  const PositionFormat positions;

  std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> skipped{0};  ///< applied before
  /// Gets the reason when a write has to be retried later. On any thread, also repeatedly.
  std::function<void(const std::string&)> report_waiting = [](const std::string&) {};

 private:
  CopyTarget(client::Container container, std::string name, std::string group,
             std::string source_rid, const client::ContainerProperties& properties,
             const PartitionKeyDefinition& definition);
};

/// The key for calls of the client.
client::PartitionKey client_key(const PartitionKey& key);

}  // namespace orrery::sinks
