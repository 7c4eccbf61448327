// Shared by the tests of leases: a runtime whose time stands still until everything waits, a store
// that can be interfered with, and a container that is made up.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "processor/hosting/feed_reader.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/lease_area.h"
#include "processor/leases/lease_manager.h"
#include "processor/leases/memory_lease_store.h"

namespace orrery::processor {

/// One thread, the test's. Time moves to the next deadline when nothing else is left to do.
class TestRuntime final : public Runtime {
 public:
  asio::any_io_executor executor() override { return context_.get_executor(); }
  MonotonicTime now() const override { return MonotonicTime(elapsed_); }
  WallTime wall_now() const override {
    return WallTime(std::chrono::seconds(1'700'000'000)) + elapsed_;
  }
  std::uint64_t random() override { return ++drawn_; }
  void post(std::move_only_function<void()> task) override {
    asio::post(context_, std::move(task));
  }
  WaitId wait(MonotonicTime deadline, WaitHandler handler) override {
    waits_.emplace(++last_id_, std::pair(deadline, std::move(handler)));
    return last_id_;
  }
  void notify(WaitId id) override {
    auto node = waits_.extract(id);
    if (node.empty()) return;
    asio::post(context_, [handler = std::move(node.mapped().second)]() mutable { handler(true); });
  }

  void advance(std::chrono::milliseconds by) { elapsed_ += by; }
  std::chrono::milliseconds elapsed() const { return elapsed_; }

  /// Begins `task`; run_until() lets it go on.
  template <typename T>
  std::shared_ptr<std::optional<Result<T>>> begin(Async<T> task) {
    auto outcome = std::make_shared<std::optional<Result<T>>>();
    asio::co_spawn(context_, std::move(task),
                   [outcome](const std::exception_ptr& failure, Result<T> result) {
                     if (failure) std::rethrow_exception(failure);
                     *outcome = std::move(result);
                   });
    return outcome;
  }
  void run_until(const std::function<bool()>& done) {
    while (!done()) {
      context_.restart();
      if (context_.poll_one() > 0) continue;
      const auto next =
          std::ranges::min_element(waits_, {}, [](const auto& each) { return each.second.first; });
      if (next == waits_.end() || next->second.first == MonotonicTime::max()) {
        // Somebody else's thread is at work, as in a store of files.
        context_.run_one_for(std::chrono::seconds(10));
        continue;
      }
      auto node = waits_.extract(next);
      elapsed_ = std::max(elapsed_, std::chrono::duration_cast<std::chrono::milliseconds>(
                                        node.mapped().first.time_since_epoch()));
      node.mapped().second(false);
    }
  }
  template <typename T>
  Result<T> run(Async<T> task) {
    auto outcome = begin(std::move(task));
    run_until([&] { return outcome->has_value(); });
    return std::move(**outcome);
  }

 private:
  asio::io_context context_{1};
  std::chrono::milliseconds elapsed_{1'000};
  std::uint64_t drawn_ = 0;
  WaitId last_id_ = 0;
  std::map<WaitId, std::pair<MonotonicTime, WaitHandler>> waits_;
};

/// The wall clock of a runtime.
class RuntimeClock final : public Clock {
 public:
  explicit RuntimeClock(const Runtime& runtime) : runtime_(runtime) {}
  WallTime now() const override { return runtime_.wall_now(); }

 private:
  const Runtime& runtime_;
};

/// A store in memory that tells what is asked of it, before it is done. An Error is the answer
/// then.
class TestStore final : public AsyncLeaseStore {
 public:
  /// "create P..0", "replace P..0", …
  using Before = std::function<std::optional<Error>(const std::string& call)>;

  explicit TestStore(const Runtime& runtime) : clock_(runtime) {}
  void set_before(Before before) { before_ = std::move(before); }
  MemoryLeaseStore& memory() { return memory_; }
  const std::vector<std::string>& calls() const { return calls_; }
  std::size_t count(const std::string& call) const {
    return static_cast<std::size_t>(std::ranges::count(calls_, call));
  }

  Async<std::vector<StoredDocument>> list(std::string prefix) override {
    if (auto failure = called("list " + prefix)) co_return *failure;
    // Others get a turn meanwhile, as with a store that is somewhere else.
    co_await asio::post(asio::use_awaitable);
    co_return co_await memory_.list(std::move(prefix));
  }
  Async<StoredDocument> read(std::string id) override {
    if (auto failure = called("read " + id)) co_return *failure;
    co_await asio::post(asio::use_awaitable);
    co_return co_await memory_.read(std::move(id));
  }
  Async<StoredDocument> create(std::string id, std::string text) override {
    if (auto failure = called("create " + id)) co_return *failure;
    co_return co_await memory_.create(std::move(id), std::move(text));
  }
  Async<StoredDocument> replace(std::string id, std::string text, std::string etag) override {
    if (auto failure = called("replace " + id)) co_return *failure;
    co_await asio::post(asio::use_awaitable);
    co_return co_await memory_.replace(std::move(id), std::move(text), std::move(etag));
  }
  Async<> remove(std::string id, std::string etag) override {
    if (auto failure = called("remove " + id)) co_return *failure;
    co_return co_await memory_.remove(std::move(id), std::move(etag));
  }

 private:
  std::optional<Error> called(std::string call) {
    calls_.push_back(call);
    return before_ ? before_(call) : std::nullopt;
  }

  RuntimeClock clock_;
  MemoryLeaseStore memory_{clock_};
  Before before_;
  std::vector<std::string> calls_;
};

/// A container whose ranges and answers a test makes up.
class TestFeed final : public FeedReader {
 public:
  Ranges current{{"0", {"", "FF"}, {}}};
  std::string etag = "\"40\"";
  std::function<std::optional<FeedAnswer>(const FeedRequest&)> answer;
  std::optional<PendingChanges> left;
  std::function<void()> before_ranges;
  std::vector<FeedRequest> requests;

  asio::awaitable<FeedAnswer> read(FeedRequest request) override {
    requests.push_back(request);
    if (answer) {
      if (auto made_up = answer(request)) co_return *made_up;
    }
    FeedAnswer answered;
    answered.etag = etag;
    co_return answered;
  }
  Async<Ranges> ranges() override {
    if (before_ranges) before_ranges();
    co_return current;
  }
  Async<std::optional<PendingChanges>> pending(FeedRequest request) override {
    requests.push_back(std::move(request));
    co_return left;
  }
  Async<Identity> identity() override {
    co_return Identity{"localhost", "qYcAAA==", "qYcAAPEvJBQ=", "sky", "stars"};
  }
};

/// A page with these documents.
inline FeedAnswer page_of(std::vector<std::string> documents, std::string etag,
                          std::string session_token = {}) {
  auto text = std::make_shared<std::string>();
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (const std::string& document : documents) {
    places.emplace_back(text->size(), document.size());
    *text += document;
  }
  std::vector<std::string_view> items;
  for (const auto& [offset, size] : places) {
    items.push_back(std::string_view(*text).substr(offset, size));
  }
  FeedAnswer answer;
  answer.kind = FeedAnswer::Kind::Page;
  answer.page = client::ItemPage({}, text, std::move(items), {});
  answer.etag = std::move(etag);
  answer.session_token = std::move(session_token);
  return answer;
}

inline FeedAnswer answer_of(FeedAnswer::Kind kind, int status = 0) {
  FeedAnswer answer;
  answer.kind = kind;
  answer.status = status;
  answer.message = "made up";
  return answer;
}

inline LeaseIds test_ids() { return LeaseIds::make("p.", "localhost", "qYcAAA==", "qYcAAPEvJBQ="); }

/// A runtime, a store, a container, and a manager.
class LeasesTest : public ::testing::Test {
 protected:
  TestRuntime runtime;
  TestStore store{runtime};
  TestFeed feed;
  LeaseIds ids = test_ids();
  LeaseManager manager{store, ids, "host-1", runtime};

  template <typename T>
  Result<T> run(Async<T> task) {
    return runtime.run(std::move(task));
  }
  template <typename T>
  T get(Async<T> task) {
    auto result = runtime.run(std::move(task));
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message());
    return result ? std::move(*result) : T{};
  }
  ErrorCode code_of(const Error& error) const { return error.code(); }

  /// Puts a document there as another library might have.
  StoredDocument put(const std::string& id, const std::string& text) {
    auto there = runtime.run(store.memory().read(id));
    return there ? get(store.memory().replace(id, text, there->etag))
                 : get(store.memory().create(id, text));
  }
  /// A new lease, put there.
  Lease put_lease(const std::string& token, std::optional<client::FeedRange> range,
                  std::optional<std::string> position, const std::string& owner = {},
                  LeaseFormat format = LeaseFormat::Net3,
                  const std::map<std::string, std::string>& properties = {}) {
    auto lease = new_lease(ids, format, token, std::move(range), std::move(position),
                           client::ChangeFeedMode::LatestVersion, "qYcAAPEvJBQ=");
    EXPECT_TRUE(lease.has_value());
    lease->owner = owner;
    lease->properties = properties;
    return *parse_lease(put(lease->id, write_lease(*lease)));
  }
  Lease lease_at(const std::string& token) {
    return *parse_lease(get(store.memory().read(ids.lease(token))));
  }
  bool exists(const std::string& id) { return runtime.run(store.memory().read(id)).has_value(); }
  std::vector<std::string> tokens() {
    std::vector<std::string> found;
    for (const auto& document : get(store.memory().list(ids.lease_prefix()))) {
      found.push_back(parse_lease(document)->token);
    }
    return found;
  }
  /// The text of the document `P..token`.
  std::string text_at(const std::string& token) {
    return get(store.memory().read(ids.lease(token))).text;
  }
};

}  // namespace orrery::processor
