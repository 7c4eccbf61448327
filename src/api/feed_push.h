// Readers of the change feed that need not poll: those who wait for a change, and those to whom
// changes are streamed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/change_feed.h"
#include "api/context.h"
#include "api/services.h"
#include "base/async.h"
#include "feed/tail.h"
#include "http/message.h"
#include "partition/read/head_watch.h"

namespace orrery::api {

/// Plain counters, published by server/metrics.cc.
struct FeedPushStats {
  std::atomic<std::uint64_t> streams{0};  ///< open now
  std::atomic<std::uint64_t> events{0};   ///< pieces with changes in them, sent to streams
  std::atomic<std::uint64_t> polls{0};    ///< requests that waited
  std::atomic<std::uint64_t> refused{0};  ///< could neither wait nor be streamed to
};

/// What all such readers of a server share. Thread-safe.
struct FeedPush {
  /// A stream that has nothing to say says so after this.
  static constexpr std::chrono::seconds kHeartbeat{15};

  explicit FeedPush(boost::asio::thread_pool& pool,
                    std::size_t readers_max = partition::WaitingRoom::kReadersMax,
                    std::chrono::milliseconds silence_max = kHeartbeat)
      : room(readers_max), tail(pool), heartbeat(silence_max) {}

  partition::WaitingRoom room;
  feed::TailReads tail;
  const std::chrono::milliseconds heartbeat;
  FeedPushStats stats;
};

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
/// The moment of feed::TailReads: what the request must see at least.
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
