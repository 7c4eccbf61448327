#include "protocol/tokens/continuation.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "protocol/tokens/sealed_token.h"

namespace orrery {
namespace {

constexpr std::string_view kMalformed =
    "The continuation token is malformed; send back x-ms-continuation exactly as it was received";

ReadFeedPosition position() {
  return {Epk::from_hex("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF").value(),
          DocumentNumber::make(RangeId{2}, 42),
          Epk::max(),
          {}};
}

TEST(Continuation, CarriesAPositionInAReadFeed) {
  for (const ReadFeedPosition& value :
       {position(), ReadFeedPosition{},
        ReadFeedPosition{Epk{std::string(110, '\xFE')}, {~0ull}, {}, {}},
        ReadFeedPosition{Epk{"a"}, {7}, Epk{"b"}, {{Epk{"cd"}, {5}}}},
        ReadFeedPosition{Epk{"a"}, {7}, Epk{"b"}, {{Epk{"cd"}, {5}}, {Epk{"e"}, {9}}}}}) {
    const auto decoded = decode_read_feed_continuation(encode_continuation(value));
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(*decoded, value);
  }
}

TEST(Continuation, CarriesAPositionInAList) {
  const ListPosition value{std::string("\x2B\x11\0\0", 4)};
  EXPECT_EQ(decode_list_continuation(encode_continuation(value)).value(), value);
  EXPECT_EQ(decode_list_continuation(encode_continuation(ListPosition{})).value(), ListPosition{});
}

TEST(Continuation, IsTheSameAfterARestart) {
  // Written by earlier builds: a change here breaks clients that are between two pages.
  const auto first = decode_read_feed_continuation("EQAAAgAAAAAqH____________________7jZ3yA");
  ASSERT_TRUE(first);
  ReadFeedPosition expected = position();
  expected.range_max.reset();
  EXPECT_EQ(*first, expected);

  const std::string bytes("\x12\0\0\0\0\0\0\0\7\1a\1b\0\0\0\0\0\0\0\5cd", 23);
  const auto second = decode_read_feed_continuation(sealed_token::seal(bytes));
  ASSERT_TRUE(second);
  EXPECT_EQ(*second, (ReadFeedPosition{Epk{"a"}, {7}, Epk{"b"}, {{Epk{"cd"}, {5}}}}));
}

TEST(Continuation, RestsThatDoNotFitBecomeOneFromWhichOnNothingIsLeftOut) {
  ReadFeedPosition value = position();
  for (std::uint64_t i = 0; i < 40; ++i) {
    value.rests.push_back({Epk{std::string(16, static_cast<char>('A' + i))}, {100 - i}});
  }
  const std::string token = encode_continuation(value);
  EXPECT_LT(token.size(), 1024u);
  const auto decoded = decode_read_feed_continuation(token);
  ASSERT_TRUE(decoded);
  ASSERT_GT(decoded->rests.size(), 15u);
  EXPECT_TRUE(std::equal(decoded->rests.begin(), decoded->rests.end() - 1, value.rests.begin()));
  EXPECT_EQ(decoded->rests.back(), value.rests.back());
}

TEST(Continuation, IsShortAsciiWithoutSpaces) {
  const std::string longest =
      encode_continuation(ReadFeedPosition{Epk{std::string(kBoundaryBytesMax, '\xFF')},
                                           {~0ull},
                                           Epk{std::string(kBoundaryBytesMax, '\xFF')},
                                           {{Epk{std::string(kBoundaryBytesMax, '\xFF')}, {1}}}});
  EXPECT_LT(longest.size(), 1024u);
  EXPECT_TRUE(std::ranges::all_of(longest, [](char c) { return c > 0x20 && c < 0x7F; }));
  EXPECT_LT(encode_continuation(position()).size(), 200u);
}

TEST(Continuation, RefusesForeignTokens) {
  const std::string token = encode_continuation(position());
  const std::string list_token = encode_continuation(ListPosition{"abcd"});
  for (const std::string& broken :
       {std::string(), std::string("abc"), std::string("-RID:~KxEAAJE-AgA=#RT:1#TRC:100"),
        token.substr(1), token.substr(0, token.size() - 1), token + "A", token + "=", " " + token,
        token.substr(0, token.size() - 4), list_token, std::string(5000, 'A')}) {
    const auto result = decode_read_feed_continuation(broken);
    ASSERT_FALSE(result.has_value()) << broken;
    EXPECT_EQ(result.error().code(), ErrorCode::BadRequest);
    EXPECT_EQ(result.error().message(), kMalformed);
  }
  ASSERT_FALSE(decode_list_continuation(token).has_value());
  EXPECT_EQ(decode_list_continuation(token).error().message(), kMalformed);
}

TEST(Continuation, NoticesEveryChangedCharacter) {
  const std::string token = encode_continuation(position());
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(decode_read_feed_continuation(changed).has_value()) << i;
  }
}

}  // namespace
}  // namespace orrery
