// FeedLoop: reads the feed of one lease, page by page, and hands the changes on. A position moves
// only with a page that was dispatched; it is written only when everything up to it is done.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/processor.h"
#include "processor/hosting/checkpoint_policy.h"
#include "processor/hosting/dispatcher.h"
#include "processor/hosting/feed_reader.h"
#include "processor/hosting/lanes.h"
#include "processor/hosting/rate_limit.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/lease.h"

namespace orrery::processor {

/// Why reading has ended.
struct FeedEnding {
  enum class Kind {
    Stopped,  ///< somebody asked for it
    ObserverError,
    ObserverStop,
    HaltRange,
    HaltGroup,
    Gone,      ///< the range was split or merged
    NotFound,  ///< there is no such container
    SessionNotAvailable,
    Failed,
  };
  Kind kind = Kind::Stopped;
  std::string message;
};

/// For the host's thread.
class FeedLoop {
 public:
  struct Setup {
    Runtime& runtime;
    FeedReader& reader;
    Dispatcher& dispatcher;
    RateLimiter& limiter;
    Stop& stop;
    const MonitoredFeedOptions& feed_options;
    const ChangeFeedHostOptions& options;
    const DocumentReader& documents;
    std::function<bool()> paused;
    /// Writes a position into the lease, however long it takes. False: the lease is lost.
    std::function<asio::awaitable<bool>(std::string)> checkpoint;
    std::function<void(HealthEvent)> report;
  };
  FeedLoop(Setup setup, Lease lease);
  FeedLoop(const FeedLoop&) = delete;
  FeedLoop& operator=(const FeedLoop&) = delete;

  /// Returns when nothing of it runs any more; what is done by then has been checkpointed, unless
  /// that is left to the observer, who did not ask for it.
  asio::awaitable<FeedEnding> run();

  /// A position beyond the written one with nothing to do before it: to be written along with the
  /// next renewal. Asked for once.
  std::optional<std::string> take_idle_position() { return std::exchange(idle_position_, {}); }
  /// Ends it: the lease is being replaced by others.
  void supersede() { end(FeedEnding::Kind::Gone, "leases that replace it are there already"); }
  /// Since when it waits for an answer of the feed; nullopt: it does not.
  std::optional<MonotonicTime> reading_since() const { return reading_since_; }

 private:
  /// The part of a page that one lane processes.
  struct Part {
    Watermark::PageId page = 0;
    Batch batch;
  };
  struct Lane {
    explicit Lane(Runtime& runtime) : more(runtime) {}
    std::deque<Part> parts;
    Signal more;
  };

  asio::awaitable<void> read_on();
  asio::awaitable<void> take_answer(FeedAnswer answer);
  asio::awaitable<void> take_page(FeedAnswer answer);
  asio::awaitable<void> take_not_modified(FeedAnswer answer);
  asio::awaitable<void> take_gone(FeedAnswer answer);
  void take_too_large(const FeedAnswer& answer);
  asio::awaitable<bool> find_target();
  asio::awaitable<void> wait_for_turn();
  asio::awaitable<void> pause(std::chrono::milliseconds time);
  asio::awaitable<void> serve(Lane& lane);
  asio::awaitable<void> confirm();
  FeedRequest next_request() const;
  void end(FeedEnding::Kind kind, std::string message);
  /// Pages that are worked on, or done and about to be confirmed.
  std::size_t busy_pages() const { return watermark_.open_pages() + (confirming_ ? 1 : 0); }
  bool ended() const { return ending_.has_value() || setup_.stop.requested(); }
  void report(Severity severity, std::string message) const;

  Setup setup_;
  Lease lease_;
  std::string range_id_;
  std::optional<client::FeedRange> slice_;
  std::optional<std::string> read_position_;  // Where the next page begins.
  std::string done_position_;                 // Everything up to it is done.
  std::optional<std::uint32_t> page_size_;    // While it had to be cut down.
  std::optional<FeedEnding> ending_;
  std::stop_source reading_;

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::size_t pages_max_;  // That are worked on at once.
  Watermark watermark_;
  Signal page_done_;
  bool closing_ = false;  // Lanes end when they have nothing to do.
  CheckpointPolicy policy_;
  bool confirming_ = false;
  std::optional<std::string> idle_position_;
  std::optional<MonotonicTime> reading_since_;
};

}  // namespace orrery::processor
