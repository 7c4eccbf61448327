// The change feed over HTTP: what a request asks for, and what it is answered with. Reading it is
// the business of the module feed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/context.h"
#include "api/services.h"
#include "base/async.h"
#include "base/result.h"
#include "catalog/resources.h"
#include "feed/page.h"
#include "feed/position.h"
#include "http/message.h"

namespace orrery::api {

/// A request for the change feed, understood. Belongs to the context's container, which the context
/// keeps alive.
struct ChangeFeedRequest {
  /// Mode, scope, budgets and container; `after` once it is known: see start.
  feed::PageRequest page;
  std::unique_ptr<const feed::ItemFilter> filter;  ///< what page.filter points at

  /// The range that is read; null: all of the container, merged.
  const catalog::Range* range = nullptr;
  feed::Start start;
  feed::ContainerPosition container_start;  ///< instead of start.after, of a whole container
  /// Begin after this time. Only when there is no If-None-Match.
  std::optional<UnixSeconds> since;
  bool since_with_items = false;  ///< Prefer: return=representation

  /// Those that are read: `range`, or all.
  std::vector<const catalog::Range*> ranges(const catalog::Container& container) const;
};

/// Reads the headers of a change feed request. BadRequest; RangeGone; NameCacheStale;
/// SessionNotAvailable. The context's range is set when it is known.
Result<ChangeFeedRequest> parse_change_feed(const Services& services, Context& context);

/// `wait`, `return=representation`: whether the list in Prefer has it. Parameters are ignored.
bool prefers(const Context& context, std::string_view preference);

/// An answer without its head.
struct ChangeFeedAnswer {
  std::string body;              ///< with its envelope; empty: 304
  http::SharedText shared_body;  ///< instead of body: other readers get the same
  std::size_t count = 0;
  std::string etag;        ///< with its quotes
  std::vector<Lsn> heads;  ///< of each range that was read, as of then
  std::optional<UnixSeconds> resolved_ts;
  bool applied_representation = false;
  std::string warning;  ///< feed_warning(); empty: none

  std::size_t body_size() const { return shared_body ? shared_body->size() : body.size(); }
  bool not_modified() const { return body_size() == 0; }
};

/// The answer without a read of the store, for a reader of one range that is at its head. Never
/// blocks.
std::optional<ChangeFeedAnswer> answer_from_memory(const Services& services,
                                                   const ChangeFeedRequest& request);
/// Reads one page, or finds the position of a time, until the budget is over. Blocks. Errors as
/// feed::Reader::read; RangeGone when the container's ranges have changed since it was looked up:
/// look it up again.
Result<ChangeFeedAnswer> read_change_feed(const Services& services,
                                          const catalog::ContainerPtr& container,
                                          const ChangeFeedRequest& request, WorkBudget& work);
/// With all headers that clients read. Sets the context's charge.
http::Response change_feed_reply(const Services& services, Context& context,
                                 const ChangeFeedRequest& request, ChangeFeedAnswer answer);
/// The value of x-orrery-feed-warning.
std::string feed_warning(const feed::EndedLife& life);

/// GET …/docs with A-IM.
Async<http::Response> change_feed(Services& services, Context& context);
/// HEAD …/docs with A-IM: how much is left to read.
Async<http::Response> change_feed_lag(Services& services, Context& context);

}  // namespace orrery::api
