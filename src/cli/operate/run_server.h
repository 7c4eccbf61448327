// Running a server in this process until somebody asks for its end.
#pragma once

#include <string_view>

#include "server/config.h"

namespace orrery::cli {

/// Prints where the server listens, and serves until SIGINT, SIGTERM or the end of the terminal;
/// SIGHUP has it read keys and certificate again. `words` are printed once it listens, behind
/// where. Returns the exit status. Call it before there are other threads.
int run_server(const server::Config& config, std::string_view words = "");

}  // namespace orrery::cli
