#include "processor/hosting/dispatcher.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "orrery/exception.h"

namespace orrery::processor {

Documents pick(const Documents& page, std::span<const std::size_t> indices) {
  /// Keeps the page, and with it the text, alive.
  struct Keeper {
    Documents page;
    std::string nothing;
  };
  auto keeper = std::make_shared<const Keeper>(Keeper{page, {}});
  std::vector<std::string_view> items;
  items.reserve(indices.size());
  for (const std::size_t index : indices) items.push_back(page[index]);
  return Documents(page, std::shared_ptr<const std::string>(keeper, &keeper->nothing),
                   std::move(items), page.continuation);
}

// ── what observers are told ──────────────────────────────────────────────────────────────────────

class Dispatcher::Context final : public ObserverContext {
 public:
  Context(LeaseScope scope, std::string from, std::string to, std::stop_token stop,
          std::shared_ptr<const std::atomic<bool>> lease_over)
      : scope_(std::move(scope)),
        from_(std::move(from)),
        to_(std::move(to)),
        stop_(std::move(stop)),
        lease_over_(std::move(lease_over)) {}

  const std::string& lease_token() const override { return scope_.token; }
  const std::string& partition_key_range_id() const override { return scope_.range_id; }
  std::uint64_t epoch() const override { return scope_.epoch; }
  const std::string& from() const override { return from_; }
  const std::string& to() const override { return to_; }
  std::stop_token stop() const override { return stop_; }
  /// Only notes the request. If the position were written here, an outcome that rejects a change,
  /// or wants it again, would come too late: the position would have passed that change.
  void checkpoint() override {
    if (*lease_over_) {
      client::CosmosException::Details details;
      details.status = 412;
      throw client::CosmosException("the lease is not of this host any more", std::move(details));
    }
    checkpoint_requested_ = true;
  }

  /// For the host's thread, after the call.
  bool checkpoint_requested() const { return checkpoint_requested_; }

