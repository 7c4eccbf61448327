// Changes as a stream: server-sent events, or lines of JSON.
//
//   id: 12
//   event: changes
//   data: {"_rid":"…","Documents":[…],"_count":1}
//
// or as a line of JSON:
//
//   {"etag":"\"12\"","Documents":[…],"_count":1}
//
// A transaction is an event of its own, unless the reader is behind by more than a chunk: then the
// transactions of a chunk come in one. Readers at the same position share one read.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/this_coro.hpp>

#include "api/feed/feed_push.h"
#include "api/reply.h"
#include "api/target.h"
#include "base/diagnostics.h"
#include "feed/position.h"
#include "feed/reader.h"
#include "json/document_text.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

using partition::WakeReason;
using std::chrono::steady_clock;

/// The size limit of a chunk; one at a time is held for a slow reader. A transaction is not split.
constexpr std::size_t kPieceBytesMax = 128 * 1024;
/// A chunk ends after this, with or without something in it.
constexpr std::chrono::milliseconds kPieceTimeMax{200};

std::string_view without_quotes(std::string_view etag) {
  return etag.size() >= 2 ? etag.substr(1, etag.size() - 2) : etag;
}

/// How things are said in one of the two forms.
class Framing {
 public:
  explicit Framing(StreamForm form) : form_(form) {}

  std::string_view content_type() const {
    return form_ == StreamForm::Events ? "text/event-stream" : "application/x-ndjson";
  }
  std::string heartbeat() const { return form_ == StreamForm::Events ? ": \n\n" : "\n"; }

  void changes(std::string& out, std::string_view rid, std::string_view etag,
               std::string_view items, std::size_t count) const {
    const auto begin = out.size();
    if (form_ == StreamForm::Events) {
      open_event(out, etag, "changes");
      open_feed(out, rid, "Documents");
    } else {
      open_line(out, etag);
      out.append(",\"Documents\":[");
    }
    out.append(items);
    close_feed(out, count);
    // Between the tokens of a document there may be line ends, which would end ours.
    std::replace_if(
        out.begin() + static_cast<std::ptrdiff_t>(text_begin_of(out, begin)), out.end(),
        [](char c) { return c == '\n' || c == '\r'; }, ' ');
    close(out);
  }

  void position(std::string& out, std::string_view etag,
                std::optional<UnixSeconds> resolved_ts) const {
    if (form_ == StreamForm::Events) open_event(out, etag, "position");
    open_line(out, etag);
    if (form_ == StreamForm::Lines) out.append(",\"Documents\":[],\"_count\":0");
    if (resolved_ts) fmt::format_to(std::back_inserter(out), ",\"resolvedTs\":{}", *resolved_ts);
    out.push_back('}');
    close(out);
  }

  /// The last word: `members` is what else there is to say.
  void last(std::string& out, std::string_view event, std::string_view etag,
            std::string_view members) const {
    if (form_ == StreamForm::Events) {
      open_event(out, etag, event);
      open_line(out, etag);
    } else {
      open_line(out, etag);
      out.append(",\"event\":\"").append(event).append("\"");
    }
    out.append(members).push_back('}');
    close(out);
  }

 private:
  static void open_event(std::string& out, std::string_view etag, std::string_view event) {
    out.append("id: ").append(without_quotes(etag));
    out.append("\nevent: ").append(event).append("\ndata: ");
  }
  static void open_line(std::string& out, std::string_view etag) {
    out.append("{\"etag\":");
    json::append_quoted(out, etag);
  }
  std::size_t text_begin_of(const std::string& out, std::size_t begin) const {
    return form_ == StreamForm::Events ? out.find("data: ", begin) : begin;
  }
  void close(std::string& out) const { out.append(form_ == StreamForm::Events ? "\n\n" : "\n"); }

  StreamForm form_;
};

/// The result of one read, ready to be sent.
struct StreamChunk {
  std::string text;  ///< empty: nothing matched
  std::string etag;
  std::vector<Lsn> heads;
  bool caught_up = false;
  std::optional<UnixSeconds> resolved_ts;
  std::string warning;  ///< as in ChangeFeedAnswer
};

