#include "processor/hosting/dispatcher.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <boost/asio/co_spawn.hpp>

#include "processor/simulation/test_simulation.h"

namespace orrery::processor::simulation {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Behaviour = std::function<Outcome(ObserverContext&, const Documents&)>;

class ScriptedObserver final : public ChangeFeedObserver {
 public:
  explicit ScriptedObserver(Behaviour behave) : behave_(std::move(behave)) {}
  Outcome process(ObserverContext& context, const Documents& changes) override {
    return behave_(context, changes);
  }

 private:
  Behaviour behave_;
};

/// Documents are named by a letter; each has the LSN and key that it is given.
struct Document {
  char name;
  int lsn;
  std::string key = "k";
};

class DispatcherTest : public ::testing::Test {
 protected:
  DispatcherTest()
      : world_(1),
        runtime_(std::make_shared<SimulatedRuntime>(world_, Duration(0))),
        calls_(*runtime_,
               [this](std::function<void()> work) {
                 world_.after(10ms, [this, work = std::move(work)] { runtime_->deliver(work); });
               }),
        stop_(*runtime_) {
    retry_.first_wait = 1s;
    retry_.wait_max = 4s;
  }
  ~DispatcherTest() override { runtime_->kill(); }

  static std::string names(const Documents& documents) {
    std::string all;
    for (const std::string_view document : documents) all += document[7];
    return all;
  }

  Verdict process(const std::vector<Document>& documents, Behaviour behave) {
    if (!dispatcher_) {
      dispatcher_ = std::make_unique<Dispatcher>(Dispatcher::Setup{
          *runtime_,
          calls_,
          stop_,
          "host",
          {"0", "0", 7},
          std::make_shared<ScriptedObserver>(
              [this](ObserverContext& context, const Documents& changes) {
                batches_.push_back(names(changes));
                times_.push_back(world_.now());
                return behave_(context, changes);
              }),
          std::make_shared<const DocumentReader>(std::vector<std::string>{"/key"},
                                                 client::ChangeFeedMode::LatestVersion),
          retry_,
          deadline_,
          keep_ ? [this](const DeadLetter& letter) { keep(letter); }
                : std::function<void(const DeadLetter&)>(),
          lease_over_,
          [this](const HealthEvent& event) { events_.push_back(event); },
          [this] { ++overdue_; },
          [](const DispatchCounters&) {}});
    }
    behave_ = std::move(behave);
    auto text = std::make_shared<std::string>();
    std::vector<std::size_t> ends;
    for (const Document& document : documents) {
      *text += fmt::format(R"({{"id":"{}","key":"{}","_lsn":{}}})", document.name, document.key,
                           document.lsn);
      ends.push_back(text->size());
    }
    std::vector<std::string_view> items;
    for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++]) {
      items.push_back(std::string_view(*text).substr(begin, ends[i] - begin));
    }
    std::optional<Verdict> verdict;
    asio::co_spawn(runtime_->executor(),
                   dispatcher_->process({Documents({}, text, items, {}), "\"1\"", "\"9\""}),
                   [&](const std::exception_ptr&, Verdict result) { verdict = std::move(result); });
    runtime_->post([] {});
    EXPECT_TRUE(world_.run_until(world_.now() + 300s, [&] { return verdict.has_value(); }));
    return verdict.value_or(Verdict{Verdict::Kind::Interrupted, "never ended"});
  }

  /// A letter is kept unless there is no room for it.
  void keep(const DeadLetter& letter) {
    if (full_) throw std::runtime_error("full");
    letters_.push_back(letter);
  }

  static std::vector<Document> each_its_own(const std::string& all) {
    std::vector<Document> documents;
    for (const char name : all) documents.push_back({name, static_cast<int>(name)});
    return documents;
  }
  static Behaviour throws_at(char name) {
    return [name](ObserverContext&, const Documents& changes) -> Outcome {
      if (names(changes).find(name) != std::string::npos) throw std::runtime_error("bad");
      return Outcome::done();
    };
  }
  std::string letters() const {
    std::string all;
    for (const DeadLetter& letter : letters_) all += letter.document[7];
    return all;
  }

  World world_;
  std::shared_ptr<SimulatedRuntime> runtime_;  // Shared with what is on its way to it.
  ObserverCalls calls_;
  Stop stop_;
  RetryPolicy retry_;
  std::optional<std::chrono::milliseconds> deadline_;
  bool keep_ = true;
  bool full_ = false;
  std::shared_ptr<std::atomic<bool>> lease_over_ = std::make_shared<std::atomic<bool>>(false);
  Behaviour behave_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<std::string> batches_;
  std::vector<Duration> times_;
  std::vector<DeadLetter> letters_;
  std::vector<HealthEvent> events_;
  int overdue_ = 0;
};

