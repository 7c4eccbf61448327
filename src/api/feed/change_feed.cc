#include "api/feed/change_feed.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/feed/feed_push.h"
#include "api/reply.h"
#include "api/target.h"
#include "feed/container.h"
#include "feed/prefetch.h"
#include "feed/reader.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

/// A page that has nothing in it when its time is up waits for its turn to go on: not all clients
/// know what to do with it. But not for longer than they have patience.
constexpr std::chrono::seconds kEmptyPageTimeMax{20};
/// So long the changes that are left are counted.
constexpr std::chrono::seconds kLagTimeMax{20};
/// A page that is at least so full is likely to be followed by another.
constexpr std::size_t kFullPageBytes = 1 << 20;

/// Up to which second everything is in this page or an earlier one. Nothing below a merge, where
/// times do not rise with positions.
std::optional<UnixSeconds> resolved_ts(bool caught_up, UnixSeconds at_head, bool below_merge,
                                       std::size_t count, UnixSeconds last_ts) {
  if (below_merge) return std::nullopt;
  if (caught_up) return at_head;
  if (count == 0) return std::nullopt;
  return last_ts - 1;
}

std::string etag_of(const feed::Page& page) {
  return page.began_at ? feed::tombstone_etag(page.position, *page.began_at)
                       : feed::feed_etag(page.position);
}

std::string open_body(const catalog::Container& container) {
  std::string body;
  open_feed(body, container.rid_text, "Documents");
  return body;
}

ChangeFeedAnswer answer_of(feed::Page page, UnixSeconds resolved_at_head) {
  ChangeFeedAnswer answer;
  answer.count = page.count;
  answer.etag = etag_of(page);
  answer.heads = {page.head};
  if (page.ended_life) answer.warning = feed_warning(*page.ended_life);
  answer.resolved_ts = resolved_ts(page.caught_up, resolved_at_head, page.position < page.merged_at,
                                   page.count, page.last_ts);
  // A reader that has caught up must get a 304: every client's loop ends on it.
  if (page.count == 0 && page.caught_up) return answer;
  answer.body = std::move(page.text);
  close_feed(answer.body, page.count);
  return answer;
}

// ── one range ────────────────────────────────────────────────────────────────────────────────────

/// Whether the pages of such a request are worth being read ahead.
bool is_hurried(const feed::PageRequest& page) {
  // Only those hurry who take what they can get. Where documents expire, a page is good for a
  // second only.
  return !page.count_max && page.filter == nullptr && page.scope.whole() && !page.newer_than &&
         !page.container.default_ttl;
}

/// The key of a prefetched page: container, range, mode, options and position.
std::string ahead_key(const catalog::Container& container, const catalog::Range& range,
                      const feed::PageRequest& page) {
  return fmt::format("feed\n{}\n{}\n{}{}{}\n{}", container.rid_text, range.id.value,
                     static_cast<int>(page.mode), page.wrapped, page.tombstones, page.after.value);
}

Result<feed::PreparedPage> read_feed_page(const Services& services, const catalog::Range& range,
                                          feed::PageRequest page, std::string opening,
                                          WorkBudget& work) {
  page.work = &work;
  const UnixSeconds now = services.clock.unix_seconds();
  feed::PreparedPage read;
  // Before the snapshot: what is read is at least as new as what this says.
  read.heads.emplace_back(range.partition.get(), range.partition->head());
  read.resolved_at_head = range.partition->resolved(now);
  ORRERY_TRY(read.change, services.feed.read(*range.partition, page, std::move(opening)));
  read.count = read.change.count;
  return read;
}

/// The next page to prefetch for a reader that takes page after page; nothing unless many more
/// seem to follow.
std::optional<feed::PrefetchChain::Next> next_page(const Services& services,
                                                   const catalog::ContainerPtr& container,
                                                   const catalog::Range& range,
                                                   feed::PageRequest page,
                                                   const feed::PreparedPage& read) {
  const feed::Page& change = read.change;
  // Where others write, what is read ahead is out of date before it is asked for.
  const bool quiet = range.partition->head() == read.heads.front().second;
  if (change.caught_up || change.began_at || change.text.size() < kFullPageBytes || !quiet) {
    return {};
  }
  page.after = change.position;
  std::string key = ahead_key(*container, range, page);
  return feed::PrefetchChain::Next{
      std::move(key), [&services, container, &range, page = std::move(page)] {
        WorkBudget work(page_limits(services.page_time_max));
        return read_feed_page(services, range, page, open_body(*container), work);
      }};
}

