#include "query/parser.h"

#include <cmath>
#include <limits>
#include <span>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "protocol/utf8.h"

namespace orrery::query {
namespace {

struct OperatorText {
  std::string_view text;
  BinaryOperator op;
};

constexpr OperatorText kProducts[] = {
    {"*", BinaryOperator::Multiply}, {"/", BinaryOperator::Divide}, {"%", BinaryOperator::Modulo}};
constexpr OperatorText kSums[] = {{"+", BinaryOperator::Add},
                                  {"-", BinaryOperator::Subtract},
                                  {"&", BinaryOperator::BitAnd},
                                  {"|", BinaryOperator::BitOr},
                                  {"^", BinaryOperator::BitXor}};
constexpr OperatorText kConcats[] = {{"||", BinaryOperator::Concat}};
constexpr OperatorText kComparisons[] = {
    {"=", BinaryOperator::Equal},           {"!=", BinaryOperator::NotEqual},
    {"<>", BinaryOperator::NotEqual},       {"<", BinaryOperator::Less},
    {"<=", BinaryOperator::LessOrEqual},    {">", BinaryOperator::Greater},
    {">=", BinaryOperator::GreaterOrEqual}, {"<<", BinaryOperator::ShiftLeft},
    {">>", BinaryOperator::ShiftRight},     {">>>", BinaryOperator::ShiftRightUnsigned}};

/// From tight to loose.
constexpr std::span<const OperatorText> kLevels[] = {kProducts, kSums, kConcats, kComparisons};
constexpr std::size_t kLoosest = std::size(kLevels);

std::optional<BinaryOperator> operator_of(const Token& token, std::size_t level) {
  for (const OperatorText& candidate : kLevels[level]) {
    if (token.is(candidate.text)) return candidate.op;
  }
  return std::nullopt;
}

std::optional<UnaryOperator> unary_of(const Token& token) {
  if (token.is("-")) return UnaryOperator::Minus;
  if (token.is("+")) return UnaryOperator::Plus;
  if (token.is("~")) return UnaryOperator::BitNot;
  if (token.is(Keyword::Not)) return UnaryOperator::Not;
  return std::nullopt;
}

/// The name that a select item has when it is given none: that of the last property.
std::optional<std::string> property_name(const Expression& expression) {
  if (const auto* name = std::get_if<Name>(&expression.node)) return name->name;
  const auto* access = std::get_if<Access>(&expression.node);
  if (access == nullptr) return std::nullopt;
  const Access::Step& last = access->steps.back();
  if (!last.computed) return last.name;
  const auto* literal = std::get_if<Literal>(&last.computed->node);
  if (literal == nullptr || !literal->value.is_string()) return std::nullopt;
  std::string buffer;
  return std::string(literal->value.as_string(buffer));
}

}  // namespace

/// Counts one level while it lives.
class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : parser_(parser) { ++parser_.nesting_; }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

  Result<> check() const {
    if (parser_.nesting_ <= kNestingMax) return {};
    return text_error(parser_.lexer_.text(), parser_.token_.span, "",
                      fmt::format("The expression is nested deeper than {} levels.", kNestingMax));
  }

 private:
  Parser& parser_;
};

// ── Tokens ───────────────────────────────────────────────────────────────────────────────────────

Result<> Parser::advance() {
  last_ = token_.span;
  ORRERY_TRY(token_, lexer_.next());
  return {};
}

Error Parser::unexpected(const Token& token) const {
  return syntax_error_near(lexer_.text(), token.span);
}

Error Parser::unexpected() const { return unexpected(token_); }

Result<> Parser::expect(std::string_view symbol) {
  if (!token_.is(symbol)) return unexpected();
  return advance();
}

Result<> Parser::expect(Keyword keyword) {
  if (!token_.is(keyword)) return unexpected();
  return advance();
}

Result<> Parser::expect_end() const {
  if (token_.is_end()) return {};
  return unexpected();
}

