#include <cstdio>

#include <CLI/CLI.hpp>

#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Orrery: a document database with the REST API, the partitions and the change feed of Azure\n"
      "Cosmos DB, on your own machine. The official SDKs work with it as they are.\n\n"
      "Start here:  orrery serve\n"
      "then point an SDK at the connection string that it prints,\n"
      "and watch:   orrery feed tail DATABASE/CONTAINER"};
  app.name("orrery");
  app.require_subcommand(1);
  int exit_code = 0;
  orrery::cli::add_serve(app, exit_code);
  orrery::cli::add_feed(app, exit_code);
  orrery::cli::add_query(app, exit_code);
  orrery::cli::add_process(app, exit_code);
  orrery::cli::add_leases(app, exit_code);
  orrery::cli::add_copy(app, exit_code);
  orrery::cli::add_topology(app, exit_code);
  app.add_subcommand("version", "Print the version and exit")->callback([] {
    std::printf("orrery %s\n", ORRERY_VERSION);
  });
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
