#include "client/handles/account.h"

#include <fmt/format.h>

#include "client/exchange/endpoint.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/http_date.h"

namespace orrery::client {
namespace {

Result<> check_endpoint(std::string_view endpoint) {
  ORRERY_TRY([[maybe_unused]] const auto parsed, Endpoint::parse(endpoint));
  return {};
}

/// Escapes all but unreserved characters.
std::string percent_encode(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += "0123456789ABCDEF"[byte >> 4];
      out += "0123456789ABCDEF"[byte & 0xF];
    }
  }
  return out;
}

}  // namespace

Result<Account> Account::make(std::string endpoint, std::string_view key) {
  ORRERY_TRY(check_endpoint(endpoint));
  auto parsed = MasterKey::parse(key);
  if (!parsed) {
    return Error(ErrorCode::BadRequest,
                 "the account key is not one: it is base64 text of at least 16 bytes");
  }
  return Account(std::move(endpoint), std::move(*parsed), {});
}

Result<Account> Account::with_token(std::string endpoint, std::string_view token) {
  ORRERY_TRY(check_endpoint(endpoint));
  if (token.empty()) return Error(ErrorCode::BadRequest, "the resource token is empty");
  // Some hand it out in the form in which it is sent.
  const bool is_encoded = token.find('=') == std::string_view::npos;
  return Account(std::move(endpoint), std::nullopt,
                 is_encoded ? std::string(token) : percent_encode(token));
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
  request.headers.emplace_back(headers::kXDate.text, date);
  request.headers.emplace_back(headers::kAuthorization.text,
                               authorization(request.method, type, link, date));
  request.headers.emplace_back(headers::kVersion.text, kApiVersion);
}

std::string Account::authorization(std::string_view method, std::string_view type,
                                   std::string_view link, std::string_view date) const {
  if (!key_) return token_;
  return format_authorization(key_->sign(
      {.verb = method, .resource_type = type, .link = link, .x_ms_date = date, .date = {}}));
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
