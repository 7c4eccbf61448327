// orrery leases: look at the leases of a group of processors, and move them.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/counted.h"
#include "base/stop_wait.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/leases/leases_place.h"
#include "cli/leases/leases_table.h"
#include "cli/stop_signals.h"
#include "cli/terminal/utc_time.h"
#include "processor/leases/lease.h"

namespace orrery::cli {
namespace {

using processor::LeaseGroup;
using processor::Severity;

constexpr std::chrono::milliseconds kWatchInterval{2000};
constexpr int kSomethingWrong = 1;
/// Of doctor: not even a look was possible.
constexpr int kNoDiagnosis = 3;

struct LeasesOptions {
  ConnectionOptions connection;
  LeasePlace place;
  std::string container;
  bool json = false;
  bool watch = false;
  std::string to;
  std::string lease;
  std::string host;
};

LeaseGroup open_group(const LeasesOptions& options) {
  const client::CosmosClient client = open_client(options.connection);
  const client::Container monitored = open_container(client, options.container);
  check_container(monitored, options.container, "");
  return LeaseGroup(monitored,
                    open_lease_store(options.place, options.connection, client.endpoint()),
                    options.place.group);
}

std::string name_of(const LeasesOptions& options) { return name_of_group(options.place.group); }

/// Where there are no leases, an operation would silently do nothing.
void require_leases(const LeaseGroup& group, const LeasesOptions& options) {
  if (!group.leases().empty()) return;
  client::CosmosException::Details details;
  details.status = 404;
  throw client::CosmosException(
      fmt::format("there are no leases of {} for {}: no host has ever run, or --group, --leases "
                  "or --state are not those of its hosts",
                  name_of(options), options.container),
      std::move(details));
}

// ── looking ──────────────────────────────────────────────────────────────────────────────────────

std::string status_text(const LeaseGroup& group, const LeasesOptions& options) {
  const GroupStatus status{options.place.group, group.paused(), group.leases(), group.lag()};
  if (options.json) return status_json(status);
  if (status.leases.empty()) {
    return fmt::format("there are no leases of {} for {} yet\n", name_of(options),
                       options.container);
  }
  return status_table(status, SystemClock().now());
}

int show_status(const LeasesOptions& options) {
  if (!options.watch) {
    const LeaseGroup group = open_group(options);
    std::fputs(status_text(group, options).c_str(), stdout);
    return 0;
  }
  if (::isatty(STDOUT_FILENO) != 1) {
    refuse_usage("--watch draws on a terminal; in a pipe, say --json and call it again");
  }
  const StopSignals signals;
  const LeaseGroup group = open_group(options);
  do {
    const std::string text = status_text(group, options);
    // Home, each line erased to its end before it is written over, and what is left below erased.
    std::string screen = "\x1b[H";
    for (const char letter : text) screen += letter == '\n' ? "\x1b[K\n" : std::string(1, letter);
    fmt::print("{}\x1b[J", screen);
    std::fflush(stdout);
  } while (wait_unless_stopped(signals.token(), kWatchInterval));
  return 0;
}

int diagnose(const LeasesOptions& options) {
  std::vector<LeaseGroup::Finding> findings;
  try {
    const LeaseGroup group = open_group(options);
    if (group.leases().empty()) {
      fmt::print("there are no leases of {} for {}\n", name_of(options), options.container);
      return kSomethingWrong;
    }
    findings = group.doctor();
  } catch (const client::CosmosException& exception) {
    return complain(exception) == kWrongUsage ? kWrongUsage : kNoDiagnosis;
  }
  int exit_code = 0;
  for (const LeaseGroup::Finding& finding : findings) {
    const bool wrong = finding.severity != Severity::Informational;
    if (wrong) exit_code = kSomethingWrong;
    fmt::print("{}: {}\n",
               finding.severity == Severity::Critical ? "critical"
               : wrong                                ? "error"
                                                      : "note",
               finding.message);
  }
  if (exit_code == 0) fmt::print("nothing is wrong with the leases of {}\n", name_of(options));
  return exit_code;
}

// ── moving ───────────────────────────────────────────────────────────────────────────────────────

int set_paused(const LeasesOptions& options, bool paused) {
  LeaseGroup group = open_group(options);
  require_leases(group, options);
  paused ? group.pause() : group.resume();
  fmt::print("{} is {}; its hosts notice it with their next renewal\n", name_of(options),
             paused ? "paused" : "resumed");
  return 0;
}

LeaseGroup::Position parse_position(const std::string& text) {
  using Kind = LeaseGroup::Position::Kind;
  LeaseGroup::Position position;
  if (text == "beginning") return position;
  if (text == "now") {
    position.kind = Kind::Now;
    return position;
  }
  if (const auto time = parse_utc_time(text)) {
    position.kind = Kind::Time;
    position.time = std::chrono::system_clock::from_time_t(*time);
    return position;
  }
  const std::string_view etag = processor::plain_position(text);
  if (etag.empty() || etag.find_first_not_of("0123456789") != std::string_view::npos) {
    refuse_usage(
        fmt::format("'{}' is no position: say beginning, now, a time in UTC such as "
                    "2026-11-15T22:00:00Z, or a position as 'orrery leases status' shows it",
                    text));
  }
  position.kind = Kind::Etag;
  position.etag = fmt::format("\"{}\"", etag);
  return position;
}

/// Says also what to do when hosts are in the way.
int moving(const LeasesOptions& options, const std::function<void()>& move) {
  try {
    move();
    return 0;
  } catch (const client::CosmosException& exception) {
    if (!exception.is_conflict()) throw;
    fmt::print(stderr,
               "orrery: {}: 'orrery leases pause {} …', or if the host is gone, 'orrery leases "
               "release {} --host NAME …'\n",
               exception.what(), options.container, options.container);
    return 1;
  }
}

int reset(const LeasesOptions& options) {
  const LeaseGroup::Position position = parse_position(options.to);
  LeaseGroup group = open_group(options);
  require_leases(group, options);
  return moving(options, [&] {
    group.reset(position, options.lease);
    fmt::print("{} of {} begins again at {}\n",
               options.lease.empty() ? "every lease" : fmt::format("the lease {}", options.lease),
               name_of(options), options.to);
  });
}

int snapshot(const LeasesOptions& options) {
  const LeaseGroup group = open_group(options);
  require_leases(group, options);
  fmt::print("{}\n", group.snapshot());
  return 0;
}

int restore(const LeasesOptions& options) {
  if (::isatty(STDIN_FILENO) == 1) {
    refuse_usage("restore reads the snapshot from its standard input: … < FILE");
  }
  const std::string text{std::istreambuf_iterator<char>(std::cin),
                         std::istreambuf_iterator<char>()};
  LeaseGroup group = open_group(options);
  require_leases(group, options);
  return moving(options, [&] {
    group.restore(text);
    fmt::print("{} goes on where the snapshot was taken\n", name_of(options));
  });
}

int release(const LeasesOptions& options) {
  LeaseGroup group = open_group(options);
  require_leases(group, options);
  const std::size_t count = group.release(options.host);
  fmt::print("{} of the host '{}' {} free now\n", counted(count, "lease"), options.host,
             count == 1 ? "is" : "are");
  return 0;
}

}  // namespace

void add_leases(CLI::App& app, int& exit_code) {
  auto* leases = app.add_subcommand(
      "leases", "Look at the leases of a group of change feed processors, and move them");
  leases->require_subcommand(1);
  auto options = std::make_shared<LeasesOptions>();
  const auto add = [&](const char* name, const char* what, int (*run)(const LeasesOptions&)) {
    auto* command = leases->add_subcommand(name, what);
    command
        ->add_option("container", options->container,
                     "DATABASE/CONTAINER: the one whose changes are processed")
        ->required();
    add_lease_place_options(*command, options->place);
    add_connection_options(*command, options->connection);
    command->callback([options, run, &exit_code] {
      try {
        exit_code = run(*options);
      } catch (const client::CosmosException& exception) {
        exit_code = complain(exception);
      }
    });
    return command;
  };

  auto* status_command =
      add("status", "Who has which lease, how far it is, and what is left to do", show_status);
  status_command->add_flag("--json", options->json, "For programs");
  status_command->add_flag("--watch", options->watch, "Again and again, on a terminal")
      ->excludes("--json");
  add("pause", "Let no host begin another batch, until resume",
      [](const LeasesOptions& each) { return set_paused(each, true); });
  add("resume", "Go on after a pause",
      [](const LeasesOptions& each) { return set_paused(each, false); });
  auto* reset_command =
      add("reset", "Begin again elsewhere; the group must be paused, or without hosts", reset);
  reset_command
      ->add_option("--to", options->to,
                   "beginning, now, a time in UTC (2026-11-15T22:00:00Z), or a position as in "
                   "status")
      ->required();
  reset_command->add_option("--lease", options->lease, "Only this one (default: all)");
  add("snapshot", "Print all positions as JSON, to be kept in a file", snapshot);
  add("restore", "Set all positions to those of a snapshot on standard input", restore);
  add("release", "Take all leases from a host that is known to be gone", release)
      ->add_option("--host", options->host, "Its name, as in status")
      ->required();
  add("doctor",
      "Tell what is wrong with the leases; exit status 0: nothing, 1: something, 3: unknown",
      diagnose);
}

}  // namespace orrery::cli
