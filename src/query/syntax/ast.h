// The syntax tree of a query. The parser makes it; bind.h resolves its names and functions in
// place; evaluate.h reads it.
//
// Operators that the grammar repeats are one node with many operands, however long the chain is: a
// tree is only as deep as the text is nested, which the parser bounds. So to walk over one by
// recursion is safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "json/value.h"
#include "query/functions/like.h"
#include "query/syntax/text_error.h"

namespace orrery::query {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Query;
using QueryPtr = std::unique_ptr<Query>;

enum class UnaryOperator : std::uint8_t { Minus, Plus, BitNot, Not };

// clang-format off
enum class BinaryOperator : std::uint8_t {
  Multiply, Divide, Modulo,
  Add, Subtract, BitAnd, BitOr, BitXor,
  Concat,
  Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual,
  ShiftLeft, ShiftRight, ShiftRightUnsigned,
};
// clang-format on

/// Whether it says true or false of two values: = to >=.
inline bool compares(BinaryOperator op) {
  return op >= BinaryOperator::Equal && op <= BinaryOperator::GreaterOrEqual;
}

/// Strings, numbers, true, false, null, undefined; and what bind has found to be constant.
struct Literal {
  json::Value value;
};

/// A parameter, with its @. Bind makes a literal of it.
struct Parameter {
  std::string name;
};

/// An identifier: the alias of a source. Bind makes a Path of it.
struct Name {
  std::string name;
};

/// The value at a path of a source: `slot` is its place in the PathSet of that source.
struct Path {
  std::size_t source;
  std::size_t slot;
};

/// base.name[expression]… Bind makes a Path of it where it can.
struct Access {
  struct Step {
    std::string name;        ///< of `.name`
    ExpressionPtr computed;  ///< of `[expression]`
  };
  ExpressionPtr base;
  std::vector<Step> steps;
};

struct Function;  // functions.h

struct Call {
  std::string name;  ///< as it is written
  Span name_span;
  bool is_udf = false;
  std::vector<ExpressionPtr> arguments;
  const Function* function = nullptr;  ///< set by bind
};

struct Unary {
  UnaryOperator op;
  ExpressionPtr operand;
};

/// first op₁ operand₁ op₂ operand₂ …, from left to right.
struct Chain {
  struct Link {
    BinaryOperator op;
    ExpressionPtr operand;
  };
  ExpressionPtr first;
  std::vector<Link> links;
};

/// AND, or OR, of two or more.
struct Logical {
  bool is_and;
  std::vector<ExpressionPtr> operands;
};

/// a ?? b ?? …
struct Coalesce {
  std::vector<ExpressionPtr> operands;
};

/// when₁ ? then₁ : when₂ ? then₂ : … otherwise
struct Conditional {
  struct Branch {
    ExpressionPtr when;
    ExpressionPtr then;
  };
  std::vector<Branch> branches;
  ExpressionPtr otherwise;
};

struct In {
  ExpressionPtr operand;
  std::vector<ExpressionPtr> list;
  bool is_negated = false;
};

struct Like {
  ExpressionPtr operand;
  ExpressionPtr pattern;
  std::optional<char32_t> escape;
  bool is_negated = false;
  std::optional<LikePattern> compiled;  ///< set by bind where the pattern is constant
};

struct Between {
  ExpressionPtr operand;
  ExpressionPtr low;
  ExpressionPtr high;
  bool is_negated = false;
};

struct ArrayLiteral {
  std::vector<ExpressionPtr> elements;
};

struct ObjectLiteral {
  struct Property {
    std::string name;
    Span name_span;
    ExpressionPtr value;
  };
  std::vector<Property> properties;
};

/// A query within an expression, or in place of a collection.
struct Subquery {
  enum class Kind : std::uint8_t {
    Scalar,  ///< (SELECT …): its one row; also what FROM and JOIN go over
    Exists,
    Array,
    All,
    First,
    Last,
  };
  Kind kind = Kind::Scalar;
  QueryPtr query;
};

/// The value of an aggregate function, once all rows were seen: the place in Query::aggregates of
/// the query that it stands in. Bind makes it of a Call.
struct AggregateValue {
  std::size_t slot;
};

/// The value of an item of GROUP BY. Bind makes it of whatever is written like that item.
struct GroupValue {
  std::size_t slot;
};

struct Expression {
  using Node = std::variant<Literal, Parameter, Name, Path, Access, Call, Unary, Chain, Logical,
                            Coalesce, Conditional, In, Like, Between, ArrayLiteral, ObjectLiteral,
                            Subquery, AggregateValue, GroupValue>;
  Span span;
  Node node;
  std::uint32_t depth = 1;  ///< levels of the tree from here down; the parser sets and bounds it
};

/// The select list, after SELECT.
struct Selection {
  enum class Kind : std::uint8_t {
    Star,   ///< *
    Value,  ///< VALUE expression: one item without a name
    List,
  };
  struct Item {
    ExpressionPtr expression;
    /// The alias; else the last property's name, as in c.a.b; else $1, $2, … Unique.
    std::string name;
    Span span;
  };
  Kind kind = Kind::List;
  std::vector<Item> items;
};

/// One of the collections after FROM, or after a JOIN.
struct FromItem {
  Span span;
  bool is_iteration = false;  ///< alias IN collection: its elements
  /// A name, a path from a name, or a Subquery of the kind Scalar.
  ExpressionPtr collection;
  /// As it is written; else the last name of the path; empty: it has none (a subquery).
  std::string alias;
  bool has_alias = false;  ///< whether it is written
  std::size_t source = 0;  ///< of the frame; set by bind

  /// Whether it is the document of a whole query: the first source, there from the beginning.
  bool is_document() const { return source == 0; }
};

/// The number of a TOP, OFFSET or LIMIT.
struct RowCount {
  Span span;
  ExpressionPtr written;    ///< an integer literal, or a parameter
  std::uint64_t value = 0;  ///< set by bind; of a literal by the parser already
};

struct OrderItem {
  ExpressionPtr expression;
  std::optional<bool> is_descending;  ///< nothing: no direction is written, which means ascending
  bool is_score = false;  ///< by similarity, the most similar first; set by bind, as is the next
  bool is_largest_first = false;
};

enum class AggregateKind : std::uint8_t { Avg, Count, CountIf, MakeList, MakeSet, Max, Min, Sum };

/// An aggregate function of a query: made by bind, which puts an AggregateValue where it stood.
struct AggregateCall {
  AggregateKind kind;
  ExpressionPtr argument;
};

/// SELECT … and all its clauses.
struct Query {
  Span span;
  bool is_distinct = false;
  std::optional<RowCount> top;
  Selection selection;
  std::vector<FromItem> from;
  ExpressionPtr where;  ///< may be null
  std::vector<ExpressionPtr> group_by;
  std::vector<OrderItem> order_by;
  bool is_rank = false;  ///< ORDER BY RANK: one item, a call
  std::optional<RowCount> offset;
  std::optional<RowCount> limit;  ///< there is none without the other

  std::vector<AggregateCall> aggregates;  ///< set by bind
  Path star{};                            ///< what * shows; set by bind
  /// Whether it has rows of groups: it has aggregates, or GROUP BY.
  bool is_grouped() const { return !aggregates.empty() || !group_by.empty(); }
};

}  // namespace orrery::query
