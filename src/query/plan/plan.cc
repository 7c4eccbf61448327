#include "query/plan/plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "query/bind/bind.h"
#include "query/plan/query_info.h"
#include "query/plan/rank_plan.h"
#include "query/plan/rewrite.h"
#include "query/syntax/nesting.h"
#include "query/syntax/parser.h"
#include "query/syntax/print.h"

namespace orrery::query {
namespace {

Error refused(std::string_view message) {
  std::string text = R"({"Errors":[)";
  append_string(text, message);
  return Error(ErrorCode::BadRequest, text + "]}");
}

/// The features that a client announces, and those that it lacks.
class Features {
 public:
  explicit Features(std::optional<std::string_view> announced) : knows_all_(!announced) {
    std::string_view rest = announced.value_or("");
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view name = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
      name = name.substr(0, name.find_last_not_of(' ') + 1);
      known_.push_back(to_upper_ascii(name));
    }
  }

  bool knows(std::string_view name) const {
    return knows_all_ || std::ranges::find(known_, to_upper_ascii(name)) != known_.end();
  }

  void demand(std::string_view name) {
    if (!knows(name) && std::ranges::find(missing_, name) == missing_.end()) {
      missing_.push_back(name);
    }
  }

  Result<> check() const {
    if (missing_.empty()) return {};
    return Error(ErrorCode::BadRequest,
                 fmt::format("Query contains the following features, which the calling client does "
                             "not support: {}",
                             fmt::join(missing_, ", ")));
  }

 private:
  bool knows_all_;
  std::vector<std::string> known_;  ///< in upper case
  std::vector<std::string_view> missing_;
};

/// SELECT [VALUE] COUNT(1) FROM (SELECT DISTINCT …): how many distinct rows there are.
bool counts_distinct(const Query& query) {
  const Query* inner = subquery_of(query);
  if (inner == nullptr || !inner->is_distinct || query.from.size() != 1) return false;
  if (query.is_distinct || query.top || query.where || query.offset || !query.group_by.empty() ||
      !query.order_by.empty() || query.selection.items.size() != 1) {
    return false;
  }
  const Expression& selected = *query.selection.items.front().expression;
  if (aggregate_of(selected) != AggregateKind::Count) return false;
  const auto& argument = *std::get<Call>(selected.node).arguments.front();
  const auto* literal = std::get_if<Literal>(&argument.node);
  if (literal == nullptr || literal->value.is_undefined()) return false;
  const Query* source = subquery_of(*inner);
  return !inner->top && !inner->offset && inner->group_by.empty() &&
         !has_aggregate(inner->selection) && (source == nullptr || is_row_by_row(*source));
}

/// An aggregate beside others in one expression: nobody could put it together from parts of it.
bool composes_aggregates(const Selection& selection) {
  return std::ranges::any_of(selection.items, [](const Selection::Item& item) {
    return !aggregate_of(*item.expression) && has_aggregate(*item.expression);
  });
}

/// Whether no two groups can look the same: what they are groups of is all shown.
bool shows_all_keys(const Query& query) {
  std::vector<std::string> shown;
  shown.reserve(query.selection.items.size());
  for (const Selection::Item& item : query.selection.items) {
    shown.push_back(print(*item.expression));
  }
  return std::ranges::all_of(query.group_by, [&](const ExpressionPtr& key) {
    return std::ranges::find(shown, print(*key)) != shown.end();
  });
}

class Planner {
 public:
  /// `tree` as the parser made it; `bound` is the same, bound.
  Planner(Query& tree, const Query& bound, bool is_pinned, Features& features, AggregateForm form)
      : tree_(tree), bound_(bound), is_pinned_(is_pinned), features_(features), form_(form) {
    info_.has_select_value = tree.selection.kind == Selection::Kind::Value;
    if (bound.top) top_ = bound.top->value;
    if (bound.offset) offset_ = bound.offset->value;
    if (bound.limit) limit_ = bound.limit->value;
  }

  Result<QueryInfo> plan() && {
    if (reads_container(tree_)) {
      ORRERY_TRY(plan_documents());
      ORRERY_TRY(features_.check());
    }
    return std::move(info_);
  }

 private:
  Result<> plan_documents() {
    if (counts_distinct(tree_)) {
      // Counts of the ranges do not add up: what is in two of them would count twice.
      if (!is_pinned_) features_.demand("DCount");
      if (features_.knows("DCount")) plan_distinct_count();
      return {};
    }
    if (const auto refusal = refusal_across_ranges()) {
      // One range does it all, and nothing is left to do.
      return is_pinned_ ? Result<>() : Result<>(*refusal);
    }
    const bool has_aggregates = has_aggregate(tree_.selection);
    if (has_aggregates || !tree_.group_by.empty()) {
      plan_groups(has_aggregates);
    } else if (!tree_.order_by.empty()) {
      plan_order();
    } else {
      plan_rows();
    }
    return {};
  }

