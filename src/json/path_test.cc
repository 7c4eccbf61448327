#include "json/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::json {
namespace {

using Path = std::vector<Step>;

Step name(std::string text) { return Step(std::move(text)); }
Step place(std::uint64_t index) { return Step(index); }

std::vector<std::string> read(const std::vector<Path>& paths, const Value& document) {
  PathSet set;
  for (std::size_t i = 0; i < paths.size(); ++i) EXPECT_EQ(set.add(paths[i]), i);
  std::vector<Value> found(set.size());
  set.read(document, found);
  std::vector<std::string> texts;
  for (const Value& value : found) texts.push_back(value.is_undefined() ? "-" : value.to_text());
  return texts;
}

/// From the text, from a spread tree, and one path at a time, which must all be the same.
std::vector<std::string> read(const std::vector<Path>& paths, std::string_view text) {
  const auto texts = read(paths, Value::of_checked(text));
  Value tree = Value::of_checked(text);
  if (tree.is_object()) tree.members();
  if (tree.is_array()) tree.elements();
  EXPECT_EQ(read(paths, tree), texts);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(read({paths[i]}, Value::of_checked(text)).front(), texts[i]) << text << ' ' << i;
  }
  return texts;
}

TEST(PathSet, FindsWhatIsAtEachPath) {
  EXPECT_THAT(
      read({{name("b")},
            {name("a"), name("x")},
            {name("a")},
            {name("l"), place(1)},
            {name("l"), place(0), name("k")},
            {name("missing"), name("x")},
            {name("b"), name("x")},
            {name("z")}},
           R"({"s":"}{","a":{"w":[1,{}],"x":"1"},"l":[{"k":true},[2, 3],4],"b":null,"z":1.50})"),
      testing::ElementsAre("null", "\"1\"", R"({"w":[1,{}],"x":"1"})", "[2, 3]", "true", "-", "-",
                           "1.50"));
}

TEST(PathSet, ThePathOfNoStepsIsTheDocument) {
  EXPECT_THAT(read({{}, {name("a")}}, R"({"a":1,"b":2})"),
              testing::ElementsAre(R"({"a":1,"b":2})", "1"));
  EXPECT_THAT(read({{}, {name("a")}}, "17"), testing::ElementsAre("17", "-"));
}

TEST(PathSet, OfMembersOfOneNameTheFirstCounts) {
  EXPECT_THAT(read({{name("a")}, {name("c"), name("d")}, {name("e")}},
                   R"({"a":1,"c":{"x":1},"\u0061":2,"c":{"d":3},"e":4})"),
              testing::ElementsAre("1", "-", "4"));
}

TEST(PathSet, NamesWithEscapesAreFound) {
  EXPECT_THAT(read({{name("é\"")}}, R"({"\u00e9\"":1})"), testing::ElementsAre("1"));
}

TEST(PathSet, ReadsOnlyAPartOfItself) {
  PathSet set;
  const std::vector<Path> paths = {
      {name("a")}, {name("a"), name("x")}, {name("b"), place(1)}, {name("c")}, {}};
  for (const Path& path : paths) set.add(path);
  const std::vector<std::size_t> slots = {1, 3};
  std::vector<Value> found(set.size(), Value::null());
  set.only(slots).read(Value::of_checked(R"({"a":{"x":1},"b":[2,3],"c":4})"), found);
  std::vector<std::string> texts;
  for (const Value& value : found) texts.push_back(value.is_undefined() ? "-" : value.to_text());
  EXPECT_THAT(texts, testing::ElementsAre("-", "1", "-", "4", "-"));
}

TEST(PathSet, ManyNamesAreFound) {
  std::vector<Path> paths;
  std::string text = "{";
  std::vector<std::string> expected;
  for (int i = 199; i >= 0; --i) {
    paths.push_back({name("n" + std::to_string(i)), place(i % 3)});
    expected.push_back(std::to_string(i % 3));
  }
  for (int i = 0; i < 200; ++i) text += "\"n" + std::to_string(i) + "\":[0,1,2],";
  text += "\"n7\":[8,8,8]}";
  EXPECT_EQ(read(paths, text), expected);
}

TEST(PathSet, TheSamePathHasTheSamePlace) {
  PathSet set;
  EXPECT_EQ(set.add(Path{name("a"), place(1)}), 0u);
  EXPECT_EQ(set.add(Path{name("a")}), 1u);
  EXPECT_EQ(set.add(Path{name("a"), place(1)}), 0u);
  EXPECT_EQ(set.add(Path{name("a"), name("1")}), 2u);
  EXPECT_EQ(set.size(), 3u);
}

TEST(PathSet, PathsAndTextsDeeperThanDocumentsAreSurvived) {
  Path path(10'000, name("a"));
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "{\"a\":";
  EXPECT_THAT(read({path}, Value::of_checked(text)), testing::ElementsAre("-"));
}

TEST(PathSet, BrokenTextIsSurvived) {
  for (const std::string_view text : {"{", "{\"a\"", "{\"a\":", "{\"a\":{", "{\"a\":{\"b\":", "[",
                                      "[1", "{\"a\":[", "{\"a\":1]", ""}) {
    read({{name("a"), name("b")}, {name("a")}, {name("a"), place(0)}, {place(3)}},
         Value::of_checked(text));
  }
}

}  // namespace
}  // namespace orrery::json
