// Going over a tree.
#pragma once

#include <variant>

#include "query/syntax/ast.h"

namespace orrery::query {

/// Calls `visit` with each expression that stands directly in this one. Those of a query within it
/// are its own: they are not visited.
template <typename Visit>
void for_each_operand(const Expression& expression, const Visit& visit) {
  const auto each = [&](const std::vector<ExpressionPtr>& list) {
    for (const ExpressionPtr& element : list) visit(*element);
  };
  const auto& node = expression.node;
  if (const auto* access = std::get_if<Access>(&node)) {
    visit(*access->base);
    for (const Access::Step& step : access->steps) {
      if (step.computed) visit(*step.computed);
    }
  } else if (const auto* call = std::get_if<Call>(&node)) {
    each(call->arguments);
  } else if (const auto* unary = std::get_if<Unary>(&node)) {
    visit(*unary->operand);
  } else if (const auto* chain = std::get_if<Chain>(&node)) {
    visit(*chain->first);
    for (const Chain::Link& link : chain->links) visit(*link.operand);
  } else if (const auto* logical = std::get_if<Logical>(&node)) {
    each(logical->operands);
  } else if (const auto* coalesce = std::get_if<Coalesce>(&node)) {
    each(coalesce->operands);
  } else if (const auto* conditional = std::get_if<Conditional>(&node)) {
    for (const Conditional::Branch& branch : conditional->branches) {
      visit(*branch.when);
      visit(*branch.then);
    }
    visit(*conditional->otherwise);
  } else if (const auto* in = std::get_if<In>(&node)) {
    visit(*in->operand);
    each(in->list);
  } else if (const auto* like = std::get_if<Like>(&node)) {
    visit(*like->operand);
    visit(*like->pattern);
  } else if (const auto* between = std::get_if<Between>(&node)) {
    visit(*between->operand);
    visit(*between->low);
    visit(*between->high);
  } else if (const auto* array = std::get_if<ArrayLiteral>(&node)) {
    each(array->elements);
  } else if (const auto* object = std::get_if<ObjectLiteral>(&node)) {
    for (const ObjectLiteral::Property& property : object->properties) visit(*property.value);
  }
}

/// Whether `holds` of the expression, or of one within it that is not in a query within.
template <typename Holds>
bool any_within(const Expression& expression, const Holds& holds) {
  if (holds(expression)) return true;
  bool found = false;
  for_each_operand(expression,
                   [&](const Expression& operand) { found = found || any_within(operand, holds); });
  return found;
}

}  // namespace orrery::query
