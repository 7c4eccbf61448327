// One random history of a group of hosts, drawn from a seed: hosts that crash, hang, are cut off
// and come back, leases that others steal, ranges that split and merge, servers that are started
// anew, clocks that are wrong; and what must hold all the while.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "client/log.h"
#include "processor/hosting/controller.h"
#include "processor/leases/lease.h"
#include "processor/simulation/test_ledger.h"
#include "processor/simulation/test_simulated_feed.h"
#include "processor/simulation/test_simulated_store.h"
#include "processor/simulation/test_simulation.h"

namespace orrery::processor::simulation {

using namespace std::chrono_literals;

/// How often things have happened.
struct Events {
  std::size_t crashes = 0, pauses = 0, stops = 0, cuts = 0, thefts = 0, splits = 0, merges = 0;
  std::size_t restarts = 0;      ///< of the servers
  std::size_t wrong_clocks = 0;  ///< lives of hosts
  std::size_t stolen = 0;        ///< by hosts that had too little
  std::size_t refusals = 0;      ///< of the sink, to hosts whose epoch was over
  std::size_t letters_refused = 0;

  Events& operator+=(const Events& other) {
    for (const auto member :
         {&Events::crashes, &Events::pauses, &Events::stops, &Events::cuts, &Events::thefts,
          &Events::splits, &Events::merges, &Events::restarts, &Events::wrong_clocks,
          &Events::stolen, &Events::refusals, &Events::letters_refused}) {
      this->*member += other.*member;
    }
    return *this;
  }
  std::string text() const {
    return fmt::format(
        "{} crashes, {} pauses, {} stops, {} cuts, {} thefts, {} splits, {} merges, {} restarts of "
        "the servers, {} wrong clocks, {} leases stolen, {} refusals of the sink, "
        "{} dead letters that could not be kept",
        crashes, pauses, stops, cuts, thefts, splits, merges, restarts, wrong_clocks, stolen,
        refusals, letters_refused);
  }
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

  /// Runs the schedule, and returns the problems; empty: none.
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
    if (ledger_.problems().empty()) sink_.check(feed_.changes());
    if (ledger_.problems().empty()) stop_all();
    if (!ledger_.problems().empty()) ledger_.problem("it was with " + described_options());
    return ledger_.problems();
  }

