#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "query/bind/bind.h"
#include "query/functions/functions.h"
#include "query/plan/plan.h"
#include "query/plan/rewrite.h"
#include "query/syntax/nesting.h"
#include "query/syntax/parser.h"
#include "query/syntax/print.h"
#include "query/syntax/walk.h"

namespace orrery::query {
namespace {

using MemberPath = std::vector<std::string>;
/// Values of one level of the key, as queries compare them: both zeros are one of them, though they
/// are different keys (see keys_equal_to).
using Values = std::set<KeyComponent>;

/// Keys whose every level is one of these; nothing: whatever it is.
struct Box {
  std::vector<std::optional<Values>> levels;
};
/// Keys that are in one of them. None: no key at all.
using Boxes = std::vector<Box>;

// Filters beyond these bounds are routed to more of the space than is needed.
constexpr std::size_t kAlternativesMax = 10'000;
constexpr std::size_t kIntersectionsMax = 256;
constexpr std::size_t kRangesMax = 10'000;
/// How many values may be compared in all to find what conditions have in common.
constexpr std::size_t kComparisonsMax = 1'000'000;

/// The key is not taken from the values that the server gives to these members.
constexpr std::array<std::string_view, 6> kServerOwned = {"_rid",         "_self", "_etag",
                                                          "_attachments", "_ts",   "_lsn"};

struct KeyContext {
  const Parameters& parameters;
  const PartitionKeyDefinition& definition;
  const Settings& settings;
  std::size_t comparisons = 0;

  std::size_t levels() const { return definition.paths.size(); }
  Boxes everything() const {
    Boxes boxes(1);
    boxes[0].levels.resize(levels());
    return boxes;
  }
};

bool is_everything(const Box& box) {
  return std::ranges::none_of(box.levels, [](const auto& level) { return level.has_value(); });
}

bool is_everything(const Boxes& boxes) { return boxes.size() == 1 && is_everything(boxes[0]); }

std::optional<Box> intersection(const Box& a, const Box& b, KeyContext& context) {
  Box both_bounds = a;
  for (std::size_t level = 0; level < both_bounds.levels.size(); ++level) {
    if (both_bounds.levels[level]) context.comparisons += both_bounds.levels[level]->size();
    if (!b.levels[level]) continue;
    if (!both_bounds.levels[level]) {
      both_bounds.levels[level] = b.levels[level];
      continue;
    }
    std::erase_if(*both_bounds.levels[level],
                  [&](const KeyComponent& value) { return !b.levels[level]->contains(value); });
    if (both_bounds.levels[level]->empty()) return std::nullopt;
  }
  return both_bounds;
}

/// The intersection of both; or, where that would take too long, one of them.
Boxes both_bounds(Boxes a, Boxes b, KeyContext& context) {
  if (is_everything(a)) return b;
  if (is_everything(b)) return a;
  if (a.size() * b.size() > kIntersectionsMax) return a.size() < b.size() ? a : b;
  Boxes boxes;
  for (const Box& left : a) {
    for (const Box& right : b) {
      if (context.comparisons > kComparisonsMax) return a;
      if (auto box = intersection(left, right, context)) boxes.push_back(std::move(*box));
    }
  }
  return boxes;
}

/// The level that alone matters to the box, if there is one.
std::optional<std::size_t> only_level(const Box& box) {
  std::optional<std::size_t> only;
  for (std::size_t level = 0; level < box.levels.size(); ++level) {
    if (!box.levels[level]) continue;
    if (only) return std::nullopt;
    only = level;
  }
  return only;
}

/// Adds the alternatives `more`. A long list of values of one level stays one box.
void add_alternatives(Boxes& boxes, Boxes more) {
  if (is_everything(boxes)) return;
  for (Box& box : more) {
    if (is_everything(box)) {
      boxes.clear();
      boxes.push_back(std::move(box));
      return;
    }
    const auto level = only_level(box);
    if (level && !boxes.empty() && only_level(boxes.back()) == level) {
      boxes.back().levels[*level]->merge(*box.levels[*level]);
    } else {
      boxes.push_back(std::move(box));
    }
  }
}

/// A number without a sign where it is zero.
double canonical(double number) { return number == 0 ? 0.0 : number; }

/// Components of keys that a query takes for the same value: they hash differently.
std::vector<KeyComponent> keys_equal_to(const KeyComponent& value) {
  const double* number = std::get_if<double>(&value);
  if (number != nullptr && *number == 0) return {KeyComponent(0.0), KeyComponent(-0.0)};
  return {value};
}

using Prefixes = std::vector<std::vector<KeyComponent>>;

/// Each of them with each of the values behind it.
Prefixes extended(const Prefixes& prefixes, const Values& values) {
  Prefixes longer;
  for (const auto& prefix : prefixes) {
    for (const KeyComponent& value : values) {
      for (KeyComponent& component : keys_equal_to(value)) {
        longer.push_back(prefix);
        longer.back().push_back(std::move(component));
      }
    }
  }
  return longer;
}

/// The conditions of one query on the partition key of its container's documents.
class KeyFilter {
 public:
  KeyFilter(const Query& query, KeyContext& context) : context_(context) {
    const FromItem& first = query.from.front();
    if (first.is_iteration || first.alias.empty()) return;
    for (std::size_t i = 1; i < query.from.size(); ++i) {
      if (query.from[i].alias == first.alias) return;
    }
    if (std::holds_alternative<Name>(first.collection->node)) {
      root_ = first.alias;
    } else if (const auto* access = std::get_if<Access>(&first.collection->node)) {
      if (!std::holds_alternative<Name>(access->base->node)) return;
      if (!append_steps(*access, root_path_)) return;
      root_ = first.alias;
    }
  }

