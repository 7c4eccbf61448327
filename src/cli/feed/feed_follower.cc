#include "cli/feed/feed_follower.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/feed/feed_line.h"
#include "cli/terminal/utc_time.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/http_date.h"
#include "protocol/wire/resource_path.h"

namespace orrery::cli {
namespace {

/// The server says something every 15 seconds by default; silence for longer is a dead connection.
constexpr std::chrono::seconds kSilenceMax{60};
constexpr std::chrono::milliseconds kFirstDelay{100};
constexpr std::chrono::milliseconds kDelayMax{5000};

bool is_etag(std::string_view text) {
  if (text.starts_with('"') && text.ends_with('"') && text.size() > 2) {
    text = text.substr(1, text.size() - 2);
  }
  return text.starts_with("c:") ||
         (!text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }));
}

std::string as_etag(std::string_view etag) {
  return etag.starts_with('"') ? std::string(etag) : fmt::format("\"{}\"", etag);
}

/// Whether a retry may succeed: the server is away, overloaded, or restarting.
bool is_transient(const Error& error) {
  return error.code() == ErrorCode::Unavailable || error.code() == ErrorCode::TooManyRequests;
}

}  // namespace

FeedFollower::FeedFollower(Connection& connection, FeedChoice choice)
    : connection_(connection), choice_(std::move(choice)) {}

client::Request FeedFollower::request() const {
  client::Request request;
  request.path = "/" + percent_encode_path(choice_.link) + "/docs";
  auto add = [&request](HeaderName name, std::string value) {
    request.headers.emplace_back(name.text, std::move(value));
  };
  add(headers::kAIm, choice_.all_versions ? "Full-Fidelity Feed" : "Incremental feed");
  if (choice_.all_versions) add(headers::kChangeFeedWireFormatVersion, "2021-09-15");
  if (!choice_.range.empty()) {
    add(headers::kPartitionKeyRangeId, choice_.range);
  } else if (!choice_.key.empty()) {
    add(headers::kPartitionKey, choice_.key);
  } else {
    add(headers::kFeedScope, "container");
  }
  if (!choice_.filter.empty()) add(headers::kFeedFilter, percent_encode_path(choice_.filter));
  if (!position_.empty()) add(headers::kIfNoneMatch, position_);
  if (position_.empty() && !modified_since_.empty()) {
    add(headers::kIfModifiedSince, modified_since_);
  }
  return request;
}

Result<> FeedFollower::fix_start() {
  if (fixed_) return {};
  if (choice_.from == "beginning") {
    fixed_ = true;
    return {};
  }
  if (is_etag(choice_.from)) {
    position_ = as_etag(choice_.from);
    fixed_ = true;
    return {};
  }
  if (choice_.from == "now") {
    position_ = "*";
  } else {
    const auto time = parse_utc_time(choice_.from);
    if (!time) {
      return Error(ErrorCode::BadRequest,
                   fmt::format("'{}' is no place to begin: say beginning, now, a time in UTC such "
                               "as 2026-11-15T22:00:00Z, or an etag",
                               choice_.from));
    }
    modified_since_ = format_http_date(*time);
  }
  // One request that returns no change, only the position.
  auto reply = connection_.send(request(), "docs", choice_.link);
  if (!reply) {
    position_.clear();
    return Error(reply.error());
  }
  position_ = reply->header(headers::kEtag);
  fixed_ = true;
  return {};
}

Result<> FeedFollower::drain(const Take& take) {
  ORRERY_TRY(fix_start());
  for (;;) {
    ORRERY_TRY(auto reply, connection_.send(request(), "docs", choice_.link));
    const std::string etag(reply.header(headers::kEtag));
    if (reply.status == 304) return {};
    ORRERY_TRY(auto line, FeedLine::parse(reply.body));
    position_ = etag;
    if (!take({etag, std::move(line.items)})) return {};
  }
}

Result<> FeedFollower::read_stream(const Take& take, bool& ended) {
  std::string unfinished;
  Result<> outcome;
  const auto take_line = [&](std::string_view text) {
    if (text.empty()) return true;  // A heartbeat.
    auto line = FeedLine::parse(text);
    if (!line) {
      outcome = Error(line.error());
      return false;
    }
    if (!line->event.empty()) {
      // The last line: the stream cannot go on from here as it is.
      outcome = Error(
          ErrorCode::RangeGone,
          line->event == "gone"
              ? fmt::format("range {} is gone (split or merged{}). Go on with the ranges of today: "
                            "--range ID --from '{}'",
                            choice_.range, line->detail, position_)
              : fmt::format("the position {} is no longer kept by the server ({})", position_,
                            line->event));
      return false;
    }
    position_ = line->etag;
    if (line->items.empty() || take({line->etag, std::move(line->items)})) return true;
    ended = true;
    return false;
  };
  auto asked = request();
  asked.headers.emplace_back("accept", "application/x-ndjson");
  auto reply = connection_.stream(
      std::move(asked), "docs", choice_.link, kSilenceMax, [&](std::string_view piece) {
        unfinished.append(piece);
        std::size_t begin = 0;
        for (std::size_t end; (end = unfinished.find('\n', begin)) != std::string::npos;
             begin = end + 1) {
          if (!take_line(std::string_view(unfinished).substr(begin, end - begin))) return false;
        }
        unfinished.erase(0, begin);
        return true;
      });
  if (!outcome) return outcome;
  if (!reply) return Error(reply.error());
  return {};
}

Result<> FeedFollower::follow(const Take& take,
                              const std::function<void(const std::string&)>& tell) {
  auto delay = kFirstDelay;
  bool away = false;
  for (;;) {
    bool ended = false;
    bool alive = false;
    auto outcome = fix_start();
    if (outcome) {
      outcome = read_stream(
          [&](const FeedGroup& group) {
            alive = true;
            return take(group);
          },
          ended);
    }
    if (ended) return {};
    if (!outcome && !is_transient(outcome.error())) return outcome;
    if (alive || outcome) {
      delay = kFirstDelay;
      away = false;
    }
    if (!outcome && !away) {
      tell(fmt::format("{}; trying again", outcome.error().message()));
      away = true;
    }
    std::this_thread::sleep_for(delay);
    delay = std::min(delay * 2, kDelayMax);
  }
}

Result<FeedFollower::Lag> FeedFollower::lag() {
  ORRERY_TRY(fix_start());
  auto asked = request();
  asked.method = "HEAD";
  const auto reply = connection_.send(std::move(asked), "docs", choice_.link);
  if (!reply) {
    // An answer to HEAD has no body, and so no words. The same request as GET has them.
    ORRERY_TRY(connection_.send(request(), "docs", choice_.link));
    return Error(reply.error());
  }
  const auto header = [&reply](HeaderName name) { return std::string(reply->header(name)); };
  return Lag{header(headers::kPendingItems), header(headers::kPendingBytes),
             header(headers::kPendingLsn), header(headers::kOldestPendingTs),
             header(headers::kEtag)};
}

}  // namespace orrery::cli
