// orrery backup: asks a running server for back-ups, and sees to those in a directory.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/operate/administration.h"
#include "cli/terminal/utc_time.h"
#include "server/backup_directory.h"

namespace orrery::cli {
namespace {

using server::Backup;

struct BackupCommandOptions {
  ConnectionOptions connection;
  std::string directory;
  std::string data_directory;
  std::uint32_t number = 0;  ///< 0: the newest
  std::size_t keep = 0;
};

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string describe(const Backup& backup) {
  if (!backup.is_whole) return fmt::format("{:>6}  not whole: files are missing", backup.number);
  return fmt::format("{:>6}  {}  {:>12}  {:>12} new  orrery {}  life {}", backup.number,
                     format_utc_time(backup.taken), megabytes(backup.bytes),
                     megabytes(backup.new_bytes), backup.version, backup.life);
}

// ── on a running server ──────────────────────────────────────────────────────────────────────────

int create(const BackupCommandOptions& options) {
  const auto connection = Connection::open(options.connection);
  if (!connection) return complain_of_usage(connection.error());
  const auto answer = run_job(**connection, "_orrery/backups");
  if (!answer) return complain(answer.error());
  const auto& made = (*answer)["made"];
  fmt::print("back-up {} in {}: {}, of which {} are new\n", made.value("number", 0),
             answer->value("directory", "?"), megabytes(made.value("bytes", std::uint64_t{0})),
             megabytes(made.value("newBytes", std::uint64_t{0})));
  return 0;
}

// ── in a directory ───────────────────────────────────────────────────────────────────────────────

int list(const BackupCommandOptions& options) {
  const auto backups = server::list_backups(options.directory);
  if (!backups) return complain(backups.error());
  bool is_whole = true;
  for (const Backup& backup : *backups) {
    fmt::print("{}\n", describe(backup));
    is_whole = is_whole && backup.is_whole;
  }
  return is_whole ? 0 : kFailure;
}

/// The one that the options name, or the newest that is whole.
Result<std::uint32_t> choose_backup(const BackupCommandOptions& options) {
  if (options.number != 0) return options.number;
  ORRERY_TRY(const auto backups, server::list_backups(options.directory));
  std::uint32_t newest = 0;
  for (const Backup& backup : backups) {
    if (backup.is_whole) newest = backup.number;
  }
  if (newest != 0) return newest;
  return Error(ErrorCode::NotFound, fmt::format("there is no back-up in {}", options.directory));
}

int verify(const BackupCommandOptions& options) {
  std::vector<std::uint32_t> numbers;
  if (options.number != 0) {
    numbers.push_back(options.number);
  } else {
    const auto backups = server::list_backups(options.directory);
    if (!backups) return complain(backups.error());
    for (const Backup& backup : *backups) numbers.push_back(backup.number);
  }
  int status = 0;
  for (const std::uint32_t number : numbers) {
    const auto verified = server::verify_backup(options.directory, number);
    if (verified) {
      fmt::print("back-up {} is as it was written\n", number);
    } else {
      status = complain(verified.error());
    }
  }
  return status;
}

Result<Backup> restore_into(const BackupCommandOptions& options) {
  ORRERY_TRY(const auto number, choose_backup(options));
  return server::restore_backup(options.directory, number, options.data_directory);
}

int restore(const BackupCommandOptions& options) {
  const auto restored = restore_into(options);
  if (!restored) return complain(restored.error());
  fmt::print(
      "back-up {} of {} is in {}\n"
      "  orrery serve --data-dir {}\n"
      "begins a new life of the data. Change feeds go on above all positions that were ever given "
      "out, so no consumer misses what is new;\n"
      "what was written after the back-up is gone, though consumers may have seen it.\n",
      restored->number, format_utc_time(restored->taken), options.data_directory,
      options.data_directory);
  return 0;
}

int prune(const BackupCommandOptions& options) {
  const auto gone = server::prune_backups(options.directory, options.keep);
  if (!gone) return complain(gone.error());
  fmt::print("{} taken away\n", counted(*gone, "back-up"));
  return 0;
}

void add_directory(CLI::App& command, BackupCommandOptions& options) {
  command.add_option("--backup-dir", options.directory, "The server's directory of back-ups")
      ->required()
      ->envname("ORRERY_BACKUP_DIR");
}

}  // namespace

void add_backup(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BackupCommandOptions>();
  auto* backup =
      app.add_subcommand("backup", "Take back-ups of a running server, and restore them");
  backup->require_subcommand(1);

  auto* create_one = backup->add_subcommand(
      "create",
      "Have the server take a back-up into its --backup-dir, and wait for it.\n"
      "Readers and writers go on meanwhile; only what has changed since the last one is copied");
  add_connection_options(*create_one, options->connection);
  create_one->callback([options, &exit_code] { exit_code = create(*options); });

  auto* list_all = backup->add_subcommand("list", "Show the back-ups in a directory");
  add_directory(*list_all, *options);
  list_all->callback([options, &exit_code] { exit_code = list(*options); });

  auto* verify_files = backup->add_subcommand(
      "verify", "Read every file of the back-ups, or of one, and compare its checksum");
  add_directory(*verify_files, *options);
  verify_files->add_option("number", options->number, "Which one (default: all)");
  verify_files->callback([options, &exit_code] { exit_code = verify(*options); });

  auto* restore_one =
      backup->add_subcommand("restore", "Put a back-up into a new data directory, for a server");
  add_directory(*restore_one, *options);
  restore_one->add_option("number", options->number, "Which one (default: the newest)");
  restore_one->add_option("--data-dir", options->data_directory, "A directory that holds no data")
      ->required();
  restore_one->callback([options, &exit_code] { exit_code = restore(*options); });

  auto* prune_old = backup->add_subcommand("prune", "Take all but the newest back-ups away");
  add_directory(*prune_old, *options);
  prune_old->add_option("--keep", options->keep, "So many stay")
      ->required()
      ->check(CLI::Range(1, 1'000'000));
  prune_old->callback([options, &exit_code] { exit_code = prune(*options); });
}

}  // namespace orrery::cli
