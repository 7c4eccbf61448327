// How much a reader has before it.
#include <algorithm>
#include <charconv>
#include <deque>
#include <optional>
#include <string>

#include "base/clock.h"
#include "client/feed/change_feed_continuation.h"
#include "client/feed/change_feed_requests.h"
#include "orrery/container.h"
#include "orrery/exception.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/http_date.h"

namespace orrery::client {
namespace {

std::optional<std::uint64_t> number_of(const Answer& answer, HeaderName name) {
  const std::string_view text = answer.header(name.text);
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The lag of one range; nullopt when the server does not report it.
std::optional<ChangeFeedLag> lag_of(const Answer& answer) {
  const auto documents = number_of(answer, headers::kPendingItems);
  if (!documents) return std::nullopt;
  ChangeFeedLag lag;
  lag.documents = *documents;
  lag.bytes = number_of(answer, headers::kPendingBytes).value_or(0);
  if (const auto oldest = number_of(answer, headers::kOldestPendingTs)) {
    // By the server's clock where it tells the time: ours may be another.
    const auto now = parse_http_date(answer.header(headers::kDate.text));
    const UnixSeconds age =
        now.value_or(SystemClock().unix_seconds()) - static_cast<UnixSeconds>(*oldest);
    lag.age = std::chrono::seconds(std::max<UnixSeconds>(age, 0));
  }
  return lag;
}

}  // namespace

std::optional<ChangeFeedLag> Container::change_feed_lag(const std::string& continuation,
                                                        const RequestOptions& options) const {
  FeedContinuation from = FeedContinuation::parse(continuation);
  FeedRequests requests(pipeline_, link_, options, {.mode = from.mode, .key = std::move(from.key)});
  requests.expect_container(std::move(from.container_rid));

  std::deque<PlacedSlice> left;
  for (FeedSlice& slice : from.slices) left.push_back({std::move(slice)});
  ChangeFeedLag sum;
  while (!left.empty()) {
    if (!requests.is_placed(left.front())) {
      const auto pieces = requests.place(left.front());
      left.pop_front();
      left.insert(left.begin(), pieces.begin(), pieces.end());
    }
    Call call = requests.lag_call(left.front());
    call.accepted = {405, 501};  // A server that has no such request.
    try {
      const auto lag = lag_of(pipeline_->send(call, requests.options()));
      if (!lag) return std::nullopt;
      sum.documents += lag->documents;
      sum.bytes += lag->bytes;
      sum.age = std::max(sum.age, lag->age);
      left.pop_front();
    } catch (const CosmosException& failure) {
      if (!requests.was_misplaced(left.front(), failure)) throw;
      requests.pause(left.front());
    }
  }
  return sum;
}

}  // namespace orrery::client
