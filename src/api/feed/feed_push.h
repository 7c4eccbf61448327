// Readers of the change feed that need not poll: those who wait for a change, and those to whom
// changes are streamed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/context.h"
#include "api/feed/change_feed.h"
#include "api/services.h"
#include "base/async.h"
#include "feed/push.h"
#include "http/message.h"

namespace orrery::api {

/// `Accept: text/event-stream` or `application/x-ndjson`: the reader wants a stream.
enum class StreamForm { Events, Lines };
std::optional<StreamForm> stream_form(const Context& context);
/// `Prefer: wait=N`, at most a minute.
std::optional<std::chrono::seconds> wait_preference(const Context& context);
/// If-None-Match; of a stream that is taken up again, Last-Event-ID. Nothing when there is neither.
std::optional<std::string_view> start_header(const Context& context);

/// From where on to read: what an etag of ours says.
void go_on_from(ChangeFeedRequest& request, std::string_view etag);
/// All that makes a difference to what such a request reads, apart from its position.
std::string shape_of(const Context& context, const ChangeFeedRequest& request);
/// The moment of feed::SharedReads: what the request must see at least.
std::uint64_t moment_of(const std::vector<Lsn>& heads);
std::vector<Lsn> heads_now(const catalog::Container& container, const ChangeFeedRequest& request);

/// Where such a request is read at the end of the log: with a filter, which may take long, among
/// those that take long. Nothing: where tail reads are.
std::optional<BackgroundPool::Lane> lane_of(const Services& services, const Context& context,
                                            const ChangeFeedRequest& request);

/// As read_change_feed, but shared with others who ask for the same at this moment.
Async<ChangeFeedAnswer> read_shared(Services& services, Context& context,
                                    const ChangeFeedRequest& request);

/// Waits until there is something to answer with instead of `caught_up`, a 304, or until the
/// deadline. Errors as read_change_feed; RangeGone also when the range is replaced meanwhile. If
/// too many wait, the answer comes back as it is, and `waited` is false.
Async<ChangeFeedAnswer> wait_for_change(Services& services, Context& context,
                                        ChangeFeedRequest& request, ChangeFeedAnswer caught_up,
                                        std::chrono::steady_clock::time_point deadline,
                                        bool& waited);

/// An answer that does not end: see feed_stream.cc. TooManyRequests; errors as read_change_feed.
Async<http::Response> stream_changes(Services& services, Context& context,
                                     ChangeFeedRequest request, StreamForm form);

}  // namespace orrery::api
