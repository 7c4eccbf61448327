#include "processor/group/estimator.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "json/value.h"
#include "protocol/tokens/session_token.h"

namespace orrery::processor {
namespace {

/// The lag that the originals report when they can't tell: enough to wake somebody up.
constexpr std::uint64_t kSomething = 1;

std::optional<std::int64_t> session_lsn(std::string_view token) {
  std::int64_t plain = 0;
  const char* end = token.data() + token.size();
  const auto [stop, failure] = std::from_chars(token.data(), end, plain);
  if (failure == std::errc() && stop == end) return plain;
  const auto entries = parse_session_token(token);
  if (!entries || entries->empty()) return std::nullopt;
  return static_cast<std::int64_t>(entries->back().lsn.value);
}

std::optional<std::int64_t> change_lsn(std::string_view change) {
  const auto document = json::Value::of_checked(change);
  json::Value lsn = document.member("_lsn");
  if (!lsn.is_number()) lsn = document.member("metadata").member("lsn");
  if (!lsn.is_number() || !lsn.as_number().is_integer) return std::nullopt;
  return lsn.as_number().integer;
}

/// Without the server's help, for one range.
Async<std::uint64_t> estimated(FeedReader& reader, FeedRequest request) {
  request.page_size = 1;
  const FeedAnswer answer = co_await reader.read(std::move(request));
  switch (answer.kind) {
    case FeedAnswer::Kind::Page:
      if (answer.page.empty()) co_return std::uint64_t{0};
      co_return estimate_lag(answer.session_token, answer.page[0]);
    case FeedAnswer::Kind::NotModified:
      co_return std::uint64_t{0};
    case FeedAnswer::Kind::Gone:
      co_return kSomething;
    case FeedAnswer::Kind::NotFound:
      co_return Error(ErrorCode::NotFound, answer.message);
    default:
      co_return Error(ErrorCode::Unavailable,
                      fmt::format("the change feed can't be read: {}", answer.message));
  }
}

}  // namespace

std::uint64_t estimate_lag(std::string_view session_token,
                           const std::optional<std::string_view>& first) {
  if (!first) return 0;
  const auto head = session_lsn(session_token);
  const auto next = change_lsn(*first);
  if (!head || !next) return kSomething;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(*head - (*next - 1), 0));
}

Async<LeaseLag> lease_lag(FeedReader& reader, Lease lease, Ranges ranges) {
  LeaseLag lag;
  lag.lease_token = lease.token;
  lag.owner = lease.owner;
  const auto targets = targets_of(lease, ranges);
  if (!lease.position || targets.empty()) {
    lag.documents = kSomething;
    co_return lag;
  }
  lag.exact = true;
  PendingChanges exactly;
  for (const FeedTarget& target : targets) {
    FeedRequest request;
    request.range_id = target.range_id;
    request.slice = target.slice;
    request.after = *lease.position;
    request.mode = lease.mode.value_or(client::ChangeFeedMode::LatestVersion);
    const auto pending = co_await reader.pending(request);
    if (!pending && pending.error().code() == ErrorCode::RangeGone) {
      lag.exact = false;
      lag.documents += kSomething;
      continue;
    }
    if (!pending) co_return pending.error();
    if (*pending) {
      lag.documents += (*pending)->documents;
      exactly.bytes += (*pending)->bytes;
      exactly.age = std::max(exactly.age, (*pending)->age);
      continue;
    }
    lag.exact = false;
    ORRERY_CO_TRY(const auto documents, co_await estimated(reader, std::move(request)));
    lag.documents += documents;
  }
  if (lag.exact) {
    lag.bytes = exactly.bytes;
    lag.age = exactly.age;
  }
  co_return lag;
}

}  // namespace orrery::processor
