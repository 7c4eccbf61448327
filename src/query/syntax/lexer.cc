#include "query/syntax/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "json/scan.h"
#include "protocol/utf8.h"

namespace orrery::query {
namespace {

using json::is_digit;
using json::is_space;

constexpr std::pair<std::string_view, Keyword> kKeywords[] = {
    {"AND", Keyword::And},         {"ARRAY", Keyword::Array},
    {"AS", Keyword::As},           {"ASC", Keyword::Asc},
    {"BETWEEN", Keyword::Between}, {"BY", Keyword::By},
    {"CASE", Keyword::Case},       {"CAST", Keyword::Cast},
    {"CONVERT", Keyword::Convert}, {"CROSS", Keyword::Cross},
    {"DESC", Keyword::Desc},       {"DISTINCT", Keyword::Distinct},
    {"ELSE", Keyword::Else},       {"END", Keyword::End},
    {"ESCAPE", Keyword::Escape},   {"EXISTS", Keyword::Exists},
    {"FALSE", Keyword::False},     {"FOR", Keyword::For},
    {"FROM", Keyword::From},       {"GROUP", Keyword::Group},
    {"HAVING", Keyword::Having},   {"IN", Keyword::In},
    {"INNER", Keyword::Inner},     {"INSERT", Keyword::Insert},
    {"INTO", Keyword::Into},       {"IS", Keyword::Is},
    {"JOIN", Keyword::Join},       {"LEFT", Keyword::Left},
    {"LIKE", Keyword::Like},       {"LIMIT", Keyword::Limit},
    {"NOT", Keyword::Not},         {"NULL", Keyword::Null},
    {"OFFSET", Keyword::Offset},   {"ON", Keyword::On},
    {"OR", Keyword::Or},           {"ORDER", Keyword::Order},
    {"OUTER", Keyword::Outer},     {"OVER", Keyword::Over},
    {"RIGHT", Keyword::Right},     {"SELECT", Keyword::Select},
    {"SET", Keyword::Set},         {"THEN", Keyword::Then},
    {"TOP", Keyword::Top},         {"TRUE", Keyword::True},
    {"UDF", Keyword::Udf},         {"UNDEFINED", Keyword::Undefined},
    {"UPDATE", Keyword::Update},   {"VALUE", Keyword::Value},
    {"WHEN", Keyword::When},       {"WHERE", Keyword::Where},
    {"WITH", Keyword::With},
};
static_assert(std::ranges::is_sorted(kKeywords, {}, &std::pair<std::string_view, Keyword>::first));

constexpr char to_upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

/// Where in kKeywords those begin that begin with A, B, …; and where the last ones end.
constexpr auto kFirstKeywords = [] {
  std::array<std::uint8_t, 27> firsts{};
  for (std::size_t letter = 0; letter < firsts.size(); ++letter) {
    while (firsts[letter] < std::size(kKeywords) &&
           kKeywords[firsts[letter]].first[0] < static_cast<char>('A' + letter)) {
      ++firsts[letter];
    }
  }
  return firsts;
}();

Keyword keyword_of(std::string_view word) {
  const auto letter = static_cast<std::size_t>(to_upper(word.front()) - 'A');
  if (letter >= kFirstKeywords.size() - 1) return Keyword::None;
  for (std::size_t i = kFirstKeywords[letter]; i < kFirstKeywords[letter + 1]; ++i) {
    const auto& [text, keyword] = kKeywords[i];
    if (text.size() == word.size() && std::ranges::equal(text, word, {}, {}, to_upper)) {
      return keyword;
    }
  }
  return Keyword::None;
}

/// The symbol that `text` begins with, and how many characters it has.
std::pair<Symbol, std::size_t> symbol_of(std::string_view text) {
  const char second = text.size() > 1 ? text[1] : '\0';
  switch (text.front()) {
    case '>':
      if (second == '>' && text.size() > 2 && text[2] == '>') {
        return {Symbol::ShiftRightUnsigned, 3};
      }
      if (second == '>') return {Symbol::ShiftRight, 2};
      if (second == '=') return {Symbol::GreaterOrEqual, 2};
      return {Symbol::Greater, 1};
    case '<':
      if (second == '<') return {Symbol::ShiftLeft, 2};
      if (second == '=') return {Symbol::LessOrEqual, 2};
      if (second == '>') return {Symbol::LessOrGreater, 2};
      return {Symbol::Less, 1};
    case '!':
      if (second == '=') return {Symbol::NotEqual, 2};
      return {Symbol::None, 0};
    case '|':
      if (second == '|') return {Symbol::Concat, 2};
      return {Symbol::Bar, 1};
    case '?':
      if (second == '?') return {Symbol::Coalesce, 2};
      return {Symbol::Question, 1};
    case '=':
      return {Symbol::Equal, 1};
    case '+':
      return {Symbol::Plus, 1};
    case '-':
      return {Symbol::Minus, 1};
    case '*':
      return {Symbol::Star, 1};
    case '/':
      return {Symbol::Slash, 1};
    case '%':
      return {Symbol::Percent, 1};
    case '&':
      return {Symbol::Ampersand, 1};
    case '^':
      return {Symbol::Caret, 1};
    case '~':
      return {Symbol::Tilde, 1};
    case ':':
      return {Symbol::Colon, 1};
    case ',':
      return {Symbol::Comma, 1};
    case '.':
      return {Symbol::Dot, 1};
    case '(':
      return {Symbol::OpenParenthesis, 1};
    case ')':
      return {Symbol::CloseParenthesis, 1};
    case '[':
      return {Symbol::OpenBracket, 1};
    case ']':
      return {Symbol::CloseBracket, 1};
    case '{':
      return {Symbol::OpenBrace, 1};
    case '}':
      return {Symbol::CloseBrace, 1};
    default:
      return {Symbol::None, 0};
  }
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Letters beyond ASCII, near enough: what is not a sign, a space or a private use.
bool is_letter_beyond_ascii(char32_t c) {
  if (c < 0xAA || c == 0xD7 || c == 0xF7) return false;
  if (c >= 0xAB && c <= 0xBF) return c == 0xB5 || c == 0xBA;
  if (c >= 0x2000 && c <= 0x2BFF) return false;
  if (c >= 0x3000 && c <= 0x3004) return false;
  return c < 0xE000 || (c >= 0xF900 && c < 0xFFF0) || (c >= 0x10000 && c < 0xE0000);
}

std::optional<char32_t> hex4(std::string_view digits) {
  if (digits.size() < 4) return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + 4, value, 16);
  if (error != std::errc() || end != digits.data() + 4) return std::nullopt;
  return static_cast<char32_t>(value);
}

/// Appends what an escape stands for; `escape` begins after its backslash. The bytes that it takes,
/// 0 if it is none. Half of a surrogate pair is none: no JSON text could say it.
std::size_t append_escape(std::string& out, std::string_view escape) {
  if (escape.empty()) return 0;
  switch (escape.front()) {
    case '\'':
    case '"':
    case '\\':
    case '/':
      out += escape.front();
      return 1;
    case 'b':
      out += '\b';
      return 1;
    case 'f':
      out += '\f';
      return 1;
    case 'n':
      out += '\n';
      return 1;
    case 'r':
      out += '\r';
      return 1;
    case 't':
      out += '\t';
      return 1;
    case 'u':
      break;
    default:
      return 0;
  }
  const auto unit = hex4(escape.substr(1));
  if (!unit) return 0;
  if (*unit < 0xD800 || *unit > 0xDFFF) {
    append_utf8(out, *unit);
    return 5;
  }
  if (*unit >= 0xDC00 || !escape.substr(5).starts_with("\\u")) return 0;
  const auto low = hex4(escape.substr(7));
  if (!low || *low < 0xDC00 || *low > 0xDFFF) return 0;
  append_utf8(out, 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00));
  return 11;
}

}  // namespace

