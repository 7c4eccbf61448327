#include "query/plan/access.h"

#include <algorithm>
#include <set>
#include <utility>

#include "geo/cells.h"
#include "protocol/utf8.h"
#include "query/functions/functions.h"
#include "query/plan/access_bound.h"
#include "query/plan/key_set.h"
#include "query/syntax/walk.h"

namespace orrery::query {
namespace {

using json::Kind;
using json::Value;

/// The prefix of every text that a LIKE pattern matches.
struct LikePrefix {
  std::string text;
  bool is_whole = true;  ///< and it is nothing more
};

LikePrefix like_prefix(std::string_view pattern, std::optional<char32_t> escape) {
  LikePrefix prefix;
  bool is_escaped = false;
  for (std::size_t at = 0; at < pattern.size();) {
    const CodePoint character = decode_utf8(pattern, at);
    const bool is_special =
        character.value == '%' || character.value == '_' || character.value == '[';
    const bool is_escape = !is_escaped && escape && character.value == *escape;
    if (character.size == 0 || (is_special && !is_escaped && !is_escape)) {
      prefix.is_whole = false;
      break;
    }
    if (!is_escape) prefix.text += pattern.substr(at, character.size);
    is_escaped = is_escape;
    at += character.size;
  }
  return prefix;
}

/// The operator for operands that have changed places.
BinaryOperator mirrored(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::Less:
      return BinaryOperator::Greater;
    case BinaryOperator::LessOrEqual:
      return BinaryOperator::GreaterOrEqual;
    case BinaryOperator::Greater:
      return BinaryOperator::Less;
    case BinaryOperator::GreaterOrEqual:
      return BinaryOperator::LessOrEqual;
    default:
      return op;
  }
}

const Value* constant(const Expression& expression) {
  const auto* literal = std::get_if<Literal>(&expression.node);
  return literal == nullptr ? nullptr : &literal->value;
}

/// The functions IS_…, which are true of some kinds and false of all others, undefined too.
struct TypeTest {
  std::string_view name;
  Kind first;
  Kind last;
};
constexpr TypeTest kTypeTests[] = {
    {"IS_ARRAY", Kind::Array, Kind::Array},     {"IS_BOOL", Kind::Boolean, Kind::Boolean},
    {"IS_DEFINED", Kind::Null, Kind::Object},   {"IS_NULL", Kind::Null, Kind::Null},
    {"IS_NUMBER", Kind::Number, Kind::Number},  {"IS_OBJECT", Kind::Object, Kind::Object},
    {"IS_PRIMITIVE", Kind::Null, Kind::String}, {"IS_STRING", Kind::String, Kind::String},
};

class Analysis {
 public:
  Analysis(const Sources& sources, bool is_planar)
      : sources_(sources),
        cell_kind_(is_planar ? IndexKind::PlaneCells : IndexKind::EarthCells),
        bases_(sources.size()) {
    if (!bases_.empty()) bases_.front().emplace();
  }

  /// Conditions that a document must meet for the query to have a row of it, or a row to aggregate.
  AccessBound of_query(const Query& query) {
    AccessBound bound;
    for (const FromItem& item : query.from) bound.add(of_source(item));
    if (query.where) bound.add(of(*query.where, true));
    return bound;
  }

  std::vector<QueryAccess::Order> order_of(const Query& query) const {
    std::vector<QueryAccess::Order> order;
    if (query.is_rank || query.is_grouped()) return order;
    for (const OrderItem& item : query.order_by) {
      const auto place = place_of(*item.expression);
      if (!place || place->path.has_elements()) return {};
      order.push_back({place->path, item.is_descending.value_or(false)});
    }
    return order;
  }

  std::set<IndexPath> unbounded;

 private:
  /// A value in the document.
  struct Place {
    IndexPath path;
    std::string value;  ///< tells it apart from others
  };

