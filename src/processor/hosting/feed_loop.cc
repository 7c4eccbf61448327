#include "processor/hosting/feed_loop.h"

#include <algorithm>

#include <fmt/format.h>

#include "processor/leases/lease_area.h"

namespace orrery::processor {

namespace {

/// Page sizes are halved from here when the server complains and none was asked for.
constexpr std::uint32_t kPageSizeAssumed = 100;
/// With lanes: a slow key holds up its lane, and others get so far ahead of it.
constexpr std::size_t kPagesAtOnceWithLanes = 4;
/// How often a wait checks whether it is over.
constexpr std::chrono::milliseconds kLookInterval{500};

}  // namespace

FeedLoop::FeedLoop(Setup setup, Lease lease)
    : setup_(std::move(setup)),
      lease_(std::move(lease)),
      range_id_(lease_.token),
      read_position_(lease_.position),
      done_position_(lease_.position.value_or("")),
      pages_max_(setup_.options.lanes > 1 ? kPagesAtOnceWithLanes : 1),
      page_done_(setup_.runtime),
      policy_(setup_.options.checkpoint_frequency, setup_.runtime.now()) {}

void FeedLoop::report(Severity severity, std::string message) const {
  setup_.report({severity, "ReadChangeFeed", lease_.token, std::move(message)});
}

void FeedLoop::end(FeedEnding::Kind kind, std::string message) {
  if (!ending_) ending_ = FeedEnding{kind, std::move(message)};
  reading_.request_stop();
}

asio::awaitable<FeedEnding> FeedLoop::run() {
  const std::stop_callback stop_reading(setup_.stop.token(), [this] { reading_.request_stop(); });
  TaskGroup lanes(setup_.runtime);
  for (int i = 0; i < setup_.options.lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>(setup_.runtime));
    lanes.spawn(serve(*lanes_.back()));
  }
  co_await read_on();
  closing_ = true;
  for (const auto& lane : lanes_) lane->more.notify();
  co_await lanes.join();
  if (!policy_.is_explicit() && policy_.unconfirmed() > 0) {
    co_await setup_.checkpoint(done_position_);
  }
  co_return ending_.value_or(FeedEnding{});
}

// ── reading ──────────────────────────────────────────────────────────────────────────────────────

asio::awaitable<void> FeedLoop::read_on() {
  if (lease_.is_epk()) {
    while (!ended() && !co_await find_target()) co_await pause(setup_.options.feed_poll_delay);
  }
  while (!ended()) {
    co_await wait_for_turn();
    if (ended()) break;
    reading_since_ = setup_.runtime.now();
    FeedAnswer answer = co_await setup_.reader.read(next_request());
    reading_since_.reset();
    if (ended()) break;
    co_await take_answer(std::move(answer));
  }
}

FeedRequest FeedLoop::next_request() const {
  FeedRequest request;
  request.range_id = range_id_;
  request.slice = slice_;
  if (read_position_) {
    request.after = *read_position_;
  } else {
    const StartPosition start = StartPosition::of(setup_.feed_options);
    switch (start.kind) {
      case StartPosition::Kind::Beginning:
        break;
      case StartPosition::Kind::Now:
        request.after = "*";
        break;
      case StartPosition::Kind::Time:
        request.since = start.time;
        break;
      case StartPosition::Kind::Etag:
        request.after = start.etag;
        break;
    }
  }
  request.page_size = page_size_ ? page_size_ : setup_.feed_options.max_item_count;
  // A lease without a position gets one from the first answer: it should come at once.
  if (setup_.options.long_poll && read_position_) {
    const auto wait = std::chrono::ceil<std::chrono::seconds>(setup_.options.long_poll_wait);
    if (wait.count() > 0) request.wait = wait;
  }
  request.session_token = setup_.feed_options.session_token;
  request.mode = setup_.feed_options.mode;
  request.time_max = setup_.options.change_feed_timeout;
  request.stop = reading_.get_token();
  return request;
}

/// Nobody reads while the group is paused or the budget is used up, or further ahead than it may.
asio::awaitable<void> FeedLoop::wait_for_turn() {
  const std::size_t pages_before = setup_.options.read_ahead ? pages_max_ : pages_max_ - 1;
  while (!ended()) {
    if (setup_.paused()) {
      co_await setup_.stop.pause_for(kLookInterval);
    } else if (const MonotonicTime now = setup_.runtime.now(), free = setup_.limiter.free_at(now);
               free > now) {
      co_await setup_.stop.pause_until(std::min(free, now + kLookInterval));
    } else if (busy_pages() > pages_before) {
      co_await page_done_.wait_until(now + kLookInterval);
    } else {
      co_return;
    }
  }
}

