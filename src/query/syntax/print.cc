#include "query/syntax/print.h"

#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "json/document_text.h"
#include "protocol/utf8.h"
#include "query/syntax/lexer.h"
#include "query/syntax/parser.h"

namespace orrery::query {
namespace {

std::string_view text_of(UnaryOperator op) {
  switch (op) {
    case UnaryOperator::Minus:
      return "-";
    case UnaryOperator::Plus:
      return "+";
    case UnaryOperator::BitNot:
      return "~";
    case UnaryOperator::Not:
      return "NOT ";
  }
  std::unreachable();
}

std::string_view text_of(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::Multiply:
      return "*";
    case BinaryOperator::Divide:
      return "/";
    case BinaryOperator::Modulo:
      return "%";
    case BinaryOperator::Add:
      return "+";
    case BinaryOperator::Subtract:
      return "-";
    case BinaryOperator::BitAnd:
      return "&";
    case BinaryOperator::BitOr:
      return "|";
    case BinaryOperator::BitXor:
      return "^";
    case BinaryOperator::Concat:
      return "||";
    case BinaryOperator::Equal:
      return "=";
    case BinaryOperator::NotEqual:
      return "!=";
    case BinaryOperator::Less:
      return "<";
    case BinaryOperator::LessOrEqual:
      return "<=";
    case BinaryOperator::Greater:
      return ">";
    case BinaryOperator::GreaterOrEqual:
      return ">=";
    case BinaryOperator::ShiftLeft:
      return "<<";
    case BinaryOperator::ShiftRight:
      return ">>";
    case BinaryOperator::ShiftRightUnsigned:
      return ">>>";
  }
  std::unreachable();
}

std::string_view text_of(Subquery::Kind kind) {
  switch (kind) {
    case Subquery::Kind::Scalar:
      return "";
    case Subquery::Kind::Exists:
      return "EXISTS";
    case Subquery::Kind::Array:
      return "ARRAY";
    case Subquery::Kind::All:
      return "ALL";
    case Subquery::Kind::First:
      return "FIRST";
    case Subquery::Kind::Last:
      return "LAST";
  }
  std::unreachable();
}

/// Whether the text of a literal begins with a minus.
bool is_negative_number(const Expression& expression) {
  const auto* literal = std::get_if<Literal>(&expression.node);
  if (literal == nullptr || !literal->value.is_number()) return false;
  const json::Number number = literal->value.as_number();
  return number.is_integer ? number.integer < 0 : number.real < 0;
}

bool is_identifier(std::string_view name) {
  const auto token = Lexer(name).next();
  return token && token->kind == Token::Kind::Identifier && token->text == name;
}

class Printer {
 public:
  std::string take() { return std::move(out_); }

  void print(const Expression& expression) {
    std::visit([this](const auto& node) { print_node(node); }, expression.node);
  }

  void print(const Query& query) {
    out_ += "SELECT ";
    if (query.is_distinct) out_ += "DISTINCT ";
    if (query.top) {
      out_ += "TOP ";
      print(*query.top);
      out_ += ' ';
    }
    print(query.selection);
    if (!query.from.empty()) {
      out_ += '\n';
      print_from(query);
    }
    if (query.where) {
      out_ += "\nWHERE ";
      print(*query.where);
    }
    if (!query.group_by.empty()) {
      out_ += "\nGROUP BY ";
      print_list(query.group_by);
    }
    if (!query.order_by.empty()) print_order(query);
    if (query.offset) {
      out_ += "\nOFFSET ";
      print(*query.offset);
    }
    if (query.limit) {
      out_ += " LIMIT ";
      print(*query.limit);
    }
  }

  void print(const Selection& selection) {
    if (selection.kind == Selection::Kind::Star) {
      out_ += '*';
      return;
    }
    if (selection.kind == Selection::Kind::Value) {
      out_ += "VALUE ";
      print(*selection.items.front().expression);
      return;
    }
    std::size_t unnamed = 0;
    std::string_view separator;
    for (const Selection::Item& item : selection.items) {
      out_ += std::exchange(separator, ", ");
      print(*item.expression);
      print_alias(item, unnamed);
    }
  }

