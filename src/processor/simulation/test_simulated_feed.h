// A monitored container in a simulated world: ranges that split and merge, and a feed of each.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "processor/hosting/feed_reader.h"
#include "processor/leases/lease.h"
#include "processor/simulation/test_simulation.h"

namespace orrery::processor::simulation {

/// One change. All of them stay visible: each is a document of its own.
struct Change {
  int key = 0;
  int version = 0;  ///< 1, 2, 3… within the key
  std::uint64_t lsn = 0;
  std::string hash;  ///< of the key

  std::string text() const {
    return fmt::format(R"({{"id":"{0}-{1}","key":"k{0}","k":{0},"v":{1},"_lsn":{2}}})", key,
                       version, lsn);
  }
};

class FeedServer {
 public:
  struct Range {
    std::string id;
    client::FeedRange bounds;
    std::vector<std::string> parents;
    std::uint64_t head = 0;
    std::vector<Change> log;
  };

  explicit FeedServer(int ranges) {
    std::string min;
    for (int i = 0; i < ranges; ++i) {
      const std::string max = i + 1 == ranges ? "FF" : hash_at((i + 1) * 0xFF00 / ranges);
      ranges_.push_back({std::to_string(next_id_++), {min, max}, {}, 0, {}});
      areas_[ranges_.back().id] = ranges_.back().bounds;
      min = max;
    }
  }

  static std::string hash_at(int point) { return fmt::format("{:04X}", point); }
  static std::string hash_of(int key) {
    return hash_at(static_cast<int>((static_cast<unsigned>(key) * 2654435761u >> 12) % 0xFF00));
  }

  /// One transaction: so many changes of one key.
  void write(int key, int count) {
    const std::string hash = hash_of(key);
    Range& range = *std::ranges::find_if(ranges_, [&](const Range& each) {
      return each.bounds.min <= hash && hash < each.bounds.max;
    });
    const std::uint64_t lsn = ++range.head;
    for (int i = 0; i < count; ++i) {
      const Change change{key, ++versions_[key], lsn, hash};
      range.log.push_back(change);
      changes_.push_back(change);
    }
    wake_waiting();
  }

  bool split(std::size_t which) {
    Range parent = ranges_[which % ranges_.size()];
    const int min = parent.bounds.min.empty() ? 0 : std::stoi(parent.bounds.min, nullptr, 16);
    const int max = parent.bounds.max == "FF" ? 0xFF00 : std::stoi(parent.bounds.max, nullptr, 16);
    if (max - min < 4) return false;
    const std::string middle = hash_at((min + max) / 2);
    std::vector<Range> children;
    for (const client::FeedRange& bounds : {client::FeedRange{parent.bounds.min, middle},
                                            client::FeedRange{middle, parent.bounds.max}}) {
      Range child{std::to_string(next_id_++), bounds, parent.parents, parent.head + 1, {}};
      child.parents.push_back(parent.id);
      for (const Change& change : parent.log) {
        if (bounds.min <= change.hash && change.hash < bounds.max) child.log.push_back(change);
      }
      areas_[child.id] = bounds;
      children.push_back(std::move(child));
    }
    replace({parent.id}, std::move(children));
    return true;
  }

  bool merge(std::size_t which) {
    if (ranges_.size() < 2) return false;
    const std::size_t first = which % (ranges_.size() - 1);
    const Range& a = ranges_[first];
    const Range& b = ranges_[first + 1];
    Range merged{std::to_string(next_id_++),
                 {a.bounds.min, b.bounds.max},
                 a.parents,
                 std::max(a.head, b.head) + 1,
                 a.log};
    merged.parents.insert(merged.parents.end(), b.parents.begin(), b.parents.end());
    merged.parents.push_back(a.id);
    merged.parents.push_back(b.id);
    merged.log.insert(merged.log.end(), b.log.begin(), b.log.end());
    std::ranges::sort(merged.log, {}, [](const Change& change) {
      return std::tuple(change.lsn, change.key, change.version);
    });
    areas_[merged.id] = merged.bounds;
    replace({a.id, b.id}, {std::move(merged)});
    return true;
  }

  const std::vector<Range>& ranges() const { return ranges_; }
  const std::vector<Change>& changes() const { return changes_; }
  /// The area of a lease, also when its range is gone.
  client::FeedRange area_of(const std::string& token) const {
    const auto known = areas_.find(token);
    if (known != areas_.end()) return known->second;
    const std::size_t dash = token.find('-');
    return {token.substr(0, dash), token.substr(dash + 1)};
  }

  /// nullopt: nothing new; asked again when something happens.
  std::optional<FeedAnswer> answer(const FeedRequest& request, bool must) const {
    if (intercept) {
      if (auto instead = intercept(request)) return instead;
    }
    FeedAnswer answer;
    const auto range = std::ranges::find(ranges_, request.range_id, &Range::id);
    if (range == ranges_.end()) {
      answer.kind = FeedAnswer::Kind::Gone;
      answer.status = 410;
      return answer;
    }
    std::uint64_t after = 0;
    if (request.after == "*") {
      after = range->head;
    } else if (!request.after.empty()) {
      after = position_lsn(request.after).value_or(0);
    }
    const client::FeedRange slice = request.slice.value_or(range->bounds);
    auto text = std::make_shared<std::string>();
    std::vector<std::size_t> ends;
    std::uint64_t last = after;
    const std::size_t page_size = request.page_size.value_or(7);
    for (const Change& change : range->log) {
      if (change.lsn <= after || change.hash < slice.min || slice.max <= change.hash) continue;
      if (ends.size() >= page_size && change.lsn != last) break;
      *text += change.text();
      ends.push_back(text->size());
      last = change.lsn;
    }
    if (ends.empty()) {
      if (!must) return std::nullopt;
      answer.kind = FeedAnswer::Kind::NotModified;
      answer.etag = etag(std::max(after, range->head));
      return answer;
    }
    std::vector<std::string_view> items;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      items.push_back(std::string_view(*text).substr(begin, end - begin));
      begin = end;
    }
    answer.kind = FeedAnswer::Kind::Page;
    answer.etag = etag(last);
    answer.page = client::ItemPage({}, text, std::move(items), answer.etag);
    return answer;
  }

