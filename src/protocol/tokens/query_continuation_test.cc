#include "protocol/tokens/query_continuation.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "protocol/tokens/gateway_continuation.h"

namespace orrery {
namespace {

QueryPosition longest() {
  const Epk epk{std::string(kBoundaryBytesMax, '\xFF')};
  QueryPosition position;
  position.query = ~0ull;
  position.at = {epk, {~0ull}, epk, {{epk, {~0ull}}}};
  position.rows.skipped = position.rows.emitted = ~0ull;
  position.rows.key = std::string(RowPosition::kKeyBytesMax, '\xFF');
  position.rows.cut_rows = position.rows.cut_hash = ~0ull;
  position.rows.partial = {{~0ull}, ~0u};
  position.rows.others.assign(RowPosition::kOthersMax, position.rows.partial);
  position.suspended = ~0ull;
  return position;
}

TEST(QueryContinuation, CarriesAPosition) {
  QueryPosition position;
  EXPECT_EQ(decode_query_continuation(encode_continuation(position)).value(), position);
  position.query = 17;
  position.at.after = DocumentNumber{42};
  EXPECT_EQ(decode_query_continuation(encode_continuation(position)).value(), position);
  position.rows.key = "";
  position.rows.emitted = 3;
  EXPECT_EQ(decode_query_continuation(encode_continuation(position)).value(), position);
  position.rows.partial = {DocumentNumber{43}, 2};
  EXPECT_EQ(decode_query_continuation(encode_continuation(position)).value(), position);
  position.rows.partial = {};
  position.rows.others = {{DocumentNumber{44}, 1}, {DocumentNumber{45}, 2}};
  position.at.rests = {{Epk{"a"}, {3}}, {Epk{"b"}, {2}}};
  EXPECT_EQ(decode_query_continuation(encode_continuation(position)).value(), position);
  position.rows.cut_rows = 5;
  position.rows.cut_hash = 6;
  EXPECT_EQ(decode_query_continuation(encode_continuation(position)).value(), position);
  EXPECT_EQ(decode_query_continuation(encode_continuation(longest())).value(), longest());
}

TEST(QueryContinuation, IsShortAsciiWithoutSpaces) {
  const std::string token = encode_continuation(longest());
  EXPECT_LT(token.size(), 1024u);
  EXPECT_TRUE(std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7F; }));
}

TEST(QueryContinuation, IsWrappedWithTheRangeThatIsReadNext) {
  QueryPosition position;
  position.query = 17;
  position.at = {Epk{"\x10"}, {42}, Epk{"\x20"}, {}};
  const auto told = unwrap_token(encode_gateway_continuation(position)).value();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].range, (EpkRange{Epk{"\x10"}, Epk{"\x20"}}));
  EXPECT_EQ(decode_query_continuation(told[0].token).value(), position);
  position.rows.key = "sorted";
  EXPECT_EQ(unwrap_token(encode_gateway_continuation(position)).value()[0].range, EpkRange());
}

TEST(QueryContinuation, IsBareWhereItWouldBeTooLong) {
  EXPECT_EQ(encode_gateway_continuation(longest()), encode_continuation(longest()));
}

TEST(QueryContinuation, RefusesForeignTokens) {
  const std::string token = encode_continuation(longest());
  for (const std::string& broken :
       {std::string(), std::string("x"), token + "A", token.substr(1), token.substr(0, 40),
        "A" + token.substr(1), encode_continuation(ReadFeedPosition{})}) {
    const auto refused = decode_query_continuation(broken);
    ASSERT_FALSE(refused) << broken;
    EXPECT_EQ(refused.error().code(), ErrorCode::BadRequest);
    EXPECT_TRUE(refused.error().message().starts_with("Invalid Continuation Token"));
  }
}

}  // namespace
}  // namespace orrery
