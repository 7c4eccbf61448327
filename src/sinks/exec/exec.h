// Sinks that are commands: one process per batch, or one that stays.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sinks/exec/child_process.h"
#include "sinks/sink.h"

namespace orrery::sinks {

struct ExecOptions {
  std::string command;                      ///< for /bin/sh -c
  std::chrono::milliseconds batch_time{0};  ///< 0: no bound
  std::chrono::milliseconds grace{10'000};  ///< when the lease or the host ends
  std::shared_ptr<ProcessGroups> groups;    ///< shared by all sinks of the process
  /// Gets whole lines of the command's standard output that are no reply.
  std::function<void(std::string_view lines)> print;
};

/// Runs the command once per batch, with JSON lines on its standard input. Exit code 0 is done, 75
/// is later, all others are failures; a reply as its last line says more.
class ExecSink final : public BatchSink {
 public:
  explicit ExecSink(ExecOptions options) : options_(std::move(options)) {}
  Delivery deliver(processor::ObserverContext& context, Changes changes) override;

 private:
  ExecOptions options_;
};

/// Keeps the command running: each batch is a line, and so is each answer. One that has died is
/// started again with the next batch.
class ExecStreamSink final : public BatchSink {
 public:
  explicit ExecStreamSink(ExecOptions options) : options_(std::move(options)) {}
  Delivery deliver(processor::ObserverContext& context, Changes changes) override;
  void close() override;

 private:
  std::unique_ptr<ChildProcess> take_idle();
  void put_back(std::unique_ptr<ChildProcess> child);

  ExecOptions options_;
  std::mutex mutex_;  // Guards what follows.
  // With lanes there are as many as batches at once.
  std::vector<std::unique_ptr<ChildProcess>> idle_;
};

/// Splits output that comes in chunks. All lines but the last are passed on at once, since only the
/// last may be a reply.
class LastLine {
 public:
  explicit LastLine(std::function<void(std::string_view lines)> pass_on)
      : pass_on_(std::move(pass_on)) {}
  void add(std::string_view chunk);
  std::string_view text() const { return held_; }
  /// The last line was no reply either.
  void pass_on_rest();

 private:
  std::function<void(std::string_view)> pass_on_;
  std::string held_;
};

}  // namespace orrery::sinks