  /// Calls `what` when something happens next.
  void when_changed(std::function<void()> what) { waiting_.push_back(std::move(what)); }

  bool long_poll = false;
  /// Nobody answers, and waiting requests are cut off.
  void set_down(bool down) {
    down_ = down;
    wake_waiting();
  }
  bool down() const { return down_; }
  /// Requests that get no answer as long as this holds.
  std::function<bool(const FeedRequest&)> hangs;
  /// Makes another answer, for some requests.
  std::function<std::optional<FeedAnswer>(const FeedRequest&)> intercept;

 private:
  static std::string etag(std::uint64_t lsn) { return fmt::format("\"{}\"", lsn); }
  void replace(const std::vector<std::string>& old, std::vector<Range> fresh) {
    auto at = std::ranges::find(ranges_, old.front(), &Range::id);
    at = ranges_.erase(at, at + static_cast<std::ptrdiff_t>(old.size()));
    ranges_.insert(at, std::make_move_iterator(fresh.begin()),
                   std::make_move_iterator(fresh.end()));
    wake_waiting();
  }
  void wake_waiting() {
    for (auto& what : std::exchange(waiting_, {})) what();
  }

  bool down_ = false;
  int next_id_ = 0;
  std::vector<Range> ranges_;
  std::map<std::string, client::FeedRange> areas_;
  std::map<int, int> versions_;
  std::vector<Change> changes_;
  std::vector<std::function<void()>> waiting_;
};

/// As one life of a host sees it.
class FeedClient final : public FeedReader {
 public:
  FeedClient(World& world, FeedServer& server, std::shared_ptr<SimulatedRuntime> runtime,
             const Network& network)
      : world_(world), server_(server), runtime_(std::move(runtime)), network_(network) {}

  asio::awaitable<FeedAnswer> read(FeedRequest request) override {
    const bool waits = request.wait.has_value() && server_.long_poll;
    const auto asked = std::make_shared<const FeedRequest>(std::move(request));
    while (server_.hangs && server_.hangs(*asked)) {
      co_await pause_until(*runtime_, runtime_->now() + std::chrono::seconds(1));
    }
    FeedAnswer answer = co_await send(asked, !waits);
    if (!waits || answer.kind != FeedAnswer::Kind::NotModified || !answer.etag.empty()) {
      co_return answer;
    }
    // Nothing yet: the server keeps the request until something happens, or time is up.
    const MonotonicTime deadline = runtime_->now() + *asked->wait;
    while (true) {
      auto woken = std::make_shared<Signal>(*runtime_);
      server_.when_changed(
          [runtime = runtime_, woken] { runtime->deliver([woken] { woken->notify(); }); });
      const std::stop_callback stopped(asked->stop, [woken] { woken->notify(); });
      const bool happened = co_await woken->wait_until(deadline);
      answer = co_await send(asked, !happened || asked->stop.stop_requested());
      if (answer.kind != FeedAnswer::Kind::NotModified || !answer.etag.empty()) break;
    }
    answer.waited = true;
    co_return answer;
  }

  Async<std::vector<client::PartitionKeyRange>> ranges() override {
    using Ranges = Result<std::vector<client::PartitionKeyRange>>;
    return exchange<Ranges>(
        world_, runtime_, network_,
        [&server = server_]() -> Ranges {
          if (server.down()) return Error(ErrorCode::Unavailable, "the feed is down");
          std::vector<client::PartitionKeyRange> all;
          for (const FeedServer::Range& range : server.ranges()) {
            all.push_back({range.id, range.bounds, range.parents});
          }
          return all;
        },
        Error(ErrorCode::Unavailable, "no answer"), Error(ErrorCode::TooManyRequests, "too many"));
  }
  Async<std::optional<PendingChanges>> pending(FeedRequest) override {
    co_return std::optional<PendingChanges>();
  }
  Async<Identity> identity() override {
    co_return Identity{"simulated", "db-rid", "container-rid", "db", "container"};
  }
  Async<std::vector<std::string>> partition_key_paths() override {
    co_return std::vector<std::string>{"/key"};
  }

 private:
  asio::awaitable<FeedAnswer> send(std::shared_ptr<const FeedRequest> request, bool must) {
    FeedAnswer unheard;
    unheard.kind = FeedAnswer::Kind::Throttled;
    FeedAnswer throttled = unheard;
    throttled.status = 429;
    throttled.retry_after = std::chrono::milliseconds(300);
    return exchange<FeedAnswer>(
        world_, runtime_, network_,
        [&server = server_, request, must, unheard] {
          if (server.down()) return unheard;
          // An answer without an etag stands for none yet.
          return server.answer(*request, must).value_or(FeedAnswer());
        },
        unheard, throttled);
  }

  World& world_;
  FeedServer& server_;
  std::shared_ptr<SimulatedRuntime> runtime_;
  const Network& network_;
};

}  // namespace orrery::processor::simulation
