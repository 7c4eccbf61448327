// The man page of a command, section 1.
#pragma once

#include <string>

#include "cli/manual/command_tree.h"

namespace orrery::cli {

/// "orrery-backup-create": what man calls the page of a command.
std::string page_name(const CommandTree& command);

/// The page in roff. The same for every build of a version: it has no date. `parent` is the command
/// above, or nullptr.
std::string man_page(const CommandTree& command, const CommandTree* parent);

}  // namespace orrery::cli
