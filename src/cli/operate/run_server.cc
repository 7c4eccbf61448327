#include "cli/operate/run_server.h"

#include <chrono>
#include <cstdio>

#include "base/diagnostics.h"
#include "cli/connection.h"
#include "cli/operate/serve_signals.h"
#include "cli/operate/service_notify.h"
#include "server/server.h"

namespace orrery::cli {
namespace {

/// How long a stopping server lets requests finish.
constexpr std::chrono::seconds kStopGrace{10};

}  // namespace

int run_server(const server::Config& config, std::string_view words) {
  diagnostics::set_level(config.level);
  // Before there are threads, so that all of them leave these signals to the wait below.
  const ServeSignals signals;

  auto server = server::Server::open(config);
  if (!server) {
    // A configuration that makes no sense is wrong usage; a disk or a port that refuses is not.
    return server.error().code() == ErrorCode::BadRequest ? complain_of_usage(server.error())
                                                          : complain(server.error());
  }
  std::fputs((*server)->introduction().c_str(), stdout);
  std::fwrite(words.data(), 1, words.size(), stdout);
  std::fflush(stdout);
  notify_service_manager("READY=1");

  while (signals.wait() == ServeSignals::Wish::Reload) {
    if (const auto reloaded = (*server)->reload(); !reloaded) {
      diagnostics::error("keys and certificate stay as they were: {}", reloaded.error().message());
    }
  }
  notify_service_manager("STOPPING=1");
  diagnostics::info("stopping: finishing what is running");
  (*server)->stop(kStopGrace);
  server->reset();
  diagnostics::info("stopped");
  return 0;
}

}  // namespace orrery::cli