  /// The keys of documents of which the expression may be `wanted`.
  Boxes where(const Expression& expression, bool wanted) const {
    const auto& node = expression.node;
    if (const auto* logical = std::get_if<Logical>(&node)) return of_logical(*logical, wanted);
    if (const auto* unary = std::get_if<Unary>(&node); unary && unary->op == UnaryOperator::Not) {
      return where(*unary->operand, !wanted);
    }
    if (const auto level = level_of(expression)) return one_of(*level, {KeyComponent(wanted)});
    std::optional<Boxes> boxes;
    if (const auto* chain = std::get_if<Chain>(&node)) {
      boxes = of_comparison(*chain, wanted);
    } else if (const auto* in = std::get_if<In>(&node)) {
      if (wanted != in->is_negated) boxes = of_list(*in->operand, in->list);
    } else if (const auto* like = std::get_if<Like>(&node)) {
      if (wanted != like->is_negated) boxes = of_like(*like);
    } else if (const auto* call = std::get_if<Call>(&node)) {
      if (wanted && !call->is_udf) boxes = of_call(*call);
    }
    if (boxes) return std::move(*boxes);
    if (const auto value = constant(expression)) {
      const bool holds = value->is_boolean() && value->as_boolean() == wanted;
      return holds ? context_.everything() : Boxes();
    }
    return context_.everything();
  }

  /// Whether it holds for every document of the keys that it leaves: it is nothing but certain
  /// values of levels, which the keys tell exactly.
  bool is_all_about_key(const Expression& expression) const {
    if (const auto* logical = std::get_if<Logical>(&expression.node)) {
      return logical->is_and && std::ranges::all_of(logical->operands, [&](const auto& operand) {
               return is_all_about_key(*operand);
             });
    }
    const auto* chain = std::get_if<Chain>(&expression.node);
    if (chain == nullptr || chain->links.size() != 1) return false;
    const Chain::Link& link = chain->links.front();
    if (link.op != BinaryOperator::Equal) return false;
    const Expression* other = link.operand.get();
    if (!level_of(*chain->first)) {
      if (!level_of(*other)) return false;
      other = chain->first.get();
    }
    const auto value = constant(*other);
    return value && is_told_by_key(*value);
  }

 private:
  /// Keys have doubles for numbers, and one value for all that is no scalar, or perhaps null.
  static bool is_told_by_key(const json::Value& value) {
    constexpr double kExactMax = 9007199254740992;  // 2^53
    if (value.is_number()) return std::fabs(value.as_number().real) < kExactMax;
    return value.is_string() || value.is_boolean();
  }

