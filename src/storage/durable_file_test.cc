#include "storage/durable_file.h"

#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_store.h"

namespace orrery::storage {
namespace {

using testing::HasSubstr;

class DurableFileTest : public testing::Test {
 protected:
  std::string text() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  TemporaryDirectory directory;
  std::filesystem::path path = directory.path() / "file";
};

TEST_F(DurableFileTest, HoldsWhatWasWrittenLast) {
  const std::string bytes("a\0b\n", 4);
  ASSERT_TRUE(write_durably(path, "a longer text that comes first"));
  ASSERT_TRUE(write_durably(path, bytes));
  EXPECT_EQ(text(), bytes);
  ASSERT_TRUE(write_durably(path, ""));
  EXPECT_EQ(text(), "");
}

TEST_F(DurableFileTest, IsTheOwnersOnly) {
  ASSERT_TRUE(write_durably(path, "secret"));
  struct stat status;
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(DurableFileTest, KeepsItsOldTextWhenTheDiskRefusesTheNewOne) {
  ASSERT_TRUE(write_durably(path, "old"));
  {
    const FullDisk full;
    const auto refused = write_durably(path, "new");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
    EXPECT_THAT(refused.error().message(), HasSubstr(path.string()));
  }
  EXPECT_EQ(text(), "old");
  ASSERT_TRUE(write_durably(path, "new"));
  EXPECT_EQ(text(), "new");
}

TEST_F(DurableFileTest, IsNotThereWhenItsFirstTextWasRefused) {
  {
    const FullDisk full;
    ASSERT_FALSE(write_durably(path, "new"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(DurableFileTest, ADirectoryThatIsMissingIsRefusedByName) {
  const auto refused = write_durably(directory.path() / "missing" / "file", "x");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("missing/file"));
}

}  // namespace
}  // namespace orrery::storage
