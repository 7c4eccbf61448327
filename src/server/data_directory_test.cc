#include "server/data_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diagnostics.h"
#include "storage/test_store.h"

namespace orrery::server {
namespace {

using storage::TemporaryDirectory;
using testing::HasSubstr;

constexpr UnixSeconds kNow = 1'743'508'800;
constexpr UnixSeconds kDay = 86'400;
constexpr UnixSeconds kYear = 366 * kDay;

class DataDirectoryTest : public testing::Test {
 protected:
  DataDirectoryTest() { diagnostics::set_level(diagnostics::Level::Off); }

  std::unique_ptr<DataDirectory> open() {
    auto opened = DataDirectory::open(path);
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? std::move(*opened) : nullptr;
  }

  static unsigned mode_of(const std::filesystem::path& path) {
    struct stat status;
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 0777;
  }

  TemporaryDirectory temporary;
  std::filesystem::path path = temporary.path() / "deep" / "data";
};

// ── whose it is ──────────────────────────────────────────────────────────────────────────────────

TEST_F(DataDirectoryTest, ADirectoryThatIsMissingIsMade) {
  const auto directory = open();
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_EQ(directory->path(), path);
  EXPECT_FALSE(directory->ephemeral());
}

TEST_F(DataDirectoryTest, ASecondServerIsToldWhoHasTheDirectory) {
  const auto holder = open();
  holder->describe_holder("http://127.0.0.1:8081/");
  const auto second = DataDirectory::open(path);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(second.error().message(), HasSubstr(path.string()));
  EXPECT_THAT(second.error().message(), HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_THAT(second.error().message(), HasSubstr("http://127.0.0.1:8081/"));
}

TEST_F(DataDirectoryTest, AHolderThatHasNotSaidItsNameStillHolds) {
  const auto holder = open();
  const auto second = DataDirectory::open(path);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("another process"));
}

TEST_F(DataDirectoryTest, ADirectoryIsFreeAgainOnceItsServerHasGone) {
  open()->describe_holder("http://127.0.0.1:8081/a-rather-long-description-of-it/");
  const auto next = open();
  ASSERT_NE(next, nullptr);
  next->describe_holder("x");
  const auto second = DataDirectory::open(path);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("at x."))
      << "nothing of the last holder's description is left";
}

TEST_F(DataDirectoryTest, ADirectoryThatCannotBeMadeIsNamed) {
  std::ofstream(temporary.path() / "file") << "x";
  const auto refused = DataDirectory::open(temporary.path() / "file" / "data");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr((temporary.path() / "file").string()));
}

TEST_F(DataDirectoryTest, ANewDirectoryIsItsOwnersOnly) {
  open();
  EXPECT_EQ(mode_of(path), 0700u);
  EXPECT_EQ(mode_of(path / "lock"), 0600u);
  // One that is there keeps the mode that somebody gave it.
  std::filesystem::permissions(path, std::filesystem::perms(0750));
  open();
  EXPECT_EQ(mode_of(path), 0750u);
}

TEST_F(DataDirectoryTest, ATrailingSlashMakesNoDifference) {
  path /= "";
  const auto directory = open();
  EXPECT_EQ(directory->path(), temporary.path() / "deep" / "data");
  EXPECT_EQ(mode_of(directory->path()), 0700u);
}

TEST_F(DataDirectoryTest, FilesOfOthersAreNotMixedWithOurs) {
  std::filesystem::create_directories(path / "src");
  for (const char* name : {"Makefile", "README.md", "thesis.txt"})
    std::ofstream(path / name) << "x";
  const auto refused = DataDirectory::open(path);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("holds other files"));
  EXPECT_THAT(refused.error().message(), HasSubstr("and 1 more"));
  EXPECT_THAT(refused.error().message(), HasSubstr("--data-dir"));
  EXPECT_FALSE(std::filesystem::exists(path / "lock"));
}

TEST_F(DataDirectoryTest, FilesOfOursAreTheStoresToJudgeWhereTheFormatIsMissing) {
  std::filesystem::create_directories(path / "store");
  for (const char* name : {"life", "watermark", "tls-certificate.pem"})
    std::ofstream(path / name) << "x";
  EXPECT_TRUE(DataDirectory::open(path));
}

TEST_F(DataDirectoryTest, ADirectoryThatWasServedMayHoldOtherFiles) {
  std::filesystem::create_directories(path);
  std::ofstream(path / "format") << "orrery store 1\n";
  std::ofstream(path / "notes.txt") << "x";
  EXPECT_NE(open(), nullptr);
}

