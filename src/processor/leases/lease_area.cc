#include "processor/leases/lease_area.h"

#include <algorithm>

#include <fmt/format.h>

#include "json/value.h"

namespace orrery::processor {
namespace {

constexpr int kThrottledMax = 10;
constexpr std::chrono::milliseconds kThrottledWait{1000};

const client::PartitionKeyRange* find_range(const Ranges& ranges, std::string_view id) {
  const auto found = std::ranges::find(ranges, id, &client::PartitionKeyRange::id);
  return found == ranges.end() ? nullptr : &*found;
}

Error failure_of(const FeedAnswer& answer) {
  const auto code = [&] {
    switch (answer.kind) {
      case FeedAnswer::Kind::Gone:
        return ErrorCode::RangeGone;
      case FeedAnswer::Kind::NotFound:
        return ErrorCode::NotFound;
      case FeedAnswer::Kind::Throttled:
        return ErrorCode::TooManyRequests;
      default:
        break;
    }
    if (answer.status == 401) return ErrorCode::Unauthorized;
    if (answer.status == 403) return ErrorCode::Forbidden;
    return answer.status == 400 ? ErrorCode::BadRequest : ErrorCode::Unavailable;
  }();
  return Error(code, fmt::format("the change feed can't be read: {}", answer.message));
}

/// The position just before the first change of a page that holds some. The service may show
/// changes with the first answer to a start time, and its etag is behind them then.
std::optional<std::string> position_before(std::string_view first) {
  const json::Value lsn = json::Value::of_checked(first).member("_lsn");
  if (!lsn.is_number() || !lsn.as_number().is_integer || lsn.as_number().integer < 1) {
    return std::nullopt;
  }
  return fmt::format("\"{}\"", lsn.as_number().integer - 1);
}

}  // namespace

std::optional<client::FeedRange> area_of(const Lease& lease, const Ranges& ranges) {
  if (lease.is_epk()) return lease.range;
  if (const auto* range = find_range(ranges, lease.token)) return range->range;
  return lease.range;
}

std::vector<FeedTarget> targets_of(const Lease& lease, const Ranges& ranges) {
  if (!lease.is_epk() && find_range(ranges, lease.token) != nullptr) {
    return {FeedTarget{lease.token, std::nullopt}};
  }
  std::vector<FeedTarget> targets;
  for (const auto& range : ranges) {
    if (!lease.range) {
      const bool child = std::ranges::find(range.parents, lease.token) != range.parents.end();
      if (child) targets.push_back({range.id, std::nullopt});
      continue;
    }
    auto part = common_part(*lease.range, range.range);
    if (!part) continue;
    if (*part == range.range) part.reset();
    targets.push_back({range.id, std::move(part)});
  }
  return targets;
}

std::vector<client::FeedRange> uncovered(client::FeedRange range,
                                         std::vector<client::FeedRange> covered) {
  std::ranges::sort(covered, {}, &client::FeedRange::min);
  std::vector<client::FeedRange> left;
  for (const auto& each : covered) {
    if (!range.overlaps(each)) continue;
    if (range.min < each.min) left.push_back({range.min, each.min});
    range.min = std::max(range.min, each.max);
    if (range.min >= range.max) return left;
  }
  left.push_back(std::move(range));
  return left;
}

std::optional<client::FeedRange> common_part(const client::FeedRange& a,
                                             const client::FeedRange& b) {
  if (!a.overlaps(b)) return std::nullopt;
  return client::FeedRange{std::max(a.min, b.min), std::min(a.max, b.max)};
}

StartPosition StartPosition::of(const MonitoredFeedOptions& options) {
  if (!options.start_continuation.empty()) {
    return {Kind::Etag, {}, options.start_continuation};
  }
  if (options.start_time) return {Kind::Time, *options.start_time, {}};
  if (options.start_from_beginning) return {Kind::Beginning, {}, {}};
  return {Kind::Now, {}, {}};
}

Async<std::optional<std::string>> resolve_start(FeedReader& reader, FeedTarget target,
                                                StartPosition start, client::ChangeFeedMode mode,
                                                std::string session_token, Runtime& runtime) {
  using Kind = StartPosition::Kind;
  if (start.kind == Kind::Etag) co_return start.etag;
  if (mode == client::ChangeFeedMode::AllVersionsAndDeletes && start.kind != Kind::Now) {
    co_return Error(ErrorCode::BadRequest,
                    "the feed of all versions begins now or at a continuation, not at the "
                    "beginning or at a time");
  }
  if (start.kind == Kind::Beginning) co_return "\"0\"";

  for (int attempt = 0;; ++attempt) {
    FeedRequest request;
    request.range_id = target.range_id;
    request.slice = target.slice;
    request.mode = mode;
    request.session_token = session_token;
    request.page_size = 1;
    if (start.kind == Kind::Now) request.after = "*";
    if (start.kind == Kind::Time) request.since = start.time;
    const FeedAnswer answer = co_await reader.read(std::move(request));
    const bool answered =
        answer.kind == FeedAnswer::Kind::Page || answer.kind == FeedAnswer::Kind::NotModified;
    if (answered && !answer.page.empty()) co_return position_before(answer.page[0]);
    if (answered && answer.etag.empty()) co_return std::nullopt;
    if (answered) co_return answer.etag;
    if (answer.kind != FeedAnswer::Kind::Throttled || attempt == kThrottledMax) {
      co_return failure_of(answer);
    }
    const auto wait =
        std::max(answer.retry_after.value_or(kThrottledWait), std::chrono::milliseconds(1));
    co_await pause_until(runtime, runtime.now() + wait);
  }
}

}  // namespace orrery::processor
