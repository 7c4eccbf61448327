#include "protocol/auth/account_key.h"

#include <gmock/gmock.h>

#include "protocol/auth/well_known_key.h"
#include "protocol/base64.h"

namespace orrery {
namespace {

using testing::HasSubstr;

TEST(AccountKey, ANewOneIsOneLineAndGoodEnough) {
  const auto key = make_account_key();
  ASSERT_TRUE(key);
  EXPECT_EQ(key->size(), 88u);
  EXPECT_EQ(key->find_first_of(" \r\n"), std::string::npos);
  EXPECT_TRUE(check_account_key(*key));
  EXPECT_NE(*key, *make_account_key());
}

TEST(AccountKey, NeedsThirtyTwoBytes) {
  EXPECT_TRUE(check_account_key(base64_encode(std::string(32, 'x'))));
  const auto refused = check_account_key(base64_encode(std::string(31, 'x')));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("32 bytes or more, and this has 31"));
  EXPECT_TRUE(check_account_key(kWellKnownKey));
}

TEST(AccountKey, ThatIsNoneIsToldHowToMakeOne) {
  for (const std::string_view text : {"not base64!", "", "AAAA\nAAAA"}) {
    const auto refused = check_account_key(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_THAT(refused.error().message(), HasSubstr("orrery keygen"));
  }
}

}  // namespace
}  // namespace orrery
