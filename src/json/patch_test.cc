#include "json/patch.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::json {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Result<Patch> parsed(std::string_view operations) {
  const auto value = Value::parse(operations);
  EXPECT_TRUE(value) << operations;
  return value ? Patch::parse(*value) : Result<Patch>(value.error());
}

/// The text of the document after the operations, or the message of the refusal.
std::string patched(std::string_view document, std::string_view operations) {
  const auto patch = parsed(operations);
  if (!patch) return patch.error().message();
  Value value = Value::of_checked(document);
  const auto done = patch->apply(value);
  if (!done) {
    EXPECT_EQ(done.error().code(), ErrorCode::BadRequest);
    return done.error().message();
  }
  return value.to_text();
}

// ── paths ────────────────────────────────────────────────────────────────────────────────────────

TEST(Pointer, IsItsSegments) {
  EXPECT_THAT(parse_pointer("/a/b").value(), ElementsAre("a", "b"));
  EXPECT_THAT(parse_pointer("/").value(), ElementsAre(""));
  EXPECT_THAT(parse_pointer("/a//b/").value(), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(parse_pointer("/a~1b/m~0n/~01").value(), ElementsAre("a/b", "m~n", "~1"));
}

TEST(Pointer, OfTheWholeDocumentOrBrokenIsRefused) {
  for (const auto* text : {"", "a", "a/b", "/a~", "/~2", "/a~b"}) {
    const auto pointer = parse_pointer(text);
    ASSERT_FALSE(pointer) << text;
    EXPECT_EQ(pointer.error().code(), ErrorCode::BadRequest);
  }
}

// ── each operation ───────────────────────────────────────────────────────────────────────────────

TEST(Patch, AddCreatesOrOverwritesAMember) {
  EXPECT_EQ(patched(R"({"a":1})", R"([{"op":"add","path":"/b","value":{"x": [1, 2]}}])"),
            R"({"a":1,"b":{"x": [1, 2]}})");
  EXPECT_EQ(patched(R"({"a":1,"b":2})", R"([{"op":"add","path":"/a","value":null}])"),
            R"({"a":null,"b":2})");
  EXPECT_EQ(patched(R"({"a":{"b":{}}})", R"([{"op":"add","path":"/a/b/c","value":"x"}])"),
            R"({"a":{"b":{"c":"x"}}})");
  EXPECT_EQ(patched(R"({"o":{}})", R"([{"op":"add","path":"/o/0","value":1}])"), R"({"o":{"0":1}})")
      << "numbers name members of objects";
  EXPECT_EQ(patched("{}", R"([{"op":"add","path":"/a~1b~0\"","value":1}])"), R"({"a/b~\"":1})");
  EXPECT_EQ(patched(R"({"A":1})", R"([{"op":"add","path":"/a","value":1}])"), R"({"A":1,"a":1})")
      << "names are case-sensitive";
}

TEST(Patch, AddInsertsIntoAnArray) {
  const auto* const array = R"({"l":[1,2]})";
  EXPECT_EQ(patched(array, R"([{"op":"add","path":"/l/0","value":0}])"), R"({"l":[0,1,2]})");
  EXPECT_EQ(patched(array, R"([{"op":"add","path":"/l/1","value":0}])"), R"({"l":[1,0,2]})");
  EXPECT_EQ(patched(array, R"([{"op":"add","path":"/l/2","value":0}])"), R"({"l":[1,2,0]})");
  EXPECT_EQ(patched(array, R"([{"op":"add","path":"/l/-","value":0}])"), R"({"l":[1,2,0]})");
  EXPECT_THAT(patched(array, R"([{"op":"add","path":"/l/3","value":0}])"),
              HasSubstr("out of array bounds"));
  for (const auto* index : {"x", "01", "-1", "1.0", "", "99999999999999999999999"}) {
    EXPECT_THAT(patched(array, fmt::format(R"([{{"op":"add","path":"/l/{}","value":0}}])", index)),
                StartsWith("For Operation(1): Add Operation: "))
        << index;
  }
}

