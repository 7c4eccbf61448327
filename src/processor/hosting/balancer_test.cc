#include "processor/hosting/balancer.h"

#include <algorithm>
#include <map>
#include <random>

#include <gmock/gmock.h>

namespace orrery::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Leases of owners, in the order given: {"a", 2} are two of a; {"", 1} one of nobody.
struct Holding {
  std::string owner;
  int count;
  bool expired = false;
};

BalancingRequest request_of(const std::vector<Holding>& holdings) {
  BalancingRequest request{"me", {}, 0, 0};
  for (const Holding& holding : holdings) {
    for (int i = 0; i < holding.count; ++i) {
      request.leases.push_back(
          {std::to_string(request.leases.size()), holding.owner, holding.expired, 0});
    }
  }
  return request;
}

std::string owner_of(const BalancingRequest& request, const std::string& token) {
  return std::ranges::find(request.leases, token, &BalancedLease::token)->owner;
}

// ── the vectors of the originals ─────────────────────────────────────────────────────────────────

TEST(EqualBalancing, TakesNothingWhenItHasAll) {
  EXPECT_EQ(balance_equally(request_of({{"me", 1}})), BalancingChoice());
}

TEST(EqualBalancing, TakesAllThatNobodyHas) {
  EXPECT_THAT(balance_equally(request_of({{"", 2}})).take, ElementsAre("0", "1"));
}

TEST(EqualBalancing, StealsOneOfTwo) {
  const BalancingChoice choice = balance_equally(request_of({{"other", 2}}));
  EXPECT_THAT(choice.take, IsEmpty());
  EXPECT_THAT(choice.steal, ElementsAre("0"));
}

TEST(EqualBalancing, TakesTheExpiredOneInsteadOfStealing) {
  const BalancingChoice choice = balance_equally(request_of({{"other", 2}, {"other", 1, true}}));
  EXPECT_THAT(choice.take, ElementsAre("2"));
  EXPECT_THAT(choice.steal, IsEmpty());
}

TEST(EqualBalancing, SharesExpiredOnesWithTheLiving) {
  BalancingRequest request = request_of({{"other", 1}, {"dead", 10, true}});
  EXPECT_THAT(balance_equally(request).take, SizeIs(6));
  request.min_count = 7;
  EXPECT_THAT(balance_equally(request).take, SizeIs(7));
  request.min_count = 0;
  request.max_count = 3;
  EXPECT_THAT(balance_equally(request).take, SizeIs(3));
}

TEST(EqualBalancing, StealsFromWhoHasMost) {
  const BalancingRequest request = request_of({{"a", 5}, {"b", 10}});
  const BalancingChoice choice = balance_equally(request);
  ASSERT_THAT(choice.steal, SizeIs(1));
  EXPECT_EQ(owner_of(request, choice.steal[0]), "b");
}

TEST(EqualBalancing, LeavesAnUnevenRestAlone) {
  EXPECT_EQ(balance_equally(request_of({{"other", 5}, {"me", 6}})), BalancingChoice());
  EXPECT_EQ(balance_equally(request_of({{"other", 5}, {"me", 5}})), BalancingChoice());
  EXPECT_EQ(balance_equally(request_of({{"other", 4}, {"me", 3}})), BalancingChoice());
}

TEST(EqualBalancing, StealsWhenItLacksTwo) {
  EXPECT_THAT(balance_equally(request_of({{"other", 4}, {"me", 2}})).steal, SizeIs(1));
}

TEST(EqualBalancing, TheLastMetOfEqualVictimsIsTheOne) {
  const BalancingRequest request = request_of({{"a", 10}, {"b", 10}, {"me", 8}});
  const BalancingChoice choice = balance_equally(request);
  ASSERT_THAT(choice.steal, ElementsAre("10"));
  EXPECT_EQ(owner_of(request, choice.steal[0]), "b");
}

TEST(EqualBalancing, TakesOwnerlessOnesBeforeExpiredOnes) {
  EXPECT_THAT(balance_equally(request_of({{"dead", 1, true}, {"", 2}})).take,
              ElementsAre("1", "2", "0"));
}

TEST(EqualBalancing, MineThatExpiredCountAsFree) {
  EXPECT_THAT(balance_equally(request_of({{"me", 2, true}})).take, ElementsAre("0", "1"));
}

