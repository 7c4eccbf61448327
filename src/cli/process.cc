// orrery process: hands the changes of a container to a command, a webhook or files; any number of
// such processes share the work.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/counted.h"
#include "base/diagnostics.h"
#include "base/stop_wait.h"
#include "cli/commands.h"
#include "cli/process_options.h"
#include "cli/stop_signals.h"
#include "cli/terminal/console.h"
#include "processor/hosting/dead_letters.h"
#include "sinks/delivery.h"
#include "sinks/exec/exec.h"
#include "sinks/files/dead_letter_file.h"
#include "sinks/files/json_lines.h"
#include "sinks/lag_watch.h"
#include "sinks/webhook.h"

namespace orrery::cli {
namespace {

using processor::ChangeFeedObserver;
using processor::ChangeFeedProcessorHost;
using processor::DeadLetter;
using processor::HealthEvent;
using processor::LeaseGroup;
using processor::ObserverFactory;
using std::chrono::milliseconds;

// Exit codes of --until-caught-up.
constexpr int kNotCaughtUp = 3;
constexpr int kSomeDeadLetters = 4;
constexpr milliseconds kTickInterval{200};
/// The lag costs a request per lease.
constexpr milliseconds kLagInterval{1000};

/// State that all sinks of this process share.
struct Shared {
  std::shared_ptr<sinks::SinkStats> stats = std::make_shared<sinks::SinkStats>();
  std::shared_ptr<sinks::ProcessGroups> children = std::make_shared<sinks::ProcessGroups>();
  std::shared_ptr<Console> console;