  std::optional<Error> refusal_across_ranges() const {
    if (composes_aggregates(tree_.selection)) {
      return refused("Compositions of aggregates and other expressions are not allowed.");
    }
    if (const Query* inner = subquery_of(tree_); inner && !is_row_by_row(*inner)) {
      return refused(
          "A subquery in FROM with DISTINCT, TOP, OFFSET LIMIT, GROUP BY or aggregates is only "
          "allowed where the filter names one partition key.");
    }
    if (tree_.is_distinct && !tree_.group_by.empty() && !shows_all_keys(tree_)) {
      return refused(
          "DISTINCT with GROUP BY is only allowed where all items of GROUP BY are selected, or "
          "the filter names one partition key.");
    }
    const bool has_groups = !tree_.group_by.empty() || has_aggregate(tree_.selection);
    if (!tree_.order_by.empty() && !has_groups && !root_name(tree_)) {
      return refused("Order-by over correlated collections is not supported.");
    }
    return std::nullopt;
  }

  void plan_distinct_count() {
    features_.demand("Distinct");
    info_.distinct = QueryInfo::Distinct::Unordered;
    info_.distinct_count_alias = info_.has_select_value ? "" : tree_.selection.items.front().name;
    info_.rewritten = print(*subquery_of(tree_));
  }

  /// The client counts the rows, after it has put them together.
  void leave_counts_to_client() {
    info_.top = top_;
    info_.offset = offset_;
    info_.limit = limit_;
    if (top_) features_.demand("Top");
    if (offset_) features_.demand("OffsetAndLimit");
  }

  /// As many rows of each range as the client could need, if it takes them as they come.
  RowsWanted rows_wanted() const {
    if (tree_.is_distinct) return {};
    // With both, a range does not know how many rows of others come before: TOP counts what OFFSET
    // has left.
    if (limit_) return {.limit = std::min(*offset_ + *limit_, Parser::kRowCountMax)};
    return {.top = top_};
  }

  void plan_rows() {
    if (tree_.is_distinct) {
      features_.demand("Distinct");
      info_.distinct = QueryInfo::Distinct::Unordered;
      leave_counts_to_client();
      if (top_ || limit_) info_.rewritten = rewrite_counts(tree_, {});
      return;
    }
    if (is_pinned_) return;
    leave_counts_to_client();
    if (limit_) info_.rewritten = rewrite_counts(tree_, rows_wanted());
  }

  void plan_order() {
    features_.demand("OrderBy");
    if (tree_.order_by.size() > 1) features_.demand("MultipleOrderBy");
    for (std::size_t i = 0; i < tree_.order_by.size(); ++i) {
      const OrderItem& item = bound_.order_by[i];
      const bool is_descending =
          item.is_score ? item.is_largest_first : item.is_descending.value_or(false);
      info_.order_by.push_back(
          {.is_descending = is_descending, .expression = print(*tree_.order_by[i].expression)});
      info_.has_non_streaming_order_by = info_.has_non_streaming_order_by || item.is_score;
    }
    if (info_.has_non_streaming_order_by) features_.demand("NonStreamingOrderBy");
    if (tree_.is_distinct) {
      features_.demand("Distinct");
      const bool is_ordered =
          info_.has_select_value && info_.order_by.size() == 1 &&
          info_.order_by[0].expression == print(*tree_.selection.items.front().expression);
      info_.distinct = is_ordered ? QueryInfo::Distinct::Ordered : QueryInfo::Distinct::Unordered;
    }
    leave_counts_to_client();
    info_.rewritten = rewrite_order(tree_, rows_wanted());
  }

  void plan_groups(bool has_aggregates) {
    const bool is_grouped = !tree_.group_by.empty();
    if (has_aggregates) features_.demand("Aggregate");
    if (is_grouped) features_.demand("GroupBy");
    for (const Selection::Item& item : tree_.selection.items) {
      const auto aggregate = aggregate_of(*item.expression);
      demand_aggregate(aggregate);
      if (info_.has_select_value) {
        info_.aggregate = aggregate;
      } else {
        info_.outputs.push_back({.alias = item.name, .aggregate = aggregate});
      }
    }
    if (!is_grouped && !info_.has_select_value) {
      features_.demand("NonValueAggregate");
      if (bound_.aggregates.size() > 1) features_.demand("MultipleAggregates");
    }
    for (const ExpressionPtr& key : tree_.group_by) info_.group_by.push_back(print(*key));
    leave_counts_to_client();
    info_.rewritten = is_grouped || !info_.has_select_value ? rewrite_groups(tree_, form_)
                                                            : rewrite_value_aggregate(tree_, form_);
  }

