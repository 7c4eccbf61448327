#include "query/bind/search_policy.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "protocol/vector.h"
#include "query/functions/functions.h"
#include "query/syntax/lexer.h"

namespace orrery::query {
namespace {

/// The place of the options among the arguments of VectorDistance.
constexpr std::size_t kOptions = 3;

bool is_call_of(const Expression& expression, std::string_view upper_name) {
  const auto* call = std::get_if<Call>(&expression.node);
  return call != nullptr && !call->is_udf && to_upper_ascii(call->name) == upper_name;
}

std::optional<Settings::MemberPath> member_path(const Expression& expression,
                                                const Sources& sources, std::size_t document) {
  const auto* path = std::get_if<Path>(&expression.node);
  if (path == nullptr || path->source != document) return std::nullopt;
  Settings::MemberPath names;
  for (const json::Step& step : sources.steps(*path)) {
    const auto* name = std::get_if<std::string>(&step);
    if (name == nullptr) return std::nullopt;
    names.push_back(*name);
  }
  return names;
}

json::Value language_of(const Call& call, const Sources& sources, std::size_t document,
                        const Settings& settings) {
  const auto path = member_path(*call.arguments.front(), sources, document);
  const auto& all = settings.languages;
  const auto found = path ? std::ranges::find(all, *path, &Settings::Language::path) : all.end();
  return json::Value::string(found == all.end() ? settings.default_language : found->language);
}

json::Value vector_policy_of(const Call& call, const Sources& sources, std::size_t document,
                             const Settings& settings) {
  const auto& all = settings.vectors;
  for (const ExpressionPtr& argument : call.arguments) {
    const auto path = member_path(*argument, sources, document);
    const auto found = path ? std::ranges::find(all, *path, &Settings::Vector::path) : all.end();
    if (found == all.end()) continue;
    json::Value policy = json::Value::object();
    policy.set_member("distanceFunction", json::Value::string(found->distance_function));
    policy.set_member("dataType", json::Value::string(found->data_type));
    return policy;
  }
  return {};
}

/// The distance function in a constant options object; undefined when it names none.
json::Value distance_function_in(const Expression& argument) {
  const auto* literal = std::get_if<Literal>(&argument.node);
  return literal == nullptr ? json::Value() : literal->value.member("distanceFunction");
}

std::optional<DistanceFunction> function_named(const json::Value& name) {
  std::string buffer;
  return name.is_string() ? find_distance_function(name.as_string(buffer)) : std::nullopt;
}

/// Whether the argument is an object that says so; nothing when it says nothing.
std::optional<bool> names_euclidean(const Expression& argument) {
  const auto function = function_named(distance_function_in(argument));
  if (!function) return std::nullopt;
  return *function == DistanceFunction::Euclidean;
}

}  // namespace

void append_hidden_argument(Call& call, const Sources& sources, std::size_t document,
                            const Settings* settings) {
  static const Settings kNone;
  const Settings& known = settings == nullptr ? kNone : *settings;
  json::Value value;
  switch (call.function->hidden) {
    case Function::Hidden::None:
      return;
    case Function::Hidden::Language:
      value = language_of(call, sources, document, known);
      break;
    case Function::Hidden::VectorPolicy:
      value = vector_policy_of(call, sources, document, known);
      break;
  }
  call.arguments.push_back(std::make_unique<Expression>(call.name_span, Literal{std::move(value)}));
}

std::optional<std::string> unknown_distance_function(const Call& call) {
  if (call.function->hidden != Function::Hidden::VectorPolicy) return std::nullopt;
  // The last argument is the policy.
  if (call.arguments.size() <= kOptions + 1) return std::nullopt;
  const json::Value name = distance_function_in(*call.arguments[kOptions]);
  if (name.is_undefined() || function_named(name)) return std::nullopt;
  return fmt::format(
      "The distanceFunction of {} must be 'cosine', 'dotproduct' or 'euclidean', but is {}.",
      call.name, name.to_text());
}

bool is_score(const Expression& expression) {
  return is_call_of(expression, "VECTORDISTANCE") || is_call_of(expression, "_VECTORSCORE") ||
         is_call_of(expression, "_FULLTEXTSCORE");
}

void set_score_order(OrderItem& item) {
  item.is_largest_first = true;
  const auto* call = std::get_if<Call>(&item.expression->node);
  if (call == nullptr) return;  // It is constant.
  if (!is_call_of(*item.expression, "VECTORDISTANCE")) {
    item.is_largest_first = item.is_descending.value_or(true);
    return;
  }
  const std::size_t policy = call->arguments.size() - 1;
  const auto by_options =
      policy > kOptions ? names_euclidean(*call->arguments[kOptions]) : std::nullopt;
  const auto by_policy = names_euclidean(*call->arguments[policy]);
  item.is_largest_first = !by_options.value_or(by_policy.value_or(false));
}

}  // namespace orrery::query
