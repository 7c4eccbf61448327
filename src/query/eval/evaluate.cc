#include "query/eval/evaluate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "json/order.h"
#include "query/eval/arithmetic.h"
#include "query/eval/rows.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Kind;
using json::Number;
using json::Value;

/// True, false, or neither.
enum class Truth : std::uint8_t { False, True, Unknown };

Truth truth_of(const Value& value) {
  if (!value.is_boolean()) return Truth::Unknown;
  return value.as_boolean() ? Truth::True : Truth::False;
}

Truth negated(Truth truth) {
  switch (truth) {
    case Truth::False:
      return Truth::True;
    case Truth::True:
      return Truth::False;
    case Truth::Unknown:
      break;
  }
  return Truth::Unknown;
}

Truth both(Truth a, Truth b) {
  if (a == Truth::False || b == Truth::False) return Truth::False;
  return a == Truth::True && b == Truth::True ? Truth::True : Truth::Unknown;
}

Value value_of(Truth truth) {
  return truth == Truth::Unknown ? Value() : Value::boolean(truth == Truth::True);
}

Truth truth_if(bool condition) { return condition ? Truth::True : Truth::False; }

Truth equality(const Value& a, const Value& b) {
  if (a.is_undefined() || b.is_undefined()) return Truth::Unknown;
  return truth_if(json::equal(a, b));
}

/// Of null, booleans, numbers and strings, with their like; of all else nothing can be said.
Truth compare(BinaryOperator op, const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return Truth::Unknown;
  std::partial_ordering order = std::partial_ordering::unordered;
  switch (a.kind()) {
    case Kind::Number:
      order = json::compare(a.as_number(), b.as_number());
      break;
    case Kind::Null:
    case Kind::Boolean:
    case Kind::String:
      order = json::compare(a, b);
      break;
    default:
      return Truth::Unknown;
  }
  switch (op) {
    case BinaryOperator::Less:
      return truth_if(order < 0);
    case BinaryOperator::LessOrEqual:
      return truth_if(order <= 0);
    case BinaryOperator::Greater:
      return truth_if(order > 0);
    default:
      return truth_if(order >= 0);
  }
}

Value arithmetic(BinaryOperator op, Number a, Number b) {
  const auto shift = [&] { return static_cast<std::uint32_t>(to_int32(b)) & 31; };
  const auto bits = [](Number number) { return static_cast<std::uint32_t>(to_int32(number)); };
  const auto signed_bits = [](std::uint32_t value) {
    return Value::number(std::int64_t{static_cast<std::int32_t>(value)});
  };
  switch (op) {
    case BinaryOperator::Add:
      return Value::number(add(a, b));
    case BinaryOperator::Subtract:
      return Value::number(subtract(a, b));
    case BinaryOperator::Multiply:
      return Value::number(multiply(a, b));
    case BinaryOperator::Divide:
      return Value::number(divide(a, b));
    case BinaryOperator::Modulo:
      return Value::number(modulo(a, b));
    case BinaryOperator::BitAnd:
      return signed_bits(bits(a) & bits(b));
    case BinaryOperator::BitOr:
      return signed_bits(bits(a) | bits(b));
    case BinaryOperator::BitXor:
      return signed_bits(bits(a) ^ bits(b));
    case BinaryOperator::ShiftLeft:
      return signed_bits(bits(a) << shift());
    case BinaryOperator::ShiftRight:
      return Value::number(std::int64_t{to_int32(a) >> shift()});
    case BinaryOperator::ShiftRightUnsigned:
      return Value::number(static_cast<std::int64_t>(bits(a) >> shift()));
    default:
      return {};
  }
}

class Evaluation {
 public:
  explicit Evaluation(Frame& frame) : frame_(frame), row_(frame.row) {}

  const Value& of(const Expression& expression, Value& scratch) {
    return std::visit([&](const auto& node) -> const Value& { return of_node(node, scratch); },
                      expression.node);
  }

  /// The truth_of() an expression, without materialising the value of AND, OR and comparisons.
  Truth truth(const Expression& expression) {
    if (const auto* logical = std::get_if<Logical>(&expression.node)) return truth(*logical);
    if (const auto* chain = std::get_if<Chain>(&expression.node)) {
      if (is_comparison(*chain)) return truth_of_comparison(*chain);
    }
    Value scratch;
    return truth_of(of(expression, scratch));
  }