  AccessBound of_source(const FromItem& item) {
    if (const auto* inner = std::get_if<Subquery>(&item.collection->node)) {
      // A subquery with aggregates has a row even if nothing passes its filter.
      return inner->query->is_grouped() ? AccessBound() : of_query(*inner->query);
    }
    const auto* path = std::get_if<Path>(&item.collection->node);
    if (item.is_document() || path == nullptr || !bases_[path->source]) return {};
    IndexPath base = absolute(*path);
    if (item.is_iteration) base.steps.push_back({.name = {}, .is_element = true});
    bases_[item.source] = std::move(base);
    return {};
  }

  /// From the root of the document. The base of its source is known.
  IndexPath absolute(const Path& path) const {
    IndexPath whole = *bases_[path.source];
    for (const json::Step& step : sources_.steps(path)) {
      const auto* name = std::get_if<std::string>(&step);
      // The element at a constant index is one of the array's elements.
      whole.steps.push_back({.name = name ? *name : "", .is_element = name == nullptr});
    }
    return whole;
  }

  std::optional<Place> place_of(const Expression& expression) const {
    const auto* path = std::get_if<Path>(&expression.node);
    if (path == nullptr || !bases_[path->source]) return std::nullopt;
    Place place{absolute(*path), {}};
    if (place.path.steps.empty()) return std::nullopt;
    place.value = place.path.text();
    if (place.path.has_elements()) {
      place.value += " of " + std::to_string(path->source) + "." + std::to_string(path->slot);
    }
    return place;
  }

  /// Some element of the array there, which no other condition is about.
  Place element_of(Place array, std::optional<std::string_view> member = {}) {
    array.path.steps.push_back({.name = {}, .is_element = true});
    if (member) array.path.steps.push_back({.name = std::string(*member), .is_element = false});
    array.value = array.path.text() + " element " + std::to_string(++elements_);
    return array;
  }

  static AccessBound at(const Place& place, KeySet keys) {
    if (keys.empty()) return AccessBound::never();
    // An index over elements does not have those that lack the path.
    if (keys.has_undefined() && place.path.has_elements()) return {};
    AccessBound bound;
    bound.conditions.emplace(place.value, ValueCondition{{place.path}, std::move(keys)});
    return bound;
  }

  /// Nothing can be said: remembers what is read.
  AccessBound nothing(const Expression& expression) {
    if (const auto place = place_of(expression)) unbounded.insert(place->path);
    for_each_operand(expression, [&](const Expression& operand) { nothing(operand); });
    return {};
  }

  /// `wanted`: the value of the expression, true or false.
  AccessBound of(const Expression& expression, bool wanted) {
    return std::visit([&](const auto& node) { return of_node(node, wanted, expression); },
                      expression.node);
  }

  AccessBound of_node(const Literal& literal, bool wanted, const Expression&) {
    const bool has_it = literal.value.is_boolean() && literal.value.as_boolean() == wanted;
    return has_it ? AccessBound() : AccessBound::never();
  }

  AccessBound of_node(const Path&, bool wanted, const Expression& expression) {
    const auto place = place_of(expression);
    return place ? at(*place, equal_to(Value::boolean(wanted))) : nothing(expression);
  }

  AccessBound of_node(const Unary& unary, bool wanted, const Expression& expression) {
    if (unary.op != UnaryOperator::Not) return nothing(expression);
    return of(*unary.operand, !wanted);
  }

  AccessBound of_node(const Logical& logical, bool wanted, const Expression&) {
    if (logical.is_and == wanted) {
      AccessBound all;
      for (const ExpressionPtr& operand : logical.operands) all.add(of(*operand, wanted));
      return all;
    }
    return any(logical.operands, wanted);
  }

  AccessBound any(const std::vector<ExpressionPtr>& operands, bool wanted) {
    std::vector<AccessBound> branches;
    branches.reserve(operands.size());
    for (const ExpressionPtr& operand : operands) branches.push_back(of(*operand, wanted));
    return AccessBound::one_of(std::move(branches));
  }

  /// It has the value of one of them.
  AccessBound of_node(const Coalesce& coalesce, bool wanted, const Expression&) {
    return any(coalesce.operands, wanted);
  }

  AccessBound of_node(const Conditional& conditional, bool wanted, const Expression&) {
    std::vector<AccessBound> branches;
    for (const Conditional::Branch& branch : conditional.branches) {
      AccessBound taken = of(*branch.when, true);
      taken.add(of(*branch.then, wanted));
      branches.push_back(std::move(taken));
    }
    branches.push_back(of(*conditional.otherwise, wanted));
    return AccessBound::one_of(std::move(branches));
  }