asio::awaitable<void> FeedLoop::pause(std::chrono::milliseconds time) {
  const MonotonicTime end = setup_.runtime.now() + time;
  // In steps: a lane may end the loop meanwhile.
  while (!ended() && setup_.runtime.now() < end) {
    co_await setup_.stop.pause_until(std::min(end, setup_.runtime.now() + kLookInterval));
  }
}

asio::awaitable<void> FeedLoop::take_answer(FeedAnswer answer) {
  if (!answer.warning.empty()) {
    setup_.report({Severity::Critical, kDataRestored, lease_.token,
                   fmt::format("the data of the monitored container went back to an earlier state: "
                               "{} The lease goes on, and misses nothing that is new. To have all "
                               "documents delivered again, reset the leases.",
                               answer.warning)});
  }
  switch (answer.kind) {
    case FeedAnswer::Kind::Page:
      co_await take_page(std::move(answer));
      break;
    case FeedAnswer::Kind::NotModified:
      co_await take_not_modified(std::move(answer));
      break;
    case FeedAnswer::Kind::Gone:
      co_await take_gone(std::move(answer));
      break;
    case FeedAnswer::Kind::NotFound:
      end(FeedEnding::Kind::NotFound, std::move(answer.message));
      break;
    case FeedAnswer::Kind::SessionNotAvailable:
      end(FeedEnding::Kind::SessionNotAvailable, std::move(answer.message));
      break;
    case FeedAnswer::Kind::Throttled:
      report(Severity::Informational,
             fmt::format("the feed answered {}: {}", answer.status, answer.message));
      co_await pause(answer.retry_after.value_or(setup_.options.feed_poll_delay));
      break;
    case FeedAnswer::Kind::PageTooLarge:
      take_too_large(answer);
      break;
    case FeedAnswer::Kind::Failed:
      end(FeedEnding::Kind::Failed, std::move(answer.message));
      break;
  }
}

asio::awaitable<void> FeedLoop::take_page(FeedAnswer answer) {
  page_size_.reset();
  double bytes = 0;
  for (const std::string_view document : answer.page) bytes += static_cast<double>(document.size());
  setup_.limiter.spend({static_cast<double>(answer.page.size()), bytes, answer.page.request_charge},
                       setup_.runtime.now());
  if (answer.page.empty()) {
    read_position_ = std::move(answer.etag);
    co_return;
  }
  while (!ended() && busy_pages() >= pages_max_) co_await page_done_.wait();
  if (ended()) co_return;

  const std::string from = read_position_.value_or("");
  const std::size_t count = answer.page.size();
  std::vector<std::vector<std::size_t>> shares(lanes_.size());
  if (lanes_.size() > 1) {
    for (std::size_t i = 0; i < count; ++i) {
      shares[lane_of(setup_.documents.key_of(answer.page[i]), lanes_.size())].push_back(i);
    }
  }
  const auto parts =
      lanes_.size() == 1
          ? 1
          : lanes_.size() - static_cast<std::size_t>(std::ranges::count(
                                shares, std::size_t{0}, &std::vector<std::size_t>::size));
  const Watermark::PageId page =
      watermark_.begin(answer.etag, static_cast<std::size_t>(parts), count);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_.size() > 1 && shares[i].empty()) continue;
    Documents documents =
        lanes_.size() == 1 ? std::move(answer.page) : pick(answer.page, shares[i]);
    lanes_[i]->parts.push_back({page, {std::move(documents), from, answer.etag}});
    lanes_[i]->more.notify();
  }
  read_position_ = std::move(answer.etag);
}

