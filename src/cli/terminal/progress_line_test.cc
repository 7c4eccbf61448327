#include "cli/terminal/progress_line.h"

#include <gtest/gtest.h>

namespace orrery::cli {
namespace {

TEST(ProgressLine, TellsWhatIsDoneAndWhatIsLeft) {
  EXPECT_EQ(ProgressLine::text("copy", {1000, 5000, {}}, 250, 80),
            "copy: 1000 documents, 250/s, 5000 behind, 20 s left");
  EXPECT_EQ(ProgressLine::text("copy", {1000, 0, "2 dead letters"}, 0, 80),
            "copy: 1000 documents, 0/s, up to date, 2 dead letters");
  EXPECT_EQ(ProgressLine::text("copy", {1000, {}, {}}, 3, 80), "copy: 1000 documents, 3/s");
}

TEST(ProgressLine, TimeIsToldInAUnitThatFits) {
  EXPECT_EQ(ProgressLine::text("copy", {0, 60'000, {}}, 100, 80),
            "copy: 0 documents, 100/s, 60000 behind, 10 min left");
  EXPECT_EQ(ProgressLine::text("copy", {0, 3'600'000, {}}, 100, 80),
            "copy: 0 documents, 100/s, 3600000 behind, 10 h left");
}

TEST(ProgressLine, IsCutBeforeItWraps) {
  EXPECT_EQ(ProgressLine::text("copy", {1000, 5000, {}}, 250, 20), "copy: 1000 document");
}

TEST(ProgressLine, SaysNothingInAPipe) {
  std::FILE* file = std::tmpfile();
  {
    ProgressLine line(file, "copy");
    line.show({1, 2, {}});
  }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace orrery::cli
