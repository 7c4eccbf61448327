// orrery serve: runs the server until it is told to stop.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/diagnostics.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/operate/run_server.h"
#include "protocol/auth/well_known_key.h"
#include "server/config.h"

namespace orrery::cli {
namespace {

/// The options as parsed, before they become a Config.
struct ServeOptions {
  server::Config config;
  std::string listen = "127.0.0.1:8081";
  bool keys_are_arguments = false;  ///< from the command line, where everybody can see them
  std::size_t cache_mb = 64;
  std::size_t vector_index_mb = 512;
  std::size_t request_memory_mb = 0;
  std::uint64_t partition_size_mb = 50 << 10;
  std::uint64_t history_size_mb = 1 << 10;
  std::uint64_t backup_rate_mb = 48;
  std::int64_t request_timeout_ms = 30'000;
  std::int64_t page_timeout_ms = 1000;
  std::int64_t feed_heartbeat_seconds = 15;
};

/// A config file is TOML, or JSON if it begins with a brace.
std::vector<CLI::ConfigItem> read_config(std::istream& input) {
  input >> std::ws;
  if (input.peek() != '{') return CLI::ConfigTOML().from_config(input);
  const auto json = nlohmann::json::parse(input, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw CLI::FileError("it is not valid JSON");
  std::vector<CLI::ConfigItem> items;
  for (const auto& [name, value] : json.items()) {
    const auto text = [](const nlohmann::json& each) {
      return each.is_string() ? each.get<std::string>() : each.dump();
    };
    CLI::ConfigItem item;
    item.name = name;
    if (value.is_array()) {
      for (const auto& each : value) item.inputs.push_back(text(each));
    } else {
      item.inputs.push_back(text(value));
    }
    items.push_back(std::move(item));
  }
  return items;
}

/// Sets what neither the command line nor the environment has set. Throws CLI::Error, naming the
/// option. By hand, since CLI11 reads config files for the program as a whole only, and lets them
/// win over the environment.
void apply_config(CLI::App& serve, const std::string& path) {
  std::ifstream input(path);
  if (!input) throw CLI::FileError("cannot read the config file " + path);
  for (const CLI::ConfigItem& item : read_config(input)) {
    const bool ours =
        item.parents.empty() || (item.parents.size() == 1 && item.parents.front() == "serve");
    // CLI11 marks the begin and end of a section with such items.
    if (item.name == "++" || item.name == "--") continue;
    auto* option = ours ? serve.get_option_no_throw("--" + item.name) : nullptr;
    if (option == nullptr || item.name == "config" || item.name == "help") {
      throw CLI::FileError(fmt::format("{}: there is no option '{}'", path, item.fullname()));
    }
    if (option->count() > 0) continue;
    if (option->get_expected_min() == 0) {
      option->add_result(option->get_flag_value(item.name, CLI::ConfigTOML().to_flag(item)));
    } else {
      option->add_result(item.inputs);
    }
    option->run_callback();
  }
}

/// "ADDR:PORT", "[v6]:PORT", "PORT" or "ADDR".
bool parse_listen(const std::string& text, server::Config& config) {
  std::string address = text;
  std::string port;
  const auto colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  if (bracketed) {
    const auto end = text.find(']');
    if (end == std::string::npos) return false;
    address = text.substr(1, end - 1);
    if (end + 1 < text.size()) {
      if (text[end + 1] != ':') return false;
      port = text.substr(end + 2);
    }
  } else if (colon != std::string::npos && text.find(':') == colon) {
    address = text.substr(0, colon);
    port = text.substr(colon + 1);
  } else if (text.find_first_not_of("0123456789") == std::string::npos) {
    address = config.listen_address;
    port = text;
  }
  if (address.empty()) address = "0.0.0.0";
  config.listen_address = address;
  if (port.empty()) return true;
  if (port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos) return false;
  const unsigned long number = std::stoul(port);
  if (number > 65535) return false;
  config.listen_port = static_cast<std::uint16_t>(number);
  return true;
}

void warn_of_visible_keys(const ServeOptions& options) {
  if (options.keys_are_arguments &&
      std::ranges::any_of(options.config.keys,
                          [](const std::string& key) { return key != kWellKnownKey; })) {
    diagnostics::warning(
        "--key can be seen by everybody on this machine in the list of processes; --key-file "
        "cannot");
  }
}

int run(ServeOptions& options) {
  server::Config& config = options.config;
  if (!parse_listen(options.listen, config)) {
    return complain_of_usage(bad_request(
        fmt::format("--listen takes ADDRESS:PORT, as in 127.0.0.1:8081 or [::1]:8081, not '{}'",
                    options.listen)));
  }
  if (config.tls_certificate.empty() != config.tls_key.empty()) {
    return complain_of_usage(
        bad_request("--tls-cert and --tls-key go together: give both or neither"));
  }
  diagnostics::set_level(config.level);
  warn_of_visible_keys(options);
  config.cache_bytes = options.cache_mb << 20;
  config.vector_index_bytes_max = options.vector_index_mb << 20;
  config.backup_bytes_per_second = options.backup_rate_mb << 20;
  config.request_memory_bytes = options.request_memory_mb << 20;
  config.partition_bytes_max = options.partition_size_mb << 20;
  config.history_bytes_max = options.history_size_mb << 20;
  config.request_time_max = std::chrono::milliseconds(options.request_timeout_ms);
  config.page_time_max = std::chrono::milliseconds(options.page_timeout_ms);
  config.feed_heartbeat = std::chrono::seconds(options.feed_heartbeat_seconds);

  return run_server(config);
}

template <typename T>
using Choices = std::vector<std::pair<std::string, T>>;

const Choices<server::Durability> kDurabilities = {{"strict", server::Durability::Strict},
                                                   {"relaxed", server::Durability::Relaxed}};
const Choices<diagnostics::Level> kLevels = {{"debug", diagnostics::Level::Debug},
                                             {"info", diagnostics::Level::Info},
                                             {"warning", diagnostics::Level::Warning},
                                             {"error", diagnostics::Level::Error},
                                             {"off", diagnostics::Level::Off}};
const Choices<bool> kCrossPartitionQueries = {{"serve", false}, {"plan", true}};

/// An option that takes one of these words; `value` has its default already.
template <typename T>
CLI::Option* add_choice(CLI::App& command, const std::string& name, T& value,
                        const Choices<T>& choices, const std::string& description) {
  const auto assign = [&value, &choices](const std::string& word) {
    value = std::ranges::find(choices, word, &Choices<T>::value_type::first)->second;
  };
  std::vector<std::string> words;
  for (const auto& [word, each] : choices) words.push_back(word);
  return choose(command.add_option_function<std::string>(name, assign, description), words)
      ->default_str(std::ranges::find(choices, value, &Choices<T>::value_type::second)->first);
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ServeOptions>();
  auto& config = options->config;
  auto* serve = app.add_subcommand("serve", "Run the server until Ctrl-C or SIGTERM");
  serve->footer(
      "Every option can also come from the environment (ORRERY_DATA_DIR for --data-dir, and so "
      "on)\n"
      "or from a config file, TOML or JSON, with the same names without the dashes in front.\n"
      "The command line wins over the environment, the environment over the file.");

  serve->add_option("--data-dir", config.data_directory, "Where the data is kept")
      ->capture_default_str();
  serve->add_flag("--ephemeral", config.ephemeral,
                  "Keep all data in a temporary directory and remove it at exit");
  serve->add_flag(
      "--new-life", config.new_life,
      "The data was rolled back to an earlier state, as by a snapshot of the disk or the "
      "machine: give positions above all earlier ones. For one start only");
  serve->add_flag("--accept-loss", config.accepts_loss,
                  "Go on without acknowledged writes that a damaged store no longer has, and say "
                  "which. For one start only; restore a back-up instead if there is one");
  serve->add_option("--listen", options->listen, "Address and port; port 0 takes any free one")
      ->capture_default_str();
  serve->add_option(
      "--advertise", config.advertised_endpoint,
      "URL under which clients reach the server, when it is not the one they use first");
  auto* key =
      serve
          ->add_option("--key", config.keys,
                       "Account key in base64; repeat it, or separate by commas, for a secondary "
                       "key; default: the well-known key. --key-file keeps it out of the list of "
                       "processes")
          ->delimiter(',');
  serve
      ->add_option("--read-only-key", config.read_only_keys,
                   "Account key in base64 that may only read (may be repeated)")
      ->delimiter(',');
  serve->add_option("--key-file", config.key_file,
                    "File with account keys, one a line, as 'orrery keygen --file' makes it; read "
                    "again on SIGHUP");
  serve->add_flag("--allow-well-known-key", config.allow_well_known_key,
                  "Listen beyond this machine even with the key that everybody knows");
  serve
      ->add_flag("--check-dates,!--no-check-dates", config.check_dates,
                 "Refuse signatures whose date is too far from the server's clock")
      ->default_val(true);
  serve->add_option("--backup-dir", config.backup_directory,
                    "Directory for back-ups, which 'orrery backup create' asks for");
  serve
      ->add_option("--backup-rate-mb", options->backup_rate_mb,
                   "What a back-up may write in a second, in MiB; 0: as fast as it goes")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 30))
      ->capture_default_str();
  serve->add_option("--tls-cert", config.tls_certificate,
                    "Certificate chain in PEM; default: a self-signed one is made and kept");
  serve->add_option("--tls-key", config.tls_key, "Its private key in PEM");
  serve->add_flag("--legacy-tls", config.legacy_tls,
                  "Also admit TLS 1.0, for the SDKs of 2017; not safe on a network");
  add_choice(*serve, "--durability", config.durability, kDurabilities,
             "strict: on the disk before it is acknowledged; relaxed: faster, and the last moments "
             "may be lost in a power failure");
  serve->add_option("--threads", config.threads, "Event loops; 0: one for each core")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  serve->add_option("--cache-mb", options->cache_mb, "Memory for caching what is read, in MiB")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  serve
      ->add_option("--vector-index-mb", options->vector_index_mb,
                   "Memory for vector indexes, in MiB; 0: there are none")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  serve
      ->add_option("--connections-max", config.connections_max,
                   "More connections than this are refused")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  serve
      ->add_option("--request-memory-mb", options->request_memory_mb,
                   "Memory for all requests and answers under way, in MiB; 0: an eighth of the "
                   "machine's, 64 to 1024")
      ->check([](const std::string& text) {
        return text == "0" ? std::string() : CLI::Range(8, 1 << 20)(text);
      })
      ->type_name("0|8..1048576")
      ->capture_default_str();
  serve
      ->add_option("--request-timeout-ms", options->request_timeout_ms,
                   "A request must have arrived completely within this time")
      ->check(CLI::Range(10, 3'600'000))
      ->capture_default_str();
  serve
      ->add_option("--partition-size-mb", options->partition_size_mb,
                   "A range whose documents are larger than this, in MiB, is split in two")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30))
      ->capture_default_str();
  serve
      ->add_option("--history-size-mb", options->history_size_mb,
                   "Of a range, older versions and deletes beyond this, in MiB, are let go before "
                   "their time")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30))
      ->capture_default_str();
  serve
      ->add_option("--page-timeout-ms", options->page_timeout_ms,
                   "A page of a query or feed ends after this time, and one document may take as "
                   "much processor time")
      ->check(CLI::Range(10, 60'000))
      ->capture_default_str();
  serve
      ->add_option("--shared-throughput-containers-max", config.shared_throughput_containers_max,
                   "Containers that may share the throughput of their database (the service "
                   "admits 25); 0: any number")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  serve
      ->add_option("--feed-readers-max", config.feed_readers_max,
                   "More readers than this can't wait for changes or have them streamed")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  serve
      ->add_option("--feed-heartbeat-seconds", options->feed_heartbeat_seconds,
                   "A stream of changes that is silent gives a sign of life after this time")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  add_choice(*serve, "--cross-partition-queries", config.refuses_cross_partition,
             kCrossPartitionQueries,
             "plan: of queries over several ranges serve plain filters, and refuse others with "
             "their plan, as the service does, so that clients merge by themselves; serve: answer "
             "all of them, for clients that can't merge");
  add_choice(*serve, "--log-level", config.level, kLevels,
             "How much is told on standard error about what goes on");
  for (CLI::Option* option : serve->get_options()) {
    if (option->get_lnames().empty() || option->get_lnames().front() == "help") continue;
    std::string name = "ORRERY_" + option->get_lnames().front();
    for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    option->envname(name);
  }
  auto config_path = std::make_shared<std::string>();
  serve->add_option("--config", *config_path, "Read options from this file, TOML or JSON")
      ->envname("ORRERY_CONFIG");
  serve->callback([serve, options, config_path, key, &exit_code] {
    options->keys_are_arguments = key->count() > 0 && std::getenv("ORRERY_KEY") == nullptr;
    if (!config_path->empty()) apply_config(*serve, *config_path);
    exit_code = run(*options);
  });
}

}  // namespace orrery::cli