TEST(EqualBalancing, NoLeasesNoChoice) {
  EXPECT_EQ(balance_equally({"me", {}, 0, 0}), BalancingChoice());
}

// ── runs, cycle by cycle ─────────────────────────────────────────────────────────────────────────

class Story {
 public:
  explicit Story(const std::vector<Holding>& holdings) : leases_(request_of(holdings).leases) {}

  /// One acquire interval: each host looks and acts, one after the other.
  void cycle(const std::vector<std::string>& hosts) {
    for (const std::string& host : hosts) {
      const BalancingChoice choice = balance_equally({host, leases_, 0, 0});
      for (const auto* tokens : {&choice.take, &choice.steal}) {
        for (const std::string& token : *tokens) {
          auto& lease = *std::ranges::find(leases_, token, &BalancedLease::token);
          lease.owner = host;
          lease.expired = false;
        }
      }
    }
  }
  void expire(const std::string& owner) {
    for (BalancedLease& lease : leases_) lease.expired |= lease.owner == owner;
  }
  int count(const std::string& owner) const {
    return static_cast<int>(std::ranges::count_if(leases_, [&](const BalancedLease& lease) {
      return lease.owner == owner && !lease.expired;
    }));
  }
  std::vector<int> counts(const std::vector<std::string>& owners) const {
    std::vector<int> all;
    for (const std::string& owner : owners) all.push_back(count(owner));
    return all;
  }

 private:
  std::vector<BalancedLease> leases_;
};

TEST(EqualBalancingRun, ASecondHostGetsItsHalfOneByOne) {
  Story run({{"A", 10}});
  for (int cycle = 1; cycle <= 5; ++cycle) {
    run.cycle({"A", "B"});
    EXPECT_THAT(run.counts({"A", "B"}), ElementsAre(10 - cycle, cycle));
  }
  run.cycle({"A", "B"});
  EXPECT_THAT(run.counts({"A", "B"}), ElementsAre(5, 5));
}

TEST(EqualBalancingRun, AThirdHostEndsWithAThird) {
  Story run({{"A", 5}, {"B", 5}});
  const std::vector<std::string> hosts = {"A", "B", "C"};
  run.cycle(hosts);
  EXPECT_EQ(run.count("C"), 1);
  run.cycle(hosts);
  EXPECT_THAT(run.counts(hosts), ElementsAre(4, 4, 2));
  run.cycle(hosts);
  EXPECT_EQ(run.count("C"), 3);
  const std::vector<int> final_counts = run.counts(hosts);
  run.cycle(hosts);
  EXPECT_EQ(run.counts(hosts), final_counts);
  EXPECT_EQ(run.count("A") + run.count("B"), 7);
}

TEST(EqualBalancingRun, MoreHostsThanLeasesLeaveOneIdle) {
  Story run({{"A", 3}});
  run.cycle({"A", "B"});
  EXPECT_THAT(run.counts({"A", "B"}), ElementsAre(2, 1));
  run.cycle({"A", "B"});
  EXPECT_THAT(run.counts({"A", "B"}), ElementsAre(2, 1));
  run.cycle({"A", "B", "C"});
  EXPECT_THAT(run.counts({"A", "B", "C"}), ElementsAre(1, 1, 1));
  run.cycle({"A", "B", "C", "D"});
  EXPECT_THAT(run.counts({"A", "B", "C", "D"}), ElementsAre(1, 1, 1, 0));
}

TEST(EqualBalancingRun, TheLivingShareWhatADeadHostLeft) {
  Story run({{"A", 4}, {"B", 4}, {"C", 4}});
  run.expire("C");
  run.cycle({"A", "B"});
  EXPECT_THAT(run.counts({"A", "B", "C"}), ElementsAre(6, 6, 0));
}

