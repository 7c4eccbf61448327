// The read feed: the documents of a container in `_rid` order, page by page.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/documents/document_request.h"
#include "api/feed/change_feed.h"
#include "api/feed/feed_scope.h"
#include "api/handlers.h"
#include "api/reply.h"
#include "api/target.h"
#include "executor/range_slice.h"
#include "feed/prefetch.h"
#include "partition/read/scan.h"
#include "protocol/tokens/continuation.h"
#include "protocol/wire/headers.h"

namespace orrery::api::documents {
namespace {

constexpr std::uint32_t kFeedPageDefault = 100;
constexpr std::size_t kPageBytesMax = 4 << 20;

Result<feed::PreparedPage> read_page(const Services& services, const catalog::Container& container,
                                     const executor::ContainerScope& scope,
                                     const ReadFeedPosition& at,
                                     std::optional<std::uint32_t> count_max, WorkBudget& work) {
  feed::PreparedPage page;
  // A page without a bound by count is likely to be full.
  if (!count_max) page.body.reserve(kPageBytesMax);
  open_feed(page.body, container.rid_text, "Documents");
  // The end of the envelope must fit too.
  const std::size_t bytes_max = kPageBytesMax - 64;

  // Heads before the snapshot: what is read is at least as new as what the token says.
  for (const catalog::Range* range : scope.ranges) {
    page.heads.emplace_back(range->partition.get(), range->partition->head());
  }
  ORRERY_TRY(const auto snapshot, services.feed.snapshot());
  for (const catalog::Range* range : scope.ranges) ORRERY_TRY(range->partition->check_in_place());

  partition::ScanFilter filter = executor::live_documents(services.clock, container);
  filter.partition_key = scope.partition_key;
  partition::ScanBudget budget{count_max.value_or(UINT32_MAX), bytes_max, work};

  const auto slices = executor::slices_from(at, container.ranges, scope);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    filter.epks = executor::keys_within(slices[i], scope);
    ORRERY_TRY(const auto outcome,
               partition::scan_by_number(snapshot, slices[i].range->partition->number(),
                                         slices[i].after, filter, budget, page.body, page.count));
    if (!outcome.exhausted) {
      page.next = executor::position_in(slices, i, outcome.last);
      break;
    }
    const bool full = count_max && page.count >= *count_max;
    const bool more = std::any_of(
        slices.begin() + static_cast<std::ptrdiff_t>(i) + 1, slices.end(),
        [](const executor::RangeSlice& later) { return later.range->partition->documents() > 0; });
    if (full && more) page.next = executor::position_in(slices, i + 1, slices[i + 1].after);
    if (full) break;
  }
  close_feed(page.body, page.count);
  return page;
}

/// The prefix of all prefetch keys of one reader: container, partition key, range, EPKs.
std::string reader_key(const Context& context) {
  std::string key = context.target.container->rid_text;
  for (const HeaderName name : {headers::kPartitionKey, headers::kPartitionKeyRangeId,
                                headers::kStartEpk, headers::kEndEpk}) {
    key.append("\n").append(context.header(name));
  }
  return key.append("\n");
}

std::optional<feed::PrefetchChain::Next> next_page(const Services& services,
                                                   const catalog::ContainerPtr& container,
                                                   const executor::ContainerScope& scope,
                                                   const std::string& reader,
                                                   const feed::PreparedPage& page) {
  // Where others write, what is read ahead is out of date before it is asked for.
  const bool quiet = std::ranges::all_of(
      page.heads, [](const auto& each) { return each.first->head() == each.second; });
  if (!page.next || !quiet) return {};
  return feed::PrefetchChain::Next{
      reader + encode_continuation(*page.next), [&services, container, scope, next = *page.next] {
        WorkBudget work(page_limits(services.page_time_max));
        return read_page(services, *container, scope, next, std::nullopt, work);
      }};
}

/// Reads the page that a request asks for, and goes on with those after it where they are likely to
/// be asked for next. Blocks.
Result<feed::PreparedPage> read_page_and_ahead(const Services& services, const Context& context,
                                               const executor::ContainerScope& scope,
                                               const ReadFeedPosition& position,
                                               std::optional<std::uint32_t> count_max,
                                               const Cancellation& cancellation) {
  WorkBudget work(page_limits(services.page_time_max), cancellation);
  const auto container = context.target.container;
  // Only whole-sale readers hurry. And where documents expire, a page is good for a second only.
  const bool hurried = !count_max && !container->rules.default_ttl;
  if (!hurried) return read_page(services, *container, scope, position, count_max, work);
  const std::string reader = reader_key(context);
  std::optional<feed::PreparedPage> ready;
  if (const auto token = context.header(headers::kContinuation); !token.empty()) {
    ready = services.prefetcher.take(reader + std::string(token), container);
  }
  if (ready) {
    ready->ahead->page_taken();
  } else {
    ORRERY_TRY(ready, read_page(services, *container, scope, position, count_max, work));
    std::make_shared<feed::PrefetchChain>(
        services.prefetcher, services.scans, container,
        [&services, container, scope, reader](const feed::PreparedPage& page) {
          return next_page(services, container, scope, reader, page);
        })
        ->after(*ready);
  }
  return std::move(*ready);
}

Async<http::Response> feed(Services& services, Context& context) {
  const auto container = context.target.container;
  ORRERY_CO_TRY(check_consistency(context));
  ORRERY_CO_TRY(const auto count_max, page_size(context, kFeedPageDefault));
  ORRERY_CO_TRY(const auto scope, feed_scope(context, *container));
  for (const catalog::Range* range : scope.ranges) {
    ORRERY_CO_TRY(check_session(context, *range));
  }
  ReadFeedPosition position;
  if (const auto token = context.header(headers::kContinuation); !token.empty()) {
    ORRERY_CO_TRY(position, decode_read_feed_continuation(token));
  }
  const Cancellation cancellation = when_client_leaves(context);
  const auto lane = services.scans.lane(client_of(context));
  ORRERY_CO_TRY(auto page, co_await run_blocking(lane, [&]() -> Result<feed::PreparedPage> {
                  ORRERY_TRY(auto read, read_page_and_ahead(services, context, scope, position,
                                                            count_max, cancellation));
                  ORRERY_TRY(hold_answer(context, read.body.size()));
                  return read;
                }));
  context.charge = feed_page_charge(page.body.size());
  auto response = reply(context, 200, std::move(page.body));
  response.add(headers::kItemCount.text, page.count);
  add_container_paths(response, *container);
  std::vector<std::pair<const catalog::Range*, Lsn>> heads;
  heads.reserve(scope.ranges.size());
  for (std::size_t i = 0; i < scope.ranges.size(); ++i) {
    heads.emplace_back(scope.ranges[i], page.heads[i].second);
  }
  add_head_headers(response, context, heads);
  if (page.next) response.add(headers::kContinuation.text, encode_continuation(*page.next));
  co_return response;
}

}  // namespace

Async<http::Response> read_feed(Services& services, Context& context) {
  co_return co_await feed(services, context);
}

}  // namespace orrery::api::documents
