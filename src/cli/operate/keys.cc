// orrery keys: which account keys a server has in force, and other ones without a restart.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/operate/administration.h"
#include "cli/terminal/utc_time.h"
#include "protocol/auth/account_key.h"
#include "server/key_file.h"

namespace orrery::cli {
namespace {

struct KeysOptions {
  ConnectionOptions connection;
  std::string key_file;
  std::string slot;
  bool tells_no_server = false;
};

/// Asks for the keys in force, or first for reading them again.
Result<nlohmann::json> ask(const ConnectionOptions& options, bool reload) {
  ORRERY_TRY(const auto connection, Connection::open(options));
  ORRERY_TRY(auto answer, reload ? ask_server(*connection, "POST", "_orrery/keys/reload")
                                 : ask_server(*connection, "GET", "_orrery/keys"));
  if (!answer["keys"].is_array()) {
    return Error(ErrorCode::Unavailable, "the server's answer is not a list of keys");
  }
  return answer;
}

void print(const nlohmann::json& answer) {
  for (const auto& key : answer["keys"]) {
    const auto last_used = key.find("lastUsed");
    const bool is_used = last_used != key.end() && last_used->is_number_integer();
    fmt::print("{:<20} {:<11} {}\n", key.value("slot", "?"), key.value("access", "?"),
               is_used ? "last used " + format_utc_time(last_used->get<UnixSeconds>())
                       : "not used since the start");
  }
}

int list(const KeysOptions& options, bool reload) {
  const auto answer = ask(options.connection, reload);
  if (!answer) return complain(answer.error());
  print(*answer);
  return 0;
}

/// Signs with a key of the file where none is given: the server has it, if the file is its own.
Result<ConnectionOptions> connection_with_key(const KeysOptions& options) {
  ConnectionOptions connection = options.connection;
  if (!connection.key.empty() || !connection.connection_string.empty()) return connection;
  ORRERY_TRY(const auto keys, server::read_key_file(options.key_file));
  for (const server::NamedKey& key : keys) {
    if (server::is_read_only_slot(key.slot)) continue;
    connection.key = key.text;
    break;
  }
  return connection;
}

int rotate(const KeysOptions& options) {
  const auto connection = connection_with_key(options);
  if (!connection) return complain(connection.error());
  const auto key = make_account_key();
  if (!key) return complain(key.error());
  if (const auto set = server::set_key(options.key_file, options.slot, *key); !set) {
    return complain(set.error());
  }
  fmt::print("{}\n", *key);
  std::fflush(stdout);
  if (options.tells_no_server) return 0;
  const auto answer = ask(*connection, /*reload=*/true);
  if (answer) return 0;
  fmt::print(stderr,
             "orrery: {} has the new {} key, but the server could not be told: {}. Send it SIGHUP, "
             "or run 'orrery keys reload' with a key that it has\n",
             options.key_file, options.slot, answer.error().message());
  return kFailure;
}

}  // namespace

void add_keys(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<KeysOptions>();
  auto* keys = app.add_subcommand("keys", "Show and exchange the account keys of a running server");
  keys->require_subcommand(1);

  auto* list_keys =
      keys->add_subcommand("list", "Show which keys are in force, and when each was used last");
  add_connection_options(*list_keys, options->connection);
  list_keys->callback([options, &exit_code] { exit_code = list(*options, /*reload=*/false); });

  auto* reload = keys->add_subcommand(
      "reload", "Have the server read its key file and certificate again, as SIGHUP does");
  add_connection_options(*reload, options->connection);
  reload->callback([options, &exit_code] { exit_code = list(*options, /*reload=*/true); });

  auto* rotation = keys->add_subcommand(
      "rotate",
      "Put a new key into a slot of the server's key file, print it, and have the server take it.\n"
      "The one before it opens nothing from then on: rotate the key that nobody uses");
  std::vector<std::string> slots(server::kKeySlots.begin(), server::kKeySlots.end());
  choose(rotation->add_option("slot", options->slot, "Which one")->required(), slots);
  rotation->add_option("--key-file", options->key_file, "The file that the server reads")
      ->required()
      ->envname("ORRERY_KEY_FILE");
  rotation->add_flag("--no-reload", options->tells_no_server,
                     "Only change the file: the server takes it when it starts, or by SIGHUP");
  add_connection_options(*rotation, options->connection);
  rotation->callback([options, &exit_code] { exit_code = rotate(*options); });
}

}  // namespace orrery::cli
