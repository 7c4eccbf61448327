#include "server/server.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diagnostics.h"
#include "storage/test_store.h"

namespace orrery::server {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

const std::string kOwnKey = std::string(80, 'B') + "BBBBBBA=";

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    diagnostics::set_level(diagnostics::Level::Off);
    config.data_directory = temporary.path() / "data";
    config.listen_port = 0;
    config.threads = 1;
    config.cache_bytes = 1 << 20;
  }
  /// The message of the refusal, or "started".
  std::string refusal(ErrorCode code = ErrorCode::BadRequest) {
    const auto server = Server::open(config);
    if (server) return "started";
    EXPECT_EQ(server.error().code(), code) << server.error().message();
    return server.error().message();
  }

  storage::TemporaryDirectory temporary;
  Config config;
};

// ── what is not safe or makes no sense ───────────────────────────────────────────────────────────

TEST_F(ServerTest, TheWellKnownKeyIsForThisMachineOnly) {
  config.listen_address = "0.0.0.0";
  EXPECT_THAT(refusal(), HasSubstr("well-known key"));
  EXPECT_FALSE(std::filesystem::exists(config.data_directory)) << "nothing is touched before";
  config.keys = {kOwnKey, std::string(kWellKnownKey)};
  EXPECT_THAT(refusal(), HasSubstr("well-known key")) << "also as a secondary key";
  config.keys = {kOwnKey};
  config.read_only_keys = {std::string(kWellKnownKey)};
  EXPECT_THAT(refusal(), HasSubstr("well-known key")) << "also if it may only read";
  config.keys = {};
  config.read_only_keys = {};
  for (const auto* address : {"::", "192.0.2.1", "example.org"}) {
    config.listen_address = address;
    EXPECT_THAT(refusal(), HasSubstr("well-known key")) << address;
  }
}

TEST_F(ServerTest, BeyondThisMachineAKeyOfOnesOwnOrAnExplicitWordIsNeeded) {
  config.listen_address = "0.0.0.0";
  config.keys = {kOwnKey};
  EXPECT_EQ(refusal(), "started");
  config.keys = {};
  config.allow_well_known_key = true;
  EXPECT_EQ(refusal(), "started");
}

TEST_F(ServerTest, OnThisMachineTheWellKnownKeyWillDo) { EXPECT_EQ(refusal(), "started"); }

TEST_F(ServerTest, AKeyThatIsNoneIsRefused) {
  config.keys = {"not base64!"};
  EXPECT_NE(refusal(), "started");
  config.keys = {kOwnKey};
  config.read_only_keys = {"c2hvcnQ="};
  EXPECT_NE(refusal(), "started") << "too short";
}

TEST_F(ServerTest, ACertificateNeedsItsKey) {
  config.tls_certificate = temporary.path() / "certificate.pem";
  std::ofstream(config.tls_certificate) << "-----BEGIN CERTIFICATE-----\n";
  EXPECT_THAT(refusal(), HasSubstr("needs its private key"));
  config.tls_certificate = "";
  config.tls_key = "key.pem";
  EXPECT_THAT(refusal(), HasSubstr("--tls-cert"));
  config.tls_certificate = temporary.path() / "missing.pem";
  EXPECT_THAT(refusal(ErrorCode::Unavailable), HasSubstr("missing.pem"));
}

TEST_F(ServerTest, AnAdvertisedEndpointIsAUrl) {
  config.advertised_endpoint = "orrery.example:8081";
  EXPECT_THAT(refusal(), HasSubstr("--advertise"));
}

// ── starting and stopping ────────────────────────────────────────────────────────────────────────

TEST_F(ServerTest, ItTellsWhereItIsAndWhatToPaste) {
  const auto server = Server::open(config);
  ASSERT_TRUE(server) << server.error().message();
  EXPECT_NE((*server)->port(), 0);
  const auto introduction = (*server)->introduction();
  EXPECT_THAT(introduction, HasSubstr(config.data_directory.string()));
  EXPECT_THAT(introduction, HasSubstr("http://127.0.0.1:" + std::to_string((*server)->port())));
  EXPECT_THAT(introduction, HasSubstr(std::string(kWellKnownKey)));
  (*server)->stop(1s);
  (*server)->stop(1s);  // Once more does no harm.
}

TEST_F(ServerTest, AKeyOfOnesOwnIsNotPrinted) {
  config.keys = {kOwnKey};
  const auto server = Server::open(config);
  ASSERT_TRUE(server);
  EXPECT_THAT((*server)->introduction(), Not(HasSubstr(kOwnKey)));
}

TEST_F(ServerTest, ASecondServerOnTheSameDataIsToldWhoHasIt) {
  const auto first = Server::open(config);
  ASSERT_TRUE(first);
  EXPECT_THAT(refusal(ErrorCode::Unavailable),
              HasSubstr("http://127.0.0.1:" + std::to_string((*first)->port())));
}

TEST_F(ServerTest, AStoppedServerCanBeStartedAgainOnItsData) {
  for (int i = 0; i < 3; ++i) {
    const auto server = Server::open(config);
    ASSERT_TRUE(server) << server.error().message();
  }
}

TEST_F(ServerTest, APortThatIsTakenIsRefusedAndTheDataIsFreeAgain) {
  const auto first = Server::open(config);
  ASSERT_TRUE(first);
  const auto data = config.data_directory;
  config.data_directory = temporary.path() / "other";
  config.listen_port = (*first)->port();
  EXPECT_THAT(refusal(ErrorCode::Unavailable), HasSubstr(std::to_string(config.listen_port)));
  config.listen_port = 0;
  EXPECT_EQ(refusal(), "started");
}

TEST_F(ServerTest, AnEphemeralServerLeavesNothing) {
  config.ephemeral = true;
  std::string introduction;
  {
    const auto server = Server::open(config);
    ASSERT_TRUE(server);
    introduction = (*server)->introduction();
  }
  EXPECT_THAT(introduction, HasSubstr("ephemeral"));
  EXPECT_FALSE(std::filesystem::exists(config.data_directory));
  const auto at = introduction.find("data        ") + 12;
  const std::filesystem::path where = introduction.substr(at, introduction.find(' ', at) - at);
  EXPECT_FALSE(where.empty());
  EXPECT_FALSE(std::filesystem::exists(where)) << where;
}

TEST_F(ServerTest, RelaxedDurabilityIsSaid) {
  config.durability = storage::Durability::Relaxed;
  const auto server = Server::open(config);
  ASSERT_TRUE(server);
  EXPECT_THAT((*server)->introduction(), HasSubstr("relaxed durability"));
}

TEST_F(ServerTest, DataOfAnotherFormatIsNotTouched) {
  std::filesystem::create_directories(config.data_directory);
  std::ofstream(config.data_directory / "format") << "orrery store format 99\n";
  EXPECT_THAT(refusal(ErrorCode::Unavailable), HasSubstr("orrery store format 99"));
}

}  // namespace
}  // namespace orrery::server
