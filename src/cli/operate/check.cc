// orrery check: whether a store is sound, in a running server or in a data directory.
#include <cstdint>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/operate/administration.h"
#include "server/check_directory.h"

namespace orrery::cli {
namespace {

/// Of this command: something is wrong with the store.
constexpr int kUnsound = 3;

struct CheckCommandOptions {
  ConnectionOptions connection;
  std::string data_directory;
};

int print(const server::CheckReport& report) {
  for (const server::Finding& finding : report.findings) {
    fmt::print("{}: {}\n", finding.where, finding.what);
  }
  if (report.finding_count > report.findings.size()) {
    fmt::print("… and {} more\n", report.finding_count - report.findings.size());
  }
  const std::string seen = fmt::format("{}, {}", counted(report.documents, "document"),
                                       counted(report.partitions, "range"));
  if (report.finding_count == 0) {
    fmt::print("sound: {}\n", seen);
    return 0;
  }
  fmt::print("not sound: {} in {}. Restore the newest back-up that is whole\n",
             counted(report.finding_count, "finding"), seen);
  return kUnsound;
}

int check_offline(const CheckCommandOptions& options) {
  const auto report = server::check_directory(options.data_directory);
  if (!report) return complain(report.error());
  return print(*report);
}

int check_online(const CheckCommandOptions& options) {
  const auto connection = Connection::open(options.connection);
  if (!connection) return complain_of_usage(connection.error());
  const auto answer = run_job(**connection, "_orrery/check");
  if (!answer) return complain(answer.error());
  const auto& shown = (*answer)["report"];
  server::CheckReport report;
  report.documents = shown.value("documents", std::uint64_t{0});
  report.partitions = shown.value("partitions", std::uint64_t{0});
  report.finding_count = shown.value("findingCount", std::uint64_t{0});
  for (const auto& finding : shown.value("findings", nlohmann::json::array())) {
    report.findings.push_back({finding.value("where", "?"), finding.value("what", "?")});
  }
  return print(report);
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CheckCommandOptions>();
  auto* check = app.add_subcommand(
      "check",
      "Read everything in a store and tell what does not agree: in a running server, which goes "
      "on\n"
      "meanwhile, or in a data directory. Exit status 3: something is wrong with it");
  check->add_option("--data-dir", options->data_directory,
                    "A data directory that no server has open (default: ask the running server)");
  add_connection_options(*check, options->connection);
  check->callback([options, &exit_code] {
    exit_code = options->data_directory.empty() ? check_online(*options) : check_offline(*options);
  });
}

}  // namespace orrery::cli
