#include "query/bind/bind.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "protocol/ids.h"
#include "query/bind/bind_group.h"
#include "query/bind/computed.h"
#include "query/bind/search_policy.h"
#include "query/eval/aggregate.h"
#include "query/eval/evaluate.h"
#include "query/functions/functions.h"
#include "query/syntax/walk.h"

namespace orrery::query {
namespace {

/// A constant larger than this is computed each time: a short text can say a very long one.
constexpr std::size_t kKeptConstantBytesMax = 64 * 1024;
/// How long constants of one query are computed before it runs.
constexpr std::chrono::milliseconds kFoldingTimeMax{20};

/// TOP, OFFSET and LIMIT.
constexpr std::uint64_t kRowCountMax = 4'294'967'295;

/// DOCUMENTID: the counter in the `_rid` of the document, which bind puts in place of its argument.
json::Value document_id(Arguments arguments) {
  std::string buffer;
  if (!arguments[0]->is_string()) return {};
  const auto rid = Rid::parse(arguments[0]->as_string(buffer));
  if (!rid || rid->kind() != RidKind::Document) return {};
  return json::Value::number(static_cast<std::int64_t>(rid->counter()));
}
constexpr Function kDocumentId{
    .name = "DOCUMENTID", .arguments_min = 1, .arguments_max = 1, .call = document_id};

std::string argument_count_message(const Function& function) {
  const int min = function.arguments_min;
  const int max = function.arguments_max;
  const std::string count = max == kAnyNumber           ? fmt::format("at least {}", min)
                            : min == max                ? fmt::format("{}", min)
                            : function.is_least_or_most ? fmt::format("{} or {}", min, max)
                                                        : fmt::format("{} to {}", min, max);
  return fmt::format("The {} function requires {} argument(s).", function.name, count);
}

template <typename Node>
bool is_a(const Expression& expression) {
  return std::holds_alternative<Node>(expression.node);
}

/// Binds a tree from its leaves upwards. Functions that return a bool say whether the expression is
/// constant, which it then has become a literal, or fail.
class Binder {
 public:
  explicit Binder(BindContext& context) : context_(context), text_(context.text) {
    for (std::size_t i = 0; i < context.sources.size(); ++i) {
      names_.push_back({context.sources.alias(i), i});
    }
  }

  Result<bool> bind(Expression& expression) {
    if (bind_group_value(expression)) return false;
    ORRERY_TRY(bool is_constant,
               std::visit([&](auto& node) -> Result<bool> { return bind_node(node, expression); },
                          expression.node));
    if (!is_constant || std::holds_alternative<Literal>(expression.node)) return is_constant;
    Frame frame;
    if (context_.settings != nullptr) frame.surroundings = &context_.settings->surroundings;
    // Folding constants may run on an event loop: long ones are left to the execution.
    frame.work = &folding_;
    json::Value scratch;
    json::Value value(evaluate(expression, frame, scratch));
    if (frame.failure || value.weight() > kKeptConstantBytesMax) return false;
    value.own();
    expression.node = Literal{std::move(value)};
    return true;
  }

  Result<> bind_whole_query(Query& query) {
    // Also where nothing is read: the first source is no subquery's.
    document_ = context_.sources.add("");
    return bind_query(query, true, true);
  }

  /// `is_container`: its first source is the container, whatever it is called.
  Result<> bind_query(Query& query, bool is_container, bool is_whole) {
    const std::size_t outer_names = names_.size();
    GroupScope* outer_group = std::exchange(group_, nullptr);
    const auto outcome = bind_clauses(query, is_container, is_whole, outer_names);
    group_ = outer_group;
    names_.resize(outer_names);
    return outcome;
  }

 private:
  struct BoundName {
    std::string name;
    std::size_t source;
  };

  // ── Clauses ──

