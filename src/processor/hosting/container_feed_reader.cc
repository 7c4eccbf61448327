#include "processor/hosting/container_feed_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>

#include <fmt/format.h>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/post.hpp>

#include "base/clock.h"
#include "client/handles/container_access.h"
#include "json/value.h"
#include "orrery/exception.h"
#include "processor/errors.h"
#include "protocol/ids.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/http_date.h"

namespace orrery::processor {

namespace {

using client::CosmosException;

constexpr int kNameCacheStale = 1000;       // of a 410: another container has the name
constexpr int kSessionNotAvailable = 1002;  // of a 404
constexpr int kOtherContainer = 1024;       // of a 400: likewise
/// Pages of one list of ranges: more than any container has.
constexpr int kRangesPagesMax = 1000;
constexpr std::string_view kReducePageSize = "Reduce page size and try again";
constexpr std::string_view kWireFormat = "2021-09-15";

void add(client::Call& call, HeaderName name, std::string value) {
  call.headers.emplace_back(name.text, std::move(value));
}

/// The arguments of Pipeline::send_async's callback.
struct Sent {
  client::Answer answer;
  std::exception_ptr failure;
};

asio::awaitable<Sent> send(client::Pipeline& pipeline, client::Call call,
                           client::RequestOptions options) {
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(Sent)>(
      [&pipeline](auto handler, client::Call request, client::RequestOptions how) {
        const auto executor = asio::get_associated_executor(handler);
        // Done has to be copyable, which a handler is not.
        auto kept = std::make_shared<decltype(handler)>(std::move(handler));
        pipeline.send_async(
            std::move(request), std::move(how),
            [kept, executor](client::Answer answer, std::exception_ptr failure) {
              asio::post(executor,
                         [kept, sent = Sent{std::move(answer), std::move(failure)}]() mutable {
                           std::move (*kept)(std::move(sent));
                         });
            });
      },
      asio::use_awaitable, std::move(call), std::move(options));
}

std::optional<std::uint64_t> number_in(const client::Answer& answer, HeaderName name) {
  const std::string_view text = answer.header(name.text);
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

/// "https://Example.org:8081/" → "example.org".
std::string host_of(std::string_view endpoint) {
  if (const auto scheme = endpoint.find("://"); scheme != std::string_view::npos) {
    endpoint.remove_prefix(scheme + 3);
  }
  endpoint = endpoint.substr(0, endpoint.find('/'));
  if (endpoint.starts_with('[')) {
    endpoint = endpoint.substr(0, endpoint.find(']') + 1);
  } else {
    endpoint = endpoint.substr(0, endpoint.find(':'));
  }
  std::string host(endpoint);
  std::ranges::transform(host, host.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return host;
}

/// The names in "dbs/x/colls/y".
std::pair<std::string, std::string> names_in(const std::string& link) {
  const std::size_t colls = link.find("/colls/");
  return {link.substr(4, colls - 4), link.substr(colls + 7)};
}

/// Adds the ranges in one page of their list.
Result<> append_ranges(std::string_view body, std::vector<client::PartitionKeyRange>& ranges) {
  const auto page = json::Value::parse(body);
  if (!page || !page->member("PartitionKeyRanges").is_array()) {
    return Error(ErrorCode::Unavailable, "the list of ranges is none");
  }
  const json::Value list = page->member("PartitionKeyRanges");
  for (json::Reader each(list); each.next();) {
    const json::Value described = each.value();
    client::PartitionKeyRange& range = ranges.emplace_back();
    range.id = described.member("id").string_or_empty();
    range.range = {described.member("minInclusive").string_or_empty(),
                   described.member("maxExclusive").string_or_empty()};
    const json::Value parents = described.member("parents");
    for (json::Reader parent(parents); parent.next();) {
      range.parents.push_back(parent.value().string_or_empty());
    }
  }
  return {};
}

/// Runs something that blocks and throws.
template <typename T, typename Work>
Result<T> attempt(const Work& work) {
  try {
    return work();
  } catch (...) {
    return error_of(std::current_exception());
  }
}

}  // namespace

FeedAnswer feed_refusal(std::exception_ptr failure) {
  FeedAnswer answer;
  answer.kind = FeedAnswer::Kind::Failed;
  try {
    std::rethrow_exception(std::move(failure));
  } catch (const CosmosException& exception) {
    using Kind = FeedAnswer::Kind;
    const int status = exception.status();
    const int sub_status = exception.sub_status();
    answer.status = status;
    answer.message = exception.what();
    answer.retry_after = exception.retry_after();
    const bool other_container = (status == 410 && sub_status == kNameCacheStale) ||
                                 (status == 400 && sub_status == kOtherContainer);
    if (status == 404 && sub_status == kSessionNotAvailable) {
      answer.kind = Kind::SessionNotAvailable;
    } else if (status == 404 || other_container) {
      answer.kind = Kind::NotFound;
    } else if (status == 410) {
      answer.kind = Kind::Gone;
    } else if (status == 400 && answer.message.find(kReducePageSize) != std::string::npos) {
      answer.kind = Kind::PageTooLarge;
    } else if (status == 408 || status == 429 || status == 449 || status >= 500) {
      answer.kind = Kind::Throttled;
    } else if (exception.failure() == client::Failure::Network ||
               exception.failure() == client::Failure::Timeout) {
      answer.kind = Kind::Throttled;
    }
  } catch (const std::exception& exception) {
    answer.message = exception.what();
  }
  return answer;
}

ContainerFeedReader::ContainerFeedReader(client::Container container, int ranges_page_size)
    : container_(std::move(container)), ranges_page_size_(ranges_page_size), pool_(1) {}

client::Call ContainerFeedReader::feed_call(const FeedRequest& request, std::string method) const {
  client::Call call;
  call.method = std::move(method);
  call.type = "docs";
  call.link = container_.link();
  call.list = true;
  call.container = container_.link();
  if (request.mode == client::ChangeFeedMode::AllVersionsAndDeletes) {
    add(call, headers::kAIm, "Full-Fidelity Feed");
    add(call, headers::kChangeFeedWireFormatVersion, std::string(kWireFormat));
  } else {
    add(call, headers::kAIm, "Incremental Feed");
  }
  add(call, headers::kPartitionKeyRangeId, request.range_id);
  if (request.slice) {
    if (!request.slice->min.empty()) add(call, headers::kStartEpk, request.slice->min);
    add(call, headers::kEndEpk, request.slice->max);
    add(call, headers::kReadKeyType, "EffectivePartitionKeyRange");
  }
  if (request.since) {
    const auto since = std::chrono::floor<std::chrono::seconds>(request.since->time_since_epoch());
    add(call, headers::kIfModifiedSince, format_http_date(since.count()));
  } else if (!request.after.empty()) {
    add(call, headers::kIfNoneMatch, request.after);
  }
  return call;
}

asio::awaitable<FeedAnswer> ContainerFeedReader::read(FeedRequest request) {
  client::Call call = feed_call(request, "GET");
  add(call, headers::kMaxItemCount, request.page_size ? std::to_string(*request.page_size) : "-1");
  if (request.wait) add(call, headers::kPrefer, fmt::format("wait={}", request.wait->count()));
  client::RequestOptions options;
  if (!request.session_token.empty()) options.session_token = request.session_token;
  options.timeout = request.time_max;
  options.stop = request.stop;
  Sent sent = co_await send(client::ContainerAccess::pipeline(container_), std::move(call),
                            std::move(options));
  if (sent.failure) co_return feed_refusal(std::move(sent.failure));

  FeedAnswer answer;
  answer.status = sent.answer.status;
  answer.etag = sent.answer.etag;
  answer.session_token = sent.answer.session_token;
  answer.waited =
      sent.answer.header(headers::kPreferenceApplied.text).find("wait") != std::string_view::npos;
  answer.warning = sent.answer.header(headers::kFeedWarning.text);
  if (answer.status == 304) co_return answer;
  answer.kind = FeedAnswer::Kind::Page;
  try {
    answer.page = client::item_page(std::move(sent.answer), "Documents", answer.etag);
  } catch (const CosmosException& exception) {
    answer.kind = FeedAnswer::Kind::Failed;
    answer.message = exception.what();
  }
  co_return answer;
}

Async<std::vector<client::PartitionKeyRange>> ContainerFeedReader::ranges() {
  // As they are now, not as the client remembers them.
  std::vector<client::PartitionKeyRange> all;
  std::string continuation;
  for (int page = 0; page < kRangesPagesMax; ++page) {
    client::Call call;
    call.method = "GET";
    call.type = "pkranges";
    call.link = container_.link();
    call.list = true;
    add(call, headers::kMaxItemCount, std::to_string(ranges_page_size_));
    if (!continuation.empty()) add(call, headers::kContinuation, continuation);
    const Sent sent =
        co_await send(client::ContainerAccess::pipeline(container_), std::move(call), {});
    if (sent.failure) co_return error_of(sent.failure);
    ORRERY_CO_TRY(append_ranges(sent.answer.body, all));
    continuation = sent.answer.header(headers::kContinuation.text);
    if (continuation.empty()) co_return all;
  }
  co_return Error(ErrorCode::Unavailable, "the list of ranges does not end");
}

Async<std::vector<std::string>> ContainerFeedReader::partition_key_paths() {
  using Paths = std::vector<std::string>;
  co_return co_await run_blocking(pool_, [container = container_] {
    return attempt<Paths>([&] { return container.read().value.partition_key_paths; });
  });
}

Async<FeedReader::Identity> ContainerFeedReader::identity() {
  co_return co_await run_blocking(pool_, [container = container_] {
    return attempt<Identity>([&] {
      const auto [database, name] = names_in(container.link());
      const std::string rid = container.read().value.rid;
      const auto parsed = Rid::parse(rid);
      return Identity{host_of(client::ContainerAccess::pipeline(container).endpoint()),
                      parsed ? parsed->database_rid().text() : std::string(), rid, database, name};
    });
  });
}

Async<std::optional<PendingChanges>> ContainerFeedReader::pending(FeedRequest request) {
  client::Call call = feed_call(request, "HEAD");
  call.accepted = {405, 501};  // A server that has no such request.
  client::RequestOptions options;
  options.timeout = request.time_max;
  options.stop = request.stop;
  const Sent sent = co_await send(client::ContainerAccess::pipeline(container_), std::move(call),
                                  std::move(options));
  if (sent.failure) co_return error_of(sent.failure);
  const auto documents = number_in(sent.answer, headers::kPendingItems);
  if (!documents) co_return std::optional<PendingChanges>();
  PendingChanges pending;
  pending.documents = *documents;
  pending.bytes = number_in(sent.answer, headers::kPendingBytes).value_or(0);
  if (const auto oldest = number_in(sent.answer, headers::kOldestPendingTs)) {
    // By the server's clock where it tells the time: ours may be another.
    const UnixSeconds now = parse_http_date(sent.answer.header(headers::kDate.text))
                                .value_or(SystemClock().unix_seconds());
    pending.age =
        std::chrono::seconds(std::max<UnixSeconds>(now - static_cast<UnixSeconds>(*oldest), 0));
  }
  co_return std::optional(pending);
}

}  // namespace orrery::processor
