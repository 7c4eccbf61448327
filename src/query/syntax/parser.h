// From text to tree: the grammar of queries and of the scalar expressions in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "query/syntax/ast.h"
#include "query/syntax/lexer.h"

namespace orrery::query {

/// The name that a select item has when it is given none: that of the last property, as in c.a.b
/// and c["b"]. Nothing where there is none.
std::optional<std::string> property_name(const Expression& expression);

/// Reads one text from its beginning to its end. Every error is BadRequest in the form of
/// text_error, with the place.
///
/// Equivalent texts give the same tree: (a AND b) AND c is a AND b AND c. So parentheses to the
/// left, of which programs write any number, cost nothing but text.
class Parser {
 public:
  /// How many levels a tree may have; what repeats, such as a AND b AND c, is one.
  static constexpr std::size_t kNestingMax = 100;
  /// The largest TOP, OFFSET and LIMIT.
  static constexpr std::uint64_t kRowCountMax = 4'294'967'295;

  /// Refers to `text`.
  explicit Parser(std::string_view text) : lexer_(text) {}

  /// The whole text is one query.
  Result<QueryPtr> parse_query();
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
  /// How deep the functions below may call each other: no tree within kNestingMax needs more, as
  /// print writes it (two calls a level, and the parentheses that it adds for show).
  static constexpr std::size_t kRecursionMax = 3 * kNestingMax + 10;
  /// Counts one call while it lives.
  class Recursion {
   public:
    explicit Recursion(std::size_t& depth) : depth_(depth) { ++depth_; }
    ~Recursion() { --depth_; }
    Recursion(const Recursion&) = delete;
    Recursion& operator=(const Recursion&) = delete;

   private:
    std::size_t& depth_;
  };

  /// The precedence of operators, from tight to loose.
  enum class Level : std::uint8_t {
    Unary,
    Product,
    Sum,
    Concat,
    Comparison,
    Predicate,  ///< IN, LIKE, BETWEEN
    And,
    Or,
    Coalesce,
    Conditional,
    None,
  };
  struct Binary {
    Level level;
    BinaryOperator op;
  };
  static std::optional<Binary> binary_of(const Token& token);
  static Level level_of(BinaryOperator op);
  static Level level_of(const Token& token);

  Result<> advance();
  Result<> expect(Symbol symbol);
  Result<> expect(Keyword keyword);
  Result<> expect_end() const;
  Error unexpected() const;
  Error unexpected(const Token& token) const;
  Error nested_too_deep() const;
  Error name_twice(Span where, std::string_view name) const;
  Result<Token> peek() const;
  Result<std::string> take_identifier();

  // ── Clauses ──
  Result<QueryPtr> query();
  Result<Selection> selection();
  Result<> select_list(Selection& selection);
  Result<bool> alias_of(Selection::Item& item);
  Result<RowCount> row_count(std::string_view clause, std::string_view code);
  Result<FromItem> from_item();
  Result<ExpressionPtr> collection();
  Result<> order_by(Query& query);
  Result<std::optional<bool>> direction();

  // ── Operators: each goes on from an operand that was read ──
  Result<ExpressionPtr> expression();
  Result<ExpressionPtr> operand(Level loosest);
  Result<ExpressionPtr> go_on(ExpressionPtr operand, Level loosest);
  Result<ExpressionPtr> chain(ExpressionPtr first, Level level);
  Result<ExpressionPtr> predicate(ExpressionPtr operand);
  Result<ExpressionPtr> in(ExpressionPtr operand, bool is_negated);
  Result<ExpressionPtr> like(ExpressionPtr operand, bool is_negated);
  Result<ExpressionPtr> between(ExpressionPtr operand, bool is_negated);
  Result<ExpressionPtr> logical(ExpressionPtr first, bool is_and);
  Result<ExpressionPtr> coalesce(ExpressionPtr first);
  Result<ExpressionPtr> conditional(ExpressionPtr first);
  Result<ExpressionPtr> unary();
  Result<ExpressionPtr> steps(ExpressionPtr base);

  // ── Operands ──
  Result<ExpressionPtr> primary();
  Result<ExpressionPtr> keyword();
  Result<ExpressionPtr> word();
  Result<ExpressionPtr> udf_call();
  Result<ExpressionPtr> parenthesised();
  Result<ExpressionPtr> subquery(Subquery::Kind kind, std::uint32_t begin);
  Result<ExpressionPtr> array_literal();
  Result<ExpressionPtr> object_literal();
  Result<ExpressionPtr> call(const Token& name);
  Result<std::vector<ExpressionPtr>> list(Symbol closing);

  /// `below`: the levels of the deepest of its parts.
  Result<ExpressionPtr> make(Span span, Expression::Node node, std::uint32_t below) const;
  ExpressionPtr make_leaf(Span span, Expression::Node node) const;
  /// `part` becomes one of `whole`, which ends with what was read last.
  Result<> adopt(Expression& whole, const Expression& part) const;

  Lexer lexer_;
  Token token_;  ///< the next one
  Span last_;    ///< of the one before
  std::size_t recursion_depth_ = 0;
  std::vector<std::uint32_t> open_parentheses_;  ///< where those begin that are not closed yet
};

}  // namespace orrery::query
