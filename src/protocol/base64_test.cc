#include "protocol/base64.h"

#include <array>

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Base64, KnowsTheVectorsOfRfc4648) {
  const std::pair<std::string, std::string> vectors[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text), bytes);
  }
}

TEST(Base64, SpellsTheLastTwoDigitsByAlphabet) {
  EXPECT_EQ(base64_encode("\xFB\xFF\xBF"), "+/+/");
  EXPECT_EQ(base64_encode("\xFB\xFF\xBF", Base64Alphabet::Rid), "+-+-");
  EXPECT_EQ(base64_encode("\xFB\xFF\xBF", Base64Alphabet::Url), "-_-_");
  EXPECT_EQ(base64_encode("\xFB", Base64Alphabet::Url), "-w");
  EXPECT_EQ(base64_decode("-w", Base64Alphabet::Url), "\xFB");
  EXPECT_EQ(base64_decode("-w==", Base64Alphabet::Url), std::nullopt);
  EXPECT_EQ(base64_decode("+-+-"), std::nullopt);
  EXPECT_EQ(base64_decode("+/+/", Base64Alphabet::Rid), std::nullopt);
}

TEST(Base64, RefusesWhatItWouldNotWrite) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "Z===", "====", "=", "Zh==", "Zm9=", "Zm 9",
                           "Zm9v\n", "Zg==Zg==", "Zm9*"}) {
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
  }
}

TEST(Base64, DecodesEveryByteBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    for (auto alphabet : {Base64Alphabet::Standard, Base64Alphabet::Rid, Base64Alphabet::Url}) {
      const std::string text = base64_encode(bytes, alphabet);
      EXPECT_EQ(text.size(), base64_size(bytes.size(), alphabet));
      EXPECT_EQ(base64_decode(text, alphabet), bytes);
    }
  }
}

TEST(Base64, NeverWritesBeyondTheRoomGiven) {
  std::array<std::uint8_t, 2> room;
  EXPECT_EQ(read_base64("Zm9v", Base64Alphabet::Standard, room), std::nullopt);
  EXPECT_EQ(read_base64("Zm8=", Base64Alphabet::Standard, room), 2u);
}

}  // namespace
}  // namespace orrery
