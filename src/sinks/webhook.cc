#include "sinks/webhook.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "protocol/wire/http_date.h"
#include "sinks/batch_text.h"
#include "sinks/reply.h"

namespace orrery::sinks {
namespace {

constexpr HeaderName kRetryAfter{"retry-after"};
constexpr std::chrono::hours kRetryAfterMax{1};
constexpr std::size_t kWordsMax = 200;

/// Seconds, or a date as in HTTP; 0 when it says nothing.
std::chrono::milliseconds retry_after(const client::Reply& reply, UnixSeconds now) {
  const std::string_view text = reply.header(kRetryAfter);
  std::int64_t seconds = 0;
  const char* end = text.data() + text.size();
  if (const auto [stop, failure] = std::from_chars(text.data(), end, seconds);
      failure != std::errc() || stop != end) {
    const auto date = parse_any_http_date(text);
    seconds = date ? *date - now : 0;
  }
  return std::clamp(std::chrono::seconds(seconds), std::chrono::seconds(0),
                    std::chrono::seconds(kRetryAfterMax));
}

/// The status, and the beginning of what was said with it, on one line.
std::string words_of(const client::Reply& reply) {
  std::string words = reply.body.substr(0, kWordsMax);
  std::ranges::replace_if(words, [](unsigned char letter) { return letter < ' '; }, ' ');
  return words.empty() ? fmt::format("the webhook answered {}", reply.status)
                       : fmt::format("the webhook answered {}: {}", reply.status, words);
}

}  // namespace

Result<> WebhookOptions::set_url(std::string_view url) {
  const std::size_t scheme_end = url.find("://");
  const std::string_view scheme = url.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("'{}' is no URL of a webhook: it begins with http:// or https://", url));
  }
  url = url.substr(0, url.find('#'));
  const std::size_t host = scheme_end + 3;
  const std::size_t path_begin = std::min(url.find_first_of("/?", host), url.size());
  if (path_begin == host) {
    return Error(ErrorCode::BadRequest, fmt::format("the URL '{}' names no host", url));
  }
  endpoint = url.substr(0, path_begin);
  path = url.substr(path_begin);
  if (!path.starts_with('/')) path.insert(0, "/");
  return {};
}

Delivery judge_answer(const client::Reply& reply, std::size_t count, UnixSeconds now) {
  if (reply.status >= 200 && reply.status < 300) {
    return parse_reply(reply.body, count).value_or(Delivery::done());
  }
  switch (reply.status) {
    case 408:
    case 429:
    case 502:
    case 503:
    case 504:
      return Delivery::later(words_of(reply), retry_after(reply, now));
    default:
      break;
  }
  if (reply.status >= 400 && reply.status < 500) return Delivery::refused(words_of(reply));
  return Delivery::failed(words_of(reply));
}

std::unique_ptr<client::Transport> WebhookSink::take_idle() {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      auto transport = std::move(idle_.back());
      idle_.pop_back();
      return transport;
    }
  }
  client::TransportOptions options;
  options.endpoint = options_.endpoint;
  options.certificate_file = options_.certificate_file;
  options.verify_certificate = options_.verify_certificate;
  options.request_time_max = options_.batch_time;
  return std::make_unique<client::Transport>(std::move(options));
}

void WebhookSink::put_back(std::unique_ptr<client::Transport> transport) {
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(transport));
}

Delivery WebhookSink::deliver(processor::ObserverContext& context, Changes changes) {
  client::Request request;
  request.method = "POST";
  request.path = options_.path;
  request.headers.emplace_back("content-type", "application/json");
  for (auto& [name, value] : facts_of(context, changes.size())) {
    request.headers.emplace_back("x-orrery-" + name, std::move(value));
  }
  request.headers.emplace_back("x-orrery-idempotency-key", idempotency_key(context, changes));
  for (const auto& header : options_.headers) request.headers.push_back(header);
  request.body = envelope(context, changes);

  auto transport = take_idle();
  const auto begin = std::chrono::steady_clock::now();
  const auto reply = transport->send(request);
  const auto time = std::chrono::steady_clock::now() - begin;
  put_back(std::move(transport));
  // A webhook that is away is retried later; one that takes too long may do so because of a
  // document.
  if (!reply && options_.batch_time.count() > 0 && time >= options_.batch_time) {
    return Delivery::failed(
        fmt::format("the webhook has not answered within {} ms", options_.batch_time.count()));
  }
  if (!reply) return Delivery::later(reply.error().message());
  return judge_answer(*reply, changes.size(), clock_.unix_seconds());
}

}  // namespace orrery::sinks
