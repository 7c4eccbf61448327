#include "client/exchange/routing_cache.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/exchange/call_time.h"
#include "client/exchange/refusal.h"

namespace orrery::client {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Between two looks at a list of ranges that is not whole.
constexpr milliseconds kIncompleteWait{50};
/// Pages of one list: more than any container has.
constexpr int kPagesMax = 1000;

CosmosException no_routing_map(const std::string& container, std::string_view what) {
  return failure_of(
      Failure::Network,
      fmt::format("the server's description of {} is not usable: {}", container, what));
}

std::string string_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// The time left until the deadline of a call that is made of several.
class Remaining {
 public:
  explicit Remaining(const RequestOptions& options)
      : stop_(options.stop), begun_(steady_clock::now()) {
    if (options.timeout) timeout_ = std::min(*options.timeout, kTimeMax);
  }

  RequestOptions options() const {
    RequestOptions result;
    result.stop = stop_;
    if (timeout_) {
      const auto spent = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begun_);
      result.timeout = std::max(*timeout_ - spent, milliseconds(0));
    }
    return result;
  }

 private:
  std::stop_token stop_;
  steady_clock::time_point begun_;
  std::optional<milliseconds> timeout_;
};

PartitionKeyDefinition definition_of(const std::string& container, const Json& body) {
  PartitionKeyDefinition definition;
  const auto key = body.find("partitionKey");
  if (key == body.end() || !key->is_object()) {
    definition.system_key = true;
    return definition;
  }
  definition.kind = string_at(*key, "kind") == "MultiHash" ? KeyKind::MultiHash : KeyKind::Hash;
  if (const auto version = key->find("version"); version != key->end() && version->is_number()) {
    definition.version = version->get<int>();
  }
  if (const auto system = key->find("systemKey"); system != key->end() && system->is_boolean()) {
    definition.system_key = system->get<bool>();
  }
  const auto paths = key->find("paths");
  if (definition.system_key || paths == key->end() || !paths->is_array()) return definition;
  for (const Json& path : *paths) {
    auto names =
        path.is_string()
            ? parse_property_path(path.get_ref<const std::string&>())
            : Result<std::vector<std::string>>(Error(ErrorCode::BadRequest, "a path is no string"));
    if (!names) throw no_routing_map(container, names.error().message());
    definition.paths.push_back(std::move(*names));
  }
  return definition;
}

void append_ranges(const std::string& container, std::string_view body,
                   std::vector<PartitionKeyRange>& ranges) {
  const Json list = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  const auto found = list.is_object() ? list.find("PartitionKeyRanges") : list.end();
  if (!list.is_object() || found == list.end() || !found->is_array()) {
    throw no_routing_map(container, "its list of ranges is none");
  }
  for (const Json& each : *found) {
    if (!each.is_object() || string_at(each, "id").empty()) {
      throw no_routing_map(container, "a range has no id");
    }
    PartitionKeyRange& range = ranges.emplace_back();
    range.id = string_at(each, "id");
    range.range = {.min = string_at(each, "minInclusive"), .max = string_at(each, "maxExclusive")};
    const auto parents = each.find("parents");
    if (parents == each.end() || !parents->is_array()) continue;
    for (const Json& parent : *parents) {
      if (parent.is_string()) range.parents.push_back(parent.get<std::string>());
    }
  }
}

/// Waits, but not when the call shall end.
void pause_before_retry(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, kIncompleteWait, [] { return false; });
}

}  // namespace

RoutingMapPtr RoutingCache::peek(const std::string& container) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(container);
  return found == entries_.end() ? nullptr : found->second.current;
}

RoutingMapPtr RoutingCache::get(const std::string& container, const RequestOptions& options) {
  std::unique_lock lock(mutex_);
  const Remaining remaining(options);
  Entry& entry = entries_[container];  // Never erased.
  while (!entry.current && entry.loading) {
    // If the loading thread fails, for reasons of its own, the next one takes its place.
    const auto settled = [&entry] { return entry.current || !entry.loading; };
    if (!options.timeout) {
      loaded_.wait(lock, options.stop, settled);
    } else {
      loaded_.wait_for(lock, options.stop, *remaining.options().timeout, settled);
    }
    if (settled()) continue;
    if (options.stop.stop_requested()) {
      throw failure_of(Failure::Cancelled, "the call was cancelled");
    }
    throw failure_of(Failure::Timeout,
                     fmt::format("the ranges of {} were not known in time", container));
  }
  if (entry.current) return entry.current;

  entry.loading = true;
  const RoutingMapPtr former = entry.former;
  lock.unlock();
  RoutingMapPtr loaded;
  try {
    loaded = load(container, former, options);
  } catch (...) {
    lock.lock();
    entry.loading = false;
    loaded_.notify_all();
    throw;
  }
  lock.lock();
  entry.current = loaded;
  entry.former = nullptr;
  entry.loading = false;
  loaded_.notify_all();
  return loaded;
}

void RoutingCache::forget(const std::string& container, const RoutingMapPtr& known) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(container);
  if (found == entries_.end() || !found->second.current) return;
  if (known && found->second.current != known) return;
  found->second.former = std::exchange(found->second.current, nullptr);
}

RoutingMapPtr RoutingCache::load(const std::string& container, const RoutingMapPtr& former,
                                 const RequestOptions& options) {
  const Remaining remaining(options);
  const Call read{.type = "colls", .link = container};
  const Answer answer = pipeline_.send(read, remaining.options());
  const Json body = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!body.is_object()) throw no_routing_map(container, "it is no JSON object");
  const std::string rid = string_at(body, "_rid");
  const PartitionKeyDefinition definition = definition_of(container, body);

  const bool same_container = former && former->container_rid() == rid;
  std::vector<PartitionKeyRange> ranges;
  std::string etag;
  if (same_container) {
    ranges.assign(former->ranges().begin(), former->ranges().end());
    etag = former->etag();
  }
  for (int attempt = 1;; ++attempt) {
    std::string continuation;
    for (int page = 0;; ++page) {
      if (page == kPagesMax) throw no_routing_map(container, "its list of ranges does not end");
      Call list{.type = "pkranges", .link = container, .list = true};
      list.headers = {{"a-im", "Incremental feed"}, {"x-ms-max-item-count", "-1"}};
      if (!etag.empty()) list.headers.emplace_back("if-none-match", etag);
      if (!continuation.empty()) list.headers.emplace_back("x-ms-continuation", continuation);
      const Answer found = pipeline_.send(list, remaining.options());
      if (found.status == 304) break;
      append_ranges(container, found.body, ranges);
      continuation = found.header("x-ms-continuation");
      const bool more = !continuation.empty();
      // Until it says that nothing is newer. Without an etag it can't say so.
      if (!more && (found.etag.empty() || found.etag == etag)) break;
      if (!more) etag = found.etag;
    }
    auto map = std::make_shared<const RoutingMap>(rid, definition, ranges, etag);
    if (map->is_complete()) return map;
    if (attempt == kAttemptsMax) {
      throw no_routing_map(container, "its ranges do not cover the hash space");
    }
    ranges.clear();
    etag.clear();
    pause_before_retry(options.stop);
  }
}

}  // namespace orrery::client
