#include "query/bind/bind_group.h"

#include <algorithm>
#include <memory>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "json/document_text.h"
#include "query/functions/functions.h"
#include "query/syntax/print.h"
#include "query/syntax/walk.h"

namespace orrery::query {
namespace {

/// Every operand ends with a parenthesis, and what begins a node tells its kind: no two trees have
/// the same text. Words of nodes are in lower case, names of functions in upper case.
class Writer {
 public:
  Writer(const FindName& find_name, std::string& out) : find_name_(find_name), out_(out) {}

  /// Where each part ends.
  std::vector<std::size_t> write(const Expression& expression) {
    std::vector<std::size_t> ends;
    std::visit([&](const auto& node) { write_node(node, expression, ends); }, expression.node);
    if (ends.empty()) ends.push_back(out_.size());
    return ends;
  }

 private:
  using Ends = std::vector<std::size_t>;

  void write_operand(const Expression& operand) {
    write(operand);
    out_ += ')';
  }

  void write_operands(std::string_view kind, const Expression& expression) {
    out_.append(kind).append("(");
    for_each_operand(expression, [this](const Expression& operand) { write_operand(operand); });
  }

  void write_node(const Literal&, const Expression& expression, Ends&) {
    out_ += print(expression);
  }
  void write_node(const Parameter& parameter, const Expression&, Ends&) { out_ += parameter.name; }

  void write_node(const Name& name, const Expression&, Ends&) {
    const auto found = find_name_(name.name);
    out_ += found ? fmt::format("n{}", *found) : "?";
  }

  void write_node(const Access& access, const Expression&, Ends& ends) {
    out_ += "path(";
    write_operand(*access.base);
    for (const Access::Step& step : access.steps) {
      const auto* literal = step.computed ? std::get_if<Literal>(&step.computed->node) : nullptr;
      if (!step.computed) {
        json::append_quoted(out_, step.name);
      } else if (literal != nullptr && literal->value.is_string()) {
        out_ += print(*step.computed);
      } else {
        out_ += '[';
        write_operand(*step.computed);
      }
      ends.push_back(out_.size());
    }
  }

  void write_node(const Call& call, const Expression& expression, Ends&) {
    if (call.is_udf) return write_operands("udf." + call.name, expression);
    const Function* function = find_function(call.name);
    write_operands(function == nullptr ? to_upper_ascii(call.name) : std::string(function->name),
                   expression);
  }

  void write_node(const Unary& unary, const Expression& expression, Ends&) {
    write_operands(fmt::format("unary{}", std::to_underlying(unary.op)), expression);
  }

  void write_node(const Chain& chain, const Expression&, Ends& ends) {
    out_ += "chain(";
    write_operand(*chain.first);
    for (const Chain::Link& link : chain.links) {
      out_ += fmt::format("{}(", std::to_underlying(link.op));
      write_operand(*link.operand);
      ends.push_back(out_.size());
    }
  }

  void write_node(const Logical& logical, const Expression&, Ends& ends) {
    out_ += logical.is_and ? "and(" : "or(";
    write_operand(*logical.operands.front());
    for (const ExpressionPtr& operand : logical.operands | std::views::drop(1)) {
      write_operand(*operand);
      ends.push_back(out_.size());
    }
  }

  void write_node(const Coalesce& coalesce, const Expression&, Ends& ends) {
    out_ += "coalesce(";
    write_operand(*coalesce.operands.back());
    for (const ExpressionPtr& operand :
         coalesce.operands | std::views::reverse | std::views::drop(1)) {
      write_operand(*operand);
      ends.push_back(out_.size());
    }
  }

  void write_node(const Conditional& conditional, const Expression&, Ends& ends) {
    out_ += "if(";
    write_operand(*conditional.otherwise);
    for (const Conditional::Branch& branch : conditional.branches | std::views::reverse) {
      write_operand(*branch.when);
      write_operand(*branch.then);
      ends.push_back(out_.size());
    }
  }

  void write_node(const In& in, const Expression& expression, Ends&) {
    write_operands(in.is_negated ? "not in" : "in", expression);
  }

  void write_node(const Like& like, const Expression& expression, Ends&) {
    const auto escape = static_cast<std::uint32_t>(like.escape.value_or(0));
    write_operands(fmt::format("{}like{}", like.is_negated ? "not " : "", escape), expression);
  }

  void write_node(const Between& between, const Expression& expression, Ends&) {
    write_operands(between.is_negated ? "not between" : "between", expression);
  }

  void write_node(const ArrayLiteral&, const Expression& expression, Ends&) {
    write_operands("array", expression);
  }

  void write_node(const ObjectLiteral& object, const Expression&, Ends&) {
    out_ += "object(";
    for (const ObjectLiteral::Property& property : object.properties) {
      json::append_quoted(out_, property.name);
      write_operand(*property.value);
    }
  }