  Result<> bind_clauses(Query& query, bool is_container, bool is_whole, std::size_t outer_names) {
    if (!is_whole && !query.order_by.empty()) {
      return text_error(text_, query.order_by.front().expression->span, "",
                        "ORDER BY is not allowed in a subquery.");
    }
    ORRERY_TRY(bind_from(query, is_container));
    if (query.selection.kind == Selection::Kind::Star) {
      if (!query.group_by.empty()) {
        return text_error(text_, query.span, "SC2041", "'SELECT *' is not allowed with GROUP BY.");
      }
      if (query.from.size() != 1) {
        return text_error(text_, query.span, "",
                          "'SELECT *' is only allowed with exactly one source: name what is wanted "
                          "of each.");
      }
      const std::size_t source = query.from.front().source;
      query.star = Path{source, context_.sources.add_path(source, {})};
    }
    if (query.where) ORRERY_TRY(bind(*query.where));

    GroupScope group{.query = query, .first_name = outer_names, .end_name = names_.size()};
    for (ExpressionPtr& item : query.group_by) ORRERY_TRY(bind_group_item(*item, group));
    const bool is_grouped =
        !query.group_by.empty() || std::ranges::any_of(query.selection.items, [](const auto& item) {
          return has_aggregate(*item.expression);
        });
    if (is_grouped) enter(group);
    for (Selection::Item& item : query.selection.items) ORRERY_TRY(bind(*item.expression));
    // Without GROUP BY there is one row, which is in any order: what is written is only checked.
    const bool is_one_row = is_grouped && query.group_by.empty() && !query.is_rank;
    if (is_one_row) leave_group();
    ORRERY_TRY(bind_order(query));
    if (is_one_row) query.order_by.clear();
    if (group_ != nullptr) leave_group();
    ORRERY_TRY(bind_count(query.top, "SC2060", "TOP"));
    ORRERY_TRY(bind_count(query.offset, "SC2062", "OFFSET"));
    ORRERY_TRY(bind_count(query.limit, "SC2061", "LIMIT"));
    return {};
  }

  Result<> bind_from(Query& query, bool is_container) {
    if (query.from.size() > kJoinsMax + 1) {
      return text_error(text_, query.from.back().span, "",
                        fmt::format("A query may have at most {} JOINs.", kJoinsMax));
    }
    for (std::size_t i = 0; i < query.from.size(); ++i) {
      ORRERY_TRY(bind_from_item(query.from[i], is_container && i == 0));
    }
    return {};
  }

  Result<> bind_from_item(FromItem& item, bool is_container) {
    if (is_container) {
      if (!std::holds_alternative<Subquery>(item.collection->node)) {
        // The document itself: nothing is to be looked up in it.
        if (std::holds_alternative<Name>(item.collection->node) && !item.is_iteration) {
          item.source = document_;
          return add_name(item);
        }
        // Any name stands for the container, and for this item only.
        names_.push_back({leading_name(*item.collection), document_});
        ORRERY_TRY(bind(*item.collection));
        names_.pop_back();
        item.source = context_.sources.add(item.alias);
        return add_name(item);
      }
      auto& inner = std::get<Subquery>(item.collection->node);
      ORRERY_TRY(bind_query(*inner.query, true, false));
    } else if (auto* inner = std::get_if<Subquery>(&item.collection->node)) {
      ORRERY_TRY(bind_query(*inner->query, false, false));
    } else {
      ORRERY_TRY(bind(*item.collection));
    }
    item.source = context_.sources.add(item.alias);
    return add_name(item);
  }

  Result<> add_name(const FromItem& item) {
    if (item.alias.empty()) return {};
    names_.push_back({item.alias, item.source});
    return {};
  }

  static std::string leading_name(const Expression& collection) {
    if (const auto* name = std::get_if<Name>(&collection.node)) return name->name;
    const auto& access = std::get<Access>(collection.node);
    return std::get<Name>(access.base->node).name;
  }

  Result<> bind_order(Query& query) {
    const bool is_grouped = group_ != nullptr;
    for (OrderItem& item : query.order_by) {
      const Span span = item.expression->span;
      if (query.is_rank) {
        ranks_ = true;
        const auto bound = bind(*item.expression);
        ranks_ = false;
        if (!bound) return Error(bound.error());
        continue;
      }
      item.is_score = is_score(*item.expression);
      if (has_aggregate(*item.expression) && !is_grouped) return aggregate_not_allowed(span);
      ORRERY_TRY(bind(*item.expression));
      if (item.is_score) set_score_order(item);
      const bool is_computed = computed_ == item.expression.get();
      if (is_grouped || item.is_score || is_computed) continue;
      const auto* path = std::get_if<Path>(&item.expression->node);
      if (path == nullptr || query.from.empty()) {
        return text_error(text_, span, "2206",
                          "Unsupported ORDER BY clause. ORDER BY item expression could not be "
                          "mapped to a document path.");
      }
      const FromItem& root = query.from.front();
      if (path->source != root.source || root.is_iteration) {
        return text_error(text_, span, "",
                          "Order-by over correlated collections is not supported.");
      }
      if (path->source == document_ && context_.sources.steps(*path).empty()) {
        return text_error(text_, span, "2206",
                          "Unsupported ORDER BY clause. ORDER BY item expression could not be "
                          "mapped to a document path.");
      }
    }
    return {};
  }

