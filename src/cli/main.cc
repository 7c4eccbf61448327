#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/build_commit.h"
#include "cli/command_line.h"
#include "cli/commands.h"

// For jemalloc, which looks for this name before anything else runs. More arenas than busy threads
// only keep freed memory from being used again. Pages of feeds are megabytes long: some seconds
// after a burst of them, and not at once, a thread gives their memory back.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf =
    "narenas:4,dirty_decay_ms:5000,background_thread:true,max_background_threads:1";
}

namespace {

std::string version() {
  std::string text = "orrery " ORRERY_VERSION;
  if (*orrery::cli::kBuildCommit != '\0') {
    text.append(" (").append(orrery::cli::kBuildCommit).append(")");
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Orrery: a document database with the REST API, the partitions and the change feed of Azure\n"
      "Cosmos DB, on your own machine. The official SDKs work with it as they are.\n\n"
      "Start here:  orrery serve\n"
      "then point an SDK at the connection string that it prints,\n"
      "and watch:   orrery feed tail DATABASE/CONTAINER"};
  app.name("orrery");
  orrery::cli::use_readable_help(app);
  app.require_subcommand(1);
  app.footer(
      "'orrery help COMMAND' shows the options of a command. Exit statuses: 0 it is done, 1 it "
      "failed,\n2 the command line makes no sense.");
  app.set_version_flag("--version", version(), "Print the version and exit");
  int exit_code = 0;
  orrery::cli::add_serve(app, exit_code);
  orrery::cli::add_emulator(app, exit_code);
  orrery::cli::add_feed(app, exit_code);
  orrery::cli::add_query(app, exit_code);
  orrery::cli::add_process(app, exit_code);
  orrery::cli::add_leases(app, exit_code);
  orrery::cli::add_copy(app, exit_code);
  orrery::cli::add_topology(app, exit_code);
  orrery::cli::add_keygen(app, exit_code);
  orrery::cli::add_keys(app, exit_code);
  orrery::cli::add_backup(app, exit_code);
  orrery::cli::add_check(app, exit_code);
  orrery::cli::add_completion(app, exit_code);
  orrery::cli::add_man(app, exit_code);
  app.add_subcommand("version", "Print the version and exit")->callback([] {
    std::printf("%s\n", version().c_str());
  });
  app.add_subcommand("help", "Show how a command is used");
  return orrery::cli::run_command_line(app, argc, argv, exit_code);
}
