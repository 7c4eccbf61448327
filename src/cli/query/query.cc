// orrery query: rows of a query, as a table or as JSON, and how they were found.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/counted.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/query/query_explain.h"
#include "cli/query/query_mistake.h"
#include "cli/query/query_table.h"
#include "json/lines.h"
#include "json/value.h"

namespace orrery::cli {
namespace {

/// A longer table is printed in parts of so many rows, each with a head and columns of its own.
constexpr std::size_t kTableRowsMax = 1000;

struct QueryArguments {
  ConnectionOptions connection;
  std::string container;
  std::string text;
  std::vector<std::string> parameters;
  std::string key;
  std::uint64_t rows_max = 0;
  std::uint32_t page_size = 0;
  bool explain = false;
  bool json = false;
  bool table = false;
};

/// `name=json`, with or without the @.
client::QueryParameter parse_parameter(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::string name = text.substr(0, equals);
  if (equals == std::string::npos || name.empty() || name == "@") {
    refuse_usage(fmt::format("--param {}: say NAME=JSON, such as --param 'min=10'", text));
  }
  if (!name.starts_with('@')) name.insert(0, "@");
  std::string json = text.substr(equals + 1);
  if (!json::Value::parse(json)) {
    refuse_usage(
        fmt::format("--param {}: the value is no JSON; a text needs quotes within those of the "
                    "shell: --param '{}=\"{}\"'",
                    text, text.substr(0, equals), json));
  }
  return {std::move(name), std::move(json)};
}

client::Query read_query(const QueryArguments& options) {
  std::string text = options.text;
  if (text == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  std::vector<client::QueryParameter> parameters;
  parameters.reserve(options.parameters.size());
  for (const std::string& each : options.parameters) parameters.push_back(parse_parameter(each));
  return {std::move(text), std::move(parameters)};
}

client::QueryOptions query_options(const QueryArguments& options) {
  client::QueryOptions query;
  if (!options.key.empty()) {
    query.partition_key = client::PartitionKey::from_json(
        options.key.starts_with('[') ? options.key : "[" + options.key + "]");
  }
  if (options.page_size > 0) {
    query.page_size = options.page_size;
  } else if (options.rows_max > 0 && options.rows_max <= kTableRowsMax) {
    query.page_size = static_cast<std::uint32_t>(options.rows_max);
  }
  query.explain = options.explain;
  query.populate_query_metrics = options.explain;
  return query;
}

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// Prints rows as they come. False when nobody reads them any more.
class RowPrinter {
 public:
  explicit RowPrinter(bool as_table)
      : as_table_(as_table), table_(as_table ? terminal_columns() : 0) {}

  bool print(std::span<const std::string_view> rows) {
    if (!as_table_) return put(json::lines(rows));
    for (const std::string_view row : rows) {
      table_.add(row);
      if (table_.rows() == kTableRowsMax && !put(table_.take())) return false;
    }
    return true;
  }
  bool finish() { return put(table_.take()); }

 private:
  static bool put(const std::string& text) {
    return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  }

  bool as_table_;
  QueryTable table_;
};

struct Summary {
  std::uint64_t rows = 0;
  double charge = 0;
  std::chrono::microseconds duration{0};
  bool has_more = false;

  std::string to_words() const {
    return fmt::format("{} · {:.2f} RU · {:.1f} ms{}", counted(rows, "row"), charge,
                       static_cast<double>(duration.count()) / 1000,
                       has_more ? " · more rows may follow" : "");
  }
};

int run(const QueryArguments& options, const client::Query& query) {
  const client::CosmosClient client = open_client(options.connection);
  const client::Container container = open_container(client, options.container);
  const bool as_table = options.table || (!options.json && ::isatty(STDOUT_FILENO) == 1);
  RowPrinter printer(as_table);
  QueryExplanation explanation;
  Summary summary;
  const std::uint64_t rows_max = options.rows_max == 0 ? UINT64_MAX : options.rows_max;
  auto pages = container.query_items(query, query_options(options));
  bool is_read = true;
  while (is_read && pages.has_more() && summary.rows < rows_max) {
    const client::ItemPage page = pages.next();
    const auto rows =
        page.items().first(std::min<std::uint64_t>(page.size(), rows_max - summary.rows));
    is_read = printer.print(rows);
    summary.rows += rows.size();
    summary.charge += page.request_charge;
    summary.duration += page.diagnostics.duration;
    summary.has_more = rows.size() < page.size() || pages.has_more();
    explanation.add_page(page.header("x-orrery-explain"),
                         page.header("x-ms-documentdb-query-metrics"), rows.size());
  }
  if (is_read) printer.finish();
  if (as_table) fmt::print(stderr, "{}\n", summary.to_words());
  if (options.explain) fmt::print(stderr, "{}", explanation.to_words());
  return 0;
}

int run_query(const QueryArguments& options) {
  std::string text;
  try {
    const client::Query query = read_query(options);
    text = query.text;
    return run(options, query);
  } catch (const client::CosmosException& exception) {
    if (exception.is_not_found()) {
      return complain(
          Error(ErrorCode::NotFound,
                fmt::format("there is no container {} on this server", options.container)));
    }
    const int status = complain(exception);
    if (exception.location()) {
      fmt::print(stderr, "{}", point_at(text, *exception.location()));
    }
    return status;
  }
}

}  // namespace

void add_query(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<QueryArguments>();
  auto* command = app.add_subcommand(
      "query", "Ask a container in SQL: rows as a table on a terminal, as JSON lines in a pipe");
  command->add_option("container", options->container, "DATABASE/CONTAINER")->required();
  command
      ->add_option(
          "query", options->text,
          "The text: \"SELECT c.id FROM c WHERE c.kind = @kind\"; - reads it from standard "
          "input")
      ->required();
  command
      ->add_option("--param", options->parameters,
                   "A parameter and its value as JSON: 'kind=\"moon\"', 'min=10'; may be repeated")
      ->type_name("NAME=JSON")
      ->allow_extra_args(false);
  command->add_option("--key", options->key,
                      "Only one partition key, as JSON: '\"eu-1\"', or '[\"tenant\",7]'");
  command->add_option("--max", options->rows_max, "No more rows than that (default: all)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--page-size", options->page_size,
                   "Rows that are asked for at once (default: the server decides)")
      ->check(CLI::Range(1U, static_cast<std::uint32_t>(INT32_MAX)));
  command->add_flag("--explain", options->explain,
                    "Also tell, on standard error, which index served, what was scanned, and what "
                    "index would help");
  auto* json = command->add_flag("--json", options->json, "JSON lines, also on a terminal");
  command->add_flag("--table", options->table, "A table, also in a pipe")->excludes(json);
  add_connection_options(*command, options->connection);
  command->callback([options, &exit_code] { exit_code = run_query(*options); });
}

}  // namespace orrery::cli
