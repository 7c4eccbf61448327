// Any input as a query, a filter, a condition or a list: it is refused with a place within the
// text, or it says the same of a document however that is given. A printed tree is parsed to the
// same tree.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "query/eval/predicate.h"
#include "query/eval/projection.h"
#include "query/syntax/lexer.h"
#include "query/syntax/parser.h"
#include "query/syntax/print.h"

namespace {

using namespace orrery;

constexpr std::string_view kDocument =
    R"({"id":"1","name":"M\u00e4rs","moons":2,"rocky":true,"tags":["red",{"k":1.50}],"none":null,)"
    R"("a":{"b":{"c":[0,9223372036854775807,1e3]}},"a":1,"big":123456789012345678901234567890})";

void check(const Error& error) {
  ORRERY_ASSERT(error.code() == ErrorCode::BadRequest);
  ORRERY_ASSERT(!error.message().empty());
}

void check_round_trips(std::string_view text) {
  if (const auto query = query::Parser(text).parse_query()) {
    const std::string printed = print(**query);
    const auto again = query::Parser(printed).parse_query();
    ORRERY_ASSERT(again.has_value());
    ORRERY_ASSERT(print(**again) == printed);
  } else {
    check(query.error());
  }
  if (const auto expression = query::Parser(text).parse_expression()) {
    const std::string printed = print(**expression);
    const auto again = query::Parser(printed).parse_expression();
    ORRERY_ASSERT(again.has_value());
    ORRERY_ASSERT((*again)->depth == (*expression)->depth);
    ORRERY_ASSERT(print(**again) == printed);
  } else {
    check(expression.error());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!query::check_text(text)) return 0;
  check_round_trips(text);
  const std::string_view aliases[] = {"c", "p"};

  const json::Value as_text = json::Value::of_checked(kDocument);
  json::Value as_tree = as_text;
  as_tree.members();
  as_tree.find("a")->members();
  as_tree.find("tags")->elements();
  as_tree.own();
  const json::Value texts[] = {as_text, json::Value()};
  const json::Value trees[] = {as_tree, json::Value()};

  if (const auto predicate = query::Predicate::parse(text, aliases)) {
    ORRERY_ASSERT(predicate->is_true_of(texts).value_or(false) ==
                  predicate->is_true_of(trees).value_or(false));
  } else {
    check(predicate.error());
  }
  if (const auto condition = query::Predicate::parse_condition(text)) {
    ORRERY_ASSERT(condition->is_true_of(as_text).value_or(false) ==
                  condition->is_true_of(as_tree).value_or(false));
  } else {
    check(condition.error());
  }
  if (const auto projection = query::Projection::parse(text, aliases, "_lsn")) {
    std::string object;
    if (projection->show(object, texts).value_or(false)) {
      const auto value = json::Value::parse(object);
      // A result that is nested deeper than a document may be is still an object.
      ORRERY_ASSERT(value ? value->is_object() : object.starts_with('{'));
      std::string from_tree;
      ORRERY_ASSERT(projection->show(from_tree, trees).value_or(false));
    }
  } else {
    check(projection.error());
  }
  return 0;
}