  Result<> bind_count(std::optional<RowCount>& count, std::string_view code,
                      std::string_view what) {
    if (!count) return {};
    ORRERY_TRY(bind(*count->written));
    const auto* literal = std::get_if<Literal>(&count->written->node);
    const auto wanted = literal == nullptr ? std::nullopt : array_index(literal->value);
    if (!wanted) {
      return text_error(text_, count->span, "SC2060",
                        fmt::format("The value of {} must be an integer, not negative.", what));
    }
    if (*wanted > kRowCountMax) {
      return text_error(text_, count->span, code,
                        fmt::format("The {} count value exceeds the maximum allowed value.", what));
    }
    count->value = *wanted;
    return {};
  }

  // ── Groups and aggregates ──

  void enter(GroupScope& group) {
    group_ = &group;
    groups_.push(group);
  }
  void leave_group() {
    group_ = nullptr;
    groups_.pop();
  }

  Result<> bind_group_item(Expression& item, GroupScope& group) {
    if (has_aggregate(item)) return aggregate_not_allowed(item.span);
    if (any_within(item, is_a<Subquery>)) {
      return text_error(text_, item.span, "", "A subquery is not allowed in GROUP BY.");
    }
    if (!any_within(item, is_a<Name>)) {
      return text_error(text_, item.span, "",
                        "An item of GROUP BY must refer to a property of a document.");
    }
    group.keys.add(ComparedText(item, find_name_));
    ORRERY_TRY(bind(item));
    return {};
  }

  /// True if there is nothing left to bind.
  bool bind_group_value(Expression& expression) {
    return groups_.bind_value(expression, find_name_, context_.sources, group_);
  }

  Error aggregate_not_allowed(Span span) const {
    return text_error(text_, span, "SC2101",
                      "An aggregate function is only allowed in a SELECT list, and not within "
                      "another aggregate function.");
  }

  Result<bool> bind_aggregate(Call& call, AggregateKind kind, Expression& expression) {
    if (group_ == nullptr || group_->is_in_aggregate) return aggregate_not_allowed(call.name_span);
    if (call.arguments.size() != 1) {
      return text_error(
          text_, expression.span, "SC2050",
          fmt::format("The {} function requires 1 argument(s).", to_upper_ascii(call.name)));
    }
    group_->is_in_aggregate = true;
    const auto bound = bind(*call.arguments[0]);
    group_->is_in_aggregate = false;
    if (!bound) return Error(bound.error());
    auto& aggregates = group_->query.aggregates;
    aggregates.push_back({kind, std::move(call.arguments[0])});
    expression.node = AggregateValue{aggregates.size() - 1};
    return false;
  }

  // ── Names ──

  /// In names_.
  std::optional<std::size_t> find_name(std::string_view name) const {
    for (std::size_t i = names_.size(); i-- > 0;) {
      if (names_[i].name == name) return i;
    }
    return std::nullopt;
  }

  Result<std::size_t> resolve(const Name& name, Span name_span, Span whole) {
    const auto found = find_name(name.name);
    if (!found) {
      return text_error(text_, name_span, "SC2001",
                        fmt::format("Identifier '{}' could not be resolved.", name.name));
    }
    if (groups_.hide(*found)) {
      return text_error(
          text_, whole, "SC2102",
          fmt::format("Property reference '{}' is invalid in the select list because it is not "
                      "contained in either an aggregate function or the GROUP BY clause.",
                      text_.substr(whole.begin, whole.end - whole.begin)));
    }
    return names_[*found].source;
  }

  Result<bool> bind_node(Literal&, Expression&) { return true; }
  Result<bool> bind_node(Path&, Expression&) { return false; }
  Result<bool> bind_node(AggregateValue&, Expression&) { return false; }
  Result<bool> bind_node(GroupValue&, Expression&) { return false; }

