#include "query/eval/aggregate.h"

#include <algorithm>

#include "json/order.h"
#include "query/eval/arithmetic.h"
#include "query/eval/rows.h"
#include "query/functions/functions.h"
#include "query/syntax/walk.h"

namespace orrery::query {

using json::Value;

namespace {

/// Of a string in a group's key. The key is a part of continuation tokens.
constexpr std::size_t kKeyStringBytesMax = 96;

/// Memory of a value, or of a group, beside its bytes.
constexpr std::size_t kValueOverhead = 64;
constexpr std::size_t kGroupOverhead = 200;

}  // namespace

bool has_aggregate(const Expression& expression) {
  return any_within(expression, [](const Expression& each) {
    const auto* call = std::get_if<Call>(&each.node);
    return call != nullptr && !call->is_udf && find_aggregate(call->name);
  });
}

void Accumulator::add(const Value& value) {
  if (value.is_undefined()) return;
  switch (kind_) {
    case AggregateKind::Count:
      ++count_;
      break;
    case AggregateKind::CountIf:
      if (value.is_true()) ++count_;
      break;
    case AggregateKind::Sum:
    case AggregateKind::Avg:
      ++count_;
      add_number(value);
      break;
    case AggregateKind::Min:
    case AggregateKind::Max:
      add_extreme(value);
      break;
    case AggregateKind::MakeList:
      keep(value);
      break;
    case AggregateKind::MakeSet:
      if (seen_.insert(json::hash_of(value)).second) keep(value);
      break;
  }
}

void Accumulator::add_number(const Value& value) {
  if (!value.is_number()) {
    is_spoilt_ = true;
    return;
  }
  sum_ = query::add(sum_, value.as_number());
}

void Accumulator::add_extreme(const Value& value) {
  if (value.is_array() || value.is_object()) is_spoilt_ = true;
  if (is_spoilt_) return;
  if (!extreme_.is_undefined()) {
    const auto order = json::compare(value, extreme_);
    if (kind_ == AggregateKind::Min ? order >= 0 : order <= 0) return;
  }
  extreme_ = value;
  extreme_.own();
  memory_ = extreme_.weight();
}

void Accumulator::keep(const Value& value) {
  Value& kept = kept_.emplace_back(value);
  kept.own();
  memory_ += kept.weight() + kValueOverhead;
}

Value Accumulator::result() const {
  switch (kind_) {
    case AggregateKind::Count:
    case AggregateKind::CountIf:
      return Value::number(static_cast<std::int64_t>(count_));
    case AggregateKind::Sum:
      return is_spoilt_ ? Value() : Value::number(sum_);
    case AggregateKind::Avg:
      if (is_spoilt_ || count_ == 0) return {};
      return Value::number(divide(sum_, json::Number::of(static_cast<std::int64_t>(count_))));
    case AggregateKind::Min:
    case AggregateKind::Max:
      return is_spoilt_ ? Value() : extreme_;
    case AggregateKind::MakeList:
    case AggregateKind::MakeSet:
      return Value::array(kept_);
  }
  return {};
}

Groups::Groups(const Query& query) : query_(query) {
  if (!query.group_by.empty()) return;
  Group& only = groups_[""];
  for (const AggregateCall& call : query.aggregates) only.accumulators.emplace_back(call.kind);
}

void Groups::add(Frame& frame) {
  key_.clear();
  Value scratch;
  for (const ExpressionPtr& item : query_.group_by) {
    json::append_sort_key(key_, evaluate(*item, frame, scratch), kKeyStringBytesMax);
  }
  auto found = groups_.find(std::string_view(key_));
  if (found == groups_.end()) {
    found = groups_.emplace(key_, Group()).first;
    Group& group = found->second;
    memory_ += key_.size() + kGroupOverhead;
    for (const ExpressionPtr& item : query_.group_by) {
      Value& key = group.keys.emplace_back(evaluate(*item, frame, scratch));
      key.own();
      memory_ += key.weight() + kValueOverhead;
    }
    for (const AggregateCall& call : query_.aggregates) group.accumulators.emplace_back(call.kind);
    memory_ += group.accumulators.size() * sizeof(Accumulator);
  }
  Group& group = found->second;
  for (std::size_t i = 0; i < query_.aggregates.size(); ++i) {
    Accumulator& accumulator = group.accumulators[i];
    const std::size_t before = accumulator.memory();
    accumulator.add(evaluate(*query_.aggregates[i].argument, frame, scratch));
    memory_ += accumulator.memory() - before;
  }
}

std::vector<std::pair<std::string_view, const Groups::Group*>> Groups::sorted() const {
  std::vector<std::pair<std::string_view, const Group*>> all;
  all.reserve(groups_.size());
  for (const auto& [key, group] : groups_) all.emplace_back(key, &group);
  std::ranges::sort(all, {}, &std::pair<std::string_view, const Group*>::first);
  return all;
}

template <typename Use>
Value Groups::with_values(const Group& group, Frame& frame, Use&& use) const {
  std::vector<Value> results;
  results.reserve(group.accumulators.size());
  for (const Accumulator& accumulator : group.accumulators) {
    results.push_back(accumulator.result());
  }
  const auto outer_aggregates = std::exchange(frame.aggregates, std::span<const Value>(results));
  const auto outer_group = std::exchange(frame.group, std::span<const Value>(group.keys));
  Value value = use();
  frame.aggregates = outer_aggregates;
  frame.group = outer_group;
  return value;
}

Value Groups::show(const Group& group, Frame& frame) const {
  return with_values(group, frame, [&] { return selected(query_, frame); });
}

Value Groups::evaluate_in(const Group& group, const Expression& expression, Frame& frame) const {
  return with_values(group, frame, [&] {
    Value scratch;
    Value value(evaluate(expression, frame, scratch));
    value.own();
    return value;
  });
}

}  // namespace orrery::query
