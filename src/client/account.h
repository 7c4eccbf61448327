// Account: where a server is, and the key that opens it.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "client/transport.h"
#include "protocol/auth_signature.h"
#include "protocol/resource_path.h"

namespace orrery::client {

class Account {
 public:
  /// BadRequest when the endpoint is no http or https URL, or the key is not base64.
  static Result<Account> make(std::string endpoint, std::string_view key);
  /// "AccountEndpoint=…;AccountKey=…;" as the server prints it.
  static Result<Account> parse(std::string_view connection_string);

  const std::string& endpoint() const { return endpoint_; }

  /// Adds what every request carries, and the signature over `type` and `link` (names, not
  /// percent-encoded).
  void sign(Request& request, std::string_view type, std::string_view link,
            const Clock& clock) const;

 private:
  Account(std::string endpoint, MasterKey key)
      : endpoint_(std::move(endpoint)), key_(std::move(key)) {}

  std::string endpoint_;
  MasterKey key_;
};

/// "dbs/<database>/colls/<container>" for "database/container". BadRequest when it has another
/// form.
Result<std::string> container_link(std::string_view database_and_container);

}  // namespace orrery::client