  void print_from(const Query& query) {
    std::string_view word = "FROM ";
    for (const FromItem& item : query.from) {
      out_ += std::exchange(word, "\nJOIN ");
      if (item.is_iteration) out_.append(item.alias).append(" IN ");
      print(*item.collection);
      if (item.has_alias && !item.is_iteration) out_.append(" AS ").append(item.alias);
    }
  }

 private:
  void print(const RowCount& count) {
    if (count.written) {
      print(*count.written);
    } else {
      fmt::format_to(std::back_inserter(out_), "{}", count.value);
    }
  }

  /// A name that the item would not get by itself; and one that it would, if somebody wrote it.
  void print_alias(const Selection::Item& item, std::size_t& unnamed) {
    const bool is_written = item.span.end != item.expression->span.end;
    const auto derived = property_name(*item.expression);
    if (!is_written) {
      if (derived ? *derived == item.name : fmt::format("${}", unnamed + 1) == item.name) {
        if (!derived) ++unnamed;
        return;
      }
    }
    out_ += " AS ";
    if (is_identifier(item.name)) {
      out_ += item.name;
    } else {
      json::append_quoted(out_, item.name);
    }
  }

  void print_order(const Query& query) {
    out_ += "\nORDER BY ";
    if (query.is_rank) out_ += "RANK ";
    std::string_view separator;
    for (const OrderItem& item : query.order_by) {
      out_ += std::exchange(separator, ", ");
      print(*item.expression);
      if (item.is_descending) out_ += *item.is_descending ? " DESC" : " ASC";
    }
  }

  void print_list(std::span<const ExpressionPtr> list) {
    std::string_view separator;
    for (const ExpressionPtr& element : list) {
      out_ += std::exchange(separator, ", ");
      print(*element);
    }
  }

  /// After an operator or ahead of a property a number keeps its minus to itself: two of them would
  /// begin a comment.
  void print_operand(const Expression& operand) {
    const bool needs_parentheses = is_negative_number(operand);
    if (needs_parentheses) out_ += '(';
    print(operand);
    if (needs_parentheses) out_ += ')';
  }

  void print_node(const Literal& literal) {
    const json::Value& value = literal.value;
    if (value.is_undefined()) {
      out_ += "undefined";
    } else if (value.is_number()) {
      print_number(value.as_number());
    } else if (value.is_string()) {
      std::string buffer;
      json::append_quoted(out_, value.as_string(buffer));
    } else {
      value.append_to(out_);
    }
  }

  /// So that a double stays one, and an integer too.
  void print_number(json::Number number) {
    if (!number.is_integer && number.real != number.real) {
      out_ += "NaN";
      return;
    }
    if (!number.is_integer && number.real - number.real != 0) {
      out_ += number.real < 0 ? "-Infinity" : "Infinity";
      return;
    }
    const std::size_t begin = out_.size();
    json::append_number(out_, number);
    if (!number.is_integer && out_.find_first_of(".e", begin) == std::string::npos) out_ += ".0";
  }

  void print_node(const Parameter& parameter) { out_ += parameter.name; }
  void print_node(const Name& name) { out_ += name.name; }

  void print_node(const Access& access) {
    print_operand(*access.base);
    for (const Access::Step& step : access.steps) {
      if (step.computed) {
        out_ += '[';
        print(*step.computed);
        out_ += ']';
      } else {
        out_.append(".").append(step.name);
      }
    }
  }

  void print_node(const Call& call) {
    if (call.is_udf) out_ += "udf.";
    out_.append(call.name).append("(");
    print_list(call.arguments);
    out_ += ')';
  }

  void print_node(const Unary& unary) {
    out_.append("(").append(text_of(unary.op));
    print_operand(*unary.operand);
    out_ += ')';
  }

  /// ((first op operand) op operand)
  void print_node(const Chain& chain) {
    out_.append(chain.links.size(), '(');
    print(*chain.first);
    for (const Chain::Link& link : chain.links) {
      out_.append(" ").append(text_of(link.op)).append(" ");
      print(*link.operand);
      out_ += ')';
    }
  }

  void print_node(const Logical& logical) {
    out_.append(logical.operands.size() - 1, '(');
    print(*logical.operands.front());
    for (const ExpressionPtr& operand : std::span(logical.operands).subspan(1)) {
      out_ += logical.is_and ? " AND " : " OR ";
      print(*operand);
      out_ += ')';
    }
  }