Result<std::string> Parser::take_identifier() {
  if (token_.kind != Token::Kind::Identifier) return unexpected();
  std::string name(token_.text);
  ORRERY_TRY(advance());
  return name;
}

ExpressionPtr Parser::make(Span span, Expression::Node node) const {
  return std::make_unique<Expression>(span, std::move(node));
}

Error Parser::no_subquery(Span where) const {
  return text_error(lexer_.text(), where, "",
                    "A subquery is not allowed here: only an expression over one document is.");
}

// ── Whole texts ──────────────────────────────────────────────────────────────────────────────────

Result<ExpressionPtr> Parser::parse_expression() {
  ORRERY_TRY(advance());
  ORRERY_TRY(auto result, expression());
  ORRERY_TRY(expect_end());
  return result;
}

Result<Parser::Condition> Parser::parse_condition() {
  ORRERY_TRY(advance());
  ORRERY_TRY(expect(Keyword::From));
  Condition condition;
  ORRERY_TRY(condition.alias, take_identifier());
  if (token_.is(Keyword::As)) {
    ORRERY_TRY(advance());
    ORRERY_TRY(condition.alias, take_identifier());
  } else if (token_.kind == Token::Kind::Identifier) {
    ORRERY_TRY(condition.alias, take_identifier());
  }
  ORRERY_TRY(expect(Keyword::Where));
  ORRERY_TRY(condition.where, expression());
  ORRERY_TRY(expect_end());
  return condition;
}

Result<Selection> Parser::parse_selection() {
  ORRERY_TRY(advance());
  Selection selection;
  if (token_.is("*")) {
    selection.kind = Selection::Kind::Star;
    ORRERY_TRY(advance());
    ORRERY_TRY(expect_end());
    return selection;
  }
  if (token_.is(Keyword::Value)) {
    selection.kind = Selection::Kind::Value;
    ORRERY_TRY(advance());
    Selection::Item& item = selection.items.emplace_back();
    ORRERY_TRY(item.expression, expression());
    item.span = item.expression->span;
    ORRERY_TRY(expect_end());
    return selection;
  }
  std::unordered_set<std::string> names;
  std::size_t unnamed = 0;
  while (true) {
    ORRERY_TRY(auto item, select_item());
    if (item.name.empty()) item.name = fmt::format("${}", ++unnamed);
    if (!names.insert(item.name).second) {
      return text_error(
          lexer_.text(), item.span, "SC2022",
          fmt::format("Object creation error, property name '{}' specified more than once.",
                      item.name));
    }
    selection.items.push_back(std::move(item));
    if (!token_.is(",")) break;
    ORRERY_TRY(advance());
  }
  ORRERY_TRY(expect_end());
  return selection;
}

/// Without a name where neither alias nor property gives one.
Result<Selection::Item> Parser::select_item() {
  Selection::Item item;
  ORRERY_TRY(item.expression, expression());
  item.span = item.expression->span;
  const bool has_as = token_.is(Keyword::As);
  if (has_as) ORRERY_TRY(advance());
  if (token_.kind == Token::Kind::Identifier || token_.kind == Token::Kind::String) {
    item.name = token_.kind == Token::Kind::String ? token_.string : std::string(token_.text);
    item.span = joined(item.span, token_.span);
    ORRERY_TRY(advance());
  } else if (has_as) {
    return unexpected();
  } else {
    item.name = property_name(*item.expression).value_or("");
  }
  return item;
}

// ── Operators, from loose to tight ───────────────────────────────────────────────────────────────

Result<ExpressionPtr> Parser::expression() {
  const Nesting nesting(*this);
  ORRERY_TRY(nesting.check());
  ORRERY_TRY(auto first, coalesce());
  if (!token_.is("?")) return first;
  Conditional conditional;
  const std::uint32_t begin = first->span.begin;
  while (token_.is("?")) {
    ORRERY_TRY(advance());
    ORRERY_TRY(auto then, expression());
    ORRERY_TRY(expect(":"));
    conditional.branches.push_back({std::move(first), std::move(then)});
    ORRERY_TRY(first, coalesce());
  }
  conditional.otherwise = std::move(first);
  return make({begin, last_.end}, std::move(conditional));
}

