// One random history of a group of hosts, drawn from a seed: hosts that crash, hang, are cut off
// and come back, ranges that split and merge, clocks that are wrong; and what must hold all the
// while.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "processor/controller.h"
#include "processor/lease.h"
#include "processor/test_simulated_feed.h"
#include "processor/test_simulated_store.h"
#include "processor/test_simulation.h"

namespace orrery::processor::simulation {

using namespace std::chrono_literals;

/// What was processed, and whether it was done right. All that goes wrong is written down.
class Ledger {
 public:
  explicit Ledger(const FeedServer& feed) : feed_(feed) {}

  void problem(std::string what) {
    if (problems_.size() < 10) problems_.push_back(std::move(what));
  }
  const std::vector<std::string>& problems() const { return problems_; }

  /// An owner begins. No epoch of a lease may ever belong to two.
  void opened(const std::string& token, std::uint64_t epoch, const std::string& life) {
    const auto [owner, first] = owners_.try_emplace({token, epoch}, life);
    if (!first) {
      problem(fmt::format("epoch {} of lease {} belongs to {} and to {}", epoch, token,
                          owner->second, life));
    }
  }

  void processed(const std::string& token, std::uint64_t epoch, std::string_view document) {
    const Change change = parse(document);
    int& newest = processed_[change.key];
    if (change.version > newest + 1) {
      problem(fmt::format("version {} of key {} was processed before version {}", change.version,
                          change.key, newest + 1));
    }
    if (change.version > newest) ++first_deliveries_;
    newest = std::max(newest, change.version);
    ++deliveries_;
    int& last = by_epoch_[{token, epoch, change.key}];
    if (change.version <= last) {
      problem(fmt::format("lease {} went back from version {} to {} of key {} within epoch {}",
                          token, last, change.version, change.key, epoch));
    }
    last = change.version;
    sink(change);
  }

  /// Everything before a position that is written must have been processed.
  void checkpointed(const StoredDocument& document) {
    const auto lease = parse_lease(document);
    if (!lease) {
      problem("a lease can't be read: " + lease.error().message());
      return;
    }
    if (!lease->position) return;
    const std::uint64_t position = position_lsn(*lease->position).value_or(0);
    const client::FeedRange area = feed_.area_of(lease->token);
    for (const Change& change : feed_.changes()) {
      if (change.lsn > position || change.hash < area.min || area.max <= change.hash) continue;
      if (processed_[change.key] < change.version) {
        problem(fmt::format("lease {} is at {}, but version {} of key {} (lsn {}) is not processed",
                            lease->token, position, change.version, change.key, change.lsn));
      }
    }
  }

  bool all_processed() const { return first_deliveries_ == feed_.changes().size(); }
  std::size_t deliveries() const { return deliveries_; }

  /// What a sink has that keeps its position with its data: every change once, in order.
  void check_sink() {
    for (const Change& change : feed_.changes()) {
      if (sink_versions_[change.key] < change.version) {
        problem(fmt::format("the sink lacks version {} of key {}", change.version, change.key));
      }
    }
  }

 private:
  static Change parse(std::string_view document) {
    Change change;
    unsigned long long lsn = 0;
    const std::string text(document);
    std::sscanf(text.c_str(), "{\"id\":\"%d-%d\"", &change.key, &change.version);
    std::sscanf(text.c_str() + text.rfind(':'), ":%llu", &lsn);
    change.lsn = lsn;
    return change;
  }

  /// A change and the position of its key are written together. What is not beyond the position
  /// was there before.
  void sink(const Change& change) {
    std::pair<std::uint64_t, int>& position = sink_positions_[change.key];
    if (std::pair(change.lsn, change.version) <= position) return;
    position = {change.lsn, change.version};
    if (change.version != ++sink_versions_[change.key]) {
      problem(fmt::format("the sink got version {} of key {} as its {}th", change.version,
                          change.key, sink_versions_[change.key]));
    }
  }

