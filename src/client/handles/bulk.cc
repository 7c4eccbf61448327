#include "client/handles/bulk.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "client/exchange/call_time.h"
#include "client/exchange/routing.h"
#include "client/handles/batch.h"
#include "client/handles/resource.h"
#include "orrery/container.h"
#include "protocol/wire/headers.h"

namespace orrery::client {
namespace {

using std::chrono::milliseconds;

/// A range may be split again and again, but not as often as this while a call lasts.
constexpr int kBulkGoneMax = 20;
/// For those whose server names no time.
constexpr milliseconds kFirstWait{10};
constexpr milliseconds kBulkWaitMax{1'000};
/// The answer had no room left for this one.
constexpr int kNoRoomLeft = 3402;

/// The retries of an operation so far.
struct Progress {
  int throttled = 0;
  int gone = 0;
  int contended = 0;
  int without_room = 0;
  milliseconds throttled_wait{0};
  milliseconds contended_wait{0};
};

/// Some operations for one range, as many as fit into a request.
struct Group {
  std::string range_id;
  std::vector<std::size_t> operations;  ///< their indices
};

class Bulk {
 public:
  Bulk(Pipeline& pipeline, const std::string& container,
       const std::vector<ItemOperation>& operations, const BulkOptions& options)
      : pipeline_(pipeline),
        container_(container),
        operations_(operations),
        options_(options),
        time_(options),
        progress_(operations.size()) {
    response_.results.resize(operations.size());
  }

  BulkResponse run() {
    measure();
    std::vector<std::size_t> due(operations_.size());
    for (std::size_t i = 0; i < due.size(); ++i) due[i] = i;
    while (!due.empty()) {
      again_.clear();
      wait_ = milliseconds{0};
      try {
        routing_ = pipeline_.routing(container_, time_.for_next_request());
        send_all(grouped(due));
        due = std::move(again_);
        std::ranges::sort(due);
        if (!due.empty() && wait_.count() > 0) time_.pause(wait_);
      } catch (const CosmosException& failure) {
        // Nothing is known to be done as long as nothing was sent; afterwards the results tell.
        if (!was_sent_ || failure.failure() == Failure::Cancelled) throw;
        for (const std::size_t index : due) conclude(index, failure);
        break;
      }
    }
    return std::move(response_);
  }

 private:
  /// Before anything is sent, so that a call that can't be meant does nothing at all.
  void measure() {
    sizes_.reserve(operations_.size());
    std::string element;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (!operations_[i].partition_key) read_key(i);
      element.clear();
      append_operation(element, operations_[i], key_of(i).json());
      sizes_.push_back(element.size());
    }
  }

  /// The key of an operation that names none: the one in its document.
  void read_key(std::size_t index) {
    const ItemOperation& operation = operations_[index];
    const bool has_document = operation.kind == ItemOperation::Kind::Create ||
                              operation.kind == ItemOperation::Kind::Upsert ||
                              operation.kind == ItemOperation::Kind::Replace;
    if (!has_document) {
      refuse_argument(
          "In bulk every operation needs its partition key or a document that has it, "
          "and number " +
          std::to_string(index) + " has neither.");
    }
    if (!routing_) routing_ = pipeline_.routing(container_, time_.for_next_request());
    keys_read_.emplace(index, key_in(*routing_, operation.json));
  }

  const PartitionKey& key_of(std::size_t index) const {
    const auto& given = operations_[index].partition_key;
    return given ? *given : keys_read_.at(index);
  }

  std::vector<Group> grouped(const std::vector<std::size_t>& due) const {
    const std::size_t count_max =
        std::clamp<std::size_t>(options_.operations_max, 1, kBulkOperationsMax);
    struct Open {
      Group group;
      std::size_t bytes = 2;
    };
    std::map<std::string, Open> open;
    std::vector<Group> groups;
    for (const std::size_t index : due) {
      const std::string& range_id = range_of(index);
      Open& current = open[range_id];
      const std::size_t bytes = sizes_[index] + 1;
      const bool is_full =
          current.group.operations.size() == count_max || current.bytes + bytes > kBulkBytesMax;
      if (is_full && !current.group.operations.empty()) {
        groups.push_back(std::move(current.group));
        current = {};
      }
      current.group.range_id = range_id;
      current.group.operations.push_back(index);
      current.bytes += bytes;
    }
    for (auto& [range_id, last] : open) groups.push_back(std::move(last.group));
    return groups;
  }

  const std::string& range_of(std::size_t index) const {
    const FeedRange slice = slice_of(*routing_, key_of(index));
    const auto ranges = routing_->ranges();
    const auto after = std::ranges::upper_bound(
        ranges, slice.min, {}, [](const PartitionKeyRange& range) { return range.range.min; });
    return std::prev(after)->id;
  }

  void send_all(const std::vector<Group>& groups) {
    was_sent_ = true;
    std::atomic<std::size_t> next{0};
    std::exception_ptr ended;
    const auto work = [&] {
      for (std::size_t at = next++; at < groups.size(); at = next++) {
        try {
          send(groups[at]);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!ended) ended = std::current_exception();
          next = groups.size();
        }
      }
    };
    {
      std::vector<std::jthread> helpers;
      const std::size_t concurrency = std::clamp<std::size_t>(options_.concurrency, 1, 256);
      for (std::size_t i = 1; i < std::min(concurrency, groups.size()); ++i) {
        helpers.emplace_back(work);
      }
      work();
    }
    if (ended) std::rethrow_exception(ended);
  }