TEST_F(DataDirectoryTest, ANewFileSystemAndAnUnfinishedStartAreFine) {
  std::filesystem::create_directories(path / "lost+found");
  for (const char* name : {".keep", "lock", "tls-key.pem", "format.new"}) {
    std::ofstream(path / name) << "x";
  }
  EXPECT_NE(open(), nullptr);
}

class EphemeralTest : public DataDirectoryTest {
 protected:
  EphemeralTest() { ::setenv("TMPDIR", temporary.path().c_str(), 1); }
  ~EphemeralTest() override { ::unsetenv("TMPDIR"); }

  /// As a server leaves it that was killed `seconds` ago.
  std::filesystem::path left_behind(const std::string& name, int seconds = 3600) {
    const auto place = temporary.path() / name;
    std::filesystem::create_directories(place / "store");
    for (const char* file : {"lock", "ephemeral", "store/data"}) std::ofstream(place / file) << "x";
    std::filesystem::last_write_time(
        place / "lock",
        std::filesystem::last_write_time(place / "lock") - std::chrono::seconds(seconds));
    return place;
  }
  void start_one() { ASSERT_TRUE(DataDirectory::make_ephemeral()); }
};

TEST_F(EphemeralTest, WhatAKilledServerLeftIsRemovedByTheNext) {
  const auto left = left_behind("orrery-aB3dE9");
  start_one();
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(EphemeralTest, WhatIsInUseOrNotOursIsLeftAlone) {
  const auto running = DataDirectory::make_ephemeral();
  ASSERT_TRUE(running);
  const auto young = left_behind("orrery-young1", 5);
  const auto other = left_behind("orrery-data");
  const auto unmarked = left_behind("orrery-abc123");
  std::filesystem::remove(unmarked / "ephemeral");
  const auto target = left_behind("elsewhere");
  std::filesystem::create_directory_symlink(target, temporary.path() / "orrery-linked");
  start_one();
  for (const auto& each : {(*running)->path(), young, other, unmarked, target / "store" / "data"}) {
    EXPECT_TRUE(std::filesystem::exists(each)) << each;
  }
}

TEST_F(EphemeralTest, WhatSomebodyServesByItsNameIsTheirs) {
  const auto left = left_behind("orrery-aB3dE9");
  ASSERT_TRUE(DataDirectory::open(left));
  std::filesystem::last_write_time(
      left / "lock", std::filesystem::last_write_time(left / "lock") - std::chrono::hours(1));
  start_one();
  EXPECT_TRUE(std::filesystem::exists(left));
}

TEST_F(DataDirectoryTest, AnEphemeralDirectoryIsRemovedWithAllThatIsInIt) {
  std::filesystem::path where;
  {
    const auto made = DataDirectory::make_ephemeral();
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_TRUE((*made)->ephemeral());
    where = (*made)->path();
    std::filesystem::create_directories(where / "store");
    std::ofstream(where / "store" / "file") << "x";
    const auto another = DataDirectory::make_ephemeral();
    ASSERT_TRUE(another);
    EXPECT_NE((*another)->path(), where);
  }
  EXPECT_FALSE(std::filesystem::exists(where));
}

// ── its certificate ──────────────────────────────────────────────────────────────────────────────

TEST_F(DataDirectoryTest, ACertificateIsMadeOnceAndKept) {
  const auto first = open()->certificate("", kNow);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_TRUE(http::certificate_serves(first->certificate_pem, "localhost", kNow));
  const auto second = open()->certificate("", kNow + kYear);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->certificate_pem, first->certificate_pem);
  EXPECT_EQ(second->key_pem, first->key_pem);
}

TEST_F(DataDirectoryTest, TheKeyIsNobodyElsesToRead) {
  ASSERT_TRUE(open()->certificate("", kNow));
  EXPECT_EQ(mode_of(path / "tls-key.pem"), 0600u);
}

TEST_F(DataDirectoryTest, ACertificateIsKeptWhenTheClockIsBehind) {
  const auto first = open()->certificate("", kNow);
  const auto second = open()->certificate("", kNow - 10 * kDay);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->certificate_pem, first->certificate_pem);
  EXPECT_EQ(open()->certificate("", 0)->certificate_pem, first->certificate_pem);
}

TEST_F(DataDirectoryTest, ACertificateIsMadeAnewAMonthBeforeItEnds) {
  const auto first = open()->certificate("", kNow);
  EXPECT_EQ(open()->certificate("", kNow + (3650 - 31) * kDay)->certificate_pem,
            first->certificate_pem);
  EXPECT_NE(open()->certificate("", kNow + (3650 - 29) * kDay)->certificate_pem,
            first->certificate_pem);
}