  AccessBound of_node(const Chain& chain, bool wanted, const Expression& expression) {
    if (chain.links.size() != 1 || !compares(chain.links.front().op)) return nothing(expression);
    const Chain::Link& link = chain.links.front();
    return of_comparison(*chain.first, link.op, *link.operand, wanted);
  }

  AccessBound of_comparison(const Expression& left, BinaryOperator op, const Expression& right,
                            bool wanted) {
    if (const Value* value = constant(right)) {
      if (const auto place = place_of(left)) return at(*place, compared(op, *value, wanted));
    }
    if (const Value* value = constant(left)) {
      const auto place = place_of(right);
      if (place) return at(*place, compared(mirrored(op), *value, wanted));
    }
    if (const Value* value = constant(right)) {
      if (const Call* distance = distance_in(left)) {
        return of_distance(*distance, op, *value, wanted, left);
      }
    }
    if (const Value* value = constant(left)) {
      if (const Call* distance = distance_in(right)) {
        return of_distance(*distance, mirrored(op), *value, wanted, right);
      }
    }
    nothing(left);
    return nothing(right);
  }

  AccessBound of_node(const In& in, bool wanted, const Expression& expression) {
    const auto place = place_of(*in.operand);
    const bool all_constant =
        std::ranges::all_of(in.list, [](const auto& each) { return constant(*each) != nullptr; });
    if (place && all_constant) return of_list(*place, in, wanted != in.is_negated);
    if (wanted == in.is_negated) return nothing(expression);
    std::vector<AccessBound> branches;
    branches.reserve(in.list.size());
    for (const ExpressionPtr& element : in.list) {
      branches.push_back(of_comparison(*in.operand, BinaryOperator::Equal, *element, true));
    }
    return AccessBound::one_of(std::move(branches));
  }

  static AccessBound of_list(const Place& place, const In& in, bool is_in) {
    std::vector<KeySet> sets;
    for (const ExpressionPtr& element : in.list) {
      const Value& value = *constant(*element);
      sets.push_back(is_in ? equal_to(value) : only(value));
    }
    KeySet keys = union_of(sets);
    return at(place, is_in ? std::move(keys) : defined_except(keys));
  }

  AccessBound of_node(const Between& between, bool wanted, const Expression&) {
    const bool is_within = wanted != between.is_negated;
    AccessBound above =
        of_comparison(*between.operand, BinaryOperator::GreaterOrEqual, *between.low, is_within);
    AccessBound below =
        of_comparison(*between.operand, BinaryOperator::LessOrEqual, *between.high, is_within);
    if (is_within) {
      above.add(std::move(below));
      return above;
    }
    std::vector<AccessBound> branches;
    branches.push_back(std::move(above));
    branches.push_back(std::move(below));
    return AccessBound::one_of(std::move(branches));
  }

  AccessBound of_node(const Like& like, bool wanted, const Expression& expression) {
    const auto place = place_of(*like.operand);
    const Value* pattern = constant(*like.pattern);
    if (!place || pattern == nullptr) return nothing(expression);
    if (!pattern->is_string()) return AccessBound::never();
    std::string buffer;
    const LikePrefix prefix = like_prefix(pattern->as_string(buffer), like.escape);
    const bool is_match = wanted != like.is_negated;
    if (!is_match || (prefix.text.empty() && !prefix.is_whole)) nothing(*like.operand);
    if (!is_match) return at(*place, of_kind(Kind::String));
    if (prefix.is_whole) return at(*place, equal_to(Value::string(prefix.text)));
    return at(*place, with_prefix(prefix.text));
  }

  AccessBound of_node(const Subquery& subquery, bool wanted, const Expression&) {
    if (subquery.kind != Subquery::Kind::Exists || !wanted) return {};
    return subquery.query->is_grouped() ? AccessBound() : of_query(*subquery.query);
  }

