// orrery process: hands the changes of a container to a command, a webhook or files; any number of
// such processes share the work.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/counted.h"
#include "base/diagnostics.h"
#include "base/stop_wait.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/process_options.h"
#include "cli/stop_signals.h"
#include "json/lines.h"
#include "processor/hosting/dead_letters.h"
#include "sinks/delivery.h"
#include "sinks/exec/exec.h"
#include "sinks/files/json_lines.h"
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
constexpr milliseconds kLookInterval{200};
/// What is left to do costs a request per lease.
constexpr milliseconds kLagInterval{1000};
/// Ages are the difference of two times that were each cut to a second.
constexpr std::chrono::seconds kAgeDoubt{2};

/// A file of dead letters, one per line. Thread-safe.
class DeadLetterFile {
 public:
  static Result<std::shared_ptr<DeadLetterFile>> open(const std::string& path) {
    sinks::Descriptor file(::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666));
    if (!file.is_open()) {
      return Error(ErrorCode::Unavailable,
                   fmt::format("cannot write {}: {}", path, std::strerror(errno)));
    }
    return std::shared_ptr<DeadLetterFile>(new DeadLetterFile(std::move(file)));
  }

  /// Throws when it could not be kept: the document then comes again.
  void keep(const DeadLetter& letter) {
    const std::string text = letter.to_json();
    const std::string_view view = text;
    std::string line = json::lines({&view, 1});
    const std::scoped_lock lock(mutex_);
    // Half a line, of a disk that was full, must not spoil this one.
    if (is_cut_) line.insert(0, "\n");
    const ssize_t written = ::write(file_.number(), line.data(), line.size());
    is_cut_ = written != static_cast<ssize_t>(line.size());
    if (is_cut_ || ::fsync(file_.number()) != 0) {
      throw std::runtime_error(
          fmt::format("the file of dead letters can't be written: {}", std::strerror(errno)));
    }
  }

 private:
  explicit DeadLetterFile(sinks::Descriptor file) : file_(std::move(file)) {}

  std::mutex mutex_;  // Guards what follows.
  sinks::Descriptor file_;
  bool is_cut_ = false;  // The last line.
};

/// What the observers of a process share.
struct Workshop {
  std::shared_ptr<sinks::Tally> tally = std::make_shared<sinks::Tally>();
  std::shared_ptr<sinks::ChildGroups> children = std::make_shared<sinks::ChildGroups>();
  std::shared_ptr<Console> console;

  sinks::Complain complain() const {
    return [console = console](const std::string& lease, const std::string& problem) {
      console->complain(fmt::format("lease {}: {}", lease, problem));
    };
  }
};

Result<ObserverFactory> jsonl_factory(const ProcessOptions& options, const Workshop& shop) {
  ORRERY_TRY(const auto files, options.jsonl_options());
  std::error_code failure;
  std::filesystem::create_directories(files.directory, failure);
  if (failure || ::access(files.directory.c_str(), W_OK) != 0) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot write in {}: {}", files.directory.string(),
                             failure ? failure.message() : std::strerror(errno)));
  }
  return ObserverFactory([files, shop]() -> std::unique_ptr<ChangeFeedObserver> {
    return std::make_unique<sinks::JsonlObserver>(files, shop.tally, shop.complain());
  });
}

using HandlerFactory = std::function<std::unique_ptr<sinks::BatchHandler>()>;

