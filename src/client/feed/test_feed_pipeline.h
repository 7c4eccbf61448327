// FeedPipeline: a pipeline that ends in a change feed of its own making, for tests. It knows
// ranges, splits and merges, both modes, times, long polls and lag, and refuses what the server
// refuses.
#pragma once

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "client/exchange/pipeline.h"
#include "client/exchange/refusal.h"
#include "orrery/exception.h"
#include "protocol/keys/epk.h"
#include "protocol/keys/partition_key.h"
#include "protocol/wire/http_date.h"

namespace orrery::client::test {

class FeedPipeline : public Pipeline {
 public:
  /// Every change gets a version, the same counter for all documents.
  struct Change {
    std::string key;  ///< JSON, `["a"]`
    std::string epk;
    std::uint64_t lsn = 0;
    UnixSeconds ts = 0;
    int version = 0;
    bool is_latest = true;
  };
  struct Seen {
    std::string method;
    std::map<std::string, std::string> headers;
    bool has(const std::string& name) const { return headers.contains(name); }
    const std::string& at(const std::string& name) const { return headers.at(name); }
  };

  explicit FeedPipeline(int component_count = 1) {
    definition_.version = 2;
    definition_.kind = component_count > 1 ? KeyKind::MultiHash : KeyKind::Hash;
    for (int i = 0; i < component_count; ++i) definition_.paths.push_back({fmt::format("p{}", i)});
    ranges_.push_back({{"0", FeedRange{}, {}}, 1});
    worker_ = std::thread([this] { work(); });
  }
  ~FeedPipeline() override {
    {
      const std::scoped_lock lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  // ── what happens on the server ──
  int write(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    const auto parsed = orrery::PartitionKey::parse(key);
    const std::string epk = effective_partition_key(definition_, *parsed).hex();
    Range& range = *std::ranges::find_if(ranges_, [&](const Range& each) {
      return each.known.range.min <= epk && epk < each.known.range.max;
    });
    for (Change& change : changes_) {
      if (change.key == key) change.is_latest = false;
    }
    changes_.push_back({key, epk, ++range.head, now_, ++last_version_, true});
    changed_.notify_all();
    return last_version_;
  }
  void split(std::size_t index) {
    const std::scoped_lock lock(mutex_);
    const Range parent = ranges_[index];
    const auto cut = midpoint(definition_, {*Epk::from_hex(parent.known.range.min),
                                            *Epk::from_hex(parent.known.range.max)});
    ORRERY_ASSERT(cut);
    Range left{{new_id(), {parent.known.range.min, cut->hex()}, {parent.known.id}}, parent.head};
    Range right{{new_id(), {cut->hex(), parent.known.range.max}, {parent.known.id}}, parent.head};
    ranges_[index] = left;
    ranges_.insert(ranges_.begin() + static_cast<std::ptrdiff_t>(index) + 1, right);
    changed_.notify_all();
  }
  /// With the range after it.
  void merge(std::size_t index) {
    const std::scoped_lock lock(mutex_);
    const Range left = ranges_[index];
    const Range right = ranges_[index + 1];
    ranges_[index] = {
        {new_id(), {left.known.range.min, right.known.range.max}, {left.known.id, right.known.id}},
        std::max(left.head, right.head)};
    ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(index) + 1);
    changed_.notify_all();
  }
  std::size_t range_count() const {
    const std::scoped_lock lock(mutex_);
    return ranges_.size();
  }
  void set_rid(std::string rid) {
    const std::scoped_lock lock(mutex_);
    rid_ = std::move(rid);
  }
  void set_time(UnixSeconds now) { now_ = now; }
  void set_offers_wait(bool offers) { offers_wait_ = offers; }
  void set_offers_lag(bool offers) { offers_lag_ = offers; }
  /// As some servers do: the first page from a time on has its changes at once.
  void set_times_give_changes(bool give) { times_give_changes_ = give; }
  /// Refuses the next `count` feed requests so.
  void refuse_next(int count, int status, int sub_status) {
    const std::scoped_lock lock(mutex_);
    refusals_ = count;
    refusal_status_ = status;
    refusal_sub_status_ = sub_status;
  }
  std::vector<Change> changes() const {
    const std::scoped_lock lock(mutex_);
    return changes_;
  }

  // ── what tests look at ──
  std::vector<Seen> seen() const {
    const std::scoped_lock lock(mutex_);
    return seen_;
  }
  void forget_seen() {
    const std::scoped_lock lock(mutex_);
    seen_.clear();
  }
  /// Long polls.
  std::size_t held_count() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(held_, &Held::waits));
  }
  int routing_count() const { return routing_count_; }