  Result<bool> bind_node(Parameter& parameter, Expression& expression) {
    if (context_.parameters == nullptr) {
      return text_error(
          text_, expression.span, "",
          fmt::format("The parameter '{}' has no value: parameters are not possible here.",
                      parameter.name));
    }
    json::Value value(context_.parameters->find(parameter.name));
    value.own();
    expression.node = Literal{std::move(value)};
    return true;
  }

  Result<bool> bind_node(Name& name, Expression& expression) {
    ORRERY_TRY(const std::size_t source, resolve(name, expression.span, expression.span));
    expression.node = Path{source, context_.sources.add_path(source, {})};
    return false;
  }

  Result<bool> bind_node(Access& access, Expression& expression) {
    bind_grouped_source(*access.base);
    std::optional<std::size_t> source;
    if (const auto* name = std::get_if<Name>(&access.base->node)) {
      ORRERY_TRY(source, resolve(*name, access.base->span, expression.span));
    }
    bool all_constant = true;
    for (Access::Step& step : access.steps) {
      if (!step.computed) continue;
      ORRERY_TRY(const bool is_constant, bind(*step.computed));
      all_constant = all_constant && is_constant;
    }
    if (source) {
      if (const Settings::Computed* computed = computed_at(*source, access.steps.front())) {
        ORRERY_TRY(const bool is_constant, bind_computed(access, *computed));
        if (access.steps.empty()) computed_ = &expression;
        return all_constant && is_constant;
      }
      if (const auto path = path_of(access.steps)) {
        expression.node = Path{*source, context_.sources.add_path(*source, *path)};
        return false;
      }
    }
    ORRERY_TRY(const bool is_constant, bind(*access.base));
    return all_constant && is_constant;
  }

  /// Where a source is grouped by, so is what is read of it; but not what is computed of it.
  void bind_grouped_source(Expression& base) {
    const auto* name = std::get_if<Name>(&base.node);
    const auto found = name == nullptr ? std::nullopt : find_name(name->name);
    if (found && !has_computed(names_[*found].source)) bind_group_value(base);
  }

  /// Where bound steps lead; nothing if that is not the same everywhere.
  static std::optional<std::vector<json::Step>> path_of(std::span<const Access::Step> steps) {
    std::vector<json::Step> path;
    for (const Access::Step& step : steps) {
      auto constant = constant_step(step);
      if (!constant) return std::nullopt;
      path.push_back(*std::move(constant));
    }
    return path;
  }

  /// The step of a constant in brackets; nothing if it can lead nowhere.
  static std::optional<json::Step> constant_step(const Access::Step& step) {
    if (!step.computed) return json::Step(step.name);
    const auto* literal = std::get_if<Literal>(&step.computed->node);
    if (literal == nullptr) return std::nullopt;
    if (literal->value.is_string()) {
      std::string buffer;
      return json::Step(std::string(literal->value.as_string(buffer)));
    }
    const auto index = array_index(literal->value);
    return index ? std::optional<json::Step>(*index) : std::nullopt;
  }

  // ── Computed properties ──

  /// Only documents have any.
  bool has_computed(std::size_t source) const {
    return source == document_ && !context_.is_over_rows && !in_computed_ &&
           context_.settings != nullptr && !context_.settings->computed.empty();
  }

  /// The one that a bound step leads to from this source.
  const Settings::Computed* computed_at(std::size_t source, const Access::Step& step) const {
    if (!has_computed(source)) return nullptr;
    const auto constant = constant_step(step);
    const auto* name = constant ? std::get_if<std::string>(&*constant) : nullptr;
    return name == nullptr ? nullptr : find_computed(*context_.settings, *name);
  }

  /// Puts the expression of a computed property in place of the document and its name.
  Result<bool> bind_computed(Access& access, const Settings::Computed& computed) {
    ORRERY_TRY(auto parsed, parse_computed(computed));
    in_computed_ = true;
    const std::string_view text = std::exchange(text_, computed.query);
    GroupScope* const group = std::exchange(group_, nullptr);
    names_.push_back({std::move(parsed.alias), document_});
    const auto bound = bind(*parsed.expression);
    names_.pop_back();
    group_ = group;
    text_ = text;
    in_computed_ = false;
    if (!bound) return Error(bound.error());
    access.base = std::move(parsed.expression);
    access.steps.erase(access.steps.begin());
    return *bound;
  }

