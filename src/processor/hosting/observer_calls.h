// Calls into code of the user: on threads of an Executor, awaited on the host's own.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "orrery/processor.h"
#include "processor/hosting/runtime.h"

namespace orrery::processor {

/// The way from other threads back to the host. Outlives it, for calls that never end.
class HostLink {
 public:
  explicit HostLink(Runtime& runtime) : runtime_(&runtime) {}
  /// Whether there is still somebody to run it. From any thread.
  bool post(std::move_only_function<void()> task);
  /// From now on nobody.
  void close();

 private:
  std::mutex mutex_;  // Guards what follows.
  Runtime* runtime_;
};

/// The result of a call.
struct CallResult {
  Outcome outcome;
  std::optional<std::string> error;  ///< what it threw, in words
  std::chrono::microseconds duration{0};
};

/// For the host's thread.
class ObserverCalls {
 public:
  ObserverCalls(Runtime& runtime, Executor executor)
      : runtime_(runtime),
        executor_(std::move(executor)),
        link_(std::make_shared<HostLink>(runtime)) {}
  ~ObserverCalls() { link_->close(); }
  ObserverCalls(const ObserverCalls&) = delete;
  ObserverCalls& operator=(const ObserverCalls&) = delete;

  using Work = std::function<Outcome()>;

  /// Runs `work` where observers are called, and resumes when it has returned. Whatever it uses
  /// must belong to it: a host that stops may leave it behind. If it lasts longer than `time_max`,
  /// `overdue` is called meanwhile, once.
  asio::awaitable<CallResult> run(Work work, std::optional<std::chrono::milliseconds> time_max,
                                  std::function<void()> overdue);
  asio::awaitable<CallResult> run(Work work) { return run(std::move(work), std::nullopt, nullptr); }

 private:
  Runtime& runtime_;
  Executor executor_;
  std::shared_ptr<HostLink> link_;  // Shared with calls that are under way.
};

/// The host's own threads: as many as there are calls at once. They are kept for the next ones.
class ObserverThreads {
 public:
  ObserverThreads();
  /// Waits for those calls that end before `deadline` of stop(), or else for none.
  ~ObserverThreads();
  void run(std::function<void()> work);
  /// Waits until no call runs, or the time is over: then what still runs is left to itself.
  void stop(std::chrono::milliseconds time_max);

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with the threads, which may outlive this.
};

}  // namespace orrery::processor
