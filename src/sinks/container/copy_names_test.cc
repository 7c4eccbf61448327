#include "sinks/container/copy_names.h"

#include <gtest/gtest.h>

namespace orrery::sinks {
namespace {

TEST(CopyNames, AreTheSameInEveryVersion) {
  const CopyEnds ends{"http://a/", "sky/stars", "rid1", "http://b/", "sky/copy", "rid2"};
  EXPECT_EQ(default_group(ends), "copy-7397e6a45d6516d0");
  EXPECT_EQ(destination_generation(ends), "2f8a570f");
}

}  // namespace
}  // namespace orrery::sinks