std::string to_upper_ascii(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = to_upper(c);
  return upper;
}

Result<> check_text(std::string_view text) {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++characters) {
    const std::size_t size = decode_utf8(text, at).size;
    if (size == 0) {
      return Error(ErrorCode::BadRequest,
                   fmt::format("The query text is not valid UTF-8 at byte {}.", at));
    }
    at += size;
  }
  if (characters > Lexer::kCharactersMax) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("The SQL query text exceeded the maximum limit of {} characters.",
                             Lexer::kCharactersMax));
  }
  return {};
}

bool Token::is_word(std::string_view upper) const {
  return kind == Kind::Identifier && std::ranges::equal(upper, text, {}, {}, to_upper);
}

Token Lexer::token(Token::Kind kind, std::size_t begin) const {
  Token result;
  result.kind = kind;
  result.span = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)};
  result.text = text_.substr(begin, at_ - begin);
  return result;
}

Error Lexer::invalid_token(std::size_t begin, std::size_t end) const {
  constexpr std::size_t kShownBytesMax = 60;
  std::size_t shown = std::min(end - begin, kShownBytesMax);
  while (shown > 0 && begin + shown < text_.size() &&
         (static_cast<unsigned char>(text_[begin + shown]) & 0xC0) == 0x80) {
    --shown;
  }
  return text_error(text_, {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)},
                    "SC1010",
                    fmt::format("Syntax error, invalid token '{}'.", text_.substr(begin, shown)));
}