TEST(EqualBalancingRun, AlwaysComesToRestEvenlySpread) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 chance(seed);
    std::vector<std::string> hosts;
    const int host_count = 1 + static_cast<int>(chance() % 6);
    for (int i = 0; i < host_count; ++i) hosts.push_back("host-" + std::to_string(i));
    std::vector<Holding> holdings;
    const int lease_count = 1 + static_cast<int>(chance() % 30);
    for (int i = 0; i < lease_count; ++i) {
      const std::uint64_t kind = chance() % 4;
      holdings.push_back({kind == 0 ? "" : hosts[chance() % hosts.size()], 1, kind == 1});
    }
    Story run(holdings);
    for (int cycle = 0; cycle < lease_count + 2; ++cycle) run.cycle(hosts);
    std::vector<int> counts = run.counts(hosts);
    const auto [least, most] = std::ranges::minmax(counts);
    EXPECT_LE(most - least, 1) << "seed " << seed;
    run.cycle(hosts);
    EXPECT_EQ(run.counts(hosts), counts) << "seed " << seed;
  }
}

// ── by weight ────────────────────────────────────────────────────────────────────────────────────

TEST(WeightedBalancing, AHotLeaseWeighsAsMuchAsAllTheOthers) {
  const BalancingRequest request{"me",
                                 {{"hot", "other", false, 30},
                                  {"1", "other", false, 10},
                                  {"2", "other", false, 10},
                                  {"3", "other", false, 10}},
                                 0,
                                 0};
  const BalancingChoice choice = balance_by_weight(request, {"me", "other"});
  EXPECT_THAT(choice.steal, ElementsAre("hot"));
}

TEST(WeightedBalancing, SeveralMoveAtOnce) {
  BalancingRequest request = request_of({{"other", 10}});
  EXPECT_THAT(balance_by_weight(request, {"me", "other"}).steal, SizeIs(5));
}

TEST(WeightedBalancing, NothingMovesForLittle) {
  const BalancingRequest request{"me",
                                 {{"0", "me", false, 9},
                                  {"1", "me", false, 9},
                                  {"2", "other", false, 10},
                                  {"3", "other", false, 10}},
                                 0,
                                 0};
  EXPECT_EQ(balance_by_weight(request, {"me", "other"}), BalancingChoice());
}

TEST(WeightedBalancing, IdleMembersCountAndLeaveRoomForOneAnother) {
  BalancingRequest request = request_of({{"", 9}});
  EXPECT_THAT(balance_by_weight(request, {"me", "b", "c"}).take, SizeIs(3));
}

TEST(WeightedBalancing, NothingStaysFreeBecauseItIsTooExpensive) {
  const BalancingRequest request{"me", {{"hot", "", false, 100}, {"1", "b", false, 1}}, 0, 0};
  EXPECT_THAT(balance_by_weight(request, {"me", "b"}).take, ElementsAre("hot"));
}

TEST(WeightedBalancing, BoundsAreKept) {
  BalancingRequest request = request_of({{"", 10}});
  request.max_count = 2;
  EXPECT_THAT(balance_by_weight(request, {"me"}).take, SizeIs(2));
  request.max_count = 0;
  request.min_count = 8;
  EXPECT_THAT(balance_by_weight(request, {"me", "b"}).take, SizeIs(8));
}

TEST(WeightedBalancing, AlwaysComesToRest) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 chance(seed);
    std::vector<std::string> hosts;
    for (std::uint64_t i = 0, n = 1 + chance() % 5; i < n; ++i) {
      hosts.push_back("host-" + std::to_string(i));
    }
    std::vector<BalancedLease> leases;
    for (std::uint64_t i = 0, n = 1 + chance() % 20; i < n; ++i) {
      leases.push_back({std::to_string(i), chance() % 3 == 0 ? "" : hosts[chance() % hosts.size()],
                        false, static_cast<double>(1 + chance() % 50)});
    }
    bool moved = true;
    int cycles = 0;
    while (moved && cycles < 100) {
      moved = false;
      ++cycles;
      for (const std::string& host : hosts) {
        const BalancingChoice choice = balance_by_weight({host, leases, 0, 0}, hosts);
        for (const auto* tokens : {&choice.take, &choice.steal}) {
          for (const std::string& token : *tokens) {
            std::ranges::find(leases, token, &BalancedLease::token)->owner = host;
            moved = true;
          }
        }
      }
    }
    EXPECT_LT(cycles, 100) << "seed " << seed;
    EXPECT_TRUE(std::ranges::none_of(leases, [](auto& lease) { return lease.owner.empty(); }))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace orrery::processor
