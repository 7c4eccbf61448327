#include "api/feed/feed_push.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/this_coro.hpp>

#include "base/header_name.h"
#include "base/trim.h"
#include "feed/position.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/range_gone.h"

namespace orrery::api {
namespace {

constexpr std::chrono::seconds kWaitMax{60};

/// Takes the first element off a list, without its parameters.
std::string_view take_element(std::string_view& list) {
  const auto element = list.substr(0, list.find(','));
  list.remove_prefix(std::min(list.size(), element.size() + 1));
  return trimmed(element.substr(0, element.find(';')));
}

}  // namespace

std::optional<StreamForm> stream_form(const Context& context) {
  auto list = context.header(headers::kAccept);
  while (!list.empty()) {
    const auto type = take_element(list);
    if (equal_ignoring_case(type, "text/event-stream")) return StreamForm::Events;
    if (equal_ignoring_case(type, "application/x-ndjson")) return StreamForm::Lines;
  }
  return {};
}

std::optional<std::chrono::seconds> wait_preference(const Context& context) {
  auto list = context.header(headers::kPrefer);
  while (!list.empty()) {
    const auto preference = take_element(list);
    const auto equals = preference.find('=');
    if (equals == std::string_view::npos) continue;
    if (!equal_ignoring_case(trimmed(preference.substr(0, equals)), "wait")) continue;
    auto value = trimmed(preference.substr(equals + 1));
    if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"')) {
      value = value.substr(1, value.size() - 2);
    }
    std::uint32_t seconds = 0;
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    // A malformed preference is ignored, as HTTP has it. Too large a number means the longest wait.
    if (failure == std::errc::result_out_of_range) return kWaitMax;
    if (failure != std::errc() || end != value.data() + value.size() || seconds == 0) continue;
    return std::min<std::chrono::seconds>(std::chrono::seconds(seconds), kWaitMax);
  }
  return {};
}

std::optional<std::string_view> start_header(const Context& context) {
  // A client that reconnects repeats its first request, with the id of the last event added.
  if (const auto id = context.header(headers::kLastEventId); !id.empty() && stream_form(context)) {
    return id;
  }
  if (context.request.has_header(headers::kIfNoneMatch)) {
    return context.header(headers::kIfNoneMatch);
  }
  return {};
}

void go_on_from(ChangeFeedRequest& request, std::string_view etag) {
  if (request.since) request.page.newer_than = std::exchange(request.since, std::nullopt);
  request.start = {};
  request.start.kind = feed::Start::Kind::After;
  if (request.range == nullptr) {
    if (auto position = feed::ContainerPosition::parse(etag)) {
      request.container_start = std::move(*position);
    }
    return;
  }
  if (const auto start = feed::parse_start(etag)) {
    request.start = *start;
    request.page.after = start->after;
    request.page.began_at = start->began_at;
  }
}

std::string shape_of(const Context& context, const ChangeFeedRequest& request) {
  const auto& page = request.page;
  std::string shape = fmt::format("{} {}{}{} {} {} {}", context.target.container->rid_text,
                                  static_cast<int>(page.mode), page.wrapped, page.tombstones,
                                  page.count_max ? static_cast<std::int64_t>(*page.count_max) : -1,
                                  page.bytes_max, page.newer_than.value_or(-1));
  for (const auto* range : request.ranges(*context.target.container)) {
    fmt::format_to(std::back_inserter(shape), " {}", range->partition->number().value);
  }
  // The meaning of a filter depends on the container's definition.
  if (page.filter != nullptr) shape.append(" ").append(context.target.container->etag().text());
  for (const HeaderName name : {headers::kPartitionKey, headers::kStartEpk, headers::kEndEpk,
                                headers::kFeedFilter, headers::kFeedSelect}) {
    shape.append("\n").append(context.header(name));
  }
  return shape;
}

std::uint64_t moment_of(const std::vector<Lsn>& heads) {
  return std::accumulate(heads.begin(), heads.end(), std::uint64_t{0},
                         [](std::uint64_t sum, Lsn head) { return sum + head.value; });
}

