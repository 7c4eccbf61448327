#include "client/transport/async_transport.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <fmt/format.h>

#include "base/assert.h"
#include "client/transport/response_parser.h"

namespace orrery::client {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

/// Servers close idle connections after a minute or more; we do it first.
constexpr std::chrono::seconds kIdleMax{50};

// The keys of epoll events: the wake, a socket that libcurl is connecting, or else the number of a
// connection.
constexpr std::uint64_t kWakeKey = 0;
constexpr std::uint64_t kDialKey = std::uint64_t{1} << 63;

/// Threads whose transport was ended by one of their own callbacks, so that nobody could wait for
/// them. The process does at its end: otherwise OpenSSL and others would be taken down while such a
/// thread still closes its connections. One for the process, since it is the process that waits.
class Leftovers {
 public:
  static Leftovers& of_process() {
    static Leftovers leftovers;
    return leftovers;
  }

  /// `ended` becomes true when the thread has nothing left to do.
  void add(std::thread thread, std::shared_ptr<const std::atomic<bool>> ended) {
    const std::lock_guard lock(mutex_);
    process_ = ::getpid();
    std::erase_if(threads_, [](Entry& entry) {
      if (!entry.ended->load()) return false;
      entry.thread.join();
      return true;
    });
    threads_.push_back({std::move(thread), std::move(ended)});
  }

  ~Leftovers() {
    for (Entry& entry : threads_) {
      // A callback may be what ends the process; and a child made by fork() has no threads.
      const bool is_there =
          ::getpid() == process_ && entry.thread.get_id() != std::this_thread::get_id();
      is_there ? entry.thread.join() : entry.thread.detach();
    }
  }

 private:
  struct Entry {
    std::thread thread;
    std::shared_ptr<const std::atomic<bool>> ended;  // Shared with the thread.
  };

  std::mutex mutex_;
  std::vector<Entry> threads_;
  pid_t process_ = 0;
};

}  // namespace

class AsyncTransport::Loop : public std::enable_shared_from_this<Loop> {
 public:
  Loop(LinkOptions options, std::size_t connections_max)
      : options_(std::move(options)), connections_max_(std::max<std::size_t>(connections_max, 1)) {
    // Initialised first, so destroyed last: a client may be one of the program's globals.
    init_libcurl();
  }

  ~Loop() {
    idle_.clear();
    connections_.clear();
    if (multi_ != nullptr) curl_multi_cleanup(multi_);
    if (epoll_ >= 0) ::close(epoll_);
  }

