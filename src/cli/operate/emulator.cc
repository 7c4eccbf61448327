// orrery emulator: a server that takes the options and variables of the vendor's emulator in its
// container, so that a project changes the name of an image and nothing else.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/operate/run_server.h"
#include "server/config.h"

namespace orrery::cli {
namespace {

/// Where the vendor's emulator keeps its data.
constexpr const char* kDataPath = "/data";

struct EmulatorOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8081;
  std::uint16_t explorer_port = 1234;
  std::uint16_t health_port = 8080;
  bool has_explorer = true;
  std::string protocol = "http";
  std::string gateway_endpoint;
  std::string key_file;
  std::string data_path;
  std::string certificate;
  std::string certificate_secret;
  std::string log_level = "info";
  // Of the vendor's emulator of Windows, and of the Linux image before this one.
  std::optional<bool> keeps_data;
  std::string address_override;
  std::string ignored;
};

diagnostics::Level level_of(const std::string& word) {
  if (word == "quiet") return diagnostics::Level::Off;
  if (word == "error") return diagnostics::Level::Error;
  if (word == "warn") return diagnostics::Level::Warning;
  if (word == "debug" || word == "trace") return diagnostics::Level::Debug;
  return diagnostics::Level::Info;
}

/// Modules of Testcontainers wait for these in the log: that for Node for the first, those for Java
/// and Python for the second, the former with this end of the line.
std::string words_of_readiness(const EmulatorOptions& options) {
  return fmt::format("Now listening on: http://{}:{}\nStarted\r\n", options.address, options.port);
}

/// Data that was asked for is kept; so is what somebody has mounted where the vendor's emulator
/// keeps it. Else it goes with the container anyway.
void choose_data(const EmulatorOptions& options, server::Config& config) {
  if (options.keeps_data == false) {
    config.ephemeral = true;
  } else if (!options.data_path.empty()) {
    config.data_directory = options.data_path;
  } else if (options.keeps_data == true || ::access(kDataPath, W_OK) == 0) {
    config.data_directory = kDataPath;
  } else {
    config.ephemeral = true;
  }
  if (config.ephemeral) config.durability = server::Durability::Relaxed;
}

int run(const EmulatorOptions& options) {
  server::Config config;
  config.listen_address = options.address;
  config.listen_port = options.port;
  config.explorer_port = options.has_explorer ? options.explorer_port : 0;
  config.health_port = options.health_port;
  config.shows_account_to_all = true;
  // An emulator is expected to have the key that everybody knows.
  config.allow_well_known_key = true;
  config.key_file = options.key_file;
  config.tls_certificate = options.certificate;
  config.tls_password = options.certificate_secret;
  config.level = level_of(options.log_level);
  config.advertised_endpoint = options.gateway_endpoint;
  if (config.advertised_endpoint.empty() && !options.address_override.empty()) {
    config.advertised_endpoint =
        fmt::format("https://{}:{}/", options.address_override, options.port);
  }
  choose_data(options, config);
  return run_server(config, words_of_readiness(options));
}

}  // namespace

void add_emulator(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EmulatorOptions>();
  auto* emulator = app.add_subcommand(
      "emulator",
      "Run the server with the options and variables of the vendor's emulator, for containers.\n"
      "The account's key is the one that everybody knows, unless --key-file names another one");
  const auto add = [&](const char* name, auto& value, const char* variable, const char* help) {
    return emulator->add_option(name, value, help)->envname(variable)->capture_default_str();
  };
  add("--listen-address", options->address, "ORRERY_EMULATOR_ADDRESS",
      "Address to listen on. 0.0.0.0 is every network: the image says so");
  add("--port", options->port, "PORT", "Port of the API, http and https");
  choose(add("--protocol", options->protocol, "PROTOCOL",
             "Taken and not needed: the port speaks both"),
         {"http", "https", "https-insecure"});
  add("--enable-explorer", options->has_explorer, "ENABLE_EXPLORER",
      "Whether the explorer has a port of its own, too");
  add("--explorer-port", options->explorer_port, "EXPLORER_PORT", "That port");
  add("--health-port", options->health_port, "HEALTH_PORT",
      "Port of /alive, /ready and /status; 0: none");
  add("--gateway-endpoint", options->gateway_endpoint, "GATEWAY_PUBLIC_ENDPOINT",
      "The address that clients are told to use (default: whatever they used)");
  add("--key-file", options->key_file, "KEY_FILE", "File with account keys, one a line");
  add("--data-path", options->data_path, "DATA_PATH",
      "Directory for data (default: /data if it can be written, else none is kept)");
  add("--cert-path", options->certificate, "CERT_PATH",
      "Certificate with its key, PKCS#12 (.pfx); its password comes from CERT_SECRET");
  emulator->add_option("--cert-secret", options->certificate_secret)
      ->envname("CERT_SECRET")
      ->group("");
  choose(add("--log-level", options->log_level, "LOG_LEVEL", "What to say"),
         {"quiet", "error", "warn", "info", "debug", "trace"});
  emulator->add_option("--enable-data-persistence", options->keeps_data, "Whether data is kept")
      ->envname("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE");
  add("--ip-address-override", options->address_override,
      "AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", "As --gateway-endpoint, the address alone");
  for (const char* name : {"--enable-telemetry", "--enable-otlp", "--enable-console"}) {
    emulator->add_option(name, options->ignored)->group("");
  }
  emulator->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace orrery::cli
