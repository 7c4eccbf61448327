// Where the leases of a group are: the options that `orrery process` and `orrery leases` share.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "cli/connection.h"
#include "orrery/processor.h"

namespace orrery::cli {

struct LeasePlace {
  std::string container;        ///< DATABASE/CONTAINER; empty: files
  std::string connection;       ///< of another server; empty: the one that is watched
  std::string state_directory;  ///< empty: default_state_directory()
  std::string group;            ///< the prefix of the leases
  bool create = false;
};

/// Adds --leases, --leases-connection, --state and --group.
void add_lease_place_options(CLI::App& command, LeasePlace& place);

/// Makes the container DATABASE/CONTAINER for leases, if it is not there. Throws CosmosException.
void create_lease_container(const client::CosmosClient& client, const std::string& name);

/// Throws CosmosException when it makes no sense, or when there is no such container.
std::shared_ptr<processor::LeaseStore> open_lease_store(const LeasePlace& place,
                                                        const ConnectionOptions& connection,
                                                        const std::string& endpoint);

/// A group by name, for sentences.
std::string name_of_group(const std::string& group);

/// Where commands keep their state: in $XDG_STATE_HOME or ~/.local/state.
std::filesystem::path state_home();

/// In state_home(); one for each server, since containers of different servers
/// may have the same ids.
std::string default_state_directory(const std::string& endpoint);

/// Throws CosmosException (404) in words when it is not there.
void check_container(const client::Container& container, const std::string& name,
                     const std::string& hint);

}  // namespace orrery::cli
