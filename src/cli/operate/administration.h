// Requests of operators to a running server, under /_orrery/.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "cli/connection.h"

namespace orrery::cli {

/// Sends a request without a body. `path` is without its first slash. Unavailable when the answer
/// is no JSON object; else as Connection::send.
Result<nlohmann::json> ask_server(Connection& connection, const char* method,
                                  const std::string& path);

/// Has the server begin the work at `path` and waits for its end. Returns the state then.
/// Unavailable when it failed, with the server's words.
Result<nlohmann::json> run_job(Connection& connection, const std::string& path);

}  // namespace orrery::cli