TEST_F(DispatcherTest, AnErrorEndsTheLeaseUnlessSomebodyWantsMoreAttempts) {
  const Verdict verdict = process(each_its_own("abc"), throws_at('b'));
  EXPECT_EQ(verdict.kind, Verdict::Kind::ObserverError);
  EXPECT_EQ(verdict.reason, "bad");
  EXPECT_THAT(batches_, ElementsAre("abc"));
}

TEST_F(DispatcherTest, WhatIsDoneUpToAPlaceIsNotSentAgain) {
  const Verdict verdict =
      process(each_its_own("abcde"), [](ObserverContext&, const Documents& changes) {
        return Outcome::done_until(std::min<std::size_t>(changes.size(), 2));
      });
  EXPECT_EQ(verdict.kind, Verdict::Kind::Done);
  EXPECT_THAT(batches_, ElementsAre("abcde", "cde", "e"));
}

TEST_F(DispatcherTest, ARetryComesAfterTheTimeThatWasAskedFor) {
  int attempts = 0;
  const Verdict verdict = process(each_its_own("ab"), [&](ObserverContext&, const Documents&) {
    return ++attempts < 3 ? Outcome::retry(20s) : Outcome::done();
  });
  EXPECT_EQ(verdict.kind, Verdict::Kind::Done);
  EXPECT_THAT(batches_, ElementsAre("ab", "ab", "ab"));
  EXPECT_GE(times_[1] - times_[0], 20s);
}

TEST_F(DispatcherTest, RejectedDocumentsArePutAsideAndTheOthersAreDone) {
  const Verdict verdict = process(each_its_own("abcd"), [](ObserverContext&, const Documents&) {
    return Outcome::reject({1, 3, 99}, "unwanted");
  });
  EXPECT_EQ(verdict.kind, Verdict::Kind::Done);
  EXPECT_THAT(batches_, SizeIs(1));
  EXPECT_EQ(letters(), "bd");
  EXPECT_EQ(letters_[0].error, "unwanted");
  EXPECT_EQ(letters_[0].etag_before, "\"1\"");
}

TEST_F(DispatcherTest, RejectedWithoutAPlaceToGoIsAnError) {
  keep_ = false;
  const Verdict verdict = process(
      each_its_own("ab"), [](ObserverContext&, const Documents&) { return Outcome::reject({0}); });
  EXPECT_EQ(verdict.kind, Verdict::Kind::ObserverError);
}

TEST_F(DispatcherTest, StopGivesTheLeaseUp) {
  const Verdict verdict = process(each_its_own("ab"), [](ObserverContext&, const Documents&) {
    return Outcome::stop("enough");
  });
  EXPECT_EQ(verdict.kind, Verdict::Kind::Stop);
  EXPECT_EQ(verdict.reason, "enough");
}

TEST_F(DispatcherTest, HalvesUntilTheGuiltyOneIsAlone) {
  retry_.max_attempts = 2;
  const Verdict verdict = process(each_its_own("abcdefgh"), throws_at('f'));
  EXPECT_EQ(verdict.kind, Verdict::Kind::Done);
  EXPECT_THAT(batches_, ElementsAre("abcdefgh", "abcd", "efgh", "ef", "e", "f", "f", "gh"));
  EXPECT_EQ(letters(), "f");
  EXPECT_EQ(letters_[0].attempts, 2);
}

TEST_F(DispatcherTest, TransactionsStayTogether) {
  retry_.max_attempts = 1;
  const Verdict verdict =
      process({{'a', 1}, {'b', 2}, {'c', 2}, {'d', 2}, {'e', 3}}, throws_at('c'));
  EXPECT_EQ(verdict.kind, Verdict::Kind::Done);
  for (const std::string& batch : batches_) {
    EXPECT_EQ(batch.find('b') == std::string::npos, batch.find('d') == std::string::npos) << batch;
  }
  EXPECT_EQ(letters(), "bcd");
}

TEST_F(DispatcherTest, WithoutHalvingTheWholeBatchIsTriedAndPutAside) {
  retry_.max_attempts = 3;
  retry_.bisect = false;
  process(each_its_own("abc"), throws_at('b'));
  EXPECT_THAT(batches_, ElementsAre("abc", "abc", "abc"));
  EXPECT_EQ(letters(), "abc");
  // Each wait is between half and all of 1 s, then of 2 s.
  EXPECT_GE(times_[1] - times_[0], 500ms);
  EXPECT_LE(times_[1] - times_[0], 1020ms);
  EXPECT_GE(times_[2] - times_[1], 1s);
  EXPECT_LE(times_[2] - times_[1], 2020ms);
}

