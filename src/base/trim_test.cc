#include "base/trim.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Trimmed, BlanksGoAtBothEndsOnly) {
  EXPECT_EQ(trimmed(" \ta b\t "), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed("a\r"), "a\r");
  EXPECT_EQ(trimmed("a\r", " \t\r"), "a");
}

TEST(Trimmed, OfBlanksAloneNothingIsLeft) {
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed(" \t "), "");
}

}  // namespace
}  // namespace orrery
