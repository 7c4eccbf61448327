#include "api/authenticator.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_request.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/http_date.h"
#include "protocol/wire/resource_path.h"

namespace orrery::api {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kPrimary(88, 'A');
const std::string kSecondary = std::string(80, 'B') + "BBBBBBA=";
const std::string kReadOnly = std::string(80, 'C') + "CCCCCCA=";
const std::string kForeign = std::string(80, 'D') + "DDDDDDA=";

MasterKey key(const std::string& text) { return MasterKey::parse(text).value(); }

class AuthenticatorTest : public testing::Test {
 protected:
  static Keyring::Keys keys() {
    Keyring::Keys made;
    made.push_back({"primary", Access::ReadWrite, kPrimary, key(kPrimary)});
    made.push_back({"secondary", Access::ReadWrite, kSecondary, key(kSecondary)});
    made.push_back({"primary-readonly", Access::ReadOnly, kReadOnly, key(kReadOnly)});
    return made;
  }

  /// A request for `target`, signed as clients do with the link and type given.
  TestRequest signed_request(std::string_view method, std::string_view target,
                             std::string_view type, std::string_view link,
                             const std::string& with = kPrimary) {
    const std::string date = format_http_date(clock.unix_seconds());
    const auto signature = key(with).sign({method, type, link, date, {}});
    TestRequest request(method, target);
    request.header(headers::kXDate, date)
        .header(headers::kAuthorization, format_authorization(signature));
    return request;
  }
  /// "read-write", "read-only", "401" or "403".
  std::string outcome(TestRequest& request, const Authenticator& by) {
    const auto path = parse_resource_path(request.request().target);
    const auto principal = by.authenticate(request.request(), path ? &*path : nullptr);
    if (principal) return principal->access == Access::ReadWrite ? "read-write" : "read-only";
    message = principal.error().message();
    switch (principal.error().code()) {
      case ErrorCode::Unauthorized:
        return "401";
      case ErrorCode::Forbidden:
        return "403";
      default:
        return "?";
    }
  }
  std::string outcome(TestRequest& request) { return outcome(request, authenticator); }
  std::string outcome(TestRequest&& request) { return outcome(request, authenticator); }

