// The options of `orrery process`, and those of the processor and the sinks that they become.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/connection.h"
#include "cli/leases/leases_place.h"
#include "orrery/processor.h"
#include "sinks/files/json_lines.h"

namespace CLI {
class App;
}

namespace orrery::cli {

/// "500ms", "20s", "5m", "2h"; a number alone is seconds.
Result<std::chrono::milliseconds> parse_duration(const std::string& text);
/// "Name: value" of a header for the webhook.
Result<std::pair<std::string, std::string>> parse_header(std::string_view line);
/// "1000" documents, or a duration with its unit.
Result<processor::CheckpointFrequency> parse_checkpoint_frequency(const std::string& text);

struct ProcessOptions {
  ConnectionOptions connection;
  LeasePlace leases;
  std::string container;

  // One of these.
  std::string exec;
  std::string exec_stream;
  std::string webhook;
  std::string jsonl;

  std::string host;
  std::string from = "now";
  bool from_is_given = false;
  std::optional<std::uint32_t> page_size;
  bool all_versions = false;
  std::string renew_interval = "17s";
  std::string acquire_interval = "13s";
  std::string expiration_interval = "60s";
  std::string poll_delay = "5s";
  int lanes = 1;
  std::optional<int> max_attempts;
  std::string dead_letters;
  std::optional<double> rate;
  std::string checkpoint_every;
  std::string batch_timeout = "5m";
  std::string grace = "10s";
  std::string balance = "equal";
  bool until_caught_up = false;

  std::vector<std::string> headers;
  bool per_document = false;

  std::uint64_t file_documents = 100'000;
  std::uint64_t file_mb = 64;
  std::string file_time = "60s";

  void add_to(CLI::App& command);

  /// BadRequest when options contradict each other.
  Result<> check() const;
  Result<processor::MonitoredFeedOptions> feed_options() const;
  /// Dead letters are not part of it.
  Result<processor::ChangeFeedHostOptions> host_options() const;
  Result<sinks::JsonLinesOptions> jsonl_options() const;
  bool has_dead_letter_file() const { return dead_letters.ends_with(".jsonl"); }
};

/// Made of the name of this machine, the process id, and a random number.
std::string unique_host_name();

}  // namespace orrery::cli
