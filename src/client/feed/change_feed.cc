#include "orrery/change_feed.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <utility>

#include "base/clock.h"
#include "client/exchange/pipeline.h"
#include "client/exchange/refusal.h"
#include "client/feed/change_feed_continuation.h"
#include "client/feed/change_feed_requests.h"
#include "client/handles/resource.h"
#include "orrery/container.h"
#include "orrery/exception.h"
#include "protocol/wire/headers.h"

namespace orrery::client {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr int kNotModified = 304;
constexpr std::string_view kNow = "*";
/// The longest wait that the server admits.
constexpr std::chrono::seconds kWaitMax{60};
/// A server that can hold no more readers answers at once: it is asked again after this.
constexpr std::chrono::milliseconds kUnheldPause{1'000};
/// No range is asked more often than this while it has nothing.
constexpr std::chrono::milliseconds kPollPauseMin{50};
/// Waits are whole seconds on the wire. A rest of less than half of one is not asked for.
constexpr std::chrono::milliseconds kWaitWorthwhile{500};

/// Answers that have come in, on threads of the pipeline.
class Mailbox {
 public:
  struct Letter {
    std::uint64_t poll = 0;
    Answer answer{};
    std::exception_ptr failure{};
  };

  void put(Letter letter) {
    {
      const std::scoped_lock lock(mutex_);
      letters_.push_back(std::move(letter));
    }
    arrived_.notify_one();
  }

  /// The first to have come; waits for it until `until`, or a stop.
  std::optional<Letter> take(const std::stop_token& stop, SteadyTime until) {
    std::unique_lock lock(mutex_);
    arrived_.wait_until(lock, stop, until, [this] { return !letters_.empty(); });
    if (letters_.empty()) return std::nullopt;
    Letter letter = std::move(letters_.front());
    letters_.pop_front();
    return letter;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<Letter> letters_;
};

FeedWishes wishes_of(const ChangeFeedOptions& options,
                     const std::optional<FeedContinuation>& from) {
  return {.mode = from ? from->mode : options.mode,
          .key = from ? from->key : options.partition_key,
          .page_size = options.page_size,
          .filter = options.filter,
          .select = options.select};
}

/// The continuation to start from, if that is how to start. It brings its scope: another one can't
/// be meant.
std::optional<FeedContinuation> continuation_of(const ChangeFeedOptions& options) {
  if (options.partition_key && options.feed_range) {
    refuse_argument("A change feed is read of a partition key or of a feed range, not of both.");
  }
  if (options.start.kind() != ChangeFeedStart::Kind::Continuation) return std::nullopt;
  auto from = FeedContinuation::parse(options.start.token());
  if (options.partition_key && options.partition_key != from.key) {
    refuse_argument("The continuation is of another partition key, or of none.");
  }
  if (options.feed_range && (from.key || checked_range(*options.feed_range) != from.range())) {
    refuse_argument("The continuation is of another feed range.");
  }
  return from;
}

[[noreturn]] void refuse_answer(const Answer& answer) {
  throw failure_of(Failure::Response, "The server's answer does not say where the feed goes on.",
                   answer.diagnostics);
}

RequestOptions stopped_by(RequestOptions options, std::stop_token stop) {
  options.stop = std::move(stop);
  return options;
}

bool was_held(const ResponseInfo& answer) {
  return answer.header(headers::kPreferenceApplied.text).find("wait") != std::string_view::npos;
}

}  // namespace

/// Two ways of reading. In turn: one slice after the other, as long as there is something to catch
/// up with. By polls, where waiting is wanted and nothing is left: every slice has a request
/// outstanding, which the server holds until there is a change. Those that next() did not need stay
/// outstanding for its next call.
class ChangeFeedIterator::State {
 public:
  State(std::shared_ptr<Pipeline> pipeline, std::string link, ChangeFeedOptions options)
      : start_(options.start),
        feed_range_(options.feed_range),
        from_(continuation_of(options)),
        forward_stop_(options.stop, [this] { stop_.request_stop(); }),
        requests_(std::move(pipeline), std::move(link), stopped_by(options, stop_.get_token()),
                  wishes_of(options, from_)),
        wait_(worthwhile_wait(options)) {}
  ~State() { stop_.request_stop(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ChangeFeedPage next() {
    requests_.begin_call();
    begin();
    return polling_ ? next_of_polls() : next_in_turn();
  }

  std::string continuation() {
    requests_.begin_call();
    begin();
    return position();
  }

 private:
  struct Slice : PlacedSlice {
    explicit Slice(PlacedSlice slice) : PlacedSlice(std::move(slice)) {}

    std::uint64_t poll = 0;      ///< the request that is outstanding; 0: none
    bool poll_may_wait = false;  ///< whether it asked to be held
    SteadyTime polled_at{};
    SteadyTime rest_until{};        ///< not to be asked before
    std::optional<Answer> ready{};  ///< an answer with changes that nobody has had yet
    bool is_quiet = false;          ///< had nothing new, in this round or call
    bool is_unheld = false;         ///< the last time it had nothing, the server did not wait
    bool is_level = false;          ///< at the end of what its range has

    bool is_idle() const { return poll == 0 && !ready; }
    /// Whether it is known where it begins.
    bool is_fixed() const { return ready || (etag != kNow && !(since && etag.empty())); }
  };

  /// The answer to a poll; no slice when none has come.
  struct Received {
    Slice* slice = nullptr;
    std::uint64_t poll = 0;
    Answer answer{};
  };

  static std::optional<std::chrono::seconds> worthwhile_wait(const ChangeFeedOptions& options);

  void begin();
  void fix_start();
  std::string position() const;

  ChangeFeedPage next_in_turn();
  ChangeFeedPage next_of_polls();

  void place(std::size_t index);
  void poll(Slice& slice, std::optional<std::chrono::seconds> wait);
  Received receive(SteadyTime until);
  std::optional<ChangeFeedPage> take(Slice& slice, Answer answer);
  void take_not_modified(Slice& slice, const Answer& answer);
  ChangeFeedPage nothing_new(bool waited);
  void join_slices();

  const ChangeFeedStart start_;
  const std::optional<FeedRange> feed_range_;
  const std::optional<FeedContinuation> from_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> forward_stop_;
  FeedRequests requests_;
  const std::optional<std::chrono::seconds> wait_;
  // Shared with requests that are outstanding: they may end after the iterator.
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();

  std::string container_rid_;
  std::vector<Slice> slices_;  ///< in the order of the hash space; empty before the first call
  std::size_t turn_ = 0;       ///< whose turn it is
  bool polling_ = false;
  std::uint64_t last_poll_ = 0;
  double charge_ = 0;      ///< of answers since the last page
  ResponseInfo quietest_;  ///< the last answer without changes
};

std::optional<std::chrono::seconds> ChangeFeedIterator::State::worthwhile_wait(
    const ChangeFeedOptions& options) {
  if (!options.wait) return std::nullopt;
  std::chrono::seconds wait = std::min(*options.wait, kWaitMax);
  if (options.timeout) {
    // The answer must be there before the call is given up.
    const auto left = *options.timeout - std::max<std::chrono::milliseconds>(
                                             std::chrono::seconds(1), *options.timeout / 10);
    wait = std::min(wait, std::chrono::floor<std::chrono::seconds>(left));
  }
  return wait >= std::chrono::seconds(1) ? std::optional(wait) : std::nullopt;
}

void ChangeFeedIterator::State::begin() {
  if (slices_.empty()) {
    if (from_) requests_.expect_container(from_->container_rid);
    container_rid_ = requests_.ranges()->container_rid();
    std::vector<Slice> slices;
    if (from_) {
      for (const FeedSlice& slice : from_->slices) slices.emplace_back(PlacedSlice{slice});
    } else {
      std::string etag;
      std::optional<UnixSeconds> since;
      if (start_.kind() == ChangeFeedStart::Kind::Now) etag = kNow;
      if (start_.kind() == ChangeFeedStart::Kind::Time) {
        const auto time = std::chrono::floor<std::chrono::seconds>(start_.time());
        since = std::max<UnixSeconds>(time.time_since_epoch().count(), 0);
      }
      for (PlacedSlice& slice : requests_.slices(feed_range_, etag, since)) {
        slices.emplace_back(std::move(slice));
      }
    }
    slices_ = std::move(slices);
  }
  fix_start();
}

/// Now, and times, become positions: of all slices at once, so that what is written from then on is
/// seen however late a slice is read.
void ChangeFeedIterator::State::fix_start() {
  while (!std::ranges::all_of(slices_, &Slice::is_fixed)) {
    const SteadyTime now = std::chrono::steady_clock::now();
    SteadyTime wake = now + kWaitMax;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      if (slices_[i].is_fixed() || slices_[i].poll != 0) continue;
      if (slices_[i].rest_until > now) {
        wake = std::min(wake, slices_[i].rest_until);
        continue;
      }
      place(i);
      poll(slices_[i], std::nullopt);
    }
    auto [slice, poll_id, answer] = receive(wake);
    if (slice == nullptr) continue;
    if (answer.status == kNotModified) {
      take_not_modified(*slice, answer);
    } else if (answer.header(headers::kItemCount.text) == "0" && !answer.etag.empty()) {
      charge_ += answer.request_charge;
      slice->misplaced_count = 0;
      slice->etag = answer.etag;
    } else {
      slice->ready = std::move(answer);  // Some servers give the first changes at once.
    }
  }
}

std::string ChangeFeedIterator::State::position() const {
  FeedContinuation continuation{container_rid_, requests_.wishes().mode, requests_.wishes().key};
  continuation.slices.reserve(slices_.size());
  for (const Slice& slice : slices_) continuation.slices.push_back(slice);
  return continuation.to_text();
}

ChangeFeedPage ChangeFeedIterator::State::next_in_turn() {
  for (Slice& slice : slices_) slice.is_quiet = false;
  while (true) {
    if (turn_ >= slices_.size()) turn_ = 0;
    if (slices_[turn_].is_idle()) place(turn_);
    Slice& slice = slices_[turn_];
    Answer answer;
    if (slice.ready) {
      answer = *std::exchange(slice.ready, std::nullopt);
    } else {
      try {
        answer = requests_.pipeline().send(requests_.page_call(slice, std::nullopt),
                                           requests_.options());
      } catch (const CosmosException& failure) {
        if (!requests_.was_misplaced(slice, failure)) throw;
        requests_.pause(slice);
        continue;
      }
    }
    ++turn_;
    if (auto page = take(slice, std::move(answer))) return *std::move(page);
    slice.is_quiet = true;
    if (!std::ranges::all_of(slices_, &Slice::is_quiet)) continue;
    if (!wait_) return nothing_new(/*waited=*/false);
    polling_ = true;
    return next_of_polls();
  }
}

ChangeFeedPage ChangeFeedIterator::State::next_of_polls() {
  const SteadyTime deadline = std::chrono::steady_clock::now() + *wait_;
  // Answers to polls of earlier calls may be older than this call: they do not make a slice quiet.
  const std::uint64_t kept_polls_end = last_poll_;
  for (Slice& slice : slices_) {
    slice.is_quiet = false;
    slice.rest_until = {};  // A new call polls at once.
  }
  while (true) {
    const SteadyTime now = std::chrono::steady_clock::now();
    const bool over = now + kWaitWorthwhile > deadline;
    const bool all_quiet = std::ranges::all_of(slices_, &Slice::is_quiet);
    if (all_quiet && (over || std::ranges::all_of(slices_, &Slice::is_unheld))) {
      return nothing_new(std::ranges::none_of(slices_, &Slice::is_unheld));
    }
    SteadyTime wake =
        all_quiet ? deadline - kWaitWorthwhile + std::chrono::milliseconds(1) : now + kWaitMax;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      if (!slices_[i].is_idle() || (slices_[i].is_quiet && over)) continue;
      if (slices_[i].rest_until > now) {
        wake = std::min(wake, slices_[i].rest_until);
        continue;
      }
      place(i);
      poll(slices_[i], over ? std::nullopt
                            : std::optional(std::chrono::round<std::chrono::seconds>(
                                  deadline - now + std::chrono::milliseconds(1))));
    }
    auto [slice, poll_id, answer] = receive(wake);
    if (slice == nullptr) continue;
    const bool held = was_held(answer);
    if (auto page = take(*slice, std::move(answer))) return *std::move(page);
    const SteadyTime answered_at = std::chrono::steady_clock::now();
    slice->rest_until = slice->polled_at + kPollPauseMin;
    if (slice->poll_may_wait) {
      slice->is_unheld = !held;
      if (!held) slice->rest_until = answered_at + kUnheldPause;
    }
    slice->is_quiet = slice->is_quiet || poll_id > kept_polls_end;
  }
}

/// After this the slice lies in one range; it may be the first of several pieces of what it was.
void ChangeFeedIterator::State::place(std::size_t index) {
  if (requests_.is_placed(slices_[index])) return;
  std::vector<Slice> pieces;
  for (PlacedSlice& piece : requests_.place(slices_[index])) pieces.emplace_back(std::move(piece));
  slices_[index] = std::move(pieces.front());
  slices_.insert(slices_.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                 std::make_move_iterator(pieces.begin() + 1),
                 std::make_move_iterator(pieces.end()));
}

void ChangeFeedIterator::State::poll(Slice& slice, std::optional<std::chrono::seconds> wait) {
  slice.poll = ++last_poll_;
  slice.poll_may_wait = wait.has_value();
  slice.polled_at = std::chrono::steady_clock::now();
  requests_.pipeline().send_async(
      requests_.page_call(slice, wait), requests_.lasting_options(),
      [mailbox = mailbox_, id = slice.poll](Answer answer, std::exception_ptr failure) {
        mailbox->put({id, std::move(answer), std::move(failure)});
      });
}

/// The next answer, by `until` at the latest. A slice that turned out to be served elsewhere is
/// left without a poll, to be asked again.
ChangeFeedIterator::State::Received ChangeFeedIterator::State::receive(SteadyTime until) {
  const SteadyTime end = requests_.time().end();
  auto letter = mailbox_->take(stop_.get_token(), std::min(until, end));
  if (!letter) {
    if (stop_.stop_requested()) {
      throw failure_of(Failure::Cancelled, "Reading the change feed was cancelled.");
    }
    if (std::chrono::steady_clock::now() >= end) {
      throw failure_of(Failure::Timeout, "The change feed was not read in time.");
    }
    return {};
  }
  const auto slice = std::ranges::find(slices_, letter->poll, &Slice::poll);
  if (slice == slices_.end()) return {};
  slice->poll = 0;
  if (letter->failure) {
    try {
      std::rethrow_exception(letter->failure);
    } catch (const CosmosException& failure) {
      if (!requests_.was_misplaced(*slice, failure)) throw;
      slice->rest_until = std::chrono::steady_clock::now() + FeedRequests::pause_of(*slice);
    }
    return {};
  }
  return {&*slice, letter->poll, std::move(letter->answer)};
}

/// The page of an answer, or nothing when there was nothing new. Either way the slice moves on, but
/// not before the answer was understood.
std::optional<ChangeFeedPage> ChangeFeedIterator::State::take(Slice& slice, Answer answer) {
  if (answer.status == kNotModified) {
    take_not_modified(slice, answer);
    return std::nullopt;
  }
  if (answer.etag.empty()) refuse_answer(answer);
  std::string etag = answer.etag;
  ChangeFeedPage page;
  static_cast<ItemPage&>(page) = item_page(std::move(answer), "Documents", {});
  slice.etag = std::move(etag);
  slice.is_level = false;
  slice.misplaced_count = 0;
  page.request_charge += std::exchange(charge_, 0);
  page.waited = was_held(page);
  page.feed_range = slice.range;
  page.continuation = position();
  return page;
}

void ChangeFeedIterator::State::take_not_modified(Slice& slice, const Answer& answer) {
  if (answer.etag.empty()) refuse_answer(answer);
  slice.etag = answer.etag;
  slice.since.reset();  // All that comes is newer.
  slice.is_level = true;
  slice.misplaced_count = 0;
  charge_ += answer.request_charge;
  quietest_ = answer;
}

ChangeFeedPage ChangeFeedIterator::State::nothing_new(bool waited) {
  join_slices();
  ChangeFeedPage page;
  static_cast<ItemPage&>(page) = ItemPage(quietest_, nullptr, {}, position());
  page.request_charge = std::exchange(charge_, 0);
  page.not_modified = true;
  page.waited = waited;
  page.feed_range = {slices_.front().range.min, slices_.back().range.max};
  return page;
}

/// Slices stay apart when their ranges are merged, since each was read up to another position. As
/// soon as these are the same, one request is enough for both.
void ChangeFeedIterator::State::join_slices() {
  std::vector<Slice> joined;
  for (Slice& slice : slices_) {
    if (!joined.empty()) {
      Slice& left = joined.back();
      if (left.is_idle() && slice.is_idle() && left.is_level && slice.is_level &&
          left.placed_by == slice.placed_by && left.range_id == slice.range_id &&
          left.etag == slice.etag && left.since == slice.since) {
        left.range.max = slice.range.max;
        left.placed_by = nullptr;
        continue;
      }
    }
    joined.push_back(std::move(slice));
  }
  slices_ = std::move(joined);
  turn_ = 0;
}

ChangeFeedIterator::ChangeFeedIterator(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChangeFeedIterator::~ChangeFeedIterator() = default;
ChangeFeedIterator::ChangeFeedIterator(ChangeFeedIterator&&) noexcept = default;
ChangeFeedIterator& ChangeFeedIterator::operator=(ChangeFeedIterator&&) noexcept = default;

ChangeFeedPage ChangeFeedIterator::next() { return state_->next(); }
std::string ChangeFeedIterator::continuation() const { return state_->continuation(); }

ChangeFeedIterator Container::change_feed(const ChangeFeedOptions& options) const {
  return ChangeFeedIterator(std::make_unique<ChangeFeedIterator::State>(pipeline_, link_, options));
}

}  // namespace orrery::client
