#include "server/data_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diagnostics.h"
#include "storage/test_store.h"

namespace orrery::server {
namespace {

using storage::TemporaryDirectory;
using testing::HasSubstr;

constexpr UnixSeconds kNow = 1'743'508'800;
constexpr UnixSeconds kYear = 366 * 86'400;

class DataDirectoryTest : public testing::Test {
 protected:
  DataDirectoryTest() { diagnostics::set_level(diagnostics::Level::Off); }

  std::unique_ptr<DataDirectory> open() {
    auto opened = DataDirectory::open(path);
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? std::move(*opened) : nullptr;
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
  struct stat status;
  ASSERT_EQ(::stat((path / "tls-key.pem").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
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
