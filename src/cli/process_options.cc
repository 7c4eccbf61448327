#include "cli/process_options.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <random>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/command_line.h"
#include "cli/terminal/utc_time.h"

namespace orrery::cli {
namespace {

using std::chrono::milliseconds;

/// How often a document is tried when it may become a dead letter and nobody says.
constexpr int kAttemptsDefault = 5;
/// Longer than what kills a child that does not end by itself.
constexpr milliseconds kShutdownMargin{5000};
/// Files are ended, and rare checkpoints written, when there is nothing left to read. That has to
/// be noticed soon.
constexpr milliseconds kShortWait{1000};

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};
constexpr std::array<Unit, 4> kUnits = {Unit{"ms", 1}, Unit{"s", 1000}, Unit{"m", 60'000},
                                        Unit{"h", 3'600'000}};

Result<milliseconds> duration_of(std::string_view option, const std::string& text) {
  auto duration = parse_duration(text);
  if (!duration) return bad_request(fmt::format("{}: {}", option, duration.error().message()));
  return duration;
}

}  // namespace

Result<milliseconds> parse_duration(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  if (failure == std::errc() && number >= 0 && number <= 1'000'000'000) {
    if (unit.empty()) return milliseconds(number * 1000);
    for (const Unit& each : kUnits) {
      if (each.name == unit) return milliseconds(number * each.milliseconds);
    }
  }
  return bad_request(fmt::format("'{}' is no duration: say 500ms, 20s, 5m or 2h", text));
}

Result<std::pair<std::string, std::string>> parse_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  const bool sound = colon != std::string_view::npos && !name.empty() &&
                     name.find_first_of(" \t\r\n") == std::string_view::npos &&
                     line.find_first_of("\r\n") == std::string_view::npos;
  if (!sound) return bad_request(fmt::format("--header takes 'Name: value', not '{}'", line));
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  return std::pair(std::string(name), std::string(value));
}

Result<processor::CheckpointFrequency> parse_checkpoint_frequency(const std::string& text) {
  processor::CheckpointFrequency frequency;
  if (text.empty()) return frequency;
  std::uint64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, count);
  if (failure == std::errc() && stop == end && count > 0) {
    frequency.processed_document_count = count;
    return frequency;
  }
  auto interval = parse_duration(text);
  if (!interval || interval->count() == 0) {
    return bad_request(
        fmt::format("--checkpoint-every takes a number of documents (1000) or a duration "
                    "(30s), not '{}'",
                    text));
  }
  frequency.time_interval = *interval;
  return frequency;
}

std::string unique_host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  // Processes in containers are often number 1 on machines of one name.
  return fmt::format("{}-{}-{:04x}", name.data(), ::getpid(), std::random_device()() & 0xffff);
}

void ProcessOptions::add_to(CLI::App& command) {
  command.add_option("container", container, "DATABASE/CONTAINER")->required();

  const char* const handler = "Handler, one of these";
  command
      .add_option("--exec", exec,
                  "Command that is run for each batch, with a document per line on its standard "
                  "input; exit code 0: done, 75: later, else: failed")
      ->group(handler);
  command
      .add_option("--exec-stream", exec_stream,
                  "Command that stays: a batch per line in, an answer per line out")
      ->group(handler);
  auto* hook =
      command.add_option("--webhook", webhook, "URL that each batch is posted to")->group(handler);
  auto* files = command
                    .add_option("--jsonl", jsonl,
                                "Directory for files of JSON lines, each change in one of them")
                    ->group(handler);

  command.add_option("--header", headers, "'Name: value' for the webhook (may be repeated)")
      ->needs(hook)
      ->expected(1)
      ->take_all();
  command.add_flag("--per-document", per_document, "The webhook gets documents one by one")
      ->needs(hook);
  command.add_option("--file-documents", file_documents, "A file is ended after so many")
      ->needs(files)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--file-mb", file_mb, "or when it has so many MiB")
      ->needs(files)
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--file-time", file_time, "or after so long")
      ->needs(files)
      ->capture_default_str();

  command
      .add_option("--from", from,
                  "Where a new group begins: beginning, now, or a time in UTC "
                  "(2026-11-15T22:00:00Z). One that has leases goes on where they are")
      ->capture_default_str()
      ->each([this](const std::string&) { from_is_given = true; });
  command.add_flag("--all-versions", all_versions,
                   "Every version and delete, not only the latest of each document (the container "
                   "needs changeFeedPolicy.retentionDuration)");
  command.add_flag(
      "--until-caught-up", until_caught_up,
      "End when everything up to now is processed; exit status 3: a signal came first; 4: with "
      "dead letters");
  command.add_option("--page-size", page_size, "Documents in a batch, at the most")
      ->check(CLI::PositiveNumber);
  command.add_option("--rate", rate, "Documents per second, at the most")
      ->check(CLI::PositiveNumber);
  command.add_option("--lanes", lanes, "Batches of different keys at once, within a lease")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command
      .add_option("--batch-timeout", batch_timeout,
                  "A batch that takes longer has failed; 0: no bound")
      ->capture_default_str();
  command
      .add_option("--max-attempts", max_attempts,
                  "After so many failures a document becomes a dead letter (default: 5 with "
                  "--dead-letters, else it is tried for ever)")
      ->check(CLI::PositiveNumber);
  command.add_option("--dead-letters", dead_letters,
                     "Where such documents go: DATABASE/CONTAINER or FILE.jsonl");
  command.add_option("--checkpoint-every", checkpoint_every,
                     "Write positions after so many documents (1000) or so long (30s), instead of "
                     "after each batch");
  command.add_option("--grace", grace, "How long batches may go on when this process is to end")
      ->capture_default_str();

  add_lease_place_options(command, leases);
  command.add_flag("--create-leases", leases.create, "Make the container of --leases if need be")
      ->needs("--leases")
      ->group("Leases");
  command.add_option("--host", host, "Name of this process, unlike any other (default: made up)")
      ->group("Leases");
  choose(command.add_option("--balance", balance,
                            "equal: so many leases each; weighted: so much work each"),
         {"equal", "weighted"})
      ->capture_default_str()
      ->group("Leases");
  command.add_option("--renew-interval", renew_interval, "How often a lease is renewed")
      ->capture_default_str()
      ->group("Leases");
  command.add_option("--acquire-interval", acquire_interval, "How often leases are looked at")
      ->capture_default_str()
      ->group("Leases");
  command
      .add_option("--expiration-interval", expiration_interval,
                  "After so long without renewal another process takes a lease")
      ->capture_default_str()
      ->group("Leases");
  command.add_option("--poll-delay", poll_delay, "Between reads where the server can't wait")
      ->capture_default_str()
      ->group("Leases");
  add_connection_options(command, connection);
}