  std::size_t changes() const { return feed_.changes().size(); }
  std::size_t deliveries() const { return ledger_.deliveries(); }
  Events events() const {
    Events all = events_;
    all.refusals = sink_.refusals();
    return all;
  }

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
      const std::string& token = context.lease_token();
      for (std::size_t i = 0; i < count; ++i) {
        if (schedule_.sink_.refuses(token, context.epoch(), Ledger::parse(changes[i]))) {
          throw std::runtime_error("the sink knows of a later epoch");
        }
      }
      const auto rejected = rejected_of(changes, count);
      for (std::size_t i = 0; i < count; ++i) {
        if (rejected == i) continue;
        schedule_.ledger_.processed(token, context.epoch(), changes[i]);
        schedule_.sink_.write(token, context.epoch(), Ledger::parse(changes[i]));
      }
      // Before it is known what becomes of the rest, and of what is rejected.
      if (schedule_.world_.one_in(3)) context.checkpoint();
      if (rejected) return Outcome::reject({*rejected});
      return Outcome::done_until(count);
    }
    void close(ObserverContext&, CloseReason) override {
      if (!opened_ || closed_) schedule_.ledger_.problem("an observer was closed out of turn");
      closed_ = true;
    }

   private:
    /// Sometimes one of a whole batch; no later change of its key may be done before it is put
    /// aside.
    std::optional<std::size_t> rejected_of(const Documents& changes, std::size_t count) {
      if (!schedule_.trouble_ || count < changes.size() || !schedule_.world_.one_in(20)) return {};
      const std::size_t chosen = schedule_.world_.below(count);
      const int key = Ledger::parse(changes[chosen]).key;
      for (std::size_t i = chosen + 1; i < count; ++i) {
        if (Ledger::parse(changes[i]).key == key) return {};
      }
      return chosen;
    }

    Schedule& schedule_;
    std::string life_;
    bool opened_ = false;
    bool closed_ = false;
  };

  void draw_options() {
    options_.log = client::diagnostics_log();
    options_.read_ahead = world_.one_in(2);
    options_.lanes = world_.one_in(3) ? 3 : 1;
    options_.long_poll = !world_.one_in(4);
    feed_.long_poll = world_.one_in(2);
    options_.balancing = world_.one_in(4) ? Balancing::Weighted : Balancing::Equal;
    switch (world_.below(4)) {
      case 0:
        break;
      case 1:
        options_.checkpoint_frequency.processed_document_count = 1 + world_.below(30);
        break;
      case 2:
        options_.checkpoint_frequency.time_interval = milliseconds(world_.below(20'000));
        break;
      case 3:
        options_.checkpoint_frequency.explicit_checkpoint = options_.lanes == 1;
        break;
    }
    if (world_.one_in(2)) {
      options_.retry.max_attempts = 1 + static_cast<int>(world_.below(4));
      options_.retry.first_wait = 50ms;
      options_.retry.bisect = world_.one_in(2);
    }
    constexpr LeaseFormat kFormats[] = {LeaseFormat::Net3, LeaseFormat::Net3,
                                        LeaseFormat::Net3, LeaseFormat::JavaEpk,
                                        LeaseFormat::Net2, LeaseFormat::JavaPk};
    options_.lease_format = kFormats[world_.below(std::size(kFormats))];
    feed_options_.start_from_beginning = true;
    feed_options_.max_item_count = static_cast<std::uint32_t>(1 + world_.below(12));
    keys_ = 1 + static_cast<int>(world_.below(12));
  }

  std::string described_options() const {
    return fmt::format("{} hosts, lease format {}, {} lanes, {} balancing", hosts_.size(),
                       static_cast<int>(options_.lease_format), options_.lanes,
                       options_.balancing == Balancing::Equal ? "equal" : "weighted");
  }

  // ── hosts ──────────────────────────────────────────────────────────────────────────────────────

  void start(Host& host) {
    auto life = std::make_unique<Life>();
    life->name = fmt::format("{}/{}", host.name, ++host.lives);
    const Duration skew = world_.one_in(3) ? world_.between(-10min, 10min) : Duration(0);
    if (skew != Duration(0)) ++events_.wrong_clocks;
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
          if (trouble_ && world_.one_in(3)) {
            ++events_.letters_refused;
            throw std::runtime_error("there is no room for letters");
          }
          // Put aside is processed, as far as positions go. The epoch is not told.
          ledger_.processed(letter.range + letter.host, ++dead_letters_, letter.document);
          sink_.write(letter.range, 0, Ledger::parse(letter.document));
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
    events_.stolen += host.life->stats.read().stolen;
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
    switch (world_.below(18)) {
      case 0:
      case 1:
        if (host.life) ++events_.crashes;
        kill(host);
        break;
      case 2:
      case 3:
      case 4:
        if (!host.life) start(host);
        break;
      case 5:
        if (host.life) {
          ++events_.pauses;
          host.life->runtime->pause();
        }
        break;
      case 6:
        if (host.life) host.life->runtime->go_on();
        break;
      case 7:
        ++events_.stops;
        stop(host);
        break;
      case 8:
        ++events_.cuts;
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
        if (feed_.ranges().size() < 6 && feed_.split(world_.below(100))) ++events_.splits;
        break;
      case 12:
        if (feed_.merge(world_.below(100))) ++events_.merges;
        break;
      case 13:
        restart_servers();
        break;
      case 14:
        steal_a_lease();
        break;
      default:
        write_some();
        break;
    }
  }

  /// Requests that arrive meanwhile are not answered; those that wait are cut off.
  void restart_servers() {
    if (store_.down) return;
    ++events_.restarts;
    store_.down = true;
    feed_.set_down(true);
    // Mostly at once, sometimes after the leases of everybody have expired.
    const Duration time = world_.one_in(4) ? world_.between(30s, 100s) : world_.between(0s, 5s);
    world_.after(time, [this] { servers_are_up(); });
  }
  void servers_are_up() {
    store_.down = false;
    feed_.set_down(false);
  }

  /// A host of another library takes a lease from its owner, and is never heard of again.
  void steal_a_lease() {
    std::vector<Lease> all = leases();
    if (all.empty()) return;
    Lease& lease = all[world_.below(all.size())];
    lease.owner = "thief";
    if (store_.replace(lease.id, write_lease(lease), lease.etag)) ++events_.thefts;
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
    servers_are_up();
    write_some();
    for (auto& host : hosts_) {
      host->network = Network();
      if (host->life) host->life->runtime->go_on();
    }
    bool done = false;
    const Duration end = world_.now() + 1200s;
    while (!done && world_.now() < end && ledger_.problems().empty()) {
      // Hosts that were stopping, or have failed to start, come back.
      for (auto& host : hosts_) {
        bury(*host);
        if (!host->life) start(*host);
      }
      world_.run_until(world_.now() + 5s, [] { return false; });
      done = ledger_.all_processed() && all_started() && unspread().empty();
    }
    if (!done && ledger_.problems().empty()) {
      ledger_.problem(!all_started()             ? "a host does not start"
                      : !ledger_.all_processed() ? "changes were never processed"
                                                 : unspread());
    }
  }

  bool all_started() const {
    return std::ranges::all_of(hosts_, [](auto& host) {
      return host->life && host->life->started && !host->life->stopping;
    });
  }

  std::vector<Lease> leases() {
    std::vector<Lease> all;
    for (const auto& [id, document] : store_.documents()) {
      if (id.find("..") == std::string::npos) continue;
      if (auto lease = parse_lease(document)) all.push_back(*std::move(lease));
    }
    return all;
  }

  /// The first problem with how the leases are spread; empty: none.
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
    for (auto& host : hosts_) stop(*host);
    const bool done = world_.run_until(world_.now() + 120s, [this] {
      return std::ranges::all_of(hosts_, [](auto& host) { return host->life->stopped; });
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
  Sink sink_{ledger_};
  MonitoredFeedOptions feed_options_;
  ChangeFeedHostOptions options_;
  int keys_ = 1;
  bool trouble_ = true;
  Events events_;
  std::uint64_t dead_letters_ = 0;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace orrery::processor::simulation