  void demand_aggregate(std::optional<AggregateKind> aggregate) {
    if (aggregate == AggregateKind::CountIf) features_.demand("CountIf");
    if (aggregate == AggregateKind::MakeList || aggregate == AggregateKind::MakeSet) {
      features_.demand("ListAndSetAggregate");
    }
  }

  Query& tree_;
  const Query& bound_;
  bool is_pinned_;
  Features& features_;
  AggregateForm form_;
  std::optional<std::uint64_t> top_;
  std::optional<std::uint64_t> offset_;
  std::optional<std::uint64_t> limit_;
  QueryInfo info_;
};

/// A query text, read twice: as it is, to be printed; and checked.
struct Parsed {
  QueryPtr tree;
  QueryPtr bound;
  std::vector<QueryRange> ranges;
};

Result<Parsed> parse(const PlanRequest& request) {
  ORRERY_TRY(check_text(request.text));
  Parsed parsed;
  ORRERY_TRY(parsed.tree, Parser(request.text).parse_query());
  ORRERY_TRY(parsed.bound, Parser(request.text).parse_query());
  Sources sources;
  BindContext context{.sources = sources,
                      .text = request.text,
                      .parameters = &request.parameters,
                      .settings = &request.settings};
  ORRERY_TRY(bind_query(*parsed.bound, context));
  parsed.ranges =
      query_ranges(*parsed.tree, request.parameters, request.definition, request.settings);
  return parsed;
}

/// Whether one partition key is all that the query can find anything of, or it can find nothing, so
/// that one range answers it alone.
bool is_pinned(const std::vector<QueryRange>& ranges) {
  return ranges.size() == 1 && ranges[0].min == ranges[0].max;
}

Result<RankInfo> plan_rank(const Query& tree, const PlanRequest& request, Features& features) {
  const bool is_scored = features.knows("HybridSearchSkipOrderByRewrite");
  ORRERY_TRY(auto info, make_rank_info(tree, request.text, request.parameters,
                                       is_scored ? RankForm::Scored : RankForm::Ordered));
  features.demand("HybridSearch");
  if (!info.weights.empty()) features.demand("WeightedRankFusion");
  ORRERY_TRY(features.check());
  return info;
}

/// The plan as JSON. `has_rank`: also where there is no ORDER BY RANK, its member is there.
Result<std::string> plan_text(Parsed parsed, const PlanRequest& request, Features& features,
                              AggregateForm form, bool has_rank) {
  std::string info = "null";
  std::string rank = "null";
  if (parsed.tree->is_rank) {
    ORRERY_TRY(const RankInfo planned, plan_rank(*parsed.tree, request, features));
    rank.clear();
    planned.append_to(rank);
  } else {
    ORRERY_TRY(
        const QueryInfo planned,
        Planner(*parsed.tree, *parsed.bound, is_pinned(parsed.ranges), features, form).plan());
    info.clear();
    planned.append_to(info);
  }
  std::string json = R"({"partitionedQueryExecutionInfoVersion":2,"queryInfo":)" + info;
  json += R"(,"queryRanges":)";
  append_ranges(json, parsed.ranges);
  if (has_rank || parsed.tree->is_rank) json += R"(,"hybridSearchQueryInfo":)" + rank;
  return json + '}';
}

}  // namespace

Result<std::string> make_plan(const PlanRequest& request) {
  ORRERY_TRY(Parsed parsed, parse(request));
  Features features(request.features);
  return plan_text(std::move(parsed), request, features, AggregateForm::Full, true);
}

Result<std::optional<std::string>> make_first_chance_plan(const PlanRequest& request) {
  ORRERY_TRY(Parsed parsed, parse(request));
  const Query& tree = *parsed.tree;
  const Query* inner = subquery_of(tree);
  const bool is_served = !reads_container(tree) || (inner && !is_row_by_row(*inner)) ||
                         (is_row_by_row(tree) && tree.order_by.empty() && !request.is_parallel);
  if (is_served) return std::optional<std::string>();

  // The service refuses them before it looks where the filter leads.
  const bool is_value = tree.selection.kind == Selection::Kind::Value;
  if (has_aggregate(tree.selection) && (!is_value || !tree.group_by.empty())) {
    return refused("Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.");
  }
  const KeyPin pin = key_pin(tree, request.parameters, request.definition, request.settings);
  if (pin.finds_nothing || !pin.keys.empty()) return std::optional<std::string>();
  Features features(std::nullopt);
  ORRERY_TRY(auto plan,
             plan_text(std::move(parsed), request, features, AggregateForm::First, false));
  return std::optional(std::move(plan));
}

}  // namespace orrery::query