  /// Throws only when the call shall end.
  void send(const Group& group) {
    try {
      const Answer answer = pipeline_.send(call_for(group), time_.for_next_request());
      auto results = results_of(answer, group.operations.size());
      const std::lock_guard lock(mutex_);
      response_.request_charge += answer.request_charge;
      for (std::size_t i = 0; i < results.size(); ++i) {
        take(group.operations[i], std::move(results[i]));
      }
    } catch (const CosmosException& failure) {
      if (failure.failure() == Failure::Cancelled) throw;
      const std::lock_guard lock(mutex_);
      response_.request_charge += failure.request_charge();
      for (const std::size_t index : group.operations) {
        if (failure.is_gone()) {
          take(index, result_of(failure));
        } else {
          conclude(index, failure);
        }
      }
    }
  }

  Call call_for(const Group& group) const {
    Call call{.method = "POST", .type = "docs", .link = container_, .list = true};
    call.headers = {
        {std::string(headers::kContentType.text), "application/json"},
        {std::string(headers::kIsBatchRequest.text), "True"},
        {std::string(headers::kBatchAtomic.text), "False"},
        {std::string(headers::kBatchContinueOnError.text), "True"},
        // With the rid, so that another container of the same name is not taken for this one.
        {std::string(headers::kPartitionKeyRangeId.text),
         routing_->container_rid() + "," + group.range_id},
    };
    call.container = container_;
    call.writes = true;
    call.repeatable = std::ranges::all_of(
        group.operations, [&](std::size_t index) { return is_repeatable(operations_[index]); });
    call.body = "[";
    for (const std::size_t index : group.operations) {
      if (call.body.size() > 1) call.body.push_back(',');
      append_operation(call.body, operations_[index], key_json(*routing_, key_of(index)));
    }
    call.body += "]";
    return call;
  }

  /// The result of an operation: for good, or one after which it is sent again. Under the lock.
  void take(std::size_t index, ItemResult result) {
    if (const auto wait = wait_before_next(progress_[index], result)) {
      wait_ = std::max(wait_, *wait);
      again_.push_back(index);
    } else {
      response_.results[index] = std::move(result);
    }
  }

  /// How long to wait before the operation is sent again; nothing when it is not.
  std::optional<milliseconds> wait_before_next(Progress& progress, const ItemResult& result) {
    const RetryOptions& retry = pipeline_.options().retry;
    if (result.status == 410) {
      pipeline_.forget_routing(container_, routing_);
      if (++progress.gone > kBulkGoneMax) return {};
      // At first at once: mostly the split is over, and only we did not know of it.
      return std::min(kBulkWaitMax, milliseconds(5 * (progress.gone - 1)));
    }
    if (result.status == 429) {
      const milliseconds wait = result.retry_after.value_or(doubled(progress.throttled));
      progress.throttled_wait += wait;
      if (++progress.throttled > retry.throttled_max) return {};
      if (progress.throttled_wait > retry.throttled_wait_max) return {};
      return wait;
    }
    if (result.status == 449) {
      const milliseconds wait = result.retry_after.value_or(doubled(progress.contended++));
      progress.contended_wait += wait;
      if (progress.contended_wait > retry.conflict_wait_max) return {};
      return wait;
    }
    // Every answer has room for one at least, so that each has its turn.
    const bool had_no_room = result.status == 413 && result.sub_status == kNoRoomLeft;
    if (had_no_room && ++progress.without_room < static_cast<int>(kBulkOperationsMax)) {
      return milliseconds{0};
    }
    return {};
  }

  static milliseconds doubled(int times) {
    return std::min(kBulkWaitMax, kFirstWait * (1 << std::min(times, 10)));
  }

  static ItemResult result_of(const CosmosException& failure) {
    ItemResult result;
    result.status = failure.status();
    result.sub_status = failure.sub_status();
    result.message = failure.what();
    result.retry_after = failure.retry_after();
    return result;
  }

  void conclude(std::size_t index, const CosmosException& failure) {
    response_.results[index] = result_of(failure);
  }

  Pipeline& pipeline_;
  const std::string& container_;
  const std::vector<ItemOperation>& operations_;
  const BulkOptions& options_;
  CallTime time_;
  std::map<std::size_t, PartitionKey> keys_read_;  // Of operations that name none.
  std::vector<std::size_t> sizes_;                 // Of the operations, as they go over the wire.
  RoutingMapPtr routing_;                          // Of this round; read by all threads.
  bool was_sent_ = false;

  std::mutex mutex_;  // Over what follows.
  std::vector<Progress> progress_;
  std::vector<std::size_t> again_;  // To be sent in the next round,
  milliseconds wait_{0};            // which begins so much later.
  BulkResponse response_;
};

}  // namespace

BulkResponse run_bulk(Pipeline& pipeline, const std::string& container,
                      const std::vector<ItemOperation>& operations, const BulkOptions& options) {
  return Bulk(pipeline, container, operations, options).run();
}

BulkResponse Container::execute_bulk(const std::vector<ItemOperation>& operations,
                                     const BulkOptions& options) const {
  return run_bulk(*pipeline_, link_, operations, options);
}

}  // namespace orrery::client