 private:
  LeaseScope scope_;
  std::string from_, to_;
  std::stop_token stop_;
  std::shared_ptr<const std::atomic<bool>> lease_over_;  // Shared with the owner of the lease.
  bool checkpoint_requested_ = false;
};

/// Some documents of a batch that are handed over together.
struct Dispatcher::SubBatch {
  std::vector<std::size_t> indices;
  int attempts = 0;  ///< that have failed
};

Dispatcher::Dispatcher(Setup setup) : setup_(std::move(setup)) {}

std::shared_ptr<Dispatcher::Context> Dispatcher::context(std::string from, std::string to) const {
  return std::make_shared<Context>(setup_.scope, std::move(from), std::move(to),
                                   setup_.stop.token(), setup_.lease_over);
}

void Dispatcher::report(Severity severity, std::string message) const {
  setup_.report({severity, "ProcessChanges", setup_.scope.token, std::move(message)});
}

// ── opening and closing ──────────────────────────────────────────────────────────────────────────

asio::awaitable<std::optional<std::string>> Dispatcher::open(std::string position) {
  auto observer = setup_.observer;
  auto told = context(position, position);
  CallResult result = co_await setup_.calls.run([observer, told] {
    observer->open(*told);
    return Outcome::done();
  });
  co_return std::move(result.error);
}

asio::awaitable<bool> Dispatcher::idle(std::string position) {
  auto observer = setup_.observer;
  auto told = context(position, position);
  const CallResult result = co_await setup_.calls.run([observer, told] {
    observer->idle(*told);
    return Outcome::done();
  });
  if (result.error) report(Severity::Error, "the observer threw in idle(): " + *result.error);
  co_return !result.error && told->checkpoint_requested();
}

asio::awaitable<void> Dispatcher::close(std::string position, CloseReason reason) {
  auto observer = std::move(setup_.observer);
  auto told = context(position, position);
  const CallResult result =
      co_await setup_.calls.run([observer = std::move(observer), told, reason] {
        observer->close(*told, reason);
        return Outcome::done();
      });
  if (result.error) report(Severity::Error, "the observer threw in close(): " + *result.error);
}

// ── a batch ──────────────────────────────────────────────────────────────────────────────────────

namespace {

/// Whether some documents of the call need not come again.
bool got_something_done(const CallResult& result) {
  if (result.error) return false;
  switch (result.outcome.kind) {
    case Outcome::Kind::Done:
    case Outcome::Kind::Reject:
      return true;
    case Outcome::Kind::DoneUntil:
      return result.outcome.count > 0;
    case Outcome::Kind::Retry:
    case Outcome::Kind::Stop:
      return false;
  }
  return false;
}

}  // namespace

asio::awaitable<Verdict> Dispatcher::process(Batch batch) {
  SubBatch all;
  all.indices.resize(batch.documents.size());
  std::iota(all.indices.begin(), all.indices.end(), std::size_t{0});
  std::vector<SubBatch> todo;  // The next one is the last.
  todo.push_back(std::move(all));
  // By the last call that got something done: an observer that does not ask after a part may hold
  // it in memory, and one that fails is asked again or has its documents put aside.
  bool checkpoint_requested = false;
  while (!todo.empty()) {
    if (setup_.stop.requested()) co_return Verdict{Verdict::Kind::Interrupted, {}};
    SubBatch part = std::move(todo.back());
    todo.pop_back();
    if (auto verdict = co_await put_parked_aside(batch, part)) co_return *std::move(verdict);
    if (part.indices.empty()) continue;
    Called called = co_await call(batch, part);
    if (got_something_done(called.result)) checkpoint_requested = called.checkpoint_requested;
    auto verdict = co_await settle(batch, std::move(part), std::move(called.result), todo);
    setup_.publish(counters_);
    if (verdict) {
      // An observer that stops says by a checkpoint that it is through with the batch.
      verdict->checkpoint_requested =
          verdict->kind == Verdict::Kind::Stop && called.checkpoint_requested && todo.empty();
      co_return *std::move(verdict);
    }
  }
  co_return Verdict{Verdict::Kind::Done, {}, checkpoint_requested};
}

asio::awaitable<Dispatcher::Called> Dispatcher::call(const Batch& batch, const SubBatch& part) {
  const bool whole = part.indices.size() == batch.documents.size();
  Documents documents = whole ? batch.documents : pick(batch.documents, part.indices);
  const std::size_t count = documents.size();
  auto observer = setup_.observer;
  auto told = context(batch.from, batch.to);
  CallResult result = co_await setup_.calls.run(
      [observer, told, documents = std::move(documents)] {
        return observer->process(*told, documents);
      },
      setup_.batch_deadline,
      [this] {
        report(Severity::Error,
               fmt::format("a batch has lasted longer than {} ms", setup_.batch_deadline->count()));
        setup_.overdue();
      });
  ++counters_.batches;
  counters_.handler_time += result.duration;
  if (!result.error) counters_.documents += count;
  co_return Called{std::move(result), told->checkpoint_requested()};
}

asio::awaitable<std::optional<Verdict>> Dispatcher::settle(const Batch& batch, SubBatch part,
                                                           CallResult result,
                                                           std::vector<SubBatch>& todo) {
  if (result.error) {
    report(Severity::Error, "the observer threw: " + *result.error);
    if (setup_.retry.max_attempts == 0) {
      co_return Verdict{Verdict::Kind::ObserverError, *std::move(result.error)};
    }
    co_return co_await failed(batch, std::move(part), *std::move(result.error),
                              std::chrono::milliseconds(0), todo);
  }
  Outcome& outcome = result.outcome;
  switch (outcome.kind) {
    case Outcome::Kind::Done:
      co_return std::nullopt;
    case Outcome::Kind::DoneUntil:
      if (outcome.count >= part.indices.size()) co_return std::nullopt;
      if (outcome.count == 0) {
        co_return co_await failed(batch, std::move(part), "nothing of the batch was done",
                                  std::chrono::milliseconds(0), todo);
      }
      part.indices.erase(part.indices.begin(),
                         part.indices.begin() + static_cast<std::ptrdiff_t>(outcome.count));
      part.attempts = 0;
      todo.push_back(std::move(part));
      co_return std::nullopt;
    case Outcome::Kind::Retry:
      co_return co_await failed(batch, std::move(part), std::move(outcome.reason), outcome.after,
                                todo);
    case Outcome::Kind::Reject: {
      std::vector<std::size_t> rejected;
      for (const std::size_t index : outcome.rejected) {
        if (index < part.indices.size()) rejected.push_back(part.indices[index]);
      }
      co_return co_await put_aside(batch, std::move(rejected), part.attempts + 1,
                                   std::move(outcome.reason));
    }
    case Outcome::Kind::Stop:
      co_return Verdict{Verdict::Kind::Stop, std::move(outcome.reason)};
  }
  co_return std::nullopt;
}

asio::awaitable<std::optional<Verdict>> Dispatcher::failed(const Batch& batch, SubBatch part,
                                                           std::string error,
                                                           std::chrono::milliseconds wait_min,
                                                           std::vector<SubBatch>& todo) {
  ++part.attempts;
  ++counters_.retries;
  const RetryPolicy& retry = setup_.retry;
  if (retry.max_attempts > 0 && retry.bisect) {
    // Where a new transaction begins, nearest to the middle.
    std::size_t cut = 0;
    const std::size_t middle = part.indices.size() / 2;
    for (std::size_t i = 1; i < part.indices.size(); ++i) {
      const auto before = setup_.reader->lsn_of(batch.documents[part.indices[i - 1]]);
      const auto after = setup_.reader->lsn_of(batch.documents[part.indices[i]]);
      if (before && before == after) continue;
      const auto distance = [middle](std::size_t at) {
        return at < middle ? middle - at : at - middle;
      };
      if (cut == 0 || distance(i) < distance(cut)) cut = i;
    }
    if (cut > 0) {
      const auto begin = part.indices.begin() + static_cast<std::ptrdiff_t>(cut);
      todo.push_back({{begin, part.indices.end()}, 0});
      part.indices.erase(begin, part.indices.end());
      todo.push_back({std::move(part.indices), 0});
      if (wait_min.count() > 0) co_await setup_.stop.pause_for(wait_min);
      co_return std::nullopt;
    }
  }
  if (retry.max_attempts > 0 && part.attempts >= retry.max_attempts) {
    switch (retry.then) {
      case RetryPolicy::Then::DeadLetter:
        co_return co_await put_aside(batch, std::move(part.indices), part.attempts,
                                     std::move(error));
      case RetryPolicy::Then::HaltRange:
        co_return Verdict{Verdict::Kind::HaltRange, std::move(error)};
      case RetryPolicy::Then::HaltGroup:
        co_return Verdict{Verdict::Kind::HaltGroup, std::move(error)};
    }
  }
  const auto wait = std::max(wait_min, back_off(part.attempts));
  todo.push_back(std::move(part));
  co_await setup_.stop.pause_for(wait);
  co_return std::nullopt;
}

asio::awaitable<std::optional<Verdict>> Dispatcher::put_aside(const Batch& batch,
                                                              std::vector<std::size_t> indices,
                                                              int attempts, std::string error) {
  if (indices.empty()) co_return std::nullopt;
  if (!setup_.keep_dead_letter) {
    co_return Verdict{Verdict::Kind::ObserverError,
                      "documents were rejected, but there is no place for dead letters: " + error};
  }
  std::vector<DeadLetter> letters;
  for (const std::size_t index : indices) {
    const std::string_view document = batch.documents[index];
    letters.push_back({std::string(document), setup_.scope.token, batch.from, attempts, error,
                       setup_.host, setup_.runtime.wall_now()});
    if (setup_.retry.park_key) parked_keys_.insert(setup_.reader->key_of(document));
  }
  const std::size_t count = letters.size();
  const CallResult kept =
      co_await setup_.calls.run([keep = setup_.keep_dead_letter, letters = std::move(letters)] {
        for (const DeadLetter& letter : letters) keep(letter);
        return Outcome::done();
      });
  if (kept.error) {
    // A dead letter that can't be stored must not be skipped: the batch comes again.
    report(Severity::Critical, "a dead letter could not be kept: " + *kept.error);
    co_return Verdict{Verdict::Kind::ObserverError, *kept.error};
  }
  counters_.dead_letters += count;
  report(Severity::Error,
         fmt::format("{} documents were put aside after {} attempts: {}", count, attempts, error));
  co_return std::nullopt;
}

asio::awaitable<std::optional<Verdict>> Dispatcher::put_parked_aside(const Batch& batch,
                                                                     SubBatch& part) {
  if (parked_keys_.empty()) co_return std::nullopt;
  std::vector<std::size_t> parked;
  std::erase_if(part.indices, [&](std::size_t index) {
    const bool follows = parked_keys_.contains(setup_.reader->key_of(batch.documents[index]));
    if (follows) parked.push_back(index);
    return follows;
  });
  co_return co_await put_aside(batch, std::move(parked), 0,
                               "an earlier change of its key was put aside");
}

std::chrono::milliseconds Dispatcher::back_off(int attempts) {
  const RetryPolicy& retry = setup_.retry;
  const int doublings = std::min(attempts - 1, 20);
  const auto wait = std::min(retry.first_wait * (1 << doublings), retry.wait_max);
  // Between half of it and all of it, so that hosts that failed together do not come back together.
  const auto half = wait / 2;
  return half + std::chrono::milliseconds(setup_.runtime.random() %
                                          static_cast<std::uint64_t>((wait - half).count() + 1));
}

}  // namespace orrery::processor