  Boxes of_logical(const Logical& logical, bool wanted) const {
    if (logical.is_and == wanted) {
      Boxes boxes = context_.everything();
      for (const ExpressionPtr& operand : logical.operands) {
        boxes = both_bounds(std::move(boxes), where(*operand, wanted), context_);
      }
      return boxes;
    }
    Boxes boxes;
    for (const ExpressionPtr& operand : logical.operands) {
      add_alternatives(boxes, where(*operand, wanted));
      if (boxes.size() > kAlternativesMax) return context_.everything();
    }
    return boxes;
  }

  std::optional<Boxes> of_comparison(const Chain& chain, bool wanted) const {
    if (chain.links.size() != 1) return std::nullopt;
    const Chain::Link& link = chain.links.front();
    if (link.op != (wanted ? BinaryOperator::Equal : BinaryOperator::NotEqual)) return std::nullopt;
    if (auto boxes = of_equality(*chain.first, *link.operand)) return boxes;
    return of_equality(*link.operand, *chain.first);
  }

  std::optional<Boxes> of_equality(const Expression& key, const Expression& expression) const {
    if (const auto level = level_of(key)) {
      Values values;
      if (!add_value(values, expression)) return std::nullopt;
      return one_of(*level, std::move(values));
    }
    const auto* call = std::get_if<Call>(&key.node);
    if (!call || call->is_udf || call->arguments.size() != 1) return std::nullopt;
    if (to_upper_ascii(call->name) != "ABS") return std::nullopt;
    const auto level = level_of(*call->arguments[0]);
    const auto value = constant(expression);
    if (!level || !value) return std::nullopt;
    Values values;
    if (value->is_number() && value->as_number().real >= 0) {
      const double size = canonical(value->as_number().real);
      values = {KeyComponent(size), KeyComponent(canonical(-size))};
    }
    return one_of(*level, std::move(values));
  }

  std::optional<Boxes> of_list(const Expression& operand,
                               const std::vector<ExpressionPtr>& list) const {
    const auto level = level_of(operand);
    if (!level) return std::nullopt;
    Values values;
    for (const ExpressionPtr& element : list) {
      if (!add_value(values, *element)) return std::nullopt;
    }
    return one_of(*level, std::move(values));
  }

  std::optional<Boxes> of_like(const Like& like) const {
    const auto level = level_of(*like.operand);
    const auto pattern = constant(*like.pattern);
    if (!level || !pattern || like.escape) return std::nullopt;
    Values values;
    if (pattern->is_string()) {
      std::string buffer;
      const std::string_view text = pattern->as_string(buffer);
      if (text.find_first_of("%_[") != std::string_view::npos) return std::nullopt;
      values.emplace(std::string(text));
    }
    return one_of(*level, std::move(values));
  }

  std::optional<Boxes> of_call(const Call& call) const {
    const std::string name = to_upper_ascii(call.name);
    if (call.arguments.size() == 1) {
      const auto level = level_of(*call.arguments[0]);
      if (!level) return std::nullopt;
      if (name == "IS_NULL") return one_of(*level, {KeyComponent(Null{})});
      if (name == "IS_BOOL" || name == "IS_BOOLEAN") {
        return one_of(*level, {KeyComponent(false), KeyComponent(true)});
      }
      return std::nullopt;
    }
    // Whether a part of an object is enough does not matter: all objects are one value of the key.
    if (name != "ARRAY_CONTAINS" || call.arguments.size() > 3 || call.arguments.size() < 2) {
      return std::nullopt;
    }
    if (const auto* array = std::get_if<ArrayLiteral>(&call.arguments[0]->node)) {
      return of_list(*call.arguments[1], array->elements);
    }
    const auto level = level_of(*call.arguments[1]);
    const auto list = constant(*call.arguments[0]);
    if (!level || !list) return std::nullopt;
    Values values;
    for (json::Reader reader(*list); reader.next();) {
      if (list->is_array()) add_value(values, reader.value());
    }
    return one_of(*level, std::move(values));
  }

  Boxes one_of(std::size_t level, Values values) const {
    if (values.empty()) return {};
    Boxes boxes = context_.everything();
    boxes[0].levels[level] = std::move(values);
    return boxes;
  }

