#include "api/keyring.h"

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "protocol/base64.h"

namespace orrery::api {
namespace {

AccountKey account_key(const std::string& slot, char letter, Access access = Access::ReadWrite) {
  const std::string text = base64_encode(std::string(64, letter));
  return {slot, access, text, MasterKey::parse(text).value()};
}

Keyring::Keys two_keys(char first, char second) {
  Keyring::Keys keys;
  keys.push_back(account_key("primary", first));
  keys.push_back(account_key("secondary", second));
  return keys;
}

TEST(Keyring, AKeyThatStaysKeepsItsId) {
  Keyring ring(two_keys('a', 'b'));
  const auto primary = ring.in_force()[0].id;
  const auto secondary = ring.in_force()[1].id;
  EXPECT_NE(primary, secondary);
  ring.in_force()[0].last_used->store(42);
  ring.replace(two_keys('c', 'a'));
  EXPECT_EQ(ring.in_force()[1].id, primary) << "in another slot";
  EXPECT_EQ(ring.in_force()[1].last_used->load(), 42);
  EXPECT_TRUE(ring.holds(primary));
  EXPECT_FALSE(ring.holds(secondary));
  ring.replace(two_keys('a', 'b'));
  EXPECT_FALSE(ring.holds(secondary)) << "what was opened with it before has ended";
}

TEST(Keyring, AKeyWithOtherRightsIsAnotherOne) {
  Keyring ring(two_keys('a', 'b'));
  const auto before = ring.in_force()[1].id;
  auto keys = two_keys('a', 'b');
  keys[1].access = Access::ReadOnly;
  ring.replace(std::move(keys));
  EXPECT_FALSE(ring.holds(before));
}

TEST(Keyring, RingsAreIndependent) {
  Keyring one(two_keys('a', 'b'));
  Keyring other(two_keys('c', 'd'));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(one.in_force()[0].text, two_keys('a', 'b')[0].text);
    EXPECT_EQ(other.in_force()[0].text, two_keys('c', 'd')[0].text);
  }
}

TEST(Keyring, ReadersSeeWholeSetsAndNeverAnOlderOne) {
  constexpr int kRounds = 2000;
  const auto letter = [](int round) { return static_cast<char>('A' + round % 26); };
  Keyring ring(two_keys(letter(0), letter(0)));
  std::atomic<bool> is_done{false};
  const auto watch = [&] {
    std::uint64_t newest = 0;
    while (!is_done) {
      const Keyring::Keys& keys = ring.in_force();
      ASSERT_EQ(keys.size(), 2U);
      ASSERT_EQ(keys[0].text, keys[1].text);
      ASSERT_GE(keys[0].id, newest);
      newest = keys[0].id;
    }
  };
  std::jthread first(watch);
  std::jthread second(watch);
  for (int round = 1; round <= kRounds; ++round) {
    ring.replace(two_keys(letter(round), letter(round)));
    ASSERT_EQ(ring.in_force()[0].text, two_keys(letter(round), 'x')[0].text);
  }
  is_done = true;
}

}  // namespace
}  // namespace orrery::api
