// Clauses and whole texts. Expressions are in parser.cc.
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "query/syntax/parser.h"

namespace orrery::query {
namespace {

std::optional<std::string> string_literal(const Expression& expression) {
  const auto* literal = std::get_if<Literal>(&expression.node);
  if (literal == nullptr || !literal->value.is_string()) return std::nullopt;
  std::string buffer;
  return std::string(literal->value.as_string(buffer));
}

/// The last name of a path that FROM goes over: elements of arrays have none.
std::string last_name(const Expression& collection) {
  if (const auto* name = std::get_if<Name>(&collection.node)) return name->name;
  const auto* access = std::get_if<Access>(&collection.node);
  if (access == nullptr) return "";
  for (auto step = access->steps.rbegin(); step != access->steps.rend(); ++step) {
    if (!step->computed) return step->name;
    if (auto name = string_literal(*step->computed)) return *std::move(name);
  }
  return last_name(*access->base);
}

}  // namespace

std::optional<std::string> property_name(const Expression& expression) {
  if (const auto* name = std::get_if<Name>(&expression.node)) return name->name;
  const auto* access = std::get_if<Access>(&expression.node);
  if (access == nullptr) return std::nullopt;
  const Access::Step& last = access->steps.back();
  return last.computed ? string_literal(*last.computed) : last.name;
}

// ── Tokens ───────────────────────────────────────────────────────────────────────────────────────

Result<> Parser::advance() {
  last_ = token_.span;
  ORRERY_TRY(token_, lexer_.next());
  return {};
}

/// The token after the next one.
Result<Token> Parser::peek() const {
  Lexer ahead = lexer_;
  return ahead.next();
}

Error Parser::unexpected(const Token& token) const {
  return syntax_error_near(lexer_.text(), token.span);
}

Error Parser::unexpected() const { return unexpected(token_); }

Error Parser::nested_too_deep() const {
  return text_error(lexer_.text(), token_.span, "",
                    fmt::format("The expression is nested deeper than {} levels.", kNestingMax));
}

Error Parser::name_twice(Span where, std::string_view name) const {
  return text_error(
      lexer_.text(), where, "SC2022",
      fmt::format("Object creation error, property name '{}' specified more than once.", name));
}

Result<> Parser::expect(Symbol symbol) {
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
  if (!token_.is_identifier()) return unexpected();
  std::string name(token_.text);
  ORRERY_TRY(advance());
  return name;
}

// ── Whole texts ──────────────────────────────────────────────────────────────────────────────────

Result<QueryPtr> Parser::parse_query() {
  ORRERY_TRY(advance());
  ORRERY_TRY(auto result, query());
  ORRERY_TRY(expect_end());
  return result;
}

Result<ExpressionPtr> Parser::parse_expression() {
  ORRERY_TRY(advance());
  ORRERY_TRY(auto result, expression());
  ORRERY_TRY(expect_end());
  return result;
}

Result<Selection> Parser::parse_selection() {
  ORRERY_TRY(advance());
  ORRERY_TRY(auto result, selection());
  ORRERY_TRY(expect_end());
  return result;
}

Result<Parser::Condition> Parser::parse_condition() {
  ORRERY_TRY(advance());
  ORRERY_TRY(expect(Keyword::From));
  Condition condition;
  ORRERY_TRY(condition.alias, take_identifier());
  const bool has_as = token_.is(Keyword::As);
  if (has_as) ORRERY_TRY(advance());
  if (has_as || token_.is_identifier()) {
    ORRERY_TRY(condition.alias, take_identifier());
  }
  ORRERY_TRY(expect(Keyword::Where));
  ORRERY_TRY(condition.where, expression());
  ORRERY_TRY(expect_end());
  return condition;
}

// ── Clauses ──────────────────────────────────────────────────────────────────────────────────────

Result<QueryPtr> Parser::query() {
  const Recursion recursion(recursion_depth_);
  if (recursion_depth_ > kRecursionMax) return nested_too_deep();
  auto query = std::make_unique<Query>();
  const std::uint32_t begin = token_.span.begin;
  ORRERY_TRY(expect(Keyword::Select));
  if (token_.is(Keyword::Distinct)) {
    query->is_distinct = true;
    ORRERY_TRY(advance());
  }
  if (token_.is(Keyword::Top)) {
    ORRERY_TRY(query->top, row_count("TOP", "SC2060"));
  }
  ORRERY_TRY(query->selection, selection());
  if (token_.is(Keyword::From)) {
    do {
      ORRERY_TRY(advance());
      ORRERY_TRY(auto item, from_item());
      query->from.push_back(std::move(item));
    } while (token_.is(Keyword::Join));
  }
  if (token_.is(Keyword::Where)) {
    ORRERY_TRY(advance());
    ORRERY_TRY(query->where, expression());
  }
  if (token_.is(Keyword::Group)) {
    ORRERY_TRY(advance());
    if (!token_.is(Keyword::By)) return unexpected();
    do {
      ORRERY_TRY(advance());
      ORRERY_TRY(auto item, expression());
      query->group_by.push_back(std::move(item));
    } while (token_.is(Symbol::Comma));
  }
  if (token_.is(Keyword::Order)) ORRERY_TRY(order_by(*query));
  if (token_.is(Keyword::Offset)) {
    ORRERY_TRY(query->offset, row_count("OFFSET", "SC2062"));
    if (!token_.is(Keyword::Limit)) return unexpected();
    ORRERY_TRY(query->limit, row_count("LIMIT", "SC2061"));
  }
  query->span = {begin, last_.end};
  return query;
}

Result<Selection> Parser::selection() {
  Selection selection;
  if (token_.is(Symbol::Star)) {
    selection.kind = Selection::Kind::Star;
    ORRERY_TRY(advance());
  } else if (token_.is(Keyword::Value)) {
    selection.kind = Selection::Kind::Value;
    ORRERY_TRY(advance());
    Selection::Item& item = selection.items.emplace_back();
    ORRERY_TRY(item.expression, expression());
    item.span = item.expression->span;
  } else {
    ORRERY_TRY(select_list(selection));
  }
  return selection;
}

Result<> Parser::select_list(Selection& selection) {
  std::unordered_set<std::string> names;
  std::size_t unnamed = 0;
  while (true) {
    Selection::Item item;
    ORRERY_TRY(item.expression, expression());
    item.span = item.expression->span;
    ORRERY_TRY(const bool has_alias, alias_of(item));
    if (!has_alias) {
      auto name = property_name(*item.expression);
      item.name = name ? *std::move(name) : fmt::format("${}", ++unnamed);
    }
    if (!names.insert(item.name).second) return name_twice(item.span, item.name);
    selection.items.push_back(std::move(item));
    if (!token_.is(Symbol::Comma)) return {};
    ORRERY_TRY(advance());
  }
}

/// Whether there is one.
Result<bool> Parser::alias_of(Selection::Item& item) {
  const bool has_as = token_.is(Keyword::As);
  if (has_as) ORRERY_TRY(advance());
  const bool is_string = token_.kind == Token::Kind::String;
  if (!is_string && !token_.is_identifier()) {
    if (has_as) return unexpected();
    return false;
  }
  item.name = is_string ? std::move(token_.string) : std::string(token_.text);
  item.span = joined(item.span, token_.span);
  ORRERY_TRY(advance());
  return true;
}

/// The number after the word that begins `clause`, with `code` where it is none that fits.
Result<RowCount> Parser::row_count(std::string_view clause, std::string_view code) {
  ORRERY_TRY(advance());
  RowCount count{.span = token_.span, .written = nullptr};
  if (token_.kind == Token::Kind::Parameter) {
    count.written = make_leaf(token_.span, Parameter{std::string(token_.text)});
  } else if (token_.kind == Token::Kind::Number) {
    const json::Number& number = token_.number;
    if (number.real > static_cast<double>(kRowCountMax)) {
      return text_error(
          lexer_.text(), token_.span, code,
          fmt::format("The {} count value exceeds the maximum allowed value.", clause));
    }
    if (!number.is_integer) {
      return text_error(lexer_.text(), token_.span, code,
                        fmt::format("The {} count value must be an integer.", clause));
    }
    count.value = static_cast<std::uint64_t>(number.integer);
    count.written = make_leaf(token_.span, Literal{json::Value::number(number)});
  } else {
    return unexpected();
  }
  ORRERY_TRY(advance());
  return count;
}

Result<FromItem> Parser::from_item() {
  FromItem item;
  const std::uint32_t begin = token_.span.begin;
  if (token_.is_identifier()) {
    ORRERY_TRY(const Token after, peek());
    item.is_iteration = after.is(Keyword::In);
  }
  if (item.is_iteration) {
    item.has_alias = true;
    ORRERY_TRY(item.alias, take_identifier());
    ORRERY_TRY(expect(Keyword::In));
  }
  ORRERY_TRY(item.collection, collection());
  if (!item.is_iteration) {
    const bool has_as = token_.is(Keyword::As);
    if (has_as) ORRERY_TRY(advance());
    item.has_alias = has_as || token_.is_identifier();
    if (item.has_alias) {
      ORRERY_TRY(item.alias, take_identifier());
    } else {
      item.alias = last_name(*item.collection);
    }
  }
  item.span = {begin, last_.end};
  return item;
}

Result<ExpressionPtr> Parser::collection() {
  const std::uint32_t begin = token_.span.begin;
  if (token_.is(Symbol::OpenParenthesis)) {
    ORRERY_TRY(advance());
    return subquery(Subquery::Kind::Scalar, begin);
  }
  ORRERY_TRY(auto name, take_identifier());
  auto root = make_leaf(last_, Name{std::move(name)});
  Access path{.base = nullptr, .steps = {}};
  while (true) {
    if (token_.is(Symbol::Dot)) {
      ORRERY_TRY(advance());
      ORRERY_TRY(auto property, take_identifier());
      path.steps.push_back({std::move(property), nullptr});
    } else if (token_.is(Symbol::OpenBracket)) {
      ORRERY_TRY(advance());
      const bool is_index = token_.kind == Token::Kind::Number && token_.number.is_integer;
      if (!is_index && token_.kind != Token::Kind::String) return unexpected();
      ORRERY_TRY(auto computed, primary());
      path.steps.push_back({"", std::move(computed)});
      ORRERY_TRY(expect(Symbol::CloseBracket));
    } else {
      break;
    }
  }
  if (path.steps.empty()) return root;
  path.base = std::move(root);
  return make({begin, last_.end}, std::move(path), 1);
}

Result<> Parser::order_by(Query& query) {
  ORRERY_TRY(advance());
  if (!token_.is(Keyword::By)) return unexpected();
  ORRERY_TRY(advance());
  if (token_.is_word("RANK")) {
    // One name after another is no expression. A lone RANK is the name of something.
    ORRERY_TRY(const Token after, peek());
    query.is_rank = after.is_identifier();
  }
  if (query.is_rank) {
    ORRERY_TRY(advance());
    const Token name = token_;
    ORRERY_TRY(advance());
    OrderItem& item = query.order_by.emplace_back();
    ORRERY_TRY(item.expression, call(name));
    if (!std::holds_alternative<Call>(item.expression->node)) return unexpected(name);
    ORRERY_TRY(item.is_descending, direction());
    return {};
  }
  while (true) {
    OrderItem& item = query.order_by.emplace_back();
    ORRERY_TRY(item.expression, expression());
    ORRERY_TRY(item.is_descending, direction());
    if (!token_.is(Symbol::Comma)) return {};
    ORRERY_TRY(advance());
  }
}

Result<std::optional<bool>> Parser::direction() {
  const bool is_descending = token_.is(Keyword::Desc);
  if (!is_descending && !token_.is(Keyword::Asc)) return std::optional<bool>();
  ORRERY_TRY(advance());
  return std::optional(is_descending);
}

}  // namespace orrery::query
