// The tokens of a query text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "query/syntax/text_error.h"

namespace orrery::query {

/// Words that are never identifiers. They are written in any case.
// clang-format off
enum class Keyword : std::uint8_t {
  None,
  And, Array, As, Asc, Between, By, Case, Cast, Convert, Cross, Desc, Distinct, Else, End, Escape,
  Exists, False, For, From, Group, Having, In, Inner, Insert, Into, Is, Join, Left, Like, Limit,
  Not, Null, Offset, On, Or, Order, Outer, Over, Right, Select, Set, Then, Top, True, Udf,
  Undefined, Update, Value, When, Where, With,
};
// clang-format on

/// Operators, commas, brackets.
// clang-format off
enum class Symbol : std::uint8_t {
  None,
  ShiftRightUnsigned, ShiftLeft, ShiftRight, LessOrEqual, GreaterOrEqual, LessOrGreater, NotEqual,
  Concat, Coalesce, Equal, Less, Greater, Plus, Minus, Star, Slash, Percent, Ampersand, Bar, Caret,
  Tilde, Question, Colon, Comma, Dot, OpenParenthesis, CloseParenthesis, OpenBracket, CloseBracket,
  OpenBrace, CloseBrace,
};
// clang-format on

struct Token {
  enum class Kind : std::uint8_t {
    End,
    Identifier,
    Keyword,
    Parameter,  ///< with its @
    String,
    Number,
    Symbol,
  };
  Kind kind = Kind::End;
  Keyword keyword = Keyword::None;
  query::Symbol symbol = query::Symbol::None;
  Span span;
  std::string_view text;  ///< as it is written
  std::string string;     ///< the characters of a string
  json::Number number;

  bool is(Keyword word) const { return kind == Kind::Keyword && keyword == word; }
  bool is(query::Symbol other) const { return kind == Kind::Symbol && symbol == other; }
  bool is_identifier() const { return kind == Kind::Identifier; }
  bool is_end() const { return kind == Kind::End; }
  /// A word that is not reserved, whatever its case. `upper` is in upper case.
  bool is_word(std::string_view upper) const;
};

/// Reads one token after the other. Refers to the text.
class Lexer {
 public:
  /// check_text() refuses a text that is longer than this many characters.
  static constexpr std::size_t kCharactersMax = 512 * 1024;

  explicit Lexer(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }
  /// The next token; at the end of the text the End token, again and again. SC1010 where no token
  /// begins.
  Result<Token> next();

 private:
  void skip_spaces_and_comments();
  Token token(Token::Kind kind, std::size_t begin) const;
  Result<Token> read_string();
  Result<Token> read_number();
  Result<Token> read_parameter();
  Result<Token> read_symbol();
  Result<Token> read_word(std::size_t end);
  std::size_t after_word(std::size_t at) const;
  Error invalid_token(std::size_t begin, std::size_t end) const;

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Refuses a text that is longer than Lexer::kCharactersMax or not UTF-8.
Result<> check_text(std::string_view text);

/// ASCII letters in upper case.
std::string to_upper_ascii(std::string_view text);

}  // namespace orrery::query