Result<ChangeFeedAnswer> read_range(const Services& services,
                                    const catalog::ContainerPtr& container,
                                    const ChangeFeedRequest& request, const feed::PageRequest& page,
                                    WorkBudget& work) {
  const catalog::Range& range = *request.range;
  const bool hurried = is_hurried(page);
  std::optional<feed::PreparedPage> ready;
  if (hurried) ready = services.prefetcher.take(ahead_key(*container, range, page), container);
  if (ready) {
    ready->ahead->page_taken();
  } else {
    ORRERY_TRY(ready, read_feed_page(services, range, page, open_body(*container), work));
    if (hurried) {
      std::make_shared<feed::PrefetchChain>(
          services.prefetcher, services.scans, container,
          [&services, container, &range, page](const feed::PreparedPage& read) {
            return next_page(services, container, range, page, read);
          })
          ->after(*ready);
    }
  }
  return answer_of(std::move(ready->change), ready->resolved_at_head);
}

Result<ChangeFeedAnswer> find_time(const Services& services, const catalog::ContainerPtr& container,
                                   const ChangeFeedRequest& request, WorkBudget& work) {
  feed::PageRequest page = request.page;
  page.work = &work;
  partition::Partition& partition = *request.range->partition;
  const UnixSeconds resolved = partition.resolved(services.clock.unix_seconds());
  ORRERY_TRY(const auto found, services.feed.find_time(partition, page, *request.since));
  if (found.found && request.since_with_items) {
    page.after = found.position;
    page.newer_than = request.since;
    ORRERY_TRY(auto answer, read_range(services, container, request, page, work));
    answer.applied_representation = true;
    return answer;
  }
  ChangeFeedAnswer answer;
  answer.etag = feed::feed_etag(found.position);
  answer.heads = {found.head};
  if (found.found) {
    answer.body = open_body(*container);
    close_feed(answer.body, 0);
  } else {
    answer.resolved_ts = resolved;
  }
  return answer;
}

// ── the whole container ──────────────────────────────────────────────────────────────────────────

Result<ChangeFeedAnswer> read_whole(const Services& services, const catalog::Container& container,
                                    const ChangeFeedRequest& request, WorkBudget& work) {
  feed::PageRequest page = request.page;
  page.work = &work;
  std::vector<feed::ContainerRange> ranges;
  const UnixSeconds now = services.clock.unix_seconds();
  UnixSeconds resolved = now;
  for (const catalog::Range& range : container.ranges.all()) {
    ranges.push_back({range.partition->number(), range.epks});
    resolved = std::min(resolved, range.partition->resolved(now));
  }
  ORRERY_TRY(const auto snapshot, services.feed.snapshot());
  for (const catalog::Range& range : container.ranges.all())
    ORRERY_TRY(range.partition->check_in_place());

  ChangeFeedAnswer answer;
  feed::ContainerPosition from = request.container_start;
  if (request.start.kind == feed::Start::Kind::Now) {
    ORRERY_TRY(const auto heads, feed::find_container_heads(snapshot, ranges));
    from = heads.position;
  } else if (request.since) {
    ORRERY_TRY(const auto found,
               feed::find_container_time(services.feed, snapshot, ranges, page, *request.since));
    from = found.position;
    if (!request.since_with_items || !found.found) {
      answer.etag = found.position.etag();
      answer.heads = found.heads;
      if (found.found) {
        answer.body = open_body(container);
        close_feed(answer.body, 0);
      } else {
        answer.resolved_ts = resolved;
      }
      return answer;
    }
    page.newer_than = request.since;
    answer.applied_representation = true;
  }
  ORRERY_TRY(auto read, feed::read_container(services.feed, snapshot, ranges, from, page,
                                             open_body(container)));
  answer.count = read.count;
  answer.etag = read.position.etag();
  answer.heads = std::move(read.heads);
  if (read.ended_life) answer.warning = feed_warning(*read.ended_life);
  answer.resolved_ts =
      resolved_ts(read.caught_up, resolved, read.below_merge, read.count, read.last_ts);
  if (read.count == 0 && read.caught_up) return answer;
  answer.body = std::move(read.text);
  close_feed(answer.body, read.count);
  return answer;
}

void add_heads(http::Response& response, const Context& context, const ChangeFeedRequest& request,
               const std::vector<Lsn>& heads) {
  if (request.range != nullptr) {
    add_range_headers(response, context, *request.range, heads.front());
    return;
  }
  std::string token;
  const auto& ranges = context.target.container->ranges.all();
  for (std::size_t i = 0; i < ranges.size() && i < heads.size(); ++i) {
    if (!token.empty()) token.push_back(',');
    append_session_entry(token, context.token_form, context.target.container->session_version,
                         ranges[i].id, heads[i]);
  }
  response.add(headers::kSessionToken.text, token);
}

