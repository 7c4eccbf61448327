// A few hosts in a simulated world, told what to do by a test.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "processor/hosting/controller.h"
#include "processor/simulation/test_simulated_feed.h"
#include "processor/simulation/test_simulated_store.h"
#include "processor/simulation/test_simulation.h"

namespace orrery::processor::simulation {

using namespace std::chrono_literals;

/// One call of an observer, as it happened.
struct Seen {
  std::string host;
  std::string lease;
  std::string what;  ///< "open", "process", "idle", "close"
  std::vector<std::string> ids;
  std::string from, to;
  std::uint64_t epoch = 0;
  CloseReason reason = CloseReason::Unknown;
  Duration at{0};
};

class GroupTest : public ::testing::Test {
 protected:
  explicit GroupTest(int ranges = 1) : world_(1), feed_(ranges), store_(world_) {
    feed_options_.start_from_beginning = true;
  }
  ~GroupTest() override {
    for (auto& [_, host] : hosts_) host->runtime->kill();
  }

  struct Host {
    std::shared_ptr<SimulatedRuntime> runtime;  // Shared with what is on its way to it.
    Network network;
    std::unique_ptr<StoreClient> store;
    std::unique_ptr<FeedClient> feed;
    StatsBoard stats;
    std::unique_ptr<Controller> controller;
    bool started = false;
    bool stopped = false;
    bool stopped_in_time = false;
    std::vector<HealthEvent> events;
    std::vector<DeadLetter> dead_letters;
    /// Calls that are not carried out until somebody lets them.
    bool hold_calls = false;
    std::vector<std::function<void()>> held;
  };

  class Recorder final : public ChangeFeedObserver {
   public:
    Recorder(GroupTest& test, std::string host) : test_(test), host_(std::move(host)) {}
    void open(ObserverContext& context) override { note(context, "open"); }
    Outcome process(ObserverContext& context, const Documents& changes) override {
      Seen& seen = note(context, "process");
      for (const std::string_view document : changes) {
        seen.ids.emplace_back(document.substr(7, document.find('"', 7) - 7));
      }
      return test_.behave_ ? test_.behave_(context, changes) : Outcome::done();
    }
    void idle(ObserverContext& context) override { note(context, "idle"); }
    void close(ObserverContext& context, CloseReason reason) override {
      note(context, "close").reason = reason;
    }

   private:
    Seen& note(ObserverContext& context, std::string what) {
      test_.seen_.push_back({host_,
                             context.lease_token(),
                             std::move(what),
                             {},
                             context.from(),
                             context.to(),
                             context.epoch(),
                             CloseReason::Unknown,
                             test_.world_.now()});
      return test_.seen_.back();
    }

    GroupTest& test_;
    std::string host_;
  };

  /// Begins a host; returns when it takes part.
  Host& start(const std::string& name, Duration skew = Duration(0)) {
    auto& slot = hosts_[name];
    if (slot) slot->runtime->kill();
    slot = std::make_unique<Host>();
    Host& host = *slot;
    host.runtime = std::make_shared<SimulatedRuntime>(world_, skew);
    host.store = std::make_unique<StoreClient>(world_, store_, host.runtime, host.network);
    host.feed = std::make_unique<FeedClient>(world_, feed_, host.runtime, host.network);
    host.controller = std::make_unique<Controller>(Controller::Setup{
        *host.runtime, *host.store, *host.feed,
        [this, &host](std::function<void()> work) {
          if (host.hold_calls) {
            host.held.push_back(std::move(work));
            return;
          }
          world_.after(
              1ms, [runtime = host.runtime, work = std::move(work)] { runtime->deliver(work); });
        },
        name, feed_options_, options_,
        [this, name] { return std::make_unique<Recorder>(*this, name); },
        [&host](const HealthEvent& event) { host.events.push_back(event); }, host.stats,
        [this, &host](const DeadLetter& letter) {
          if (no_room_for_letters_) throw std::runtime_error("no room");
          host.dead_letters.push_back(letter);
        }});
    asio::co_spawn(host.runtime->executor(), begin(host), asio::detached);
    host.runtime->post([] {});
    EXPECT_TRUE(within(60s, [&] { return host.started; })) << name << " does not start";
    return host;
  }
  /// Asks for the end; returns when it has come.
  void stop(Host& host) {
    asio::co_spawn(host.runtime->executor(), end(host), asio::detached);
    host.runtime->post([] {});
    EXPECT_TRUE(within(300s, [&] { return host.stopped; })) << "does not stop";
  }
  void release_held(Host& host) {
    host.hold_calls = false;
    for (auto& work : std::exchange(host.held, {})) {
      world_.after(0ms,
                   [runtime = host.runtime, work = std::move(work)] { runtime->deliver(work); });
    }
  }

  bool within(Duration time, const std::function<bool()>& condition) {
    return world_.run_until(world_.now() + time, condition);
  }
  void pass(Duration time) {
    within(time, [] { return false; });
  }

  std::vector<Seen> seen(const std::string& what, const std::string& host = {}) const {
    std::vector<Seen> found;
    std::ranges::copy_if(seen_, std::back_inserter(found), [&](const Seen& each) {
      return each.what == what && (host.empty() || each.host == host);
    });
    return found;
  }
  std::vector<std::string> processed_ids() const {
    std::vector<std::string> ids;
    for (const Seen& batch : seen("process"))
      ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
    return ids;
  }

  std::vector<Lease> leases() const {
    std::vector<Lease> all;
    for (const auto& [id, document] : store_.documents()) {
      if (id.find("..") == std::string::npos) continue;
      if (auto lease = parse_lease(document)) all.push_back(*std::move(lease));
    }
    return all;
  }
  int owned_by(const std::string& host) const {
    const auto all = leases();
    return static_cast<int>(std::ranges::count(all, host, &Lease::owner));
  }
  /// As another program would do it.
  void rewrite_lease(const std::string& token, const std::function<void(Lease&)>& change) {
    for (Lease& lease : leases()) {
      if (lease.token != token) continue;
      change(lease);
      ASSERT_TRUE(store_.replace(lease.id, write_lease(lease), lease.etag));
    }
  }

  World world_;
  FeedServer feed_;
  StoreServer store_;
  MonitoredFeedOptions feed_options_;
  ChangeFeedHostOptions options_;
  std::function<Outcome(ObserverContext&, const Documents&)> behave_;
  bool no_room_for_letters_ = false;
  std::vector<Seen> seen_;
  std::map<std::string, std::unique_ptr<Host>> hosts_;

 private:
  static asio::awaitable<void> begin(Host& host) {
    const auto begun = co_await host.controller->start();
    EXPECT_TRUE(begun) << begun.error().message();
    host.started = true;
  }
  static asio::awaitable<void> end(Host& host) {
    host.stopped_in_time = co_await host.controller->stop();
    host.stopped = true;
  }
};

}  // namespace orrery::processor::simulation