TEST_F(DataDirectoryTest, ACertificateWithTheKeyOfAnotherIsMadeAnew) {
  const auto first = open()->certificate("", kNow);
  ASSERT_TRUE(first);
  std::ofstream(path / "tls-key.pem", std::ios::trunc)
      << http::make_self_signed_certificate({}, kNow)->key_pem;
  const auto second = open()->certificate("", kNow);
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_TRUE(http::belong_together(*second));
}

class CachedCertificateTest : public EphemeralTest {
 protected:
  CachedCertificateTest() { ::setenv("XDG_CACHE_HOME", cache.c_str(), 1); }
  ~CachedCertificateTest() override { ::unsetenv("XDG_CACHE_HOME"); }

  Result<http::Certificate> of_new_server(const std::string& host = {}) {
    ORRERY_TRY(const auto directory, DataDirectory::make_ephemeral());
    return directory->certificate(host, kNow);
  }

  std::filesystem::path cache = temporary.path() / "cache";
};

TEST_F(CachedCertificateTest, EphemeralServersOfAUserShareOne) {
  const auto first = of_new_server();
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(of_new_server()->certificate_pem, first->certificate_pem);
  EXPECT_EQ(of_new_server("localhost")->certificate_pem, first->certificate_pem);
  EXPECT_EQ(mode_of(cache / "orrery"), 0700u);
  EXPECT_EQ(mode_of(cache / "orrery" / "tls-key.pem"), 0600u);
}

TEST_F(CachedCertificateTest, AnotherNameGetsOneOfItsOwn) {
  const auto first = of_new_server();
  const auto named = of_new_server("orrery.example");
  ASSERT_TRUE(named);
  EXPECT_TRUE(http::certificate_serves(named->certificate_pem, "orrery.example", kNow));
  EXPECT_EQ(of_new_server()->certificate_pem, first->certificate_pem);
}

TEST_F(CachedCertificateTest, ServersThatStartTogetherGetTheSame) {
  std::vector<std::string> found(8);
  {
    std::vector<std::jthread> servers;
    for (std::string& each : found) {
      servers.emplace_back([this, &each] { each = of_new_server()->certificate_pem; });
    }
  }
  for (const std::string& each : found) EXPECT_EQ(each, found.front());
}

TEST_F(CachedCertificateTest, ACacheThatOthersCanWriteToIsNotUsed) {
  std::filesystem::create_directories(cache / "orrery");
  std::filesystem::permissions(cache / "orrery", std::filesystem::perms(0777));
  ASSERT_TRUE(of_new_server());
  EXPECT_FALSE(std::filesystem::exists(cache / "orrery" / "tls-key.pem"));
}

TEST_F(DataDirectoryTest, ACertificateForAnotherHostIsMadeAnew) {
  const auto first = open()->certificate("", kNow);
  const auto named = open()->certificate("orrery.example", kNow);
  ASSERT_TRUE(named);
  EXPECT_NE(named->certificate_pem, first->certificate_pem);
  EXPECT_TRUE(http::certificate_serves(named->certificate_pem, "orrery.example", kNow));
  EXPECT_TRUE(http::certificate_serves(named->certificate_pem, "localhost", kNow));
  const auto again = open()->certificate("orrery.example", kNow);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->certificate_pem, named->certificate_pem);
}

TEST_F(DataDirectoryTest, AnExpiredCertificateIsMadeAnew) {
  const auto first = open()->certificate("", kNow);
  const auto second = open()->certificate("", kNow + 11 * kYear);
  ASSERT_TRUE(second);
  EXPECT_NE(second->certificate_pem, first->certificate_pem);
  EXPECT_TRUE(http::certificate_serves(second->certificate_pem, "localhost", kNow + 11 * kYear));
}

TEST_F(DataDirectoryTest, ADamagedCertificateIsMadeAnew) {
  ASSERT_TRUE(open()->certificate("", kNow));
  std::ofstream(path / "tls-certificate.pem", std::ios::trunc) << "";
  const auto second = open()->certificate("", kNow);
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_TRUE(http::certificate_serves(second->certificate_pem, "localhost", kNow));
}

TEST(ReadFileTest, ReadsAllOfAFileOrNamesIt) {
  const TemporaryDirectory temporary;
  const std::string bytes("a\0b\n", 4);
  std::ofstream(temporary.path() / "file", std::ios::binary) << bytes;
  EXPECT_EQ(read_file(temporary.path() / "file").value(), bytes);
  const auto missing = read_file(temporary.path() / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(missing.error().message(), HasSubstr("missing"));
}

}  // namespace
}  // namespace orrery::server
