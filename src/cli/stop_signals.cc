#include "cli/stop_signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <utility>

#include "base/assert.h"

namespace orrery::cli {
namespace {

/// Added to the number of a signal, as shells do, when it ended us.
constexpr int kEndedBySignal = 128;

}  // namespace

sigset_t block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // A signal that is blocked is not thrown away although it is ignored: it would be waited for.
  struct sigaction hang_up{};
  if (::sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN) {
    sigaddset(&signals, SIGHUP);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

StopSignals::StopSignals(std::function<void()> last_will)
    : last_will_(std::move(last_will)), done_(::eventfd(0, EFD_CLOEXEC)) {
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = block_stop_signals();
  const int descriptor = ::signalfd(-1, &signals, SFD_CLOEXEC);
  ORRERY_ASSERT(done_ >= 0 && descriptor >= 0);
  thread_ = std::thread([this, descriptor] { watch(descriptor); });
}

StopSignals::~StopSignals() {
  const std::uint64_t one = 1;
  (void)!::write(done_, &one, sizeof one);
  thread_.join();
  ::close(done_);
}

void StopSignals::watch(int signals) {
  while (true) {
    std::array<pollfd, 2> waits = {pollfd{signals, POLLIN, 0}, pollfd{done_, POLLIN, 0}};
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[1].revents != 0) break;
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) != sizeof info) continue;
    if (stop_.stop_requested()) {
      if (last_will_) last_will_();
      ::_exit(kEndedBySignal + static_cast<int>(info.ssi_signo));
    }
    stop_.request_stop();
  }
  ::close(signals);
}

}  // namespace orrery::cli
