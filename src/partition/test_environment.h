// For tests: what partitions stand on, with a commit log that can be held up and made to fail.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/async.h"
#include "base/clock.h"
#include "base/diagnostics.h"
#include "base/result.h"
#include "base/test_wait.h"
#include "commitlog/commit_log.h"
#include "partition/committer.h"
#include "partition/partition.h"
#include "partition/writer/transaction.h"
#include "storage/batch.h"
#include "storage/store.h"
#include "storage/test_store.h"

namespace orrery::partition {

using test::eventually;
using test::kPatience;

/// Commits to a store as the local commit log does, but fails when it is told to.
class FaultyCommitLog final : public commitlog::CommitLog {
 public:
  enum class Fault {
    BeforeWriting,  ///< nothing of it is there
    AfterWriting,   ///< all of it is there, though the caller was told that it failed
  };

  explicit FaultyCommitLog(storage::Store& store) : store_(store) {
    // Failures are what these tests are about; a line for each would hide those that matter.
    diagnostics::set_level(diagnostics::Level::Off);
  }

  Result<> append(std::span<const storage::Batch* const> batches) override {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    --waiting_;
    if (failed_) return Error(ErrorCode::Unavailable, "an earlier append failed");
    const bool faulty = fault_ && spared_-- == 0;
    if (faulty && *fault_ == Fault::BeforeWriting) return fail();
    if (auto stored = store_.commit(batches); !stored) return stored;
    if (faulty) return fail();
    groups_.push_back(batches.size());
    return {};
  }

  Result<> recover() override {
    std::unique_lock lock(mutex_);
    ++recoveries_tried_;
    if (!recoverable_) return Error(ErrorCode::Unavailable, "the disk still refuses");
    failed_ = false;
    return {};
  }

  /// The next append fails, and so do all others until recovery, which succeeds if `recoverable`.
  /// Or the one after the next `spared` ones.
  void fail_next(Fault fault, bool recoverable = true, int spared = 0) {
    std::lock_guard lock(mutex_);
    fault_ = fault;
    recoverable_ = recoverable;
    spared_ = spared;
  }
  void make_recoverable() {
    std::lock_guard lock(mutex_);
    recoverable_ = true;
  }
  /// Appends wait until release().
  void hold() {
    std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    {
      std::lock_guard lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  /// Waits until an append is held up.
  void wait_for_append() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [this] { return waiting_ > 0; });
  }

  /// How many batches each successful append had.
  std::vector<std::size_t> groups() const {
    std::lock_guard lock(mutex_);
    return groups_;
  }
  std::size_t recoveries_tried() const {
    std::lock_guard lock(mutex_);
    return recoveries_tried_;
  }

 private:
  Error fail() {
    fault_.reset();
    failed_ = true;
    return Error(ErrorCode::Unavailable, "the disk is broken");
  }

  storage::Store& store_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Fault> fault_;
  int spared_ = 0;
  bool failed_ = false;
  bool recoverable_ = true;
  bool held_ = false;
  int waiting_ = 0;
  std::vector<std::size_t> groups_;
  std::size_t recoveries_tried_ = 0;
};

/// A store in a temporary directory, and all that works on it. Close what stands on it first.
class TestEnvironment {
 public:
  explicit TestEnvironment(
      CommitterLimits limits = {.recovery_interval = std::chrono::milliseconds(5)})
      : limits_(limits) {
    open();
  }
  ~TestEnvironment() { close(); }

  /// The committer is not started, so that on_recovered can be set.
  void open() {
    store_ = storage::open_store(directory_.path());
    log_.emplace(*store_);
    committer_.emplace(*log_, limits_);
    writers_.emplace(2);
    environment_.reset(new Environment{*store_, *committer_, *writers_, clock()});
  }
  void close() {
    if (!store_) return;
    log_->release();
    writers_->join();
    committer_->stop();
    environment_.reset();
    writers_.reset();
    committer_.reset();
    log_.reset();
    store_.reset();
  }

  storage::Store& store() { return *store_; }
  FaultyCommitLog& log() { return *log_; }
  Committer& committer() { return *committer_; }
  Environment& environment() { return *environment_; }
  const Clock& clock() const { return other_clock_ != nullptr ? *other_clock_ : clock_; }
  void advance(std::chrono::seconds by) { clock_.advance(by); }
  /// Used from the next open() on; must outlive the environment.
  void use_clock(const Clock& other) { other_clock_ = &other; }

  /// Waits until writes are accepted again.
  bool recovered() {
    return eventually([this] { return committer_->accepts(); });
  }