class FeedStream final : public http::BodyStream {
 public:
  FeedStream(Services& services, Context& context, ChangeFeedRequest request, StreamForm form,
             partition::WaitingRoom::Seat seat, const boost::asio::any_io_executor& executor)
      : services_(services),
        seat_(std::move(seat)),
        framing_(form),
        // The request outlives its stream; what the pipeline knows of it does not.
        context_(context),
        waiter_(services.push.room, executor) {
    bind(std::move(request));
    services_.push.stats.streams.fetch_add(1, std::memory_order_relaxed);
    if (auto* client = context_.request.client) client->when_gone([this] { waiter_.interrupt(); });
  }
  ~FeedStream() override {
    if (auto* client = context_.request.client) client->when_gone(nullptr);
    services_.push.stats.streams.fetch_sub(1, std::memory_order_relaxed);
  }

  /// Finds where to begin, and reads the first chunk: what is wrong with the request shows here.
  Async<> begin();
  /// Where it begins; valid after begin().
  const std::string& beginning() const { return told_etag_; }
  /// The warning about the position that it begins at, if any; until next().
  std::string_view warning() const { return chunk_ ? std::string_view(chunk_->warning) : ""; }
  std::string_view content_type() const { return framing_.content_type(); }

  boost::asio::awaitable<http::SharedText> next() override;

 private:
  void bind(ChangeFeedRequest request);
  Async<> read();
  Result<StreamChunk> read_chunk() const;
  Result<StreamChunk> read_range_chunk(feed::PageRequest page,
                                       const catalog::Container& container) const;
  bool behind() const;
  boost::asio::awaitable<WakeReason> wait();
  http::SharedText take_chunk();
  http::SharedText sign_of_life();
  bool rebind();
  http::SharedText say_gone();
  http::SharedText say_lagging(const Error& error);
  http::SharedText last_word(const Error& error);
  http::SharedText made(std::string text);

  Services& services_;
  const partition::WaitingRoom::Seat seat_;
  const Framing framing_;
  Context context_;
  ChangeFeedRequest request_;
  std::string shape_;
  std::vector<const catalog::Range*> ranges_;
  partition::Waiter waiter_;

  std::string etag_;       // The reader has everything up to here...
  std::string told_etag_;  // ...and knows that it is at least here.
  std::vector<Lsn> seen_;  // The heads when that was so.
  bool more_ = true;       // There was more above etag_ then.
  std::optional<UnixSeconds> resolved_ts_;
  std::shared_ptr<const StreamChunk> chunk_;  // To be sent next. Shared with others who are there.
  steady_clock::time_point last_said_ = steady_clock::now();
  bool ended_ = false;
};

void FeedStream::bind(ChangeFeedRequest request) {
  request_ = std::move(request);
  request_.since_with_items = false;
  // Without x-ms-max-item-count a chunk is not bounded by count.
  if (context_.header(headers::kMaxItemCount).empty()) request_.page.count_max.reset();
  request_.page.bytes_max = kPieceBytesMax;
  shape_ = shape_of(context_, request_);
  ranges_ = request_.ranges(*context_.target.container);
}

Async<> FeedStream::begin() {
  if (request_.start.kind == feed::Start::Kind::Now || request_.since) {
    auto found = answer_from_memory(services_, request_);
    if (!found) {
      ORRERY_CO_TRY(found, co_await run_blocking(services_.blocking, [this] {
                      WorkBudget work(page_limits(services_.page_time_max));
                      return read_change_feed(services_, context_.target.container, request_, work);
                    }));
    }
    etag_ = found->etag;
    seen_ = found->heads;
    more_ = !found->not_modified();
    go_on_from(request_, etag_);
    shape_ = shape_of(context_, request_);
  } else if (request_.range == nullptr) {
    etag_ = request_.container_start.etag();
    seen_.assign(ranges_.size(), Lsn{});
  } else {
    const auto& page = request_.page;
    etag_ = page.began_at ? feed::tombstone_etag(page.after, *page.began_at)
                          : feed::feed_etag(page.after);
    seen_ = {page.after};
    // Histories can tell whether they reach back far enough only when they are asked. And only a
    // snapshot knows whether a position is beyond the head.
    more_ = page.mode == feed::Mode::AllVersions || page.tombstones ||
            request_.range->partition->head() != page.after;
  }
  told_etag_ = etag_;
  if (more_) ORRERY_CO_TRY(co_await read());
  co_return Result<>();
}