TEST(Patch, AddNeedsAParent) {
  EXPECT_EQ(patched(R"({"a":1})", R"([{"op":"add","path":"/x/y","value":0}])"),
            "For Operation(1): Add Operation can only create a child object of an existing "
            "node(array or object) and cannot create path recursively, no path found beyond: 'x'.");
  EXPECT_THAT(patched(R"({"a":1})", R"([{"op":"add","path":"/a/y","value":0}])"),
              HasSubstr("no path found beyond: 'a'."));
  EXPECT_THAT(patched(R"({"a":[{}]})", R"([{"op":"add","path":"/a/1/y","value":0}])"),
              HasSubstr("no path found beyond: '1'."));
  EXPECT_THAT(patched(R"({"a":[{}]})", R"([{"op":"add","path":"/a/-/y","value":0}])"),
              HasSubstr("no path found beyond: '-'."));
}

TEST(Patch, SetOverwritesAnElementAndElseIsAdd) {
  EXPECT_EQ(patched(R"({"l":[1,2]})", R"([{"op":"set","path":"/l/1","value":0}])"),
            R"({"l":[1,0]})");
  EXPECT_EQ(patched(R"({"l":[1,2]})", R"([{"op":"set","path":"/l/2","value":0}])"),
            R"({"l":[1,2,0]})");
  EXPECT_EQ(patched(R"({"l":[1,2]})", R"([{"op":"set","path":"/l/-","value":0}])"),
            R"({"l":[1,2,0]})");
  EXPECT_THAT(patched(R"({"l":[1,2]})", R"([{"op":"set","path":"/l/3","value":0}])"),
              HasSubstr("out of array bounds"));
  EXPECT_EQ(patched(R"({"a":1})", R"([{"op":"set","path":"/a","value":2}])"), R"({"a":2})");
  EXPECT_EQ(patched("{}", R"([{"op":"set","path":"/a","value":2}])"), R"({"a":2})");
  EXPECT_THAT(patched("{}", R"([{"op":"set","path":"/a/b","value":2}])"),
              HasSubstr("Set Operation can only create a child object"));
}

TEST(Patch, ReplaceNeedsItsTarget) {
  EXPECT_EQ(
      patched(
          R"({"a":1,"l":[1]})",
          R"([{"op":"replace","path":"/a","value":2},{"op":"replace","path":"/l/0","value":[]}])"),
      R"({"a":2,"l":[[]]})");
  EXPECT_EQ(patched("{}", R"([{"op":"replace","path":"/a","value":2}])"),
            "For Operation(1): Replace Operation: the node to be replaced is absent: '/a'.");
  EXPECT_THAT(patched("{}", R"([{"op":"replace","path":"/a/b","value":2}])"), HasSubstr("absent"));
  EXPECT_THAT(patched(R"({"l":[]})", R"([{"op":"replace","path":"/l/0","value":2}])"),
              HasSubstr("out of array bounds"));
  EXPECT_THAT(patched(R"({"l":[]})", R"([{"op":"replace","path":"/l/-","value":2}])"),
              HasSubstr("out of array bounds"));
}

TEST(Patch, RemoveNeedsItsTargetAndClosesTheGap) {
  EXPECT_EQ(patched(R"({"a":1,"b":2})", R"([{"op":"remove","path":"/a"}])"), R"({"b":2})");
  EXPECT_EQ(patched(R"({"l":[1,2,3]})", R"([{"op":"remove","path":"/l/1"}])"), R"({"l":[1,3]})");
  EXPECT_THAT(patched("{}", R"([{"op":"remove","path":"/a"}])"),
              HasSubstr("the node to be removed is absent: '/a'"));
  EXPECT_THAT(patched(R"({"l":[1]})", R"([{"op":"remove","path":"/l/1"}])"),
              HasSubstr("out of array bounds"));
  EXPECT_THAT(patched(R"({"l":[1]})", R"([{"op":"remove","path":"/l/-"}])"),
              HasSubstr("out of array bounds"));
}

