// run_until_signal: a host for as long as its program shall run.
#include <chrono>
#include <csignal>
#include <functional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "orrery/processor.h"

namespace orrery::processor {
namespace {

constexpr std::chrono::milliseconds kAskInterval{200};

/// Asks `done` until it says so.
void ask(boost::asio::steady_timer& timer, const std::function<bool()>& done,
         boost::asio::io_context& context) {
  timer.expires_after(kAskInterval);
  timer.async_wait([&](const boost::system::error_code& error) {
    if (error) return;
    done() ? context.stop() : ask(timer, done, context);
  });
}

template <typename Observers>
int run(ChangeFeedProcessorHost& host, Observers observers, const std::function<bool()>& done) {
  int received = 0;
  {
    boost::asio::io_context context{1};
    // Before the host starts: a signal that comes meanwhile stops it as soon as it has.
    boost::asio::signal_set signals(context, SIGINT, SIGTERM);
    signals.async_wait([&](const boost::system::error_code& error, int signal) {
      if (!error) received = signal;
      context.stop();
    });
    host.start(std::move(observers));
    boost::asio::steady_timer timer(context);
    if (done) ask(timer, done, context);
    context.run();
  }
  host.stop();
  return received;
}

}  // namespace

int run_until_signal(ChangeFeedProcessorHost& host, ObserverFactory factory,
                     const std::function<bool()>& done) {
  return run(host, std::move(factory), done);
}

int run_until_signal(ChangeFeedProcessorHost& host, Handler handler,
                     const std::function<bool()>& done) {
  return run(host, std::move(handler), done);
}

}  // namespace orrery::processor