std::vector<Lsn> heads_now(const catalog::Container& container, const ChangeFeedRequest& request) {
  std::vector<Lsn> heads;
  for (const auto* range : request.ranges(container)) heads.push_back(range->partition->head());
  return heads;
}

std::optional<BackgroundPool::Lane> lane_of(const Services& services, const Context& context,
                                            const ChangeFeedRequest& request) {
  if (request.page.filter == nullptr) return std::nullopt;
  return services.scans.lane(client_of(context));
}

Async<ChangeFeedAnswer> read_shared(Services& services, Context& context,
                                    const ChangeFeedRequest& request) {
  const auto& container = *context.target.container;
  const std::string etag =
      request.range != nullptr
          ? request.page.began_at ? feed::tombstone_etag(request.page.after, *request.page.began_at)
                                  : feed::feed_etag(request.page.after)
          : request.container_start.etag();
  // Where documents expire, or history is let go, what was read is good for a second only.
  const bool passes = container.rules.default_ttl || request.page.mode == feed::Mode::AllVersions ||
                      request.page.tombstones;
  const UnixSeconds now = passes ? request.page.now : 0;
  auto key = fmt::format("page {} {}\n{}", etag, now, shape_of(context, request));
  const auto moment = moment_of(heads_now(container, request));
  const auto lane = lane_of(services, context, request);
  ORRERY_CO_TRY(const auto shared,
                co_await services.push.reads.get<ChangeFeedAnswer>(
                    std::move(key), moment,
                    [&]() -> Result<feed::SharedRead> {
                      WorkBudget work(page_limits(services.page_time_max));
                      ORRERY_TRY(auto read, read_change_feed(services, context.target.container,
                                                             request, work));
                      ORRERY_TRY(hold_answer(context, read.body.size()));
                      auto answer = std::make_shared<ChangeFeedAnswer>(std::move(read));
                      return feed::SharedRead{moment_of(answer->heads), answer->body.size(),
                                              std::move(answer)};
                    },
                    lane ? &*lane : nullptr));
  ChangeFeedAnswer answer;
  answer.shared_body = http::SharedText(shared, &shared->body);
  answer.count = shared->count;
  answer.etag = shared->etag;
  answer.heads = shared->heads;
  answer.resolved_ts = shared->resolved_ts;
  answer.warning = shared->warning;
  co_return answer;
}

Async<ChangeFeedAnswer> wait_for_change(Services& services, Context& context,
                                        ChangeFeedRequest& request, ChangeFeedAnswer caught_up,
                                        std::chrono::steady_clock::time_point deadline,
                                        bool& waited) {
  auto& push = services.push;
  const auto seat = push.room.take_seat();
  waited = seat.has_value();
  if (!waited) {
    push.stats.refused.fetch_add(1, std::memory_order_relaxed);
    co_return caught_up;
  }
  push.stats.polls.fetch_add(1, std::memory_order_relaxed);
  const auto ranges = request.ranges(*context.target.container);
  partition::Waiter waiter(push.room, co_await asio::this_coro::executor);
  http::Client* const client = context.request.client;
  // Taken back at the end: nobody may interrupt what is no longer there.
  struct Watch {
    http::Client* client;
    ~Watch() {
      if (client != nullptr) client->when_gone(nullptr);
    }
  } const watch{client};
  if (client != nullptr) client->when_gone([&waiter] { waiter.interrupt(); });

  ChangeFeedAnswer answer = std::move(caught_up);
  while (answer.not_modified()) {
    go_on_from(request, answer.etag);
    std::vector<partition::Waiter::Target> targets;
    targets.reserve(ranges.size());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      targets.push_back({&ranges[i]->partition->head_watch(), answer.heads[i]});
    }
    const auto woken = co_await waiter.wait(targets, deadline);
    if (woken == partition::WakeReason::Retired) {
      co_return range_gone("the partition key range was split or merged while the request waited");
    }
    if (woken != partition::WakeReason::Head) {
      // Nothing has come, but time has passed.
      if (auto latest = answer_from_memory(services, request)) answer = std::move(*latest);
      break;
    }
    request.page.now = services.clock.unix_seconds();
    ORRERY_CO_TRY(answer, co_await read_shared(services, context, request));
  }
  co_return answer;
}

}  // namespace orrery::api