void Lexer::skip_spaces_and_comments() {
  while (at_ < text_.size()) {
    if (is_space(text_[at_])) {
      ++at_;
    } else if (text_.substr(at_).starts_with("--")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

std::size_t Lexer::after_word(std::size_t at) const {
  while (at < text_.size()) {
    const char c = text_[at];
    if (is_letter(c) || is_digit(c)) {
      ++at;
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x80) break;
    const auto [value, size] = decode_utf8(text_, at);
    if (size == 0 || !is_letter_beyond_ascii(value)) break;
    at += size;
  }
  return at;
}

Result<Token> Lexer::next() {
  skip_spaces_and_comments();
  if (at_ == text_.size()) return token(Token::Kind::End, at_);
  const char c = text_[at_];
  if (is_digit(c)) return read_number();
  if (c == '\'' || c == '"') return read_string();
  if (c == '@') return read_parameter();
  const std::size_t end = after_word(at_);
  return end > at_ ? read_word(end) : read_symbol();
}

Result<Token> Lexer::read_word(std::size_t end) {
  const std::size_t begin = std::exchange(at_, end);
  const Keyword keyword = keyword_of(text_.substr(begin, at_ - begin));
  Token result =
      token(keyword == Keyword::None ? Token::Kind::Identifier : Token::Kind::Keyword, begin);
  result.keyword = keyword;
  return result;
}

Result<Token> Lexer::read_parameter() {
  const std::size_t begin = at_;
  const std::size_t name = begin + 1;
  if (name < text_.size() && is_digit(text_[name])) return invalid_token(begin, name + 1);
  at_ = after_word(name);
  if (at_ == name) return invalid_token(begin, name);
  return token(Token::Kind::Parameter, begin);
}

Result<Token> Lexer::read_symbol() {
  const std::size_t begin = at_;
  const auto [symbol, size] = symbol_of(text_.substr(begin));
  if (size > 0) {
    at_ += size;
    Token result = token(Token::Kind::Symbol, begin);
    result.symbol = symbol;
    return result;
  }
  return invalid_token(begin, begin + std::max<std::size_t>(decode_utf8(text_, begin).size, 1));
}

Result<Token> Lexer::read_number() {
  const std::size_t begin = at_;
  const auto digits = [&] {
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  };
  const auto digit_at = [&](std::size_t at) { return at < text_.size() && is_digit(text_[at]); };
  const auto any_at = [&](std::size_t at, std::string_view characters) {
    return at < text_.size() && characters.find(text_[at]) != std::string_view::npos;
  };

  if (text_[at_] == '0' && any_at(at_ + 1, "xX")) {
    const auto is_hex = [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    };
    at_ += 2;
    const std::size_t first = at_;
    json::Number number = json::Number::of(std::int64_t{0});
    for (; at_ < text_.size() && is_hex(text_[at_]); ++at_) {
      const char c = text_[at_];
      const int digit = is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
      number.real = number.real * 16 + digit;
      std::int64_t next = 0;
      number.is_integer = number.is_integer &&
                          !__builtin_mul_overflow(number.integer, std::int64_t{16}, &next) &&
                          !__builtin_add_overflow(next, std::int64_t{digit}, &number.integer);
    }
    if (at_ == first) return invalid_token(begin, at_);
    Token result = token(Token::Kind::Number, begin);
    result.number = number;
    return result;
  }

  // A zero ahead of other digits is a number of its own, as in JSON.
  if (text_[at_] == '0') {
    ++at_;
  } else {
    digits();
  }
  if (any_at(at_, ".") && digit_at(at_ + 1)) {
    ++at_;
    digits();
  }
  if (any_at(at_, "eE") && digit_at(at_ + (any_at(at_ + 1, "+-") ? 2 : 1))) {
    at_ += any_at(at_ + 1, "+-") ? 2 : 1;
    digits();
  }
  Token result = token(Token::Kind::Number, begin);
  result.number = json::Number::parse(result.text);
  return result;
}

Result<Token> Lexer::read_string() {
  const std::size_t begin = at_;
  const char quote = text_[begin];
  std::string characters;
  for (std::size_t at = begin + 1; at < text_.size();) {
    const char c = text_[at];
    if (c == quote) {
      at_ = at + 1;
      Token result = token(Token::Kind::String, begin);
      result.string = std::move(characters);
      return result;
    }
    if (c == '\\') {
      const std::size_t size = append_escape(characters, text_.substr(at + 1));
      if (size == 0) return invalid_token(at, std::min(at + 2, text_.size()));
      at += 1 + size;
    } else {
      characters += c;
      ++at;
    }
  }
  return invalid_token(begin, text_.size());
}

}  // namespace orrery::query
