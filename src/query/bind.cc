#include "query/bind.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "query/evaluate.h"
#include "query/functions.h"

namespace orrery::query {
namespace {

/// A constant larger than this is computed each time: a short text can say a very long one.
constexpr std::size_t kKeptConstantBytesMax = 64 * 1024;

/// Binds a tree from its leaves upwards. Each function says whether the expression is constant,
/// which it then has become a literal, or fails.
class Binder {
 public:
  Binder(Sources& sources, std::string_view text) : sources_(sources), text_(text) {}

  Result<bool> bind(Expression& expression) {
    ORRERY_TRY(bool is_constant,
               std::visit([&](auto& node) -> Result<bool> { return bind_node(node, expression); },
                          expression.node));
    if (!is_constant || std::holds_alternative<Literal>(expression.node)) return is_constant;
    json::Value scratch;
    json::Value value(evaluate(expression, Row(), scratch));
    if (value.weight() > kKeptConstantBytesMax) return false;
    value.own();
    expression.node = Literal{std::move(value)};
    return true;
  }

 private:
  Result<bool> bind_all(std::vector<ExpressionPtr>& expressions) {
    bool all_constant = true;
    for (ExpressionPtr& expression : expressions) {
      ORRERY_TRY(const bool is_constant, bind(*expression));
      all_constant = all_constant && is_constant;
    }
    return all_constant;
  }

  template <typename... More>
  Result<bool> bind_each(Expression& first, More&... more) {
    ORRERY_TRY(bool all_constant, bind(first));
    if constexpr (sizeof...(more) > 0) {
      ORRERY_TRY(const bool others, bind_each(more...));
      all_constant = all_constant && others;
    }
    return all_constant;
  }

  Result<bool> bind_node(Literal&, Expression&) { return true; }
  Result<bool> bind_node(Path&, Expression&) { return false; }

  Result<bool> bind_node(Parameter& parameter, Expression& expression) {
    return text_error(
        text_, expression.span, "",
        fmt::format("The parameter '{}' has no value: parameters are not possible here.",
                    parameter.name));
  }

  Result<bool> bind_node(Name& name, Expression& expression) {
    ORRERY_TRY(const std::size_t source, resolve(name, expression.span));
    expression.node = Path{source, sources_.paths(source).add({})};
    return false;
  }

  Result<bool> bind_node(Access& access, Expression& expression) {
    const auto* name = std::get_if<Name>(&access.base->node);
    std::optional<std::size_t> source;
    if (name != nullptr) {
      ORRERY_TRY(source, resolve(*name, access.base->span));
    }
    bool all_constant = true;
    std::vector<json::Step> path;
    bool is_path = name != nullptr;
    for (Access::Step& step : access.steps) {
      if (!step.computed) {
        path.emplace_back(step.name);
        continue;
      }
      ORRERY_TRY(const bool is_constant, bind(*step.computed));
      all_constant = all_constant && is_constant;
      const auto constant = is_constant ? path_step(*step.computed) : std::nullopt;
      if (constant) {
        path.push_back(*constant);
      } else {
        is_path = false;
      }
    }
    if (is_path) {
      expression.node = Path{*source, sources_.paths(*source).add(path)};
      return false;
    }
    ORRERY_TRY(const bool is_constant, bind(*access.base));
    return all_constant && is_constant;
  }

  /// What a constant in brackets leads to; nothing if it can lead nowhere.
  static std::optional<json::Step> path_step(const Expression& computed) {
    const auto* literal = std::get_if<Literal>(&computed.node);
    if (literal == nullptr) return std::nullopt;
    if (literal->value.is_string()) {
      std::string buffer;
      return json::Step(std::string(literal->value.as_string(buffer)));
    }
    const auto index = array_index(literal->value);
    return index ? std::optional<json::Step>(*index) : std::nullopt;
  }