  const FeedServer& feed_;
  std::vector<std::string> problems_;
  std::map<std::pair<std::string, std::uint64_t>, std::string> owners_;
  std::map<int, int> processed_;  // By key: the newest version.
  std::map<std::tuple<std::string, std::uint64_t, int>, int> by_epoch_;
  std::map<int, std::pair<std::uint64_t, int>> sink_positions_;
  std::map<int, int> sink_versions_;
  std::size_t first_deliveries_ = 0;
  std::size_t deliveries_ = 0;
};

class Schedule {
 public:
  explicit Schedule(std::uint64_t seed)
      : world_(seed), feed_(1 + static_cast<int>(world_.below(4))), store_(world_), ledger_(feed_) {
    draw_options();
    store_.on_write = [this](const StoredDocument& document) {
      if (document.id.find("..") != std::string::npos) ledger_.checkpointed(document);
    };
    for (std::uint64_t i = 0, n = 1 + world_.below(4); i < n; ++i) {
      hosts_.push_back(std::make_unique<Host>());
      hosts_.back()->name = fmt::format("host-{}", i);
    }
  }
  ~Schedule() {
    for (auto& host : hosts_) kill(*host);
  }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  /// What went wrong; empty: nothing.
  std::vector<std::string> run() {
    for (auto& host : hosts_) {
      if (!world_.one_in(4)) start(*host);
    }
    const Duration chaos_end = world_.between(120s, 400s);
    while (world_.now() < chaos_end && ledger_.problems().empty()) {
      world_.run_until(world_.now() + world_.between(0s, 8s), [] { return false; });
      something_happens();
    }
    if (ledger_.problems().empty()) calm();
    if (ledger_.problems().empty()) ledger_.check_sink();
    if (ledger_.problems().empty()) stop_all();
    return ledger_.problems();
  }

  std::size_t changes() const { return feed_.changes().size(); }
  std::size_t deliveries() const { return ledger_.deliveries(); }
  Duration time() const { return world_.now(); }

 private:
  /// One host from start to crash or stop.
  struct Life {
    std::string name;
    std::shared_ptr<SimulatedRuntime> runtime;  // Shared with what is on its way to it.
    std::unique_ptr<StoreClient> store;
    std::unique_ptr<FeedClient> feed;
    StatsBoard stats;
    std::unique_ptr<Controller> controller;
    bool started = false;
    bool failed = false;
    bool stopping = false;
    bool stopped = false;
  };
  struct Host {
    std::string name;
    int lives = 0;
    Network network;
    std::unique_ptr<Life> life;
  };

  class Observer final : public ChangeFeedObserver {
   public:
    Observer(Schedule& schedule, std::string life) : schedule_(schedule), life_(std::move(life)) {}

    void open(ObserverContext& context) override {
      if (opened_ || closed_) schedule_.ledger_.problem("an observer was opened twice");
      opened_ = true;
      schedule_.ledger_.opened(context.lease_token(), context.epoch(), life_);
    }
    Outcome process(ObserverContext& context, const Documents& changes) override {
      if (!opened_ || closed_)
        schedule_.ledger_.problem("a batch for an observer that is not open");
      if (changes.empty()) schedule_.ledger_.problem("an empty batch");
      if (schedule_.trouble_ && schedule_.world_.one_in(40)) throw std::runtime_error("trouble");
      std::size_t count = changes.size();
      if (schedule_.trouble_ && schedule_.world_.one_in(20)) {
        count = schedule_.world_.below(count + 1);
      }
      for (std::size_t i = 0; i < count; ++i) {
        schedule_.ledger_.processed(context.lease_token(), context.epoch(), changes[i]);
      }
      return Outcome::done_until(count);
    }
    void close(ObserverContext&, CloseReason) override {
      if (!opened_ || closed_) schedule_.ledger_.problem("an observer was closed out of turn");
      closed_ = true;
    }

   private:
    Schedule& schedule_;
    std::string life_;
    bool opened_ = false;
    bool closed_ = false;
  };

