#include "cli/connection.h"

#include <cstdio>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/command_line.h"
#include "client/exchange/refusal.h"
#include "client/log.h"
#include "protocol/auth/well_known_key.h"
#include "protocol/wire/headers.h"

namespace orrery::cli {
namespace {

/// The codes that the caller of a command can react to: a wrong request, or a server that is away.
Error error_of(const client::Reply& reply) {
  const auto code = reply.status >= 500   ? ErrorCode::Unavailable
                    : reply.status == 429 ? ErrorCode::TooManyRequests
                    : reply.status == 410 ? ErrorCode::RangeGone
                    : reply.status == 404 ? ErrorCode::NotFound
                                          : ErrorCode::BadRequest;
  return Error(code,
               fmt::format("the server answered {}: {}", reply.status, client::message_of(reply)));
}

}  // namespace

void add_connection_options(CLI::App& command, ConnectionOptions& options) {
  command.add_option("--endpoint", options.endpoint, "Where the server listens")
      ->envname("ORRERY_ENDPOINT")
      ->capture_default_str()
      ->group("Connection");
  command
      .add_option("--account-key", options.key,
                  "The account key (default: the emulator's well-known key)")
      ->envname("ORRERY_ACCOUNT_KEY")
      ->group("Connection");
  command
      .add_option("--connection", options.connection_string,
                  "Both at once: AccountEndpoint=…;AccountKey=…; as 'orrery serve' prints it")
      ->envname("ORRERY_CONNECTION")
      ->group("Connection");
  command
      .add_option("--ca", options.certificate_file,
                  "Certificate (PEM) to trust for https; a server's own is at "
                  "/_explorer/emulator.pem")
      ->group("Connection");
  command
      .add_flag("--insecure", options.insecure,
                "Accept any certificate: only for a server on this machine")
      ->group("Connection");
}

Result<std::unique_ptr<Connection>> Connection::open(const ConnectionOptions& options) {
  auto account =
      options.connection_string.empty()
          ? client::Account::make(options.endpoint,
                                  options.key.empty() ? std::string(kWellKnownKey) : options.key)
          : client::Account::parse(options.connection_string);
  if (!account) return Error(account.error());
  client::TransportOptions transport;
  transport.endpoint = account->endpoint();
  transport.certificate_file = options.certificate_file;
  transport.verify_certificate = !options.insecure;
  return std::unique_ptr<Connection>(new Connection(std::move(*account), std::move(transport)));
}

Result<client::Reply> Connection::send(client::Request request, std::string_view type,
                                       std::string_view link) {
  account_.sign(request, type, link, clock_);
  ORRERY_TRY(auto reply, transport_.send(request));
  if (reply.status >= 400) return error_of(reply);
  return reply;
}

Result<client::Reply> Connection::stream(client::Request request, std::string_view type,
                                         std::string_view link, std::chrono::seconds silence_max,
                                         const client::Transport::Take& take) {
  account_.sign(request, type, link, clock_);
  ORRERY_TRY(auto reply, transport_.stream(request, silence_max, take));
  if (reply.status >= 400) return error_of(reply);
  return reply;
}

client::CosmosClient open_client(const ConnectionOptions& options) {
  client::ClientOptions client_options;
  client_options.certificate_file = options.certificate_file;
  client_options.verify_certificate = !options.insecure;
  client_options.log = client::diagnostics_log();
  if (!options.connection_string.empty()) {
    return client::CosmosClient::from_connection_string(options.connection_string,
                                                        std::move(client_options));
  }
  return client::CosmosClient(options.endpoint,
                              options.key.empty() ? std::string(kWellKnownKey) : options.key,
                              std::move(client_options));
}

client::Container open_container(const client::CosmosClient& client, std::string_view name) {
  if (const auto link = client::container_link(name); !link) {
    throw client::failure_of(client::Failure::Argument, link.error().message());
  }
  const std::size_t slash = name.find('/');
  return client.database(std::string(name.substr(0, slash)))
      .container(std::string(name.substr(slash + 1)));
}

int complain(const Error& error) {
  fmt::print(stderr, "orrery: {}\n", error.message());
  return kFailure;
}

int complain_of_usage(const Error& error) {
  complain(error);
  return kWrongUsage;
}

int complain(const client::CosmosException& exception) {
  // The library's advice names its own options.
  const std::string_view words = exception.what();
  const bool is_about_certificates = words.find("certificate_file") != std::string_view::npos;
  fmt::print(stderr, "orrery: {}{}\n", words,
             is_about_certificates
                 ? " (on the command line these are --ca and --insecure, and for the destination "
                   "of a copy --to-ca and --to-insecure)"
                 : "");
  return exception.failure() == client::Failure::Argument ? kWrongUsage : kFailure;
}

void refuse_usage(const std::string& words) {
  throw client::failure_of(client::Failure::Argument, words);
}

}  // namespace orrery::cli