  AccessBound of_node(const Call& call, bool wanted, const Expression& expression) {
    if (call.is_udf || call.arguments.empty()) return nothing(expression);
    const std::string_view name = call.function->name;
    const auto test = std::ranges::find(kTypeTests, name, &TypeTest::name);
    if (test != std::end(kTypeTests)) return of_type_test(*test, call, wanted, expression);
    if (!wanted) return nothing(expression);
    if (name == "STARTSWITH" || name == "STRINGEQUALS") return of_text_test(call, expression);
    if (name == "ARRAY_CONTAINS") return of_array_contains(call, expression);
    if (name == "ARRAY_CONTAINS_ANY") return of_array_contains_any(call, expression);
    if (name == "ARRAY_CONTAINS_ALL") return of_array_contains_all(call, expression);
    if (name == "ST_WITHIN" || name == "ST_INTERSECTS") return of_nearness(call, 0, expression);
    if (name == "IS_INTEGER" || name == "IS_FINITE_NUMBER") {
      const auto place = place_of(*call.arguments[0]);
      return place ? at(*place, of_kind(Kind::Number)) : nothing(expression);
    }
    return nothing(expression);
  }

  AccessBound of_type_test(const TypeTest& test, const Call& call, bool wanted,
                           const Expression& expression) {
    const auto place = place_of(*call.arguments[0]);
    if (!place) return nothing(expression);
    const KeySet tested = of_kinds(test.first, test.last);
    if (wanted) return at(*place, tested);
    if (test.name == "IS_DEFINED") return at(*place, undefined_only());
    return at(*place, union_of({undefined_only(), defined_except(tested)}));
  }

  /// STARTSWITH and StringEquals, unless they ignore case.
  AccessBound of_text_test(const Call& call, const Expression& expression) {
    const bool is_prefix = call.function->name == "STARTSWITH";
    const Value* ignores_case = call.arguments.size() > 2 ? constant(*call.arguments[2]) : nullptr;
    const bool is_exact =
        call.arguments.size() == 2 ||
        (ignores_case != nullptr && ignores_case->is_boolean() && !ignores_case->as_boolean());
    if (!is_exact) return nothing(expression);
    auto place = place_of(*call.arguments[0]);
    const Value* text = constant(*call.arguments[1]);
    if (!place && !is_prefix) {
      place = place_of(*call.arguments[1]);
      text = constant(*call.arguments[0]);
    }
    if (!place || text == nullptr) return nothing(expression);
    if (!text->is_string()) return AccessBound::never();
    if (!is_prefix) return at(*place, equal_to(*text));
    std::string buffer;
    return at(*place, with_prefix(text->as_string(buffer)));
  }

  static const Call* distance_in(const Expression& expression) {
    const auto* call = std::get_if<Call>(&expression.node);
    return call != nullptr && !call->is_udf && call->function->name == "ST_DISTANCE" ? call
                                                                                     : nullptr;
  }

  /// `call` op `limit` is `wanted`.
  AccessBound of_distance(const Call& call, BinaryOperator op, const Value& limit, bool wanted,
                          const Expression& expression) {
    const bool has_limit =
        wanted ? op == BinaryOperator::Less || op == BinaryOperator::LessOrEqual ||
                     op == BinaryOperator::Equal
               : op == BinaryOperator::Greater || op == BinaryOperator::GreaterOrEqual ||
                     op == BinaryOperator::NotEqual;
    if (!has_limit || !limit.is_number()) return nothing(expression);
    return of_nearness(call, limit.as_number().real, expression);
  }

  /// One argument is a place in the document, the other a constant, and they are no farther from
  /// each other than `distance`.
  AccessBound of_nearness(const Call& call, double distance, const Expression& expression) {
    auto place = place_of(*call.arguments[0]);
    const Value* region = constant(*call.arguments[1]);
    if (!place) {
      place = place_of(*call.arguments[1]);
      region = constant(*call.arguments[0]);
    }
    if (!place || region == nullptr) return nothing(expression);
    KeySet cells;
    cells.intervals = geo::covering_intervals(*region, cell_kind_ == IndexKind::PlaneCells,
                                              distance, geo::kRegionCellsMax);
    if (cells.empty()) return AccessBound::never();
    AccessBound bound;
    // A geometry has several cells. Two conditions may hold for different ones, so each stays by
    // itself.
    bound.conditions.emplace(place->value + " near " + std::to_string(++nearnesses_),
                             ValueCondition{{place->path, cell_kind_}, std::move(cells)});
    return bound;
  }

