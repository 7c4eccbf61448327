// For tests: what an expression says of a document.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "json/value.h"
#include "query/bind/bind.h"
#include "query/eval/evaluate.h"
#include "query/syntax/parser.h"

namespace orrery::query {

/// The value of an expression over `c`, as JSON; "-" is undefined. An error is its message.
inline std::string evaluated(std::string_view text, std::string_view document) {
  const std::string_view aliases[] = {"c"};
  Sources sources(aliases);
  auto expression = Parser(text).parse_expression();
  if (!expression) return expression.error().message();
  BindContext context{.sources = sources, .text = text};
  if (const auto bound = bind(**expression, context); !bound) return bound.error().message();
  const json::Value documents[] = {json::Value::of_checked(document)};
  Frame frame(sources, documents);
  json::Value scratch;
  const json::Value& value = evaluate(**expression, frame, scratch);
  return value.is_undefined() ? "-" : value.to_text();
}

struct EvaluationCase {
  std::string_view expression;
  std::string_view value;
};

inline void expect_values(std::initializer_list<EvaluationCase> cases, std::string_view document) {
  for (const auto& [expression, value] : cases) {
    EXPECT_EQ(evaluated(expression, document), value) << expression;
  }
}

}  // namespace orrery::query
