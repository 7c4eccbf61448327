#include "api/charge.h"

#include <gtest/gtest.h>

namespace orrery::api {
namespace {

TEST(ChargeTest, IsWrittenAsTheServiceWritesIt) {
  EXPECT_EQ(Charge{100}.text(), "1");
  EXPECT_EQ(Charge{524}.text(), "5.24");
  EXPECT_EQ(Charge{520}.text(), "5.2");
  EXPECT_EQ(Charge{505}.text(), "5.05");
  EXPECT_EQ(Charge{0}.text(), "0");
  EXPECT_EQ(Charge{123'456'789}.text(), "1234567.89");
  std::string out = "charge: ";
  Charge{110}.append_text(out);
  EXPECT_EQ(out, "charge: 1.1");
}

TEST(ChargeTest, APointReadOfUpToOneKilobyteIsOneUnit) {
  EXPECT_EQ(read_charge(0).text(), "1");
  EXPECT_EQ(read_charge(1).text(), "1");
  EXPECT_EQ(read_charge(1024).text(), "1");
  EXPECT_EQ(read_charge(12 * 1024).text(), "2");
  EXPECT_EQ(read_charge(100 * 1024).text(), "10") << "as the service says of 100 KB";
}

TEST(ChargeTest, ACreateIsFiveUnitsAndWhatIsIndexedOnTop) {
  EXPECT_EQ(create_charge(1024, 0, 0).text(), "5");
  EXPECT_EQ(create_charge(200, 2, 0).text(), "5.24");
  EXPECT_EQ(create_charge(200, 0, 1).text(), "6");
  EXPECT_EQ(create_charge(23 * 1024, 0, 0).text(), "15");
  EXPECT_EQ(create_charge(23 * 1024, 10, 2).text(), "18.2");
}

TEST(ChargeTest, AReplaceIsAboutTwoCreates) {
  EXPECT_EQ(replace_charge(1024, 0, 0).text(), "9");
  EXPECT_EQ(replace_charge(200, 2, 0).text(), "9.48");
}

TEST(ChargeTest, AFeedPageCostsByItsBytes) {
  EXPECT_EQ(feed_page_charge(0).text(), "1.5");
  EXPECT_EQ(feed_page_charge(12 * 1024).text(), "2");
  EXPECT_GT(feed_page_charge(4 << 20).hundredths, feed_page_charge(1 << 20).hundredths);
}

TEST(ChargeTest, TheSameRequestCostsTheSame) {
  for (std::size_t bytes = 1; bytes < 3'000'000; bytes = bytes * 3 + 1) {
    EXPECT_EQ(create_charge(bytes, 7, 1).hundredths, create_charge(bytes, 7, 1).hundredths);
    EXPECT_LE(create_charge(bytes, 7, 1).hundredths, create_charge(bytes + 1, 7, 1).hundredths);
    EXPECT_LE(read_charge(bytes).hundredths, read_charge(bytes + 1).hundredths);
  }
}

}  // namespace
}  // namespace orrery::api
