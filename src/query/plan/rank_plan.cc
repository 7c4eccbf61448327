#include "query/plan/rank_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "query/eval/evaluate.h"
#include "query/plan/plan.h"
#include "query/plan/rewrite.h"
#include "query/syntax/parser.h"
#include "query/syntax/print.h"
#include "query/syntax/text_error.h"

namespace orrery::query {
namespace {

constexpr std::string_view kDocumentCount =
    "{documentdb-formattablehybridsearchquery-totaldocumentcount}";

/// Every component is asked for more rows than are wanted: what is best in all of them together may
/// be far down in each.
constexpr std::uint64_t kComponentRowsMin = 120;

/// Of a document that has no score. A text that is not there has less in common with the words than
/// one without any of them.
constexpr std::string_view kNoTextScore = "-1";
constexpr std::string_view kLeastScore = "-1.79769e+308";
constexpr std::string_view kGreatestScore = "1.79769e+308";

// The number is that of the component among those of full text, which is its place in what the
// statistics query says: so every client understands it. Some also take the number among all.
std::string word_count_placeholder(std::size_t index) {
  return fmt::format("{{documentdb-formattablehybridsearchquery-totalwordcount-{}}}", index);
}

std::string hit_counts_placeholder(std::size_t index) {
  return fmt::format("{{documentdb-formattablehybridsearchquery-hitcountsarray-{}}}", index);
}

struct Component {
  const Call* call;
  bool is_full_text;
  bool is_ascending = false;  ///< its weight is negative
  std::string score;          ///< an expression
};

/// A parsed ORDER BY RANK.
struct Ranking {
  std::string_view root;
  std::vector<Component> components;
  std::vector<double> weights;  ///< absolute
  std::optional<std::uint64_t> skip;
  std::optional<std::uint64_t> take;
  RowsWanted wanted;  ///< of each component
};

/// `first, second, …` from the argument `begin` on.
std::string arguments_of(const Call& call, std::size_t begin) {
  std::string text;
  for (std::size_t i = begin; i < call.arguments.size(); ++i) {
    if (i > begin) text += ", ";
    text += print(*call.arguments[i]);
  }
  return text;
}

/// `index`: how many full-text components there are before it.
std::string score_of(const Component& component, std::size_t index) {
  if (!component.is_full_text) return "_VectorScore(" + arguments_of(*component.call, 0) + ')';
  return fmt::format("_FullTextScore({}, [{}], {}, {}, {})", print(*component.call->arguments[0]),
                     arguments_of(*component.call, 1), kDocumentCount,
                     word_count_placeholder(index), hit_counts_placeholder(index));
}

class RankReader {
 public:
  RankReader(const Query& query, std::string_view text, const Parameters& parameters)
      : query_(query), text_(text), parameters_(parameters) {}

  Result<Ranking> read() {
    ORRERY_TRY(check_clauses());
    const OrderItem& item = query_.order_by.front();
    Ranking ranking;
    ranking.root = *root_name(query_);
    if (is_call_of(*item.expression, "RRF")) {
      ORRERY_TRY(read_fusion(std::get<Call>(item.expression->node), ranking));
    } else {
      ORRERY_TRY(auto component, component_of(*item.expression));
      ranking.components.push_back(std::move(component));
    }
    std::size_t full_text = 0;
    for (Component& component : ranking.components) {
      component.score = score_of(component, full_text);
      if (component.is_full_text) ++full_text;
    }
    ORRERY_TRY(read_counts(ranking));
    return ranking;
  }

 private:
  Error refused(Span where, std::string_view message) const {
    return text_error(text_, where, "", message);
  }

  Result<> check_clauses() const {
    const OrderItem& item = query_.order_by.front();
    const Span where = item.expression->span;
    if (!root_name(query_)) {
      return refused(where, "Order-by over correlated collections is not supported.");
    }
    if (query_.is_distinct || !query_.group_by.empty() || has_aggregate(query_.selection)) {
      return refused(
          where, "ORDER BY RANK is not allowed with DISTINCT, GROUP BY or aggregate functions.");
    }
    if (item.is_descending == false) {
      return refused(where, "ORDER BY RANK has the best first: it cannot be ascending.");
    }
    return {};
  }

  Result<Component> component_of(const Expression& expression) const {
    const bool is_full_text = is_call_of(expression, "FULLTEXTSCORE");
    if (!is_full_text && !is_call_of(expression, "VECTORDISTANCE")) {
      return refused(expression.span,
                     "ORDER BY RANK takes FullTextScore, VectorDistance, or RRF of several of "
                     "these.");
    }
    const auto& call = std::get<Call>(expression.node);
    if (call.arguments.size() < 2) {
      return refused(expression.span,
                     fmt::format("The {} function requires more arguments.", call.name));
    }
    return Component{.call = &call, .is_full_text = is_full_text, .score = {}};
  }