// ── how much is left ─────────────────────────────────────────────────────────────────────────────

Result<feed::ContainerLag> count_lag(const Services& services, const catalog::Container& container,
                                     const ChangeFeedRequest& request, WorkBudget& work) {
  feed::PageRequest page = request.page;
  page.work = &work;
  const bool now = request.start.kind == feed::Start::Kind::Now;
  if (request.range != nullptr) {
    const partition::Partition& partition = *request.range->partition;
    if (now) page.after = partition.head();
    feed::ContainerLag counted;
    ORRERY_TRY(counted.sum, services.feed.lag(partition, page));
    counted.heads = {counted.sum.head};
    return counted;
  }
  std::vector<feed::ContainerRange> ranges;
  for (const catalog::Range& range : container.ranges.all()) {
    ranges.push_back({range.partition->number(), range.epks});
  }
  ORRERY_TRY(const auto snapshot, services.feed.snapshot());
  for (const catalog::Range& range : container.ranges.all())
    ORRERY_TRY(range.partition->check_in_place());
  feed::ContainerPosition from = request.container_start;
  if (now) {
    ORRERY_TRY(auto heads, feed::find_container_heads(snapshot, ranges));
    from = std::move(heads.position);
  }
  return feed::container_lag(services.feed, snapshot, ranges, from, page);
}

http::Response lag_reply(Context& context, const ChangeFeedRequest& request,
                         const feed::ContainerLag& lag) {
  context.charge = kMetadataRead;
  auto response = reply(context, 200);
  std::string etag;
  if (request.range != nullptr) {
    etag = feed::feed_etag(lag.heads.front());
  } else {
    std::vector<feed::ContainerPosition::Part> parts;
    const auto& ranges = context.target.container->ranges.all();
    parts.reserve(ranges.size());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      parts.push_back({ranges[i].epks.min, lag.heads[i]});
    }
    etag = feed::ContainerPosition(std::move(parts)).etag();
  }
  response.add(headers::kEtag.text, etag);
  response.add(headers::kPendingItems.text, lag.sum.items);
  response.add(headers::kPendingBytes.text, lag.sum.bytes);
  response.add(headers::kPendingLsn.text, lag.sum.lsns);
  if (lag.sum.oldest_ts) {
    response.add(headers::kOldestPendingTs.text, static_cast<std::uint64_t>(*lag.sum.oldest_ts));
  }
  add_container_paths(response, *context.target.container);
  add_heads(response, context, request, lag.heads);
  return response;
}

}  // namespace

std::optional<ChangeFeedAnswer> answer_from_memory(const Services& services,
                                                   const ChangeFeedRequest& request) {
  const bool plain =
      request.page.mode == feed::Mode::Latest && !request.page.tombstones && !request.since;
  if (request.range == nullptr || !plain) return std::nullopt;
  partition::Partition& partition = *request.range->partition;
  const UnixSeconds resolved = partition.resolved(services.clock.unix_seconds());
  feed::PageRequest page;
  page.after = request.start.kind == feed::Start::Kind::Now ? partition.head() : request.page.after;
  auto read = services.feed.caught_up(partition, page);
  if (!read) return std::nullopt;
  return answer_of(std::move(*read), resolved);
}

Result<ChangeFeedAnswer> read_change_feed(const Services& services,
                                          const catalog::ContainerPtr& container,
                                          const ChangeFeedRequest& request, WorkBudget& work) {
  if (request.range == nullptr) return read_whole(services, *container, request, work);
  if (request.since) return find_time(services, container, request, work);
  feed::PageRequest page = request.page;
  if (request.start.kind == feed::Start::Kind::Now) page.after = request.range->partition->head();
  return read_range(services, container, request, page, work);
}

std::string feed_warning(const feed::EndedLife& life) {
  return fmt::format(
      "position {} was given out before the server's data was put back from a copy, or lost its "
      "last writes: only the changes up to {} are still here. All that is new is shown; documents "
      "that were read before may differ from those that are here.",
      life.position.value, life.ended.value);
}