/// Whether something has been committed since we looked.
bool FeedStream::behind() const {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (ranges_[i]->partition->head() > seen_[i]) return true;
  }
  return false;
}

// ── Reading ──

/// Reads the changes after etag_ into chunk_, and advances etag_.
Async<> FeedStream::read() {
  auto& push = services_.push;
  const UnixSeconds now = services_.clock.unix_seconds();
  request_.page.now = now;
  // Where documents expire, what was read is good for a second only.
  const bool expiring = context_.target.container->rules.default_ttl.has_value();
  auto key = fmt::format("{} {} {}\n{}", content_type(), etag_, expiring ? now : 0, shape_);
  const auto moment = moment_of(heads_now(*context_.target.container, request_));
  const auto lane = lane_of(services_, context_, request_);
  ORRERY_CO_TRY(chunk_, co_await push.reads.get<StreamChunk>(
                            std::move(key), moment,
                            [this]() -> Result<feed::SharedRead> {
                              ORRERY_TRY(auto made, read_chunk());
                              auto chunk = std::make_shared<StreamChunk>(std::move(made));
                              const auto size = chunk->text.size();
                              return feed::SharedRead{moment_of(chunk->heads), size, chunk};
                            },
                            lane ? &*lane : nullptr));
  etag_ = chunk_->etag;
  seen_ = chunk_->heads;
  more_ = !chunk_->caught_up;
  resolved_ts_ = chunk_->resolved_ts;
  go_on_from(request_, etag_);
  co_return Result<>();
}

/// Blocks.
Result<StreamChunk> FeedStream::read_chunk() const {
  // The container's rules may have changed since the stream began.
  const auto container = services_.catalog.container(context_.target.container->rid);
  if (!container) return Error(ErrorCode::RangeGone, "The container was deleted.");
  auto page = request_.page;
  page.container.default_ttl = container->rules.default_ttl;
  WorkLimits limits = page_limits(services_.page_time_max);
  limits.deadline = std::min(limits.deadline, steady_clock::now() + kPieceTimeMax);
  WorkBudget work(limits);
  page.work = &work;
  if (request_.range != nullptr) return read_range_chunk(std::move(page), *container);

  ORRERY_TRY(auto answer, read_change_feed(services_, context_.target.container, request_, work));
  StreamChunk chunk;
  chunk.etag = answer.etag;
  chunk.heads = std::move(answer.heads);
  chunk.caught_up = answer.not_modified();
  chunk.resolved_ts = answer.resolved_ts;
  chunk.warning = std::move(answer.warning);
  if (answer.count > 0) {
    std::string opening;
    open_feed(opening, container->rid_text, "Documents");
    std::string closing;
    close_feed(closing, answer.count);
    const auto items =
        std::string_view(answer.body)
            .substr(opening.size(), answer.body.size() - opening.size() - closing.size());
    framing_.changes(chunk.text, container->rid_text, chunk.etag, items, answer.count);
  }
  return chunk;
}

