#include "query/eval/predicate.h"

#include "base/assert.h"
#include "query/eval/evaluate.h"
#include "query/functions/functions.h"
#include "query/syntax/parser.h"
#include "query/syntax/walk.h"

namespace orrery::query {
namespace {

/// The call of an aggregate function in an expression, not bound yet, outside of its subqueries;
/// null: there is none.
const Call* find_aggregate_call(const Expression& expression) {
  const Call* found = nullptr;
  any_within(expression, [&](const Expression& each) {
    const auto* call = std::get_if<Call>(&each.node);
    if (call == nullptr || call->is_udf || !find_aggregate(call->name)) return false;
    found = call;
    return true;
  });
  return found;
}

}  // namespace

Settings plain_settings() {
  Settings settings;
  settings.surroundings = surroundings_now();
  return settings;
}

NamedDocuments::NamedDocuments(std::span<const std::string_view> aliases)
    : first_(aliases.front()), sources_(aliases.subspan(1)), others_count_(aliases.size() - 1) {}

Result<> NamedDocuments::bind(Query& query, std::string_view text, const Settings& settings) {
  // A whole query may have them there, but it has more than one document.
  for (const Selection::Item& item : query.selection.items) {
    if (const Call* call = find_aggregate_call(*item.expression)) {
      return text_error(text, call->name_span, "SC2101",
                        "An aggregate function is only allowed in a subquery here.");
    }
  }
  FromItem& container = query.from.emplace_back();
  container.collection = std::make_unique<Expression>(Span{}, Name{first_});
  container.alias = first_;
  BindContext context{.sources = sources_, .text = text, .settings = &settings};
  ORRERY_TRY(bind_query(query, context));
  ORRERY_ASSERT(container.source == others_count_);
  surroundings_ = settings.surroundings;
  return {};
}

Frame NamedDocuments::frame_of(std::span<const json::Value> documents) const {
  ORRERY_ASSERT(documents.size() <= others_count_ + 1);
  Frame frame(sources_);
  frame.surroundings = &surroundings_;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    frame.row.set(i == 0 ? others_count_ : i - 1, documents[i]);
  }
  return frame;
}

struct Predicate::Bound {
  NamedDocuments documents;
  Query query = {};
};

Result<Predicate> Predicate::parse(std::string_view text, std::span<const std::string_view> aliases,
                                   const Settings& settings) {
  ORRERY_TRY(check_text(text));
  auto bound = std::make_shared<Bound>(NamedDocuments(aliases));
  ORRERY_TRY(bound->query.where, Parser(text).parse_expression());
  ORRERY_TRY(bound->documents.bind(bound->query, text, settings));
  return Predicate(std::move(bound));
}

Result<Predicate> Predicate::parse_condition(std::string_view text, const Settings& settings) {
  ORRERY_TRY(check_text(text));
  ORRERY_TRY(auto condition, Parser(text).parse_condition());
  const std::string_view alias = condition.alias;
  auto bound = std::make_shared<Bound>(NamedDocuments({&alias, 1}));
  bound->query.where = std::move(condition.where);
  ORRERY_TRY(bound->documents.bind(bound->query, text, settings));
  return Predicate(std::move(bound));
}

Result<bool> Predicate::is_true_of(std::span<const json::Value> documents, WorkBudget* work) const {
  Frame frame = bound_->documents.frame_of(documents);
  frame.work = work;
  const bool holds = is_true(*bound_->query.where, frame);
  if (frame.failure) return Error(*std::move(frame.failure));
  return holds;
}

}  // namespace orrery::query
