// Account: where a server is, and the key that opens it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "client/transport/transport.h"
#include "protocol/auth/auth_signature.h"
#include "protocol/wire/resource_path.h"

namespace orrery::client {

class Account {
 public:
  /// BadRequest when the endpoint is no http or https URL, or the key is not base64.
  static Result<Account> make(std::string endpoint, std::string_view key);
  /// With a resource token, as a service that has the key gives it to its users, instead of a key.
  static Result<Account> with_token(std::string endpoint, std::string_view token);
  /// "AccountEndpoint=…;AccountKey=…;" as the server prints it.
  static Result<Account> parse(std::string_view connection_string);

  const std::string& endpoint() const { return endpoint_; }

  /// Adds what every request carries, and the signature over `type` and `link` (names, not
  /// percent-encoded).
  void sign(Request& request, std::string_view type, std::string_view link,
            const Clock& clock) const;
  /// The value of the header authorization, for a request that says `date` in x-ms-date.
  std::string authorization(std::string_view method, std::string_view type, std::string_view link,
                            std::string_view date) const;

 private:
  Account(std::string endpoint, std::optional<MasterKey> key, std::string token)
      : endpoint_(std::move(endpoint)), key_(std::move(key)), token_(std::move(token)) {}

  std::string endpoint_;
  std::optional<MasterKey> key_;
  std::string token_;  // As it is sent; only without a key.
};

/// The API version whose forms this client understands.
inline constexpr std::string_view kApiVersion = "2020-07-15";

/// "dbs/<database>/colls/<container>" for "database/container". BadRequest when it has another
/// form.
Result<std::string> container_link(std::string_view database_and_container);

}  // namespace orrery::client
