#include "cli/operate/administration.h"

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace orrery::cli {
namespace {

/// Between two looks at work that is going on.
constexpr std::chrono::milliseconds kLookInterval{100};

}  // namespace

Result<nlohmann::json> ask_server(Connection& connection, const char* method,
                                  const std::string& path) {
  client::Request request;
  request.method = method;
  request.path = "/" + path;
  ORRERY_TRY(const auto reply, connection.send(std::move(request), "orrery", path));
  auto answer = nlohmann::json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object()) return answer;
  return Error(ErrorCode::Unavailable,
               fmt::format("the server's answer to {} /{} is no JSON object", method, path));
}

Result<nlohmann::json> run_job(Connection& connection, const std::string& path) {
  ORRERY_TRY(auto answer, ask_server(connection, "POST", path));
  const auto run = answer.value("run", std::uint64_t{0});
  while (answer.value("state", "") == "running") {
    std::this_thread::sleep_for(kLookInterval);
    ORRERY_TRY(answer, ask_server(connection, "GET", path));
    if (answer.value("run", std::uint64_t{0}) != run) {
      return Error(ErrorCode::Unavailable,
                   "the server was restarted meanwhile, or was asked for another one");
    }
  }
  if (answer.value("state", "") == "done") return answer;
  return Error(ErrorCode::Unavailable, answer.value("failure", "it came to nothing"));
}

}  // namespace orrery::cli