http::Response change_feed_reply(const Services& services, Context& context,
                                 const ChangeFeedRequest& request, ChangeFeedAnswer answer) {
  context.charge = answer.not_modified() ? kRefused : feed_page_charge(answer.body_size());
  auto response = reply(context, answer.not_modified() ? 304 : 200, std::move(answer.body));
  response.shared_body = std::move(answer.shared_body);
  response.add(headers::kEtag.text, answer.etag);
  response.add(headers::kItemCount.text, answer.count);
  add_container_paths(response, *context.target.container);
  add_heads(response, context, request, answer.heads);
  if (answer.resolved_ts && *answer.resolved_ts > 0) {
    response.add(headers::kResolvedTs.text, static_cast<std::uint64_t>(*answer.resolved_ts));
  }
  response.add(headers::kLife.text, services.catalog.life());
  if (!answer.warning.empty()) response.add(headers::kFeedWarning.text, answer.warning);
  if (answer.applied_representation) {
    response.add(headers::kPreferenceApplied.text, "return=representation");
  }
  return response;
}

namespace {

/// Whether many readers are likely to be at the same place.
bool is_at_tail(const ChangeFeedRequest& request) {
  constexpr std::uint64_t kTailLsns = 64;
  if (request.range == nullptr || request.start.kind != feed::Start::Kind::After) return false;
  const Lsn head = request.range->partition->head();
  return head.value - std::min(head.value, request.page.after.value) <= kTailLsns;
}

/// A page with something in it, if there is one within the patience of clients. Between two looks
/// for it others have their turn.
Async<ChangeFeedAnswer> read_in_turns(const Services& services, Context& context,
                                      ChangeFeedRequest& request) {
  const Cancellation cancellation = when_client_leaves(context);
  const auto patience = std::chrono::steady_clock::now() + kEmptyPageTimeMax;
  const auto lane = services.scans.lane(client_of(context));
  bool applied_representation = false;
  while (true) {
    ORRERY_CO_TRY(auto answer, co_await run_blocking(lane, [&]() -> Result<ChangeFeedAnswer> {
                    WorkBudget work(page_limits(services.page_time_max), cancellation);
                    ORRERY_TRY(auto read,
                               read_change_feed(services, context.target.container, request, work));
                    ORRERY_TRY(hold_answer(context, read.body.size()));
                    return read;
                  }));
    applied_representation |= answer.applied_representation;
    const bool is_position_only = request.since && !request.since_with_items;
    if (answer.count > 0 || answer.not_modified() || is_position_only ||
        std::chrono::steady_clock::now() > patience) {
      answer.applied_representation = applied_representation;
      co_return answer;
    }
    go_on_from(request, answer.etag);
  }
}

/// One page, and if there is none, the next one that comes within `wait`.
Async<http::Response> answer_page(Services& services, Context& context, ChangeFeedRequest& request,
                                  std::optional<std::chrono::seconds> wait) {
  auto answer = answer_from_memory(services, request);
  if (!answer && is_at_tail(request)) {
    ORRERY_CO_TRY(answer, co_await read_shared(services, context, request));
  } else if (!answer) {
    ORRERY_CO_TRY(answer, co_await read_in_turns(services, context, request));
  }
  bool waited = true;
  if (wait && answer->not_modified()) {
    ORRERY_CO_TRY(answer, co_await wait_for_change(services, context, request, std::move(*answer),
                                                   context.begun + *wait, waited));
  }
  auto response = change_feed_reply(services, context, request, std::move(*answer));
  if (wait && waited) response.add(headers::kPreferenceApplied.text, "wait");
  co_return response;
}

}  // namespace

Async<http::Response> change_feed(Services& services, Context& context) {
  ORRERY_CO_TRY(auto request, parse_change_feed(services, context));
  if (const auto form = stream_form(context)) {
    co_return co_await stream_changes(services, context, std::move(request), *form);
  }
  co_return co_await answer_page(services, context, request, wait_preference(context));
}

Async<http::Response> change_feed_lag(Services& services, Context& context) {
  if (!context.header(headers::kIfModifiedSince).empty()) {
    co_return Error(ErrorCode::BadRequest,
                    "How much is left to read is counted from a position: give If-None-Match, and "
                    "leave If-Modified-Since out.");
  }
  ORRERY_CO_TRY(auto request, parse_change_feed(services, context));
  const Cancellation cancellation = when_client_leaves(context);
  const auto lane = services.scans.lane(client_of(context));
  ORRERY_CO_TRY(const auto lag, co_await run_blocking(lane, [&] {
                  WorkLimits limits = page_limits(services.page_time_max);
                  limits.deadline = std::chrono::steady_clock::now() + kLagTimeMax;
                  WorkBudget work(limits, cancellation);
                  return count_lag(services, *context.target.container, request, work);
                }));
  co_return lag_reply(context, request, lag);
}

}  // namespace orrery::api
