// A line for each thing that can be offered, with the condition under which it is. Conditions walk
// over the words before the cursor; fish remembers what each came to.
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/manual/completion.h"

namespace orrery::cli {
namespace {

constexpr const char* kFishHead =
    R"(# Completes the command line of orrery in fish. Made by 'orrery completion fish'.
)";

constexpr const char* kFishWalk = R"(
# Three lines about the words before the cursor: the command whose options are in force; the one
# whose commands can follow, which is another one after 'help'; the number of the next positional.
function __orrery_walk
    set -l command orrery
    set -l place orrery
    set -l positional 1
    set -l left 0
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if test $left -gt 0
            set left (math $left - 1)
        else if string match -q -- '-*=*' $word
            continue
        else if string match -q -- '-*' $word
            set left (__orrery_value_count "$command $word")
        else if __orrery_is_command "$place $word"
            set place "$place $word"
            if not __orrery_names_commands $command
                set command $place
                if __orrery_names_commands $command
                    set place orrery
                end
            end
        else
            set positional (math $positional + 1)
        end
    end
    printf '%s\n' $command $place $positional
end

function __orrery_in --argument-names command
    set -l at (__orrery_walk)
    test "$at[1]" = "$command"
end

function __orrery_below --argument-names command
    set -l at (__orrery_walk)
    test "$at[2]" = "$command"
end

function __orrery_at_positional --argument-names command number
    set -l at (__orrery_walk)
    test "$at[1] $at[3]" = "$command $number"
end

complete -c orrery -e
complete -c orrery -f
)";

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

/// In double quotes, in a text that fish takes apart when it completes.
std::string fish_quoted_twice(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '$') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// The words of an option, each with what is told of it behind a tab.
std::string fish_words(const CommandOption& option) {
  std::string text;
  for (const std::string& word : option.words) {
    if (!text.empty()) text += ' ';
    text += word;
    const std::string_view told = told_of_word(option, word);
    if (!told.empty()) text += "\\t" + fish_quoted_twice(told);
  }
  return fish_quoted(text);
}

/// A function that succeeds for these names of commands.
std::string fish_test(std::string_view function, const std::vector<std::string>& names) {
  return fmt::format("\nfunction {} --argument-names name\n    contains -- $name {}\nend\n",
                     function, fmt::join(names, " "));
}

std::string fish_functions(const CommandTree& tree) {
  std::vector<std::string> all;
  std::vector<std::string> naming;
  std::map<std::size_t, std::vector<std::string>> options_of_count;
  for (const CommandTree* command : flattened(tree)) {
    all.push_back(fish_quoted(command->full_name));
    if (command->takes_commands()) naming.push_back(all.back());
    for (const CommandOption& option : command->options) {
      for (const std::string& name : option.names) {
        if (option.kind == ValueKind::None) continue;
        options_of_count[option.value_count].push_back(
            fish_quoted(command->full_name + " " + name));
      }
    }
  }
  std::string text = fish_test("__orrery_is_command", all) +
                     fish_test("__orrery_names_commands", naming) +
                     "\nfunction __orrery_value_count --argument-names option\n"
                     "    switch $option\n";
  for (const auto& [count, options] : options_of_count) {
    text += fmt::format("        case {}\n            echo {}\n", fmt::join(options, " "), count);
  }
  return text + "        case '*'\n            echo 0\n    end\nend\n";
}

/// `arguments` is what `condition` is called with.
std::string fish_line(std::string_view condition, const std::string& arguments,
                      const std::string& what) {
  return fmt::format("complete -c orrery -n {} {}\n",
                     fish_quoted(fmt::format("{} {}", condition, arguments)), what);
}

std::string fish_option(const CommandTree& command, const CommandOption& option) {
  std::string what;
  for (const std::string& name : option.names) {
    what += name.starts_with("--") ? fmt::format("-l {} ", name.substr(2))
                                   : fmt::format("-s {} ", name.substr(1));
  }
  if (option.kind == ValueKind::Words) {
    what += fmt::format("-x -a {} ", fish_words(option));
  } else if (option.kind == ValueKind::Path) {
    what += "-r -F ";
  } else if (option.kind != ValueKind::None) {
    what += "-x ";
  }
  what += "-d " + fish_quoted(option_headline(option));
  return fish_line("__orrery_in", fmt::format("\"{}\"", command.full_name), what);
}

std::string fish_positional(const CommandTree& command, const CommandOption& positional,
                            std::size_t number) {
  const std::string place = fmt::format("\"{}\" {}", command.full_name, number);
  if (positional.kind == ValueKind::Path) return fish_line("__orrery_at_positional", place, "-F");
  if (positional.kind != ValueKind::Words) return {};
  return fish_line("__orrery_at_positional", place, "-a " + fish_words(positional));
}

}  // namespace

std::string fish_completion(const CommandTree& tree) {
  std::string text = kFishHead + fish_functions(tree) + kFishWalk;
  for (const CommandTree* command : flattened(tree)) {
    text += fmt::format("\n# {}\n", command->full_name);
    for (const CommandTree& each : command->commands) {
      text +=
          fish_line("__orrery_below", fmt::format("\"{}\"", command->full_name),
                    fmt::format("-a {} -d {}", each.name, fish_quoted(headline(each.description))));
    }
    for (const CommandOption& option : command->options) text += fish_option(*command, option);
    for (std::size_t i = 0; i < command->positionals.size(); ++i) {
      text += fish_positional(*command, command->positionals[i], i + 1);
    }
  }
  return text;
}

}  // namespace orrery::cli