Result<> ProcessOptions::check() const {
  const auto handlers = !exec.empty() + !exec_stream.empty() + !webhook.empty() + !jsonl.empty();
  if (handlers != 1) {
    return bad_request(
        "say who processes the changes: one of --exec, --exec-stream, --webhook, --jsonl");
  }
  if (!jsonl.empty()) {
    if (lanes > 1)
      return bad_request("--jsonl writes the changes of a lease in order: --lanes must be 1");
    if (!checkpoint_every.empty()) {
      return bad_request(
          "--jsonl writes a position with each file: say --file-documents or --file-time "
          "instead of --checkpoint-every");
    }
    if (!dead_letters.empty() || max_attempts) {
      return bad_request(
          "--jsonl refuses no document: --dead-letters and --max-attempts have no meaning");
    }
  }
  if (max_attempts && dead_letters.empty()) {
    return bad_request(
        "--max-attempts needs --dead-letters: what can't be processed must go somewhere");
  }
  return {};
}

Result<processor::MonitoredFeedOptions> ProcessOptions::feed_options() const {
  processor::MonitoredFeedOptions options;
  options.max_item_count = page_size;
  if (all_versions) options.mode = client::ChangeFeedMode::AllVersionsAndDeletes;
  if (from == "now") return options;
  if (from == "beginning") {
    options.start_from_beginning = true;
    return options;
  }
  const auto time = parse_utc_time(from);
  if (!time) {
    return bad_request(
        fmt::format("'{}' is no place to begin: say beginning, now, or a time in UTC such "
                    "as 2026-11-15T22:00:00Z",
                    from));
  }
  options.start_time = std::chrono::system_clock::from_time_t(*time);
  return options;
}

Result<processor::ChangeFeedHostOptions> ProcessOptions::host_options() const {
  processor::ChangeFeedHostOptions options;
  options.lease_prefix = leases.group;
  ORRERY_TRY(options.lease_renew_interval, duration_of("--renew-interval", renew_interval));
  ORRERY_TRY(options.lease_acquire_interval, duration_of("--acquire-interval", acquire_interval));
  ORRERY_TRY(options.lease_expiration_interval,
             duration_of("--expiration-interval", expiration_interval));
  ORRERY_TRY(options.feed_poll_delay, duration_of("--poll-delay", poll_delay));
  ORRERY_TRY(const auto grace_time, duration_of("--grace", grace));
  options.shutdown_deadline = grace_time + kShutdownMargin;
  ORRERY_TRY(options.checkpoint_frequency, parse_checkpoint_frequency(checkpoint_every));
  if (!jsonl.empty()) options.checkpoint_frequency.explicit_checkpoint = true;
  if (!jsonl.empty() || !checkpoint_every.empty()) options.long_poll_wait = kShortWait;
  options.balancing =
      balance == "weighted" ? processor::Balancing::Weighted : processor::Balancing::Equal;
  options.lanes = lanes;
  options.limits.documents = rate;
  if (!dead_letters.empty()) options.retry.max_attempts = max_attempts.value_or(kAttemptsDefault);
  return options;
}

Result<sinks::JsonLinesOptions> ProcessOptions::jsonl_options() const {
  sinks::JsonLinesOptions options;
  options.directory = jsonl;
  options.file_bytes_max = file_mb << 20;
  options.file_documents_max = file_documents;
  ORRERY_TRY(options.file_time_max, duration_of("--file-time", file_time));
  return options;
}

}  // namespace orrery::cli