  sinks::ReportProblem report_problem() const {
    return [console = console](const std::string& lease, const std::string& problem) {
      console->complain(fmt::format("lease {}: {}", lease, problem));
    };
  }
};

Result<ObserverFactory> jsonl_factory(const ProcessOptions& options, const Shared& shared) {
  ORRERY_TRY(const auto files, options.jsonl_options());
  ORRERY_TRY(sinks::make_writable(files.directory));
  return ObserverFactory([files, shared]() -> std::unique_ptr<ChangeFeedObserver> {
    return std::make_unique<sinks::JsonLinesSink>(files, shared.stats, shared.report_problem());
  });
}

using SinkFactory = std::function<std::unique_ptr<sinks::BatchSink>()>;

Result<SinkFactory> sink_factory(const ProcessOptions& options, const Shared& shared) {
  auto batch_time = parse_duration(options.batch_timeout);
  if (!batch_time)
    return Error(ErrorCode::BadRequest, "--batch-timeout: " + batch_time.error().message());
  if (!options.webhook.empty()) {
    sinks::WebhookOptions webhook;
    ORRERY_TRY(webhook.set_url(options.webhook));
    for (const std::string& header : options.headers) {
      ORRERY_TRY(auto parsed, parse_header(header));
      webhook.headers.push_back(std::move(parsed));
    }
    webhook.batch_time = *batch_time;
    webhook.certificate_file = options.connection.certificate_file;
    webhook.verify_certificate = !options.connection.insecure;
    return SinkFactory([webhook] { return std::make_unique<sinks::WebhookSink>(webhook); });
  }
  sinks::ExecOptions exec;
  exec.batch_time = *batch_time;
  ORRERY_TRY(exec.grace, parse_duration(options.grace));
  exec.groups = shared.children;
  exec.print = [console = shared.console](std::string_view text) { console->print(text); };
  if (!options.exec.empty()) {
    exec.command = options.exec;
    return SinkFactory([exec] { return std::make_unique<sinks::ExecSink>(exec); });
  }
  exec.command = options.exec_stream;
  return SinkFactory([exec] { return std::make_unique<sinks::ExecStreamSink>(exec); });
}

Result<ObserverFactory> observer_factory(const ProcessOptions& options,
                                         const processor::RetryPolicy& retry,
                                         const Shared& shared) {
  if (!options.jsonl.empty()) return jsonl_factory(options, shared);
  ORRERY_TRY(auto make_sink, sink_factory(options, shared));
  sinks::DeliveryPolicy policy;
  policy.per_document = options.per_document;
  policy.dead_letters = !options.dead_letters.empty();
  policy.attempts_max = retry.max_attempts;
  policy.checkpoint_when_idle = !options.checkpoint_every.empty();
  return ObserverFactory(
      [make_sink = std::move(make_sink), policy, shared]() -> std::unique_ptr<ChangeFeedObserver> {
        return std::make_unique<sinks::DeliveryObserver>(make_sink(), policy, shared.stats,
                                                         shared.report_problem());
      });
}

/// The place for dead letters; empty without --dead-letters.
Result<std::function<void(const DeadLetter&)>> dead_letter_place(
    const ProcessOptions& options, const client::CosmosClient& client) {
  if (options.dead_letters.empty()) return nullptr;
  if (options.has_dead_letter_file()) {
    ORRERY_TRY(auto file, sinks::DeadLetterFile::open(options.dead_letters));
    return [file](const DeadLetter& letter) { file->append(letter); };
  }
  const client::Container container = open_container(client, options.dead_letters);
  check_container(container, options.dead_letters, "it is to hold the dead letters");
  processor::ChangeFeedHostOptions place;
  place.dead_letter_container = container;
  return processor::dead_letter_keeper(place);
}

/// The options of a command that say where the leases are.
std::string place_options(const LeasePlace& place) {
  std::string text;
  if (!place.container.empty()) text += " --leases " + place.container;
  if (!place.state_directory.empty()) text += " --state " + place.state_directory;
  if (!place.group.empty()) text += " --group " + place.group;
  return text;
}

/// A group that has leases goes on where they are, whatever --from says: says so, since users would
/// have to guess why nothing comes.
void tell_where_it_begins(const ProcessOptions& options, const LeaseGroup& group,
                          Console& console) {
  if (!options.from_is_given) return;
  const auto leases = group.leases();
  if (leases.empty()) return;
  std::optional<std::chrono::system_clock::time_point> renewed;
  for (const LeaseGroup::Lease& lease : leases) renewed = std::max(renewed, lease.renewed);
  std::string age;
  if (renewed) {
    // Clocks of two machines: one may be ahead.
    const auto seconds = std::chrono::floor<std::chrono::seconds>(SystemClock().now() - *renewed);
    age = fmt::format(", last written {} s ago", std::max<std::int64_t>(0, seconds.count()));
  }
  console.complain(fmt::format(
      "--from {} is not used: {} goes on at the positions of its {}{}. To begin elsewhere, stop "
      "its "
      "hosts and say 'orrery leases reset {}{} --to {}', or take another --group",
      options.from, name_of_group(options.leases.group), counted(leases.size(), "lease"), age,
      options.container, place_options(options.leases), options.from));
}

/// Shows progress until a stop is requested or --until-caught-up is satisfied; true: it is.
bool watch_process(const ProcessOptions& options, const ChangeFeedProcessorHost& host,
                   sinks::LagWatch& lag, const Shared& shared, const std::stop_token& stop) {
  const bool wants_lag = options.until_caught_up || shared.console->is_terminal();
  auto next_refresh = std::chrono::steady_clock::now();
  bool was_paused = false;
  bool caught_up = false;
  while (!caught_up && !stop.stop_requested()) {
    if (wants_lag && std::chrono::steady_clock::now() >= next_refresh) {
      try {
        lag.refresh();
        caught_up = options.until_caught_up && lag.caught_up();
      } catch (const client::CosmosException& exception) {
        shared.console->complain(fmt::format("the lag is not known: {}", exception.what()));
      }
      next_refresh = std::chrono::steady_clock::now() +
                     (options.until_caught_up ? kTickInterval : kLagInterval);
    }
    const auto host_stats = host.stats();
    if (host_stats.paused && !was_paused) {
      shared.console->complain("the group is paused, until somebody says 'orrery leases resume'");
    }
    was_paused = host_stats.paused;
    std::string note = host_stats.paused ? "paused" : counted(host_stats.leases.size(), "lease");
    if (const auto dead = shared.stats->dead_letters.load(); dead > 0) {
      note += ", " + counted(dead, "dead letter");
    }
    shared.console->show({shared.stats->documents, lag.documents_left(), std::move(note)});
    if (!caught_up) wait_unless_stopped(stop, kTickInterval);
  }
  return caught_up;
}

/// Prints health events, except informational ones and those that the stop itself causes.
processor::HealthMonitor monitor(const Shared& shared, const std::stop_token& stop) {
  return [console = shared.console, stop](const HealthEvent& event) {
    if (event.severity == processor::Severity::Informational || stop.stop_requested()) return;
    console->complain(event.lease_token.empty()
                          ? event.message
                          : fmt::format("lease {}: {}", event.lease_token, event.message));
  };
}

Result<int> run(const ProcessOptions& options) {
  ORRERY_TRY(options.check());
  ORRERY_TRY(auto feed_options, options.feed_options());
  ORRERY_TRY(auto host_options, options.host_options());

  Shared shared;
  shared.console = std::make_shared<Console>("process " + options.container);
  StopSignals signals([children = shared.children] { children->kill_all(); });
  ORRERY_TRY(auto factory, observer_factory(options, host_options.retry, shared));
  const client::CosmosClient client = open_client(options.connection);
  const client::Container monitored = open_container(client, options.container);
  check_container(monitored, options.container, "");
  const auto store = open_lease_store(options.leases, options.connection, client.endpoint());
  ORRERY_TRY(const auto keep, dead_letter_place(options, client));
  if (keep) {
    host_options.dead_letter_callback = [keep, stats = shared.stats](const DeadLetter& letter) {
      keep(letter);
      ++stats->dead_letters;
    };
  }

  ChangeFeedProcessorHost host(options.host.empty() ? unique_host_name() : options.host, monitored,
                               store, std::move(feed_options), host_options);
  // Warnings about options have been given. Problems are told by the monitor, and only once.
  diagnostics::set_level(diagnostics::Level::Error);
  host.set_health_monitor(monitor(shared, signals.token()));
  LeaseGroup group(monitored, store, options.leases.group);
  tell_where_it_begins(options, group, *shared.console);
  sinks::LagWatch lag(std::move(group));
  host.register_observer_factory(std::move(factory));
  const bool caught_up = watch_process(options, host, lag, shared, signals.token());
  host.unregister_observers();
  int exit_code = 0;
  if (options.until_caught_up && !caught_up) {
    exit_code = kNotCaughtUp;
  } else if (options.until_caught_up && shared.stats->dead_letters > 0) {
    exit_code = kSomeDeadLetters;
  }
  if (shared.stats->calls_running > 0) {
    // A call that does not return still uses objects that returning from here would destroy.
    shared.console->complain("a batch was still running and was left behind; it will come again");
    shared.children->kill_all();
    std::fflush(nullptr);
    ::_exit(exit_code);
  }
  return exit_code;
}

}  // namespace

void add_process(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ProcessOptions>();
  auto* process = app.add_subcommand(
      "process",
      "Hand the changes of a container to a command, a webhook or files; any number of such "
      "processes share the work, and go on where they were");
  process->footer(
      "A handler may answer with JSON (the last line of its output, or the body of its answer):\n"
      "  {\"done_until\": 3}                       the first three are done, the rest comes again\n"
      "  {\"retry_after_ms\": 500}                 not now\n"
      "  {\"reject\": [0, 4], \"reason\": \"…\"}       these are dead letters, all others are "
      "done\n"
      "  {\"failed\": true}   {\"stop\": true}       failed; give the lease up\n"
      "SIGINT and SIGTERM end it after the batches that run; a second one ends it at once.");
  options->add_to(*process);
  process->callback([options, &exit_code] {
    try {
      const auto outcome = run(*options);
      // Refusals of the server are exceptions: a bad request here is about the options.
      exit_code = outcome ? *outcome
                  : outcome.error().code() == ErrorCode::BadRequest
                      ? complain_of_usage(outcome.error())
                      : complain(outcome.error());
    } catch (const client::CosmosException& exception) {
      exit_code = complain(exception);
    }
  });
}

}  // namespace orrery::cli