  Result<bool> bind_node(Call& call, Expression& expression) {
    if (call.is_udf) {
      return text_error(text_, call.name_span, "",
                        fmt::format("The user-defined function '{}' is not allowed here: only an "
                                    "expression over one document is.",
                                    call.name));
    }
    if (is_aggregate(call.name)) {
      return text_error(text_, call.name_span, "SC2101",
                        fmt::format("The aggregate function {} is not allowed here: only an "
                                    "expression over one document is.",
                                    to_upper_ascii(call.name)));
    }
    call.function = find_function(call.name);
    if (call.function == nullptr) {
      return text_error(text_, call.name_span, "SC2005",
                        fmt::format("'{}' is not a recognized built-in function name.", call.name));
    }
    const std::size_t count = call.arguments.size();
    const std::size_t max = call.function->arguments_max;
    if (count < call.function->arguments_min || (max != kAnyNumber && count > max)) {
      return text_error(text_, expression.span, "SC2050", argument_count_message(*call.function));
    }
    if (call.function->name == "IIF") {
      // Only the branch that is taken needs a value.
      Conditional conditional;
      conditional.branches.push_back({std::move(call.arguments[0]), std::move(call.arguments[1])});
      conditional.otherwise = std::move(call.arguments[2]);
      expression.node = std::move(conditional);
      return bind_node(std::get<Conditional>(expression.node), expression);
    }
    return bind_all(call.arguments);
  }

  Result<bool> bind_node(Unary& unary, Expression&) { return bind(*unary.operand); }

  Result<bool> bind_node(Chain& chain, Expression&) {
    ORRERY_TRY(bool all_constant, bind(*chain.first));
    for (Chain::Link& link : chain.links) {
      ORRERY_TRY(const bool is_constant, bind(*link.operand));
      all_constant = all_constant && is_constant;
    }
    return all_constant;
  }

  Result<bool> bind_node(Logical& logical, Expression&) { return bind_all(logical.operands); }
  Result<bool> bind_node(Coalesce& coalesce, Expression&) { return bind_all(coalesce.operands); }

  Result<bool> bind_node(Conditional& conditional, Expression&) {
    ORRERY_TRY(bool all_constant, bind(*conditional.otherwise));
    for (Conditional::Branch& branch : conditional.branches) {
      ORRERY_TRY(const bool is_constant, bind_each(*branch.when, *branch.then));
      all_constant = all_constant && is_constant;
    }
    return all_constant;
  }

  Result<bool> bind_node(In& in, Expression&) {
    ORRERY_TRY(const bool list_is_constant, bind_all(in.list));
    ORRERY_TRY(const bool is_constant, bind(*in.operand));
    return list_is_constant && is_constant;
  }

  Result<bool> bind_node(Like& like, Expression&) {
    ORRERY_TRY(const bool all_constant, bind_each(*like.operand, *like.pattern));
    const auto* pattern = std::get_if<Literal>(&like.pattern->node);
    if (pattern != nullptr && pattern->value.is_string()) {
      std::string buffer;
      like.compiled.emplace(pattern->value.as_string(buffer), like.escape);
    }
    return all_constant;
  }

  Result<bool> bind_node(Between& between, Expression&) {
    return bind_each(*between.operand, *between.low, *between.high);
  }

  Result<bool> bind_node(ArrayLiteral& array, Expression&) { return bind_all(array.elements); }

  Result<bool> bind_node(ObjectLiteral& object, Expression&) {
    bool all_constant = true;
    for (ObjectLiteral::Property& property : object.properties) {
      ORRERY_TRY(const bool is_constant, bind(*property.value));
      all_constant = all_constant && is_constant;
    }
    return all_constant;
  }

  Result<std::size_t> resolve(const Name& name, Span span) const {
    if (const auto source = sources_.find(name.name)) return *source;
    return text_error(text_, span, "SC2001",
                      fmt::format("Identifier '{}' could not be resolved.", name.name));
  }

  static std::string argument_count_message(const Function& function) {
    const int min = function.arguments_min;
    const int max = function.arguments_max;
    const std::string count = max == kAnyNumber ? fmt::format("at least {}", min)
                              : min == max      ? fmt::format("{}", min)
                                                : fmt::format("{} to {}", min, max);
    return fmt::format("The {} function requires {} argument(s).", function.name, count);
  }

  Sources& sources_;
  std::string_view text_;
};

}  // namespace

Sources::Sources(std::span<const std::string_view> aliases) {
  for (const std::string_view alias : aliases) sources_.push_back({std::string(alias), {}});
}

std::optional<std::size_t> Sources::find(std::string_view alias) const {
  const auto found = std::ranges::find(sources_, alias, &Source::alias);
  if (found == sources_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - sources_.begin());
}

Result<> bind(Expression& expression, Sources& sources, std::string_view text) {
  ORRERY_TRY([[maybe_unused]] const bool is_constant, Binder(sources, text).bind(expression));
  return {};
}

}  // namespace orrery::query