  // ── Pipeline ──
  Answer send(const Call& call, const RequestOptions&) override {
    const std::scoped_lock lock(mutex_);
    note(call);
    return answer(call);
  }
  void send_async(Call call, RequestOptions options, Done done) override {
    const std::scoped_lock lock(mutex_);
    note(call);
    const auto wait = wait_of(call);
    held_.push_back({std::move(call), std::move(done), options.stop,
                     std::chrono::steady_clock::now() + wait, wait.count() > 0});
    changed_.notify_all();
  }
  RoutingMapPtr routing(const std::string&, const RequestOptions&) override {
    const std::scoped_lock lock(mutex_);
    if (!known_) {
      ++routing_count_;
      std::vector<PartitionKeyRange> ranges;
      for (const Range& range : ranges_) ranges.push_back(range.known);
      known_ = std::make_shared<RoutingMap>(rid_, definition_, std::move(ranges), "");
    }
    return known_;
  }
  void forget_routing(const std::string&, const RoutingMapPtr& known) override {
    const std::scoped_lock lock(mutex_);
    if (known_ == known) known_ = nullptr;
  }
  const std::string& endpoint() const override { return endpoint_; }
  const ClientOptions& options() const override { return options_; }

 private:
  struct Range {
    PartitionKeyRange known;
    std::uint64_t head = 1;
  };
  struct Held {
    Call call;
    Done done;
    std::stop_token stop;
    std::chrono::steady_clock::time_point until;
    bool waits = false;
  };

  static std::string header(const Call& call, std::string_view name) {
    for (const auto& [each, value] : call.headers) {
      if (each == name) return value;
    }
    return {};
  }
  static bool has_header(const Call& call, std::string_view name) {
    return std::ranges::any_of(call.headers, [&](const auto& each) { return each.first == name; });
  }
  std::chrono::seconds wait_of(const Call& call) const {
    const std::string prefer = header(call, "prefer");
    if (!offers_wait_ || !prefer.starts_with("wait=")) return std::chrono::seconds(0);
    return std::chrono::seconds(std::stoi(prefer.substr(5)));
  }
  std::string new_id() { return std::to_string(++last_range_); }

  void note(const Call& call) {
    Seen seen{call.method, {}};
    for (const auto& [name, value] : call.headers) seen.headers[name] = value;
    seen_.push_back(std::move(seen));
  }

  [[noreturn]] static void refuse(int status, int sub_status) {
    CosmosException::Details details;
    details.status = status;
    details.sub_status = sub_status;
    throw CosmosException(fmt::format("refused with {}/{}", status, sub_status), details);
  }