  /// (a ?? (b ?? c))
  void print_node(const Coalesce& coalesce) {
    const RightNested nested(*this, coalesce.operands.size() - 1);
    for (const ExpressionPtr& operand : std::span(coalesce.operands).first(nested.count())) {
      nested.open(operand == coalesce.operands.front());
      print(*operand);
      out_ += " ?? ";
    }
    print(*coalesce.operands.back());
    nested.close();
  }

  /// (a ? b : (c ? d : e))
  void print_node(const Conditional& conditional) {
    const RightNested nested(*this, conditional.branches.size());
    for (const Conditional::Branch& branch : conditional.branches) {
      nested.open(&branch == &conditional.branches.front());
      print(*branch.when);
      out_ += " ? ";
      print(*branch.then);
      out_ += " : ";
    }
    print(*conditional.otherwise);
    nested.close();
  }

  void print_node(const In& in) {
    out_ += '(';
    print(*in.operand);
    out_ += in.is_negated ? " NOT IN (" : " IN (";
    print_list(in.list);
    out_ += "))";
  }

  void print_node(const Like& like) {
    out_ += '(';
    print(*like.operand);
    out_ += like.is_negated ? " NOT LIKE " : " LIKE ";
    print(*like.pattern);
    if (like.escape) {
      std::string character;
      append_utf8(character, *like.escape);
      out_ += " ESCAPE ";
      json::append_quoted(out_, character);
    }
    out_ += ')';
  }

  void print_node(const Between& between) {
    out_ += '(';
    print(*between.operand);
    out_ += between.is_negated ? " NOT BETWEEN " : " BETWEEN ";
    print(*between.low);
    out_ += " AND ";
    print(*between.high);
    out_ += ')';
  }

  void print_node(const ArrayLiteral& array) {
    out_ += '[';
    print_list(array.elements);
    out_ += ']';
  }

  void print_node(const ObjectLiteral& object) {
    out_ += '{';
    std::string_view separator;
    for (const ObjectLiteral::Property& property : object.properties) {
      out_ += std::exchange(separator, ", ");
      json::append_quoted(out_, property.name);
      out_ += ": ";
      print(*property.value);
    }
    out_ += '}';
  }

  void print_node(const Subquery& subquery) {
    out_.append(text_of(subquery.kind)).append("(");
    print(*subquery.query);
    out_ += ')';
  }

  // Bind makes these, and what they were made of is gone.
  void print_node(const Path&) { ORRERY_ASSERT(!"a bound tree is not printed"); }
  void print_node(const AggregateValue&) { ORRERY_ASSERT(!"a bound tree is not printed"); }
  void print_node(const GroupValue&) { ORRERY_ASSERT(!"a bound tree is not printed"); }

  /// The parentheses of an operator that nests to its right. Those within the first are for show,
  /// and are left out where the parser would take the text for nested too deep.
  class RightNested {
   public:
    RightNested(Printer& printer, std::size_t count)
        : printer_(printer), count_(count), all_(count - 1 <= printer.shown_levels_left_) {
      if (all_) printer_.shown_levels_left_ -= count_ - 1;
    }
    ~RightNested() {
      if (all_) printer_.shown_levels_left_ += count_ - 1;
    }
    RightNested(const RightNested&) = delete;
    RightNested& operator=(const RightNested&) = delete;

    std::size_t count() const { return count_; }
    void open(bool is_first) const {
      if (is_first || all_) printer_.out_ += '(';
    }
    void close() const { printer_.out_.append(all_ ? count_ : 1, ')'); }

   private:
    Printer& printer_;
    std::size_t count_;
    bool all_;
  };

  std::string out_;
  std::size_t shown_levels_left_ = Parser::kNestingMax;
};

template <typename Tree>
std::string printed(const Tree& tree) {
  Printer printer;
  printer.print(tree);
  return printer.take();
}

}  // namespace

std::string print(const Expression& expression) { return printed(expression); }
std::string print(const Query& query) { return printed(query); }
std::string print_selection(const Selection& selection) { return printed(selection); }

std::string print_from(const Query& query) {
  Printer printer;
  printer.print_from(query);
  return printer.take();
}

}  // namespace orrery::query