TEST_F(DispatcherTest, TheRangeOrTheGroupMayBeHaltedInstead) {
  retry_.max_attempts = 1;
  retry_.then = RetryPolicy::Then::HaltRange;
  EXPECT_EQ(process(each_its_own("a"), throws_at('a')).kind, Verdict::Kind::HaltRange);
  EXPECT_THAT(letters_, IsEmpty());
}

TEST_F(DispatcherTest, LaterChangesOfAParkedKeyFollowIt) {
  retry_.max_attempts = 1;
  retry_.park_key = true;
  process({{'a', 1, "x"}, {'b', 2, "y"}, {'c', 3, "x"}}, throws_at('a'));
  EXPECT_EQ(letters(), "ac");
  process({{'d', 4, "y"}, {'e', 5, "x"}}, throws_at('!'));
  EXPECT_EQ(letters(), "ace");
  EXPECT_EQ(batches_.back(), "d");
}

TEST_F(DispatcherTest, ALetterThatCannotBeKeptIsNotPassedOver) {
  retry_.max_attempts = 1;
  full_ = true;
  EXPECT_EQ(process(each_its_own("a"), throws_at('a')).kind, Verdict::Kind::ObserverError);
}

// ── checkpoints that the observer asks for ───────────────────────────────────────────────────────

TEST_F(DispatcherTest, ACheckpointCountsOnceTheRejectedAreKept) {
  const auto rejects = [](ObserverContext& context, const Documents&) {
    context.checkpoint();
    return Outcome::reject({0});
  };
  const Verdict kept = process(each_its_own("ab"), rejects);
  EXPECT_EQ(kept.kind, Verdict::Kind::Done);
  EXPECT_TRUE(kept.checkpoint_requested);
  EXPECT_EQ(letters(), "a");

  full_ = true;
  const Verdict lost = process(each_its_own("ab"), rejects);
  EXPECT_EQ(lost.kind, Verdict::Kind::ObserverError);
  EXPECT_FALSE(lost.checkpoint_requested);
}

TEST_F(DispatcherTest, ACheckpointOfACallThatFailsDoesNotCount) {
  retry_.max_attempts = 3;
  retry_.bisect = false;
  const Verdict verdict =
      process(each_its_own("ab"), [this](ObserverContext& context, const Documents&) {
        if (batches_.size() > 1) return Outcome::done();
        context.checkpoint();
        return Outcome::retry(1s);
      });
  EXPECT_EQ(verdict.kind, Verdict::Kind::Done);
  EXPECT_FALSE(verdict.checkpoint_requested);
}

TEST_F(DispatcherTest, OfSeveralPiecesTheLastDecidesOnTheCheckpoint) {
  const auto asks_at = [](char name) {
    return [name](ObserverContext& context, const Documents& changes) {
      if (names(changes).front() == name) context.checkpoint();
      return Outcome::done_until(1);
    };
  };
  EXPECT_FALSE(process(each_its_own("ab"), asks_at('a')).checkpoint_requested);
  EXPECT_TRUE(process(each_its_own("ab"), asks_at('b')).checkpoint_requested);
}

TEST_F(DispatcherTest, WhoStopsAfterACheckpointIsThroughWithTheBatch) {
  const Verdict verdict =
      process(each_its_own("ab"), [](ObserverContext& context, const Documents&) {
        context.checkpoint();
        return Outcome::stop("enough");
      });
  EXPECT_EQ(verdict.kind, Verdict::Kind::Stop);
  EXPECT_TRUE(verdict.checkpoint_requested);
}

TEST_F(DispatcherTest, ACheckpointIsRefusedWhenTheLeaseIsOver) {
  int status = 0;
  process(each_its_own("a"), [&](ObserverContext& context, const Documents&) {
    *lease_over_ = true;
    try {
      context.checkpoint();
    } catch (const client::CosmosException& refusal) {
      status = refusal.status();
    }
    return Outcome::done();
  });
  EXPECT_EQ(status, 412);
}

TEST_F(DispatcherTest, AStopCutsWaitsShort) {
  world_.after(5s, [this] { runtime_->deliver([this] { stop_.request(); }); });
  const Verdict verdict = process(
      each_its_own("a"), [](ObserverContext&, const Documents&) { return Outcome::retry(100s); });
  EXPECT_EQ(verdict.kind, Verdict::Kind::Interrupted);
  EXPECT_LE(world_.now(), 6s);
}

TEST_F(DispatcherTest, ACallThatLastsTooLongIsReportedOnce) {
  deadline_ = 3ms;
  process(each_its_own("a"), [](ObserverContext&, const Documents&) { return Outcome::done(); });
  EXPECT_EQ(overdue_, 1);
  EXPECT_THAT(events_, SizeIs(1));
}

}  // namespace
}  // namespace orrery::processor::simulation
