#include "cli/operate/serve_signals.h"

#include <pthread.h>

namespace orrery::cli {

ServeSignals::ServeSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
  struct sigaction hang_up{};
  survives_terminal_ = ::sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler == SIG_IGN;
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

ServeSignals::Wish ServeSignals::wait() const {
  while (true) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals_, &info);
    if (signal < 0) continue;
    if (signal != SIGHUP) return Wish::Stop;
    // Of a terminal that is gone the kernel tells; everybody else means a reload.
    if (info.si_code != SI_KERNEL) return Wish::Reload;
    if (!survives_terminal_) return Wish::Stop;
  }
}

}  // namespace orrery::cli
