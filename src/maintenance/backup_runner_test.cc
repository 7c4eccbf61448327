#include "maintenance/backup_runner.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diagnostics.h"
#include "base/test_wait.h"
#include "storage/test_store.h"

namespace orrery::maintenance {
namespace {

using storage::Batch;
using storage::Family;
using testing::HasSubstr;
using State = JobState;

class BackupRunnerTest : public testing::Test {
 protected:
  BackupRunnerTest() { diagnostics::set_level(diagnostics::Level::Off); }

  void wait_for_end() {
    ASSERT_TRUE(test::eventually([&] { return runner_.status().state != State::Running; }));
  }

  storage::TemporaryDirectory temporary_;
  std::unique_ptr<storage::Store> store_ = storage::open_store(temporary_.path() / "data");
  ManualClock clock_{1'790'000'000};
  BackupRunner runner_{*store_, clock_, {.directory = temporary_.path() / "backups"}};
};

TEST_F(BackupRunnerTest, TakesOneWhenAsked) {
  EXPECT_EQ(runner_.status().state, State::Idle);
  EXPECT_TRUE(runner_.list().value().empty());
  EXPECT_EQ(runner_.start().value(), 1u);
  wait_for_end();
  const auto status = runner_.status();
  EXPECT_EQ(status.state, State::Done);
  EXPECT_EQ(status.began, clock_.unix_seconds());
  ASSERT_TRUE(status.outcome);
  EXPECT_EQ(status.outcome->number, 1u);
  EXPECT_EQ(runner_.list().value().size(), 1u);
  EXPECT_EQ(runner_.stats().taken, 1u);
  EXPECT_GT(runner_.stats().last_taken, 0);

  EXPECT_EQ(runner_.start().value(), 2u);
  wait_for_end();
  EXPECT_EQ(runner_.list().value().size(), 2u);
}

TEST_F(BackupRunnerTest, TellsOfAFailureAndCanBeAskedAgain) {
  Batch batch;
  batch.put(Family::Unique, "key", storage::noise(4 << 20));
  ASSERT_TRUE(storage::commit(*store_, batch));
  store_->flush();
  {
    const storage::FullDisk full(100'000);
    ASSERT_TRUE(runner_.start());
    wait_for_end();
  }
  EXPECT_EQ(runner_.status().state, State::Failed);
  EXPECT_THAT(runner_.status().failure, HasSubstr((temporary_.path() / "backups").string()));
  EXPECT_EQ(runner_.stats().failed, 1u);
  ASSERT_TRUE(runner_.start());
  wait_for_end();
  EXPECT_EQ(runner_.status().state, State::Done);
}

TEST_F(BackupRunnerTest, WithoutADirectoryTakesNone) {
  BackupRunner none(*store_, clock_, {.directory = {}});
  const auto refused = none.start();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::BadRequest);
  EXPECT_THAT(refused.error().message(), HasSubstr("--backup-dir"));
  EXPECT_TRUE(none.list().value().empty());
}

TEST_F(BackupRunnerTest, TakesNoneOnceItIsStopped) {
  ASSERT_TRUE(runner_.start());
  runner_.stop();
  EXPECT_NE(runner_.status().state, State::Running);
  EXPECT_EQ(runner_.start().error().code(), ErrorCode::Unavailable);
}

}  // namespace
}  // namespace orrery::maintenance