Result<ExpressionPtr> Parser::coalesce() {
  ORRERY_TRY(auto first, logical(false));
  if (!token_.is("??")) return first;
  const std::uint32_t begin = first->span.begin;
  Coalesce result;
  result.operands.push_back(std::move(first));
  while (token_.is("??")) {
    ORRERY_TRY(advance());
    ORRERY_TRY(auto operand, logical(false));
    result.operands.push_back(std::move(operand));
  }
  return make({begin, last_.end}, std::move(result));
}

Result<ExpressionPtr> Parser::logical(bool is_and) {
  const Keyword word = is_and ? Keyword::And : Keyword::Or;
  const auto operand = [&] { return is_and ? predicate() : logical(true); };
  ORRERY_TRY(auto first, operand());
  if (!token_.is(word)) return first;
  const std::uint32_t begin = first->span.begin;
  Logical result{.is_and = is_and, .operands = {}};
  result.operands.push_back(std::move(first));
  while (token_.is(word)) {
    ORRERY_TRY(advance());
    ORRERY_TRY(auto next, operand());
    result.operands.push_back(std::move(next));
  }
  return make({begin, last_.end}, std::move(result));
}

Result<ExpressionPtr> Parser::predicate() {
  ORRERY_TRY(auto operand, chain(kLoosest));
  const bool is_negated = token_.is(Keyword::Not);
  if (is_negated) ORRERY_TRY(advance());
  if (token_.is(Keyword::In)) return in(std::move(operand), is_negated);
  if (token_.is(Keyword::Like)) return like(std::move(operand), is_negated);
  if (token_.is(Keyword::Between)) return between(std::move(operand), is_negated);
  if (is_negated) return unexpected();
  return operand;
}

Result<ExpressionPtr> Parser::in(ExpressionPtr operand, bool is_negated) {
  const std::uint32_t begin = operand->span.begin;
  ORRERY_TRY(advance());
  ORRERY_TRY(expect("("));
  if (token_.is(Keyword::Select)) return no_subquery(token_.span);
  if (token_.is(")")) return unexpected();
  ORRERY_TRY(auto elements, list(")"));
  return make({begin, last_.end}, In{std::move(operand), std::move(elements), is_negated});
}

Result<ExpressionPtr> Parser::like(ExpressionPtr operand, bool is_negated) {
  const std::uint32_t begin = operand->span.begin;
  ORRERY_TRY(advance());
  ORRERY_TRY(auto pattern, chain(kLoosest));
  std::optional<char32_t> escape;
  if (token_.is(Keyword::Escape)) {
    ORRERY_TRY(advance());
    if (token_.kind != Token::Kind::String) return unexpected();
    const std::string& text = token_.string;
    const auto character = text.empty() ? CodePoint{0, 0} : decode_utf8(text, 0);
    if (text.empty() || character.size != text.size()) {
      return text_error(lexer_.text(), token_.span, "",
                        "The text after ESCAPE must be one character.");
    }
    escape = character.value;
    ORRERY_TRY(advance());
  }
  return make({begin, last_.end}, Like{.operand = std::move(operand),
                                       .pattern = std::move(pattern),
                                       .escape = escape,
                                       .is_negated = is_negated,
                                       .compiled = {}});
}

Result<ExpressionPtr> Parser::between(ExpressionPtr operand, bool is_negated) {
  const std::uint32_t begin = operand->span.begin;
  ORRERY_TRY(advance());
  ORRERY_TRY(auto low, chain(kLoosest));
  ORRERY_TRY(expect(Keyword::And));
  ORRERY_TRY(auto high, chain(kLoosest));
  return make({begin, last_.end},
              Between{std::move(operand), std::move(low), std::move(high), is_negated});
}

