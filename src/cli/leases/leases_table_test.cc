#include "cli/leases/leases_table.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace orrery::cli {
namespace {

using std::chrono::seconds;

GroupStatus example() {
  const WallTime renewed{seconds(1000)};
  GroupStatus status;
  status.leases = {{"id0", "0", "host-1", "\"4711\"", renewed, 3}, {"id1", "1", "", "", {}, 0}};
  status.lag = {{"1", "", 2, {}, {}, false}, {"0", "host-1", 5, 600, seconds(9), true}};
  return status;
}

TEST(LeasesTable, HasALinePerLease) {
  EXPECT_EQ(status_table(example(), WallTime(seconds(1012))),
            "LEASE  OWNER   POSITION  RENEWED   EPOCH  PENDING  BYTES  AGE\n"
            "0      host-1  4711      12 s ago      3        5    600  9 s\n"
            "1      nobody  none      never         0       ~2\n"
            "2 leases, 7 documents pending\n");
}

TEST(LeasesTable, SaysLoudlyThatAGroupIsPaused) {
  GroupStatus status = example();
  status.paused = true;
  EXPECT_NE(status_table(status, WallTime(seconds(1012))).find("PAUSED"), std::string::npos);
}

TEST(LeasesTable, IsAlsoThereForPrograms) {
  const auto json = nlohmann::json::parse(status_json(example()));
  EXPECT_EQ(json["paused"], false);
  EXPECT_EQ(json["leases"][0]["position"], "4711");
  EXPECT_EQ(json["leases"][0]["renewed"], "1970-01-01T00:16:40Z");
  EXPECT_EQ(json["leases"][0]["pendingDocuments"], 5);
  EXPECT_EQ(json["leases"][0]["ageSeconds"], 9);
  EXPECT_EQ(json["leases"][1]["owner"], nullptr);
  EXPECT_EQ(json["leases"][1]["pendingBytes"], nullptr);
}

}  // namespace
}  // namespace orrery::cli
