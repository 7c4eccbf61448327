#include "server/key_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "protocol/base64.h"
#include "storage/test_store.h"

namespace orrery::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class KeyFileTest : public testing::Test {
 protected:
  Result<std::vector<NamedKey>> read(const std::string& text) {
    std::ofstream(path) << text;
    return read_key_file(path);
  }
  /// "slot: key" of each, or what is wrong.
  std::vector<std::string> named(const std::string& text) {
    auto keys = read(text);
    if (!keys) return {keys.error().message()};
    name_keys(*keys);
    std::vector<std::string> lines;
    for (const NamedKey& each : *keys) lines.push_back(each.slot + ": " + each.text);
    return lines;
  }
  std::string content() const {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string refusal(const std::string& text) {
    const auto keys = read(text);
    return keys ? "not refused" : keys.error().message();
  }
  static std::string key(char letter, std::size_t bytes) {
    return base64_encode(std::string(bytes, letter));
  }

  storage::TemporaryDirectory directory;
  std::string path = directory.path() / "keys";
};

TEST_F(KeyFileTest, HasOneKeyALine) {
  EXPECT_THAT(
      named("# mine\n\n" + key('a', 64) + "\n  " + key('b', 32) + " \r\n# and\n" + key('c', 48)),
      ElementsAre("primary: " + key('a', 64), "secondary: " + key('b', 32),
                  "key-3: " + key('c', 48)));
}

TEST_F(KeyFileTest, WithoutAKeyIsRefused) {
  EXPECT_THAT(refusal("# none yet\n"), HasSubstr("no read-write key in it"));
  EXPECT_THAT(refusal(""), HasSubstr("orrery keygen"));
  const auto missing = read_key_file(directory.path() / "missing");
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
  EXPECT_THAT(named(key('a', 48) + "\n\n" + key('b', 48) + "\n"),
              ElementsAre("primary: " + key('a', 48), "secondary: " + key('b', 48)));
  // So do the names of slots.
  EXPECT_THAT(named("primary: " + key('a', 48) + "\nsecondary: " + key('b', 48) + "\n"),
              ElementsAre("primary: " + key('a', 48), "secondary: " + key('b', 48)));
}

TEST_F(KeyFileTest, ALineThatIsNoKeyIsNamed) {
  EXPECT_THAT(refusal("\nsecret\n"), HasSubstr("line 2 of the key file"));
  EXPECT_THAT(refusal(key('a', 16)), HasSubstr("32 bytes or more"));
}

TEST_F(KeyFileTest, SlotsHaveNames) {
  EXPECT_THAT(named("secondary:" + key('b', 64) + "\nprimary-readonly : " + key('r', 64) + "\n" +
                    key('a', 64) + "\n" + key('c', 64)),
              ElementsAre("secondary: " + key('b', 64), "primary-readonly: " + key('r', 64),
                          "primary: " + key('a', 64), "key-3: " + key('c', 64)));
  EXPECT_THAT(refusal("third: " + key('a', 64)), HasSubstr("there is no slot 'third'"));
  EXPECT_THAT(refusal("primary: " + key('a', 64) + "\nprimary: " + key('b', 64)),
              HasSubstr("line 2 of the key file"));
  EXPECT_THAT(refusal("primary-readonly: " + key('r', 64)), HasSubstr("no read-write key"));
}

TEST_F(KeyFileTest, AKeyIsPutInPlaceOfTheOneInItsSlot) {
  std::ofstream(path) << "# ours\n" << key('a', 64) << "\n\n" << key('b', 64) << "\n";
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  ASSERT_TRUE(set_key(path, "secondary", key('n', 64)));
  EXPECT_EQ(content(), "# ours\n" + key('a', 64) + "\n\nsecondary: " + key('n', 64) + "\n");
  EXPECT_FALSE(is_readable_by_others(path));
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0640))
      << "a service that reads it through its group still can";
  ASSERT_TRUE(set_key(path, "primary-readonly", key('r', 64)));
  EXPECT_EQ(content(), "# ours\n" + key('a', 64) + "\n\nsecondary: " + key('n', 64) +
                           "\nprimary-readonly: " + key('r', 64) + "\n");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_F(KeyFileTest, AFileThatIsRefusedIsNotChanged) {
  std::ofstream(path) << "secret\n";
  EXPECT_FALSE(set_key(path, "primary", key('n', 64)));
  EXPECT_EQ(content(), "secret\n");
  EXPECT_FALSE(set_key(directory.path() / "missing", "primary", key('n', 64)));
}

}  // namespace
}  // namespace orrery::server
