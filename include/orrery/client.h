// CosmosClient: an account, on Orrery or on Azure Cosmos DB.
//
//   orrery::client::CosmosClient client("https://localhost:8081", key);
//   auto stars = client.database("sky").container("stars");
//   stars.upsert_item(R"({"id":"deneb","constellation":"cygnus"})", "cygnus");
//   auto feed = stars.change_feed();
//   for (auto page = feed.next(); !page.not_modified; page = feed.next())
//     for (std::string_view star : page) std::cout << star << '\n';
//
// Calls block, and throw CosmosException. Handles may be used by many threads at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/container.h"
#include "orrery/database.h"
#include "orrery/exception.h"
#include "orrery/options.h"
#include "orrery/partition_key.h"
#include "orrery/response.h"

namespace orrery::client {

/// Authenticates a client to an account.
class Credential {
 public:
  /// A primary, secondary or read-only key, in base64.
  static Credential key(std::string base64) { return {Kind::Key, std::move(base64)}; }
  /// A resource token, as a service that has the key gives it to its users.
  static Credential resource_token(std::string token) {
    return {Kind::ResourceToken, std::move(token)};
  }

  enum class Kind { Key, ResourceToken };
  Kind kind() const { return kind_; }
  const std::string& secret() const { return secret_; }

 private:
  Credential(Kind kind, std::string secret) : kind_(kind), secret_(std::move(secret)) {}

  Kind kind_;
  std::string secret_;
};

struct Region {
  std::string name;
  std::string endpoint;
};

struct AccountProperties {
  std::string id;
  ConsistencyLevel consistency = ConsistencyLevel::Session;
  std::vector<Region> writable_regions;
  std::vector<Region> readable_regions;
};

/// Throughput of a database or container, as the server keeps it.
struct Offer {
  std::string id;
  std::string rid;
  std::string resource_link;
  Throughput throughput;
  std::string json;
};

/// A client of one account. Cheap to copy, thread-safe; copies share connections, session tokens
/// and what is known of ranges. Making one sends nothing.
class CosmosClient {
 public:
  /// Throws CosmosException (Argument) when the endpoint is no http or https URL, or the key is not
  /// base64.
  CosmosClient(std::string endpoint, const Credential& credential, ClientOptions options = {});
  CosmosClient(std::string endpoint, std::string key, ClientOptions options = {})
      : CosmosClient(std::move(endpoint), Credential::key(std::move(key)), std::move(options)) {}
  /// "AccountEndpoint=…;AccountKey=…;" as Orrery and the portal print it.
  static CosmosClient from_connection_string(std::string_view text, ClientOptions options = {});

  const std::string& endpoint() const;

  /// Throws CosmosException (Argument) when the id is empty or has a '/'.
  Database database(std::string id) const;
  Response<DatabaseProperties> create_database(std::string_view id,
                                               const CreateOptions& options = {}) const;
  /// Also when somebody else creates it at the same moment.
  Response<DatabaseProperties> create_database_if_not_exists(
      std::string_view id, const CreateOptions& options = {}) const;
  Pages<Page<DatabaseProperties>> list_databases(const ListOptions& options = {}) const;
  Pages<Page<DatabaseProperties>> query_databases(const Query& query,
                                                  const ListOptions& options = {}) const;

  Response<AccountProperties> read_account(const RequestOptions& options = {}) const;
  Pages<Page<Offer>> list_offers(const ListOptions& options = {}) const;

 private:
  std::shared_ptr<Pipeline> pipeline_;  // Shared by all handles of this client.
};

}  // namespace orrery::client
