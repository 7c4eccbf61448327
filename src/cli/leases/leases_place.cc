#include "cli/leases/leases_place.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "client/exchange/refusal.h"

namespace orrery::cli {

void create_lease_container(const client::CosmosClient& client, const std::string& name) {
  client::ContainerProperties properties;
  properties.id = name.substr(name.find('/') + 1);
  properties.partition_key_paths = {"/id"};
  properties.default_ttl = -1;  // Locks and announcements of hosts have an end of their own.
  const std::string database = name.substr(0, name.find('/'));
  client.create_database_if_not_exists(database);
  client.database(database).create_container_if_not_exists(properties);
}

std::filesystem::path state_home() {
  namespace fs = std::filesystem;
  if (const char* path = std::getenv("XDG_STATE_HOME"); path != nullptr && *path == '/') {
    return fs::path(path) / "orrery";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return fs::path(home) / ".local" / "state" / "orrery";
  }
  throw client::failure_of(client::Failure::Argument,
                           "there is no home directory to keep leases in: say --state or --leases");
}

void add_lease_place_options(CLI::App& command, LeasePlace& place) {
  auto* container =
      command
          .add_option("--leases", place.container,
                      "Container with the leases, DATABASE/CONTAINER, for hosts on any machine")
          ->group("Leases");
  command
      .add_option("--leases-connection", place.connection,
                  "Connection string of the server with the leases, if it is another one")
      ->needs(container)
      ->group("Leases");
  command
      .add_option("--state", place.state_directory,
                  "Directory with the leases, for hosts on this machine (default: one for each "
                  "server in ~/.local/state/orrery)")
      ->excludes(container)
      ->group("Leases");
  command
      .add_option("--group", place.group,
                  "Name of the group: those of one name share the work, each group gets everything")
      ->group("Leases");
}

std::shared_ptr<processor::LeaseStore> open_lease_store(const LeasePlace& place,
                                                        const ConnectionOptions& connection,
                                                        const std::string& endpoint) {
  if (place.container.empty()) {
    return processor::file_lease_store(
        place.state_directory.empty() ? default_state_directory(endpoint) : place.state_directory);
  }
  ConnectionOptions server = connection;
  if (!place.connection.empty()) server.connection_string = place.connection;
  const client::CosmosClient client = open_client(server);
  const client::Container leases = open_container(client, place.container);
  if (place.create) create_lease_container(client, place.container);
  check_container(leases, place.container,
                  "it is to hold the leases: 'orrery process' makes it with --create-leases");
  return processor::container_lease_store(leases);
}

std::string name_of_group(const std::string& group) {
  return group.empty() ? "the group without a name" : fmt::format("the group '{}'", group);
}

std::string default_state_directory(const std::string& endpoint) {
  std::string server = endpoint.substr(endpoint.find("://") + 3);
  server = server.substr(0, server.find('/'));
  for (char& letter : server) {
    if (letter == ':') letter = '_';
  }
  return (state_home() / "leases" / server).string();
}

void check_container(const client::Container& container, const std::string& name,
                     const std::string& hint) {
  try {
    container.read();
  } catch (const client::CosmosException& exception) {
    if (!exception.is_not_found()) throw;
    client::CosmosException::Details details;
    details.status = exception.status();
    throw client::CosmosException(fmt::format("there is no container {} on this server{}{}", name,
                                              hint.empty() ? "" : "; ", hint),
                                  std::move(details));
  }
}

}  // namespace orrery::cli