  Result<> read_fusion(const Call& call, Ranking& ranking) const {
    std::size_t count = call.arguments.size();
    const Expression* weights = nullptr;
    if (count > 0 && !std::holds_alternative<Call>(call.arguments.back()->node)) {
      weights = call.arguments[--count].get();
    }
    if (count == 0) return refused(call.name_span, "RRF needs scores to put together.");
    for (std::size_t i = 0; i < count; ++i) {
      ORRERY_TRY(auto component, component_of(*call.arguments[i]));
      ranking.components.push_back(std::move(component));
    }
    if (weights == nullptr) return {};

    ORRERY_TRY(ranking.weights, read_weights(*weights));
    if (ranking.weights.size() != count) {
      return refused(weights->span, "RRF needs as many weights as scores.");
    }
    for (std::size_t i = 0; i < count; ++i) {
      ranking.components[i].is_ascending = ranking.weights[i] < 0;
      ranking.weights[i] = std::abs(ranking.weights[i]);
    }
    return {};
  }

  Result<std::vector<double>> read_weights(const Expression& expression) const {
    const Error wrong = refused(expression.span, "The weights of RRF must be an array of numbers.");
    std::vector<double> weights;
    const auto add = [&](std::optional<double> weight) {
      if (!weight || !std::isfinite(*weight)) return false;
      weights.push_back(*weight);
      return true;
    };
    if (const auto* array = std::get_if<ArrayLiteral>(&expression.node)) {
      for (const ExpressionPtr& element : array->elements) {
        if (!add(number_of(*element))) return wrong;
      }
      return weights;
    }
    const auto* parameter = std::get_if<Parameter>(&expression.node);
    if (parameter == nullptr) return wrong;
    const json::Value& list = parameters_.find(parameter->name);
    if (!list.is_array()) return wrong;
    for (json::Reader reader(list); reader.next();) {
      const json::Value element = reader.value();
      if (!element.is_number() || !add(element.as_number().real)) return wrong;
    }
    return weights;
  }

  /// A number, perhaps with a sign, or a parameter.
  std::optional<double> number_of(const Expression& expression) const {
    if (const auto* unary = std::get_if<Unary>(&expression.node)) {
      const auto number = number_of(*unary->operand);
      if (number && unary->op == UnaryOperator::Minus) return -*number;
      return unary->op == UnaryOperator::Plus ? number : std::nullopt;
    }
    const json::Value* value = nullptr;
    if (const auto* literal = std::get_if<Literal>(&expression.node)) value = &literal->value;
    if (const auto* parameter = std::get_if<Parameter>(&expression.node)) {
      value = &parameters_.find(parameter->name);
    }
    if (value == nullptr || !value->is_number()) return std::nullopt;
    return value->as_number().real;
  }

  Result<std::optional<std::uint64_t>> read_count(const std::optional<RowCount>& count) const {
    if (!count) return std::optional<std::uint64_t>();
    const auto* parameter = std::get_if<Parameter>(&count->written->node);
    if (parameter == nullptr) return std::optional(count->value);
    const auto value = array_index(parameters_.find(parameter->name));
    if (!value || *value > Parser::kRowCountMax) {
      return text_error(text_, count->span, "SC2060",
                        "The number of rows must be an integer, not negative and not too large.");
    }
    return value;
  }

  Result<> read_counts(Ranking& ranking) const {
    ORRERY_TRY(const auto top, read_count(query_.top));
    ORRERY_TRY(ranking.skip, read_count(query_.offset));
    ORRERY_TRY(const auto limit, read_count(query_.limit));
    ranking.take = top && limit ? std::min(top, limit) : top ? top : limit;
    if (!ranking.take) return {};
    const std::uint64_t rows = 2 * (ranking.skip.value_or(0) + *ranking.take);
    auto& wanted = limit ? ranking.wanted.limit : ranking.wanted.top;
    wanted = std::clamp(rows, kComponentRowsMin, Parser::kRowCountMax);
    return {};
  }

