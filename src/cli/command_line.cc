#include "cli/command_line.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>
#include <regex>
#include <span>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

namespace orrery::cli {
namespace {

/// How many letters to add, leave out, change or swap with their neighbour.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::vector<std::size_t>> table(from.size() + 1,
                                              std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) table[i][0] = i;
  for (std::size_t j = 0; j <= to.size(); ++j) table[0][j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool same = from[i - 1] == to[j - 1];
      table[i][j] = std::min(
          {table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[from.size()][to.size()];
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// "strict or relaxed"; "debug, info or off".
std::string alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::vector<std::string> names_of_commands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.get_subcommands(nullptr)) names.push_back(each->get_name());
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// "orrery leases status".
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string help_hint(const CLI::App& command) {
  const std::string name = full_name(command);
  const std::size_t space = name.find(' ');
  return space == std::string::npos ? fmt::format("'{} help' shows the commands", name)
                                    : fmt::format("'{} help {}' shows how it is used",
                                                  name.substr(0, space), name.substr(space + 1));
}

int wrong_usage(const CLI::App& command, const std::string& message) {
  fmt::print(stderr, "orrery: {}\n{}\n", message, help_hint(command));
  return kWrongUsage;
}

int unknown_command(const CLI::App& parent, const std::string& word) {
  const auto meant = nearest(word, names_of_commands(parent));
  return wrong_usage(parent, fmt::format("there is no command '{} {}'{}", full_name(parent), word,
                                         meant ? fmt::format("; did you mean '{}'?", *meant) : ""));
}

/// The command that words name, as far as they do.
struct Found {
  CLI::App* command;
  std::optional<std::string> unknown;  ///< a word in the place of a command that is none
};

Found find_command(CLI::App& app, std::span<const std::string> words) {
  Found found{&app, std::nullopt};
  for (const std::string& word : words) {
    if (found.command->get_subcommands(nullptr).empty() || word.starts_with('-')) break;
    const auto commands = found.command->get_subcommands(nullptr);
    const auto next =
        std::ranges::find(commands, word, [](CLI::App* each) { return each->get_name(); });
    if (next == commands.end()) {
      found.unknown = word;
      break;
    }
    found.command = *next;
  }
  return found;
}

int show_help(CLI::App& app, std::span<const std::string> words) {
  const Found found = find_command(app, words);
  if (found.unknown) return unknown_command(*found.command, *found.unknown);
  const CLI::App* parent = found.command->get_parent();
  std::fputs(found.command->help(parent == nullptr ? "" : full_name(*parent)).c_str(), stdout);
  return 0;
}

const CLI::App& chosen_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

int unexpected_argument(const CLI::App& command, const std::string& argument) {
  if (!argument.starts_with('-')) {
    return wrong_usage(command, fmt::format("'{}' is one argument too many", argument));
  }
  const std::string word = argument.substr(0, argument.find('='));
  const auto meant = nearest(word, names_of_options(command));
  return wrong_usage(command, fmt::format("there is no option {}{}", word,
                                          meant ? fmt::format("; did you mean {}?", *meant) : ""));
}

/// A message of CLI11 as a sentence about the option.
std::string reworded(const std::string& message) {
  static const std::vector<std::pair<std::regex, const char*>> kRewordings = {
      {std::regex("^(--[a-z-]+): must be "), "$1 must be "},
      {std::regex("^Could not convert: (--[a-z-]+) = (.*)$"), "$1 takes a number, not \"$2\""},
      {std::regex("^(--[a-z-]+): Value (.*) not in range (\\S+) to (\\S+)$"),
       "$1 must be from $3 to $4, not $2"},
      {std::regex("^(--[a-z-]+): Number less or equal to 0: (.*)$"),
       "$1 must be more than 0, not $2"},
      {std::regex("^(--[a-z-]+): \\d+ required .* missing$"), "$1 needs a value"},
  };
  for (const auto& [pattern, words] : kRewordings) {
    if (std::regex_search(message, pattern)) return std::regex_replace(message, pattern, words);
  }
  return message;
}

/// As CLI11's own, without the names of types.
class ReadableFormatter final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    // Of a flag that has an opposite, CLI11 shows also what that sets it to.
    static const std::regex kSets("\\{[^}]*\\}");
    return std::regex_replace(CLI::Formatter::make_option_name(option, is_positional), kSets, "");
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    static const std::vector<std::pair<std::regex, const char*>> kRewordings = {
        {std::regex("\\bU?INT:U?INT in \\[(\\S+) - (\\S+)\\]"), "$1..$2"},
        {std::regex("\\b(U?INT|FLOAT)(:POSITIVE)?\\b"), "NUMBER"},
    };
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string value = "=" + option->get_default_str();
    if (const std::size_t at = text.find(value); value.size() > 1 && at != std::string::npos) {
      const bool is_flag = option->get_expected_min() == 0;
      text.replace(at, value.size(), is_flag ? "" : " [" + option->get_default_str() + "]");
    }
    for (const auto& [pattern, words] : kRewordings)
      text = std::regex_replace(text, pattern, words);
    return text;
  }
};

}  // namespace

void use_readable_help(CLI::App& app) { app.formatter(std::make_shared<ReadableFormatter>()); }

std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& words) {
  std::optional<std::string> best;
  // Every third letter may be wrong, dashes in front not counted.
  const std::size_t letters = typed.size() - std::min(typed.find_first_not_of('-'), typed.size());
  std::size_t best_distance = std::max<std::size_t>(1, letters / 3) + 1;
  for (const std::string& word : words) {
    const std::size_t between = distance(typed, word);
    if (between >= best_distance) continue;
    best_distance = between;
    best = word;
  }
  return best;
}

CLI::Option* choose(CLI::Option* option, const std::vector<std::string>& words) {
  option->transform(CLI::Validator(
      [words](std::string& text) -> std::string {
        const auto found = std::ranges::find(words, lower(text));
        if (found == words.end()) {
          return fmt::format("must be {}, not \"{}\"", alternatives(words), text);
        }
        text = *found;
        return {};
      },
      ""));
  return option->type_name(fmt::format("{}", fmt::join(words, "|")));
}

int run_command_line(CLI::App& app, int argc, const char* const* argv, const int& exit_code) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) return show_help(app, {});
  if (words.front() == "help") return show_help(app, std::span(words).subspan(1));
  const Found found = find_command(app, words);
  if (found.unknown) return unknown_command(*found.command, *found.unknown);
  if (found.command == &app && app.get_option_no_throw(words.front()) == nullptr) {
    return unexpected_argument(app, words.front());
  }
  if (found.command->get_name() == words.back() &&
      !found.command->get_subcommands(nullptr).empty()) {
    return wrong_usage(
        *found.command,
        fmt::format("'{}' needs to be told what to do: {}", full_name(*found.command),
                    alternatives(names_of_commands(*found.command))));
  }
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::Success& wanted) {  // Help, or the version.
    return app.exit(wanted);
  } catch (const CLI::ExtrasError&) {
    return unexpected_argument(chosen_command(app), app.remaining(/*recurse=*/true).front());
  } catch (const CLI::ParseError& error) {
    return wrong_usage(chosen_command(app), reworded(error.what()));
  }
}

}  // namespace orrery::cli
