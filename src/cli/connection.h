// Which server a command talks to: the options that all client commands share.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "client/handles/account.h"
#include "client/transport/transport.h"
#include "orrery/client.h"

namespace CLI {
class App;
}

namespace orrery::cli {

struct ConnectionOptions {
  std::string endpoint = "http://127.0.0.1:8081/";
  std::string key;  ///< empty: the well-known one
  std::string connection_string;
  std::string certificate_file;
  bool insecure = false;
};

/// Adds --endpoint, --account-key, --connection, --ca and --insecure.
void add_connection_options(CLI::App& command, ConnectionOptions& options);

/// A server as a command sees it: signed requests, one after the other.
class Connection {
 public:
  /// BadRequest when the options make no sense; nothing is sent yet.
  static Result<std::unique_ptr<Connection>> open(const ConnectionOptions& options);

  /// Signed for `type` and `link`. An error also for every status from 400 on, with the server's
  /// own words.
  Result<client::Reply> send(client::Request request, std::string_view type, std::string_view link);
  /// As Transport::stream, signed.
  Result<client::Reply> stream(client::Request request, std::string_view type,
                               std::string_view link, std::chrono::seconds silence_max,
                               const client::Transport::Take& take);

 private:
  Connection(client::Account account, client::TransportOptions options)
      : account_(std::move(account)), transport_(std::move(options)) {}

  SystemClock clock_;
  client::Account account_;
  client::Transport transport_;
};

/// The same server by the SDK, for commands that need no more than that. Throws CosmosException
/// when the options make no sense; nothing is sent yet.
client::CosmosClient open_client(const ConnectionOptions& options);
/// The container that "DATABASE/CONTAINER" names; throws CosmosException when it names none.
client::Container open_container(const client::CosmosClient& client, std::string_view name);

/// Throws what complain() takes for options that make no sense.
[[noreturn]] void refuse_usage(const std::string& words);

/// Prints "orrery: …" and returns the exit status of a failure.
int complain(const Error& error);
/// The same for options that make no sense.
int complain_of_usage(const Error& error);
/// The status says which of the two it was.
int complain(const client::CosmosException& exception);

}  // namespace orrery::cli