  /// False when it is not known what the expression is.
  bool add_value(Values& values, const Expression& expression) const {
    if (std::holds_alternative<ArrayLiteral>(expression.node) ||
        std::holds_alternative<ObjectLiteral>(expression.node)) {
      add_no_scalar(values);
      return true;
    }
    const auto value = constant(expression);
    if (value) add_value(values, *value);
    return value.has_value();
  }

  void add_value(Values& values, const json::Value& value) const {
    switch (value.kind()) {
      case json::Kind::Undefined:
        break;  // Nothing is equal to it.
      case json::Kind::Null:
        values.emplace(Null{});
        break;
      case json::Kind::Boolean:
        values.emplace(value.as_boolean());
        break;
      case json::Kind::Number:
        if (const double number = value.as_number().real; !std::isnan(number)) {
          values.emplace(canonical(number));
        }
        break;
      case json::Kind::String: {
        std::string buffer;
        values.emplace(std::string(value.as_string(buffer)));
        break;
      }
      case json::Kind::Array:
      case json::Kind::Object:
        add_no_scalar(values);
        break;
    }
  }

  /// A document that has an array or object there is kept as if it had nothing. A hierarchical key
  /// may say null for a level that is not there.
  void add_no_scalar(Values& values) const {
    values.emplace(Undefined{});
    if (context_.definition.kind == KeyKind::MultiHash) values.emplace(Null{});
  }

  /// The level of the key that the expression reads from a document.
  std::optional<std::size_t> level_of(const Expression& expression) const {
    MemberPath path = root_path_;
    if (const auto* name = std::get_if<Name>(&expression.node)) {
      if (name->name != root_) return std::nullopt;
    } else if (const auto* access = std::get_if<Access>(&expression.node)) {
      const auto* base = std::get_if<Name>(&access->base->node);
      if (!base || base->name != root_ || !append_steps(*access, path)) return std::nullopt;
    } else {
      return std::nullopt;
    }
    if (path.empty() || std::ranges::find(kServerOwned, path[0]) != kServerOwned.end() ||
        std::ranges::any_of(context_.settings.computed,
                            [&](const auto& computed) { return computed.name == path[0]; })) {
      return std::nullopt;
    }
    const auto found = std::ranges::find(context_.definition.paths, path);
    if (found == context_.definition.paths.end()) return std::nullopt;
    return static_cast<std::size_t>(found - context_.definition.paths.begin());
  }

  bool append_steps(const Access& access, MemberPath& path) const {
    for (const Access::Step& step : access.steps) {
      if (!step.computed) {
        path.push_back(step.name);
        continue;
      }
      const auto name = constant(*step.computed);
      if (!name || !name->is_string()) return false;
      std::string buffer;
      path.emplace_back(name->as_string(buffer));
    }
    return true;
  }

  /// The value of an expression, if it is the same for all documents and at all times.
  std::optional<json::Value> constant(const Expression& expression) const {
    if (const auto* literal = std::get_if<Literal>(&expression.node)) return literal->value;
    if (const auto* parameter = std::get_if<Parameter>(&expression.node)) {
      return json::Value::referring_to(context_.parameters.find(parameter->name));
    }
    const bool varies = any_within(expression, [](const Expression& part) {
      if (const auto* call = std::get_if<Call>(&part.node)) {
        const Function* function = call->is_udf ? nullptr : find_function(call->name);
        return function == nullptr || function->kind != Function::Kind::Pure;
      }
      return std::holds_alternative<Name>(part.node) || std::holds_alternative<Subquery>(part.node);
    });
    if (varies) return std::nullopt;

    // To bind a tree changes it, and this one is not ours.
    const std::string text = print(expression);
    auto copy = Parser(text).parse_expression();
    if (!copy) return std::nullopt;
    Sources sources;
    BindContext context{.sources = sources,
                        .text = text,
                        .parameters = &context_.parameters,
                        .settings = &context_.settings};
    if (!bind(**copy, context)) return std::nullopt;
    auto* literal = std::get_if<Literal>(&(*copy)->node);
    if (literal == nullptr) return std::nullopt;
    literal->value.own();
    return std::move(literal->value);
  }

