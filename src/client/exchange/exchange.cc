#include "client/exchange/exchange.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "client/exchange/call_time.h"
#include "client/exchange/refusal.h"
#include "client/handles/resource.h"
#include "client/log.h"
#include "json/value.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/http_date.h"
#include "protocol/wire/resource_path.h"

namespace orrery::client {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// As the service's own clients wait after 449.
constexpr milliseconds kConflictWaitFirst{10};
constexpr milliseconds kConflictWaitMax{1000};
/// Between two questions where the account now is. A failover takes seconds.
constexpr milliseconds kMisdirectedWait{1000};
constexpr int kMisdirectedMax = 30;
/// A doubling wait stays below this.
constexpr milliseconds kLostWaitMax{10'000};
// Reads whose session is not available are sent to the write region, and there once more.
constexpr int kSessionAttemptsMax = 2;
constexpr std::string_view kSessionAdvice =
    "The server lacks what this client has read or written before. If its data was restored or "
    "made anew, a new client begins a new session.";

std::string_view consistency_text(ConsistencyLevel level) {
  switch (level) {
    case ConsistencyLevel::Strong:
      return "Strong";
    case ConsistencyLevel::BoundedStaleness:
      return "BoundedStaleness";
    case ConsistencyLevel::Session:
      return "Session";
    case ConsistencyLevel::ConsistentPrefix:
      return "ConsistentPrefix";
    case ConsistencyLevel::Eventual:
      return "Eventual";
  }
  return "Session";
}

const std::string* find_header(const HeaderList& list, std::string_view name) {
  for (const auto& [each, value] : list) {
    if (equal_ignoring_case(each, name)) return &value;
  }
  return nullptr;
}

/// Of `Prefer: …, wait=30`, as change feeds understand it.
seconds preferred_wait(const std::string* prefer) {
  if (prefer == nullptr) return seconds(0);
  std::string_view text = *prefer;
  while (!text.empty()) {
    auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (!part.starts_with("wait=")) continue;
    part.remove_prefix(5);
    std::uint32_t count = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (error == std::errc()) return seconds(std::min<std::uint32_t>(count, 3600));
  }
  return seconds(0);
}

void append_header(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ").append(value).append("\r\n");
}

/// Whether it can be sent as a header without becoming another one.
bool is_one_line(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

Account make_account(std::string endpoint, const Credential& credential) {
  auto account = credential.kind() == Credential::Kind::Key
                     ? Account::make(std::move(endpoint), credential.secret())
                     : Account::with_token(std::move(endpoint), credential.secret());
  if (!account) throw failure_of(Failure::Argument, account.error().message());
  return std::move(*account);
}

EndpointPtr parse_endpoint(const std::string& url) {
  auto endpoint = Endpoint::parse(url);
  if (!endpoint) throw failure_of(Failure::Argument, endpoint.error().message());
  return *endpoint;
}

}  // namespace

Surroundings::Surroundings(std::string endpoint, const Credential& credential,
                           ClientOptions client_options, const Clock& wall_clock,
                           std::uint64_t seed)
    : account(make_account(std::move(endpoint), credential)),
      options(std::move(client_options)),
      regions(parse_endpoint(account.endpoint()), options.preferred_regions),
      chance(seed),
      clock(wall_clock) {
  std::string agent = "orrery-cpp/" ORRERY_VERSION;
  if (!options.user_agent_suffix.empty()) agent += ' ' + options.user_agent_suffix;
  if (!is_one_line(agent)) {
    throw failure_of(Failure::Argument, "the user agent suffix has a line break");
  }
  append_header(standing_headers, headers::kUserAgent.text, agent);
  append_header(standing_headers, headers::kAccept.text, "application/json");
  append_header(standing_headers, headers::kCacheControl.text, "no-cache");
}

Exchange::Exchange(Surroundings& surroundings, const Call& call, const RequestOptions& options,
                   TimePoint now)
    : surroundings_(surroundings),
      call_(call),
      options_(options),
      begun_(now),
      attempt_time_max_(std::min(surroundings.options.request_timeout, kTimeMax)),
      conflict_next_(kConflictWaitFirst) {
  if (options.timeout) deadline_ = now + std::min(*options.timeout, kTimeMax);
  const std::string* prefer = find_header(call.headers, headers::kPrefer.text);
  if (prefer == nullptr) prefer = find_header(options.headers, headers::kPrefer.text);
  const seconds news = preferred_wait(prefer);
  waits_for_news_ = news > seconds(0);
  attempt_time_max_ += news;  // The time limit is for the answer, not for what it waits for.
  if (surroundings.options.discover_endpoints && !surroundings.regions.known()) {
    step_ = Step::Discover;
  }
}

void Exchange::discovered(TimePoint now) {
  rediscover_ = false;
  step_ = Step::Send;
  if (misdirected_count_ > 1 && !again_after(jittered(kMisdirectedWait), now)) {
    fail(Failure::Timeout, "the account was not found in any region in time", now);
  }
}

void Exchange::waited(TimePoint) { step_ = Step::Send; }

void Exchange::prepare(TimePoint now) {
  if (now >= deadline_) return time_out(now);
  region_ = &surroundings_.regions.choose(goes_to_write_region(), tried_, now);
  attempt_begun_ = now;
  attempt_deadline_ = std::min(deadline_, now + attempt_time_max_);
  activity_id_ = surroundings_.chance.uuid();

  const Endpoint& endpoint = *region_->endpoint;
  const Call& call = current();
  std::string& head = outgoing_.head;
  head.clear();
  head.reserve(1024);
  head.append(call.method).append(" ").append(endpoint.base_path).append("/");
  if (!call.link.empty()) head.append(percent_encode_path(call.link));
  if (call.list) head.append(call.link.empty() ? "" : "/").append(call.type);
  head.append(" HTTP/1.1\r\n");
  append_header(head, headers::kHost.text, endpoint.authority);
  head.append(surroundings_.standing_headers);
  append_headers(head, format_http_date(surroundings_.clock.unix_seconds()));
  if (step_ == Step::Failed) return;
  head.append("\r\n");
  outgoing_.endpoint = region_->endpoint;
  outgoing_.body = call.body;
  outgoing_.head_only = call.method == "HEAD";
  outgoing_.waits = waits_for_news_ && !container_read_;
}

bool Exchange::wants_session() const {
  if (current().container.empty() || call_.writes) return false;
  const auto level = options_.consistency                ? options_.consistency
                     : surroundings_.options.consistency ? surroundings_.options.consistency
                                                         : surroundings_.regions.consistency();
  // Of an account that was not asked it is not known: a token does no harm.
  return level.value_or(ConsistencyLevel::Session) == ConsistencyLevel::Session;
}

void Exchange::append_headers(std::string& head, std::string_view date) {
  const Call& call = current();
  append_header(head, headers::kXDate.text, date);
  // An offer is signed by its id alone, in lower case; everything else by its link.
  std::string offer;
  std::string_view link = call.link;
  if (call.type == "offers" && link.starts_with("offers/")) {
    offer = link.substr(7);
    std::ranges::transform(offer, offer.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    });
    link = offer;
  }
  append_header(head, headers::kAuthorization.text,
                surroundings_.account.authorization(call.method, call.type, link, date));
  append_header(head, headers::kActivityId.text, activity_id_);
  const auto given = [this](HeaderName name) -> const std::string* {
    const std::string* value = find_header(options_.headers, name.text);
    return value != nullptr ? value : find_header(call_.headers, name.text);
  };
  if (container_read_ || given(headers::kVersion) == nullptr) {
    append_header(head, headers::kVersion.text, kApiVersion);
  }
  if (container_read_) return;  // The other headers are about documents in it.
  const auto level =
      options_.consistency ? options_.consistency : surroundings_.options.consistency;
  if (level && !call_.container.empty() && !call_.writes) {
    append_header(head, headers::kConsistencyLevel.text, consistency_text(*level));
  }
  if (options_.session_token) {
    if (!is_one_line(*options_.session_token)) {
      return fail(Failure::Argument, "the session token has a line break", attempt_begun_);
    }
    if (!options_.session_token->empty()) {
      append_header(head, headers::kSessionToken.text, *options_.session_token);
    }
  } else if (wants_session() && given(headers::kSessionToken) == nullptr) {
    const std::string* range = given(headers::kPartitionKeyRangeId);
    // First this, then the token: should another container take the place in between, the token is
    // at least as new as the rid.
    session_rid_ = surroundings_.sessions.rid(call_.container);
    const std::string token = surroundings_.sessions.token(
        call_.container, range != nullptr ? std::string_view(*range) : std::string_view());
    if (!token.empty()) append_header(head, headers::kSessionToken.text, token);
  }
  const bool sends_body = call_.method != "GET" && call_.method != "HEAD";
  if (sends_body) {
    if (!call_.body.empty() && given(headers::kContentType) == nullptr) {
      append_header(head, headers::kContentType.text, "application/json");
    }
    append_header(head, headers::kContentLength.text, std::to_string(call_.body.size()));
  }
  const auto append_all = [&](const HeaderList& list, const HeaderList* unless_in) {
    for (const auto& [name, value] : list) {
      if (!is_one_line(name) || !is_one_line(value) || name.empty() ||
          name.find(':') != std::string::npos) {
        return fail(Failure::Argument, fmt::format("the header '{}' has a line break", name),
                    attempt_begun_);
      }
      if (unless_in != nullptr && find_header(*unless_in, name) != nullptr) continue;
      append_header(head, name, value);
    }
  };
  append_all(call_.headers, &options_.headers);
  append_all(options_.headers, nullptr);
}

bool Exchange::is_answer(int status) const {
  return (status >= 200 && status < 300) || status == 304 ||
         std::ranges::find(call_.accepted, status) != call_.accepted.end();
}

void Exchange::judge(Outcome outcome, TimePoint now) {
  if (outcome.no_answer == NoAnswer::None) {
    judge_reply(std::move(outcome.reply), now);
  } else {
    judge_no_answer(outcome, now);
  }
}

void Exchange::note_attempt(const Reply* reply, std::string_view words, TimePoint now) {
  Attempt& attempt = diagnostics_.attempts.emplace_back();
  attempt.endpoint = region_->endpoint->url;
  attempt.activity_id = std::move(activity_id_);
  attempt.duration = duration_cast<microseconds>(now - attempt_begun_);
  attempt.failure = words;
  if (reply == nullptr) return;
  attempt.status = reply->status;
  attempt.sub_status = sub_status_of(*reply);
}

void Exchange::judge_reply(Reply reply, TimePoint now) {
  note_attempt(&reply, {}, now);
  surroundings_.regions.answered(*region_);
  const int status = reply.status;
  const int sub_status = diagnostics_.attempts.back().sub_status;
  const bool session_missed = status == 404 && sub_status == 1002;
  if (!current().container.empty() && !session_missed) {
    surroundings_.sessions.remember(call_.container, reply.header(headers::kContentPath),
                                    reply.header(headers::kSessionToken));
  }
  if (container_read_ && status >= 200 && status < 300) return judge_container(reply, now);
  if (!container_read_ && is_answer(status)) {
    diagnostics_.duration = duration_cast<microseconds>(now - begun_);
    static_cast<ResponseInfo&>(answer_) = info_of(reply, std::move(diagnostics_));
    answer_.body = std::move(reply.body);
    step_ = Step::Answered;
    return;
  }
  bool again = false;
  switch (status) {
    case 403:
      again = (sub_status == 3 || sub_status == 1008) && again_elsewhere(sub_status, now);
      break;
    case 404:
      again = session_missed && again_for_session(reply, now);
      break;
    case 408:
    case 503:
      // Some of it may have been done before the server gave up.
      again = current().repeatable && again_after_loss(false, now);
      break;
    case 429:
      again = again_after_throttling(reply, now);
      break;
    case 449:
      again = again_after_conflict(now);
      break;
    default:
      break;
  }
  if (again) return;
  // A caller that may not read the container still gets the refusal of its own call.
  const bool says_nothing = container_read_ && status != 404;
  refuse(says_nothing ? session_refusal_ : reply, now);
}

void Exchange::judge_no_answer(const Outcome& outcome, TimePoint now) {
  note_attempt(nullptr, outcome.words, now);
  if (outcome.no_answer == NoAnswer::Cancelled) return cancel(now);
  if (outcome.no_answer == NoAnswer::Unreachable) {
    surroundings_.regions.unreachable(*region_, now);
  }
  const bool worth_it = outcome.no_answer != NoAnswer::Distrusted;
  const bool harmless = current().repeatable || !outcome.sent;
  if (worth_it && harmless && again_after_loss(outcome.broke_idle, now)) return;
  fail(outcome.no_answer == NoAnswer::TimedOut ? Failure::Timeout : Failure::Network, outcome.words,
       now);
}

bool Exchange::again_after_throttling(const Reply& reply, TimePoint now) {
  const RetryOptions& retry = surroundings_.options.retry;
  if (++throttled_count_ > retry.throttled_max) return false;
  milliseconds wait{0};
  if (const auto asked = retry_after_of(reply)) {
    // Not sooner than asked for; a little later, and not all at the same moment.
    wait = *asked + milliseconds(static_cast<std::int64_t>(static_cast<double>(asked->count()) *
                                                           0.1 * surroundings_.chance.fraction()));
  } else {
    wait = jittered(
        std::min(retry.first_wait * (1 << std::min(throttled_count_ - 1, 10)), kLostWaitMax));
  }
  if (throttled_wait_ + wait > retry.throttled_wait_max) return false;
  throttled_wait_ += wait;
  return again_after(wait, now);
}

bool Exchange::again_after_conflict(TimePoint now) {
  const milliseconds wait = jittered(conflict_next_);
  conflict_next_ = std::min(conflict_next_ * 2, kConflictWaitMax);
  if (conflict_wait_ + wait > surroundings_.options.retry.conflict_wait_max) return false;
  conflict_wait_ += wait;
  return again_after(wait, now);
}

bool Exchange::again_after_loss(bool at_once, TimePoint now) {
  const RetryOptions& retry = surroundings_.options.retry;
  if (++lost_count_ >= retry.attempts_max) return false;
  if (std::ranges::find(tried_, region_) == tried_.end()) tried_.push_back(region_);
  // Another region need not be spared.
  const bool has_other = surroundings_.regions.has_other(goes_to_write_region(), tried_);
  if (has_other || (at_once && lost_count_ == 1)) return again_after(milliseconds(0), now);
  const milliseconds wait = retry.first_wait * (1 << std::min(lost_count_ - 1, 10));
  return again_after(jittered(std::min(wait, kLostWaitMax)), now);
}

bool Exchange::again_elsewhere(int sub_status, TimePoint now) {
  if (!surroundings_.options.discover_endpoints) return false;
  if (++misdirected_count_ > kMisdirectedMax || now >= deadline_) return false;
  // 1008: this region has nothing to do with the account any more. 3: it no longer takes writes,
  // and the account says who does.
  tried_.clear();
  if (sub_status == 1008) tried_.push_back(region_);
  rediscover_ = true;
  step_ = Step::Discover;
  return true;
}

bool Exchange::again_for_session(const Reply& reply, TimePoint now) {
  if (current().container.empty() || call_.writes) return false;
  ++session_count_;
  if (session_count_ == 1) {
    // The write region has everything. If this was it, it may be catching up.
    const bool is_there = surroundings_.regions.is_write_region(*region_);
    prefers_write_region_ = true;
    tried_.clear();
    if (!is_there) return again_after(milliseconds(0), now);
    ++session_count_;
  }
  if (session_count_ == kSessionAttemptsMax) {
    return again_after(jittered(surroundings_.options.retry.first_wait), now);
  }
  // A position that the write region does not have is one of a container that is gone, if another
  // has its name now. If not, to read without it would show what is older than what was seen.
  const bool may_ask =
      session_count_ == kSessionAttemptsMax + 1 && !options_.session_token && !session_rid_.empty();
  if (!may_ask) return false;
  session_refusal_ = reply;
  container_read_ = std::make_unique<const Call>(Call{.type = "colls", .link = call_.container});
  return again_after(milliseconds(0), now);
}

/// Retries with a new session if another container has the name now; else refuses the call.
void Exchange::judge_container(const Reply& reply, TimePoint now) {
  const auto body = json::Value::parse(reply.body);
  const std::string rid = body ? body->member("_rid").string_or_empty() : std::string();
  container_read_ = nullptr;
  const bool is_another = !rid.empty() && rid != session_rid_;
  if (is_another) surroundings_.sessions.begin_anew(call_.container, session_rid_, rid);
  if (!is_another || !again_after(milliseconds(0), now)) refuse(session_refusal_, now);
}

milliseconds Exchange::jittered(milliseconds wait) {
  const double share = 0.5 + 0.5 * surroundings_.chance.fraction();
  return milliseconds(static_cast<std::int64_t>(static_cast<double>(wait.count()) * share));
}

bool Exchange::again_after(milliseconds wait, TimePoint now) {
  // There is no point in waiting for what would come too late.
  if (now >= deadline_ || wait >= deadline_ - now) return false;
  wait_ = wait;
  step_ = wait > milliseconds(0) ? Step::Wait : Step::Send;
  tell_again();
  return true;
}

void Exchange::tell_again() const {
  const Log& log = surroundings_.options.log;
  if (!log || diagnostics_.attempts.empty()) return;
  const Attempt& last = diagnostics_.attempts.back();
  say(log, LogLevel::Debug,
      fmt::format(
          "{} {}: {} from {}, activity {}; sent again in {} ms", call_.method, call_.link,
          last.failure.empty() ? fmt::format("{}/{}", last.status, last.sub_status) : last.failure,
          last.endpoint, last.activity_id, wait_.count()));
}

void Exchange::refuse(const Reply& reply, TimePoint now) {
  diagnostics_.duration = duration_cast<microseconds>(now - begun_);
  const bool is_own_session =
      reply.status == 404 && sub_status_of(reply) == 1002 && !options_.session_token;
  failure_ = std::make_exception_ptr(
      refusal_of(reply, diagnostics_, is_own_session ? kSessionAdvice : std::string_view()));
  step_ = Step::Failed;
}

void Exchange::fail(Failure failure, const std::string& words, TimePoint now) {
  diagnostics_.duration = duration_cast<microseconds>(now - begun_);
  failure_ = std::make_exception_ptr(failure_of(failure, words, diagnostics_));
  step_ = Step::Failed;
}

void Exchange::cancel(TimePoint now) { fail(Failure::Cancelled, "the call was cancelled", now); }

void Exchange::time_out(TimePoint now) {
  fail(Failure::Timeout, fmt::format("no answer from {} in time", surroundings_.account.endpoint()),
       now);
}

}  // namespace orrery::client
