#include "api/host_check.h"

#include <gtest/gtest.h>

namespace orrery::api {
namespace {

TEST(HostCheck, TakesNamesThatMeanThisMachine) {
  const auto hosts = HostCheck::this_machine({"orrery.example"});
  for (const char* host :
       {"localhost", "localhost:8081", "LocalHost:1", "localhost.:8081", "127.0.0.1:8081",
        "127.1.2.3", "[::1]:8081", "[::1]", "[::ffff:127.0.0.1]:8081", "db.localhost:8081",
        "host.docker.internal:8081", "host.containers.internal", "orrery.example:8081",
        "ORRERY.example", ""}) {
    EXPECT_TRUE(hosts.check(host, "")) << host;
  }
}

TEST(HostCheck, RefusesOthersAndSaysWhatToDo) {
  const auto hosts = HostCheck::this_machine({""});
  for (const char* host : {"evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example",
                           "192.168.1.5:8081", "notlocalhost", "0.0.0.0:8081", "[fe80::1]:8081",
                           "[", ":8081", "localhost@evil.example", "x"}) {
    const auto checked = hosts.check(host, "");
    ASSERT_FALSE(checked) << host;
    EXPECT_EQ(checked.error().code(), ErrorCode::BadRequest);
    EXPECT_NE(checked.error().message().find("--advertise"), std::string::npos);
  }
}

TEST(HostCheck, RefusesPagesOfOtherSites) {
  const auto hosts = HostCheck::this_machine({});
  for (const char* origin : {"http://evil.example", "https://evil.example:8081", "null"}) {
    const auto checked = hosts.check("localhost:8081", origin);
    ASSERT_FALSE(checked) << origin;
    EXPECT_EQ(checked.error().code(), ErrorCode::Forbidden);
  }
  for (const char* origin :
       {"http://localhost:3000", "https://127.0.0.1:8081", "http://[::1]:80",
        "http://app.localhost", "vscode-webview://x", "chrome-extension://y"}) {
    EXPECT_TRUE(hosts.check("localhost:8081", origin)) << origin;
  }
}

TEST(HostCheck, BeyondThisMachineNamesAreNotChecked) {
  EXPECT_TRUE(HostCheck().check("orrery.example:8081", "https://elsewhere.example"));
}

}  // namespace
}  // namespace orrery::api