  // ── Calls ──

  Result<bool> bind_node(Call& call, Expression& expression) {
    if (call.is_udf) return bind_udf(call);
    if (const auto kind = find_aggregate(call.name)) {
      return bind_aggregate(call, *kind, expression);
    }
    const std::string name = to_upper_ascii(call.name);
    if (name == kDocumentId.name) return bind_document_id(call, expression);
    if (!ranks_ && (name == "FULLTEXTSCORE" || name == "RRF")) {
      return text_error(
          text_, call.name_span, "",
          fmt::format("The {} function is only allowed in an ORDER BY RANK clause.", call.name));
    }
    call.function = find_function(call.name);
    if (call.function == nullptr) {
      return text_error(text_, call.name_span, "SC2005",
                        fmt::format("'{}' is not a recognized built-in function name.", call.name));
    }
    ORRERY_TRY(check_count(call, expression));
    if (call.function->name == "IIF") {
      // Only the branch that is taken needs a value.
      Conditional conditional;
      conditional.branches.push_back({std::move(call.arguments[0]), std::move(call.arguments[1])});
      conditional.otherwise = std::move(call.arguments[2]);
      expression.node = std::move(conditional);
      return bind_node(std::get<Conditional>(expression.node), expression);
    }
    ORRERY_TRY(const bool all_constant, bind_all(call.arguments));
    append_hidden_argument(call, context_.sources, document_, context_.settings);
    if (const auto message = unknown_distance_function(call)) {
      return text_error(text_, expression.span, "", *message);
    }
    return all_constant && call.function->kind != Function::Kind::PerRow;
  }

  Result<> check_count(const Call& call, const Expression& expression) const {
    if (call.function->takes(call.arguments.size())) return {};
    return text_error(text_, expression.span, "SC2050", argument_count_message(*call.function));
  }

  Result<bool> bind_udf(Call& call) {
    const UserFunctions* functions =
        context_.settings == nullptr ? nullptr : context_.settings->user_functions;
    if (functions == nullptr || !functions->has(call.name)) {
      return text_error(
          text_, call.name_span, "",
          fmt::format("The user-defined function '{}' does not exist here.", call.name));
    }
    ORRERY_TRY(bind_all(call.arguments));
    return false;
  }

  Result<bool> bind_document_id(Call& call, Expression& expression) {
    call.function = &kDocumentId;
    ORRERY_TRY(check_count(call, expression));
    const auto* name = std::get_if<Name>(&call.arguments[0]->node);
    if (name != nullptr) {
      ORRERY_TRY(const std::size_t source,
                 resolve(*name, call.arguments[0]->span, expression.span));
      if (source == document_) {
        const json::Step rid[] = {std::string("_rid")};
        call.arguments[0]->node = Path{source, context_.sources.add_path(source, rid)};
        return false;
      }
    }
    return text_error(text_, call.arguments[0]->span, "",
                      "The argument of DOCUMENTID must be the alias of the container.");
  }

  // ── Operators ──

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

  Result<bool> bind_node(Subquery& subquery, Expression& expression) {
    ORRERY_TRY(bind_query(*subquery.query, false, false));
    if (group_ != nullptr) add_group_source(expression, *group_);
    return false;
  }

  static constexpr std::size_t kNoSource = SIZE_MAX;

  const FindName find_name_ = [this](std::string_view name) { return find_name(name); };
  BindContext& context_;
  std::string_view text_;
  std::vector<BoundName> names_;      // The innermost last.
  std::size_t document_ = kNoSource;  // The source that is the document of a whole query.
  WorkBudget folding_{{.total_time_max = kFoldingTimeMax}};
  GroupScope* group_ = nullptr;  // Of the select list that is being bound.
  GroupScopes groups_;           // And of those that its query is a subquery in.
  bool in_computed_ = false;
  bool ranks_ = false;
  const Expression* computed_ = nullptr;  // The last that was all of a computed property.
};

}  // namespace

Result<> bind(Expression& expression, BindContext& context) {
  ORRERY_TRY([[maybe_unused]] const bool is_constant, Binder(context).bind(expression));
  return {};
}

Result<> bind_query(Query& query, BindContext& context) {
  return Binder(context).bind_whole_query(query);
}

}  // namespace orrery::query