  void draw_options() {
    options_.read_ahead = world_.one_in(2);
    options_.lanes = world_.one_in(3) ? 3 : 1;
    options_.long_poll = !world_.one_in(4);
    feed_.long_poll = world_.one_in(2);
    options_.balancing = world_.one_in(4) ? Balancing::Weighted : Balancing::Equal;
    switch (world_.below(3)) {
      case 0:
        break;
      case 1:
        options_.checkpoint_frequency.processed_document_count = 1 + world_.below(30);
        break;
      case 2:
        options_.checkpoint_frequency.time_interval = milliseconds(world_.below(20'000));
        break;
    }
    if (world_.one_in(2)) {
      options_.retry.max_attempts = 1 + static_cast<int>(world_.below(4));
      options_.retry.first_wait = 50ms;
      options_.retry.bisect = world_.one_in(2);
    }
    feed_options_.start_from_beginning = true;
    feed_options_.max_item_count = static_cast<std::uint32_t>(1 + world_.below(12));
    keys_ = 1 + static_cast<int>(world_.below(12));
  }

  // ── hosts ──────────────────────────────────────────────────────────────────────────────────────

  void start(Host& host) {
    auto life = std::make_unique<Life>();
    life->name = fmt::format("{}/{}", host.name, ++host.lives);
    const Duration skew = world_.one_in(3) ? world_.between(-10min, 10min) : Duration(0);
    life->runtime = std::make_shared<SimulatedRuntime>(world_, skew);
    life->store = std::make_unique<StoreClient>(world_, store_, life->runtime, host.network);
    life->feed = std::make_unique<FeedClient>(world_, feed_, life->runtime, host.network);
    life->controller = std::make_unique<Controller>(Controller::Setup{
        *life->runtime, *life->store, *life->feed,
        [this, runtime = life->runtime](std::function<void()> work) {
          // A thread of that host runs it after a while, unless the host dies before.
          world_.after(trouble_ ? world_.between(0s, 2s) : world_.between(0ms, 50ms),
                       [runtime, work = std::move(work)] { runtime->deliver(work); });
        },
        host.name, feed_options_, options_,
        [this, name = life->name] { return std::make_unique<Observer>(*this, name); },
        HealthMonitor(), life->stats,
        [this](const DeadLetter& letter) {
          // Put aside is processed, as far as positions go. The epoch is not told.
          ledger_.processed(letter.range + letter.host, ++dead_letters_, letter.document);
        }});
    asio::co_spawn(life->runtime->executor(), start_life(*life), asio::detached);
    life->runtime->post([] {});
    host.life = std::move(life);
  }
  static asio::awaitable<void> start_life(Life& life) {
    const auto begun = co_await life.controller->start();
    (begun ? life.started : life.failed) = true;
  }
  static asio::awaitable<void> stop_life(Life& life) {
    co_await life.controller->stop();
    life.stopped = true;
  }
  void stop(Host& host) {
    if (!host.life || !host.life->started || host.life->stopping) return;
    host.life->stopping = true;
    asio::co_spawn(host.life->runtime->executor(), stop_life(*host.life), asio::detached);
    host.life->runtime->post([] {});
  }
  void kill(Host& host) {
    if (!host.life) return;
    host.life->runtime->kill();
    host.life.reset();
  }
  /// A host whose life is over, or that could not begin one, makes room for the next.
  void bury(Host& host) {
    if (host.life && (host.life->stopped || host.life->failed)) kill(host);
  }
  Host& any_host() { return *hosts_[world_.below(hosts_.size())]; }

  // ── what happens to them ───────────────────────────────────────────────────────────────────────

  void something_happens() {
    Host& host = any_host();
    bury(host);
    switch (world_.below(16)) {
      case 0:
      case 1:
        kill(host);
        break;
      case 2:
      case 3:
      case 4:
        if (!host.life) start(host);
        break;
      case 5:
        if (host.life) host.life->runtime->pause();
        break;
      case 6:
        if (host.life) host.life->runtime->go_on();
        break;
      case 7:
        stop(host);
        break;
      case 8:
        host.network.cut = true;
        break;
      case 9:
        host.network = Network();
        break;
      case 10:
        host.network.latency_max = world_.between(1ms, 3s);
        host.network.lost_per_mille = static_cast<unsigned>(world_.below(200));
        host.network.answer_lost_per_mille = static_cast<unsigned>(world_.below(200));
        host.network.throttled_per_mille = static_cast<unsigned>(world_.below(300));
        break;
      case 11:
        if (feed_.ranges().size() < 6) feed_.split(world_.below(100));
        break;
      case 12:
        feed_.merge(world_.below(100));
        break;
      default:
        write_some();
        break;
    }
  }

  void write_some() {
    for (std::uint64_t i = 0, n = 1 + world_.below(15); i < n; ++i) {
      feed_.write(static_cast<int>(world_.below(static_cast<std::uint64_t>(keys_))),
                  world_.one_in(5) ? 3 : 1);
    }
  }

  // ── and how it ends ────────────────────────────────────────────────────────────────────────────

  void calm() {
    trouble_ = false;
    write_some();
    for (auto& host : hosts_) {
      host->network = Network();
      if (host->life) host->life->runtime->go_on();
    }
    bool done = false;
    const Duration end = world_.now() + 1200s;
    while (!done && world_.now() < end && ledger_.problems().empty()) {
      // Whoever was stopping, or has failed to start, comes back.
      for (auto& host : hosts_) {
        bury(*host);
        if (!host->life) start(*host);
      }
      world_.run_until(world_.now() + 5s, [] { return false; });
      done = ledger_.all_processed() && unspread().empty();
    }
    if (!done && ledger_.problems().empty()) {
      ledger_.problem(ledger_.all_processed() ? unspread() : "changes were never processed");
    }
  }

  std::vector<Lease> leases() {
    std::vector<Lease> all;
    for (const auto& [id, document] : store_.documents()) {
      if (id.find("..") == std::string::npos) continue;
      if (auto lease = parse_lease(document)) all.push_back(*std::move(lease));
    }
    return all;
  }

  /// What is wrong with how the leases are spread; empty: nothing.
  std::string unspread() {
    std::map<std::string, int> counts;
    for (const auto& host : hosts_) counts[host->name] = 0;
    std::vector<client::FeedRange> areas;
    for (const Lease& lease : leases()) {
      if (!counts.contains(lease.owner)) {
        return fmt::format("lease {} belongs to '{}'", lease.token, lease.owner);
      }
      const Host& owner =
          **std::ranges::find(hosts_, lease.owner, [](const auto& host) { return host->name; });
      if (!owner.life || !owner.life->controller->has(lease.id)) {
        return fmt::format("{} does not work on lease {}", lease.owner, lease.token);
      }
      ++counts[lease.owner];
      areas.push_back(feed_.area_of(lease.token));
    }
    std::ranges::sort(areas, {}, &client::FeedRange::min);
    std::string reached;
    for (const client::FeedRange& area : areas) {
      if (area.min != reached) return "leases leave a gap or overlap at '" + area.min + "'";
      reached = area.max;
    }
    if (reached != "FF") return "leases end at '" + reached + "'";
    if (options_.balancing == Balancing::Weighted) return {};
    const auto [least, most] =
        std::ranges::minmax_element(counts, {}, [](const auto& count) { return count.second; });
    if (most->second - least->second <= 1) return {};
    return fmt::format("{} has {} leases, {} has {}", most->first, most->second, least->first,
                       least->second);
  }

  void stop_all() {
    for (auto& host : hosts_) {
      // Who is still about to begin has nothing to give back.
      if (host->life && !host->life->started) kill(*host);
      stop(*host);
    }
    const bool done = world_.run_until(world_.now() + 120s, [this] {
      return std::ranges::all_of(hosts_,
                                 [](auto& host) { return !host->life || host->life->stopped; });
    });
    if (!done) ledger_.problem("a host does not stop");
    for (const Lease& lease : leases()) {
      if (!lease.owner.empty()) {
        ledger_.problem(fmt::format("{} has stopped and kept lease {}", lease.owner, lease.token));
      }
    }
  }

  World world_;
  FeedServer feed_;
  StoreServer store_;
  Ledger ledger_;
  ChangeFeedOptions feed_options_;
  ChangeFeedHostOptions options_;
  int keys_ = 1;
  bool trouble_ = true;
  std::uint64_t dead_letters_ = 0;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace orrery::processor::simulation