Result<StreamChunk> FeedStream::read_range_chunk(feed::PageRequest page,
                                                 const catalog::Container& container) const {
  auto& partition = *request_.range->partition;
  const auto resolved = partition.resolved(services_.clock.unix_seconds());
  page.mark_groups = true;
  ORRERY_TRY(const auto read, services_.feed.read(partition, page));
  StreamChunk chunk;
  chunk.etag = read.began_at ? feed::tombstone_etag(read.position, *read.began_at)
                             : feed::feed_etag(read.position);
  chunk.heads = {read.head};
  chunk.caught_up = read.caught_up;
  if (read.caught_up && read.position >= read.merged_at) chunk.resolved_ts = resolved;
  if (read.ended_life) chunk.warning = feed_warning(*read.ended_life);
  if (read.count == 0) return chunk;
  const std::string_view text = read.text;
  const bool one_by_one = read.caught_up && !read.began_at && !page.began_at;
  if (!one_by_one) {
    framing_.changes(chunk.text, container.rid_text, chunk.etag, text, read.count);
    return chunk;
  }
  for (const auto& group : read.groups) {
    framing_.changes(chunk.text, container.rid_text, feed::feed_etag(group.lsn),
                     text.substr(group.begin, group.end - group.begin), group.count);
  }
  return chunk;
}

// ── Saying ──

boost::asio::awaitable<http::SharedText> FeedStream::next() {
  while (!ended_) {
    // Its reader comes back with another key, from where it is.
    if (services_.keys != nullptr && !services_.keys->holds(context_.principal.key)) break;
    if (auto text = take_chunk()) co_return text;
    if (more_ || behind()) {
      if (auto outcome = co_await read(); !outcome) {
        if (outcome.error().code() == ErrorCode::RangeGone && rebind()) continue;
        co_return last_word(outcome.error());
      }
      // A long search through what does not match.
      const bool silent = steady_clock::now() - last_said_ >= services_.push.heartbeat;
      if (chunk_->text.empty() && silent) co_return sign_of_life();
      continue;
    }
    switch (co_await wait()) {
      case WakeReason::Head:
        more_ = true;
        break;
      case WakeReason::Deadline:
        co_return sign_of_life();
      case WakeReason::Retired:
        if (!rebind()) co_return say_gone();
        break;
      case WakeReason::Interrupted:
      case WakeReason::Stopping:
        ended_ = true;
        break;
    }
  }
  co_return nullptr;
}

boost::asio::awaitable<WakeReason> FeedStream::wait() {
  const auto deadline = last_said_ + services_.push.heartbeat;
  if (ranges_.size() == 1) {
    const partition::Waiter::Target target{&ranges_[0]->partition->head_watch(), seen_[0]};
    co_return co_await waiter_.wait({&target, 1}, deadline);
  }
  std::vector<partition::Waiter::Target> targets;
  targets.reserve(ranges_.size());
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    targets.push_back({&ranges_[i]->partition->head_watch(), seen_[i]});
  }
  co_return co_await waiter_.wait(targets, deadline);
}

http::SharedText FeedStream::take_chunk() {
  auto chunk = std::exchange(chunk_, nullptr);
  if (!chunk || chunk->text.empty()) return nullptr;
  services_.push.stats.events.fetch_add(1, std::memory_order_relaxed);
  told_etag_ = etag_;
  last_said_ = steady_clock::now();
  const std::string& text = chunk->text;
  return {std::move(chunk), &text};
}

/// After a time of silence: where the reader is, if that has changed, or just that we are here.
http::SharedText FeedStream::sign_of_life() {
  chunk_ = nullptr;
  if (told_etag_ == etag_) return made(framing_.heartbeat());
  told_etag_ = etag_;
  // At the head time goes on, also where nothing is written. Not where a merge has mixed times.
  if (resolved_ts_ && request_.range != nullptr) {
    const auto resolved = request_.range->partition->resolved(services_.clock.unix_seconds());
    if (!more_ && !behind()) resolved_ts_ = resolved;
  }
  std::string text;
  framing_.position(text, etag_, resolved_ts_);
  return made(std::move(text));
}

http::SharedText FeedStream::made(std::string text) {
  last_said_ = steady_clock::now();
  return std::make_shared<const std::string>(std::move(text));
}

// ── Ending ──