  ManualClock clock{1'743'508'800};
  Keyring keyring{keys()};
  Authenticator authenticator{keyring, clock, /*check_dates=*/true};
  std::string message;
};

TEST_F(AuthenticatorTest, EachKeyOpensWhatItIsFor) {
  const auto with = [&](const std::string& text) {
    return outcome(signed_request("GET", "/dbs/d/colls/c", "colls", "dbs/d/colls/c", text));
  };
  EXPECT_EQ(with(kPrimary), "read-write");
  EXPECT_EQ(with(kSecondary), "read-write");
  EXPECT_EQ(with(kReadOnly), "read-only");
  EXPECT_EQ(with(kForeign), "401");
  EXPECT_THAT(message, HasSubstr(R"(get\ncolls\ndbs/d/colls/c\n)"))
      << "whoever signs wrongly is told what was expected";
}

TEST_F(AuthenticatorTest, ListsItemsAndTheAccountAreSignedByTheirLinks) {
  EXPECT_EQ(outcome(signed_request("GET", "/", "", "")), "read-write");
  EXPECT_EQ(outcome(signed_request("GET", "/dbs", "dbs", "")), "read-write");
  EXPECT_EQ(outcome(signed_request("POST", "/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c")),
            "read-write");
  EXPECT_EQ(outcome(signed_request("GET", "/dbs/d/colls/c/docs/%C3%A4%20b", "docs",
                                   "dbs/d/colls/c/docs/ä b")),
            "read-write");
  EXPECT_EQ(outcome(signed_request("GET", "/dbs/AAAAAQ==/colls/AAAAAYAAAAE=/docs", "docs",
                                   "aaaaayaaaae=")),
            "read-write")
      << "by rid, lower-cased";
  EXPECT_EQ(outcome(signed_request("POST", "/dbs/d/colls/c/operations/partitionkeydelete", "colls",
                                   "dbs/d/colls/c")),
            "read-write");
  EXPECT_EQ(outcome(signed_request("POST", "/dbs/d/colls/c/operations/partitionkeydelete",
                                   "partitionkey", "dbs/d/colls/c")),
            "read-write");
}

TEST_F(AuthenticatorTest, ASignatureForOneThingOpensNothingElse) {
  EXPECT_EQ(outcome(signed_request("GET", "/dbs/d2", "dbs", "dbs/d1")), "401");
  EXPECT_EQ(outcome(signed_request("GET", "/dbs/d", "colls", "dbs/d")), "401");
  auto request = signed_request("GET", "/dbs/d", "dbs", "dbs/d");
  request.request().method = "DELETE";
  EXPECT_EQ(outcome(request), "401") << "another verb";
  EXPECT_EQ(outcome(signed_request("GET", "/dbs/D", "dbs", "dbs/d")), "401")
      << "names are case-sensitive";
}

TEST_F(AuthenticatorTest, WhoeverBringsNoOrBrokenAuthorizationIsAStranger) {
  TestRequest nothing("GET", "/dbs");
  EXPECT_EQ(outcome(nothing), "401");
  EXPECT_THAT(message, HasSubstr("authorization is missing"));

  const std::string date = format_http_date(clock.unix_seconds());
  for (const auto* value :
       {"x", "type%3dmaster%26ver%3d1.0",
        "type=master&ver=1.0&sig=", "type%3dmaster%26ver%3d1.0%26sig%3d%%%", "Bearer abc",
        "type%3dresource%26ver%3d1%26sig%3dabc", "type%3daad%26ver%3d1.0%26sig%3dx"}) {
    TestRequest request("GET", "/dbs");
    request.header(headers::kXDate, date).header(headers::kAuthorization, value);
    EXPECT_EQ(outcome(request), "401") << value;
  }

  const auto signature = key(kPrimary).sign({"GET", "dbs", "", {}, {}});
  TestRequest undated("GET", "/dbs");
  undated.header(headers::kAuthorization, format_authorization(signature));
  EXPECT_EQ(outcome(undated), "401");
  EXPECT_THAT(message, HasSubstr("x-ms-date"));
}

TEST_F(AuthenticatorTest, ARouteThatDoesNotExistIsAStrangersNoLessThanAnyOther) {
  TestRequest stranger("GET", "/nonsense/x");
  EXPECT_EQ(outcome(stranger), "401");
  EXPECT_EQ(outcome(signed_request("GET", "/nonsense/x", "nonsense", "nonsense/x")), "read-write");
  EXPECT_EQ(outcome(signed_request("GET", "/dbs/d/nonsense", "nonsense", "dbs/d")), "read-write");
}

TEST_F(AuthenticatorTest, ASignatureIsGoodForAQuarterOfAnHourAndClocksMayDifferByAsMuch) {
  auto request = signed_request("GET", "/dbs", "dbs", "");
  clock.advance(1800s);
  EXPECT_EQ(outcome(request), "read-write");
  clock.advance(1s);
  EXPECT_EQ(outcome(request), "403");
  EXPECT_THAT(message, HasSubstr("not valid at the current time"));
  clock.advance(-1801s - 900s);
  EXPECT_EQ(outcome(request), "read-write") << "the client's clock is ahead";
  clock.advance(-1s);
  EXPECT_EQ(outcome(request), "403");

  const Authenticator lenient(keyring, clock, /*check_dates=*/false);
  EXPECT_EQ(outcome(request, lenient), "read-write");
}

TEST_F(AuthenticatorTest, AWrongSignatureIsAStrangersAlsoWhenItsDateIsOld) {
  auto request = signed_request("GET", "/dbs", "dbs", "", kForeign);
  clock.advance(10'000s);
  EXPECT_EQ(outcome(request), "401") << "the date tells a stranger nothing";
}

TEST_F(AuthenticatorTest, ADateThatIsNoneIsRefusedThoughItIsSigned) {
  for (const bool check_dates : {true, false}) {
    const Authenticator by(keyring, clock, check_dates);
    const auto signature = key(kPrimary).sign({"GET", "dbs", "", "yesterday", {}});
    TestRequest request("GET", "/dbs");
    request.header(headers::kXDate, "yesterday")
        .header(headers::kAuthorization, format_authorization(signature));
    EXPECT_EQ(outcome(request, by), "401");
  }
}

TEST_F(AuthenticatorTest, ThePlainDateHeaderWillDo) {
  const std::string date = format_http_date(clock.unix_seconds());
  const auto signature = key(kPrimary).sign({"GET", "dbs", "", {}, date});
  TestRequest request("GET", "/dbs");
  request.header(headers::kDate, date)
      .header(headers::kAuthorization, format_authorization(signature));
  EXPECT_EQ(outcome(request), "read-write");
  clock.advance(2000s);
  EXPECT_EQ(outcome(request), "403");
}

TEST_F(AuthenticatorTest, AKeyItselfCanBeBorneForMetrics) {
  const auto bears = [&](std::string_view value) {
    TestRequest request("GET", "/_metrics");
    request.header(headers::kAuthorization, value);
    return authenticator.bears_key(request.request());
  };
  EXPECT_TRUE(bears("Bearer " + kPrimary));
  EXPECT_TRUE(bears("Bearer " + kReadOnly));
  EXPECT_FALSE(bears("Bearer " + kForeign));
  EXPECT_FALSE(bears("Bearer "));
  EXPECT_FALSE(bears(kPrimary));
  EXPECT_FALSE(bears("Bearer " + kPrimary + "A"));
  EXPECT_FALSE(bears("Bearer " + kPrimary.substr(1)));
  TestRequest nothing("GET", "/_metrics");
  EXPECT_FALSE(authenticator.bears_key(nothing.request()));
}

TEST_F(AuthenticatorTest, KeysCanBeExchanged) {
  const auto with = [&](const std::string& text) {
    return outcome(signed_request("GET", "/dbs/d/colls/c", "colls", "dbs/d/colls/c", text));
  };
  auto others = keys();
  others.erase(others.begin() + 1);
  others.push_back({"secondary", Access::ReadWrite, kForeign, key(kForeign)});
  keyring.replace(std::move(others));
  EXPECT_EQ(with(kPrimary), "read-write");
  EXPECT_EQ(with(kSecondary), "401");
  EXPECT_EQ(with(kForeign), "read-write");
  EXPECT_EQ(with(kReadOnly), "read-only");
}

TEST_F(AuthenticatorTest, TheUseOfAKeyIsNoted) {
  const auto used = [&](std::size_t place) { return keyring.in_force()[place].last_used->load(); };
  EXPECT_EQ(used(0), 0);
  outcome(signed_request("GET", "/", "", ""));
  EXPECT_EQ(used(0), clock.unix_seconds());
  EXPECT_EQ(used(1), 0);
}

TEST_F(AuthenticatorTest, AdministrationIsSignedWithItsPath) {
  EXPECT_EQ(
      outcome(signed_request("POST", "/_orrery/keys/reload", "orrery", "_orrery/keys/reload")),
      "read-write");
  EXPECT_EQ(outcome(signed_request("POST", "/_orrery/keys/reload", "orrery", "_orrery/keys")),
            "401");
  EXPECT_EQ(outcome(signed_request("POST", "/_orrery/keys/reload", "", "")), "401");
}

}  // namespace
}  // namespace orrery::api
