// orrery copy: one container into another, each change exactly once.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/diagnostics.h"
#include "base/stop_wait.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/leases/leases_place.h"
#include "cli/process_options.h"
#include "cli/stop_signals.h"
#include "cli/terminal/progress_line.h"
#include "sinks/container/copy_names.h"
#include "sinks/container/job.h"
#include "sinks/container/retry.h"
#include "sinks/container/state_directory.h"
#include "sinks/container/verify.h"

namespace orrery::cli {
namespace {

namespace fs = std::filesystem;
using sinks::CopyFailure;
using sinks::CopyJob;

constexpr int kInterrupted = 130;  // As shells say it.
constexpr std::chrono::milliseconds kTick{50};
/// How often the leases are read while none of them became idle.
constexpr std::chrono::milliseconds kRefreshInterval{1'000};
constexpr std::chrono::milliseconds kRefreshIntervalMin{100};

struct CopyArguments {
  ConnectionOptions from;
  ConnectionOptions to;
  std::string source;
  std::string destination;
  std::string leases;
  std::string state;
  std::string group;
  std::string host;
  std::vector<std::string> partition_key;
  std::int64_t throughput = 0;
  std::uint32_t page_size = 1000;
  std::size_t concurrency = 16;
  bool create = false;
  bool follow = false;
  bool final = false;
  bool verify = false;
};

int fail(std::string_view message) {
  fmt::print(stderr, "orrery: {}\n", message);
  return 1;
}

/// The failure, and which option helps.
std::string words_for(const CopyFailure& failure) {
  switch (failure.remedy()) {
    case CopyFailure::Remedy::None:
      break;
    case CopyFailure::Remedy::OtherGroup:
      return fmt::format("{}. Take another --group", failure.what());
    case CopyFailure::Remedy::SharedLeases:
      return fmt::format("{}. Several share the work with --leases", failure.what());
  }
  return failure.what();
}

/// A message for a container that is not there, else the server's own.
std::string words_for(const client::CosmosException& failure, const std::string& name,
                      std::string_view hint) {
  if (!failure.is_not_found()) return fmt::format("{}: {}", name, failure.what());
  return fmt::format("there is no container {}{}", name, hint);
}

// ── containers ───────────────────────────────────────────────────────────────────────────────────

struct Sides {
  client::CosmosClient from;
  client::CosmosClient to;
  client::Container source;
  client::Container destination;
  client::ContainerProperties source_properties;
  client::ContainerProperties destination_properties;
  bool is_destination_new = false;  ///< It was not there before this command.
};

client::ContainerProperties read_container(const client::Container& container,
                                           const std::string& name, std::string_view hint) {
  try {
    return container.read().value;
  } catch (const client::CosmosException& failure) {
    throw CopyFailure(words_for(failure, name, hint));
  }
}

/// Whether it was not there.
bool create_container(const client::CosmosClient& client, const std::string& name,
                      client::ContainerProperties properties, std::int64_t throughput) {
  const std::size_t slash = name.find('/');
  const std::string database = name.substr(0, slash);
  properties.id = name.substr(slash + 1);
  client::CreateOptions options;
  if (throughput > 0) options.throughput = client::Throughput::fixed(throughput);
  client.create_database_if_not_exists(database);
  return client.database(database).create_container_if_not_exists(properties, options).status ==
         201;
}

Sides open_sides(const CopyArguments& options) {
  client::CosmosClient from = open_client(options.from);
  const bool elsewhere = !options.to.endpoint.empty() || !options.to.connection_string.empty();
  client::CosmosClient to = elsewhere ? open_client(options.to) : from;
  if (options.source == options.destination && from.endpoint() == to.endpoint()) {
    throw CopyFailure("a container can't be copied into itself");
  }
  Sides sides{
      from, to,   open_container(from, options.source), open_container(to, options.destination), {},
      {},   false};
  sides.source_properties = read_container(sides.source, options.source, "");
  if (options.create) {
    client::ContainerProperties like_source;
    like_source.partition_key_paths = options.partition_key.empty()
                                          ? sides.source_properties.partition_key_paths
                                          : options.partition_key;
    like_source.default_ttl = sides.source_properties.default_ttl;
    like_source.indexing_policy = sides.source_properties.indexing_policy;
    sides.is_destination_new =
        create_container(to, options.destination, std::move(like_source), options.throughput);
  }
  sides.destination_properties =
      read_container(sides.destination, options.destination, "; --create makes it");
  return sides;
}

sinks::CopyEnds ends_of(const CopyArguments& options, const Sides& sides) {
  return {sides.from.endpoint(), options.source,      sides.source_properties.rid,
          sides.to.endpoint(),   options.destination, sides.destination_properties.rid};
}

// ── leases ───────────────────────────────────────────────────────────────────────────────────────

/// Where the leases are, and under which name this process takes them.
struct LeaseHome {
  std::optional<sinks::StateDirectory> directory;  ///< without --leases
  std::shared_ptr<processor::LeaseStore> store;
  std::string prefix;
  std::string host;
};

LeaseHome open_state(const CopyArguments& options, const Sides& sides, const std::string& group,
                     const std::string& generation) {
  const fs::path path =
      options.state.empty() ? state_home() / "copy" / group : fs::path(options.state);
  // A server that began anew gives the same rids again: only this tells its container from the
  // one that the leases are about.
  using OldLeases = sinks::StateDirectory::OldLeases;
  LeaseHome home;
  home.directory.emplace(path, sides.is_destination_new ? OldLeases::Remove : OldLeases::Keep);
  home.store = home.directory->leases();
  home.prefix = generation + ".";
  home.host = "copy";
  return home;
}

LeaseHome open_leases(const CopyArguments& options, const Sides& sides, const std::string& group) {
  const std::string generation = sinks::destination_generation(ends_of(options, sides));
  if (options.leases.empty()) return open_state(options, sides, group, generation);
  if (options.leases == options.destination ||
      (options.leases == options.source && sides.from.endpoint() == sides.to.endpoint())) {
    throw CopyFailure("leases need a container of their own");
  }
  const client::Container leases = open_container(sides.to, options.leases);
  if (options.create) create_lease_container(sides.to, options.leases);
  read_container(leases, options.leases, " for the leases; --create makes it");
  LeaseHome home;
  home.store = processor::container_lease_store(leases);
  home.prefix = group + "." + generation + ".";
  home.host = options.host.empty() ? unique_host_name() : options.host;
  return home;
}

// ── running ──────────────────────────────────────────────────────────────────────────────────────

/// Prints messages, but not one that repeats the last, on lines of their own below the progress
/// line.
class Teller {
 public:
  void say(const std::string& message) {
    const std::scoped_lock lock(mutex_);
    if (message == last_) return;
    last_ = message;
    fmt::print(stderr, "\norrery: {}\n", message);
  }

 private:
  std::mutex mutex_;
  std::string last_;
};

struct Ending {
  bool caught_up = false;
  std::string failure;
};

/// Shows progress until the copy is caught up, interrupted, or can't go on.
Ending watch(CopyJob& job, const CopyArguments& options, const sinks::CopyTarget& target,
             const std::stop_token& stop, Teller& teller) {
  using Clock = ProgressLine::Clock;
  ProgressLine progress(stderr, fmt::format("{} to {}", options.source, options.destination));
  Clock::time_point last_refresh{};
  Ending ending;
  while (wait_unless_stopped(stop, kTick)) {
    if (const auto failure = job.failure()) {
      ending.failure = words_for(*failure);
      return ending;
    }
    const auto since = Clock::now() - last_refresh;
    if (since >= kRefreshInterval || (since >= kRefreshIntervalMin && job.became_idle())) {
      try {
        ending.caught_up = job.refresh() && !options.follow;
      } catch (const client::CosmosException& failure) {
        if (!sinks::is_transient(failure)) {
          ending.failure = words_for(failure, options.source, " any more");
          return ending;
        }
        teller.say(fmt::format("{}: {}; trying again", options.source, failure.what()));
      }
      last_refresh = Clock::now();
    }
    progress.show({target.written, job.documents_left(), ""});
    if (ending.caught_up) break;
  }
  return ending;
}

int check_and_finish(const CopyArguments& options, const Sides& sides,
                     const sinks::CopyTarget& target, const CopyJob& job,
                     const std::stop_token& stop) {
  if (options.verify) {
    const auto report = sinks::compare(sides.source, target, stop);
    for (const std::string& line : report.lines) fmt::print("{}\n", line);
    if (!report.same()) {
      return fail(fmt::format(
          "{} and {} differ: of {} documents {} are missing, {} different, {} merged into others, "
          "and {} are only in the destination",
          options.source, options.destination, report.compared, report.missing, report.different,
          report.merged, report.extra));
    }
    fmt::print(stderr, "orrery: {} and {} are the same: {} documents\n", options.source,
               options.destination, report.compared);
  }
  if (options.final) {
    if (!job.is_alone()) {
      return fail(
          "others still copy: the positions stay. Run it again with --final when they have "
          "ended");
    }
    const std::uint64_t removed = sinks::remove_positions(target, stop);
    fmt::print(stderr, "orrery: {} positions removed from {}\n", removed, options.destination);
  }
  return 0;
}

int run_copy(const CopyArguments& options, const std::stop_token& stop) {
  const auto begun = std::chrono::steady_clock::now();
  const Sides sides = open_sides(options);
  const std::string group =
      options.group.empty() ? sinks::default_group(ends_of(options, sides)) : options.group;
  const LeaseHome home = open_leases(options, sides, group);

  Teller teller;
  sinks::CopyTarget target(sides.destination, options.destination, group,
                           sides.source_properties.rid);
  target.report_waiting = [&](const std::string& why) {
    teller.say(fmt::format("{}: {}; trying again", options.destination, why));
  };
  sinks::CopyOptions job_options;
  job_options.host_name = home.host;
  job_options.lease_prefix = home.prefix;
  job_options.page_size = options.page_size;
  job_options.concurrency = options.concurrency;
  job_options.follow = options.follow;
  job_options.source_restored = [&] {
    teller.say(fmt::format(
        "{} was put back from a copy, or lost its last writes: what is new is copied, but "
        "documents "
        "that were copied before may differ, or be in {} only. Compare them with --verify",
        options.source, options.destination));
  };
  CopyJob job(sides.source, home.store, target, job_options);
  job.start();
  const Ending ending = watch(job, options, target, stop, teller);
  job.stop();

  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begun;
  const std::uint64_t skipped = target.skipped;
  fmt::print(stderr, "orrery: {} documents copied from {} to {}{} in {:.1f} s{}\n",
             target.written.load(), options.source, options.destination,
             skipped == 0 ? "" : fmt::format(" ({} were there already)", skipped), time.count(),
             ending.caught_up ? "; up to date" : "");
  if (!ending.failure.empty()) {
    return fail(ending.failure + "\norrery: run it again to go on from there");
  }
  if (!ending.caught_up) return options.follow ? 0 : kInterrupted;
  return check_and_finish(options, sides, target, job, stop);
}

int run(const CopyArguments& options) {
  diagnostics::set_level(diagnostics::Level::Off);
  const StopSignals signals;  // Before there are threads.
  try {
    return run_copy(options, signals.token());
  } catch (const client::CosmosException& failure) {
    if (failure.failure() == client::Failure::Cancelled) return kInterrupted;
    return complain(failure);
  } catch (const CopyFailure& failure) {
    return fail(words_for(failure));
  } catch (const std::exception& failure) {
    return fail(failure.what());
  }
}

/// The same as for the source, with --to- in front.
void add_destination_options(CLI::App& command, ConnectionOptions& options) {
  constexpr const char* kGroup = "Connection to the destination, where it is another server";
  options.endpoint.clear();
  command.add_option("--to-endpoint", options.endpoint, "Where the destination's server listens")
      ->group(kGroup);
  command
      .add_option("--to-account-key", options.key,
                  "Its account key (default: the emulator's well-known key)")
      ->envname("ORRERY_TO_ACCOUNT_KEY")
      ->group(kGroup);
  command
      .add_option("--to-connection", options.connection_string,
                  "Both at once: AccountEndpoint=…;AccountKey=…;")
      ->envname("ORRERY_TO_CONNECTION")
      ->group(kGroup);
  command.add_option("--to-ca", options.certificate_file, "Certificate (PEM) to trust for https")
      ->group(kGroup);
  command
      .add_flag("--to-insecure", options.insecure,
                "Accept any certificate: only for a server on this machine")
      ->group(kGroup);
}

/// It becomes a part of ids of documents and of a directory's name.
std::string check_group(const std::string& group) {
  constexpr std::size_t kGroupSizeMax = 64;
  const bool plain = std::ranges::all_of(
      group, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
  if (plain && !group.empty() && group.size() <= kGroupSizeMax) return {};
  return "up to 64 letters, digits, '-' and '_'";
}

}  // namespace

void add_copy(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CopyArguments>();
  auto* command = app.add_subcommand(
      "copy",
      "Copy a container into another, each change exactly once; goes on where it was ended");
  command->footer(
      "Ends when everything that was there at the start has been copied; --follow goes on until "
      "it\n"
      "is interrupted. Ended, interrupted or killed, the same command goes on from there.\n"
      "Deletes are not copied. Exit code 0: done; 1: not; 130: interrupted before it was.");
  command->add_option("source", options->source, "DATABASE/CONTAINER")->required();
  command->add_option("destination", options->destination, "DATABASE/CONTAINER")->required();
  auto* create = command->add_flag("--create", options->create,
                                   "Make the destination, and the container for the leases, if "
                                   "they are not there");
  command
      ->add_option("--partition-key", options->partition_key,
                   "Of a destination that is made: a path such as /region, several for a "
                   "hierarchical key (default: as the source)")
      ->delimiter(',')
      ->needs(create);
  command
      ->add_option("--throughput", options->throughput,
                   "Of a destination that is made, in request units per second")
      ->check(CLI::Range(400, 1'000'000))
      ->needs(create);
  auto* follow = command->add_flag("--follow", options->follow,
                                   "Go on with what is written to the source from now on");
  command
      ->add_flag("--verify", options->verify,
                 "At the end compare both containers; exit code 1 if they differ")
      ->excludes(follow);
  command
      ->add_flag("--final", options->final,
                 "At the end remove from the destination what the copy keeps there for itself")
      ->excludes(follow);
  auto* state = command->add_option("--state", options->state,
                                    "Directory in which the copy remembers how far it is (default: "
                                    "one of its own under $XDG_STATE_HOME or ~/.local/state)");
  auto* leases =
      command
          ->add_option("--leases", options->leases,
                       "DATABASE/CONTAINER on the destination's server in which it remembers that "
                       "instead, so that several processes share the work")
          ->excludes(state);
  command
      ->add_option("--host", options->host,
                   "Name of this process among those that share the work; must be its own")
      ->needs(leases);
  command
      ->add_option("--group", options->group,
                   "Name of the copy (default: made of source and destination)")
      ->check(check_group);
  command
      ->add_option("--page-size", options->page_size, "Changes that are read at once, at the most")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_option("--concurrency", options->concurrency, "Batches that are written at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  add_connection_options(*command, options->from);
  add_destination_options(*command, options->to);
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace orrery::cli