  // None of these stands in GROUP BY.
  void write_node(const Subquery&, const Expression&, Ends&) { out_ += '?'; }
  void write_node(const Path&, const Expression&, Ends&) { out_ += '?'; }
  void write_node(const AggregateValue&, const Expression&, Ends&) { out_ += '?'; }
  void write_node(const GroupValue&, const Expression&, Ends&) { out_ += '?'; }

  const FindName& find_name_;
  std::string& out_;
};

/// The member of the source of a GroupScope that is the item with this slot.
std::string member_of(std::size_t slot) { return std::to_string(slot); }

}  // namespace

ComparedText::ComparedText(const Expression& expression, const FindName& find_name)
    : ends_(Writer(find_name, text_).write(expression)) {}

void replace_first_parts(Expression& expression, std::size_t count, Expression::Node value) {
  auto first = std::make_unique<Expression>(expression.span, std::move(value));
  auto& node = expression.node;
  const auto parts = static_cast<std::ptrdiff_t>(count);
  if (auto* access = std::get_if<Access>(&node); access && count < access->steps.size()) {
    access->base = std::move(first);
    access->steps.erase(access->steps.begin(), access->steps.begin() + parts);
  } else if (auto* chain = std::get_if<Chain>(&node); chain && count < chain->links.size()) {
    chain->first = std::move(first);
    chain->links.erase(chain->links.begin(), chain->links.begin() + parts);
  } else if (auto* logical = std::get_if<Logical>(&node);
             logical && count + 1 < logical->operands.size()) {
    auto& operands = logical->operands;
    operands.erase(operands.begin(), operands.begin() + parts);
    operands.front() = std::move(first);
  } else if (auto* coalesce = std::get_if<Coalesce>(&node);
             coalesce && count + 1 < coalesce->operands.size()) {
    coalesce->operands.resize(coalesce->operands.size() - count);
    coalesce->operands.back() = std::move(first);
  } else if (auto* conditional = std::get_if<Conditional>(&node);
             conditional && count < conditional->branches.size()) {
    conditional->branches.resize(conditional->branches.size() - count);
    conditional->otherwise = std::move(first);
  } else {
    node = std::move(first->node);
  }
}

void GroupKeys::add(const ComparedText& item) {
  const std::size_t parts = item.part_count();
  slots_.emplace(item.first_parts(parts), size_++);
  part_counts_.insert(parts);
}

std::optional<GroupKeys::Found> GroupKeys::find(const ComparedText& expression) const {
  for (const std::size_t parts : part_counts_ | std::views::reverse) {
    if (parts > expression.part_count()) continue;
    const auto found = slots_.find(expression.first_parts(parts));
    if (found != slots_.end()) return Found{.slot = found->second, .parts = parts};
  }
  return std::nullopt;
}

bool GroupScopes::hide(std::size_t name) const {
  return std::ranges::any_of(scopes_, [&](const GroupScope* scope) {
    return !scope->is_in_aggregate && name >= scope->first_name && name < scope->end_name;
  });
}

bool GroupScopes::bind_value(Expression& expression, const FindName& find_name, Sources& sources,
                             const GroupScope* own) {
  const auto has_keys = [](const GroupScope* scope) {
    return !scope->is_in_aggregate && scope->keys.size() > 0;
  };
  if (std::ranges::none_of(scopes_, has_keys)) return false;
  const ComparedText text(expression, find_name);
  for (GroupScope* scope : scopes_ | std::views::reverse | std::views::filter(has_keys)) {
    const auto found = scope->keys.find(text);
    if (!found) continue;
    Expression::Node value = GroupValue{found->slot};
    if (scope != own) {
      if (!scope->source) scope->source = sources.add("");
      scope->read_slots.insert(found->slot);
      const json::Step member[] = {member_of(found->slot)};
      value = Path{*scope->source, sources.add_path(*scope->source, member)};
    }
    replace_first_parts(expression, found->parts, std::move(value));
    return found->parts == text.part_count();
  }
  return false;
}

void add_group_source(Expression& subquery, GroupScope& scope) {
  if (!scope.source) return;
  const Span span = subquery.span;
  ObjectLiteral keys;
  for (const std::size_t slot : std::exchange(scope.read_slots, {})) {
    auto key = std::make_unique<Expression>(span, GroupValue{slot});
    keys.properties.push_back({member_of(slot), span, std::move(key)});
  }
  auto query = std::make_unique<Query>();
  query->span = span;
  FromItem& from = query->from.emplace_back();
  from.span = span;
  from.collection = std::make_unique<Expression>(span, std::move(keys));
  from.source = *std::exchange(scope.source, std::nullopt);
  query->selection.kind = Selection::Kind::Value;
  query->selection.items.push_back(
      {std::make_unique<Expression>(span, std::move(subquery.node)), "", span});
  subquery.node = Subquery{Subquery::Kind::Scalar, std::move(query)};
}

}  // namespace orrery::query
