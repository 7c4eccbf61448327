// orrery split, orrery merge: cut a range in two, or join two neighbours.
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/connection.h"
#include "protocol/wire/resource_path.h"

namespace orrery::cli {
namespace {

struct TopologyOptions {
  ConnectionOptions connection;
  std::string container;
  std::string range;
  std::string at;
  std::vector<std::string> ranges;
};

/// Posts to one of the container's operations and prints the ranges that come of it.
int change_ranges(const TopologyOptions& options, std::string_view operation,
                  const nlohmann::json& body) {
  const auto link = client::container_link(options.container);
  if (!link) return complain_of_usage(link.error());
  auto connection = Connection::open(options.connection);
  if (!connection) return complain_of_usage(connection.error());
  client::Request request;
  request.method = "POST";
  request.path = fmt::format("/{}/operations/{}", percent_encode_path(*link), operation);
  request.body = body.dump();
  request.headers.emplace_back("content-type", "application/json");
  const auto reply = (*connection)->send(std::move(request), "colls", *link);
  if (!reply) return complain(reply.error());
  const auto ranges = nlohmann::json::parse(reply->body, nullptr, /*allow_exceptions=*/false);
  if (!ranges.is_object() || !ranges.contains("PartitionKeyRanges")) {
    return complain(Error(ErrorCode::Unavailable, "the server's answer is not a list of ranges"));
  }
  for (const auto& range : ranges["PartitionKeyRanges"]) {
    std::string parents;
    for (const auto& parent : range.value("parents", nlohmann::json::array())) {
      parents += (parents.empty() ? ", out of " : ", ") + parent.get<std::string>();
    }
    fmt::print("range {}: [{}, {}){}\n", range.value("id", "?"),
               range.value("minInclusive", "").empty() ? "begin" : range.value("minInclusive", ""),
               range.value("maxExclusive", "FF") == "FF" ? "end" : range.value("maxExclusive", ""),
               parents);
  }
  return 0;
}

}  // namespace

void add_topology(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TopologyOptions>();
  auto* split = app.add_subcommand(
      "split", "Cut a range of a container in two; readers and writers go on meanwhile");
  split->add_option("container", options->container, "DATABASE/CONTAINER")->required();
  split->add_option("--range", options->range, "The range's id, as in pkranges")->required();
  split->add_option("--at", options->at,
                    "Where: an effective partition key in hex (default: in the middle)");
  add_connection_options(*split, options->connection);
  split->callback([options, &exit_code] {
    nlohmann::json body{{"range", options->range}};
    if (!options->at.empty()) body["at"] = options->at;
    exit_code = change_ranges(*options, "split", body);
  });

  auto* merge = app.add_subcommand("merge", "Join two neighbouring ranges of a container");
  merge->add_option("container", options->container, "DATABASE/CONTAINER")->required();
  merge->add_option("--ranges", options->ranges, "The two ids, as in --ranges 1 2")
      ->required()
      ->expected(2);
  add_connection_options(*merge, options->connection);
  merge->callback([options, &exit_code] {
    exit_code = change_ranges(*options, "merge", {{"ranges", options->ranges}});
  });
}

}  // namespace orrery::cli
