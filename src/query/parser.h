// From text to tree: the grammar of scalar expressions, and the lists of SELECT.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "query/ast.h"
#include "query/lexer.h"

namespace orrery::query {

/// Reads one text from its beginning to its end. Every error is BadRequest in the form of
/// text_error, with the place.
///
/// Not in the grammar yet are queries within expressions; they are refused by name.
class Parser {
 public:
  /// How deep parentheses, brackets, arguments and unary operators may be nested.
  static constexpr std::size_t kNestingMax = 100;

  /// Refers to `text`.
  explicit Parser(std::string_view text) : lexer_(text) {}

  /// The whole text is one expression.
  Result<ExpressionPtr> parse_expression();
  /// The whole text is what may stand after SELECT.
  Result<Selection> parse_selection();

  /// `FROM alias WHERE expression`, or `FROM name [AS] alias WHERE expression`: what is left of a
  /// query that is a condition. Gives the name that the expression has for the document.
  struct Condition {
    std::string alias;
    ExpressionPtr where;
  };
  Result<Condition> parse_condition();

 private:
  class Nesting;

  Result<> advance();
  Result<> expect(std::string_view symbol);
  Result<> expect(Keyword keyword);
  Result<> expect_end() const;
  Error unexpected() const;
  Error unexpected(const Token& token) const;
  Result<std::string> take_identifier();

  // One function per level of the grammar, from loose to tight.
  Result<ExpressionPtr> expression();
  Result<ExpressionPtr> coalesce();
  Result<ExpressionPtr> logical(bool is_and);
  Result<ExpressionPtr> predicate();
  Result<ExpressionPtr> chain(std::size_t level);
  Result<ExpressionPtr> unary();
  Result<ExpressionPtr> postfix();
  Result<ExpressionPtr> primary();

  Result<ExpressionPtr> in(ExpressionPtr operand, bool is_negated);
  Result<ExpressionPtr> like(ExpressionPtr operand, bool is_negated);
  Result<ExpressionPtr> between(ExpressionPtr operand, bool is_negated);
  Result<ExpressionPtr> keyword();
  Result<ExpressionPtr> word();
  Result<ExpressionPtr> udf_call();
  Result<ExpressionPtr> parenthesised();
  Result<ExpressionPtr> array_literal();
  Result<ExpressionPtr> object_literal();
  Result<ExpressionPtr> call(const Token& name);
  Result<std::vector<ExpressionPtr>> list(std::string_view closing);
  Result<Selection::Item> select_item();
  Error no_subquery(Span where) const;

  ExpressionPtr make(Span span, Expression::Node node) const;
  ExpressionPtr literal(json::Value value);

  Lexer lexer_;
  Token token_;  ///< the next one
  Span last_;    ///< of the one before
  std::size_t nesting_ = 0;
};

}  // namespace orrery::query