TEST(Patch, IncrementAddsExactlyWhereItCan) {
  const auto sum = [](std::string_view number, std::string_view value) {
    const auto text = patched(fmt::format(R"({{"n":{}}})", number),
                              fmt::format(R"([{{"op":"incr","path":"/n","value":{}}}])", value));
    return text.starts_with(R"({"n":)") ? text.substr(5, text.size() - 6) : text;
  };
  EXPECT_EQ(sum("1", "1"), "2");
  EXPECT_EQ(sum("1", "-3"), "-2");
  EXPECT_EQ(sum("1", "0.5"), "1.5");
  EXPECT_EQ(sum("1.5", "0.5"), "2");
  EXPECT_EQ(sum("0.1", "0.2"), "0.30000000000000004");
  EXPECT_EQ(sum("9007199254740993", "2"), "9007199254740995") << "beyond what a double tells apart";
  EXPECT_EQ(sum("9007199254740993", "1.0"), "9007199254740994");
  EXPECT_EQ(sum("9223372036854775806", "1"), "9223372036854775807");
  EXPECT_EQ(sum("9223372036854775807", "1"), "9.223372036854776e+18") << "then a double";
  EXPECT_EQ(sum("-9223372036854775808", "-1"), "-9.223372036854776e+18");
  EXPECT_EQ(sum("-0", "0"), "0");
  EXPECT_THAT(sum("1.7e308", "1.7e308"), HasSubstr("beyond what a number can hold"));
}

TEST(Patch, IncrementMakesWhatIsMissingAndRefusesWhatIsNoNumber) {
  EXPECT_EQ(patched("{}", R"([{"op":"incr","path":"/n","value":1.50}])"), R"({"n":1.50})");
  EXPECT_EQ(patched(R"({"l":[1]})", R"([{"op":"incr","path":"/l/0","value":1}])"), R"({"l":[2]})");
  EXPECT_EQ(patched(R"({"n":"1"})", R"([{"op":"incr","path":"/n","value":1}])"),
            "For Operation(1): Increment Operation: the node at '/n' is not a number.");
  EXPECT_THAT(patched("{}", R"([{"op":"incr","path":"/a/n","value":1}])"),
              HasSubstr("Increment Operation can only create a child"));
  for (const auto* value : {R"("1")", "null", "true", "[]", "1e999"}) {
    EXPECT_THAT(
        patched(R"({"n":1})", fmt::format(R"([{{"op":"incr","path":"/n","value":{}}}])", value)),
        HasSubstr("'value' must be a number"));
  }
}

TEST(Patch, MoveRemovesAndAdds) {
  EXPECT_EQ(patched(R"({"a":{"b": 1.0},"c":{}})", R"([{"op":"move","from":"/a/b","path":"/c/d"}])"),
            R"({"a":{},"c":{"d":1.0}})");
  EXPECT_EQ(patched(R"({"a":1,"b":2})", R"([{"op":"move","from":"/a","path":"/b"}])"), R"({"b":1})")
      << "what is there is overwritten";
  EXPECT_EQ(patched(R"({"l":[1,2,3]})", R"([{"op":"move","from":"/l/0","path":"/l/2"}])"),
            R"({"l":[2,3,1]})")
      << "the index counts after the removal";
  EXPECT_EQ(patched(R"({"a":1,"b":2})", R"([{"op":"move","from":"/a","path":"/a"}])"),
            R"({"a":1,"b":2})");
  EXPECT_EQ(patched(R"({"a":{"b":1}})", R"([{"op":"move","from":"/a/b","path":"/a"}])"),
            R"({"a":1})")
      << "upwards over its parent";
  EXPECT_THAT(patched("{}", R"([{"op":"move","from":"/a","path":"/b"}])"),
              HasSubstr("the node to be moved is absent: '/a'"));
  EXPECT_THAT(patched(R"({"a":{}})", R"([{"op":"move","from":"/a","path":"/a/b"}])"),
              HasSubstr("lies below it"));
  EXPECT_THAT(patched(R"({"a":1})", R"([{"op":"move","from":"/a","path":"/x/b"}])"),
              HasSubstr("Move Operation can only create a child"));
}

// ── the list ─────────────────────────────────────────────────────────────────────────────────────