/// The ranges have changed. A stream of a key, or of the whole container, goes on; false for the
/// others.
bool FeedStream::rebind() {
  Target before = context_.target;
  const bool is_another = resolve(services_, context_).has_value() &&
                          context_.target.container->rid == before.container->rid &&
                          context_.target.container != before.container;
  if (is_another) {
    if (auto request = parse_change_feed(services_, context_)) {
      bind(std::move(*request));
      go_on_from(request_, etag_);
      shape_ = shape_of(context_, request_);
      seen_.assign(ranges_.size(), Lsn{});
      if (request_.range != nullptr) seen_ = {request_.page.after};
      more_ = true;
      return true;
    }
  }
  context_.target = std::move(before);
  return false;
}

http::SharedText FeedStream::say_gone() {
  ended_ = true;
  std::string members = ",\"ranges\":[";
  const auto container = services_.catalog.container(context_.target.container->rid);
  if (container && request_.range != nullptr) {
    bool first = true;
    for (const auto* child : container->ranges.overlapping(request_.range->epks)) {
      fmt::format_to(std::back_inserter(members),
                     R"({}{{"id":"{}","minInclusive":"{}","maxExclusive":"{}"}})", first ? "" : ",",
                     child->id.value, child->epks.min.hex(), child->epks.max.hex());
      first = false;
    }
  }
  members.push_back(']');
  std::string text;
  framing_.last(text, "gone", etag_, members);
  return made(std::move(text));
}

http::SharedText FeedStream::say_lagging(const Error& error) {
  ended_ = true;
  std::string members = ",\"message\":";
  json::append_quoted(members, error.message());
  std::string text;
  framing_.last(text, "lagging", etag_, members);
  return made(std::move(text));
}

/// The last event of a stream that cannot be read on, or null.
http::SharedText FeedStream::last_word(const Error& error) {
  switch (error.code()) {
    case ErrorCode::RangeGone:
    case ErrorCode::NotFound:
    case ErrorCode::OwnerNotFound:
      return say_gone();
    case ErrorCode::BadRequest:
      // It was right when it began: history has been trimmed under a reader that is too slow.
      if (request_.page.filter == nullptr) return say_lagging(error);
      // Or its filter cannot decide about a document: the next request is told which.
      [[fallthrough]];
    default:
      // The reader comes back with the last id that it has.
      diagnostics::warning("a stream of changes ends: {} (activity {})", error.message(),
                           context_.activity_id);
      ended_ = true;
      return nullptr;
  }
}

}  // namespace

Async<http::Response> stream_changes(Services& services, Context& context,
                                     ChangeFeedRequest request, StreamForm form) {
  auto seat = services.push.room.take_seat();
  if (!seat) {
    services.push.stats.refused.fetch_add(1, std::memory_order_relaxed);
    co_return Error(
        ErrorCode::TooManyRequests,
        fmt::format("Request rate is large. {} readers already wait for changes or have them "
                    "streamed, which is the limit of this server; poll instead, or try again "
                    "after the time in x-ms-retry-after-ms.",
                    services.push.room.readers_max()));
  }
  const auto executor = co_await asio::this_coro::executor;
  const bool one_range = request.range != nullptr;
  auto stream = std::make_unique<FeedStream>(services, context, std::move(request), form,
                                             std::move(*seat), executor);
  ORRERY_CO_TRY(co_await stream->begin());
  context.charge = kRefused;
  auto response = reply(context, 200, {}, stream->content_type());
  response.add(headers::kEtag.text, stream->beginning());
  response.add(headers::kLife.text, services.catalog.life());
  if (const auto warning = stream->warning(); !warning.empty()) {
    response.add(headers::kFeedWarning.text, warning);
  }
  add_container_paths(response, *context.target.container);
  if (one_range) {
    add_range_headers(response, context, *context.target.range,
                      context.target.range->partition->head());
  }
  // Proxies that collect answers before they pass them on would undo what this is for.
  response.add("x-accel-buffering", "no");
  response.stream = std::move(stream);
  co_return response;
}

}  // namespace orrery::api