Result<HandlerFactory> handler_factory(const ProcessOptions& options, const Workshop& shop) {
  auto batch_time = parse_duration(options.batch_timeout);
  if (!batch_time)
    return Error(ErrorCode::BadRequest, "--batch-timeout: " + batch_time.error().message());
  if (!options.webhook.empty()) {
    sinks::WebhookOptions webhook;
    ORRERY_TRY(webhook.set_url(options.webhook));
    for (const std::string& header : options.headers) ORRERY_TRY(webhook.add_header(header));
    webhook.batch_time = *batch_time;
    webhook.certificate_file = options.connection.certificate_file;
    webhook.verify_certificate = !options.connection.insecure;
    return HandlerFactory([webhook] { return std::make_unique<sinks::WebhookHandler>(webhook); });
  }
  sinks::ExecOptions exec;
  exec.batch_time = *batch_time;
  ORRERY_TRY(exec.grace, parse_duration(options.grace));
  exec.groups = shop.children;
  exec.print = [console = shop.console](std::string_view text) { console->print(text); };
  if (!options.exec.empty()) {
    exec.command = options.exec;
    return HandlerFactory([exec] { return std::make_unique<sinks::ExecHandler>(exec); });
  }
  exec.command = options.exec_stream;
  return HandlerFactory([exec] { return std::make_unique<sinks::ExecStreamHandler>(exec); });
}

Result<ObserverFactory> observer_factory(const ProcessOptions& options,
                                         const processor::RetryPolicy& retry,
                                         const Workshop& shop) {
  if (!options.jsonl.empty()) return jsonl_factory(options, shop);
  ORRERY_TRY(auto handlers, handler_factory(options, shop));
  sinks::HandlingPolicy policy;
  policy.per_document = options.per_document;
  policy.dead_letters = !options.dead_letters.empty();
  policy.attempts_max = retry.max_attempts;
  policy.checkpoint_when_idle = !options.checkpoint_every.empty();
  return ObserverFactory(
      [handlers = std::move(handlers), policy, shop]() -> std::unique_ptr<ChangeFeedObserver> {
        return std::make_unique<sinks::HandlingObserver>(handlers(), policy, shop.tally,
                                                         shop.complain());
      });
}

/// Something that keeps dead letters; none when nobody asked for it.
Result<std::function<void(const DeadLetter&)>> dead_letter_place(
    const ProcessOptions& options, const client::CosmosClient& client) {
  if (options.dead_letters.empty()) return nullptr;
  if (options.has_dead_letter_file()) {
    ORRERY_TRY(auto file, DeadLetterFile::open(options.dead_letters));
    return [file](const DeadLetter& letter) { file->keep(letter); };
  }
  const client::Container container = open_container(client, options.dead_letters);
  check_container(container, options.dead_letters, "it is to hold the dead letters");
  processor::ChangeFeedHostOptions place;
  place.dead_letter_container = container;
  return processor::dead_letter_keeper(place);
}

/// How far the group is, asked for now and then.
class LagWatch {
 public:
  explicit LagWatch(LeaseGroup group) : group_(std::move(group)) {}

  /// Throws CosmosException.
  void look() {
    std::uint64_t documents = 0;
    std::optional<std::chrono::seconds> oldest = std::chrono::seconds(0);
    for (const processor::LeaseLag& lag : group_.lag()) {
      documents += lag.documents;
      if (lag.documents == 0) continue;
      oldest = oldest && lag.age ? std::optional(std::max(*oldest, *lag.age)) : std::nullopt;
    }
    documents_left_ = documents;
    // What is left counts as newer than the start only if it is beyond doubt. Where ages are not
    // told, nothing may be left.
    const auto since_begin = std::chrono::steady_clock::now() - begin_;
    caught_up_ = documents == 0 || (oldest && *oldest + kAgeDoubt <= since_begin);
  }

  std::optional<std::uint64_t> documents_left() const { return documents_left_; }
  /// Whether everything is processed that was there when this was made.
  bool caught_up() const { return caught_up_; }

 private:
  LeaseGroup group_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::optional<std::uint64_t> documents_left_;
  bool caught_up_ = false;
};

/// The options of a command that say where the leases are.
std::string place_options(const LeasePlace& place) {
  std::string text;
  if (!place.container.empty()) text += " --leases " + place.container;
  if (!place.state_directory.empty()) text += " --state " + place.state_directory;
  if (!place.group.empty()) text += " --group " + place.group;
  return text;
}

