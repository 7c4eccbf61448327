#include <string>

#include <gtest/gtest.h>

#include "query/eval/test_evaluate.h"

namespace orrery::query {
namespace {

constexpr std::string_view kRegexDocument =
    R"({"line": "io=421700; europa=671034; ganymede=1070412", "lines": "one\ntwo\nthree", "n": 3})";

void expect_match(std::initializer_list<EvaluationCase> cases) {
  expect_values(cases, kRegexDocument);
}

TEST(RegexFunctions, Match) {
  expect_match({
      {R"(RegexMatch(c.line, 'eu[a-z]+=6'))", "true"},
      {R"(RegexMatch(c.line, '^eu'))", "false"},
      {R"(RegexMatch(c.line, ''))", "true"},
      {R"(RegexMatch('', ''))", "true"},
      {R"(RegexMatch('', 'a'))", "false"},
      {R"(RegexMatch(c.line, '\\d{7}$'))", "true"},
      {R"(RegexMatch('Ωmega', '^.mega$'))", "true"},
      {R"(RegexMatch(c.n, '3'))", "-"},
      {R"(RegexMatch('3', 3))", "-"},
      {R"(RegexMatch('3', '3', 3))", "-"},
      {R"(RegexMatch(c.missing, '3'))", "-"},
      {R"(RegexMatch('3', '3', undefined))", "-"},
  });
}

TEST(RegexFunctions, TheEndIsAlsoBeforeANewlineThere) {
  expect_match({
      {R"(RegexMatch('abc\n', 'abc$'))", "true"},
      {R"(RegexMatch('abc\n', 'abc\\Z'))", "true"},
      {R"(RegexMatch('abc\n', 'abc\\z'))", "false"},
      {R"(RegexMatch('abc\n', '^abc$', 'i'))", "true"},
      {R"(RegexMatch('abc', 'abc\\Z'))", "true"},
      {R"(RegexMatch('abc\n', 'abc\n$'))", "true"},
      {R"(RegexMatch('abc\n', 'abc\n\\z'))", "true"},
      {R"(RegexMatch('abc\n\n', 'abc$'))", "false"},
      {R"(RegexMatch('abc\n\n', 'abc\\Z', 'm'))", "false"},
      {R"(RegexMatch('abc\n\n', 'abc$', 'm'))", "true"},
      {R"(RegexMatch('abc\nd', 'abc$'))", "false"},
      {R"(RegexMatch('abc\r\n', 'abc$'))", "false"},
      {R"(RegexMatch('\n', '^$'))", "true"},
      {R"(RegexMatch('$\n', '\\$[$]?$'))", "true"},
      {R"(RegexMatch('a', '[\\Z]'))", "-"},
      // The newline is no part of what is found, unless it is asked for.
      {R"(RegexExtract('abc\n', '[a-z]+$'))", "\"abc\""},
      {R"(RegexExtract('abc\n', '(?s).*$'))", "\"abc\\n\""},
      {R"(RegexExtract('abc\n', '(?s).*?$'))", "\"abc\""},
      {R"(RegexExtract('abc\n', 'abc\\s*$'))", "\"abc\\n\""},
      {R"(RegexExtract('abc\n', '(b)(c$)', '', 2))", "\"c\""},
      {R"(RegexExtract('abc\n', '(x$|b)(c$)()', '', 1))", "\"b\""},
      {R"(RegexExtract('abc\n', '(x$|b)(c$)()', '', 2))", "\"c\""},
      {R"(RegexExtract('abc\n', '(?<first>x$|b)(?:c$)', '', 1))", "\"b\""},
      {R"(RegexExtract('abc\n', '(b)c$', '', 2))", "-"},
      {R"(RegexExtractAll('ab cd\n', '[a-z]+( |$)'))", R"(["ab ","cd"])"},
      {R"(RegexExtractAll('ab\n', '$'))", R"(["",""])"},
      {R"(RegexReplace('abc\n', '(b)(c)$', '<$1,$2>'))", "\"a<b,c>\\n\""},
      {R"(RegexReplaceAll('abc\n', '$', '!'))", "\"abc!\\n!\""},
      {R"(RegexReplaceAll('abc\n', '\\w$|^\\w', '!'))", "\"!b!\\n\""},
  });
}

TEST(RegexFunctions, Modifiers) {
  expect_match({
      {R"(RegexMatch('GANYMEDE', 'ganymede'))", "false"},
      {R"(RegexMatch('GANYMEDE', 'ganymede', 'i'))", "true"},
      {R"(RegexMatch('ÄRA', 'ära', 'i'))", "true"},
      {R"(RegexMatch('x', 'a|X', 'i'))", "true"},
      {R"(RegexMatch(c.lines, '^two$'))", "false"},
      {R"(RegexMatch(c.lines, '^two$', 'm'))", "true"},
      {R"(RegexMatch(c.lines, 'one.two'))", "false"},
      {R"(RegexMatch(c.lines, 'one.two', 's'))", "true"},
      {R"(RegexMatch(c.lines, '^TWO.three$', 'mis'))", "true"},
      {R"(RegexMatch(c.lines, '^TWO.three$', 'iismm'))", "true"},
      {R"(RegexMatch('x', 'x', ''))", "true"},
      {R"(RegexMatch('x', 'x', 'g'))", "-"},
      {R"(RegexMatch('x', 'x', 'I'))", "-"},
      {R"(RegexMatch('x', 'x', 'i '))", "-"},
  });
}

TEST(RegexFunctions, SpacesOfAnExtendedPatternDoNotCount) {
  expect_match({
      {R"(RegexMatch('Io', '  i o # the first\n', 'xi'))", "true"},
      {R"(RegexMatch('ab', 'a # one\n b', 'x'))", "true"},
      {R"(RegexMatch('ab', 'a # one', 'x'))", "true"},
      {R"(RegexMatch('a b', 'a\\ b', 'x'))", "true"},
      {R"(RegexMatch('ab', 'a\\ b', 'x'))", "false"},
      {R"(RegexMatch('a b', 'a[ ]b', 'x'))", "true"},
      {R"(RegexMatch('a#b', 'a\\#b', 'x'))", "true"},
      {R"(RegexMatch('a#b', 'a[#]b', 'x'))", "true"},
      {R"(RegexMatch('] x', '[] ] \\x20 x', 'x'))", "true"},
      {R"(RegexMatch('] x', '[^] a] x', 'x'))", "false"},
      {R"(RegexMatch(' ', '^[[:space:] ]$', 'x'))", "true"},
      {R"(RegexMatch('a b', '\\Qa b\\E $', 'x'))", "true"},
      {R"(RegexMatch('aaa', '^ a {3} $', 'x'))", "true"},
      {R"(RegexMatch('a b', 'a b'))", "true"},
      {R"(RegexMatch('a#b', 'a#b'))", "true"},
  });
}

TEST(RegexFunctions, WordsOfTheOtherDialectAreUnderstood) {
  expect_match({
      {R"(RegexExtract('42 km', '(?<count>\\d+) (?<unit>\\w+)', '', 2))", "\"km\""},
      {R"(RegexMatch('ab', 'a(?# nothing )b'))", "true"},
      {R"(RegexMatch('a\u000bb', 'a\\sb'))", "true"},
      {R"(RegexMatch('a\u000bb', 'a[\\s]b'))", "true"},
      {R"(RegexMatch('a\u000bb', 'a\\Sb'))", "false"},
      {R"(RegexMatch('a\nb', '^[\\s\\S]+$'))", "true"},
      {R"(RegexMatch('\u000b', '[\\S]'))", "false"},
      {R"(RegexMatch('é', '[\\S]'))", "true"},
      {R"(RegexMatch('a\u2028b', 'a\\vb'))", "true"},
      {R"(RegexMatch('a b', 'a\\hb'))", "true"},
      {R"(RegexMatch('a\nb', 'a\\hb'))", "false"},
      {R"(RegexMatch('a\r\nb', '^a\\Rb$'))", "true"},
      {R"(RegexMatch('a\nb', 'a\\Nb', 's'))", "false"},
      {R"(RegexMatch('(x)', '\\Q(x)\\E'))", "true"},
      {R"(RegexMatch('C', '\\QC\\E'))", "true"},
  });
}

TEST(RegexFunctions, WhatIsNoPatternIsUndefined) {
  expect_match({
      {R"(RegexMatch('a', '('))", "-"},
      {R"(RegexMatch('a', '[a'))", "-"},
      {R"(RegexMatch('a', '*a'))", "-"},
      {R"(RegexMatch('a', 'a{2,1}'))", "-"},
      {R"(RegexMatch('a', '\\'))", "-"},
      {R"(RegexMatch('aa', '(a)\\1'))", "-"},
      {R"(RegexMatch('ab', 'a(?=b)'))", "-"},
      {R"(RegexMatch('ab', '(?<=a)b'))", "-"},
      {R"(RegexMatch('ab', '(?<!a)b'))", "-"},
      {R"(RegexMatch('ab', '(?>a)b'))", "-"},
      {R"(RegexMatch('ab', 'a++b'))", "-"},
      {R"(RegexMatch('é', '\\C'))", "-"},
      {R"(RegexMatch('é', '[\\C]'))", "-"},
      {R"(RegexMatch('a', '[\\H]'))", "-"},
      {R"(RegexExtract('a', '('))", "-"},
      {R"(RegexExtractAll('a', '('))", "-"},
      {R"(RegexReplace('a', '(', 'b'))", "-"},
      {R"(RegexReplaceAll('a', 'a', 'b', 'q'))", "-"},
  });
  // Asked again, it still is none, nor does it spoil others.
  expect_match({{R"(RegexMatch('a', '('))", "-"}, {R"(RegexMatch('a', 'a'))", "true"}});
}

TEST(RegexFunctions, Extract) {
  expect_match({
      {R"(RegexExtract(c.line, '[a-z]+=\\d+'))", "\"io=421700\""},
      {R"(RegexExtract(c.line, 'EUROPA=\\d+', 'i'))", "\"europa=671034\""},
      {R"(RegexExtract(c.line, '([a-z]+)=(\\d+);$'))", "-"},
      {R"(RegexExtract(c.line, '([a-z]+)=(\\d+)$', '', 0))", "\"ganymede=1070412\""},
      {R"(RegexExtract(c.line, '([a-z]+)=(\\d+)$', '', 1))", "\"ganymede\""},
      {R"(RegexExtract(c.line, '([a-z]+)=(\\d+)$', '', 2))", "\"1070412\""},
      {R"(RegexExtract(c.line, '([a-z]+)=(\\d+)$', '', 3))", "-"},
      {R"(RegexExtract(c.line, '([a-z]+)', '', -1))", "-"},
      {R"(RegexExtract(c.line, '([a-z]+)', '', 0.5))", "-"},
      {R"(RegexExtract(c.line, '([a-z]+)', '', 'x'))", "-"},
      {R"(RegexExtract('b', '(a)|b', '', 1))", "-"},
      {R"(RegexExtract('b', '(a?)b', '', 1))", "\"\""},
      {R"(RegexExtract('', 'x*'))", "\"\""},
      {R"(RegexExtract('aé😀', '.$'))", "\"😀\""},
      {R"(RegexExtractAll(c.line, '\\d+'))", R"(["421700","671034","1070412"])"},
      {R"(RegexExtractAll(c.line, '(\\w)\\w*=', '', 1))", R"(["i","e","g"])"},
      {R"(RegexExtractAll(c.lines, '^T.*', 'im'))", R"(["two","three"])"},
      {R"(RegexExtractAll(c.line, 'callisto'))", "[]"},
      {R"(RegexExtractAll('ab', '(a)|b', '', 1))", R"(["a"])"},
      {R"(RegexExtractAll('aé', 'x*'))", R"(["","",""])"},
      {R"(RegexExtractAll('aaa', '^a'))", R"(["a"])"},
      {R"(RegexExtractAll('aé', '\\B'))", R"([""])"},
      {R"(RegexExtractAll(c.line, '\\d+', '', 1))", "-"},
      {R"(RegexExtractAll(c.n, '\\d+'))", "-"},
  });
}

TEST(RegexFunctions, Replace) {
  expect_match({
      {R"(RegexReplace('io io', 'io', 'x'))", "\"x io\""},
      {R"(RegexReplaceAll('io io', 'io', 'x'))", "\"x x\""},
      {R"(RegexReplaceAll('Io io', 'IO', 'x', 'i'))", "\"x x\""},
      {R"(RegexReplace('io', 'z', 'x'))", "\"io\""},
      {R"(RegexReplaceAll('io', 'z', 'x'))", "\"io\""},
      {R"(RegexReplaceAll('2027-11-05', '(\\d+)-(\\d+)-(\\d+)', '$3.$2.$1'))", "\"05.11.2027\""},
      {R"(RegexReplaceAll('a1b2', '[a-z](\\d)', '<$0:$1>'))", "\"<a1:1><b2:2>\""},
      {R"(RegexReplace('ab', '(a)', '${1}1$$$2$x$'))", "\"a1$$2$x$b\""},
      {R"(RegexReplace('ab', '(a)', '$10'))", "\"a0b\""},
      {R"(RegexReplace('ab', '(a)', '${10}'))", "\"${10}b\""},
      {R"(RegexReplace('ab', '(a)', '${1'))", "\"${1b\""},
      {R"(RegexReplace('b', '(a)?b', '[$1]'))", "\"[]\""},
      {R"(RegexReplaceAll('abc', 'x*', '-'))", "\"-a-b-c-\""},
      {R"(RegexReplaceAll('é😀', '', '-'))", "\"-é-😀-\""},
      {R"(RegexReplaceAll('abc', 'b*', '-'))", "\"-a--c-\""},
      {R"(RegexReplaceAll('', '^', 'x'))", "\"x\""},
      {R"(RegexReplaceAll('a', 'a', ''))", "\"\""},
      {R"(RegexReplaceAll('a\\b', '\\\\', '/'))", "\"a/b\""},
      {R"(RegexReplace('a', 'a', 1))", "-"},
      {R"(RegexReplace(1, 'a', 'b'))", "-"},
  });
}

std::string document_with(std::string_view text) {
  return R"({"text": ")" + std::string(text) + "\"}";
}

TEST(RegexFunctions, NoPatternTakesForever) {
  // A backtracking search would try 2^n ways.
  const std::string document = document_with(std::string(50'000, 'a'));
  EXPECT_EQ(evaluated(R"(RegexMatch(c.text, '^(a+)+$'))", document), "true");
  EXPECT_EQ(evaluated(R"(RegexMatch(c.text, '^(a+)+b$'))", document), "false");
  EXPECT_EQ(evaluated(R"(RegexMatch(c.text, '^(a|aa)+b$'))", document), "false");
  EXPECT_EQ(evaluated(R"(RegexMatch(c.text, '(x+x+)+y'))", document), "false");
}

TEST(RegexFunctions, TooMuchWorkIsUndefined) {
  const std::string document = document_with(std::string(1'000'000, 'a'));
  // A program of a thousand instructions for each of so many characters.
  EXPECT_EQ(evaluated(R"(RegexMatch(c.text, 'a{1000}b'))", document), "-");
  EXPECT_EQ(evaluated(R"(RegexMatch(c.text, 'a{100}b'))", document), "false");
  // Each match looks at all that follows it, as far as anybody knows.
  EXPECT_EQ(evaluated(R"(RegexExtractAll(c.text, 'a'))", document), "-");
  EXPECT_EQ(evaluated(R"(RegexReplaceAll(c.text, 'a', 'b'))", document), "-");
  EXPECT_EQ(evaluated(R"(LENGTH(RegexReplaceAll(c.text, 'a{1000}', 'b')))", document), "-");
  EXPECT_EQ(evaluated(R"(LENGTH(RegexReplaceAll(c.text, 'a{200}a*', 'b')))", document), "1");
}

TEST(RegexFunctions, TooLongAPatternOrResultIsUndefined) {
  const std::string document = document_with(std::string(66'000, 'a'));
  EXPECT_EQ(evaluated(R"(RegexMatch('a', c.text))", document), "-");
  EXPECT_EQ(evaluated(R"(RegexMatch('a', 'a{1001}'))", document), "-");
  EXPECT_EQ(evaluated(R"(RegexMatch('a', '(\\pL{100}){10}'))", document), "-");
  // 66000 times 300 characters.
  EXPECT_EQ(evaluated(R"(RegexReplace(c.text, 'a*', REPLICATE('$0', 300)))", document), "-");
  EXPECT_EQ(evaluated(R"(LENGTH(RegexReplace(c.text, 'a*', REPLICATE('$0', 100))))", document),
            "6600000");
  EXPECT_EQ(evaluated(R"(RegexReplaceAll(c.text, 'a{100}', REPLICATE('x', 10000)))", document),
            R"(")" + std::string(6'600'000, 'x') + R"(")");
}

TEST(RegexFunctions, MorePatternsThanAreKept) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 30; ++i) {
      const auto text =
          "RegexExtract('x" + std::to_string(i) + "y', 'x(" + std::to_string(i) + ")y', '', 1)";
      EXPECT_EQ(evaluated(text, "{}"), "\"" + std::to_string(i) + "\"");
    }
  }
}

}  // namespace
}  // namespace orrery::query
