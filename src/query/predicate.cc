#include "query/predicate.h"

#include "query/bind.h"
#include "query/evaluate.h"
#include "query/parser.h"

namespace orrery::query {

struct Predicate::Bound {
  Sources sources;
  ExpressionPtr expression;
};

Result<Predicate> Predicate::parse(std::string_view text,
                                   std::span<const std::string_view> aliases) {
  ORRERY_TRY(check_text(text));
  auto bound = std::make_shared<Bound>(Sources(aliases), nullptr);
  ORRERY_TRY(bound->expression, Parser(text).parse_expression());
  BindContext context{.sources = bound->sources, .text = text};
  ORRERY_TRY(bind(*bound->expression, context));
  return Predicate(std::move(bound));
}

Result<Predicate> Predicate::parse_condition(std::string_view text) {
  ORRERY_TRY(check_text(text));
  ORRERY_TRY(auto condition, Parser(text).parse_condition());
  const std::string_view alias = condition.alias;
  auto bound = std::make_shared<Bound>(Sources({&alias, 1}), std::move(condition.where));
  BindContext context{.sources = bound->sources, .text = text};
  ORRERY_TRY(bind(*bound->expression, context));
  return Predicate(std::move(bound));
}

bool Predicate::matches(std::span<const json::Value> documents) const {
  Frame frame(bound_->sources, documents);
  return is_true(*bound_->expression, frame);
}

}  // namespace orrery::query