Result<ExpressionPtr> Parser::chain(std::size_t level) {
  if (level == 0) return unary();
  ORRERY_TRY(auto first, chain(level - 1));
  auto op = operator_of(token_, level - 1);
  if (!op) return first;
  const std::uint32_t begin = first->span.begin;
  Chain result{.first = std::move(first), .links = {}};
  for (; op; op = operator_of(token_, level - 1)) {
    ORRERY_TRY(advance());
    ORRERY_TRY(auto operand, chain(level - 1));
    result.links.push_back({*op, std::move(operand)});
  }
  return make({begin, last_.end}, std::move(result));
}

Result<ExpressionPtr> Parser::unary() {
  const auto op = unary_of(token_);
  if (!op) return postfix();
  const Nesting nesting(*this);
  ORRERY_TRY(nesting.check());
  const std::uint32_t begin = token_.span.begin;
  ORRERY_TRY(advance());
  // -9223372036854775808 is an integer, though 9223372036854775808 is none.
  if (op == UnaryOperator::Minus && token_.kind == Token::Kind::Number &&
      token_.text == "9223372036854775808") {
    ORRERY_TRY(advance());
    return make({begin, last_.end},
                Literal{json::Value::number(std::numeric_limits<std::int64_t>::min())});
  }
  ORRERY_TRY(auto operand, unary());
  return make({begin, last_.end}, Unary{*op, std::move(operand)});
}

Result<ExpressionPtr> Parser::postfix() {
  ORRERY_TRY(auto base, primary());
  if (!token_.is(".") && !token_.is("[")) return base;
  const std::uint32_t begin = base->span.begin;
  Access access{.base = std::move(base), .steps = {}};
  while (true) {
    if (token_.is(".")) {
      ORRERY_TRY(advance());
      ORRERY_TRY(auto name, take_identifier());
      access.steps.push_back({std::move(name), nullptr});
    } else if (token_.is("[")) {
      ORRERY_TRY(advance());
      ORRERY_TRY(auto computed, expression());
      ORRERY_TRY(expect("]"));
      access.steps.push_back({"", std::move(computed)});
    } else {
      break;
    }
  }
  return make({begin, last_.end}, std::move(access));
}

// ── Operands ─────────────────────────────────────────────────────────────────────────────────────

ExpressionPtr Parser::literal(json::Value value) {
  return make(token_.span, Literal{std::move(value)});
}

Result<ExpressionPtr> Parser::primary() {
  ExpressionPtr result;
  switch (token_.kind) {
    case Token::Kind::String:
      result = literal(json::Value::string(std::move(token_.string)));
      break;
    case Token::Kind::Number:
      result = literal(json::Value::number(token_.number));
      break;
    case Token::Kind::Parameter:
      result = make(token_.span, Parameter{std::string(token_.text)});
      break;
    case Token::Kind::Identifier:
      return word();
    case Token::Kind::Keyword:
      return keyword();
    case Token::Kind::Symbol:
      if (token_.is("(")) return parenthesised();
      if (token_.is("[")) return array_literal();
      if (token_.is("{")) return object_literal();
      return unexpected();
    case Token::Kind::End:
      return unexpected();
  }
  ORRERY_TRY(advance());
  return result;
}

Result<ExpressionPtr> Parser::keyword() {
  ExpressionPtr result;
  switch (token_.keyword) {
    case Keyword::True:
      result = literal(json::Value::boolean(true));
      break;
    case Keyword::False:
      result = literal(json::Value::boolean(false));
      break;
    case Keyword::Null:
      result = literal(json::Value::null());
      break;
    case Keyword::Undefined:
      result = literal(json::Value());
      break;
    case Keyword::Left:
    case Keyword::Right: {
      const Token name = token_;
      ORRERY_TRY(advance());
      if (!token_.is("(")) return unexpected(name);
      return call(name);
    }
    case Keyword::Exists:
    case Keyword::Array: {
      const Token name = token_;
      ORRERY_TRY(advance());
      if (!token_.is("(")) return unexpected(name);
      return no_subquery(name.span);
    }
    case Keyword::Udf:
      return udf_call();
    default:
      return unexpected();
  }
  ORRERY_TRY(advance());
  return result;
}

