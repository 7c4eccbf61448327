// Running a server in this process until somebody asks for its end.
#pragma once

#include "server/config.h"

namespace orrery::cli {

/// Prints where the server listens, and serves until SIGINT, SIGTERM or the end of the terminal;
/// SIGHUP has it read keys and certificate again. Returns the exit status. Call it before there are
/// other threads.
int run_server(const server::Config& config);

}  // namespace orrery::cli
