#include "protocol/tokens/gateway_continuation.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr std::string_view kRid = "a0NPAOszCpOChB4AAAAAAA==";

TEST(GatewayContinuation, ATokenIsWrappedWithItsRange) {
  const EpkRange range{Epk::from_hex("05C1").value(), Epk::max()};
  const std::string text = wrap_token("abc", range);
  EXPECT_EQ(text, R"({"token":"abc","range":{"min":"05C1","max":"FF"}})");
  EXPECT_TRUE(is_wrapped_token(text));
  EXPECT_EQ(unwrap_token(text).value(), (std::vector<RangeToken>{{"abc", range}}));
  EXPECT_EQ(unwrap_token("[" + text + "]").value(), (std::vector<RangeToken>{{"abc", range}}));
}

TEST(GatewayContinuation, ARangeThatHasNotBegunHasNoToken) {
  const auto tokens = unwrap_token(R"([{"token":"x","range":{"min":"","max":"10"}},)"
                                   R"({"token":null,"range":{"min":"10","max":"FF"}}])");
  ASSERT_TRUE(tokens.has_value());
  ASSERT_EQ(tokens->size(), 2u);
  EXPECT_EQ(tokens->front().token, "x");
  EXPECT_EQ(tokens->back(), (RangeToken{"", {Epk{"\x10"}, Epk::max()}}));
}

TEST(GatewayContinuation, OtherJsonIsRefused) {
  for (const std::string_view text :
       {"{", "[]", "{}", R"({"token":"x"})", R"({"token":7,"range":{"min":"","max":"FF"}})",
        R"({"token":"x","range":{"min":"","max":"0"}})",
        R"({"token":"x","range":{"min":"FF","max":""}})", R"({"token":"x","range":{"min":""}})",
        R"([1])",
        R"([{"token":"x","range":{"min":"10","max":"FF"}},)"
        R"({"token":"x","range":{"min":"","max":"10"}}])"}) {
    const auto refused = unwrap_token(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_TRUE(refused.error().message().starts_with("Invalid Continuation Token")) << text;
  }
}

TEST(GatewayContinuation, TokensOfTheServiceTellADocumentAndRows) {
  const Rid rid = Rid::parse(kRid).value();
  const std::string text = "-RID:~" + std::string(kRid) + "#RT:1#TRC:2#ISV:2#IEO:65567#QCF:8";
  EXPECT_TRUE(is_service_token(text));
  EXPECT_EQ(parse_service_token(text).value(), (ServiceToken{rid, false, 2}));
  EXPECT_EQ(parse_service_token("+RID:" + std::string(kRid)).value(), (ServiceToken{rid, true, 0}));
}

TEST(GatewayContinuation, TokensOfTheServiceThatCannotBeReadAreRefused) {
  const std::string good = "-RID:~" + std::string(kRid);
  for (const std::string& text :
       {std::string("-RID:~abc#RT:1#TRC:2"), std::string("-RID:"), std::string("RID:x"),
        good + "#RT:1#TRC:x", good + "#RT:1#TRC:2#RTD:vjAy", std::string("-RID:~a0NPAOszCpM=")}) {
    EXPECT_FALSE(parse_service_token(text)) << text;
  }
}

}  // namespace
}  // namespace orrery
