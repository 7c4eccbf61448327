#include "client/account.h"

#include <fmt/format.h>

#include "protocol/headers.h"
#include "protocol/http_date.h"

namespace orrery::client {
namespace {

/// The API version whose forms this client understands.
constexpr std::string_view kApiVersion = "2020-07-15";

}  // namespace

Result<Account> Account::make(std::string endpoint, std::string_view key) {
  if (!endpoint.starts_with("http://") && !endpoint.starts_with("https://")) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("the endpoint must be a URL such as http://127.0.0.1:8081/, not '{}'",
                             endpoint));
  }
  auto parsed = MasterKey::parse(key);
  if (!parsed) {
    return Error(ErrorCode::BadRequest,
                 "the account key is not one: it is base64 text of at least 16 bytes");
  }
  return Account(std::move(endpoint), std::move(*parsed));
}

Result<Account> Account::parse(std::string_view connection_string) {
  std::string endpoint, key;
  while (!connection_string.empty()) {
    const auto part = connection_string.substr(0, connection_string.find(';'));
    connection_string.remove_prefix(std::min(connection_string.size(), part.size() + 1));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    if (equal_ignoring_case(part.substr(0, equals), "AccountEndpoint")) {
      endpoint = part.substr(equals + 1);
    } else if (equal_ignoring_case(part.substr(0, equals), "AccountKey")) {
      key = part.substr(equals + 1);
    }
  }
  if (endpoint.empty() || key.empty()) {
    return Error(ErrorCode::BadRequest,
                 "a connection string is AccountEndpoint=<URL>;AccountKey=<key>; as the server "
                 "prints it at its start");
  }
  return make(std::move(endpoint), key);
}

void Account::sign(Request& request, std::string_view type, std::string_view link,
                   const Clock& clock) const {
  const std::string date = format_http_date(clock.unix_seconds());
  const std::string signature = key_.sign(
      {.verb = request.method, .resource_type = type, .link = link, .x_ms_date = date, .date = {}});
  request.headers.emplace_back(headers::kXDate.text, date);
  request.headers.emplace_back(headers::kAuthorization.text, format_authorization(signature));
  request.headers.emplace_back(headers::kVersion.text, kApiVersion);
}

Result<std::string> container_link(std::string_view database_and_container) {
  const auto slash = database_and_container.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == database_and_container.size() ||
      database_and_container.find('/', slash + 1) != std::string_view::npos) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("'{}' names no container: write DATABASE/CONTAINER", database_and_container));
  }
  return fmt::format("dbs/{}/colls/{}", database_and_container.substr(0, slash),
                     database_and_container.substr(slash + 1));
}

}  // namespace orrery::client
