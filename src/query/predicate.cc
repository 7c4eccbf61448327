#include "query/predicate.h"

#include "query/bind.h"
#include "query/evaluate.h"
#include "query/parser.h"

namespace orrery::query {

struct Predicate::Bound {
  Sources sources;
  ExpressionPtr expression;
  Settings settings = {};

  Result<> bind(std::string_view text) {
    settings.surroundings = surroundings_now();
    BindContext context{.sources = sources, .text = text, .settings = &settings};
    return query::bind(*expression, context);
  }
};

Result<Predicate> Predicate::parse(std::string_view text,
                                   std::span<const std::string_view> aliases) {
  ORRERY_TRY(check_text(text));
  auto bound = std::make_shared<Bound>(Sources(aliases), nullptr);
  ORRERY_TRY(bound->expression, Parser(text).parse_expression());
  ORRERY_TRY(bound->bind(text));
  return Predicate(std::move(bound));
}

Result<Predicate> Predicate::parse_condition(std::string_view text) {
  ORRERY_TRY(check_text(text));
  ORRERY_TRY(auto condition, Parser(text).parse_condition());
  const std::string_view alias = condition.alias;
  auto bound = std::make_shared<Bound>(Sources({&alias, 1}), std::move(condition.where));
  ORRERY_TRY(bound->bind(text));
  return Predicate(std::move(bound));
}

bool Predicate::matches(std::span<const json::Value> documents) const {
  Frame frame(bound_->sources, documents);
  frame.surroundings = &bound_->settings.surroundings;
  return is_true(*bound_->expression, frame);
}

}  // namespace orrery::query