 private:
  /// A value that may leave: what is in the row or the expression is referred to.
  Value taken(const Expression& expression) {
    Value scratch;
    const Value& value = of(expression, scratch);
    if (&value == &scratch) return scratch;
    return Value::referring_to(value);
  }

  const Value& of_node(const Literal& literal, Value&) { return literal.value; }
  const Value& of_node(const Path& path, Value&) { return row_.at(path); }

  // Bind leaves none of these.
  const Value& of_node(const Parameter&, Value& scratch) { return scratch = Value(); }
  const Value& of_node(const Name&, Value& scratch) { return scratch = Value(); }

  const Value& of_node(const Access& access, Value& scratch) {
    Value at = taken(*access.base);
    std::string buffer;
    for (const Access::Step& step : access.steps) {
      if (at.is_undefined() || !spend_for(at)) break;
      if (!step.computed) {
        at = std::move(at).member(step.name);
        continue;
      }
      Value place_scratch;
      const Value& place = of(*step.computed, place_scratch);
      if (place.is_string()) {
        at = std::move(at).member(place.as_string(buffer));
      } else if (const auto index = array_index(place)) {
        at = std::move(at).element(*index);
      } else {
        at = Value();
      }
    }
    return scratch = std::move(at);
  }

  const Value& of_node(const AggregateValue& aggregate, Value&) {
    return frame_.aggregates[aggregate.slot];
  }
  const Value& of_node(const GroupValue& group, Value&) { return frame_.group[group.slot]; }

  const Value& of_node(const Subquery& subquery, Value& scratch) {
    return scratch = subquery_value(subquery, frame_);
  }

  const Value& of_node(const Call& call, Value& scratch) {
    if (call.is_udf) return of_udf(call, scratch);
    const std::size_t count = call.arguments.size();
    boost::container::small_vector<Value, 3> scratches(count);
    boost::container::small_vector<const Value*, 3> arguments(count);
    for (std::size_t i = 0; i < count; ++i) {
      arguments[i] = &of(*call.arguments[i], scratches[i]);
      if (arguments[i]->is_undefined() && !call.function->takes_undefined) {
        return scratch = Value();
      }
    }
    static const Surroundings kNone;
    const Function& function = *call.function;
    for (const Value* argument : arguments) {
      if (!spend_for(*argument)) return scratch = Value();
    }
    const Arguments given({arguments.data(), count}, frame_.work);
    scratch = function.call_in == nullptr
                  ? function.call(given)
                  : function.call_in(given, frame_.surroundings ? *frame_.surroundings : kNone);
    if (frame_.is_interrupted()) return scratch = Value();
    return metered(scratch);
  }

  const Value& of_udf(const Call& call, Value& scratch) {
    std::vector<Value> values;
    std::vector<const Value*> arguments;
    values.reserve(call.arguments.size());
    arguments.reserve(call.arguments.size());
    for (const ExpressionPtr& argument : call.arguments) values.push_back(taken(*argument));
    for (const Value& value : values) arguments.push_back(&value);
    auto result = frame_.user_functions->call(call.name, arguments);
    if (!result) {
      frame_.failure = result.error();
      return scratch = Value();
    }
    scratch = std::move(*result);
    scratch.own();
    return metered(scratch);
  }

  const Value& of_node(const Unary& unary, Value& scratch) {
    const Value& operand = of(*unary.operand, scratch);
    if (unary.op == UnaryOperator::Not) return scratch = value_of(negated(truth_of(operand)));
    if (!operand.is_number()) return scratch = Value();
    const Number number = operand.as_number();
    switch (unary.op) {
      case UnaryOperator::Minus:
        return scratch = Value::number(negate(number));
      case UnaryOperator::BitNot:
        return scratch = Value::number(std::int64_t{~to_int32(number)});
      default:
        return scratch = Value::number(number);
    }
  }

  static bool is_comparison(const Chain& chain) {
    return chain.links.size() == 1 && compares(chain.links.front().op);
  }