Result<ExpressionPtr> Parser::word() {
  const Token name = token_;
  ORRERY_TRY(advance());
  if (token_.is("(")) return call(name);
  if (name.text == "NaN") {
    return make(name.span, Literal{json::Value::number(std::numeric_limits<double>::quiet_NaN())});
  }
  if (name.text == "Infinity") {
    return make(name.span, Literal{json::Value::number(std::numeric_limits<double>::infinity())});
  }
  return make(name.span, Name{std::string(name.text)});
}

Result<ExpressionPtr> Parser::call(const Token& name) {
  ORRERY_TRY(expect("("));
  // ALL(SELECT …), FIRST(SELECT …), LAST(SELECT …), and what somebody may think is one.
  if (token_.is(Keyword::Select)) return no_subquery(name.span);
  Call result{.name = std::string(name.text), .name_span = name.span, .arguments = {}};
  ORRERY_TRY(result.arguments, list(")"));
  return make({name.span.begin, last_.end}, std::move(result));
}

Result<ExpressionPtr> Parser::udf_call() {
  const std::uint32_t begin = token_.span.begin;
  ORRERY_TRY(advance());
  ORRERY_TRY(expect("."));
  const Token name = token_;
  ORRERY_TRY(const auto identifier, take_identifier());
  if (!token_.is("(")) return unexpected();
  ORRERY_TRY(advance());
  Call result{
      .name = identifier, .name_span = {begin, name.span.end}, .is_udf = true, .arguments = {}};
  ORRERY_TRY(result.arguments, list(")"));
  return make({begin, last_.end}, std::move(result));
}

Result<ExpressionPtr> Parser::parenthesised() {
  const std::uint32_t begin = token_.span.begin;
  ORRERY_TRY(advance());
  if (token_.is(Keyword::Select)) return no_subquery(token_.span);
  ORRERY_TRY(auto inner, expression());
  ORRERY_TRY(expect(")"));
  inner->span = {begin, last_.end};
  return inner;
}

/// Expressions, up to and with the closing bracket; there may be none.
Result<std::vector<ExpressionPtr>> Parser::list(std::string_view closing) {
  std::vector<ExpressionPtr> elements;
  if (!token_.is(closing)) {
    while (true) {
      ORRERY_TRY(auto element, expression());
      elements.push_back(std::move(element));
      if (!token_.is(",")) break;
      ORRERY_TRY(advance());
    }
  }
  ORRERY_TRY(expect(closing));
  return elements;
}

Result<ExpressionPtr> Parser::array_literal() {
  const std::uint32_t begin = token_.span.begin;
  ORRERY_TRY(advance());
  ORRERY_TRY(auto elements, list("]"));
  return make({begin, last_.end}, ArrayLiteral{std::move(elements)});
}

Result<ExpressionPtr> Parser::object_literal() {
  const std::uint32_t begin = token_.span.begin;
  ORRERY_TRY(advance());
  ObjectLiteral object;
  std::unordered_set<std::string> names;
  while (!token_.is("}") || !object.properties.empty()) {
    ObjectLiteral::Property property{.name = {}, .name_span = token_.span, .value = nullptr};
    if (token_.kind == Token::Kind::String) {
      property.name = std::move(token_.string);
      ORRERY_TRY(advance());
    } else {
      ORRERY_TRY(property.name, take_identifier());
    }
    if (!names.insert(property.name).second) {
      return text_error(
          lexer_.text(), property.name_span, "SC2022",
          fmt::format("Object creation error, property name '{}' specified more than once.",
                      property.name));
    }
    ORRERY_TRY(expect(":"));
    ORRERY_TRY(property.value, expression());
    object.properties.push_back(std::move(property));
    if (!token_.is(",")) break;
    ORRERY_TRY(advance());
  }
  ORRERY_TRY(expect("}"));
  return make({begin, last_.end}, std::move(object));
}

}  // namespace orrery::query