  /// Throws as send does.
  Answer answer(const Call& call) {
    if (refusals_ > 0) {
      --refusals_;
      refuse(refusal_status_, refusal_sub_status_);
    }
    if (header(call, "x-ms-cosmos-intended-collection-rid") != rid_) refuse(400, 1024);
    const std::string key = header(call, "x-ms-documentdb-partitionkey");
    FeedRange wanted;
    Range* range = nullptr;
    if (!key.empty()) {
      const auto epk =
          effective_partition_key(definition_, *orrery::PartitionKey::parse(key)).hex();
      range = &*std::ranges::find_if(ranges_, [&](const Range& each) {
        return each.known.range.min <= epk && epk < each.known.range.max;
      });
    } else {
      const std::string id = header(call, "x-ms-documentdb-partitionkeyrangeid");
      const auto found =
          std::ranges::find_if(ranges_, [&](const Range& each) { return each.known.id == id; });
      if (found == ranges_.end()) refuse(410, 1002);
      range = &*found;
      wanted = range->known.range;
      if (has_header(call, "x-ms-end-epk")) {
        wanted = {header(call, "x-ms-start-epk"), header(call, "x-ms-end-epk")};
        if (wanted.min < range->known.range.min || wanted.max > range->known.range.max) {
          refuse(410, 1002);
        }
      }
    }
    const bool all = header(call, "a-im") == "Full-Fidelity Feed";
    const std::string etag = header(call, "if-none-match");
    std::uint64_t after = 0;
    if (etag == "*") {
      after = range->head;
    } else if (!etag.empty()) {
      after = std::stoull(etag.substr(1));
    } else if (all) {
      refuse(400, 0);
    }
    const auto since = parse_http_date(header(call, "if-modified-since"));
    const bool time_counts =
        since && (etag.empty() || header(call, "x-ms-cosmos-sdk-supportedcapabilities") == "2");

    std::vector<const Change*> due;
    for (const Change& change : changes_) {
      if (change.lsn <= after || (!all && !change.is_latest)) continue;
      if (time_counts && change.ts <= *since) continue;
      if (!key.empty() ? change.key != key : change.epk < wanted.min || change.epk >= wanted.max) {
        continue;
      }
      due.push_back(&change);
    }
    std::ranges::sort(due, {},
                      [](const Change* change) { return std::pair(change->lsn, change->version); });

    Answer answer;
    answer.request_charge = 1;
    if (!header(call, "prefer").empty() && offers_wait_) {
      answer.headers.emplace_back("preference-applied", "wait");
    }
    if (call.method == "HEAD") {
      answer.status = 200;
      if (!offers_lag_) return answer;
      answer.headers.emplace_back("x-orrery-pending-items", std::to_string(due.size()));
      answer.headers.emplace_back("x-orrery-pending-bytes", std::to_string(10 * due.size()));
      answer.headers.emplace_back("date", format_http_date(now_));
      if (!due.empty()) {
        answer.headers.emplace_back("x-orrery-oldest-pending-ts", std::to_string(due.front()->ts));
      }
      return answer;
    }
    if (due.empty()) {
      answer.status = 304;
      answer.headers.emplace_back("x-ms-item-count", "0");
      answer.etag = fmt::format("\"{}\"", std::max(after, range->head));
      return answer;
    }
    answer.status = 200;
    if (since && etag.empty() && !times_give_changes_) {
      answer.headers.emplace_back("x-ms-item-count", "0");
      answer.etag = fmt::format("\"{}\"", due.front()->lsn - 1);
      answer.body = R"({"Documents":[],"_count":0})";
      return answer;
    }
    const int size = std::stoi(header(call, "x-ms-max-item-count"));
    std::string documents;
    std::size_t count = 0;
    while (count < due.size()) {
      // All of one position come together: after a merge these may be several.
      std::size_t end = count;
      while (end < due.size() && due[end]->lsn == due[count]->lsn) ++end;
      if (size > 0 && count > 0 && end > static_cast<std::size_t>(size)) break;
      for (; count < end; ++count) {
        documents += fmt::format(R"({}{{"key":{},"version":{}}})", documents.empty() ? "" : ",",
                                 due[count]->key, due[count]->version);
      }
    }
    answer.headers.emplace_back("x-ms-item-count", std::to_string(count));
    answer.etag = fmt::format("\"{}\"", due[count - 1]->lsn);
    answer.body = fmt::format(R"({{"_rid":"r","Documents":[{}],"_count":{}}})", documents, count);
    return answer;
  }

  /// Answers what was sent without waiting for it, and what is held when there is something to say.
  void work() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
      std::vector<std::function<void()>> answered;
      const auto now = std::chrono::steady_clock::now();
      for (auto held = held_.begin(); held != held_.end();) {
        Answer result;
        std::exception_ptr failure;
        try {
          if (held->stop.stop_requested()) {
            throw failure_of(Failure::Cancelled, "cancelled");
          }
          result = answer(held->call);
        } catch (...) {
          failure = std::current_exception();
        }
        if (!failure && held->waits && result.status == 304 && now < held->until) {
          ++held;
          continue;
        }
        answered.push_back(
            [done = std::move(held->done), result, failure] { done(result, failure); });
        held = held_.erase(held);
      }
      lock.unlock();
      for (const auto& each : answered) each();
      lock.lock();
      // Stops are noticed by looking.
      if (answered.empty()) changed_.wait_for(lock, std::chrono::milliseconds(2));
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  PartitionKeyDefinition definition_;
  std::vector<Range> ranges_;
  std::vector<Change> changes_;
  std::string rid_ = "AAAAAYAAAAE=";
  std::atomic<UnixSeconds> now_ = 1'700'000'000;
  std::atomic<bool> offers_wait_ = true;
  std::atomic<bool> offers_lag_ = true;
  std::atomic<bool> times_give_changes_ = false;
  int last_range_ = 0;
  int last_version_ = 0;
  int refusals_ = 0;
  int refusal_status_ = 0;
  int refusal_sub_status_ = 0;
  std::vector<Seen> seen_;
  std::atomic<int> routing_count_ = 0;
  RoutingMapPtr known_;
  std::list<Held> held_;
  bool ending_ = false;
  std::string endpoint_ = "http://feed";
  ClientOptions options_;
  std::thread worker_;
};

}  // namespace orrery::client::test