  Truth truth_of_comparison(const Chain& chain) {
    Value left_scratch;
    Value right_scratch;
    const Value& left = of(*chain.first, left_scratch);
    const Chain::Link& link = chain.links.front();
    const Value& right = of(*link.operand, right_scratch);
    return spend_for(left) ? compared(link.op, left, right) : Truth::Unknown;
  }

  const Value& of_node(const Chain& chain, Value& scratch) {
    if (is_comparison(chain)) return scratch = value_of(truth_of_comparison(chain));
    if (chain.links.front().op == BinaryOperator::Concat) return concatenated(chain, scratch);
    if (!frame_.spend(chain.links.size())) return scratch = Value();
    Value result;
    const Value* left = &of(*chain.first, result);
    for (const Chain::Link& link : chain.links) {
      Value right_scratch;
      const Value& right = of(*link.operand, right_scratch);
      if (!spend_for(*left)) return scratch = Value();
      result = applied(link.op, *left, right);
      left = &result;
    }
    return scratch = std::move(result);
  }

  static Truth compared(BinaryOperator op, const Value& a, const Value& b) {
    if (op == BinaryOperator::Equal) return equality(a, b);
    if (op == BinaryOperator::NotEqual) return negated(equality(a, b));
    return compare(op, a, b);
  }

  static Value applied(BinaryOperator op, const Value& a, const Value& b) {
    if (compares(op)) return value_of(compared(op, a, b));
    if (!a.is_number() || !b.is_number()) return {};
    return arithmetic(op, a.as_number(), b.as_number());
  }

  /// || has a level of the grammar for itself, so a chain of it has nothing else in it. All parts
  /// are joined at once.
  const Value& concatenated(const Chain& chain, Value& scratch) {
    std::string joined;
    std::string buffer;
    const auto append = [&](const Expression& expression) {
      Value part_scratch;
      const Value& part = of(expression, part_scratch);
      if (!part.is_string() || !spend_for(part)) return false;
      joined += part.as_string(buffer);
      return joined.size() <= kMadeBytesMax;
    };
    if (!append(*chain.first)) return scratch = Value();
    for (const Chain::Link& link : chain.links) {
      if (!append(*link.operand)) return scratch = Value();
    }
    scratch = Value::string(std::move(joined));
    return metered(scratch);
  }

  Truth truth(const Logical& logical) {
    if (!frame_.spend(logical.operands.size())) return Truth::Unknown;
    const Truth decisive = truth_if(!logical.is_and);
    bool any_unknown = false;
    for (const ExpressionPtr& operand : logical.operands) {
      const Truth found = truth(*operand);
      if (found == decisive) return decisive;
      any_unknown = any_unknown || found == Truth::Unknown;
    }
    return any_unknown ? Truth::Unknown : negated(decisive);
  }

  const Value& of_node(const Logical& logical, Value& scratch) {
    return scratch = value_of(truth(logical));
  }

  const Value& of_node(const Coalesce& coalesce, Value& scratch) {
    if (!frame_.spend(coalesce.operands.size())) return scratch = Value();
    for (const ExpressionPtr& operand : coalesce.operands) {
      const Value& value = of(*operand, scratch);
      if (!value.is_undefined()) return value;
    }
    return scratch = Value();
  }

  const Value& of_node(const Conditional& conditional, Value& scratch) {
    if (!frame_.spend(conditional.branches.size())) return scratch = Value();
    for (const Conditional::Branch& branch : conditional.branches) {
      if (truth(*branch.when) == Truth::True) return of(*branch.then, scratch);
    }
    return of(*conditional.otherwise, scratch);
  }

  const Value& of_node(const In& in, Value& scratch) {
    Value operand_scratch;
    const Value& operand = of(*in.operand, operand_scratch);
    if (operand.is_undefined()) return scratch = Value();
    for (const ExpressionPtr& element : in.list) {
      if (!frame_.spend() || !spend_for(operand)) return scratch = Value();
      Value element_scratch;
      if (equality(operand, of(*element, element_scratch)) == Truth::True) {
        return scratch = Value::boolean(!in.is_negated);
      }
    }
    return scratch = Value::boolean(in.is_negated);
  }