asio::awaitable<void> FeedLoop::take_not_modified(FeedAnswer answer) {
  page_size_.reset();
  const bool first_position = !read_position_ && !answer.etag.empty();
  if (!answer.etag.empty()) read_position_ = answer.etag;
  while (!ended() && busy_pages() > 0) co_await page_done_.wait();
  if (ended() || !read_position_) co_return;
  done_position_ = *read_position_;
  if (first_position && !policy_.is_explicit()) {
    // From now on "now" means this moment, for every owner of the lease.
    if (!co_await setup_.checkpoint(done_position_)) co_return;
  } else if (!policy_.is_explicit() && policy_.unconfirmed() == 0) {
    idle_position_ = done_position_;
  } else {
    co_await confirm();
  }
  if (ended() || setup_.paused()) co_return;
  if (co_await setup_.dispatcher.idle(done_position_)) {
    policy_.request();
    co_await confirm();
  }
  if (!answer.waited) co_await pause(setup_.options.feed_poll_delay);
}

/// A lease of a part may just have moved to another range.
asio::awaitable<void> FeedLoop::take_gone(FeedAnswer answer) {
  if (lease_.is_epk()) {
    const std::string before = range_id_;
    const bool found = co_await find_target();
    if (ended()) co_return;
    if (!found || range_id_ == before) co_await pause(setup_.options.feed_poll_delay);
    co_return;
  }
  end(FeedEnding::Kind::Gone, std::move(answer.message));
}

/// False: not known yet. Ends the loop when the lease has to be replaced.
asio::awaitable<bool> FeedLoop::find_target() {
  const auto ranges = co_await setup_.reader.ranges();
  if (!ranges) {
    report(Severity::Informational, "ranges can't be read: " + ranges.error().message());
    co_return false;
  }
  const std::vector<FeedTarget> targets = targets_of(lease_, *ranges);
  if (targets.empty()) co_return false;
  if (targets.size() > 1) {
    end(FeedEnding::Kind::Gone, "the lease reaches over several ranges");
    co_return false;
  }
  range_id_ = targets.front().range_id;
  slice_ = targets.front().slice;
  setup_.dispatcher.set_range_id(range_id_);
  co_return true;
}

void FeedLoop::take_too_large(const FeedAnswer& answer) {
  const std::uint32_t size =
      page_size_.value_or(setup_.feed_options.max_item_count.value_or(kPageSizeAssumed));
  if (size <= 1) {
    end(FeedEnding::Kind::Failed, answer.message);
  } else {
    page_size_ = size / 2;
  }
}

// ── processing ───────────────────────────────────────────────────────────────────────────────────

asio::awaitable<void> FeedLoop::serve(Lane& lane) {
  while (true) {
    while (lane.parts.empty() && !closing_) co_await lane.more.wait();
    // A page that was read ahead and not begun is read again by the next owner.
    while (!ended() && setup_.paused()) co_await setup_.stop.pause_for(kLookInterval);
    if (lane.parts.empty() || ended()) break;
    Part part = std::move(lane.parts.front());
    lane.parts.pop_front();
    Verdict verdict = co_await setup_.dispatcher.process(std::move(part.batch));
    switch (verdict.kind) {
      case Verdict::Kind::Done:
        watermark_.part_done(part.page, verdict.checkpoint_requested);
        co_await confirm();
        break;
      case Verdict::Kind::ObserverError:
        end(FeedEnding::Kind::ObserverError, std::move(verdict.reason));
        break;
      case Verdict::Kind::Stop:
        if (verdict.checkpoint_requested) {
          watermark_.part_done(part.page, true);
          co_await confirm();
        }
        end(FeedEnding::Kind::ObserverStop, std::move(verdict.reason));
        break;
      case Verdict::Kind::HaltRange:
        end(FeedEnding::Kind::HaltRange, std::move(verdict.reason));
        break;
      case Verdict::Kind::HaltGroup:
        end(FeedEnding::Kind::HaltGroup, std::move(verdict.reason));
        break;
      case Verdict::Kind::Interrupted:
        break;
    }
    page_done_.notify();
  }
  page_done_.notify();
}

/// Notes what is done now, and writes it if that is due.
asio::awaitable<void> FeedLoop::confirm() {
  while (auto progress = watermark_.take_progress()) {
    done_position_ = std::move(progress->position);
    policy_.processed(progress->documents);
    if (progress->checkpoint_requested) policy_.request();
    idle_position_.reset();
  }
  // One writes for all lanes; it looks again when it is through.
  if (confirming_) co_return;
  confirming_ = true;
  while (policy_.due(setup_.runtime.now())) {
    policy_.checkpointed(setup_.runtime.now());
    idle_position_.reset();
    if (!co_await setup_.checkpoint(done_position_)) break;
  }
  confirming_ = false;
}

}  // namespace orrery::processor
