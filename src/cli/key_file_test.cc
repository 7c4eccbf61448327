#include "cli/key_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "protocol/base64.h"

namespace orrery::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class KeyFileTest : public testing::Test {
 protected:
  KeyFileTest() { directory = ::mkdtemp(directory.data()); }
  ~KeyFileTest() override { std::filesystem::remove_all(directory); }

  Result<std::vector<std::string>> read(const std::string& text) {
    std::ofstream(directory + "/keys") << text;
    return read_key_file(directory + "/keys");
  }
  std::string refusal(const std::string& text) {
    const auto keys = read(text);
    return keys ? "not refused" : keys.error().message();
  }
  static std::string key(char letter, std::size_t bytes) {
    return base64_encode(std::string(bytes, letter));
  }

  std::string directory = testing::TempDir() + "key-file-XXXXXX";
};

TEST_F(KeyFileTest, HasOneKeyALine) {
  const auto keys =
      read("# mine\n\n" + key('a', 64) + "\n  " + key('b', 32) + " \r\n# and\n" + key('c', 48));
  ASSERT_TRUE(keys) << keys.error().message();
  EXPECT_THAT(*keys, ElementsAre(key('a', 64), key('b', 32), key('c', 48)));
}

TEST_F(KeyFileTest, WithoutAKeyIsRefused) {
  EXPECT_THAT(refusal("# none yet\n"), HasSubstr("no key in it"));
  EXPECT_THAT(refusal(""), HasSubstr("orrery keygen"));
  const auto missing = read_key_file(directory + "/missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::Unavailable);
}

TEST_F(KeyFileTest, AKeyThatOpensslHasBrokenIsNotTwoKeys) {
  const std::string whole = key('a', 64);
  EXPECT_THAT(refusal(whole.substr(0, 64) + "\n" + whole.substr(64) + "\n"),
              HasSubstr("lines 1 to 2"));
  // Both halves would do as keys.
  const std::string longer = key('b', 96);
  EXPECT_THAT(refusal("# a comment\n" + longer.substr(0, 64) + "\n" + longer.substr(64) + "\n"),
              HasSubstr("lines 2 to 3"));
  EXPECT_THAT(refusal(longer.substr(0, 76) + "\n" + longer.substr(76) + "\n"),
              HasSubstr("put an empty line between two keys"));
}

TEST_F(KeyFileTest, TwoKeysAsLongAsALineAreKeptApartByAnEmptyOne) {
  const auto keys = read(key('a', 48) + "\n\n" + key('b', 48) + "\n");
  ASSERT_TRUE(keys) << keys.error().message();
  EXPECT_THAT(*keys, ElementsAre(key('a', 48), key('b', 48)));
}

TEST_F(KeyFileTest, ALineThatIsNoKeyIsNamed) {
  EXPECT_THAT(refusal("\nsecret\n"), HasSubstr("line 2 of the key file"));
  EXPECT_THAT(refusal(key('a', 16)), HasSubstr("32 bytes or more"));
}

}  // namespace
}  // namespace orrery::cli