  const Value& of_node(const Like& like, Value& scratch) {
    Value operand_scratch;
    const Value& operand = of(*like.operand, operand_scratch);
    if (!operand.is_string() || !spend_for(operand)) return scratch = Value();
    std::string text_buffer;
    const std::string_view text = operand.as_string(text_buffer);
    const auto is_like = [&](const LikePattern& pattern) {
      const bool matches = pattern.matches(text, frame_.work);
      if (frame_.is_interrupted()) return Value();
      return Value::boolean(matches != like.is_negated);
    };
    if (like.compiled) return scratch = is_like(*like.compiled);
    Value pattern_scratch;
    const Value& pattern = of(*like.pattern, pattern_scratch);
    if (!pattern.is_string() || !spend_for(pattern)) return scratch = Value();
    std::string pattern_buffer;
    return scratch = is_like(LikePattern(pattern.as_string(pattern_buffer), like.escape));
  }

  const Value& of_node(const Between& between, Value& scratch) {
    Value operand_scratch;
    Value low_scratch;
    Value high_scratch;
    const Value& operand = of(*between.operand, operand_scratch);
    if (!spend_for(operand)) return scratch = Value();
    const Truth above =
        compare(BinaryOperator::GreaterOrEqual, operand, of(*between.low, low_scratch));
    const Truth below =
        compare(BinaryOperator::LessOrEqual, operand, of(*between.high, high_scratch));
    const Truth within = both(above, below);
    return scratch = value_of(between.is_negated ? negated(within) : within);
  }

  const Value& of_node(const ArrayLiteral& array, Value& scratch) {
    std::vector<Value> elements;
    if (!frame_.spend(array.elements.size())) return scratch = Value();
    elements.reserve(array.elements.size());
    for (const ExpressionPtr& element : array.elements) {
      Value value = taken(*element);
      if (!value.is_undefined()) elements.push_back(std::move(value));
    }
    return scratch = Value::array(std::move(elements));
  }

  const Value& of_node(const ObjectLiteral& object, Value& scratch) {
    std::vector<json::Member> members;
    if (!frame_.spend(object.properties.size())) return scratch = Value();
    members.reserve(object.properties.size());
    for (const ObjectLiteral::Property& property : object.properties) {
      Value value = taken(*property.value);
      if (value.is_undefined()) continue;
      members.push_back({Value::string_at(property.name), std::move(value)});
    }
    return scratch = Value::object(std::move(members));
  }

  /// Values without a length cost nothing.
  bool spend_for(const Value& value) {
    return value.kind() < Kind::String || frame_.spend_for(value);
  }

  /// Counts what was made. A short text can ask for a lot, again and again.
  const Value& metered(Value& made) {
    frame_.made_bytes += made.owned_weight();
    if (frame_.made_bytes > kMadeBytesMax) made = Value();
    return made;
  }

  Frame& frame_;
  const Row& row_;
};

}  // namespace

Row::Row(const Sources& sources) : sources_(&sources) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    begin_.push_back(count);
    count += sources.paths(i).size();
  }
  found_.resize(count);
}

void Row::set(std::size_t source, const Value& document) {
  const json::PathSet& paths = sources_->paths(source);
  paths.read(document, {found_.data() + begin_[source], paths.size()});
}

bool Frame::spend_for(const Value& value) {
  // The weight of a tree is found by going over it.
  return work == nullptr || spend(1 + WorkBudget::steps_of(value.weight()));
}

bool Frame::interrupted() {
  if (!failure) failure = interruption(*work);
  return false;
}

Frame::Frame(const Sources& sources, std::span<const Value> documents) : row(sources) {
  ORRERY_ASSERT(documents.size() <= sources.size());
  for (std::size_t i = 0; i < documents.size(); ++i) row.set(i, documents[i]);
}

const Value& evaluate(const Expression& expression, Frame& frame, Value& scratch) {
  return Evaluation(frame).of(expression, scratch);
}

bool is_true(const Expression& expression, Frame& frame) {
  return Evaluation(frame).truth(expression) == Truth::True;
}

std::optional<std::uint64_t> array_index(const Value& value) {
  if (!value.is_number()) return std::nullopt;
  const auto index = integral(value.as_number());
  if (!index || *index < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*index);
}

}  // namespace orrery::query