  AccessBound of_array_contains(const Call& call, const Expression& expression) {
    bool in_part = false;
    if (call.arguments.size() > 2) {
      const Value* given = constant(*call.arguments[2]);
      if (given == nullptr) return nothing(expression);
      if (!given->is_undefined() && !given->is_boolean()) return AccessBound::never();
      in_part = given->is_true();
    }
    const Value* list = constant(*call.arguments[0]);
    const Value* wanted = constant(*call.arguments[1]);
    if (list != nullptr) {
      const auto place = place_of(*call.arguments[1]);
      if (!place || in_part) return nothing(expression);
      std::vector<KeySet> sets;
      for (json::Reader reader(*list); reader.next();) sets.push_back(equal_to(reader.value()));
      return at(*place, union_of(list->is_array() ? sets : std::vector<KeySet>()));
    }
    const auto array = place_of(*call.arguments[0]);
    if (!array || wanted == nullptr) return nothing(expression);
    if (!in_part || !wanted->is_object()) return at(element_of(*array), equal_to(*wanted));
    AccessBound all;
    std::string buffer;
    for (json::Reader reader(*wanted); reader.next();) {
      const Value name = reader.name();
      all.add(at(element_of(*array, name.as_string(buffer)), equal_to(reader.value())));
    }
    return all;
  }

  AccessBound of_array_contains_any(const Call& call, const Expression& expression) {
    const auto array = place_of(*call.arguments[0]);
    std::vector<KeySet> sets;
    for (std::size_t i = 1; i < call.arguments.size(); ++i) {
      const Value* wanted = constant(*call.arguments[i]);
      if (!array || wanted == nullptr) return nothing(expression);
      sets.push_back(equal_to(*wanted));
    }
    return at(element_of(*array), union_of(sets));
  }

  AccessBound of_array_contains_all(const Call& call, const Expression& expression) {
    const auto array = place_of(*call.arguments[0]);
    if (!array) return nothing(expression);
    AccessBound all;
    for (std::size_t i = 1; i < call.arguments.size(); ++i) {
      const Value* wanted = constant(*call.arguments[i]);
      if (wanted != nullptr) all.add(at(element_of(*array), equal_to(*wanted)));
    }
    return all;
  }

  AccessBound of_node(const auto&, bool, const Expression& expression) {
    return nothing(expression);
  }

  const Sources& sources_;
  const IndexKind cell_kind_;
  /// Where in the document each source is. Nothing: elsewhere, or not known yet.
  std::vector<std::optional<IndexPath>> bases_;
  std::size_t elements_ = 0;
  std::size_t nearnesses_ = 0;
};

PathCondition condition_of(const IndexTarget& target, const KeySet& keys) {
  return {target.path, keys.intervals, keys.is_points, target.kind};
}

}  // namespace

QueryAccess access_of(const PreparedQuery& query) {
  QueryAccess access;
  if (query.inner()) {
    access = access_of(*query.inner());
    access.order.clear();
    return access;
  }
  Analysis analysis(query.sources(), query.surroundings().is_planar);
  const AccessBound bound = analysis.of_query(query.tree());
  access.order = analysis.order_of(query.tree());
  access.is_empty = bound.is_never;
  access.unbounded_paths.assign(analysis.unbounded.begin(), analysis.unbounded.end());
  for (const auto& [value, condition] : bound.conditions) {
    access.conditions.push_back(condition_of(condition.target, condition.keys));
  }
  for (const Alternatives& alternatives : bound.alternatives) {
    if (alternatives.size() == 1) {
      const auto& [target, keys] = *alternatives.begin();
      access.conditions.push_back(condition_of(target, keys));
      continue;
    }
    auto& listed = access.alternatives.emplace_back();
    for (const auto& [target, keys] : alternatives) listed.push_back(condition_of(target, keys));
  }
  return access;
}

}  // namespace orrery::query