/// A group that has leases goes on where they are, whatever --from says; nobody should have to
/// guess why nothing comes.
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

/// Until somebody asks for an end, or everything is done that should be: true if it is.
bool watch(const ProcessOptions& options, const ChangeFeedProcessorHost& host, LagWatch& lag,
           const Workshop& shop, const std::stop_token& stop) {
  const bool wants_lag = options.until_caught_up || shop.console->is_terminal();
  auto next_look = std::chrono::steady_clock::now();
  bool was_paused = false;
  bool caught_up = false;
  while (!caught_up && !stop.stop_requested()) {
    if (wants_lag && std::chrono::steady_clock::now() >= next_look) {
      try {
        lag.look();
        caught_up = options.until_caught_up && lag.caught_up();
      } catch (const client::CosmosException& exception) {
        shop.console->complain(fmt::format("the lag is not known: {}", exception.what()));
      }
      next_look = std::chrono::steady_clock::now() +
                  (options.until_caught_up ? kLookInterval : kLagInterval);
    }
    const auto stats = host.stats();
    if (stats.paused && !was_paused) {
      shop.console->complain("the group is paused, until somebody says 'orrery leases resume'");
    }
    was_paused = stats.paused;
    std::string note = stats.paused ? "paused" : counted(stats.leases.size(), "lease");
    if (const auto dead = shop.tally->dead_letters.load(); dead > 0) {
      note += ", " + counted(dead, "dead letter");
    }
    shop.console->show({shop.tally->documents, lag.documents_left(), std::move(note)});
    if (!caught_up) wait_unless_stopped(stop, kLookInterval);
  }
  return caught_up;
}

/// Health as people want to read it: what is normal is not told, nor what comes of the end itself.
processor::HealthMonitor monitor(const Workshop& shop, const std::stop_token& stop) {
  return [console = shop.console, stop](const HealthEvent& event) {
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

  Workshop shop;
  shop.console = std::make_shared<Console>("process " + options.container);
  StopSignals signals([children = shop.children] { children->kill_all(); });
  ORRERY_TRY(auto factory, observer_factory(options, host_options.retry, shop));
  const client::CosmosClient client = open_client(options.connection);
  const client::Container monitored = open_container(client, options.container);
  check_container(monitored, options.container, "");
  const auto store = open_lease_store(options.leases, options.connection, client.endpoint());
  ORRERY_TRY(const auto keep, dead_letter_place(options, client));
  if (keep) {
    host_options.dead_letter_callback = [keep, tally = shop.tally](const DeadLetter& letter) {
      keep(letter);
      ++tally->dead_letters;
    };
  }

  ChangeFeedProcessorHost host(options.host.empty() ? unique_host_name() : options.host, monitored,
                               store, std::move(feed_options), host_options);
  // Warnings about options have been given. Problems are told by the monitor, and only once.
  diagnostics::set_level(diagnostics::Level::Error);
  host.set_health_monitor(monitor(shop, signals.token()));
  LeaseGroup group(monitored, store, options.leases.group);
  tell_where_it_begins(options, group, *shop.console);
  LagWatch lag(std::move(group));
  host.register_observer_factory(std::move(factory));
  const bool caught_up = watch(options, host, lag, shop, signals.token());
  host.unregister_observers();
  int exit_code = 0;
  if (options.until_caught_up && !caught_up) {
    exit_code = kNotCaughtUp;
  } else if (options.until_caught_up && shop.tally->dead_letters > 0) {
    exit_code = kSomeDeadLetters;
  }
  if (shop.tally->calls_running > 0) {
    // A handler that does not return has been left behind, and would meet what is taken down here.
    shop.console->complain("a batch was still running and was left behind; it will come again");
    shop.children->kill_all();
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
      // The server's refusals are exceptions: what is a bad request here are the options.
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