  bool post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    posted_.push_back(std::move(work));
    if (!thread_.joinable()) {
      open();
      thread_ = std::thread([self = shared_from_this(), ended = ended_] {
        self->run();
        ended->store(true);
      });
    }
    // Within the lock, by which the thread gets the work: that may destroy all of this.
    wake_.ring();
    return true;
  }

  void shutdown(std::shared_ptr<const void> keep) {
    std::thread thread;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      thread = std::move(thread_);
      if (thread.joinable()) keep_ = std::move(keep);
    }
    wake_.ring();
    if (!thread.joinable()) return;
    if (thread.get_id() == std::this_thread::get_id()) {
      Leftovers::of_process().add(std::move(thread), ended_);
    } else {
      thread.join();
    }
  }

  Ticket send(const Outgoing& request, TimePoint deadline, Done done) {
    const Ticket ticket = ++last_ticket_;
    Job& job = jobs_[ticket];
    job.ticket = ticket;
    job.request = &request;
    job.done = std::move(done);
    job.deadline = deadline;
    timers_.emplace(std::pair(deadline, ticket), nullptr);
    if (!request.waits && busy_ >= connections_max_) {
      queue_.push_back(ticket);
    } else {
      job.counted = !request.waits;
      busy_ += job.counted ? 1 : 0;
      ready_.push_back(ticket);
    }
    return ticket;
  }

  Ticket wait_until(TimePoint time, Elapsed done) {
    const Ticket ticket = ++last_ticket_;
    waits_.emplace(ticket, time);
    timers_.emplace(std::pair(time, ticket), std::move(done));
    return ticket;
  }

  void cancel(Ticket ticket) {
    if (jobs_.contains(ticket)) return finish(ticket, Outcome::cancelled(was_sent(ticket)));
    const auto wait = waits_.find(ticket);
    if (wait == waits_.end()) return;
    const auto timer = timers_.find(std::pair(wait->second, ticket));
    Elapsed done = std::move(timer->second);
    timers_.erase(timer);
    waits_.erase(wait);
    done(true);
  }

 private:
  struct Job;

  struct Connection {
    Connection(EndpointPtr endpoint, const LinkOptions& options)
        : link(std::move(endpoint), options) {}

    Link link;
    ResponseParser parser;
    std::uint64_t number = 0;
    Ticket ticket = 0;     // Of the job that it is for; 0: it is idle.
    std::size_t sent = 0;  // Bytes of head and body.
    bool is_open = false;
    bool watches_room = false;  // epoll tells when it takes more bytes.
    TimePoint idle_since;
  };
  using ConnectionPtr = std::unique_ptr<Connection>;

  struct Job {
    Ticket ticket = 0;
    const Outgoing* request = nullptr;
    TimePoint deadline;
    Done done;
    Connection* connection = nullptr;
    bool counted = false;  // As busy.
  };

  void open() {
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    ORRERY_ASSERT(epoll_ >= 0);
    watch(wake_.descriptor(), EPOLLIN, kWakeKey);
    multi_ = curl_multi_init();
    ORRERY_ASSERT(multi_ != nullptr);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Loop::on_dial_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Loop::on_dial_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  }

  /// From now on these events, whether it was watched before or not.
  void watch(int descriptor, std::uint32_t events, std::uint64_t key) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = key;
    if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event) == 0 || errno != ENOENT) return;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
  }
  void unwatch(int descriptor) {
    epoll_event event{};
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, &event);
  }

  // ── the loop ──────────────────────────────────────────────────────────────────────────────────

  void run() {
    std::array<epoll_event, 256> events;
    while (!is_stopping()) {
      run_posted();
      start_ready();
      const int count =
          ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), time_to_sleep());
      for (int i = 0; i < count && !is_stopping(); ++i) handle(events[static_cast<std::size_t>(i)]);
      run_timers();
    }
    drain();
  }

  bool is_stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  bool run_posted() {
    std::vector<std::function<void()>> works;
    {
      const std::lock_guard lock(mutex_);
      works.swap(posted_);
    }
    for (auto& work : works) work();
    return !works.empty();
  }

  /// Ends everything; what is begun in the meantime, too.
  void drain() {
    while (run_posted() || !jobs_.empty() || !waits_.empty()) {
      if (!jobs_.empty()) {
        cancel(jobs_.begin()->first);
      } else if (!waits_.empty()) {
        cancel(waits_.begin()->first);
      }
    }
    std::shared_ptr<const void> kept;  // Dropped without the lock.
    {
      const std::lock_guard lock(mutex_);
      kept = std::move(keep_);
    }
  }

  int time_to_sleep() const {
    auto next = TimePoint::max();
    if (!timers_.empty()) next = timers_.begin()->first.first;
    if (dial_time_) next = std::min(next, *dial_time_);
    if (!idle_.empty()) next = std::min(next, next_sweep_);
    if (!ready_.empty()) return 0;
    if (next == TimePoint::max()) return -1;
    const auto left = std::chrono::ceil<milliseconds>(next - steady_clock::now());
    return static_cast<int>(std::clamp(left, milliseconds(0), milliseconds(3'600'000)).count());
  }

  void handle(const epoll_event& event) {
    const std::uint64_t key = event.data.u64;  // A copy: where it stands it is not aligned.
    if (key == kWakeKey) {
      wake_.silence();
      return;
    }
    if ((key & kDialKey) != 0) {
      const int descriptor = static_cast<int>(key & ~kDialKey);
      if (!dialled_.contains(descriptor)) return;
      int mask = 0;
      if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) mask |= CURL_CSELECT_IN;
      if ((event.events & (EPOLLOUT | EPOLLERR)) != 0) mask |= CURL_CSELECT_OUT;
      dial(descriptor, mask);
      return;
    }
    const auto found = connections_.find(key);
    if (found != connections_.end()) go_on(*found->second);
  }

  void run_timers() {
    const auto now = steady_clock::now();
    if (dial_time_ && *dial_time_ <= now) {
      dial_time_.reset();
      dial(CURL_SOCKET_TIMEOUT, 0);
    }
    while (!timers_.empty() && timers_.begin()->first.first <= now && !is_stopping()) {
      const Ticket ticket = timers_.begin()->first.second;
      Elapsed done = std::move(timers_.begin()->second);
      if (!done) {
        finish_late(ticket);
        continue;
      }
      timers_.erase(timers_.begin());
      waits_.erase(ticket);
      done(false);
    }
    if (!idle_.empty() && next_sweep_ <= now) sweep(now);
  }

  // ── connections ───────────────────────────────────────────────────────────────────────────────

  static int on_dial_socket(CURL*, curl_socket_t descriptor, int what, void* context, void*) {
    auto& self = *static_cast<Loop*>(context);
    if (what == CURL_POLL_REMOVE) {
      // One that was opened is watched by ourselves.
      if (self.dialled_.erase(descriptor) > 0 && !self.abandons_dial_) self.unwatch(descriptor);
      return 0;
    }
    std::uint32_t events = 0;
    if ((what & CURL_POLL_IN) != 0) events |= EPOLLIN;
    if ((what & CURL_POLL_OUT) != 0) events |= EPOLLOUT;
    self.dialled_.insert(descriptor);
    self.watch(descriptor, events, kDialKey | static_cast<std::uint64_t>(descriptor));
    return 0;
  }

  static int on_dial_timer(CURLM*, long timeout_ms, void* context) {
    auto& self = *static_cast<Loop*>(context);
    if (timeout_ms < 0) {
      self.dial_time_.reset();
    } else {
      self.dial_time_ = steady_clock::now() + milliseconds(timeout_ms);
    }
    return 0;
  }

  void dial(curl_socket_t descriptor, int mask) {
    int running = 0;
    curl_multi_socket_action(multi_, descriptor, mask, &running);
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      const auto found = dialling_.find(message->easy_handle);
      if (found == dialling_.end()) continue;
      Connection& connection = *found->second;
      dialling_.erase(found);
      Outcome outcome = connection.link.opened(code);
      if (outcome.no_answer != NoAnswer::None) {
        finish(connection.ticket, std::move(outcome));
        continue;
      }
      connection.is_open = true;
      const int opened = connection.link.descriptor();
      dialled_.erase(opened);
      watch(opened, EPOLLIN, connection.number);
      go_on(connection);
    }
  }

  void start_ready() {
    while (!ready_.empty() && !is_stopping()) {
      const Ticket ticket = ready_.front();
      ready_.pop_front();
      if (const auto found = jobs_.find(ticket); found != jobs_.end()) start(found->second);
    }
  }

  void start(Job& job) {
    const EndpointPtr& endpoint = job.request->endpoint;
    const auto same = [&](const Connection* each) {
      return each->link.endpoint() == endpoint || each->link.endpoint()->url == endpoint->url;
    };
    Connection* connection = nullptr;
    if (const auto found = std::find_if(idle_.rbegin(), idle_.rend(), same);
        found != idle_.rend()) {
      connection = *found;
      idle_.erase(std::next(found).base());
    } else {
      auto made = std::make_unique<Connection>(endpoint, options_);
      connection = made.get();
      connection->number = ++last_number_;
      connections_.emplace(connection->number, std::move(made));
    }
    connection->ticket = job.ticket;
    connection->sent = 0;
    connection->parser.reset(job.request->head_only);
    job.connection = connection;
    if (connection->is_open) {
      go_on(*connection);
    } else {
      dialling_.emplace(connection->link.handle(), connection);
      connection->link.open_in(multi_);
    }
  }

  void close(Connection& connection) {
    std::erase(idle_, &connection);
    dialling_.erase(connection.link.handle());
    if (connection.is_open) unwatch(connection.link.descriptor());
    // libcurl closes a connection that is not open yet, and says so only afterwards, when the
    // number may already be that of another thread's file.
    abandons_dial_ = !connection.is_open;
    connections_.erase(connection.number);
    abandons_dial_ = false;
  }

  void sweep(TimePoint now) {
    while (!idle_.empty() && idle_.front()->idle_since + kIdleMax <= now) close(*idle_.front());
    if (!idle_.empty()) next_sweep_ = idle_.front()->idle_since + kIdleMax;
  }

  // ── requests ──────────────────────────────────────────────────────────────────────────────────

  bool was_sent(Ticket ticket) const {
    const Connection* connection = jobs_.at(ticket).connection;
    return connection != nullptr && connection->sent > 0;
  }

  /// Whatever can be done on a connection without a wait.
  void go_on(Connection& connection) {
    if (connection.ticket == 0) {
      if (!connection.link.is_quiet()) close(connection);
      return;
    }
    Job& job = jobs_.at(connection.ticket);
    if (!send_more(connection, job)) return;
    receive_more(connection);
  }

  /// False when the connection is no longer this job's.
  bool send_more(Connection& connection, Job& job) {
    const std::string_view head = job.request->head;
    const std::string_view body = job.request->body;
    const std::size_t size = head.size() + body.size();
    while (connection.sent < size) {
      const std::string_view piece = connection.sent < head.size()
                                         ? head.substr(connection.sent)
                                         : body.substr(connection.sent - head.size());
      const auto progress = connection.link.send(piece);
      connection.sent += progress.count;
      if (progress.closed) {
        if (connection.sent > 0) break;  // There may be an answer all the same.
        if (connection.link.used) {
          // Closed by the server while it was idle. Nothing got out: another one will do.
          job.connection = nullptr;
          ready_.push_back(job.ticket);
          close(connection);
          return false;
        }
        Outcome outcome = Outcome::failed(
            NoAnswer::Broken,
            fmt::format("no answer from {}: the connection was closed", job.request->endpoint->url),
            false);
        finish(job.ticket, std::move(outcome));
        return false;
      }
      if (progress.count == 0) break;
    }
    const bool wants_room = connection.sent < size;
    if (wants_room != connection.watches_room) {
      connection.watches_room = wants_room;
      watch(connection.link.descriptor(), EPOLLIN | (wants_room ? std::uint32_t{EPOLLOUT} : 0),
            connection.number);
    }
    return true;
  }

  void receive_more(Connection& connection) {
    while (!connection.parser.complete()) {
      const auto progress = connection.link.receive(connection.parser.room());
      if (progress.count == 0 && !progress.closed) return;
      const auto taken = progress.count > 0 ? connection.parser.received(progress.count)
                                            : connection.parser.closed();
      if (taken) continue;
      Outcome outcome =
          Outcome::failed(NoAnswer::Broken,
                          fmt::format("no answer from {}: {}", connection.link.endpoint()->url,
                                      taken.error().message()),
                          true);
      outcome.broke_idle = connection.link.used && !connection.parser.begun();
      return finish(connection.ticket, std::move(outcome));
    }
    Outcome outcome;
    outcome.reply = connection.parser.take();
    connection.link.used = true;
    finish(connection.ticket, std::move(outcome));
  }

  void finish_late(Ticket ticket) {
    const Job& job = jobs_.at(ticket);
    const bool connects = job.connection == nullptr || !job.connection->is_open;
    finish(ticket, Outcome::failed(
                       NoAnswer::TimedOut,
                       fmt::format("no {} {} in time", connects ? "connection to" : "answer from",
                                   job.request->endpoint->url),
                       was_sent(ticket)));
  }

  /// Takes the job out before the callback, which may begin the next one.
  void finish(Ticket ticket, Outcome outcome) {
    auto node = jobs_.extract(ticket);
    Job& job = node.mapped();
    timers_.erase(std::pair(job.deadline, ticket));
    if (Connection* connection = job.connection) {
      const bool all_sent = connection->sent == job.request->head.size() + job.request->body.size();
      if (outcome.no_answer == NoAnswer::None && connection->parser.keep_alive() && all_sent) {
        connection->ticket = 0;
        connection->idle_since = steady_clock::now();
        if (idle_.empty()) next_sweep_ = connection->idle_since + kIdleMax;
        idle_.push_back(connection);
      } else {
        close(*connection);
      }
    }
    if (job.counted) {
      --busy_;
      start_queued();
    }
    job.done(std::move(outcome));
  }

  void start_queued() {
    while (!queue_.empty() && busy_ < connections_max_) {
      const Ticket ticket = queue_.front();
      queue_.pop_front();
      const auto found = jobs_.find(ticket);
      if (found == jobs_.end()) continue;  // It was cancelled, or too late.
      found->second.counted = true;
      ++busy_;
      ready_.push_back(ticket);
    }
  }

  const LinkOptions options_;
  const std::size_t connections_max_;
  Wake wake_;

  std::mutex mutex_;  // Of the next four.
  std::vector<std::function<void()>> posted_;
  bool stopping_ = false;
  std::thread thread_;
  std::shared_ptr<const void> keep_;  // Kept alive for callbacks, until the last was called.

  // Whether the thread is through; shared with the thread that waits for it.
  const std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);

  int epoll_ = -1;
  CURLM* multi_ = nullptr;              // Makes connections; never transfers anything.
  std::optional<TimePoint> dial_time_;  // When libcurl wants to be called.
  std::set<int> dialled_;               // Sockets that libcurl has us watch.
  bool abandons_dial_ = false;
  std::unordered_map<void*, Connection*> dialling_;  // By easy handle.

  Ticket last_ticket_ = 0;
  std::uint64_t last_number_ = 0;
  std::unordered_map<Ticket, Job> jobs_;
  std::unordered_map<Ticket, TimePoint> waits_;
  std::map<std::pair<TimePoint, Ticket>, Elapsed> timers_;  // Without a function: of a job.
  std::deque<Ticket> ready_;                                // To be started.
  std::deque<Ticket> queue_;                                // Until others have ended.
  std::size_t busy_ = 0;
  std::unordered_map<std::uint64_t, ConnectionPtr> connections_;
  std::vector<Connection*> idle_;  // The last one used at the back.
  TimePoint next_sweep_;
};

AsyncTransport::AsyncTransport(LinkOptions options, std::size_t connections_max)
    : loop_(std::make_shared<Loop>(std::move(options), connections_max)) {}

AsyncTransport::~AsyncTransport() { shutdown(); }

bool AsyncTransport::post(std::function<void()> work) { return loop_->post(std::move(work)); }

AsyncTransport::Ticket AsyncTransport::send(const Outgoing& request, TimePoint deadline,
                                            Done done) {
  return loop_->send(request, deadline, std::move(done));
}

AsyncTransport::Ticket AsyncTransport::wait_until(TimePoint time, Elapsed done) {
  return loop_->wait_until(time, std::move(done));
}

void AsyncTransport::cancel(Ticket ticket) { loop_->cancel(ticket); }

void AsyncTransport::shutdown(std::shared_ptr<const void> keep) {
  // Dropping what is kept may destroy this.
  const std::shared_ptr<Loop> loop = loop_;
  loop->shutdown(std::move(keep));
}

}  // namespace orrery::client
