// Expressions. Clauses and whole texts are in parser_query.cc.
#include "query/syntax/parser.h"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "protocol/utf8.h"

namespace orrery::query {
namespace {

std::optional<UnaryOperator> unary_of(const Token& token) {
  if (token.is(Symbol::Minus)) return UnaryOperator::Minus;
  if (token.is(Symbol::Plus)) return UnaryOperator::Plus;
  if (token.is(Symbol::Tilde)) return UnaryOperator::BitNot;
  if (token.is(Keyword::Not)) return UnaryOperator::Not;
  return std::nullopt;
}

std::uint32_t deepest(std::span<const ExpressionPtr> expressions) {
  std::uint32_t depth = 0;
  for (const ExpressionPtr& expression : expressions) depth = std::max(depth, expression->depth);
  return depth;
}

std::uint32_t depth_of(const Query& query) {
  std::uint32_t depth = deepest(query.group_by);
  const auto consider = [&](const ExpressionPtr& expression) {
    if (expression) depth = std::max(depth, expression->depth);
  };
  for (const Selection::Item& item : query.selection.items) consider(item.expression);
  for (const FromItem& item : query.from) consider(item.collection);
  consider(query.where);
  for (const OrderItem& item : query.order_by) consider(item.expression);
  return depth;
}

std::optional<json::Value> constant_of(Keyword keyword) {
  switch (keyword) {
    case Keyword::True:
      return json::Value::boolean(true);
    case Keyword::False:
      return json::Value::boolean(false);
    case Keyword::Null:
      return json::Value::null();
    case Keyword::Undefined:
      return json::Value();
    default:
      return std::nullopt;
  }
}

/// Of the words that may stand ahead of (SELECT …), those that are not reserved.
std::optional<Subquery::Kind> subquery_kind(const Token& name) {
  if (name.is_word("ALL")) return Subquery::Kind::All;
  if (name.is_word("FIRST")) return Subquery::Kind::First;
  if (name.is_word("LAST")) return Subquery::Kind::Last;
  return std::nullopt;
}

}  // namespace

// ── Levels ───────────────────────────────────────────────────────────────────────────────────────

std::optional<Parser::Binary> Parser::binary_of(const Token& token) {
  if (token.kind != Token::Kind::Symbol) return std::nullopt;
  switch (token.symbol) {
    case Symbol::Star:
      return Binary{Level::Product, BinaryOperator::Multiply};
    case Symbol::Slash:
      return Binary{Level::Product, BinaryOperator::Divide};
    case Symbol::Percent:
      return Binary{Level::Product, BinaryOperator::Modulo};
    case Symbol::Plus:
      return Binary{Level::Sum, BinaryOperator::Add};
    case Symbol::Minus:
      return Binary{Level::Sum, BinaryOperator::Subtract};
    case Symbol::Ampersand:
      return Binary{Level::Sum, BinaryOperator::BitAnd};
    case Symbol::Bar:
      return Binary{Level::Sum, BinaryOperator::BitOr};
    case Symbol::Caret:
      return Binary{Level::Sum, BinaryOperator::BitXor};
    case Symbol::Concat:
      return Binary{Level::Concat, BinaryOperator::Concat};
    case Symbol::Equal:
      return Binary{Level::Comparison, BinaryOperator::Equal};
    case Symbol::NotEqual:
    case Symbol::LessOrGreater:
      return Binary{Level::Comparison, BinaryOperator::NotEqual};
    case Symbol::Less:
      return Binary{Level::Comparison, BinaryOperator::Less};
    case Symbol::LessOrEqual:
      return Binary{Level::Comparison, BinaryOperator::LessOrEqual};
    case Symbol::Greater:
      return Binary{Level::Comparison, BinaryOperator::Greater};
    case Symbol::GreaterOrEqual:
      return Binary{Level::Comparison, BinaryOperator::GreaterOrEqual};
    case Symbol::ShiftLeft:
      return Binary{Level::Comparison, BinaryOperator::ShiftLeft};
    case Symbol::ShiftRight:
      return Binary{Level::Comparison, BinaryOperator::ShiftRight};
    case Symbol::ShiftRightUnsigned:
      return Binary{Level::Comparison, BinaryOperator::ShiftRightUnsigned};
    default:
      return std::nullopt;
  }
}

Parser::Level Parser::level_of(BinaryOperator op) {
  if (op <= BinaryOperator::Modulo) return Level::Product;
  if (op <= BinaryOperator::BitXor) return Level::Sum;
  return op == BinaryOperator::Concat ? Level::Concat : Level::Comparison;
}

/// Of the operator that goes on from a finished operand.
Parser::Level Parser::level_of(const Token& token) {
  if (token.is(Symbol::Coalesce)) return Level::Coalesce;
  if (token.is(Symbol::Question)) return Level::Conditional;
  if (token.kind == Token::Kind::Symbol) {
    const auto binary = binary_of(token);
    return binary ? binary->level : Level::None;
  }
  switch (token.keyword) {
    case Keyword::Not:
    case Keyword::In:
    case Keyword::Like:
    case Keyword::Between:
      return Level::Predicate;
    case Keyword::And:
      return Level::And;
    case Keyword::Or:
      return Level::Or;
    default:
      return Level::None;
  }
}

// ── Operators ────────────────────────────────────────────────────────────────────────────────────

Result<ExpressionPtr> Parser::expression() {
  const Recursion recursion(recursion_depth_);
  if (recursion_depth_ > kRecursionMax) return nested_too_deep();
  return operand(Level::Conditional);
}

/// Parses an operand without operators looser than `loosest`, but in parentheses.
Result<ExpressionPtr> Parser::operand(Level loosest) {
  ORRERY_TRY(auto first, unary());
  return go_on(std::move(first), loosest);
}

Result<ExpressionPtr> Parser::go_on(ExpressionPtr operand, Level loosest) {
  Level done = Level::Unary;
  // Each level takes all of its own operators, and its operands all that are tighter. Left over are
  // looser ones; or one that may not follow, as in a IN (1) = 2.
  for (Level next = level_of(token_); next > done && next <= loosest; next = level_of(token_)) {
    done = next;
    if (next == Level::Conditional) {
      ORRERY_TRY(operand, conditional(std::move(operand)));
    } else if (next == Level::Coalesce) {
      ORRERY_TRY(operand, coalesce(std::move(operand)));
    } else if (next == Level::Or || next == Level::And) {
      ORRERY_TRY(operand, logical(std::move(operand), next == Level::And));
    } else if (next == Level::Predicate) {
      ORRERY_TRY(operand, predicate(std::move(operand)));
    } else {
      ORRERY_TRY(operand, chain(std::move(operand), next));
    }
  }
  return operand;
}

Result<ExpressionPtr> Parser::chain(ExpressionPtr first, Level level) {
  const Level tighter{static_cast<std::uint8_t>(std::to_underlying(level) - 1)};
  const auto* same = std::get_if<Chain>(&first->node);
  if (same == nullptr || level_of(same->links.front().op) != level) {
    const Span span = first->span;
    const std::uint32_t below = first->depth;
    ORRERY_TRY(first, make(span, Chain{.first = std::move(first), .links = {}}, below));
  }
  auto& links = std::get<Chain>(first->node).links;
  for (auto binary = binary_of(token_); binary && binary->level == level;
       binary = binary_of(token_)) {
    ORRERY_TRY(advance());
    ORRERY_TRY(auto next, operand(tighter));
    ORRERY_TRY(adopt(*first, *next));
    links.push_back({binary->op, std::move(next)});
  }
  return first;
}

Result<ExpressionPtr> Parser::logical(ExpressionPtr first, bool is_and) {
  const Keyword word = is_and ? Keyword::And : Keyword::Or;
  const Level tighter = is_and ? Level::Predicate : Level::And;
  const auto* same = std::get_if<Logical>(&first->node);
  if (same == nullptr || same->is_and != is_and) {
    const Span span = first->span;
    const std::uint32_t below = first->depth;
    Logical node{.is_and = is_and, .operands = {}};
    node.operands.push_back(std::move(first));
    ORRERY_TRY(first, make(span, std::move(node), below));
  }
  auto& operands = std::get<Logical>(first->node).operands;
  while (token_.is(word)) {
    ORRERY_TRY(advance());
    ORRERY_TRY(auto next, operand(tighter));
    ORRERY_TRY(adopt(*first, *next));
    operands.push_back(std::move(next));
  }
  return first;
}

Result<ExpressionPtr> Parser::coalesce(ExpressionPtr first) {
  Coalesce node;
  const std::uint32_t begin = first->span.begin;
  node.operands.push_back(std::move(first));
  while (token_.is(Symbol::Coalesce)) {
    ORRERY_TRY(advance());
    ORRERY_TRY(auto next, operand(Level::Or));
    node.operands.push_back(std::move(next));
  }
  // a ?? (b ?? c) is a ?? b ?? c.
  if (std::holds_alternative<Coalesce>(node.operands.back()->node)) {
    const ExpressionPtr last = std::exchange(node.operands.back(), nullptr);
    node.operands.pop_back();
    std::ranges::move(std::get<Coalesce>(last->node).operands, std::back_inserter(node.operands));
  }
  const std::uint32_t below = deepest(node.operands);
  return make({begin, last_.end}, std::move(node), below);
}

Result<ExpressionPtr> Parser::conditional(ExpressionPtr first) {
  Conditional node;
  const std::uint32_t begin = first->span.begin;
  while (token_.is(Symbol::Question)) {
    ORRERY_TRY(advance());
    ORRERY_TRY(auto then, expression());
    ORRERY_TRY(expect(Symbol::Colon));
    node.branches.push_back({std::move(first), std::move(then)});
    ORRERY_TRY(first, operand(Level::Coalesce));
  }
  // a ? b : (c ? d : e) is a ? b : c ? d : e.
  if (auto* same = std::get_if<Conditional>(&first->node)) {
    std::ranges::move(same->branches, std::back_inserter(node.branches));
    node.otherwise = std::move(same->otherwise);
  } else {
    node.otherwise = std::move(first);
  }
  std::uint32_t below = node.otherwise->depth;
  for (const auto& [when, then] : node.branches) {
    below = std::max({below, when->depth, then->depth});
  }
  return make({begin, last_.end}, std::move(node), below);
}

Result<ExpressionPtr> Parser::predicate(ExpressionPtr operand) {
  const bool is_negated = token_.is(Keyword::Not);
  if (is_negated) ORRERY_TRY(advance());
  if (token_.is(Keyword::In)) return in(std::move(operand), is_negated);
  if (token_.is(Keyword::Like)) return like(std::move(operand), is_negated);
  if (token_.is(Keyword::Between)) return between(std::move(operand), is_negated);
  return unexpected();
}

Result<ExpressionPtr> Parser::in(ExpressionPtr operand, bool is_negated) {
  const std::uint32_t begin = operand->span.begin;
  ORRERY_TRY(advance());
  ORRERY_TRY(expect(Symbol::OpenParenthesis));
  if (token_.is(Symbol::CloseParenthesis)) return unexpected();
  ORRERY_TRY(auto elements, list(Symbol::CloseParenthesis));
  const std::uint32_t below = std::max(operand->depth, deepest(elements));
  return make({begin, last_.end}, In{std::move(operand), std::move(elements), is_negated}, below);
}

Result<ExpressionPtr> Parser::like(ExpressionPtr operand, bool is_negated) {
  const std::uint32_t begin = operand->span.begin;
  ORRERY_TRY(advance());
  ORRERY_TRY(auto pattern, this->operand(Level::Comparison));
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
  const std::uint32_t below = std::max(operand->depth, pattern->depth);
  return make({begin, last_.end},
              Like{.operand = std::move(operand),
                   .pattern = std::move(pattern),
                   .escape = escape,
                   .is_negated = is_negated,
                   .compiled = {}},
              below);
}

Result<ExpressionPtr> Parser::between(ExpressionPtr operand, bool is_negated) {
  const std::uint32_t begin = operand->span.begin;
  ORRERY_TRY(advance());
  ORRERY_TRY(auto low, this->operand(Level::Comparison));
  ORRERY_TRY(expect(Keyword::And));
  ORRERY_TRY(auto high, this->operand(Level::Comparison));
  const std::uint32_t below = std::max({operand->depth, low->depth, high->depth});
  return make({begin, last_.end},
              Between{std::move(operand), std::move(low), std::move(high), is_negated}, below);
}

Result<ExpressionPtr> Parser::unary() {
  struct Written {
    UnaryOperator op;
    std::uint32_t begin;
  };
  std::vector<Written> operators;
  while (const auto op = unary_of(token_)) {
    operators.push_back({*op, token_.span.begin});
    ORRERY_TRY(advance());
  }
  ExpressionPtr result;
  // -9223372036854775808 is an integer, though 9223372036854775808 is none.
  if (!operators.empty() && operators.back().op == UnaryOperator::Minus &&
      token_.kind == Token::Kind::Number && token_.text == "9223372036854775808") {
    result = make_leaf({operators.back().begin, token_.span.end},
                       Literal{json::Value::number(std::numeric_limits<std::int64_t>::min())});
    operators.pop_back();
    ORRERY_TRY(advance());
  } else {
    ORRERY_TRY(auto base, primary());
    ORRERY_TRY(result, steps(std::move(base)));
  }
  for (; !operators.empty(); operators.pop_back()) {
    const auto [op, begin] = operators.back();
    const std::uint32_t below = result->depth;
    ORRERY_TRY(result, make({begin, last_.end}, Unary{op, std::move(result)}, below));
  }
  return result;
}

/// The properties and elements of `base` that are written after it.
Result<ExpressionPtr> Parser::steps(ExpressionPtr base) {
  if (!token_.is(Symbol::Dot) && !token_.is(Symbol::OpenBracket)) return base;
  if (!std::holds_alternative<Access>(base->node)) {
    const Span span = base->span;
    const std::uint32_t below = base->depth;
    ORRERY_TRY(base, make(span, Access{.base = std::move(base), .steps = {}}, below));
  }
  auto& steps = std::get<Access>(base->node).steps;
  while (true) {
    if (token_.is(Symbol::Dot)) {
      ORRERY_TRY(advance());
      ORRERY_TRY(auto name, take_identifier());
      steps.push_back({std::move(name), nullptr});
    } else if (token_.is(Symbol::OpenBracket)) {
      ORRERY_TRY(advance());
      ORRERY_TRY(auto computed, expression());
      ORRERY_TRY(expect(Symbol::CloseBracket));
      ORRERY_TRY(adopt(*base, *computed));
      steps.push_back({"", std::move(computed)});
    } else {
      break;
    }
  }
  base->span.end = last_.end;
  return base;
}

// ── Operands ─────────────────────────────────────────────────────────────────────────────────────

Result<ExpressionPtr> Parser::make(Span span, Expression::Node node, std::uint32_t below) const {
  if (below + 1 > kNestingMax) return nested_too_deep();
  return std::make_unique<Expression>(span, std::move(node), below + 1);
}

ExpressionPtr Parser::make_leaf(Span span, Expression::Node node) const {
  return std::make_unique<Expression>(span, std::move(node));
}

Result<> Parser::adopt(Expression& whole, const Expression& part) const {
  whole.span.end = last_.end;
  whole.depth = std::max(whole.depth, part.depth + 1);
  if (whole.depth > kNestingMax) return nested_too_deep();
  return {};
}

Result<ExpressionPtr> Parser::primary() {
  ExpressionPtr result;
  switch (token_.kind) {
    case Token::Kind::String:
      result = make_leaf(token_.span, Literal{json::Value::string(std::move(token_.string))});
      break;
    case Token::Kind::Number:
      result = make_leaf(token_.span, Literal{json::Value::number(token_.number)});
      break;
    case Token::Kind::Parameter:
      result = make_leaf(token_.span, Parameter{std::string(token_.text)});
      break;
    case Token::Kind::Identifier:
      return word();
    case Token::Kind::Keyword:
      return keyword();
    case Token::Kind::Symbol:
      if (token_.is(Symbol::OpenParenthesis)) return parenthesised();
      if (token_.is(Symbol::OpenBracket)) return array_literal();
      if (token_.is(Symbol::OpenBrace)) return object_literal();
      return unexpected();
    case Token::Kind::End:
      return unexpected();
  }
  ORRERY_TRY(advance());
  return result;
}

Result<ExpressionPtr> Parser::keyword() {
  const Token name = token_;
  if (auto constant = constant_of(name.keyword)) {
    ORRERY_TRY(advance());
    return make_leaf(name.span, Literal{*std::move(constant)});
  }
  switch (name.keyword) {
    case Keyword::Left:
    case Keyword::Right:
      ORRERY_TRY(advance());
      if (!token_.is(Symbol::OpenParenthesis)) return unexpected(name);
      return call(name);
    case Keyword::Exists:
    case Keyword::Array:
      ORRERY_TRY(advance());
      if (!token_.is(Symbol::OpenParenthesis)) return unexpected(name);
      ORRERY_TRY(advance());
      return subquery(name.is(Keyword::Exists) ? Subquery::Kind::Exists : Subquery::Kind::Array,
                      name.span.begin);
    case Keyword::Udf:
      return udf_call();
    default:
      return unexpected();
  }
}

Result<ExpressionPtr> Parser::word() {
  const Token name = token_;
  ORRERY_TRY(advance());
  if (token_.is(Symbol::OpenParenthesis)) return call(name);
  if (name.text == "NaN") {
    return make_leaf(name.span,
                     Literal{json::Value::number(std::numeric_limits<double>::quiet_NaN())});
  }
  if (name.text == "Infinity") {
    return make_leaf(name.span,
                     Literal{json::Value::number(std::numeric_limits<double>::infinity())});
  }
  return make_leaf(name.span, Name{std::string(name.text)});
}

Result<ExpressionPtr> Parser::call(const Token& name) {
  ORRERY_TRY(expect(Symbol::OpenParenthesis));
  if (token_.is(Keyword::Select)) {
    const auto kind = subquery_kind(name);
    if (!kind) return unexpected();
    return subquery(*kind, name.span.begin);
  }
  Call node{.name = std::string(name.text), .name_span = name.span, .arguments = {}};
  ORRERY_TRY(node.arguments, list(Symbol::CloseParenthesis));
  const std::uint32_t below = deepest(node.arguments);
  return make({name.span.begin, last_.end}, std::move(node), below);
}

Result<ExpressionPtr> Parser::udf_call() {
  const std::uint32_t begin = token_.span.begin;
  ORRERY_TRY(advance());
  ORRERY_TRY(expect(Symbol::Dot));
  Call node{.name = {}, .name_span = {begin, token_.span.end}, .is_udf = true, .arguments = {}};
  ORRERY_TRY(node.name, take_identifier());
  ORRERY_TRY(expect(Symbol::OpenParenthesis));
  ORRERY_TRY(node.arguments, list(Symbol::CloseParenthesis));
  const std::uint32_t below = deepest(node.arguments);
  return make({begin, last_.end}, std::move(node), below);
}

/// All parentheses that open here are read at once, and closed one by one from within, each with
/// what follows up to the next. So ((((a + b) + c) + d) + e) needs no more calls than (a).
Result<ExpressionPtr> Parser::parenthesised() {
  const std::size_t outer = open_parentheses_.size();
  while (token_.is(Symbol::OpenParenthesis)) {
    open_parentheses_.push_back(token_.span.begin);
    ORRERY_TRY(advance());
  }
  ExpressionPtr inner;
  if (token_.is(Keyword::Select)) {
    ORRERY_TRY(inner, subquery(Subquery::Kind::Scalar, open_parentheses_.back()));
    open_parentheses_.pop_back();
    if (open_parentheses_.size() == outer) return inner;
    ORRERY_TRY(inner, steps(std::move(inner)));
    ORRERY_TRY(inner, go_on(std::move(inner), Level::Conditional));
  } else {
    ORRERY_TRY(inner, expression());
  }
  while (true) {
    ORRERY_TRY(expect(Symbol::CloseParenthesis));
    inner->span = {open_parentheses_.back(), last_.end};
    open_parentheses_.pop_back();
    if (open_parentheses_.size() == outer) return inner;
    ORRERY_TRY(inner, steps(std::move(inner)));
    ORRERY_TRY(inner, go_on(std::move(inner), Level::Conditional));
  }
}

/// From SELECT up to and with the closing parenthesis.
Result<ExpressionPtr> Parser::subquery(Subquery::Kind kind, std::uint32_t begin) {
  ORRERY_TRY(auto inner, query());
  ORRERY_TRY(expect(Symbol::CloseParenthesis));
  const std::uint32_t below = depth_of(*inner);
  return make({begin, last_.end}, Subquery{kind, std::move(inner)}, below);
}

/// Expressions, up to and with the closing bracket; there may be none.
Result<std::vector<ExpressionPtr>> Parser::list(Symbol closing) {
  std::vector<ExpressionPtr> elements;
  if (!token_.is(closing)) {
    while (true) {
      ORRERY_TRY(auto element, expression());
      elements.push_back(std::move(element));
      if (!token_.is(Symbol::Comma)) break;
      ORRERY_TRY(advance());
    }
  }
  ORRERY_TRY(expect(closing));
  return elements;
}

Result<ExpressionPtr> Parser::array_literal() {
  const std::uint32_t begin = token_.span.begin;
  ORRERY_TRY(advance());
  ORRERY_TRY(auto elements, list(Symbol::CloseBracket));
  const std::uint32_t below = deepest(elements);
  return make({begin, last_.end}, ArrayLiteral{std::move(elements)}, below);
}

Result<ExpressionPtr> Parser::object_literal() {
  const std::uint32_t begin = token_.span.begin;
  ORRERY_TRY(advance());
  ObjectLiteral object;
  std::unordered_set<std::string> names;
  std::uint32_t below = 0;
  while (!token_.is(Symbol::CloseBrace) || !object.properties.empty()) {
    ObjectLiteral::Property property{.name = {}, .name_span = token_.span, .value = nullptr};
    if (token_.kind == Token::Kind::String) {
      property.name = std::move(token_.string);
      ORRERY_TRY(advance());
    } else {
      ORRERY_TRY(property.name, take_identifier());
    }
    if (!names.insert(property.name).second) return name_twice(property.name_span, property.name);
    ORRERY_TRY(expect(Symbol::Colon));
    ORRERY_TRY(property.value, expression());
    below = std::max(below, property.value->depth);
    object.properties.push_back(std::move(property));
    if (!token_.is(Symbol::Comma)) break;
    ORRERY_TRY(advance());
  }
  ORRERY_TRY(expect(Symbol::CloseBrace));
  return make({begin, last_.end}, std::move(object), below);
}

}  // namespace orrery::query