TEST(Patch, OperationsSeeWhatTheOnesBeforeDid) {
  EXPECT_EQ(
      patched(
          R"({"id":"x"})",
          R"([{"op":"set","path":"/o","value":{"n":1,"l":[]}},{"op":"incr","path":"/o/n","value":2},
                        {"op":"add","path":"/o/l/-","value":"a"},{"op":"move","from":"/o/l","path":"/l"},
                        {"op":"remove","path":"/o"}])"),
      R"({"id":"x","l":["a"]})");
}

TEST(Patch, APatchCanBeAppliedAgainAndAgain) {
  const auto patch =
      parsed(R"([{"op":"set","path":"/o","value":{"n":1}},{"op":"incr","path":"/o/n","value":2}])");
  ASSERT_TRUE(patch);
  for (int i = 0; i < 2; ++i) {
    Value value = Value::of_checked("{}");
    ASSERT_TRUE(patch->apply(value));
    EXPECT_EQ(value.to_text(), R"({"o":{"n":3}})");
  }
}

TEST(Patch, MessagesCountOperationsFromOne) {
  EXPECT_THAT(patched(R"({"a":1})", R"([{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}])"),
              StartsWith("For Operation(2): "));
}

TEST(Patch, UntouchedPartsKeepTheirBytes) {
  EXPECT_EQ(
      patched(
          R"({"big":12345678901234567890123, "e" : 1.0e+2,"u":"\u00e4\/","o":{ "x" : [ 1 ,2 ] },"n":1})",
          R"([{"op":"incr","path":"/n","value":1}])"),
      R"({"big":12345678901234567890123,"e":1.0e+2,"u":"\u00e4\/","o":{ "x" : [ 1 ,2 ] },"n":2})");
}

TEST(Patch, HasOneToTenWellFormedOperations) {
  EXPECT_THAT(patched("{}", "[]"), HasSubstr("at least one"));
  std::string ten;
  for (int i = 0; i < 10; ++i) ten += R"({"op":"incr","path":"/n","value":1},)";
  ten.pop_back();
  EXPECT_EQ(patched("{}", "[" + ten + "]"), R"({"n":10})");
  EXPECT_THAT(patched("{}", "[" + ten + R"(,{"op":"remove","path":"/n"}])"),
              HasSubstr("The number of patch operations can't exceed 10"));
  EXPECT_THAT(patched("{}", "{}"), HasSubstr("must be a JSON array"));
  for (const auto* broken :
       {"1", "{}", R"({"op":"copy","path":"/a"})", R"({"op":"Add2","path":"/a","value":1})",
        R"({"op":"add","value":1})", R"({"op":"add","path":"","value":1})",
        R"({"op":"add","path":"a","value":1})", R"({"op":"add","path":7,"value":1})",
        R"({"op":"add","path":"/a"})", R"({"op":"set","path":"/a"})",
        R"({"op":"replace","path":"/a"})", R"({"op":"incr","path":"/a"})",
        R"({"op":"move","path":"/a"})", R"({"op":"move","path":"/a","from":""})"}) {
    EXPECT_THAT(patched("{}", "[" + std::string(broken) + "]"), StartsWith("For Operation(1): "))
        << broken;
  }
}

TEST(Patch, EveryPathIsShownForChecking) {
  const auto patch =
      parsed(R"([{"op":"set","path":"/a","value":1},{"op":"move","from":"/b","path":"/c/d"}])");
  ASSERT_TRUE(patch);
  std::vector<Pointer> seen;
  EXPECT_TRUE(patch->check_paths([&](const Pointer& path) -> Result<> {
    seen.push_back(path);
    return {};
  }));
  EXPECT_THAT(seen, ElementsAre(Pointer{"a"}, Pointer{"c", "d"}, Pointer{"b"}));
  const auto refused = patch->check_paths([](const Pointer& path) -> Result<> {
    if (path != Pointer{"b"}) return {};
    return Error(ErrorCode::BadRequest, "not that");
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "For Operation(2): not that");
}

}  // namespace
}  // namespace orrery::json
