// The command line as a whole: finds the command, shows help, and says what is wrong with what was
// typed. Exit statuses are the same for all commands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace orrery::cli {

/// Nothing came of it. 0 is success.
inline constexpr int kFailure = 1;
/// The command line or the configuration makes no sense; nothing was tried.
inline constexpr int kWrongUsage = 2;

/// Has help say what options take in words: 0..256, strict|relaxed. Before commands are added.
void use_readable_help(CLI::App& app);

/// Parses the arguments and runs the command; `exit_code` is what the command sets. Returns the
/// exit status.
int run_command_line(CLI::App& app, int argc, const char* const* argv, const int& exit_code);

/// Makes an option take one of these words, in any case; `--help` shows them.
CLI::Option* choose(CLI::Option* option, const std::vector<std::string>& words);

/// The word that was probably meant; nullopt when none is near.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& words);

}  // namespace orrery::cli