  KeyContext& context_;
  std::string root_;      ///< the name of what the query goes over; empty: not known
  MemberPath root_path_;  ///< where that is in a document
};

Boxes keys_of(const Query& query, KeyContext& context) {
  if (query.from.empty()) return {};
  Boxes keys = context.everything();
  if (const auto* subquery = std::get_if<Subquery>(&query.from.front().collection->node)) {
    keys = keys_of(*subquery->query, context);
  }
  if (!query.where) return keys;
  return both_bounds(std::move(keys), KeyFilter(query, context).where(*query.where, true), context);
}

/// False where that is the whole space.
bool append_ranges(const Box& box, const PartitionKeyDefinition& definition,
                   std::vector<QueryRange>& ranges) {
  Prefixes prefixes = {{}};
  std::size_t depth = 0;
  for (; depth < box.levels.size() && box.levels[depth]; ++depth) {
    const Values& values = *box.levels[depth];
    if (ranges.size() + prefixes.size() * values.size() > kRangesMax) break;
    prefixes = extended(prefixes, values);
  }
  const bool is_full = depth == box.levels.size();
  if (depth == 0 || (!is_full && definition.kind == KeyKind::Hash)) return false;

  for (auto& prefix : prefixes) {
    const PartitionKey key(std::move(prefix));
    if (is_full) {
      const Epk point = effective_partition_key(definition, key);
      ranges.push_back({.min = point, .max = point, .is_max_inclusive = true});
    } else {
      EpkRange range = effective_key_range(definition, key);
      ranges.push_back({.min = std::move(range.min), .max = std::move(range.max)});
    }
  }
  return true;
}

/// Sorted, without what is within others. Of two ranges one holds the other, or they are apart:
/// each is a point, or all that begins with its min.
std::vector<QueryRange> disjoint(std::vector<QueryRange> ranges) {
  std::ranges::sort(ranges, [](const QueryRange& a, const QueryRange& b) {
    return a.min != b.min ? a.min < b.min : a.max > b.max;
  });
  std::vector<QueryRange> kept;
  for (QueryRange& range : ranges) {
    if (!kept.empty()) {
      const QueryRange& last = kept.back();
      if (range.min == last.min || range.min < last.max) continue;
    }
    kept.push_back(std::move(range));
  }
  return kept;
}

}  // namespace

std::vector<QueryRange> query_ranges(const Query& query, const Parameters& parameters,
                                     const PartitionKeyDefinition& definition,
                                     const Settings& settings) {
  KeyContext context{parameters, definition, settings};
  const Boxes keys = keys_of(query, context);
  if (keys.empty()) {
    return {{.min = Epk::min(), .max = Epk::min(), .is_max_inclusive = true}};
  }
  std::vector<QueryRange> ranges;
  for (const Box& box : keys) {
    if (!append_ranges(box, definition, ranges)) {
      return {{.min = Epk::min(), .max = Epk::max()}};
    }
  }
  return disjoint(std::move(ranges));
}

KeyPin key_pin(const Query& query, const Parameters& parameters,
               const PartitionKeyDefinition& definition, const Settings& settings) {
  KeyContext context{parameters, definition, settings};
  const Boxes keys = keys_of(query, context);
  if (keys.empty()) return {.keys = {}, .finds_nothing = true};
  if (keys.size() != 1 || definition.paths.empty()) return {};
  Prefixes full = {{}};
  for (const auto& level : keys[0].levels) {
    if (!level || level->size() != 1) return {};
    full = extended(full, *level);
  }
  KeyPin pin;
  pin.is_whole_filter = query.where != nullptr && subquery_of(query) == nullptr &&
                        KeyFilter(query, context).is_all_about_key(*query.where);
  for (auto& components : full) pin.keys.emplace_back(std::move(components));
  return pin;
}

bool only_counts(const Query& query) {
  const bool is_plain = root_name(query) && query.from.size() == 1 && query.group_by.empty() &&
                        query.order_by.empty() && !query.is_distinct;
  if (!is_plain || query.selection.items.empty()) return false;
  return std::ranges::all_of(query.selection.items, [](const Selection::Item& item) {
    if (aggregate_of(*item.expression) != AggregateKind::Count) return false;
    const auto& arguments = std::get<Call>(item.expression->node).arguments;
    if (arguments.size() != 1) return false;
    const auto* literal = std::get_if<Literal>(&arguments.front()->node);
    return literal != nullptr && !literal->value.is_undefined();
  });
}

}  // namespace orrery::query
