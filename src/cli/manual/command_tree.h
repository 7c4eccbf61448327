// The commands of the binary and their options, as CLI11 has them: what man pages and completion
// scripts are made from, so that they say what --help says.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace orrery::cli {

/// Completions of a value.
enum class ValueKind {
  None,      ///< a flag: takes no value
  Words,     ///< one of `words`
  Path,      ///< a file or directory
  Commands,  ///< the words of a command of this binary
  Text,      ///< anything else, numbers too
};

/// An option, or a positional argument.
struct CommandOption {
  std::vector<std::string> names;  ///< "-h", "--help"; of a positional its one name, as in help
  std::string description;
  std::string group;
  ValueKind kind = ValueKind::None;
  std::string placeholder;         ///< what help shows for a value: PATH, NUMBER, 0..256
  std::vector<std::string> words;  ///< of ValueKind::Words
  std::size_t value_count = 0;     ///< values that follow it at the least
  std::string default_value;
  std::string variable;  ///< the environment variable that it can come from
  bool required = false;
  bool repeatable = false;
  std::vector<std::string> needs;     ///< names of options, in order
  std::vector<std::string> excludes;  ///< names of options, in order
};

/// A command with everything below it. Hidden commands and options are not in it.
struct CommandTree {
  static CommandTree of(const CLI::App& app);

  /// The command that words name, from here on; nullptr when there is none.
  const CommandTree* find(std::span<const std::string> path) const;
  /// The first positional that can be followed by the words of a command, as of `help`.
  bool takes_commands() const;

  std::string name;
  std::string full_name;  ///< "orrery backup create"
  std::string description;
  std::string footer;  ///< its own, not one inherited from the command above
  std::vector<CommandOption> positionals;
  std::vector<CommandOption> options;
  std::vector<CommandTree> commands;
};

/// This command and all below it, each before its own.
std::vector<const CommandTree*> flattened(const CommandTree& tree);

/// The first clause of a description, on one line, for a list.
std::string headline(std::string_view description);

/// The clause of the description about one of the words: "faster" of relaxed in "strict: safer;
/// relaxed: faster". Empty when it has nothing of the kind.
std::string_view told_of_word(const CommandOption& option, std::string_view word);

/// The headline of an option, or all that is told of its words: the first clause is of one only.
std::string option_headline(const CommandOption& option);

}  // namespace orrery::cli