  const Query& query_;
  std::string_view text_;
  const Parameters& parameters_;
};

std::string statistics_query(const Query& query, const Ranking& ranking) {
  std::string statistics;
  for (const Component& component : ranking.components) {
    if (!component.is_full_text) continue;
    const std::string path = print(*component.call->arguments[0]);
    std::string hits;
    for (std::size_t i = 1; i < component.call->arguments.size(); ++i) {
      if (i > 1) hits += ", ";
      hits += fmt::format("COUNTIF(FullTextContains({}, {}))", path,
                          print(*component.call->arguments[i]));
    }
    if (!statistics.empty()) statistics += ", ";
    statistics += fmt::format(
        R"({{"totalWordCount": SUM(_FullTextWordCount({})), "hitCounts": [{}]}})", path, hits);
  }
  // Of all documents, whatever the query wants of them; each once.
  const FromItem& root = query.from.front();
  std::string text =
      fmt::format("SELECT COUNT(1) AS documentCount, [{}] AS fullTextStatistics\nFROM {}",
                  statistics, print(*root.collection));
  if (root.has_alias) text += " AS " + root.alias;
  return text;
}

/// The scores of all components, whatever is not there in place: the better the larger if `turned`,
/// else as they are.
std::string scores_of(const Ranking& ranking, bool turned) {
  std::string text = "[";
  for (const Component& component : ranking.components) {
    if (text.size() > 1) text += ", ";
    const std::string_view missing = component.is_ascending   ? kGreatestScore
                                     : component.is_full_text ? kNoTextScore
                                                              : kLeastScore;
    const std::string score = fmt::format("({} ?? {})", component.score, missing);
    text += turned && component.is_ascending ? "(-1 * " + score + ')' : score;
  }
  return text + ']';
}

std::string order_of(const Component& component) {
  std::string text = "\nORDER BY " + component.score;
  if (component.is_ascending) {
    text += " ASC";
  } else if (component.is_full_text) {
    text += " DESC";
  }
  return text;
}

std::string scored_query(const Query& query, const Ranking& ranking, const Component& component,
                         bool turned) {
  std::string text = select_of(ranking.wanted);
  text += ranking.root;
  text += "._rid, " + payload_of(query) + " AS payload, " + scores_of(ranking, turned);
  text += " AS componentScores" + from_of(query) + where_of(query, false);
  return text + order_of(component) + end_of(ranking.wanted);
}

std::string scores_query(const Query& query, const Ranking& ranking, const Component& component) {
  std::string text = select_of(ranking.wanted);
  text += ranking.root;
  text += "._rid, " + scores_of(ranking, false) + " AS componentScores";
  text += from_of(query) + where_of(query, false);
  // Of several rows of one document the best one counts. Where each has one and all are wanted,
  // none is to be kept until the others are known.
  if (ranking.take || query.from.size() > 1) text += order_of(component);
  return text + end_of(ranking.wanted);
}

std::string ordered_query(const Query& query, const Ranking& ranking, const Component& component) {
  std::string text = select_of(ranking.wanted);
  text += ranking.root;
  text += fmt::format(
      R"(._rid, [{{"item": {}}}] AS orderByItems, {{"payload": {}, "componentScores": {}}} AS payload)",
      component.score, payload_of(query), scores_of(ranking, false));
  text += from_of(query) + where_of(query, true);
  return text + order_of(component) + end_of(ranking.wanted);
}

QueryInfo ordered_info(const Query& query, const Ranking& ranking, const Component& component) {
  QueryInfo info;
  info.top = ranking.wanted.top;
  info.limit = ranking.wanted.limit;
  if (info.limit) info.offset = 0;
  info.order_by.push_back(
      {.is_descending = !component.is_ascending, .expression = component.score});
  info.rewritten = ordered_query(query, ranking, component);
  info.has_non_streaming_order_by = true;
  return info;
}

void replace_all(std::string& text, std::string_view placeholder, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos;
       at += by.size()) {
    text.replace(at, placeholder.size(), by);
  }
}

}  // namespace

Result<RankInfo> make_rank_info(const Query& query, std::string_view text,
                                const Parameters& parameters, RankForm form) {
  ORRERY_TRY(const Ranking ranking, RankReader(query, text, parameters).read());
  RankInfo info;
  info.statistics_query = statistics_query(query, ranking);
  info.weights = ranking.weights;
  info.skip = ranking.skip;
  info.take = ranking.take;
  const bool is_scored = form == RankForm::Scored && ranking.components.size() > 1;
  for (const Component& component : ranking.components) {
    info.needs_statistics = info.needs_statistics || component.is_full_text;
    if (is_scored) {
      info.components.emplace_back().rewritten = scored_query(query, ranking, component, true);
    } else {
      info.components.push_back(ordered_info(query, ranking, component));
    }
  }
  return info;
}

Result<RankPlan> make_rank_plan(const Query& query, std::string_view text,
                                const Parameters& parameters) {
  ORRERY_TRY(Ranking ranking, RankReader(query, text, parameters).read());
  RankPlan plan;
  plan.statistics_query = statistics_query(query, ranking);
  for (const Component& component : ranking.components) {
    plan.needs_statistics = plan.needs_statistics || component.is_full_text;
    plan.components.push_back({.query = scored_query(query, ranking, component, false),
                               .is_ascending = component.is_ascending});
  }
  plan.weights = std::move(ranking.weights);
  plan.skip = ranking.skip;
  plan.take = ranking.take;
  return plan;
}

Result<std::vector<std::string>> make_score_queries(const Query& query, std::string_view text,
                                                    const Parameters& parameters) {
  ORRERY_TRY(const Ranking ranking, RankReader(query, text, parameters).read());
  std::vector<std::string> queries;
  queries.reserve(ranking.components.size());
  for (const Component& component : ranking.components) {
    queries.push_back(scores_query(query, ranking, component));
  }
  return queries;
}

std::string with_statistics(std::string_view component_query, const RankStatistics& statistics) {
  std::string text(component_query);
  replace_all(text, kDocumentCount, std::to_string(statistics.document_count));
  for (std::size_t i = 0; i < statistics.full_text.size(); ++i) {
    const RankStatistics::Words& words = statistics.full_text[i];
    replace_all(text, word_count_placeholder(i), std::to_string(words.total));
    replace_all(text, hit_counts_placeholder(i), fmt::format("[{}]", fmt::join(words.hits, ",")));
  }
  return text;
}

}  // namespace orrery::query
