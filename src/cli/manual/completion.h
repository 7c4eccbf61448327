// Completion scripts: commands, long options, and what options take.
#pragma once

#include <string>
#include <string_view>

#include "cli/manual/command_tree.h"

namespace orrery::cli {

std::string bash_completion(const CommandTree& tree);
std::string zsh_completion(const CommandTree& tree);
std::string fish_completion(const CommandTree& tree);

/// In single quotes, for bash and zsh.
std::string in_quotes(std::string_view text);

}  // namespace orrery::cli
