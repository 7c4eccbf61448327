#include "cli/manual/command_tree.h"

#include <algorithm>
#include <memory>
#include <regex>
#include <set>

#include <CLI/CLI.hpp>

namespace orrery::cli {
namespace {

constexpr std::string_view kAnyCommand = "COMMAND";
constexpr std::string_view kBoolean = "BOOLEAN";
constexpr std::string_view kBetweenClauses = "; ";

/// The words of "strict|relaxed", as `choose` sets it; none of "0|8..1048576" or "TEXT".
std::vector<std::string> fixed_words(const std::string& type_name) {
  static const std::regex kWords("[a-z][a-z0-9-]*(\\|[a-z][a-z0-9-]*)+");
  if (type_name == kBoolean) return {"true", "false"};
  if (!std::regex_match(type_name, kWords)) return {};
  return CLI::detail::split(type_name, '|');
}

/// Types rarely say that a text is a path, but names and descriptions do. A mistake costs little:
/// the shell offers files, or offers none.
bool names_path(const CLI::Option& option, const std::string& type_name) {
  static const std::regex kType("(FILE|DIR|PATH).*");
  static const std::regex kName("(.*-)?(file|dir|path)");
  static const std::regex kDescription("(^|[^-\\w])(file|directory|certificate|PEM)\\b",
                                       std::regex::icase);
  if (std::regex_match(type_name, kType)) return true;
  if (type_name != "TEXT") return false;
  return std::ranges::any_of(option.get_lnames(),
                             [](const auto& name) { return std::regex_match(name, kName); }) ||
         std::regex_search(option.get_description(), kDescription);
}

/// Help shows a value as one word, before its default and all else.
std::string placeholder_of(const CLI::App& command, const CLI::Option& option) {
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(command.get_formatter());
  std::string shown = formatter ? formatter->make_option_opts(&option) : option.get_type_name();
  CLI::detail::trim(shown);
  return shown.substr(0, shown.find_first_of(" ="));
}

void describe_value(const CLI::App& command, const CLI::Option& option, CommandOption& result) {
  if (option.get_items_expected_max() == 0) return;
  const std::string type_name = option.get_type_name();
  result.placeholder = placeholder_of(command, option);
  result.default_value = option.get_default_str();
  result.value_count = static_cast<std::size_t>(std::max(option.get_items_expected_min(), 1));
  result.repeatable = option.get_expected_max() == CLI::detail::expected_max_vector_size ||
                      option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  result.words = fixed_words(type_name);
  if (!result.words.empty()) {
    result.kind = ValueKind::Words;
  } else if (type_name == kAnyCommand) {
    result.kind = ValueKind::Commands;
  } else if (names_path(option, type_name)) {
    result.kind = ValueKind::Path;
    if (result.placeholder == "TEXT") result.placeholder = "PATH";
  } else {
    result.kind = ValueKind::Text;
  }
}

/// CLI11 has sets of pointers, whose order is another one in every run.
std::vector<std::string> sorted_names(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) {
    if (!option->get_group().empty()) names.push_back(option->get_name());
  }
  std::ranges::sort(names);
  return names;
}

CommandOption option_of(const CLI::App& command, const CLI::Option& option) {
  CommandOption result;
  if (option.get_positional()) {
    result.names.push_back(option.get_name(/*positional=*/true));
  } else {
    for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  }
  result.description = option.get_description();
  result.group = option.get_group();
  result.variable = option.get_envname();
  result.required = option.get_required();
  result.needs = sorted_names(option.get_needs());
  result.excludes = sorted_names(option.get_excludes());
  describe_value(command, option, result);
  return result;
}

/// `help` is answered before CLI11 sees the arguments (command_line.cc), which therefore knows of
/// none.
CommandOption argument_of_help() {
  CommandOption result;
  result.names = {"command"};
  result.description = "Which one (default: all of them)";
  result.kind = ValueKind::Commands;
  result.placeholder = kAnyCommand;
  result.value_count = 1;
  result.repeatable = true;
  return result;
}

CommandTree branch_of(const CLI::App& command, const std::string& above) {
  CommandTree tree;
  tree.name = command.get_name();
  tree.full_name = above.empty() ? tree.name : above + " " + tree.name;
  tree.description = command.get_description();
  const CLI::App* parent = command.get_parent();
  if (parent == nullptr || parent->get_footer() != command.get_footer()) {
    tree.footer = command.get_footer();
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? tree.positionals : tree.options)
        .push_back(option_of(command, *option));
  }
  if (tree.full_name == "orrery help") tree.positionals.push_back(argument_of_help());
  for (const CLI::App* each : command.get_subcommands(nullptr)) {
    const bool hidden = each->get_group().empty() || each->get_name().empty();
    if (!hidden && !each->get_disabled()) tree.commands.push_back(branch_of(*each, tree.full_name));
  }
  return tree;
}

void flatten(const CommandTree& tree, std::vector<const CommandTree*>& all) {
  all.push_back(&tree);
  for (const CommandTree& each : tree.commands) flatten(each, all);
}

}  // namespace

CommandTree CommandTree::of(const CLI::App& app) { return branch_of(app, ""); }

const CommandTree* CommandTree::find(std::span<const std::string> path) const {
  if (path.empty()) return this;
  const auto next = std::ranges::find(commands, path.front(), &CommandTree::name);
  return next == commands.end() ? nullptr : next->find(path.subspan(1));
}

bool CommandTree::takes_commands() const {
  return !positionals.empty() && positionals.front().kind == ValueKind::Commands;
}

std::vector<const CommandTree*> flattened(const CommandTree& tree) {
  std::vector<const CommandTree*> all;
  flatten(tree, all);
  return all;
}

std::string headline(std::string_view description) {
  std::string line(description.substr(0, description.find("\n\n")));
  std::ranges::replace(line, '\n', ' ');
  line.resize(std::min({line.size(), line.find(". "), line.find(kBetweenClauses)}));
  if (line.ends_with('.')) line.pop_back();
  return line;
}

std::string_view told_of_word(const CommandOption& option, std::string_view word) {
  std::string_view rest = option.description;
  while (!rest.empty()) {
    std::string_view clause = rest.substr(0, rest.find(kBetweenClauses));
    rest.remove_prefix(std::min(rest.size(), clause.size() + kBetweenClauses.size()));
    if (!clause.starts_with(word)) continue;
    clause.remove_prefix(word.size());
    if (clause.starts_with(": ")) return clause.substr(2);
  }
  return {};
}

std::string option_headline(const CommandOption& option) {
  const bool tells_of_words = std::ranges::any_of(
      option.words, [&](const auto& word) { return !told_of_word(option, word).empty(); });
  return tells_of_words ? option.description : headline(option.description);
}

}  // namespace orrery::cli
