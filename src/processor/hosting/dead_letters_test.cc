#include "processor/hosting/dead_letters.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace orrery::processor {
namespace {

DeadLetter letter() {
  return {R"({"id":"a/b","pk":"x","_lsn":7})",
          "0",
          "\"6\"",
          3,
          "said \"no\"",
          "host-1",
          std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000))};
}

TEST(DeadLetter, IsJsonWithEverythingThatIsKnown) {
  const auto json = nlohmann::json::parse(letter().to_json());
  EXPECT_EQ(json["document"]["pk"], "x");
  EXPECT_EQ(json["range"], "0");
  EXPECT_EQ(json["etagBefore"], "\"6\"");
  EXPECT_EQ(json["attempts"], 3);
  EXPECT_EQ(json["error"], "said \"no\"");
  EXPECT_EQ(json["host"], "host-1");
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20.000Z");
}

TEST(DeadLetter, TheSameChangeHasTheSameIdAndOneThatMayBeStored) {
  const std::string id = dead_letter_id(letter());
  EXPECT_EQ(id, "0:7:a_b");
  DeadLetter again = letter();
  again.attempts = 9;
  EXPECT_EQ(dead_letter_id(again), id);
}

TEST(DeadLetterKeeper, GoesWhereTheOptionsSay) {
  ChangeFeedHostOptions options;
  EXPECT_EQ(dead_letter_keeper(options), nullptr);
  int kept = 0;
  options.dead_letter_callback = [&](const DeadLetter&) { ++kept; };
  dead_letter_keeper(options)(letter());
  EXPECT_EQ(kept, 1);
}

}  // namespace
}  // namespace orrery::processor