 private:
  storage::TemporaryDirectory directory_;
  ManualClock clock_{1'743'508'800};
  const Clock* other_clock_ = nullptr;
  const CommitterLimits limits_;
  std::unique_ptr<storage::Store> store_;
  std::optional<FaultyCommitLog> log_;
  std::optional<Committer> committer_;
  std::optional<asio::thread_pool> writers_;
  std::unique_ptr<Environment> environment_;
};

/// An event loop on threads of its own, for tests of what is asynchronous.
class TestLoop {
 public:
  explicit TestLoop(int threads = 1) : context_(kept()), work_(context_.get_executor()) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { context_.run(); });
  }
  ~TestLoop() { stop(); }
  /// Waits for what is under way. A thread may still be handing work to the writers of an
  /// environment though the outcome of that is known: stop it before the environment closes.
  void stop() {
    work_.reset();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  asio::io_context& context() { return context_; }
  /// With one thread: returns once all that was started before has come as far as it can by itself.
  void settle() {
    std::promise<void> reached;
    asio::post(context_, [&reached] { reached.set_value(); });
    reached.get_future().wait();
  }

  /// Starts a transaction; the future has its outcome.
  std::future<Result<Committed>> submit(std::shared_ptr<Partition> partition,
                                        Transaction transaction) {
    auto outcome = std::make_shared<std::promise<Result<Committed>>>();
    auto future = outcome->get_future();
    Partition& writer = *partition;
    asio::co_spawn(context_, writer.submit(std::move(transaction)),
                   [outcome, partition = std::move(partition)](std::exception_ptr thrown,
                                                               Result<Committed> result) {
                     if (thrown) {
                       outcome->set_exception(thrown);
                     } else {
                       outcome->set_value(std::move(result));
                     }
                   });
    return future;
  }

 private:
  /// The thread that posted the last outcome may still be on its way out of post() when the test
  /// that waited for it is over: contexts are kept until the program ends.
  static asio::io_context& kept() {
    static std::deque<asio::io_context> contexts;
    return contexts.emplace_back();
  }

  asio::io_context& context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::thread> threads_;
};

// ── documents ────────────────────────────────────────────────────────────────────────────────────

/// Documents of these tests hold their unique values as text: {"id":"a","u":"<first>|<second>|"…
inline std::vector<std::string> unique_values_in(std::string_view text) {
  std::vector<std::string> values;
  const auto at = text.find(R"("u":")");
  if (at == std::string_view::npos) return values;
  text.remove_prefix(at + 5);
  text = text.substr(0, text.find('"'));
  while (!text.empty()) {
    const auto bar = text.find('|');
    values.emplace_back(text.substr(0, bar));
    text.remove_prefix(bar + 1);
  }
  return values;
}

/// Keys of different names never begin one another, as EPKs and canonical keys don't.
inline storage::DocumentKey key_of(std::string_view partition_key, std::string_view id) {
  storage::DocumentKey key;
  key.epk = "epk-";
  key.epk.append(partition_key).push_back('\x01');
  key.partition_key.append(partition_key).push_back('\x02');
  key.id = id;
  return key;
}

/// A write as a test describes it; the rest follows.
struct WriteOf {
  Write::Kind kind = Write::Kind::Create;
  std::string id;
  std::string partition_key = "p";
  std::string new_id = {};  ///< empty: the same
  std::string if_match = {};
  std::int32_t ttl = storage::kTtlAbsent;
  std::vector<std::string> unique = {};
  std::optional<DocumentNumber> number = {};
  std::size_t padding = 0;  ///< more text; a Patch adds it to what is there
  std::string if_none_match = {};
  std::string members = {};  ///< more of them, as JSON text

  Write make() const {
    Write write;
    write.kind = kind;
    write.key = key_of(partition_key, id);
    write.number = number;
    write.if_match = if_match;
    write.if_none_match = if_none_match;
    if (kind == Write::Kind::Delete || kind == Write::Kind::Read) return write;
    if (kind == Write::Kind::Patch) {
      write.change = [base = *this](std::string_view text) -> Result<NewVersion> {
        WriteOf after = base;
        const auto before = text.find(R"("p":"x)");
        const auto end = text.find('"', before == std::string_view::npos ? 0 : before + 5);
        if (before != std::string_view::npos) after.padding += end - (before + 5);
        if (after.unique.empty()) after.unique = unique_values_in(text);
        return after.version();
      };
      return write;
    }
    write.version = version();
    return write;
  }

  NewVersion version() const {
    NewVersion made;
    made.new_id = new_id.empty() ? id : new_id;
    made.open_text = R"({"id":")" + made.new_id + "\"";
    if (!unique.empty()) {
      made.open_text += R"(,"u":")";
      for (const auto& value : unique) made.open_text += value + "|";
      made.open_text += "\"";
    }
    if (!members.empty()) made.open_text += "," + members;
    if (padding > 0) made.open_text += R"(,"p":")" + std::string(padding, 'x') + "\"";
    made.own_ttl = ttl;
    made.indexed_leaves = 1;
    made.unique_values = unique;
    return made;
  }
};

inline Transaction transaction_of(std::vector<WriteOf> writes, Rules rules = {}) {
  DocumentWrites made;
  for (const auto& write : writes) made.writes.push_back(write.make());
  return {.rules = std::move(rules), .work = std::move(made)};
}

/// Of a transaction that has some.
inline DocumentWrites& writes_of(Transaction& transaction) {
  return std::get<DocumentWrites>(transaction.work);
}

inline Rules rules_with_unique_keys(std::optional<std::int32_t> default_ttl = {}) {
  Rules rules;
  rules.default_ttl = default_ttl;
  rules.unique_values_of = std::make_shared<const UniqueValuesOf>(unique_values_in);
  return rules;
}

}  // namespace orrery::partition
