// Database: containers, and throughput that they may share.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "orrery/container.h"

namespace orrery::client {

struct DatabaseProperties {
  std::string id;
  std::string rid;
  std::string etag;
};

/// A database of an account. Cheap to copy, thread-safe. Making one sends nothing.
class Database {
 public:
  const std::string& id() const { return id_; }

  /// Throws CosmosException (Argument) when the id is empty or has a '/'.
  Container container(std::string id) const;
  Response<ContainerProperties> create_container(const ContainerProperties& properties,
                                                 const CreateOptions& options = {}) const;
  /// Also when somebody else creates it at the same moment. An existing one is left as it is.
  Response<ContainerProperties> create_container_if_not_exists(
      const ContainerProperties& properties, const CreateOptions& options = {}) const;
  Pages<Page<ContainerProperties>> list_containers(const ListOptions& options = {}) const;
  Pages<Page<ContainerProperties>> query_containers(const Query& query,
                                                    const ListOptions& options = {}) const;

  Response<DatabaseProperties> read(const RequestOptions& options = {}) const;
  Response<Nothing> remove(const RequestOptions& options = {}) const;
  /// Throws 404 where each container has its own.
  Response<Throughput> read_throughput(const RequestOptions& options = {}) const;
  Response<Throughput> replace_throughput(const Throughput& throughput,
                                          const RequestOptions& options = {}) const;

  Database(std::shared_ptr<Pipeline> pipeline, std::string id);

 private:
  std::shared_ptr<Pipeline> pipeline_;  // Shared by all handles of one client.
  std::string id_;
};

}  // namespace orrery::client
