// Exchange: one call, from its first attempt to its outcome. Says what is to be done next and
// judges what came of it; others do it, whether they block or not. No I/O, no waiting, no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "client/exchange/chance.h"
#include "client/exchange/outcome.h"
#include "client/exchange/pipeline.h"
#include "client/exchange/regions.h"
#include "client/exchange/session.h"
#include "client/handles/account.h"

namespace orrery::client {

/// Shared by all calls of one client. All of it is thread-safe.
struct Surroundings {
  Account account;
  ClientOptions options;
  Regions regions;
  Sessions sessions;
  Chance chance;
  const Clock& clock;
  std::string standing_headers;  ///< the same in every request

  /// Throws CosmosException (Argument).
  Surroundings(std::string endpoint, const Credential& credential, ClientOptions client_options,
               const Clock& wall_clock, std::uint64_t seed);
};

/// For one thread at a time. `call` and `options` must outlive it.
class Exchange {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  enum class Step {
    Discover,  ///< ask the account which regions it has, then call discovered()
    Send,      ///< send prepare() and hand the outcome to judge()
    Wait,      ///< for so long as wait() says, then call waited()
    Answered,  ///< take_answer()
    Failed,    ///< take_failure()
  };

  Exchange(Surroundings& surroundings, const Call& call, const RequestOptions& options,
           TimePoint now);

  Step step() const { return step_; }

  /// Whether what is known of the account does not count.
  bool must_rediscover() const { return rediscover_; }
  void discovered(TimePoint now);

  /// The next attempt, signed. Fails (see step()) when a header can't be sent, or there is no time
  /// left.
  void prepare(TimePoint now);
  const Outgoing& outgoing() const { return outgoing_; }
  /// When the attempt must have ended.
  TimePoint attempt_deadline() const { return attempt_deadline_; }
  /// When the call must have ended; the end of time when nobody said so.
  TimePoint deadline() const { return deadline_; }
  void judge(Outcome outcome, TimePoint now);

  std::chrono::milliseconds wait() const { return wait_; }
  void waited(TimePoint now);

  /// The caller does not want it any more, or the time is over.
  void cancel(TimePoint now);
  void time_out(TimePoint now);

  Answer take_answer() { return std::move(answer_); }
  /// Leaves no other reference, so that the caller may hand it to another thread.
  std::exception_ptr take_failure() { return std::move(failure_); }

 private:
  void judge_reply(Reply reply, TimePoint now);
  void judge_container(const Reply& reply, TimePoint now);
  void judge_no_answer(const Outcome& outcome, TimePoint now);
  bool is_answer(int status) const;

  // Each says whether the call goes on.
  bool again_after_throttling(const Reply& reply, TimePoint now);
  bool again_after_conflict(TimePoint now);
  bool again_after_loss(bool at_once, TimePoint now);
  bool again_elsewhere(int sub_status, TimePoint now);
  bool again_for_session(const Reply& reply, TimePoint now);
  bool again_after(std::chrono::milliseconds wait, TimePoint now);
  void tell_again() const;

  /// The request of the next attempt.
  const Call& current() const { return container_read_ ? *container_read_ : call_; }
  std::chrono::milliseconds jittered(std::chrono::milliseconds wait);
  bool goes_to_write_region() const { return call_.writes || prefers_write_region_; }
  bool wants_session() const;
  void append_headers(std::string& head, std::string_view date);
  void refuse(const Reply& reply, TimePoint now);
  void fail(Failure failure, const std::string& words, TimePoint now);
  void note_attempt(const Reply* reply, std::string_view words, TimePoint now);

  Surroundings& surroundings_;
  const Call& call_;
  const RequestOptions& options_;

  Step step_ = Step::Send;
  const TimePoint begun_;
  TimePoint deadline_ = TimePoint::max();
  std::chrono::milliseconds attempt_time_max_;
  bool waits_for_news_ = false;  // It is a long poll.

  bool rediscover_ = false;
  Outgoing outgoing_;
  Regions::Known* region_ = nullptr;  // Of the attempt that is under way.
  std::vector<Regions::Known*> tried_;
  TimePoint attempt_begun_;
  TimePoint attempt_deadline_;
  std::string activity_id_;
  std::chrono::milliseconds wait_{0};

  int throttled_count_ = 0;
  std::chrono::milliseconds throttled_wait_{0};
  std::chrono::milliseconds conflict_wait_{0};
  std::chrono::milliseconds conflict_next_;
  int lost_count_ = 0;
  int misdirected_count_ = 0;
  int session_count_ = 0;
  bool prefers_write_region_ = false;
  std::string session_rid_;  // The container whose session was sent last; empty: not known.
  // Set while it is asked whether another container has the name now, with the refusal that gave
  // rise to it.
  std::unique_ptr<const Call> container_read_;
  Reply session_refusal_;

  Diagnostics diagnostics_;
  Answer answer_;
  std::exception_ptr failure_;
};

}  // namespace orrery::client
