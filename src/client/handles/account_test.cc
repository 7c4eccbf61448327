#include "client/handles/account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/auth/well_known_key.h"

namespace orrery::client {
namespace {

using ::testing::HasSubstr;

TEST(Account, SignsWithItsKey) {
  const auto account = Account::make("http://localhost:8081/", kWellKnownKey);
  ASSERT_TRUE(account);
  EXPECT_EQ(account->authorization("GET", "dbs", "dbs/ToDo", "Tue, 01 Apr 2025 12:00:00 GMT"),
            "type%3Dmaster%26ver%3D1.0%26sig%3D"
            "QTK1aHfV%2Fw3c9uwV1ExNzRbmw%2Bm5xnwpz2kAHZPJ4sw%3D");
}

TEST(Account, SendsAResourceTokenAsItIsButEscaped) {
  const auto account = Account::with_token("http://localhost", "type=resource&ver=1&sig=a+/b==;c;");
  ASSERT_TRUE(account);
  EXPECT_EQ(account->authorization("GET", "docs", "x", "whenever"),
            "type%3Dresource%26ver%3D1%26sig%3Da%2B%2Fb%3D%3D%3Bc%3B");
  const auto escaped =
      Account::with_token("http://localhost", "type%3Dresource%26ver%3D1%26sig%3Da");
  EXPECT_EQ(escaped->authorization("GET", "docs", "x", "whenever"),
            "type%3Dresource%26ver%3D1%26sig%3Da");
}

TEST(Account, IsReadFromAConnectionString) {
  const auto account = Account::parse(
      "AccountEndpoint=http://localhost:8081/;accountkey=" + std::string(kWellKnownKey) + ";");
  ASSERT_TRUE(account);
  EXPECT_EQ(account->endpoint(), "http://localhost:8081/");
  EXPECT_FALSE(Account::parse("AccountEndpoint=http://localhost:8081/;"));
}

TEST(Account, RefusesWhatIsNone) {
  const auto wrong_url = Account::make("localhost", kWellKnownKey);
  ASSERT_FALSE(wrong_url);
  EXPECT_THAT(wrong_url.error().message(), HasSubstr("'localhost'"));
  EXPECT_FALSE(Account::make("http://localhost", "not a key"));
  EXPECT_FALSE(Account::with_token("http://localhost", ""));
}

}  // namespace
}  // namespace orrery::client
