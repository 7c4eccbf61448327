// orrery feed tail, orrery feed lag: watch a change feed, and see how far behind a reader is.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/feed/feed_follower.h"
#include "cli/feed/feed_printer.h"

namespace orrery::cli {
namespace {

struct FeedOptions {
  ConnectionOptions connection;
  std::string container;
  FeedChoice feed;
  std::string output = "pretty";
  std::size_t count_max = 0;
  bool no_follow = false;
};

void add_scope_options(CLI::App& command, FeedOptions& options) {
  command.add_option("container", options.container, "DATABASE/CONTAINER")->required();
  auto* range =
      command.add_option("--range", options.feed.range, "Only one partition key range, by its id");
  command
      .add_option("--key", options.feed.key,
                  "Only one partition key, as JSON: '\"eu-1\"', or '[\"tenant\",7]'")
      ->excludes(range);
  command.add_option("--filter", options.feed.filter,
                     "Only what matches, as SQL over c: \"c.price > 10 AND c.state = 'open'\"");
  command.add_flag("--all-versions", options.feed.all_versions,
                   "Every version and delete, not only the latest of each document (the container "
                   "needs changeFeedPolicy.retentionDuration)");
}

/// Completes the options. BadRequest when they make no sense; nothing is sent yet.
Result<std::unique_ptr<Connection>> prepare(FeedOptions& options) {
  ORRERY_TRY(options.feed.link, client::container_link(options.container));
  auto& key = options.feed.key;
  if (!key.empty() && !key.starts_with('[')) key = "[" + key + "]";
  return Connection::open(options.connection);
}

Result<> tail(FeedOptions& options, Connection& connection) {
  const bool coloured = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  FeedPrinter printer(stdout, FeedPrinter::style_of(options.output), coloured,
                      options.feed.all_versions);
  std::size_t left = options.count_max == 0 ? SIZE_MAX : options.count_max;
  FeedFollower follower(connection, options.feed);
  const auto take = [&](FeedGroup group) {
    if (group.items.size() > left) {
      // The rest of a transaction still belongs to it.
      std::size_t end = left;
      while (end < group.items.size() && lsn_of(group.items[end]) == lsn_of(group.items[end - 1])) {
        ++end;
      }
      group.items.resize(end);
    }
    // A reader that has gone away (head, less) must end us, not fill a buffer.
    if (!printer.print(group)) return false;
    left -= std::min(left, group.items.size());
    return left > 0;
  };
  if (options.no_follow) return follower.drain(take);
  return follower.follow(take,
                         [](const std::string& news) { fmt::print(stderr, "orrery: {}\n", news); });
}

Result<> show_lag(FeedOptions& options, Connection& connection) {
  FeedFollower follower(connection, options.feed);
  ORRERY_TRY(const auto lag, follower.lag());
  fmt::print("pending changes  {}\npending bytes    {}\npending LSNs     {}\n", lag.items,
             lag.bytes, lag.lsns);
  if (!lag.oldest_ts.empty()) {
    const std::time_t oldest = std::strtoll(lag.oldest_ts.c_str(), nullptr, 10);
    const SystemClock clock;
    fmt::print("oldest pending   {} s ago\n",
               std::max<std::int64_t>(0, clock.unix_seconds() - oldest));
  }
  fmt::print("head             {}\n", lag.head);
  return {};
}

int run(FeedOptions& options, Result<> (*act)(FeedOptions&, Connection&)) {
  const auto connection = prepare(options);
  if (!connection) return complain_of_usage(connection.error());
  const auto outcome = act(options, **connection);
  return outcome ? 0 : complain(outcome.error());
}

}  // namespace

void add_feed(CLI::App& app, int& exit_code) {
  auto* feed = app.add_subcommand("feed", "Watch the change feed of a container");
  feed->require_subcommand(1);

  auto tail_options = std::make_shared<FeedOptions>();
  auto* tail_command = feed->add_subcommand(
      "tail",
      "Print changes as they happen, until interrupted; goes on by itself after a dropped "
      "connection or a restarted server");
  add_scope_options(*tail_command, *tail_options);
  tail_command
      ->add_option("--from", tail_options->feed.from,
                   "Where to begin: beginning, now, a time in UTC (2026-11-15T22:00:00Z), or an "
                   "etag from --output etag")
      ->capture_default_str();
  choose(tail_command->add_option(
             "--output", tail_options->output,
             "pretty: a line per change for people; json: a document per line; etag: the position "
             "after each group"),
         {"pretty", "json", "etag"})
      ->capture_default_str();
  tail_command->add_option("--count", tail_options->count_max,
                           "End after so many changes (the last transaction is printed whole)");
  tail_command->add_flag("--no-follow", tail_options->no_follow,
                         "End when there is nothing more, instead of waiting");
  add_connection_options(*tail_command, tail_options->connection);
  tail_command->callback([tail_options, &exit_code] { exit_code = run(*tail_options, tail); });

  auto lag_options = std::make_shared<FeedOptions>();
  auto* lag_command = feed->add_subcommand("lag", "Tell how far a reader with that etag is behind");
  add_scope_options(*lag_command, *lag_options);
  lag_command->add_option("--etag", lag_options->feed.from, "The reader's position")->required();
  add_connection_options(*lag_command, lag_options->connection);
  lag_command->callback([lag_options, &exit_code] { exit_code = run(*lag_options, show_lag); });
}

}  // namespace orrery::cli
