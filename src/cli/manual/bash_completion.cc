// The script is a walk over the words before the cursor, and tables of what can follow them. It
// gets by without the package bash-completion, and with bash 3.2.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/manual/completion.h"

namespace orrery::cli {
namespace {

constexpr const char* kBashHead =
    R"(# Completes the command line of orrery in bash. Made by 'orrery completion bash'.
)";

constexpr const char* kBashWalk = R"(
_orrery() {
  local current=${COMP_WORDS[COMP_CWORD]} word i
  # The command whose options are in force; the one whose commands can follow, which is another one
  # after 'help'; the option whose values are awaited, and how many of them; the next positional.
  local command=orrery place=orrery option= left=0 positional=1
  local commands options count words files before= IFS=$' \t\n'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -*=* || $word == '=' && ${COMP_WORDS[i - 1]} == --* ]]; then
      continue
    elif [[ $word == [=:]* ]]; then
      # bash takes words apart at these: what follows is the rest of one, as in http://host:8081/.
      if ((left > 0)); then left=$((left - 1)); fi
      i=$((i + 1))
    elif ((left > 0)); then
      left=$((left - 1))
    elif [[ $word == -* ]]; then
      option=$word
      _orrery_value "$command $option"
      left=$count
    else
      _orrery_command "$place"
      if [[ " $commands " == *" $word "* ]]; then
        place="$place $word"
        _orrery_names_commands "$command" || command=$place
        if [[ $command == "$place" ]] && _orrery_names_commands "$command"; then place=orrery; fi
      else
        positional=$((positional + 1))
      fi
    fi
  done
  if [[ $current == '=' ]]; then current=; fi
  # Where bash was told to leave --option=value in one piece.
  if [[ $current == --*=* ]]; then
    option=${current%%=*} before=${current%%=*}= current=${current#*=} left=1
  fi
  if ((left > 0)); then
    _orrery_value "$command $option"
  elif [[ $current == -* ]]; then
    _orrery_command "$command"
    words=$options
  else
    _orrery_command "$place"
    words=$commands
    if [[ -z $words ]]; then _orrery_value "$command $positional"; fi
    # With nothing else to offer, options tell what there is.
    if [[ -z $words && -z $files ]]; then
      _orrery_command "$command"
      words=$options
    fi
  fi
  if [[ -n $files ]]; then
    # Left empty, the answer is up to readline, which knows of files.
    if [[ -z $before ]] && compopt -o default 2>/dev/null; then return; fi
    IFS=$'\n'
    COMPREPLY=($(compgen -f -P "$before" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$words" -P "$before" -- "$current"))
  fi
}

complete -F _orrery orrery
)";

/// Commands and options below each command.
std::string bash_commands(const CommandTree& tree) {
  std::string text =
      "\n# What can follow a command.\n_orrery_command() {\n"
      "  commands= options=\n  case $1 in\n";
  for (const CommandTree* command : flattened(tree)) {
    std::vector<std::string> names;
    names.reserve(command->commands.size());
    for (const CommandTree& each : command->commands) names.push_back(each.name);
    std::vector<std::string> options;
    for (const CommandOption& option : command->options) {
      for (const std::string& name : option.names) {
        if (name.starts_with("--")) options.push_back(name);
      }
    }
    text += fmt::format("    {})\n", in_quotes(command->full_name));
    if (!names.empty()) text += fmt::format("      commands='{}'\n", fmt::join(names, " "));
    text += fmt::format("      options='{}'\n      ;;\n", fmt::join(options, " "));
  }
  return text + "  esac\n}\n";
}

std::string bash_value(const std::string& owner, const CommandOption& option) {
  std::string found;
  if (option.value_count > 1) found += fmt::format(" count={}", option.value_count);
  if (option.kind == ValueKind::Words) {
    found += fmt::format(" words='{}'", fmt::join(option.words, " "));
  }
  if (option.kind == ValueKind::Path) found += " files=yes";
  return fmt::format("    {}){} ;;\n", owner, found);
}

/// Values of options, and of positionals by their number.
std::string bash_values(const CommandTree& tree) {
  std::string text =
      "\n# What an option takes, or a positional, which has a number.\n"
      "_orrery_value() {\n  count=1 words= files=\n  case $1 in\n";
  for (const CommandTree* command : flattened(tree)) {
    for (const CommandOption& option : command->options) {
      if (option.kind == ValueKind::None) continue;
      std::vector<std::string> owners;
      owners.reserve(option.names.size());
      for (const std::string& name : option.names) {
        owners.push_back(in_quotes(command->full_name + " " + name));
      }
      text += bash_value(fmt::format("{}", fmt::join(owners, " | ")), option);
    }
    std::size_t number = 0;
    for (const CommandOption& positional : command->positionals) {
      text += bash_value(in_quotes(fmt::format("{} {}", command->full_name, ++number)), positional);
    }
  }
  return text + "    *) count=0 ;;\n  esac\n}\n";
}

std::string bash_commands_as_values(const CommandTree& tree) {
  std::string text =
      "\n# Whether a command takes the words of commands.\n"
      "_orrery_names_commands() {\n  case $1 in\n";
  for (const CommandTree* command : flattened(tree)) {
    if (command->takes_commands())
      text += fmt::format("    {}) ;;\n", in_quotes(command->full_name));
  }
  return text + "    *) return 1 ;;\n  esac\n}\n";
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string bash_completion(const CommandTree& tree) {
  return kBashHead + bash_commands(tree) + bash_values(tree) + bash_commands_as_values(tree) +
         kBashWalk;
}

}  // namespace orrery::cli
