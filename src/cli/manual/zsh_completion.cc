// A function for each command, with the words of _arguments; zsh does the rest.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/manual/completion.h"

namespace orrery::cli {
namespace {

constexpr const char* kZshHead = R"(#compdef orrery
# Completes the command line of orrery in zsh. Made by 'orrery completion zsh'.
)";

constexpr const char* kZshFoot = R"(
# The words of a command, which help and man take.
__orrery_names() {
  local place=orrery word
  for word in "${(@)words[2,CURRENT-1]}"; do
    [[ $word == -* ]] || place+=" $word"
  done
  __orrery_commands $place
}

# In a folder of $fpath the file is the body of the function; sourced, it registers itself.
if [[ $funcstack[1] == _orrery ]]; then
  _orrery "$@"
else
  compdef _orrery orrery
fi
)";

std::string zsh_function(const CommandTree& command) {
  std::string name = "_" + command.full_name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

/// Within the words of _arguments, where brackets and colons mean something.
std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\[]:").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// ":PATH:_files" for each value.
std::string zsh_values(const CommandOption& option, const std::string& separator) {
  const std::string action = option.kind == ValueKind::Words
                                 ? fmt::format("({})", fmt::join(option.words, " "))
                             : option.kind == ValueKind::Path     ? "_files"
                             : option.kind == ValueKind::Commands ? "__orrery_names"
                                                                  : " ";
  return fmt::format("{}{}:{}", separator,
                     zsh_escaped(separator.empty() ? option.names.front() : option.placeholder),
                     action);
}

std::string zsh_option(const CommandOption& option) {
  std::string values;
  for (std::size_t i = 0; i < option.value_count; ++i) values += zsh_values(option, ":");
  const std::string rest =
      in_quotes(fmt::format("[{}]{}", zsh_escaped(option_headline(option)), values));
  std::vector<std::string> names = option.names;
  // The value may also come after an equals sign, or right after a letter.
  if (option.kind != ValueKind::None) {
    for (std::string& name : names) name += name.starts_with("--") ? "=" : "+";
  }
  const std::string before = option.repeatable ? "\\*"
                             : option.names.size() > 1
                                 ? in_quotes(fmt::format("({})", fmt::join(option.names, " ")))
                                 : "";
  const std::string spelled =
      names.size() > 1 ? fmt::format("{{{}}}", fmt::join(names, ",")) : in_quotes(names.front());
  return before + spelled + rest;
}

std::string zsh_positional(const CommandOption& positional, std::size_t number) {
  const std::string place = positional.repeatable ? "*" : std::to_string(number);
  const std::string colons = positional.required || positional.repeatable ? ":" : "::";
  return in_quotes(place + colons + zsh_values(positional, ""));
}

std::string zsh_command(const CommandTree& command) {
  const bool has_commands = !command.commands.empty();
  std::vector<std::string> words;
  words.reserve(command.options.size());
  for (const CommandOption& option : command.options) words.push_back(zsh_option(option));
  for (std::size_t i = 0; i < command.positionals.size(); ++i) {
    words.push_back(zsh_positional(command.positionals[i], i + 1));
  }
  if (has_commands) {
    // The blank keeps _arguments from putting words of its own before the name.
    words.push_back(fmt::format("'1:command: __orrery_commands \"{}\"'", command.full_name));
    words.emplace_back("'*::argument:->rest'");
  }
  std::string text = fmt::format("\n{}() {{\n", zsh_function(command));
  if (has_commands) {
    text += "  local curcontext=$curcontext state line\n  local -A opt_args\n";
  }
  text += fmt::format("  _arguments {}\\\n    {}{}\n", has_commands ? "-C " : "",
                      fmt::join(words, " \\\n    "), has_commands ? " && return" : "");
  if (has_commands) {
    text += "  case $state:$line[1] in\n";
    for (const CommandTree& each : command.commands) {
      text += fmt::format("    (rest:{}) {} ;;\n", each.name, zsh_function(each));
    }
    text += "  esac\n";
  }
  return text + "}\n";
}

std::string zsh_command_lists(const CommandTree& tree) {
  std::string text =
      "\n# The commands below a command.\n__orrery_commands() {\n"
      "  local -a commands\n  case $1 in\n";
  for (const CommandTree* command : flattened(tree)) {
    if (command->commands.empty()) continue;
    text += fmt::format("    ({})\n      commands=(\n", in_quotes(command->full_name));
    for (const CommandTree& each : command->commands) {
      text += fmt::format("        {}\n", in_quotes(each.name + ":" + headline(each.description)));
    }
    text += "      )\n      ;;\n";
  }
  return text + "    (*) return 1 ;;\n  esac\n  _describe -t commands command commands\n}\n";
}

}  // namespace

std::string zsh_completion(const CommandTree& tree) {
  std::string text = kZshHead;
  for (const CommandTree* command : flattened(tree)) text += zsh_command(*command);
  return text + zsh_command_lists(tree) + kZshFoot;
}

}  // namespace orrery::cli
