#include <cstdio>

#include <CLI/CLI.hpp>

#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Orrery: a document database with the REST API and the partitions of Azure Cosmos DB, on "
      "your\n"
      "own machine. The official SDKs work with it as they are.\n\n"
      "Start here:  orrery serve\n"
      "then point an SDK at the connection string that it prints."};
  app.name("orrery");
  app.require_subcommand(1);
  int exit_code = 0;
  orrery::cli::add_serve(app, exit_code);
  app.add_subcommand("version", "Print the version and exit")->callback([] {
    std::printf("orrery %s\n", ORRERY_VERSION);
  });
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
